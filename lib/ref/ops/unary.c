/* The element-wise ops of one input: one row per op gives the function, where it turns, and the
 * error of its steps. */
#include "base/status.h"
#include "ref/bounds/bound.h"
#include "ref/bounds/walk.h"
#include "ref/ops/ref_functions.h"

typedef struct unary_parameters {
    double alpha, beta, min, max;
} unary_parameters;

/* `steps`: absolute error of an f32 evaluation at exact x with result y, the last rounding left
 * out; NULL = 0. `points`: extrema of the function. `lowest`: edge of its domain. */
typedef struct unary_rule {
    double (*value)(const void *parameters, double x);
    double (*steps)(const unary_parameters *p, double x, double y);
    double points[1];
    int n_points;
    double lowest;
} unary_rule;

static double absolute(const void *parameters, double x)
{
    (void)parameters;
    return fabs(x);
}

static double clamp(const void *parameters, double x)
{
    const unary_parameters *p = parameters;
    return isnan(x) ? x : fmin(fmax(x, p->min), p->max);
}

static double elu(const void *parameters, double x)
{
    const unary_parameters *p = parameters;
    return x > 0 ? x : p->alpha * expm1(x);
}

static double elu_steps(const unary_parameters *p, double x, double y)
{
    if (x > 0)
        return 0;
    return fabs(p->alpha) * GB_REF_TRANSCENDENTAL * exp(x) +
           2 * GB_REF_U * fabs(y); /* exp(x) - 1 */
}

static double exponential(const void *parameters, double x)
{
    (void)parameters;
    return exp(x);
}

static double transcendental_steps(const unary_parameters *p, double x, double y)
{
    (void)p, (void)x;
    return GB_REF_TRANSCENDENTAL * fabs(y);
}

static double gelu_erf(const void *parameters, double x)
{
    (void)parameters;
    return 0.5 * x * erfc(-x * M_SQRT1_2);
}

/* 1 + erf(v) cancels for negative v: the error is relative to 1. */
static double gelu_erf_steps(const unary_parameters *p, double x, double y)
{
    (void)p;
    double v = x * M_SQRT1_2, bend = fabs(v) * M_2_SQRTPI * exp(-v * v);
    double inner = 4 * GB_REF_U * (1 + fabs(erf(v))) + 2 * GB_REF_U * bend;
    return 0.5 * fabs(x) * inner + 2 * GB_REF_U * fabs(y);
}

static double gelu_argument(double x)
{
    return 0.79788456080286535588 * x * (1 + 0.044715 * x * x); /* sqrt(2 / pi) */
}

static double gelu_tanh(const void *parameters, double x)
{
    (void)parameters;
    return x / (1 + exp(-2 * gelu_argument(x))); /* x/2 (1 + tanh w) without cancellation */
}

static double gelu_tanh_steps(const unary_parameters *p, double x, double y)
{
    (void)p;
    double w = gelu_argument(x), t = tanh(w), slope = (1 - t) * (1 + t);
    double inner = 4 * GB_REF_U * (1 + fabs(t));
    if (slope > 0)
        inner += 6 * GB_REF_U * fabs(w) * slope;
    return 0.5 * fabs(x) * inner + 2 * GB_REF_U * fabs(y);
}

static double hard_sigmoid(const void *parameters, double x)
{
    const unary_parameters *p = parameters;
    double w = p->alpha * x + p->beta;
    return isnan(w) ? w : fmin(fmax(w, 0), 1);
}

static double hard_sigmoid_steps(const unary_parameters *p, double x, double y)
{
    (void)y;
    gb_ref_pair product = gb_ref_round(gb_ref_exact(p->alpha * x));
    gb_ref_pair w = gb_ref_round(gb_ref_add(product, gb_ref_exact(p->beta)));
    return w.v < -w.e || w.v > 1 + w.e ? 0 : product.e;
}

static double hard_swish(const void *parameters, double x)
{
    (void)parameters;
    return x * fmin(fmax(x + 3, 0), 6) / 6;
}

static double hard_swish_steps(const unary_parameters *p, double x, double y)
{
    (void)p;
    if (x <= -3)
        return x > -3.000001 ? GB_REF_U * x * x : 0;
    return GB_REF_U * fmin(x * x, 9) + 3 * GB_REF_U * fabs(y);
}

