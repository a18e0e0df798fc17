/* The vector vocabulary at the level every machine has: 4 lanes in the compiler's portable vectors,
 * SSE2 where it says more. */
#ifndef GB_KERNELS_ISA_VEC_BASELINE_H
#define GB_KERNELS_ISA_VEC_BASELINE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define VLEN  4
#define VREGS 16

typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t gb_vu __attribute__((vector_size(16)));
typedef uint16_t gb_vu16 __attribute__((vector_size(16)));
typedef vi vm; /* lanes of all ones or zeros */

/* ---------------------------------------------------------------------------- load, store, cast */

static inline vf vf_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline vf vf_load_n(const float *p, int64_t n)
{
    vf v = {0};
    memcpy(&v, p, (size_t)n * sizeof(float));
    return v;
}
static inline vf vf_load_lanes(const float *p, const int32_t *lanes)
{
    vf v = {0};
    for (int i = 0; i < VLEN; i++)
        if (lanes[i])
            v[i] = p[i];
    return v;
}
static inline void vf_store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}
static inline void vf_stream(float *p, vf v)
{
    vf_store(p, v);
}
static inline void vf_store_n(float *p, vf v, int64_t n)
{
    memcpy(p, &v, (size_t)n * sizeof(float));
}
static inline vi vi_load(const int32_t *p)
{
    vi v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline vi vi_load_n(const int32_t *p, int64_t n)
{
    vi v = {0};
    memcpy(&v, p, (size_t)n * sizeof(int32_t));
    return v;
}
static inline void vi_store(int32_t *p, vi v)
{
    memcpy(p, &v, sizeof v);
}
static inline void vi_store_n(int32_t *p, vi v, int64_t n)
{
    memcpy(p, &v, (size_t)n * sizeof(int32_t));
}
static inline vi vf_bits(vf v)
{
    return (vi)v;
}
static inline vf vi_as_vf(vi v)
{
    return (vf)v;
}

/* ------------------------------------------------------------------------------------- integers */

static inline vi vi_set1(int32_t value)
{
    return (vi){value, value, value, value};
}
static inline vi vi_add(vi a, vi b)
{
    return (vi)((gb_vu)a + (gb_vu)b);
}
static inline vi vi_sub(vi a, vi b)
{
    return (vi)((gb_vu)a - (gb_vu)b);
}
static inline vi vi_add_halves(vi a, vi b)
{
    return (vi)((gb_vu16)a + (gb_vu16)b);
}
static inline vi vi_sub_halves(vi a, vi b)
{
    return (vi)((gb_vu16)a - (gb_vu16)b);
}
static inline vi vi_mul(vi a, vi b, vi *high)
{
    vi low = a;
    for (int i = 0; i < VLEN; i++) {
        uint64_t product = (uint64_t)(uint32_t)a[i] * (uint32_t)b[i];
        low[i] = (int32_t)(uint32_t)product;
        (*high)[i] = (int32_t)(uint32_t)(product >> 32);
    }
    return low;
}
static inline vi vi_and(vi a, vi b)
{
    return a & b;
}
static inline vi vi_or(vi a, vi b)
{
    return a | b;
}
static inline vi vi_max_u8(vi a, vi b)
{
#if defined(__SSE2__)
    return (vi)_mm_max_epu8((__m128i)a, (__m128i)b);
#else
    typedef uint8_t gb_bytes __attribute__((vector_size(16)));
    gb_bytes greater = (gb_bytes)((gb_bytes)a > (gb_bytes)b);
    return (vi)(((gb_bytes)a & greater) | ((gb_bytes)b & ~greater));
#endif
}
static inline vi vi_xor(vi a, vi b)
{
    return a ^ b;
}
static inline vi vi_shl(vi v, int k)
{
    return (vi)((gb_vu)v << k);
}
static inline vi vi_shr(vi v, int k)
{
    return v >> k;
}
static inline vi vi_shr_logical(vi v, int k)
{
    return (vi)((gb_vu)v >> k);
}
static inline vi vi_dot2(vi sum, vi a, vi b)
{
#if defined(__SSE2__)
    return vi_add(sum, (vi)_mm_madd_epi16((__m128i)a, (__m128i)b));
#else
    for (int i = 0; i < VLEN; i++) {
        int32_t low = (int16_t)a[i] * (int16_t)b[i], high = (a[i] >> 16) * (b[i] >> 16);
        sum[i] = (int32_t)((uint32_t)sum[i] + (uint32_t)low + (uint32_t)high);
    }
    return sum;
#endif
}
typedef int16_t gb_halves __attribute__((vector_size(16)));
static inline vi vi_load_s8_halves(const void *p)
{
    int8_t bytes[2 * VLEN];
    memcpy(bytes, p, sizeof bytes);
    gb_halves halves = {
            bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]};
    return (vi)halves;
}
static inline vi vi_load_u8_halves(const void *p)
{
    uint8_t bytes[2 * VLEN];
    memcpy(bytes, p, sizeof bytes);
    gb_halves halves = {
            bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]};
    return (vi)halves;
}
static inline vi vi_pair_low(vi a, vi b)
{
    gb_halves x = (gb_halves)a, y = (gb_halves)b;
    return (vi)(gb_halves){x[0], y[0], x[1], y[1], x[2], y[2], x[3], y[3]};
}
static inline vi vi_pair_high(vi a, vi b)
{
    gb_halves x = (gb_halves)a, y = (gb_halves)b;
    return (vi)(gb_halves){x[4], y[4], x[5], y[5], x[6], y[6], x[7], y[7]};
}
static inline void vi_order_pairs(vi *low, vi *high)
{
    (void)low, (void)high;
}
static inline vm vi_eq(vi a, vi b)
{
    return a == b;
}
static inline vm vi_gt(vi a, vi b)
{
    return a > b;
}
static inline vi vi_select(vm m, vi a, vi b)
{
    return (m & a) | (~m & b);
}

