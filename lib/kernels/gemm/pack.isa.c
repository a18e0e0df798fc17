/* Operands of GEMM on their way into f32 blocks and panels. */
#include "kernels/isa/vec.h"

#include "base/memory.h"
#include "kernels/isa/vec_codes.h"
#include "kernels/isa/vec_float.h"
#include "kernels/isa/vec_transpose.h"

enum { PANEL = GB_GEMM_PANEL };

/* Rows ahead of the one being read that are fetched: they are short and far apart, no stream that
 * the hardware would follow. */
enum { AHEAD = 4 };

/* n <= VLEN elements, every other one. `more` follow: the element behind the last can be read. */
GB_INLINE vf load_every_other(const gb_data_type type, const void *p, int64_t n, bool more)
{
    if (type == GB_F32) {
        const float *values = p;
        int64_t behind = 2 * n - 1 - VLEN;
        if (more)
            return vf_even(vf_load(values), vf_load(values + VLEN));
        return vf_even(vf_load_n(values, gb_min_i64(VLEN + behind, VLEN)),
                behind > 0 ? vf_load_n(values + VLEN, behind) : vf_zero());
    }
    if (!more)
        return vf_gather_float(type, p, 2, n);
    vi pairs = vi_load(p);
    return type == GB_BF16 ? gb_bf16_decode(pairs) : gb_f16_decode(vi_and(pairs, vi_set1(0xFFFF)));
}

GB_INLINE vf load_step(
        const gb_data_type type, const void *p, const int64_t stride, int64_t n, bool more)
{
    return stride == 2 ? load_every_other(type, p, n, more) : vf_gather_float(type, p, stride, n);
}

/* The row that is read AHEAD rows after row r, of this copy or the next. */
GB_INLINE const char *coming_row(const gb_gemm_copy *copy, int64_t r, int64_t row)
{
    int64_t beyond = r + AHEAD - copy->rows;
    if (beyond < 0)
        return (const char *)copy->src + (r + AHEAD) * row;
    return copy->next ? (const char *)copy->next + gb_min_i64(beyond, r) * row
                      : (const char *)copy->src + r * row;
}

GB_INLINE void copy_rows(const gb_gemm_copy *copy, const gb_data_type type, const int64_t stride)
{
    const int64_t size = (int64_t)gb_float_size(type), row = copy->row_stride * size;
    const int64_t step = VLEN * stride * size;
    for (int64_t r = 0; r < copy->rows; r++) {
        const char *src = (const char *)copy->src + r * row;
        const char *coming = coming_row(copy, r, row);
        float *dst = copy->dst + r * copy->dst_row;
        int64_t c = 0;
        for (; c + VLEN <= copy->cols; c += VLEN, src += step, coming += step) {
            for (int64_t line = 0; line < step && line < 2 * GB_CACHE_LINE; line += GB_CACHE_LINE)
                gb_prefetch(coming + line);
            vf_store(dst + c, load_step(type, src, stride, VLEN, c + VLEN < copy->cols));
        }
        if (c < copy->cols) {
            gb_prefetch(coming);
            gb_prefetch(coming + (copy->cols - c - 1) * stride * size);
            vf_store_n(
                    dst + c, load_step(type, src, stride, copy->cols - c, false), copy->cols - c);
        }
    }
}

/* The first n <= VLEN elements of up to VLEN columns that lie along memory, as rows. */
GB_INLINE void load_transposed(
        const gb_data_type type, const char *src, size_t column, int64_t columns, int64_t n, vi *v)
{
#pragma GCC unroll 16
    for (int i = 0; i < VLEN; i++)
        v[i] = vf_bits(i < columns ? vf_load_float(type, src + (size_t)i * column, n) : vf_zero());
    vi_transpose(v);
}

/* Rows run along memory: VLEN x VLEN blocks are transposed. */
GB_INLINE void copy_columns(const gb_gemm_copy *copy, const gb_data_type type)
{
    const size_t size = gb_float_size(type), column = (size_t)copy->col_stride * size;
    for (int64_t c = 0; c < copy->cols; c += VLEN) {
        const int64_t columns = gb_min_i64(copy->cols - c, VLEN);
        for (int64_t r = 0; r < copy->rows; r += VLEN) {
            const char *src = (const char *)copy->src + (size_t)c * column + (size_t)r * size;
            float *dst = copy->dst + r * copy->dst_row + c;
            const int64_t rows = gb_min_i64(copy->rows - r, VLEN);
            vi v[VLEN];
            load_transposed(type, src, column, columns, rows, v);
            for (int64_t i = 0; i < rows; i++)
                if (columns == VLEN)
                    vf_store(dst + i * copy->dst_row, vi_as_vf(v[i]));
                else
                    vf_store_n(dst + i * copy->dst_row, vi_as_vf(v[i]), columns);
        }
    }
}

