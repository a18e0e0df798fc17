/* Reductions run as work items of up to GB_TILE_ELEMENTS outputs, each over pieces of its reduced
 * set. Where there are few work items the pieces fall into segments, which are summed in parallel
 * and then joined in a fixed order. */
#include "kernels/rowwise/reduction.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/rowwise/kept_blocks.h"

#include <math.h>

enum {
    ROW_PIECE = 8192,          /* elements along a row */
    COLUMN_PIECE = 64,         /* rows of columns */
    NARROW_ROW = 8,            /* shorter rows are taken as columns */
    CONVERTED = 8192,          /* elements converted at once */
    PIECES_TOGETHER = 128,     /* summed before they join the total */
    TASKS = 32,                /* that many suffice for any number of threads */
    SEGMENT_ELEMENTS = 1 << 14 /* a segment is no smaller */
};

/* Planning ------------------------------------------------------------------------------------- */

static void choose_vectors(gb_reduction *plan)
{
    const gb_reduced_space *space = &plan->problem.space;
    const gb_operand *src = &plan->problem.src;
    int kept = gb_last_kept(space), reduced = gb_last_reduced(space);
    bool narrow = space->n_reduced == 1 && gb_reduced_space_size(space, reduced) <= NARROW_ROW &&
                  gb_reduced_space_size(space, kept) > NARROW_ROW;
    plan->columns = kept >= 0 && (gb_reduces_columns(space) || narrow);
    int along = plan->columns ? kept : reduced;
    plan->direct = src->type == GB_F32 && (along < 0 || src->strides[along] == 1);
}

static void choose_segments(gb_reduction *plan)
{
    const gb_reduced_space *space = &plan->problem.space;
    int64_t inner = gb_reduced_space_size(space, gb_last_reduced(space));
    plan->inner = gb_max_i64(1, gb_min_i64(inner, plan->columns ? COLUMN_PIECE : ROW_PIECE));
    plan->pieces = inner ? space->n / inner * gb_div_up(inner, plan->inner) : 0;
    plan->splits = 1;
    if (plan->items == 0 || plan->items >= TASKS)
        return;
    int64_t wanted = gb_div_up(TASKS, plan->items);
    int64_t worth = space->n / gb_div_up(SEGMENT_ELEMENTS, plan->block);
    plan->splits = gb_max_i64(1, gb_min_i64(gb_min_i64(wanted, worth), plan->pieces));
}

/* All but the scratch. */
static void choose_items(gb_reduction *plan)
{
    const gb_reduced_space *space = &plan->problem.space;
    int64_t all = gb_reduced_space_size(space, gb_last_kept(space));
    choose_vectors(plan);
    plan->block = gb_max_i64(1, gb_min_i64(all, GB_TILE_ELEMENTS));
    plan->items = gb_kept_blocks(space, plan->block);
    choose_segments(plan);
}

static void add_scratch(gb_step *step, gb_reduction *plan)
{
    plan->epilogue = gb_epilogue_add(step, &plan->problem.pointwise);
    plan->part = gb_scratch_add(step, gb_float_bytes(GB_TILE_ELEMENTS));
    if (!plan->direct)
        plan->converted = gb_scratch_add(step, gb_float_bytes(CONVERTED));
}

/* Running -------------------------------------------------------------------------------------- */

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
    int64_t bytes = (int64_t)gb_data_type_bytes(plan->problem.src.type, 1);
    int64_t all = plan->columns ? from->n : from->outputs;
    int64_t length = plan->columns ? from->outputs : from->n;
    int64_t row_stride = plan->columns ? from->stride : from->output_stride;
    int64_t col_stride = plan->columns ? from->output_stride : from->stride;
    for (int64_t r = 0, step = CONVERTED / length; r < all; r += step) {
        int64_t rows = gb_min_i64(step, all - r);
        kernels->load_tile(plan->problem.src.type, from->src + r * row_stride * bytes, row_stride,
                col_stride, rows, length, buffer);
        if (plan->columns)
            kernels->reduce_columns(plan->problem.kind, buffer, length, length, rows, sum);
        else
            kernels->reduce_rows(plan->problem.kind, buffer, length, rows, length, sum + r);
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
        gb_kernels_get()->reduce_columns(
                plan->problem.kind, x, from->stride, from->outputs, from->n, sum);
    else
        gb_kernels_get()->reduce_rows(
                plan->problem.kind, x, from->output_stride, from->outputs, from->n, sum);
}

/* Where a thread's work on an item leaves its numbers. */
typedef struct room {
    float *sum, *part, *converted;
} room;

static room room_of(const gb_reduction *plan, const gb_step_call *call)
{
    return (room){.sum = gb_epilogue_results(&plan->epilogue, call),
            .part = gb_scratch_get(call, plan->part),
            .converted = plan->direct ? NULL : gb_scratch_get(call, plan->converted)};
}

