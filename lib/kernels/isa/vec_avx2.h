/* The vector vocabulary in AVX2, FMA and F16C: 8 lanes. */
#ifndef GB_KERNELS_ISA_VEC_AVX2_H
#define GB_KERNELS_ISA_VEC_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define VLEN           8
#define VREGS          16
#define GB_VEC_HAS_F16 1
#define GB_VEC_HAS_FMA 1

typedef __m256 vf;
typedef __m256i vi;
typedef __m256i vm; /* lanes of all ones or zeros */

/* ---------------------------------------------------------------------------- load, store, cast */

static inline __m256i gb_first_lanes(int64_t n)
{
    __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), index);
}
static inline vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline vf vf_load_n(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, gb_first_lanes(n));
}
static inline vf vf_load_lanes(const float *p, const int32_t *lanes)
{
    return _mm256_maskload_ps(p, _mm256_loadu_si256((const __m256i *)lanes));
}
static inline void vf_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}
/* In pieces: AMD's processors take a dozen cycles for a store with a mask. The place may be aligned to nothing. */
static inline void vf_store_n(float *p, vf v, int64_t n)
{
    __m128 piece = _mm256_castps256_ps128(v);
    if (n >= 8) {
        _mm256_storeu_ps(p, v);
        return;
    }
    if (n & 4) {
        _mm_storeu_ps(p, piece);
        piece = _mm256_extractf128_ps(v, 1);
        p += 4;
    }
    if (n & 2) {
        memcpy(p, &piece, 2 * sizeof *p);
        piece = _mm_movehl_ps(piece, piece);
        p += 2;
    }
    if (n & 1)
        memcpy(p, &piece, sizeof *p);
}
static inline void vf_stream(float *p, vf v)
{
    _mm256_stream_ps(p, v);
}
static inline vi vi_load(const int32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
static inline vi vi_load_n(const int32_t *p, int64_t n)
{
    return _mm256_maskload_epi32(p, gb_first_lanes(n));
}
static inline void vi_store(int32_t *p, vi v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}
static inline void vi_store_n(int32_t *p, vi v, int64_t n)
{
    vf_store_n((float *)(void *)p, _mm256_castsi256_ps(v), n);
}
static inline vi vf_bits(vf v)
{
    return _mm256_castps_si256(v);
}
static inline vf vi_as_vf(vi v)
{
    return _mm256_castsi256_ps(v);
}

/* ------------------------------------------------------------------------------------- integers */

static inline vi vi_set1(int32_t value)
{
    return _mm256_set1_epi32(value);
}
static inline vi vi_add(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}
static inline vi vi_sub(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
}
static inline vi vi_add_halves(vi a, vi b)
{
    return _mm256_add_epi16(a, b);
}
static inline vi vi_sub_halves(vi a, vi b)
{
    return _mm256_sub_epi16(a, b);
}
static inline vi vi_mul(vi a, vi b, vi *high)
{
    vi even = _mm256_mul_epu32(a, b);
    vi odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
    *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
    return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
}
static inline vi vi_and(vi a, vi b)
{
    return _mm256_and_si256(a, b);
}
static inline vi vi_or(vi a, vi b)
{
    return _mm256_or_si256(a, b);
}
static inline vi vi_max_u8(vi a, vi b)
{
    return _mm256_max_epu8(a, b);
}
static inline vi vi_xor(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
}
static inline vi vi_shl(vi v, int k)
{
    return _mm256_slli_epi32(v, k);
}
static inline vi vi_shr(vi v, int k)
{
    return _mm256_srai_epi32(v, k);
}
static inline vi vi_shr_logical(vi v, int k)
{
    return _mm256_srli_epi32(v, k);
}
static inline vi vi_dot2(vi sum, vi a, vi b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}
static inline vi vi_load_s8_halves(const void *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(p));
}
static inline vi vi_load_u8_halves(const void *p)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(p));
}
static inline vi vi_pair_low(vi a, vi b)
{
    return _mm256_unpacklo_epi16(a, b);
}
static inline vi vi_pair_high(vi a, vi b)
{
    return _mm256_unpackhi_epi16(a, b);
}
static inline void vi_order_pairs(vi *low, vi *high)
{
    vi first = _mm256_permute2x128_si256(*low, *high, 0x20);
    *high = _mm256_permute2x128_si256(*low, *high, 0x31);
    *low = first;
}
static inline vm vi_eq(vi a, vi b)
{
    return _mm256_cmpeq_epi32(a, b);
}
static inline vm vi_gt(vi a, vi b)
{
    return _mm256_cmpgt_epi32(a, b);
}
static inline vi vi_select(vm m, vi a, vi b)
{
    return _mm256_blendv_epi8(b, a, m);
}

/* ----------------------------------------------------------------------------------- arithmetic */

