/* Random graphs of legal ops, from seeds, for tests of properties. */
#ifndef GB_TESTS_RANDOM_GRAPH_H
#define GB_TESTS_RANDOM_GRAPH_H

#include "fusion_case.h"

enum { MOST_OPS = 40 };

static uint64_t random_state;

static inline uint32_t random_below(uint32_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % n);
}

/* A value for a port to read: a recent one, so that chains and diamonds form, or a new input. */
static inline size_t pick(fusion_case *c, gb_data_type type)
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

static inline gb_data_type legal_type(gb_type_set types)
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
static inline gb_data_type port_type(const gb_port_schema *port, gb_data_type by_letter[128])
{
    if (!port->type_variable)
        return legal_type(port->types);
    gb_data_type *type = &by_letter[(unsigned char)port->type_variable];
    if (*type == GB_UNDEF)
        *type = legal_type(port->types);
    return *type;
}

static inline uint32_t count_ports(const gb_op_schema *schema, bool inputs)
{
    uint32_t fewest = inputs ? schema->min_inputs : schema->min_outputs;
    uint32_t listed = inputs ? schema->n_inputs : schema->n_outputs;
    uint32_t counts = inputs ? schema->input_counts : schema->output_counts;
    uint32_t n = fewest + (listed > fewest ? random_below(listed - fewest + 1) : 0);
    return counts && !(counts & 1U << n) ? fewest : n;
}

/* A random op of the table on values of the graph; an op whose own rules refuse it is left out. */
static inline void add_random_op(fusion_case *c, gb_op_kind kind)
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
static inline gb_op_kind random_kind(void)
{
    static const gb_op_kind fusing[] = {GB_OP_MATMUL, GB_OP_RELU, GB_OP_ADD, GB_OP_MULTIPLY,
            GB_OP_SOFTMAX, GB_OP_TYPE_CAST, GB_OP_SIGMOID, GB_OP_CONVOLUTION, GB_OP_BIAS_ADD,
            GB_OP_SELECT, GB_OP_LAYER_NORM, GB_OP_REDUCE_SUM, GB_OP_STATIC_RESHAPE,
            GB_OP_STATIC_TRANSPOSE, GB_OP_END, GB_OP_DROPOUT};
    if (random_below(4) == 0)
        return (gb_op_kind)random_below(GB_OP_LAST);
    return fusing[random_below(sizeof fusing / sizeof *fusing)];
}

/* Not finalized. */
static inline void random_graph(fusion_case *c, uint64_t seed)
{
    random_state = seed * UINT64_C(0x9E3779B97F4A7C15);
    fusion_open(c);
    uint32_t n = 2 + random_below(MOST_OPS - 1);
    for (uint32_t i = 0; i < n && c->n_tensors + GB_MAX_PORTS * 2 < FUSION_CASE_TENSORS; i++)
        add_random_op(c, random_kind());
}

#endif
