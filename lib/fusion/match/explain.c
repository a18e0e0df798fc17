/* Why two ops, one of which reads what the other makes, are in different partitions: what the
 * matcher says about the pair when all ops are free, and what it says when it disregards one
 * condition after the other. */
#include "fusion/match/pattern.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Patterns are tried at the ops around a pair; only those can be the first of a match with both,
 * unless a match is longer than this. */
enum { MOST_NEAR = 96 };

typedef struct explainer {
    const gb_graph *graph;
    const gb_partitioning *partitioning;
    const gb_capability *capability;
    uint32_t *free; /* per op: GB_NONE */
    uint32_t *ops;  /* of the match at hand */
    uint32_t n_near, near[MOST_NEAR];
} explainer;

static void add_near(explainer *e, uint32_t op)
{
    if (e->n_near < MOST_NEAR && op != GB_NONE && !gb_list_has(e->n_near, e->near, op))
        e->near[e->n_near++] = op;
}

/* The ops around a pair, nearest first. */
static void find_near(explainer *e, uint32_t producer, uint32_t consumer)
{
    e->n_near = 0;
    add_near(e, producer);
    add_near(e, consumer);
    for (uint32_t at = 0; at < e->n_near && e->n_near < MOST_NEAR; at++) {
        const gb_op *op = e->graph->ops[e->near[at]];
        for (uint32_t i = 0; i < op->n_inputs; i++)
            add_near(e, e->graph->values[op->inputs[i]].producer);
        for (uint32_t i = 0; i < op->n_outputs; i++) {
            const gb_value *value = &e->graph->values[op->outputs[i]];
            for (uint32_t u = 0; u < value->n_uses && e->n_near < MOST_NEAR; u++)
                add_near(e, value->uses[u].op);
        }
    }
}

/* Does some pattern put both ops together under the relaxation? */
static bool matches(const explainer *e, uint32_t producer, uint32_t consumer, gb_relaxation how)
{
    for (const gb_pattern *pattern = gb_patterns; pattern->name; pattern++)
        for (uint32_t i = 0; i < e->n_near; i++) {
            uint32_t n = gb_pattern_match_relaxed(
                    pattern, e->graph, e->near[i], e->free, e->capability, how, e->ops);
            if (gb_list_has(n, e->ops, producer) && gb_list_has(n, e->ops, consumer))
                return true;
        }
    return false;
}

/* With the flow of the value to the consumer alone, or to all its readers. */
static bool would_match(
        const explainer *e, uint32_t value, uint32_t producer, uint32_t consumer, unsigned relaxed)
{
    gb_relaxation all = {relaxed, GB_NONE, GB_NONE}, one = {relaxed, value, consumer};
    return matches(e, producer, consumer, all) || matches(e, producer, consumer, one);
}

static bool was_dropped(const explainer *e, uint32_t producer, uint32_t consumer)
{
    for (uint32_t i = 0; i < e->partitioning->n_dropped; i++) {
        const gb_part *match = &e->partitioning->dropped[i];
        if (gb_list_has(match->n_ops, match->ops, producer) &&
                gb_list_has(match->n_ops, match->ops, consumer))
            return true;
    }
    return false;
}

static bool is_idle(const gb_op *op)
{
    return gb_op_is_wildcard(op) || op->kind == GB_OP_END;
}

static bool lacks_type(const explainer *e, const gb_op *op)
{
    const char *reason = "";
    return !e->capability->supports(op, &reason) && strstr(reason, "type");
}

static bool runs_both(const explainer *e, const gb_op *producer, const gb_op *consumer)
{
    const char *reason;
    return e->capability->supports(producer, &reason) && e->capability->supports(consumer, &reason);
}

/* What the engine objects to: data types, unless it says otherwise of both ops. */
static gb_unfused_reason unsupported_reason(
        const explainer *e, const gb_op *producer, const gb_op *consumer)
{
    bool runs = runs_both(e, producer, consumer);
    return runs || lacks_type(e, producer) || lacks_type(e, consumer) ? GB_UNFUSED_DATA_TYPE
                                                                      : GB_UNFUSED_ATTRIBUTE;
}

