/* The gradients of element-wise ops: diff_dst times the derivative, which is one row per op and
 * form (of src or of dst). */
#include "base/status.h"
#include "ref/bounds/bound.h"
#include "ref/bounds/walk.h"
#include "ref/ops/ref_functions.h"

typedef struct derivative_parameters {
    double alpha, beta, min, max;
} derivative_parameters;

enum { MAX_POINTS = 4 };

/* `steps`: absolute error of the derivative in f32 at exact x. `blur`: how far the f32 form of the
 * decision that selects a branch may be off, as a distance in x. `points`: extrema, and both sides
 * of jumps. */
typedef struct derivative_rule {
    double (*value)(const void *parameters, double x);
    double (*steps)(const derivative_parameters *p, double x, double d);
    double (*blur)(const derivative_parameters *p, double x);
    double points[MAX_POINTS];
    int n_points;
    double lowest;
    bool selects; /* branches of 0 ignore diff_dst, even an infinite one ... */
    /* ... but here diff_dst is multiplied, also by a derivative that happens to be 0; NULL: nowhere
     * where it is 0 */
    bool (*multiplies)(const derivative_parameters *p, double x);
} derivative_rule;

/* Error of an f32 tanh: 4 ulp, and 1 - |t| where it saturates. */
static double tanh_error(double argument, double t)
{
    double size = fabs(argument);
    return size < 10 ? fmin(GB_REF_TRANSCENDENTAL * fabs(t), 4 * GB_REF_U) : 2 * exp(-2 * size);
}

static double logistic(double t)
{
    return 1 / (1 + exp(-t));
}

static double logistic_error(double s)
{
    return (GB_REF_TRANSCENDENTAL * (1 - s) + 3 * GB_REF_U) * s;
}

static double abs_of_src(const void *parameters, double x)
{
    (void)parameters;
    return (x > 0) - (x < 0);
}

static double clamp_of_either(const void *parameters, double x)
{
    const derivative_parameters *p = parameters;
    return p->min < x && x < p->max;
}

static double elu_of_src(const void *parameters, double x)
{
    const derivative_parameters *p = parameters;
    return x > 0 ? 1 : p->alpha * exp(x);
}

static double elu_of_src_steps(const derivative_parameters *p, double x, double d)
{
    /* e^x may be flushed before alpha makes it large. */
    double flushed = fabs(p->alpha) * GB_REF_ETA;
    return x > 0 ? 0 : (GB_REF_TRANSCENDENTAL + GB_REF_U) * fabs(d) + flushed;
}

static double elu_of_dst(const void *parameters, double y)
{
    const derivative_parameters *p = parameters;
    return y > 0 ? 1 : y + p->alpha;
}

static double elu_of_dst_steps(const derivative_parameters *p, double y, double d)
{
    (void)d;
    return y > 0 ? 0 : gb_ref_round(gb_ref_exact(y + p->alpha)).e;
}

static double gelu_erf_of_src(const void *parameters, double x)
{
    (void)parameters;
    double v = x * M_SQRT1_2;
    return 0.5 * erfc(-v) + 0.5 * M_2_SQRTPI * v * exp(-v * v);
}

static double gelu_erf_of_src_steps(const derivative_parameters *p, double x, double d)
{
    (void)p;
    double v = x * M_SQRT1_2, bell = 0.5 * M_2_SQRTPI * fabs(v) * exp(-v * v);
    double sum = 2 * GB_REF_U * (1 + fabs(erf(v)));
    return sum + bell * (GB_REF_TRANSCENDENTAL + GB_REF_U * (6 + 3 * v * v)) +
           2 * GB_REF_U * fabs(d);
}

static double gelu_tanh_of_src(const void *parameters, double x)
{
    (void)parameters;
    double w = 0.79788456080286535588 * x * (1 + 0.044715 * x * x);
    double slope = 0.79788456080286535588 * (1 + 0.134145 * x * x);
    double low = 1 / (1 + exp(-2 * w)), high = 1 / (1 + exp(2 * w)); /* (1 + t) / 2, (1 - t) / 2 */
    double bend = high > 0 && low > 0 ? x * 2 * high * slope : 0;
    return low * (1 + bend);
}

