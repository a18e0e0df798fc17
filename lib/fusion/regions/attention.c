/* Finds attention in a partition: from SoftMax up to the product of queries and keys, and down to
 * the product with the values. */
#include "fusion/regions/attention.h"
#include "fusion/regions/links.h"
#include "fusion/regions/regions.h"

#include "base/status.h"
#include "graph/ops/op_table.h"

#include <string.h>

typedef struct finder {
    const gb_graph *graph;
    const gb_pass_context *context;
    gb_attention_parts *parts;
} finder;

static bool has(const gb_attention_chain *chain, uint32_t op)
{
    return gb_list_has(chain->n, chain->ops, op);
}

static bool attention_add(gb_attention_chain *chain, const gb_op *op)
{
    if (chain->n == GB_ATTENTION_CHAIN_OPS)
        return false;
    chain->ops[chain->n++] = op->index;
    return true;
}

/* An End is no op of a partition. */
static bool is_inside(const gb_op *op)
{
    return op->kind != GB_OP_END;
}

/* Statistics are written when all weights are known: nothing in the region can read them. */
static bool reads_statistics(const finder *f, const gb_op *op)
{
    for (uint32_t i = 0; i < op->n_inputs && f->parts->softmax->n_outputs > 1; i++) {
        uint32_t value = op->inputs[i], producer = f->graph->values[value].producer;
        while (producer != GB_NONE && gb_op_is_view(f->graph->ops[producer])) {
            value = f->graph->ops[producer]->inputs[0];
            producer = f->graph->values[value].producer;
        }
        if (value == f->parts->softmax->outputs[1])
            return true;
    }
    return false;
}

static bool attention_is_post_op(const finder *f, const gb_op *op, const gb_logical_tensor *space)
{
    return gb_region_is_post_op(f->context, op) && gb_dims_equal(gb_op_output(op, 0), space) &&
           !reads_statistics(f, op);
}

static bool attention_is_product(const gb_op *op)
{
    const char *reason;
    return is_inside(op) && op->kind == GB_OP_MATMUL && op->n_inputs == 2 &&
           gb_all_types_float(op, &reason) && gb_op_input(op, 0)->ndims >= 2 &&
           gb_op_input(op, 1)->ndims >= 2;
}

/* Do only ops of `before`, and the SoftMax, read the op's results? */
static bool feeds_scores_only(const finder *f, const gb_op *op)
{
    const gb_value *value = &f->graph->values[op->outputs[0]];
    if (gb_leaves_partition(f->context, value))
        return false;
    for (uint32_t i = 0; i < value->n_uses; i++) {
        uint32_t reader = value->uses[i].op;
        bool inside = reader == f->parts->softmax->index || has(&f->parts->before, reader);
        if (!inside)
            return false;
    }
    return value->n_uses > 0;
}

static void reverse(gb_attention_chain *chain)
{
    for (uint32_t i = 0; i < chain->n / 2; i++) {
        uint32_t op = chain->ops[i];
        chain->ops[i] = chain->ops[chain->n - 1 - i];
        chain->ops[chain->n - 1 - i] = op;
    }
}

/* Readers come first: ops are tried in reverse topological order. */
static bool find_scores(finder *f)
{
    gb_attention_parts *parts = f->parts;
    const gb_logical_tensor *space = gb_op_input(parts->softmax, 0);
    for (uint32_t i = parts->softmax->index; i-- > 0;) {
        const gb_op *op = f->graph->ops[i];
        bool post_op = attention_is_post_op(f, op, space);
        bool product = !post_op && !parts->scores && attention_is_product(op) &&
                       gb_dims_equal(gb_op_output(op, 0), space);
        if ((!post_op && !product) || !feeds_scores_only(f, op))
            continue;
        if (product)
            parts->scores = op;
        else if (!attention_add(&parts->before, op))
            return false;
    }
    reverse(&parts->before);
    return parts->scores;
}

