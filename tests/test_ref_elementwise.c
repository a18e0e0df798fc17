/* The reference of element-wise ops: known values, edges, and bounds that hold what a plain f32
 * evaluation gives and nothing much wider. */
#include "base/dtype.h"
#include "ref_case.h"

/* One form of an op. Attributes that are 0 are not set. */
typedef struct form {
    const char *name;
    gb_op_kind kind;
    float alpha, beta, min, max;
    const char *mode;
    int use_dst;       /* 1 or -1: set to true, false; 0: not set */
    double x[2], y[2]; /* known results (gradients: of 2) */
    float (*plain)(float x);
    int positive; /* domain x > 0 */
} form;

static float plain_abs(float x)
{
    return fabsf(x);
}
static float plain_clamp(float x)
{
    return fminf(fmaxf(x, -0.7F), 0.6F);
}
static float plain_elu(float x)
{
    return x > 0 ? x : 2.0F * expm1f(x);
}
static float plain_elu_cancelling(float x)
{
    return x > 0 ? x : 2.0F * (expf(x) - 1.0F);
}
static float plain_exp(float x)
{
    return expf(x);
}
static float plain_gelu_erf(float x)
{
    return 0.5F * x * (1.0F + erff(x * 0.70710678F));
}
static float plain_gelu_tanh(float x)
{
    return 0.5F * x * (1.0F + tanhf(0.79788456F * (x + 0.044715F * x * x * x)));
}
static float plain_hard_sigmoid(float x)
{
    return fminf(fmaxf(0.3F * x + 0.4F, 0.0F), 1.0F);
}
static float plain_hard_swish(float x)
{
    return x * fminf(fmaxf(x + 3.0F, 0.0F), 6.0F) * (1.0F / 6.0F);
}
static float plain_hard_swish_scaled(float x)
{
    return x * fminf(fmaxf(x * (1.0F / 6.0F) + 0.5F, 0.0F), 1.0F);
}
static float plain_leaky_relu(float x)
{
    return x > 0 ? x : -0.3F * x;
}
static float plain_log(float x)
{
    return logf(x);
}
static float plain_softplus(float x)
{
    return x > 20 ? x : log1pf(expf(x));
}
static float plain_mish(float x)
{
    return x * tanhf(plain_softplus(x));
}
static float plain_mish_rational(float x)
{
    float e = expf(x), n = e * (e + 2.0F);
    return x > 20 ? x : x * (n / (n + 2.0F));
}
static float plain_pow(float x)
{
    return powf(x, 2.5F);
}
static float plain_pow_by_exp(float x)
{
    return expf(2.5F * logf(x));
}
static float plain_reciprocal(float x)
{
    return 1.0F / x;
}
static float plain_relu(float x)
{
    return x > 0 ? x : 0;
}
static float plain_round(float x)
{
    return nearbyintf(x);
}
static float plain_sigmoid(float x)
{
    return -x >= 88.7228F ? 0 : 1.0F / (1.0F + expf(-x));
}
static float plain_softplus_log(float x)
{
    return x > 88 ? x : logf(1.0F + expf(x));
}
static float plain_softplus_negative(float x)
{
    float t = -2.0F * x;
    return (fmaxf(t, 0) + log1pf(expf(-fabsf(t)))) / -2.0F;
}
static float plain_sqrt(float x)
{
    return sqrtf(x);
}
static float plain_square(float x)
{
    return x * x;
}
static float plain_tanh(float x)
{
    return tanhf(x);
}

