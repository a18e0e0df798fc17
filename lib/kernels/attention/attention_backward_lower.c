/* Lowers the gradients of attention: operands as strides, post-ops as one pointwise program over
 * the scores, blocks for the caches. */
#include "base/memory.h"
#include "base/status.h"
#include "fusion/regions/regions.h"
#include "graph/ops/op_table.h"
#include "kernels/attention/attention_backward.h"
#include "kernels/cpu/lower.h"

#include <string.h>

enum {
    PANEL = GB_GEMM_PANEL,
    KEY_BLOCK = 256,
    ROW_BLOCK = 112,  /* about: a multiple of the rows of a tile */
    WANTED_ITEMS = 32 /* keys are sliced when there are fewer tasks */
};

typedef struct lowering {
    gb_program *program;
    const gb_graph *graph;
    const gb_group *group;
    const gb_attention_gradient_parts *parts;
    gb_step *step;
    gb_attention_gradients *plan;
} lowering;

static gb_status operand_init(lowering *l, const gb_op *op, uint32_t input, bool transposed,
        gb_attention_operand *operand)
{
    const gb_logical_tensor *tensor = gb_op_input(op, input);
    int n = tensor->ndims, missing = l->plan->n_batch - (n - 2);
    operand->type = tensor->data_type;
    operand->row_stride = tensor->strides[transposed ? n - 1 : n - 2];
    operand->col_stride = tensor->strides[transposed ? n - 2 : n - 1];
    for (int d = 0; d < n - 2; d++)
        operand->strides[d + missing] = tensor->dims[d] == 1 ? 0 : tensor->strides[d];
    return gb_program_use(l->program, l->step, op->inputs[input], false, &operand->slot);
}

static gb_status product_init(
        lowering *l, const gb_op *op, gb_attention_operand *rows, gb_attention_operand *keys)
{
    bool transpose_a = gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_A, false);
    bool transpose_b = gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_B, false);
    GB_TRY(operand_init(l, op, 0, transpose_a, rows));
    return operand_init(l, op, 1, !transpose_b, keys);
}

static gb_status add_operands(lowering *l)
{
    gb_attention_gradients *plan = l->plan;
    const gb_logical_tensor *space = gb_op_output(l->parts->scores, 0);
    const gb_logical_tensor *dq = gb_op_output(l->parts->dq, 0);
    const gb_logical_tensor *dv = gb_op_output(l->parts->dv, 0);
    plan->n_batch = space->ndims - 2;
    memcpy(plan->batch_dims, space->dims, sizeof(int64_t) * (size_t)plan->n_batch);
    memcpy(plan->is_row, l->parts->is_row, sizeof l->parts->is_row);
    plan->queries = space->dims[plan->n_batch];
    plan->keys = space->dims[plan->n_batch + 1];
    plan->features = dq->dims[dq->ndims - 1];
    plan->columns = dv->dims[dv->ndims - 1];
    GB_TRY(product_init(l, l->parts->scores, &plan->q, &plan->k));
    GB_TRY(product_init(l, l->parts->gradients, &plan->g, &plan->v));
    const gb_op *outputs = l->parts->outputs;
    plan->has_outputs = outputs;
    if (!outputs)
        return GB_SUCCESS;
    bool is_second = outputs->inputs[0] == l->parts->gradients->inputs[0];
    return operand_init(l, outputs, is_second, false, &plan->o);
}

static bool makes(const lowering *l, uint32_t value)
{
    for (uint32_t i = 0; i < l->parts->score_ops.n; i++)
        if (l->graph->ops[l->parts->score_ops.ops[i]]->outputs[0] == value)
            return true;
    return false;
}

/* exp(S - statistics), S behind an implicit mask: what the mask hides weighs nothing where the
 * statistics say so. */
static gb_status add_causal_mask(lowering *l)
{
    gb_attention_gradients *plan = l->plan;
    gb_attention_mask mask;
    uint32_t producer = l->graph->values[l->parts->exponential->inputs[0]].producer;
    const gb_op *minus = producer == GB_NONE ? NULL : l->graph->ops[producer];
    if (!minus || minus->kind != GB_OP_SUBTRACT ||
            !gb_attention_find_causal(l->graph, &l->parts->score_ops, minus->inputs[0], &mask))
        return GB_SUCCESS;
    const gb_logical_tensor *stats = gb_op_input(minus, 1);
    int missing = plan->n_batch + 2 - stats->ndims;
    if (stats->data_type != GB_F32 || makes(l, minus->inputs[1]) ||
            (stats->ndims > 0 && stats->dims[stats->ndims - 1] != 1))
        return GB_SUCCESS;
    for (int d = 0; d < stats->ndims - 1; d++)
        plan->stats_strides[d + missing] = stats->dims[d] == 1 ? 0 : stats->strides[d];
    GB_TRY(gb_program_use(l->program, l->step, minus->inputs[1], false, &plan->stats_slot));
    return gb_attention_causal_init(l->program, l->step, &mask, &plan->causal);
}

