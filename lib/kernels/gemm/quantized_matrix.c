/* Quantized matrices: one call of the kernels for each group of parameters. */
#include "kernels/gemm/quantized_matrix.h"

#include "base/dtype.h"
#include "base/memory.h"

/* Parameters of the part of a block that one call dequantizes. */
typedef struct parameters {
    float *scales, *zps;
} parameters;

static void repeat(float *dst, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        dst[i] = value;
}

void gb_entries_fetch(const gb_kernels *kernels, const gb_entries *entries, bool along_rows,
        int64_t across, int64_t first, int64_t count, int64_t group, float *dst)
{
    int64_t step = along_rows ? entries->row_stride : entries->col_stride;
    int64_t start =
            entries->first + across * (along_rows ? entries->col_stride : entries->row_stride);
    if (step != 0 && group == 1) {
        gb_dequantize dequantize = {.type = entries->type,
                .codes = entries->data,
                .first = start + first * step,
                .rows = 1,
                .cols = count,
                .col_stride = step,
                .dst = dst};
        kernels->dequantize(&dequantize);
        return;
    }
    for (int64_t i = 0; i < count;) {
        int64_t index = step ? (first + i) / group : 0;
        int64_t end = step ? gb_min_i64(count, (index + 1) * group - first) : count;
        repeat(dst + i, end - i,
                (float)gb_element_get(entries->type, entries->data, start + index * step));
        i = end;
    }
}

/* The parameters of `count` positions from `first` on along one side, at group `across` of the
 * other. */
static void fetch_parameters(const gb_kernels *kernels, const gb_quantized_matrix *m,
        bool along_rows, int64_t across, int64_t first, int64_t count, const parameters *p)
{
    int64_t group = along_rows ? m->row_group : m->col_group;
    if (p->scales)
        gb_entries_fetch(kernels, &m->scales, along_rows, across, first, count, group, p->scales);
    if (p->zps)
        gb_entries_fetch(kernels, &m->zps, along_rows, across, first, count, group, p->zps);
}

static bool varies(const gb_quantized_matrix *m, bool along_rows)
{
    bool scales = m->scales.type != GB_UNDEF &&
                  (along_rows ? m->scales.row_stride : m->scales.col_stride) != 0;
    bool zps = m->zps.type != GB_UNDEF && (along_rows ? m->zps.row_stride : m->zps.col_stride) != 0;
    return scales || zps;
}

static parameters split_scratch(const gb_quantized_matrix *m, int64_t half, float *scratch)
{
    return (parameters){m->scales.type != GB_UNDEF ? scratch : NULL,
            m->zps.type != GB_UNDEF ? scratch + half : NULL};
}

static int64_t code_at(const gb_quantized_matrix *m, int64_t row, int64_t col)
{
    return m->codes.first + row * m->codes.row_stride + col * m->codes.col_stride;
}

static gb_entries transposed(gb_entries entries)
{
    int64_t stride = entries.row_stride;
    entries.row_stride = entries.col_stride;
    entries.col_stride = stride;
    return entries;
}

gb_quantized_matrix gb_quantized_matrix_transposed(const gb_quantized_matrix *m)
{
    return (gb_quantized_matrix){transposed(m->codes), transposed(m->scales), transposed(m->zps),
            m->col_group, m->row_group};
}

/* How a block is split: a call for each group of rows, or of columns, or one for all of it. */
typedef struct block_split {
    bool by_row;                  /* parameters are entries per row */
    int64_t row_group, col_group; /* 0: no split */
} block_split;

static block_split split_of(const gb_quantized_matrix *m)
{
    bool rows = varies(m, true), cols = varies(m, false);
    if (!rows || !cols)
        return (block_split){.by_row = rows};
    if (m->row_group < m->col_group)
        return (block_split){.by_row = true, .col_group = m->col_group};
    return (block_split){.row_group = m->row_group};
}

/* Where the group of position `at` ends, inside a range that ends at `end`. */
static int64_t group_end(int64_t at, int64_t group, int64_t end)
{
    return group ? gb_min_i64((at / group + 1) * group, end) : end;
}

