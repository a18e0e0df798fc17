/* Dequantizing compressed blocks, and products of VNNI groups, against plain formulas on every
 * instruction set. */
#include "base/dtype.h"
#include "isa_case.h"
#include "kernels/gemm/quantized_matrix.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 17, SIDE = 256, GUARD = 77, PANEL = GB_GEMM_PANEL };

static uint64_t random_bits(uint64_t *state)
{
    *state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t x = *state;
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static int64_t below(uint64_t *state, int64_t limit)
{
    return (int64_t)(random_bits(state) % (uint64_t)limit);
}

static void fill_codes(gb_data_type type, uint8_t *bytes, uint64_t *state)
{
    const gb_dtype_info *info = gb_dtype_get(type);
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)random_bits(state);
    for (int64_t i = 0; info->bits > 8 && i < BYTES * 8 / (int64_t)info->bits; i++)
        gb_element_set(type, bytes, i, (double)below(state, 20000) / 16 - 600);
}

static float code_at(gb_data_type type, const uint8_t *bytes, int64_t index)
{
    return (float)gb_element_get(type, bytes, index);
}

static bool same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)) || a == b;
}

/* Dequantizing --------------------------------------------------------------------------------- */

static const gb_data_type types[] = {
        GB_S8, GB_U8, GB_S4, GB_U4, GB_F8_E4M3, GB_F8_E5M2, GB_S32, GB_F32, GB_BF16, GB_F16};
enum { N_TYPES = sizeof types / sizeof *types };

static void choose_strides(gb_dequantize *e, int form, uint64_t *state)
{
    int64_t gap = below(state, 3);
    e->col_stride = form == 0 ? 1 : form == 1 ? e->rows + gap : 3;
    e->row_stride = form == 0 ? e->cols + gap : form == 1 ? 1 : 3 * e->cols + gap;
    e->first = below(state, 7);
}

static void check_dequantized(const gb_dequantize *e, const float *got, const char *what)
{
    int64_t cols = e->panel_stride ? (e->cols + PANEL - 1) / PANEL * PANEL : e->cols;
    for (int64_t r = 0; r < e->rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            int64_t p = e->by_row ? r : c, at = r * e->dst_row + c;
            if (e->panel_stride)
                at = c / PANEL * e->panel_stride + r * e->dst_row + c % PANEL;
            float want = 0;
            if (c < e->cols) {
                want = code_at(e->type, e->codes, e->first + r * e->row_stride + c * e->col_stride);
                want = want - (e->zps ? e->zps[p] : 0);
                want = want * (e->scales ? e->scales[p] : 1);
            }
            cr_assert(same(got[at], want), "%s: (%lld, %lld): %g, expected %g", what, (long long)r,
                    (long long)c, (double)got[at], (double)want);
        }
}

static void try_dequantize(const gb_kernels *kernels, gb_data_type type, int form, uint64_t *state)
{
    static uint8_t codes[BYTES];
    static float dst[BYTES], scales[256], zps[256];
    fill_codes(type, codes, state);
    for (int i = 0; i < 256; i++) {
        scales[i] = (float)(1 + below(state, 64)) / 32;
        zps[i] = (float)(below(state, 19) - 9);
    }
    gb_dequantize e = {.type = type, .codes = codes, .rows = 1 + below(state, 40)};
    e.cols = 1 + below(state, 75);
    choose_strides(&e, form, state);
    e.by_row = below(state, 2);
    e.scales = below(state, 4) ? scales : NULL;
    e.zps = below(state, 2) ? zps : NULL;
    bool panels = below(state, 2);
    e.dst = dst;
    e.dst_row = panels ? PANEL : e.cols + below(state, 4);
    e.panel_stride = panels ? e.rows * PANEL + 5 : 0;
    for (int i = 0; i < BYTES; i++)
        dst[i] = GUARD;
    char what[120];
    snprintf(what, sizeof what, "%s %s form %d, %lld x %lld", gb_isa_name(kernels->isa),
            gb_dtype_get(type)->name, form, (long long)e.rows, (long long)e.cols);
    kernels->dequantize(&e);
    check_dequantized(&e, dst, what);
    for (int64_t r = 0; !panels && r + 1 < e.rows; r++)
        for (int64_t c = e.cols; c < e.dst_row; c++)
            cr_assert_eq(dst[r * e.dst_row + c], GUARD, "%s: written beyond the row", what);
}

