/* PReLU and its gradient: a slope for the negative side, broadcast over the data. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "ref/bounds/bound.h"
#include "ref/bounds/walk.h"
#include "ref/ops/ref_functions.h"

typedef struct prelu_job {
    const gb_ref_tensor *src, *slope, *diff_dst;
    gb_ref_tensor *dst; /* or diff_src */
} prelu_job;

/* x > 0 ? x : x slope */
static gb_ref_pair prelu(gb_ref_pair x, gb_ref_pair slope)
{
    gb_ref_pair negative = gb_ref_mul(x, slope);
    if (x.v > x.e)
        return x;
    if (!(x.v + x.e > 0))
        return negative;
    gb_ref_pair above = {x.v + x.e, 0}, zero = {0, 0};
    gb_ref_pair below = gb_ref_mul(gb_ref_exact(x.v - x.e), slope);
    gb_ref_pair y = x.v > 0 ? gb_ref_exact(x.v) : (gb_ref_pair){negative.v, slope.e * fabs(x.v)};
    return gb_ref_either(gb_ref_either(gb_ref_either(y, above), zero), below);
}

static void prelu_row(void *context, const gb_ref_row *row)
{
    const prelu_job *job = context;
    for (int64_t i = 0; i < row->count; i++) {
        gb_ref_pair slope = gb_ref_get(job->slope, row->offset[0] + i * row->step[0]);
        gb_ref_put(job->dst, row->first + i, prelu(gb_ref_get(job->src, row->first + i), slope));
    }
}

static void diff_src_row(void *context, const gb_ref_row *row)
{
    const prelu_job *job = context;
    for (int64_t i = 0; i < row->count; i++) {
        gb_ref_pair slope = gb_ref_get(job->slope, row->offset[0] + i * row->step[0]);
        gb_ref_pair x = gb_ref_get(job->src, row->first + i);
        gb_ref_pair g = gb_ref_get(job->diff_dst, row->first + i), scaled = gb_ref_mul(g, slope);
        gb_ref_pair y = x.v > 0 ? g : scaled;
        if (x.v - x.e <= 0 && x.v + x.e > 0)
            y = gb_ref_either(y, x.v > 0 ? scaled : g);
        gb_ref_put(job->dst, row->first + i, y);
    }
}

/* Strides of the slope seen from the axes of src. */
static gb_status slope_strides(const gb_op *op, const gb_logical_tensor *src,
        const gb_logical_tensor *slope, bool per_channel, int64_t strides[GB_MAX_NDIMS])
{
    int lead = src->ndims - slope->ndims;
    bool fits = lead >= 0;
    if (fits && slope->ndims == 1 && per_channel && src->ndims > 1)
        lead = gb_channel_axis(op, src->ndims);
    int64_t dense[GB_MAX_NDIMS];
    gb_dense_strides(slope->ndims, slope->dims, dense);
    for (int d = 0; d < GB_MAX_NDIMS; d++)
        strides[d] = 0;
    for (int d = 0; fits && d < slope->ndims; d++) {
        fits = slope->dims[d] == 1 || slope->dims[d] == src->dims[lead + d];
        strides[lead + d] = slope->dims[d] == 1 ? 0 : dense[d];
    }
    if (fits)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: slope %s does not broadcast onto %s", gb_op_label(op),
            gb_tensor_label(slope), gb_tensor_label(src));
}

gb_status gb_ref_prelu(const gb_ref_call *call)
{
    prelu_job job = {.src = call->inputs[0], .slope = call->inputs[1], .dst = &call->outputs[0]};
    const gb_logical_tensor *src = &job.src->tensor, *slope = &job.slope->tensor;
    int64_t strides[GB_MAX_NDIMS];
    bool per_channel = gb_op_attr_bool(call->op, GB_ATTR_PER_CHANNEL_BROADCAST, true);
    GB_TRY(slope_strides(call->op, src, slope, per_channel, strides));
    if (job.dst->count != job.src->count)
        return gb_fail(GB_INVALID_SHAPE, "%s: src and dst differ in size", gb_op_label(call->op));
    gb_ref_walk walk;
    gb_ref_walk_init(&walk, src->ndims, src->dims);
    gb_ref_walk_strided(&walk, strides);
    gb_ref_walk_run(&walk, prelu_row, &job);
    return GB_SUCCESS;
}

