/* Transposition of a tile of elements of 1, 2 or 4 bytes, through blocks in registers. Neighbouring
 * lines of the source join in work items of four bytes first, which become lanes of vectors. */
#include "kernels/isa/vec.h"

#include "base/memory.h"
#include "kernels/isa/vec_partial.h"
#include "kernels/isa/vec_transpose.h"

#include <string.h>

enum {
    ITEM = 4,                    /* bytes */
    WHOLE = (int)sizeof(vi),     /* bytes of a vector */
    NARROW = 4,                  /* work items of a narrow block */
    NARROW_BYTES = NARROW * ITEM /* of a row of it */
};

GB_TEMPLATE vi load(size_t size, const char *p, int64_t n)
{
    if (size == 1)
        return n == VLEN ? gb_load_u8(p) : gb_load_u8_n(p, n);
    if (size == 2)
        return n == VLEN ? gb_load_u16(p) : gb_load_u16_n(p, n);
    return n == VLEN ? vi_load((const int32_t *)(const void *)p)
                     : vi_load_n((const int32_t *)(const void *)p, n);
}

/* The first `rows` elements of up to ITEM / size source lines, side by side in each lane. */
GB_TEMPLATE vi load_item(size_t size, const char *src, int64_t src_step, int64_t rows, int64_t cols)
{
    vi item = load(size, src, rows);
    for (int k = 1; k < ITEM / (int)size; k++)
        if (k < cols)
            item = vi_or(item, vi_shl(load(size, src + k * src_step, rows), 8 * (int)size * k));
    return item;
}

GB_TEMPLATE void put(char *dst, vi v, bool streamed)
{
    if (streamed)
        vf_stream((float *)(void *)dst, vi_as_vf(v));
    else
        vi_store((int32_t *)(void *)dst, v);
}

GB_TEMPLATE void transpose_full(
        size_t size, const char *src, int64_t src_step, char *dst, int64_t dst_step, bool streamed)
{
    const int per = ITEM / (int)size;
    vi block[VLEN];
    for (int i = 0; i < VLEN; i++)
        block[i] = load_item(size, src + i * per * src_step, src_step, VLEN, per);
    vi_transpose(block);
    for (int i = 0; i < VLEN; i++)
        put(dst + i * dst_step, block[i], streamed);
}

GB_TEMPLATE void transpose_part(size_t size, const char *src, int64_t src_step, char *dst,
        int64_t dst_step, int64_t rows, int64_t cols)
{
    const int per = ITEM / (int)size;
    vi block[VLEN];
    for (int i = 0; i < VLEN; i++)
        block[i] = i * per < cols ? load_item(size, src + i * per * src_step, src_step, rows,
                                            cols - i * per)
                                  : vi_set1(0);
    vi_transpose(block);
    int64_t bytes = cols * (int64_t)size;
    for (int i = 0; i < VLEN && i < rows; i++, dst += dst_step) {
        if (bytes % ITEM == 0)
            vi_store_n((int32_t *)(void *)dst, block[i], bytes / ITEM);
        else
            memcpy(dst, &block[i], (size_t)bytes);
    }
}

/* Lane that row number j + i NARROW_ROWS is loaded to, so that the exchange leaves rows in order.
 */
enum { NARROW_ROWS = VLEN / NARROW };
#define ROW_OF(lane) ((lane) % NARROW * NARROW_ROWS + (lane) / NARROW)
static const int32_t narrow_rows[16] = {ROW_OF(0), ROW_OF(1), ROW_OF(2), ROW_OF(3), ROW_OF(4),
        ROW_OF(5), ROW_OF(6), ROW_OF(7), ROW_OF(8), ROW_OF(9), ROW_OF(10), ROW_OF(11), ROW_OF(12),
        ROW_OF(13), ROW_OF(14), ROW_OF(15)};

