/* Attention of quantized values of 8 bits: VNNI groups of Q and of weights times those of K and V. */
#include "kernels/attention/attention_bytes.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "kernels/cpu/step_call.h"

enum { PANEL = GB_GEMM_PANEL };

/* The largest |code - zero point|. */
static int64_t reach_of(const gb_attention_codes *codes)
{
    const gb_dtype_info *type = gb_dtype_get(codes->operand.type);
    int64_t up = (int64_t)type->max - codes->zero_point;
    int64_t down = codes->zero_point - (int64_t)type->lowest;
    return gb_max_i64(up, down);
}

bool gb_attention_bytes_fits(const gb_attention_problem *problem)
{
    const gb_attention_codes *q = &problem->q_codes, *k = &problem->k_codes;
    const gb_attention_codes *v = &problem->v_codes;
    if (!problem->exact || !problem->weight_codes.is_set || !q->is_set || !k->is_set || !v->is_set)
        return false;
    return problem->features > 0 && problem->keys > 0 &&
           reach_of(q) * reach_of(k) <= INT32_MAX / problem->features &&
           UINT8_MAX * reach_of(v) <= INT32_MAX / problem->keys;
}

/* Zero points -------------------------------------------------------------------------------------- */

/* Groups of four bytes have no sign in A, and one in B: others are moved by 128. */
static bool is_moved(const gb_attention_plan *plan, const gb_attention_codes *codes, bool is_a)
{
    return plan->form.vnni_factor == 4 && codes->operand.type == (is_a ? GB_S8 : GB_U8);
}

static int32_t zero_point(const gb_attention_plan *plan, const gb_attention_codes *codes, bool is_a)
{
    int32_t by = is_moved(plan, codes, is_a) ? 128 : 0;
    return codes->zero_point + (is_a ? by : -by);
}

/* Scratch ------------------------------------------------------------------------------------------ */

/* See gb_dot_finish. */
typedef struct columns {
    int32_t *terms, *factors;
    float *scales;
} columns;

typedef struct integers {
    int32_t *query_sums, *weight_sums; /* of the work item's rows */
    columns k, v;
} integers;

static int64_t whole_panels(int64_t n)
{
    return gb_div_up(n, PANEL) * PANEL;
}

static columns columns_at(int32_t *data, int64_t n)
{
    return (columns){data, data + n, (float *)(void *)(data + 2 * n)};
}

static integers integers_of(const gb_attention_item *u)
{
    int64_t rows = u->plan->item_rows, keys = whole_panels(u->plan->key_block);
    int32_t *data = u->integers;
    return (integers){data, data + rows, columns_at(data + 2 * rows, keys),
            columns_at(data + 2 * rows + 3 * keys, whole_panels(u->plan->problem->columns))};
}

gb_scratch gb_attention_bytes_add_scratch(gb_step *step, const gb_attention_plan *plan)
{
    int64_t wide = whole_panels(plan->key_block) + whole_panels(plan->problem->columns);
    return gb_scratch_add(step, gb_attention_bytes(2 * plan->item_rows + 3 * wide));
}

/* Operands ----------------------------------------------------------------------------------------- */

static int64_t words_of(const gb_attention_plan *plan, int64_t terms)
{
    return gb_div_up(terms, plan->form.vnni_factor);
}

static const void *code_at(const gb_attention_item *u, const gb_attention_codes *codes, int64_t row)
{
    return gb_attention_element(
            &u->plan->space, &codes->operand, u->call->buffers, u->position, row);
}

/* Sums of the rows of A. */
static void sum_rows(const gb_attention_plan *plan, const int32_t *words, int64_t row, int64_t rows,
        int64_t terms, bool add, int32_t *sums)
{
    gb_dot_sums call = {.vnni_factor = plan->form.vnni_factor,
            .add = add,
            .words = words,
            .n = rows,
            .stride = row,
            .k = words_of(plan, terms),
            .step = 1,
            .sums = sums};
    plan->kernels->dot_sums(&call);
}