typedef struct slope_sum {
    const prelu_job *job;
    int64_t base;
    gb_ref_sum sum;
} slope_sum;

static void diff_slope_row(void *context, const gb_ref_row *row)
{
    slope_sum *s = context;
    for (int64_t i = 0; i < row->count; i++) {
        int64_t at = s->base + row->offset[0] + i * row->step[0];
        gb_ref_pair x = gb_ref_get(s->job->src, at), g = gb_ref_get(s->job->diff_dst, at);
        gb_ref_pair zero = {0, 0}, product = gb_ref_mul(x, g);
        bool negative = !(x.v > 0);
        gb_ref_pair term = negative ? product : zero;
        if (x.e > 0 && x.v - x.e < 0 && x.v + x.e > 0)
            term = gb_ref_either(term, negative ? zero : product);
        gb_ref_sum_add(&s->sum, term);
    }
}

/* diff_slope = sums of min(0, x) g over the axes along which the slope was broadcast. */
static void reduce_slope(const prelu_job *job, const int64_t *strides, gb_ref_tensor *diff_slope)
{
    const gb_logical_tensor *src = &job->src->tensor;
    int64_t dense[GB_MAX_NDIMS], dims[GB_MAX_NDIMS], kept_dims[GB_MAX_NDIMS];
    gb_dense_strides(src->ndims, src->dims, dense);
    for (int d = 0; d < src->ndims; d++) {
        dims[d] = strides[d] == 0 ? src->dims[d] : 1;
        kept_dims[d] = strides[d] == 0 ? 1 : src->dims[d];
    }
    int statistical = diff_slope->statistical;
#pragma omp parallel for reduction(| : statistical)
    for (int64_t s = 0; s < diff_slope->count; s++) {
        slope_sum context = {.job = job};
        int64_t rest = s;
        for (int d = src->ndims - 1; d >= 0; d--) {
            context.base += rest % gb_max_i64(kept_dims[d], 1) * dense[d];
            rest /= gb_max_i64(kept_dims[d], 1);
        }
        gb_ref_walk walk;
        gb_ref_walk_init(&walk, src->ndims, dims);
        gb_ref_walk_strided(&walk, dense);
        gb_ref_walk_serial(&walk, diff_slope_row, &context);
        gb_ref_put(diff_slope, s, gb_ref_sum_get(&context.sum, &statistical));
    }
    diff_slope->statistical = statistical;
}

gb_status gb_ref_prelu_backward(const gb_ref_call *call)
{
    prelu_job job = {call->inputs[0], call->inputs[1], call->inputs[2], &call->outputs[0]};
    const gb_logical_tensor *src = &job.src->tensor, *slope = &job.slope->tensor;
    gb_ref_tensor *diff_slope = &call->outputs[1];
    int64_t strides[GB_MAX_NDIMS];
    GB_TRY(slope_strides(call->op, src, slope, slope->ndims == 1 && slope->dims[0] != 1, strides));
    if (job.dst->count != job.src->count || job.diff_dst->count != job.src->count ||
            diff_slope->count != job.slope->count)
        return gb_fail(
                GB_INVALID_SHAPE, "%s: gradients and data differ in size", gb_op_label(call->op));
    gb_ref_walk walk;
    gb_ref_walk_init(&walk, src->ndims, src->dims);
    gb_ref_walk_strided(&walk, strides);
    gb_ref_walk_run(&walk, diff_src_row, &job);
    reduce_slope(&job, strides, diff_slope);
    return GB_SUCCESS;
}
