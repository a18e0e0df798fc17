/* Vector times quantized matrix: quantized values are dequantized in registers, the matrix is read
 * once. */
#include "kernels/isa/vec.h"

#include "base/memory.h"
#include "kernels/isa/vec_codes.h"

#include <string.h>

/* Rows that are added to the sums of a chunk of columns at a time; columns done at once when they
 * lie along memory. */
enum { ROWS = 8, CHUNK = 1024, COLUMNS = 4 };

GB_INLINE vf load_or(const float *list, int64_t at, int64_t lanes, vf none)
{
    return list ? vf_load_float(GB_F32, list + at, lanes) : none;
}

/* Quantized values less their zero point: any, and VLEN of them from a byte on. */
GB_INLINE vf dequantized(const gb_dequantize_gemv *g, const gb_data_type type, int64_t first,
        int64_t lanes, vf zp, const bool has_zp)
{
    vf code = vf_load_codes(type, g->codes, first, 1, lanes);
    return has_zp ? vf_sub(code, zp) : code;
}

GB_INLINE vf dequantized_whole(
        const gb_data_type type, const uint8_t *src, vf zp, const bool has_zp)
{
    vf code = vf_load_whole_codes(type, src);
    return has_zp ? vf_sub(code, zp) : code;
}

GB_INLINE const uint8_t *code_address(
        const gb_dequantize_gemv *g, const gb_data_type type, int64_t first)
{
    return (const uint8_t *)g->codes + gb_bytes_of_codes(type, first);
}

/* Sums along N -------------------------------------------------------------------------------- */

/* Rows k .. k + rows of columns n .. n + lanes, added to the sums. */
GB_INLINE void add_vector(const gb_dequantize_gemv *g, const gb_data_type type, int64_t k,
        const int rows, int64_t n, int64_t lanes, float *sums, const bool has_zp)
{
    vf zp = load_or(g->zps, n, lanes, vf_zero());
    vf sum = vf_load(sums);
    int64_t first = g->first + k * g->k_stride + n;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
        sum = vf_fma(vf_set1(g->x[k + i]),
                dequantized(g, type, first + i * g->k_stride, lanes, zp, has_zp), sum);
    vf_store(sums, sum);
}

/* ROWS rows from `src` on, `step` bytes apart, of the columns of a line of memory. Rows are read in
 * pieces: what comes next but one goes to the second-level cache. */
GB_INLINE void add_line(const gb_data_type type, const uint8_t *src, int64_t step, const float *x,
        const float *zps, float *sums, const bool has_zp)
{
    vf factors[ROWS];
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++) {
        factors[i] = vf_set1(x[i]);
        __builtin_prefetch(src + (i + 2 * ROWS) * step, 0, 2);
    }
    for (int64_t c = 0; c < gb_codes_of_line(type); c += VLEN) {
        vf zp = has_zp ? vf_load(zps + c) : vf_zero(), sum = vf_load(sums + c);
        const uint8_t *p = src + gb_bytes_of_codes(type, c);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++)
            sum = vf_fma(factors[i], dequantized_whole(type, p + i * step, zp, has_zp), sum);
        vf_store(sums + c, sum);
    }
}

GB_INLINE void add_rows(const gb_dequantize_gemv *g, const gb_data_type type, const bool whole,
        int64_t k, const int rows, int64_t n, int64_t count, float *sums, const bool has_zp)
{
    const int64_t line = gb_codes_of_line(type);
    int64_t c = 0;
    for (; whole && rows == ROWS && c + line <= count; c += line)
        add_line(type, code_address(g, type, g->first + k * g->k_stride + n + c),
                gb_bytes_of_codes(type, g->k_stride), g->x + k, has_zp ? g->zps + n + c : NULL,
                sums + c, has_zp);
    for (; c + VLEN <= count; c += VLEN)
        add_vector(g, type, k, rows, n + c, VLEN, sums + c, has_zp);
    if (c < count)
        add_vector(g, type, k, rows, n + c, count - c, sums + c, has_zp);
}