static const form forward[] = {
        {"Abs", GB_OP_ABS, 0, 0, 0, 0, NULL, 0, {1.5, -0.75}, {1.5, 0.75}, plain_abs, 0},
        {"Clamp", GB_OP_CLAMP, 0, 0, -0.7F, 0.6F, NULL, 0, {1.5, -0.75},
                {0.60000002384185791, -0.69999998807907104}, plain_clamp, 0},
        {"Elu", GB_OP_ELU, 2, 0, 0, 0, NULL, 0, {1.5, -0.75}, {1.5, -1.0552668945179706}, plain_elu,
                0},
        {"Elu by exp", GB_OP_ELU, 2, 0, 0, 0, NULL, 0, {1.5, -0.75}, {1.5, -1.0552668945179706},
                plain_elu_cancelling, 0},
        {"Exp", GB_OP_EXP, 0, 0, 0, 0, NULL, 0, {1.5, -0.75},
                {4.4816890703380648, 0.47236655274101471}, plain_exp, 0},
        {"GELU erf", GB_OP_GELU, 0, 0, 0, 0, "gelu_erf", 0, {1.5, -0.75},
                {1.3997891980967129, -0.16997051428265115}, plain_gelu_erf, 0},
        {"GELU tanh", GB_OP_GELU, 0, 0, 0, 0, "gelu_tanh", 0, {1.5, -0.75},
                {1.3995715769802329, -0.1700394448343797}, plain_gelu_tanh, 0},
        {"HardSigmoid", GB_OP_HARD_SIGMOID, 0.3F, 0.4F, 0, 0, NULL, 0, {1.5, -0.75},
                {0.85000002384185791, 0.175}, plain_hard_sigmoid, 0},
        {"HardSwish", GB_OP_HARD_SWISH, 0, 0, 0, 0, NULL, 0, {1.5, -0.75}, {1.125, -0.28125},
                plain_hard_swish, 0},
        {"HardSwish scaled", GB_OP_HARD_SWISH, 0, 0, 0, 0, NULL, 0, {1.5, -0.75}, {1.125, -0.28125},
                plain_hard_swish_scaled, 0},
        {"LeakyReLU", GB_OP_LEAKY_RELU, -0.3F, 0, 0, 0, NULL, 0, {1.5, -0.75},
                {1.5, 0.22500000894069672}, plain_leaky_relu, 0},
        {"Log", GB_OP_LOG, 0, 0, 0, 0, NULL, 0, {1.5, 0.75},
                {0.40546510810816438, -0.28768207245178093}, plain_log, 1},
        {"Mish", GB_OP_MISH, 0, 0, 0, 0, NULL, 0, {1.5, -0.75},
                {1.4033782663958026, -0.27649471450546518}, plain_mish, 0},
        {"Mish rational", GB_OP_MISH, 0, 0, 0, 0, NULL, 0, {1.5, -0.75},
                {1.4033782663958026, -0.27649471450546518}, plain_mish_rational, 0},
        {"Pow", GB_OP_POW, 0, 2.5F, 0, 0, NULL, 0, {1.5, 0.75},
                {2.7556759606310754, 0.48713928962874674}, plain_pow, 1},
        {"Pow by exp", GB_OP_POW, 0, 2.5F, 0, 0, NULL, 0, {1.5, 0.75},
                {2.7556759606310754, 0.48713928962874674}, plain_pow_by_exp, 1},
        {"Reciprocal", GB_OP_RECIPROCAL, 0, 0, 0, 0, NULL, 0, {1.5, -0.75},
                {0.66666666666666667, -1.3333333333333333}, plain_reciprocal, 0},
        {"ReLU", GB_OP_RELU, 0, 0, 0, 0, NULL, 0, {1.5, -0.75}, {1.5, 0}, plain_relu, 0},
        {"Round", GB_OP_ROUND, 0, 0, 0, 0, NULL, 0, {2.5, -0.75}, {2, -1}, plain_round, 0},
        {"Sigmoid", GB_OP_SIGMOID, 0, 0, 0, 0, NULL, 0, {1.5, -0.75},
                {0.81757447619364366, 0.32082130082460703}, plain_sigmoid, 0},
        {"SoftPlus", GB_OP_SOFTPLUS, 0, 0, 0, 0, NULL, 0, {1.5, -0.75},
                {1.7014132779827524, 0.38687100611489994}, plain_softplus, 0},
        {"SoftPlus by log", GB_OP_SOFTPLUS, 0, 0, 0, 0, NULL, 0, {1.5, -0.75},
                {1.7014132779827524, 0.38687100611489994}, plain_softplus_log, 0},
        {"SoftPlus -2", GB_OP_SOFTPLUS, 0, -2, 0, 0, NULL, 0, {1.5, -0.75},
                {-0.024293675786871029, -0.8507066389913762}, plain_softplus_negative, 0},
        {"Sqrt", GB_OP_SQRT, 0, 0, 0, 0, NULL, 0, {1.5, 0.75},
                {1.224744871391589, 0.86602540378443865}, plain_sqrt, 1},
        {"Square", GB_OP_SQUARE, 0, 0, 0, 0, NULL, 0, {1.5, -0.75}, {2.25, 0.5625}, plain_square,
                0},
        {"Tanh", GB_OP_TANH, 0, 0, 0, 0, NULL, 0, {1.5, -0.75},
                {0.90514825364486644, -0.63514895238728732}, plain_tanh, 0},
};

