/* Matrix times vector: bound by reading the matrix once. */
#include "kernels/vec.h"

#include "kernels/vec_float.h"

/* Matrix rows that run along y: several at a time, y is read and written once for all of them. */
enum { TOGETHER = 4 };

GB_INLINE void add_vector(const gb_gemv *gemv, const gb_data_type type, int64_t k, const int rows,
        int64_t n, int64_t lanes)
{
    const size_t size = gb_float_size(type);
    const char *w = (const char *)gemv->w + (size_t)(k * gemv->k_stride + n) * size;
    vf sum = k == 0 ? vf_zero() : vf_load_float(GB_F32, gemv->y + n, lanes);
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
        sum = vf_fma(vf_set1(gemv->x[k + i]),
                vf_load_float(type, w + (size_t)(i * gemv->k_stride) * size, lanes), sum);
    vf_store_first(gemv->y + n, sum, lanes);
}

GB_INLINE void add_rows(const gb_gemv *gemv, const gb_data_type type, int64_t k, const int rows)
{
    int64_t n = 0;
    for (; n + VLEN <= gemv->n; n += VLEN)
        add_vector(gemv, type, k, rows, n, VLEN);
    if (n < gemv->n)
        add_vector(gemv, type, k, rows, n, gemv->n - n);
}

GB_INLINE void along_n(const gb_gemv *gemv, const gb_data_type type)
{
    int64_t k = 0;
    for (; k + TOGETHER <= gemv->k; k += TOGETHER)
        add_rows(gemv, type, k, TOGETHER);
    for (; k < gemv->k; k++)
        add_rows(gemv, type, k, 1);
}

/* `columns` dot products at once, each with a vector of partial sums. */
GB_INLINE void dots(const gb_gemv *gemv, const gb_data_type type, int64_t n, const int columns)
{
    const size_t size = gb_float_size(type), column = (size_t)gemv->n_stride * size;
    const char *w = (const char *)gemv->w + (size_t)n * column;
    vf sums[2][TOGETHER];
    for (int i = 0; i < columns; i++)
        sums[0][i] = sums[1][i] = vf_zero();
    int64_t k = 0;
    for (; k + 2 * VLEN <= gemv->k; k += 2 * VLEN)
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            vf x = vf_load(gemv->x + k + half * VLEN);
            const char *p = w + (size_t)(k + half * VLEN) * size;
#pragma GCC unroll 4
            for (int i = 0; i < columns; i++)
                sums[half][i] =
                        vf_fma(x, vf_load_float(type, p + (size_t)i * column, VLEN), sums[half][i]);
        }
    for (; k < gemv->k; k += VLEN) {
        int64_t lanes = gemv->k - k < VLEN ? gemv->k - k : VLEN;
        vf x = vf_load_n(gemv->x + k, lanes);
        for (int i = 0; i < columns; i++)
            sums[0][i] =
                    vf_fma(x, vf_load_float(type, w + (size_t)i * column + (size_t)k * size, lanes),
                            sums[0][i]);
    }
    for (int i = 0; i < columns; i++)
        gemv->y[n + i] = vf_sum(vf_add(sums[0][i], sums[1][i]));
}

GB_INLINE void along_k(const gb_gemv *gemv, const gb_data_type type)
{
    int64_t n = 0;
    for (; n + TOGETHER <= gemv->n; n += TOGETHER)
        dots(gemv, type, n, TOGETHER);
    for (; n < gemv->n; n++)
        dots(gemv, type, n, 1);
}

GB_INLINE void multiply(const gb_gemv *gemv, const gb_data_type type)
{
    if (gemv->k_stride != 1 || (gemv->n_stride == 1 && gemv->n > 1))
        along_n(gemv, type);
    else
        along_k(gemv, type);
}

void GB_ISA_NAME(gemv)(const gb_gemv *gemv)
{
    GB_FLOAT_SWITCH(gemv->type, multiply, gemv)
}
