/* Elementary functions of f32 lanes over the whole domain, with the largest error of each in ulps
 * of the exact result.
 *
 * NaN gives NaN; infinities and overflow behave as in the C library; subnormal arguments are exact,
 * subnormal results gradual. Coefficients are minimax fits to the reduced argument (weighted least
 * squares, rounded to f32).
 */
#ifndef GB_KERNELS_ISA_VEC_MATH_H
#define GB_KERNELS_ISA_VEC_MATH_H

#include <float.h>
#include <math.h>

#include "kernels/isa/vec.h"

/* ln 2 in two parts; the first has 15 bits, so that its product with an exponent is exact. */
#define GB_LN2_HIGH 0x1.62e4p-1F
#define GB_LN2_LOW  0x1.7f7d1cp-20F
#define GB_LOG2_E   0x1.715476p+0F

/* Horner: coefficients from the highest power to the constant. */
#define GB_POLYNOMIAL(x, ...)                                                                      \
    gb_polynomial(x, (const float[]){__VA_ARGS__},                                                 \
            (int)(sizeof((const float[]){__VA_ARGS__}) / sizeof(float)))

static inline vf gb_polynomial(vf x, const float *coefficients, int n)
{
    vf sum = vf_set1(coefficients[0]);
#pragma GCC unroll 16
    for (int i = 1; i < n; i++)
        sum = vf_fma(sum, x, vf_set1(coefficients[i]));
    return sum;
}

/* Limits x, keeping NaN. */
static inline vf gb_clamp(vf x, float low, float high)
{
    return vf_min(vf_set1(high), vf_max(vf_set1(low), x));
}
/* -|x| */
static inline vf gb_negative(vf x)
{
    return vi_as_vf(vi_or(vf_bits(x), vi_set1(INT32_MIN)));
}
/* v with the sign bit of `sign`; v >= 0. */
static inline vf gb_with_sign(vf v, vf sign)
{
    return vi_as_vf(vi_or(vf_bits(v), vi_and(vf_bits(sign), vi_set1(INT32_MIN))));
}

/* x / y as it is rounded, of a quotient that is off by an ulp. */
static inline vf gb_correct_quotient(vf quotient, vf x, vf y, vf reciprocal)
{
    return vf_fma(vf_fnma(quotient, y, x), reciprocal, quotient);
}
/* x / y where `reciprocal` is 1 / y, rounded, and |y| is between 2^-60 and 2^60: the same bits as those of vf_div(),
 * but where the quotient overflows, or it or x is below 2^-100; and -0 becomes 0. A product and its correction:
 * N. Brisebarre, J.-M. Muller, S. K. Raina, "Accelerating correctly rounded floating-point division when the divisor is
 * known in advance", 2004. */
static inline vf vf_div_known(vf x, vf y, vf reciprocal)
{
#if defined(GB_VEC_HAS_FMA)
    /* The correction of an infinite quotient would be NaN. */
    vf quotient = gb_clamp(vf_mul(x, reciprocal), -FLT_MAX, FLT_MAX);
    return gb_correct_quotient(quotient, x, y, reciprocal);
#else
    (void)reciprocal;
    return vf_div(x, y);
#endif
}
/* x / y likewise, of a finite x, for a constant y. */
static inline vf gb_div_finite(vf x, float y)
{
#if defined(GB_VEC_HAS_FMA)
    vf reciprocal = vf_set1(1 / y);
    return gb_correct_quotient(vf_mul(x, reciprocal), x, vf_set1(y), reciprocal);
#else
    return vf_div(x, vf_set1(y));
#endif
}

/* x - n ln 2 */
static inline vf gb_exp_rest(vf x, vf n)
{
    return vf_fnma(n, vf_set1(GB_LN2_LOW), vf_fnma(n, vf_set1(GB_LN2_HIGH), x));
}
/* x = n ln 2 + r with |r| <= ln 2 / 2; gives r. */
static inline vf gb_exp_reduce(vf x, vf *n)
{
    *n = vf_round(vf_mul(x, vf_set1(GB_LOG2_E)));
    return gb_exp_rest(x, *n);
}
/* (e^r - 1 - r) / r^2 */
static inline vf gb_exp_series(vf r)
{
    return GB_POLYNOMIAL(r, 0.0013946794F, 0.008366782F, 0.041666277F, 0.16666542F, 0.5F);
}