ISA_TEST(dequantize, every_type_and_order)
{
    uint64_t state = 1;
    const gb_kernels *kernels = gb_kernels_of(isa);
    for (int i = 0; i < 60 * N_TYPES; i++)
        try_dequantize(kernels, types[i % N_TYPES], i / N_TYPES % 3, &state);
}

static void try_gemv(const gb_kernels *kernels, gb_data_type type, bool along_n, uint64_t *state)
{
    static uint8_t codes[BYTES];
    enum { ENTRIES = 16384 };
    static float x[256], y[1280], scales[ENTRIES], zps[ENTRIES];
    fill_codes(type, codes, state);
    gb_dequantize_gemv g = {.type = type, .codes = codes, .x = x, .y = y};
    bool wide = below(state, 8) == 0;
    g.k = wide ? 1 + below(state, 9) : 1 + below(state, 100);
    g.n = wide ? 1000 + below(state, 250) : 1 + below(state, 75);
    g.first = below(state, 5);
    g.k_stride = along_n ? g.n + below(state, 2) : 1;
    g.n_stride = along_n ? 1 : g.k + below(state, 2);
    g.scales = below(state, 4) ? scales : NULL;
    g.zps = below(state, 2) ? zps : NULL;
    g.add = below(state, 2);
    if (!along_n && below(state, 2)) {
        g.k_group = 1 + below(state, 40);
        g.parameter_row = g.n + below(state, 3);
    }
    for (int i = 0; i < 256; i++)
        x[i] = (float)(below(state, 17) - 8);
    for (int64_t i = 0; i < ENTRIES; i++) {
        scales[i] = (float)(1 + below(state, 8)) / 4;
        zps[i] = (float)(below(state, 19) - 9);
    }
    for (int64_t n = 0; n < g.n; n++)
        y[n] = 3;
    kernels->dequantize_gemv(&g);
    for (int64_t n = 0; n < g.n; n++) {
        double sum = 0, size = 1;
        for (int64_t k = 0; k < g.k; k++) {
            double w = (double)code_at(type, codes, g.first + k * g.k_stride + n * g.n_stride);
            int64_t entry = n + (g.k_group ? k / g.k_group * g.parameter_row : 0);
            double term = (double)x[k] * (w - (g.zps ? (double)zps[entry] : 0)) *
                          (g.scales ? (double)scales[entry] : 1);
            sum += term;
            size += fabs(term);
        }
        double want = sum + (g.add ? 3 : 0);
        cr_assert(!isfinite(want) || fabs((double)y[n] - want) <= size * 1e-5,
                "%s %s k %lld in groups of %lld, n %lld: y[%lld] = %g, expected %g",
                gb_isa_name(kernels->isa), gb_dtype_get(type)->name, (long long)g.k,
                (long long)g.k_group, (long long)g.n, (long long)n, (double)y[n], want);
    }
}

ISA_TEST(dequantize, vector_times_matrix)
{
    uint64_t state = 2;
    const gb_kernels *kernels = gb_kernels_of(isa);
    for (int i = 0; i < 120 * N_TYPES; i++)
        try_gemv(kernels, types[i % N_TYPES], i / N_TYPES % 2, &state);
}

/* ------------------------------------------------------------------------------------- matrices */

typedef struct matrix_case {
    gb_quantized_matrix matrix;
    int64_t rows, cols;
    uint8_t codes[BYTES], zps[BYTES];
    float scales[BYTES];
} matrix_case;

