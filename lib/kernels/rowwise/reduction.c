/* Reductions run as work items of up to GB_TILE_ELEMENTS outputs, each over pieces of its reduced
 * set. Where there are few work items the pieces fall into segments, which are summed in parallel
 * and then joined in a fixed order. */
#include "kernels/rowwise/reduction.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/cpu/step_call.h"

#include <math.h>
#include <string.h>

enum {
    ROW_PIECE = 8192,          /* elements along a row */
    COLUMN_PIECE = 64,         /* rows of columns */
    NARROW_ROW = 8,            /* shorter rows are taken as columns */
    BUFFER = 8192,             /* elements converted at once */
    PIECES_TOGETHER = 128,     /* summed before they join the total */
    TASKS = 32,                /* that many suffice for any number of threads */
    SEGMENT_ELEMENTS = 1 << 14 /* a segment is no smaller */
};

static int last_of(int n, const uint8_t *list)
{
    return n ? list[n - 1] : -1;
}

static int64_t size_of(const gb_reduction *plan, int dim)
{
    return dim < 0 ? 1 : plan->epilogue.dims[dim];
}

static int64_t reduction_stride_of(const gb_reduction *plan, int dim)
{
    return dim < 0 ? 0 : plan->src_strides[dim];
}

static void choose_vectors(gb_reduction *plan)
{
    int kept = last_of(plan->n_kept, plan->kept), reduced = last_of(plan->n_reduced, plan->reduced);
    bool narrow = plan->n_reduced == 1 && size_of(plan, reduced) <= NARROW_ROW &&
                  size_of(plan, kept) > NARROW_ROW;
    plan->columns = kept >= 0 && (kept == plan->epilogue.ndims - 1 || narrow);
    int along = plan->columns ? kept : reduced;
    plan->direct = plan->src_type == GB_F32 && (along < 0 || reduction_stride_of(plan, along) == 1);
}

static void choose_segments(gb_reduction *plan)
{
    int64_t inner = size_of(plan, last_of(plan->n_reduced, plan->reduced));
    plan->inner = gb_max_i64(1, gb_min_i64(inner, plan->columns ? COLUMN_PIECE : ROW_PIECE));
    plan->pieces = inner ? plan->count / inner * gb_div_up(inner, plan->inner) : 0;
    plan->splits = 1;
    if (plan->items == 0 || plan->items >= TASKS)
        return;
    int64_t wanted = gb_div_up(TASKS, plan->items);
    int64_t worth = plan->count / gb_div_up(SEGMENT_ELEMENTS, plan->block);
    plan->splits = gb_max_i64(1, gb_min_i64(gb_min_i64(wanted, worth), plan->pieces));
}

void gb_reduction_init(gb_reduction *plan, gb_space *space)
{
    gb_space_normalize(space);
    gb_space_set_pointwise(space, &plan->epilogue);
    for (int d = 0; d < space->ndims; d++) {
        if (space->roles[d])
            plan->reduced[plan->n_reduced++] = (uint8_t)d;
        else
            plan->kept[plan->n_kept++] = (uint8_t)d;
    }
    plan->count = gb_product(plan->n_reduced, plan->reduced, space->dims);
    choose_vectors(plan);
    int64_t all = size_of(plan, last_of(plan->n_kept, plan->kept));
    plan->block = gb_max_i64(1, gb_min_i64(all, GB_TILE_ELEMENTS));
    plan->items = gb_product(plan->n_kept, plan->kept, space->dims);
    if (plan->items)
        plan->items = plan->items / all * gb_div_up(all, plan->block);
    choose_segments(plan);
}

void gb_reduction_widen(const gb_space *space, bool keep_dims, gb_pointwise_program *pointwise)
{
    for (uint32_t i = 0; i < pointwise->n_operands; i++) {
        int64_t *strides = pointwise->operands[i].strides, wide[GB_AXES] = {0};
        for (int d = 0, output = 0; d < space->ndims; d++) {
            if (!space->roles[d])
                wide[d] = strides[keep_dims ? d : output];
            if (!space->roles[d])
                output++;
        }
        memcpy(strides, wide, sizeof wide);
    }
}

