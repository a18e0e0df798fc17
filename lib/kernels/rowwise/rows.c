/* Blocks of rows and columns. A block is dense f32 over its dims: for rows (last kept dim, reduced
 * dims ...), for columns (reduced dims ..., last kept dim). */
#include "kernels/rowwise/rows.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/cpu/step_call.h"

#include <string.h>

enum {
    DIRECT_ELEMENTS = 4096,      /* of a block of rows that needs no buffer: stays in L1 */
    COLUMN_ELEMENTS = 96 * 1024, /* of a block of columns: stays in L2 */
    LEAST_COLUMNS = 32           /* two lines of memory */
};

static int last_kept(const gb_row_plan *plan)
{
    return plan->n_kept ? plan->kept[plan->n_kept - 1] : -1;
}

/* Do the reduced dims form one evenly strided dim? */
static bool even(const gb_row_plan *plan, const int64_t *strides)
{
    for (int i = 1; i < plan->n_reduced; i++) {
        int outer = plan->reduced[i - 1], inner = plan->reduced[i];
        if (strides[outer] != strides[inner] * plan->epilogue.dims[inner])
            return false;
    }
    return true;
}

static bool direct(const gb_row_plan *plan, gb_data_type type, const int64_t *strides)
{
    if (type != GB_F32 || !even(plan, strides))
        return false;
    int last = plan->epilogue.ndims - 1;
    return last < 0 || strides[last] == 1;
}

/* Step of a kernel from row to row, or from one element of a column to the next. */
static int64_t kernel_stride(const gb_row_plan *plan, const int64_t *strides)
{
    if (!plan->columns)
        return last_kept(plan) < 0 ? 0 : strides[last_kept(plan)];
    return plan->n_reduced ? strides[plan->reduced[plan->n_reduced - 1]] : 0;
}

static int64_t choose_block(const gb_row_plan *plan)
{
    int64_t n = gb_max_i64(plan->n, 1), all, block;
    if (!plan->n_kept)
        return 1;
    all = plan->epilogue.dims[last_kept(plan)];
    if (plan->columns) {
        int64_t granule = gb_max_i64(plan->granule, 1);
        block = gb_max_i64(COLUMN_ELEMENTS / n, LEAST_COLUMNS);
        block = gb_min_i64(block, GB_TILE_ELEMENTS) / LEAST_COLUMNS * LEAST_COLUMNS;
        block = gb_max_i64(block / granule * granule, granule);
    } else {
        bool unbuffered = plan->direct_src && plan->direct_dst;
        block = gb_min_i64((unbuffered ? DIRECT_ELEMENTS : GB_TILE_ELEMENTS) / n, GB_TILE_ELEMENTS);
    }
    return gb_max_i64(1, gb_min_i64(all, block));
}

static void list_dims(gb_row_plan *plan, const gb_space *space)
{
    for (int d = 0; d < space->ndims; d++) {
        if (space->roles[d] == GB_ROW_REDUCED)
            plan->reduced[plan->n_reduced++] = (uint8_t)d;
        else
            plan->kept[plan->n_kept++] = (uint8_t)d;
    }
    plan->columns = space->ndims && space->roles[space->ndims - 1] == GB_ROW_KEPT;
}

void gb_row_plan_init(gb_row_plan *plan, gb_space *space)
{
    gb_space_normalize(space);
    gb_space_set_pointwise(space, &plan->epilogue);
    list_dims(plan, space);
    plan->n = gb_product(plan->n_reduced, plan->reduced, space->dims);
    plan->direct_src = direct(plan, plan->src_type, plan->src_strides);
    plan->direct_dst =
            gb_pointwise_is_plain_store(&plan->epilogue) &&
            direct(plan, plan->epilogue.operands[0].type, plan->epilogue.operands[0].strides);
    plan->block = choose_block(plan);
    plan->items = gb_product(plan->n_kept, plan->kept, space->dims);
    if (plan->n_kept && plan->items) {
        int64_t all = space->dims[last_kept(plan)];
        plan->items = plan->items / all * gb_div_up(all, plan->block);
    }
    plan->scratch = gb_align_up(gb_pointwise_scratch(&plan->epilogue), GB_CACHE_LINE);
    if (plan->direct_dst && plan->direct_src)
        return;
    if (plan->n > GB_TILE_ELEMENTS / plan->block) {
        plan->buffer_offset = plan->scratch;
        size_t elements = (size_t)plan->n * (size_t)plan->block;
        plan->scratch += gb_align_up(elements * sizeof(float), GB_CACHE_LINE);
    }
}