/* Derivatives in f32, to be multiplied with the gradient. */
static float plain_d_abs(float x)
{
    return (float)((x > 0) - (x < 0));
}
static float plain_d_clamp(float x)
{
    return x > -0.7F && x < 0.6F;
}
static float plain_d_elu(float x)
{
    return x > 0 ? 1 : 2.0F * expf(x);
}
static float plain_d_elu_dst(float y)
{
    return y > 0 ? 1 : y + 2.0F;
}
static float plain_d_gelu_erf(float x)
{
    float v = x * 0.70710678F;
    return 0.5F * (1.0F + erff(v) + v * 1.12837917F * expf(-v * v));
}
static float plain_d_gelu_tanh(float x)
{
    float u = 0.79788456F * x * (1.0F + 0.044715F * x * x),
          s = 0.79788456F * (1.0F + 0.134145F * x * x);
    float t = tanhf(u);
    return 0.5F * (1.0F + t) * (1.0F + x * (1.0F - t) * s);
}
static float plain_d_hard_sigmoid(float x)
{
    float w = 0.3F * x + 0.4F;
    return w > 0 && w < 1 ? 0.3F : 0;
}
static float plain_d_hard_swish(float x)
{
    float v = x / 6.0F + 0.5F;
    return v <= 0 ? 0 : v >= 1 ? 1 : x / 3.0F + 0.5F;
}
static float plain_d_mish(float x)
{
    float t = tanhf(plain_softplus(x));
    return t + x * plain_sigmoid(x) * (1.0F - t * t);
}
static float plain_d_relu(float x)
{
    return x > 0;
}
static float plain_d_sigmoid(float x)
{
    float s = plain_sigmoid(x);
    return s * (1.0F - s);
}
static float plain_d_sigmoid_dst(float y)
{
    return y * (1.0F - y);
}
static float plain_d_softplus(float x)
{
    return plain_sigmoid(3.0F * x);
}
static float plain_d_sqrt(float x)
{
    return 0.5F / sqrtf(x);
}
static float plain_d_sqrt_dst(float y)
{
    return 1.0F / (2.0F * y);
}
static float plain_d_tanh(float x)
{
    float t = tanhf(x);
    return (1.0F - t) * (1.0F + t);
}
static float plain_d_tanh_dst(float y)
{
    return 1.0F - y * y;
}

static const form backward[] = {
        {"Abs", GB_OP_ABS_BACKWARD, 0, 0, 0, 0, NULL, 0, {0, -0.75}, {0, -2}, plain_d_abs, 0},
        {"Clamp", GB_OP_CLAMP_BACKWARD, 0, 0, -0.7F, 0.6F, NULL, -1, {0.5, 0.6000000238418579},
                {2, 0}, plain_d_clamp, 0},
        {"Clamp dst", GB_OP_CLAMP_BACKWARD, 0, 0, -0.7F, 0.6F, NULL, 1, {0.5, -0.75}, {2, 0},
                plain_d_clamp, 0},
        {"Elu", GB_OP_ELU_BACKWARD, 2, 0, 0, 0, NULL, -1, {1.5, -0.75}, {2, 1.8894662109640588},
                plain_d_elu, 0},
        {"Elu dst", GB_OP_ELU_BACKWARD, 2, 0, 0, 0, NULL, 1, {1.5, -0.75}, {2, 2.5},
                plain_d_elu_dst, 0},
        {"GELU erf", GB_OP_GELU_BACKWARD, 0, 0, 0, 0, "gelu_erf", 0, {1.5, -0.75},
                {2.2549383844599591, 0.0015485565215297913}, plain_d_gelu_erf, 0},
        {"GELU tanh", GB_OP_GELU_BACKWARD, 0, 0, 0, 0, "gelu_tanh", 0, {1.5, -0.75},
                {2.2554215863028662, 0.0021234877251714047}, plain_d_gelu_tanh, 0},
        {"HardSigmoid", GB_OP_HARD_SIGMOID_BACKWARD, 0.3F, 0.4F, 0, 0, NULL, 0, {1.5, -1.5},
                {0.60000002384185791, 0}, plain_d_hard_sigmoid, 0},
        {"HardSwish", GB_OP_HARD_SWISH_BACKWARD, 0, 0, 0, 0, NULL, 0, {1.5, -0.75}, {2, 0.5},
                plain_d_hard_swish, 0},
        {"Mish", GB_OP_MISH_BACKWARD, 0, 0, 0, 0, NULL, 0, {1.5, -0.75},
                {2.1769759700156953, 0.32149148099967737}, plain_d_mish, 0},
        {"ReLU", GB_OP_RELU_BACKWARD, 0, 0, 0, 0, NULL, -1, {1.5, 0}, {2, 0}, plain_d_relu, 0},
        {"ReLU dst", GB_OP_RELU_BACKWARD, 0, 0, 0, 0, NULL, 0, {1.5, -0.75}, {2, 0}, plain_d_relu,
                0},
        {"Sigmoid", GB_OP_SIGMOID_BACKWARD, 0, 0, 0, 0, NULL, -1, {1.5, -0.75},
                {0.29829290414066571, 0.43578998752362806}, plain_d_sigmoid, 0},
        {"Sigmoid dst", GB_OP_SIGMOID_BACKWARD, 0, 0, 0, 0, NULL, 1, {0.5, 0.75}, {0.5, 0.375},
                plain_d_sigmoid_dst, 0},
        {"SoftPlus", GB_OP_SOFTPLUS_BACKWARD, 0, 3, 0, 0, NULL, 0, {1.5, -0.75},
                {1.9780261147388136, 0.19069892979821899}, plain_d_softplus, 0},
        {"Sqrt", GB_OP_SQRT_BACKWARD, 0, 0, 0, 0, NULL, -1, {1.5, 0.75},
                {0.81649658092772603, 1.1547005383792515}, plain_d_sqrt, 1},
        {"Sqrt dst", GB_OP_SQRT_BACKWARD, 0, 0, 0, 0, NULL, 1, {0.5, 2}, {2, 0.5}, plain_d_sqrt_dst,
                1},
        {"Tanh", GB_OP_TANH_BACKWARD, 0, 0, 0, 0, NULL, -1, {1.5, -0.75},
                {0.36141327784729706, 1.1931716165626629}, plain_d_tanh, 0},
        {"Tanh dst", GB_OP_TANH_BACKWARD, 0, 0, 0, 0, NULL, 1, {0.5, -0.75}, {1.5, 0.875},
                plain_d_tanh_dst, 0},
};

