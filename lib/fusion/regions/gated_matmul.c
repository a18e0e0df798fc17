/* Finds gated products. */
#include "fusion/regions/gated_matmul.h"

#include "base/status.h"
#include "fusion/regions/regions.h"
#include "graph/ops/op_table.h"

enum { SRC, WEIGHTS };
enum { MOST_POST_OPS = GB_GROUP_OPS };

typedef struct finder {
    const gb_graph *graph;
    const gb_pass_context *context;
    gb_gated_matmul_parts *found;
} finder;

/* Does the product's kernel read what the op reads instead? */
static bool takes(
        const gb_pass_context *context, const gb_op *product, uint32_t input, const gb_op *op)
{
    const gb_capability *engine = context->capability;
    return engine->fuses_producer && engine->fuses_producer(product, input, op);
}

static bool stays_inside(const finder *f, const gb_value *value)
{
    return value->n_uses > 0 && !gb_leaves_partition(f->context, value);
}

/* The only reader of the value, if it is read once and only here. */
static const gb_op *gated_matmul_only_reader(const finder *f, uint32_t value)
{
    const gb_value *v = &f->graph->values[value];
    return stays_inside(f, v) && v->n_uses == 1 ? f->graph->ops[v->uses[0].op] : NULL;
}

static bool gated_matmul_is_post_op(const finder *f, const gb_op *op)
{
    return gb_region_is_post_op(f->context, op) &&
           gb_dims_equal(gb_op_output(op, 0), gb_op_output(f->found->up.op, 0));
}

/* A product like that of `up`, up to the weights? */
static bool is_gate(const finder *f, const gb_op *op)
{
    const gb_op *up = f->found->up.op;
    return op->kind == GB_OP_MATMUL && op != up && op->inputs[SRC] == up->inputs[SRC] &&
           gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_A, false) ==
                   gb_op_attr_bool(up, GB_ATTR_TRANSPOSE_A, false) &&
           gb_op_input(op, WEIGHTS)->ndims == gb_op_input(up, WEIGHTS)->ndims &&
           gb_dims_equal(gb_op_output(op, 0), gb_op_output(up, 0));
}

/* Do only `join` and post-ops in front of it read the result? */
static bool feeds_join_only(const finder *f, const gb_op *op, const gb_op *join)
{
    const gb_value *value = &f->graph->values[op->outputs[0]];
    for (uint32_t i = 0; i < value->n_uses; i++)
        if (value->uses[i].op != join->index &&
                !gb_list_has(f->found->before.n, f->found->before.ops, value->uses[i].op))
            return false;
    return stays_inside(f, value);
}

/* Readers come first: ops are tried in reverse topological order. */
static bool find_gate(finder *f, const gb_op *join)
{
    gb_gated_matmul_parts *g = f->found;
    for (uint32_t i = join->index; i-- > 0;) {
        const gb_op *op = f->graph->ops[i];
        bool gate = !g->gate.op && is_gate(f, op);
        if ((!gate && !gated_matmul_is_post_op(f, op)) || !feeds_join_only(f, op, join))
            continue;
        if (gate)
            g->gate.op = op;
        else if (g->before.n < MOST_POST_OPS)
            g->before.ops[g->before.n++] = op->index;
        else
            return false;
    }
    return g->gate.op != NULL;
}

/* The one input of `join` that the post-ops behind the gate make. */
static bool find_made(finder *f, const gb_op *join)
{
    gb_gated_matmul_parts *g = f->found;
    g->made = GB_NONE;
    for (uint32_t i = 0; i < join->n_inputs; i++) {
        uint32_t value = join->inputs[i], producer = f->graph->values[value].producer;
        bool here =
                producer != GB_NONE && (producer == g->gate.op->index ||
                                               gb_list_has(g->before.n, g->before.ops, producer));
        if (!here)
            continue;
        if (g->made != GB_NONE && g->made != value)
            return false;
        g->made = value;
    }
    return g->made != GB_NONE;
}

static void find_after(finder *f, const gb_op *join)
{
    gb_gated_matmul_parts *g = f->found;
    for (const gb_op *op = join;
            op && gated_matmul_is_post_op(f, op) && g->after.n < MOST_POST_OPS;) {
        g->after.ops[g->after.n++] = op->index;
        g->result = op->outputs[0];
        op = gated_matmul_only_reader(f, g->result);
    }
}

/* The producers of the weights that a product takes over, if nobody else reads what they make. */
static void find_dequantized(const finder *f, gb_gated_product *p)
{
    uint32_t value = p->op->inputs[WEIGHTS];
    while (p->n_dequantized < GB_GATED_DEQUANTIZED && gated_matmul_only_reader(f, value)) {
        uint32_t producer = f->graph->values[value].producer;
        const gb_op *op = producer == GB_NONE ? NULL : f->graph->ops[producer];
        if (!op || !takes(f->context, p->op, WEIGHTS, op))
            return;
        p->dequantized[p->n_dequantized++] = producer;
        value = op->inputs[0];
    }
}

/* Codes as source are better multiplied as integers, and a single column is no matrix. */
static bool is_worth_it(const gb_graph *graph, const gb_pass_context *context, const gb_op *up)
{
    const gb_logical_tensor *result = gb_op_output(up, 0);
    uint32_t producer = graph->values[up->inputs[SRC]].producer;
    return gb_op_input(up, WEIGHTS)->ndims >= 2 && result->ndims >= 1 &&
           result->dims[result->ndims - 1] > 1 && gb_tensor_count(result) > 0 &&
           (producer == GB_NONE || !takes(context, up, SRC, graph->ops[producer]));
}

static gb_status add_product(
        gb_op_list *ops, const gb_gated_product *product, const gb_region_chain *post_ops)
{
    GB_TRY(gb_op_list_add(ops, product->op->index));
    GB_TRY(gb_op_list_add_all(ops, product->n_dequantized, product->dequantized));
    return gb_op_list_add_all(ops, post_ops->n, post_ops->ops);
}

static gb_status gated_matmul_match(const gb_graph *graph, const gb_pass_context *context,
        const gb_op *up, gb_op_list *ops, void *found)
{
    gb_gated_matmul_parts *parts = found;
    finder f = {graph, context, parts};
    parts->up.op = up;
    if (!is_worth_it(graph, context, up))
        return GB_SUCCESS;
    const gb_op *join = gated_matmul_only_reader(&f, up->outputs[0]);
    if (!join || !gated_matmul_is_post_op(&f, join) || !find_gate(&f, join) || !find_made(&f, join))
        return GB_SUCCESS;
    find_after(&f, join);
    find_dequantized(&f, &parts->gate);
    find_dequantized(&f, &parts->up);
    GB_TRY(add_product(ops, &parts->gate, &parts->before));
    return add_product(ops, &parts->up, &parts->after);
}

const gb_region gb_region_gated_matmul = {.name = "gated matmul",
        .root = GB_OP_MATMUL,
        .parts_bytes = sizeof(gb_gated_matmul_parts),
        .match = gated_matmul_match};
