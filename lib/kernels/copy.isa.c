/* Transposition of a tile of elements of 1, 2 or 4 bytes, through blocks of VLEN x VLEN, or
 * 8 x 8 of 2 bytes, in registers. */
#include "kernels/vec.h"
#include "kernels/vec_partial.h"
#include "kernels/vec_transpose.h"

#include <string.h>

GB_TEMPLATE vi load(size_t size, const char *p, int64_t n)
{
    if (size == 1)
        return n == VLEN ? gb_load_u8(p) : gb_load_u8_n(p, n);
    if (size == 2)
        return n == VLEN ? gb_load_u16(p) : gb_load_u16_n(p, n);
    return n == VLEN ? vi_load((const int32_t *)(const void *)p)
                     : vi_load_n((const int32_t *)(const void *)p, n);
}

GB_TEMPLATE void store(size_t size, char *p, vi v, int64_t n)
{
    if (size == 1) {
        if (n == VLEN)
            gb_store_u8(p, v);
        else
            gb_store_u8_n(p, v, n);
    } else if (size == 2) {
        if (n == VLEN)
            gb_store_u16(p, v);
        else
            gb_store_u16_n(p, v, n);
    } else {
        if (n == VLEN)
            vi_store((int32_t *)(void *)p, v);
        else
            vi_store_n((int32_t *)(void *)p, v, n);
    }
}

GB_TEMPLATE void transpose_full(
        size_t size, const char *src, int64_t src_step, char *dst, int64_t dst_step)
{
    vi block[VLEN];
    for (int i = 0; i < VLEN; i++)
        block[i] = load(size, src + i * src_step, VLEN);
    vi_transpose(block);
    for (int i = 0; i < VLEN; i++)
        store(size, dst + i * dst_step, block[i], VLEN);
}

GB_TEMPLATE void transpose_part(size_t size, const char *src, int64_t src_step, char *dst,
        int64_t dst_step, int64_t rows, int64_t cols)
{
    vi block[VLEN];
    for (int i = 0; i < VLEN; i++)
        block[i] = i < cols ? load(size, src + i * src_step, rows) : vi_set1(0);
    vi_transpose(block);
    for (int i = 0; i < VLEN; i++)
        if (i < rows)
            store(size, dst + i * dst_step, block[i], cols);
}

GB_TEMPLATE void transpose(size_t size, const char *src, int64_t src_step, char *dst,
        int64_t dst_step, int64_t rows, int64_t cols)
{
    int64_t bytes = (int64_t)size;
    for (int64_t c = 0; c < cols; c += VLEN)
        for (int64_t r = 0; r < rows; r += VLEN) {
            const char *from = src + c * src_step + r * bytes;
            char *to = dst + r * dst_step + c * bytes;
            int64_t r_left = rows - r, c_left = cols - c;
            if (r_left >= VLEN && c_left >= VLEN)
                transpose_full(size, from, src_step, to, dst_step);
            else
                transpose_part(size, from, src_step, to, dst_step, r_left < VLEN ? r_left : VLEN,
                        c_left < VLEN ? c_left : VLEN);
        }
}

typedef uint16_t gb_u16x8 __attribute__((vector_size(16)));

/* Three perfect shuffles of all 64 elements transpose 8 x 8 of them. */
GB_TEMPLATE void transpose_8x8(const char *src, int64_t src_step, char *dst, int64_t dst_step)
{
    const gb_u16x8 low = {0, 8, 1, 9, 2, 10, 3, 11}, high = {4, 12, 5, 13, 6, 14, 7, 15};
    gb_u16x8 a[8], b[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        memcpy(&a[i], src + i * src_step, sizeof a[i]);
#pragma GCC unroll 3
    for (int round = 0; round < 3; round++) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            b[i] = __builtin_shuffle(a[i / 2], a[i / 2 + 4], i % 2 ? high : low);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            a[i] = b[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        memcpy(dst + i * dst_step, &a[i], sizeof a[i]);
}

/* 2-byte elements: whole blocks of 8 x 8, then what is left on two sides. */
GB_TEMPLATE void transpose_halves(
        const char *src, int64_t src_step, char *dst, int64_t dst_step, int64_t rows, int64_t cols)
{
    int64_t r_whole = rows & ~INT64_C(7), c_whole = cols & ~INT64_C(7);
    for (int64_t c = 0; c < c_whole; c += 8)
        for (int64_t r = 0; r < r_whole; r += 8)
            transpose_8x8(
                    src + c * src_step + 2 * r, src_step, dst + r * dst_step + 2 * c, dst_step);
    transpose(2, src + 2 * r_whole, src_step, dst + r_whole * dst_step, dst_step, rows - r_whole,
            cols);
    transpose(2, src + c_whole * src_step, src_step, dst + 2 * c_whole, dst_step, r_whole,
            cols - c_whole);
}

void GB_ISA_NAME(transpose)(size_t size, const char *src, int64_t src_step, char *dst,
        int64_t dst_step, int64_t rows, int64_t cols)
{
    if (size == 1)
        transpose(1, src, src_step, dst, dst_step, rows, cols);
    else if (size == 2)
        transpose_halves(src, src_step, dst, dst_step, rows, cols);
    else
        transpose(4, src, src_step, dst, dst_step, rows, cols);
}