/* S and G become P and dS; other post-ops' values that leave are written as they are made. */
static gb_status build_post_ops(lowering *l)
{
    const gb_attention_gradient_parts *parts = l->parts;
    uint32_t post_ops[GB_ATTENTION_CHAIN_OPS], outputs[GB_ATTENTION_CHAIN_OPS], n = 0;
    memcpy(post_ops, parts->score_ops.ops, sizeof post_ops);
    outputs[n++] = parts->dv->inputs[0];
    outputs[n++] = parts->dq->inputs[0];
    for (uint32_t i = 0; i < l->group->n_outputs; i++) {
        uint32_t value = l->group->outputs[i];
        if (!makes(l, value))
            continue;
        if (value == outputs[0] || value == outputs[1] || n == GB_ATTENTION_CHAIN_OPS)
            return gb_fail(GB_UNIMPLEMENTED, "weights of attention that leave it");
        outputs[n++] = value;
    }
    l->plan->exposes = n > 2;
    gb_scratch_operands scratch_operands = {.n = parts->row_sums ? 5 : 4,
            .values = {[GB_ATTENTION_S] = parts->scores->outputs[0],
                    [GB_ATTENTION_G] = parts->gradients->outputs[0],
                    [GB_ATTENTION_P] = outputs[0],
                    [GB_ATTENTION_DS] = outputs[1],
                    [GB_ATTENTION_D] = parts->row_sums ? parts->row_sums->outputs[0] : GB_NONE}};
    gb_group group = {.anchor = GB_NONE,
            .ops = post_ops,
            .n_ops = parts->score_ops.n,
            .outputs = outputs,
            .n_outputs = n};
    return gb_pointwise_build_with_scratch(l->program, &group, GB_NONE, &scratch_operands,
            gb_op_output(parts->scores, 0), l->step, &l->plan->score_ops);
}

static gb_status build_result(
        lowering *l, const gb_op *product, const gb_op *sum, gb_pointwise_program *pointwise)
{
    const gb_op *last = sum ? sum : product;
    uint32_t value = last->outputs[0];
    gb_group group = {.anchor = last->index, .outputs = &value, .n_outputs = 1};
    return gb_pointwise_build(l->program, &group, value, gb_op_output(last, 0), l->step, pointwise);
}

static gb_status attention_backward_build(lowering *l)
{
    const gb_attention_gradient_parts *parts = l->parts;
    GB_TRY(add_operands(l));
    GB_TRY(add_causal_mask(l));
    GB_TRY(build_post_ops(l));
    GB_TRY(build_result(l, parts->dq, NULL, &l->plan->dq));
    GB_TRY(build_result(l, parts->dk, parts->dk_sum, &l->plan->dk));
    return build_result(l, parts->dv, parts->dv_sum, &l->plan->dv);
}

/* Blocks --------------------------------------------------------------------------------------- */

static int64_t round_up(int64_t n, int64_t item)
{
    return gb_div_up(n, item) * item;
}

static void attention_backward_choose_blocks(gb_attention_gradients *plan)
{
    int64_t tile_rows = plan->kernels->gemm_limits().rows, keys[GB_AXES];
    bool none[GB_AXES] = {false};
    gb_attention_space_init(
            &plan->space, plan->n_batch, plan->batch_dims, plan->is_row, plan->queries);
    for (int d = 0; d < plan->n_batch; d++)
        keys[d] = plan->is_row[d] ? 1 : plan->batch_dims[d];
    gb_attention_space_init(&plan->key_space, plan->n_batch, keys, none, plan->keys);
    plan->row_block = gb_min_i64(round_up(ROW_BLOCK, tile_rows), plan->space.rows);
    int64_t blocks = gb_div_up(plan->keys, KEY_BLOCK);
    plan->key_block = round_up(gb_div_up(plan->keys, blocks), PANEL);
    int64_t slices = gb_min_i64(gb_div_up(WANTED_ITEMS, plan->space.tasks), blocks);
    plan->split_keys = round_up(gb_div_up(plan->keys, slices), plan->key_block);
    plan->key_splits = gb_div_up(plan->keys, plan->split_keys);
}

static gb_scratch add_floats(gb_step *step, size_t count)
{
    return gb_scratch_add(step, count * sizeof(float));
}

