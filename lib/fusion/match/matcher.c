/* Interprets a pattern tree on a graph. */
#include "fusion/match/pattern.h"

typedef struct match {
    const gb_graph *graph;
    const uint32_t *part_of; /* per op; GB_NONE: free */
    const gb_capability *capability;
    gb_relaxation relaxation;
    uint32_t value; /* the current value */
    uint32_t most, n_ops;
    uint32_t *ops;
} match;

static bool match_node(match *m, const gb_pattern_node *node);
static bool match_producer(match *m, const gb_pattern_node *node, uint32_t value);

static bool is_matched(const match *m, uint32_t op)
{
    for (uint32_t i = 0; i < m->n_ops; i++)
        if (m->ops[i] == op)
            return true;
    return false;
}

static bool is_kind(const gb_pattern_node *node, gb_op_kind kind)
{
    if (gb_op_schema_get(kind)->flags & node->flags)
        return true;
    for (uint32_t i = 0; i < node->n_kinds; i++)
        if (node->kinds[i] == kind)
            return true;
    return false;
}

static bool ignores(const match *m, unsigned condition)
{
    return m->relaxation.relaxed & condition;
}

static bool matcher_accepts(
        const match *m, const gb_pattern_node *node, uint32_t op_index, uint32_t input)
{
    const gb_op *op = m->graph->ops[op_index];
    const char *reason;
    return m->n_ops < m->most && m->part_of[op_index] == GB_NONE && !is_matched(m, op_index) &&
           is_kind(node, op->kind) &&
           (!node->accept || ignores(m, GB_RELAX_ACCEPT) || node->accept(op, input)) &&
           (op->kind == GB_OP_END || ignores(m, GB_RELAX_SUPPORT) ||
                   m->capability->supports(op, &reason));
}

static bool match_side(match *m, const gb_pattern_side *side, const gb_op *op, uint32_t flow)
{
    uint32_t first = side->input, count = 1;
    if (first == GB_OTHER_INPUT)
        first = flow == 0 ? 1 : 0;
    if (first == GB_EVERY_INPUT)
        first = 0, count = op->n_inputs;
    for (uint32_t i = 0; i < count; i++)
        if (first + i >= op->n_inputs || !match_producer(m, side->node, op->inputs[first + i]))
            return false;
    return true;
}

static bool match_sides(match *m, const gb_pattern_node *node, const gb_op *op, uint32_t flow)
{
    for (int i = 0; i < GB_PATTERN_MAX_SIDES && node->sides[i].node; i++) {
        const gb_pattern_side *side = &node->sides[i];
        if (!match_side(m, side, op, flow) && !side->optional)
            return false;
    }
    return true;
}

/* Takes the op when it fits the node with all its sides; leaves the match as it was otherwise. */
static bool take(match *m, const gb_pattern_node *node, uint32_t op_index, uint32_t input)
{
    if (!matcher_accepts(m, node, op_index, input))
        return false;
    match saved = *m;
    const gb_op *op = m->graph->ops[op_index];
    m->ops[m->n_ops++] = op_index;
    if (match_sides(m, node, op, input)) {
        if (op->n_outputs)
            m->value = op->outputs[0];
        return true;
    }
    *m = saved;
    return false;
}

static bool match_producer(match *m, const gb_pattern_node *node, uint32_t value)
{
    for (int i = 0; node->form == GB_PATTERN_ALTERNATIVE && i < GB_PATTERN_MAX_CHILDREN &&
                    node->children[i];
            i++)
        if (match_producer(m, node->children[i], value))
            return true;
    uint32_t producer = m->graph->values[value].producer;
    if (node->form != GB_PATTERN_OP || producer == GB_NONE ||
            m->graph->values[value].producer_output != 0)
        return false;
    uint32_t flow = m->value;
    bool matched = take(m, node, producer, 0);
    m->value = flow;
    return matched;
}

static bool is_read_by_one_op(const gb_value *value)
{
    for (uint32_t i = 1; i < value->n_uses; i++)
        if (value->uses[i].op != value->uses[0].op)
            return false;
    return true;
}

static bool may_flow_to(const match *m, uint32_t op)
{
    return m->value != m->relaxation.value || op == m->relaxation.reader;
}