/* ----------------------------------------------------------------------------------- arithmetic */

static inline vf vf_set1(float value)
{
    return (vf){value, value, value, value};
}
static inline vf vf_zero(void)
{
    return (vf){0};
}
static inline vf vf_add(vf a, vf b)
{
    return a + b;
}
static inline vf vf_sub(vf a, vf b)
{
    return a - b;
}
static inline vf vf_mul(vf a, vf b)
{
    return a * b;
}
static inline vf vf_div(vf a, vf b)
{
    return a / b;
}
static inline vf vf_neg(vf v)
{
    return (vf)((vi)v ^ vi_set1(INT32_MIN));
}
static inline vf vf_abs(vf v)
{
    return (vf)((vi)v & vi_set1(INT32_MAX));
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return a * b + c;
}
static inline vf vf_fnma(vf a, vf b, vf c)
{
    return c - a * b;
}
static inline vm vf_lt(vf a, vf b)
{
    return a < b;
}
static inline vm vf_le(vf a, vf b)
{
    return a <= b;
}
static inline vm vf_gt(vf a, vf b)
{
    return a > b;
}
static inline vm vf_ge(vf a, vf b)
{
    return a >= b;
}
static inline vm vf_eq(vf a, vf b)
{
    return a == b;
}
static inline vm vf_ne(vf a, vf b)
{
    return a != b;
}
static inline vm vf_unordered(vf a, vf b)
{
    return (a != a) | (b != b);
}
static inline vf vf_select(vm m, vf a, vf b)
{
    return (vf)vi_select(m, (vi)a, (vi)b);
}
static inline vm vm_and(vm a, vm b)
{
    return a & b;
}
static inline vm vm_or(vm a, vm b)
{
    return a | b;
}
static inline vm vm_not(vm m)
{
    return ~m;
}

#if defined(__SSE2__)
static inline vf vf_min(vf a, vf b)
{
    return (vf)_mm_min_ps((__m128)a, (__m128)b);
}
static inline vf vf_max(vf a, vf b)
{
    return (vf)_mm_max_ps((__m128)a, (__m128)b);
}
static inline vf vf_sqrt(vf v)
{
    return (vf)_mm_sqrt_ps((__m128)v);
}
static inline bool vm_any(vm m)
{
    return _mm_movemask_ps((__m128)m) != 0;
}
static inline vf vf_from_vi(vi v)
{
    return (vf)_mm_cvtepi32_ps((__m128i)v);
}
static inline vi vi_from_vf(vf v)
{
    return (vi)_mm_cvtps_epi32((__m128)v);
}
#else
static inline vf vf_min(vf a, vf b)
{
    return vf_select(a < b, a, b);
}
static inline vf vf_max(vf a, vf b)
{
    return vf_select(a > b, a, b);
}
static inline vf vf_sqrt(vf v)
{
    return (vf){sqrtf(v[0]), sqrtf(v[1]), sqrtf(v[2]), sqrtf(v[3])};
}
static inline bool vm_any(vm m)
{
    return (m[0] | m[1] | m[2] | m[3]) != 0;
}
static inline vf vf_from_vi(vi v)
{
    return __builtin_convertvector(v, vf);
}
static inline int32_t gb_lane_to_s32(float v)
{
    return v >= -0x1p31F && v < 0x1p31F ? (int32_t)nearbyintf(v) : INT32_MIN;
}
static inline vi vi_from_vf(vf v)
{
    return (vi){
            gb_lane_to_s32(v[0]), gb_lane_to_s32(v[1]), gb_lane_to_s32(v[2]), gb_lane_to_s32(v[3])};
}
#endif

