/* Properties of partitionings of random graphs: complete, executable in order, deterministic. */
#include "fusion_case.h"

enum { GRAPHS = 4000, MOST_OPS = 40 };

static uint64_t state;

static uint32_t random_below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 33) % n);
}

/* A value for a port to read: a recent one, so that chains and diamonds form, or a new input. */
static size_t pick(fusion_case *c, gb_data_type type)
{
    for (int tries = 0; tries < 4 && c->n_tensors > 0; tries++) {
        uint32_t back = random_below(random_below(3) ? 4 : (uint32_t)c->n_tensors);
        if (back >= c->n_tensors)
            continue;
        size_t id = c->n_tensors - 1 - back;
        if (c->tensors[id].data_type == type)
            return id;
    }
    return fusion_input(c, type);
}

static gb_data_type legal_type(gb_type_set types)
{
    const gb_data_type liked[] = {GB_F32, GB_BF16, GB_S32, GB_BOOLEAN, GB_S64, GB_U8, GB_S8};
    bool prefer_bf16 = random_below(4) == 0;
    if (prefer_bf16 && (types & 1U << GB_BF16))
        return GB_BF16;
    for (size_t i = 0; i < sizeof liked / sizeof *liked; i++)
        if (types & 1U << liked[i])
            return liked[i];
    return GB_F32;
}

/* One type for all ports with the same letter. */
static gb_data_type port_type(const gb_port_schema *port, gb_data_type by_letter[128])
{
    if (!port->type_variable)
        return legal_type(port->types);
    gb_data_type *type = &by_letter[(unsigned char)port->type_variable];
    if (*type == GB_UNDEF)
        *type = legal_type(port->types);
    return *type;
}

static uint32_t count_ports(const gb_op_schema *schema, bool inputs)
{
    uint32_t fewest = inputs ? schema->min_inputs : schema->min_outputs;
    uint32_t listed = inputs ? schema->n_inputs : schema->n_outputs;
    uint32_t counts = inputs ? schema->input_counts : schema->output_counts;
    uint32_t n = fewest + (listed > fewest ? random_below(listed - fewest + 1) : 0);
    return counts && !(counts & 1U << n) ? fewest : n;
}

/* A random op of the table on values of the graph; an op whose own rules refuse it is left out. */
static void add_random_op(fusion_case *c, gb_op_kind kind)
{
    const gb_op_schema *schema = gb_op_schema_get(kind);
    gb_data_type by_letter[128] = {GB_UNDEF};
    gb_op *op;
    uint32_t n_inputs = count_ports(schema, true), n_outputs = count_ports(schema, false);
    fusion_ok(gb_op_create(&op, c->n_ops, kind, ""));
    for (uint32_t i = 0; i < n_inputs; i++) {
        const gb_port_schema *port = &schema->inputs[i < schema->n_inputs ? i : 0];
        size_t id = pick(c, port_type(port, by_letter));
        fusion_ok(gb_op_add_input(op, &c->tensors[id]));
    }
    size_t before = c->n_tensors;
    for (uint32_t i = 0; i < n_outputs; i++) {
        const gb_port_schema *port = &schema->outputs[i < schema->n_outputs ? i : 0];
        size_t id = fusion_input(c, port_type(port, by_letter));
        fusion_ok(gb_op_add_output(op, &c->tensors[id]));
    }
    fusion_set_attrs(op, n_inputs, n_outputs);
    if (gb_graph_add_op(c->graph, op) == GB_SUCCESS)
        c->n_ops++;
    else
        c->n_tensors = before;
    gb_op_destroy(op);
}

/* Kinds that fuse come more often than the rest of the table. */
static gb_op_kind random_kind(void)
{
    static const gb_op_kind fusing[] = {GB_OP_MATMUL, GB_OP_RELU, GB_OP_ADD, GB_OP_MULTIPLY,
            GB_OP_SOFTMAX, GB_OP_TYPE_CAST, GB_OP_SIGMOID, GB_OP_CONVOLUTION, GB_OP_BIAS_ADD,
            GB_OP_SELECT, GB_OP_LAYER_NORM, GB_OP_REDUCE_SUM, GB_OP_STATIC_RESHAPE,
            GB_OP_STATIC_TRANSPOSE, GB_OP_END, GB_OP_DROPOUT};
    if (random_below(4) == 0)
        return (gb_op_kind)random_below(GB_OP_LAST);
    return fusing[random_below(sizeof fusing / sizeof *fusing)];
}

static void make_graph(fusion_case *c, uint64_t seed)
{
    state = seed * UINT64_C(0x9E3779B97F4A7C15);
    fusion_open(c);
    uint32_t n = 2 + random_below(MOST_OPS - 1);
    for (uint32_t i = 0; i < n && c->n_tensors + GB_MAX_PORTS * 2 < FUSION_CASE_TENSORS; i++)
        add_random_op(c, random_kind());
    fusion_ok(gb_graph_finalize(c->graph));
}

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
        make_graph(&c, seed);
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
