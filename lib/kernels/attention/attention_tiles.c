/* Rows in scratch, pointwise programs over them, and products with packed panels. */
#include "kernels/attention/attention_tiles.h"

#include "base/dtype.h"
#include "base/machine.h"
#include "base/memory.h"
#include "kernels/isa/tile_rows.h"
#include "kernels/plan/space.h"

enum { PANEL = GB_GEMM_PANEL };

const char *gb_attention_element(const gb_attention_space *space,
        const gb_attention_operand *operand, void *const *buffers, const int64_t *position,
        int64_t row)
{
    int64_t offset =
            gb_offset(space->n_batch, operand->strides, position) + row * operand->row_stride;
    return (const char *)buffers[operand->slot] + offset * gb_dtype_get(operand->type)->bits / 8;
}

void gb_attention_load(const gb_kernels *kernels, const gb_attention_space *space,
        const gb_attention_operand *operand, void *const *buffers, int64_t *position, int64_t first,
        int64_t rows, int64_t cols, const float *factor, float *dst, int64_t dst_row)
{
    enum { LEAST_ROWS = 16 };
    int dim = gb_attention_run_dim(space);
    bool along_rows = dim == space->n_batch;
    /* What is copied is still in L1 when it is scaled. */
    const int64_t near = (int64_t)(gb_machine_get()->l1_bytes / 2 / sizeof(float));
    const int64_t most = gb_max_i64(near / gb_max_i64(cols, 1), LEAST_ROWS);
    for (int64_t row = 0, n; row < rows; row += n) {
        n = gb_attention_locate(space, first + row, gb_min_i64(rows - row, most), position);
        gb_gemm_copy copy = {.type = operand->type,
                .src = gb_attention_element(
                        space, operand, buffers, position, position[space->n_batch]),
                .rows = n,
                .cols = cols,
                .row_stride = along_rows ? operand->row_stride : operand->strides[dim],
                .col_stride = operand->col_stride,
                .dst = dst + row * dst_row,
                .dst_row = dst_row};
        gb_attention_blend scaled = {.rows = n,
                .cols = cols,
                .dst = copy.dst,
                .dst_stride = dst_row,
                .x = copy.dst,
                .x_stride = dst_row,
                .a = factor ? factor + row : NULL};
        if (factor && copy.type == GB_F32 && copy.col_stride == 1) {
            scaled.x = copy.src;
            scaled.x_stride = copy.row_stride;
        } else {
            kernels->gemm_copy(&copy);
        }
        if (factor)
            kernels->attention_blend(&scaled);
    }
}

/* Rows and columns of one tile, counted from those of the tiling. */
typedef struct tile_part {
    int64_t row, rows, col, cols;
} tile_part;

static void run_tile(const gb_attention_tiling *t, const tile_part *part)
{
    gb_pointwise_view views[GB_POINTWISE_OPERANDS];
    int col_dim = t->space->n_batch + 1;
    t->position[col_dim] = t->first_col + part->col;
    gb_pointwise_views(
            t->pointwise, t->buffers, t->position, gb_attention_run_dim(t->space), col_dim, views);
    for (uint32_t i = 0; i < t->pointwise->n_operands; i++) {
        uint32_t slot = t->pointwise->operands[i].slot;
        if (t->pointwise->operands[i].is_index || slot < GB_SCRATCH_OPERAND)
            continue;
        int64_t stride = t->scratch_operands[slot - GB_SCRATCH_OPERAND].row_stride;
        int64_t step = t->scratch_operands[slot - GB_SCRATCH_OPERAND].is_column ? 0 : 1;
        float *data = t->scratch_operands[slot - GB_SCRATCH_OPERAND].data + part->row * stride +
                      part->col * step;
        views[i] =
                (gb_pointwise_view){.data = (char *)data, .row_stride = stride, .col_stride = step};
    }
    gb_attention_blend fill = {.rows = part->rows,
            .cols = part->cols,
            .dst = t->registers,
            .dst_stride = part->cols,
            .x_stride = t->source_row,
            .a = t->factor ? t->factor + part->row : NULL};
    if (t->source) {
        bool direct = gb_pointwise_is_plain_store(t->pointwise) && views[0].col_stride == 1 &&
                      !views[0].streamed;
        if (direct) {
            fill.dst = (float *)(void *)views[0].data;
            fill.dst_stride = views[0].row_stride;
        }
        fill.x = t->source + part->row * t->source_row + part->col;
        t->kernels->attention_blend(&fill);
        if (direct)
            return;
    }
    t->kernels->pointwise_run(t->pointwise, views, part->rows, part->cols, t->registers);
}

