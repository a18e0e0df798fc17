/* Folding rows or columns of f32 into accumulators. */
#include "kernels/isa/vec.h"
#include "kernels/isa/vec_partial.h"

#include <string.h>

#include <math.h>

GB_TEMPLATE float identity(gb_reduce_kind kind)
{
    switch (kind) {
    case GB_REDUCE_PROD:
        return 1;
    case GB_REDUCE_MAX:
        return -INFINITY;
    case GB_REDUCE_MIN:
        return INFINITY;
    default:
        return 0;
    }
}

/* Maximum and minimum pass over NaN. */
GB_TEMPLATE vf map(gb_reduce_kind kind, vf v)
{
    switch (kind) {
    case GB_REDUCE_SUM_ABS:
        return vf_abs(v);
    case GB_REDUCE_SUM_SQUARE:
        return vf_mul(v, v);
    case GB_REDUCE_MAX:
        return vf_max(v, vf_set1(-INFINITY));
    case GB_REDUCE_MIN:
        return vf_min(v, vf_set1(INFINITY));
    default:
        return v;
    }
}

GB_TEMPLATE vf join(gb_reduce_kind kind, vf v, vf sum)
{
    switch (kind) {
    case GB_REDUCE_PROD:
        return vf_mul(v, sum);
    case GB_REDUCE_MAX:
        return vf_max(v, sum);
    case GB_REDUCE_MIN:
        return vf_min(v, sum);
    default:
        return vf_add(v, sum);
    }
}

GB_TEMPLATE float join_scalar(gb_reduce_kind kind, float v, float sum)
{
    switch (kind) {
    case GB_REDUCE_PROD:
        return v * sum;
    case GB_REDUCE_MAX:
        return v > sum ? v : sum;
    case GB_REDUCE_MIN:
        return v < sum ? v : sum;
    default:
        return v + sum;
    }
}

GB_TEMPLATE float join_lanes(gb_reduce_kind kind, vf v)
{
    switch (kind) {
    case GB_REDUCE_PROD:
        return vf_prod(v);
    case GB_REDUCE_MAX:
        return vf_max_lane(v);
    case GB_REDUCE_MIN:
        return vf_min_lane(v);
    default:
        return vf_sum(v);
    }
}

GB_TEMPLATE float reduce_row(gb_reduce_kind kind, const float *x, int64_t n)
{
    vf start = vf_set1(identity(kind)), sum[4] = {start, start, start, start};
    int64_t i = 0;
    for (; i + 4 * VLEN <= n; i += 4 * VLEN)
        for (int k = 0; k < 4; k++)
            sum[k] = join(kind, map(kind, vf_load(x + i + k * VLEN)), sum[k]);
    for (int k = 0; i + VLEN <= n; i += VLEN, k++)
        sum[k] = join(kind, map(kind, vf_load(x + i)), sum[k]);
    if (i < n) {
        vf last = map(kind, vf_load_n(x + i, n - i));
        sum[3] = join(kind, vf_keep_n(last, start, n - i), sum[3]);
    }
    return join_lanes(kind, join(kind, join(kind, sum[0], sum[1]), join(kind, sum[2], sum[3])));
}

GB_TEMPLATE void reduce_rows(gb_reduce_kind kind, const float *x, int64_t x_stride, int64_t count,
        int64_t n, float *accumulator)
{
    for (int64_t r = 0; r < count; r++)
        accumulator[r] = join_scalar(kind, reduce_row(kind, x + r * x_stride, n), accumulator[r]);
}

/* One vector of columns through `rows` rows. */
GB_TEMPLATE vf reduce_group(
        gb_reduce_kind kind, const float *x, int64_t x_stride, int rows, int64_t lanes)
{
    vf v[8];
    for (int r = 0; r < rows; r++) {
        const float *from = x + r * x_stride;
        v[r] = map(kind, lanes == VLEN ? vf_load(from) : vf_load_n(from, lanes));
    }
    for (int step = rows / 2; step > 0; step /= 2)
        for (int r = 0; r < step; r++)
            v[r] = join(kind, v[r + step], v[r]);
    return v[0];
}

/* `rows` is a power of two up to 8: the rows are joined in pairs before they meet the accumulator.
 */
GB_TEMPLATE void fold_rows(gb_reduce_kind kind, const float *x, int64_t x_stride, int64_t count,
        int rows, float *accumulator)
{
    int64_t c = 0;
    for (; c + VLEN <= count; c += VLEN) {
        vf v = reduce_group(kind, x + c, x_stride, rows, VLEN);
        vf_store(accumulator + c, join(kind, v, vf_load(accumulator + c)));
    }
    if (c < count) {
        vf v = reduce_group(kind, x + c, x_stride, rows, count - c);
        v = join(kind, v, vf_load_n(accumulator + c, count - c));
        vf_store_n(accumulator + c, v, count - c);
    }
}

