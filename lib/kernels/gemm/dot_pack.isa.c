/* Quantized values of 8 bits on their way into the VNNI groups of integer products. */
#include "kernels/isa/vec.h"

#include "base/memory.h"
#include "kernels/isa/vec_transpose.h"

enum { PANEL = GB_GEMM_PANEL };

/* Quantized values as the bytes or halves of VNNI groups: unsigned bits in 32-bit lanes -> bits
 * within a VNNI group. */
GB_INLINE vi word_bits(vi code, const int vnni_factor, const bool is_signed, const bool flip)
{
    if (vnni_factor == 4)
        return flip ? vi_xor(code, vi_set1(0x80)) : code;
    return is_signed ? vi_shr_logical(vi_shr(vi_shl(code, 24), 8), 16) : code;
}

static int32_t scalar_bits(uint8_t code, const gb_dot_copy *copy)
{
    if (copy->vnni_factor == 4)
        return copy->flip ? code ^ 0x80 : code;
    return copy->is_signed ? (int32_t)(uint16_t)(int8_t)code : code;
}

/* Any strides, and the VNNI groups at the end of K. */
static void copy_scalar(const gb_dot_copy *copy, const uint8_t *src, int32_t *dst, int64_t from)
{
    int64_t words = (copy->k + copy->vnni_factor - 1) / copy->vnni_factor;
    for (int64_t w = from; w < words; w++) {
        uint32_t word = 0;
        for (int i = 0; i < copy->vnni_factor && w * copy->vnni_factor + i < copy->k; i++)
            word |= (uint32_t)scalar_bits(src[(w * copy->vnni_factor + i) * copy->k_stride], copy)
                    << (i * 32 / copy->vnni_factor);
        dst[w] = (int32_t)word;
    }
}

GB_INLINE vi words_at(
        const uint8_t *src, const int vnni_factor, const bool is_signed, const bool flip)
{
    if (vnni_factor == 4) {
        vi words = vi_load((const int32_t *)(const void *)src);
        return flip ? vi_xor(words, vi_set1((int32_t)0x80808080)) : words;
    }
    vi pairs = gb_load_u16(src);
    vi low = word_bits(vi_and(pairs, vi_set1(0xFF)), 2, is_signed, flip);
    vi high = word_bits(vi_shr_logical(pairs, 8), 2, is_signed, flip);
    return vi_or(low, vi_shl(high, 16));
}

GB_INLINE void copy_rows(
        const gb_dot_copy *copy, const int vnni_factor, const bool is_signed, const bool flip)
{
    for (int64_t r = 0; r < copy->rows; r++) {
        const uint8_t *src = (const uint8_t *)copy->src + r * copy->row_stride;
        int32_t *dst = copy->dst + r * copy->dst_row;
        int64_t w = 0;
        for (; (w + VLEN) * vnni_factor <= copy->k; w += VLEN)
            vi_store(dst + w, words_at(src + w * vnni_factor, vnni_factor, is_signed, flip));
        copy_scalar(copy, src, dst, w);
    }
}

/* A kernel for each kind of code; depth 2 never moves quantized values. */
#define FOR_FORM(call, form)                                                                       \
    if (form->vnni_factor == 4 && form->flip)                                                      \
        call(form, 4, false, true);                                                                \
    else if (form->vnni_factor == 4)                                                               \
        call(form, 4, false, false);                                                               \
    else if (form->is_signed)                                                                      \
        call(form, 2, true, false);                                                                \
    else                                                                                           \
        call(form, 2, false, false);

void GB_ISA_NAME(dot_copy)(const gb_dot_copy *copy)
{
    if (copy->k_stride == 1) {
        FOR_FORM(copy_rows, copy)
        return;
    }
    for (int64_t r = 0; r < copy->rows; r++)
        copy_scalar(copy, (const uint8_t *)copy->src + r * copy->row_stride,
                copy->dst + r * copy->dst_row, 0);
}

/* Packing by columns -------------------------------------------------------------------------- */

