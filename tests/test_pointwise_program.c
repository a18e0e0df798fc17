/* Pointwise programs of random chains: registers, broadcasts, results in the middle and values that
 * are used again, run in tiles of random shape and compared with the reference. */
#include "kernel_case.h"
#include "kernels/isa/kernels.h"
#include "runtime/compiled.h"

enum { CASES = 400, MAX_POST_OPS = 24 };

static uint64_t state;

static int64_t pick(int64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int64_t)(state >> 20) % n;
}

typedef struct random_case {
    kernel_case c;
    int ndims;
    int64_t dims[4];
    gb_data_type type;
    size_t values[MAX_POST_OPS + 1]; /* of the whole space */
    int n_values;
    size_t masks[MAX_POST_OPS]; /* second results of Dropout */
    int n_masks;
    size_t seed, offset, probability; /* 0: not made yet */
    bool with_anchor;                 /* value 0 is in register 0 */
} random_case;

static size_t side_operand(random_case *r, gb_data_type type)
{
    int64_t dims[4];
    int lead = (int)pick(r->ndims + 1);
    for (int d = lead; d < r->ndims; d++)
        dims[d - lead] = pick(2) ? r->dims[d] : 1;
    return kernel_case_tensor(&r->c, type, r->ndims - lead, dims);
}

static size_t scalar(random_case *r, gb_data_type type, double value)
{
    size_t id = kernel_case_tensor(&r->c, type, SHAPE(1));
    r->c.is_fixed[id] = true;
    r->c.fixed[id] = value;
    return id;
}

/* An operand of the whole space, less a number or times one, some times. */
static size_t moved_operand(random_case *r)
{
    size_t value = kernel_case_tensor(&r->c, r->type, r->ndims, r->dims);
    for (int64_t steps = 1 + pick(2); steps > 0; steps--) {
        gb_op *op = kernel_case_op(&r->c, pick(2) ? GB_OP_SUBTRACT : GB_OP_MULTIPLY);
        bool swapped = pick(4) == 0;
        size_t by =
                pick(6) ? scalar(r, r->type, (double)(pick(9) - 4) / 4) : side_operand(r, r->type);
        kernel_case_in(&r->c, op, swapped ? by : value);
        kernel_case_in(&r->c, op, swapped ? value : by);
        value = kernel_case_out(&r->c, op, r->type);
    }
    return value;
}

static size_t any_operand(random_case *r)
{
    if (pick(6) == 0 && r->c.n_ops + 4 < MAX_POST_OPS)
        return moved_operand(r);
    return pick(3) ? r->values[pick(r->n_values)] : side_operand(r, r->type);
}

static void add_select(random_case *r)
{
    gb_op *compare = kernel_case_op(&r->c, GB_OP_GREATER_EQUAL);
    kernel_case_in(&r->c, compare, r->values[pick(r->n_values)]);
    kernel_case_in(&r->c, compare, any_operand(r));
    size_t condition = kernel_case_out(&r->c, compare, GB_BOOLEAN);
    gb_op *op = kernel_case_op(&r->c, GB_OP_SELECT);
    kernel_case_in(&r->c, op, condition);
    kernel_case_in(&r->c, op, r->values[pick(r->n_values)]);
    kernel_case_in(&r->c, op, any_operand(r));
    r->values[r->n_values++] = kernel_case_out(&r->c, op, r->type);
}

static size_t add_index(random_case *r)
{
    gb_op *op = kernel_case_op(&r->c, GB_OP_GEN_INDEX);
    kernel_case_int(op, GB_ATTR_AXIS, pick(2 * r->ndims) - r->ndims);
    kernel_case_in(&r->c, op, r->values[pick(r->n_values)]);
    return kernel_case_out(&r->c, op, GB_S32);
}

