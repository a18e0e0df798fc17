/* Describes attention: operands as strides, post-ops as pointwise programs over scores and results. */
#include "kernels/plan/attention_problem.h"

#include "base/dtype.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/plan/attention_operand.h"
#include "kernels/plan/dequantization.h"

#include <string.h>

typedef struct context {
    gb_program *program;
    const gb_graph *graph;
    const gb_attention_parts *parts;
    gb_step *step;
    gb_attention_problem *problem;
    uint32_t scaled; /* the value that the product with the scaled Q is */
} context;

int64_t gb_attention_features(const gb_attention_parts *parts)
{
    const gb_logical_tensor *q = gb_op_input(parts->scores, 0);
    bool transposed = gb_op_attr_bool(parts->scores, GB_ATTR_TRANSPOSE_A, false);
    return q->dims[q->ndims - (transposed ? 2 : 1)];
}

int64_t gb_attention_columns(const gb_attention_parts *parts)
{
    const gb_logical_tensor *out = gb_op_output(parts->values, 0);
    return out->dims[out->ndims - (parts->swapped ? 2 : 1)];
}

/* Does the operand of the first product have rows of its own for all rows of scores? */
static bool has_rows_of_scores(const gb_op *product, uint32_t input)
{
    const gb_logical_tensor *q = gb_op_input(product, input), *scores = gb_op_output(product, 0);
    return q->ndims == scores->ndims &&
           memcmp(q->dims, scores->dims, sizeof *q->dims * (size_t)(q->ndims - 1)) == 0;
}

/* An operand in memory, or what post-ops of `source` make. */
static gb_status describe_operand(context *c, const gb_op *op, uint32_t input, bool transposed,
        const gb_attention_chain *source, gb_attention_operand *operand)
{
    gb_attention_operand_init(op, input, transposed, c->problem->n_batch, operand);
    if (source->n > 0)
        return gb_attention_source_init(
                c->program, source, op->inputs[input], transposed, c->step, operand);
    /* A work item copies its rows of Q, which no other one reads, before it writes the same rows of
     * the result; only columns of features and of values may change places. */
    bool elementwise = op == c->parts->scores && input == 0 && !transposed && !c->parts->swapped &&
                       !c->parts->by_rows && has_rows_of_scores(op, input);
    return (elementwise ? gb_program_use_elementwise : gb_program_use)(
            c->program, c->step, op->inputs[input], false, &operand->slot);
}

static void describe_sizes(context *c)
{
    gb_attention_problem *problem = c->problem;
    const gb_logical_tensor *scores = gb_op_output(c->parts->scores, 0);
    problem->n_batch = scores->ndims - 2;
    memcpy(problem->batch_dims, scores->dims, sizeof(int64_t) * (size_t)problem->n_batch);
    problem->queries = scores->dims[problem->n_batch];
    problem->keys = scores->dims[problem->n_batch + 1];
    problem->features = gb_attention_features(c->parts);
    problem->columns = gb_attention_columns(c->parts);
    problem->over_queries = c->parts->by_rows;
    problem->keys_last = c->parts->by_rows && c->parts->swapped;
}

/* The ops of a chain but casts between floating types, whose stores a kernel may skip. */
static uint32_t ops_but_casts(
        const context *c, const gb_attention_chain *chain, const gb_op *ops[GB_ATTENTION_CHAIN_OPS])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < chain->n; i++) {
        const gb_op *op = c->graph->ops[chain->ops[i]];
        if (op->kind != GB_OP_TYPE_CAST)
            ops[n++] = op;
    }
    return n;
}

static bool is_byte(const gb_logical_tensor *tensor)
{
    return tensor->data_type == GB_S8 || tensor->data_type == GB_U8;
}

static gb_status describe_codes(
        context *c, const gb_attention_chain *source, bool transposed, gb_attention_codes *codes)
{
    enum { FAR = 1 << 10 };
    const gb_op *ops[GB_ATTENTION_CHAIN_OPS];
    gb_per_tensor_quantization quantization;
    if (ops_but_casts(c, source, ops) != 1 || !is_byte(gb_op_input(ops[0], 0)) ||
            !gb_per_tensor_quantization_read(ops[0], &quantization) ||
            quantization.zero_point < -FAR || quantization.zero_point > FAR)
        return GB_SUCCESS;
    gb_attention_operand_init(ops[0], 0, transposed, c->problem->n_batch, &codes->operand);
    codes->is_set = true;
    codes->scale = quantization.scale;
    codes->zero_point = (int32_t)quantization.zero_point;
    return gb_program_use(c->program, c->step, ops[0]->inputs[0], false, &codes->operand.slot);
}

