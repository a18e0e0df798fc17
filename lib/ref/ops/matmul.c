/* MatMul: batches of matrix products with numpy broadcast, transposes and a broadcast bias. */
#include "ref/ops/dot.h"
#include "ref/ops/ref_functions.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include <stdlib.h>

/* A stack of matrices: the last two strides are those of row and column. */
typedef struct stack {
    int64_t rows, columns, row_stride, column_stride;
    int64_t batch_strides[GB_MAX_NDIMS];
} stack;

typedef struct matmul {
    const gb_ref_tensor *bias; /* NULL: none */
    gb_ref_tensor *dst;
    gb_ref_dot dot;
    int n_batch;
    int64_t batch_dims[GB_MAX_NDIMS];
    int64_t batches;
    stack a, b, out, bias_stack; /* a: M x K, b: K x N */
    double factor;
    int first;     /* operand that a is: 1 when the product is computed transposed */
    bool hides[2]; /* a, b: weights of a SoftMax before; see is_hidden() */
    gb_status status[1];
} matmul;

static void swap_i64(int64_t *a, int64_t *b)
{
    int64_t old = *a;
    *a = *b;
    *b = old;
}

static void stack_transpose(stack *s)
{
    swap_i64(&s->rows, &s->columns);
    swap_i64(&s->row_stride, &s->column_stride);
}

/* A dense tensor as matrices. A missing matrix axis has size 1: the row of a 1-D first operand, the
 * column of a 1-D second one. Batch axes are aligned right. */
static stack stack_of(const gb_logical_tensor *tensor, bool has_row, bool has_column, int n_batch)
{
    stack s = {.rows = 1, .columns = 1};
    int64_t strides[GB_MAX_NDIMS];
    gb_dense_strides(tensor->ndims, tensor->dims, strides);
    int d = tensor->ndims - 1;
    if (has_column && d >= 0) {
        s.columns = tensor->dims[d];
        s.column_stride = s.columns == 1 ? 0 : strides[d];
        d--;
    }
    if (has_row && d >= 0) {
        s.rows = tensor->dims[d];
        s.row_stride = s.rows == 1 ? 0 : strides[d];
        d--;
    }
    for (int batch = n_batch - 1; batch >= 0 && d >= 0; batch--, d--)
        s.batch_strides[batch] = tensor->dims[d] == 1 ? 0 : strides[d];
    return s;
}

static int64_t batch_offset(const matmul *m, const stack *s, int64_t batch)
{
    int64_t offset = 0;
    for (int d = m->n_batch - 1; d >= 0; d--) {
        offset += batch % m->batch_dims[d] * s->batch_strides[d];
        batch /= m->batch_dims[d];
    }
    return offset;
}

/* Copies rows first .. first+depth-1 of b, columns column .. column+columns-1, into the slab. */
static void load_slab(const stack *b, const double *value, int64_t first, int64_t depth,
        int64_t column, int64_t columns, double *slab)
{
    const double *from = value + first * b->row_stride + column * b->column_stride;
    if (b->column_stride <= b->row_stride) {
        for (int64_t k = 0; k < depth; k++)
            for (int64_t j = 0; j < columns; j++)
                slab[k * GB_REF_TILE + j] = from[k * b->row_stride + j * b->column_stride];
        return;
    }
    enum { BLOCK = 8 }; /* a cache line of the slab */
    for (int64_t j = 0; j < columns; j += BLOCK) {
        int64_t end = gb_min_i64(columns, j + BLOCK);
        for (int64_t k = 0; k < depth; k++)
            for (int64_t i = j; i < end; i++)
                slab[k * GB_REF_TILE + i] = from[k * b->row_stride + i * b->column_stride];
    }
}

/* Is the sum infinite or NaN because of a term that an implementation may leave out? A weight of 0 is
 * that of a key that a mask hides; what the hidden value is does not matter then. */
static bool is_hidden(const matmul *m, int64_t batch, int64_t row, int64_t column)
{
    const double *a =
            m->dot.operands[m->first].value + batch_offset(m, &m->a, batch) + row * m->a.row_stride;
    const double *b = m->dot.operands[!m->first].value + batch_offset(m, &m->b, batch) +
                      column * m->b.column_stride;
    for (int64_t k = 0; k < m->a.columns; k++) {
        double x = a[k * m->a.column_stride], y = b[k * m->b.row_stride];
        if ((m->hides[0] && x == 0 && !isfinite(y)) || (m->hides[1] && y == 0 && !isfinite(x)))
            return true;
    }
    return false;
}

