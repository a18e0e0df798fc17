/* Finds the gradients of attention in a partition: from Exp over all post-ops of the size of the
 * scores to the two products before them and the three behind. */
#include "fusion/regions/attention.h"
#include "fusion/regions/links.h"
#include "fusion/regions/regions.h"

#include "base/status.h"
#include "graph/ops/op_table.h"

#include <string.h>

typedef struct finder {
    const gb_graph *graph;
    const gb_pass_context *context;
    const gb_logical_tensor *space;
    gb_attention_gradient_parts *parts;
} finder;

static bool same_dims(const gb_logical_tensor *a, const gb_logical_tensor *b, int leading)
{
    return a->ndims == b->ndims && memcmp(a->dims, b->dims, sizeof(int64_t) * (size_t)leading) == 0;
}

static bool has(const finder *f, uint32_t op)
{
    return gb_list_has(f->parts->score_ops.n, f->parts->score_ops.ops, op);
}

static bool attention_gradients_is_post_op(const finder *f, const gb_op *op)
{
    return gb_region_is_post_op(f->context, op) &&
           same_dims(gb_op_output(op, 0), f->space, f->space->ndims);
}

static bool attention_gradients_is_product(const gb_op *op)
{
    const char *reason;
    return op && op->kind == GB_OP_MATMUL && op->n_inputs == 2 && gb_all_types_float(op, &reason) &&
           gb_op_input(op, 0)->ndims >= 2 && gb_op_input(op, 1)->ndims >= 2;
}

/* Does a post-op read what the op makes, or the op what a post-op makes? */
static bool is_connected(const finder *f, const gb_op *op)
{
    const gb_value *value = &f->graph->values[op->outputs[0]];
    for (uint32_t i = 0; i < value->n_uses; i++)
        if (has(f, value->uses[i].op))
            return true;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        uint32_t producer = f->graph->values[op->inputs[i]].producer;
        if (producer != GB_NONE && has(f, producer))
            return true;
    }
    return false;
}

static bool grow_post_ops(finder *f)
{
    gb_attention_chain *post_ops = &f->parts->score_ops;
    for (bool grown = true; grown;) {
        grown = false;
        for (uint32_t i = 0; i < f->graph->n_ops; i++) {
            const gb_op *op = f->graph->ops[i];
            if (has(f, i) || !attention_gradients_is_post_op(f, op) || !is_connected(f, op))
                continue;
            if (post_ops->n == GB_ATTENTION_CHAIN_OPS)
                return false;
            uint32_t at = post_ops->n++;
            for (; at > 0 && post_ops->ops[at - 1] > i; at--)
                post_ops->ops[at] = post_ops->ops[at - 1];
            post_ops->ops[at] = i;
            grown = true;
        }
    }
    return true;
}

static bool only_pointwise_ops_read(const finder *f, uint32_t value_index)
{
    const gb_value *value = &f->graph->values[value_index];
    if (gb_leaves_partition(f->context, value))
        return false;
    for (uint32_t i = 0; i < value->n_uses; i++)
        if (!has(f, value->uses[i].op))
            return false;
    return true;
}

/* Exp's argument is made from S; the other product that the post-ops read is G. */
static bool find_sources(finder *f, const gb_op *exponential)
{
    gb_attention_chain upper;
    gb_attention_gradient_parts *parts = f->parts;
    gb_attention_keep_producers(f->graph, &parts->score_ops, exponential->outputs[0], &upper);
    for (uint32_t i = 0; i < parts->score_ops.n; i++) {
        const gb_op *post_op = f->graph->ops[parts->score_ops.ops[i]];
        bool is_upper = false;
        for (uint32_t j = 0; j < upper.n; j++)
            is_upper = is_upper || upper.ops[j] == post_op->index;
        for (uint32_t k = 0; k < post_op->n_inputs; k++) {
            uint32_t producer = f->graph->values[post_op->inputs[k]].producer;
            const gb_op *op = producer == GB_NONE ? NULL : f->graph->ops[producer];
            if (!attention_gradients_is_product(op) ||
                    !same_dims(gb_op_output(op, 0), f->space, f->space->ndims))
                continue;
            const gb_op **place = is_upper ? &parts->scores : &parts->gradients;
            if ((*place && *place != op) || !only_pointwise_ops_read(f, op->outputs[0]))
                return false;
            *place = op;
        }
    }
    return parts->scores && parts->gradients && parts->scores != parts->gradients;
}

static bool transposes(const gb_op *op, gb_op_attr name)
{
    return gb_op_attr_bool(op, name, false);
}

/* Sorts a product that reads post-ops as its first operand. */
static bool add_result(finder *f, const gb_op *op)
{
    gb_attention_gradient_parts *parts = f->parts;
    const gb_op **place = !transposes(op, GB_ATTR_TRANSPOSE_A)           ? &parts->dq
                          : op->inputs[1] == parts->scores->inputs[0]    ? &parts->dk
                          : op->inputs[1] == parts->gradients->inputs[0] ? &parts->dv
                                                                         : NULL;
    if (!place || (*place && *place != op))
        return false;
    *place = op;
    return true;
}

