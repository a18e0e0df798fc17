/* Properties of partitionings of random graphs: complete, executable in order, deterministic. */
#include "random_graph.h"

enum { GRAPHS = 4000 };

/* Every op in one partition, ascending in each; what a partition reads is made in it or before. */
static void check_partitioning(const fusion_case *c, const gb_partitioning *parts, uint64_t seed)
{
    uint32_t part_of[MOST_OPS], n_ops = 0;
    memset(part_of, 0xFF, sizeof part_of);
    for (uint32_t p = 0; p < parts->n_parts; p++)
        for (uint32_t i = 0; i < parts->parts[p].n_ops; i++) {
            uint32_t op = parts->parts[p].ops[i];
            cr_assert(i == 0 || op > parts->parts[p].ops[i - 1], "seed %llu",
                    (unsigned long long)seed);
            cr_assert_eq(part_of[op], GB_NONE, "seed %llu", (unsigned long long)seed);
            part_of[op] = p;
            n_ops++;
        }
    cr_assert_eq(n_ops, c->graph->n_ops);
    for (uint32_t i = 0; i < n_ops; i++) {
        const gb_op *op = c->graph->ops[i];
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t producer = c->graph->values[op->inputs[k]].producer;
            cr_assert(producer == GB_NONE || part_of[producer] <= part_of[i],
                    "seed %llu: partition %u runs before its input is made in %u",
                    (unsigned long long)seed, part_of[i], part_of[producer]);
        }
        const gb_part *part = &parts->parts[part_of[i]];
        bool idle = op->kind == GB_OP_WILDCARD || (op->kind == GB_OP_END && part->n_ops == 1);
        cr_assert_eq(part->unsupported != NULL, idle, "seed %llu", (unsigned long long)seed);
    }
}

static bool lists(uint32_t n, const uint32_t *values, uint32_t value)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++)
        found += values[i] == value;
    cr_assert_leq(found, 1);
    return found;
}

static bool contains(const gb_part *part, uint32_t op)
{
    for (uint32_t i = 0; i < part->n_ops; i++)
        if (part->ops[i] == op)
            return true;
    return false;
}

/* Each value that crosses the border of a partition is a port of it, and no other is. */
static void check_ports(const fusion_case *c, const gb_part *part)
{
    const gb_graph *graph = c->graph;
    uint32_t *inputs, *outputs, n_inputs, n_outputs;
    fusion_ok(
            gb_part_ports(graph, part->ops, part->n_ops, &inputs, &n_inputs, &outputs, &n_outputs));
    for (uint32_t v = 0; v < graph->n_values; v++) {
        const gb_value *value = &graph->values[v];
        bool made = value->producer != GB_NONE && contains(part, value->producer);
        bool read = false, leaves = value->n_uses == 0;
        for (uint32_t i = 0; i < value->n_uses; i++) {
            bool inside = contains(part, value->uses[i].op);
            read = read || inside;
            leaves = leaves || !inside || graph->ops[value->uses[i].op]->kind == GB_OP_END;
        }
        cr_assert_eq(lists(n_inputs, inputs, v), read && !made);
        cr_assert_eq(lists(n_outputs, outputs, v), made && leaves);
    }
    free(inputs);
    free(outputs);
}

Test(fusion_property, partitionings_of_random_graphs)
{
    size_t fused = 0;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        fusion_case c;
        gb_partitioning *one, *again, *single;
        char text[2][FUSION_CASE_TEXT];
        random_graph(&c, seed);
        fusion_ok(gb_graph_finalize(c.graph));
        fusion_ok(gb_partition_graph(c.graph, GB_POLICY_FUSION, &fusion_capability, &one));
        fusion_ok(gb_partition_graph(c.graph, GB_POLICY_FUSION, &fusion_capability, &again));
        fusion_ok(gb_partition_graph(c.graph, GB_POLICY_DEBUG, &fusion_capability, &single));
        fusion_describe(&c, one, text[0]);
        fusion_describe(&c, again, text[1]);
        cr_assert_str_eq(text[0], text[1]);
        check_partitioning(&c, one, seed);
        check_partitioning(&c, single, seed);
        cr_assert_eq(single->n_parts, c.graph->n_ops);
        for (uint32_t i = 0; i < one->n_parts; i++)
            check_ports(&c, &one->parts[i]);
        fused += c.graph->n_ops - one->n_parts;
        gb_partitioning_free(one);
        gb_partitioning_free(again);
        gb_partitioning_free(single);
        gb_graph_destroy(c.graph);
    }
    cr_expect_gt(fused, GRAPHS, "random graphs hardly fuse: %zu", fused);
}