static double gelu_tanh_of_src_steps(const derivative_parameters *p, double x, double d)
{
    (void)p;
    double w = 0.79788456080286535588 * x * (1 + 0.044715 * x * x), t = tanh(w);
    double slope = 0.79788456080286535588 * (1 + 0.134145 * x * x);
    double e_t = tanh_error(w, t), u = GB_REF_U;
    if (fabs(w) < 20)
        e_t += (1 - t) * (1 + t) * 6 * u * fabs(w);
    double low = 0.5 * (1 + t), e_low = 0.5 * e_t + u * low;
    double factor = fabs(x) * slope, bend = factor * (1 - t);
    double e_bend = factor * (e_t + u * (1 - t)) + 6 * u * bend;
    if (!isfinite(bend))
        return 0;
    double high = fabs(1 + copysign(bend, x));
    return low * (e_bend + u * high) + high * e_low + 2 * u * fabs(d);
}

static double hard_sigmoid_of_src(const void *parameters, double x)
{
    const derivative_parameters *p = parameters;
    double w = p->alpha * x + p->beta;
    return 0 < w && w < 1 ? p->alpha : 0;
}

static bool hard_sigmoid_multiplies(const derivative_parameters *p, double x)
{
    double w = p->alpha * x + p->beta;
    return 0 < w && w < 1;
}

static double hard_sigmoid_blur(const derivative_parameters *p, double x)
{
    gb_ref_pair product = gb_ref_round(gb_ref_exact(p->alpha * x));
    gb_ref_pair w = gb_ref_round(gb_ref_add(product, gb_ref_exact(p->beta)));
    return p->alpha == 0 ? 0 : w.e / fabs(p->alpha);
}

static double hard_swish_of_src(const void *parameters, double x)
{
    (void)parameters;
    if (isnan(x))
        return x;
    return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
}

static bool hard_swish_multiplies(const derivative_parameters *p, double x)
{
    (void)p;
    return -3 < x && x < 3;
}

static double hard_swish_of_src_steps(const derivative_parameters *p, double x, double d)
{
    (void)p;
    return x <= -3 || x >= 3 ? 0 : GB_REF_U * (2 * fabs(x) / 3 + fabs(d));
}

/* x / 6 + 1/2 against 0 and 1. */
static double hard_swish_blur(const derivative_parameters *p, double x)
{
    (void)p;
    return fabs(fabs(x) - 3) < 1e-5 ? 6 * GB_REF_U * (fabs(x) / 3 + fabs(x / 6 + 0.5)) : 0;
}

static double log1p_exp(double t)
{
    return fmax(t, 0) + log1p(exp(-fabs(t)));
}

static double mish_of_src(const void *parameters, double x)
{
    (void)parameters;
    double t = tanh(log1p_exp(x)), s = logistic(x), rest = (1 - t) * (1 + t);
    return t + (s * rest == 0 ? 0 : x * s * rest);
}

static double mish_of_src_steps(const derivative_parameters *p, double x, double d)
{
    (void)p;
    double u = GB_REF_U, s = logistic(x), plus = log1p_exp(x);
    if (!isfinite(x))
        return 0;
    double t = tanh(plus), rest = (1 - t) * (1 + t);
    double e_plus = GB_REF_TRANSCENDENTAL * plus + u + (GB_REF_TRANSCENDENTAL + u) * s;
    double e_t = rest * e_plus + tanh_error(plus, t);
    double e_rest = 2 * t * e_t + 3 * u * rest;
    return e_t + fabs(x) * (s * e_rest + rest * logistic_error(s) + 2 * u * s * rest) + u * fabs(d);
}

static double relu_of_either(const void *parameters, double x)
{
    (void)parameters;
    return x > 0;
}

static double sigmoid_of_src(const void *parameters, double x)
{
    (void)parameters;
    return logistic(x) * logistic(-x);
}

static double sigmoid_of_src_steps(const derivative_parameters *p, double x, double d)
{
    (void)p;
    double s = logistic(x), rest = logistic(-x), e = logistic_error(s);
    return e * rest + s * (e + GB_REF_U * rest) + GB_REF_U * d;
}

static double sigmoid_of_dst(const void *parameters, double y)
{
    (void)parameters;
    return y * (1 - y);
}

static double two_roundings(const derivative_parameters *p, double x, double d)
{
    (void)p, (void)x;
    return 2 * GB_REF_U * fabs(d);
}

static double one_rounding(const derivative_parameters *p, double x, double d)
{
    (void)p, (void)x;
    return GB_REF_U * fabs(d);
}

static double softplus_of_src(const void *parameters, double x)
{
    const derivative_parameters *p = parameters;
    return logistic(p->beta * x);
}

static double softplus_of_src_steps(const derivative_parameters *p, double x, double d)
{
    double t = fabs(p->beta * x);
    double argument = p->beta == 1 || d == 0 ? 0 : GB_REF_U * t * logistic(-t);
    return logistic_error(d) + (isnan(argument) ? 0 : argument);
}

static double sqrt_of_src(const void *parameters, double x)
{
    (void)parameters;
    return 0.5 / sqrt(x);
}