void gb_attention_run_tiles(const gb_attention_tiling *t)
{
    int dim = gb_attention_run_dim(t->space);
    int64_t most = GB_TILE_ELEMENTS * (t->source ? 1 : GB_TILES_TOGETHER);
    int64_t wide = gb_min_i64(t->cols, most), high = most / wide;
    for (int64_t row = 0, n; row < t->rows; row += n) {
        n = gb_attention_locate(t->space, t->first_row + row, t->rows - row, t->position);
        int64_t start = t->position[dim];
        for (int64_t r = 0; r < n; r += high)
            for (int64_t c = 0; c < t->cols; c += wide) {
                tile_part part = {.row = row + r,
                        .rows = gb_min_i64(high, n - r),
                        .col = c,
                        .cols = gb_min_i64(wide, t->cols - c)};
                t->position[dim] = start + r;
                run_tile(t, &part);
            }
    }
}

void gb_attention_multiply(const gb_kernels *kernels, gb_gemm_tile tile, const float *panels,
        int64_t panel, int64_t rows, int64_t cols)
{
    const gb_gemm_limits limits = kernels->gemm_limits();
    const float *a = tile.a, *c_in = tile.c_in;
    float *c_out = tile.c_out;
    tile.run = tile.k;
    for (int64_t c = 0; c < cols; c += limits.cols) {
        tile.b = panels + c / PANEL * panel + c % PANEL;
        tile.cols = (int)gb_min_i64(limits.cols, cols - c);
        for (int64_t r = 0; r < rows; r += tile.tiles * tile.rows) {
            tile.rows = (int)gb_tile_rows(rows - r, limits.rows);
            tile.tiles = gb_tiles_alike(rows - r, limits.rows, tile.k);
            tile.a = a + r * tile.a_row;
            tile.c_in = c_in ? c_in + r * tile.c_in_row + c : NULL;
            tile.c_out = c_out + r * tile.c_out_row + c;
            tile.row = r;
            tile.col = c;
            kernels->gemm_tile(&tile);
        }
    }
}

void gb_attention_multiply_groups(const gb_kernels *kernels, const gb_dot_form *form,
        gb_dot_tile tile, const int32_t *panels, int64_t panel, int64_t rows, int64_t cols)
{
    const int32_t *a = tile.a, *c_in = tile.c_in; /* or f32: as many bytes */
    int32_t *c_out = tile.c_out;
    const gb_dot_finish *all = tile.finish;
    gb_dot_finish finish = {NULL, NULL, NULL, NULL, NULL};
    tile.vnni_factor = form->vnni_factor;
    tile.run = tile.k;
    tile.finish = all ? &finish : NULL;
    for (int64_t c = 0; c < cols; c += form->cols) {
        tile.b = panels + c / PANEL * panel + c % PANEL;
        tile.cols = (int)gb_min_i64(form->cols, cols - c);
        for (int64_t r = 0; r < rows; r += tile.rows) {
            tile.rows = (int)gb_tile_rows_in(rows - r, form->rows, form->row_step);
            tile.a = a + r * tile.a_row;
            tile.c_in = c_in ? c_in + r * tile.c_in_row + c : NULL;
            tile.c_out = c_out + r * tile.c_out_row + c;
            tile.row = r;
            tile.col = c;
            if (all)
                finish = (gb_dot_finish){.column_terms = all->column_terms + c,
                        .row_terms = all->row_terms ? all->row_terms + r : NULL,
                        .column_factors = all->row_terms ? all->column_factors + c : NULL,
                        .column_scales = all->column_scales + c};
            kernels->dot_tile(&tile);
        }
    }
}

int64_t gb_attention_row(int64_t cols)
{
    int64_t rounded = gb_div_up(cols, 16) * 16;
    return rounded * (int64_t)sizeof(float) % 4096 == 0 ? rounded + 16 : rounded;
}

size_t gb_attention_bytes(int64_t n)
{
    return gb_align_up((size_t)n * sizeof(float), GB_CACHE_LINE);
}