/* A value where one index is at least another, as in causal masks. */
static void add_triangle(random_case *r)
{
    size_t row = add_index(r), col = add_index(r);
    if (pick(2)) {
        gb_op *shift = kernel_case_op(&r->c, pick(2) ? GB_OP_ADD : GB_OP_SUBTRACT);
        kernel_case_in(&r->c, shift, row);
        kernel_case_in(&r->c, shift, side_operand(r, GB_S32));
        row = kernel_case_out(&r->c, shift, GB_S32);
    }
    gb_op *compare = kernel_case_op(&r->c, GB_OP_GREATER_EQUAL);
    kernel_case_in(&r->c, compare, row);
    kernel_case_in(&r->c, compare, col);
    size_t condition = kernel_case_out(&r->c, compare, GB_BOOLEAN);
    gb_op *op = kernel_case_op(&r->c, GB_OP_SELECT);
    kernel_case_in(&r->c, op, condition);
    kernel_case_in(&r->c, op, r->values[pick(r->n_values)]);
    kernel_case_in(&r->c, op, any_operand(r));
    r->values[r->n_values++] = kernel_case_out(&r->c, op, r->type);
}

static void add_dropout(random_case *r)
{
    if (!r->seed) {
        r->seed = scalar(r, GB_S64, 1234567);
        r->offset = scalar(r, GB_S64, (double)pick(3));
        r->probability = scalar(r, GB_F32, 0.25);
    }
    gb_op *op = kernel_case_op(&r->c, GB_OP_DROPOUT);
    kernel_case_in(&r->c, op, r->values[pick(r->n_values)]);
    kernel_case_in(&r->c, op, r->seed);
    kernel_case_in(&r->c, op, r->offset);
    kernel_case_in(&r->c, op, r->probability);
    r->values[r->n_values++] = kernel_case_out(&r->c, op, r->type);
    if (pick(2))
        r->masks[r->n_masks++] = kernel_case_out(&r->c, op, GB_U8);
}

static void add_post_op(random_case *r)
{
    const gb_op_kind unary[] = {GB_OP_RELU, GB_OP_TANH, GB_OP_ABS, GB_OP_SIGMOID};
    const gb_op_kind binary[] = {
            GB_OP_ADD, GB_OP_SUBTRACT, GB_OP_MULTIPLY, GB_OP_MAXIMUM, GB_OP_MINIMUM};
    size_t a = r->values[pick(r->n_values)];
    bool one = pick(3) == 0;
    gb_op *op = kernel_case_op(&r->c, one ? unary[pick(4)] : binary[pick(5)]);
    if (one) {
        kernel_case_in(&r->c, op, a);
    } else {
        size_t b = any_operand(r);
        bool swapped = pick(2);
        kernel_case_in(&r->c, op, swapped ? b : a);
        kernel_case_in(&r->c, op, swapped ? a : b);
    }
    r->values[r->n_values++] = kernel_case_out(&r->c, op, r->type);
}

static void make_case(random_case *r)
{
    const gb_data_type types[] = {GB_F32, GB_F32, GB_BF16, GB_F16};
    const int64_t sizes[] = {1, 2, 3, 5, 8, 16, 17, 40};
    *r = (random_case){.ndims = 1 + (int)pick(4), .type = types[pick(4)], .with_anchor = pick(2)};
    bool wide = !r->with_anchor && pick(8) == 0; /* more than one tile at once */
    if (wide)
        r->ndims = 1 + (int)pick(2);
    for (int d = 0; d < r->ndims; d++)
        r->dims[d] = sizes[pick(d < 2 ? 8 : 6)];
    if (wide)
        r->dims[r->ndims - 1] = 1000 + pick(1500);
    r->values[r->n_values++] = kernel_case_tensor(&r->c, r->type, r->ndims, r->dims);
    for (int post_ops = 1 + (int)pick(MAX_POST_OPS); post_ops > 0 && (int)r->c.n_ops < post_ops;) {
        int room = post_ops - (int)r->c.n_ops;
        if (pick(8) == 0 && room >= 2)
            add_select(r);
        else if (pick(8) == 0 && room >= 5)
            add_triangle(r);
        else if (pick(8) == 0)
            add_dropout(r);
        else
            add_post_op(r);
    }
}