/* 1.1 ulp; without multiply-adds of one rounding 1.21 */
static inline vf vf_exp(vf x)
{
    vf n, r = gb_exp_reduce(gb_clamp(x, -105.0F, 89.0F), &n);
    vf one = vf_set1(1.0F), sum = vf_fma(vf_fma(gb_exp_series(r), r, one), r, one);
    return vf_scale_whole(sum, n);
}

/* e^x for x <= 0, results below e^-87.3 flushed to 0: for the terms of a softmax, whose largest is
 * 1. 1.1 ulp. Processors take a hundred times as long for subnormal results. */
static inline vf vf_exp_flushed(vf x)
{
    /* Beside this number only whole ones fit: the last bits of the sum are n + 127. */
    vf whole = vf_set1(0x1.8p23F + 127), biased = vf_fma(x, vf_set1(GB_LOG2_E), whole);
    vf n = vf_sub(biased, whole), r = gb_exp_rest(x, n), one = vf_set1(1.0F);
    vf power = vi_as_vf(vi_shl(vf_bits(biased), 23)); /* 2^n */
    vf sum = vf_fma(vf_fma(gb_exp_series(r), r, one), r, one);
    return vf_select(vf_lt(x, vf_set1(-87.3F)), vf_zero(), vf_mul(sum, power));
}

/* e^x - 1. 2 ulp. At -87 the result is -1 already, and 2^(n - 1) below is a normal number. */
static inline vf vf_expm1(vf x)
{
    vf n, r = gb_exp_reduce(gb_clamp(x, -87.0F, 89.0F), &n);
    vf sum = vf_fma(vf_mul(r, r), gb_exp_series(r), r);
    vf half_power = vi_as_vf(vi_shl(vi_add(vi_from_vf(n), vi_set1(126)), 23));
    vf half = vf_fma(half_power, sum, vf_sub(half_power, vf_set1(0.5F)));
    vf result = vf_add(half, half);
    return vf_select(vf_lt(vf_abs(x), vf_set1(0x1p-24F)), x, result);
}

/* 2^x for x from -252 to 127. 1 ulp. */
static inline vf gb_exp2(vf x)
{
    vf n = vf_round(x), r = vf_sub(x, n);
    vf sum = GB_POLYNOMIAL(r, 0.00015353342F, 0.0013398901F, 0.009618438F, 0.055503324F,
            0.24022648F, 0.6931472F, 1.0F);
    return vf_scale_whole(sum, n);
}

/* x = 2^e (1 + f) with 1 + f in sqrt(1/2) .. sqrt(2); gives f. x is a positive normal number. */
static inline vf gb_log_reduce(vf x, vi *e)
{
    vi bits = vf_bits(x);
    *e = vi_shr(vi_sub(bits, vi_set1(0x3F3504F3)), 23);
    return vf_sub(vi_as_vf(vi_sub(bits, vi_shl(*e, 23))), vf_set1(1.0F));
}
/* ln(2^e (1 + f)) */
static inline vf gb_log_kernel(vf f, vf e)
{
    vf series = GB_POLYNOMIAL(f, -0.07634487F, 0.12761962F, -0.13160364F, 0.14201719F, -0.16623336F,
            0.20001228F, -0.25000823F, 0.3333333F);
    vf square = vf_mul(f, f), low = vf_mul(vf_mul(f, square), series);
    low = vf_fma(e, vf_set1(GB_LN2_LOW), low);
    low = vf_fnma(vf_set1(0.5F), square, low);
    return vf_fma(e, vf_set1(GB_LN2_HIGH), vf_add(f, low));
}
/* Puts the logarithm's values for x = 0, x < 0, infinity and NaN into `result`. */
static inline vf gb_log_special(vf x, vf result)
{
    vf infinity = vf_set1(INFINITY), zero = vf_zero();
    vf otherwise = vf_select(vf_eq(x, zero), vf_neg(infinity), vf_set1(NAN));
    otherwise = vf_select(vf_eq(x, infinity), x, otherwise);
    return vf_select(vm_and(vf_gt(x, zero), vf_lt(x, infinity)), result, otherwise);
}

