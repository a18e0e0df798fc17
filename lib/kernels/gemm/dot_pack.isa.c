/* Quantized values of 8 bits, and bf16, on their way into VNNI groups. */
#include "kernels/isa/vec.h"

#include "base/memory.h"
#include "kernels/isa/vec_transpose.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL };

/* What becomes of elements: bytes, bytes of the other sign, halves of bytes without and with sign,
 * bf16 as it is. */
enum { BYTES, MOVED_BYTES, HALVES, SIGNED_HALVES, FLOATS };

/* Elements of a VNNI group, and bytes of one. */
#define TERMS(kind) ((kind) <= MOVED_BYTES ? 4 : 2)
#define SIZE(kind)  ((kind) == FLOATS ? 2 : 1)

/* Elements as the bytes or halves of VNNI groups: unsigned bits in 32-bit lanes -> bits within a
 * VNNI group. */
GB_INLINE vi word_bits(vi code, const int kind)
{
    if (kind == MOVED_BYTES)
        return vi_xor(code, vi_set1(0x80));
    return kind == SIGNED_HALVES ? vi_shr_logical(vi_shr(vi_shl(code, 24), 8), 16) : code;
}

GB_INLINE uint32_t scalar_bits(const uint8_t *src, const int kind)
{
    switch (kind) {
    case MOVED_BYTES:
        return *src ^ 0x80U;
    case SIGNED_HALVES:
        return (uint16_t)(int8_t)*src;
    case FLOATS:
        return (uint32_t)(src[0] | src[1] << 8);
    default:
        return *src;
    }
}

/* Any strides, and the VNNI groups at the end of K. */
GB_INLINE void copy_scalar(
        const gb_dot_copy *copy, const int kind, const uint8_t *src, int32_t *dst, int64_t from)
{
    const int64_t words = (copy->k + TERMS(kind) - 1) / TERMS(kind);
    for (int64_t w = from; w < words; w++) {
        uint32_t word = 0;
        for (int i = 0; i < TERMS(kind) && w * TERMS(kind) + i < copy->k; i++)
            word |= scalar_bits(src + (w * TERMS(kind) + i) * copy->k_stride * SIZE(kind), kind)
                    << (i * 32 / TERMS(kind));
        dst[w] = (int32_t)word;
    }
}

/* VLEN VNNI groups of elements that lie one after another. */
GB_INLINE vi words_at(const uint8_t *src, const int kind)
{
    if (kind == BYTES || kind == MOVED_BYTES || kind == FLOATS) {
        vi words = vi_load((const int32_t *)(const void *)src);
        return kind == MOVED_BYTES ? vi_xor(words, vi_set1((int32_t)0x80808080)) : words;
    }
    vi pairs = gb_load_u16(src);
    vi low = word_bits(vi_and(pairs, vi_set1(0xFF)), kind);
    vi high = word_bits(vi_shr_logical(pairs, 8), kind);
    return vi_or(low, vi_shl(high, 16));
}

GB_INLINE vi codes_at(const uint8_t *p, int64_t stride, const int kind, int64_t lanes)
{
    if (stride == 1 && kind == FLOATS)
        return lanes == VLEN ? gb_load_u16(p) : gb_load_u16_n(p, lanes);
    if (stride == 1)
        return lanes == VLEN ? gb_load_u8(p) : gb_load_u8_n(p, lanes);
    uint16_t codes[VLEN] = {0};
    for (int64_t i = 0; i < lanes; i++)
        memcpy(&codes[i], p + i * stride * SIZE(kind), SIZE(kind));
    return gb_load_u16(codes);
}

/* One VNNI group of each of `lanes` columns that are `stride` apart, from up to TERMS rows that are
 * `row` apart; other lanes become 0. */
GB_INLINE vi interleave(const uint8_t *src, int64_t row, int64_t rows, const int64_t stride,
        const int kind, int64_t lanes)
{
    vi words = vi_set1(0);
    for (int i = 0; i < TERMS(kind) && i < rows; i++) {
        vi codes = codes_at(src + i * row * SIZE(kind), stride, kind, lanes);
        words = vi_or(words, vi_shl(word_bits(codes, kind), i * 32 / TERMS(kind)));
    }
    if (lanes == VLEN)
        return words;
    int32_t all[VLEN];
    vi_store(all, words);
    return vi_load_n(all, lanes);
}

GB_INLINE void copy_rows(const gb_dot_copy *copy, const int kind)
{
    for (int64_t r = 0; r < copy->rows; r++) {
        const uint8_t *src = (const uint8_t *)copy->src + r * copy->row_stride * SIZE(kind);
        int32_t *dst = copy->dst + r * copy->dst_row;
        int64_t w = 0;
        for (; (w + VLEN) * TERMS(kind) <= copy->k; w += VLEN)
            vi_store(dst + w, words_at(src + w * TERMS(kind) * SIZE(kind), kind));
        copy_scalar(copy, kind, src, dst, w);
    }
}

/* Rows of less than one VNNI group, as three channels are: all its bytes are read at once, but those of the last row,
 * behind which there may be no memory. */
GB_INLINE void copy_short_rows(const gb_dot_copy *copy, const int kind)
{
    const uint32_t mask = (1U << copy->k * SIZE(kind) * 8) - 1;
    const uint32_t flip = kind == MOVED_BYTES ? 0x80808080 & mask : 0;
    const int64_t row = copy->row_stride * SIZE(kind), last = copy->rows - 1;
    const uint8_t *src = copy->src;
    for (int64_t r = 0; r < last; r++) {
        uint32_t word;
        memcpy(&word, src + r * row, sizeof word);
        copy->dst[r * copy->dst_row] = (int32_t)((word & mask) ^ flip);
    }
    if (last >= 0)
        copy_scalar(copy, kind, src + last * row, copy->dst + last * copy->dst_row, 0);
}

