/* Blocks of keys: K and V brought into the form that products read, and the two products. */
#include "kernels/attention/attention_bytes.h"

#include "base/memory.h"
#include "kernels/cpu/step_call.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL };

/* Key `key` of K or V: in memory, or in the dense block that its source has made. */
static const char *key_at(
        const gb_attention_item *u, const gb_attention_matrix *matrix, int64_t key)
{
    if (!matrix->operand->source)
        return gb_attention_element(
                &u->plan->space, matrix->operand, u->call->buffers, u->position, key);
    const float *dense = gb_scratch_get(u->call, matrix->dense);
    return (const char *)(dense + (key - u->dense_key) * matrix->row_stride);
}

static void dequantize(
        const gb_attention_item *u, const gb_attention_matrix *matrix, int64_t key, int64_t keys)
{
    const gb_attention_source *source = matrix->operand->source;
    if (!source || u->plan->products == GB_ATTENTION_BYTES)
        return;
    gb_attention_dequantization dequantization = {.source = source,
            .buffers = u->call->buffers,
            .position = u->position,
            .n_batch = u->plan->problem->n_batch,
            .key = key,
            .keys = keys,
            .dst = gb_scratch_get(u->call, matrix->dense),
            .dst_row = source->along_rows ? matrix->col_stride : matrix->row_stride,
            .registers = u->registers};
    gb_attention_dequantize(u->plan->kernels, &dequantization);
}

/* Panels --------------------------------------------------------------------------------------- */

static int64_t k_panel(const gb_attention_plan *plan)
{
    return (plan->problem->features + 1) * PANEL;
}
static int64_t v_panel(const gb_attention_plan *plan)
{
    return (plan->key_block + 1) * PANEL;
}

static void pack_keys(const gb_attention_item *u, int64_t key, int64_t keys)
{
    const gb_attention_plan *plan = u->plan;
    gb_gemm_pack pack = {.type = plan->k.type,
            .src = key_at(u, &plan->k, key),
            .k = plan->problem->features,
            .n = keys,
            .k_stride = plan->k.col_stride,
            .n_stride = plan->k.row_stride,
            .dst = u->k,
            .panel_stride = k_panel(plan)};
    plan->kernels->gemm_pack(&pack);
    if (!plan->q_in_place || !plan->problem->scale.is_set)
        return;
    /* Scores are as good of scaled keys as of scaled queries. */
    const float scale = gb_attention_scale(u);
    gb_attention_blend scaled = {.rows = 1, .cols = pack.k * PANEL, .a = &scale};
    for (int64_t panel = 0; panel < gb_div_up(keys, PANEL); panel++) {
        scaled.x = scaled.dst = u->k + panel * pack.panel_stride;
        plan->kernels->attention_blend(&scaled);
    }
}

static void pack_values(const gb_attention_item *u, int64_t key, int64_t keys)
{
    const gb_attention_plan *plan = u->plan;
    gb_gemm_pack pack = {.type = plan->v.type,
            .src = key_at(u, &plan->v, key),
            .k = keys,
            .n = plan->problem->columns,
            .k_stride = plan->v.row_stride,
            .n_stride = plan->v.col_stride,
            .dst = u->v,
            .panel_stride = v_panel(plan)};
    plan->kernels->gemm_pack(&pack);
}

static bool multiply_queries_panels(gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention_plan *plan = u->plan;
    gb_gemm_tile tile = {.a = u->q + b->row * plan->q_row,
            .a_row = plan->q_row,
            .a_offsets = plan->unit_offsets,
            .b_offsets = plan->panels,
            .k = plan->problem->features,
            .c_out = u->scores,
            .c_out_row = plan->score_row};
    if (plan->q_in_place) {
        const gb_attention_operand *q = &plan->problem->q;
        tile.a = (const float *)(const void *)gb_attention_element(
                &plan->space, q, u->call->buffers, u->position, u->first_row + b->row);
        tile.a_row = q->row_stride;
    }
    const float *panels = u->k + (b->key - b->packed_key) / PANEL * k_panel(plan);
    gb_attention_multiply(plan->kernels, tile, panels, k_panel(plan), b->rows, b->keys);
    return false;
}