static inline vf vf_set1(float value)
{
    return _mm256_set1_ps(value);
}
static inline vf vf_zero(void)
{
    return _mm256_setzero_ps();
}
static inline vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
static inline vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}
static inline vf vf_neg(vf v)
{
    return _mm256_xor_ps(v, _mm256_set1_ps(-0.0F));
}
static inline vf vf_abs(vf v)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), v);
}
static inline vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
static inline vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
static inline vf vf_sqrt(vf v)
{
    return _mm256_sqrt_ps(v);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline vf vf_fnma(vf a, vf b, vf c)
{
    return _mm256_fnmadd_ps(a, b, c);
}
static inline vf vf_round(vf v)
{
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vf vf_floor(vf v)
{
    return _mm256_round_ps(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
static inline vf vf_ceil(vf v)
{
    return _mm256_round_ps(v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
static inline vm vf_lt(vf a, vf b)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
static inline vm vf_le(vf a, vf b)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_LE_OQ));
}
static inline vm vf_gt(vf a, vf b)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
static inline vm vf_ge(vf a, vf b)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GE_OQ));
}
static inline vm vf_eq(vf a, vf b)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}
static inline vm vf_ne(vf a, vf b)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_NEQ_UQ));
}
static inline vm vf_unordered(vf a, vf b)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_UNORD_Q));
}
static inline vf vf_select(vm m, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(m));
}
static inline vm vm_and(vm a, vm b)
{
    return _mm256_and_si256(a, b);
}
static inline vm vm_or(vm a, vm b)
{
    return _mm256_or_si256(a, b);
}
static inline vm vm_not(vm m)
{
    return _mm256_xor_si256(m, _mm256_set1_epi32(-1));
}
static inline bool vm_any(vm m)
{
    return _mm256_movemask_ps(_mm256_castsi256_ps(m)) != 0;
}
static inline vf vf_from_vi(vi v)
{
    return _mm256_cvtepi32_ps(v);
}
static inline vi vi_from_vf(vf v)
{
    return _mm256_cvtps_epi32(v);
}
static inline vf vf_scale(vf v, vi n)
{
    vi half = vi_shr(n, 1), rest = vi_sub(n, half), one = vi_set1(127);
    vf scaled = vf_mul(v, vi_as_vf(vi_shl(vi_add(half, one), 23)));
    return vf_mul(scaled, vi_as_vf(vi_shl(vi_add(rest, one), 23)));
}
static inline vf vf_scale_whole(vf v, vf n)
{
    return vf_scale(v, vi_from_vf(n));
}
static inline vf vf_gather(const float *p, int64_t stride, int64_t n)
{
    float lanes[VLEN];
    if (stride <= -0x8000000 || stride >= 0x8000000) { /* indices beyond 32 bits */
        for (int64_t i = 0; i < n; i++)
            lanes[i] = p[i * stride];
        return vf_load_n(lanes, n);
    }
    __m256i index = _mm256_mullo_epi32(
            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)stride));
    vf mask = _mm256_castsi256_ps(gb_first_lanes(n));
    return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), p, index, mask, sizeof(float));
}

static inline vf vf_lookup(const float *p, vi index)
{
    return _mm256_i32gather_ps(p, index, sizeof(float));
}

static inline vf vf_permute(vf v, vi index)
{
    return _mm256_permutevar8x32_ps(v, index);
}

static inline float vf_sum(vf v)
{
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
static inline float vf_prod(vf v)
{
    __m128 half = _mm_mul_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_mul_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_mul_ss(half, _mm_movehdup_ps(half)));
}
static inline float vf_max_lane(vf v)
{
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}
static inline float vf_min_lane(vf v)
{
    __m128 half = _mm_min_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_min_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_min_ss(half, _mm_movehdup_ps(half)));
}

/* ------------------------------------------ 16 and 8 bit lanes, for conversions of all levels */