/* Rows run along memory: VLEN x VLEN VNNI groups are transposed. */
GB_INLINE void copy_columns(const gb_dot_copy *copy, const int kind)
{
    const int64_t words = (copy->k + TERMS(kind) - 1) / TERMS(kind);
    for (int64_t r = 0; r < copy->rows; r += VLEN)
        for (int64_t w = 0; w < words; w += VLEN) {
            const int64_t rows = gb_min_i64(copy->rows - r, VLEN);
            const int64_t columns = gb_min_i64(words - w, VLEN);
            const uint8_t *src = (const uint8_t *)copy->src + r * SIZE(kind);
            int32_t *dst = copy->dst + r * copy->dst_row + w;
            vi v[VLEN];
            for (int i = 0; i < VLEN; i++) {
                const int64_t k = (w + i) * TERMS(kind);
                v[i] = k >= copy->k ? vi_set1(0)
                                    : interleave(src + k * copy->k_stride * SIZE(kind),
                                              copy->k_stride, copy->k - k, 1, kind, rows);
            }
            vi_transpose(v);
            for (int64_t i = 0; i < rows; i++)
                if (columns == VLEN)
                    vi_store(dst + i * copy->dst_row, v[i]);
                else
                    vi_store_n(dst + i * copy->dst_row, v[i], columns);
        }
}

GB_INLINE void copy_kind(const gb_dot_copy *copy, const int kind)
{
    const bool is_short = TERMS(kind) * SIZE(kind) == 4 && copy->k < TERMS(kind);
    if (copy->k_stride == 1 && is_short && copy->row_stride >= copy->k) {
        copy_short_rows(copy, kind);
        return;
    }
    if (copy->k_stride == 1) {
        copy_rows(copy, kind);
        return;
    }
    if (copy->row_stride == 1) {
        copy_columns(copy, kind);
        return;
    }
    for (int64_t r = 0; r < copy->rows; r++)
        copy_scalar(copy, kind, (const uint8_t *)copy->src + r * copy->row_stride * SIZE(kind),
                copy->dst + r * copy->dst_row, 0);
}

/* A kernel for each kind; halves of bytes are never moved. */
#define FOR_KIND(call, form)                                                                       \
    if (form->floats)                                                                              \
        call(form, FLOATS);                                                                        \
    else if (form->vnni_factor == 4 && form->flip)                                                 \
        call(form, MOVED_BYTES);                                                                   \
    else if (form->vnni_factor == 4)                                                               \
        call(form, BYTES);                                                                         \
    else if (form->is_signed)                                                                      \
        call(form, SIGNED_HALVES);                                                                 \
    else                                                                                           \
        call(form, HALVES);

void GB_ISA_NAME(dot_copy)(const gb_dot_copy *copy)
{
    FOR_KIND(copy_kind, copy)
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

GB_INLINE void pack_rows(const gb_dot_pack *pack, const int64_t stride, const int kind)
{
    int64_t words = (pack->k + TERMS(kind) - 1) / TERMS(kind);
    for (int64_t w = 0; w < words; w++) {
        const int64_t k = w * TERMS(kind);
        const uint8_t *src = (const uint8_t *)pack->src + k * pack->k_stride * SIZE(kind);
        for (int64_t n = 0; n < pack->n; n += VLEN) {
            int64_t lanes = gb_min_i64(pack->n - n, VLEN);
            store_words(pack, w, n,
                    interleave(src + n * stride * SIZE(kind), pack->k_stride, pack->k - k, stride,
                            kind, lanes),
                    lanes);
        }
    }
}

/* K runs along memory: VLEN x VLEN VNNI groups are transposed. */
GB_INLINE void pack_block(const gb_dot_pack *pack, int64_t w, int64_t n, const int kind)
{
    int64_t columns = gb_min_i64(pack->n - n, VLEN), rest = pack->k - w * TERMS(kind);
    vi v[VLEN];
    for (int i = 0; i < VLEN; i++) {
        const uint8_t *src = (const uint8_t *)pack->src +
                             (w * TERMS(kind) + (n + i) * pack->n_stride) * SIZE(kind);
        uint8_t codes[4 * VLEN] = {0};
        v[i] = vi_set1(0);
        if (i >= columns)
            continue;
        if (rest >= VLEN * TERMS(kind)) {
            v[i] = words_at(src, kind);
            continue;
        }
        memcpy(codes, src, (size_t)(rest * SIZE(kind)));
        /* 0 is what moving leaves alone. */
        for (int64_t k = rest; kind == MOVED_BYTES && k < VLEN * TERMS(kind); k++)
            codes[k] = 0x80;
        v[i] = words_at(codes, kind);
    }
    vi_transpose(v);
    int64_t words = gb_min_i64((rest + TERMS(kind) - 1) / TERMS(kind), VLEN);
    for (int64_t i = 0; i < words; i++)
        store_words(pack, w + i, n, v[i], columns);
}

GB_INLINE void pack_columns(const gb_dot_pack *pack, const int kind)
{
    for (int64_t n = 0; n < pack->n; n += VLEN)
        for (int64_t w = 0; w * TERMS(kind) < pack->k; w += VLEN)
            pack_block(pack, w, n, kind);
}

GB_INLINE void pack_kind(const gb_dot_pack *pack, const int kind)
{
    if (pack->n_stride == 1)
        pack_rows(pack, 1, kind);
    else if (pack->k_stride == 1)
        pack_columns(pack, kind);
    else
        pack_rows(pack, pack->n_stride, kind);
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
    FOR_KIND(pack_kind, pack)
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
