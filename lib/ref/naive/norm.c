/* Normalisations and softmax: op set 3.6, 3.7. */
#include "base/memory.h"
#include "ref/naive/naive_op.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Mean and biased variance of each of `n` sets of elements; set[p] = which one p belongs to. Of no
 * elements: 0. All owned. */
typedef struct moments {
    int64_t n, *set;
    double *mean, *variance;
} moments;

static void free_moments(moments *m)
{
    free(m->set);
    free(m->mean);
    free(m->variance);
}

static gb_status create_moments(moments *m, int64_t n, int64_t count)
{
    *m = (moments){n, gb_calloc((size_t)count, sizeof(int64_t)),
            gb_calloc((size_t)n, sizeof(double)), gb_calloc((size_t)n, sizeof(double))};
    return m->set && m->mean && m->variance ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

static void find_moments(moments *m, const gb_naive_tensor *x)
{
    double size = m->n > 0 ? (double)(x->count / m->n) : 0;
    for (int64_t p = 0; p < x->count; p++)
        m->mean[m->set[p]] += x->value[p];
    for (int64_t s = 0; s < m->n && size > 0; s++)
        m->mean[s] /= size;
    for (int64_t p = 0; p < x->count; p++) {
        double d = x->value[p] - m->mean[m->set[p]];
        m->variance[m->set[p]] += d * d;
    }
    for (int64_t s = 0; s < m->n && size > 0; s++)
        m->variance[s] /= size;
}

static double epsilon_of(const gb_op *op)
{
    return gb_naive_real(op, GB_ATTR_EPSILON, (double)1e-5F);
}

/* Batch norms: every input from `first` on is a vector of the channels. */
static gb_status norm_find_channels(const gb_naive_call *call, uint32_t first, int *axis)
{
    const gb_naive_tensor *src = &call->in[0];
    *axis = gb_naive_channel_axis(call->op, src->ndims);
    if (src->ndims < 2)
        return GB_NAIVE_REFUSE(call, "src has no channels");
    for (uint32_t i = first; i < call->op->n_inputs; i++)
        if (!gb_naive_is_vector(call, i, src->dims[*axis]))
            return GB_NAIVE_REFUSE(call, "an input is no vector of src's channels");
    return GB_SUCCESS;
}

gb_status gb_naive_batch_norm_inference(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0];
    const double *gamma = call->in[1].value, *beta = call->in[2].value;
    const double *mean = call->in[3].value, *variance = call->in[4].value;
    int axis;
    GB_TRY(norm_find_channels(call, 1, &axis));
    GB_TRY(gb_naive_make_like(call, 0, src));
    for (int64_t p = 0; p < src->count; p++) {
        int64_t c = gb_naive_along(src, axis, p);
        call->out->value[p] =
                (src->value[p] - mean[c]) / sqrt(variance[c] + epsilon_of(call->op)) * gamma[c] +
                beta[c];
    }
    return GB_SUCCESS;
}

gb_status gb_naive_batch_norm_training(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0];
    const double *mean = call->in[1].value, *variance = call->in[2].value;
    const double *gamma = call->op->n_inputs > 3 ? call->in[3].value : NULL;
    const double *beta = call->op->n_inputs > 4 ? call->in[4].value : NULL;
    double momentum = gb_naive_real(call->op, GB_ATTR_MOMENTUM, 0.5);
    int axis;
    moments m;
    GB_TRY(norm_find_channels(call, 1, &axis));
    GB_TRY(gb_naive_make_like(call, 0, src));
    for (uint32_t i = 1; i < 5; i++)
        GB_TRY(gb_naive_make(call, i, 1, &src->dims[axis]));
    gb_status status = create_moments(&m, src->dims[axis], src->count);
    for (int64_t p = 0; status == GB_SUCCESS && p < src->count; p++)
        m.set[p] = gb_naive_along(src, axis, p);
    if (status == GB_SUCCESS)
        find_moments(&m, src);
    for (int64_t p = 0; status == GB_SUCCESS && p < src->count; p++) {
        int64_t c = m.set[p];
        double x = (src->value[p] - m.mean[c]) / sqrt(m.variance[c] + epsilon_of(call->op));
        call->out[0].value[p] = x * (gamma ? gamma[c] : 1) + (beta ? beta[c] : 0);
    }
    for (int64_t c = 0; status == GB_SUCCESS && c < m.n; c++) {
        call->out[1].value[c] = momentum * mean[c] + (1 - momentum) * m.mean[c];
        call->out[2].value[c] = momentum * variance[c] + (1 - momentum) * m.variance[c];
        call->out[3].value[c] = m.mean[c];
        call->out[4].value[c] = m.variance[c];
    }
    free_moments(&m);
    return status;
}