/* All ops as post-ops; results are the last value and some others. */
static gb_group make_group(const random_case *r, uint32_t *post_ops, uint32_t *outputs)
{
    gb_group group = {.anchor = GB_NONE, .ops = post_ops, .outputs = outputs};
    for (uint32_t i = 0; i < r->c.graph->n_ops; i++)
        post_ops[group.n_ops++] = i;
    int often = 1 + (int)pick(4);
    for (int i = r->with_anchor ? 0 : 1; i < r->n_values; i++)
        if (i == r->n_values - 1 || pick(often) == 0)
            outputs[group.n_outputs++] = gb_graph_find_value(r->c.graph, r->values[i]);
    for (int i = 0; i < r->n_masks; i++)
        outputs[group.n_outputs++] = gb_graph_find_value(r->c.graph, r->masks[i]);
    return group;
}

static void fill_register(const random_case *r, const kernel_memory *memory,
        const int64_t *position, int row_dim, int col_dim, int64_t rows, int64_t cols, float *lanes)
{
    const gb_logical_tensor *t = &r->c.tensors[r->values[0]];
    for (int64_t i = 0; i < rows * cols; i++) {
        int64_t at[4], offset = 0;
        memcpy(at, position, sizeof at);
        if (row_dim >= 0)
            at[row_dim] += i / cols;
        at[col_dim] += i % cols;
        for (int d = 0; d < r->ndims; d++)
            offset += at[d] * t->strides[d];
        lanes[i] = (float)gb_element_get(t->data_type, memory[r->values[0]].data, offset);
    }
}

static void run_tiles(const random_case *r, const gb_pointwise_program *pointwise,
        void *const *buffers, const kernel_memory *memory, const gb_kernels *kernels)
{
    int col_dim = (int)pick(r->ndims), row_dim = (int)pick(r->ndims + 1) - 1;
    if (row_dim == col_dim)
        row_dim = -1;
    int64_t cols = 1 + pick(r->dims[col_dim]), most = GB_TILE_ELEMENTS / cols;
    int64_t rows = row_dim < 0 ? 1 : 1 + pick(r->dims[row_dim]), position[4] = {0};
    rows = rows < most || !r->with_anchor ? rows : most;
    float *registers = aligned_alloc(64, gb_pointwise_scratch(pointwise));
    memset(registers, 0xFF, gb_pointwise_scratch(pointwise));
    for (;;) {
        gb_pointwise_view views[GB_POINTWISE_OPERANDS];
        int64_t c = r->dims[col_dim] - position[col_dim];
        int64_t n = row_dim < 0 ? 1 : r->dims[row_dim] - position[row_dim];
        c = c < cols ? c : cols;
        n = n < rows ? n : rows;
        if (r->with_anchor)
            fill_register(r, memory, position, row_dim, col_dim, n, c, registers);
        gb_pointwise_views(pointwise, buffers, position, row_dim, col_dim, views);
        kernels->pointwise_run(pointwise, views, n, c, registers);
        int d = r->ndims - 1;
        for (; d >= 0; d--) {
            position[d] += d == col_dim ? cols : d == row_dim ? rows : 1;
            if (position[d] < r->dims[d])
                break;
            position[d] = 0;
        }
        if (d < 0)
            break;
    }
    free(registers);
}

/* The reference of every value, those in the middle included: op by op. */
static gb_ref_store *all_values(random_case *r, const kernel_memory *memory)
{
    gb_ref_store *store, *kept;
    kernel_ok(gb_ref_store_create(&store));
    kernel_ok(gb_ref_store_create(&kept));
    for (size_t id = 0; id < r->c.n_tensors; id++) {
        gb_ref_tensor tensor = {0};
        if (r->c.produced[id])
            continue;
        kernel_ok(gb_ref_tensor_read(&tensor, &r->c.tensors[id], memory[id].data));
        kernel_ok(gb_ref_store_put(store, &tensor));
    }
    for (uint32_t i = 0; i < r->c.graph->n_ops; i++) {
        const gb_op *op = r->c.graph->ops[i];
        kernel_ok(gb_ref_execute(r->c.graph, 1, &op->id, store));
        for (uint32_t k = 0; k < op->n_outputs; k++) {
            gb_ref_tensor copy = *gb_ref_store_get(store, gb_op_output(op, k)->id);
            size_t bytes = (size_t)copy.count * sizeof(double);
            copy.value = memcpy(malloc(bytes), copy.value, bytes);
            copy.bound = copy.bound ? memcpy(malloc(bytes), copy.bound, bytes) : NULL;
            kernel_ok(gb_ref_store_put(kept, &copy));
        }
    }
    gb_ref_store_destroy(store);
    return kept;
}