/* y (+)= scaled sums */
static void dequantize_gemv_finish(
        const gb_dequantize_gemv *g, int64_t n, int64_t count, const float *sums)
{
    for (int64_t c = 0; c < count; c += VLEN) {
        int64_t lanes = gb_min_i64(count - c, VLEN);
        vf scale = load_or(g->scales, n + c, lanes, vf_set1(1.0F)), sum = vf_load(sums + c);
        float *y = g->y + n + c;
        vf_store_first(y,
                g->add ? vf_fma(sum, scale, vf_load_float(GB_F32, y, lanes)) : vf_mul(sum, scale),
                lanes);
    }
}

GB_INLINE void along_n(const gb_dequantize_gemv *g, const gb_data_type type, const bool has_zp)
{
    const bool whole = gb_rows_are_whole(type, g->first, g->k_stride);
    float sums[CHUNK];
    for (int64_t n = 0; n < g->n; n += CHUNK) {
        int64_t count = gb_min_i64(g->n - n, CHUNK), k = 0;
        memset(sums, 0, sizeof sums);
        for (; k + ROWS <= g->k; k += ROWS)
            add_rows(g, type, whole, k, ROWS, n, count, sums, has_zp);
        for (; k < g->k; k++)
            add_rows(g, type, whole, k, 1, n, count, sums, has_zp);
        dequantize_gemv_finish(g, n, count, sums);
    }
}

/* Dot products along K ------------------------------------------------------------------------- */

/* Vectors of partial sums of `columns` columns that begin `step` bytes apart, with VLEN rows added up
 * to `rows`; returns how many are done. The lines of the columns that come next are fetched. */
GB_INLINE int64_t add_whole_dots(const gb_data_type type, const uint8_t *src, int64_t step,
        const float *x, int64_t rows, const int columns, const vf *zps, vf *sums, const bool has_zp)
{
    const int64_t line = gb_codes_of_line(type);
    int64_t k = 0;
    for (; k + VLEN <= rows; k += VLEN, src += gb_bytes_of_codes(type, VLEN)) {
        vf factor = vf_load(x + k);
        for (int i = 0; k % line == 0 && i < columns; i++)
            gb_prefetch((const char *)src + (i + columns) * step);
#pragma GCC unroll 4
        for (int i = 0; i < columns; i++)
            sums[i] = vf_fma(
                    factor, dequantized_whole(type, src + i * step, zps[i], has_zp), sums[i]);
    }
    return k;
}

/* Rows k .. end of `columns` columns. */
GB_INLINE void add_dots(const gb_dequantize_gemv *g, const gb_data_type type, const bool whole,
        int64_t k, int64_t end, int64_t n, const int columns, const vf *zps, vf *sums,
        const bool has_zp)
{
    int64_t first = g->first + n * g->n_stride;
    if (whole && (!gb_is_nibble(type) || k % 2 == 0))
        k += add_whole_dots(type, code_address(g, type, first + k),
                gb_bytes_of_codes(type, g->n_stride), g->x + k, end - k, columns, zps, sums,
                has_zp);
    for (; k < end; k += VLEN) {
        int64_t lanes = gb_min_i64(end - k, VLEN);
        vf x = vf_load_n(g->x + k, lanes);
        for (int i = 0; i < columns; i++) {
            vf code = dequantized(g, type, first + i * g->n_stride + k, lanes, zps[i], has_zp);
            sums[i] = vf_fma(x, code, sums[i]);
        }
    }
}

/* The scale of a group in the lanes that its rows reach: an infinite one makes NaN of others' 0. */
GB_INLINE vf scale_lanes(float scale, int64_t rows)
{
    float lanes[VLEN];
    if (rows >= VLEN)
        return vf_set1(scale);
    vf_store(lanes, vf_set1(scale));
    return vf_load_n(lanes, rows);
}