/* 1.1 ulp */
static inline vf vf_log(vf x)
{
    vm tiny = vf_lt(x, vf_set1(0x1p-126F));
    vi e;
    vf f = gb_log_reduce(vf_select(tiny, vf_mul(x, vf_set1(0x1p23F)), x), &e);
    vf exponent = vf_sub(vf_from_vi(e), vf_select(tiny, vf_set1(23.0F), vf_zero()));
    return gb_log_special(x, gb_log_kernel(f, exponent));
}

/* ln(1 + x) for 0 <= x <= 1, what the rounding of 1 + x loses added to the reduced argument. 1.5
 * ulp */
static inline vf gb_log1p_unit(vf x)
{
    vf one = vf_set1(1.0F), sum = vf_add(one, x), lost = vf_sub(x, vf_sub(sum, one));
    vi e;
    vf f = gb_log_reduce(sum, &e);
    vf power = vi_as_vf(vi_shl(vi_sub(vi_set1(127), e), 23)); /* 2^-e */
    return gb_log_kernel(vf_fma(lost, power, f), vf_from_vi(e));
}
/* ln(1 + x). 1.5 ulp */
static inline vf vf_log1p(vf x)
{
    vf one = vf_set1(1.0F), sum = vf_add(one, x);
    vf lost_small = vf_sub(x, vf_sub(sum, one)), lost_large = vf_sub(one, vf_sub(sum, x));
    vf lost = vf_select(vf_lt(x, one), lost_small, lost_large);
    vi e;
    vf f = gb_log_reduce(sum, &e);
    vf result = gb_log_kernel(vf_add(f, vf_scale(lost, vi_sub(vi_set1(0), e))), vf_from_vi(e));
    result = vf_select(vf_lt(vf_abs(x), vf_set1(0x1p-24F)), x, result);
    return gb_log_special(sum, result);
}

#if defined(GB_VEC_HAS_LOOKUP16)
/* tanh(center + t) for |t| up to half an interval: coefficients from t^6 to the constant, then the center. Intervals
 * begin at powers of two and half way between them, so that the lowest 4 bits of an exponent and one bit behind it are
 * the entry: 6 is 0 .. 3/32, 7 is 3/32 .. 1/8, ..., 15 is 3/2 .. 2, 0 is 2 .. 3, ..., 4 is 8 .. 12; 5 is not used. Of
 * centers near the middle those were chosen whose tanh is almost an f32. */
enum { GB_TANH_POWERS = 7 };
static const float gb_tanh_table[GB_TANH_POWERS + 1][16] = {
        {-0.0006961282F, -0.00015821145F, -9.313835e-6F, -1.7224836e-7F, -8.993982e-6F,
                -8.993982e-6F, -0.014763112F, -0.2585735F, -0.03647307F, -0.15965773F, -0.07479495F,
                -0.06167521F, -0.024452295F, 0.012896605F, 0.015142087F, 0.0021161817F},
        {0.0028430463F, 0.00053491356F, 2.4036472e-5F, 5.045202e-7F, 1.8163412e-7F, 1.8163412e-7F,
                0.13484325F, 0.12065783F, 0.10804389F, 0.08567929F, 0.047331117F, -0.005206965F,
                -0.05258574F, -0.05776293F, -0.022252552F, 0.0032468608F},
        {-0.007900769F, -0.0013186083F, -4.961814e-5F, -1.0499074e-6F, 4.58165e-6F, 4.58165e-6F,
                -7.024054e-5F, 0.06998019F, 0.09564425F, 0.12704806F, 0.15716647F, 0.1700533F,
                0.14113317F, 0.05781208F, -0.009616166F, -0.023844548F},
        {0.016681055F, 0.002650475F, 0.00010224236F, 2.1083868e-6F, 8.547952e-8F, 8.547952e-8F,
                -0.3333319F, -0.3179277F, -0.30298516F, -0.27421916F, -0.2221773F, -0.13756599F,
                -0.024574487F, 0.08423973F, 0.10958855F, 0.06471699F},
        {-0.02570294F, -0.0039943927F, -0.0001561923F, -3.2237474e-6F, -7.268155e-7F, -7.268155e-7F,
                -9.425239e-9F, -0.106705375F, -0.14867023F, -0.20444351F, -0.27221325F,
                -0.34101343F, -0.38324806F, -0.35257563F, -0.24714977F, -0.11075509F},
        {0.02604455F, 0.004002663F, 0.0001558455F, 3.2230478e-6F, 1.4192759e-7F, 1.4192759e-7F,
                1.0F, 0.98834383F, 0.9768365F, 0.9540829F, 0.91064465F, 0.8320084F, 0.7016815F,
                0.4972531F, 0.29417866F, 0.11792619F},
        {0.98689187F, 0.9979967F, 0.99992216F, 0.9999984F, 0.99999994F, 0.99999994F, 0.0F,
                0.107963815F, 0.15219562F, 0.21428269F, 0.29892364F, 0.4098678F, 0.54618543F,
                0.7090465F, 0.8401317F, 0.9391878F},
        {2.510547F, 3.4525492F, 5.076958F, 7.0164185F, 8.576717F, 8.576717F, 0.0F, 0.108386256F,
                0.15338735F, 0.21765587F, 0.3083372F, 0.4354523F, 0.61292875F, 0.8852637F,
                1.221621F, 1.7311172F}};