GB_INLINE void copy_typed(const gb_gemm_copy *copy, const gb_data_type type)
{
    if (copy->row_stride == 1 && copy->col_stride > 1 && copy->rows >= VLEN)
        copy_columns(copy, type);
    else if (copy->col_stride == 1)
        copy_rows(copy, type, 1);
    else if (copy->col_stride == 2)
        copy_rows(copy, type, 2);
    else
        copy_rows(copy, type, copy->col_stride);
}

/* The last vector of a row overlaps the one before it, so that no lanes are left; `behind` bytes
 * follow the row. */
GB_INLINE void copy_code_row(
        const gb_data_type type, const char *src, int64_t cols, int64_t behind, float *dst)
{
    if (cols < VLEN) {
        int64_t n = cols + behind < VLEN ? cols : VLEN;
        vf_store_n(dst, vf_load_codes(type, src, 0, 1, n), cols);
        return;
    }
    int64_t last = cols - VLEN;
    for (int64_t c = 0; c < last; c += VLEN)
        vf_store(dst + c, vf_load_codes(type, src, c, 1, VLEN));
    vf_store(dst + last, vf_load_codes(type, src, last, 1, VLEN));
}

/* Every other element: low bytes of pairs; high bytes in the last vector, whose pairs begin one
 * byte early, so that nothing is read behind the last element. More than VLEN of them. */
GB_INLINE void copy_every_other_code(
        const gb_data_type type, const char *src, int64_t cols, float *dst)
{
    int64_t last = cols - VLEN;
    for (int64_t c = 0; c < last; c += VLEN) {
        vi codes = vi_and(gb_load_u16(src + 2 * c), vi_set1(0xFF));
        vf_store(dst + c, gb_code_decode(type, codes));
    }
    vi codes = vi_shr_logical(gb_load_u16(src + 2 * last - 1), 8);
    vf_store(dst + last, gb_code_decode(type, codes));
}

GB_INLINE void copy_codes(const gb_gemm_copy *copy, const gb_data_type type)
{
    const gb_gemm_copy t = *copy; /* stores may alias *copy */
    const char *src = t.src;
    for (int64_t r = 0; r < t.rows; r++, src += t.row_stride) {
        float *dst = t.dst + r * t.dst_row;
        if (t.col_stride == 1)
            copy_code_row(type, src, t.cols, (t.rows - 1 - r) * t.row_stride, dst);
        else if (t.col_stride == 2 && t.cols > VLEN)
            copy_every_other_code(type, src, t.cols, dst);
        else
            for (int64_t c = 0; c < t.cols; c += VLEN) {
                int64_t n = gb_min_i64(t.cols - c, VLEN);
                vf codes = vf_load_codes(type, src, c * t.col_stride, t.col_stride, n);
                vf_store_n(dst + c, codes, n);
            }
    }
}

void GB_ISA_NAME(gemm_copy)(const gb_gemm_copy *copy)
{
    switch (copy->type) {
        GB_CODE_CASE(GB_S8, copy_codes, copy)
        GB_CODE_CASE(GB_U8, copy_codes, copy)
        GB_CODE_CASE(GB_F8_E4M3, copy_codes, copy)
        GB_CODE_CASE(GB_F8_E5M2, copy_codes, copy)
        GB_CODE_CASE(GB_BF16, copy_typed, copy)
        GB_CODE_CASE(GB_F16, copy_typed, copy)
    default:
        copy_typed(copy, GB_F32);
    }
}

/* One row of one panel; n columns of it exist. */
GB_INLINE void pack_row(
        const gb_data_type type, const char *src, int64_t n_stride, int64_t n, float *dst)
{
    for (int c = 0; c < PANEL; c += VLEN) {
        const char *p = src + c * n_stride * (int64_t)gb_float_size(type);
        int64_t lanes = gb_min_i64(n - c, VLEN);
        vf_store(dst + c, lanes <= 0 ? vf_zero() : vf_gather_float(type, p, n_stride, lanes));
    }
}

/* Row by row over all panels: reads run along N. */
GB_INLINE void pack_rows(const gb_gemm_pack *pack, const gb_data_type type, const int64_t n_stride)
{
    const int64_t size = (int64_t)gb_float_size(type), row = pack->k_stride * size;
    for (int64_t k = 0; k < pack->k; k++) {
        const char *src = (const char *)pack->src + k * row;
        const int64_t ahead = k + AHEAD < pack->k ? AHEAD * row : 0;
        float *dst = pack->dst + k * PANEL;
        int64_t n = 0;
        for (; n + PANEL <= pack->n; n += PANEL, dst += pack->panel_stride) {
            const char *p = src + n * n_stride * size;
            gb_prefetch(p + ahead);
            gb_prefetch(p + ahead + (PANEL / 2) * n_stride * size);
            pack_row(type, p, n_stride, PANEL, dst);
        }
        if (n < pack->n)
            pack_row(type, src + n * n_stride * size, n_stride, pack->n - n, dst);
    }
}