void gb_attention_bytes_load_queries(gb_attention_item *u)
{
    const gb_attention_plan *plan = u->plan;
    const gb_attention_problem *problem = plan->problem;
    const gb_attention_operand *q = &problem->q_codes.operand;
    gb_attention_copy_queries(u, q,
            (gb_dot_copy){.vnni_factor = plan->form.vnni_factor,
                    .is_signed = q->type == GB_S8,
                    .flip = is_moved(plan, &problem->q_codes, true)});
    if (zero_point(plan, &problem->k_codes, false) != 0)
        sum_rows(plan, (const int32_t *)(const void *)u->q, plan->q_row, u->rows, problem->features,
                false, integers_of(u).query_sums);
}

static int64_t panel_of(const gb_attention_plan *plan, int64_t terms)
{
    return (words_of(plan, terms) + 1) * PANEL;
}

static void pack_codes(
        const gb_attention_item *u, const gb_attention_codes *codes, int64_t key, gb_dot_pack pack)
{
    pack.vnni_factor = u->plan->form.vnni_factor;
    pack.is_signed = codes->operand.type == GB_S8;
    pack.flip = is_moved(u->plan, codes, false);
    pack.src = code_at(u, codes, key);
    pack.dst_row = PANEL;
    u->plan->kernels->dot_pack(&pack);
}

/* What follows a product with B, whose columns are packed, of A with the zero point `zero_a`; all of
 * it modulo 2^32. */
static void correct_columns(const gb_attention_plan *plan, const gb_dot_pack *b,
        const gb_attention_codes *codes, int32_t zero_a, float scale, const columns *to)
{
    uint32_t za = (uint32_t)zero_a, zb = (uint32_t)zero_point(plan, codes, false);
    for (int64_t n = 0; zero_a != 0 && n < b->n; n += PANEL) {
        gb_dot_sums sums = {.vnni_factor = plan->form.vnni_factor,
                .is_signed = true,
                .words = b->dst + n / PANEL * b->panel_stride,
                .n = PANEL,
                .stride = 1,
                .k = words_of(plan, b->k),
                .step = PANEL,
                .sums = to->terms + n};
        plan->kernels->dot_sums(&sums);
    }
    for (int64_t n = 0; n < whole_panels(b->n); n++) {
        uint32_t sum = zero_a != 0 ? (uint32_t)to->terms[n] : 0;
        to->terms[n] = (int32_t)(za * ((uint32_t)b->k * zb - sum));
        to->factors[n] = (int32_t)(0 - zb);
        to->scales[n] = scale;
    }
}

void gb_attention_bytes_pack_keys(const gb_attention_item *u, int64_t key, int64_t keys)
{
    const gb_attention_plan *plan = u->plan;
    const gb_attention_codes *q = &plan->problem->q_codes, *k = &plan->problem->k_codes;
    const integers all = integers_of(u);
    const gb_dot_pack pack = {.k = plan->problem->features,
            .n = keys,
            .k_stride = k->operand.col_stride,
            .n_stride = k->operand.row_stride,
            .dst = (int32_t *)(void *)u->k,
            .panel_stride = panel_of(plan, plan->problem->features)};
    pack_codes(u, k, key, pack);
    correct_columns(plan, &pack, k, zero_point(plan, q, true), q->scale * k->scale, &all.k);
}

void gb_attention_bytes_pack_values(const gb_attention_item *u, int64_t key, int64_t keys)
{
    const gb_attention_plan *plan = u->plan;
    const gb_attention_codes *v = &plan->problem->v_codes;
    const integers all = integers_of(u);
    const gb_dot_pack pack = {.k = keys,
            .n = plan->problem->columns,
            .k_stride = v->operand.row_stride,
            .n_stride = v->operand.col_stride,
            .dst = (int32_t *)(void *)u->v,
            .panel_stride = panel_of(plan, plan->key_block)};
    pack_codes(u, v, key, pack);
    correct_columns(plan, &pack, v, 0, plan->problem->weight_codes.scale * v->scale, &all.v);
}