/* A polynomial of the interval of |x|; from 9.03 on the result is 1. 1.3 ulp */
static inline vf vf_tanh(vf x)
{
    vf magnitude = vf_min(vf_set1(9.03F), vf_abs(x));
    vi entry = vi_shr_logical(vf_bits(vf_max(vf_set1(0x1p-4F), magnitude)), 22);
    vf t = vf_sub(magnitude, vf_lookup16(vf_load(gb_tanh_table[GB_TANH_POWERS]), entry));
    vf sum = vf_lookup16(vf_load(gb_tanh_table[0]), entry);
#pragma GCC unroll 8
    for (int i = 1; i < GB_TANH_POWERS; i++)
        sum = vf_fma(sum, t, vf_lookup16(vf_load(gb_tanh_table[i]), entry));
    return gb_with_sign(sum, x);
}
#else
/* With e = e^(-2|x|) - 1: tanh|x| = -e / (e + 2). 2.5 ulp */
static inline vf vf_tanh(vf x)
{
    vf magnitude = vf_abs(x), e = vf_expm1(vf_mul(magnitude, vf_set1(-2.0F)));
    return gb_with_sign(vf_div(vf_neg(e), vf_add(e, vf_set1(2.0F))), x);
}
#endif

/* y / (1 + e^-x), by e^-|x| so that nothing overflows. */
static inline vf gb_times_sigmoid(vf y, vf x)
{
    vf e = vf_exp(gb_negative(x));
    vf numerator = vf_select(vf_lt(x, vf_zero()), vf_mul(y, e), y);
    return vf_div(numerator, vf_add(vf_set1(1.0F), e));
}
/* 1 / (1 + e^-x). 2.5 ulp */
static inline vf vf_sigmoid(vf x)
{
    return gb_times_sigmoid(vf_set1(1.0F), x);
}

/* -|x|, -13 at least: beyond, gb_normal_tail() is 0. */
static inline vf gb_tail_argument(vf x)
{
    return vf_max(vf_set1(-13.0F), gb_negative(x));
}
/* The normal distribution's integral from -infinity to x, -13 <= x <= 0: 2^P(x) with P fitted on -6 .. 0.
 * Error (2 + 2 x^2) ulp down to -6, absolute below 1e-9 beyond. P(-13) is -248. */
static inline vf gb_normal_tail(vf x)
{
    vf exponent = GB_POLYNOMIAL(x, -1.8240462e-08F, -5.8447995e-07F, -7.996621e-06F,
            -5.9000606e-05F, -0.0002191855F, 0.00012573559F, 0.0070999395F, 0.05254304F,
            -0.45918882F, 1.1511075F, -1.0F);
    return gb_exp2(exponent);
}

/* x / 2 (1 + erf(x / sqrt 2)): x times the integral to x, which beyond 0 is 1 less that to -x. Without
 * cancellation for x < 0. (3 + x^2) ulp to -6, below absolute error 1e-9 |x|; of -infinity
 * NaN. */
static inline vf vf_gelu_erf(vf x)
{
    vf a = gb_tail_argument(x), factor = vf_min(x, a); /* finite where x is infinity */
    return vf_fma(factor, gb_normal_tail(a), vf_max(vf_zero(), x));
}
/* Its derivative. */
static inline vf vf_gelu_erf_slope(vf x)
{
    vf density = vf_exp(vf_mul(vf_mul(x, x), vf_set1(-0.5F)));
    vf scaled = vf_mul(x, vf_set1(0x1.988454p-2F)); /* x / sqrt(2 pi) */
    vf tail = gb_normal_tail(gb_tail_argument(x));
    vf integral = vf_select(vf_gt(x, vf_zero()), vf_sub(vf_set1(1.0F), tail), tail);
    return vf_fma(scaled, density, integral);
}

