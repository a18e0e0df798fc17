/* Ops of one or two inputs, element by element: op set 3.1, 3.2, 3.3. */
#include "ref/naive/naive_op.h"

#include <math.h>

/* 3.1 Unary. GELU: (1 + tanh u) / 2 is sigmoid(2 u), and 1 + erf(u) is erfc(-u); these do not cancel. */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double softplus(double x, double beta)
{
    return beta * x >= 88.7228 ? x : log1p(exp(beta * x)) / beta;
}

static double unary(const gb_op *op, double x)
{
    const double alpha = gb_naive_real(op, GB_ATTR_ALPHA, 0);
    const double beta = gb_naive_real(op, GB_ATTR_BETA, 1);
    const double min = gb_naive_real(op, GB_ATTR_MIN, 0), max = gb_naive_real(op, GB_ATTR_MAX, 0);
    switch (op->kind) {
    case GB_OP_ABS:
        return fabs(x);
    case GB_OP_CLAMP:
        return fmin(fmax(x, min), max);
    case GB_OP_ELU:
        return x > 0 ? x : alpha * expm1(x);
    case GB_OP_EXP:
        return exp(x);
    case GB_OP_GELU:
        if (gb_naive_says(op, GB_ATTR_MODE, "gelu_erf", "gelu_tanh"))
            return x * sigmoid(2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
        return x / 2 * erfc(-x / sqrt(2));
    case GB_OP_HARD_SIGMOID:
        return fmin(fmax(alpha * x + beta, 0), 1);
    case GB_OP_HARD_SWISH:
        return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case GB_OP_LEAKY_RELU:
        return x > 0 ? x : alpha * x;
    case GB_OP_LOG:
        return log(x);
    case GB_OP_MISH:
        return x * tanh(softplus(x, 1));
    case GB_OP_POW:
        return pow(x, beta);
    case GB_OP_RECIPROCAL:
        return 1 / x;
    case GB_OP_RELU:
        return x > 0 ? x : 0;
    case GB_OP_ROUND:
        return nearbyint(x);
    case GB_OP_SIGMOID:
        return sigmoid(x);
    case GB_OP_SOFTPLUS:
        return softplus(x, beta);
    case GB_OP_SQRT:
        return sqrt(x);
    case GB_OP_SQUARE:
        return x * x;
    case GB_OP_TANH:
        return tanh(x);
    default:
        return (double)NAN;
    }
}

gb_status gb_naive_unary(const gb_naive_call *call)
{
    GB_TRY(gb_naive_make_like(call, 0, &call->in[0]));
    for (int64_t p = 0; p < call->out->count; p++)
        call->out->value[p] = unary(call->op, call->in[0].value[p]);
    return GB_SUCCESS;
}

/* 3.2 Gradients: x is src, or dst where the op says use_dst; g is diff_dst. The formulas of GELU
 * and Mish hold infinity times 0 for an infinite x; there the limit counts. */

static double gelu_gradient(const gb_op *op, double x, double g)
{
    if (isinf(x))
        return x > 0 ? g : g * 0;
    if (gb_naive_says(op, GB_ATTR_MODE, "gelu_erf", "gelu_tanh")) {
        double root = sqrt(2 / M_PI), u = root * x * (1 + 0.044715 * x * x);
        double du = root * (1 + 0.134145 * x * x);
        return g * sigmoid(2 * u) * (1 + 2 * x * sigmoid(-2 * u) * du);
    }
    double v = x / sqrt(2);
    return g / 2 * (erfc(-v) + v * 2 / sqrt(M_PI) * exp(-v * v));
}

static double unary_backward(const gb_op *op, double x, double g)
{
    const double alpha = gb_naive_real(op, GB_ATTR_ALPHA, 0);
    const double beta = gb_naive_real(op, GB_ATTR_BETA, 1);
    const double min = gb_naive_real(op, GB_ATTR_MIN, 0), max = gb_naive_real(op, GB_ATTR_MAX, 0);
    const bool use_dst = gb_naive_flag(op, GB_ATTR_USE_DST, true);
    double y;
    switch (op->kind) {
    case GB_OP_ABS_BACKWARD:
        return x > 0 ? g : x < 0 ? -g : 0;
    case GB_OP_CLAMP_BACKWARD:
        return min < x && x < max ? g : 0;
    case GB_OP_ELU_BACKWARD:
        return g * (x > 0 ? 1 : use_dst ? x + alpha : alpha * exp(x));
    case GB_OP_GELU_BACKWARD:
        return gelu_gradient(op, x, g);
    case GB_OP_HARD_SIGMOID_BACKWARD:
        return 0 < alpha * x + beta && alpha * x + beta < 1 ? g * alpha : 0;
    case GB_OP_HARD_SWISH_BACKWARD:
        y = x / 6 + 0.5;
        return y <= 0 ? 0 : y >= 1 ? g : g * (x / 3 + 0.5);
    case GB_OP_MISH_BACKWARD:
        if (isinf(x))
            return x > 0 ? g : g * 0;
        y = tanh(softplus(x, 1));
        return g * (y + x * sigmoid(x) * (1 - y * y));
    case GB_OP_RELU_BACKWARD:
        return x > 0 ? g : 0;
    case GB_OP_SIGMOID_BACKWARD:
        y = use_dst ? x : sigmoid(x);
        return g * y * (1 - y);
    case GB_OP_SOFTPLUS_BACKWARD:
        return g * sigmoid(beta * x);
    case GB_OP_SQRT_BACKWARD:
        y = use_dst ? x : sqrt(x);
        return g / (2 * y);
    case GB_OP_TANH_BACKWARD:
        y = use_dst ? x : tanh(x);
        return g * (1 - y) * (1 + y);
    default:
        return (double)NAN;
    }
}

gb_status gb_naive_unary_backward(const gb_naive_call *call)
{
    if (!gb_naive_same_dims(&call->in[0], &call->in[1]))
        return GB_NAIVE_REFUSE(call, "diff_dst and the data differ in shape");
    GB_TRY(gb_naive_make_like(call, 0, &call->in[0]));
    for (int64_t p = 0; p < call->out->count; p++)
        call->out->value[p] = unary_backward(call->op, call->in[0].value[p], call->in[1].value[p]);
    return GB_SUCCESS;
}

/* 3.3 Binary, Select, bias, PReLU */

static double binary(gb_op_kind kind, double a, double b)
{
    switch (kind) {
    case GB_OP_ADD:
        return a + b;
    case GB_OP_SUBTRACT:
        return a - b;
    case GB_OP_MULTIPLY:
        return a * b;
    case GB_OP_DIVIDE:
        return a / b;
    case GB_OP_MAXIMUM:
        return a > b ? a : b;
    case GB_OP_MINIMUM:
        return a < b ? a : b;
    case GB_OP_SQUARED_DIFFERENCE:
        return (a - b) * (a - b);
    case GB_OP_GREATER_EQUAL:
        return a >= b ? 1 : 0;
    default:
        return (double)NAN;
    }
}

/* The output of a and b: what they broadcast to, or, with auto_broadcast none, the dims of both. */
static gb_status make_broadcast(
        const gb_naive_call *call, const gb_naive_tensor *a, const gb_naive_tensor *b)
{
    int ndims;
    int64_t dims[GB_MAX_NDIMS];
    bool none = gb_naive_says(call->op, GB_ATTR_AUTO_BROADCAST, "numpy", "none");
    if (!gb_naive_broadcast_dims(a->ndims, a->dims, b->ndims, b->dims, &ndims, dims) ||
            (none && !gb_naive_same_dims(a, b)))
        return GB_NAIVE_REFUSE(call, "the inputs do not broadcast");
    return gb_naive_make(call, 0, ndims, dims);
}

gb_status gb_naive_binary(const gb_naive_call *call)
{
    const gb_naive_tensor *a = &call->in[0], *b = &call->in[1], *dst = call->out;
    GB_TRY(make_broadcast(call, a, b));
    for (int64_t p = 0; p < dst->count; p++)
        dst->value[p] = binary(call->op->kind, a->value[gb_naive_broadcast_at(a, dst, p)],
                b->value[gb_naive_broadcast_at(b, dst, p)]);
    return GB_SUCCESS;
}

gb_status gb_naive_select(const gb_naive_call *call)
{
    const gb_naive_tensor *cond = &call->in[0], *a = &call->in[1], *b = &call->in[2];
    const gb_naive_tensor *dst = call->out;
    GB_TRY(make_broadcast(call, a, b));
    bool none = gb_naive_says(call->op, GB_ATTR_AUTO_BROADCAST, "numpy", "none");
    if (none ? !gb_naive_same_dims(cond, a) : !gb_naive_broadcasts(cond, dst))
        return GB_NAIVE_REFUSE(call, "cond does not broadcast onto dst");
    for (int64_t p = 0; p < dst->count; p++)
        dst->value[p] = cond->value[gb_naive_broadcast_at(cond, dst, p)] != 0
                                ? a->value[gb_naive_broadcast_at(a, dst, p)]
                                : b->value[gb_naive_broadcast_at(b, dst, p)];
    return GB_SUCCESS;
}

gb_status gb_naive_bias_add(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0];
    int axis = gb_naive_channel_axis(call->op, src->ndims);
    if (src->ndims < 2 || !gb_naive_is_vector(call, 1, src->dims[axis]))
        return GB_NAIVE_REFUSE(call, "bias is not a vector of src's channels");
    GB_TRY(gb_naive_make_like(call, 0, src));
    for (int64_t p = 0; p < src->count; p++)
        call->out->value[p] = src->value[p] + call->in[1].value[gb_naive_along(src, axis, p)];
    return GB_SUCCESS;
}

