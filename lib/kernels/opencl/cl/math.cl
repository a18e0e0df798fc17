/* Elementary functions over the whole domain, with the errors of kernels/isa/vec_math.h, whose
 * reductions and coefficients these are: those of a device may be off by 16 ulp. */
#define GB_WITH_MATH
#define GB_LN2_HIGH 0x1.62e4p-1f
#define GB_LN2_LOW  0x1.7f7d1cp-20f
#define GB_LOG2_E   0x1.715476p+0f
#ifdef GB_FMA
#define gb_fma(a, b, c) fma(a, b, c)
#else
#define gb_fma(a, b, c) ((a) * (b) + (c))
#endif

GB_INLINE GB_FLOAT gb_clamp(GB_FLOAT x, GB_FLOAT low, GB_FLOAT high)
{
    return gb_min(high, gb_max(low, x));
}
/* v 2^n, n in -252 .. 254 */
GB_INLINE GB_FLOAT gb_scale(GB_FLOAT v, GB_INT n)
{
    GB_INT half_n = n >> 1;
    return v * GB_AS_F((half_n + 127) << 23) * GB_AS_F((n - half_n + 127) << 23);
}
GB_INLINE GB_FLOAT gb_with_sign(GB_FLOAT v, GB_FLOAT sign)
{
    return GB_AS_F(GB_AS_U(v) | (GB_AS_U(sign) & 0x80000000u));
}

/* x = n ln 2 + r with |r| <= ln 2 / 2 */
GB_INLINE GB_FLOAT gb_exp_reduce(GB_FLOAT x, GB_FLOAT *n)
{
    *n = rint(x * GB_LOG2_E);
    return gb_fma(-*n, GB_LN2_LOW, gb_fma(-*n, GB_LN2_HIGH, x));
}
/* (e^r - 1 - r) / r^2 */
GB_INLINE GB_FLOAT gb_exp_series(GB_FLOAT r)
{
    GB_FLOAT s = gb_fma(0.0013946794f, r, 0.008366782f);
    s = gb_fma(s, r, 0.041666277f);
    s = gb_fma(s, r, 0.16666542f);
    return gb_fma(s, r, 0.5f);
}
GB_INLINE GB_FLOAT gb_exp(GB_FLOAT x)
{
    GB_FLOAT n, r = gb_exp_reduce(gb_clamp(x, -105.0f, 89.0f), &n);
    GB_FLOAT sum = gb_fma(gb_fma(gb_exp_series(r), r, 1.0f), r, 1.0f);
    return gb_scale(sum, GB_TO_I(n));
}
GB_INLINE GB_FLOAT gb_expm1(GB_FLOAT x)
{
    GB_FLOAT n, r = gb_exp_reduce(gb_clamp(x, -87.0f, 89.0f), &n);
    GB_FLOAT sum = gb_fma(r * r, gb_exp_series(r), r);
    GB_FLOAT half_power = GB_AS_F((GB_TO_I(n) + 126) << 23);
    GB_FLOAT half_sum = gb_fma(half_power, sum, half_power - 0.5f);
    return fabs(x) < 0x1p-24f ? x : half_sum + half_sum;
}
/* 2^x for x <= 127 */
GB_INLINE GB_FLOAT gb_exp2(GB_FLOAT x)
{
    GB_FLOAT limited = gb_max(-151.0f, x), n = rint(limited), r = limited - n;
    GB_FLOAT s = gb_fma(0.00015353342f, r, 0.0013398901f);
    s = gb_fma(s, r, 0.009618438f);
    s = gb_fma(s, r, 0.055503324f);
    s = gb_fma(s, r, 0.24022648f);
    s = gb_fma(s, r, 0.6931472f);
    s = gb_fma(s, r, 1.0f);
    return gb_scale(s, GB_TO_I(n));
}