size_t gb_reduction_thread_scratch(const gb_reduction *plan)
{
    size_t elements = 2 * GB_TILE_ELEMENTS + (plan->direct ? 0 : BUFFER);
    return gb_align_up(gb_pointwise_scratch(&plan->epilogue), GB_CACHE_LINE) +
           elements * sizeof(float);
}

size_t gb_reduction_shared_scratch(const gb_reduction *plan)
{
    if (plan->splits == 1)
        return 0;
    return (size_t)(plan->items * plan->splits * plan->block) * sizeof(float);
}

/* choose_segments() makes up to TASKS / work items of them, rounded up, where work items are
 * fewer. */
size_t gb_reduction_shared_scratch_limit(void)
{
    return (size_t)2 * TASKS * GB_TILE_ELEMENTS * sizeof(float);
}

static float identity(gb_reduce_kind kind)
{
    switch (kind) {
    case GB_REDUCE_PROD:
        return 1;
    case GB_REDUCE_MAX:
        return -INFINITY;
    case GB_REDUCE_MIN:
        return INFINITY;
    default:
        return 0;
    }
}

static void reduction_clear(gb_reduce_kind kind, int64_t n, float *sum)
{
    float value = identity(kind);
    for (int64_t i = 0; i < n; i++)
        sum[i] = value;
}

static void reduction_join(gb_reduce_kind kind, int64_t n, const float *part, float *sum)
{
    for (int64_t i = 0; i < n; i++)
        switch (kind) {
        case GB_REDUCE_PROD:
            sum[i] *= part[i];
            break;
        case GB_REDUCE_MAX:
            sum[i] = part[i] > sum[i] ? part[i] : sum[i];
            break;
        case GB_REDUCE_MIN:
            sum[i] = part[i] < sum[i] ? part[i] : sum[i];
            break;
        default:
            sum[i] += part[i];
        }
}

/* Position and number of outputs of a work item. */
static int64_t reduction_locate(const gb_reduction *plan, int64_t item, int64_t *position)
{
    int last = last_of(plan->n_kept, plan->kept);
    if (last < 0)
        return 1;
    int64_t all = plan->epilogue.dims[last], blocks = gb_div_up(all, plan->block);
    gb_position_set(plan->n_kept - 1, plan->kept, plan->epilogue.dims, item / blocks, position);
    position[last] = item % blocks * plan->block;
    return gb_min_i64(plan->block, all - position[last]);
}

typedef struct piece {
    const char *src;
    int64_t outputs, n; /* of the piece */
    int64_t output_stride, stride;
} piece;

/* Elements that are not f32 next to each other pass through a buffer, some outputs or some rows at
 * a time. */
static void fold_converted(const gb_reduction *plan, const piece *from, float *buffer, float *sum)
{
    const gb_kernels *kernels = gb_kernels_get();
    int64_t bytes = (int64_t)gb_data_type_bytes(plan->src_type, 1);
    int64_t all = plan->columns ? from->n : from->outputs;
    int64_t length = plan->columns ? from->outputs : from->n;
    int64_t row_stride = plan->columns ? from->stride : from->output_stride;
    int64_t col_stride = plan->columns ? from->output_stride : from->stride;
    for (int64_t r = 0, step = BUFFER / length; r < all; r += step) {
        int64_t rows = gb_min_i64(step, all - r);
        kernels->load_tile(plan->src_type, from->src + r * row_stride * bytes, row_stride,
                col_stride, rows, length, buffer);
        if (plan->columns)
            kernels->reduce_columns(plan->kind, buffer, length, length, rows, sum);
        else
            kernels->reduce_rows(plan->kind, buffer, length, rows, length, sum + r);
    }
}

static void fold_piece(const gb_reduction *plan, const piece *from, float *buffer, float *sum)
{
    if (!plan->direct) {
        fold_converted(plan, from, buffer, sum);
        return;
    }
    const float *x = (const float *)(const void *)from->src;
    if (plan->columns)
        gb_kernels_get()->reduce_columns(plan->kind, x, from->stride, from->outputs, from->n, sum);
    else
        gb_kernels_get()->reduce_rows(
                plan->kind, x, from->output_stride, from->outputs, from->n, sum);
}

