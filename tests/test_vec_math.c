/* Elementary functions of vectors against f64, at every instruction set, over samples of all f32
 * bit patterns; the largest errors are printed. */
#include "isa_case.h"
#include "vec_probe.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEP = 3001 }; /* between sampled bit patterns */

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Distance of neighbouring f32 values at y. */
static double ulp(double y)
{
    int exponent;
    if (y == 0)
        return 0x1p-149;
    frexp(y, &exponent);
    return ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}
static double normal_integral(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}
static double gelu_erf(double x)
{
    return x * normal_integral(x);
}
static double gelu_argument(double x)
{
    return sqrt(2 / M_PI) * x * (1 + 0.044715 * x * x);
}
static double gelu_tanh(double x)
{
    return x * sigmoid(2 * gelu_argument(x));
}
static double mish(double x)
{
    double e = exp(fmin(x, 30)), n = e * (e + 2);
    return x * (n / (n + 2));
}
static double gelu_erf_slope(double x)
{
    return normal_integral(x) + x * exp(-x * x / 2) / sqrt(2 * M_PI);
}
static double gelu_tanh_slope(double x)
{
    double u = gelu_argument(x), slope = sqrt(2 / M_PI) * (1 + 0.134145 * x * x);
    double s = sigmoid(2 * u), rest = sigmoid(-2 * u);
    return s + (fabs(x) > 1e6 ? 0 : x * 2 * slope * s * rest);
}
static double mish_slope(double x)
{
    double e = exp(fmin(x, 30)), n = e * (e + 2), t = n / (n + 2), rest = 2 / (n + 2) * (1 + t);
    return t + (fabs(x) > 110 ? 0 : x * sigmoid(x) * rest);
}

/* Weights of the bounds in ulps: errors that grow with the argument of an exponential. */
static double one(double x)
{
    (void)x;
    return 1;
}
static double gaussian(double x)
{
    return 1 + x * x / 2;
}
static double gelu_tanh_weight(double x)
{
    return 1 + 2 * fabs(gelu_argument(x));
}

/* `slack`: absolute error allowed besides. NaN for infinite x is allowed where f64 has a limit. */
typedef struct math_case {
    probe_function function;
    const char *name;
    double (*reference)(double x);
    double (*weight)(double x);
    double ulps, slack, slack_per_x;
} math_case;

static const math_case cases[] = {
        {PROBE_EXP, "exp", exp, one, 1.3, 0, 0},
        {PROBE_EXPM1, "expm1", expm1, one, 2, 0, 0},
        {PROBE_LOG, "log", log, one, 1.1, 0, 0},
        {PROBE_LOG1P, "log1p", log1p, one, 1.5, 0, 0},
        {PROBE_TANH, "tanh", tanh, one, 2.6, 0, 0},
        {PROBE_SIGMOID, "sigmoid", sigmoid, one, 2.5, 0, 0},
        {PROBE_SOFTPLUS, "softplus", softplus, one, 2, 0, 0},
        {PROBE_GELU_ERF, "gelu_erf", gelu_erf, gaussian, 4, 0, 1e-9},
        {PROBE_GELU_TANH, "gelu_tanh", gelu_tanh, gelu_tanh_weight, 4, 0, 0},
        {PROBE_MISH, "mish", mish, one, 4, 0x1p-140, 0},
        {PROBE_GELU_ERF_SLOPE, "gelu_erf_slope", gelu_erf_slope, gaussian, 3, 1.5e-7, 0},
        {PROBE_GELU_TANH_SLOPE, "gelu_tanh_slope", gelu_tanh_slope, gelu_tanh_weight, 4, 1.5e-7, 0},
        {PROBE_MISH_SLOPE, "mish_slope", mish_slope, one, 4, 1.5e-7, 0},
};

/* Error in weighted ulps beyond the slack; infinities must agree unless f32 is at its limit. */
static double error_of(const math_case *m, float x, float got)
{
    double want = m->reference((double)x), size = fabs((double)x);
    if (isnan(want) || (isnan(got) && isinf(x)))
        return isnan(got) ? 0 : INFINITY;
    if (isinf((float)want) || isinf(got))
        return got == (float)want || fabs(want) > 0x1.FFFFFCp127 ? 0 : INFINITY;
    double error = fabs((double)got - want) - m->slack - m->slack_per_x * size;
    return error <= 0 ? 0 : error / (ulp(want) * m->weight((double)x));
}

/* Where errors of all numbers were largest, of those that the sample leaves out. */
static const float hard[][PROBE_LANES] = {
        {-6.7823801F, -6.76633072F, -13.802742F, -6.79900503F}, /* mish */
        {-5.86135149F, 26.7369175F, -1.83539581F, 0.0591999628F} /* exp, gelu_erf */};

