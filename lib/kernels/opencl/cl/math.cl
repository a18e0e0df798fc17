/* Elementary functions over the whole domain, with the errors of kernels/isa/vec_math.h, whose
 * reductions and coefficients these are: those of a device may be off by 16 ulp. */
#define GB_LN2_HIGH 0x1.62e4p-1f
#define GB_LN2_LOW  0x1.7f7d1cp-20f
#define GB_LOG2_E   0x1.715476p+0f
#ifdef GB_FMA
#define gb_fma(a, b, c) fma(a, b, c)
#else
#define gb_fma(a, b, c) ((a) * (b) + (c))
#endif

static inline float gb_clamp(float x, float low, float high)
{
    return gb_min(high, gb_max(low, x));
}
/* v 2^n, n in -252 .. 254 */
static inline float gb_scale(float v, int n)
{
    int half_n = n >> 1;
    return v * as_float((half_n + 127) << 23) * as_float((n - half_n + 127) << 23);
}
static inline float gb_with_sign(float v, float sign)
{
    return as_float(as_uint(v) | (as_uint(sign) & 0x80000000u));
}

/* x = n ln 2 + r with |r| <= ln 2 / 2 */
static inline float gb_exp_reduce(float x, float *n)
{
    *n = rint(x * GB_LOG2_E);
    return gb_fma(-*n, GB_LN2_LOW, gb_fma(-*n, GB_LN2_HIGH, x));
}
/* (e^r - 1 - r) / r^2 */
static inline float gb_exp_series(float r)
{
    float s = gb_fma(0.0013946794f, r, 0.008366782f);
    s = gb_fma(s, r, 0.041666277f);
    s = gb_fma(s, r, 0.16666542f);
    return gb_fma(s, r, 0.5f);
}
static inline float gb_exp(float x)
{
    float n, r = gb_exp_reduce(gb_clamp(x, -105.0f, 89.0f), &n);
    float sum = gb_fma(gb_fma(gb_exp_series(r), r, 1.0f), r, 1.0f);
    return gb_scale(sum, (int)n);
}
static inline float gb_expm1(float x)
{
    float n, r = gb_exp_reduce(gb_clamp(x, -87.0f, 89.0f), &n);
    float sum = gb_fma(r * r, gb_exp_series(r), r);
    float half_power = as_float(((int)n + 126) << 23);
    float half_sum = gb_fma(half_power, sum, half_power - 0.5f);
    return fabs(x) < 0x1p-24f ? x : half_sum + half_sum;
}
/* 2^x for x <= 127 */
static inline float gb_exp2(float x)
{
    float limited = gb_max(-151.0f, x), n = rint(limited), r = limited - n;
    float s = gb_fma(0.00015353342f, r, 0.0013398901f);
    s = gb_fma(s, r, 0.009618438f);
    s = gb_fma(s, r, 0.055503324f);
    s = gb_fma(s, r, 0.24022648f);
    s = gb_fma(s, r, 0.6931472f);
    s = gb_fma(s, r, 1.0f);
    return gb_scale(s, (int)n);
}

/* x = 2^e (1 + f) with 1 + f in sqrt(1/2) .. sqrt(2); gives f. x is a positive normal number. */
static inline float gb_log_reduce(float x, int *e)
{
    int bits = as_int(x);
    *e = (bits - 0x3F3504F3) >> 23;
    return as_float(bits - (int)((uint)*e << 23)) - 1.0f;
}
static inline float gb_log_kernel(float f, float e)
{
    float s = gb_fma(-0.07634487f, f, 0.12761962f);
    s = gb_fma(s, f, -0.13160364f);
    s = gb_fma(s, f, 0.14201719f);
    s = gb_fma(s, f, -0.16623336f);
    s = gb_fma(s, f, 0.20001228f);
    s = gb_fma(s, f, -0.25000823f);
    s = gb_fma(s, f, 0.3333333f);
    float square = f * f, low = square * f * s;
    low = gb_fma(e, GB_LN2_LOW, low);
    low = gb_fma(-0.5f, square, low);
    return gb_fma(e, GB_LN2_HIGH, f + low);
}
static inline float gb_log_special(float x, float result)
{
    float otherwise = x == 0.0f ? -INFINITY : NAN;
    otherwise = x == INFINITY ? x : otherwise;
    return x > 0.0f && x < INFINITY ? result : otherwise;
}
static inline float gb_log(float x)
{
    bool tiny = x < 0x1p-126f;
    int e;
    float f = gb_log_reduce(tiny ? x * 0x1p23f : x, &e);
    return gb_log_special(x, gb_log_kernel(f, (float)e - (tiny ? 23.0f : 0.0f)));
}
/* ln(1 + x) for 0 <= x <= 1 */
static inline float gb_log1p_unit(float x)
{
    float sum = 1.0f + x, lost = x - (sum - 1.0f);
    int e;
    float f = gb_log_reduce(sum, &e), power = as_float((127 - e) << 23);
    return gb_log_kernel(gb_fma(lost, power, f), (float)e);
}

