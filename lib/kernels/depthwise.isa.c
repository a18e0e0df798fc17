/* Depthwise windows: every channel by itself, a weighted sum of shifted source rows. */
#include "kernels/vec.h"

#include "kernels/vec_float.h"

/* rows x vectors results at row r, column c. `last`: lanes of the last vector that are stored. */
GB_INLINE void add_taps(const gb_depthwise *d, int64_t r, int64_t c, const int rows,
        const int vectors, const bool per_column, int64_t last)
{
    vf sums[8][2];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sums[i][v] = vf_zero();
    for (int64_t t = 0; t < d->taps; t++) {
        const float *src = d->src + r * d->row + d->offsets[t] + c,
                    *weights = d->weights + d->weight_offsets[t];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            vf factor = per_column ? vf_load(weights + c + v * VLEN) : vf_set1(*weights);
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++)
                sums[i][v] = vf_fma(factor, vf_load(src + i * d->row + v * VLEN), sums[i][v]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        float *dst = d->dst + (r + i) * d->dst_row + c;
#pragma GCC unroll 2
        for (int v = 0; v + 1 < vectors; v++)
            vf_store(dst + v * VLEN, sums[i][v]);
        vf_store_first(dst + (vectors - 1) * VLEN, sums[i][vectors - 1], last);
    }
}

GB_INLINE void add_rows(const gb_depthwise *d, int64_t r, const int rows, const bool per_column)
{
    int64_t c = 0;
    for (; c + 2 * VLEN <= d->cols; c += 2 * VLEN)
        add_taps(d, r, c, rows, 2, per_column, VLEN);
    for (; c < d->cols; c += VLEN)
        add_taps(d, r, c, rows, 1, per_column, d->cols - c < VLEN ? d->cols - c : VLEN);
}

GB_INLINE void run(const gb_depthwise *d, const bool per_column)
{
    enum { ROWS = VREGS == 32 ? 8 : 4 };
    int64_t r = 0;
    for (; r + ROWS <= d->rows; r += ROWS)
        add_rows(d, r, ROWS, per_column);
    for (; r + 2 <= d->rows; r += 2)
        add_rows(d, r, 2, per_column);
    for (; r < d->rows; r++)
        add_rows(d, r, 1, per_column);
}

void GB_ISA_NAME(depthwise_positions)(const gb_depthwise *d)
{
    run(d, false);
}

void GB_ISA_NAME(depthwise_channels)(const gb_depthwise *d)
{
    run(d, true);
}