/* Groups along rows and columns, any order of the codes. */
static void make_matrix(matrix_case *c, uint64_t *state)
{
    static const gb_data_type codes[] = {GB_S8, GB_U8, GB_S4, GB_U4, GB_F8_E4M3};
    static const int64_t sizes[] = {1, 2, 3, 8, 32, 64, 128};
    gb_quantized_matrix *m = &c->matrix;
    *m = (gb_quantized_matrix){
            .row_group = sizes[below(state, 7)], .col_group = sizes[below(state, 7)]};
    int64_t row_groups = 1 + below(state, SIDE / m->row_group);
    int64_t col_groups = 1 + below(state, SIDE / m->col_group);
    c->rows = row_groups * m->row_group, c->cols = col_groups * m->col_group;
    bool by_rows = below(state, 2);
    m->codes = (gb_entries){codes[below(state, 5)], c->codes, below(state, 5),
            by_rows ? c->cols : 1, by_rows ? 1 : c->rows};
    if (below(state, 5))
        m->scales = (gb_entries){GB_F32, c->scales, below(state, 3), col_groups, 1};
    if (below(state, 2))
        m->zps = (gb_entries){
                below(state, 2) ? GB_U8 : GB_S4, c->zps, below(state, 3), col_groups, 1};
    if (below(state, 4) == 0)
        m->scales.row_stride = m->zps.row_stride = 0;
    if (below(state, 4) == 0)
        m->scales.col_stride = m->zps.col_stride = 0;
    fill_codes(GB_U8, c->codes, state);
    fill_codes(GB_U8, c->zps, state);
    for (int i = 0; i < BYTES; i++)
        c->scales[i] = (float)(1 + below(state, 64)) / 32;
}

static float entry_at(const gb_entries *e, int64_t row, int64_t col, float otherwise)
{
    return e->type == GB_UNDEF ? otherwise
                               : code_at(e->type, e->data,
                                         e->first + row * e->row_stride + col * e->col_stride);
}

static float number_at(const gb_quantized_matrix *m, int64_t row, int64_t col)
{
    int64_t r = row / m->row_group, c = col / m->col_group;
    float number = entry_at(&m->codes, row, col, 0) - entry_at(&m->zps, r, c, 0);
    return number * entry_at(&m->scales, r, c, 1);
}

static gb_block random_block(const matrix_case *c, uint64_t *state)
{
    gb_block block = {.row = below(state, c->rows), .col = below(state, c->cols)};
    if (below(state, 2))
        block.col = block.col / PANEL * PANEL;
    block.rows = 1 + below(state, c->rows - block.row);
    block.cols = 1 + below(state, c->cols - block.col);
    return block;
}

static void try_matrix(const gb_kernels *kernels, uint64_t *state)
{
    static matrix_case c;
    static float dst[SIDE * SIDE], scratch[2 * (4 * SIDE + 512)], x[SIDE], y[SIDE];
    make_matrix(&c, state);
    gb_block b = random_block(&c, state);
    bool panels = below(state, 2);
    int64_t panel_stride = panels ? b.rows * PANEL : 0, dst_row = panels ? PANEL : SIDE;
    gb_quantized_matrix_dequantize(kernels, &c.matrix, &b, dst, dst_row, panel_stride, scratch);
    for (int64_t i = 0; i < b.rows; i++)
        x[i] = (float)(below(state, 17) - 8);
    gb_quantized_matrix_gemv(kernels, &c.matrix, &b, x, y, scratch);
    for (int64_t j = 0; j < b.cols; j++) {
        double sum = 0, size = 1;
        for (int64_t i = 0; i < b.rows; i++) {
            float want = number_at(&c.matrix, b.row + i, b.col + j);
            float got = panels ? dst[j / PANEL * panel_stride + i * PANEL + j % PANEL]
                               : dst[i * SIDE + j];
            cr_assert(same(got, want), "%s %s groups %lld x %lld: (%lld, %lld) is %g, expected %g",
                    gb_isa_name(kernels->isa), gb_dtype_get(c.matrix.codes.type)->name,
                    (long long)c.matrix.row_group, (long long)c.matrix.col_group, (long long)i,
                    (long long)j, (double)got, (double)want);
            sum += (double)(x[i] * want);
            size += fabs((double)(x[i] * want));
        }
        cr_assert(!isfinite(sum) || fabs((double)y[j] - sum) <= size * 1e-5,
                "%s %s groups %lld x %lld: y[%lld] is %g, expected %g", gb_isa_name(kernels->isa),
                gb_dtype_get(c.matrix.codes.type)->name, (long long)c.matrix.row_group,
                (long long)c.matrix.col_group, (long long)j, (double)y[j], sum);
    }
}

ISA_TEST(dequantize, groups_of_parameters)
{
    uint64_t state = 4;
    const gb_kernels *kernels = gb_kernels_of(isa);
    for (int i = 0; i < 400; i++)
        try_matrix(kernels, &state);
}

/* Integer products ----------------------------------------------------------------------------- */

enum { ROWS = 32, DEPTH_MOST = 300, WORDS = 160, FIRST_ROW = 3 };