/* The part of a block that one call dequantizes; dst is that of the block. */
static void dequantize_part(const gb_kernels *kernels, const gb_quantized_matrix *m,
        const block_split *split, const gb_block *block, const gb_block *part,
        const gb_dequantize *place, const parameters *p)
{
    gb_dequantize dequantize = *place;
    if (split->by_row)
        fetch_parameters(kernels, m, true, split->col_group ? part->col / split->col_group : 0,
                part->row, part->rows, p);
    else
        fetch_parameters(kernels, m, false, split->row_group ? part->row / split->row_group : 0,
                part->col, part->cols, p);
    dequantize.type = m->codes.type;
    dequantize.codes = m->codes.data;
    dequantize.first = code_at(m, part->row, part->col);
    dequantize.rows = part->rows;
    dequantize.cols = part->cols;
    dequantize.row_stride = m->codes.row_stride;
    dequantize.col_stride = m->codes.col_stride;
    dequantize.scales = p->scales;
    dequantize.zps = p->zps;
    dequantize.by_row = split->by_row;
    int64_t col = part->col - block->col;
    if (place->panel_stride) {
        dequantize.dst += col / GB_GEMM_PANEL * place->panel_stride;
        col %= GB_GEMM_PANEL;
    }
    dequantize.dst += (part->row - block->row) * place->dst_row + col;
    kernels->dequantize(&dequantize);
}

void gb_quantized_matrix_dequantize(const gb_kernels *kernels, const gb_quantized_matrix *m,
        const gb_block *block, float *dst, int64_t dst_row, int64_t panel_stride, float *scratch)
{
    parameters p =
            split_scratch(m, gb_quantized_matrix_scratch(block->rows, block->cols) / 2, scratch);
    block_split split = split_of(m);
    gb_dequantize place = {.dst = dst, .dst_row = dst_row, .panel_stride = panel_stride};
    int64_t row_end = block->row + block->rows, col_end = block->col + block->cols;
    bool whole_panels = split.col_group % GB_GEMM_PANEL == 0 && block->col % GB_GEMM_PANEL == 0;
    if (panel_stride && split.col_group && !whole_panels)
        split = (block_split){.row_group = m->row_group};
    gb_block part;
    for (part.row = block->row; part.row < row_end; part.row += part.rows) {
        part.rows = group_end(part.row, split.row_group, row_end) - part.row;
        for (part.col = block->col; part.col < col_end; part.col += part.cols) {
            part.cols = group_end(part.col, split.col_group, col_end) - part.col;
            dequantize_part(kernels, m, &split, block, &part, &place, &p);
        }
    }
}

/* One matrix of entries: row groups x column groups. */
static void fetch_entries(const gb_kernels *kernels, const gb_entries *entries, gb_block block,
        float otherwise, float *dst)
{
    if (entries->type == GB_UNDEF) {
        repeat(dst, block.rows * block.cols, otherwise);
        return;
    }
    gb_dequantize dequantize = {.type = entries->type,
            .codes = entries->data,
            .first = entries->first + block.row * entries->row_stride +
                     block.col * entries->col_stride,
            .rows = block.rows,
            .cols = block.cols,
            .row_stride = entries->row_stride,
            .col_stride = entries->col_stride,
            .dst = dst,
            .dst_row = block.cols};
    kernels->dequantize(&dequantize);
}

/* Groups lie along the columns: the parameters of some rows at a time. */
static void gemv_by_columns(const gb_kernels *kernels, const gb_quantized_matrix *m,
        const gb_block *block, const float *x, float *y, float *scratch)
{
    /* Rows of a call; the scratch has room for their entries. */
    enum { WIDE = 64, ROWS_OF_WIDE = 256, ROWS = 8 };
    int64_t end = block->row + block->rows, group = m->col_group, first = block->col / group;
    int64_t groups = (block->col + block->cols - 1) / group - first + 1;
    int64_t half = gb_quantized_matrix_gemv_scratch(block->cols) / 2;
    int64_t rows = group >= WIDE ? ROWS_OF_WIDE : ROWS;
    for (int64_t row = block->row, next; row < end; row = next) {
        next = m->row_group > 1 ? group_end(row, m->row_group, end) : gb_min_i64(row + rows, end);
        gb_block entries = {row / m->row_group, m->row_group > 1 ? 1 : next - row, first, groups};
        fetch_entries(kernels, &m->scales, entries, 1.0F, scratch);
        fetch_entries(kernels, &m->zps, entries, 0, scratch + half);
        gb_dequantize_gemv gemv = {.type = m->codes.type,
                .codes = m->codes.data,
                .first = code_at(m, row, block->col),
                .k = next - row,
                .n = block->cols,
                .k_stride = m->codes.row_stride,
                .n_stride = 1,
                .scales = scratch,
                .zps = scratch + half,
                .group = group,
                .phase = block->col % group,
                .parameter_row = m->row_group > 1 ? 0 : groups,
                .x = x + row - block->row,
                .y = y,
                .add = row > block->row};
        kernels->dequantize_gemv(&gemv);
    }
}