static void find_worst(
        const vec_probe *probe, const math_case *m, const float *x, double *worst, float *where)
{
    float y[PROBE_LANES];
    probe->function[m->function](x, y);
    for (int i = 0; i < probe->lanes; i++) {
        double error = error_of(m, x[i], y[i]);
        if (!(error > *worst))
            continue;
        *worst = error;
        *where = x[i];
    }
}

static void check(const vec_probe *probe, const math_case *m)
{
    double worst = 0;
    float where = 0, x[PROBE_LANES];
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += (uint64_t)probe->lanes * STEP) {
        for (int i = 0; i < probe->lanes; i++)
            x[i] = from_bits((uint32_t)(bits + (uint64_t)i * STEP));
        if (bits == 0) {
            x[1] = INFINITY;
            x[2] = -INFINITY;
            x[3] = -0.0F;
        }
        find_worst(probe, m, x, &worst, &where);
    }
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++)
        find_worst(probe, m, hard[i], &worst, &where);
    printf("%-9s %-16s %.3f ulp at %a\n", gb_isa_name(probe->isa), m->name, worst, (double)where);
    cr_expect(worst <= m->ulps, "%s: %s(%a): %.3f weighted ulps", gb_isa_name(probe->isa), m->name,
            (double)where, worst);
}

ISA_TEST(vec_math, functions)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(vec_probe_of(isa), &cases[i]);
}

static const float exponents[] = {0, 0.5F, 1, 2, 3, -1, -0.5F, 0.3333333F, 1.7F, -2.5F, 7, 10.25F,
        -33, 100, -300.25F, 0.001F, -1e-5F, 1e5F, 0x1.8p25F, INFINITY, -INFINITY, NAN};

/* In units in the last place, weighted as docs/numerics.md says. */
static double error_of_power(float y, double want)
{
    double weight = want == 0 ? 1 : 1 + fabs(log(fabs(want))) / 40;
    return fabs((double)y - want) / (ulp(want) * weight);
}

static void check_pow(const vec_probe *probe, float beta)
{
    float x[PROBE_LANES], y[PROBE_LANES];
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += (uint64_t)probe->lanes * STEP * 5) {
        for (int i = 0; i < probe->lanes; i++)
            x[i] = from_bits((uint32_t)(bits + (uint64_t)i * STEP * 5));
        if (bits == 0) {
            const float special[] = {INFINITY, -INFINITY, 1};
            memcpy(x + 1, special, sizeof special);
        }
        if (bits == (uint64_t)probe->lanes * STEP * 5)
            x[0] = -1, x[1] = -0.0F, x[2] = NAN;
        probe->pow(x, beta, y);
        for (int i = 0; i < probe->lanes; i++) {
            double want = pow((double)x[i], (double)beta);
            bool same = isnan(want) ? isnan(y[i]) : error_of_power(y[i], want) <= 1.8;
            same = same || y[i] == (float)want || (isinf(y[i]) && fabs(want) > 0x1.FFFFF8p127);
            cr_assert(same, "%s: pow(%a, %g) = %a, expected %a", gb_isa_name(probe->isa),
                    (double)x[i], (double)beta, (double)y[i], want);
        }
    }
}

ISA_TEST(vec_math, pow)
{
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++)
        check_pow(vec_probe_of(isa), exponents[i]);
}

/* Whose significands are the ends of their range, or far from it. */
static const float divisors[] = {3, 6, 0.1F, -0.12F, 1.5F, 0x1.fffffep0F, 0x1.fffffcp-7F,
        0x1.000002p0F, -0x1.000004p9F, 0.0078431377F, 127, 255, 0x1.6a09e6p-20F, -0x1.921fb6p-59F,
        0x1.5bf0a8p59F};

static void check_div_known(const vec_probe *probe, float divisor)
{
    float x[PROBE_LANES], y[PROBE_LANES];
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += (uint64_t)probe->lanes * STEP) {
        for (int i = 0; i < probe->lanes; i++)
            x[i] = from_bits((uint32_t)(bits + (uint64_t)i * STEP));
        if (bits == 0) {
            const float special[] = {INFINITY, -INFINITY, NAN};
            memcpy(x + 1, special, sizeof special);
        }
        probe->div_known(x, divisor, y);
        for (int i = 0; i < probe->lanes; i++) {
            float want = x[i] / divisor;
            bool same = isnan(want) ? isnan(y[i]) : y[i] == want;
            same = same || (fabsf(x[i]) < 0x1p-100F && fabsf(y[i] - want) < 0x1p-60F) ||
                   (fabsf(want) < 0x1p-100F && fabsf(y[i]) < 0x1p-99F) ||
                   (isinf(want) && fabsf(y[i]) > 0x1p127F && signbit(y[i]) == signbit(want));
            cr_assert(same, "%s: %a / %a = %a, expected %a", gb_isa_name(probe->isa), (double)x[i],
                    (double)divisor, (double)y[i], (double)want);
        }
    }
}

ISA_TEST(vec_math, div_known)
{
    for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++)
        check_div_known(vec_probe_of(isa), divisors[i]);
}
