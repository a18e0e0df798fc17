/* The vector vocabulary in AVX-512 (F, BW, DQ, VL): 16 lanes, masks in registers of their own. */
#ifndef GB_KERNELS_ISA_VEC_AVX512_H
#define GB_KERNELS_ISA_VEC_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define VLEN           16
#define VREGS          32
#define GB_VEC_HAS_F16 1
#define GB_VEC_HAS_FMA 1

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

/* Shifts by a number that need not be a literal. */
typedef int32_t gb_v16si __attribute__((vector_size(64)));
typedef uint32_t gb_v16su __attribute__((vector_size(64)));

/* ---------------------------------------------------------------------------- load, store, cast */

static inline vm gb_first_lanes(int64_t n)
{
    return (vm)((1U << n) - 1);
}
static inline vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline vf vf_load_n(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps(gb_first_lanes(n), p);
}
static inline vf vf_load_lanes(const float *p, const int32_t *lanes)
{
    __m512i words = _mm512_loadu_si512(lanes);
    return _mm512_maskz_loadu_ps(_mm512_test_epi32_mask(words, words), p);
}
static inline void vf_store(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}
static inline void vf_store_n(float *p, vf v, int64_t n)
{
    _mm512_mask_storeu_ps(p, gb_first_lanes(n), v);
}
static inline void vf_stream(float *p, vf v)
{
    _mm512_stream_ps(p, v);
}
static inline vi vi_load(const int32_t *p)
{
    return _mm512_loadu_si512(p);
}
static inline vi vi_load_n(const int32_t *p, int64_t n)
{
    return _mm512_maskz_loadu_epi32(gb_first_lanes(n), p);
}
static inline void vi_store(int32_t *p, vi v)
{
    _mm512_storeu_si512(p, v);
}
static inline void vi_store_n(int32_t *p, vi v, int64_t n)
{
    _mm512_mask_storeu_epi32(p, gb_first_lanes(n), v);
}
static inline vi vf_bits(vf v)
{
    return _mm512_castps_si512(v);
}
static inline vf vi_as_vf(vi v)
{
    return _mm512_castsi512_ps(v);
}

/* ------------------------------------------------------------------------------------- integers */

static inline vi vi_set1(int32_t value)
{
    return _mm512_set1_epi32(value);
}
static inline vi vi_add(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}
static inline vi vi_sub(vi a, vi b)
{
    return _mm512_sub_epi32(a, b);
}
static inline vi vi_add_halves(vi a, vi b)
{
    return _mm512_add_epi16(a, b);
}
static inline vi vi_sub_halves(vi a, vi b)
{
    return _mm512_sub_epi16(a, b);
}
static inline vi vi_mul(vi a, vi b, vi *high)
{
    vi even = _mm512_mul_epu32(a, b);
    vi odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
    *high = _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd);
    return _mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
}
static inline vi vi_and(vi a, vi b)
{
    return _mm512_and_si512(a, b);
}
static inline vi vi_or(vi a, vi b)
{
    return _mm512_or_si512(a, b);
}
static inline vi vi_max_u8(vi a, vi b)
{
    return _mm512_max_epu8(a, b);
}
static inline vi vi_xor(vi a, vi b)
{
    return _mm512_xor_si512(a, b);
}
static inline vi vi_shl(vi v, int k)
{
    return (vi)((gb_v16su)v << k);
}
static inline vi vi_shr(vi v, int k)
{
    return (vi)((gb_v16si)v >> k);
}
static inline vi vi_shr_logical(vi v, int k)
{
    return (vi)((gb_v16su)v >> k);
}
static inline vi vi_dot2(vi sum, vi a, vi b)
{
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
}
static inline vi vi_load_s8_halves(const void *p)
{
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(p));
}
static inline vi vi_load_u8_halves(const void *p)
{
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256(p));
}
static inline vi vi_pair_low(vi a, vi b)
{
    return _mm512_unpacklo_epi16(a, b);
}
static inline vi vi_pair_high(vi a, vi b)
{
    return _mm512_unpackhi_epi16(a, b);
}
static inline void vi_order_pairs(vi *low, vi *high)
{
    const vi first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const vi second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    vi ordered = _mm512_permutex2var_epi64(*low, first, *high);
    *high = _mm512_permutex2var_epi64(*low, second, *high);
    *low = ordered;
}
/* Only where gb_cpu_has_dot() says so; as text, so that the level need not include it. */
#define GB_VEC_HAS_DOT4 1
static inline vi vi_dot4(vi sum, vi a, vi b)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}
/* The same with gb_cpu_has_dot_bf16(). */
#define GB_VEC_HAS_DOT_BF16 1
static inline vf vf_dot_bf16(vf sum, vi a, vi b)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}
static inline vm vi_eq(vi a, vi b)
{
    return _mm512_cmpeq_epi32_mask(a, b);
}
static inline vm vi_gt(vi a, vi b)
{
    return _mm512_cmpgt_epi32_mask(a, b);
}
static inline vi vi_select(vm m, vi a, vi b)
{
    return _mm512_mask_blend_epi32(m, b, a);
}

