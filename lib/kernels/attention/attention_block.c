/* Blocks of attention: rows, keys and values in scratch, products, and post-ops between them. */
#include "kernels/attention/attention_item.h"

#include "base/memory.h"
#include "kernels/cpu/step_call.h"
#include "kernels/plan/space.h"

#include <math.h>

enum { PANEL = GB_GEMM_PANEL };

static int64_t next_run(gb_attention_item *u, int64_t row, int64_t rows)
{
    return gb_attention_locate(&u->plan->space, u->first_row + row, rows, u->position);
}

/* Q of the work item from quantized values: rows along the queries at once, others one by one. */
static void dequantize_queries(gb_attention_item *u)
{
    const gb_attention *plan = u->plan;
    int dim = gb_attention_run_dim(&plan->space), along = plan->n_batch;
    gb_attention_dequantization dequantization = {.source = &plan->query_source,
            .buffers = u->call->buffers,
            .position = u->position,
            .n_batch = plan->n_batch,
            .dst_row = plan->q_row,
            .registers = u->registers};
    for (int64_t row = 0; row < u->rows; row += dequantization.keys) {
        int64_t n = next_run(u, row, u->rows - row);
        dequantization.key = dim == along ? u->position[along] : 0;
        dequantization.keys = dim == along ? n : 1;
        dequantization.dst = u->q + row * plan->q_row;
        gb_attention_dequantize(plan->kernels, &dequantization);
    }
}

void gb_attention_scale_rows(const gb_attention_item *u, int64_t row, int64_t rows, float *data,
        int64_t row_stride, int64_t cols)
{
    gb_attention_blend blend = {.rows = rows,
            .cols = cols,
            .dst = data,
            .x = data,
            .dst_stride = row_stride,
            .x_stride = row_stride,
            .a = u->factor + row};
    u->plan->kernels->attention_blend(&blend);
}

void gb_attention_load_queries(gb_attention_item *u)
{
    const gb_attention *plan = u->plan;
    if (plan->query_source.is_set)
        dequantize_queries(u);
    else
        gb_attention_load(plan->kernels, &plan->space, &plan->q, u->call->buffers, u->position,
                u->first_row, u->rows, plan->features, u->q, plan->q_row);
    if (!plan->scale.is_set)
        return;
    float scale = gb_attention_read(u->call, &plan->scale);
    for (int64_t r = 0; r < u->rows; r++)
        u->factor[r] = plan->divide_by_scale ? 1 / scale : scale;
    gb_attention_scale_rows(u, 0, u->rows, u->q, plan->q_row, plan->features);
}

void gb_attention_set_factors(gb_attention_item *u, int64_t row, int64_t rows)
{
    float empty = u->plan->inf_as_zero ? 0 : NAN;
    for (int64_t r = row; r < row + rows; r++)
        u->factor[r] = u->sum[r] == 0 ? empty : 1 / u->sum[r];
}

void gb_attention_store_stats(gb_attention_item *u)
{
    const gb_attention *plan = u->plan;
    float *stats = u->call->buffers[plan->stats_slot];
    for (int64_t r = 0; r < u->rows; r++) {
        next_run(u, r, 1);
        float value = u->max[r] + logf(u->sum[r]);
        if (u->sum[r] == 0)
            value = plan->inf_as_zero ? 0 : NAN;
        stats[gb_offset(plan->n_batch + 1, plan->stats_strides, u->position)] = value;
    }
}

/* Key `key` of K or V: as it lies, or in the dense block that its source made. */
static const char *key_at(const gb_attention_item *u, bool values, int64_t key)
{
    const gb_attention *plan = u->plan;
    const gb_attention_operand *operand = values ? &plan->v : &plan->k;
    const float *dense = values ? u->dense_v : u->dense_k;
    if ((values ? &plan->value_source : &plan->key_source)->is_set)
        return (const char *)(dense + (key - u->dense_key) * operand->row_stride);
    return gb_attention_element(&plan->space, operand, u->call->buffers, u->position, key);
}

static void dequantize(const gb_attention_item *u, bool values, int64_t key, int64_t keys)
{
    const gb_attention *plan = u->plan;
    const gb_attention_operand *operand = values ? &plan->v : &plan->k;
    gb_attention_dequantization dequantization = {
            .source = values ? &plan->value_source : &plan->key_source,
            .buffers = u->call->buffers,
            .position = u->position,
            .n_batch = plan->n_batch,
            .key = key,
            .keys = keys,
            .dst = values ? u->dense_v : u->dense_k,
            .registers = u->registers};
    dequantization.dst_row =
            dequantization.source->along_rows ? operand->col_stride : operand->row_stride;
    if (dequantization.source->is_set)
        gb_attention_dequantize(plan->kernels, &dequantization);
}

gb_attention_tiling gb_attention_tiling_of(
        gb_attention_item *u, const gb_pointwise_program *pointwise)
{
    const gb_attention *plan = u->plan;
    return (gb_attention_tiling){.kernels = plan->kernels,
            .buffers = u->call->buffers,
            .space = &plan->space,
            .pointwise = pointwise,
            .position = u->position,
            .registers = u->registers};
}

