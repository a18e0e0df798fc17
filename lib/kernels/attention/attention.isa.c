/* On-line softmax: rows of scores become weights, block of keys by block. */
#include "kernels/isa/vec.h"
#include "kernels/isa/vec_math.h"
#include "kernels/isa/vec_partial.h"

enum { CHUNK = 4096 /* weights that are summed before they join the total */ };

/* e^x for x <= 0, 0 below e^-111. 2 ulp: two roundings before a polynomial of degree 5. */
GB_TEMPLATE vf weight_of(vf x)
{
    vf t = vf_max(vf_set1(-160.0F), vf_mul(x, vf_set1(GB_LOG2_E)));
    vf n = vf_round(t), r = vf_sub(t, n);
    vf power = GB_POLYNOMIAL(
            r, 0.0013264742F, 0.0096715176F, 0.055507336F, 0.24022242F, 0.693147F, 1.0F);
    return vf_scale_whole(power, n);
}

static float row_max(const float *x, int64_t n, float start)
{
    vf lowest = vf_set1(start), most[4] = {lowest, lowest, lowest, lowest};
    int64_t i = 0;
    for (; i + 4 * VLEN <= n; i += 4 * VLEN)
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++)
            most[k] = vf_max(vf_load(x + i + k * VLEN), most[k]);
    for (; i + VLEN <= n; i += VLEN)
        most[0] = vf_max(vf_load(x + i), most[0]);
    if (i < n)
        most[1] = vf_max(vf_keep_n(vf_load_n(x + i, n - i), lowest, n - i), most[1]);
    return vf_max_lane(vf_max(vf_max(most[0], most[1]), vf_max(most[2], most[3])));
}

static vf weigh_chunk(float *x, int64_t n, float max)
{
    vf by = vf_set1(max), sum[2] = {vf_zero(), vf_zero()};
    int64_t i = 0;
    for (; i + 2 * VLEN <= n; i += 2 * VLEN)
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            vf weight = weight_of(vf_sub(vf_load(x + i + k * VLEN), by));
            vf_store(x + i + k * VLEN, weight);
            sum[k] = vf_add(sum[k], weight);
        }
    for (; i < n; i += VLEN) {
        int64_t left = n - i < VLEN ? n - i : VLEN;
        vf weight = weight_of(vf_sub(vf_load_n(x + i, left), by));
        vf_store_n(x + i, weight, left);
        sum[1] = vf_add(sum[1], vf_keep_n(weight, vf_zero(), left));
    }
    return vf_add(sum[0], sum[1]);
}

static float weigh_row(float *x, int64_t n, float max)
{
    vf total = vf_zero();
    for (int64_t i = 0; i < n; i += CHUNK)
        total = vf_add(total, weigh_chunk(x + i, n - i < CHUNK ? n - i : CHUNK, max));
    return vf_sum(total);
}

/* dst = x * a + y * b */
GB_TEMPLATE void blend_row(float *dst, const float *x, const float *y, int64_t n, float a, float b)
{
    vf by_a = vf_set1(a), by_b = vf_set1(b);
    int64_t i = 0;
    for (; i + VLEN <= n; i += VLEN) {
        vf v = vf_mul(vf_load(x + i), by_a);
        vf_store(dst + i, y ? vf_fma(vf_load(y + i), by_b, v) : v);
    }
    if (i < n) {
        vf v = vf_mul(vf_load_n(x + i, n - i), by_a);
        vf_store_n(dst + i, y ? vf_fma(vf_load_n(y + i, n - i), by_b, v) : v, n - i);
    }
}

void GB_ISA_NAME(attention_softmax)(const gb_attention_rows *rows)
{
    for (int64_t r = 0; r < rows->rows; r++) {
        float *x = rows->scores + r * rows->row_stride;
        float before = rows->max[r], max = row_max(x, rows->cols, before);
        float sum = weigh_row(x, rows->cols, max);
        rows->max[r] = max;
        if (!rows->acc) {
            rows->sum[r] = sum;
            continue;
        }
        float fade[VLEN] = {0};
        vf_store(fade, weight_of(vf_set1(before - max)));
        rows->sum[r] = rows->sum[r] * fade[0] + sum;
        float *values = rows->acc + r * rows->acc_stride;
        if (max > before)
            blend_row(values, values, NULL, rows->acc_cols, fade[0], 0);
    }
}

