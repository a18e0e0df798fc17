/* Operands of a GEMM, block by block: read in place, copied, dequantized or packed. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/cpu/step_call.h"
#include "kernels/gemm/gemm_run.h"
#include "kernels/gemm/quantized_matrix.h"
#include "kernels/plan/space.h"

enum { PANEL = GB_GEMM_PANEL };

int64_t gb_gemm_element(const gb_gemm_item *u, const gb_gemm_operand *operand)
{
    return gb_offset(u->gemm->epilogue.ndims, operand->strides, u->position) +
           u->k_first * operand->k_stride;
}

/* Panels of GB_GEMM_PACKED hold 4 bytes per element whatever the type was. */
static const char *gemm_block_address(
        const gb_gemm_item *u, const gb_gemm_operand *operand, gb_gemm_access access)
{
    int64_t bits = access == GB_GEMM_PACKED ? 32 : (int64_t)gb_dtype_get(operand->type)->bits;
    const char *data = u->call->buffers[operand->slot];
    return data + gb_gemm_element(u, operand) * bits / 8;
}

static void dequantize_a(gb_gemm_item *u)
{
    const gb_gemm *gemm = u->gemm;
    gb_quantized_matrix matrix = gb_gemm_matrix(
            &gemm->a, gemm->epilogue.ndims, u->call->buffers, u->position, gemm->row_dim);
    gb_block block = {u->k_first, u->k, u->m_first, u->m};
    if (!gemm->a_along_m) {
        matrix = gb_quantized_matrix_transposed(&matrix);
        block = (gb_block){u->m_first, u->m, u->k_first, u->k};
    }
    gb_quantized_matrix_dequantize(
            gemm->kernels, &matrix, &block, u->a_copy, gemm->a_copy_row, 0, u->parameters);
}

static void dequantize_b(gb_gemm_item *u, int64_t first, int64_t n)
{
    const gb_gemm *gemm = u->gemm;
    gb_quantized_matrix matrix = gb_gemm_matrix(
            &gemm->b, gemm->epilogue.ndims, u->call->buffers, u->position, gemm->col_dim);
    gb_block block = {u->k_first, u->k, u->n_first + first, n};
    gb_quantized_matrix_dequantize(
            gemm->kernels, &matrix, &block, u->b_copy, PANEL, (u->k + 1) * PANEL, u->parameters);
}

static void copy_a(gb_gemm_item *u)
{
    const gb_gemm *gemm = u->gemm;
    int64_t row_stride = gb_gemm_stride(&gemm->a, gemm->row_dim);
    gb_gemm_copy copy = {.type = gemm->a.type,
            .src = gemm_block_address(u, &gemm->a, gemm->a_access),
            .dst = u->a_copy,
            .dst_row = gemm->a_copy_row};
    if (gemm->a_along_m) {
        copy.rows = u->k, copy.row_stride = gemm->a.k_stride;
        copy.cols = u->m, copy.col_stride = row_stride;
    } else {
        copy.rows = u->m, copy.row_stride = row_stride;
        copy.cols = u->k, copy.col_stride = gemm->a.k_stride;
    }
    gemm->kernels->gemm_copy(&copy);
}

void gb_gemm_share_a(const gb_step_call *call)
{
    enum { ROWS = 8 };
    const gb_gemm *gemm = call->params;
    const int64_t row_stride = gb_gemm_stride(&gemm->a, gemm->row_dim);
    const int64_t bytes = gb_dtype_get(gemm->a.type)->bits / 8;
    int64_t begin, end;
    while (gb_take_items(call, gb_div_up(gemm->m, ROWS), &begin, &end)) {
        begin *= ROWS;
        end = gb_min_i64(end * ROWS, gemm->m);
        const gb_gemm_copy copy = {.type = gemm->a.type,
                .src = (const char *)call->buffers[gemm->a.slot] + begin * row_stride * bytes,
                .rows = end - begin,
                .cols = gemm->k,
                .row_stride = row_stride,
                .col_stride = 1,
                .dst = (float *)(void *)call->shared + begin * gemm->a_copy_row,
                .dst_row = gemm->a_copy_row};
        gemm->kernels->gemm_copy(&copy);
    }
}