static bool find_results(finder *f)
{
    gb_attention_gradient_parts *parts = f->parts;
    for (uint32_t i = 0; i < parts->score_ops.n; i++) {
        const gb_op *post_op = f->graph->ops[parts->score_ops.ops[i]];
        const gb_value *value = &f->graph->values[post_op->outputs[0]];
        for (uint32_t k = 0; k < value->n_uses; k++) {
            const gb_op *op = f->graph->ops[value->uses[k].op];
            if (value->uses[k].input == 0 && attention_gradients_is_product(op) &&
                    !add_result(f, op))
                return false;
        }
    }
    return parts->dq && parts->dk && parts->dv;
}

/* Do post-ops and the three products alone read the value? */
static bool stays_inside(const finder *f, uint32_t value_index)
{
    const gb_attention_gradient_parts *parts = f->parts;
    const gb_value *value = &f->graph->values[value_index];
    if (gb_leaves_partition(f->context, value))
        return false;
    for (uint32_t i = 0; i < value->n_uses; i++) {
        uint32_t reader = value->uses[i].op;
        if (!has(f, reader) && reader != parts->dv->index && reader != parts->dk->index &&
                reader != parts->dq->index)
            return false;
    }
    return true;
}

/* All products see Q, K, V and dO as the same matrices. */
static bool operands_agree(const finder *f)
{
    const gb_attention_gradient_parts *parts = f->parts;
    const gb_op *s = parts->scores, *g = parts->gradients;
    return parts->dq->inputs[0] == parts->dk->inputs[0] && parts->dq->inputs[1] == s->inputs[1] &&
           s->inputs[0] != g->inputs[0] && parts->dv->inputs[0] != parts->dq->inputs[0] &&
           stays_inside(f, parts->dv->inputs[0]) && stays_inside(f, parts->dq->inputs[0]) &&
           transposes(parts->dq, GB_ATTR_TRANSPOSE_B) != transposes(s, GB_ATTR_TRANSPOSE_B) &&
           transposes(parts->dk, GB_ATTR_TRANSPOSE_B) == transposes(s, GB_ATTR_TRANSPOSE_A) &&
           transposes(parts->dv, GB_ATTR_TRANSPOSE_B) == transposes(g, GB_ATTR_TRANSPOSE_A) &&
           same_dims(gb_op_output(parts->dq, 0), f->space, f->space->ndims - 1) &&
           same_dims(gb_op_output(parts->dk, 0), f->space, f->space->ndims - 2) &&
           same_dims(gb_op_output(parts->dv, 0), f->space, f->space->ndims - 2);
}

/* The sum over batch dims that alone reads the gradient; false when it is none. */
static bool find_sum(const finder *f, const gb_op *gradient, const gb_op **sum, bool *axes)
{
    const gb_value *value = &f->graph->values[gradient->outputs[0]];
    int n = f->space->ndims;
    const int64_t *list = NULL;
    if (value->n_uses != 1 || gb_leaves_partition(f->context, value))
        return false;
    *sum = f->graph->ops[value->uses[0].op];
    const char *reason;
    if ((*sum)->kind != GB_OP_REDUCE_SUM || (*sum)->n_inputs != 1 ||
            !gb_op_attr_bool(*sum, GB_ATTR_KEEP_DIMS, false) || !gb_all_types_float(*sum, &reason))
        return false;
    size_t count = gb_op_attr_s64s(*sum, GB_ATTR_AXES, &list);
    for (size_t i = 0; i < count; i++) {
        int axis = gb_normalize_axis(list[i], n);
        if (axis < 0 || axis >= n - 2)
            return false;
        axes[axis] = true;
    }
    return true;
}

/* Does the operand stay where it is along the dims? */
static bool stays(const finder *f, const gb_op *op, const bool *dims)
{
    const gb_logical_tensor *tensor = gb_op_input(op, 1);
    int missing = f->space->ndims - tensor->ndims;
    for (int d = 0; d < tensor->ndims - 2; d++)
        if (dims[d + missing] && tensor->dims[d] != 1)
            return false;
    return true;
}

static void find_sums(finder *f)
{
    gb_attention_gradient_parts *parts = f->parts;
    bool dv_axes[GB_MAX_NDIMS] = {false}, dk_axes[GB_MAX_NDIMS] = {false};
    const gb_op *dv_sum, *dk_sum;
    if (!find_sum(f, parts->dv, &dv_sum, dv_axes) || !find_sum(f, parts->dk, &dk_sum, dk_axes) ||
            memcmp(dv_axes, dk_axes, sizeof dv_axes) != 0 || !stays(f, parts->scores, dv_axes) ||
            !stays(f, parts->gradients, dv_axes))
        return;
    parts->dv_sum = dv_sum;
    parts->dk_sum = dk_sum;
    memcpy(parts->is_row, dv_axes, sizeof dv_axes);
}