static void multiply_weights_panels(const gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention_plan *plan = u->plan;
    float *sums = u->acc + b->row * plan->acc_row;
    gb_gemm_tile tile = {.a = u->scores,
            .a_row = plan->score_row,
            .a_offsets = plan->unit_offsets,
            .b_offsets = plan->panels,
            .k = b->keys,
            .c_in = b->first ? NULL : sums,
            .c_in_row = plan->acc_row,
            .c_out = sums,
            .c_out_row = plan->acc_row,
            .post_ops = b->results};
    const float *panels = u->v + (b->key - b->packed_key) * PANEL;
    gb_attention_multiply(
            plan->kernels, tile, panels, v_panel(plan), b->rows, plan->problem->columns);
}

/* VNNI groups ---------------------------------------------------------------------------------- */

static int64_t k_groups(const gb_attention_plan *plan)
{
    return gb_div_up(plan->problem->features, 2);
}
static int64_t k_groups_panel(const gb_attention_plan *plan)
{
    return (k_groups(plan) + 1) * PANEL;
}
static int64_t v_groups_panel(const gb_attention_plan *plan)
{
    return (plan->key_block / 2 + 1) * PANEL;
}

static void pack_groups(const gb_attention_item *u, const gb_attention_matrix *matrix, int64_t key,
        gb_dot_pack pack)
{
    pack.vnni_factor = 2;
    pack.floats = true;
    pack.src = key_at(u, matrix, key);
    pack.dst_row = PANEL;
    u->plan->kernels->dot_pack(&pack);
}

static void pack_keys_bf16(const gb_attention_item *u, int64_t key, int64_t keys)
{
    const gb_attention_plan *plan = u->plan;
    pack_groups(u, &plan->k, key,
            (gb_dot_pack){.k = plan->problem->features,
                    .n = keys,
                    .k_stride = plan->k.col_stride,
                    .n_stride = plan->k.row_stride,
                    .dst = (int32_t *)(void *)u->k,
                    .panel_stride = k_groups_panel(plan)});
}

static void pack_values_bf16(const gb_attention_item *u, int64_t key, int64_t keys)
{
    const gb_attention_plan *plan = u->plan;
    pack_groups(u, &plan->v, key,
            (gb_dot_pack){.k = keys,
                    .n = plan->problem->columns,
                    .k_stride = plan->v.row_stride,
                    .n_stride = plan->v.col_stride,
                    .dst = (int32_t *)(void *)u->v,
                    .panel_stride = v_groups_panel(plan)});
}

/* Q is not scaled, its products are. */
static bool multiply_queries_bf16(gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention_plan *plan = u->plan;
    const int32_t *q = (const int32_t *)(const void *)(u->q + b->row * plan->q_row);
    const int32_t *panels = (const int32_t *)(const void *)u->k +
                            (b->key - b->packed_key) / PANEL * k_groups_panel(plan);
    gb_dot_tile tile = {.floats = true,
            .a = q,
            .a_row = plan->q_row,
            .a_offsets = plan->unit_offsets,
            .b_offsets = plan->panels,
            .k = k_groups(plan),
            .c_out = u->scores,
            .c_out_row = plan->score_row};
    float scale = gb_attention_scale(u);
    gb_tile_post_ops post_ops;
    bool done = gb_attention_read_score_ops(u, b, &post_ops);
    if (plan->problem->scale.is_set)
        gb_attention_put_in_front(&post_ops, &scale, 0);
    tile.post_ops = post_ops.n_steps > 0 ? &post_ops : NULL;
    gb_attention_multiply_groups(
            plan->kernels, &plan->form, tile, panels, k_groups_panel(plan), b->rows, b->keys);
    return done;
}

/* Weights that sum to 1 are rounded to bf16, as the graph says. Others are sums of two bf16, of which
 * the second is as far behind the first as half of a row: rounded relative to a maximum they would
 * become other numbers. */