enum {
    N_FORWARD = sizeof forward / sizeof forward[0],
    N_BACKWARD = sizeof backward / sizeof backward[0]
};

static void set_f32(ref_case *c, gb_op_attr attr, float value)
{
    if (value != 0)
        cr_assert_eq(gb_op_set_attr_f32(c->op, attr, 1, &value), GB_SUCCESS);
}

/* The form over `count` elements; `gradient` NULL for forward ops. */
static const gb_ref_tensor *run_form(ref_case *c, const form *f, gb_data_type type, int64_t count,
        const double *x, const double *bound, const double *gradient)
{
    *c = ref_case_begin(f->kind);
    set_f32(c, GB_ATTR_ALPHA, f->alpha);
    set_f32(c, GB_ATTR_BETA, f->beta);
    set_f32(c, GB_ATTR_MIN, f->min);
    set_f32(c, GB_ATTR_MAX, f->max);
    if (f->mode)
        ref_case_text(c, GB_ATTR_MODE, f->mode);
    if (f->use_dst)
        ref_case_flag(c, GB_ATTR_USE_DST, f->use_dst > 0);
    ref_case_input_bounded(c, type, 1, &count, x, bound);
    if (gradient)
        ref_case_input(c, type, 1, &count, gradient);
    ref_case_output(c, type, 1, &count);
    return ref_case_run(c);
}

static void check_known(const form *f, const double *gradient)
{
    ref_case c;
    const gb_ref_tensor *got = run_form(&c, f, GB_F32, 2, f->x, NULL, gradient);
    for (int i = 0; i < 2; i++)
        cr_expect(fabs(got->value[i] - f->y[i]) <= 1e-7 * fabs(f->y[i]) &&
                          ref_case_bound(got, i) < 1e-6 * (2 + fabs(f->y[i])),
                "%s(%g) is %.17g +- %g, expected %.17g", f->name, f->x[i], got->value[i],
                ref_case_bound(got, i), f->y[i]);
    ref_case_end(&c);
}

Test(ref_elementwise, known_values)
{
    const double two[2] = {2, 2};
    for (int i = 0; i < N_FORWARD; i++)
        check_known(&forward[i], NULL);
    for (int i = 0; i < N_BACKWARD; i++)
        check_known(&backward[i], two);
}

/* A derivative that even a double cannot hold has no known sign: what divides by the gradient may be
 * either infinity. One that is 0 by its definition is exact. */
Test(ref_elementwise, derivatives_that_vanish)
{
    const form smooth[] = {{"GELU erf", GB_OP_GELU_BACKWARD, .mode = "gelu_erf"},
            {"GELU tanh", GB_OP_GELU_BACKWARD, .mode = "gelu_tanh"},
            {"Mish", GB_OP_MISH_BACKWARD, .mode = NULL},
            {"Sigmoid", GB_OP_SIGMOID_BACKWARD, .use_dst = -1},
            {"Elu", GB_OP_ELU_BACKWARD, .alpha = 1, .use_dst = -1}};
    const double x[2] = {-1000, -2000}, gradient[2] = {2, -2};
    ref_case c;
    for (size_t i = 0; i < sizeof smooth / sizeof *smooth; i++) {
        const gb_ref_tensor *got = run_form(&c, &smooth[i], GB_F32, 2, x, NULL, gradient);
        for (int k = 0; k < 2; k++)
            cr_expect(ref_case_bound(got, k) > 0 && ref_case_bound(got, k) < 1e-5,
                    "%s(%g) is %g +- %g", smooth[i].name, x[k], got->value[k],
                    ref_case_bound(got, k));
        ref_case_end(&c);
    }
    const form relu = {"ReLU", GB_OP_RELU_BACKWARD, .use_dst = -1};
    const gb_ref_tensor *got = run_form(&c, &relu, GB_F32, 2, x, NULL, gradient);
    cr_expect(got->value[0] == 0 && ref_case_bound(got, 0) == 0);
    ref_case_end(&c);
}