gb_status gb_naive_bias_add_backward(const gb_naive_call *call)
{
    const gb_naive_tensor *diff_dst = &call->in[0];
    int axis = gb_naive_channel_axis(call->op, diff_dst->ndims);
    if (diff_dst->ndims < 2)
        return GB_NAIVE_REFUSE(call, "diff_dst has no channels");
    GB_TRY(gb_naive_make(call, 0, 1, &diff_dst->dims[axis]));
    for (int64_t p = 0; p < diff_dst->count; p++)
        call->out->value[gb_naive_along(diff_dst, axis, p)] += diff_dst->value[p];
    return GB_SUCCESS;
}

/* Where the slope of the element p stands: along the channels, or broadcast. */
static int64_t slope_at(const gb_naive_call *call, bool per_channel, int64_t p)
{
    const gb_naive_tensor *src = &call->in[0];
    if (per_channel)
        return gb_naive_along(src, gb_naive_channel_axis(call->op, src->ndims), p);
    return gb_naive_broadcast_at(&call->in[1], src, p);
}

static bool slope_fits(const gb_naive_call *call, bool per_channel)
{
    const gb_naive_tensor *src = &call->in[0], *slope = &call->in[1];
    if (per_channel)
        return slope->dims[0] == src->dims[gb_naive_channel_axis(call->op, src->ndims)];
    return gb_naive_broadcasts(slope, src);
}

