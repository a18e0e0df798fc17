/* Lowers AvgPool and MaxPool; a window that covers the whole image is a reduction. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"
#include "kernels/plan/channels_last.h"
#include "kernels/rowwise/reduction.h"
#include "kernels/window/pool.h"

static double pool_work(const gb_op *op, const gb_pool_problem *problem)
{
    double src = (double)gb_tensor_count(gb_op_input(op, 0));
    double dst = (double)gb_tensor_count(gb_op_output(op, 0)), cells = dst;
    for (int a = 0; a < GB_POOL_AXES; a++)
        cells *= (double)gb_min_i64(problem->axes[a].kernel, gb_max_i64(1, problem->axes[a].in));
    return cells + 4 * src + 4 * dst;
}

static gb_status plan_global(gb_step *step, const gb_pool_problem *problem)
{
    gb_reduction_problem reduction;
    GB_TRY(gb_pool_as_reduction(problem, step, &reduction));
    return gb_reduction_plan(step, &reduction);
}

static gb_status pool_lower(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_pool_problem problem = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "pool", &step));
    GB_TRY(gb_pool_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_pool_problem_print, &problem));
    GB_TRY((gb_pool_is_global(&problem) ? plan_global : gb_pool_plan)(step, &problem));
    step->work = pool_work(op, &problem);
    return gb_program_add(program, step);
}

static bool pool_supports(const gb_op *op, const char **reason)
{
    int ndims = gb_op_input(op, 0)->ndims;
    if (ndims > GB_POOL_AXES + 2) {
        *reason = "rank above 5";
        return false;
    }
    return gb_pool_has_types(op, reason);
}

/* Windows of neighbouring positions are read as quickly in either order. */
static uint32_t pool_reads_formats(const gb_op *op, uint32_t input, gb_format_candidate *candidates)
{
    if (input > 0 || !gb_has_channels_first(op))
        return 0;
    candidates[0] =
            (gb_format_candidate){.format = gb_channels_last(gb_op_input(op, 0)->ndims), .gain = 0};
    return candidates[0].format != NULL;
}

static uint32_t pool_writes_formats(const gb_graph *graph, const gb_group *group, uint32_t value,
        gb_format_candidate *candidates)
{
    const gb_op *op = graph->ops[group->anchor];
    const gb_logical_tensor *tensor = &graph->values[value].tensor;
    if (!gb_source_lies_channels_last(graph, group, op->inputs[0]) ||
            !gb_may_write_channels_last(graph, group, op, value))
        return 0;
    candidates[0] = (gb_format_candidate){.format = gb_channels_last(tensor->ndims), .gain = 0};
    return candidates[0].format != NULL;
}

const gb_lowering gb_lowering_pool = {.name = "pool",
        .supports = pool_supports,
        .takes_epilogue = true,
        .fuses_producer = gb_pool_takes_prologue,
        .reads_formats = pool_reads_formats,
        .writes_formats = pool_writes_formats,
        .keeps_formats = true,
        .lower = pool_lower};