/* sqrt(2 / pi) x (1 + 0.044715 x^2) */
static inline vf gb_gelu_tanh_argument(vf x)
{
    vf cubic = vf_fma(vf_mul(x, x), vf_set1(0.044715F), vf_set1(1.0F));
    return vf_mul(vf_mul(x, vf_set1(0x1.988454p-1F)), cubic);
}
/* x / 2 (1 + tanh u) = x sigmoid(2 u), without cancellation. (4 + 7 |u|) ulp */
static inline vf vf_gelu_tanh(vf x)
{
    vf u = gb_gelu_tanh_argument(x);
    return gb_times_sigmoid(x, vf_add(u, u));
}
/* Its derivative: s + x s (1 - s) 2 u' with s = sigmoid(2 u). */
static inline vf vf_gelu_tanh_slope(vf x)
{
    vf limited = gb_clamp(x, -0x1p40F, 0x1p40F); /* keeps x^2 finite */
    vf u = gb_gelu_tanh_argument(limited), one = vf_set1(1.0F);
    vf s = vf_sigmoid(vf_add(u, u)), rest = vf_sigmoid(vf_mul(u, vf_set1(-2.0F)));
    vf slope = vf_fma(vf_mul(limited, limited), vf_set1(0.134145F), one);
    slope = vf_mul(slope, vf_set1(0x1.988454p0F)); /* 2 u' */
    return vf_fma(vf_mul(vf_mul(limited, slope), s), rest, s);
}

/* ln(1 + e^x) = max(x, 0) + log1p(e^-|x|). 2 ulp */
static inline vf vf_softplus(vf x)
{
    vf tail = gb_log1p_unit(vf_exp(gb_negative(x)));
    return vf_add(vf_max(vf_zero(), x), tail);
}

/* tanh(softplus(x)) = n / (n + 2) with n = e^2x + 2 e^x, rounded once. 3.5 ulp */
static inline vf gb_mish_factor(vf x)
{
    vf two = vf_set1(2.0F), e = vf_exp(vf_min(vf_set1(30.0F), x));
    vf n = vf_fma(e, e, vf_add(e, e));
    return vf_div(n, vf_add(n, two));
}
/* x tanh(ln(1 + e^x)). 4 ulp: 3.98 at most, measured of all numbers */
static inline vf vf_mish(vf x)
{
    return vf_mul(x, gb_mish_factor(x));
}
/* Its derivative: t + x sigmoid(x) (1 - t^2), with 1 - t = 2 / (n + 2) free of cancellation. */
static inline vf vf_mish_slope(vf x)
{
    vf one = vf_set1(1.0F), two = vf_set1(2.0F), e = vf_exp(vf_min(vf_set1(30.0F), x));
    vf n = vf_mul(e, vf_add(e, two)), sum = vf_add(n, two);
    vf t = vf_div(n, sum), rest = vf_mul(vf_div(two, sum), vf_add(one, t));
    vf limited = gb_clamp(x, -110.0F, 110.0F);
    return vf_fma(vf_mul(limited, vf_div(e, vf_add(one, e))), rest, t);
}

/* a b - product, exactly, for product = a b rounded and |a|, |b| < 2^64. */
static inline vf gb_product_rest(vf a, vf b, vf product)
{
#if defined(GB_VEC_HAS_FMA)
    return vf_fma(a, b, vf_neg(product));
#else
    vi upper = vi_set1(-0x1000); /* 12 of the 24 bits */
    vf a_high = vi_as_vf(vi_and(vf_bits(a), upper)), a_low = vf_sub(a, a_high);
    vf b_high = vi_as_vf(vi_and(vf_bits(b), upper)), b_low = vf_sub(b, b_high);
    vf rest = vf_sub(vf_mul(a_high, b_high), product);
    rest = vf_add(vf_add(rest, vf_mul(a_high, b_low)), vf_mul(a_low, b_high));
    return vf_add(rest, vf_mul(a_low, b_low));
#endif
}