/* x = 2^e (1 + f) with 1 + f in sqrt(1/2) .. sqrt(2); gives f. x is a positive normal number. */
GB_INLINE GB_FLOAT gb_log_reduce(GB_FLOAT x, GB_INT *e)
{
    GB_INT bits = GB_AS_I(x);
    *e = (bits - 0x3F3504F3) >> 23;
    return GB_AS_F(bits - GB_AS_I(GB_AS_U(*e) << 23)) - 1.0f;
}
GB_INLINE GB_FLOAT gb_log_kernel(GB_FLOAT f, GB_FLOAT e)
{
    GB_FLOAT s = gb_fma(-0.07634487f, f, 0.12761962f);
    s = gb_fma(s, f, -0.13160364f);
    s = gb_fma(s, f, 0.14201719f);
    s = gb_fma(s, f, -0.16623336f);
    s = gb_fma(s, f, 0.20001228f);
    s = gb_fma(s, f, -0.25000823f);
    s = gb_fma(s, f, 0.3333333f);
    GB_FLOAT square = f * f, low = square * f * s;
    low = gb_fma(e, GB_LN2_LOW, low);
    low = gb_fma(-0.5f, square, low);
    return gb_fma(e, GB_LN2_HIGH, f + low);
}
GB_INLINE GB_FLOAT gb_log_special(GB_FLOAT x, GB_FLOAT result)
{
    GB_FLOAT otherwise = x == 0.0f ? -INFINITY : NAN;
    otherwise = x == INFINITY ? x : otherwise;
    return x > 0.0f && x < INFINITY ? result : otherwise;
}
GB_INLINE GB_FLOAT gb_log(GB_FLOAT x)
{
    GB_INT tiny = x < 0x1p-126f;
    GB_INT e;
    GB_FLOAT f = gb_log_reduce(tiny ? x * 0x1p23f : x, &e);
    return gb_log_special(x, gb_log_kernel(f, GB_TO_F(e) - (tiny ? 23.0f : 0.0f)));
}
/* ln(1 + x) for 0 <= x <= 1 */
GB_INLINE GB_FLOAT gb_log1p_unit(GB_FLOAT x)
{
    GB_FLOAT sum = 1.0f + x, lost = x - (sum - 1.0f);
    GB_INT e;
    GB_FLOAT f = gb_log_reduce(sum, &e), power = GB_AS_F((127 - e) << 23);
    return gb_log_kernel(gb_fma(lost, power, f), GB_TO_F(e));
}

GB_INLINE GB_FLOAT gb_tanh(GB_FLOAT x)
{
    GB_FLOAT e = gb_expm1(fabs(x) * -2.0f);
    return gb_with_sign(gb_div(-e, e + 2.0f), x);
}
/* y / (1 + e^-x) */
GB_INLINE GB_FLOAT gb_times_sigmoid(GB_FLOAT y, GB_FLOAT x)
{
    GB_FLOAT e = gb_exp(-fabs(x));
    return gb_div(x < 0.0f ? y * e : y, 1.0f + e);
}
GB_INLINE GB_FLOAT gb_sigmoid(GB_FLOAT x)
{
    return gb_times_sigmoid(1.0f, x);
}

/* The normal distribution's integral from -infinity to -a, a >= 0. */
GB_INLINE GB_FLOAT gb_normal_tail(GB_FLOAT a)
{
    GB_FLOAT s = gb_fma(-1.8240462e-08f, a, 5.8447995e-07f);
    s = gb_fma(s, a, -7.996621e-06f);
    s = gb_fma(s, a, 5.9000606e-05f);
    s = gb_fma(s, a, -0.0002191855f);
    s = gb_fma(s, a, -0.00012573559f);
    s = gb_fma(s, a, 0.0070999395f);
    s = gb_fma(s, a, -0.05254304f);
    s = gb_fma(s, a, -0.45918882f);
    s = gb_fma(s, a, -1.1511075f);
    s = gb_fma(s, a, -1.0f);
    return gb_exp2(s);
}
GB_INLINE GB_FLOAT gb_normal_integral(GB_FLOAT x)
{
    GB_FLOAT tail = gb_normal_tail(gb_min(16.0f, fabs(x)));
    return x > 0.0f ? 1.0f - tail : tail;
}
GB_INLINE GB_FLOAT gb_gelu_erf(GB_FLOAT x)
{
    return x * gb_normal_integral(x);
}
GB_INLINE GB_FLOAT gb_gelu_erf_slope(GB_FLOAT x)
{
    GB_FLOAT density = gb_exp(x * x * -0.5f);
    return gb_fma(x * 0x1.988454p-2f, density, gb_normal_integral(x));
}
GB_INLINE GB_FLOAT gb_gelu_tanh_argument(GB_FLOAT x)
{
    return x * 0x1.988454p-1f * gb_fma(x * x, 0.044715f, 1.0f);
}
GB_INLINE GB_FLOAT gb_gelu_tanh(GB_FLOAT x)
{
    GB_FLOAT u = gb_gelu_tanh_argument(x);
    return gb_times_sigmoid(x, u + u);
}
GB_INLINE GB_FLOAT gb_gelu_tanh_slope(GB_FLOAT x)
{
    GB_FLOAT limited = gb_clamp(x, -0x1p40f, 0x1p40f), u = gb_gelu_tanh_argument(limited);
    GB_FLOAT s = gb_sigmoid(u + u), rest = gb_sigmoid(u * -2.0f);
    GB_FLOAT slope = gb_fma(limited * limited, 0.134145f, 1.0f) * 0x1.988454p0f;
    return gb_fma(limited * slope * s, rest, s);
}
GB_INLINE GB_FLOAT gb_softplus(GB_FLOAT x)
{
    return gb_max(0.0f, x) + gb_log1p_unit(gb_exp(-fabs(x)));
}
GB_INLINE GB_FLOAT gb_mish(GB_FLOAT x)
{
    GB_FLOAT e = gb_exp(gb_min(30.0f, x)), n = e * (e + 2.0f);
    return x * gb_div(n, n + 2.0f);
}
GB_INLINE GB_FLOAT gb_mish_slope(GB_FLOAT x)
{
    GB_FLOAT e = gb_exp(gb_min(30.0f, x)), n = e * (e + 2.0f), sum = n + 2.0f;
    GB_FLOAT t = gb_div(n, sum), rest = gb_div(2.0f, sum) * (1.0f + t);
    GB_FLOAT limited = gb_clamp(x, -110.0f, 110.0f);
    return gb_fma(limited * gb_div(e, 1.0f + e), rest, t);
}