/* Products ----------------------------------------------------------------------------------------- */

/* Finished if there are `by` columns; row_sums: or NULL. */
static void multiply_codes(const gb_attention_plan *plan, gb_dot_tile tile, const int32_t *panels,
        int64_t panel, int64_t rows, int64_t cols, const columns *by, const int32_t *row_sums)
{
    gb_dot_finish finish;
    if (by)
        finish = (gb_dot_finish){.column_terms = by->terms,
                .row_terms = row_sums,
                .column_factors = by->factors,
                .column_scales = by->scales};
    tile.a_offsets = plan->unit_offsets;
    tile.b_offsets = plan->panels;
    tile.finish = by ? &finish : NULL;
    gb_attention_multiply_groups(plan->kernels, &plan->form, tile, panels, panel, rows, cols);
}

bool gb_attention_bytes_multiply_queries(gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention_plan *plan = u->plan;
    const gb_attention_problem *problem = plan->problem;
    const integers all = integers_of(u);
    bool sums = zero_point(plan, &problem->k_codes, false) != 0;
    gb_dot_tile tile = {.a = (const int32_t *)(const void *)u->q + b->row * plan->q_row,
            .a_row = plan->q_row,
            .k = words_of(plan, problem->features),
            .c_out = u->scores,
            .c_out_row = plan->score_row};
    gb_tile_post_ops post_ops;
    bool done = gb_attention_read_score_ops(u, b, &post_ops);
    tile.post_ops = done ? &post_ops : NULL;
    multiply_codes(plan, tile, (const int32_t *)(const void *)u->k,
            panel_of(plan, problem->features), b->rows, b->keys, &all.k,
            sums ? all.query_sums + b->row : NULL);
    return done;
}

/* What `between` rounds the block's weights to takes the place of these, and becomes VNNI groups. */
static void copy_weights(const gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention_plan *plan = u->plan;
    const gb_attention_weight_codes *codes = &plan->problem->weight_codes;
    for (int64_t r = 0; r < b->rows; r++) {
        float *row = u->scores + r * plan->score_row;
        plan->kernels->attention_codes(row, b->keys, b->factor ? b->factor[r] : 1, codes->divisor,
                codes->most, (uint8_t *)(void *)row);
    }
    gb_dot_copy copy = {.vnni_factor = plan->form.vnni_factor,
            .src = u->scores,
            .rows = b->rows,
            .k = b->keys,
            .row_stride = plan->score_row * (int64_t)sizeof(float),
            .k_stride = 1,
            .dst = u->weights,
            .dst_row = plan->weight_row};
    plan->kernels->dot_copy(&copy);
}

void gb_attention_bytes_multiply_weights(const gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention_plan *plan = u->plan;
    const gb_attention_problem *problem = plan->problem;
    const integers all = integers_of(u);
    bool last = b->key + b->keys == problem->keys;
    bool needs_sums = zero_point(plan, &problem->v_codes, false) != 0;
    int32_t *sums = needs_sums ? all.weight_sums + b->row : NULL;
    float *values = u->acc + b->row * plan->acc_row;
    copy_weights(u, b);
    if (sums)
        sum_rows(plan, u->weights, plan->weight_row, b->rows, b->keys, !b->first, sums);
    gb_dot_tile tile = {.a = u->weights,
            .a_row = plan->weight_row,
            .k = words_of(plan, b->keys),
            .c_in = b->first ? NULL : values,
            .c_in_row = plan->acc_row,
            .c_out = values,
            .c_out_row = plan->acc_row};
    multiply_codes(plan, tile, (const int32_t *)(const void *)u->v, panel_of(plan, plan->key_block),
            b->rows, problem->columns, last ? &all.v : NULL, sums);
}
