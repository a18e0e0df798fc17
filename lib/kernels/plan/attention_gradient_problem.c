/* Describes the gradients of attention: operands as strides, post-ops as one pointwise program over
 * the scores. */
#include "kernels/plan/attention_problem.h"

#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/plan/attention_operand.h"

#include <string.h>

typedef struct context {
    gb_program *program;
    const gb_graph *graph;
    const gb_group *group;
    const gb_attention_gradient_parts *parts;
    gb_step *step;
    gb_attention_gradient_problem *problem;
} context;

static gb_status describe_operand(
        context *c, const gb_op *op, uint32_t input, bool transposed, gb_attention_operand *operand)
{
    gb_attention_operand_init(op, input, transposed, c->problem->n_batch, operand);
    return gb_program_use(c->program, c->step, op->inputs[input], false, &operand->slot);
}

static gb_status describe_product(
        context *c, const gb_op *op, gb_attention_operand *rows, gb_attention_operand *keys)
{
    bool transpose_a = gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_A, false);
    bool transpose_b = gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_B, false);
    GB_TRY(describe_operand(c, op, 0, transpose_a, rows));
    return describe_operand(c, op, 1, !transpose_b, keys);
}

static gb_status describe_operands(context *c)
{
    gb_attention_gradient_problem *problem = c->problem;
    const gb_logical_tensor *space = gb_op_output(c->parts->scores, 0);
    const gb_logical_tensor *dq = gb_op_output(c->parts->dq, 0);
    const gb_logical_tensor *dv = gb_op_output(c->parts->dv, 0);
    problem->n_batch = space->ndims - 2;
    memcpy(problem->batch_dims, space->dims, sizeof(int64_t) * (size_t)problem->n_batch);
    memcpy(problem->is_row, c->parts->is_row, sizeof c->parts->is_row);
    problem->queries = space->dims[problem->n_batch];
    problem->keys = space->dims[problem->n_batch + 1];
    problem->features = dq->dims[dq->ndims - 1];
    problem->columns = dv->dims[dv->ndims - 1];
    GB_TRY(describe_product(c, c->parts->scores, &problem->q, &problem->k));
    GB_TRY(describe_product(c, c->parts->gradients, &problem->g, &problem->v));
    const gb_op *outputs = c->parts->outputs;
    problem->has_outputs = outputs;
    if (!outputs)
        return GB_SUCCESS;
    bool is_second = outputs->inputs[0] == c->parts->gradients->inputs[0];
    return describe_operand(c, outputs, is_second, false, &problem->o);
}

static bool makes(const context *c, uint32_t value)
{
    for (uint32_t i = 0; i < c->parts->score_ops.n; i++)
        if (c->graph->ops[c->parts->score_ops.ops[i]]->outputs[0] == value)
            return true;
    return false;
}

/* Is the op's result 0 wherever the value, which it reads, is? */
static bool keeps_zeros(const gb_op *op, uint32_t value)
{
    bool product = op->kind == GB_OP_MULTIPLY && op->inputs[1] == value;
    bool first = op->kind == GB_OP_MULTIPLY || op->kind == GB_OP_DIVIDE ||
                 op->kind == GB_OP_DROPOUT || op->kind == GB_OP_TYPE_CAST;
    return product || (first && op->inputs[0] == value);
}

/* Are the weights and the gradient of the scores 0 where Exp is, and what else leaves, too? */
static bool vanish_with_exponential(const context *c)
{
    const gb_attention_chain *chain = &c->parts->score_ops;
    bool vanishes[GB_ATTENTION_CHAIN_OPS], weights = false, gradient = false;
    for (uint32_t i = 0; i < chain->n; i++) {
        const gb_op *op = c->graph->ops[chain->ops[i]];
        vanishes[i] = op == c->parts->exponential;
        for (uint32_t j = 0; j < i && !vanishes[i]; j++)
            vanishes[i] = vanishes[j] && keeps_zeros(op, c->graph->ops[chain->ops[j]]->outputs[0]);
        bool leaves = gb_list_has(c->group->n_outputs, c->group->outputs, op->outputs[0]);
        if (leaves && !vanishes[i])
            return false;
        weights = weights || (vanishes[i] && op->outputs[0] == c->parts->dv->inputs[0]);
        gradient = gradient || (vanishes[i] && op->outputs[0] == c->parts->dq->inputs[0]);
    }
    return weights && gradient;
}