static void close_tile(const matmul *m, gb_ref_tile *tile, int64_t batch, int64_t row, int64_t rows,
        int64_t column, int64_t columns)
{
    int64_t terms = m->a.columns + (m->bias != NULL);
    int64_t to = batch_offset(m, &m->out, batch);
    int64_t bias = m->bias ? batch_offset(m, &m->bias_stack, batch) : 0;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            int64_t at = to + (row + i) * m->out.row_stride + (column + j) * m->out.column_stride;
            int64_t bias_at = bias + (row + i) * m->bias_stack.row_stride +
                              (column + j) * m->bias_stack.column_stride;
            m->dst->value[at] = gb_ref_dot_close(&m->dot, tile, i * GB_REF_TILE + j, m->factor,
                    terms, m->bias, bias_at, &m->dst->bound[at]);
            if ((m->hides[0] || m->hides[1]) && !isfinite(m->dst->value[at]) &&
                    is_hidden(m, batch, row + i, column + j))
                m->dst->bound[at] = INFINITY;
        }
    }
}

static void compute_tile(
        const matmul *m, gb_ref_tile *tile, int64_t batch, int64_t row, int64_t column)
{
    const gb_ref_operand *a = &m->dot.operands[m->first], *b = &m->dot.operands[!m->first];
    int64_t rows = gb_min_i64(GB_REF_TILE_ROWS, m->a.rows - row);
    int64_t columns = gb_min_i64(GB_REF_TILE, m->b.columns - column);
    int64_t a_at = batch_offset(m, &m->a, batch) + row * m->a.row_stride;
    int64_t b_at = batch_offset(m, &m->b, batch);
    gb_ref_tile_clear(tile, rows);
    for (int64_t k = 0; k < m->a.columns; k += GB_REF_TILE_DEPTH) {
        int64_t depth = gb_min_i64(GB_REF_TILE_DEPTH, m->a.columns - k);
        int64_t from = a_at + k * m->a.column_stride;
        load_slab(&m->b, b->value + b_at, k, depth, column, columns, tile->slab);
        if (tile->wide_slab)
            load_slab(&m->b, b->wide + b_at, k, depth, column, columns, tile->wide_slab);
        gb_ref_tile_multiply(tile, 0, rows, columns, depth, a->value + from,
                tile->wide_slab ? a->wide + from : NULL, m->a.row_stride, m->a.column_stride);
    }
    close_tile(m, tile, batch, row, rows, column, columns);
}

