/* A work item of a two-pass kernel: its memory, and its pieces, which are loaded, summed or
 * computed, and stored.
 */
#include "kernels/rowwise/two_pass_item.h"

#include "base/memory.h"
#include "kernels/rowwise/kept_blocks.h"

#include <string.h>

enum { PIECES_TOGETHER = 64 }; /* summed before they join the total */

static char *two_pass_element(
        const gb_two_pass_item *item, const gb_operand *view, const int64_t *position)
{
    int64_t offset = gb_offset(item->two_pass->problem->space.ndims, view->strides, position);
    char *data = item->call->buffers[view->slot];
    bool plain = view->type == GB_F32; /* a call fewer, for every piece of every operand */
    return data + offset * (int64_t)(plain ? sizeof(float) : gb_data_type_bytes(view->type, 1));
}

void gb_two_pass_load(const gb_two_pass_item *item, const gb_operand *view, float *values)
{
    gb_kernels_get()->load_tile(view->type, two_pass_element(item, view, item->position), 0,
            gb_operand_stride(view, gb_last_kept(&item->two_pass->problem->space)), 1, item->count,
            values);
}

void gb_two_pass_store(const gb_two_pass_item *item, const gb_operand *view, const float *values)
{
    gb_kernels_get()->store_tile(view->type, values, 1, item->count,
            two_pass_element(item, view, item->position), 0,
            gb_operand_stride(view, gb_last_kept(&item->two_pass->problem->space)));
}

/* Pointers to `count` parts of `size` floats behind each other. */
static void set_parts(
        const gb_step_call *call, gb_scratch scratch, int count, int64_t size, float **parts)
{
    float *first = gb_scratch_get(call, scratch);
    for (int i = 0; i < count; i++)
        parts[i] = first + i * size;
}

void gb_two_pass_open(const gb_two_pass *two_pass, const gb_step_call *call, int64_t index,
        gb_two_pass_item *item)
{
    *item = (gb_two_pass_item){.two_pass = two_pass, .call = call};
    set_parts(call, two_pass->params, GB_TWO_PASS_VALUES, GB_TWO_PASS_MOST_KEPT, item->params);
    set_parts(call, two_pass->sums, GB_TWO_PASS_SUMS, GB_TWO_PASS_MOST_KEPT, item->sum);
    set_parts(call, two_pass->parts, GB_TWO_PASS_SUMS, GB_TWO_PASS_MOST_KEPT, item->part);
    set_parts(call, two_pass->buffers, GB_TWO_PASS_INPUTS + 1, GB_TWO_PASS_PIECE, item->buffers);
    item->count = gb_kept_block(&two_pass->problem->space, two_pass->block, index, item->position);
}

/* A part of a work item that fits the buffers: rows x cols at `position`. */
typedef struct piece {
    int64_t position[GB_AXES];
    int row_dim, col_dim;
    gb_two_pass_block block;
} piece;

static void load_input(const gb_two_pass_item *item, int i, piece *p, bool is_there)
{
    const gb_operand *view = &item->two_pass->problem->in[i];
    gb_two_pass_block *block = &p->block;
    block->in[i] = NULL;
    if (view->type == GB_UNDEF)
        return;
    const char *data = two_pass_element(item, view, p->position);
    int64_t row_stride = gb_operand_stride(view, p->row_dim),
            col_stride = gb_operand_stride(view, p->col_dim);
    if (view->type == GB_F32 && (col_stride == 1 || block->cols == 1)) {
        block->in[i] = (const float *)(const void *)data;
        block->in_stride[i] = row_stride;
        return;
    }
    int64_t rows = row_stride == 0 ? 1 : block->rows; /* one row stands for all */
    if (!is_there)
        gb_kernels_get()->load_tile(
                view->type, data, row_stride, col_stride, rows, block->cols, item->buffers[i]);
    block->in[i] = item->buffers[i];
    block->in_stride[i] = row_stride == 0 ? 0 : block->cols;
}

static void run_block(const gb_two_pass_item *item, piece *p, bool fold)
{
    const gb_two_pass *two_pass = item->two_pass;
    const gb_operand *out = &two_pass->problem->out;
    bool writes = !fold || !gb_two_pass_applies(two_pass), direct = true;
    const bool is_there = !fold && two_pass->one_tile && gb_two_pass_reduces(two_pass);
    for (int i = 0; i < GB_TWO_PASS_INPUTS; i++)
        load_input(item, i, p, is_there);
    int64_t row_stride = gb_operand_stride(out, p->row_dim),
            col_stride = gb_operand_stride(out, p->col_dim);
    char *data = writes ? two_pass_element(item, out, p->position) : NULL;
    if (writes) {
        direct = out->type == GB_F32 && (col_stride == 1 || p->block.cols == 1);
        p->block.out = direct ? (float *)(void *)data : item->buffers[GB_TWO_PASS_INPUTS];
        p->block.out_stride = direct ? row_stride : p->block.cols;
    }
    (fold ? gb_kernels_get()->two_pass_reduce : gb_kernels_get()->two_pass_apply)(
            two_pass->problem->kind, &p->block);
    if (!direct)
        gb_kernels_get()->store_tile(out->type, item->buffers[GB_TWO_PASS_INPUTS], p->block.rows,
                p->block.cols, data, row_stride, col_stride);
}