/* With diff_src alone, mean and variance are constants, and gamma plays no part. */
gb_status gb_naive_batch_norm_backward(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0], *diff_dst = &call->in[1];
    const double *mean = call->in[2].value, *variance = call->in[3].value;
    const double *gamma = call->op->n_inputs > 4 ? call->in[4].value : NULL;
    int axis;
    GB_TRY(norm_find_channels(call, 2, &axis));
    if (!gb_naive_same_dims(src, diff_dst))
        return GB_NAIVE_REFUSE(call, "src and diff_dst differ in shape");
    GB_TRY(gb_naive_make_like(call, 0, src));
    for (uint32_t i = 1; i < call->op->n_outputs; i++)
        GB_TRY(gb_naive_make(call, i, 1, &src->dims[axis]));
    for (int64_t c = 0; c < src->dims[axis]; c++) {
        double rstd = 1 / sqrt(variance[c] + epsilon_of(call->op));
        double diff_gamma = 0, diff_beta = 0, size = 0;
        for (int64_t p = 0; p < src->count; p++)
            if (gb_naive_along(src, axis, p) == c) {
                diff_beta += diff_dst->value[p];
                diff_gamma += diff_dst->value[p] * (src->value[p] - mean[c]) * rstd;
                size += 1;
            }
        for (int64_t p = 0; p < src->count; p++) {
            double g = diff_dst->value[p], x = (src->value[p] - mean[c]) * rstd;
            if (gb_naive_along(src, axis, p) == c)
                call->out[0].value[p] = call->op->n_outputs == 1
                                                ? g * rstd
                                                : (gamma ? gamma[c] : 1) * rstd *
                                                          (g - (diff_beta + x * diff_gamma) / size);
        }
        if (call->op->n_outputs > 1)
            call->out[1].value[c] = diff_gamma;
        if (call->op->n_outputs > 2)
            call->out[2].value[c] = diff_beta;
    }
    return GB_SUCCESS;
}

/* Rows of a norm: the axes from begin_norm_axis (default: the last) on. */
static gb_status find_rows(const gb_naive_call *call, int *axis, int64_t *length)
{
    const gb_naive_tensor *src = &call->in[0];
    *axis = gb_naive_axis(gb_naive_int(call->op, GB_ATTR_BEGIN_NORM_AXIS, -1), src->ndims);
    if (*axis < 0)
        return GB_NAIVE_REFUSE(call, "begin_norm_axis is no axis of src");
    *length = 1;
    for (int d = *axis; d < src->ndims; d++)
        *length *= src->dims[d];
    return GB_SUCCESS;
}

/* Statistics have the axes in front of the rows; given as some with as many elements, they stay. */
static gb_status make_row_statistics(const gb_naive_call *call, uint32_t i, int axis)
{
    const gb_logical_tensor *given = gb_op_output(call->op, i);
    int64_t expected = 1, count = 1;
    for (int d = 0; d < axis; d++)
        expected *= call->in[0].dims[d];
    for (int d = 0; d < given->ndims; d++)
        count = given->dims[d] < 0 ? -1 : count * given->dims[d];
    if (given->ndims >= 0 && count == expected)
        return gb_naive_make(call, i, given->ndims, given->dims);
    return gb_naive_make(call, i, axis, call->in[0].dims);
}

