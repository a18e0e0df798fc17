/* Planning and running sweeps. */
#include "kernels/sweep.h"

#include "base/memory.h"
#include "base/parallel.h"

#include <string.h>

enum {
    MOST_KEPT = 256,            /* kept indices of a unit */
    LEAST_COLUMNS = 32,         /* two lines of memory */
    PIECE = 4096,               /* elements that are converted and computed at once */
    UNIT_ROWS = 24 * 1024,      /* elements of a unit of rows: a few of them stay in L2 */
    UNIT_COLUMNS = 64 * 1024,   /* elements of a unit of columns */
    TASKS = 32,                 /* that many suffice for any number of threads */
    SEGMENT_ELEMENTS = 1 << 14, /* a segment is no smaller */
    PIECES_TOGETHER = 64,       /* summed before they join the total */
    MOST_CROSS = 1 << 22        /* elements of the groups' sums across */
};

static bool folds(const gb_sweep *sweep)
{
    return sweep->kind != GB_SWEEP_SCALE;
}

static bool applies(const gb_sweep *sweep)
{
    return sweep->kind != GB_SWEEP_PRELU_BACKWARD;
}

static int last_of(int n, const uint8_t *list)
{
    return n ? list[n - 1] : -1;
}

static int last_kept(const gb_sweep *sweep)
{
    return last_of(sweep->n_kept, sweep->kept);
}

static int last_reduced(const gb_sweep *sweep)
{
    return last_of(sweep->n_reduced, sweep->reduced);
}

static int64_t size_of(const gb_sweep *sweep, int dim)
{
    return dim < 0 ? 1 : sweep->dims[dim];
}

/* Planning ----------------------------------------------------------------------------------------
 */

static int64_t choose_block(const gb_sweep *sweep)
{
    int64_t n = gb_max_i64(sweep->n, 1), all = size_of(sweep, last_kept(sweep)), block;
    int64_t total = gb_product(sweep->n_kept, sweep->kept, sweep->dims);
    if (sweep->columns) {
        block = UNIT_COLUMNS / n / LEAST_COLUMNS * LEAST_COLUMNS;
        if (block < LEAST_COLUMNS) /* too long for the cache anyway */
            block = MOST_KEPT;
    } else {
        block = gb_min_i64(UNIT_ROWS / n, gb_div_up(total, TASKS));
    }
    return gb_max_i64(1, gb_min_i64(gb_min_i64(block, MOST_KEPT), all));
}

static void choose_segments(gb_sweep *sweep)
{
    sweep->segments = sweep->groups = 1;
    if (sweep->cross) {
        int64_t room = MOST_CROSS / gb_max_i64(sweep->n, 1);
        sweep->groups = gb_max_i64(1, gb_min_i64(gb_min_i64(sweep->units, TASKS), room));
    } else if (sweep->units > 0 && sweep->units < TASKS) {
        int64_t worth = sweep->n / gb_div_up(SEGMENT_ELEMENTS, sweep->block);
        int64_t wanted = gb_min_i64(gb_div_up(TASKS, sweep->units), worth);
        sweep->segments = gb_max_i64(1, gb_min_i64(wanted, sweep->pieces));
    }
}

static void list_dims(gb_sweep *sweep, const gb_space *space)
{
    sweep->ndims = space->ndims;
    memcpy(sweep->dims, space->dims, sizeof sweep->dims);
    for (int d = 0; d < space->ndims; d++) {
        if (space->roles[d] == GB_SWEEP_REDUCED)
            sweep->reduced[sweep->n_reduced++] = (uint8_t)d;
        else
            sweep->kept[sweep->n_kept++] = (uint8_t)d;
    }
    sweep->columns = space->ndims && space->roles[space->ndims - 1] == GB_SWEEP_KEPT;
}

static size_t shared_elements(const gb_sweep *sweep)
{
    if (sweep->cross)
        return (size_t)(sweep->groups * sweep->n) * GB_SWEEP_SUMS;
    if (sweep->segments == 1)
        return 0;
    return (size_t)(sweep->units * (sweep->segments + 1) * sweep->block) * GB_SWEEP_SUMS;
}