enum { SAMPLES = 6000 };

/* Numbers of many magnitudes: a few thousand below 8, some tiny, some near 100. */
static double *samples(uint64_t seed, int positive)
{
    double *x = ref_case_randoms(seed, SAMPLES, 24);
    for (int i = 0; i < SAMPLES; i++) {
        double scale = i % 8 == 0 ? 0x1p-20 : i % 8 == 1 ? 90 : i % 8 == 2 ? 0.125 : 8;
        x[i] = (double)(float)(x[i] * scale);
        if (positive)
            x[i] = fabs(x[i]) + 0x1p-40;
    }
    for (int i = 0; i < SAMPLES; i++)
        x[i] = (double)(float)x[i];
    return x;
}

/* A plain evaluation is inside the bounds, comes within a hundredth of them, and errors leave them.
 */
static void check_sound(const form *f, const double *gradient)
{
    double *x = samples(7, f->positive);
    ref_case c;
    const gb_ref_tensor *got = run_form(&c, f, GB_F32, SAMPLES, x, NULL, gradient);
    double margin = 0;
    int64_t outside = 0, changed = 0, caught = 0, shifted = 0, differing = 0, inexact = 0;
    float last = 0;
    for (int i = 0; i < SAMPLES; i++) {
        float plain = f->plain((float)x[i]);
        if (gradient)
            plain *= (float)gradient[i];
        double bound = ref_case_bound(got, i), error = fabs((double)plain - got->value[i]);
        if (isinf(bound) || (double)plain == got->value[i])
            error = 0;
        if (!(error <= bound) && outside++ == 0)
            cr_expect_fail("%s(%.9g): %.9g is not within %.9g +- %g", f->name, x[i], (double)plain,
                    got->value[i], bound);
        if (bound > 0)
            margin = fmax(margin, error / bound);
        inexact += error > 0;
        if (fabs((double)plain) > 1e-2 && isfinite(plain)) {
            changed++;
            caught += fabs((double)plain * 1.01 - got->value[i]) > bound;
        }
        double distance = fabs((double)(last - plain));
        bool differs = isfinite(bound) && last != plain && !(distance <= 1e-3);
        differing += differs;
        shifted += differs && !(fabs((double)last - got->value[i]) <= bound);
        last = plain;
    }
    cr_expect_eq(outside, 0, "%s: %lld outside", f->name, (long long)outside);
    cr_expect(inexact == 0 || margin > 0.02, "%s: margin %g", f->name, margin);
    cr_expect(caught == changed, "%s: 1 %% off caught %lld of %lld", f->name, (long long)caught,
            (long long)changed);
    cr_expect(shifted == differing, "%s: wrong lane caught %lld of %lld", f->name,
            (long long)shifted, (long long)differing);
    ref_case_end(&c);
    free(x);
}

Test(ref_elementwise, plain_f32_is_within_bounds)
{
    double *gradient = ref_case_randoms(99, SAMPLES, 24);
    for (int i = 0; i < SAMPLES; i++)
        gradient[i] = (double)(float)(gradient[i] + copysign(0.5, gradient[i]));
    for (int i = 0; i < N_FORWARD; i++)
        check_sound(&forward[i], NULL);
    for (int i = 0; i < N_BACKWARD; i++)
        check_sound(&backward[i], gradient);
    free(gradient);
}

/* Inputs anywhere within their bounds give results within the output's, which are not much wider
 * than needed. */
static void check_propagation(const form *f, double spread, const double *gradient)
{
    double *x = samples(11, f->positive), *bound = malloc(SAMPLES * sizeof *bound);
    double *reach = calloc(SAMPLES, sizeof *reach);
    for (int i = 0; i < SAMPLES; i++)
        bound[i] = f->positive ? fabs(x[i]) * 0.5 : spread;
    ref_case c, moved_case;
    const gb_ref_tensor *got = run_form(&c, f, GB_F32, SAMPLES, x, bound, gradient);
    uint64_t state = 5;
    for (int round = 0; round < 40; round++) {
        double *moved = malloc(SAMPLES * sizeof *moved);
        for (int i = 0; i < SAMPLES; i++) {
            double part = round == 0 ? 1 : round == 1 ? -1 : ref_case_random(&state, 20);
            moved[i] = x[i] + part * bound[i];
        }
        const gb_ref_tensor *there =
                run_form(&moved_case, f, GB_F32, SAMPLES, moved, NULL, gradient);
        for (int i = 0; i < SAMPLES; i++)
            reach[i] = fmax(reach[i], fabs(there->value[i] - got->value[i]));
        ref_case_end(&moved_case);
        free(moved);
    }
    double tightest = 0;
    for (int i = 0; i < SAMPLES; i++) {
        cr_expect(reach[i] <= ref_case_bound(got, i) * (1 + 1e-9),
                "%s(%g +- %g) reaches %g beyond bound %g", f->name, x[i], bound[i], reach[i],
                ref_case_bound(got, i));
        if (reach[i] > 1e-3 && isfinite(reach[i]))
            tightest = fmax(tightest, ref_case_bound(got, i) / reach[i]);
    }
    cr_expect(tightest < 2.5, "%s: a bound is %g times what is needed", f->name, tightest);
    ref_case_end(&c);
    free(x);
    free(bound);
    free(reach);
}

