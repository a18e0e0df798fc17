/* Arithmetic on f32, and elements of every data type as f32, bit for bit as base/dtype.h converts them:
 * by integers alone, since a device need not have half precision, and never has the types below it.
 *
 * This file and math.cl are written in GB_FLOAT, GB_INT and GB_UINT, which are one number each. Kernels in lanes
 * (vectors.cl) have them a second time, behind GB_IN_LANES, for vectors of GB_LANES numbers: there a
 * comparison is a vector, too, and chooses lane by lane. */
#pragma OPENCL FP_CONTRACT OFF
#ifndef GB_INLINE
#define GB_INLINE static inline
#endif
#undef GB_FLOAT
#undef GB_INT
#undef GB_UINT
#undef GB_ULONG
#undef GB_AS_F
#undef GB_AS_I
#undef GB_AS_U
#undef GB_TO_F
#undef GB_TO_I
#undef GB_TO_U
#undef GB_TO_UL
#ifdef GB_IN_LANES
#define GB_LANES_NAME(name, n) name##n
#define GB_LANES_OF(name, n)   GB_LANES_NAME(name, n)
#define GB_FLOAT                   GB_LANES_OF(float, GB_LANES)
#define GB_INT                   GB_LANES_OF(int, GB_LANES)
#define GB_UINT                   GB_LANES_OF(uint, GB_LANES)
#define GB_ULONG                  GB_LANES_OF(ulong, GB_LANES)
#define GB_AS_F                GB_LANES_OF(as_float, GB_LANES)
#define GB_AS_I                GB_LANES_OF(as_int, GB_LANES)
#define GB_AS_U                GB_LANES_OF(as_uint, GB_LANES)
#define GB_TO_F                GB_LANES_OF(convert_float, GB_LANES)
#define GB_TO_I                GB_LANES_OF(convert_int, GB_LANES)
#define GB_TO_U                GB_LANES_OF(convert_uint, GB_LANES)
#define GB_TO_UL               GB_LANES_OF(convert_ulong, GB_LANES)
#else
#define GB_FLOAT     float
#define GB_INT     int
#define GB_UINT     uint
#define GB_ULONG    ulong
#define GB_AS_F  as_float
#define GB_AS_I  as_int
#define GB_AS_U  as_uint
#define GB_TO_F  convert_float
#define GB_TO_I  convert_int
#define GB_TO_U  convert_uint
#define GB_TO_UL convert_ulong
#endif

GB_INLINE GB_FLOAT gb_bf16_decode(GB_UINT bits)
{
    return GB_AS_F(bits << 16);
}
GB_INLINE GB_UINT gb_bf16_encode(GB_FLOAT v)
{
    GB_UINT bits = GB_AS_U(v), high = bits >> 16, odd = high & 1;
    GB_UINT rounded = (bits + 0x7FFF + odd) >> 16;
    rounded = (bits & 0x7F800000) == 0 ? high & 0x8000 : rounded;
    return (bits & 0x7FFFFFFF) > 0x7F800000 ? high | 0x40 : rounded;
}

GB_INLINE GB_FLOAT gb_f16_decode(GB_UINT bits)
{
    GB_UINT magnitude = bits & 0x7FFF, sign = (bits - magnitude) << 16;
    GB_UINT wide = (magnitude << 13) + (112u << 23);
    GB_UINT special = (wide + (112u << 23)) | (magnitude > 0x7C00 ? 0x400000u : 0u);
    GB_UINT normal = magnitude > 0x7BFF ? special : wide;
    GB_UINT tiny = GB_AS_U(GB_TO_F(GB_AS_I(magnitude)) * 0x1p-24f);
    return GB_AS_F(sign | (magnitude > 0x3FF ? normal : tiny));
}
GB_INLINE GB_UINT gb_f16_encode(GB_FLOAT v)
{
    GB_UINT bits = GB_AS_U(v), magnitude = bits & 0x7FFFFFFF, sign = (bits >> 16) & 0x8000;
    GB_UINT odd = (magnitude >> 13) & 1;
    GB_UINT code = (magnitude + 0xFFF - 0x38000000 + odd) >> 13;
    GB_FLOAT small = magnitude < 0x38800000 ? GB_AS_F(magnitude) : 0.0f;
    GB_UINT steps = GB_AS_U(GB_TO_I(rint(small * 0x1p24f)));
    code = magnitude < 0x38800000 ? steps : code;
    code = magnitude > 0x477FEFFF ? 0x7C00 : code;
    code = magnitude > 0x7F800000 ? 0x7E00 | ((bits >> 13) & 0x3FF) : code;
    return sign | code;
}

