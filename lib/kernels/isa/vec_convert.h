/* Conversions between f32 lanes and every data type, for all levels: bit for bit the scalar ones of
 * base/dtype.h. */
#ifndef GB_KERNELS_ISA_VEC_CONVERT_H
#define GB_KERNELS_ISA_VEC_CONVERT_H

#include "base/cpu.h"

/* So that macros over types can name f32, too. */
static inline vf vf_load_f32(const void *p)
{
    return vf_load(p);
}
static inline vf vf_load_f32_n(const void *p, int64_t n)
{
    return vf_load_n(p, n);
}
static inline void vf_store_f32(void *p, vf v)
{
    vf_store(p, v);
}
static inline void vf_store_f32_n(void *p, vf v, int64_t n)
{
    vf_store_n(p, v, n);
}

/* ---------------------------------------------------------------- codes of the narrow floats */

static inline vf gb_bf16_decode(vi bits)
{
    return vi_as_vf(vi_shl(bits, 16));
}
static inline vi gb_bf16_encode(vf v)
{
    vi bits = vf_bits(v), high = vi_shr_logical(bits, 16), exponent = vi_set1(0x7F800000);
    vi odd = vi_and(high, vi_set1(1));
    vi rounded = vi_shr_logical(vi_add(vi_add(bits, vi_set1(0x7FFF)), odd), 16);
    vm subnormal = vi_eq(vi_and(bits, exponent), vi_set1(0));
    rounded = vi_select(subnormal, vi_and(high, vi_set1(0x8000)), rounded);
    return vi_select(vf_unordered(v, v), vi_or(high, vi_set1(0x40)), rounded);
}

#if !defined(GB_VEC_HAS_F16)
static inline vf gb_f16_decode(vi bits)
{
    vi magnitude = vi_and(bits, vi_set1(0x7FFF)), sign = vi_shl(vi_sub(bits, magnitude), 16);
    vi wide = vi_add(vi_shl(magnitude, 13), vi_set1(112 << 23));
    vi quiet = vi_select(vi_gt(magnitude, vi_set1(0x7C00)), vi_set1(0x400000), vi_set1(0));
    vi special = vi_or(vi_add(wide, vi_set1(112 << 23)), quiet);
    vi normal = vi_select(vi_gt(magnitude, vi_set1(0x7BFF)), special, wide);
    vi tiny = vf_bits(vf_mul(vf_from_vi(magnitude), vf_set1(0x1p-24F)));
    return vi_as_vf(vi_or(sign, vi_select(vi_gt(magnitude, vi_set1(0x3FF)), normal, tiny)));
}
static inline vi gb_f16_encode(vf v)
{
    vi bits = vf_bits(v), magnitude = vi_and(bits, vi_set1(INT32_MAX));
    vi sign = vi_and(vi_shr_logical(bits, 16), vi_set1(0x8000));
    vi odd = vi_and(vi_shr_logical(magnitude, 13), vi_set1(1));
    vi rounded = vi_add(vi_add(magnitude, vi_set1(0xFFF - 0x38000000)), odd);
    vi code = vi_shr_logical(rounded, 13);
    vi steps = vi_from_vf(vf_mul(vi_as_vf(magnitude), vf_set1(0x1p24F)));
    code = vi_select(vi_gt(vi_set1(0x38800000), magnitude), steps, code);
    code = vi_select(vi_gt(magnitude, vi_set1(0x477FEFFF)), vi_set1(0x7C00), code);
    vi nan = vi_or(vi_set1(0x7E00), vi_and(vi_shr_logical(bits, 13), vi_set1(0x3FF)));
    code = vi_select(vi_gt(magnitude, vi_set1(0x7F800000)), nan, code);
    return vi_or(sign, code);
}
#endif