typedef struct product {
    const gb_kernels *kernels;
    int depth, rows, cols;
    int64_t k, run;
    bool a_signed, b_signed, a_along_k, b_along_k, row_scaled;
    uint8_t a[ROWS * DEPTH_MOST], b[DEPTH_MOST * PANEL];
    int32_t a_words[ROWS * WORDS], b_words[WORDS * PANEL], sums[ROWS * PANEL];
    float result[ROWS * PANEL];
    int64_t a_offsets[WORDS], b_offsets[WORDS];
    /* Results become quantized values, of a block whose row FIRST_ROW the tile begins with. */
    bool quantizes, has_bias, limits;
    gb_data_type type, added_type; /* GB_UNDEF: nothing is added */
    float bias[PANEL], factor, zero;
    uint8_t added[(FIRST_ROW + ROWS) * PANEL], block[(FIRST_ROW + ROWS) * PANEL];
} product;

static int64_t a_index(const product *p, int64_t m, int64_t k)
{
    return p->a_along_k ? m * p->k + k : k * p->rows + m;
}

static int64_t b_index(const product *p, int64_t k, int64_t n)
{
    return p->b_along_k ? n * p->k + k : k * p->cols + n;
}

static int64_t number(uint8_t code, bool is_signed)
{
    return is_signed ? (int8_t)code : code;
}

static int64_t words_of(const product *p)
{
    return (p->k + p->depth - 1) / p->depth;
}

/* The words of A, rows of them next to each other or columns. */
static void copy_a(product *p)
{
    bool flip = p->depth == 4 && p->a_signed;
    if (p->a_along_k) {
        gb_dot_copy copy = {.vnni_factor = p->depth,
                .is_signed = p->a_signed,
                .flip = flip,
                .src = p->a,
                .rows = p->rows,
                .k = p->k,
                .row_stride = p->k,
                .k_stride = 1,
                .dst = p->a_words,
                .dst_row = WORDS};
        p->kernels->dot_copy(&copy);
        return;
    }
    gb_dot_pack pack = {.vnni_factor = p->depth,
            .is_signed = p->a_signed,
            .flip = flip,
            .src = p->a,
            .k = p->k,
            .n = p->rows,
            .k_stride = p->rows,
            .n_stride = 1,
            .dst = p->a_words,
            .dst_row = ROWS};
    p->kernels->dot_pack(&pack);
}

static void pack_b(product *p)
{
    gb_dot_pack pack = {.vnni_factor = p->depth,
            .is_signed = p->b_signed,
            .flip = p->depth == 4 && !p->b_signed,
            .src = p->b,
            .k = p->k,
            .n = p->cols,
            .k_stride = p->b_along_k ? 1 : p->cols,
            .n_stride = p->b_along_k ? p->k : 1,
            .dst = p->b_words,
            .dst_row = PANEL,
            .panel_stride = WORDS * PANEL};
    p->kernels->dot_pack(&pack);
}

/* What quantizes sums, step by step. */
static const float added_scale = 3.7F;
static const int added_zero = 11;

static gb_tile_post_ops quantize(product *p)
{
    gb_tile_post_ops post_ops = {
            .type = p->type, .bytes = 1, .dst = (char *)p->block, .dst_row = PANEL, .apart = true};
    gb_tile_step step = {.opcode = GB_POINTWISE_ADD, .type = GB_F32, .bytes = 4, .scale = 1.0F};
    gb_tile_step bias = step, added = step, relu = step, factor = step, zero = step;
    bias.other = (const char *)p->bias, bias.other_col = 1;
    added.other = (const char *)p->added, added.type = p->added_type, added.bytes = 1;
    added.other_row = PANEL, added.other_col = 1;
    added.moved = true, added.zero = (float)added_zero, added.scale = added_scale;
    relu.opcode = GB_POINTWISE_RELU;
    factor.opcode = GB_POINTWISE_MUL, factor.other = (const char *)&p->factor;
    zero.other = (const char *)&p->zero;
    if (p->has_bias)
        post_ops.steps[post_ops.n_steps++] = bias;
    if (p->added_type != GB_UNDEF)
        post_ops.steps[post_ops.n_steps++] = added;
    if (p->limits)
        post_ops.steps[post_ops.n_steps++] = relu;
    post_ops.steps[post_ops.n_steps++] = factor;
    if (p->zero != 0)
        post_ops.steps[post_ops.n_steps++] = zero;
    post_ops.codes = gb_tile_find_codes(&post_ops);
    cr_assert(post_ops.codes.fits);
    return post_ops;
}