/* Rows of a piece, as many at a time as the buffers hold. `linear` counts the reduced elements
 * before the piece. */
static void run_rows(const gb_two_pass_item *item, piece *p, int64_t rows, int64_t linear,
        float *const *sums, bool fold)
{
    bool columns = item->two_pass->columns;
    int64_t step = gb_max_i64(1, GB_TWO_PASS_PIECE / p->block.cols);
    int64_t first = p->row_dim < 0 ? 0 : p->position[p->row_dim];
    for (int64_t r = 0; r < rows; r += step) {
        int64_t kept = columns ? 0 : r, across = linear + (columns ? r : 0);
        if (p->row_dim >= 0)
            p->position[p->row_dim] = first + r;
        p->block.rows = gb_min_i64(step, rows - r);
        for (int i = 0; i < GB_TWO_PASS_VALUES; i++)
            p->block.params[i] = item->params[i] + kept;
        for (int i = 0; i < GB_TWO_PASS_SUMS; i++) {
            p->block.sum[i] = sums[i] + kept;
            p->block.cross[i] = item->cross[i] ? item->cross[i] + across : NULL;
        }
        run_block(item, p, fold);
        if (columns)
            p->block.before += p->block.rows;
    }
}

/* Reduced elements in front of a piece. */
int64_t gb_two_pass_elements_before(const gb_two_pass *two_pass, int64_t index)
{
    const gb_reduced_space *space = &two_pass->problem->space;
    if (space->n == 0)
        return 0;
    int64_t inner = gb_reduced_space_size(space, gb_last_reduced(space)),
            steps = gb_div_up(inner, two_pass->step);
    return index / steps * inner + gb_min_i64(index % steps * two_pass->step, inner);
}

static void run_piece(
        const gb_two_pass_item *item, int64_t index, int64_t before, float *const *sums, bool fold)
{
    const gb_two_pass *two_pass = item->two_pass;
    const gb_reduced_space *space = &two_pass->problem->space;
    int reduced = gb_last_reduced(space), kept = gb_last_kept(space);
    int64_t inner = gb_reduced_space_size(space, reduced), steps = gb_div_up(inner, two_pass->step);
    int64_t start = index % steps * two_pass->step,
            length = gb_min_i64(two_pass->step, inner - start);
    piece p = {.row_dim = two_pass->columns ? reduced : kept,
            .col_dim = two_pass->columns ? kept : reduced,
            .block = {.columns = two_pass->columns, .far = two_pass->far, .before = before}};
    memcpy(p.position, item->position, sizeof p.position);
    gb_position_set(space->n_reduced - 1, space->reduced, space->dims, index / steps, p.position);
    if (reduced >= 0)
        p.position[reduced] = start;
    p.block.cols = two_pass->columns ? item->count : length;
    run_rows(item, &p, two_pass->columns ? length : item->count,
            gb_two_pass_elements_before(two_pass, index), sums, fold);
}

void gb_two_pass_clear(float *const *sums, int64_t count)
{
    for (int i = 0; i < GB_TWO_PASS_SUMS; i++)
        memset(sums[i], 0, (size_t)count * sizeof *sums[i]);
}

/* Sums of squared differences are joined as the kernels do. */
void gb_two_pass_join(
        const gb_two_pass_item *item, int64_t before, int64_t n, const float *a, const float *b)
{
    bool moments = gb_two_pass_has_moments(item->two_pass) && before > 0;
    float weight = (float)((double)before * ((double)n / (double)(before + n)));
    for (int64_t k = 0; k < item->count; k++) {
        float delta = moments ? a[k] / (float)n - item->sum[0][k] / (float)before : 0;
        item->sum[0][k] += a[k];
        item->sum[1][k] += b[k] + delta * delta * weight;
    }
}

void gb_two_pass_reduce_pieces(const gb_two_pass_item *item, int64_t begin, int64_t end)
{
    const gb_two_pass *two_pass = item->two_pass;
    int64_t origin = gb_two_pass_elements_before(two_pass, begin);
    gb_two_pass_clear(item->sum, item->count);
    for (int64_t first = begin; first < end; first += PIECES_TOGETHER) {
        int64_t last = gb_min_i64(end, first + PIECES_TOGETHER);
        int64_t before = gb_two_pass_elements_before(two_pass, first);
        gb_two_pass_clear(item->part, item->count);
        for (int64_t i = first; i < last; i++)
            run_piece(item, i, gb_two_pass_elements_before(two_pass, i) - before, item->part, true);
        gb_two_pass_join(item, before - origin,
                gb_two_pass_elements_before(two_pass, last) - before, item->part[0], item->part[1]);
    }
}

void gb_two_pass_apply_pieces(const gb_two_pass_item *item, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        run_piece(item, i, 0, item->sum, false);
}
