/* Products of VNNI groups in a GEMM: their operands, and for those of integers the corrections for
 * moved quantized values and zero points. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/cpu/step_call.h"
#include "kernels/gemm/gemm_run.h"
#include "kernels/isa/costs.h"
#include "kernels/plan/space.h"

enum { PANEL = GB_GEMM_PANEL };

/* ---------------------------------------------------------------------------------- VNNI groups */

static const uint8_t *group_address(const gb_gemm_item *u, const gb_gemm_operand *operand)
{
    int64_t first = gb_offset(u->gemm->epilogue.ndims, operand->strides, u->position) +
                    u->k_first * u->gemm->vnni_factor * operand->k_stride;
    return (const uint8_t *)u->call->buffers[operand->slot] +
           first * (gb_dtype_get(operand->type)->bits / 8);
}

/* K of the current block in elements. */
static int64_t terms(const gb_gemm_item *u)
{
    const gb_gemm *gemm = u->gemm;
    return gb_min_i64(u->k * gemm->vnni_factor, gemm->terms - u->k_first * gemm->vnni_factor);
}

static void copy_a(gb_gemm_item *u)
{
    const gb_gemm *gemm = u->gemm;
    gb_dot_copy copy = {.vnni_factor = gemm->vnni_factor,
            .floats = gemm->floats,
            .is_signed = gemm->a.type == GB_S8,
            .flip = gemm->vnni_factor == 4 && gemm->a.type == GB_S8,
            .src = group_address(u, &gemm->a),
            .rows = u->m,
            .k = terms(u),
            .row_stride = gb_gemm_stride(&gemm->a, gemm->row_dim),
            .k_stride = gemm->a.k_stride,
            .dst = (int32_t *)(void *)u->a_copy,
            .dst_row = gemm->a_copy_row};
    gemm->kernels->dot_copy(&copy);
}

static void copy_a_along_m(gb_gemm_item *u)
{
    const gb_gemm *gemm = u->gemm;
    gb_dot_pack pack = {.vnni_factor = gemm->vnni_factor,
            .floats = gemm->floats,
            .is_signed = gemm->a.type == GB_S8,
            .flip = gemm->vnni_factor == 4 && gemm->a.type == GB_S8,
            .src = group_address(u, &gemm->a),
            .k = terms(u),
            .n = u->m,
            .k_stride = gemm->a.k_stride,
            .n_stride = gb_gemm_stride(&gemm->a, gemm->row_dim),
            .dst = (int32_t *)(void *)u->a_copy,
            .dst_row = gemm->a_copy_row};
    gemm->kernels->dot_pack(&pack);
}

/* Bytes without sign or bf16 in whole VNNI groups, one after another along K; rows 4 KiB apart would
 * evict one another from L1. */
static bool is_words(const gb_gemm_item *u, const uint8_t *src)
{
    const gb_gemm *gemm = u->gemm;
    const int factor = gemm->vnni_factor;
    int64_t row = gb_gemm_stride(&gemm->a, gemm->row_dim);
    bool words = gemm->floats || (factor == 4 && gemm->a.type == GB_U8);
    return words && gemm->a.k_stride == 1 && gemm->terms % factor == 0 && row % factor == 0 &&
           (row % ((int64_t)GB_PAGE_FLOATS * factor) != 0 || u->m == 1) && (uintptr_t)src % 4 == 0;
}

static void gemm_integer_sum_rows(gb_gemm_item *u)
{
    const gb_gemm *gemm = u->gemm;
    gb_dot_sums sums = {.vnni_factor = gemm->vnni_factor,
            .add = u->k_first > 0,
            .words = (const int32_t *)(const void *)u->a,
            .n = u->m,
            .stride = u->a_row,
            .k = u->k,
            .step = gemm->a_along_m ? gemm->a_copy_row : 1,
            .sums = u->integers.row_sums};
    gemm->kernels->dot_sums(&sums);
}

static void prepare_a(gb_gemm_item *u)
{
    const gb_gemm *gemm = u->gemm;
    const uint8_t *src = group_address(u, &gemm->a);
    u->a = u->a_copy;
    u->a_row = gemm->a_along_m ? 1 : gemm->a_copy_row;
    if (is_words(u, src)) {
        u->a = (const float *)(const void *)src;
        u->a_row = gb_gemm_stride(&gemm->a, gemm->row_dim) / gemm->vnni_factor;
    } else if (gemm->a_along_m) {
        copy_a_along_m(u);
    } else {
        copy_a(u);
    }
    if (gemm->row_sums)
        gemm_integer_sum_rows(u);
}

static void pack_b(gb_gemm_item *u)
{
    const gb_gemm *gemm = u->gemm;
    gb_dot_pack pack = {.vnni_factor = gemm->vnni_factor,
            .floats = gemm->floats,
            .is_signed = gemm->b.type == GB_S8,
            .flip = gemm->vnni_factor == 4 && gemm->b.type == GB_U8,
            .src = group_address(u, &gemm->b),
            .k = terms(u),
            .n = u->n,
            .k_stride = gemm->b.k_stride,
            .n_stride = gb_gemm_stride(&gemm->b, gemm->col_dim),
            .dst = (int32_t *)(void *)u->b_copy,
            .dst_row = PANEL,
            .panel_stride = u->panel_stride};
    gemm->kernels->dot_pack(&pack);
    for (int64_t n = 0; gemm->column_sums && n < u->n; n += PANEL) {
        gb_dot_sums sums = {.vnni_factor = gemm->vnni_factor,
                .is_signed = true,
                .add = u->k_first > 0,
                .words = pack.dst + n / PANEL * pack.panel_stride,
                .n = PANEL,
                .stride = 1,
                .k = u->k,
                .step = PANEL,
                .sums = u->integers.column_sums + n};
        gemm->kernels->dot_sums(&sums);
    }
}

