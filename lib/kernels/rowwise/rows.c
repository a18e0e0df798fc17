/* Blocks of rows and columns. A block is dense f32 over its dims: for rows (last kept dim, reduced
 * dims ...), for columns (reduced dims ..., last kept dim). */
#include "kernels/rowwise/rows.h"

#include "base/machine.h"
#include "base/memory.h"
#include "kernels/rowwise/kept_blocks.h"

#include <string.h>

enum {
    LEAST_COLUMNS = 32, /* two lines of memory */
    LEAST_BUFFERED = 64 /* columns of a buffer that stays in L1 */
};

/* Do the reduced dims form one evenly strided dim? */
static bool even(const gb_reduced_space *space, const int64_t *strides)
{
    for (int i = 1; i < space->n_reduced; i++) {
        int outer = space->reduced[i - 1], inner = space->reduced[i];
        if (strides[outer] != strides[inner] * space->dims[inner])
            return false;
    }
    return true;
}

static bool direct(const gb_reduced_space *space, gb_data_type type, const int64_t *strides)
{
    if (type != GB_F32 || !even(space, strides))
        return false;
    int last = space->ndims - 1;
    return last < 0 || strides[last] == 1;
}

/* Step of a kernel from row to row, or from one element of a column to the next. */
static int64_t kernel_stride(const gb_row_plan *plan, const int64_t *strides)
{
    const gb_reduced_space *space = &plan->problem->space;
    int dim = plan->columns ? gb_last_reduced(space) : gb_last_kept(space);
    return dim < 0 ? 0 : strides[dim];
}

/* Columns of a block that stays near between the passes over it; as many for each thread, unless they are few. */
static int64_t choose_columns(const gb_row_plan *plan, int threads, int64_t near, int64_t granule)
{
    const gb_reduced_space *space = &plan->problem->space;
    const int64_t all = space->dims[gb_last_kept(space)];
    int64_t block = gb_max_i64(near / gb_max_i64(space->n, 1), LEAST_COLUMNS);
    block = gb_min_i64(block, GB_TILE_ELEMENTS) / LEAST_COLUMNS * LEAST_COLUMNS;
    if (plan->apply && all > LEAST_COLUMNS) {
        const int64_t others = gb_product(space->n_kept, space->kept, space->dims) / all;
        int64_t blocks = gb_div_up(all, block);
        while (others * blocks % threads)
            blocks++;
        const int64_t share = gb_div_up(gb_div_up(all, blocks), granule) * granule;
        block = gb_min_i64(block, gb_max_i64(share, LEAST_COLUMNS));
    }
    return gb_max_i64(block / granule * granule, granule);
}

static int64_t choose_block(const gb_row_plan *plan, int threads, int64_t granule)
{
    const gb_reduced_space *space = &plan->problem->space;
    const gb_machine *machine = gb_machine_get();
    int64_t n = gb_max_i64(space->n, 1), all, block;
    if (!space->n_kept)
        return 1;
    all = space->dims[gb_last_kept(space)];
    if (plan->columns) {
        /* Beside the result, or the tile of it that is made; a buffer in L1, if that holds rows long enough. */
        int64_t near = (int64_t)(machine->l2_bytes / 4 * (plan->apply ? 3 : 1) / sizeof(float));
        int64_t buffer = (int64_t)(machine->l1_bytes * 3 / 4 / sizeof(float));
        if (!plan->apply && !plan->direct_src && buffer / n >= LEAST_BUFFERED)
            near = buffer;
        block = choose_columns(plan, threads, near, granule);
    } else {
        /* Rows that need no buffer, or are loaded and stored at once, stay in L1 between the passes over them. */
        int64_t near = (int64_t)(machine->l1_bytes / 2 / sizeof(float));
        bool at_once = plan->whole || (plan->direct_src && plan->direct_dst);
        block = gb_min_i64((at_once ? near : GB_TILE_ELEMENTS) / n, GB_TILE_ELEMENTS);
    }
    return gb_max_i64(1, gb_min_i64(all, block));
}

gb_row_plan gb_row_plan_make(gb_step *step, const gb_row_problem *problem, int threads,
        int64_t granule, bool has_stats, gb_row_compute_fn *apply)
{
    const gb_reduced_space *space = &problem->space;
    const gb_pointwise_program *pointwise = &problem->pointwise;
    gb_row_plan plan = {.problem = problem, .columns = gb_reduces_columns(space)};
    plan.direct_src = direct(space, problem->src.type, problem->src.strides);
    plan.direct_dst = gb_pointwise_is_plain_store(pointwise) &&
                      direct(space, pointwise->operands[0].type, pointwise->operands[0].strides);
    plan.whole = !plan.columns && space->n_kept > 0 && space->n_reduced == 1 &&
                 gb_epilogue_stores(pointwise, gb_last_reduced(space));
    /* Results of columns go through the epilogue as they are made, while their tile is in L1. */
    plan.apply = plan.columns && plan.direct_src && !plan.direct_dst ? apply : NULL;
    plan.block = choose_block(&plan, threads, granule);
    plan.items = space->n > 0 || has_stats ? gb_kept_blocks(space, plan.block) : 0;
    plan.epilogue = gb_epilogue_add(step, pointwise);
    plan.buffer = plan.epilogue.registers;
    bool buffered = (!plan.direct_dst || !plan.direct_src) && !plan.apply;
    if (buffered && space->n > GB_TILE_ELEMENTS / plan.block)
        plan.buffer = gb_scratch_add(step, gb_float_bytes(space->n * plan.block));
    return plan;
}

