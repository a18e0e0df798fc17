/* Elements of every data type in memory as f32, bit for bit as base/dtype.h converts them: by
 * integers alone, since a device need not have half precision, and never has the types below it. */
#pragma OPENCL FP_CONTRACT OFF

#define GB_MEMORY __global const uchar *
#define GB_RESULT __global uchar *

static inline float gb_bf16_decode(uint bits)
{
    return as_float(bits << 16);
}
static inline uint gb_bf16_encode(float v)
{
    uint bits = as_uint(v), high = bits >> 16, odd = high & 1;
    uint rounded = (bits + 0x7FFF + odd) >> 16;
    rounded = (bits & 0x7F800000) == 0 ? high & 0x8000 : rounded;
    return (bits & 0x7FFFFFFF) > 0x7F800000 ? high | 0x40 : rounded;
}

static inline float gb_f16_decode(uint bits)
{
    uint magnitude = bits & 0x7FFF, sign = (bits - magnitude) << 16;
    uint wide = (magnitude << 13) + (112u << 23);
    uint special = (wide + (112u << 23)) | (magnitude > 0x7C00 ? 0x400000u : 0u);
    uint normal = magnitude > 0x7BFF ? special : wide;
    uint tiny = as_uint(convert_float((int)magnitude) * 0x1p-24f);
    return as_float(sign | (magnitude > 0x3FF ? normal : tiny));
}
static inline uint gb_f16_encode(float v)
{
    uint bits = as_uint(v), magnitude = bits & 0x7FFFFFFF, sign = (bits >> 16) & 0x8000;
    uint odd = (magnitude >> 13) & 1;
    uint code = (magnitude + 0xFFF - 0x38000000 + odd) >> 13;
    float small = magnitude < 0x38800000 ? as_float(magnitude) : 0.0f;
    uint steps = (uint)(int)rint(small * 0x1p24f);
    code = magnitude < 0x38800000 ? steps : code;
    code = magnitude > 0x477FEFFF ? 0x7C00 : code;
    code = magnitude > 0x7F800000 ? 0x7E00 | ((bits >> 13) & 0x3FF) : code;
    return sign | code;
}

static inline float gb_f8_e5m2_decode(uint bits)
{
    return gb_f16_decode(bits << 8);
}
static inline uint gb_f8_e5m2_encode(float v)
{
    uint half_bits = gb_f16_encode(v), high = half_bits >> 8;
    uint code = (half_bits + 0x7F + (high & 1)) >> 8;
    return (as_uint(v) & 0x7FFFFFFF) > 0x7F800000 ? high | 2 : code;
}
static inline float gb_f8_e4m3_decode(uint bits)
{
    uint magnitude = bits & 0x7F, sign = (bits - magnitude) << 24;
    uint normal = (magnitude << 20) + (120u << 23);
    uint tiny = as_uint(convert_float((int)magnitude) * 0x1p-9f);
    uint wide = magnitude > 7 ? normal : tiny;
    return as_float(sign | (magnitude == 0x7F ? 0x7FC00000u : wide));
}
static inline uint gb_f8_e4m3_encode(float v)
{
    float half_value = gb_f16_decode(gb_f16_encode(v)), magnitude = fabs(half_value);
    uint sign = (as_uint(half_value) >> 24) & 0x80, wide = as_uint(magnitude);
    uint odd = (wide >> 20) & 1;
    int rounded = (int)((wide + 0x7FFFF + odd) >> 20) - (120 << 3);
    uint code = (uint)min(rounded, 0x7E);
    float small = magnitude < 0x1p-6f ? magnitude : 0.0f;
    code = magnitude < 0x1p-6f ? (uint)(int)rint(small * 0x1p9f) : code;
    code = magnitude <= 464.0f ? code : 0x7F;
    return sign | code;
}

/* Half to even, saturating, NaN becomes 0. */
static inline int gb_s32_encode(float v)
{
    float inside = v >= -0x1p31f && v < 0x1p31f ? rint(v) : 0.0f;
    int code = (int)inside;
    code = v >= 0x1p31f ? INT_MAX : code;
    return v < -0x1p31f ? INT_MIN : code;
}
static inline int gb_saturate(float v, float lowest, float most)
{
    float clamped = v > lowest ? v : lowest;
    clamped = clamped < most ? clamped : most;
    return v == v ? (int)rint(clamped) : 0;
}

#define GB_FLOAT_TYPE(name, type)                                                                  \
    static inline float gb_load_##name(GB_MEMORY m, long i)                                               \
    {                                                                                              \
        return gb_##name##_decode(((__global const type *)m)[i]);                                  \
    }                                                                                              \
    static inline void gb_store_##name(GB_RESULT m, long i, float v)                                      \
    {                                                                                              \
        ((__global type *)m)[i] = (type)gb_##name##_encode(v);                                     \
    }                                                                                              \
    static inline float gb_round_##name(float v)                                                          \
    {                                                                                              \
        return gb_##name##_decode(gb_##name##_encode(v));                                          \
    }
