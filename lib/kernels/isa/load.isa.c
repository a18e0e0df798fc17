/* Loading tiles of floating types and of 8-bit quantized values into dense f32. */
#include "kernels/isa/vec.h"

#include "base/memory.h"
#include "kernels/isa/vec_codes.h"
#include "kernels/isa/vec_partial.h"
#include "kernels/isa/vec_transpose.h"

/* Bytes ahead of the one being loaded that are fetched, two tiles of f32 or one of 16-bit numbers: what is done with a
 * tile before the next one is loaded takes as long as memory. */
enum { AHEAD = 8192, AHEAD_16_BIT = 2048 };

GB_TEMPLATE void load_contiguous(gb_data_type type, const char *src, int64_t n, float *dst)
{
    const int64_t bytes = (int64_t)gb_float_size(type), line = GB_CACHE_LINE / bytes;
    const int64_t ahead = type == GB_F32 ? AHEAD : AHEAD_16_BIT;
    int64_t i = 0;
    for (; i + line <= n; i += line) {
        gb_prefetch(src + i * bytes + ahead);
        for (int64_t j = 0; j < line; j += VLEN)
            vf_store(dst + i + j, vf_load_float(type, src + (i + j) * bytes, VLEN));
    }
    for (; i + VLEN <= n; i += VLEN)
        vf_store(dst + i, vf_load_float(type, src + i * bytes, VLEN));
    if (i < n)
        vf_store_n(dst + i, vf_load_float(type, src + i * bytes, n - i), n - i);
}

GB_TEMPLATE void load_strided(
        gb_data_type type, const uint16_t *src, int64_t stride, int64_t n, float *dst)
{
    uint16_t lanes[VLEN] = {0};
    for (int64_t i = 0; i < n; i += VLEN) {
        int64_t count = n - i < VLEN ? n - i : VLEN;
        for (int64_t j = 0; j < count; j++)
            lanes[j] = src[(i + j) * stride];
        vf_store_n(dst + i, vf_load_float(type, (const char *)lanes, VLEN), count);
    }
}

static void load_gather(const float *src, int64_t stride, int64_t n, float *dst)
{
    int64_t i = 0;
    if (stride == 2) /* one lane short of the end, so as not to read behind the last element */
        for (; i + VLEN < n; i += VLEN)
            vf_store(dst + i, vf_even(vf_load(src + 2 * i), vf_load(src + 2 * i + VLEN)));
    for (; i + VLEN <= n; i += VLEN)
        vf_store(dst + i, vf_gather(src + i * stride, stride, VLEN));
    if (i < n)
        vf_store_n(dst + i, vf_gather(src + i * stride, stride, n - i), n - i);
}

typedef struct code_row {
    const char *src;
    int64_t stride, n;
    float *dst;
} code_row;

GB_TEMPLATE void load_codes(const code_row *row, gb_data_type type)
{
    const code_row t = *row; /* stores may alias *row */
    int64_t i = 0;
    for (; t.stride == 1 && i + VLEN <= t.n; i += VLEN)
        vf_store(t.dst + i, vf_load_codes(type, t.src, i, 1, VLEN));
    for (; i + VLEN <= t.n; i += VLEN)
        vf_store(t.dst + i, vf_load_codes(type, t.src, i * t.stride, t.stride, VLEN));
    if (i < t.n)
        vf_store_n(t.dst + i, vf_load_codes(type, t.src, i * t.stride, t.stride, t.n - i), t.n - i);
}

static void load_code_row(gb_data_type type, const char *src, int64_t stride, int64_t n, float *dst)
{
    const code_row row = {src, stride, n, dst};
    switch (type) {
        GB_CODE_CASE(GB_S8, load_codes, &row)
        GB_CODE_CASE(GB_F8_E4M3, load_codes, &row)
        GB_CODE_CASE(GB_F8_E5M2, load_codes, &row)
    default:
        load_codes(&row, GB_U8);
    }
}

static void load_row(gb_data_type type, const char *src, int64_t stride, int64_t n, float *dst)
{
    if (type == GB_F32) {
        const float *values = (const float *)(const void *)src;
        if (stride == 1)
            load_contiguous(GB_F32, src, n, dst);
        else
            load_gather(values, stride, n, dst);
        return;
    }
    if (gb_code_bytes(type) == 1) {
        load_code_row(type, src, stride, n, dst);
        return;
    }
    const uint16_t *halves = (const uint16_t *)(const void *)src;
    if (type == GB_BF16) {
        if (stride == 1)
            load_contiguous(GB_BF16, src, n, dst);
        else
            load_strided(GB_BF16, halves, stride, n, dst);
    } else {
        if (stride == 1)
            load_contiguous(GB_F16, src, n, dst);
        else
            load_strided(GB_F16, halves, stride, n, dst);
    }
}

void GB_ISA_NAME(load_tile)(gb_data_type type, const void *src, int64_t row_stride,
        int64_t col_stride, int64_t rows, int64_t cols, float *dst)
{
    const char *from = src;
    int64_t row_bytes = row_stride * gb_code_bytes(type);
    if (rows > 1 && col_stride == 1 && row_stride == cols) {
        cols *= rows;
        rows = 1;
    }
    for (int64_t r = 0; r < rows; r++)
        load_row(type, from + r * row_bytes, col_stride, cols, dst + r * cols);
}