/* Sums pieces begin..end-1 of a work item. */
static void fold_pieces(const gb_reduction *plan, const gb_step_call *call, int64_t item,
        int64_t begin, int64_t end, const room *to)
{
    const gb_reduced_space *space = &plan->problem.space;
    const gb_operand *src = &plan->problem.src;
    int64_t position[GB_AXES] = {0};
    int kept = gb_last_kept(space), reduced = gb_last_reduced(space);
    int64_t inner = gb_reduced_space_size(space, reduced), steps = gb_div_up(inner, plan->inner);
    int64_t bytes = (int64_t)gb_data_type_bytes(src->type, 1);
    piece from = {.outputs = gb_kept_block(space, plan->block, item, position),
            .output_stride = gb_operand_stride(src, kept),
            .stride = gb_operand_stride(src, reduced)};
    reduction_clear(plan->problem.kind, from.outputs, to->sum);
    for (int64_t first = begin; first < end; first += PIECES_TOGETHER) {
        reduction_clear(plan->problem.kind, from.outputs, to->part);
        for (int64_t i = first; i < gb_min_i64(end, first + PIECES_TOGETHER); i++) {
            gb_position_set(space->n_reduced - 1, space->reduced, space->dims, i / steps, position);
            int64_t start = i % steps * plan->inner;
            if (reduced >= 0)
                position[reduced] = start;
            from.n = gb_min_i64(plan->inner, inner - start);
            from.src = call->buffers[src->slot];
            from.src += gb_offset(space->ndims, src->strides, position) * bytes;
            fold_piece(plan, &from, to->converted, to->part);
        }
        reduction_join(plan->problem.kind, from.outputs, to->part, to->sum);
    }
}

/* The sums are in register 0. */
static void finish_item(
        const gb_reduction *plan, const gb_step_call *call, int64_t item, float *sum)
{
    const gb_reduction_problem *problem = &plan->problem;
    const gb_reduced_space *space = &problem->space;
    int64_t position[GB_AXES] = {0};
    int64_t outputs = gb_kept_block(space, plan->block, item, position);
    for (int64_t i = 0; i < outputs; i++) {
        if (space->n == 0)
            sum[i] = problem->empty;
        if (problem->at_least_empty && sum[i] < problem->empty)
            sum[i] = problem->empty;
        if (problem->mean)
            sum[i] = (sum[i] - problem->zero_points) / problem->divisor;
        if (problem->root)
            sum[i] = sqrtf(sum[i]);
    }
    gb_epilogue_run(&plan->epilogue, &problem->pointwise, call, position, -1, gb_last_kept(space),
            1, outputs, gb_epilogue_results(&plan->epilogue, call));
}

static void sum_segments(const gb_reduction *plan, const gb_step_call *call)
{
    room own = room_of(plan, call);
    int64_t begin, end, first, last;
    while (gb_take_items(call, plan->items * plan->splits, &begin, &end))
        for (int64_t task = begin; task < end; task++) {
            int64_t item = task / plan->splits, segment = task % plan->splits;
            gb_split(plan->pieces, (int)segment, (int)plan->splits, &first, &last);
            room to = own;
            if (plan->splits > 1)
                to.sum = (float *)(void *)call->shared + task * plan->block;
            fold_pieces(plan, call, item, first, last, &to);
            if (plan->splits == 1)
                finish_item(plan, call, item, own.sum);
        }
}

static void join_segments(const gb_reduction *plan, const gb_step_call *call)
{
    gb_reduce_kind kind = plan->problem.kind;
    float *sum = gb_epilogue_results(&plan->epilogue, call);
    const float *parts = (const float *)(const void *)call->shared;
    int64_t begin, end;
    while (gb_take_items(call, plan->items, &begin, &end))
        for (int64_t item = begin; item < end; item++) {
            int64_t position[GB_AXES];
            int64_t outputs = gb_kept_block(&plan->problem.space, plan->block, item, position);
            reduction_clear(kind, outputs, sum);
            for (int64_t i = 0; i < plan->splits; i++)
                reduction_join(kind, outputs, parts + (item * plan->splits + i) * plan->block, sum);
            finish_item(plan, call, item, sum);
        }
}

static void reduction_run(const gb_step_call *call)
{
    (call->phase == 0 ? sum_segments : join_segments)(call->params, call);
}

gb_status gb_reduction_plan(gb_step *step, const gb_reduction_problem *problem)
{
    gb_reduction *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    plan->problem = *problem;
    choose_items(plan);
    add_scratch(step, plan);
    step->params = plan;
    step->run = reduction_run;
    if (plan->splits > 1) {
        step->n_phases = 2;
        step->shared_scratch = (size_t)(plan->items * plan->splits * plan->block) * sizeof(float);
    }
    return GB_SUCCESS;
}

/* Known when it runs ---------------------------------------------------------------------------- */

typedef struct late_reduction {
    gb_late_reduction_problem problem;
    gb_reduction scratch; /* the parts that its plans have in common */
    gb_scratch plan;      /* made by each thread, for itself */
    gb_scratch operands;  /* of its pointwise program */
} late_reduction;

static void run_late(const gb_step_call *call)
{
    const late_reduction *late = call->params;
    gb_reduction *plan = gb_scratch_get(call, late->plan);
    *plan = late->scratch;
    gb_late_reduction_resolve(&late->problem, call->buffers[late->problem.axes_slot],
            gb_scratch_get(call, late->operands), &plan->problem);
    choose_items(plan);
    if (call->phase == 0)
        sum_segments(plan, call);
    else if (plan->splits > 1)
        join_segments(plan, call);
}

gb_status gb_late_reduction_plan(gb_step *step, const gb_late_reduction_problem *problem)
{
    late_reduction *late = gb_step_alloc(step, 1, sizeof *late);
    if (!late)
        return GB_OUT_OF_MEMORY;
    late->problem = *problem;
    late->scratch.problem.pointwise = problem->reduction.pointwise;
    add_scratch(step, &late->scratch);
    late->plan = gb_scratch_add(step, sizeof late->scratch);
    late->operands = gb_scratch_add(
            step, problem->reduction.pointwise.n_operands * sizeof(gb_pointwise_operand));
    step->params = late;
    step->run = run_late;
    step->n_phases = 2;
    /* choose_segments() makes up to TASKS / work items of them, rounded up, where work items are
     * fewer. */
    step->shared_scratch = (size_t)2 * TASKS * GB_TILE_ELEMENTS * sizeof(float);
    return GB_SUCCESS;
}