static double sqrt_of_dst(const void *parameters, double y)
{
    (void)parameters;
    return 0.5 / y;
}

static double tanh_of_src(const void *parameters, double x)
{
    (void)parameters;
    double t = tanh(x);
    return (1 - t) * (1 + t);
}

static double tanh_of_src_steps(const derivative_parameters *p, double x, double d)
{
    (void)p;
    double t = tanh(x);
    return 2 * fabs(t) * tanh_error(x, t) + GB_REF_U * (3 * d + t * t);
}

static double tanh_of_dst(const void *parameters, double y)
{
    (void)parameters;
    return (1 - y) * (1 + y);
}

static double tanh_of_dst_steps(const derivative_parameters *p, double y, double d)
{
    (void)p;
    return GB_REF_U * (3 * fabs(d) + y * y); /* 1 - y y, or (1 - y) (1 + y) */
}

#define ABOVE_ZERO        0x1p-1022
#define ABOVE_MINUS_THREE (-0x1.7ffffffffffffp+1)
#define BELOW_THREE       0x1.7ffffffffffffp+1

static const derivative_rule of_src[GB_OP_LAST] = {
        [GB_OP_ABS_BACKWARD] = {abs_of_src, NULL, NULL, {0}, 1, -INFINITY, true, NULL},
        [GB_OP_CLAMP_BACKWARD] = {clamp_of_either, NULL, NULL, {0}, 1, -INFINITY, true, NULL},
        [GB_OP_ELU_BACKWARD] = {elu_of_src, elu_of_src_steps, NULL, {0, ABOVE_ZERO}, 2, -INFINITY,
                false, NULL},
        [GB_OP_GELU_BACKWARD] = {gelu_erf_of_src, gelu_erf_of_src_steps, NULL, {-M_SQRT2, M_SQRT2},
                2, -INFINITY, false, NULL},
        [GB_OP_HARD_SIGMOID_BACKWARD] = {hard_sigmoid_of_src, NULL, hard_sigmoid_blur, {0}, 1,
                -INFINITY, true, hard_sigmoid_multiplies},
        [GB_OP_HARD_SWISH_BACKWARD] = {hard_swish_of_src, hard_swish_of_src_steps, hard_swish_blur,
                {-3, ABOVE_MINUS_THREE, BELOW_THREE, 3}, 4, -INFINITY, true, hard_swish_multiplies},
        [GB_OP_MISH_BACKWARD] = {mish_of_src, mish_of_src_steps, NULL,
                {-2.2563763963608016, 1.4905711794854302}, 2, -INFINITY, false, NULL},
        [GB_OP_RELU_BACKWARD] = {relu_of_either, NULL, NULL, {0}, 0, -INFINITY, true, NULL},
        [GB_OP_SIGMOID_BACKWARD] = {sigmoid_of_src, sigmoid_of_src_steps, NULL, {0}, 1, -INFINITY,
                false, NULL},
        [GB_OP_SOFTPLUS_BACKWARD] = {softplus_of_src, softplus_of_src_steps, NULL, {0}, 0,
                -INFINITY, false, NULL},
        [GB_OP_SQRT_BACKWARD] = {sqrt_of_src, two_roundings, NULL, {0}, 0, 0, false, NULL},
        [GB_OP_TANH_BACKWARD] = {tanh_of_src, tanh_of_src_steps, NULL, {0}, 1, -INFINITY, false,
                NULL},
};

static const derivative_rule of_dst[GB_OP_LAST] = {
        [GB_OP_CLAMP_BACKWARD] = {clamp_of_either, NULL, NULL, {0}, 1, -INFINITY, true, NULL},
        [GB_OP_ELU_BACKWARD] = {elu_of_dst, elu_of_dst_steps, NULL, {0, ABOVE_ZERO}, 2, -INFINITY,
                false, NULL},
        [GB_OP_RELU_BACKWARD] = {relu_of_either, NULL, NULL, {0}, 0, -INFINITY, true, NULL},
        [GB_OP_SIGMOID_BACKWARD] = {sigmoid_of_dst, two_roundings, NULL, {0.5}, 1, -INFINITY, false,
                NULL},
        [GB_OP_SQRT_BACKWARD] = {sqrt_of_dst, one_rounding, NULL, {0}, 1, -INFINITY, false, NULL},
        [GB_OP_TANH_BACKWARD] = {tanh_of_dst, tanh_of_dst_steps, NULL, {0}, 1, -INFINITY, false,
                NULL},
};

