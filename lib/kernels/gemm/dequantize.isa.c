/* Dequantizes blocks of quantized matrices to f32. */
#include "kernels/isa/vec.h"

#include "base/memory.h"
#include "kernels/isa/vec_codes.h"
#include "kernels/isa/vec_transpose.h"

/* Rows of a strip that is done for all columns. */
enum { PANEL = GB_GEMM_PANEL, VECTORS = PANEL / VLEN, STRIP = 16 };

/* VLEN columns of the parameters, or one entry for a whole row. */
typedef struct parameters {
    vf scale, zp;
} parameters;

GB_INLINE vf entry(const float *list, bool by_row, int64_t row, int64_t col, int64_t lanes, vf none)
{
    if (!list)
        return none;
    if (by_row)
        return vf_set1(list[row]);
    return lanes == VLEN ? vf_load(list + col) : vf_load_n(list + col, lanes);
}

GB_INLINE parameters parameters_at(const gb_dequantize *e, int64_t row, int64_t col, int64_t lanes)
{
    return (parameters){entry(e->scales, e->by_row, row, col, lanes, vf_set1(1.0F)),
            entry(e->zps, e->by_row, row, col, lanes, vf_zero())};
}

GB_INLINE vf apply(vf code, const parameters *p)
{
    return vf_mul(vf_sub(code, p->zp), p->scale);
}

static float *dequantize_place(const gb_dequantize *e, int64_t r, int64_t c)
{
    if (e->panel_stride == 0)
        return e->dst + r * e->dst_row + c;
    return e->dst + c / PANEL * e->panel_stride + r * e->dst_row + c % PANEL;
}

/* Lanes beyond the last column are 0 in panels and not written otherwise. */
GB_INLINE void store(const gb_dequantize *e, float *dst, vf value, int64_t lanes)
{
    if (lanes == VLEN)
        vf_store(dst, value);
    else if (e->panel_stride == 0)
        vf_store_n(dst, value, lanes);
    else {
        float all[VLEN];
        vf_store(all, value);
        vf_store(dst, vf_load_n(all, lanes));
    }
}

/* The lines of the next strip, when a strip enters lines of its own. */
GB_INLINE void fetch_strip(
        const gb_dequantize *e, const gb_data_type type, int64_t row, int64_t col)
{
    if (col % gb_codes_of_line(type) != 0)
        return;
    const uint8_t *src = (const uint8_t *)e->codes;
    for (int64_t r = row + STRIP; r < row + 2 * STRIP && r < e->rows; r++)
        gb_prefetch(
                (const char *)src + gb_bytes_of_codes(type, e->first + r * e->row_stride + col));
}

/* A strip of rows, PANEL columns, all of it at whole bytes. */
GB_INLINE void dequantize_panel(const gb_dequantize *e, const gb_data_type type, const bool by_row,
        int64_t row, int64_t rows, int64_t col)
{
    const gb_dequantize own = *e; /* stores may change what others read, not this */
    parameters p[VECTORS];
    for (int v = 0; v < VECTORS; v++)
        p[v] = parameters_at(&own, row, col + v * VLEN, VLEN);
    const uint8_t *src = (const uint8_t *)own.codes +
                         gb_bytes_of_codes(type, own.first + row * own.row_stride + col);
    int64_t step = gb_bytes_of_codes(type, own.row_stride);
    float *dst = dequantize_place(&own, row, col);
    for (int64_t r = row; r < row + rows; r++, src += step, dst += own.dst_row) {
        if (by_row)
            p[0] = parameters_at(&own, r, col, VLEN);
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++)
            vf_store(dst + v * VLEN,
                    apply(vf_load_whole_codes(type, src + gb_bytes_of_codes(type, v * VLEN)),
                            &p[by_row ? 0 : v]));
    }
}

/* A strip of rows, VLEN columns. */
GB_INLINE void dequantize_columns(const gb_dequantize *e, const gb_data_type type, int64_t row,
        int64_t rows, int64_t col, const int64_t stride, int64_t lanes)
{
    parameters p = parameters_at(e, row, col, lanes);
    float *dst = dequantize_place(e, row, col);
    for (int64_t r = row; r < row + rows; r++, dst += e->dst_row) {
        if (e->by_row)
            p = parameters_at(e, r, col, lanes);
        int64_t first = e->first + r * e->row_stride + col * stride;
        store(e, dst, apply(vf_load_codes(type, e->codes, first, stride, lanes), &p), lanes);
    }
}