static inline float gb_tanh(float x)
{
    float e = gb_expm1(fabs(x) * -2.0f);
    return gb_with_sign(gb_div(-e, e + 2.0f), x);
}
/* y / (1 + e^-x) */
static inline float gb_times_sigmoid(float y, float x)
{
    float e = gb_exp(-fabs(x));
    return gb_div(x < 0.0f ? y * e : y, 1.0f + e);
}
static inline float gb_sigmoid(float x)
{
    return gb_times_sigmoid(1.0f, x);
}

/* The normal distribution's integral from -infinity to -a, a >= 0. */
static inline float gb_normal_tail(float a)
{
    float s = gb_fma(-1.8240462e-08f, a, 5.8447995e-07f);
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
static inline float gb_normal_integral(float x)
{
    float tail = gb_normal_tail(gb_min(16.0f, fabs(x)));
    return x > 0.0f ? 1.0f - tail : tail;
}
static inline float gb_gelu_erf(float x)
{
    return x * gb_normal_integral(x);
}
static inline float gb_gelu_erf_slope(float x)
{
    float density = gb_exp(x * x * -0.5f);
    return gb_fma(x * 0x1.988454p-2f, density, gb_normal_integral(x));
}
static inline float gb_gelu_tanh_argument(float x)
{
    return x * 0x1.988454p-1f * gb_fma(x * x, 0.044715f, 1.0f);
}
static inline float gb_gelu_tanh(float x)
{
    float u = gb_gelu_tanh_argument(x);
    return gb_times_sigmoid(x, u + u);
}
static inline float gb_gelu_tanh_slope(float x)
{
    float limited = gb_clamp(x, -0x1p40f, 0x1p40f), u = gb_gelu_tanh_argument(limited);
    float s = gb_sigmoid(u + u), rest = gb_sigmoid(u * -2.0f);
    float slope = gb_fma(limited * limited, 0.134145f, 1.0f) * 0x1.988454p0f;
    return gb_fma(limited * slope * s, rest, s);
}
static inline float gb_softplus(float x)
{
    return gb_max(0.0f, x) + gb_log1p_unit(gb_exp(-fabs(x)));
}
static inline float gb_mish(float x)
{
    float e = gb_exp(gb_min(30.0f, x)), n = e * (e + 2.0f);
    return x * gb_div(n, n + 2.0f);
}
static inline float gb_mish_slope(float x)
{
    float e = gb_exp(gb_min(30.0f, x)), n = e * (e + 2.0f), sum = n + 2.0f;
    float t = gb_div(n, sum), rest = gb_div(2.0f, sum) * (1.0f + t);
    float limited = gb_clamp(x, -110.0f, 110.0f);
    return gb_fma(limited * gb_div(e, 1.0f + e), rest, t);
}

/* a b - product, exactly, for product = a b rounded and |a|, |b| < 2^64 */
static inline float gb_product_rest(float a, float b, float product)
{
    float a_high = as_float(as_int(a) & -0x1000), a_low = a - a_high;
    float b_high = as_float(as_int(b) & -0x1000), b_low = b - b_high;
    float rest = a_high * b_high - product;
    return ((rest + a_high * b_low) + a_low * b_high) + a_low * b_low;
}
/* ln x in two parts; x is positive and finite */
static inline float gb_log_two_parts(float x, float *low)
{
    bool tiny = x < 0x1p-126f;
    int e;
    float f = gb_log_reduce(tiny ? x * 0x1p23f : x, &e);
    float exponent = (float)e - (tiny ? 23.0f : 0.0f);
    float sum = f + 2.0f, lost = f - (sum - 2.0f);
    float s = gb_div(f, sum), product = s * sum;
    float rest = (f - product) - gb_fma(s, lost, gb_product_rest(s, sum, product));
    float square = s * s, series = gb_fma(0.23589219f, square, 0.28536958f);
    series = gb_fma(series, square, 0.4000034f);
    series = gb_fma(series, square, 0.6666666f);
    float small = gb_fma(s * square, series, 2.0f * gb_div(rest, sum));
    float big = exponent * GB_LN2_HIGH, twice = s + s, high = big + twice;
    float carried = high - big, carry = (big - (high - carried)) + (twice - carried);
    small = carry + gb_fma(exponent, GB_LN2_LOW, small);
    float result = high + small;
    *low = (high - result) + small;
    return result;
}
static inline float gb_pow_magnitude(float x, float beta)
{
    float power = fmin(fmax(beta, -0x1p40f), 0x1p40f), low, high = gb_log_two_parts(x, &low);
    float product = high * power;
    float rest = gb_fma(low, power, gb_product_rest(high, power, product));
    float n, clamped = gb_clamp(product, -105.0f, 89.0f);
    float r = gb_exp_reduce(clamped, &n);
    r += clamped == product ? rest : 0.0f;
    return gb_scale(gb_fma(gb_fma(gb_exp_series(r), r, 1.0f), r, 1.0f), (int)n);
}
/* x^beta as powf() defines it */
static inline float gb_pow(float x, float beta)
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
    float magnitude = fabs(x), result = gb_pow_magnitude(magnitude, beta);
    result = magnitude == 0.0f ? (beta > 0.0f ? 0.0f : INFINITY) : result;
    result = magnitude == INFINITY ? (beta > 0.0f ? INFINITY : 0.0f) : result;
    if (beta != beta)
        result = NAN;
    result = integral && magnitude == 1.0f ? magnitude : result;
    if (odd)
        result = gb_with_sign(result, x);
    if (!integral && beta == beta)
        result = x < 0.0f && magnitude < INFINITY ? NAN : result;
    result = x != x ? x : result;
    return x == 1.0f ? x : result;
}

