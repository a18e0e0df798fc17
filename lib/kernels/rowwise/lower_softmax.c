/* SoftMax (with statistics) and LogSoftmax in blocks of rows or columns. */
#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"
#include "kernels/rowwise/rows.h"

typedef struct softmax {
    gb_softmax_problem problem;
    gb_row_plan rows;
    gb_scratch stats; /* of a block, if wanted */
    bool streamed;    /* results go past the caches */
    gb_scratch row;   /* exponentials lie here until their sum is known */
    bool turned;      /* rows so short that they are brought into columns */
    gb_scratch turned_rows;
} softmax;

enum { TURNED = GB_SOFTMAX_GROUP }; /* rows at a time */

static bool has_stats(const gb_softmax_problem *problem)
{
    return problem->stats.type != GB_UNDEF;
}

static void store_stats(const softmax *plan, const gb_step_call *call, const gb_row_block *block,
        const float *values)
{
    const gb_operand *stats = &plan->problem.stats;
    const gb_reduced_space *space = &plan->problem.rows.space;
    float *dst = call->buffers[stats->slot];
    int64_t step = gb_operand_stride(stats, gb_last_kept(space));
    dst += gb_offset(space->ndims, stats->strides, block->position);
    for (int64_t i = 0; i < block->count; i++)
        dst[i * step] = values[i];
}

/* Rows become columns of a tile in L1, and their results rows again. */
static void turn_rows(const softmax *plan, const gb_step_call *call, const gb_softmax_block *rows)
{
    const gb_kernels *kernels = gb_kernels_get();
    const int64_t size = sizeof(float), x_row = rows->x_stride * size,
                  y_row = rows->y_stride * size;
    float *tile = gb_scratch_get(call, plan->turned_rows);
    for (int64_t r = 0; r < rows->count; r += TURNED) {
        gb_softmax_block columns = *rows;
        columns.x = columns.y = tile;
        columns.x_stride = columns.y_stride = TURNED;
        columns.count = gb_min_i64(TURNED, rows->count - r);
        columns.stats = rows->stats ? rows->stats + r : NULL;
        columns.row = NULL;
        kernels->transpose((size_t)size, (const char *)rows->x + r * x_row, x_row, (char *)tile,
                TURNED * size, rows->n, columns.count);
        kernels->softmax_columns(&columns);
        kernels->transpose((size_t)size, (const char *)tile, TURNED * size,
                (char *)rows->y + r * y_row, y_row, columns.count, rows->n);
    }
}

static void softmax_compute(
        const gb_row_plan *rows, const gb_step_call *call, const gb_row_block *block)
{
    const softmax *plan = call->params;
    const gb_softmax_problem *problem = &plan->problem;
    float *stats = has_stats(problem) ? gb_scratch_get(call, plan->stats) : NULL;
    gb_softmax_block kernel_block = {.x = block->x,
            .y = block->y,
            .x_stride = block->x_stride,
            .y_stride = block->y_stride,
            .count = block->count,
            .n = problem->rows.space.n,
            .log = problem->log,
            .inf_as_zero = problem->inf_as_zero,
            .stats = stats,
            .row = plan->streamed ? gb_scratch_get(call, plan->row) : NULL};
    if (plan->turned)
        turn_rows(plan, call, &kernel_block);
    else if (rows->columns)
        gb_kernels_get()->softmax_columns(&kernel_block);
    else
        gb_kernels_get()->softmax_rows(&kernel_block);
    if (stats)
        store_stats(plan, call, block, stats);
}

static void softmax_run(const gb_step_call *call)
{
    const softmax *plan = call->params;
    gb_row_run(&plan->rows, call, softmax_compute);
}

/* Rows, or columns, whose exponentials wait for their sums at a time. */
static int64_t waiting(const gb_row_plan *rows)
{
    return rows->columns ? GB_SOFTMAX_GROUP : 1;
}

/* The kernel writes results itself, and exponentials stay near until their sum is known. */
static bool streams(const gb_row_plan *rows)
{
    const gb_row_problem *problem = rows->problem;
    int64_t near = (int64_t)(gb_machine_get()->l2_bytes / 4 / sizeof(float));
    return rows->direct_dst && problem->pointwise.operands[0].streamed &&
           problem->space.n <= near / waiting(rows);
}

/* Rows of a few vectors leave lanes idle, and each waits for its own maximum, sum and logarithm. Vectors of four lanes
 * are turned as slowly as they compute. */
static bool is_short(const gb_softmax_problem *problem)
{
    const int lanes = gb_kernels_get()->gemm_limits().lanes;
    const int vectors = lanes < 8 ? 1 : problem->log ? 3 : 2;
    return problem->rows.space.n > 0 && problem->rows.space.n < vectors * lanes;
}

static gb_status softmax_plan(gb_step *step, const gb_softmax_problem *problem, int threads)
{
    softmax *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    plan->problem = *problem;
    plan->rows = gb_row_plan_make(step, &plan->problem.rows, threads, 1, has_stats(problem), NULL);
    if (has_stats(problem))
        plan->stats = gb_scratch_add(step, gb_float_bytes(GB_TILE_ELEMENTS));
    plan->turned = !plan->rows.columns && is_short(problem);
    if (plan->turned)
        plan->turned_rows = gb_scratch_add(step, gb_float_bytes(problem->rows.space.n * TURNED));
    plan->streamed = !plan->turned && streams(&plan->rows);
    if (plan->streamed)
        plan->row =
                gb_scratch_add(step, gb_float_bytes(problem->rows.space.n * waiting(&plan->rows)));
    step->params = plan;
    step->run = softmax_run;
    step->work = 16 * gb_row_elements(&problem->rows);
    return GB_SUCCESS;
}

static gb_status softmax_lower(gb_program *program, const gb_group *group)
{
    gb_softmax_problem problem = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "softmax", &step));
    GB_TRY(gb_softmax_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_softmax_problem_print, &problem));
    GB_TRY(softmax_plan(step, &problem, gb_program_threads(program)));
    return gb_program_add(program, step);
}

const gb_lowering gb_lowering_softmax = {.name = "softmax",
        .supports = gb_all_types_float,
        .takes_epilogue = true,
        .lower = softmax_lower};