static inline vf gb_f8_e5m2_decode(vi bits)
{
    return gb_f16_decode(vi_shl(bits, 8));
}
static inline vi gb_f8_e5m2_encode(vf v)
{
    vi half = gb_f16_encode(v), high = vi_shr_logical(half, 8);
    vi odd = vi_and(high, vi_set1(1));
    vi code = vi_shr_logical(vi_add(vi_add(half, vi_set1(0x7F)), odd), 8);
    return vi_select(vf_unordered(v, v), vi_or(high, vi_set1(2)), code);
}
static inline vf gb_f8_e4m3_decode(vi bits)
{
    vi magnitude = vi_and(bits, vi_set1(0x7F)), sign = vi_shl(vi_sub(bits, magnitude), 24);
    vi normal = vi_add(vi_shl(magnitude, 20), vi_set1(120 << 23));
    vi tiny = vf_bits(vf_mul(vf_from_vi(magnitude), vf_set1(0x1p-9F)));
    vi wide = vi_select(vi_gt(magnitude, vi_set1(7)), normal, tiny);
    wide = vi_select(vi_eq(magnitude, vi_set1(0x7F)), vi_set1(0x7FC00000), wide);
    return vi_as_vf(vi_or(sign, wide));
}
static inline vi gb_f8_e4m3_encode(vf v)
{
    vf half = gb_f16_decode(gb_f16_encode(v)), magnitude = vf_abs(half);
    vi sign = vi_and(vi_shr_logical(vf_bits(half), 24), vi_set1(0x80)), wide = vf_bits(magnitude);
    vi odd = vi_and(vi_shr_logical(wide, 20), vi_set1(1));
    vi rounded = vi_shr_logical(vi_add(vi_add(wide, vi_set1(0x7FFFF)), odd), 20);
    vi code = vi_sub(rounded, vi_set1(120 << 3));
    vi steps = vi_from_vf(vf_mul(magnitude, vf_set1(0x1p9F)));
    code = vi_select(vf_lt(magnitude, vf_set1(0x1p-6F)), steps, code);
    code = vi_select(vf_le(magnitude, vf_set1(464.0F)), code, vi_set1(0x7F));
    return vi_or(sign, code);
}

/* ---------------------------------------------------------------------------- codes of integers */

static inline vi gb_saturate(vf v, float lowest, float max)
{
    vf clamped = vf_min(vf_max(v, vf_set1(lowest)), vf_set1(max));
    vi rounded = vi_from_vf(clamped);
    return vi_select(vf_unordered(v, v), vi_set1(0), rounded);
}
static inline vf gb_s8_decode(vi bits)
{
    return vf_from_vi(vi_shr(vi_shl(bits, 24), 24));
}
static inline vi gb_s8_encode(vf v)
{
    return vi_and(gb_saturate(v, -128.0F, 127.0F), vi_set1(0xFF));
}
static inline vf gb_u8_decode(vi bits)
{
    return vf_from_vi(bits);
}
static inline vi gb_u8_encode(vf v)
{
    return vi_from_vf(vf_min(vf_max(v, vf_zero()), vf_set1(255.0F))); /* NaN becomes 0, too */
}
static inline vf gb_s4_decode(vi bits)
{
    return vf_from_vi(vi_sub(vi_xor(bits, vi_set1(8)), vi_set1(8)));
}
static inline vf gb_boolean_decode(vi bits)
{
    return vf_select(vi_eq(bits, vi_set1(0)), vf_zero(), vf_set1(1.0F));
}
static inline vi gb_boolean_encode(vf v)
{
    return vi_select(vf_ne(v, vf_zero()), vi_set1(1), vi_set1(0));
}
/* f32 to s32: saturates, rounds half to even, NaN becomes 0. */
static inline vi gb_s32_encode(vf v)
{
    vi rounded = vi_from_vf(v); /* INT32_MIN where it does not fit */
    rounded = vi_select(vf_ge(v, vf_set1(0x1p31F)), vi_set1(INT32_MAX), rounded);
    return vi_select(vf_unordered(v, v), vi_set1(0), rounded);
}

/* ----------------------------------------------------------------------------- loads and stores */

#define GB_VEC_LOADS(type, bits)                                                                   \
    static inline vf vf_load_##type(const void *p)                                                 \
    {                                                                                              \
        return gb_##type##_decode(gb_load_u##bits(p));                                             \
    }                                                                                              \
    static inline vf vf_load_##type##_n(const void *p, int64_t n)                                  \
    {                                                                                              \
        return gb_##type##_decode(gb_load_u##bits##_n(p, n));                                      \
    }