GB_TEMPLATE void reduce_columns(gb_reduce_kind kind, const float *x, int64_t x_stride,
        int64_t count, int64_t n, float *accumulator)
{
    int64_t r = 0;
    for (; r + 8 <= n; r += 8)
        fold_rows(kind, x + r * x_stride, x_stride, count, 8, accumulator);
    if (r + 4 <= n) {
        fold_rows(kind, x + r * x_stride, x_stride, count, 4, accumulator);
        r += 4;
    }
    if (r + 2 <= n) {
        fold_rows(kind, x + r * x_stride, x_stride, count, 2, accumulator);
        r += 2;
    }
    if (r < n)
        fold_rows(kind, x + r * x_stride, x_stride, count, 1, accumulator);
}

void GB_ISA_NAME(reduce_rows)(gb_reduce_kind kind, const float *x, int64_t x_stride, int64_t count,
        int64_t n, float *accumulator)
{
    switch (kind) {
    case GB_REDUCE_SUM:
        reduce_rows(GB_REDUCE_SUM, x, x_stride, count, n, accumulator);
        break;
    case GB_REDUCE_SUM_ABS:
        reduce_rows(GB_REDUCE_SUM_ABS, x, x_stride, count, n, accumulator);
        break;
    case GB_REDUCE_SUM_SQUARE:
        reduce_rows(GB_REDUCE_SUM_SQUARE, x, x_stride, count, n, accumulator);
        break;
    case GB_REDUCE_PROD:
        reduce_rows(GB_REDUCE_PROD, x, x_stride, count, n, accumulator);
        break;
    case GB_REDUCE_MAX:
        reduce_rows(GB_REDUCE_MAX, x, x_stride, count, n, accumulator);
        break;
    case GB_REDUCE_MIN:
        reduce_rows(GB_REDUCE_MIN, x, x_stride, count, n, accumulator);
    }
}

void GB_ISA_NAME(reduce_columns)(gb_reduce_kind kind, const float *x, int64_t x_stride,
        int64_t count, int64_t n, float *accumulator)
{
    switch (kind) {
    case GB_REDUCE_SUM:
        reduce_columns(GB_REDUCE_SUM, x, x_stride, count, n, accumulator);
        break;
    case GB_REDUCE_SUM_ABS:
        reduce_columns(GB_REDUCE_SUM_ABS, x, x_stride, count, n, accumulator);
        break;
    case GB_REDUCE_SUM_SQUARE:
        reduce_columns(GB_REDUCE_SUM_SQUARE, x, x_stride, count, n, accumulator);
        break;
    case GB_REDUCE_PROD:
        reduce_columns(GB_REDUCE_PROD, x, x_stride, count, n, accumulator);
        break;
    case GB_REDUCE_MAX:
        reduce_columns(GB_REDUCE_MAX, x, x_stride, count, n, accumulator);
        break;
    case GB_REDUCE_MIN:
        reduce_columns(GB_REDUCE_MIN, x, x_stride, count, n, accumulator);
    }
}

/* Dividing by 2^k is multiplying by 2^-k, to the last bit. */
static bool is_power_of_2(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7FFFFF) == 0;
}

GB_INLINE void divide_row(const float *x, int64_t cols, const vf row, const float *by_col,
        const bool multiplies, float *dst)
{
    int64_t c = 0, rest;
    for (; c + VLEN <= cols; c += VLEN) {
        vf v = vf_load(x + c), by = by_col ? vf_mul(row, vf_load(by_col + c)) : row;
        vf_store(dst + c, multiplies ? vf_mul(v, by) : vf_div(v, by));
    }
    if ((rest = cols - c) == 0)
        return;
    vf v = vf_load_n(x + c, rest), by = by_col ? vf_mul(row, vf_load_n(by_col + c, rest)) : row;
    vf_store_n(dst + c, multiplies ? vf_mul(v, by) : vf_div(v, by), rest);
}

void GB_ISA_NAME(divide_rows)(const float *x, int64_t x_row, int64_t rows, int64_t cols,
        const float *by_row, const float *by_col, float *dst)
{
    for (int64_t r = 0; r < rows; r++, x += x_row, dst += cols)
        if (!by_col && is_power_of_2(by_row[r]))
            divide_row(x, cols, vf_set1(1 / by_row[r]), NULL, true, dst);
        else
            divide_row(x, cols, vf_set1(by_row[r]), by_col, false, dst);
}
