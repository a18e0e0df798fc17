/* Lowers regions of attention and of its gradients: the step's problem, then a plan for it. */
#include "base/memory.h"
#include "base/status.h"
#include "fusion/regions/regions.h"
#include "graph/ops/op_table.h"
#include "kernels/attention/attention_backward_plan.h"
#include "kernels/attention/attention_plan.h"
#include "kernels/cpu/lower.h"

/* Are rows narrow enough to be kept in scratch, and is there a kernel for the sum? That over
 * queries scales V instead of the weights, and dequantises nothing. */
static bool attention_accepts(const gb_graph *graph, const void *found)
{
    const gb_attention_parts *parts = found;
    const gb_logical_tensor *scores = gb_op_output(parts->scores, 0);
    int64_t features = gb_attention_features(parts), columns = gb_attention_columns(parts);
    int64_t kept = parts->by_rows ? scores->dims[scores->ndims - 1] : 1;
    uint32_t sources = parts->query_source.n + parts->key_source.n + parts->value_source.n;
    if (parts->by_rows && (sources > 0 || !gb_attention_keeps_scale(graph, &parts->between)))
        return false;
    return features <= GB_ATTENTION_WIDTH && columns <= GB_ATTENTION_WIDTH &&
           kept <= GB_ATTENTION_KEPT / gb_max_i64(features + columns, 1);
}

static gb_status attention_lower(gb_program *program, const gb_group *group)
{
    gb_step *step;
    GB_TRY(gb_program_begin(program, "attention", &step));
    gb_attention_problem *problem = gb_step_alloc(step, 1, sizeof *problem);
    if (!problem)
        return GB_OUT_OF_MEMORY;
    GB_TRY(gb_attention_describe(program, group, step, problem));
    return gb_attention_add(program, step, problem);
}

const gb_region_lowering gb_lowering_attention = {
        .region = &gb_region_attention, .accepts = attention_accepts, .lower = attention_lower};

static bool attention_backward_accepts(const gb_graph *graph, const void *found)
{
    const gb_attention_gradient_parts *parts = found;
    const gb_logical_tensor *dq = gb_op_output(parts->dq, 0), *dv = gb_op_output(parts->dv, 0);
    (void)graph;
    return dq->dims[dq->ndims - 1] <= GB_ATTENTION_WIDTH &&
           dv->dims[dv->ndims - 1] <= GB_ATTENTION_WIDTH;
}

static gb_status attention_backward_lower(gb_program *program, const gb_group *group)
{
    gb_step *step;
    GB_TRY(gb_program_begin(program, "attention_backward", &step));
    gb_attention_gradient_problem *problem = gb_step_alloc(step, 1, sizeof *problem);
    if (!problem)
        return GB_OUT_OF_MEMORY;
    GB_TRY(gb_attention_gradient_describe(program, group, step, problem));
    return gb_attention_backward_add(program, step, problem);
}

const gb_region_lowering gb_lowering_attention_gradients = {
        .region = &gb_region_attention_gradients,
        .accepts = attention_backward_accepts,
        .lower = attention_backward_lower};
