/* Gated MLP (two products of one source, an activation on one, a third product) and binary - matmul
 * - binary. */
#include "fusion/patterns/pattern_nodes.h"

/* The MatMul that the value comes from, directly or through an activation; NULL when there is none.
 */
static const gb_op *product_of(const gb_graph *graph, uint32_t value)
{
    enum { ACTIVATION_OPS = 2 }; /* swish is two */
    for (int i = 0; i <= ACTIVATION_OPS; i++) {
        uint32_t producer = graph->values[value].producer;
        const gb_op *op = producer == GB_NONE ? NULL : graph->ops[producer];
        if (!op || op->n_inputs == 0)
            return NULL;
        if (op->kind == GB_OP_MATMUL)
            return op;
        value = op->inputs[0];
    }
    return NULL;
}

/* The two products must have the same source. */
bool gb_accept_gate(const gb_op *op, uint32_t input)
{
    (void)input;
    const gb_op *one = product_of(op->graph, op->inputs[0]);
    const gb_op *other = product_of(op->graph, op->inputs[1]);
    return one && other && one != other && one->inputs[0] == other->inputs[0];
}

NODE(matmul, KINDS(GB_OP_MATMUL));
NODE(matmul_at_0, KINDS(GB_OP_MATMUL), .accept = gb_accept_at_0);
NODE(activation, .form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_UNARY);
OPTIONAL(maybe_activation, &activation);
NODE(gate, .form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_BINARY, .accept = gb_accept_gate,
        .sides = {SIDE(GB_OTHER_INPUT, &matmul)});
NODE(sigmoid, KINDS(GB_OP_SIGMOID));
NODE(swish_product, KINDS(GB_OP_MULTIPLY), .shared = true,
        .sides = {SIDE(GB_OTHER_INPUT, &sigmoid)});
FORK(swish, &swish_product);
ROOT(gb_root_gated_mlp, &matmul, &maybe_activation, &gate, &gb_node_maybe_cast, &matmul_at_0);
ROOT(gb_root_gated_mlp_swish, &matmul, &swish, &gate, &gb_node_maybe_cast, &matmul_at_0);

ROOT(gb_root_binary_matmul, &gb_node_binary, &gb_node_binary_chain, &gb_node_maybe_cast,
        &matmul_at_0, &gb_node_binary_chain, &gb_node_maybe_cast);