/* Rows of at most NARROW work items. */
GB_TEMPLATE void transpose_narrow(size_t size, const char *src, int64_t src_step, char *dst,
        int64_t dst_step, int64_t rows, int64_t cols)
{
    const int per = ITEM / (int)size;
    size_t bytes = (size_t)cols * size;
    vi block[NARROW], order = vi_load(narrow_rows);
    for (int i = 0; i < NARROW; i++) {
        vi item = i * per < cols ? load_item(size, src + i * per * src_step, src_step, rows,
                                           cols - i * per)
                                 : vi_set1(0);
        block[i] = vi_pick(item, order);
    }
    vi_interleave(block);
    const char *from = (const char *)block;
    if (bytes == NARROW_BYTES && dst_step == NARROW_BYTES) {
        memcpy(dst, from, (size_t)rows * NARROW_BYTES);
        return;
    }
    for (int64_t r = 0; r < rows; r++, dst += dst_step, from += NARROW_BYTES) {
        if (bytes == NARROW_BYTES)
            memcpy(dst, from, NARROW_BYTES);
        else if (bytes == NARROW_BYTES / 2)
            memcpy(dst, from, NARROW_BYTES / 2);
        else
            memcpy(dst, from, bytes);
    }
}

GB_TEMPLATE void transpose(size_t size, const char *src, int64_t src_step, char *dst,
        int64_t dst_step, int64_t rows, int64_t cols, bool streamed)
{
    const int64_t bytes = (int64_t)size, wide = WHOLE / bytes;
    bool narrow = cols * bytes <= NARROW_BYTES;
    streamed = streamed && ((uintptr_t)dst | (uintptr_t)dst_step) % WHOLE == 0;
    for (int64_t c = 0; c < cols; c += wide)
        for (int64_t r = 0; r < rows; r += VLEN) {
            const char *from = src + c * src_step + r * bytes;
            char *to = dst + r * dst_step + c * bytes;
            int64_t r_left = rows - r < VLEN ? rows - r : VLEN;
            int64_t c_left = cols - c < wide ? cols - c : wide;
            if (narrow && r_left == VLEN)
                transpose_narrow(size, from, src_step, to, dst_step, VLEN, cols);
            else if (narrow)
                transpose_narrow(size, from, src_step, to, dst_step, r_left, cols);
            else if (r_left < VLEN || c_left < wide)
                transpose_part(size, from, src_step, to, dst_step, r_left, c_left);
            else if (streamed)
                transpose_full(size, from, src_step, to, dst_step, true);
            else
                transpose_full(size, from, src_step, to, dst_step, false);
        }
}

typedef uint16_t gb_u16x8 __attribute__((vector_size(16)));