Test(ref_elementwise, bounds_propagate)
{
    double *gradient = malloc(SAMPLES * sizeof *gradient);
    for (int i = 0; i < SAMPLES; i++)
        gradient[i] = 1;
    for (int i = 0; i < N_FORWARD; i++)
        if (forward[i].kind != GB_OP_RECIPROCAL)
            check_propagation(&forward[i], i % 2 ? 0.03 : 1.3, NULL);
    for (int i = 0; i < N_BACKWARD; i++)
        if (backward[i].kind != GB_OP_SQRT_BACKWARD)
            check_propagation(&backward[i], i % 2 ? 0.03 : 1.3, gradient);
    free(gradient);
}

static double to_type(gb_data_type type, double x)
{
    uint32_t memory = 0;
    gb_element_set(type, &memory, 0, x);
    return gb_element_get(type, &memory, 0);
}

/* A result rounded to f32 and then to the declared type is within the bound of the store. */
Test(ref_elementwise, narrow_types)
{
    const gb_data_type types[] = {GB_BF16, GB_F16};
    for (int t = 0; t < 2; t++) {
        for (int i = 0; i < N_FORWARD; i++) {
            const form *f = &forward[i];
            double *x = samples(3, f->positive);
            for (int k = 0; k < SAMPLES; k++)
                x[k] = to_type(types[t], fmin(fmax(x[k], -10), 10));
            ref_case c;
            const gb_ref_tensor *got = run_form(&c, f, types[t], SAMPLES, x, NULL, NULL);
            for (int k = 0; k < SAMPLES; k++) {
                double stored = to_type(types[t], (double)f->plain((float)x[k])),
                       bound = ref_case_bound(got, k);
                cr_expect(fabs(stored - got->value[k]) <= bound || stored == got->value[k] ||
                                  isinf(bound),
                        "%s(%g) %s: %g, expected %g +- %g", f->name, x[k],
                        gb_data_type_name(types[t]), stored, got->value[k], bound);
            }
            ref_case_end(&c);
            free(x);
        }
    }
}

/* Chains of ops with 16-bit tensors between them: whichever of these are kept in f32, the result is
 * within its bound. */
static void check_chain(const int *forms, gb_data_type type, uint64_t seed)
{
    enum { LENGTH = 3 };
    double *x = ref_case_randoms(seed, SAMPLES, 8), *bound = NULL;
    float *plain = malloc(SAMPLES * sizeof *plain);
    uint64_t coin = seed;
    for (int k = 0; k < SAMPLES; k++)
        plain[k] = (float)x[k];
    for (int step = 0; step < LENGTH; step++) {
        const form *f = &forward[forms[step]];
        ref_case c;
        const gb_ref_tensor *got = run_form(&c, f, type, SAMPLES, x, bound, NULL);
        bound = realloc(bound, SAMPLES * sizeof *bound);
        for (int k = 0; k < SAMPLES; k++) {
            plain[k] = f->plain(plain[k]);
            x[k] = got->value[k];
            bound[k] = ref_case_bound(got, k);
            /* Without a bound the result is what was stored. */
            bool rounds = step == LENGTH - 1 || ref_case_random(&coin, 20) > 0 || bound[k] == 0;
            if (rounds)
                plain[k] = (float)to_type(type, (double)plain[k]);
            bool same =
                    (double)plain[k] == x[k] || (isnan(plain[k]) && isnan(x[k])) || isinf(bound[k]);
            cr_expect(same || fabs((double)plain[k] - x[k]) <= bound[k],
                    "%s at step %d: %g, expected %g +- %g", f->name, step, (double)plain[k], x[k],
                    bound[k]);
        }
        ref_case_end(&c);
    }
    free(x);
    free(bound);
    free(plain);
}

