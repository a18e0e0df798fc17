/* Depthwise windows: every channel by itself, a weighted sum of shifted source rows. */
#include "kernels/isa/vec.h"

#include "kernels/isa/vec_float.h"

enum { ROWS = VREGS == 32 ? 8 : 4, MOST_RUN = 5 };

/* Source rows j .. j + rows + run - 2 of one vector, each of which serves up to `run` results. */
GB_INLINE void add_run(
        const float *src, int64_t row, const vf *factors, const int rows, const int run, vf *sums)
{
#pragma GCC unroll 12
    for (int j = 0; j < rows + run - 1; j++) {
        vf values = vf_load(src + j * row);
#pragma GCC unroll 5
        for (int i = 0; i < run; i++)
            if (j - i >= 0 && j - i < rows)
                sums[j - i] = vf_fma(factors[i], values, sums[j - i]);
    }
}

/* rows x vectors results at row r, column c. `last`: lanes of the last vector that are stored. */
GB_INLINE void add_taps(const gb_depthwise *d, int64_t r, int64_t c, const int rows,
        const int vectors, const bool per_column, const int run, int64_t last)
{
    vf sums[2][ROWS];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++)
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
            sums[v][i] = vf_zero();
    const float *src = d->src + r * d->row + c;
    for (int64_t first = 0; first < d->taps; first += run * d->run_step)
        for (int64_t t = first; t < first + d->run_step; t++) {
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) {
                vf factors[MOST_RUN];
#pragma GCC unroll 5
                for (int i = 0; i < run; i++) {
                    const float *weight = d->weights + d->weight_offsets[t + i * d->run_step];
                    factors[i] = per_column ? vf_load(weight + c + v * VLEN) : vf_set1(*weight);
                }
                add_run(src + d->offsets[t] + v * VLEN, d->row, factors, rows, run, sums[v]);
            }
        }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        float *dst = d->dst + (r + i) * d->dst_row + c;
        if (vectors == 2)
            vf_store(dst, sums[0][i]);
        vf_store_first(dst + (vectors - 1) * VLEN, sums[vectors - 1][i], last);
    }
}

GB_INLINE void add_rows(
        const gb_depthwise *d, int64_t r, const int rows, const bool per_column, const int run)
{
    int64_t c = 0;
    for (; c + VLEN < d->cols; c += 2 * VLEN) {
        const int64_t last = d->cols - c - VLEN;
        add_taps(d, r, c, rows, 2, per_column, run, last < VLEN ? last : VLEN);
    }
    if (c < d->cols)
        add_taps(d, r, c, rows, 1, per_column, run, d->cols - c);
}

GB_INLINE void run_all(const gb_depthwise *d, const bool per_column, const int run)
{
    int64_t r = 0;
    for (; r + ROWS <= d->rows; r += ROWS)
        add_rows(d, r, ROWS, per_column, run);
    if (ROWS > 4)
        for (; r + 4 <= d->rows; r += 4)
            add_rows(d, r, 4, per_column, run);
    for (; r + 2 <= d->rows; r += 2)
        add_rows(d, r, 2, per_column, run);
    for (; r < d->rows; r++)
        add_rows(d, r, 1, per_column, run);
}

/* A run of another length counts as single taps: their order is that of the list. */
static void positions_single(const gb_depthwise *d)
{
    run_all(d, false, 1);
}
static void positions_3(const gb_depthwise *d)
{
    run_all(d, false, 3);
}
static void positions_5(const gb_depthwise *d)
{
    run_all(d, false, 5);
}
static void channels_single(const gb_depthwise *d)
{
    run_all(d, true, 1);
}
static void channels_3(const gb_depthwise *d)
{
    run_all(d, true, 3);
}
static void channels_5(const gb_depthwise *d)
{
    run_all(d, true, 5);
}

void GB_ISA_NAME(depthwise_positions)(const gb_depthwise *d)
{
    (d->run == 3 ? positions_3 : d->run == 5 ? positions_5 : positions_single)(d);
}

void GB_ISA_NAME(depthwise_channels)(const gb_depthwise *d)
{
    (d->run == 3 ? channels_3 : d->run == 5 ? channels_5 : channels_single)(d);
}