/* Behind the VNNI groups of a packed panel lie the sums of its columns. */
static void prepare_b(gb_gemm_item *u)
{
    const gb_gemm *gemm = u->gemm;
    u->b_offsets = gemm->panel_offsets;
    if (gemm->b_access != GB_GEMM_PACKED) {
        u->b = u->b_copy;
        u->panel_stride = (u->k + 1) * PANEL;
        if (!gb_gemm_is_copied(u))
            pack_b(u);
        return;
    }
    u->b = (const float *)u->call->buffers[gemm->b.slot] + gb_gemm_element(u, &gemm->b);
    u->panel_stride = (gemm->k + !gemm->floats) * PANEL;
    if (!gemm->column_sums)
        return;
    const int32_t *sums = (const int32_t *)(const void *)u->b + (gemm->k - u->k_first) * PANEL;
    for (int64_t n = 0; n < u->n; n += PANEL)
        for (int64_t c = 0; c < PANEL; c++)
            u->integers.column_sums[n + c] = sums[n / PANEL * u->panel_stride + c];
}

/* Corrections ---------------------------------------------------------------------------------- */

static float only_entry(const gb_entries *entries, float otherwise)
{
    if (entries->type == GB_UNDEF)
        return otherwise;
    return (float)gb_element_get(entries->type, entries->data, entries->first);
}

static void fetch_columns(
        const gb_gemm_item *u, const gb_quantized_matrix *b, const gb_entries *entries, float *dst)
{
    gb_entries_fetch(u->gemm->kernels, entries, false, 0, u->n_first, u->n, b->col_group, dst);
}

/* What moving the quantized values adds to their zero point. */
static int32_t moved(const gb_gemm *gemm, gb_data_type type, gb_data_type other, int32_t by)
{
    return gemm->vnni_factor == 4 && type == other ? by : 0;
}

/* See gb_dot_finish; modulo 2^32, in which all sums are right at the end. */
static void correct(gb_gemm_item *u)
{
    const gb_gemm *gemm = u->gemm;
    gb_gemm_integers *integers = &u->integers;
    gb_quantized_matrix a = gb_gemm_matrix(
            &gemm->a, gemm->epilogue.ndims, u->call->buffers, u->position, gemm->row_dim);
    gb_quantized_matrix b = gb_gemm_matrix(
            &gemm->b, gemm->epilogue.ndims, u->call->buffers, u->position, gemm->col_dim);
    float scale = only_entry(&a.scales, 1.0F);
    uint32_t za =
            (uint32_t)((int32_t)only_entry(&a.zps, 0) + moved(gemm, gemm->a.type, GB_S8, 128));
    int32_t shift = moved(gemm, gemm->b.type, GB_U8, -128);
    bool scales = b.scales.type != GB_UNDEF, zps = b.zps.type != GB_UNDEF;
    if (zps)
        fetch_columns(u, &b, &b.zps, u->parameters);
    if (scales)
        fetch_columns(u, &b, &b.scales, integers->column_scales);
    if (gemm->row_scales) {
        gb_entries_fetch(gemm->kernels, &a.scales, false, 0, u->m_first, u->m, a.col_group,
                integers->row_scales);
        scale = 1.0F;
    }
    for (int64_t n = 0; n < u->n; n++) {
        uint32_t zb = (uint32_t)((zps ? (int32_t)u->parameters[n] : 0) + shift);
        uint32_t sum = gemm->column_sums ? (uint32_t)integers->column_sums[n] : 0;
        integers->column_terms[n] = (int32_t)(za * ((uint32_t)gemm->terms * zb - sum));
        integers->column_factors[n] = (int32_t)(0 - zb);
        integers->column_scales[n] = scale * (scales ? integers->column_scales[n] : 1.0F);
    }
}

void gb_gemm_prepare_groups(gb_gemm_item *u, gb_gemm_item *gate)
{
    prepare_a(u);
    prepare_b(u);
    if (!u->gemm->floats && u->k_first + u->k == u->gemm->k)
        correct(u);
    if (!gate)
        return;
    gate->a = u->a;
    gate->a_row = u->a_row;
    prepare_b(gate);
}

/* Scratch -------------------------------------------------------------------------------------- */

static int64_t columns_of(const gb_gemm *gemm)
{
    return gb_div_up(gemm->blocks.n_block, PANEL) * PANEL;
}

size_t gb_gemm_integer_scratch(const gb_gemm *gemm)
{
    size_t words = (size_t)columns_of(gemm) * 4 + (size_t)gemm->blocks.m_block * 2;
    return gb_align_up(words * sizeof(int32_t), GB_CACHE_LINE);
}

void gb_gemm_integer_start(gb_gemm_item *u, char *scratch)
{
    int64_t columns = columns_of(u->gemm);
    gb_gemm_integers *integers = &u->integers;
    integers->column_sums = (int32_t *)(void *)scratch;
    integers->column_terms = integers->column_sums + columns;
    integers->column_factors = integers->column_terms + columns;
    integers->row_sums = integers->column_factors + columns;
    integers->column_scales = (float *)(void *)(integers->row_sums + u->gemm->blocks.m_block);
    integers->row_scales = integers->column_scales + columns;
}