static gb_scratch add_panels(gb_step *step, int64_t rows, int64_t cols)
{
    return gb_scratch_add(step, gb_attention_bytes(gb_div_up(cols, PANEL) * (rows + 1) * PANEL));
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void attention_backward_add_scratch(gb_attention_gradients *plan, gb_step *step)
{
    size_t rows = (size_t)plan->row_block, keys = (size_t)plan->split_keys;
    plan->feature_row = gb_attention_row(plan->features);
    plan->column_row = gb_attention_row(plan->columns);
    plan->score_row = gb_attention_row(plan->key_block);
    plan->n_scores = plan->score_ops.loads_first ? 2 : 4;
    plan->q_size = rows * (size_t)plan->feature_row;
    plan->dk_size = keys * (size_t)plan->feature_row;
    plan->dv_size = keys * (size_t)plan->column_row;
    size_t g_size = rows * (size_t)plan->column_row;
    plan->scratch.q = add_floats(step, plan->q_size);
    plan->scratch.dq = add_floats(step, plan->q_size);
    plan->scratch.g = add_floats(step, g_size);
    if (plan->has_outputs) {
        plan->scratch.o = add_floats(step, g_size);
        plan->scratch.row_sums = gb_scratch_add(step, gb_attention_bytes(plan->row_block));
    }
    plan->scratch.packed_q = add_panels(step, plan->row_block, plan->features);
    plan->scratch.packed_g = add_panels(step, plan->row_block, plan->columns);
    plan->scratch.k_columns = add_panels(step, plan->features, plan->split_keys);
    plan->scratch.v_columns = add_panels(step, plan->columns, plan->split_keys);
    plan->scratch.packed_k = add_panels(step, plan->split_keys, plan->features);
    plan->scratch.dk = add_floats(step, plan->dk_size);
    plan->scratch.dv = add_floats(step, plan->dv_size);
    for (int i = 0; i < 4; i++)
        plan->scratch.scores[i] = i < plan->n_scores
                                          ? add_floats(step, rows * (size_t)plan->score_row)
                                          : plan->scratch.scores[i - 2];
    plan->scratch.registers = gb_scratch_add(step,
            most(most(gb_pointwise_scratch(&plan->score_ops), gb_pointwise_scratch(&plan->dq)),
                    most(gb_pointwise_scratch(&plan->dk), gb_pointwise_scratch(&plan->dv))));
    if (plan->key_splits == 1)
        return;
    step->shared_scratch =
            (size_t)plan->key_splits *
            gb_attention_bytes(plan->space.tasks * plan->space.rows * plan->features);
    step->n_phases = 2;
}

static void attention_backward_fill_offsets(
        gb_attention_gradients *plan, int64_t *offsets, int64_t count)
{
    plan->unit_offsets = offsets;
    plan->panels = offsets + count;
    plan->rows = offsets + 2 * count;
    for (int64_t i = 0; i < count; i++) {
        offsets[i] = i;
        offsets[count + i] = i * PANEL;
        offsets[2 * count + i] = i * plan->score_row;
    }
}

gb_status gb_attention_gradients_add(
        gb_program *program, gb_step *step, const gb_attention_gradients *plan)
{
    gb_attention_gradients chosen = *plan;
    chosen.kernels = gb_kernels_get();
    attention_backward_choose_blocks(&chosen);
    attention_backward_add_scratch(&chosen, step);
    int64_t longest = gb_max_i64(chosen.features, chosen.columns);
    int64_t count = gb_max_i64(longest, gb_max_i64(chosen.key_block, chosen.row_block));
    gb_attention_gradients *own =
            gb_step_alloc(step, 1, sizeof *own + 3 * sizeof(int64_t) * (size_t)count);
    if (!own)
        return GB_OUT_OF_MEMORY;
    *own = chosen;
    attention_backward_fill_offsets(own, (int64_t *)(own + 1), count);
    double scores = (double)own->space.tasks * (double)own->space.rows * (double)own->keys;
    step->work = scores * (double)(own->features + own->columns);
    step->run = gb_attention_gradients_run;
    step->params = own;
    return gb_program_add(program, step);
}

static bool attention_backward_accepts(const gb_graph *graph, const void *found)
{
    const gb_attention_gradient_parts *parts = found;
    const gb_logical_tensor *dq = gb_op_output(parts->dq, 0), *dv = gb_op_output(parts->dv, 0);
    (void)graph;
    return dq->dims[dq->ndims - 1] <= GB_ATTENTION_WIDTH &&
           dv->dims[dv->ndims - 1] <= GB_ATTENTION_WIDTH;
}

static gb_status attention_backward_lower_lower(gb_program *program, const gb_group *group)
{
    const gb_graph *graph = gb_program_graph(program);
    const gb_attention_gradient_parts *parts = group->parts;
    gb_step *step;
    gb_attention_gradients plan = {0};
    GB_TRY(gb_program_begin(program, "attention_backward", &step));
    lowering l = {program, graph, group, parts, step, &plan};
    GB_TRY(attention_backward_build(&l));
    return gb_attention_gradients_add(program, step, &plan);
}

const gb_region_lowering gb_lowering_attention_gradients = {
        .region = &gb_region_attention_gradients,
        .accepts = attention_backward_accepts,
        .lower = attention_backward_lower_lower};