/* Three perfect shuffles of all 64 elements transpose 8 x 8 of them. */
GB_TEMPLATE void transpose_8x8(const char *src, int64_t src_step, char *dst, int64_t dst_step)
{
    gb_u16x8 a[8], b[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        memcpy(&a[i], src + i * src_step, sizeof a[i]);
#pragma GCC unroll 3
    for (int round = 0; round < 3; round++) {
#pragma GCC unroll 8
        for (int i = 0; i < 4; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            a[i] = b[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        memcpy(dst + i * dst_step, &a[i], sizeof a[i]);
}

/* 2-byte elements: whole blocks of 8 x 8, then what is left on two sides. Faster than whole vectors
 * where these would cross lines of the destination. */
GB_TEMPLATE void transpose_halves(
        const char *src, int64_t src_step, char *dst, int64_t dst_step, int64_t rows, int64_t cols)
{
    int64_t r_whole = rows & ~INT64_C(7), c_whole = cols & ~INT64_C(7);
    for (int64_t c = 0; c < c_whole; c += 8)
        for (int64_t r = 0; r < r_whole; r += 8)
            transpose_8x8(
                    src + c * src_step + 2 * r, src_step, dst + r * dst_step + 2 * c, dst_step);
    transpose(2, src + 2 * r_whole, src_step, dst + r_whole * dst_step, dst_step, rows - r_whole,
            cols, false);
    transpose(2, src + c_whole * src_step, src_step, dst + 2 * c_whole, dst_step, r_whole,
            cols - c_whole, false);
}

/* Where each element of `few` vectors comes from: lane lane[i] of vector k, where place[i * few + k] holds. */
typedef struct lane_sources {
    vi lane[GB_FEW_WORDS];
    vm place[GB_FEW_WORDS * GB_FEW_WORDS];
} lane_sources;

/* Element e of `few` vectors is element (e % few, e / few) of as many rows of VLEN (`merges`), or the other way
 * around. */
GB_TEMPLATE void find_sources(const int few, bool merges, lane_sources *sources)
{
    int32_t lane[VLEN], vector[VLEN];
    for (int i = 0; i < few; i++) {
        for (int l = 0; l < VLEN; l++) {
            int e = merges ? i * VLEN + l : l * few + i;
            lane[l] = merges ? e / few : e % VLEN;
            vector[l] = merges ? e % few : e / VLEN;
        }
        sources->lane[i] = vi_load(lane);
        for (int k = 0; k < few; k++)
            sources->place[i * few + k] = vi_eq(vi_load(vector), vi_set1(k));
    }
}

GB_TEMPLATE void exchange_few(const int few, const lane_sources *sources, const char *src,
        int64_t src_step, char *dst, int64_t dst_step)
{
    vi from[GB_FEW_WORDS];
    for (int k = 0; k < few; k++)
        from[k] = vi_load((const int32_t *)(const void *)(src + k * src_step));
    for (int i = 0; i < few; i++) {
        vi to = vi_pick(from[0], sources->lane[i]);
        for (int k = 1; k < few; k++)
            to = vi_select(sources->place[i * few + k], vi_pick(from[k], sources->lane[i]), to);
        vi_store((int32_t *)(void *)(dst + i * dst_step), to);
    }
}

/* A few rows of 4-byte elements whose columns lie one behind the other become rows (split), or the other way around
 * (merged); at least VLEN columns. The last block may overlap the one before it. */
GB_TEMPLATE void transpose_few(const int few, bool merges, const char *src, int64_t src_step,
        char *dst, int64_t dst_step, int64_t many)
{
    const int64_t dense = few * ITEM;
    lane_sources sources;
    find_sources(few, merges, &sources);
    for (int64_t m = 0; m < many; m += VLEN) {
        int64_t at = m + VLEN <= many ? m : many - VLEN;
        if (merges)
            exchange_few(few, &sources, src + at * ITEM, src_step, dst + at * dense, WHOLE);
        else
            exchange_few(few, &sources, src + at * dense, WHOLE, dst + at * ITEM, dst_step);
    }
}

/* False: neither are the rows few and lie close in the source, nor the columns in the destination. */
GB_TEMPLATE bool transposes_few(const int few, const char *src, int64_t src_step, char *dst,
        int64_t dst_step, int64_t rows, int64_t cols)
{
    if (rows == few && src_step == few * ITEM && cols >= VLEN)
        transpose_few(few, false, src, src_step, dst, dst_step, cols);
    else if (cols == few && dst_step == few * ITEM && rows >= VLEN)
        transpose_few(few, true, src, src_step, dst, dst_step, rows);
    else
        return false;
    return true;
}

GB_TEMPLATE void transpose_words(const char *src, int64_t src_step, char *dst, int64_t dst_step,
        int64_t rows, int64_t cols, bool streamed)
{
    if (!transposes_few(2, src, src_step, dst, dst_step, rows, cols) &&
            !transposes_few(3, src, src_step, dst, dst_step, rows, cols) &&
            !transposes_few(GB_FEW_WORDS, src, src_step, dst, dst_step, rows, cols))
        transpose(ITEM, src, src_step, dst, dst_step, rows, cols, streamed);
}

GB_TEMPLATE void transpose_any(size_t size, const char *src, int64_t src_step, char *dst,
        int64_t dst_step, int64_t rows, int64_t cols, bool streamed)
{
    if (size == 1)
        transpose(1, src, src_step, dst, dst_step, rows, cols, streamed);
    else if (size == 2 && (((uintptr_t)dst | (uintptr_t)dst_step) % WHOLE || 2 * cols < WHOLE))
        transpose_halves(src, src_step, dst, dst_step, rows, cols);
    else if (size == 2)
        transpose(2, src, src_step, dst, dst_step, rows, cols, streamed);
    else
        transpose_words(src, src_step, dst, dst_step, rows, cols, streamed);
}

void GB_ISA_NAME(transpose)(size_t size, const char *src, int64_t src_step, char *dst,
        int64_t dst_step, int64_t rows, int64_t cols)
{
    transpose_any(size, src, src_step, dst, dst_step, rows, cols, false);
}

/* Only vectors of whole lines go past the caches well. */
void GB_ISA_NAME(transpose_streamed)(size_t size, const char *src, int64_t src_step, char *dst,
        int64_t dst_step, int64_t rows, int64_t cols)
{
    transpose_any(size, src, src_step, dst, dst_step, rows, cols, sizeof(vi) == GB_CACHE_LINE);
}
