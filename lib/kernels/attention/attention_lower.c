/* Lowers a region of attention: operands as strides, post-ops as pointwise programs over scores and
 * results. */
#include "base/status.h"
#include "fusion/regions/regions.h"
#include "graph/ops/op_table.h"
#include "kernels/attention/attention_by_rows.h"
#include "kernels/cpu/lower.h"

#include <string.h>

typedef struct lowering {
    gb_program *program;
    const gb_graph *graph;
    const gb_attention_parts *parts;
    gb_step *step;
    gb_attention *plan;
    uint32_t scaled; /* the value that the product with the scaled Q is */
} lowering;

/* The matrices of a tensor: strides per batch dim of a space with n_batch of them. What post-ops of
 * `source` make is read through a program of its own. */
static gb_status operand_init(lowering *l, const gb_op *op, uint32_t input, bool transposed,
        gb_attention_operand *operand, const gb_attention_chain *source, gb_attention_source *built)
{
    const gb_logical_tensor *tensor = gb_op_input(op, input);
    int n = tensor->ndims, missing = l->plan->n_batch - (n - 2);
    operand->type = tensor->data_type;
    operand->row_stride = tensor->strides[transposed ? n - 1 : n - 2];
    operand->col_stride = tensor->strides[transposed ? n - 2 : n - 1];
    for (int d = 0; d < n - 2; d++)
        operand->strides[d + missing] = tensor->dims[d] == 1 ? 0 : tensor->strides[d];
    if (source->n > 0)
        return gb_attention_source_init(
                l->program, source, op->inputs[input], transposed, l->step, built);
    /* A work item copies its rows of Q before it writes the same rows of the result; only columns
     * of features and of values may change places. */
    bool elementwise = op == l->parts->scores && input == 0 && !transposed && !l->parts->swapped &&
                       !l->parts->by_rows;
    return (elementwise ? gb_program_use_elementwise : gb_program_use)(
            l->program, l->step, op->inputs[input], false, &operand->slot);
}

static gb_status add_operands(lowering *l)
{
    const gb_op *scores = l->parts->scores, *values = l->parts->values;
    gb_attention *plan = l->plan;
    const gb_logical_tensor *space = gb_op_output(scores, 0), *dst = gb_op_output(values, 0);
    bool transpose_a = gb_op_attr_bool(scores, GB_ATTR_TRANSPOSE_A, false);
    bool transpose_b = gb_op_attr_bool(scores, GB_ATTR_TRANSPOSE_B, false);
    const gb_logical_tensor *q = gb_op_input(scores, 0);
    plan->n_batch = space->ndims - 2;
    memcpy(plan->batch_dims, space->dims, sizeof(int64_t) * (size_t)plan->n_batch);
    plan->queries = space->dims[plan->n_batch];
    plan->keys = space->dims[plan->n_batch + 1];
    plan->features = q->dims[q->ndims - (transpose_a ? 2 : 1)];
    plan->columns = dst->dims[dst->ndims - (l->parts->swapped ? 2 : 1)];
    GB_TRY(operand_init(
            l, scores, 0, transpose_a, &plan->q, &l->parts->query_source, &plan->query_source));
    GB_TRY(operand_init(
            l, scores, 1, !transpose_b, &plan->k, &l->parts->key_source, &plan->key_source));
    bool swapped = l->parts->swapped;
    gb_op_attr transpose = swapped ? GB_ATTR_TRANSPOSE_A : GB_ATTR_TRANSPOSE_B;
    bool transposed = gb_op_attr_bool(values, transpose, false) != swapped;
    return operand_init(l, values, swapped ? 0 : 1, transposed, &plan->v, &l->parts->value_source,
            &plan->value_source);
}

/* Is the value a number from outside of the region that a kernel can read? */
static bool is_scalar(const lowering *l, uint32_t value)
{
    const gb_logical_tensor *tensor = &l->graph->values[value].tensor;
    gb_data_type type = tensor->data_type;
    bool readable = type == GB_F32 || type == GB_BF16 || type == GB_F16 || type == GB_S32;
    return readable && gb_tensor_count(tensor) == 1;
}