static bool match_op(match *m, const gb_pattern_node *node)
{
    const gb_value *value = &m->graph->values[m->value];
    if (!node->shared && !ignores(m, GB_RELAX_READERS) && !is_read_by_one_op(value))
        return false;
    for (uint32_t i = 0; i < value->n_uses; i++)
        if (may_flow_to(m, value->uses[i].op) &&
                take(m, node, value->uses[i].op, value->uses[i].input))
            return true;
    return false;
}

static bool match_children(match *m, const gb_pattern_node *node)
{
    match saved = *m;
    for (int i = 0; i < GB_PATTERN_MAX_CHILDREN && node->children[i]; i++) {
        if (node->form == GB_PATTERN_FORK)
            m->value = saved.value;
        if (match_node(m, node->children[i]))
            continue;
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
    if (count >= node->min)
        return true;
    *m = saved;
    return false;
}

static bool match_alternative(match *m, const gb_pattern_node *node)
{
    for (int i = 0; i < GB_PATTERN_MAX_CHILDREN && node->children[i]; i++)
        if (match_node(m, node->children[i]))
            return true;
    return false;
}

/* Readers of the value inside the match; *outside counts the others. */
static uint32_t count_readers(const match *m, uint32_t value, uint32_t *outside)
{
    const gb_value *v = &m->graph->values[value];
    uint32_t inside = 0;
    *outside = 0;
    for (uint32_t i = 0; i < v->n_uses; i++)
        *(is_matched(m, v->uses[i].op) ? &inside : outside) += 1;
    return inside;
}

/* A fork is complete when nobody outside the match reads its value. */
static bool match_fork(match *m, const gb_pattern_node *node)
{
    match saved = *m;
    uint32_t outside;
    if (match_children(m, node)) {
        count_readers(m, saved.value, &outside);
        if (outside == 0 || ignores(m, GB_RELAX_READERS))
            return true;
    }
    *m = saved;
    return false;
}

static bool match_node(match *m, const gb_pattern_node *node)
{
    switch (node->form) {
    case GB_PATTERN_OP:
        return match_op(m, node);
    case GB_PATTERN_SEQUENCE:
        return match_children(m, node);
    case GB_PATTERN_OPTIONAL:
        return match_children(m, node) || true;
    case GB_PATTERN_REPEAT:
        return match_repeat(m, node);
    case GB_PATTERN_ALTERNATIVE:
        return match_alternative(m, node);
    case GB_PATTERN_FORK:
        return match_fork(m, node);
    }
    return false;
}

/* No value may be read both inside and outside; further outputs of an op may. */
static bool nothing_escapes(const match *m)
{
    for (uint32_t i = 0; i < m->n_ops; i++) {
        const gb_op *op = m->graph->ops[m->ops[i]];
        uint32_t outside;
        if (op->n_outputs && count_readers(m, op->outputs[0], &outside) && outside)
            return false;
    }
    return true;
}

static uint32_t match_pattern(match *m, const gb_pattern *pattern, uint32_t start)
{
    const gb_pattern_node *root = pattern->root;
    if (!take(m, root->children[0], start, 0))
        return 0;
    for (int i = 1; i < GB_PATTERN_MAX_CHILDREN && root->children[i]; i++)
        if (!match_node(m, root->children[i]))
            return 0;
    return ignores(m, GB_RELAX_READERS) || nothing_escapes(m) ? m->n_ops : 0;
}

uint32_t gb_pattern_match(const gb_pattern *pattern, const gb_graph *graph, uint32_t start,
        const uint32_t *part_of, const gb_capability *capability, uint32_t most, uint32_t *ops)
{
    match m = {.graph = graph,
            .part_of = part_of,
            .capability = capability,
            .relaxation = {.value = GB_NONE, .reader = GB_NONE},
            .most = most,
            .ops = ops};
    return match_pattern(&m, pattern, start);
}

uint32_t gb_pattern_match_relaxed(const gb_pattern *pattern, const gb_graph *graph, uint32_t start,
        const uint32_t *part_of, const gb_capability *capability, gb_relaxation relaxation,
        uint32_t *ops)
{
    match m = {.graph = graph,
            .part_of = part_of,
            .capability = capability,
            .relaxation = relaxation,
            .most = GB_PATTERN_MAX_OPS,
            .ops = ops};
    return match_pattern(&m, pattern, start);
}