static int32_t *word_at(const gb_dot_pack *pack, int64_t w, int64_t n)
{
    if (pack->panel_stride == 0)
        return pack->dst + w * pack->dst_row + n;
    return pack->dst + n / PANEL * pack->panel_stride + w * pack->dst_row + n % PANEL;
}

/* n <= VLEN columns of one VNNI group; in panels the others are 0. */
GB_INLINE void store_words(const gb_dot_pack *pack, int64_t w, int64_t n, vi words, int64_t lanes)
{
    if (lanes == VLEN || pack->panel_stride)
        vi_store(word_at(pack, w, n), words);
    else
        vi_store_n(word_at(pack, w, n), words, lanes);
}

GB_INLINE vi codes_at(const uint8_t *p, int64_t stride, int64_t lanes)
{
    if (stride == 1)
        return lanes == VLEN ? gb_load_u8(p) : gb_load_u8_n(p, lanes);
    uint8_t codes[VLEN] = {0};
    for (int64_t i = 0; i < lanes; i++)
        codes[i] = p[i * stride];
    return gb_load_u8(codes);
}

/* `terms` rows of K; lanes beyond the last column become 0. */
GB_INLINE vi interleave(const gb_dot_pack *pack, int64_t w, int64_t n, const int64_t stride,
        const int vnni_factor, const bool is_signed, const bool flip, int64_t lanes)
{
    const uint8_t *src = (const uint8_t *)pack->src + w * vnni_factor * pack->k_stride + n * stride;
    int64_t terms = gb_min_i64(pack->k - w * vnni_factor, vnni_factor);
    vi words = vi_set1(0);
    for (int i = 0; i < terms; i++) {
        vi codes = codes_at(src + i * pack->k_stride, stride, lanes);
        words = vi_or(words,
                vi_shl(word_bits(codes, vnni_factor, is_signed, flip), i * 32 / vnni_factor));
    }
    if (lanes == VLEN)
        return words;
    int32_t all[VLEN];
    vi_store(all, words);
    return vi_load_n(all, lanes);
}

GB_INLINE void pack_rows(const gb_dot_pack *pack, const int64_t stride, const int vnni_factor,
        const bool is_signed, const bool flip)
{
    int64_t words = (pack->k + vnni_factor - 1) / vnni_factor;
    for (int64_t w = 0; w < words; w++)
        for (int64_t n = 0; n < pack->n; n += VLEN) {
            int64_t lanes = gb_min_i64(pack->n - n, VLEN);
            store_words(pack, w, n,
                    interleave(pack, w, n, stride, vnni_factor, is_signed, flip, lanes), lanes);
        }
}

/* K runs along memory: VLEN x VLEN VNNI groups are transposed. */
GB_INLINE void pack_block(const gb_dot_pack *pack, int64_t w, int64_t n, const int vnni_factor,
        const bool is_signed, const bool flip)
{
    int64_t columns = gb_min_i64(pack->n - n, VLEN), rest = pack->k - w * vnni_factor;
    vi v[VLEN];
    for (int i = 0; i < VLEN; i++) {
        const uint8_t *src =
                (const uint8_t *)pack->src + w * vnni_factor + (n + i) * pack->n_stride;
        uint8_t codes[4 * VLEN] = {0};
        v[i] = vi_set1(0);
        if (i >= columns)
            continue;
        if (rest >= VLEN * vnni_factor) {
            v[i] = words_at(src, vnni_factor, is_signed, flip);
            continue;
        }
        for (int64_t k = 0; k < rest; k++)
            codes[k] = src[k];
        /* 0 is what moving leaves alone. */
        for (int64_t k = rest; flip && k < VLEN * vnni_factor; k++)
            codes[k] = 0x80;
        v[i] = words_at(codes, vnni_factor, is_signed, flip);
    }
    vi_transpose(v);
    int64_t words = gb_min_i64((rest + vnni_factor - 1) / vnni_factor, VLEN);
    for (int64_t i = 0; i < words; i++)
        store_words(pack, w + i, n, v[i], columns);
}