/* The slopes of activations. */
static inline float gb_sigmoid_slope(float x)
{
    float e = gb_exp(-fabs(x)), sum = 1.0f + e;
    return gb_div(e, sum * sum);
}
static inline float gb_tanh_slope(float x)
{
    return 4.0f * gb_sigmoid_slope(x + x);
}
static inline float gb_hardswish(float x)
{
    return x * gb_clamp(gb_div(x + 3.0f, 6.0f), 0.0f, 1.0f);
}
static inline float gb_hardswish_backward(float x, float g)
{
    float inner = g * (gb_div(x, 3.0f) + 0.5f);
    inner = x <= -3.0f ? 0.0f : inner;
    return x >= 3.0f ? g : inner;
}

/* 1 where the draw of an index is above 4294967295 p, else 0: Philox4x32-10 (Salmon et al., 2011).
 * The threshold is the product's integer part. */
static inline float gb_keep(ulong index, ulong seed, ulong offset, float p)
{
    float within = p > 0.0f ? (p < 1.0f ? p : 1.0f) : 0.0f;
    int exponent = (int)(as_uint(within) >> 23) - 150;
    ulong mantissa = (as_uint(within) & 0x7FFFFF) | 0x800000;
    ulong scaled = mantissa * 4294967295UL;
    uint threshold = exponent > -64 && within > 0.0f ? (uint)(scaled >> -exponent) : 0;
    bool shared = offset == 0;
    uint block_low = (uint)index & ~3u, k0 = (uint)seed, k1 = shared ? k0 : (uint)(seed >> 32);
    uint c0 = shared ? block_low : (uint)offset, c1 = shared ? block_low + 1 : (uint)(offset >> 32);
    uint c2 = block_low, c3 = shared ? block_low + 3 : (uint)(index >> 32);
    for (int round = 0; round < 10; round++) {
        uint low0 = 0xD2511F53u * c0, high0 = mul_hi(0xD2511F53u, c0);
        uint low1 = 0xCD9E8D57u * c2, high1 = mul_hi(0xCD9E8D57u, c2);
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    uint word = (uint)index & 3;
    uint draw = shared ? c2 : word == 0 ? c0 : word == 1 ? c1 : word == 2 ? c2 : c3;
    return draw > threshold ? 1.0f : 0.0f;
}