double gb_row_elements(const gb_row_plan *plan)
{
    return (double)plan->n * (double)gb_product(plan->n_kept, plan->kept, plan->epilogue.dims);
}

/* A dense box of part of a block: rows x cols with rows * cols <= GB_TILE_ELEMENTS, contiguous in
 * the buffer. */
typedef struct row_piece {
    int row_dim, col_dim; /* -1: none */
    int64_t rows, cols;
    int64_t offset; /* in the buffer */
    int64_t position[GB_AXES];
} row_piece;

typedef void piece_fn(
        const gb_row_plan *plan, const gb_step_call *call, float *buffer, const row_piece *piece);

/* Dims of a block and their extents, outermost first. */
static int block_dims(const gb_row_plan *plan, int64_t count, uint8_t *dims, int64_t *extents)
{
    int n = 0;
    bool kept = plan->n_kept > 0;
    if (kept && !plan->columns)
        dims[n++] = (uint8_t)last_kept(plan);
    for (int i = 0; i < plan->n_reduced; i++)
        dims[n++] = plan->reduced[i];
    if (kept && plan->columns)
        dims[n++] = (uint8_t)last_kept(plan);
    for (int i = 0; i < n; i++)
        extents[dims[i]] =
                kept && dims[i] == last_kept(plan) ? count : plan->epilogue.dims[dims[i]];
    return n;
}

static void pieces_of_plane(const gb_row_plan *plan, const gb_step_call *call, float *buffer,
        row_piece *piece, int64_t rows, int64_t cols, piece_fn *visit)
{
    int64_t start = piece->offset;
    int64_t first_row = piece->row_dim < 0 ? 0 : piece->position[piece->row_dim];
    int64_t first_col = piece->col_dim < 0 ? 0 : piece->position[piece->col_dim];
    int64_t col_step = gb_min_i64(cols, GB_TILE_ELEMENTS);
    int64_t row_step = col_step < cols ? 1 : GB_TILE_ELEMENTS / cols;
    for (int64_t r = 0; r < rows; r += row_step)
        for (int64_t c = 0; c < cols; c += col_step) {
            piece->rows = gb_min_i64(row_step, rows - r);
            piece->cols = gb_min_i64(col_step, cols - c);
            piece->offset = start + r * cols + c;
            if (piece->row_dim >= 0)
                piece->position[piece->row_dim] = first_row + r;
            if (piece->col_dim >= 0)
                piece->position[piece->col_dim] = first_col + c;
            visit(plan, call, buffer, piece);
        }
}

static void for_pieces(const gb_row_plan *plan, const gb_step_call *call, const int64_t *position,
        int64_t count, float *buffer, piece_fn *visit)
{
    uint8_t dims[GB_AXES];
    int64_t extents[GB_AXES] = {0};
    int n = block_dims(plan, count, dims, extents);
    int64_t cols = n > 0 ? extents[dims[n - 1]] : 1, rows = n > 1 ? extents[dims[n - 2]] : 1;
    int64_t planes = n > 2 ? gb_product(n - 2, dims, extents) : 1;
    if (rows == 0 || cols == 0)
        return;
    for (int64_t plane = 0; plane < planes; plane++) {
        row_piece piece = {.row_dim = n > 1 ? dims[n - 2] : -1,
                .col_dim = n > 0 ? dims[n - 1] : -1,
                .offset = plane * rows * cols};
        int64_t inside[GB_AXES] = {0};
        if (n > 2)
            gb_position_set(n - 2, dims, extents, plane, inside);
        for (int d = 0; d < plan->epilogue.ndims; d++)
            piece.position[d] = position[d] + inside[d];
        pieces_of_plane(plan, call, buffer, &piece, rows, cols, visit);
    }
}