static void matmul_compute_part(void *context, int thread, int n_threads)
{
    matmul *m = context;
    int64_t row_tiles = gb_div_up(m->a.rows, GB_REF_TILE_ROWS);
    int64_t column_tiles = gb_div_up(m->b.columns, GB_REF_TILE);
    int64_t begin, end;
    gb_split(m->batches * row_tiles * column_tiles, thread, n_threads, &begin, &end);
    gb_ref_tile tile;
    if (gb_ref_tile_create(&m->dot, m->first, &tile) != GB_SUCCESS) {
        __atomic_store_n(m->status, GB_OUT_OF_MEMORY, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t row = unit / column_tiles % row_tiles * GB_REF_TILE_ROWS;
        int64_t column = unit % column_tiles * GB_REF_TILE;
        compute_tile(m, &tile, unit / column_tiles / row_tiles, row, column);
    }
    gb_ref_tile_report(&tile, m->dst);
    gb_ref_tile_destroy(&tile);
}

/* The bias broadcasts onto the result as it is declared, before missing matrix axes are put in. */
static gb_status bind_bias(const gb_ref_call *call, matmul *m, bool has_row, bool has_column)
{
    if (call->n_inputs < 3)
        return GB_SUCCESS;
    m->bias = call->inputs[2];
    const gb_logical_tensor *bias = &m->bias->tensor, *dst = &m->dst->tensor;
    bool single = m->bias->count == 1;
    if (!single && !gb_broadcasts_onto(bias->ndims, bias->dims, dst->ndims, dst->dims))
        return gb_fail(GB_INVALID_SHAPE, "%s: bias %s does not broadcast onto %s",
                gb_op_label(call->op), gb_tensor_label(bias), gb_tensor_label(dst));
    if (!single)
        m->bias_stack = stack_of(bias, has_row, has_column, m->n_batch);
    return GB_SUCCESS;
}

static gb_status matmul_bind(const gb_ref_call *call, matmul *m)
{
    const gb_logical_tensor *a = &call->inputs[0]->tensor, *b = &call->inputs[1]->tensor;
    bool has_row = a->ndims > 1, has_column = b->ndims > 1;
    m->dst = &call->outputs[0];
    m->n_batch = m->dst->tensor.ndims - has_row - has_column;
    for (int d = 0; d < m->n_batch; d++)
        m->batch_dims[d] = m->dst->tensor.dims[d];
    if (m->n_batch < 0 || !gb_dims_count(m->n_batch, m->batch_dims, &m->batches))
        return gb_fail(GB_INVALID_SHAPE, "%s: result %s does not fit the operands",
                gb_op_label(call->op), gb_tensor_label(&m->dst->tensor));
    m->a = stack_of(a, has_row, true, m->n_batch);
    m->b = stack_of(b, true, has_column, m->n_batch);
    m->out = stack_of(&m->dst->tensor, has_row, has_column, m->n_batch);
    if (has_row && gb_op_attr_bool(call->op, GB_ATTR_TRANSPOSE_A, false))
        stack_transpose(&m->a);
    if (has_column && gb_op_attr_bool(call->op, GB_ATTR_TRANSPOSE_B, false))
        stack_transpose(&m->b);
    if (m->a.columns != m->b.rows || m->out.rows != m->a.rows || m->out.columns != m->b.columns)
        return gb_fail(GB_INVALID_SHAPE, "%s: %s times %s does not give %s", gb_op_label(call->op),
                gb_tensor_label(a), gb_tensor_label(b), gb_tensor_label(&m->dst->tensor));
    return bind_bias(call, m, has_row, has_column);
}

/* Tiles are wide, so the longer side of the result becomes the columns. */
static void choose_orientation(matmul *m)
{
    if (m->out.columns >= 32 || m->out.columns >= m->out.rows)
        return;
    stack old = m->a;
    m->a = m->b;
    m->b = old;
    m->first = 1;
    stack_transpose(&m->a);
    stack_transpose(&m->b);
    stack_transpose(&m->out);
    stack_transpose(&m->bias_stack);
}

/* Is the input made by a SoftMax of the same partition, whose results have bounds? */
static bool is_weights(const gb_ref_call *call, int input)
{
    const gb_graph *graph = call->op->graph;
    uint32_t value = call->op->inputs[input], producer;
    while (call->inputs[input]->bound && graph &&
            (producer = graph->values[value].producer) != GB_NONE) {
        const gb_op *op = graph->ops[producer];
        if (op->kind == GB_OP_SOFTMAX)
            return true;
        if (op->kind != GB_OP_TYPE_CAST && op->kind != GB_OP_DROPOUT)
            return false;
        value = op->inputs[0];
    }
    return false;
}

gb_status gb_ref_matmul(const gb_ref_call *call)
{
    matmul m = {.status = {GB_SUCCESS}};
    GB_TRY(matmul_bind(call, &m));
    if (m.dst->count == 0)
        return GB_SUCCESS;
    choose_orientation(&m);
    m.hides[0] = is_weights(call, m.first);
    m.hides[1] = is_weights(call, !m.first);
    int64_t depth = m.a.columns;
    GB_TRY(gb_ref_dot_create(call->op, call->inputs[0], call->inputs[1], m.bias, depth, &m.dot));
    if (!m.dot.exact)
        m.factor = gb_ref_sum_factor(
                depth + (m.bias != NULL), m.dot.accumulator.unit, &m.dst->statistical);
    double work = (double)m.dst->count * (double)(depth + 1);
    gb_parallel(gb_threads_for(work), matmul_compute_part, &m);
    gb_ref_dot_destroy(&m.dot);
    return m.status[0];
}