#define GB_VEC_CODES(type, bits)                                                                   \
    GB_VEC_LOADS(type, bits)                                                                       \
    static inline void vf_store_##type(void *p, vf v)                                              \
    {                                                                                              \
        gb_store_u##bits(p, gb_##type##_encode(v));                                                \
    }                                                                                              \
    static inline void vf_store_##type##_n(void *p, vf v, int64_t n)                               \
    {                                                                                              \
        gb_store_u##bits##_n(p, gb_##type##_encode(v), n);                                         \
    }

#if !defined(GB_VEC_HAS_BF16)
GB_VEC_CODES(bf16, 16)
static inline void vf_stream_bf16(void *p, vf v)
{
    gb_stream_u16(p, gb_bf16_encode(v));
}
#else
GB_VEC_LOADS(bf16, 16)
/* The encoding in integers, where it is needed: the compiler must not begin it ahead of the branch around it, which
 * made bf16 loops take up to 1.7 times as long. */
static inline vi gb_bf16_encode_here(vf v)
{
    __asm__ volatile("" : "+v"(v));
    return gb_bf16_encode(v);
}
static inline void vf_store_bf16(void *p, vf v)
{
    if (gb_cpu_converts_bf16)
        gb_store_bf16(p, v);
    else
        gb_store_u16(p, gb_bf16_encode_here(v));
}
static inline void vf_store_bf16_n(void *p, vf v, int64_t n)
{
    if (gb_cpu_converts_bf16)
        gb_store_bf16_n(p, v, n);
    else
        gb_store_u16_n(p, gb_bf16_encode_here(v), n);
}
static inline void vf_stream_bf16(void *p, vf v)
{
    if (gb_cpu_converts_bf16)
        gb_stream_bf16(p, v);
    else
        gb_stream_u16(p, gb_bf16_encode_here(v));
}
#endif
#if !defined(GB_VEC_HAS_F16)
GB_VEC_CODES(f16, 16)
#endif
GB_VEC_CODES(f8_e5m2, 8)
GB_VEC_CODES(f8_e4m3, 8)
#if !defined(GB_VEC_HAS_BYTES)
GB_VEC_CODES(s8, 8)
GB_VEC_CODES(u8, 8)
#else
GB_VEC_LOADS(u8, 8)
#endif
GB_VEC_CODES(boolean, 8)
#undef GB_VEC_CODES
#undef GB_VEC_LOADS

#if !defined(GB_VEC_HAS_BYTES)
/* 2 VLEN values at a time. */
static inline void vf_store_pair_s8(void *p, vf low, vf high)
{
    vf_store_s8(p, low);
    vf_store_s8((char *)p + VLEN, high);
}
static inline void vf_store_pair_u8(void *p, vf low, vf high)
{
    vf_store_u8(p, low);
    vf_store_u8((char *)p + VLEN, high);
}
#endif

#if !defined(GB_VEC_HAS_PAIRS)
/* v[0] and v[1] to p, v[2] and v[3] to q. */
static inline void vf_store_pairs_s8(void *p, void *q, const vf *v)
{
    vf_store_pair_s8(p, v[0], v[1]);
    vf_store_pair_s8(q, v[2], v[3]);
}
static inline void vf_store_pairs_u8(void *p, void *q, const vf *v)
{
    vf_store_pair_u8(p, v[0], v[1]);
    vf_store_pair_u8(q, v[2], v[3]);
}
#endif

static inline vf vf_load_s32(const void *p)
{
    return vf_from_vi(vi_load(p));
}
static inline vf vf_load_s32_n(const void *p, int64_t n)
{
    return vf_from_vi(vi_load_n(p, n));
}
static inline void vf_store_s32(void *p, vf v)
{
    vi_store(p, gb_s32_encode(v));
}
static inline void vf_store_s32_n(void *p, vf v, int64_t n)
{
    vi_store_n(p, gb_s32_encode(v), n);
}

#endif