static const char *source(
        const gb_row_plan *plan, const gb_step_call *call, const int64_t *position)
{
    int64_t offset = gb_offset(plan->epilogue.ndims, plan->src_strides, position);
    const char *src = call->buffers[plan->src_slot];
    return src + offset * (int64_t)gb_data_type_bytes(plan->src_type, 1);
}

static void load_piece(
        const gb_row_plan *plan, const gb_step_call *call, float *buffer, const row_piece *piece)
{
    gb_kernels_get()->load_tile(plan->src_type, source(plan, call, piece->position),
            piece->row_dim < 0 ? 0 : plan->src_strides[piece->row_dim],
            piece->col_dim < 0 ? 0 : plan->src_strides[piece->col_dim], piece->rows, piece->cols,
            buffer + piece->offset);
}

static void finish_piece(
        const gb_row_plan *plan, const gb_step_call *call, float *buffer, const row_piece *piece)
{
    gb_pointwise_view views[GB_POINTWISE_OPERANDS];
    float *registers = (float *)(void *)call->scratch;
    if (buffer + piece->offset != registers) /* pieces behind this one stay whole */
        memmove(registers, buffer + piece->offset,
                (size_t)(piece->rows * piece->cols) * sizeof *registers);
    gb_pointwise_views(
            &plan->epilogue, call->buffers, piece->position, piece->row_dim, piece->col_dim, views);
    gb_kernels_get()->pointwise_run(&plan->epilogue, views, piece->rows, piece->cols, registers);
}

/* Sets the position of a work item; returns its rows or columns. */
static int64_t rows_locate(const gb_row_plan *plan, int64_t item, int64_t *position)
{
    int last = last_kept(plan);
    if (last < 0)
        return 1;
    int64_t all = plan->epilogue.dims[last], blocks = gb_div_up(all, plan->block);
    gb_position_set(plan->n_kept - 1, plan->kept, plan->epilogue.dims, item / blocks, position);
    position[last] = item % blocks * plan->block;
    return gb_min_i64(plan->block, all - position[last]);
}

static void rows_run_unit(
        const gb_row_plan *plan, const gb_step_call *call, int64_t item, gb_row_compute_fn *compute)
{
    int64_t position[GB_AXES] = {0}, count = rows_locate(plan, item, position);
    float *buffer = (float *)(void *)(call->scratch + plan->buffer_offset);
    int64_t dense = plan->columns ? count : plan->n;
    gb_row_block block = {.x = buffer,
            .y = buffer,
            .x_stride = dense,
            .y_stride = dense,
            .count = count,
            .position = position,
            .scratch = call->scratch + plan->scratch};
    if (plan->direct_src) {
        block.x = (const float *)(const void *)source(plan, call, position);
        block.x_stride = kernel_stride(plan, plan->src_strides);
    } else {
        for_pieces(plan, call, position, count, buffer, load_piece);
    }
    if (plan->direct_dst) {
        const gb_pointwise_operand *dst = &plan->epilogue.operands[0];
        block.y = call->buffers[dst->slot];
        block.y += gb_offset(plan->epilogue.ndims, dst->strides, position);
        block.y_stride = kernel_stride(plan, dst->strides);
    }
    compute(plan, call, &block);
    if (!plan->direct_dst)
        for_pieces(plan, call, position, count, buffer, finish_piece);
}

void gb_row_run(const gb_row_plan *plan, const gb_step_call *call, gb_row_compute_fn *compute)
{
    int64_t begin, end;
    gb_split(plan->items, call->thread, call->n_threads, &begin, &end);
    for (int64_t item = begin; item < end; item++)
        rows_run_unit(plan, call, item, compute);
}