/* ----------------------------------------------------------------------------------- arithmetic */

static inline vf vf_set1(float value)
{
    return _mm512_set1_ps(value);
}
static inline vf vf_zero(void)
{
    return _mm512_setzero_ps();
}
static inline vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
static inline vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
static inline vf vf_neg(vf v)
{
    return _mm512_xor_ps(v, _mm512_set1_ps(-0.0F));
}
static inline vf vf_abs(vf v)
{
    return _mm512_andnot_ps(_mm512_set1_ps(-0.0F), v);
}
static inline vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
static inline vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
static inline vf vf_sqrt(vf v)
{
    return _mm512_sqrt_ps(v);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
static inline vf vf_fnma(vf a, vf b, vf c)
{
    return _mm512_fnmadd_ps(a, b, c);
}
static inline vf vf_round(vf v)
{
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vf vf_floor(vf v)
{
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
static inline vf vf_ceil(vf v)
{
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
static inline vm vf_lt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
static inline vm vf_le(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}
static inline vm vf_gt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
static inline vm vf_ge(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
}
static inline vm vf_eq(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}
static inline vm vf_ne(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ);
}
static inline vm vf_unordered(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
}
static inline vf vf_select(vm m, vf a, vf b)
{
    return _mm512_mask_blend_ps(m, b, a);
}
static inline vm vm_and(vm a, vm b)
{
    return (vm)(a & b);
}
static inline vm vm_or(vm a, vm b)
{
    return (vm)(a | b);
}
static inline vm vm_not(vm m)
{
    return (vm)~m;
}
static inline bool vm_any(vm m)
{
    return m != 0;
}
static inline vf vf_from_vi(vi v)
{
    return _mm512_cvtepi32_ps(v);
}
static inline vi vi_from_vf(vf v)
{
    return _mm512_cvtps_epi32(v);
}
static inline vf vf_scale(vf v, vi n)
{
    return _mm512_scalef_ps(v, _mm512_cvtepi32_ps(n));
}
static inline vf vf_scale_whole(vf v, vf n)
{
    return _mm512_scalef_ps(v, n);
}
static inline vf vf_gather(const float *p, int64_t stride, int64_t n)
{
    float lanes[VLEN];
    if (stride <= -0x8000000 || stride >= 0x8000000) { /* indices beyond 32 bits */
        for (int64_t i = 0; i < n; i++)
            lanes[i] = p[i * stride];
        return vf_load_n(lanes, n);
    }
    __m512i index = _mm512_mullo_epi32(
            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
            _mm512_set1_epi32((int)stride));
    return _mm512_mask_i32gather_ps(
            _mm512_setzero_ps(), gb_first_lanes(n), index, p, sizeof(float));
}

static inline vf vf_lookup(const float *p, vi index)
{
    return _mm512_i32gather_ps(index, p, sizeof(float));
}

static inline vf vf_permute(vf v, vi index)
{
    return _mm512_permutexvar_ps(index, v);
}

/* The table has 16 entries; bits of the indices above the lowest 4 do not count. */
#define GB_VEC_HAS_LOOKUP16 1
static inline vf vf_lookup16(vf table, vi index)
{
    return _mm512_permutexvar_ps(index, table);
}

static inline float vf_sum(vf v)
{
    return _mm512_reduce_add_ps(v);
}
static inline float vf_prod(vf v)
{
    return _mm512_reduce_mul_ps(v);
}
static inline float vf_max_lane(vf v)
{
    return _mm512_reduce_max_ps(v);
}
static inline float vf_min_lane(vf v)
{
    return _mm512_reduce_min_ps(v);
}

/* ------------------------------------------ 16 and 8 bit lanes, for conversions of all levels */

static inline vi gb_load_u16(const void *p)
{
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(p));
}
static inline vi gb_load_u16_n(const void *p, int64_t n)
{
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(gb_first_lanes(n), p));
}
static inline vi gb_load_u8(const void *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(p));
}
static inline vi gb_load_u8_n(const void *p, int64_t n)
{
    return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(gb_first_lanes(n), p));
}
/* VLEN quantized values of 4 bits, the low half of a byte first. */
static inline vi gb_load_u4(const void *p)
{
    int32_t bytes[2];
    memcpy(bytes, p, sizeof bytes);
    const __m512i counts =
            _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    __m512i words = _mm512_mask_set1_epi32(_mm512_set1_epi32(bytes[0]), 0xFF00, bytes[1]);
    return _mm512_and_si512(_mm512_srlv_epi32(words, counts), _mm512_set1_epi32(15));
}
/* The low bits of each lane, which holds a number without further bits. */
static inline void gb_store_u16(void *p, vi v)
{
    _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(v));
}
static inline void gb_store_u16_n(void *p, vi v, int64_t n)
{
    _mm256_mask_storeu_epi16(p, gb_first_lanes(n), _mm512_cvtepi32_epi16(v));
}
static inline void gb_stream_u16(void *p, vi v)
{
    _mm256_stream_si256(p, _mm512_cvtepi32_epi16(v));
}
/* Numbers become bytes by conversions that saturate: a number below all s32 becomes INT32_MIN, which is
 * the least s8; one above them becomes 2^31, which is the greatest u8. NaN becomes 0. */