/* The same of one result. */
static float quantized(const product *p, int m, int n, float x)
{
    const uint8_t code = p->added[(FIRST_ROW + m) * PANEL + n];
    if (p->has_bias)
        x += p->bias[n];
    if (p->added_type != GB_UNDEF)
        x += ((float)number(code, p->added_type == GB_S8) - (float)added_zero) * added_scale;
    if (p->limits)
        x = fmaxf(0, x);
    x = nearbyintf(x * p->factor + p->zero);
    return p->type == GB_S8 ? fminf(fmaxf(x, -128), 127) : fminf(fmaxf(x, 0), 255);
}

/* (A - za) (B - zb) from the products of words, as gb_dot_finish says. */
static void multiply(product *p, int za, int zb)
{
    int32_t terms[PANEL], factors[PANEL], rows[ROWS], columns[PANEL];
    float scales[PANEL], row_scales[ROWS];
    int32_t a_zero = za + (p->depth == 4 && p->a_signed ? 128 : 0);
    int32_t b_zero = zb - (p->depth == 4 && !p->b_signed ? 128 : 0);
    int64_t words = words_of(p), half = words / 2;
    gb_dot_sums of_b = {.vnni_factor = p->depth,
            .is_signed = true,
            .words = p->b_words,
            .n = PANEL,
            .stride = 1,
            .k = words,
            .step = PANEL,
            .sums = columns};
    gb_dot_sums of_a = {.vnni_factor = p->depth,
            .words = p->a_words,
            .n = p->rows,
            .stride = p->a_along_k ? WORDS : 1,
            .k = words,
            .step = p->a_along_k ? 1 : ROWS,
            .sums = rows};
    p->kernels->dot_sums(&of_b);
    p->kernels->dot_sums(&of_a);
    for (int n = 0; n < PANEL; n++) {
        terms[n] = (int32_t)((uint32_t)a_zero *
                             ((uint32_t)p->k * (uint32_t)b_zero - (uint32_t)columns[n]));
        factors[n] = -b_zero;
        scales[n] = 0.5F;
    }
    for (int64_t w = 0; w < words; w++) {
        p->a_offsets[w] = p->a_along_k ? w : w * ROWS;
        p->b_offsets[w] = w * PANEL;
    }
    for (int m = 0; m < ROWS; m++)
        row_scales[m] = ldexpf(1.0F, m % 14);
    gb_dot_finish finish = {terms, rows, factors, scales, p->row_scaled ? row_scales : NULL};
    if (b_zero == 0)
        finish.row_terms = finish.column_factors = NULL;
    gb_dot_tile tile = {.vnni_factor = p->depth,
            .a = p->a_words,
            .b = p->b_words,
            .a_row = p->a_along_k ? WORDS : 1,
            .a_offsets = p->a_offsets,
            .b_offsets = p->b_offsets,
            .k = half,
            .run = p->run,
            .c_out = p->sums,
            .c_out_row = PANEL,
            .rows = p->rows,
            .cols = p->cols};
    p->kernels->dot_tile(&tile);
    tile.a_offsets += half, tile.b_offsets += half, tile.k = words - half;
    tile.c_in = p->sums, tile.c_in_row = PANEL;
    tile.finish = &finish;
    tile.c_out = p->result;
    gb_tile_post_ops post_ops;
    if (p->quantizes) {
        post_ops = quantize(p);
        tile.post_ops = &post_ops, tile.row = FIRST_ROW;
    }
    p->kernels->dot_tile(&tile);
}

static void choose_quantized(product *p, uint64_t *state)
{
    const gb_data_type kinds[] = {GB_UNDEF, GB_S8, GB_U8};
    p->quantizes = below(state, 2), p->has_bias = below(state, 2), p->limits = below(state, 2);
    p->type = below(state, 2) ? GB_S8 : GB_U8, p->added_type = kinds[below(state, 3)];
    p->factor = ldexpf(1.3F, -(int)below(state, 12));
    p->zero = below(state, 2) ? (float)below(state, 50) : 0;
    for (int n = 0; n < PANEL; n++)
        p->bias[n] = (float)below(state, 2000) - 1000.5F;
    for (size_t i = 0; i < sizeof p->added; i++)
        p->added[i] = (uint8_t)random_bits(state);
    memset(p->block, GUARD, sizeof p->block);
}