/* The op that alone reads the value, as input *input; NULL when there are others, or none. */
static const gb_op *attention_only_reader(const finder *f, uint32_t value_index, uint32_t *input)
{
    const gb_value *value = &f->graph->values[value_index];
    if (value->n_uses != 1 || gb_leaves_partition(f->context, value))
        return NULL;
    *input = value->uses[0].input;
    const gb_op *op = f->graph->ops[value->uses[0].op];
    return is_inside(op) ? op : NULL;
}

/* Follows post-ops from *value on; what reads the last of them, or NULL. */
static const gb_op *follow(finder *f, const gb_logical_tensor *space, gb_attention_chain *chain,
        uint32_t *value, uint32_t *input)
{
    for (;;) {
        const gb_op *op = attention_only_reader(f, *value, input);
        if (!op || !attention_is_post_op(f, op, space))
            return op;
        if (!attention_add(chain, op))
            return NULL;
        *value = op->outputs[0];
    }
}

/* Does the op leave the weights in place, or exchange queries and keys? */
static bool is_move(const gb_op *op, bool *turns)
{
    const int64_t *order = NULL;
    int n = gb_op_input(op, 0)->ndims;
    *turns = op->kind == GB_OP_STATIC_TRANSPOSE;
    if (!is_inside(op) || (op->kind != GB_OP_REORDER && !*turns))
        return false;
    if (!*turns)
        return true;
    bool swaps = gb_op_attr_s64s(op, GB_ATTR_ORDER, &order) == (size_t)n;
    for (int d = 0; d < n && swaps; d++) {
        int from = gb_normalize_axis(order[d], n);
        swaps = from == (d < n - 2 ? d : d == n - 2 ? n - 1 : n - 2);
    }
    return swaps;
}

/* Steps over moves of the weights; *turned tells whether keys are rows now. */
static const gb_op *follow_moves(
        finder *f, const gb_op *op, uint32_t *value, uint32_t *input, bool *turned)
{
    gb_attention_parts *parts = f->parts;
    bool turns;
    while (op && parts->n_moves < GB_ATTENTION_MOVES && is_move(op, &turns)) {
        parts->moves[parts->n_moves++] = op->index;
        *turned ^= turns;
        *value = op->outputs[0];
        op = attention_only_reader(f, *value, input);
    }
    return op;
}

/* The result has the batch dims of the scores, and their queries, or keys, in place. */
static bool fits_scores(const gb_attention_parts *parts, const gb_op *values)
{
    const gb_logical_tensor *out = gb_op_output(values, 0);
    const gb_logical_tensor *scores = gb_op_input(parts->softmax, 0);
    int n = scores->ndims;
    return out->ndims == n &&
           memcmp(out->dims, scores->dims, sizeof(int64_t) * (size_t)(n - 2)) == 0 &&
           out->dims[parts->swapped ? n - 1 : n - 2] ==
                   scores->dims[parts->by_rows ? n - 1 : n - 2];
}

static bool attention_find_values(finder *f)
{
    gb_attention_parts *parts = f->parts;
    uint32_t value = parts->softmax->outputs[0], input = 0;
    bool turned = false;
    const gb_op *op = follow(f, gb_op_input(parts->softmax, 0), &parts->between, &value, &input);
    op = follow_moves(f, op, &value, &input, &turned);
    if (!op || !attention_is_product(op) || reads_statistics(f, op))
        return false;
    parts->swapped = input == 1;
    gb_op_attr transpose = parts->swapped ? GB_ATTR_TRANSPOSE_B : GB_ATTR_TRANSPOSE_A;
    turned ^= gb_op_attr_bool(op, transpose, false);
    parts->by_rows = turned != parts->swapped;
    if (!fits_scores(parts, op))
        return false;
    parts->values = op;
    parts->result = op->outputs[0];
    follow(f, gb_op_output(op, 0), &parts->after, &parts->result, &input);
    return true;
}