static gb_unfused_reason find_reason(explainer *e, uint32_t value, uint32_t consumer)
{
    uint32_t producer = e->graph->values[value].producer;
    const gb_op *from = e->graph->ops[producer], *to = e->graph->ops[consumer];
    if (is_idle(from) || is_idle(to))
        return GB_UNFUSED_WILDCARD;
    if (e->partitioning->policy == GB_POLICY_DEBUG)
        return GB_UNFUSED_POLICY;
    if (e->partitioning->policy == GB_POLICY_MAX)
        return runs_both(e, from, to) ? GB_UNFUSED_POLICY : unsupported_reason(e, from, to);
    if (was_dropped(e, producer, consumer))
        return GB_UNFUSED_CYCLE;
    find_near(e, producer, consumer);
    if (would_match(e, value, producer, consumer, 0))
        return GB_UNFUSED_OTHER_PARTITION;
    if (would_match(e, value, producer, consumer, GB_RELAX_READERS))
        return GB_UNFUSED_OTHER_CONSUMER;
    if (would_match(e, value, producer, consumer, GB_RELAX_SUPPORT))
        return unsupported_reason(e, from, to);
    if (would_match(e, value, producer, consumer, GB_RELAX_ACCEPT))
        return GB_UNFUSED_ATTRIBUTE;
    if (would_match(e, value, producer, consumer, GB_RELAX_READERS | GB_RELAX_ACCEPT))
        return e->graph->values[value].n_uses > 1 ? GB_UNFUSED_OTHER_CONSUMER
                                                  : GB_UNFUSED_ATTRIBUTE;
    return GB_UNFUSED_NO_PATTERN;
}

/* Is this the first use of the value by its op, in another partition than the producer's? */
static bool is_edge(const explainer *e, const gb_value *value, uint32_t use)
{
    for (uint32_t i = 0; i < use; i++)
        if (value->uses[i].op == value->uses[use].op)
            return false;
    const uint32_t *part_of = e->partitioning->part_of;
    return value->producer != GB_NONE && part_of[value->producer] != part_of[value->uses[use].op];
}

static size_t explain(explainer *e, gb_unfused_edge *edges)
{
    size_t n = 0;
    for (uint32_t v = 0; v < e->graph->n_values; v++) {
        const gb_value *value = &e->graph->values[v];
        for (uint32_t u = 0; u < value->n_uses; u++) {
            if (!is_edge(e, value, u))
                continue;
            if (edges)
                edges[n] = (gb_unfused_edge){.tensor_id = value->tensor.id,
                        .producer_id = e->graph->ops[value->producer]->id,
                        .consumer_id = e->graph->ops[value->uses[u].op]->id,
                        .reason = find_reason(e, v, value->uses[u].op)};
            n++;
        }
    }
    return n;
}

gb_status gb_explain_edges(const gb_graph *graph, const gb_partitioning *partitioning,
        const gb_capability *capability, size_t *count, gb_unfused_edge *edges)
{
    explainer e = {.graph = graph, .partitioning = partitioning, .capability = capability};
    e.free = gb_calloc(graph->n_ops, sizeof *e.free);
    e.ops = gb_calloc(GB_PATTERN_MAX_OPS, sizeof *e.ops);
    bool complete = e.free && e.ops;
    if (complete) {
        for (uint32_t i = 0; i < graph->n_ops; i++)
            e.free[i] = GB_NONE;
        *count = explain(&e, edges);
    }
    free(e.free);
    free(e.ops);
    return complete ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

typedef struct reason_text {
    const char *name, *phrase;
} reason_text;

static const reason_text reasons[] = {
        [GB_UNFUSED_NO_PATTERN] = {"no_pattern", "no pattern puts the two ops together"},
        [GB_UNFUSED_DATA_TYPE] = {"data_type", "a pattern fits, but not on these data types"},
        [GB_UNFUSED_OTHER_CONSUMER] = {"other_consumer",
                "a pattern fits, but others read a tensor that would lie inside"},
        [GB_UNFUSED_ATTRIBUTE] = {"attribute",
                "a pattern fits the kinds of ops, but not their attributes, shapes or connections"},
        [GB_UNFUSED_WILDCARD] = {"wildcard", "Wildcard and End are never fused"},
        [GB_UNFUSED_POLICY] = {"policy",
                "the policy keeps them apart: it fuses nothing, or no more ops"},
        [GB_UNFUSED_CYCLE] = {"cycle",
                "a pattern fits, but the partition would depend on its own result"},
        [GB_UNFUSED_OTHER_PARTITION] = {"other_partition",
                "a pattern fits, but one of the ops went to another partition first"},
};

static const reason_text *text_of(gb_unfused_reason reason)
{
    static const reason_text unknown = {"undef", "unknown reason"};
    size_t n = sizeof reasons / sizeof *reasons;
    return (size_t)reason < n ? &reasons[reason] : &unknown;
}

const char *gb_unfused_reason_name(gb_unfused_reason reason)
{
    return text_of(reason)->name;
}

const char *gb_unfused_reason_describe(gb_unfused_reason reason)
{
    return text_of(reason)->phrase;
}