static bool reads(const gb_op *op, uint32_t value)
{
    for (uint32_t i = 0; i < op->n_inputs; i++)
        if (op->inputs[i] == value)
            return true;
    return false;
}

/* A first post-op that scales all scores by one number scales Q instead. Sums of products of
 * quantized values are often exact and must stay so: they decide what quantised weights are rounded
 * to. */
static gb_status take_scale(lowering *l, gb_attention_chain *before)
{
    uint32_t product = l->parts->scores->outputs[0];
    const gb_op *scale = NULL;
    l->scaled = product;
    if (l->parts->query_source.n > 0)
        return GB_SUCCESS;
    for (uint32_t i = 0; i < before->n; i++) {
        const gb_op *op = l->graph->ops[before->ops[i]];
        if (!reads(op, product) || op->kind == GB_OP_GEN_INDEX)
            continue;
        if (scale)
            return GB_SUCCESS; /* the unscaled scores have another reader */
        scale = op;
    }
    if (!scale || (scale->kind != GB_OP_MULTIPLY && scale->kind != GB_OP_DIVIDE))
        return GB_SUCCESS;
    uint32_t other = scale->inputs[scale->inputs[0] == product];
    bool divides = scale->kind == GB_OP_DIVIDE;
    if (!is_scalar(l, other) || other == product || (divides && scale->inputs[0] != product))
        return GB_SUCCESS;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < before->n; i++)
        if (before->ops[i] != scale->index)
            before->ops[kept++] = before->ops[i];
    before->n = kept;
    l->scaled = scale->outputs[0];
    l->plan->divide_by_scale = divides;
    return gb_attention_scalar_init(l->program, l->step, other, &l->plan->scale);
}

/* A program from `in` to `out`, both f32 in scratch. */
static gb_status build_local(lowering *l, const gb_attention_chain *chain, uint32_t in,
        uint32_t out, gb_attention_program *built)
{
    built->is_empty = chain->n == 0;
    if (built->is_empty)
        return GB_SUCCESS;
    uint32_t post_ops[GB_ATTENTION_CHAIN_OPS];
    memcpy(post_ops, chain->ops, sizeof post_ops);
    gb_group group = {
            .anchor = GB_NONE, .ops = post_ops, .n_ops = chain->n, .outputs = &out, .n_outputs = 1};
    gb_scratch_operands scratch_operands = {.n = 2, .values = {in, out}};
    return gb_pointwise_build_with_scratch(l->program, &group, GB_NONE, &scratch_operands,
            gb_op_output(l->parts->scores, 0), l->step, &built->pointwise);
}

static bool only_casts(const gb_graph *graph, const gb_attention_chain *chain)
{
    for (uint32_t i = 0; i < chain->n; i++)
        if (graph->ops[chain->ops[i]]->kind != GB_OP_TYPE_CAST)
            return false;
    return true;
}

static gb_status add_causal_mask(lowering *l, const gb_attention_chain *before)
{
    gb_attention_mask mask;
    gb_attention_chain visible;
    if (!gb_attention_find_causal(l->graph, before, l->parts->softmax->inputs[0], &mask))
        return GB_SUCCESS;
    GB_TRY(gb_attention_causal_init(l->program, l->step, &mask, &l->plan->causal));
    gb_attention_keep_producers(l->graph, before, mask.visible, &visible);
    return build_local(l, &visible, l->scaled, mask.visible, &l->plan->before_unmasked);
}

/* The program sees queries, then columns, whichever comes last in the result. */
static void turn(gb_pointwise_program *pointwise, int dim)
{
    int64_t size = pointwise->dims[dim];
    pointwise->dims[dim] = pointwise->dims[dim + 1];
    pointwise->dims[dim + 1] = size;
    for (uint32_t i = 0; i < pointwise->n_operands; i++) {
        int64_t *strides = pointwise->operands[i].strides, stride = strides[dim];
        strides[dim] = strides[dim + 1];
        strides[dim + 1] = stride;
    }
}