/* The post-ops that make a quantised matrix the operand `input` of a product, for nobody else. */
static void find_source(
        const finder *f, const gb_op *product, uint32_t input, gb_attention_chain *chain)
{
    uint32_t value_index = product->inputs[input];
    const gb_logical_tensor *space = gb_op_input(product, input);
    for (bool found = false; !found && chain->n < 3;) {
        const gb_value *value = &f->graph->values[value_index];
        const gb_op *op = value->producer == GB_NONE ? NULL : f->graph->ops[value->producer];
        found = op && (op->kind == GB_OP_DEQUANTIZE || op->kind == GB_OP_DYNAMIC_DEQUANTIZE);
        bool alone = value->n_uses == 1 && value->view_of == GB_NONE &&
                     !gb_leaves_partition(f->context, value);
        if (!op || !alone || !is_inside(op) || (!found && op->kind != GB_OP_TYPE_CAST) ||
                !gb_dims_equal(gb_op_output(op, 0), space)) {
            chain->n = 0;
            return;
        }
        chain->ops[chain->n++] = op->index;
        value_index = op->inputs[0];
    }
    reverse(chain);
    if (chain->n > 0 && f->graph->values[value_index].view_of != GB_NONE)
        chain->n = 0;
}

static void find_sources(finder *f)
{
    gb_attention_parts *parts = f->parts;
    if (!gb_op_attr_bool(parts->scores, GB_ATTR_TRANSPOSE_A, false))
        find_source(f, parts->scores, 0, &parts->query_source);
    find_source(f, parts->scores, 1, &parts->key_source);
    find_source(f, parts->values, parts->swapped ? 0 : 1, &parts->value_source);
}

bool gb_attention_keeps_scale(const gb_graph *graph, const gb_attention_chain *chain)
{
    bool rounded = false;
    for (uint32_t i = 0; i < chain->n; i++) {
        gb_op_kind kind = graph->ops[chain->ops[i]]->kind;
        if (kind == GB_OP_TYPE_CAST)
            rounded = true;
        else if (kind != GB_OP_DROPOUT || rounded)
            return false;
    }
    return true;
}

static bool attention_is_empty(const gb_attention_parts *parts)
{
    return gb_tensor_count(gb_op_output(parts->scores, 0)) == 0 ||
           gb_tensor_count(gb_op_input(parts->scores, 0)) == 0 ||
           gb_tensor_count(gb_op_output(parts->values, 0)) == 0;
}

static gb_status attention_match(const gb_graph *graph, const gb_pass_context *context,
        const gb_op *softmax, gb_op_list *ops, void *found)
{
    gb_attention_parts *parts = found;
    finder f = {.graph = graph, .context = context, .parts = parts};
    const gb_logical_tensor *src = gb_op_input(softmax, 0);
    parts->softmax = softmax;
    int axis = gb_normalize_axis(gb_op_attr_s64(softmax, GB_ATTR_AXIS, 1), src->ndims);
    if (axis != src->ndims - 1 || !find_scores(&f) || !attention_find_values(&f) ||
            attention_is_empty(parts))
        return GB_SUCCESS;
    find_sources(&f);
    const gb_attention_chain *chains[] = {&parts->query_source, &parts->key_source,
            &parts->value_source, &parts->before, &parts->between, &parts->after};
    GB_TRY(gb_op_list_add(ops, parts->scores->index));
    GB_TRY(gb_op_list_add(ops, softmax->index));
    GB_TRY(gb_op_list_add(ops, parts->values->index));
    GB_TRY(gb_op_list_add_all(ops, parts->n_moves, parts->moves));
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
        GB_TRY(gb_op_list_add_all(ops, chains[i]->n, chains[i]->ops));
    return GB_SUCCESS;
}

const gb_region gb_region_attention = {.name = "attention",
        .root = GB_OP_SOFTMAX,
        .parts_bytes = sizeof(gb_attention_parts),
        .match = attention_match};