double gb_row_elements(const gb_row_problem *problem)
{
    const gb_reduced_space *space = &problem->space;
    return (double)space->n * (double)gb_product(space->n_kept, space->kept, space->dims);
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
    const gb_reduced_space *space = &plan->problem->space;
    int n = 0, kept = gb_last_kept(space);
    if (kept >= 0 && !plan->columns)
        dims[n++] = (uint8_t)kept;
    for (int i = 0; i < space->n_reduced; i++)
        dims[n++] = space->reduced[i];
    if (kept >= 0 && plan->columns)
        dims[n++] = (uint8_t)kept;
    for (int i = 0; i < n; i++)
        extents[dims[i]] = dims[i] == kept ? count : space->dims[dims[i]];
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
        for (int d = 0; d < plan->problem->space.ndims; d++)
            piece.position[d] = position[d] + inside[d];
        pieces_of_plane(plan, call, buffer, &piece, rows, cols, visit);
    }
}

static const char *source(
        const gb_row_plan *plan, const gb_step_call *call, const int64_t *position)
{
    const gb_operand *operand = &plan->problem->src;
    int64_t offset = gb_offset(plan->problem->space.ndims, operand->strides, position);
    const char *src = call->buffers[operand->slot];
    return src + offset * (int64_t)gb_data_type_bytes(operand->type, 1);
}

static void load_piece(
        const gb_row_plan *plan, const gb_step_call *call, float *buffer, const row_piece *piece)
{
    const gb_operand *src = &plan->problem->src;
    gb_kernels_get()->load_tile(src->type, source(plan, call, piece->position),
            gb_operand_stride(src, piece->row_dim), gb_operand_stride(src, piece->col_dim),
            piece->rows, piece->cols, buffer + piece->offset);
}

static void finish_piece(
        const gb_row_plan *plan, const gb_step_call *call, float *buffer, const row_piece *piece)
{
    const gb_pointwise_program *pointwise = &plan->problem->pointwise;
    float *results = buffer + piece->offset;
    if (pointwise->n_registers > 1) { /* the others would lie over the pieces behind this one */
        results = gb_epilogue_results(&plan->epilogue, call);
        if (buffer + piece->offset != results)
            memmove(results, buffer + piece->offset,
                    (size_t)(piece->rows * piece->cols) * sizeof *results);
    }
    gb_epilogue_run(&plan->epilogue, pointwise, call, piece->position, piece->row_dim,
            piece->col_dim, piece->rows, piece->cols, results);
}

/* `results` is register 0, where the epilogue expects them. */
static void apply_piece(
        const gb_row_plan *plan, const gb_step_call *call, float *results, const row_piece *piece)
{
    const gb_row_problem *problem = plan->problem;
    const gb_row_block tile = {
            .x = (const float *)(const void *)source(plan, call, piece->position),
            .y = results,
            .x_stride = kernel_stride(plan, problem->src.strides),
            .y_stride = piece->cols,
            .count = piece->cols,
            .rows = piece->rows,
            .position = piece->position};
    plan->apply(plan, call, &tile);
    gb_epilogue_run(&plan->epilogue, &problem->pointwise, call, piece->position, piece->row_dim,
            piece->col_dim, piece->rows, piece->cols, results);
}

/* A block of rows along one dim. */
static row_piece whole_block(const gb_row_plan *plan, const int64_t *position, int64_t count)
{
    const gb_reduced_space *space = &plan->problem->space;
    row_piece piece = {.row_dim = gb_last_kept(space),
            .col_dim = gb_last_reduced(space),
            .rows = count,
            .cols = space->n};
    memcpy(piece.position, position, sizeof piece.position);
    return piece;
}

static void rows_run_unit(
        const gb_row_plan *plan, const gb_step_call *call, int64_t item, gb_row_compute_fn *compute)
{
    const gb_row_problem *problem = plan->problem;
    int64_t position[GB_AXES] = {0};
    int64_t count = gb_kept_block(&problem->space, plan->block, item, position);
    float *buffer = gb_scratch_get(call, plan->buffer);
    int64_t dense = plan->columns ? count : problem->space.n;
    gb_row_block block = {.x = buffer,
            .y = plan->apply ? NULL : buffer,
            .x_stride = dense,
            .y_stride = dense,
            .count = count,
            .position = position};
    if (plan->direct_src) {
        block.x = (const float *)(const void *)source(plan, call, position);
        block.x_stride = kernel_stride(plan, problem->src.strides);
    } else if (plan->whole) {
        row_piece piece = whole_block(plan, position, count);
        load_piece(plan, call, buffer, &piece);
    } else {
        for_pieces(plan, call, position, count, buffer, load_piece);
    }
    if (plan->direct_dst) {
        const gb_pointwise_operand *dst = &problem->pointwise.operands[0];
        block.y = call->buffers[dst->slot];
        block.y += gb_offset(problem->space.ndims, dst->strides, position);
        block.y_stride = kernel_stride(plan, dst->strides);
    }
    compute(plan, call, &block);
    if (plan->direct_dst)
        return;
    if (plan->whole) {
        row_piece piece = whole_block(plan, position, count);
        finish_piece(plan, call, buffer, &piece);
    } else {
        for_pieces(plan, call, position, count, buffer, plan->apply ? apply_piece : finish_piece);
    }
}

void gb_row_run(const gb_row_plan *plan, const gb_step_call *call, gb_row_compute_fn *compute)
{
    int64_t begin, end;
    while (gb_take_items(call, plan->items, &begin, &end))
        for (int64_t item = begin; item < end; item++)
            rows_run_unit(plan, call, item, compute);
}