static const derivative_rule gelu_tanh_rule = {gelu_tanh_of_src, gelu_tanh_of_src_steps, NULL,
        {-1.4185040087908284, 1.4185040087908284}, 2, -INFINITY, false, NULL};

typedef struct backward_job {
    derivative_rule rule;
    derivative_parameters parameters;
    const gb_ref_tensor *data, *diff_dst;
    gb_ref_tensor *diff_src;
} backward_job;

static gb_ref_pair derivative(const backward_job *job, gb_ref_pair x)
{
    const derivative_rule *rule = &job->rule;
    const derivative_parameters *p = &job->parameters;
    if (rule->blur)
        x = gb_ref_widen(x, rule->blur(p, x.v));
    gb_ref_pair d = gb_ref_interval(rule->value, p, x, rule->points, rule->n_points, rule->lowest);
    if (!rule->steps)
        return d;
    /* A step that leaves the normal numbers may be flushed before diff_dst scales it up. So may this
     * value be: 0 is exact, and of a known sign, in branches of 0 only. */
    bool exact = d.v == 0 && rule->selects;
    double flushed = !exact && fabs(d.v) < 16 * GB_REF_ETA ? 16 * GB_REF_ETA : 0;
    return gb_ref_widen(d, rule->steps(p, x.v, d.v) + flushed);
}

static void backward_row(void *context, const gb_ref_row *row)
{
    const backward_job *job = context;
    for (int64_t i = row->first; i < row->first + row->count; i++) {
        gb_ref_pair x = gb_ref_get(job->data, i), g = gb_ref_get(job->diff_dst, i);
        gb_ref_pair d = derivative(job, x);
        gb_ref_pair y = gb_ref_mul(g, d);
        bool multiplies = job->rule.multiplies && job->rule.multiplies(&job->parameters, x.v);
        if (job->rule.selects && d.v == 0 && !multiplies)
            y = (gb_ref_pair){0, d.e == 0 ? 0 : y.e};
        /* What may be a branch of 0, as that of a subnormal number, may lose NaN and infinity. */
        if (job->rule.selects && !isfinite(g.v) && d.e > 0 && fabs(d.v) <= d.e)
            y.e = INFINITY;
        /* A NaN compares false, or true when the test is written the other way round. */
        if (isnan(x.v) && job->rule.selects)
            y.e = INFINITY;
        /* Infinity times zero inside the formula; other formulas have the limit. */
        if (isinf(x.v) && isnan(y.v))
            y.e = INFINITY;
        /* Which zero it is shows in a quotient. */
        if (y.v == 0 && d.e > 0 && fabs(d.v) <= d.e)
            y.e = fmax(y.e, GB_REF_ETA);
        gb_ref_put(job->diff_src, i, y);
    }
}

/* The points that depend on attributes: somewhere inside the open interval where the derivative is
 * not 0. */
static void place_points(backward_job *job, gb_op_kind kind)
{
    const derivative_parameters *p = &job->parameters;
    if (kind == GB_OP_CLAMP_BACKWARD)
        job->rule.points[0] = p->min / 2 + p->max / 2;
    if (kind == GB_OP_HARD_SIGMOID_BACKWARD)
        job->rule.points[0] = p->alpha == 0 ? 0 : (0.5 - p->beta) / p->alpha;
}

gb_status gb_ref_unary_backward(const gb_ref_call *call)
{
    const gb_op *op = call->op;
    backward_job job = {
            .parameters = {.alpha = (double)gb_op_attr_f32(op, GB_ATTR_ALPHA, 0),
                    .beta = (double)gb_op_attr_f32(op, GB_ATTR_BETA, 1),
                    .min = (double)gb_op_attr_f32(op, GB_ATTR_MIN, 0),
                    .max = (double)gb_op_attr_f32(op, GB_ATTR_MAX, 0)},
            .data = call->inputs[0],
            .diff_dst = call->inputs[1],
            .diff_src = &call->outputs[0],
    };
    bool use_dst = of_dst[op->kind].value && gb_op_attr_bool(op, GB_ATTR_USE_DST, true);
    job.rule = use_dst ? of_dst[op->kind] : of_src[op->kind];
    if (op->kind == GB_OP_GELU_BACKWARD && gb_op_attr_is(op, GB_ATTR_MODE, "gelu_tanh", false))
        job.rule = gelu_tanh_rule;
    if (job.data->count != job.diff_src->count || job.diff_dst->count != job.diff_src->count)
        return gb_fail(GB_INVALID_SHAPE, "%s: inputs and output differ in size", gb_op_label(op));
    place_points(&job, op->kind);
    gb_ref_walk_flat(job.diff_src->count, backward_row, &job);
    return GB_SUCCESS;
}