static void prepare_a(gb_gemm_item *u)
{
    const gb_gemm *gemm = u->gemm;
    if (gemm->a_access == GB_GEMM_IN_PLACE) {
        u->a = (const float *)(const void *)gemm_block_address(u, &gemm->a, gemm->a_access);
        u->a_row = gb_gemm_stride(&gemm->a, gemm->row_dim);
        return;
    }
    if (gemm->a_access == GB_GEMM_SHARED) {
        const float *copy = (const float *)(const void *)u->call->shared;
        u->a = copy + u->m_first * gemm->a_copy_row + u->k_first;
        u->a_row = gemm->a_copy_row;
        return;
    }
    u->a = u->a_copy;
    u->a_row = gemm->a_along_m ? 1 : gemm->a_copy_row;
    if (gb_gemm_is_quantized(&gemm->a))
        dequantize_a(u);
    else
        copy_a(u);
}

/* One row more than there are keeps the panels out of each other's cache sets. */
static int64_t copied_panel(const gb_gemm_item *u)
{
    return (u->k + 1) * PANEL;
}

static void pack_b(gb_gemm_item *u, int64_t first, int64_t n)
{
    const gb_gemm *gemm = u->gemm;
    if (gb_gemm_is_quantized(&gemm->b)) {
        dequantize_b(u, first, n);
        return;
    }
    int64_t n_stride = gb_gemm_stride(&gemm->b, gemm->col_dim);
    int64_t size = gb_dtype_get(gemm->b.type)->bits / 8;
    gb_gemm_pack pack = {.type = gemm->b.type,
            .src = gemm_block_address(u, &gemm->b, gemm->b_access) + first * n_stride * size,
            .k = u->k,
            .n = n,
            .k_stride = gemm->b.k_stride,
            .n_stride = n_stride,
            .dst = u->b_copy,
            .panel_stride = copied_panel(u)};
    gemm->kernels->gemm_pack(&pack);
}

/* Does b_copy hold this block already? Takes note of what it will hold. */
bool gb_gemm_is_copied(gb_gemm_item *u)
{
    const gb_gemm *gemm = u->gemm;
    gb_gemm_copied now = {.codes = gb_gemm_element(u, &gemm->b), .columns = u->n};
    now.scales = gb_offset(gemm->epilogue.ndims, gemm->b.scales.strides, u->position);
    now.zps = gb_offset(gemm->epilogue.ndims, gemm->b.zps.strides, u->position);
    bool same = u->copied.columns == now.columns && u->copied.codes == now.codes &&
                u->copied.scales == now.scales && u->copied.zps == now.zps;
    u->copied = now;
    return same && gemm->blocks.k_blocks == 1;
}

static void prepare_b(gb_gemm_item *u)
{
    const gb_gemm *gemm = u->gemm;
    const void *src = gemm_block_address(u, &gemm->b, gemm->b_access);
    u->b_offsets = gemm->panel_offsets;
    switch (gemm->b_access) {
    case GB_GEMM_PACKED:
    case GB_GEMM_HALVES:
        u->b = src;
        u->panel_stride = gemm->k * PANEL;
        break;
    case GB_GEMM_COPY:
    case GB_GEMM_SHARED: /* is A's alone */
        u->b = u->b_copy;
        u->panel_stride = copied_panel(u);
        if (!gb_gemm_is_copied(u))
            pack_b(u, 0, u->n);
        break;
    case GB_GEMM_IN_PLACE:
        u->b = src;
        u->panel_stride = PANEL;
        if (u->n % PANEL)
            pack_b(u, u->n - u->n % PANEL, u->n % PANEL);
        u->b_offsets = gemm->b_offsets;
        break;
    }
}

void gb_gemm_prepare_block(gb_gemm_item *u, gb_gemm_item *gate)
{
    prepare_a(u);
    prepare_b(u);
    if (!gate)
        return;
    gate->a = u->a;
    gate->a_row = u->a_row;
    prepare_b(gate);
}