void gb_attention_run_score_ops(gb_attention_item *u, const gb_attention_block *b,
        const gb_attention_program *program, int64_t first, int64_t end)
{
    if (program->is_empty || first >= end)
        return;
    gb_attention_tiling t = gb_attention_tiling_of(u, &program->pointwise);
    t.first_row = u->first_row + b->row;
    t.rows = b->rows;
    t.first_col = b->key + first;
    t.cols = end - first;
    for (int i = 0; i < 2; i++) {
        t.scratch_operands[i].data = u->scores + first;
        t.scratch_operands[i].row_stride = u->plan->score_row;
    }
    gb_attention_run_tiles(&t);
}

static int64_t k_panel(const gb_attention *plan)
{
    return (plan->features + 1) * PANEL;
}
static int64_t v_panel(const gb_attention *plan)
{
    return (plan->key_block + 1) * PANEL;
}

static void pack_keys(const gb_attention_item *u, int64_t key, int64_t keys)
{
    const gb_attention *plan = u->plan;
    gb_gemm_pack pack = {.type = plan->k.type,
            .src = key_at(u, false, key),
            .k = plan->features,
            .n = keys,
            .k_stride = plan->k.col_stride,
            .n_stride = plan->k.row_stride,
            .dst = u->k,
            .panel_stride = k_panel(plan)};
    plan->kernels->gemm_pack(&pack);
}

static void pack_values(const gb_attention_item *u, int64_t key, int64_t keys)
{
    const gb_attention *plan = u->plan;
    gb_gemm_pack pack = {.type = plan->v.type,
            .src = key_at(u, true, key),
            .k = keys,
            .n = plan->columns,
            .k_stride = plan->v.row_stride,
            .n_stride = plan->v.col_stride,
            .dst = u->v,
            .panel_stride = v_panel(plan)};
    plan->kernels->gemm_pack(&pack);
}

void gb_attention_pack(gb_attention_item *u, int64_t key, int64_t keys, bool values)
{
    u->dense_key = key;
    dequantize(u, false, key, keys);
    if (values)
        dequantize(u, true, key, keys);
    if (u->plan->by_vectors)
        return;
    pack_keys(u, key, keys);
    if (values)
        pack_values(u, key, keys);
}

static void multiply_vectors(const gb_attention_item *u, const gb_attention_operand *operand,
        const gb_attention_block *b, int64_t row, bool by_keys, float *y)
{
    const gb_attention *plan = u->plan;
    gb_gemv gemv = {.type = operand->type, .w = key_at(u, !by_keys, b->key), .y = y};
    if (by_keys) {
        gemv.k = plan->features, gemv.k_stride = operand->col_stride;
        gemv.n = b->keys, gemv.n_stride = operand->row_stride;
        gemv.x = u->q + (b->row + row) * plan->q_row;
    } else {
        gemv.k = b->keys, gemv.k_stride = operand->row_stride;
        gemv.n = plan->columns, gemv.n_stride = operand->col_stride;
        gemv.x = u->scores + row * plan->score_row;
    }
    plan->kernels->gemv(&gemv);
}

void gb_attention_multiply_queries(const gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention *plan = u->plan;
    for (int64_t r = 0; plan->by_vectors && r < b->rows; r++)
        multiply_vectors(u, &plan->k, b, r, true, u->scores + r * plan->score_row);
    if (plan->by_vectors)
        return;
    gb_gemm_tile tile = {.a = u->q + b->row * plan->q_row,
            .a_row = plan->q_row,
            .a_offsets = plan->unit_offsets,
            .b_offsets = plan->panels,
            .k = plan->features,
            .c_out = u->scores,
            .c_out_row = plan->score_row};
    const float *panels = u->k + (b->key - b->packed_key) / PANEL * k_panel(plan);
    gb_attention_multiply(plan->kernels, tile, panels, k_panel(plan), b->rows, b->keys);
}

static void add_vectors(const gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention *plan = u->plan;
    for (int64_t r = 0; r < b->rows; r++) {
        float *sums = u->acc + (b->row + r) * plan->acc_row;
        multiply_vectors(u, &plan->v, b, r, false, b->first ? sums : u->product);
        gb_attention_blend blend = {
                .rows = 1, .cols = plan->columns, .dst = sums, .x = sums, .y = u->product};
        if (!b->first)
            plan->kernels->attention_blend(&blend);
    }
}

void gb_attention_multiply_weights(const gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention *plan = u->plan;
    if (plan->by_vectors) {
        add_vectors(u, b);
        return;
    }
    float *sums = u->acc + b->row * plan->acc_row;
    gb_gemm_tile tile = {.a = u->scores,
            .a_row = plan->score_row,
            .a_offsets = plan->unit_offsets,
            .b_offsets = plan->panels,
            .k = b->keys,
            .c_in = b->first ? NULL : sums,
            .c_in_row = plan->acc_row,
            .c_out = sums,
            .c_out_row = plan->acc_row};
    const float *panels = u->v + (b->key - b->packed_key) * PANEL;
    gb_attention_multiply(plan->kernels, tile, panels, v_panel(plan), b->rows, plan->columns);
}