GB_INLINE GB_FLOAT gb_f8_e5m2_decode(GB_UINT bits)
{
    return gb_f16_decode(bits << 8);
}
GB_INLINE GB_UINT gb_f8_e5m2_encode(GB_FLOAT v)
{
    GB_UINT half_bits = gb_f16_encode(v), high = half_bits >> 8;
    GB_UINT code = (half_bits + 0x7F + (high & 1)) >> 8;
    return (GB_AS_U(v) & 0x7FFFFFFF) > 0x7F800000 ? high | 2 : code;
}
GB_INLINE GB_FLOAT gb_f8_e4m3_decode(GB_UINT bits)
{
    GB_UINT magnitude = bits & 0x7F, sign = (bits - magnitude) << 24;
    GB_UINT normal = (magnitude << 20) + (120u << 23);
    GB_UINT tiny = GB_AS_U(GB_TO_F(GB_AS_I(magnitude)) * 0x1p-9f);
    GB_UINT wide = magnitude > 7 ? normal : tiny;
    return GB_AS_F(sign | (magnitude == 0x7F ? 0x7FC00000u : wide));
}
GB_INLINE GB_UINT gb_f8_e4m3_encode(GB_FLOAT v)
{
    GB_FLOAT half_value = gb_f16_decode(gb_f16_encode(v)), magnitude = fabs(half_value);
    GB_UINT sign = (GB_AS_U(half_value) >> 24) & 0x80, wide = GB_AS_U(magnitude);
    GB_UINT odd = (wide >> 20) & 1;
    GB_INT rounded = GB_AS_I((wide + 0x7FFFF + odd) >> 20) - (120 << 3);
    GB_UINT code = GB_AS_U(min(rounded, 0x7E));
    GB_FLOAT small = magnitude < 0x1p-6f ? magnitude : 0.0f;
    code = magnitude < 0x1p-6f ? GB_AS_U(GB_TO_I(rint(small * 0x1p9f))) : code;
    code = magnitude <= 464.0f ? code : 0x7F;
    return sign | code;
}

#define GB_ROUND_TO(name)                                                                          \
    GB_INLINE GB_FLOAT gb_round_##name(GB_FLOAT v)                                                         \
    {                                                                                              \
        return gb_##name##_decode(gb_##name##_encode(v));                                          \
    }
GB_ROUND_TO(bf16)
GB_ROUND_TO(f16)
GB_ROUND_TO(f8_e5m2)
GB_ROUND_TO(f8_e4m3)
#undef GB_ROUND_TO
GB_INLINE GB_FLOAT gb_round_f32(GB_FLOAT v)
{
    return v;
}

/* Half to even, saturating, NaN becomes 0. */
GB_INLINE GB_INT gb_s32_encode(GB_FLOAT v)
{
    GB_FLOAT inside = v >= -0x1p31f && v < 0x1p31f ? rint(v) : 0.0f;
    GB_INT code = GB_TO_I(inside);
    code = v >= 0x1p31f ? INT_MAX : code;
    return v < -0x1p31f ? INT_MIN : code;
}
GB_INLINE GB_INT gb_saturate(GB_FLOAT v, float lowest, float most)
{
    GB_FLOAT clamped = v > lowest ? v : lowest;
    clamped = clamped < most ? clamped : most;
    return v == v ? GB_TO_I(rint(clamped)) : 0;
}

GB_INLINE GB_FLOAT gb_round_s8(GB_FLOAT v)
{
    return GB_TO_F(gb_saturate(v, -128.0f, 127.0f));
}
GB_INLINE GB_FLOAT gb_round_u8(GB_FLOAT v)
{
    return GB_TO_F(gb_saturate(v, 0.0f, 255.0f));
}
GB_INLINE GB_FLOAT gb_from_s32(GB_INT v)
{
    return GB_TO_F(v);
}

/* As the CPU's vectors: the second where one is NaN. */
GB_INLINE GB_FLOAT gb_max(GB_FLOAT a, GB_FLOAT b)
{
    return a > b ? a : b;
}
GB_INLINE GB_FLOAT gb_min(GB_FLOAT a, GB_FLOAT b)
{
    return a < b ? a : b;
}

/* Devices may divide with an error of 2.5 ulp, and take roots with 3. One Newton step with the
 * exact remainder mends a quotient in the middle of the range. */
#ifdef GB_EXACT_DIVISION
GB_INLINE GB_FLOAT gb_div(GB_FLOAT a, GB_FLOAT b)
{
    return a / b;
}
GB_INLINE GB_FLOAT gb_sqrt(GB_FLOAT a)
{
    return sqrt(a);
}
#else
GB_INLINE GB_FLOAT gb_div(GB_FLOAT a, GB_FLOAT b)
{
    GB_FLOAT q = a / b, size = fabs(q), divisor = fabs(b), top = fabs(a);
    GB_FLOAT mended = fma(fma(-q, b, a), 1.0f / b, q);
    GB_INT middle = size > 0x1p-100f && size < 0x1p100f && divisor > 0x1p-100f &&
                  divisor < 0x1p100f && top > 0x1p-100f && top < 0x1p100f;
    return middle ? mended : q;
}
GB_INLINE GB_FLOAT gb_sqrt(GB_FLOAT a)
{
    GB_FLOAT r = sqrt(a);
    GB_FLOAT mended = fma(fma(-r, r, a), 0.5f / r, r);
    return a > 0x1p-80f && a < 0x1p80f ? mended : r;
}
#endif

GB_INLINE GB_FLOAT gb_square(GB_FLOAT x)
{
    return x * x;
}
/* NaN stays. */
GB_INLINE GB_FLOAT gb_larger(GB_FLOAT a, GB_FLOAT x)
{
    return x > a || x != x ? x : a;
}
GB_INLINE GB_FLOAT gb_smaller(GB_FLOAT a, GB_FLOAT x)
{
    return x < a || x != x ? x : a;
}
GB_INLINE GB_FLOAT gb_mean(GB_FLOAT sum, float n)
{
    return n > 0.0f ? gb_div(sum, n) : (GB_FLOAT)(0.0f);
}
GB_INLINE GB_FLOAT gb_inverse_root(GB_FLOAT x)
{
    return gb_div(1.0f, gb_sqrt(x));
}

/* s32 lanes. */
GB_INLINE GB_INT gb_add_lanes(GB_INT a, GB_INT b)
{
    return add_sat(a, b);
}
GB_INLINE GB_INT gb_sub_lanes(GB_INT a, GB_INT b)
{
    return sub_sat(a, b);
}