/* Columns lie along memory: VLEN x VLEN blocks are transposed. `whole`: all of the block, at whole
 * bytes. */
GB_INLINE void dequantize_block(const gb_dequantize *e, const gb_data_type type, const bool whole,
        int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    const gb_dequantize own = *e;
    vi v[VLEN];
    const uint8_t *src = (const uint8_t *)own.codes;
    for (int i = 0; i < VLEN; i++) {
        int64_t first = own.first + row + (col + i) * own.col_stride;
        if (whole)
            v[i] = vf_bits(vf_load_whole_codes(type, src + gb_bytes_of_codes(type, first)));
        else
            v[i] = i < cols ? vf_bits(vf_load_codes(type, src, first, 1, rows)) : vi_set1(0);
    }
    vi_transpose(v);
    parameters p = parameters_at(&own, row, col, cols);
    float *dst = dequantize_place(&own, row, col);
    for (int64_t r = 0; r < rows; r++, dst += own.dst_row) {
        if (own.by_row)
            p = parameters_at(&own, row + r, col, cols);
        store(&own, dst, apply(vi_as_vf(v[r]), &p), cols);
    }
}

/* The lines of VLEN columns. */
GB_INLINE void fetch_columns(const gb_dequantize *e, const gb_data_type type, int64_t col)
{
    const char *src = (const char *)e->codes;
    for (int64_t c = col; c < col + VLEN && c < e->cols; c++)
        for (int64_t row = 0; row < e->rows; row += gb_codes_of_line(type))
            gb_prefetch(src + gb_bytes_of_codes(type, e->first + c * e->col_stride + row));
}

GB_INLINE void dequantize_transposed(const gb_dequantize *e, const gb_data_type type)
{
    bool even = gb_rows_are_whole(type, e->first, e->col_stride);
    for (int64_t col = 0; col < e->cols; col += VLEN) {
        int64_t cols = gb_min_i64(e->cols - col, VLEN), row = 0;
        fetch_columns(e, type, col + VLEN);
        for (; even && cols == VLEN && row + VLEN <= e->rows; row += VLEN)
            dequantize_block(e, type, true, row, VLEN, col, VLEN);
        for (; row < e->rows; row += VLEN)
            dequantize_block(e, type, false, row, gb_min_i64(e->rows - row, VLEN), col, cols);
    }
}

GB_INLINE void dequantize_rows(
        const gb_dequantize *e, const gb_data_type type, const int64_t stride)
{
    bool whole = stride == 1 && gb_rows_are_whole(type, e->first, e->row_stride);
    for (int64_t row = 0; row < e->rows; row += STRIP) {
        int64_t rows = gb_min_i64(e->rows - row, STRIP), col = 0;
        for (; whole && col + PANEL <= e->cols; col += PANEL) {
            fetch_strip(e, type, row, col);
            if (e->by_row)
                dequantize_panel(e, type, true, row, rows, col);
            else
                dequantize_panel(e, type, false, row, rows, col);
        }
        for (; col + VLEN <= e->cols; col += VLEN)
            dequantize_columns(e, type, row, rows, col, stride, VLEN);
        if (col < e->cols)
            dequantize_columns(e, type, row, rows, col, stride, e->cols - col);
    }
}

GB_INLINE void dequantize_typed(const gb_dequantize *e, const gb_data_type type)
{
    if (e->col_stride == 1)
        dequantize_rows(e, type, 1);
    else if (e->row_stride == 1)
        dequantize_transposed(e, type);
    else
        dequantize_rows(e, type, e->col_stride);
}

/* Vectors of a panel that no column reaches. */
static void clear_panel_end(const gb_dequantize *e)
{
    int64_t first = (e->cols + VLEN - 1) / VLEN * VLEN, end = (e->cols + PANEL - 1) / PANEL * PANEL;
    for (int64_t c = first; c < end; c += VLEN)
        for (int64_t r = 0; r < e->rows; r++)
            vf_store(dequantize_place(e, r, c), vf_zero());
}

GB_CODE_TABLE(by_type, dequantize_typed, gb_dequantize)

void GB_ISA_NAME(dequantize)(const gb_dequantize *dequantize)
{
    by_type[dequantize->type](dequantize);
    if (dequantize->panel_stride)
        clear_panel_end(dequantize);
}