void GB_ISA_NAME(attention_weights)(const gb_attention_rows *rows, const float *factor)
{
    for (int64_t r = 0; r < rows->rows; r++) {
        float *x = rows->scores + r * rows->row_stride;
        vf max = vf_set1(rows->max[r]), by = vf_set1(factor[r]);
        for (int64_t c = 0; c < rows->cols; c += VLEN) {
            int64_t left = rows->cols - c < VLEN ? rows->cols - c : VLEN;
            vf weight = weight_of(vf_sub(vf_load_n(x + c, left), max));
            vf_store_n(x + c, vf_mul(weight, by), left);
        }
    }
}

GB_INLINE void split(vf x, vi *high, vi *low)
{
    vi bits = vf_bits(x);
    vf cut = vi_as_vf(vi_and(bits, vi_set1((int32_t)0xFFFF0000)));
    vf rest = vf_select(vf_eq(x, cut), vf_zero(), vf_sub(x, cut)); /* also of infinity */
    *high = vi_shr_logical(bits, 16);
    *low = vi_shr_logical(vi_add(vf_bits(rest), vi_set1(0x8000)), 16);
}

void GB_ISA_NAME(attention_split)(const float *x, int64_t n, uint16_t *high, uint16_t *low)
{
    vi high_bits, low_bits;
    int64_t i = 0;
    for (; i + VLEN <= n; i += VLEN) {
        split(vf_load(x + i), &high_bits, &low_bits);
        gb_store_u16(high + i, high_bits);
        gb_store_u16(low + i, low_bits);
    }
    if (i < n) {
        split(vf_load_n(x + i, n - i), &high_bits, &low_bits);
        gb_store_u16_n(high + i, high_bits, n - i);
        gb_store_u16_n(low + i, low_bits, n - i);
    }
}

void GB_ISA_NAME(attention_round)(const float *x, int64_t n, float factor, uint16_t *rounded)
{
    vf by = vf_set1(factor);
    int64_t i = 0;
    for (; i + VLEN <= n; i += VLEN)
        vf_store_bf16(rounded + i, vf_mul(vf_load(x + i), by));
    if (i < n)
        vf_store_bf16_n(rounded + i, vf_mul(vf_load_n(x + i, n - i), by), n - i);
}

GB_INLINE vf code_of(vf x, vf factor, vf divisor, vf most)
{
    return vf_min(most, vf_div(vf_mul(x, factor), divisor));
}

void GB_ISA_NAME(attention_codes)(
        const float *x, int64_t n, float factor, float divisor, float most, uint8_t *codes)
{
    vf by = vf_set1(factor), step = vf_set1(divisor), all = vf_set1(most);
    int64_t i = 0;
    for (; i + VLEN <= n; i += VLEN)
        vf_store_u8(codes + i, code_of(vf_load(x + i), by, step, all));
    if (i < n)
        vf_store_u8_n(codes + i, code_of(vf_load_n(x + i, n - i), by, step, all), n - i);
}

void GB_ISA_NAME(attention_blend)(const gb_attention_blend *blend)
{
    for (int64_t r = 0; r < blend->rows; r++) {
        float *dst = blend->dst + r * blend->dst_stride;
        const float *x = blend->x + r * blend->x_stride;
        float a = blend->a ? blend->a[r] : 1, b = blend->b ? blend->b[r] : 1;
        if (blend->y)
            blend_row(dst, x, blend->y + r * blend->y_stride, blend->cols, a, b);
        else
            blend_row(dst, x, NULL, blend->cols, a, 0);
    }
}

void GB_ISA_NAME(attention_row_products)(
        const float *x, const float *y, int64_t row_stride, int64_t rows, int64_t cols, float *sums)
{
    for (int64_t r = 0; r < rows; r++, x += row_stride, y += row_stride) {
        vf sum = vf_zero();
        int64_t c = 0;
        for (; c + VLEN <= cols; c += VLEN)
            sum = vf_fma(vf_load(x + c), vf_load(y + c), sum);
        if (c < cols)
            sum = vf_fma(vf_load_n(x + c, cols - c), vf_load_n(y + c, cols - c), sum);
        sums[r] = vf_sum(sum);
    }
}
