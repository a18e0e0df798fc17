/* Quantize and Dequantize, static and dynamic: scales and zero points per tensor, channel or group.
 */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "ref/bounds/bound.h"
#include "ref/bounds/walk.h"
#include "ref/ops/ref_functions.h"

#include <float.h>
#include <stdlib.h>

typedef struct quantize_job {
    const gb_ref_call *call;
    gb_ref_tensor scales,
            zps;  /* value and bound lent, or owned by a static op; zps.value NULL = none */
    bool integer; /* dst of Quantize */
    double ratio; /* of src */
    double lowest, highest;
} quantize_job;

static bool is_power_of_two(double x)
{
    int exponent;
    return fabs(frexp(x, &exponent)) == 0.5;
}

/* Mean square of the error of a step, when r, which deviates by `deviation`, is rounded to one: the
 * normal tail beyond the nearest edge. */
static double step_variance(double r, double deviation, double bound)
{
    double edge = 0.5 - fabs(r - nearbyint(r)), steps = deviation + 0.5;
    double tail = 0.5 * erfc(edge / (sqrt(2) * deviation + DBL_MIN));
    return fmin(deviation < 0.25 ? tail : steps * steps, bound * bound);
}

/* src / scale + zp, by a division or by a product with the rounded reciprocal. */
static gb_ref_pair quantize(const quantize_job *job, gb_ref_pair x, gb_ref_pair scale,
        gb_ref_pair zp, gb_ref_spread *spread)
{
    gb_ref_pair q = gb_ref_div(x, scale);
    if (scale.e == 0 && is_power_of_two(scale.v))
        q = gb_ref_round(q);
    else
        q = gb_ref_widen(q, 2 * GB_REF_U * fabs(q.v) + GB_REF_ETA);
    if (!job->integer)
        return q;
    zp.e += gb_ref_conversion(zp.v);
    if (zp.v != 0 || zp.e != 0)
        q = gb_ref_round(gb_ref_add(q, zp));
    gb_ref_pair step = gb_ref_to_integer(q, job->lowest, job->highest);
    if (step.e > 0 && isfinite(step.e))
        gb_ref_spread_add(spread, step_variance(q.v, job->ratio * q.e, step.e), step.e);
    return step;
}

static void quantize_row(void *context, const gb_ref_row *row)
{
    const quantize_job *job = context;
    gb_ref_spread spread = {0};
    for (int64_t i = 0; i < row->count; i++) {
        gb_ref_pair scale = gb_ref_get(&job->scales, row->offset[0] + i * row->step[0]),
                    zp = {0, 0};
        if (job->zps.value)
            zp = gb_ref_get(&job->zps, row->offset[1] + i * row->step[1]);
        gb_ref_pair x = gb_ref_get(job->call->inputs[0], row->first + i);
        gb_ref_put(&job->call->outputs[0], row->first + i, quantize(job, x, scale, zp, &spread));
    }
    if (spread.elements == 0)
        return;
#pragma omp critical(gb_ref_quantize_spread)
    gb_ref_spread_join(&job->call->outputs[0].spread, &spread);
}

static void dequantize_row(void *context, const gb_ref_row *row)
{
    const quantize_job *job = context;
    for (int64_t i = 0; i < row->count; i++) {
        gb_ref_pair scale = gb_ref_get(&job->scales, row->offset[0] + i * row->step[0]);
        gb_ref_pair x = gb_ref_get(job->call->inputs[0], row->first + i);
        if (job->zps.value)
            x = gb_ref_round(
                    gb_ref_sub(x, gb_ref_get(&job->zps, row->offset[1] + i * row->step[1])));
        gb_ref_put(&job->call->outputs[0], row->first + i, gb_ref_mul(x, scale));
    }
}