static void try_product(const gb_kernels *kernels, int depth, uint64_t *state)
{
    static product p;
    gb_dot_form form = kernels->dot_form(false);
    p.kernels = kernels;
    p.depth = depth;
    p.rows = 1 + (int)below(state, form.rows);
    p.cols = 1 + (int)below(state, form.cols);
    p.k = 1 + below(state, DEPTH_MOST - 1);
    p.run = below(state, 2) * (4 + below(state, 8)); /* no matter where they end */
    p.a_signed = below(state, 2), p.b_signed = below(state, 2);
    p.a_along_k = below(state, 2), p.b_along_k = below(state, 2);
    p.row_scaled = below(state, 2);
    choose_quantized(&p, state);
    int za = p.a_signed ? (int)below(state, 256) - 128 : (int)below(state, 256);
    int zb = below(state, 2) ? 0 : (int)below(state, 100);
    if (p.quantizes && below(state, 2)) { /* the form that has a loop of its own */
        p.cols = form.cols;
        p.row_scaled = false, p.b_signed = true, zb = 0;
    }
    bool extreme = below(state, 4) == 0;
    for (size_t i = 0; i < sizeof p.a; i++)
        p.a[i] = extreme ? (uint8_t)(below(state, 2) ? 0x80 : 0xFF) : (uint8_t)random_bits(state);
    for (size_t i = 0; i < sizeof p.b; i++)
        p.b[i] = extreme ? (uint8_t)(below(state, 2) ? 0x80 : 0x7F) : (uint8_t)random_bits(state);
    memset(p.a_words, GUARD, sizeof p.a_words);
    memset(p.b_words, GUARD, sizeof p.b_words);
    memset(p.sums, 0, sizeof p.sums);
    for (int i = 0; i < ROWS * PANEL; i++)
        p.result[i] = GUARD;
    copy_a(&p);
    pack_b(&p);
    multiply(&p, za, zb);
    for (int m = 0; m < p.rows; m++)
        for (int n = 0; n < PANEL; n++) {
            int64_t sum = 0;
            for (int64_t k = 0; n < p.cols && k < p.k; k++)
                sum += (number(p.a[a_index(&p, m, k)], p.a_signed) - za) *
                       (number(p.b[b_index(&p, k, n)], p.b_signed) - zb);
            float scale = p.row_scaled ? ldexpf(0.5F, m % 14) : 0.5F;
            float want = n < p.cols ? (float)sum * scale : (float)GUARD;
            float got = p.result[m * PANEL + n];
            if (p.quantizes) {
                got = (float)number(p.block[(FIRST_ROW + m) * PANEL + n], p.type == GB_S8);
                want = n < p.cols ? quantized(&p, m, n, want) : (float)number(GUARD, true);
            }
            cr_assert_eq(got, want,
                    "%s depth %d, %d x %d x %lld, signs %d %d, order %d %d: (%d, %d) is %.9g, "
                    "expected %.9g",
                    gb_isa_name(kernels->isa), depth, p.rows, p.cols, (long long)p.k, p.a_signed,
                    p.b_signed, p.a_along_k, p.b_along_k, m, n, (double)p.result[m * PANEL + n],
                    (double)want);
        }
}

ISA_TEST(dequantize, integer_products_of_pairs_are_exact)
{
    uint64_t state = 3;
    for (int i = 0; i < 400; i++)
        try_product(gb_kernels_of(isa), 2, &state);
}

ISA_TEST(dequantize, integer_products_of_four_are_exact)
{
    uint64_t state = 5;
    if (gb_kernels_of(isa)->dot_form(false).vnni_factor != 4)
        cr_skip_test("%s on this machine has no VNNI", gb_isa_name(isa));
    for (int i = 0; i < 400; i++)
        try_product(gb_kernels_of(isa), 4, &state);
}

/* Products of bf16 ----------------------------------------------------------------------------- */