static gb_status build_after(lowering *l)
{
    const gb_attention_parts *parts = l->parts;
    uint32_t post_ops[GB_ATTENTION_CHAIN_OPS], result = parts->result;
    memcpy(post_ops, parts->after.ops, sizeof post_ops);
    gb_group after = {.anchor = parts->values->index,
            .ops = post_ops,
            .n_ops = parts->after.n,
            .outputs = &result,
            .n_outputs = 1};
    GB_TRY(gb_pointwise_build(l->program, &after, parts->values->outputs[0],
            gb_op_output(parts->values, 0), l->step, &l->plan->after.pointwise));
    if (parts->swapped && !parts->by_rows)
        turn(&l->plan->after.pointwise, l->plan->n_batch);
    return GB_SUCCESS;
}

static gb_status add_programs(lowering *l)
{
    const gb_attention_parts *parts = l->parts;
    gb_attention *plan = l->plan;
    gb_attention_chain before = parts->before, between = parts->between;
    GB_TRY(take_scale(l, &before));
    GB_TRY(build_local(l, &before, l->scaled, parts->softmax->inputs[0], &plan->before));
    if (!parts->by_rows)
        GB_TRY(add_causal_mask(l, &before));
    if (only_casts(l->graph, &between))
        between.n = 0; /* weights stay f32 */
    plan->exact = !gb_attention_keeps_scale(l->graph, &between);
    uint32_t weights = parts->softmax->outputs[0];
    if (between.n > 0)
        weights = l->graph->ops[between.ops[between.n - 1]]->outputs[0];
    GB_TRY(build_local(l, &between, parts->softmax->outputs[0], weights, &plan->between));
    return build_after(l);
}

static gb_status add_stats(lowering *l)
{
    const gb_op *softmax = l->parts->softmax;
    gb_attention *plan = l->plan;
    plan->inf_as_zero = gb_op_attr_is(softmax, GB_ATTR_MODE, "inf_as_zero", false);
    plan->has_stats = softmax->n_outputs > 1;
    if (!plan->has_stats)
        return GB_SUCCESS;
    memcpy(plan->stats_strides, gb_op_output(softmax, 1)->strides,
            sizeof(int64_t) * (size_t)(plan->n_batch + 1));
    return gb_program_use(l->program, l->step, softmax->outputs[1], true, &plan->stats_slot);
}

static gb_status attention_build(lowering *l)
{
    GB_TRY(add_operands(l));
    GB_TRY(add_programs(l));
    return add_stats(l);
}

/* Are rows narrow enough to be kept in scratch, and is there a kernel for the sum? That over rows
 * scales V instead of the weights, and dequantises nothing. */
static bool attention_accepts(const gb_graph *graph, const void *found)
{
    const gb_attention_parts *parts = found;
    const gb_logical_tensor *q = gb_op_input(parts->scores, 0);
    const gb_logical_tensor *scores = gb_op_output(parts->scores, 0);
    const gb_logical_tensor *out = gb_op_output(parts->values, 0);
    bool transposed = gb_op_attr_bool(parts->scores, GB_ATTR_TRANSPOSE_A, false);
    int64_t features = q->dims[q->ndims - (transposed ? 2 : 1)];
    int64_t columns = out->dims[out->ndims - (parts->swapped ? 2 : 1)];
    int64_t kept = parts->by_rows ? scores->dims[scores->ndims - 1] : 1;
    uint32_t sources = parts->query_source.n + parts->key_source.n + parts->value_source.n;
    if (parts->by_rows && (sources > 0 || !gb_attention_keeps_scale(graph, &parts->between)))
        return false;
    return features <= GB_ATTENTION_WIDTH && columns <= GB_ATTENTION_WIDTH &&
           (features + columns) * kept <= GB_ATTENTION_KEPT;
}

static gb_status attention_lower_lower(gb_program *program, const gb_group *group)
{
    const gb_graph *graph = gb_program_graph(program);
    const gb_attention_parts *parts = group->parts;
    gb_step *step;
    gb_attention plan = {0};
    GB_TRY(gb_program_begin(program, "attention", &step));
    lowering l = {.program = program, .graph = graph, .parts = parts, .step = step, .plan = &plan};
    GB_TRY(attention_build(&l));
    return parts->by_rows ? gb_attention_by_rows_add(program, step, &plan, parts->swapped)
                          : gb_attention_add(program, step, &plan);
}

const gb_region_lowering gb_lowering_attention = {.region = &gb_region_attention,
        .accepts = attention_accepts,
        .lower = attention_lower_lower};