static const double *affine(const gb_naive_call *call, uint32_t i)
{
    bool used = gb_naive_flag(call->op, GB_ATTR_USE_AFFINE, true) && i < call->op->n_inputs;
    return used ? call->in[i].value : NULL;
}

gb_status gb_naive_layer_norm(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0];
    const double *gamma = affine(call, 1), *beta = affine(call, 2);
    int64_t length;
    int axis;
    GB_TRY(find_rows(call, &axis, &length));
    for (uint32_t i = 1; i < call->op->n_inputs; i++)
        if (call->in[i].count != length)
            return GB_NAIVE_REFUSE(call, "gamma or beta do not fit the rows");
    GB_TRY(gb_naive_make_like(call, 0, src));
    for (uint32_t i = 1; i < call->op->n_outputs; i++)
        GB_TRY(make_row_statistics(call, i, axis));
    for (int64_t row = 0; row < (length ? src->count / length : 0); row++) {
        const double *x = &src->value[row * length];
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < length; i++)
            mean += x[i];
        mean /= (double)length;
        for (int64_t i = 0; i < length; i++)
            variance += (x[i] - mean) * (x[i] - mean);
        variance /= (double)length;
        for (int64_t i = 0; i < length; i++)
            call->out[0].value[row * length + i] =
                    (x[i] - mean) / sqrt(variance + epsilon_of(call->op)) * (gamma ? gamma[i] : 1) +
                    (beta ? beta[i] : 0);
        if (call->op->n_outputs > 1)
            call->out[1].value[row] = mean;
        if (call->op->n_outputs > 2)
            call->out[2].value[row] = variance;
    }
    return GB_SUCCESS;
}

static gb_status make_layer_gradients(const gb_naive_call *call, int axis, int64_t length)
{
    const gb_naive_tensor *src = &call->in[0];
    bool fits = gb_naive_same_dims(src, &call->in[1]);
    int64_t rows = 1;
    for (int d = 0; d < axis; d++)
        rows *= src->dims[d];
    for (uint32_t i = 2; i < call->op->n_inputs; i++)
        fits = fits && call->in[i].count == (i < 4 ? rows : length);
    if (!fits)
        return GB_NAIVE_REFUSE(call, "an input does not fit src");
    GB_TRY(gb_naive_make_like(call, 0, src));
    for (uint32_t i = 1; i < call->op->n_outputs; i++)
        GB_TRY(call->op->n_inputs > 4
                        ? gb_naive_make_like(call, i, &call->in[4])
                        : gb_naive_make(call, i, src->ndims - axis, &src->dims[axis]));
    return GB_SUCCESS;
}

gb_status gb_naive_layer_norm_backward(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0];
    const double *gamma = affine(call, 4);
    int64_t length;
    int axis;
    GB_TRY(find_rows(call, &axis, &length));
    GB_TRY(make_layer_gradients(call, axis, length));
    for (int64_t row = 0; row < (length ? src->count / length : 0); row++) {
        const double *x = &src->value[row * length], *g = &call->in[1].value[row * length];
        double mean = call->in[2].value[row], average = 0, projection = 0;
        double rstd = 1 / sqrt(call->in[3].value[row] + epsilon_of(call->op));
        for (int64_t i = 0; i < length; i++) {
            double h = g[i] * (gamma ? gamma[i] : 1), xh = (x[i] - mean) * rstd;
            average += h;
            projection += h * xh;
            if (call->op->n_outputs > 1)
                call->out[1].value[i] += g[i] * xh;
            if (call->op->n_outputs > 2)
                call->out[2].value[i] += g[i];
        }
        for (int64_t i = 0; i < length; i++) {
            double h = g[i] * (gamma ? gamma[i] : 1), xh = (x[i] - mean) * rstd;
            call->out[0].value[row * length + i] =
                    (h - average / (double)length - xh * projection / (double)length) * rstd;
        }
    }
    return GB_SUCCESS;
}

