/* Means and variances of rows or columns of f32, and normalisation by them. */
#include "kernels/isa/vec.h"
#include "kernels/isa/vec_partial.h"

#include "base/memory.h"

enum {
    CHUNK = 4096,     /* elements of a row that are summed before they join the total */
    CHUNK_ROWS = 256, /* the same down a column */
    SHORT = 4,        /* vectors of a row that stays in registers */
    AHEAD = 2048      /* elements that short rows are asked for before they are read */
};

/* Statistics ----------------------------------------------------------------------------------- */

/* Sum of x - shift, or of its square. */
GB_TEMPLATE vf sum_chunk(bool square, const float *x, int64_t n, vf shift)
{
    vf zero = vf_zero(), sum[4] = {zero, zero, zero, zero};
    int64_t i = 0;
    for (; i + 4 * VLEN <= n; i += 4 * VLEN)
        for (int k = 0; k < 4; k++) {
            vf d = vf_sub(vf_load(x + i + k * VLEN), shift);
            sum[k] = square ? vf_fma(d, d, sum[k]) : vf_add(d, sum[k]);
        }
    for (; i < n; i += VLEN) {
        int64_t left = n - i < VLEN ? n - i : VLEN;
        vf d = vf_keep_n(vf_sub(vf_load_n(x + i, left), shift), zero, left);
        sum[0] = square ? vf_fma(d, d, sum[0]) : vf_add(d, sum[0]);
    }
    return vf_add(vf_add(sum[0], sum[1]), vf_add(sum[2], sum[3]));
}

GB_TEMPLATE float row_mean(bool square, const float *x, int64_t n, float shift)
{
    if (n == 0)
        return 0;
    vf total = vf_zero();
    for (int64_t i = 0; i < n; i += CHUNK)
        total = vf_add(
                total, sum_chunk(square, x + i, n - i < CHUNK ? n - i : CHUNK, vf_set1(shift)));
    return vf_sum(total) / (float)n;
}

/* Rows of at most SHORT vectors stay in registers. */
GB_TEMPLATE void short_statistics(const gb_norm_block *block, const int vectors)
{
    int64_t n = block->n, last = n - (vectors - 1) * VLEN;
    for (int64_t r = 0; r < block->count; r++) {
        const float *x = block->x + r * block->x_stride;
        vf v[SHORT], sum = vf_zero(), square = vf_zero();
        for (int i = 0; i < vectors; i++) {
            __builtin_prefetch(x + i * VLEN + AHEAD);
            v[i] = i + 1 < vectors ? vf_load(x + i * VLEN) : vf_load_n(x + i * VLEN, last);
            sum = vf_add(sum, v[i]);
        }
        float mean = block->root_mean_square ? 0 : vf_sum(sum) / (float)n;
        for (int i = 0; i < vectors; i++) {
            vf d = vf_sub(v[i], vf_set1(mean));
            if (i + 1 == vectors)
                d = vf_keep_n(d, vf_zero(), last);
            square = vf_fma(d, d, square);
        }
        block->mean[r] = mean;
        block->variance[r] = vf_sum(square) / (float)n;
    }
}

void GB_ISA_NAME(norm_statistics_rows)(const gb_norm_block *block)
{
    int64_t vectors = (block->n + VLEN - 1) / VLEN;
    if (vectors == 1)
        short_statistics(block, 1);
    else if (vectors == 2)
        short_statistics(block, 2);
    else if (vectors == 3)
        short_statistics(block, 3);
    else if (vectors == 4)
        short_statistics(block, 4);
    if (vectors > 0 && vectors <= SHORT)
        return;
    for (int64_t r = 0; r < block->count; r++) {
        const float *x = block->x + r * block->x_stride;
        float mean = block->root_mean_square ? 0 : row_mean(false, x, block->n, 0);
        block->mean[r] = mean;
        block->variance[r] = row_mean(true, x, block->n, mean);
    }
}

/* Sum of x, or of (x - shift)^2, over `rows` rows of one vector of columns. */
GB_TEMPLATE vf sum_rows(
        bool square, const float *x, int64_t x_stride, int rows, int64_t lanes, vf shift)
{
    vf sum = vf_zero(), other = vf_zero();
    for (int r = 0; r < rows; r++) {
        const float *from = x + r * x_stride;
        vf d = lanes == VLEN ? vf_load(from) : vf_load_n(from, lanes);
        if (square)
            d = vf_sub(d, shift);
        vf *to = r % 2 ? &other : &sum;
        *to = square ? vf_fma(d, d, *to) : vf_add(d, *to);
    }
    return vf_add(sum, other);
}