/* Dot products of `columns` columns, group by group. */
GB_INLINE void dots(const gb_dequantize_gemv *g, const gb_data_type type, const bool whole,
        int64_t n, const int columns, const bool has_zp)
{
    vf totals[COLUMNS], sums[COLUMNS], zps[COLUMNS];
    for (int i = 0; i < columns; i++)
        totals[i] = vf_zero();
    int64_t entry = n;
    for (int64_t k = 0, end; k < g->k; k = end, entry += g->parameter_row) {
        end = g->k_group ? gb_min_i64(g->k, k + g->k_group) : g->k;
#pragma GCC unroll 4
        for (int i = 0; i < columns; i++) {
            sums[i] = vf_zero();
            zps[i] = has_zp ? vf_set1(g->zps[entry + i]) : vf_zero();
        }
        add_dots(g, type, whole, k, end, n, columns, zps, sums, has_zp);
#pragma GCC unroll 4
        for (int i = 0; i < columns; i++)
            totals[i] = vf_fma(sums[i],
                    scale_lanes(g->scales ? g->scales[entry + i] : 1.0F, end - k), totals[i]);
    }
    for (int i = 0; i < columns; i++) {
        float sum = vf_sum(totals[i]);
        g->y[n + i] = g->add ? g->y[n + i] + sum : sum;
    }
}

GB_INLINE void along_k(const gb_dequantize_gemv *g, const gb_data_type type, const bool has_zp)
{
    const bool whole = gb_rows_are_whole(type, g->first, g->n_stride);
    int64_t n = 0;
    for (; whole && n + COLUMNS <= g->n; n += COLUMNS)
        dots(g, type, true, n, COLUMNS, has_zp);
    for (; n < g->n; n++)
        dots(g, type, false, n, 1, has_zp);
}

/* Parameters by groups of columns, different from row to row ----------------------------------- */

GB_INLINE void add_columns(const gb_dequantize_gemv *g, const gb_data_type type, int64_t first,
        const int rows, int64_t lanes, const vf *factors, const vf *zps, float *sums)
{
    vf sum = vf_load_float(GB_F32, sums, lanes);
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
        sum = vf_fma(factors[i], dequantized(g, type, first + i * g->k_stride, lanes, zps[i], true),
                sum);
    vf_store_first(sums, sum, lanes);
}

/* ROWS rows of whole vectors of columns; returns how many columns are done. */
GB_INLINE int64_t add_whole_columns(const gb_data_type type, const uint8_t *src, int64_t step,
        int64_t count, const vf *factors, const vf *zps, float *sums)
{
    const int64_t line = gb_codes_of_line(type);
    int64_t c = 0;
    for (; c + VLEN <= count; c += VLEN, src += gb_bytes_of_codes(type, VLEN)) {
        vf sum = vf_load(sums + c);
        for (int i = 0; c % line == 0 && i < ROWS; i++)
            __builtin_prefetch(src + (i + 2 * ROWS) * step, 0, 2);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++)
            sum = vf_fma(factors[i], dequantized_whole(type, src + i * step, zps[i], true), sum);
        vf_store(sums + c, sum);
    }
    return c;
}

/* Rows k .. k + rows of the columns of one group, added to the sums. */
GB_INLINE void add_segment(const gb_dequantize_gemv *g, const gb_data_type type, int64_t k,
        const int rows, int64_t n, int64_t count, float *sums)
{
    vf factors[ROWS], zps[ROWS];
    int64_t entry = k * g->parameter_row + (n + g->phase) / g->group;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++, entry += g->parameter_row) {
        factors[i] = vf_set1(g->x[k + i] * g->scales[entry]);
        zps[i] = vf_set1(g->zps[entry]);
    }
    int64_t first = g->first + k * g->k_stride + n, c = 0;
    if (rows == ROWS && gb_rows_are_whole(type, first, g->k_stride))
        c = add_whole_columns(type, code_address(g, type, first),
                gb_bytes_of_codes(type, g->k_stride), count, factors, zps, sums);
    for (; c + VLEN <= count; c += VLEN)
        add_columns(g, type, first + c, rows, VLEN, factors, zps, sums + c);
    if (c < count)
        add_columns(g, type, first + c, rows, count - c, factors, zps, sums + c);
}

/* Columns from `first` on. */
GB_INLINE void add_groups(const gb_dequantize_gemv *g, const gb_data_type type, int64_t k,
        const int rows, int64_t first)
{
    for (int64_t n = first, next; n < g->n; n = next) {
        next = gb_min_i64(g->n, ((n + g->phase) / g->group + 1) * g->group - g->phase);
        add_segment(g, type, k, rows, n, next - n, g->y + n);
    }
}

#if defined(GB_VEC_HAS_LOOKUP16)
/* Quantized values of 4 bits by table: all that a row and group make of them is 16 numbers. A
 * vector of words holds BLOCK quantized values; lane i of the sums at j belongs to column NIBBLES i
 * + j of a block. */
