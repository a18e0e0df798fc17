/* BiasAdd and its gradient: a vector along the channels. */
#include "base/status.h"
#include "ref/bounds/bound.h"
#include "ref/bounds/subset.h"
#include "ref/bounds/walk.h"
#include "ref/ops/ref_functions.h"

typedef struct bias_job {
    const gb_ref_tensor *src, *bias;
    gb_ref_tensor *dst;
} bias_job;

static void bias_row(void *context, const gb_ref_row *row)
{
    const bias_job *job = context;
    for (int64_t i = 0; i < row->count; i++) {
        gb_ref_pair bias = gb_ref_get(job->bias, row->offset[0] + i * row->step[0]);
        gb_ref_put(
                job->dst, row->first + i, gb_ref_add(gb_ref_get(job->src, row->first + i), bias));
    }
}

static gb_status bias_find_channels(
        const gb_op *op, const gb_logical_tensor *data, int64_t length, int *axis)
{
    *axis = data->ndims > 0 ? gb_channel_axis(op, data->ndims) : -1;
    if (*axis >= 0 && *axis < data->ndims && data->dims[*axis] == length)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: a bias of %lld elements does not fit the channels of %s",
            gb_op_label(op), (long long)length, gb_tensor_label(data));
}

gb_status gb_ref_bias_add(const gb_ref_call *call)
{
    bias_job job = {call->inputs[0], call->inputs[1], &call->outputs[0]};
    const gb_logical_tensor *src = &job.src->tensor;
    int axis;
    GB_TRY(bias_find_channels(call->op, src, job.bias->count, &axis));
    if (job.dst->count != job.src->count)
        return gb_fail(GB_INVALID_SHAPE, "%s: src and dst differ in size", gb_op_label(call->op));
    gb_ref_walk walk;
    gb_ref_walk_init(&walk, src->ndims, src->dims);
    gb_ref_walk_along(&walk, axis);
    gb_ref_walk_run(&walk, bias_row, &job);
    return GB_SUCCESS;
}

gb_status gb_ref_bias_add_backward(const gb_ref_call *call)
{
    const gb_ref_tensor *diff_dst = call->inputs[0];
    const gb_logical_tensor *tensor = &diff_dst->tensor;
    gb_ref_tensor *diff_bias = &call->outputs[0];
    int axis;
    GB_TRY(bias_find_channels(call->op, tensor, diff_bias->count, &axis));
    gb_ref_subsets channels;
    gb_ref_subsets_channels(&channels, tensor, axis);
    int statistical = diff_bias->statistical;
#pragma omp parallel for reduction(| : statistical)
    for (int64_t c = 0; c < channels.count; c++) {
        gb_ref_sum sum = {0};
        for (gb_ref_cursor k = gb_ref_subset_begin(&channels, c); k.left > 0;
                gb_ref_subset_next(&k))
            gb_ref_sum_add_element(&sum, diff_dst, k.at);
        gb_ref_put(diff_bias, c, gb_ref_sum_get(&sum, &statistical));
    }
    diff_bias->statistical = statistical;
    return GB_SUCCESS;
}