typedef struct bf16_product {
    const gb_kernels *kernels;
    int rows, cols;
    int64_t k, run;
    int a_order, b_order; /* K next to each other, rows or columns, neither */
    uint16_t a[2 * ROWS * DEPTH_MOST], b[2 * DEPTH_MOST * PANEL];
    int32_t a_words[ROWS * WORDS], b_words[WORDS * PANEL];
    float sums[ROWS * PANEL], result[ROWS * PANEL];
    int64_t a_offsets[WORDS], b_offsets[WORDS];
    bool adds; /* post-ops: others are added, a block whose row FIRST_ROW the tile begins with ... */
    gb_data_type type; /* ... and results become bf16 or stay f32 */
    float others[(FIRST_ROW + ROWS) * PANEL], block[(FIRST_ROW + ROWS) * PANEL];
} bf16_product;

/* Strides along rows or columns, and along K. */
static void strides_of(int order, int64_t k, int64_t count, int64_t strides[2])
{
    strides[0] = order == 0 ? k : order == 1 ? 1 : 2;
    strides[1] = order == 0 ? 1 : order == 1 ? count : 2 * count;
}

static float bf16_at(const uint16_t *values, int64_t index)
{
    return (float)gb_element_get(GB_BF16, values, index);
}

/* The last tile of K adds others, and its results go to the block. */
static gb_tile_post_ops add_others(bf16_product *p)
{
    const int64_t elements = (FIRST_ROW + ROWS) * PANEL;
    for (int64_t i = 0; i < elements; i++)
        p->others[i] = (float)(i % 37);
    for (int64_t i = 0; i < elements; i++)
        gb_element_set(p->type, p->block, i, GUARD);
    return (gb_tile_post_ops){.n_steps = 1,
            .steps = {{.opcode = GB_POINTWISE_ADD,
                    .other = (const char *)p->others,
                    .type = GB_F32,
                    .bytes = sizeof(float),
                    .other_row = PANEL,
                    .other_col = 1,
                    .scale = 1.0F}},
            .type = p->type,
            .bytes = p->type == GB_BF16 ? 2 : 4,
            .dst = (char *)p->block,
            .dst_row = PANEL,
            .apart = true};
}

static float added(const bf16_product *p, int m, int n, float sum)
{
    float rounded[1];
    gb_element_set(p->type, rounded, 0, (double)(sum + p->others[(FIRST_ROW + m) * PANEL + n]));
    return (float)gb_element_get(p->type, rounded, 0);
}