gb_status gb_naive_group_norm(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0];
    const double *gamma = affine(call, 1), *beta = affine(call, 2);
    int64_t groups = gb_naive_int(call->op, GB_ATTR_GROUPS, 1);
    int axis;
    moments m;
    GB_TRY(norm_find_channels(call, 1, &axis));
    int64_t channels = src->dims[axis];
    if (groups < 1 || channels % groups != 0)
        return GB_NAIVE_REFUSE(call, "groups do not divide the channels");
    GB_TRY(gb_naive_make_like(call, 0, src));
    for (uint32_t i = 1; i < call->op->n_outputs; i++)
        GB_TRY(gb_naive_make(call, i, 2, (const int64_t[]){src->dims[0], groups}));
    gb_status status = create_moments(&m, src->dims[0] * groups, src->count);
    for (int64_t p = 0; status == GB_SUCCESS && p < src->count; p++)
        m.set[p] = gb_naive_along(src, 0, p) * groups +
                   gb_naive_along(src, axis, p) / (channels / groups);
    if (status == GB_SUCCESS)
        find_moments(&m, src);
    for (int64_t p = 0; status == GB_SUCCESS && p < src->count; p++) {
        int64_t s = m.set[p], c = gb_naive_along(src, axis, p);
        double x = (src->value[p] - m.mean[s]) / sqrt(m.variance[s] + epsilon_of(call->op));
        call->out[0].value[p] = x * (gamma ? gamma[c] : 1) + (beta ? beta[c] : 0);
    }
    for (int64_t s = 0; status == GB_SUCCESS && s < m.n; s++) {
        if (call->op->n_outputs > 1)
            call->out[1].value[s] = m.mean[s];
        if (call->op->n_outputs > 2)
            call->out[2].value[s] = m.variance[s];
    }
    free_moments(&m);
    return status;
}

gb_status gb_naive_rms_norm(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0];
    const double *gamma = call->op->n_inputs > 1 ? call->in[1].value : NULL;
    int64_t length;
    int axis;
    GB_TRY(find_rows(call, &axis, &length));
    if (gamma && call->in[1].count != length)
        return GB_NAIVE_REFUSE(call, "gamma does not fit the rows");
    GB_TRY(gb_naive_make_like(call, 0, src));
    for (int64_t row = 0; row < (length ? src->count / length : 0); row++) {
        const double *x = &src->value[row * length];
        double square = 0;
        for (int64_t i = 0; i < length; i++)
            square += x[i] * x[i];
        for (int64_t i = 0; i < length; i++)
            call->out->value[row * length + i] =
                    x[i] / sqrt(square / (double)length + epsilon_of(call->op)) *
                    (gamma ? gamma[i] : 1);
    }
    return GB_SUCCESS;
}

/* 3.7 Lines along an axis: element i of line (outer, inner) stands at
 * (outer * size + i) * spacing + inner. */
typedef struct lines {
    int axis;
    int64_t outer, size, spacing;
} lines;

static gb_status find_lines(const gb_naive_call *call, int64_t axis_if_absent, lines *l)
{
    const gb_naive_tensor *src = &call->in[0];
    l->axis = gb_naive_axis(gb_naive_int(call->op, GB_ATTR_AXIS, axis_if_absent), src->ndims);
    if (l->axis < 0)
        return GB_NAIVE_REFUSE(call, "axis is no axis of src");
    for (uint32_t i = 1; i < call->op->n_inputs; i++)
        if (!gb_naive_same_dims(src, &call->in[i]))
            return GB_NAIVE_REFUSE(call, "the inputs differ in shape");
    l->size = src->dims[l->axis];
    l->spacing = gb_naive_stride(src, l->axis);
    l->outer = 1;
    for (int d = 0; d < l->axis; d++)
        l->outer *= src->dims[d];
    return gb_naive_make_like(call, 0, src);
}

