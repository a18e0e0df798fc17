/* The maximum or sum over the cells of one window, for columns next to each other. */
#include "kernels/isa/vec.h"

#include "kernels/isa/vec_codes.h"
#include "kernels/isa/vec_partial.h"

#include "base/memory.h"

#include <string.h>

enum { AHEAD = 2048 /* bytes, of what windows further on hold */ };

GB_TEMPLATE vf load(gb_data_type type, const char *p, int64_t lanes)
{
    if (gb_code_bytes(type) == 1)
        return gb_code_decode(type, gb_load_codes(type, p, 0, 1, lanes));
    if (type == GB_BF16)
        return lanes == VLEN ? vf_load_bf16(p) : vf_load_bf16_n(p, lanes);
    if (type == GB_F16)
        return lanes == VLEN ? vf_load_f16(p) : vf_load_f16_n(p, lanes);
    const float *values = (const float *)(const void *)p;
    return lanes == VLEN ? vf_load(values) : vf_load_n(values, lanes);
}

/* `vectors` vectors of columns (the last of `lanes`) through all cells; the cells of a row are
 * joined first. */
GB_TEMPLATE void join_cells(bool max, gb_data_type type, const gb_pool_window *w, const char *x,
        float *dst, int vectors, int64_t lanes)
{
    const int64_t bytes = gb_code_bytes(type);
    vf sum[4];
    for (int k = 0; k < vectors; k++)
        sum[k] = vf_set1(w->start);
    for (int64_t d = 0; d < w->counts[0]; d++)
        for (int64_t h = 0; h < w->counts[1]; h++) {
            const char *row = x + (d * w->strides[0] + h * w->strides[1]) * bytes;
            vf part[4];
            for (int k = 0; k < vectors; k++)
                part[k] = max ? sum[k] : vf_zero();
            for (int64_t i = 0; i < w->counts[2]; i++, row += w->strides[2] * bytes)
                for (int k = 0; k < vectors; k++) {
                    if (vectors == 4 && k * VLEN * bytes % GB_CACHE_LINE == 0)
                        gb_prefetch(row + k * VLEN * bytes + AHEAD);
                    vf v = load(type, row + k * VLEN * bytes, k + 1 < vectors ? VLEN : lanes);
                    part[k] = max ? vf_max(v, part[k]) : vf_add(v, part[k]);
                }
            for (int k = 0; k < vectors; k++)
                sum[k] = max ? part[k] : vf_add(part[k], sum[k]);
        }
    for (int k = 0; k < vectors; k++)
        if (k + 1 < vectors || lanes == VLEN)
            vf_store(dst + k * VLEN, sum[k]);
        else
            vf_store_n(dst + k * VLEN, sum[k], lanes);
}

static bool is_long(const gb_pool_window *w)
{
    return w->counts[2] > GB_POOL_PORTION || w->counts[0] * w->counts[1] > GB_POOL_PORTION;
}

static void add_columns(const float *x, int vectors, float *sum)
{
    for (int k = 0; k < vectors; k++)
        vf_store(sum + k * VLEN, vf_add(vf_load(sum + k * VLEN), vf_load(x + k * VLEN)));
}

/* The sum of join_cells() in portions. */
GB_TEMPLATE void sum_long(gb_data_type type, const gb_pool_window *w, const char *x, float *dst,
        int vectors, int64_t lanes)
{
    const int64_t bytes = gb_code_bytes(type);
    float part[4 * VLEN] = {0}, sum[4 * VLEN] = {0}, total[4 * VLEN] = {0};
    gb_pool_window portion = {.counts = {1, 1}, .strides = {0, 0, w->strides[2]}};
    int64_t portions = 0;
    for (int64_t d = 0; d < w->counts[0]; d++)
        for (int64_t h = 0; h < w->counts[1]; h++) {
            const char *row = x + (d * w->strides[0] + h * w->strides[1]) * bytes;
            for (int64_t i = 0; i < w->counts[2]; i += GB_POOL_PORTION) {
                int64_t left = w->counts[2] - i;
                portion.counts[2] = left < GB_POOL_PORTION ? left : GB_POOL_PORTION;
                join_cells(false, type, &portion, row + i * w->strides[2] * bytes, part, vectors,
                        lanes);
                add_columns(part, vectors, sum);
                if (++portions % GB_POOL_PORTION != 0)
                    continue;
                add_columns(sum, vectors, total);
                memset(sum, 0, sizeof sum);
            }
        }
    add_columns(sum, vectors, total);
    for (int k = 0; k < vectors; k++)
        vf_store_n(dst + k * VLEN, vf_add(vf_set1(w->start), vf_load(total + k * VLEN)),
                k + 1 < vectors ? VLEN : lanes);
}

/* As many columns of bytes as fill a vector: the code of the maximum is the maximum of codes, which
 * are ordered as unsigned bytes once the sign of s8 is flipped. */
