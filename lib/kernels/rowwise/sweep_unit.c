/* A unit of a sweep: its memory, and its pieces, which are loaded, summed or computed, and stored.
 */
#include "kernels/rowwise/sweep_unit.h"

#include "base/memory.h"
#include "kernels/cpu/step_call.h"

#include <string.h>

enum { PIECES_TOGETHER = 64 }; /* summed before they join the total */

static char *element(const gb_sweep_unit *unit, const gb_sweep_view *view, const int64_t *position)
{
    int64_t offset = gb_offset(unit->sweep->ndims, view->strides, position);
    char *data = unit->call->buffers[view->slot];
    return data + offset * (int64_t)gb_data_type_bytes(view->type, 1);
}

static int64_t stride_of(const gb_sweep_view *view, int dim)
{
    return dim < 0 ? 0 : view->strides[dim];
}

void gb_sweep_load(const gb_sweep_unit *unit, const gb_sweep_view *view, float *values)
{
    gb_kernels_get()->load_tile(view->type, element(unit, view, unit->position), 0,
            stride_of(view, gb_sweep_last_kept(unit->sweep)), 1, unit->count, values);
}

void gb_sweep_store(const gb_sweep_unit *unit, const gb_sweep_view *view, const float *values)
{
    gb_kernels_get()->store_tile(view->type, values, 1, unit->count,
            element(unit, view, unit->position), 0,
            stride_of(view, gb_sweep_last_kept(unit->sweep)));
}

void gb_sweep_open(
        const gb_sweep *sweep, const gb_step_call *call, int64_t index, gb_sweep_unit *unit)
{
    float *scratch = (float *)(void *)call->scratch;
    *unit = (gb_sweep_unit){.sweep = sweep, .call = call, .count = 1};
    for (int i = 0; i < GB_SWEEP_VALUES; i++, scratch += GB_SWEEP_MOST_KEPT)
        unit->kept[i] = scratch;
    for (int i = 0; i < GB_SWEEP_SUMS; i++, scratch += 2 * GB_SWEEP_MOST_KEPT) {
        unit->sum[i] = scratch;
        unit->part[i] = scratch + GB_SWEEP_MOST_KEPT;
    }
    for (int i = 0; i <= GB_SWEEP_INPUTS; i++, scratch += GB_SWEEP_PIECE)
        unit->buffers[i] = scratch;
    int last = gb_sweep_last_kept(sweep);
    if (last < 0)
        return;
    int64_t all = sweep->dims[last], blocks = gb_div_up(all, sweep->block);
    gb_position_set(sweep->n_kept - 1, sweep->kept, sweep->dims, index / blocks, unit->position);
    unit->position[last] = index % blocks * sweep->block;
    unit->count = gb_min_i64(sweep->block, all - unit->position[last]);
}

/* A part of a unit that fits the buffers: rows x cols at `position`. */
typedef struct piece {
    int64_t position[GB_AXES];
    int row_dim, col_dim;
    gb_sweep_block block;
} piece;

static void load_input(const gb_sweep_unit *unit, int i, piece *p)
{
    const gb_sweep_view *view = &unit->sweep->in[i];
    gb_sweep_block *block = &p->block;
    block->in[i] = NULL;
    if (view->type == GB_UNDEF)
        return;
    const char *data = element(unit, view, p->position);
    int64_t row_stride = stride_of(view, p->row_dim), col_stride = stride_of(view, p->col_dim);
    if (view->type == GB_F32 && (col_stride == 1 || block->cols == 1)) {
        block->in[i] = (const float *)(const void *)data;
        block->in_stride[i] = row_stride;
        return;
    }
    int64_t rows = row_stride == 0 ? 1 : block->rows; /* one row stands for all */
    gb_kernels_get()->load_tile(
            view->type, data, row_stride, col_stride, rows, block->cols, unit->buffers[i]);
    block->in[i] = unit->buffers[i];
    block->in_stride[i] = row_stride == 0 ? 0 : block->cols;
}

static void run_block(const gb_sweep_unit *unit, piece *p, bool fold)
{
    const gb_sweep *sweep = unit->sweep;
    const gb_sweep_view *out = &sweep->out;
    bool writes = !fold || !gb_sweep_applies(sweep), direct = true;
    for (int i = 0; i < GB_SWEEP_INPUTS; i++)
        load_input(unit, i, p);
    int64_t row_stride = stride_of(out, p->row_dim), col_stride = stride_of(out, p->col_dim);
    char *data = writes ? element(unit, out, p->position) : NULL;
    if (writes) {
        direct = out->type == GB_F32 && (col_stride == 1 || p->block.cols == 1);
        p->block.out = direct ? (float *)(void *)data : unit->buffers[GB_SWEEP_INPUTS];
        p->block.out_stride = direct ? row_stride : p->block.cols;
    }
    (fold ? gb_kernels_get()->sweep_fold : gb_kernels_get()->sweep_apply)(sweep->kind, &p->block);
    if (!direct)
        gb_kernels_get()->store_tile(out->type, unit->buffers[GB_SWEEP_INPUTS], p->block.rows,
                p->block.cols, data, row_stride, col_stride);
}