/* Quantized values and groups lie along the rows: columns are read to their end, a few at a time,
 * with the parameters of many groups. */
static void gemv_by_rows(const gb_kernels *kernels, const gb_quantized_matrix *m,
        const gb_block *block, const float *x, float *y, float *scratch)
{
    enum { COLUMNS = 16 };
    const int64_t group = m->row_group, end = block->row + block->rows;
    const int64_t half = gb_quantized_matrix_gemv_scratch(block->cols) / 2;
    const int64_t columns_end = block->col + block->cols;
    gb_block part;
    for (part.col = block->col; part.col < columns_end; part.col += part.cols) {
        part.cols = gb_min_i64(COLUMNS, columns_end - part.col);
        for (part.row = block->row; part.row < end; part.row += part.rows) {
            int64_t groups = part.row % group ? 1 : half / part.cols, first = part.row / group;
            part.rows = gb_min_i64((first + groups) * group, end) - part.row;
            gb_block entries = {
                    first, gb_div_up(part.row + part.rows, group) - first, part.col, part.cols};
            fetch_entries(kernels, &m->scales, entries, 1.0F, scratch);
            fetch_entries(kernels, &m->zps, entries, 0, scratch + half);
            gb_dequantize_gemv gemv = {.type = m->codes.type,
                    .codes = m->codes.data,
                    .first = code_at(m, part.row, part.col),
                    .k = part.rows,
                    .n = part.cols,
                    .k_stride = 1,
                    .n_stride = m->codes.col_stride,
                    .scales = scratch,
                    .zps = m->zps.type == GB_UNDEF ? NULL : scratch + half,
                    .k_group = group,
                    .parameter_row = part.cols,
                    .x = x + part.row - block->row,
                    .y = y + part.col - block->col,
                    .add = part.row > block->row};
            kernels->dequantize_gemv(&gemv);
        }
    }
}

void gb_quantized_matrix_gemv(const gb_kernels *kernels, const gb_quantized_matrix *m,
        const gb_block *block, const float *x, float *y, float *scratch)
{
    parameters p = split_scratch(m, block->cols, scratch);
    int64_t end = block->row + block->rows, group = varies(m, true) ? m->row_group : 0;
    if (block->rows == 0)
        repeat(y, block->cols, 0);
    if (m->codes.col_stride == 1 && group && m->row_group < m->col_group) {
        gemv_by_columns(kernels, m, block, x, y, scratch);
        return;
    }
    if (m->codes.row_stride == 1 && group && m->col_group == 1) {
        gemv_by_rows(kernels, m, block, x, y, scratch);
        return;
    }
    for (int64_t row = block->row, next; row < end; row = next) {
        next = group ? gb_min_i64((row / group + 1) * group, end) : end;
        if (group || row == block->row)
            fetch_parameters(
                    kernels, m, false, group ? row / group : 0, block->col, block->cols, &p);
        gb_dequantize_gemv gemv = {.type = m->codes.type,
                .codes = m->codes.data,
                .first = code_at(m, row, block->col),
                .k = next - row,
                .n = block->cols,
                .k_stride = m->codes.row_stride,
                .n_stride = m->codes.col_stride,
                .scales = p.scales,
                .zps = p.zps,
                .x = x + row - block->row,
                .y = y,
                .add = row > block->row};
        kernels->dequantize_gemv(&gemv);
    }
}
