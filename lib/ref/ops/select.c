/* Select: one of two inputs by a condition, all broadcast. */
#include "base/status.h"
#include "ref/bounds/bound.h"
#include "ref/bounds/walk.h"
#include "ref/ops/ref_functions.h"

typedef struct select_job {
    const gb_ref_tensor *inputs[3];
    gb_ref_tensor *dst;
} select_job;

static void select_row(void *context, const gb_ref_row *row)
{
    const select_job *job = context;
    for (int64_t i = 0; i < row->count; i++) {
        gb_ref_pair operands[3];
        for (int k = 0; k < 3; k++) {
            int64_t at = row->offset[k] + i * row->step[k];
            operands[k] =
                    (gb_ref_pair){job->inputs[k]->value[at], gb_ref_bound(job->inputs[k], at)};
        }
        bool first = operands[0].v != 0;
        gb_ref_pair x = operands[first ? 1 : 2];
        if (operands[0].e > 0)
            x = gb_ref_either(x, operands[first ? 2 : 1]);
        gb_ref_put(job->dst, row->first + i, x);
    }
}

gb_status gb_ref_select(const gb_ref_call *call)
{
    const gb_logical_tensor *dst = &call->outputs[0].tensor;
    select_job job = {.dst = &call->outputs[0]};
    gb_ref_walk walk;
    gb_ref_walk_init(&walk, dst->ndims, dst->dims);
    for (int k = 0; k < 3; k++) {
        const gb_logical_tensor *tensor = &call->inputs[k]->tensor;
        if (!gb_broadcasts_onto(tensor->ndims, tensor->dims, dst->ndims, dst->dims))
            return gb_fail(GB_INVALID_SHAPE, "%s: input %d does not broadcast onto the output",
                    gb_op_label(call->op), k);
        job.inputs[k] = call->inputs[k];
        gb_ref_walk_broadcast(&walk, tensor->ndims, tensor->dims);
    }
    gb_ref_walk_run(&walk, select_row, &job);
    return GB_SUCCESS;
}