/* ln x in two parts with a relative error of 2^-29; x is positive and finite. The series runs in s
 * = f / (2 + f). */
static inline vf gb_log_two_parts(vf x, vf *low)
{
    vm tiny = vf_lt(x, vf_set1(0x1p-126F));
    vi e;
    vf f = gb_log_reduce(vf_select(tiny, vf_mul(x, vf_set1(0x1p23F)), x), &e);
    vf exponent = vf_sub(vf_from_vi(e), vf_select(tiny, vf_set1(23.0F), vf_zero()));
    vf two = vf_set1(2.0F), sum = vf_add(f, two), lost = vf_sub(f, vf_sub(sum, two));
    vf s = vf_div(f, sum), product = vf_mul(s, sum);
    vf rest = vf_sub(vf_sub(f, product), vf_fma(s, lost, gb_product_rest(s, sum, product)));
    vf square = vf_mul(s, s);
    vf series = GB_POLYNOMIAL(square, 0.23589219F, 0.28536958F, 0.4000034F, 0.6666666F);
    vf small = vf_fma(vf_mul(s, square), series, vf_mul(two, vf_div(rest, sum)));
    vf big = vf_mul(exponent, vf_set1(GB_LN2_HIGH)), twice = vf_add(s, s);
    vf high = vf_add(big, twice);
    vf carried = vf_sub(high, big),
       carry = /* two-sum: either may be the larger */
       vf_add(vf_sub(big, vf_sub(high, carried)), vf_sub(twice, carried));
    small = vf_add(carry, vf_fma(exponent, vf_set1(GB_LN2_LOW), small));
    vf result = vf_add(high, small);
    *low = vf_add(vf_sub(high, result), small);
    return result;
}

/* |x|^beta for finite x other than 0, and beta other than 0. */
static inline vf gb_pow_magnitude(vf x, float beta)
{
    float limited =
            fminf(fmaxf(beta, -0x1p40F), 0x1p40F); /* beyond, the result is 0, 1 or infinite */
    vf low, high = gb_log_two_parts(x, &low), power = vf_set1(limited);
    vf product = vf_mul(high, power);
    vf rest = vf_fma(low, power, gb_product_rest(high, power, product));
    vf n, clamped = gb_clamp(product, -105.0F, 89.0F), one = vf_set1(1.0F);
    vf r = gb_exp_reduce(clamped, &n);
    r = vf_add(r, vf_select(vf_eq(clamped, product), rest, vf_zero()));
    return vf_scale_whole(vf_fma(vf_fma(gb_exp_series(r), r, one), r, one), n);
}
/* x^beta as powf() defines it. 1.8 (1 + |ln y| / 40) ulp, y the result */
static inline vf vf_pow(vf x, float beta)
{
    if (beta == 0)
        return vf_set1(1.0F);
    if (beta == 1)
        return x;
    if (beta == 2)
        return vf_mul(x, x);
    if (beta == -1)
        return vf_div(vf_set1(1.0F), x);
    if (beta == 0.5F) /* -0 gives 0, -infinity gives infinity */
        return vf_select(vf_eq(x, vf_set1(-INFINITY)), vf_neg(x), vf_sqrt(vf_add(x, vf_zero())));
    bool integral = floorf(beta) == beta; /* infinities count as even numbers */
    bool odd = integral && fabsf(beta) < 0x1p24F && fmodf(beta, 2) != 0;
    vf zero = vf_zero(), infinity = vf_set1(INFINITY), magnitude = vf_abs(x);
    vf result = gb_pow_magnitude(magnitude, beta);
    result = vf_select(vf_eq(magnitude, zero), beta > 0 ? zero : infinity, result);
    result = vf_select(vf_eq(magnitude, infinity), beta > 0 ? infinity : zero, result);
    if (isnan(beta))
        result = vf_set1(NAN);
    if (integral)
        result = vf_select(vf_eq(magnitude, vf_set1(1.0F)), magnitude, result);
    vm negative = vf_lt(x, zero);
    if (odd)
        result = gb_with_sign(result, x);
    if (!integral && !isnan(beta))
        result = vf_select(vm_and(negative, vf_lt(magnitude, infinity)), vf_set1(NAN), result);
    result = vf_select(vf_unordered(x, x), x, result);
    return vf_select(vf_eq(x, vf_set1(1.0F)), x, result);
}

#endif