/* D where only the post-ops read it, and it is made of dO: the product O dO, then its row sums. */
static bool is_row_sum(const finder *f, const gb_op *sum, const gb_op **product)
{
    const int64_t *axes = NULL;
    const char *reason;
    int n = f->space->ndims;
    const gb_value *value = &f->graph->values[sum->inputs[0]];
    const gb_op *op = value->producer == GB_NONE ? NULL : f->graph->ops[value->producer];
    bool is_sum = sum->kind == GB_OP_REDUCE_SUM && sum->n_inputs == 1 &&
                  gb_op_attr_bool(sum, GB_ATTR_KEEP_DIMS, false) &&
                  gb_op_attr_s64s(sum, GB_ATTR_AXES, &axes) == 1 &&
                  gb_normalize_axis(axes[0], n) == n - 1 && gb_all_types_float(sum, &reason) &&
                  same_dims(gb_op_output(sum, 0), f->space, n - 1);
    bool is_inside = is_sum && op && op->kind == GB_OP_MULTIPLY && value->n_uses == 1 &&
                     gb_all_types_float(op, &reason) && !gb_leaves_partition(f->context, value);
    if (!is_inside || !only_pointwise_ops_read(f, sum->outputs[0]))
        return false;
    uint32_t gradient = f->parts->gradients->inputs[0];
    *product = op;
    return (op->inputs[0] == gradient || op->inputs[1] == gradient) &&
           !transposes(f->parts->gradients, GB_ATTR_TRANSPOSE_A) &&
           gb_dims_equal(gb_op_input(op, 0), gb_op_input(op, 1));
}

static void find_row_sums(finder *f)
{
    gb_attention_gradient_parts *parts = f->parts;
    for (uint32_t i = 0; i < parts->score_ops.n && !parts->row_sums; i++) {
        const gb_op *post_op = f->graph->ops[parts->score_ops.ops[i]], *product;
        for (uint32_t k = 0; k < post_op->n_inputs; k++) {
            uint32_t producer = f->graph->values[post_op->inputs[k]].producer;
            if (producer == GB_NONE || !is_row_sum(f, f->graph->ops[producer], &product))
                continue;
            parts->row_sums = f->graph->ops[producer];
            parts->outputs = product;
        }
    }
}

/* Of what the region makes, its element-wise ops read only what is made of the scores, as it is. */
static bool post_ops_fit(const finder *f)
{
    const gb_attention_gradient_parts *parts = f->parts;
    const gb_op *behind[] = {
            parts->dv, parts->dk, parts->dq, parts->dv_sum, parts->dk_sum, parts->outputs};
    const gb_op *before[] = {parts->scores, parts->gradients, parts->row_sums};
    for (uint32_t i = 0; i < parts->score_ops.n; i++) {
        const gb_op *op = f->graph->ops[parts->score_ops.ops[i]];
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t producer = gb_graph_producer_through_views(f->graph, op->inputs[k]);
            bool inner = producer != GB_NONE && has(f, producer);
            for (size_t j = 0; j < sizeof before / sizeof *before; j++)
                inner = inner || (before[j] && before[j]->index == producer);
            if (inner && f->graph->values[op->inputs[k]].producer != producer)
                return false;
            for (size_t j = 0; j < sizeof behind / sizeof *behind; j++)
                if (behind[j] && behind[j]->index == producer)
                    return false;
        }
    }
    return true;
}

static bool attention_gradients_is_empty(const gb_attention_gradient_parts *parts)
{
    return gb_tensor_count(gb_op_output(parts->scores, 0)) == 0 ||
           gb_tensor_count(gb_op_output(parts->dq, 0)) == 0 ||
           gb_tensor_count(gb_op_output(parts->dv, 0)) == 0;
}

static gb_status attention_gradients_match(const gb_graph *graph, const gb_pass_context *context,
        const gb_op *exponential, gb_op_list *ops, void *found)
{
    gb_attention_gradient_parts *parts = found;
    finder f = {.graph = graph,
            .context = context,
            .space = gb_op_output(exponential, 0),
            .parts = parts};
    if (f.space->ndims < 2)
        return GB_SUCCESS;
    parts->exponential = exponential;
    parts->score_ops.ops[parts->score_ops.n++] = exponential->index;
    if (!grow_post_ops(&f) || !find_sources(&f, exponential) || !find_results(&f) ||
            !operands_agree(&f) || attention_gradients_is_empty(parts))
        return GB_SUCCESS;
    find_sums(&f);
    find_row_sums(&f);
    if (!post_ops_fit(&f))
        return GB_SUCCESS;
    const gb_op *all[] = {parts->scores, parts->gradients, parts->dv, parts->dk, parts->dq,
            parts->dv_sum, parts->dk_sum, parts->outputs, parts->row_sums};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            GB_TRY(gb_op_list_add(ops, all[i]->index));
    return gb_op_list_add_all(ops, parts->score_ops.n, parts->score_ops.ops);
}

const gb_region gb_region_attention_gradients = {.name = "attention_backward",
        .root = GB_OP_EXP,
        .parts_bytes = sizeof(gb_attention_gradient_parts),
        .match = attention_gradients_match};