static void check_level(
        random_case *r, const gb_group *group, const gb_kernels *kernels, const char *name)
{
    kernel_memory memory[KERNEL_CASE_TENSORS];
    for (size_t id = 0; id < r->c.n_tensors; id++)
        memory[id] = kernel_case_alloc(&r->c, &r->c.tensors[id]);
    gb_program program = {.graph = r->c.graph};
    program.value_buffers = malloc(r->c.graph->n_values * sizeof(uint32_t));
    memset(program.value_buffers, 0xFF, r->c.graph->n_values * sizeof(uint32_t));
    gb_step step = {0};
    gb_pointwise_program *pointwise = malloc(sizeof *pointwise);
    uint32_t first = gb_graph_find_value(r->c.graph, r->values[0]);
    kernel_ok(gb_pointwise_build(&program, group, r->with_anchor ? first : GB_NONE,
            &r->c.graph->values[first].tensor, &step, pointwise));
    for (uint32_t i = 0; i < pointwise->n_operands; i++)
        pointwise->operands[i].streamed = pointwise->operands[i].written && pick(2);
    void *buffers[KERNEL_CASE_TENSORS];
    for (uint32_t v = 0; v < r->c.graph->n_values; v++)
        for (uint32_t s = 0; s < step.n_uses; s++)
            if (program.value_buffers[v] == step.uses[s].buffer)
                buffers[s] = memory[r->c.graph->values[v].tensor.id].data;
    gb_ref_store *store = all_values(r, memory);
    run_tiles(r, pointwise, buffers, memory, kernels);
    for (uint32_t i = 0; i < group->n_outputs; i++) {
        const gb_logical_tensor *t = &r->c.graph->values[group->outputs[i]].tensor;
        if (t->id != r->values[0])
            kernel_case_compare(&r->c, t, &memory[t->id], gb_ref_store_get(store, t->id), name);
    }
    for (size_t id = 0; id < r->c.n_tensors; id++) {
        kernel_case_check_guards(&r->c, &r->c.tensors[id], &memory[id], name);
        kernel_case_free(&memory[id]);
    }
    gb_ref_store_destroy(store);
    gb_step_clear(&step);
    free(program.buffers);
    free(program.value_buffers);
    free(pointwise);
}

ISA_TEST(pointwise_program, random)
{
    const gb_kernels *kernels = gb_kernels_of(isa);
    kernel_case all = {0};
    for (int i = 0; i < CASES; i++) {
        random_case r;
        uint32_t post_ops[KERNEL_CASE_OPS], outputs[2 * KERNEL_CASE_OPS];
        char name[40];
        snprintf(name, sizeof name, "%s, case %d", gb_isa_name(isa), i);
        state = (uint64_t)(i + 1) * UINT64_C(0x9E3779B97F4A7C15);
        make_case(&r);
        kernel_case_graph(&r.c, (kernel_layout)pick(LAYOUT_COUNT));
        gb_group group = make_group(&r, post_ops, outputs);
        check_level(&r, &group, kernels, name);
        all.n_compared += r.c.n_compared;
        all.n_unbounded += r.c.n_unbounded;
        gb_graph_destroy(r.c.graph);
        for (size_t k = 0; k < r.c.n_ops; k++)
            gb_op_destroy(r.c.ops[k]);
    }
    kernel_case_check_quota(&all, gb_isa_name(isa));
}
