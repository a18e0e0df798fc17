/* Storing tiles of dense f32 as f32, bf16 and f16. */
#include "kernels/isa/vec.h"

#include "kernels/isa/vec_float.h"

GB_INLINE void store_contiguous(const gb_data_type type, const float *src, int64_t n, char *dst)
{
    int64_t size = (int64_t)gb_float_size(type), i = 0;
    for (; i + VLEN <= n; i += VLEN)
        vf_store_float(type, dst + i * size, vf_load(src + i), VLEN);
    if (i < n)
        vf_store_float(type, dst + i * size, vf_load_n(src + i, n - i), n - i);
}

GB_INLINE void store_strided(
        const gb_data_type type, const float *src, int64_t n, char *dst, int64_t stride)
{
    if (type == GB_F32) {
        float *values = (float *)(void *)dst;
        for (int64_t i = 0; i < n; i++)
            values[i * stride] = src[i];
        return;
    }
    uint16_t lanes[VLEN], *halves = (uint16_t *)(void *)dst;
    for (int64_t i = 0; i < n; i += VLEN) {
        int64_t count = n - i < VLEN ? n - i : VLEN;
        vf_store_float(type, (char *)lanes, vf_load_n(src + i, count), count);
        for (int64_t j = 0; j < count; j++)
            halves[(i + j) * stride] = lanes[j];
    }
}

typedef struct tile {
    const float *src;
    int64_t rows, cols, row_stride, col_stride;
    char *dst;
} tile;

GB_INLINE void store_rows(const tile *t, const gb_data_type type)
{
    for (int64_t r = 0; r < t->rows; r++) {
        const float *src = t->src + r * t->cols;
        char *dst = t->dst + r * t->row_stride * (int64_t)gb_float_size(type);
        if (t->col_stride == 1)
            store_contiguous(type, src, t->cols, dst);
        else
            store_strided(type, src, t->cols, dst, t->col_stride);
    }
}

void GB_ISA_NAME(store_tile)(gb_data_type type, const float *src, int64_t rows, int64_t cols,
        void *dst, int64_t row_stride, int64_t col_stride)
{
    tile t = {src, rows, cols, row_stride, col_stride, dst};
    if (cols == 1) {
        t.cols = rows;
        t.rows = 1;
        t.col_stride = row_stride;
    }
    GB_FLOAT_SWITCH(type, store_rows, &t)
}