Test(ref_elementwise, chains_fused_or_not)
{
    for (int i = 0; i < N_FORWARD; i++) {
        const int forms[3] = {i, (i * 7 + 5) % N_FORWARD, (i * 11 + 3) % N_FORWARD};
        check_chain(forms, i % 2 ? GB_BF16 : GB_F16, (uint64_t)i);
    }
}

typedef struct edge {
    gb_op_kind kind;
    float alpha, beta;
    double x, y;
    int unbounded;
} edge;

Test(ref_elementwise, edges)
{
    const double inf = INFINITY, nan = NAN;
    const edge edges[] = {
            {GB_OP_LOG, 0, 0, 0, -inf, 0},
            {GB_OP_LOG, 0, 0, -1, nan, 0},
            {GB_OP_LOG, 0, 0, inf, inf, 0},
            {GB_OP_LOG, 0, 0, 0x1p-130, 0, 1},
            {GB_OP_EXP, 0, 0, -inf, 0, 0},
            {GB_OP_EXP, 0, 0, 200, inf, 0},
            {GB_OP_EXP, 0, 0, 88.72283935546875, 0, 1},
            {GB_OP_SQRT, 0, 0, -4, nan, 0},
            {GB_OP_RECIPROCAL, 0, 0, 0, inf, 0},
            {GB_OP_RECIPROCAL, 0, 0, 0x1p-130, 0, 1},
            {GB_OP_SIGMOID, 0, 0, -inf, 0, 0},
            {GB_OP_TANH, 0, 0, inf, 1, 0},
            {GB_OP_SOFTPLUS, 0, 1, 1000, 1000, 0},
            {GB_OP_SOFTPLUS, 0, 1, inf, inf, 0},
            {GB_OP_GELU, 0, 0, inf, inf, 0},
            {GB_OP_GELU, 0, 0, -inf, 0, 1},
            {GB_OP_MISH, 0, 0, -inf, 0, 1},
            {GB_OP_ELU, 1, 0, -inf, -1, 0},
            {GB_OP_POW, 0, 0.5F, -1, nan, 0},
            {GB_OP_POW, 0, -1, 0, inf, 0},
            {GB_OP_POW, 0, 3, -2, -8, 0},
            {GB_OP_RELU, 0, 0, nan, 0, 1},
            {GB_OP_TANH, 0, 0, nan, nan, 0},
            {GB_OP_ROUND, 0, 0, 0.5, 0, 0},
            {GB_OP_ROUND, 0, 0, 1.5, 2, 0},
            {GB_OP_ABS, 0, 0, -inf, inf, 0},
            {GB_OP_SQUARE, 0, 0, 1e30, inf, 0},
    };
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        const edge *e = &edges[i];
        form f = {.name = "edge", .kind = e->kind, .alpha = e->alpha, .beta = e->beta};
        ref_case c;
        const gb_ref_tensor *got = run_form(&c, &f, GB_F32, 1, &e->x, NULL, NULL);
        double bound = ref_case_bound(got, 0);
        if (e->unbounded)
            cr_expect(
                    isinf(bound), "%s(%g) has the bound %g", gb_op_kind_name(e->kind), e->x, bound);
        else
            cr_expect(isfinite(bound) &&
                              ((isnan(e->y) && isnan(got->value[0])) || got->value[0] == e->y ||
                                      fabs(got->value[0] - e->y) < 1e-30),
                    "%s(%g) is %g +- %g, expected %g", gb_op_kind_name(e->kind), e->x,
                    got->value[0], bound, e->y);
        ref_case_end(&c);
    }
}

/* Results that are numbers of the type and were computed exactly have no bound. */
Test(ref_elementwise, exact_stays_exact)
{
    const double x[4] = {1, -2, 3, 0};
    const gb_op_kind kinds[] = {GB_OP_ABS, GB_OP_RELU, GB_OP_SQUARE, GB_OP_ROUND};
    for (int k = 0; k < 4; k++) {
        form f = {.name = "exact", .kind = kinds[k]};
        ref_case c;
        ref_case_expect_exact(run_form(&c, &f, GB_BF16, 4, x, NULL, NULL));
        ref_case_end(&c);
    }
}

/* A quotient by it may be either infinity; everything else is as good as exact. */
Test(ref_elementwise, the_sign_of_a_cut_off_zero_is_open)
{
    const double x[2] = {-0.0, 0};
    form f = {.name = "ReLU", .kind = GB_OP_RELU};
    ref_case c;
    const gb_ref_tensor *got = run_form(&c, &f, GB_F32, 2, x, NULL, NULL);
    cr_expect(ref_case_bound(got, 0) > 0 && ref_case_bound(got, 0) <= 0x1p-124);
    cr_expect_eq(ref_case_bound(got, 1), 0.0);
    ref_case_end(&c);
}