/* Sums of small whole numbers are exact. What lies behind K and between the words is NaN. */
static void try_bf16(const gb_kernels *kernels, uint64_t *state)
{
    static bf16_product p;
    gb_dot_form form = kernels->dot_form(true);
    p.rows = 1 + (int)below(state, form.rows), p.cols = 1 + (int)below(state, form.cols);
    p.k = 1 + below(state, DEPTH_MOST - 1);
    p.run = below(state, 3) * (4 + below(state, 40)); /* no matter where they end */
    p.a_order = (int)below(state, 3), p.b_order = (int)below(state, 3);
    p.adds = below(state, 2), p.type = below(state, 2) ? GB_BF16 : GB_F32;
    int64_t a_strides[2], b_strides[2], words = (p.k + 1) / 2, half = words / 2;
    strides_of(p.a_order, p.k, p.rows, a_strides);
    strides_of(p.b_order, p.k, p.cols, b_strides);
    for (size_t i = 0; i < sizeof p.a / sizeof *p.a; i++)
        gb_element_set(GB_BF16, p.a, (int64_t)i, (double)below(state, 17) - 8);
    for (size_t i = 0; i < sizeof p.b / sizeof *p.b; i++)
        gb_element_set(GB_BF16, p.b, (int64_t)i, (double)below(state, 17) - 8);
    memset(p.a_words, 0xFF, sizeof p.a_words);
    memset(p.b_words, 0xFF, sizeof p.b_words);
    for (int i = 0; i < ROWS * PANEL; i++)
        p.result[i] = p.sums[i] = GUARD;
    gb_dot_copy copy = {.vnni_factor = 2,
            .floats = true,
            .src = p.a,
            .rows = p.rows,
            .k = p.k,
            .row_stride = a_strides[0],
            .k_stride = a_strides[1],
            .dst = p.a_words,
            .dst_row = WORDS};
    gb_dot_pack pack = {.vnni_factor = 2,
            .floats = true,
            .src = p.b,
            .k = p.k,
            .n = p.cols,
            .k_stride = b_strides[1],
            .n_stride = b_strides[0],
            .dst = p.b_words,
            .dst_row = PANEL,
            .panel_stride = WORDS * PANEL};
    kernels->dot_copy(&copy);
    kernels->dot_pack(&pack);
    for (int64_t w = 0; w < words; w++)
        p.a_offsets[w] = w, p.b_offsets[w] = w * PANEL;
    gb_dot_tile tile = {.vnni_factor = 2,
            .floats = true,
            .a = p.a_words,
            .b = p.b_words,
            .a_row = WORDS,
            .a_offsets = p.a_offsets,
            .b_offsets = p.b_offsets,
            .k = half,
            .run = p.run,
            .c_out = p.sums,
            .c_out_row = PANEL,
            .rows = p.rows,
            .cols = PANEL};
    if (below(state, 2))
        kernels->dot_begin();
    kernels->dot_tile(&tile);
    tile.a_offsets += half, tile.b_offsets += half, tile.k = words - half;
    tile.c_in = p.sums, tile.c_in_row = PANEL;
    tile.c_out = p.result;
    tile.cols = p.cols;
    gb_tile_post_ops post_ops = add_others(&p);
    if (p.adds)
        tile.post_ops = &post_ops, tile.row = FIRST_ROW;
    kernels->dot_tile(&tile);
    kernels->dot_end();
    for (int m = 0; m < ROWS; m++)
        for (int n = 0; n < PANEL; n++) {
            bool inside = m < p.rows && n < p.cols;
            float want = inside ? 0 : GUARD, got = p.result[m * PANEL + n];
            if (p.adds)
                got = (float)gb_element_get(p.type, p.block, (FIRST_ROW + m) * PANEL + n);
            for (int64_t k = 0; inside && k < p.k; k++)
                want += bf16_at(p.a, m * a_strides[0] + k * a_strides[1]) *
                        bf16_at(p.b, n * b_strides[0] + k * b_strides[1]);
            if (inside && p.adds)
                want = added(&p, m, n, want);
            cr_assert_eq(got, want,
                    "%s %d x %d x %lld, runs of %lld, orders %d %d: (%d, %d) is %g, expected %g",
                    gb_isa_name(kernels->isa), p.rows, p.cols, (long long)p.k, (long long)p.run,
                    p.a_order, p.b_order, m, n, (double)got, (double)want);
        }
}

ISA_TEST(dequantize, products_of_bf16_are_those_of_numbers)
{
    uint64_t state = 6;
    if (gb_kernels_of(isa)->dot_form(true).vnni_factor == 0)
        cr_skip_test("%s on this machine multiplies bf16 as f32", gb_isa_name(isa));
    for (int i = 0; i < 600; i++)
        try_bf16(gb_kernels_of(isa), &state);
}

#if defined(__x86_64__)
/* dot_amx.c with emulated tiles (amx_emulated.h). */
extern gb_dot_tile_fn gb_dot_tile_emulated;
extern gb_dot_form_fn gb_dot_form_emulated;
extern gb_dot_begin_fn gb_dot_begin_emulated;
extern gb_dot_end_fn gb_dot_end_emulated;

static gb_kernels emulated_kernels(void)
{
    isa_case_begin(GB_ISA_AVX512);
    gb_kernels kernels = *gb_kernels_of(GB_ISA_AVX512);
    kernels.dot_tile = gb_dot_tile_emulated;
    kernels.dot_form = gb_dot_form_emulated;
    kernels.dot_begin = gb_dot_begin_emulated;
    kernels.dot_end = gb_dot_end_emulated;
    return kernels;
}

Test(dequantize, integers_in_emulated_tiles)
{
    uint64_t state = 7;
    gb_kernels kernels = emulated_kernels();
    if (!gb_cpu_has_dot())
        cr_skip_test("short runs of integers need VNNI, which this machine does not have");
    for (int i = 0; i < 200; i++)
        try_product(&kernels, 4, &state);
}

Test(dequantize, bf16_in_emulated_tiles)
{
    uint64_t state = 8;
    gb_kernels kernels = emulated_kernels();
    if (!gb_cpu_has_dot_bf16())
        cr_skip_test("short runs of bf16 need AVX512_BF16, which this machine does not have");
    for (int i = 0; i < 200; i++)
        try_bf16(&kernels, &state);
}
#endif