/* Sums pieces begin..end-1 of a work item. `part` and `buffer` are scratch. */
static void fold_pieces(const gb_reduction *plan, const gb_step_call *call, int64_t item,
        int64_t begin, int64_t end, float *part, float *buffer, float *sum)
{
    int64_t position[GB_AXES] = {0};
    int kept = last_of(plan->n_kept, plan->kept), reduced = last_of(plan->n_reduced, plan->reduced);
    int64_t inner = size_of(plan, reduced), steps = gb_div_up(inner, plan->inner);
    int64_t bytes = (int64_t)gb_data_type_bytes(plan->src_type, 1);
    piece from = {.outputs = reduction_locate(plan, item, position),
            .output_stride = reduction_stride_of(plan, kept),
            .stride = reduction_stride_of(plan, reduced)};
    reduction_clear(plan->kind, from.outputs, sum);
    for (int64_t first = begin; first < end; first += PIECES_TOGETHER) {
        reduction_clear(plan->kind, from.outputs, part);
        for (int64_t i = first; i < gb_min_i64(end, first + PIECES_TOGETHER); i++) {
            gb_position_set(
                    plan->n_reduced - 1, plan->reduced, plan->epilogue.dims, i / steps, position);
            int64_t start = i % steps * plan->inner;
            if (reduced >= 0)
                position[reduced] = start;
            from.n = gb_min_i64(plan->inner, inner - start);
            from.src = call->buffers[plan->src_slot];
            from.src += gb_offset(plan->epilogue.ndims, plan->src_strides, position) * bytes;
            fold_piece(plan, &from, buffer, part);
        }
        reduction_join(plan->kind, from.outputs, part, sum);
    }
}

/* `sum` is register 0. */
static void finish_item(
        const gb_reduction *plan, const gb_step_call *call, int64_t item, float *sum)
{
    gb_pointwise_view views[GB_POINTWISE_OPERANDS];
    int64_t position[GB_AXES] = {0}, outputs = reduction_locate(plan, item, position);
    for (int64_t i = 0; i < outputs; i++) {
        if (plan->count == 0)
            sum[i] = plan->empty;
        if (plan->at_least_empty && sum[i] < plan->empty)
            sum[i] = plan->empty;
        if (plan->mean)
            sum[i] /= plan->divisor;
        if (plan->root)
            sum[i] = sqrtf(sum[i]);
    }
    gb_pointwise_views(
            &plan->epilogue, call->buffers, position, -1, last_of(plan->n_kept, plan->kept), views);
    gb_kernels_get()->pointwise_run(&plan->epilogue, views, 1, outputs, sum);
}

static void sum_segments(const gb_reduction *plan, const gb_step_call *call)
{
    float *sum = (float *)(void *)call->scratch;
    float *part =
            (float *)(void *)(call->scratch +
                              gb_align_up(gb_pointwise_scratch(&plan->epilogue), GB_CACHE_LINE));
    int64_t begin, end, first, last;
    gb_split(plan->items * plan->splits, call->thread, call->n_threads, &begin, &end);
    for (int64_t task = begin; task < end; task++) {
        int64_t item = task / plan->splits, segment = task % plan->splits;
        gb_split(plan->pieces, (int)segment, (int)plan->splits, &first, &last);
        float *target = sum;
        if (plan->splits > 1)
            target = (float *)(void *)call->shared + task * plan->block;
        fold_pieces(plan, call, item, first, last, part, part + GB_TILE_ELEMENTS, target);
        if (plan->splits == 1)
            finish_item(plan, call, item, sum);
    }
}

static void join_segments(const gb_reduction *plan, const gb_step_call *call)
{
    float *sum = (float *)(void *)call->scratch;
    const float *parts = (const float *)(const void *)call->shared;
    int64_t begin, end;
    gb_split(plan->items, call->thread, call->n_threads, &begin, &end);
    for (int64_t item = begin; item < end; item++) {
        int64_t position[GB_AXES], outputs = reduction_locate(plan, item, position);
        reduction_clear(plan->kind, outputs, sum);
        for (int64_t i = 0; i < plan->splits; i++)
            reduction_join(
                    plan->kind, outputs, parts + (item * plan->splits + i) * plan->block, sum);
        finish_item(plan, call, item, sum);
    }
}

void gb_reduction_run(const gb_reduction *plan, const gb_step_call *call)
{
    (call->phase == 0 ? sum_segments : join_segments)(plan, call);
}