/* a b - product, exactly, for product = a b rounded and |a|, |b| < 2^64 */
GB_INLINE GB_FLOAT gb_product_rest(GB_FLOAT a, GB_FLOAT b, GB_FLOAT product)
{
    GB_FLOAT a_high = GB_AS_F(GB_AS_I(a) & -0x1000), a_low = a - a_high;
    GB_FLOAT b_high = GB_AS_F(GB_AS_I(b) & -0x1000), b_low = b - b_high;
    GB_FLOAT rest = a_high * b_high - product;
    return ((rest + a_high * b_low) + a_low * b_high) + a_low * b_low;
}
/* ln x in two parts; x is positive and finite */
GB_INLINE GB_FLOAT gb_log_two_parts(GB_FLOAT x, GB_FLOAT *low)
{
    GB_INT tiny = x < 0x1p-126f;
    GB_INT e;
    GB_FLOAT f = gb_log_reduce(tiny ? x * 0x1p23f : x, &e);
    GB_FLOAT exponent = GB_TO_F(e) - (tiny ? 23.0f : 0.0f);
    GB_FLOAT sum = f + 2.0f, lost = f - (sum - 2.0f);
    GB_FLOAT s = gb_div(f, sum), product = s * sum;
    GB_FLOAT rest = (f - product) - gb_fma(s, lost, gb_product_rest(s, sum, product));
    GB_FLOAT square = s * s, series = gb_fma(0.23589219f, square, 0.28536958f);
    series = gb_fma(series, square, 0.4000034f);
    series = gb_fma(series, square, 0.6666666f);
    GB_FLOAT small = gb_fma(s * square, series, 2.0f * gb_div(rest, sum));
    GB_FLOAT big = exponent * GB_LN2_HIGH, twice = s + s, high = big + twice;
    GB_FLOAT carried = high - big, carry = (big - (high - carried)) + (twice - carried);
    small = carry + gb_fma(exponent, GB_LN2_LOW, small);
    GB_FLOAT result = high + small;
    *low = (high - result) + small;
    return result;
}
GB_INLINE GB_FLOAT gb_pow_magnitude(GB_FLOAT x, float beta)
{
    float power = fmin(fmax(beta, -0x1p40f), 0x1p40f);
    GB_FLOAT low, high = gb_log_two_parts(x, &low);
    GB_FLOAT product = high * power;
    GB_FLOAT rest = gb_fma(low, power, gb_product_rest(high, power, product));
    GB_FLOAT n, clamped = gb_clamp(product, -105.0f, 89.0f);
    GB_FLOAT r = gb_exp_reduce(clamped, &n);
    r += clamped == product ? rest : 0.0f;
    return gb_scale(gb_fma(gb_fma(gb_exp_series(r), r, 1.0f), r, 1.0f), GB_TO_I(n));
}
/* x^beta as powf() defines it */
GB_INLINE GB_FLOAT gb_pow(GB_FLOAT x, float beta)
{
    if (beta == 0.0f)
        return 1.0f;
    if (beta == 1.0f)
        return x;
    if (beta == 2.0f)
        return x * x;
    if (beta == -1.0f)
        return gb_div(1.0f, x);
    if (beta == 0.5f)
        return x == -INFINITY ? -x : gb_sqrt(x + 0.0f);
    bool integral = floor(beta) == beta;
    bool odd = integral && fabs(beta) < 0x1p24f && ((int)fabs(beta) & 1);
    GB_FLOAT magnitude = fabs(x), result = gb_pow_magnitude(magnitude, beta);
    result = magnitude == 0.0f ? (beta > 0.0f ? 0.0f : INFINITY) : result;
    result = magnitude == INFINITY ? (beta > 0.0f ? INFINITY : 0.0f) : result;
    if (beta != beta)
        result = NAN;
    if (integral)
        result = magnitude == 1.0f ? magnitude : result;
    if (odd)
        result = gb_with_sign(result, x);
    if (!integral && beta == beta)
        result = x < 0.0f && magnitude < INFINITY ? NAN : result;
    result = x != x ? x : result;
    return x == 1.0f ? x : result;
}

