/* Interprets a pattern tree on a graph. */
#include "fusion/pattern.h"

typedef struct match {
    const gb_graph *graph;
    const bool *taken;
    const gb_capability *capability;
    uint32_t value; /* the current value */
    uint32_t n_ops;
    uint32_t *ops;
} match;

static bool match_node(match *m, const gb_pattern_node *node);

static bool is_matched(const match *m, uint32_t op)
{
    for (uint32_t i = 0; i < m->n_ops; i++)
        if (m->ops[i] == op) return true;
    return false;
}

static bool is_kind(const gb_pattern_node *node, gb_op_kind kind)
{
    if (gb_op_schema_get(kind)->flags & node->flags) return true;
    for (uint32_t i = 0; i < node->n_kinds; i++)
        if (node->kinds[i] == kind) return true;
    return false;
}

static bool accepts(const match *m, const gb_pattern_node *node, uint32_t op_index, uint32_t input)
{
    const gb_op *op = m->graph->ops[op_index];
    const char *reason;
    return !m->taken[op_index] && !is_matched(m, op_index) && is_kind(node, op->kind)
            && (!node->accept || node->accept(op, input)) && m->capability->supports(op, &reason);
}

static void take(match *m, uint32_t op_index)
{
    m->ops[m->n_ops++] = op_index;
    m->value = m->graph->ops[op_index]->outputs[0];
}

/* The op that alone reads the current value, or GB_NONE: a value with other readers would escape from the match. */
static uint32_t only_reader(const match *m, uint32_t *input)
{
    const gb_value *value = &m->graph->values[m->value];
    if (value->n_uses == 0) return GB_NONE;
    for (uint32_t i = 1; i < value->n_uses; i++)
        if (value->uses[i].op != value->uses[0].op) return GB_NONE;
    *input = value->uses[0].input;
    return value->uses[0].op;
}

static bool match_op(match *m, const gb_pattern_node *node)
{
    uint32_t input;
    uint32_t op = only_reader(m, &input);
    if (op == GB_NONE || !accepts(m, node, op, input)) return false;
    take(m, op);
    return true;
}

static bool match_children(match *m, const gb_pattern_node *node)
{
    match saved = *m;
    for (int i = 0; i < GB_PATTERN_MAX_CHILDREN && node->children[i]; i++) {
        if (match_node(m, node->children[i])) continue;
        *m = saved;
        return false;
    }
    return true;
}

static bool match_repeat(match *m, const gb_pattern_node *node)
{
    match saved = *m;
    uint32_t count = 0;
    while (count < node->max && match_children(m, node))
        count++;
    if (count >= node->min) return true;
    *m = saved;
    return false;
}

static bool match_alternative(match *m, const gb_pattern_node *node)
{
    for (int i = 0; i < GB_PATTERN_MAX_CHILDREN && node->children[i]; i++)
        if (match_node(m, node->children[i])) return true;
    return false;
}

/* Follows the chain that starts at `reader`, then requires that its result and `shared` meet in the joining op. */
static bool join_through(match *m, const gb_pattern_node *node, uint32_t shared, gb_use reader)
{
    if (!accepts(m, node->children[0], reader.op, reader.input)) return false;
    take(m, reader.op);
    uint32_t input;
    uint32_t joint = only_reader(m, &input);
    if (joint == GB_NONE || !accepts(m, node->children[1], joint, input)) return false;
    const gb_value *value = &m->graph->values[shared];
    for (uint32_t i = 0; i < value->n_uses; i++)
        if (value->uses[i].op != reader.op && value->uses[i].op != joint) return false;
    const gb_op *op = m->graph->ops[joint];
    bool meets = false;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        meets = meets || op->inputs[i] == shared;
    if (!meets) return false;
    take(m, joint);
    return true;
}

static bool match_join(match *m, const gb_pattern_node *node)
{
    match saved = *m;
    const gb_value *value = &m->graph->values[m->value];
    for (uint32_t i = 0; i < value->n_uses; i++) {
        if (join_through(m, node, saved.value, value->uses[i])) return true;
        *m = saved;
    }
    return false;
}

static bool match_node(match *m, const gb_pattern_node *node)
{
    switch (node->form) {
    case GB_PATTERN_OP: return match_op(m, node);
    case GB_PATTERN_SEQUENCE: return match_children(m, node);
    case GB_PATTERN_OPTIONAL: return match_children(m, node) || true;
    case GB_PATTERN_REPEAT: return match_repeat(m, node);
    case GB_PATTERN_ALTERNATIVE: return match_alternative(m, node);
    case GB_PATTERN_JOIN: return match_join(m, node);
    }
    return false;
}

uint32_t gb_pattern_match(const gb_pattern *pattern, const gb_graph *graph, uint32_t start, const bool *taken,
        const gb_capability *capability, uint32_t *ops)
{
    match m = {.graph = graph, .taken = taken, .capability = capability, .ops = ops};
    /* The first child names the op the match starts with; the others follow its output 0. */
    const gb_pattern_node *root = pattern->root;
    if (!accepts(&m, root->children[0], start, 0)) return 0;
    take(&m, start);
    for (int i = 1; i < GB_PATTERN_MAX_CHILDREN && root->children[i]; i++)
        if (!match_node(&m, root->children[i])) return 0;
    return m.n_ops;
}