GB_FLOAT_TYPE(bf16, ushort)
GB_FLOAT_TYPE(f16, ushort)
GB_FLOAT_TYPE(f8_e5m2, uchar)
GB_FLOAT_TYPE(f8_e4m3, uchar)

static inline float gb_load_f32(GB_MEMORY m, long i)
{
    return ((__global const float *)m)[i];
}
static inline void gb_store_f32(GB_RESULT m, long i, float v)
{
    ((__global float *)m)[i] = v;
}
static inline float gb_round_f32(float v)
{
    return v;
}
static inline int gb_load_lane(GB_MEMORY m, long i)
{
    return ((__global const int *)m)[i];
}
static inline void gb_store_lane(GB_RESULT m, long i, int v)
{
    ((__global int *)m)[i] = v;
}
static inline float gb_load_s32(GB_MEMORY m, long i)
{
    return convert_float_rte(((__global const int *)m)[i]);
}
static inline void gb_store_s32(GB_RESULT m, long i, float v)
{
    ((__global int *)m)[i] = gb_s32_encode(v);
}
static inline float gb_load_s8(GB_MEMORY m, long i)
{
    return (float)((__global const char *)m)[i];
}
static inline void gb_store_s8(GB_RESULT m, long i, float v)
{
    ((__global char *)m)[i] = (char)gb_saturate(v, -128.0f, 127.0f);
}
static inline float gb_round_s8(float v)
{
    return (float)gb_saturate(v, -128.0f, 127.0f);
}
static inline float gb_load_u8(GB_MEMORY m, long i)
{
    return (float)m[i];
}
static inline void gb_store_u8(GB_RESULT m, long i, float v)
{
    m[i] = (uchar)gb_saturate(v, 0.0f, 255.0f);
}
static inline float gb_round_u8(float v)
{
    return (float)gb_saturate(v, 0.0f, 255.0f);
}
static inline float gb_load_boolean(GB_MEMORY m, long i)
{
    return m[i] ? 1.0f : 0.0f;
}
static inline void gb_store_boolean(GB_RESULT m, long i, float v)
{
    m[i] = v != 0.0f ? 1 : 0;
}
/* Two to a byte, the first in the low bits. */
static inline float gb_load_u4(GB_MEMORY m, long i)
{
    return (float)((m[i >> 1] >> ((int)(i & 1) * 4)) & 15);
}
static inline float gb_load_s4(GB_MEMORY m, long i)
{
    int code = (m[i >> 1] >> ((int)(i & 1) * 4)) & 15;
    return (float)((code ^ 8) - 8);
}

/* As the CPU's vectors: the second where one is NaN. */
static inline float gb_max(float a, float b)
{
    return a > b ? a : b;
}
static inline float gb_min(float a, float b)
{
    return a < b ? a : b;
}

/* Devices may divide with an error of 2.5 ulp, and take roots with 3. One Newton step with the
 * exact remainder mends a quotient in the middle of the range. */
#ifdef GB_EXACT_DIVISION
static inline float gb_div(float a, float b)
{
    return a / b;
}
static inline float gb_sqrt(float a)
{
    return sqrt(a);
}
#else
static inline float gb_div(float a, float b)
{
    float q = a / b, size = fabs(q), divisor = fabs(b), top = fabs(a);
    float mended = fma(fma(-q, b, a), 1.0f / b, q);
    bool middle = size > 0x1p-100f && size < 0x1p100f && divisor > 0x1p-100f &&
                  divisor < 0x1p100f && top > 0x1p-100f && top < 0x1p100f;
    return middle ? mended : q;
}
static inline float gb_sqrt(float a)
{
    float r = sqrt(a);
    float mended = fma(fma(-r, r, a), 0.5f / r, r);
    return a > 0x1p-80f && a < 0x1p80f ? mended : r;
}
#endif

/* s32 lanes. */
static inline int gb_add_lanes(int a, int b)
{
    return add_sat(a, b);
}
static inline int gb_sub_lanes(int a, int b)
{
    return sub_sat(a, b);
}

/* Offset of element `index` of a list of dims: n, then n pairs of a dim and a stride, the one that
 * runs fastest first. */
static inline long gb_offset(__global const long *list, long index)
{
    long offset = 0, n = list[0];
    for (long d = 0; d < n; d++) {
        long dim = list[1 + 2 * d];
        offset += index % dim * list[2 + 2 * d];
        index /= dim;
    }
    return offset;
}