/* The slopes of activations. */
GB_INLINE GB_FLOAT gb_sigmoid_slope(GB_FLOAT x)
{
    GB_FLOAT e = gb_exp(-fabs(x)), sum = 1.0f + e;
    return gb_div(e, sum * sum);
}
GB_INLINE GB_FLOAT gb_tanh_slope(GB_FLOAT x)
{
    return 4.0f * gb_sigmoid_slope(x + x);
}
GB_INLINE GB_FLOAT gb_hardswish(GB_FLOAT x)
{
    return x * gb_clamp(gb_div(x + 3.0f, 6.0f), 0.0f, 1.0f);
}
GB_INLINE GB_FLOAT gb_hardswish_backward(GB_FLOAT x, GB_FLOAT g)
{
    GB_FLOAT inner = g * (gb_div(x, 3.0f) + 0.5f);
    inner = x <= -3.0f ? 0.0f : inner;
    return x >= 3.0f ? g : inner;
}

/* The integer part of 4294967295 p. */
GB_INLINE GB_UINT gb_threshold(GB_FLOAT p)
{
    GB_FLOAT within = p > 0.0f ? (p < 1.0f ? p : 1.0f) : 0.0f;
    GB_INT shift = 150 - GB_AS_I(GB_AS_U(within) >> 23);
    GB_ULONG mantissa = GB_TO_UL((GB_AS_U(within) & 0x7FFFFF) | 0x800000);
    GB_ULONG scaled = mantissa * 4294967295UL;
    GB_UINT whole = GB_TO_U(scaled >> GB_TO_UL(GB_AS_U(shift & 63)));
    return shift < 64 && within > 0.0f ? whole : 0;
}
/* 1 where the draw of an index, given as two halves, is above the threshold, else 0: Philox4x32-10
 * (Salmon et al., 2011). */
GB_INLINE GB_FLOAT gb_keep(GB_UINT low, GB_UINT high, ulong seed, ulong offset, GB_FLOAT p)
{
    bool shared = offset == 0;
    uint k0 = (uint)seed, k1 = shared ? k0 : (uint)(seed >> 32);
    GB_UINT c2 = low & ~3u, c0 = (uint)offset, c1 = (uint)(offset >> 32), c3 = high;
    if (shared) {
        c0 = c2;
        c1 = c2 + 1;
        c3 = c2 + 3;
    }
    for (int round = 0; round < 10; round++) {
        GB_UINT low0 = c0 * 0xD2511F53u, high0 = mul_hi(c0, (GB_UINT)(0xD2511F53u));
        GB_UINT low1 = c2 * 0xCD9E8D57u, high1 = mul_hi(c2, (GB_UINT)(0xCD9E8D57u));
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    GB_UINT word = low & 3, draw = word == 3 ? c3 : c2;
    draw = word == 1 ? c1 : draw;
    draw = word == 0 ? c0 : draw;
    if (shared)
        draw = c2;
    return draw > gb_threshold(p) ? 1.0f : 0.0f;
}