/* 0 times a derivative that may be of either sign. */
Test(ref_elementwise, the_sign_of_a_vanished_gradient_is_open)
{
    const int64_t count = 2;
    ref_case c = ref_case_begin(GB_OP_MISH_BACKWARD);
    ref_case_input_bounded(&c, GB_F32, 1, &count, (double[]){-1.1924312145154955, 3},
            (double[]){0x1p-20, 0x1p-20});
    ref_case_input(&c, GB_F32, 1, &count, (double[]){0, 0});
    ref_case_output(&c, GB_F32, 1, &count);
    const gb_ref_tensor *got = ref_case_run(&c);
    cr_expect(ref_case_bound(got, 0) > 0 && ref_case_bound(got, 0) < 0x1p-120);
    cr_expect_eq(ref_case_bound(got, 1), 0);
    ref_case_end(&c);
}

/* A root of what may be negative may be NaN; what is a flushed subnormal below 0 counts as 0. */
Test(ref_elementwise, roots_at_the_edge_of_their_domain)
{
    const double x[3] = {1e-9, 0, 1}, bound[3] = {1e-8, 0x1p-126, 1e-8};
    form f = {.name = "Sqrt", .kind = GB_OP_SQRT};
    ref_case c;
    const gb_ref_tensor *got = run_form(&c, &f, GB_F32, 3, x, bound, NULL);
    cr_expect(isinf(ref_case_bound(got, 0)));
    cr_expect(ref_case_bound(got, 1) < 1e-18 && ref_case_bound(got, 2) < 1e-6);
    ref_case_end(&c);
}

Test(ref_elementwise, empty_and_scalar)
{
    form f = {.name = "Exp", .kind = GB_OP_EXP};
    ref_case c;
    const double x = 0;
    cr_expect_eq(run_form(&c, &f, GB_F32, 0, &x, NULL, NULL)->count, 0);
    ref_case_end(&c);
    c = ref_case_begin(GB_OP_EXP);
    ref_case_input(&c, GB_F32, 0, NULL, &x);
    ref_case_output(&c, GB_F32, 0, NULL);
    const double one = 1;
    ref_case_expect(ref_case_run(&c), 1, &one, 0);
    ref_case_end(&c);
}

/* A derivative of 0 inside the range is multiplied like any other; outside, diff_dst plays no part. */
Test(ref_elementwise, zero_derivatives_inside_the_range_multiply)
{
    static const double x[] = {0.25, -1.5, -4}, gradient[] = {INFINITY, INFINITY, INFINITY};
    int64_t count = 3;
    ref_case c = ref_case_begin(GB_OP_HARD_SIGMOID_BACKWARD);
    cr_assert_eq(gb_op_set_attr_f32(c.op, GB_ATTR_ALPHA, 1, &(float){0}), GB_SUCCESS);
    cr_assert_eq(gb_op_set_attr_f32(c.op, GB_ATTR_BETA, 1, &(float){0.5F}), GB_SUCCESS);
    ref_case_input(&c, GB_F32, 1, &count, x);
    ref_case_input(&c, GB_F32, 1, &count, gradient);
    ref_case_output(&c, GB_F32, 1, &count);
    const gb_ref_tensor *got = ref_case_run(&c);
    for (int i = 0; i < 3; i++)
        cr_expect(isnan(got->value[i]), "infinity times alpha = 0 is %g", got->value[i]);
    ref_case_end(&c);
    c = ref_case_begin(GB_OP_HARD_SWISH_BACKWARD);
    ref_case_input(&c, GB_F32, 1, &count, x);
    ref_case_input(&c, GB_F32, 1, &count, gradient);
    ref_case_output(&c, GB_F32, 1, &count);
    got = ref_case_run(&c);
    cr_expect_eq(got->value[0], INFINITY);
    cr_expect(isnan(got->value[1]), "infinity times 0 is %g", got->value[1]);
    cr_expect_eq(got->value[2], 0);
    cr_expect_eq(ref_case_bound(got, 2), 0);
    ref_case_end(&c);
}

/* A subnormal number may be read as 0, where the derivative is 0 whatever diff_dst is. */
Test(ref_elementwise, a_branch_that_may_be_0_may_lose_nan)
{
    const int64_t count = 2;
    const double x[2] = {1e-40, 1}, g[2] = {NAN, NAN};
    ref_case c = ref_case_begin(GB_OP_ABS_BACKWARD);
    ref_case_input(&c, GB_F32, 1, &count, x);
    ref_case_input(&c, GB_F32, 1, &count, g);
    ref_case_output(&c, GB_F32, 1, &count);
    const gb_ref_tensor *got = ref_case_run(&c);
    cr_expect(isinf(ref_case_bound(got, 0)));
    cr_expect(isnan(got->value[1]) && ref_case_bound(got, 1) == 0);
    ref_case_end(&c);
}