static void multiply_weights_bf16(const gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention_plan *plan = u->plan;
    const bool twice = plan->softmax == GB_ATTENTION_ONLINE;
    const int64_t low = plan->weight_row / 2;
    float *sums = u->acc + b->row * plan->acc_row;
    for (int64_t r = 0; r < b->rows; r++) {
        int32_t *groups = u->weights + r * plan->weight_row;
        groups[b->keys / 2] = groups[low + b->keys / 2] = 0; /* the last one may be half full */
        const float *scores = u->scores + r * plan->score_row;
        uint16_t *high = (uint16_t *)(void *)groups;
        if (twice)
            plan->kernels->attention_split(
                    scores, b->keys, high, (uint16_t *)(void *)(groups + low));
        else
            plan->kernels->attention_round(scores, b->keys, b->factor ? b->factor[r] : 1, high);
    }
    gb_dot_tile tile = {.floats = true,
            .a = u->weights,
            .a_row = plan->weight_row,
            .a_offsets = plan->unit_offsets,
            .b_offsets = plan->panels,
            .k = gb_div_up(b->keys, 2),
            .c_in = b->first ? NULL : sums,
            .c_in_row = plan->acc_row,
            .c_out = sums,
            .c_out_row = plan->acc_row};
    const int32_t *panels =
            (const int32_t *)(const void *)u->v + (b->key - b->packed_key) / 2 * PANEL;
    gb_attention_multiply_groups(plan->kernels, &plan->form, tile, panels, v_groups_panel(plan),
            b->rows, plan->problem->columns);
    if (!twice)
        return;
    tile.a += low;
    tile.c_in = sums;
    gb_attention_multiply_groups(plan->kernels, &plan->form, tile, panels, v_groups_panel(plan),
            b->rows, plan->problem->columns);
}

/* Vectors -------------------------------------------------------------------------------------- */

static void leave_in_place(const gb_attention_item *u, int64_t key, int64_t keys)
{
    (void)u, (void)key, (void)keys;
}

static bool multiply_queries_vectors(gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention_plan *plan = u->plan;
    for (int64_t r = 0; r < b->rows; r++) {
        gb_gemv gemv = {.type = plan->k.type,
                .w = key_at(u, &plan->k, b->key),
                .x = u->q + (b->row + r) * plan->q_row,
                .y = u->scores + r * plan->score_row,
                .k = plan->problem->features,
                .k_stride = plan->k.col_stride,
                .n = b->keys,
                .n_stride = plan->k.row_stride};
        plan->kernels->gemv(&gemv);
    }
    return false;
}

static void multiply_weights_vectors(const gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention_plan *plan = u->plan;
    int64_t columns = plan->problem->columns;
    for (int64_t r = 0; r < b->rows; r++) {
        float *sums = u->acc + (b->row + r) * plan->acc_row;
        gb_gemv gemv = {.type = plan->v.type,
                .w = key_at(u, &plan->v, b->key),
                .x = u->scores + r * plan->score_row,
                .y = b->first ? sums : u->product,
                .k = b->keys,
                .k_stride = plan->v.row_stride,
                .n = columns,
                .n_stride = plan->v.col_stride};
        plan->kernels->gemv(&gemv);
        gb_attention_blend blend = {
                .rows = 1, .cols = columns, .dst = sums, .x = sums, .y = u->product};
        if (!b->first)
            plan->kernels->attention_blend(&blend);
    }
}

/* What a plan's products do. */
static const struct {
    void (*pack_keys)(const gb_attention_item *u, int64_t key, int64_t keys);
    void (*pack_values)(const gb_attention_item *u, int64_t key, int64_t keys);
    bool (*multiply_queries)(gb_attention_item *u, const gb_attention_block *b);
    void (*multiply_weights)(const gb_attention_item *u, const gb_attention_block *b);
} products[] = {
        [GB_ATTENTION_PANELS] = {pack_keys, pack_values, multiply_queries_panels,
                multiply_weights_panels},
        [GB_ATTENTION_BF16] = {pack_keys_bf16, pack_values_bf16, multiply_queries_bf16,
                multiply_weights_bf16},
        [GB_ATTENTION_BYTES] = {gb_attention_bytes_pack_keys, gb_attention_bytes_pack_values,
                gb_attention_bytes_multiply_queries, gb_attention_bytes_multiply_weights},
        [GB_ATTENTION_VECTORS] = {leave_in_place, leave_in_place, multiply_queries_vectors,
                multiply_weights_vectors},
};

void gb_attention_pack(gb_attention_item *u, int64_t key, int64_t keys, bool values)
{
    const gb_attention_plan *plan = u->plan;
    u->dense_key = key;
    dequantize(u, &plan->k, key, keys);
    products[plan->products].pack_keys(u, key, keys);
    if (!values)
        return;
    dequantize(u, &plan->v, key, keys);
    products[plan->products].pack_values(u, key, keys);
}

bool gb_attention_multiply_queries(gb_attention_item *u, const gb_attention_block *b)
{
    return products[u->plan->products].multiply_queries(u, b);
}

void gb_attention_multiply_weights(const gb_attention_item *u, const gb_attention_block *b)
{
    products[u->plan->products].multiply_weights(u, b);
}