/* Are weights quantized to 8 bits without a zero point, and dequantized again? */
static void describe_weight_codes(context *c, const gb_attention_chain *between)
{
    gb_attention_weight_codes *codes = &c->problem->weight_codes;
    const gb_op *ops[GB_ATTENTION_CHAIN_OPS];
    const float *scales;
    const int64_t *zps;
    gb_per_tensor_quantization quantization;
    if (ops_but_casts(c, between, ops) != 2 || ops[0]->kind != GB_OP_QUANTIZE ||
            !is_byte(gb_op_output(ops[0], 0)) ||
            !gb_per_tensor_quantization_read(ops[1], &quantization) ||
            quantization.zero_point != 0 || gb_op_attr_f32s(ops[0], GB_ATTR_SCALES, &scales) != 1 ||
            !(scales[0] > 0))
        return;
    size_t n_zps = gb_op_attr_s64s(ops[0], GB_ATTR_ZPS, &zps);
    if (n_zps > 1 || (n_zps == 1 && zps[0] != 0))
        return;
    *codes = (gb_attention_weight_codes){.is_set = true,
            .divisor = scales[0],
            .most = (float)gb_dtype_get(gb_op_output(ops[0], 0)->data_type)->max,
            .scale = quantization.scale};
}

static gb_status describe_operands(context *c)
{
    const gb_attention_parts *parts = c->parts;
    const gb_op *scores = parts->scores, *values = parts->values;
    gb_attention_problem *problem = c->problem;
    bool transpose_a = gb_op_attr_bool(scores, GB_ATTR_TRANSPOSE_A, false);
    bool transpose_b = gb_op_attr_bool(scores, GB_ATTR_TRANSPOSE_B, false);
    GB_TRY(describe_operand(c, scores, 0, transpose_a, &parts->query_source, &problem->q));
    GB_TRY(describe_operand(c, scores, 1, !transpose_b, &parts->key_source, &problem->k));
    gb_op_attr transpose = parts->swapped ? GB_ATTR_TRANSPOSE_A : GB_ATTR_TRANSPOSE_B;
    bool transposed = gb_op_attr_bool(values, transpose, false) != parts->swapped;
    GB_TRY(describe_operand(
            c, values, parts->swapped ? 0 : 1, transposed, &parts->value_source, &problem->v));
    GB_TRY(describe_codes(c, &parts->query_source, transpose_a, &problem->q_codes));
    GB_TRY(describe_codes(c, &parts->key_source, !transpose_b, &problem->k_codes));
    GB_TRY(describe_codes(c, &parts->value_source, transposed, &problem->v_codes));
    problem->weights_type = gb_op_input(values, parts->swapped ? 1 : 0)->data_type;
    for (int d = 0; d < problem->n_batch && !problem->over_queries; d++)
        problem->is_row[d] = problem->k.strides[d] == 0 && problem->v.strides[d] == 0;
    return GB_SUCCESS;
}

static bool attention_makes(const context *c, const gb_attention_chain *chain, uint32_t value)
{
    const gb_value *v = &c->graph->values[value];
    return v->producer != GB_NONE && gb_list_has(chain->n, chain->ops, v->producer);
}

