/* Colours that tell the ops and values of a graph apart by their surroundings alone. */
#include "graph/ir/content.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

gb_status gb_colours_create(const gb_graph *graph, gb_colours *colours)
{
    size_t n = (size_t)graph->n_ops + graph->n_values;
    *colours = (gb_colours){.n = n,
            .ops = gb_calloc(n, sizeof *colours->ops),
            .sorted = gb_calloc(n, sizeof *colours->sorted)};
    if (!colours->ops || !colours->sorted) {
        gb_colours_free(colours);
        return GB_OUT_OF_MEMORY;
    }
    colours->values = colours->ops + graph->n_ops;
    for (uint32_t i = 0; i < graph->n_ops; i++)
        colours->ops[i] = gb_op_hash(graph->ops[i]);
    for (uint32_t v = 0; v < graph->n_values; v++)
        colours->values[v] = gb_tensor_hash(&graph->values[v].tensor);
    return GB_SUCCESS;
}

void gb_colours_free(gb_colours *colours)
{
    free(colours->ops);
    free(colours->sorted);
    *colours = (gb_colours){0};
}

/* From the inputs of the graph to its results. */
static void refine_downwards(const gb_graph *graph, gb_colours *c)
{
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        const gb_op *op = graph->ops[i];
        for (uint32_t k = 0; k < op->n_inputs; k++)
            c->ops[i] = gb_hash_mix(c->ops[i], c->values[op->inputs[k]]);
        for (uint32_t k = 0; k < op->n_outputs; k++) {
            uint64_t *colour = &c->values[op->outputs[k]];
            *colour = gb_hash_mix(gb_hash_mix(*colour, c->ops[i]), k);
        }
    }
}

static void refine_value(const gb_value *value, const gb_colours *c, uint64_t *colour)
{
    uint64_t readers = 0;
    for (uint32_t u = 0; u < value->n_uses; u++)
        readers += gb_hash_mix(c->ops[value->uses[u].op], value->uses[u].input);
    *colour = gb_hash_mix(*colour, readers);
}

/* From the results back to the inputs. */
static void refine_upwards(const gb_graph *graph, gb_colours *c)
{
    for (uint32_t i = graph->n_ops; i-- > 0;) {
        const gb_op *op = graph->ops[i];
        for (uint32_t k = 0; k < op->n_outputs; k++) {
            uint64_t *colour = &c->values[op->outputs[k]];
            refine_value(&graph->values[op->outputs[k]], c, colour);
            c->ops[i] = gb_hash_mix(c->ops[i], *colour);
        }
    }
    for (uint32_t v = 0; v < graph->n_values; v++)
        if (graph->values[v].producer == GB_NONE)
            refine_value(&graph->values[v], c, &c->values[v]);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static size_t count_colours(gb_colours *c)
{
    size_t count = c->n > 0;
    memcpy(c->sorted, c->ops, c->n * sizeof *c->sorted);
    qsort(c->sorted, c->n, sizeof *c->sorted, by_number);
    for (size_t i = 1; i < c->n; i++)
        count += c->sorted[i] != c->sorted[i - 1];
    return count;
}

void gb_colours_refine(const gb_graph *graph, gb_colours *c)
{
    size_t count = count_colours(c), before;
    do {
        before = count;
        refine_downwards(graph, c);
        refine_upwards(graph, c);
        c->visited += c->n;
        count = count_colours(c);
    } while (count > before);
}