/* Rows of a piece, as many at a time as the buffers hold. `linear` counts the reduced elements
 * before the piece. */
static void run_rows(const gb_sweep_unit *unit, piece *p, int64_t rows, int64_t linear,
        float *const *sums, bool fold)
{
    bool columns = unit->sweep->columns;
    int64_t step = gb_max_i64(1, GB_SWEEP_PIECE / p->block.cols);
    int64_t first = p->row_dim < 0 ? 0 : p->position[p->row_dim];
    for (int64_t r = 0; r < rows; r += step) {
        int64_t kept = columns ? 0 : r, across = linear + (columns ? r : 0);
        if (p->row_dim >= 0)
            p->position[p->row_dim] = first + r;
        p->block.rows = gb_min_i64(step, rows - r);
        for (int i = 0; i < GB_SWEEP_VALUES; i++)
            p->block.kept[i] = unit->kept[i] + kept;
        for (int i = 0; i < GB_SWEEP_SUMS; i++) {
            p->block.sum[i] = sums[i] + kept;
            p->block.cross[i] = unit->cross[i] ? unit->cross[i] + across : NULL;
        }
        run_block(unit, p, fold);
        if (columns)
            p->block.before += p->block.rows;
    }
}

/* Reduced elements in front of a piece. */
int64_t gb_sweep_elements_before(const gb_sweep *sweep, int64_t index)
{
    if (sweep->n == 0)
        return 0;
    int64_t inner = gb_sweep_size_of(sweep, gb_sweep_last_reduced(sweep)),
            steps = gb_div_up(inner, sweep->step);
    return index / steps * inner + gb_min_i64(index % steps * sweep->step, inner);
}

static void run_piece(
        const gb_sweep_unit *unit, int64_t index, int64_t before, float *const *sums, bool fold)
{
    const gb_sweep *sweep = unit->sweep;
    int reduced = gb_sweep_last_reduced(sweep), kept = gb_sweep_last_kept(sweep);
    int64_t inner = gb_sweep_size_of(sweep, reduced), steps = gb_div_up(inner, sweep->step);
    int64_t start = index % steps * sweep->step, length = gb_min_i64(sweep->step, inner - start);
    piece p = {.row_dim = sweep->columns ? reduced : kept,
            .col_dim = sweep->columns ? kept : reduced,
            .block = {.columns = sweep->columns, .before = before}};
    memcpy(p.position, unit->position, sizeof p.position);
    gb_position_set(sweep->n_reduced - 1, sweep->reduced, sweep->dims, index / steps, p.position);
    if (reduced >= 0)
        p.position[reduced] = start;
    p.block.cols = sweep->columns ? unit->count : length;
    run_rows(unit, &p, sweep->columns ? length : unit->count,
            gb_sweep_elements_before(sweep, index), sums, fold);
}

void gb_sweep_clear(float *const *sums, int64_t count)
{
    for (int i = 0; i < GB_SWEEP_SUMS; i++)
        memset(sums[i], 0, (size_t)count * sizeof *sums[i]);
}

/* Pieces begin..end-1 into unit->sum. */
void gb_sweep_fold_pieces(const gb_sweep_unit *unit, int64_t begin, int64_t end)
{
    gb_sweep_clear(unit->sum, unit->count);
    if (gb_sweep_has_moments(unit->sweep)) {
        int64_t first = gb_sweep_elements_before(unit->sweep, begin);
        for (int64_t i = begin; i < end; i++)
            run_piece(unit, i, gb_sweep_elements_before(unit->sweep, i) - first, unit->sum, true);
        return;
    }
    for (int64_t first = begin; first < end; first += PIECES_TOGETHER) {
        gb_sweep_clear(unit->part, unit->count);
        for (int64_t i = first; i < gb_min_i64(end, first + PIECES_TOGETHER); i++)
            run_piece(unit, i, 0, unit->part, true);
        for (int s = 0; s < GB_SWEEP_SUMS; s++)
            for (int64_t k = 0; k < unit->count; k++)
                unit->sum[s][k] += unit->part[s][k];
    }
}

void gb_sweep_apply_pieces(const gb_sweep_unit *unit, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        run_piece(unit, i, 0, unit->sum, false);
}