static inline vi gb_load_u16(const void *p)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128(p));
}
static inline vi gb_load_u16_n(const void *p, int64_t n)
{
    uint16_t lanes[VLEN] = {0};
    memcpy(lanes, p, (size_t)n * sizeof *lanes);
    return gb_load_u16(lanes);
}
static inline vi gb_load_u8(const void *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(p));
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
    int32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    const __m256i counts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    return _mm256_and_si256(
            _mm256_srlv_epi32(_mm256_set1_epi32(bytes), counts), _mm256_set1_epi32(15));
}
/* The low bits of each lane, which holds a number without further bits. */
static inline __m128i gb_pack_u16(vi v)
{
    __m256i words = _mm256_packus_epi32(v, v);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(words, 0x08));
}
static inline void gb_store_u16(void *p, vi v)
{
    _mm_storeu_si128(p, gb_pack_u16(v));
}
static inline void gb_store_u16_n(void *p, vi v, int64_t n)
{
    __m128i lanes = gb_pack_u16(v);
    memcpy(p, &lanes, (size_t)n * sizeof(uint16_t));
}
static inline void gb_stream_u16(void *p, vi v)
{
    _mm_stream_si128(p, gb_pack_u16(v));
}
static inline void gb_stream_u8(void *p, vi v)
{
    __m128i words = gb_pack_u16(v);
    _mm_storel_epi64(p, _mm_packus_epi16(words, words));
}
static inline void gb_store_u8(void *p, vi v)
{
    __m128i words = gb_pack_u16(v);
    _mm_storel_epi64(p, _mm_packus_epi16(words, words));
}
static inline void gb_store_u8_n(void *p, vi v, int64_t n)
{
    __m128i words = gb_pack_u16(v);
    __m128i lanes = _mm_packus_epi16(words, words);
    memcpy(p, &lanes, (size_t)n);
}
/* Values of 8 bits, packed by instructions that saturate. */
#define GB_VEC_HAS_BYTES 1
#define GB_VEC_HAS_FOURS 1
/* NaN becomes 0; what s32 cannot hold is too small, and the least one. */
static inline vi gb_to_s8(vf v)
{
    vf number = _mm256_and_ps(v, _mm256_cmp_ps(v, v, _CMP_ORD_Q));
    return _mm256_cvtps_epi32(_mm256_min_ps(number, _mm256_set1_ps(127.0F)));
}
static inline vi gb_to_u8(vf v)
{
    vf least = _mm256_max_ps(v, _mm256_setzero_ps()); /* NaN becomes 0, too */
    return _mm256_cvtps_epi32(_mm256_min_ps(least, _mm256_set1_ps(255.0F)));
}
static inline __m128i gb_pack_s16(vi v)
{
    return _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}
static inline vf vf_load_s8(const void *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p)));
}
static inline vf vf_load_s8_n(const void *p, int64_t n)
{
    int8_t lanes[VLEN] = {0};
    memcpy(lanes, p, (size_t)n);
    return vf_load_s8(lanes);
}
/* One vector, part of one, two of them, and four, perhaps past the caches. */
#define GB_BYTE_STORES(type, pack)                                                                 \
    static inline void vf_store_##type(void *p, vf v)                                              \
    {                                                                                              \
        __m128i words = gb_pack_s16(gb_to_##type(v));                                              \
        _mm_storel_epi64(p, _mm_##pack(words, words));                                             \
    }                                                                                              \
    static inline void vf_store_##type##_n(void *p, vf v, int64_t n)                               \
    {                                                                                              \
        __m128i words = gb_pack_s16(gb_to_##type(v)), lanes = _mm_##pack(words, words);            \
        memcpy(p, &lanes, (size_t)n);                                                              \
    }                                                                                              \
    static inline void vf_store_pair_##type(void *p, vf low, vf high)                              \
    {                                                                                              \
        __m128i words = gb_pack_s16(gb_to_##type(low));                                            \
        _mm_storeu_si128(p, _mm_##pack(words, gb_pack_s16(gb_to_##type(high))));                   \
    }                                                                                              \
    static inline void vf_store_four_##type(void *p, const vf *v, bool streamed)                   \
    {                                                                                              \
        __m256i first = _mm256_packs_epi32(gb_to_##type(v[0]), gb_to_##type(v[1]));                \
        __m256i last = _mm256_packs_epi32(gb_to_##type(v[2]), gb_to_##type(v[3]));                 \
        const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);                           \
        __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_##pack(first, last), order);            \
        if (streamed)                                                                              \
            _mm256_stream_si256(p, bytes);                                                         \
        else                                                                                       \
            _mm256_storeu_si256(p, bytes);                                                         \
    }
GB_BYTE_STORES(s8, packs_epi16)
GB_BYTE_STORES(u8, packus_epi16)
#undef GB_BYTE_STORES
static inline vf vf_load_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(p));
}
static inline vf vf_load_f16_n(const void *p, int64_t n)
{
    uint16_t lanes[VLEN] = {0};
    memcpy(lanes, p, (size_t)n * sizeof *lanes);
    return vf_load_f16(lanes);
}
static inline void vf_store_f16(void *p, vf v)
{
    _mm_storeu_si128(p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
static inline void vf_store_f16_n(void *p, vf v, int64_t n)
{
    __m128i lanes = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    memcpy(p, &lanes, (size_t)n * sizeof(uint16_t));
}
/* Bits of a half in each lane <-> numbers. */
static inline vf gb_f16_decode(vi bits)
{
    return _mm256_cvtph_ps(gb_pack_u16(bits));
}
static inline vi gb_f16_encode(vf v)
{
    return _mm256_cvtepu16_epi32(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

#endif