/* exp(S - statistics), S behind an implicit mask: what the mask hides weighs nothing where the
 * statistics say so. */
static gb_status describe_causal_mask(context *c)
{
    gb_attention_gradient_problem *problem = c->problem;
    gb_attention_mask mask;
    uint32_t producer = c->graph->values[c->parts->exponential->inputs[0]].producer;
    const gb_op *minus = producer == GB_NONE ? NULL : c->graph->ops[producer];
    if (!minus || minus->kind != GB_OP_SUBTRACT || !vanish_with_exponential(c) ||
            !gb_attention_find_causal(c->graph, &c->parts->score_ops, minus->inputs[0], &mask))
        return GB_SUCCESS;
    const gb_logical_tensor *stats = gb_op_input(minus, 1);
    int missing = problem->n_batch + 2 - stats->ndims;
    if (stats->data_type != GB_F32 || makes(c, minus->inputs[1]) ||
            (stats->ndims > 0 && stats->dims[stats->ndims - 1] != 1))
        return GB_SUCCESS;
    for (int d = 0; d < stats->ndims - 1; d++)
        problem->stats_strides[d + missing] = stats->dims[d] == 1 ? 0 : stats->strides[d];
    GB_TRY(gb_program_use(c->program, c->step, minus->inputs[1], false, &problem->stats_slot));
    return gb_attention_causal_init(c->program, c->step, &mask, &problem->causal);
}

/* S and G become P and dS; other post-ops' values that leave are written as they are made. */
static gb_status build_post_ops(context *c)
{
    const gb_attention_gradient_parts *parts = c->parts;
    uint32_t post_ops[GB_ATTENTION_CHAIN_OPS], outputs[GB_ATTENTION_CHAIN_OPS], n = 0;
    memcpy(post_ops, parts->score_ops.ops, sizeof post_ops);
    outputs[n++] = parts->dv->inputs[0];
    outputs[n++] = parts->dq->inputs[0];
    for (uint32_t i = 0; i < c->group->n_outputs; i++) {
        uint32_t value = c->group->outputs[i];
        if (!makes(c, value))
            continue;
        if (value == outputs[0] || value == outputs[1] || n == GB_ATTENTION_CHAIN_OPS)
            return gb_fail(GB_UNIMPLEMENTED, "weights of attention that leave it");
        outputs[n++] = value;
    }
    c->problem->exposes = n > 2;
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
    return gb_pointwise_build_with_scratch(c->program, &group, GB_NONE, &scratch_operands,
            gb_op_output(parts->scores, 0), c->step, &c->problem->score_ops);
}

static gb_status build_result(
        context *c, const gb_op *product, const gb_op *sum, gb_pointwise_program *pointwise)
{
    const gb_op *last = sum ? sum : product;
    uint32_t value = last->outputs[0];
    gb_group group = {.anchor = last->index, .outputs = &value, .n_outputs = 1};
    return gb_pointwise_build(c->program, &group, value, gb_op_output(last, 0), c->step, pointwise);
}

gb_status gb_attention_gradient_describe(gb_program *program, const gb_group *group, gb_step *step,
        gb_attention_gradient_problem *problem)
{
    const gb_attention_gradient_parts *parts = group->parts;
    context c = {program, gb_program_graph(program), group, parts, step, problem};
    GB_TRY(describe_operands(&c));
    GB_TRY(describe_causal_mask(&c));
    GB_TRY(build_post_ops(&c));
    GB_TRY(build_result(&c, parts->dq, NULL, &problem->dq));
    GB_TRY(build_result(&c, parts->dk, parts->dk_sum, &problem->dk));
    GB_TRY(build_result(&c, parts->dv, parts->dv_sum, &problem->dv));
    return gb_step_describe(program, step, gb_attention_gradient_problem_print, problem);
}