/* Is the value a number from outside of the region that a kernel can read? */
static bool is_scalar(const context *c, uint32_t value)
{
    const gb_logical_tensor *tensor = &c->graph->values[value].tensor;
    gb_data_type type = tensor->data_type;
    bool readable = type == GB_F32 || type == GB_BF16 || type == GB_F16 || type == GB_S32;
    return readable && gb_tensor_count(tensor) == 1 && value != c->parts->scores->outputs[0] &&
           !attention_makes(c, &c->parts->before, value);
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
static gb_status take_scale(context *c, gb_attention_chain *before)
{
    uint32_t product = c->parts->scores->outputs[0];
    const gb_op *scale = NULL;
    c->scaled = product;
    if (c->parts->query_source.n > 0)
        return GB_SUCCESS;
    for (uint32_t i = 0; i < before->n; i++) {
        const gb_op *op = c->graph->ops[before->ops[i]];
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
    if (!is_scalar(c, other) || (divides && scale->inputs[0] != product))
        return GB_SUCCESS;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < before->n; i++)
        if (before->ops[i] != scale->index)
            before->ops[kept++] = before->ops[i];
    before->n = kept;
    c->scaled = scale->outputs[0];
    c->problem->divide_by_scale = divides;
    return gb_attention_scalar_init(c->program, c->step, other, &c->problem->scale);
}

/* A program over scores from `anchor`, or GB_NONE, to `out`, which lies in scratch. */
static gb_status build_chain(context *c, const gb_attention_chain *chain, uint32_t anchor,
        const gb_scratch_operands *scratch_operands, uint32_t out, gb_pointwise_program *pointwise)
{
    uint32_t post_ops[GB_ATTENTION_CHAIN_OPS];
    memcpy(post_ops, chain->ops, sizeof post_ops);
    gb_group group = {
            .anchor = GB_NONE, .ops = post_ops, .n_ops = chain->n, .outputs = &out, .n_outputs = 1};
    return gb_pointwise_build_with_scratch(c->program, &group, anchor, scratch_operands,
            gb_op_output(c->parts->scores, 0), c->step, pointwise);
}

/* A program from `in` to `out`, both f32 in scratch. */
static gb_status build_local(context *c, const gb_attention_chain *chain, uint32_t in, uint32_t out,
        gb_attention_program *built)
{
    gb_scratch_operands scratch_operands = {.n = 2, .values = {in, out}};
    built->is_empty = chain->n == 0;
    return built->is_empty
                   ? GB_SUCCESS
                   : build_chain(c, chain, GB_NONE, &scratch_operands, out, &built->pointwise);
}

static gb_status build_in_tiles(context *c, const gb_attention_chain *before)
{
    uint32_t out = c->parts->softmax->inputs[0];
    gb_scratch_operands scratch_operands = {.n = 1, .values = {out}};
    if (before->n == 0 || c->parts->by_rows || c->problem->causal.is_set)
        return GB_SUCCESS;
    gb_status status =
            build_chain(c, before, c->scaled, &scratch_operands, out, &c->problem->before_in_tiles);
    if (status != GB_UNIMPLEMENTED)
        return status;
    c->problem->before_in_tiles = (gb_pointwise_program){0};
    return GB_SUCCESS;
}

static bool only_casts(const gb_graph *graph, const gb_attention_chain *chain)
{
    for (uint32_t i = 0; i < chain->n; i++)
        if (graph->ops[chain->ops[i]]->kind != GB_OP_TYPE_CAST)
            return false;
    return true;
}

static gb_status describe_causal_mask(context *c, const gb_attention_chain *before)
{
    gb_attention_mask mask;
    gb_attention_chain visible;
    if (!gb_attention_find_causal(c->graph, before, c->parts->softmax->inputs[0], &mask))
        return GB_SUCCESS;
    if (mask.visible != c->scaled && !attention_makes(c, before, mask.visible))
        return GB_SUCCESS; /* what is seen comes from elsewhere */
    GB_TRY(gb_attention_causal_init(c->program, c->step, &mask, &c->problem->causal));
    gb_attention_keep_producers(c->graph, before, mask.visible, &visible);
    return build_local(c, &visible, c->scaled, mask.visible, &c->problem->before_unmasked);
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

static gb_status build_after(context *c)
{
    const gb_attention_parts *parts = c->parts;
    uint32_t post_ops[GB_ATTENTION_CHAIN_OPS], result = parts->result;
    memcpy(post_ops, parts->after.ops, sizeof post_ops);
    gb_group after = {.anchor = parts->values->index,
            .ops = post_ops,
            .n_ops = parts->after.n,
            .outputs = &result,
            .n_outputs = 1};
    GB_TRY(gb_pointwise_build(c->program, &after, parts->values->outputs[0],
            gb_op_output(parts->values, 0), c->step, &c->problem->after.pointwise));
    c->problem->after.pointwise.over_source = !c->problem->q.source;
    c->problem->after.pointwise.source = c->problem->q.slot;
    if (parts->swapped && !parts->by_rows)
        turn(&c->problem->after.pointwise, c->problem->n_batch);
    return GB_SUCCESS;
}

static gb_status describe_programs(context *c)
{
    const gb_attention_parts *parts = c->parts;
    gb_attention_problem *problem = c->problem;
    gb_attention_chain before = parts->before, between = parts->between;
    GB_TRY(take_scale(c, &before));
    GB_TRY(build_local(c, &before, c->scaled, parts->softmax->inputs[0], &problem->before));
    if (!parts->by_rows)
        GB_TRY(describe_causal_mask(c, &before));
    GB_TRY(build_in_tiles(c, &before));
    if (only_casts(c->graph, &between))
        between.n = 0; /* weights stay f32 */
    problem->exact = !gb_attention_keeps_scale(c->graph, &between);
    uint32_t weights = parts->softmax->outputs[0];
    if (between.n > 0)
        weights = c->graph->ops[between.ops[between.n - 1]]->outputs[0];
    GB_TRY(build_local(c, &between, parts->softmax->outputs[0], weights, &problem->between));
    describe_weight_codes(c, &between);
    return build_after(c);
}

static gb_status describe_stats(context *c)
{
    const gb_op *softmax = c->parts->softmax;
    gb_attention_problem *problem = c->problem;
    problem->inf_as_zero = gb_op_attr_is(softmax, GB_ATTR_MODE, "inf_as_zero", false);
    problem->has_stats = softmax->n_outputs > 1;
    if (!problem->has_stats)
        return GB_SUCCESS;
    memcpy(problem->stats_strides, gb_op_output(softmax, 1)->strides,
            sizeof(int64_t) * (size_t)(problem->n_batch + 1));
    return gb_program_use(c->program, c->step, softmax->outputs[1], true, &problem->stats_slot);
}

gb_status gb_attention_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_attention_problem *problem)
{
    context c = {.program = program,
            .graph = gb_program_graph(program),
            .parts = group->parts,
            .step = step,
            .problem = problem};
    describe_sizes(&c);
    GB_TRY(describe_operands(&c));
    GB_TRY(describe_programs(&c));
    GB_TRY(describe_stats(&c));
    return gb_step_describe(program, step, gb_attention_problem_print, problem);
}