GB_INLINE void pack_columns(
        const gb_dot_pack *pack, const int vnni_factor, const bool is_signed, const bool flip)
{
    for (int64_t n = 0; n < pack->n; n += VLEN)
        for (int64_t w = 0; w * vnni_factor < pack->k; w += VLEN)
            pack_block(pack, w, n, vnni_factor, is_signed, flip);
}

GB_INLINE void pack_typed(
        const gb_dot_pack *pack, const int vnni_factor, const bool is_signed, const bool flip)
{
    if (pack->n_stride == 1)
        pack_rows(pack, 1, vnni_factor, is_signed, flip);
    else if (pack->k_stride == 1)
        pack_columns(pack, vnni_factor, is_signed, flip);
    else
        pack_rows(pack, pack->n_stride, vnni_factor, is_signed, flip);
}

/* Vectors of a panel that no column reaches. */
static void clear_panel_end(const gb_dot_pack *pack)
{
    int64_t words = (pack->k + pack->vnni_factor - 1) / pack->vnni_factor;
    int64_t first = (pack->n + VLEN - 1) / VLEN * VLEN, end = (pack->n + PANEL - 1) / PANEL * PANEL;
    for (int64_t w = 0; w < words; w++)
        for (int64_t n = first; n < end; n += VLEN)
            vi_store(word_at(pack, w, n), vi_set1(0));
}

void GB_ISA_NAME(dot_pack)(const gb_dot_pack *pack)
{
    FOR_FORM(pack_typed, pack)
    if (pack->panel_stride)
        clear_panel_end(pack);
}

/* Sums of VNNI groups -------------------------------------------------------------------------- */

GB_INLINE vi sum_of(vi words, const int vnni_factor, const bool is_signed)
{
    vi sum = vi_set1(0);
    for (int i = 0; i < vnni_factor; i++) {
        vi top = vi_shl(words, 32 - (i + 1) * 32 / vnni_factor);
        sum = vi_add(sum, is_signed ? vi_shr(top, 32 - 32 / vnni_factor)
                                    : vi_shr_logical(top, 32 - 32 / vnni_factor));
    }
    return sum;
}

GB_INLINE void sum_columns(const gb_dot_sums *s, const int vnni_factor, const bool is_signed)
{
    for (int64_t n = 0; n < s->n; n += VLEN) {
        int64_t lanes = gb_min_i64(s->n - n, VLEN);
        vi sum = s->add ? vi_load_n(s->sums + n, lanes) : vi_set1(0);
        for (int64_t k = 0; k < s->k; k++)
            sum = vi_add(sum,
                    sum_of(vi_load_n(s->words + n + k * s->step, lanes), vnni_factor, is_signed));
        vi_store_n(s->sums + n, sum, lanes);
    }
}

GB_INLINE void sum_rows(const gb_dot_sums *s, const int vnni_factor, const bool is_signed)
{
    for (int64_t n = 0; n < s->n; n++) {
        vi sum = vi_set1(0);
        for (int64_t k = 0; k < s->k; k += VLEN)
            sum = vi_add(
                    sum, sum_of(vi_load_n(s->words + n * s->stride + k, gb_min_i64(s->k - k, VLEN)),
                                 vnni_factor, is_signed));
        int32_t lanes[VLEN];
        vi_store(lanes, sum);
        uint32_t total = s->add ? (uint32_t)s->sums[n] : 0;
        for (int i = 0; i < VLEN; i++)
            total += (uint32_t)lanes[i];
        s->sums[n] = (int32_t)total;
    }
}

GB_INLINE void sum_typed(const gb_dot_sums *sums, const int vnni_factor, const bool is_signed)
{
    if (sums->stride == 1)
        sum_columns(sums, vnni_factor, is_signed);
    else
        sum_rows(sums, vnni_factor, is_signed);
}

void GB_ISA_NAME(dot_sums)(const gb_dot_sums *sums)
{
    if (sums->vnni_factor == 2)
        sum_typed(sums, 2, true);
    else if (sums->is_signed)
        sum_typed(sums, 4, true);
    else
        sum_typed(sums, 4, false);
}