enum { NIBBLES = 8, BLOCK = NIBBLES * VLEN };

static bool fits_tables(const gb_dequantize_gemv *g)
{
    return gb_is_nibble(g->type) && g->group % BLOCK == 0 && g->phase % BLOCK == 0 &&
           g->first % 2 == 0 && g->k_stride % 2 == 0 && g->k >= ROWS;
}

GB_INLINE void look_up(const gb_dequantize_gemv *g, int64_t k, int64_t n, vf numbers, float *sums)
{
    vf tables[ROWS];
    vi codes[ROWS];
    int64_t entry = k * g->parameter_row + (n + g->phase) / g->group;
    const uint8_t *src = (const uint8_t *)g->codes + (g->first + k * g->k_stride + n) / 2;
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++, entry += g->parameter_row) {
        vf number = vf_sub(numbers, vf_set1(g->zps[entry]));
        tables[i] = vf_mul(number, vf_set1(g->scales[entry] * g->x[k + i]));
        codes[i] = vi_load((const int32_t *)(const void *)(src + i * (g->k_stride / 2)));
        /* Short pieces of many rows: what comes next but one goes to the second-level cache. */
        __builtin_prefetch(src + (i + 2 * ROWS) * (g->k_stride / 2), 0, 2);
    }
#pragma GCC unroll 8
    for (int j = 0; j < NIBBLES; j++) {
        vf sum = vf_load(sums + j * VLEN);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++)
            sum = vf_add(sum, vf_lookup16(tables[i], vi_shr_logical(codes[i], 4 * j)));
        vf_store(sums + j * VLEN, sum);
    }
}

/* The sums of a block in the order of columns, added to y. */
static void add_block(float *y, const float *sums)
{
    for (int c = 0; c < BLOCK; c++)
        y[c] += sums[c % NIBBLES * VLEN + c / NIBBLES];
}

/* Whole blocks of columns, rows by ROWS; returns the columns that are done. */
static int64_t by_tables(const gb_dequantize_gemv *g)
{
    float sums[CHUNK], numbers[16];
    for (int i = 0; i < 16; i++)
        numbers[i] = g->type == GB_S4 && i >= 8 ? (float)(i - 16) : (float)i;
    for (int64_t n = 0; n + BLOCK <= g->n; n += CHUNK) {
        int64_t end = gb_min_i64(g->n - n, CHUNK) / BLOCK * BLOCK;
        memset(sums, 0, sizeof sums);
        for (int64_t k = 0; k + ROWS <= g->k; k += ROWS)
            for (int64_t c = 0; c < end; c += BLOCK)
                look_up(g, k, n + c, vf_load(numbers), sums + c);
        for (int64_t c = 0; c < end; c += BLOCK)
            add_block(g->y + n + c, sums + c);
    }
    return g->n / BLOCK * BLOCK;
}
#endif

GB_INLINE void by_groups(const gb_dequantize_gemv *g, const gb_data_type type)
{
    int64_t k = 0, first = 0;
    for (int64_t n = 0; !g->add && n < g->n; n++)
        g->y[n] = 0;
#if defined(GB_VEC_HAS_LOOKUP16)
    if (fits_tables(g))
        first = by_tables(g);
#endif
    for (; k + ROWS <= g->k; k += ROWS)
        add_groups(g, type, k, ROWS, first);
    for (; k < g->k; k++)
        add_groups(g, type, k, 1, 0);
}

GB_INLINE void multiply(const gb_dequantize_gemv *g, const gb_data_type type)
{
    if (g->group) {
        by_groups(g, type);
        return;
    }
    bool rows = g->k_stride != 1 || (g->n_stride == 1 && g->n > 1);
    if (rows && g->zps)
        along_n(g, type, true);
    else if (rows)
        along_n(g, type, false);
    else if (g->zps)
        along_k(g, type, true);
    else
        along_k(g, type, false);
}

GB_CODE_TABLE(by_type, multiply, gb_dequantize_gemv)

void GB_ISA_NAME(dequantize_gemv)(const gb_dequantize_gemv *gemv)
{
    by_type[gemv->type](gemv);
}
