/* Hashing and comparing graphs by content: ops are ordered by colours that depend on their
 * surroundings alone. Of ops that have the same colour any is as good as the others; one is given a
 * colour of its own, which then tells its neighbours apart as well. */
#include "graph/ir/content.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>

/* Ops and values that may be visited before ties are left to the order of the ops: some 20 ms. */
enum { MOST_VISITS = 1 << 20 };

/* An op with what orders it. */
typedef struct ranked {
    uint32_t level; /* ops on the longest way to it: its producers are on lower levels */
    uint32_t op;
    uint64_t colour;
} ranked;

static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    if (x->colour != y->colour)
        return x->colour < y->colour ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

static void find_levels(const gb_graph *graph, uint32_t *levels)
{
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        const gb_op *op = graph->ops[i];
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t producer = graph->values[op->inputs[k]].producer;
            if (producer != GB_NONE && levels[producer] >= levels[i])
                levels[i] = levels[producer] + 1;
        }
    }
}

static void rank_ops(
        const gb_graph *graph, const uint32_t *levels, const uint64_t *colours, ranked *ranks)
{
    for (uint32_t i = 0; i < graph->n_ops; i++)
        ranks[i] = (ranked){levels[i], i, colours[i]};
    qsort(ranks, graph->n_ops, sizeof *ranks, by_rank);
}

/* The first of two ops that rank the same, or the number of ops. */
static uint32_t find_tie(const ranked *ranks, uint32_t n)
{
    for (uint32_t i = 0; i + 1 < n; i++)
        if (ranks[i].level == ranks[i + 1].level && ranks[i].colour == ranks[i + 1].colour)
            return i;
    return n;
}

static void order_ops(
        const gb_graph *graph, const uint32_t *levels, gb_colours *colours, ranked *ranks)
{
    for (;;) {
        rank_ops(graph, levels, colours->ops, ranks);
        uint32_t tie = find_tie(ranks, graph->n_ops);
        if (tie == graph->n_ops || colours->visited > MOST_VISITS)
            return;
        colours->ops[ranks[tie].op] = gb_hash_mix(colours->ops[ranks[tie].op], 1);
        gb_colours_refine(graph, colours);
    }
}

/* Does not depend on the order of ops. */
static uint64_t hash_of(const gb_graph *graph, const gb_colours *colours)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < graph->n_ops; i++)
        sum += gb_hash_mix(colours->ops[i], 0);
    uint64_t mode = 2 * (uint64_t)graph->fpmath_mode + graph->fpmath_apply_to_int;
    return gb_hash_mix(gb_hash_mix((uint64_t)graph->engine_kind, mode), sum);
}

static void mention(gb_content *content, const uint32_t *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (content->numbers[values[i]] != GB_NONE)
            continue;
        content->numbers[values[i]] = content->n_values;
        content->values[content->n_values++] = values[i];
    }
}

static void number(const gb_graph *graph, const ranked *ranks, gb_content *content)
{
    for (uint32_t v = 0; v < graph->n_values; v++)
        content->numbers[v] = GB_NONE;
    content->n_ops = graph->n_ops;
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        const gb_op *op = graph->ops[ranks[i].op];
        content->ops[i] = ranks[i].op;
        mention(content, op->inputs, op->n_inputs);
        mention(content, op->outputs, op->n_outputs);
    }
}

gb_status gb_content_create(const gb_graph *graph, gb_content *content)
{
    gb_colours colours = {0};
    uint32_t *levels = gb_calloc(graph->n_ops, sizeof *levels);
    ranked *ranks = gb_calloc(graph->n_ops, sizeof *ranks);
    *content = (gb_content){.ops = gb_calloc(graph->n_ops, sizeof *content->ops),
            .values = gb_calloc(graph->n_values, sizeof *content->values),
            .numbers = gb_calloc(graph->n_values, sizeof *content->numbers)};
    gb_status status = gb_colours_create(graph, &colours);
    if (!levels || !ranks || !content->ops || !content->values || !content->numbers)
        status = GB_OUT_OF_MEMORY;
    if (status == GB_SUCCESS) {
        find_levels(graph, levels);
        gb_colours_refine(graph, &colours);
        content->hash = hash_of(graph, &colours);
        order_ops(graph, levels, &colours, ranks);
        number(graph, ranks, content);
    } else {
        gb_content_clear(content);
    }
    gb_colours_free(&colours);
    free(levels);
    free(ranks);
    return status;
}

void gb_content_clear(gb_content *content)
{
    free(content->ops);
    free(content->values);
    free(content->numbers);
    *content = (gb_content){0};
}

/* Do two ops mention values of the same numbers? */
static bool same_values(const gb_content *of_a, const uint32_t *a, const gb_content *of_b,
        const uint32_t *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (of_a->numbers[a[i]] != of_b->numbers[b[i]])
            return false;
    return true;
}

static bool same_ops(
        const gb_graph *a, const gb_content *of_a, const gb_graph *b, const gb_content *of_b)
{
    for (uint32_t i = 0; i < of_a->n_ops; i++) {
        const gb_op *x = a->ops[of_a->ops[i]], *y = b->ops[of_b->ops[i]];
        if (!gb_op_same(x, y) || !same_values(of_a, x->inputs, of_b, y->inputs, x->n_inputs) ||
                !same_values(of_a, x->outputs, of_b, y->outputs, x->n_outputs))
            return false;
    }
    return true;
}

bool gb_content_equal(
        const gb_graph *a, const gb_content *of_a, const gb_graph *b, const gb_content *of_b)
{
    if (of_a->hash != of_b->hash || of_a->n_ops != of_b->n_ops ||
            of_a->n_values != of_b->n_values || a->engine_kind != b->engine_kind ||
            a->fpmath_mode != b->fpmath_mode || a->fpmath_apply_to_int != b->fpmath_apply_to_int)
        return false;
    for (uint32_t v = 0; v < of_a->n_values; v++)
        if (!gb_tensor_same(&a->values[of_a->values[v]].tensor, &b->values[of_b->values[v]].tensor))
            return false;
    return same_ops(a, of_a, b, of_b);
}

/* The content of a graph in any state: one that is not finalized may have to be ordered, in a copy.
 */
static gb_status any_content(const gb_graph *graph, gb_graph **copy, gb_content *content)
{
    gb_status status = gb_graph_clone(graph, NULL, 0, copy);
    if (status == GB_SUCCESS)
        status = gb_content_create(*copy, content);
    return status;
}

gb_status gb_graph_get_hash(const gb_graph *graph, uint64_t *hash)
{
    if (!graph || !hash)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_get_hash: NULL argument");
    gb_graph *copy = NULL;
    gb_content content = {0};
    gb_status status = any_content(graph, &copy, &content);
    if (status == GB_SUCCESS)
        *hash = content.hash;
    gb_content_clear(&content);
    gb_graph_destroy(copy);
    return status;
}

gb_status gb_graph_is_equal(const gb_graph *a, const gb_graph *b, uint8_t *equal)
{
    if (!a || !b || !equal)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_is_equal: NULL argument");
    gb_graph *copies[2] = {NULL, NULL};
    gb_content of_a = {0}, of_b = {0};
    gb_status status = any_content(a, &copies[0], &of_a);
    if (status == GB_SUCCESS)
        status = any_content(b, &copies[1], &of_b);
    if (status == GB_SUCCESS)
        *equal = gb_content_equal(copies[0], &of_a, copies[1], &of_b);
    gb_content_clear(&of_a);
    gb_content_clear(&of_b);
    gb_graph_destroy(copies[0]);
    gb_graph_destroy(copies[1]);
    return status;
}