/* From 2^23 on every f32 is an integer; NaN goes the same way. */
static inline vf vf_round(vf v)
{
    vi sign = vi_and((vi)v, vi_set1(INT32_MIN));
    vf rounded = (vf)vi_or((vi)vf_from_vi(vi_from_vf(v)), sign);
    return vf_select(vf_lt(vf_abs(v), vf_set1(0x1p23F)), rounded, v);
}
static inline vf vf_floor(vf v)
{
    vf rounded = vf_round(v);
    return vf_sub(rounded, vf_select(vf_gt(rounded, v), vf_set1(1.0F), vf_zero()));
}
static inline vf vf_ceil(vf v)
{
    return vf_neg(vf_floor(vf_neg(v)));
}
static inline vf vf_scale(vf v, vi n)
{
    vi half = vi_shr(n, 1), rest = vi_sub(n, half), one = vi_set1(127);
    vf scaled = vf_mul(v, (vf)vi_shl(vi_add(half, one), 23));
    return vf_mul(scaled, (vf)vi_shl(vi_add(rest, one), 23));
}
static inline vf vf_scale_whole(vf v, vf n)
{
    return vf_scale(v, vi_from_vf(n));
}
static inline vf vf_gather(const float *p, int64_t stride, int64_t n)
{
    vf v = {0};
    for (int64_t i = 0; i < n; i++)
        v[i] = p[i * stride];
    return v;
}

static inline vf vf_lookup(const float *p, vi index)
{
    return (vf){p[index[0]], p[index[1]], p[index[2]], p[index[3]]};
}

static inline vf vf_permute(vf v, vi index)
{
    return (vf){v[index[0]], v[index[1]], v[index[2]], v[index[3]]};
}

static inline float vf_sum(vf v)
{
    return (v[0] + v[2]) + (v[1] + v[3]);
}
static inline float vf_prod(vf v)
{
    return (v[0] * v[2]) * (v[1] * v[3]);
}
static inline float vf_max_lane(vf v)
{
    vf half = vf_max(v, (vf){v[2], v[3], v[2], v[3]});
    return half[0] > half[1] ? half[0] : half[1];
}
static inline float vf_min_lane(vf v)
{
    vf half = vf_min(v, (vf){v[2], v[3], v[2], v[3]});
    return half[0] < half[1] ? half[0] : half[1];
}

/* ------------------------------------------ 16 and 8 bit lanes, for conversions of all levels */

static inline vi gb_load_u16(const void *p)
{
    uint16_t lanes[VLEN];
    memcpy(lanes, p, sizeof lanes);
    return (vi){lanes[0], lanes[1], lanes[2], lanes[3]};
}
static inline vi gb_load_u16_n(const void *p, int64_t n)
{
    uint16_t lanes[VLEN] = {0};
    memcpy(lanes, p, (size_t)n * sizeof *lanes);
    return gb_load_u16(lanes);
}
static inline vi gb_load_u8(const void *p)
{
    uint8_t lanes[VLEN];
    memcpy(lanes, p, sizeof lanes);
    return (vi){lanes[0], lanes[1], lanes[2], lanes[3]};
}
static inline vi gb_load_u8_n(const void *p, int64_t n)
{
    uint8_t lanes[VLEN] = {0};
    memcpy(lanes, p, (size_t)n);
    return gb_load_u8(lanes);
}
/* VLEN quantized values of 4 bits, the low half of a byte first. */
static inline vi gb_load_u4(const void *p)
{
    uint8_t bytes[VLEN / 2];
    memcpy(bytes, p, sizeof bytes);
    return (vi){bytes[0] & 15, bytes[0] >> 4, bytes[1] & 15, bytes[1] >> 4};
}
/* The low bits of each lane, which holds a number without further bits. */
static inline void gb_store_u16_n(void *p, vi v, int64_t n)
{
#if defined(__SSE2__)
    v = vi_shr(vi_shl(v, 16), 16);
    __m128i lanes = _mm_packs_epi32((__m128i)v, (__m128i)v);
    memcpy(p, &lanes, (size_t)n * sizeof(uint16_t));
#else
    uint16_t lanes[VLEN] = {(uint16_t)v[0], (uint16_t)v[1], (uint16_t)v[2], (uint16_t)v[3]};
    memcpy(p, lanes, (size_t)n * sizeof *lanes);
#endif
}
static inline void gb_store_u16(void *p, vi v)
{
    gb_store_u16_n(p, v, VLEN);
}
static inline void gb_store_u8_n(void *p, vi v, int64_t n)
{
#if defined(__SSE2__)
    __m128i words = _mm_packs_epi32((__m128i)v, (__m128i)v);
    __m128i lanes = _mm_packus_epi16(words, words);
    memcpy(p, &lanes, (size_t)n);
#else
    uint8_t lanes[VLEN] = {(uint8_t)v[0], (uint8_t)v[1], (uint8_t)v[2], (uint8_t)v[3]};
    memcpy(p, lanes, (size_t)n);
#endif
}
static inline void gb_store_u8(void *p, vi v)
{
    gb_store_u8_n(p, v, VLEN);
}
static inline void gb_stream_u16(void *p, vi v)
{
    gb_store_u16(p, v);
}
static inline void gb_stream_u8(void *p, vi v)
{
    gb_store_u8(p, v);
}

#endif
