/* Gated MLP (two products of one source, an activation on one, a third product) and binary - matmul
 * - binary. */
#include "fusion/pattern_nodes.h"

/* The two products must have the same source. */
static bool accept_gate(const gb_op *op, uint32_t input)
{
    (void)input;
    const gb_graph *graph = op->graph;
    uint32_t other = graph->values[op->inputs[0]].producer;
    uint32_t source = GB_NONE;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        uint32_t producer = graph->values[op->inputs[i]].producer;
        if (producer == GB_NONE)
            return false;
        /* The up product feeds the gate directly; its source must feed a further MatMul. */
        if (graph->ops[producer]->kind == GB_OP_MATMUL)
            source = graph->ops[producer]->inputs[0];
    }
    if (source == GB_NONE || other == GB_NONE)
        return false;
    uint32_t products = 0;
    for (uint32_t i = 0; i < graph->values[source].n_uses; i++)
        products += graph->ops[graph->values[source].uses[i].op]->kind == GB_OP_MATMUL;
    return products >= 2;
}

NODE(matmul, KINDS(GB_OP_MATMUL));
NODE(matmul_at_0, KINDS(GB_OP_MATMUL), .accept = gb_accept_at_0);
NODE(activation, .form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_UNARY);
OPTIONAL(maybe_activation, &activation);
NODE(gate, .form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_BINARY, .accept = accept_gate,
        .sides = {SIDE(GB_OTHER_INPUT, &matmul)});
NODE(sigmoid, KINDS(GB_OP_SIGMOID));
NODE(swish_product, KINDS(GB_OP_MULTIPLY), .shared = true,
        .sides = {SIDE(GB_OTHER_INPUT, &sigmoid)});
FORK(swish, &swish_product);
ROOT(gb_root_gated_mlp, &matmul, &maybe_activation, &gate, &gb_node_maybe_cast, &matmul_at_0);
ROOT(gb_root_gated_mlp_swish, &matmul, &swish, &gate, &gb_node_maybe_cast, &matmul_at_0);

ROOT(gb_root_binary_matmul, &gb_node_binary, &gb_node_binary_chain, &gb_node_maybe_cast,
        &matmul_at_0, &gb_node_binary_chain, &gb_node_maybe_cast);