GB_TEMPLATE void add_rows(bool square, const float *x, int64_t x_stride, int rows, int64_t n,
        const float *shift, float *part)
{
    int64_t c = 0;
    for (; c + VLEN <= n; c += VLEN) {
        vf by = square ? vf_load(shift + c) : vf_zero();
        vf sum = sum_rows(square, x + c, x_stride, rows, VLEN, by);
        vf_store(part + c, vf_add(sum, vf_load(part + c)));
    }
    if (c < n) {
        vf by = square ? vf_load_n(shift + c, n - c) : vf_zero();
        vf sum = sum_rows(square, x + c, x_stride, rows, n - c, by);
        vf_store_n(part + c, vf_add(sum, vf_load_n(part + c, n - c)), n - c);
    }
}

GB_TEMPLATE void column_sum(bool square, const gb_norm_block *block, const float *shift, float *sum)
{
    float part[GB_TILE_ELEMENTS];
    for (int64_t c = 0; c < block->count; c++)
        sum[c] = 0;
    for (int64_t first = 0; first < block->n; first += CHUNK_ROWS) {
        int64_t r = first, end = block->n - first < CHUNK_ROWS ? block->n : first + CHUNK_ROWS;
        for (int64_t c = 0; c < block->count; c++)
            part[c] = 0;
        for (; r + 8 <= end; r += 8)
            add_rows(square, block->x + r * block->x_stride, block->x_stride, 8, block->count,
                    shift, part);
        for (; r < end; r++)
            add_rows(square, block->x + r * block->x_stride, block->x_stride, 1, block->count,
                    shift, part);
        for (int64_t c = 0; c < block->count; c++)
            sum[c] += part[c];
    }
}

/* From sums of columns to the mean of each group. */
static void divide_groups(const gb_norm_block *block, float *sum)
{
    float n = (float)(block->n ? block->n * block->group : 1);
    for (int64_t first = 0; first < block->count; first += block->group) {
        float total = 0;
        for (int64_t c = first; c < first + block->group; c++)
            total += sum[c];
        for (int64_t c = first; c < first + block->group; c++)
            sum[c] = total / n;
    }
}

void GB_ISA_NAME(norm_statistics_columns)(const gb_norm_block *block)
{
    if (block->root_mean_square) {
        for (int64_t c = 0; c < block->count; c++)
            block->mean[c] = 0;
    } else {
        column_sum(false, block, NULL, block->mean);
        divide_groups(block, block->mean);
    }
    column_sum(true, block, block->mean, block->variance);
    divide_groups(block, block->variance);
}

/* Application ---------------------------------------------------------------------------------- */

GB_TEMPLATE vf load(const float *p, int64_t n)
{
    return n == VLEN ? vf_load(p) : vf_load_n(p, n);
}

/* How gamma and beta go on along a run: one for all of it, one behind the other, or a step apart. */
enum { SAME, DENSE, STEPS };

GB_TEMPLATE vf affine(const int along, const float *p, int64_t i, int64_t step, int64_t n)
{
    return along == SAME    ? vf_set1(*p)
           : along == DENSE ? load(p + i, n)
                            : vf_gather(p + i * step, step, n);
}

/* What of gamma and beta there is: none, gamma, both. */
enum { PLAIN, SCALED, SHIFTED };

GB_TEMPLATE void apply_vector(const int affines, const int along, const float *x, float *y,
        int64_t i, int64_t n, vf mean, vf scale, const float *gamma, const float *beta,
        int64_t step)
{
    vf v = vf_mul(vf_sub(load(x + i, n), mean), scale);
    if (affines == SHIFTED)
        v = vf_fma(v, affine(along, gamma, i, step, n), affine(along, beta, i, step, n));
    else if (affines == SCALED)
        v = vf_mul(v, affine(along, gamma, i, step, n));
    if (n == VLEN)
        vf_store(y + i, v);
    else
        vf_store_n(y + i, v, n);
}

typedef struct norm_run {
    const float *x;
    float *y;
    float mean, scale;
    const float *gamma, *beta;
} norm_run;

GB_TEMPLATE void apply_run(
        const gb_norm_block *block, const int affines, const int along, const norm_run *run)
{
    const float *x = run->x, *gamma = run->gamma, *beta = run->beta;
    const vf mean = vf_set1(run->mean), scale = vf_set1(run->scale);
    const int64_t n = block->run, step = block->affine_step;
    float *y = run->y;
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + VLEN <= n; i += VLEN)
        apply_vector(affines, along, x, y, i, VLEN, mean, scale, gamma, beta, step);
    if (i < n)
        apply_vector(affines, along, x, y, i, n - i, mean, scale, gamma, beta, step);
}

GB_TEMPLATE void apply_affine(const gb_norm_block *block, const int along, const norm_run *run)
{
    if (run->beta)
        apply_run(block, SHIFTED, along, run);
    else
        apply_run(block, SCALED, along, run);
}

/* Rows of at most SHORT vectors share gamma and beta in registers. The last of several vectors ends
 * with the row and overlaps the one before: where y is x, the next row need not wait for a store of
 * part of a vector. */