#define EACH_LINE(l, outer_, inner_)                                                               \
    for (int64_t outer_ = 0; outer_ < (l).outer; outer_++)                                         \
        for (int64_t inner_ = 0; inner_ < (l).spacing; inner_++)

/* Of one line: the maximum, and the sum of exp(x - maximum). */
static void sum_line(const lines *l, const double *x, bool inf_as_zero, double *max, double *sum)
{
    *max = inf_as_zero ? -(double)FLT_MAX : -(double)INFINITY;
    *sum = 0;
    for (int64_t i = 0; i < l->size; i++)
        *max = x[i * l->spacing] > *max ? x[i * l->spacing] : *max;
    for (int64_t i = 0; i < l->size; i++)
        *sum += exp(x[i * l->spacing] - *max);
}

gb_status gb_naive_softmax(const gb_naive_call *call)
{
    bool inf_as_zero = gb_naive_says(call->op, GB_ATTR_MODE, "none", "inf_as_zero");
    bool has_stats = call->op->n_outputs > 1;
    int64_t dims[GB_MAX_NDIMS];
    lines l;
    GB_TRY(find_lines(call, 1, &l));
    for (int d = 0; d < call->in[0].ndims; d++)
        dims[d] = d == l.axis ? 1 : call->in[0].dims[d];
    if (has_stats)
        GB_TRY(gb_naive_make(call, 1, call->in[0].ndims, dims));
    EACH_LINE(l, outer, inner)
    {
        int64_t first = outer * l.size * l.spacing + inner;
        const double *x = call->in[0].value + first;
        double *y = call->out[0].value + first, max, sum;
        sum_line(&l, x, inf_as_zero, &max, &sum);
        bool nothing = inf_as_zero && sum == 0;
        for (int64_t i = 0; i < l.size; i++)
            y[i * l.spacing] = nothing ? 0 : exp(x[i * l.spacing] - max) / sum;
        if (has_stats)
            call->out[1].value[outer * l.spacing + inner] = nothing ? 0 : max + log(sum);
    }
    return GB_SUCCESS;
}

gb_status gb_naive_log_softmax(const gb_naive_call *call)
{
    lines l;
    GB_TRY(find_lines(call, -1, &l));
    EACH_LINE(l, outer, inner)
    {
        int64_t first = outer * l.size * l.spacing + inner;
        const double *x = call->in[0].value + first;
        double *y = call->out[0].value + first, max, sum;
        sum_line(&l, x, false, &max, &sum);
        for (int64_t i = 0; i < l.size; i++)
            y[i * l.spacing] = x[i * l.spacing] - max - log(sum);
    }
    return GB_SUCCESS;
}

/* Inputs: diff_dst, dst. */
gb_status gb_naive_softmax_backward(const gb_naive_call *call)
{
    lines l;
    GB_TRY(find_lines(call, 1, &l));
    EACH_LINE(l, outer, inner)
    {
        int64_t first = outer * l.size * l.spacing + inner;
        const double *g = call->in[0].value + first, *y = call->in[1].value + first;
        double sum = 0;
        for (int64_t i = 0; i < l.size; i++)
            sum += g[i * l.spacing] * y[i * l.spacing];
        for (int64_t i = 0; i < l.size; i++)
            call->out->value[first + i * l.spacing] = y[i * l.spacing] * (g[i * l.spacing] - sum);
    }
    return GB_SUCCESS;
}

gb_status gb_naive_log_softmax_backward(const gb_naive_call *call)
{
    lines l;
    GB_TRY(find_lines(call, -1, &l));
    EACH_LINE(l, outer, inner)
    {
        int64_t first = outer * l.size * l.spacing + inner;
        const double *g = call->in[0].value + first, *y = call->in[1].value + first;
        double sum = 0;
        for (int64_t i = 0; i < l.size; i++)
            sum += g[i * l.spacing];
        for (int64_t i = 0; i < l.size; i++)
            call->out->value[first + i * l.spacing] =
                    g[i * l.spacing] - exp(y[i * l.spacing]) * sum;
    }
    return GB_SUCCESS;
}