void gb_sweep_init(gb_sweep *sweep, gb_space *space, gb_step *step)
{
    gb_space_normalize(space);
    list_dims(sweep, space);
    sweep->n = gb_product(sweep->n_reduced, sweep->reduced, sweep->dims);
    sweep->block = choose_block(sweep);
    int64_t all = size_of(sweep, last_kept(sweep)), inner = size_of(sweep, last_reduced(sweep));
    sweep->units = gb_product(sweep->n_kept, sweep->kept, sweep->dims);
    if (sweep->units)
        sweep->units = sweep->units / all * gb_div_up(all, sweep->block);
    sweep->step = sweep->columns ? PIECE / sweep->block : PIECE;
    sweep->step = gb_max_i64(1, gb_min_i64(sweep->step, inner));
    sweep->pieces = sweep->n ? sweep->n / inner * gb_div_up(inner, sweep->step) : 0;
    choose_segments(sweep);
    step->thread_scratch =
            ((GB_SWEEP_VALUES + 2 * GB_SWEEP_SUMS) * MOST_KEPT + (GB_SWEEP_INPUTS + 1) * PIECE) *
            sizeof(float);
    step->shared_scratch = shared_elements(sweep) * sizeof(float);
    step->n_phases = 1;
    if (sweep->cross)
        step->n_phases = 2;
    else if (sweep->segments > 1 && folds(sweep))
        step->n_phases = applies(sweep) ? 3 : 2;
}

gb_status gb_sweep_use(
        gb_program *program, gb_step *step, uint32_t value, bool written, gb_sweep_view *view)
{
    const gb_logical_tensor *tensor = &gb_program_graph(program)->values[value].tensor;
    view->type = tensor->data_type;
    memset(view->strides, 0, sizeof view->strides);
    memcpy(view->strides, tensor->strides, (size_t)tensor->ndims * sizeof *view->strides);
    return gb_program_use(program, step, value, written, &view->slot);
}

/* Running -----------------------------------------------------------------------------------------
 */

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
            stride_of(view, last_kept(unit->sweep)), 1, unit->count, values);
}

void gb_sweep_store(const gb_sweep_unit *unit, const gb_sweep_view *view, const float *values)
{
    gb_kernels_get()->store_tile(view->type, values, 1, unit->count,
            element(unit, view, unit->position), 0, stride_of(view, last_kept(unit->sweep)));
}

static void open_unit(
        const gb_sweep *sweep, const gb_step_call *call, int64_t index, gb_sweep_unit *unit)
{
    float *scratch = (float *)(void *)call->scratch;
    *unit = (gb_sweep_unit){.sweep = sweep, .call = call, .count = 1};
    for (int i = 0; i < GB_SWEEP_VALUES; i++, scratch += MOST_KEPT)
        unit->kept[i] = scratch;
    for (int i = 0; i < GB_SWEEP_SUMS; i++, scratch += 2 * MOST_KEPT) {
        unit->sum[i] = scratch;
        unit->part[i] = scratch + MOST_KEPT;
    }
    for (int i = 0; i <= GB_SWEEP_INPUTS; i++, scratch += PIECE)
        unit->buffers[i] = scratch;
    int last = last_kept(sweep);
    if (last < 0)
        return;
    int64_t all = sweep->dims[last], blocks = gb_div_up(all, sweep->block);
    gb_position_set(sweep->n_kept - 1, sweep->kept, sweep->dims, index / blocks, unit->position);
    unit->position[last] = index % blocks * sweep->block;
    unit->count = gb_min_i64(sweep->block, all - unit->position[last]);
}