GB_TEMPLATE vi most_codes(gb_data_type type, const gb_pool_window *w, const uint8_t *x)
{
    const vi flip = vi_set1(type == GB_S8 ? (int32_t)0x80808080 : 0);
    vi most = vi_set1(0);
    for (int64_t d = 0; d < w->counts[0]; d++)
        for (int64_t h = 0; h < w->counts[1]; h++) {
            const uint8_t *at = x + d * w->strides[0] + h * w->strides[1];
            for (int64_t i = 0; i < w->counts[2]; i++, at += w->strides[2])
                most = vi_max_u8(most, vi_xor(vi_load((const int32_t *)(const void *)at), flip));
        }
    return vi_xor(most, flip);
}

GB_TEMPLATE void join_bytes(
        gb_data_type type, const gb_pool_window *w, const uint8_t *x, float *dst)
{
    int32_t codes[VLEN];
    vi_store(codes, most_codes(type, w, x));
    for (int k = 0; k < 4; k++)
        vf_store(dst + k * VLEN,
                vf_max(gb_code_decode(type, gb_load_codes(type, codes, k * VLEN, 1, VLEN)),
                        vf_set1(w->start)));
}

GB_TEMPLATE void join_row(
        bool max, gb_data_type type, const gb_pool_window *w, const char *x, float *dst)
{
    const int64_t bytes = gb_code_bytes(type);
    int64_t rest = w->columns;
    const bool ordered = max && (type == GB_S8 || type == GB_U8) &&
                         w->counts[0] * w->counts[1] * w->counts[2] > 0;
    const bool long_sum = !max && is_long(w);
    for (; rest >= 4 * VLEN; rest -= 4 * VLEN, x += 4 * VLEN * bytes, dst += 4 * VLEN)
        if (ordered)
            join_bytes(type, w, (const uint8_t *)x, dst);
        else if (long_sum)
            sum_long(type, w, x, dst, 4, VLEN);
        else
            join_cells(max, type, w, x, dst, 4, VLEN);
    const int64_t last = (rest - 1) % VLEN + 1;
#define LAST_CELLS(n) join_cells(max, type, w, x, dst, n, last)
#define LAST_SUMS(n)  sum_long(type, w, x, dst, n, last)
    if (long_sum)
        GB_CONSTANT_TO_4((rest + VLEN - 1) / VLEN, LAST_SUMS)
    else
        GB_CONSTANT_TO_4((rest + VLEN - 1) / VLEN, LAST_CELLS)
#undef LAST_SUMS
#undef LAST_CELLS
}

/* One column of codes. */
GB_TEMPLATE uint8_t most_code(gb_data_type type, const gb_pool_window *w, const uint8_t *x)
{
    const uint8_t flip = type == GB_S8 ? 0x80 : 0;
    uint8_t most = 0;
    for (int64_t d = 0; d < w->counts[0]; d++)
        for (int64_t h = 0; h < w->counts[1]; h++) {
            const uint8_t *at = x + d * w->strides[0] + h * w->strides[1];
            for (int64_t i = 0; i < w->counts[2]; i++, at += w->strides[2])
                most = (*at ^ flip) > most ? *at ^ flip : most;
        }
    return most ^ flip;
}

/* The last vector of a row ends with it, and overlaps the one before. */
GB_TEMPLATE void join_codes(gb_data_type type, const gb_pool_window *w)
{
    enum { BYTES = VLEN * sizeof(int32_t) };
    for (int64_t r = 0; r < w->rows; r++) {
        const uint8_t *x = (const uint8_t *)w->x + r * w->x_row;
        uint8_t *dst = w->codes + r * w->dst_row;
        for (int64_t c = 0; c < w->columns && w->columns >= BYTES; c += BYTES) {
            const int64_t at = gb_min_i64(c, w->columns - BYTES);
            vi_store((int32_t *)(void *)(dst + at), most_codes(type, w, x + at));
        }
        for (int64_t c = 0; c < w->columns && w->columns < BYTES; c++)
            dst[c] = most_code(type, w, x + c);
    }
}

GB_TEMPLATE void join_window(bool max, gb_data_type type, const gb_pool_window *w)
{
    const char *x = w->x;
    for (int64_t r = 0; r < w->rows; r++)
        join_row(max, type, w, x + r * w->x_row * gb_code_bytes(type), w->dst + r * w->dst_row);
}

GB_TEMPLATE void join_either(const gb_pool_window *window, gb_data_type type)
{
    if (window->codes && (type == GB_S8 || type == GB_U8))
        join_codes(type, window);
    else if (window->max)
        join_window(true, type, window);
    else
        join_window(false, type, window);
}

GB_CODE_TABLE(by_type, join_either, gb_pool_window)

void GB_ISA_NAME(pool_window)(const gb_pool_window *window)
{
    by_type[window->type](window);
}
