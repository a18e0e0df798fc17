/* Depthwise windows of 8-bit quantized values: two taps at a time, which one instruction multiplies
 * and adds. */
#include "kernels/gemm/register_sums.h"
#include "kernels/isa/vec.h"

#include <string.h>

/* Rows of a tile, and its channels: two vectors of results. */
enum { ROWS = 4, WHOLE = 2 * VLEN };

GB_INLINE vi load_weights(const int16_t *p)
{
    return vi_load((const int32_t *)(const void *)p);
}

/* The first `count` of 2 VLEN channels, nothing is read beyond. */
GB_INLINE vi load_codes(const uint8_t *p, const bool is_signed, const int64_t count)
{
    uint8_t codes[WHOLE] = {0};
    if (count != WHOLE) {
        memcpy(codes, p, (size_t)count);
        p = codes;
    }
    return is_signed ? vi_load_s8_halves(p) : vi_load_u8_halves(p);
}

/* What the zero point adds to the sums of every row. */
GB_INLINE void begin_sums(const gb_depthwise_int8 *d, const int16_t *weights, vi sums[2])
{
    const vi moved = vi_set1((int32_t)((uint32_t)(uint16_t)-d->zero_point * 0x10001U));
    sums[0] = sums[1] = vi_set1(0);
    for (int64_t t = 0; d->zero_point != 0 && t < d->taps; t += 2) {
        vi first = load_weights(weights + d->weight_offsets[t]);
        vi second = load_weights(weights + d->weight_offsets[t + 1]);
        sums[0] = vi_dot2(sums[0], vi_pair_low(first, second), moved);
        sums[1] = vi_dot2(sums[1], vi_pair_high(first, second), moved);
    }
}

GB_INLINE void sum_taps(const gb_depthwise_int8 *d, int64_t r, int64_t c, const int rows,
        const bool is_signed, const int64_t count, vi sums[][2])
{
    const uint8_t *src = (const uint8_t *)d->src + r * d->row + c;
    const int16_t *weights = d->weights + c;
    const int64_t row = d->row;
    begin_sums(d, weights, sums[0]);
#pragma GCC unroll 4
    for (int m = 1; m < rows; m++)
        sums[m][0] = sums[0][0], sums[m][1] = sums[0][1];
    for (int64_t t = 0; t < d->taps; t += 2) {
        vi first = load_weights(weights + d->weight_offsets[t]);
        vi second = load_weights(weights + d->weight_offsets[t + 1]);
        const vi low = vi_pair_low(first, second), high = vi_pair_high(first, second);
        const uint8_t *a = src + d->offsets[t], *b = src + d->offsets[t + 1];
#pragma GCC unroll 4
        for (int m = 0; m < rows; m++) {
            first = load_codes(a + m * row, is_signed, count);
            second = load_codes(b + m * row, is_signed, count);
            sums[m][0] = vi_dot2(sums[m][0], vi_pair_low(first, second), low);
            sums[m][1] = vi_dot2(sums[m][1], vi_pair_high(first, second), high);
        }
    }
}

/* Behind the sums, once for both kinds of sign. */
GB_INLINE void finish(const gb_depthwise_int8 *d, int64_t r, int64_t c, const int rows,
        const int vectors, vi sums[][2])
{
    vf results[ROWS][MOST_VECTORS];
    const vf factors[2] = {vf_load(d->factors + c), vf_load(d->factors + c + VLEN)};
#pragma GCC unroll 4
    for (int m = 0; m < rows; m++) {
        vi_order_pairs(&sums[m][0], &sums[m][1]);
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            results[m][v] = vf_mul(vf_from_vi(sums[m][v]), factors[v]);
    }
    const int64_t last = d->cols - c - (vectors - 1) * VLEN;
    const gb_register_sums place = {.post_ops = d->post_ops,
            .row = d->post_row + r,
            .col = c,
            .last = last < VLEN ? (int)last : VLEN,
            .dst = d->dst + r * d->dst_row + c,
            .dst_row = d->dst_row};
    gb_finish_sums(&place, rows, vectors, results);
}

/* rows x WHOLE results at row r, column c. */
GB_INLINE void run_tile(const gb_depthwise_int8 *d, int64_t r, int64_t c, const int rows)
{
    vi sums[ROWS][2];
    if (d->is_signed)
        sum_taps(d, r, c, rows, true, WHOLE, sums);
    else
        sum_taps(d, r, c, rows, false, WHOLE, sums);
    finish(d, r, c, rows, 2, sums);
}

static void run_4(const gb_depthwise_int8 *d, int64_t r, int64_t c)
{
    run_tile(d, r, c, 4);
}
static void run_2(const gb_depthwise_int8 *d, int64_t r, int64_t c)
{
    run_tile(d, r, c, 2);
}
static void run_1(const gb_depthwise_int8 *d, int64_t r, int64_t c)
{
    run_tile(d, r, c, 1);
}

/* The channels of one row that do not fill both vectors. */
static void run_rest(const gb_depthwise_int8 *d, int64_t r, int64_t c)
{
    vi sums[ROWS][2];
    sum_taps(d, r, c, 1, d->is_signed, d->cols - c, sums);
    if (d->cols - c > VLEN)
        finish(d, r, c, 1, 2, sums);
    else
        finish(d, r, c, 1, 1, sums);
}

GB_INLINE void run_rows(const gb_depthwise_int8 *d, int64_t r, const int rows,
        void (*run)(const gb_depthwise_int8 *d, int64_t r, int64_t c))
{
    int64_t c = 0;
    for (; c + WHOLE <= d->cols; c += WHOLE)
        run(d, r, c);
    for (int m = 0; c < d->cols && m < rows; m++)
        run_rest(d, r + m, c);
}

void GB_ISA_NAME(depthwise_int8)(const gb_depthwise_int8 *d)
{
    int64_t r = 0;
    for (; r + 4 <= d->rows; r += 4)
        run_rows(d, r, 4, run_4);
    for (; r + 2 <= d->rows; r += 2)
        run_rows(d, r, 2, run_2);
    for (; r < d->rows; r++)
        run_rows(d, r, 1, run_1);
}
