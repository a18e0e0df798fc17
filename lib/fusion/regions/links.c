/* Follows element-wise ops behind the last anchor of a region. */
#include "fusion/regions/links.h"

#include "graph/ops/op_table.h"

enum { MOST_OPS = 1024 };

typedef struct marks {
    bool member[MOST_OPS], behind[MOST_OPS]; /* behind: reads a result of the region, directly or
                                                through others */
} marks;

/* Scales and zero points that split dims into groups do not fit tiles. */
bool gb_region_is_post_op(const gb_pass_context *context, const gb_op *op)
{
    return op->kind != GB_OP_END && op->n_outputs == 1 && context->capability->is_pointwise(op) &&
           !gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false);
}

/* Does the post-op only read members, and what does not depend on them? */
static bool post_ops_fits(const gb_graph *graph, const gb_pass_context *context, const gb_op *op,
        const gb_logical_tensor *space, const marks *m, bool *depends)
{
    bool inside = true;
    *depends = false;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        uint32_t producer = gb_graph_producer_through_views(graph, op->inputs[i]);
        if (producer == GB_NONE || !m->behind[producer])
            continue;
        *depends = true;
        inside = inside && m->member[producer] &&
                 graph->values[op->inputs[i]].producer == producer &&
                 gb_dims_equal(gb_op_input(op, i), space);
    }
    return inside && gb_region_is_post_op(context, op) && gb_dims_equal(gb_op_output(op, 0), space);
}

static bool is_free(const gb_pass_context *context, uint32_t op)
{
    return !context->region_of || context->region_of[op] == GB_NONE;
}

/* Conversions that make a side operand of a post-op, for that alone, of something smaller. */
static bool is_side(const gb_graph *graph, const gb_pass_context *context, const gb_op *op,
        const gb_op *anchor, const marks *m)
{
    if ((op->kind != GB_OP_DEQUANTIZE && op->kind != GB_OP_TYPE_CAST) || m->behind[op->index])
        return false;
    const gb_value *value = &graph->values[op->outputs[0]];
    if (value->n_uses != 1 || gb_leaves_partition(context, value))
        return false;
    const gb_op *reader = graph->ops[value->uses[0].op];
    return reader != anchor && m->member[reader->index] &&
           gb_runs_with_reader(context->capability, op, reader);
}

/* Do others than post-ops of the region read what Dequantize makes? They rather read the codes. */
static bool is_read_outside(const gb_graph *graph, const gb_op *op, const marks *m)
{
    const gb_value *value = &graph->values[op->outputs[0]];
    for (uint32_t i = 0; op->kind == GB_OP_DEQUANTIZE && i < value->n_uses; i++)
        if (!m->member[value->uses[i].op])
            return true;
    return false;
}

void gb_region_find_post_ops(const gb_graph *graph, const gb_pass_context *context,
        const gb_op *anchor, gb_region_chain *post_ops)
{
    enum { MOST = sizeof post_ops->ops / sizeof *post_ops->ops };
    const gb_logical_tensor *space = gb_op_output(anchor, 0);
    uint32_t n = 0;
    marks m = {0};
    post_ops->n = 0;
    if (graph->n_ops > MOST_OPS)
        return;
    m.member[anchor->index] = m.behind[anchor->index] = true;
    for (uint32_t i = anchor->index + 1; i < graph->n_ops; i++) {
        bool depends, post_op = post_ops_fits(graph, context, graph->ops[i], space, &m, &depends);
        m.behind[i] = depends;
        m.member[i] = depends && post_op && n < MOST && is_free(context, i);
        n += m.member[i];
    }
    for (uint32_t i = graph->n_ops; i-- > anchor->index + 1;)
        if (m.member[i] && is_read_outside(graph, graph->ops[i], &m))
            m.member[i] = false, n--;
    for (uint32_t i = graph->n_ops; i-- > 0 && n < MOST;) {
        bool side = !m.member[i] && is_free(context, i) &&
                    is_side(graph, context, graph->ops[i], anchor, &m);
        m.member[i] = m.member[i] || side;
        n += side;
    }
    for (uint32_t i = 0; i < graph->n_ops; i++)
        if (m.member[i] && i != anchor->index)
            post_ops->ops[post_ops->n++] = i;
}