GB_TEMPLATE void short_apply(
        const gb_norm_block *block, const int vectors, const bool gamma, const bool beta)
{
    vf v[SHORT], factor[SHORT], shift[SHORT];
    int64_t n = vectors == 1 ? block->run : VLEN, at[SHORT];
    for (int i = 0; i < vectors; i++) {
        at[i] = i > 0 && i + 1 == vectors ? block->run - VLEN : i * VLEN;
        factor[i] = gamma ? load(block->gamma + at[i], n) : vf_zero();
        shift[i] = beta ? load(block->beta + at[i], n) : vf_zero();
    }
    for (int64_t r = 0; r < block->count; r++) {
        const float *x = block->x + r * block->x_stride;
        float *y = block->y + r * block->y_stride;
        vf mean = vf_set1(block->mean[r]), scale = vf_set1(block->scale[r]);
        for (int i = 0; i < vectors; i++)
            v[i] = load(x + at[i], n);
        for (int i = 0; i < vectors; i++) {
            v[i] = vf_mul(vf_sub(v[i], mean), scale);
            if (beta)
                v[i] = vf_fma(v[i], factor[i], shift[i]);
            else if (gamma)
                v[i] = vf_mul(v[i], factor[i]);
            if (vectors > 1)
                vf_store(y + at[i], v[i]);
            else
                vf_store_n(y, v[i], n);
        }
    }
}

GB_TEMPLATE void short_apply_any(const gb_norm_block *block, const int vectors)
{
    if (block->beta)
        short_apply(block, vectors, true, true);
    else if (block->gamma)
        short_apply(block, vectors, true, false);
    else
        short_apply(block, vectors, false, false);
}

/* One short run per row, with the same gamma and beta for all rows? */
static bool is_short(const gb_norm_block *block)
{
    bool shared = !block->gamma || (block->affine_step == 1 && block->affine_count == 0);
    return block->runs == 1 && shared && block->run > 0 && block->run <= SHORT * VLEN;
}

void GB_ISA_NAME(norm_apply_rows)(const gb_norm_block *block)
{
    if (is_short(block)) {
        int64_t vectors = (block->run + VLEN - 1) / VLEN;
        if (vectors == 1)
            short_apply_any(block, 1);
        else if (vectors == 2)
            short_apply_any(block, 2);
        else if (vectors == 3)
            short_apply_any(block, 3);
        else
            short_apply_any(block, 4);
        return;
    }
    for (int64_t r = 0; r < block->count; r++)
        for (int64_t i = 0; i < block->runs; i++) {
            int64_t offset = i * block->affine_run + r * block->affine_count;
            const norm_run run = {.x = block->x + r * block->x_stride + i * block->run,
                    .y = block->y + r * block->y_stride + i * block->run,
                    .mean = block->mean[r],
                    .scale = block->scale[r],
                    .gamma = block->gamma ? block->gamma + offset : NULL,
                    .beta = block->beta ? block->beta + offset : NULL};
            if (!run.gamma)
                apply_run(block, PLAIN, SAME, &run);
            else if (block->affine_step == 0)
                apply_affine(block, SAME, &run);
            else if (block->affine_step == 1)
                apply_affine(block, DENSE, &run);
            else
                apply_affine(block, STEPS, &run);
        }
}

GB_TEMPLATE void apply_columns(const gb_norm_block *block, const int affines, const int along)
{
    const int64_t step = block->affine_count;
    for (int64_t i = 0; i < block->runs; i++)
        for (int64_t j = 0; j < block->run; j++) {
            const int64_t row = i * block->run + j;
            const int64_t offset = i * block->affine_run + j * block->affine_step;
            const float *x = block->x + row * block->x_stride;
            const float *gamma = affines == PLAIN ? NULL : block->gamma + offset;
            const float *beta = affines == SHIFTED ? block->beta + offset : NULL;
            float *y = block->y + row * block->y_stride;
            for (int64_t c = 0; c < block->count; c += VLEN) {
                int64_t n = gb_min_i64(block->count - c, VLEN);
                vf mean = load(block->mean + c, n), scale = load(block->scale + c, n);
                apply_vector(affines, along, x, y, c, n, mean, scale, gamma, beta, step);
            }
        }
}

GB_TEMPLATE void columns_affine(const gb_norm_block *block, const int along)
{
    if (block->beta)
        apply_columns(block, SHIFTED, along);
    else
        apply_columns(block, SCALED, along);
}

void GB_ISA_NAME(norm_apply_columns)(const gb_norm_block *block)
{
    if (!block->gamma)
        apply_columns(block, PLAIN, SAME);
    else if (block->affine_count == 0)
        columns_affine(block, SAME);
    else if (block->affine_count == 1)
        columns_affine(block, DENSE);
    else
        columns_affine(block, STEPS);
}