gb_status gb_naive_prelu(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0], *slope = &call->in[1];
    bool per_channel = slope->ndims == 1 && src->ndims > 1 &&
                       gb_naive_flag(call->op, GB_ATTR_PER_CHANNEL_BROADCAST, true);
    if (!slope_fits(call, per_channel))
        return GB_NAIVE_REFUSE(call, "slope does not fit src");
    GB_TRY(gb_naive_make_like(call, 0, src));
    for (int64_t p = 0; p < src->count; p++) {
        double x = src->value[p];
        call->out->value[p] = x > 0 ? x : x * slope->value[slope_at(call, per_channel, p)];
    }
    return GB_SUCCESS;
}

gb_status gb_naive_prelu_backward(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0], *slope = &call->in[1];
    bool per_channel = slope->ndims == 1 && src->ndims > 1 && slope->dims[0] != 1;
    if (!slope_fits(call, per_channel) || !gb_naive_same_dims(src, &call->in[2]))
        return GB_NAIVE_REFUSE(call, "slope or diff_dst does not fit src");
    GB_TRY(gb_naive_make_like(call, 0, src));
    GB_TRY(gb_naive_make_like(call, 1, slope));
    for (int64_t p = 0; p < src->count; p++) {
        double x = src->value[p], g = call->in[2].value[p];
        int64_t s = slope_at(call, per_channel, p);
        call->out[0].value[p] = x > 0 ? g : g * slope->value[s];
        call->out[1].value[s] += x > 0 ? 0 : x * g;
    }
    return GB_SUCCESS;
}