/* K runs along memory: VLEN x VLEN blocks are transposed. */
GB_INLINE void pack_block(const gb_gemm_pack *pack, const gb_data_type type, const char *src,
        float *dst, int64_t columns, int64_t n)
{
    vi v[VLEN];
    load_transposed(type, src, (size_t)pack->n_stride * gb_float_size(type), columns, n, v);
    for (int64_t i = 0; i < n; i++)
        vi_store((int32_t *)(dst + i * PANEL), v[i]);
}

GB_INLINE void pack_columns(const gb_gemm_pack *pack, const gb_data_type type)
{
    const size_t size = gb_float_size(type);
    for (int64_t first = 0; first < pack->n; first += PANEL) {
        float *panel = pack->dst + first / PANEL * pack->panel_stride;
        for (int c = 0; c < PANEL; c += VLEN) {
            const char *src =
                    (const char *)pack->src +
                    (size_t)((first + gb_min_i64(c, pack->n - first)) * pack->n_stride) * size;
            int64_t columns = gb_min_i64(pack->n - first - c, VLEN), k = 0;
            for (; k + VLEN <= pack->k && columns >= VLEN; k += VLEN)
                pack_block(pack, type, src + (size_t)k * size, panel + k * PANEL + c, VLEN, VLEN);
            for (; k < pack->k; k += VLEN)
                pack_block(pack, type, src + (size_t)k * size, panel + k * PANEL + c, columns,
                        gb_min_i64(pack->k - k, VLEN));
        }
    }
}

GB_INLINE void pack_typed(const gb_gemm_pack *pack, const gb_data_type type)
{
    if (pack->n_stride == 1)
        pack_rows(pack, type, 1);
    else if (pack->k_stride == 1)
        pack_columns(pack, type);
    else
        pack_rows(pack, type, pack->n_stride);
}

void GB_ISA_NAME(gemm_pack)(const gb_gemm_pack *pack)
{
    GB_FLOAT_SWITCH(pack->type, pack_typed, pack)
}

/* Columns that are packed together: those of a cache line of the panel, so that lines are written
 * as a whole and few streams are read at a time. */
enum { LINE = VLEN < 16 ? 16 : VLEN };

/* n <= VLEN neighbours in memory, of all columns of a line; dst: for each the place of its row. */
GB_INLINE void pack_neighbours(const gb_gemm_pack_taps *pack, const gb_data_type type,
        const char *src, int64_t columns, int64_t n, float *const *dst)
{
    const size_t size = gb_float_size(type), column = (size_t)pack->n_stride * size;
    for (int c = 0; c < LINE; c += VLEN) {
        const int64_t lanes = gb_max_i64(gb_min_i64(columns - c, VLEN), 0);
        const char *from = src + (size_t)(lanes ? c : 0) * column;
        vi v[VLEN];
        if (n == VLEN && lanes == VLEN)
            load_transposed(type, from, column, VLEN, VLEN, v);
        else
            load_transposed(type, from, column, lanes, n, v);
        for (int64_t i = 0; i < n; i++)
            vi_store((int32_t *)(dst[i] + c), v[i]);
    }
}

/* Neighbours go from tap to tap, and on to the next term where it follows the last tap. */
GB_INLINE void pack_taps_typed(const gb_gemm_pack_taps *pack, const gb_data_type type)
{
    const int64_t size = (int64_t)gb_float_size(type), taps = pack->taps;
    const int64_t terms = pack->k_stride == taps ? pack->k : 1, run = terms * taps;
    for (int64_t first = 0; first < PANEL; first += LINE) {
        const int64_t columns = gb_max_i64(gb_min_i64(pack->n - first, LINE), 0);
        const int64_t skipped = columns ? first * pack->n_stride : 0;
        for (int64_t k = 0; k < pack->k; k += terms) {
            const char *src = (const char *)pack->src + (k * pack->k_stride + skipped) * size;
            int64_t tap = 0, term = k;
            for (int64_t i = 0; i < run; i += VLEN) {
                const int64_t n = gb_min_i64(run - i, VLEN);
                float *dst[VLEN];
                for (int64_t r = 0; r < n; r++) {
                    dst[r] = pack->dst + (pack->rows[tap] + term) * PANEL + first;
                    term += tap + 1 == taps;
                    tap = tap + 1 == taps ? 0 : tap + 1;
                }
                if (n == VLEN)
                    pack_neighbours(pack, type, src + i * size, columns, VLEN, dst);
                else
                    pack_neighbours(pack, type, src + i * size, columns, n, dst);
            }
        }
    }
}

void GB_ISA_NAME(gemm_pack_taps)(const gb_gemm_pack_taps *pack)
{
    GB_FLOAT_SWITCH(pack->type, pack_taps_typed, pack)
}