#define GB_VEC_HAS_BYTES
#define GB_VEC_HAS_PAIRS
static inline __m512i gb_s8_as_s32(vf v)
{
    __mmask16 number = _mm512_cmp_ps_mask(v, v, _CMP_ORD_Q);
    return _mm512_maskz_cvtps_epi32(number, _mm512_min_ps(v, _mm512_set1_ps(127.0F)));
}
static inline __m128i gb_to_s8(vf v)
{
    return _mm512_cvtsepi32_epi8(gb_s8_as_s32(v));
}
static inline __m128i gb_to_u8(vf v)
{
    return _mm512_cvtusepi32_epi8(_mm512_cvtps_epi32(_mm512_max_ps(v, _mm512_setzero_ps())));
}
static inline vf vf_load_s8(const void *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p)));
}
static inline vf vf_load_s8_n(const void *p, int64_t n)
{
    __m128i bytes = _mm_maskz_loadu_epi8(gb_first_lanes(n), p);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}
static inline void vf_store_s8(void *p, vf v)
{
    _mm_storeu_si128(p, gb_to_s8(v));
}
static inline void vf_store_u8(void *p, vf v)
{
    _mm_storeu_si128(p, gb_to_u8(v));
}
static inline void vf_store_s8_n(void *p, vf v, int64_t n)
{
    _mm_mask_storeu_epi8(p, gb_first_lanes(n), gb_to_s8(v));
}
static inline void vf_store_u8_n(void *p, vf v, int64_t n)
{
    _mm_mask_storeu_epi8(p, gb_first_lanes(n), gb_to_u8(v));
}
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
/* Bytes of four vectors: a dword of each 128 bits of a vector after the other. */
static inline __m512i gb_in_order(__m512i bytes)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, bytes);
}
/* v[0] and v[1] to p, v[2] and v[3] to q: two vectors of 32 bits are packed by one instruction, where the store of one
 * takes two. NaN becomes 0 as above: for u8 it is the least s32 at first. */
static inline __m512i gb_u8_as_s32(vf v)
{
    return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_set1_ps(255.0F), v));
}
#define GB_STORE_PAIRS(type, pack)                                                                 \
    static inline void vf_store_pairs_##type(void *p, void *q, const vf *v)                        \
    {                                                                                              \
        __m512i first = _mm512_packs_epi32(gb_##type##_as_s32(v[0]), gb_##type##_as_s32(v[1]));    \
        __m512i last = _mm512_packs_epi32(gb_##type##_as_s32(v[2]), gb_##type##_as_s32(v[3]));     \
        __m512i bytes = gb_in_order(_mm512_##pack(first, last));                                   \
        _mm256_storeu_si256(p, _mm512_castsi512_si256(bytes));                                     \
        _mm256_storeu_si256(q, _mm512_extracti64x4_epi64(bytes, 1));                               \
    }
GB_STORE_PAIRS(s8, packs_epi16)
GB_STORE_PAIRS(u8, packus_epi16)
#undef GB_STORE_PAIRS
static inline void gb_stream_u8(void *p, vi v)
{
    _mm_stream_si128(p, _mm512_cvtepi32_epi8(v));
}
static inline void gb_store_u8(void *p, vi v)
{
    _mm_storeu_si128(p, _mm512_cvtepi32_epi8(v));
}
static inline void gb_store_u8_n(void *p, vi v, int64_t n)
{
    _mm_mask_storeu_epi8(p, gb_first_lanes(n), _mm512_cvtepi32_epi8(v));
}
/* Only where gb_cpu_converts_bf16. */
#define GB_VEC_HAS_BF16 1
static inline __m256i gb_pack_bf16(vf v)
{
    __m256i codes;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(codes) : "v"(v));
    return codes;
}
static inline void gb_store_bf16(void *p, vf v)
{
    _mm256_storeu_si256(p, gb_pack_bf16(v));
}
static inline void gb_store_bf16_n(void *p, vf v, int64_t n)
{
    _mm256_mask_storeu_epi16(p, gb_first_lanes(n), gb_pack_bf16(v));
}
static inline void gb_stream_bf16(void *p, vf v)
{
    _mm256_stream_si256(p, gb_pack_bf16(v));
}
static inline vf vf_load_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}
static inline vf vf_load_f16_n(const void *p, int64_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(gb_first_lanes(n), p));
}
static inline void vf_store_f16(void *p, vf v)
{
    _mm256_storeu_si256(p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
static inline void vf_store_f16_n(void *p, vf v, int64_t n)
{
    _mm256_mask_storeu_epi16(p, gb_first_lanes(n), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
/* Bits of a half in each lane <-> numbers. */
static inline vf gb_f16_decode(vi bits)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(bits));
}
static inline vi gb_f16_encode(vf v)
{
    return _mm512_cvtepu16_epi32(_mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

#endif