static double leaky_relu(const void *parameters, double x)
{
    const unary_parameters *p = parameters;
    return x > 0 ? x : p->alpha * x;
}

static double logarithm(const void *parameters, double x)
{
    (void)parameters;
    return log(x);
}

static double log1p_exp(double t)
{
    return fmax(t, 0) + log1p(exp(-fabs(t)));
}

static double logistic(double t)
{
    return 1 / (1 + exp(-t));
}

/* Of ln(1 + e^t): the sum is rounded relative to 1. */
static double log1p_exp_steps(double t, double y)
{
    return GB_REF_TRANSCENDENTAL * y + GB_REF_U + (GB_REF_TRANSCENDENTAL + GB_REF_U) * logistic(t);
}

static double mish(const void *parameters, double x)
{
    (void)parameters;
    return x * tanh(log1p_exp(x));
}

static double mish_steps(const unary_parameters *p, double x, double y)
{
    (void)p;
    double s = log1p_exp(x), t = tanh(s), slope = (1 - t) * (1 + t);
    if (!isfinite(x))
        return 0;
    return fabs(x) * slope * log1p_exp_steps(x, s) + (GB_REF_TRANSCENDENTAL + GB_REF_U) * fabs(y);
}

static double power(const void *parameters, double x)
{
    const unary_parameters *p = parameters;
    return pow(x, p->beta);
}

/* e^(beta ln x), unless the exponent is 0 or 1. */
static double power_steps(const unary_parameters *p, double x, double y)
{
    if (x == 0 || y == 0 || p->beta == 0 || p->beta == 1)
        return 0;
    double exponent = fabs(p->beta * log(fabs(x)));
    return (GB_REF_TRANSCENDENTAL + (GB_REF_TRANSCENDENTAL + GB_REF_U) * exponent) * fabs(y);
}

static double reciprocal(const void *parameters, double x)
{
    (void)parameters;
    return 1 / x;
}

static double relu(const void *parameters, double x)
{
    (void)parameters;
    return x > 0 || isnan(x) ? x : 0;
}

static double round_half_even(const void *parameters, double x)
{
    (void)parameters;
    return nearbyint(x);
}

static double sigmoid(const void *parameters, double x)
{
    (void)parameters;
    return logistic(x);
}

static double sigmoid_steps(const unary_parameters *p, double x, double y)
{
    (void)p, (void)x;
    return (GB_REF_TRANSCENDENTAL * (1 - y) + 3 * GB_REF_U) * y;
}

static double softplus(const void *parameters, double x)
{
    const unary_parameters *p = parameters;
    return log1p_exp(p->beta * x) / p->beta;
}

static double softplus_steps(const unary_parameters *p, double x, double y)
{
    double t = p->beta * x, s = p->beta * y;
    if (!isfinite(t))
        return 0;
    if (fabs(t) >= gb_ref_f32_sums.limit) /* beta x overflows in f32 */
        return GB_REF_INFINITY;
    double argument = p->beta == 1 ? 0 : GB_REF_U * fabs(t) * logistic(t);
    return (log1p_exp_steps(t, s) + argument) / fabs(p->beta) + GB_REF_U * fabs(y);
}

static double square_root(const void *parameters, double x)
{
    (void)parameters;
    return sqrt(x);
}

static double square(const void *parameters, double x)
{
    (void)parameters;
    return x * x;
}

static double hyperbolic_tangent(const void *parameters, double x)
{
    (void)parameters;
    return tanh(x);
}

static const unary_rule gelu_tanh_rule = {
        gelu_tanh, gelu_tanh_steps, {-0.7524614220710163}, 1, -INFINITY};