/* A vector of attribute values as a tensor. */
static gb_status make_vector(gb_ref_tensor *tensor, size_t count)
{
    tensor->value = gb_calloc(count, sizeof *tensor->value);
    tensor->count = (int64_t)count;
    tensor->tensor.ndims = 1;
    tensor->tensor.dims[0] = (int64_t)count;
    return tensor->value ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

static gb_status read_attributes(quantize_job *job)
{
    const gb_op *op = job->call->op;
    const float *scales = NULL;
    const int64_t *zps = NULL;
    size_t n_scales = gb_op_attr_f32s(op, GB_ATTR_SCALES, &scales);
    size_t n_zps = gb_op_attr_s64s(op, GB_ATTR_ZPS, &zps);
    GB_TRY(make_vector(&job->scales, n_scales));
    for (size_t i = 0; i < n_scales; i++)
        job->scales.value[i] = (double)scales[i];
    if (n_zps == 0)
        return GB_SUCCESS;
    GB_TRY(make_vector(&job->zps, n_zps));
    for (size_t i = 0; i < n_zps; i++)
        job->zps.value[i] = (double)zps[i];
    return GB_SUCCESS;
}

static gb_status misfit(const quantize_job *job, const char *what)
{
    return gb_fail(GB_INVALID_ARGUMENTS, "%s: %s do not fit src %s", gb_op_label(job->call->op),
            what, gb_tensor_label(&job->call->inputs[0]->tensor));
}

/* One parameter, or one per index of `axis` (-1: per tensor). */
static gb_status along_axis(const quantize_job *job, gb_ref_walk *walk,
        const gb_ref_tensor *parameters, int axis, const char *what)
{
    const int64_t none[GB_REF_WALK_DIMS] = {0};
    bool per_axis = axis >= 0 && parameters->count == job->call->inputs[0]->tensor.dims[axis];
    if (!per_axis && parameters->count != 1)
        return misfit(job, what);
    if (per_axis)
        gb_ref_walk_along(walk, axis);
    else
        gb_ref_walk_strided(walk, none);
    return GB_SUCCESS;
}

/* The grouped transposed convolution whose weights the op makes, when its channels are numbered
 * over all groups (the weights hold only those of one group); NULL = none. */
static const gb_op *find_grouped_consumer(const quantize_job *job, int axis)
{
    const gb_op *op = job->call->op;
    const gb_logical_tensor *src = &job->call->inputs[0]->tensor;
    if (!op->graph || axis < 0 || job->scales.count == src->dims[axis])
        return NULL;
    const gb_value *value = &op->graph->values[op->outputs[0]];
    for (uint32_t i = 0; i < value->n_uses; i++) {
        const gb_op *user = op->graph->ops[value->uses[i].op];
        int axes[GB_MAX_NDIMS];
        if (user->kind != GB_OP_CONV_TRANSPOSE || value->uses[i].input != 1)
            continue;
        int64_t groups = gb_op_attr_s64(user, GB_ATTR_GROUPS, 1);
        gb_weights_axes(user, src->ndims, axes);
        if (axes[1] == axis && groups > 0 && src->dims[axes[0]] % groups == 0 &&
                job->scales.count == groups * src->dims[axis])
            return user;
    }
    return NULL;
}

/* Channel = group of the input channel * channels of a group + output channel. */
static gb_status walk_grouped_weights(
        const quantize_job *job, gb_ref_walk *walk, const gb_op *consumer)
{
    const gb_logical_tensor *src = &job->call->inputs[0]->tensor;
    int axes[GB_MAX_NDIMS], n = 0;
    int64_t dims[GB_REF_WALK_DIMS], strides[GB_REF_WALK_DIMS] = {0};
    int64_t groups = gb_op_attr_s64(consumer, GB_ATTR_GROUPS, 1);
    gb_weights_axes(consumer, src->ndims, axes);
    for (int d = 0; d < src->ndims; d++) {
        if (d == axes[0]) {
            strides[n] = src->dims[axes[1]];
            dims[n++] = groups;
        }
        strides[n] = d == axes[1];
        dims[n++] = d == axes[0] ? src->dims[d] / groups : src->dims[d];
    }
    gb_ref_walk_init(walk, n, dims);
    gb_ref_walk_strided(walk, strides);
    if (job->zps.value && job->zps.count != job->scales.count)
        return misfit(job, "zero points");
    if (job->zps.value)
        gb_ref_walk_strided(walk, strides);
    return GB_SUCCESS;
}

static gb_status walk_vectors(const quantize_job *job, gb_ref_walk *walk)
{
    const gb_op *op = job->call->op;
    const gb_logical_tensor *src = &job->call->inputs[0]->tensor;
    int axis = -1;
    if (gb_op_attr_is(op, GB_ATTR_QTYPE, "per_channel", false)) {
        int64_t attribute = gb_op_attr_s64(op, GB_ATTR_AXIS, 1);
        axis = gb_normalize_axis(attribute, src->ndims);
        if (axis < 0)
            return gb_fail(GB_INVALID_ARGUMENTS, "%s: axis %lld is outside src %s", gb_op_label(op),
                    (long long)attribute, gb_tensor_label(src));
    }
    const gb_op *consumer = find_grouped_consumer(job, axis);
    if (consumer)
        return walk_grouped_weights(job, walk, consumer);
    gb_ref_walk_init(walk, src->ndims, src->dims);
    GB_TRY(along_axis(job, walk, &job->scales, axis, "scales"));
    return job->zps.value ? along_axis(job, walk, &job->zps, axis, "zero points") : GB_SUCCESS;
}

/* Every axis is split in groups and positions inside one, so that the parameters have a stride of 0
 * inside. */
static gb_status add_groups(const quantize_job *job, gb_ref_walk *walk,
        const gb_ref_tensor *parameters, const char *what)
{
    const gb_logical_tensor *tensor = &parameters->tensor;
    int64_t dense[GB_MAX_NDIMS], strides[GB_REF_WALK_DIMS] = {0};
    if (2 * tensor->ndims != walk->ndims)
        return misfit(job, what);
    gb_dense_strides(tensor->ndims, tensor->dims, dense);
    for (int d = 0; d < tensor->ndims; d++) {
        if (tensor->dims[d] != walk->dims[2 * d])
            return misfit(job, what);
        strides[2 * d] = dense[d];
    }
    gb_ref_walk_strided(walk, strides);
    return GB_SUCCESS;
}

static gb_status walk_groups(const quantize_job *job, gb_ref_walk *walk)
{
    const gb_logical_tensor *src = &job->call->inputs[0]->tensor;
    const int64_t *sizes = NULL;
    int64_t dims[GB_REF_WALK_DIMS];
    size_t count = gb_op_attr_s64s(job->call->op, GB_ATTR_GROUP_SHAPE, &sizes);
    if (count != (size_t)src->ndims)
        return misfit(job, "groups");
    for (int d = 0; d < src->ndims; d++) {
        if (sizes[d] < 1 || src->dims[d] % sizes[d] != 0)
            return misfit(job, "groups");
        dims[2 * d] = src->dims[d] / sizes[d];
        dims[2 * d + 1] = sizes[d];
    }
    gb_ref_walk_init(walk, 2 * src->ndims, dims);
    GB_TRY(add_groups(job, walk, &job->scales, "scales"));
    return job->zps.value ? add_groups(job, walk, &job->zps, "zero points") : GB_SUCCESS;
}

static gb_status run_job(quantize_job *job, gb_ref_row_fn row)
{
    const gb_ref_call *call = job->call;
    gb_ref_walk walk;
    if (call->outputs[0].count != call->inputs[0]->count)
        return gb_fail(GB_INVALID_SHAPE, "%s: src and dst differ in size", gb_op_label(call->op));
    bool groups = gb_op_attr_is(call->op, GB_ATTR_QTYPE, "per_group", false);
    GB_TRY(groups ? walk_groups(job, &walk) : walk_vectors(job, &walk));
    gb_ref_walk_run(&walk, row, job);
    return GB_SUCCESS;
}

static gb_status convert(const gb_ref_call *call, gb_ref_row_fn row)
{
    const gb_dtype_info *type = gb_dtype_get(call->outputs[0].tensor.data_type);
    quantize_job job = {.call = call,
            .ratio = gb_ref_ratio(call->inputs[0]),
            .integer = !type->is_float,
            .lowest = type->lowest,
            .highest = type->max};
    if (call->n_inputs > 1) {
        job.scales = *call->inputs[1];
        if (call->n_inputs > 2)
            job.zps = *call->inputs[2];
        return run_job(&job, row);
    }
    gb_status status = read_attributes(&job);
    if (status == GB_SUCCESS)
        status = run_job(&job, row);
    free(job.scales.value);
    free(job.zps.value);
    return status;
}

gb_status gb_ref_quantize(const gb_ref_call *call)
{
    return convert(call, quantize_row);
}

gb_status gb_ref_dequantize(const gb_ref_call *call)
{
    return convert(call, dequantize_row);
}