/* A part of a unit that fits the buffers: rows x cols at `position`. */
typedef struct piece {
    int64_t position[GB_MAX_NDIMS];
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
    bool writes = !fold || !applies(sweep), direct = true;
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
    int64_t step = gb_max_i64(1, PIECE / p->block.cols);
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
static int64_t elements_before(const gb_sweep *sweep, int64_t index)
{
    if (sweep->n == 0)
        return 0;
    int64_t inner = size_of(sweep, last_reduced(sweep)), steps = gb_div_up(inner, sweep->step);
    return index / steps * inner + gb_min_i64(index % steps * sweep->step, inner);
}

static void run_piece(
        const gb_sweep_unit *unit, int64_t index, int64_t before, float *const *sums, bool fold)
{
    const gb_sweep *sweep = unit->sweep;
    int reduced = last_reduced(sweep), kept = last_kept(sweep);
    int64_t inner = size_of(sweep, reduced), steps = gb_div_up(inner, sweep->step);
    int64_t start = index % steps * sweep->step, length = gb_min_i64(sweep->step, inner - start);
    piece p = {.row_dim = sweep->columns ? reduced : kept,
            .col_dim = sweep->columns ? kept : reduced,
            .block = {.columns = sweep->columns, .before = before}};
    memcpy(p.position, unit->position, sizeof p.position);
    gb_position_set(sweep->n_reduced - 1, sweep->reduced, sweep->dims, index / steps, p.position);
    if (reduced >= 0)
        p.position[reduced] = start;
    p.block.cols = sweep->columns ? unit->count : length;
    run_rows(unit, &p, sweep->columns ? length : unit->count, elements_before(sweep, index), sums,
            fold);
}

static void clear(float *const *sums, int64_t count)
{
    for (int i = 0; i < GB_SWEEP_SUMS; i++)
        memset(sums[i], 0, (size_t)count * sizeof *sums[i]);
}

/* Pieces begin..end-1 into unit->sum. */
static void fold_pieces(const gb_sweep_unit *unit, int64_t begin, int64_t end)
{
    clear(unit->sum, unit->count);
    if (unit->sweep->kind == GB_SWEEP_BATCH_NORM) {
        int64_t first = elements_before(unit->sweep, begin);
        for (int64_t i = begin; i < end; i++)
            run_piece(unit, i, elements_before(unit->sweep, i) - first, unit->sum, true);
        return;
    }
    for (int64_t first = begin; first < end; first += PIECES_TOGETHER) {
        clear(unit->part, unit->count);
        for (int64_t i = first; i < gb_min_i64(end, first + PIECES_TOGETHER); i++)
            run_piece(unit, i, 0, unit->part, true);
        for (int s = 0; s < GB_SWEEP_SUMS; s++)
            for (int64_t k = 0; k < unit->count; k++)
                unit->sum[s][k] += unit->part[s][k];
    }
}

static void apply_pieces(const gb_sweep_unit *unit, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        run_piece(unit, i, 0, unit->sum, false);
}

/* Sums of one segment, or with segment == segments those of the whole unit, in shared memory. */
static float *shared_sum(
        const gb_sweep *sweep, const gb_step_call *call, int64_t unit, int64_t segment, int which)
{
    int64_t index = (unit * (sweep->segments + 1) + segment) * GB_SWEEP_SUMS + which;
    return (float *)(void *)call->shared + index * sweep->block;
}

static void copy_sums(const gb_sweep_unit *unit, int64_t index, int64_t segment, bool to_shared)
{
    for (int i = 0; i < GB_SWEEP_SUMS; i++) {
        float *shared = shared_sum(unit->sweep, unit->call, index, segment, i);
        size_t bytes = (size_t)unit->count * sizeof *shared;
        if (to_shared)
            memcpy(shared, unit->sum[i], bytes);
        else
            memcpy(unit->sum[i], shared, bytes);
    }
}

static void segment_pieces(const gb_sweep *sweep, int64_t segment, int64_t *begin, int64_t *end)
{
    gb_split(sweep->pieces, (int)segment, (int)sweep->segments, begin, end);
}

static void prepare(const gb_sweep_unit *unit)
{
    if (unit->sweep->prepare)
        unit->sweep->prepare(unit);
}

static void finish(const gb_sweep_unit *unit, bool store)
{
    if (unit->sweep->finish)
        unit->sweep->finish(unit, store);
}

static void run_whole(const gb_sweep_unit *unit)
{
    const gb_sweep *sweep = unit->sweep;
    prepare(unit);
    if (folds(sweep))
        fold_pieces(unit, 0, sweep->pieces);
    finish(unit, true);
    if (applies(sweep))
        apply_pieces(unit, 0, sweep->pieces);
}

/* Phase 0 sums the segments, phase 2 (or 0, without sums) computes results. */
static void run_segments(const gb_sweep *sweep, const gb_step_call *call)
{
    int64_t begin, end, first, last;
    gb_split(sweep->units * sweep->segments, call->thread, call->n_threads, &begin, &end);
    for (int64_t task = begin; task < end; task++) {
        gb_sweep_unit unit;
        int64_t index = task / sweep->segments, segment = task % sweep->segments;
        segment_pieces(sweep, segment, &first, &last);
        open_unit(sweep, call, index, &unit);
        if (sweep->segments == 1) {
            run_whole(&unit);
            continue;
        }
        prepare(&unit);
        if (folds(sweep) && call->phase == 0) {
            fold_pieces(&unit, first, last);
            copy_sums(&unit, index, segment, true);
            continue;
        }
        if (folds(sweep))
            copy_sums(&unit, index, sweep->segments, false);
        finish(&unit, false);
        apply_pieces(&unit, first, last);
    }
}

/* Adds a segment's sums to the unit's; sums of squared differences as the kernels do. */
static void join_segment(const gb_sweep_unit *unit, int64_t index, int64_t segment)
{
    const gb_sweep *sweep = unit->sweep;
    int64_t first, last;
    segment_pieces(sweep, segment, &first, &last);
    double before = (double)elements_before(sweep, first);
    double n = (double)elements_before(sweep, last) - before;
    bool moments = sweep->kind == GB_SWEEP_BATCH_NORM && before > 0;
    float weight = (float)(before * (n / (before + n)));
    const float *a = shared_sum(sweep, unit->call, index, segment, 0);
    const float *b = shared_sum(sweep, unit->call, index, segment, 1);
    for (int64_t k = 0; k < unit->count; k++) {
        float delta = moments ? a[k] / (float)n - unit->sum[0][k] / (float)before : 0;
        unit->sum[0][k] += a[k];
        unit->sum[1][k] += b[k] + delta * delta * weight;
    }
}

static void join_units(const gb_sweep *sweep, const gb_step_call *call)
{
    int64_t begin, end;
    gb_split(sweep->units, call->thread, call->n_threads, &begin, &end);
    for (int64_t index = begin; index < end; index++) {
        gb_sweep_unit unit;
        open_unit(sweep, call, index, &unit);
        prepare(&unit);
        clear(unit.sum, unit.count);
        for (int64_t segment = 0; segment < sweep->segments; segment++)
            join_segment(&unit, index, segment);
        copy_sums(&unit, index, sweep->segments, true);
        finish(&unit, true);
    }
}

float *gb_sweep_cross(const gb_sweep *sweep, const gb_step_call *call, int64_t group, int which)
{
    return (float *)(void *)call->shared + (group * GB_SWEEP_SUMS + which) * sweep->n;
}

static void run_groups(const gb_sweep *sweep, const gb_step_call *call)
{
    int64_t begin, end, first, last;
    gb_split(sweep->groups, call->thread, call->n_threads, &begin, &end);
    for (int64_t group = begin; group < end; group++) {
        float *cross[GB_SWEEP_SUMS];
        for (int i = 0; i < GB_SWEEP_SUMS; i++)
            cross[i] = gb_sweep_cross(sweep, call, group, i);
        clear(cross, sweep->n);
        gb_split(sweep->units, (int)group, (int)sweep->groups, &first, &last);
        for (int64_t index = first; index < last; index++) {
            gb_sweep_unit unit;
            open_unit(sweep, call, index, &unit);
            memcpy(unit.cross, cross, sizeof cross);
            run_whole(&unit);
        }
    }
}

void gb_sweep_run(const gb_sweep *sweep, const gb_step_call *call)
{
    if (sweep->cross)
        run_groups(sweep, call);
    else if (call->phase == 1)
        join_units(sweep, call);
    else
        run_segments(sweep, call);
}