static const unary_rule rules[GB_OP_LAST] = {
        [GB_OP_ABS] = {absolute, NULL, {0}, 1, -INFINITY},
        [GB_OP_CLAMP] = {clamp, NULL, {0}, 0, -INFINITY},
        [GB_OP_ELU] = {elu, elu_steps, {0}, 1, -INFINITY},
        [GB_OP_EXP] = {exponential, transcendental_steps, {0}, 0, -INFINITY},
        [GB_OP_GELU] = {gelu_erf, gelu_erf_steps, {-0.7517915246935646}, 1, -INFINITY},
        [GB_OP_HARD_SIGMOID] = {hard_sigmoid, hard_sigmoid_steps, {0}, 0, -INFINITY},
        [GB_OP_HARD_SWISH] = {hard_swish, hard_swish_steps, {-1.5}, 1, -INFINITY},
        [GB_OP_LEAKY_RELU] = {leaky_relu, NULL, {0}, 1, -INFINITY},
        [GB_OP_LOG] = {logarithm, transcendental_steps, {0}, 0, 0},
        [GB_OP_MISH] = {mish, mish_steps, {-1.1924312145154955}, 1, -INFINITY},
        [GB_OP_POW] = {power, power_steps, {0}, 1, -INFINITY},
        [GB_OP_RECIPROCAL] = {reciprocal, NULL, {0}, 1, -INFINITY},
        [GB_OP_RELU] = {relu, NULL, {0}, 0, -INFINITY},
        [GB_OP_ROUND] = {round_half_even, NULL, {0}, 0, -INFINITY},
        [GB_OP_SIGMOID] = {sigmoid, sigmoid_steps, {0}, 0, -INFINITY},
        [GB_OP_SOFTPLUS] = {softplus, softplus_steps, {0}, 0, -INFINITY},
        [GB_OP_SQRT] = {square_root, NULL, {0}, 0, 0},
        [GB_OP_SQUARE] = {square, NULL, {0}, 1, -INFINITY},
        [GB_OP_TANH] = {hyperbolic_tangent, transcendental_steps, {0}, 0, -INFINITY},
};

typedef struct unary_job {
    unary_rule rule;
    unary_parameters parameters;
    bool loses_nan; /* min and max instructions may drop a NaN, and the sign of a zero */
    const gb_ref_tensor *src;
    gb_ref_tensor *dst;
} unary_job;

static void unary_row(void *context, const gb_ref_row *row)
{
    const unary_job *job = context;
    const unary_rule *rule = &job->rule;
    for (int64_t i = row->first; i < row->first + row->count; i++) {
        gb_ref_pair x = gb_ref_get(job->src, i);
        gb_ref_pair y = gb_ref_interval(
                rule->value, &job->parameters, x, rule->points, rule->n_points, rule->lowest);
        if (rule->steps)
            y = gb_ref_widen(y, rule->steps(&job->parameters, x.v, y.v));
        /* Infinity times zero inside the formula; other formulas have the limit. */
        if (isnan(y.v) && (isinf(x.v) || job->loses_nan))
            y.e = INFINITY;
        /* Which zero it is shows in a quotient only; subnormal numbers may be read as one. */
        if (job->loses_nan && signbit(x.v) && fabs(x.v) < GB_REF_ETA && y.v == 0)
            y.e = fmax(y.e, GB_REF_ETA);
        gb_ref_put(job->dst, i, gb_ref_settle(y));
    }
}

static unary_parameters get_parameters(const gb_op *op)
{
    return (unary_parameters){
            .alpha = (double)gb_op_attr_f32(op, GB_ATTR_ALPHA, 0),
            .beta = (double)gb_op_attr_f32(op, GB_ATTR_BETA, 1),
            .min = (double)gb_op_attr_f32(op, GB_ATTR_MIN, 0),
            .max = (double)gb_op_attr_f32(op, GB_ATTR_MAX, 0),
    };
}

gb_status gb_ref_unary(const gb_ref_call *call)
{
    const gb_op *op = call->op;
    unary_job job = {
            .rule = rules[op->kind], .parameters = get_parameters(op), .src = call->inputs[0]};
    if (op->kind == GB_OP_GELU && gb_op_attr_is(op, GB_ATTR_MODE, "gelu_tanh", false))
        job.rule = gelu_tanh_rule;
    if (op->kind == GB_OP_POW && job.parameters.beta != nearbyint(job.parameters.beta))
        job.rule.lowest = 0;
    if (op->kind == GB_OP_CLAMP && job.parameters.max < job.parameters.min)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: max is below min", gb_op_label(op));
    job.loses_nan = op->kind == GB_OP_RELU || op->kind == GB_OP_CLAMP ||
                    op->kind == GB_OP_HARD_SIGMOID || op->kind == GB_OP_HARD_SWISH;
    job.dst = &call->outputs[0];
    gb_ref_walk_flat(job.dst->count, unary_row, &job);
    return GB_SUCCESS;
}
