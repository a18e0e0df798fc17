/* Recognises implicit causal masks among the post-ops of attention. */
#include "fusion/regions/attention.h"
#include "graph/ops/op_table.h"

/* The post-op of the chain that makes the value, NULL when none does. */
static const gb_op *producer_of(
        const gb_graph *graph, const gb_attention_chain *chain, uint32_t value)
{
    uint32_t producer = graph->values[value].producer;
    for (uint32_t i = 0; i < chain->n; i++)
        if (chain->ops[i] == producer)
            return graph->ops[producer];
    return NULL;
}

/* Is the value a number from outside of the region? Products may be of it. */
static bool is_number(
        const gb_graph *graph, const gb_attention_chain *chain, uint32_t value, bool integer)
{
    uint32_t producer = graph->values[value].producer;
    if (producer != GB_NONE && (graph->ops[producer]->kind == GB_OP_MATMUL ||
                                       gb_list_has(chain->n, chain->ops, producer)))
        return false;
    const gb_logical_tensor *tensor = &graph->values[value].tensor;
    gb_data_type type = tensor->data_type;
    bool fits = integer ? type == GB_S32 : type == GB_F32 || type == GB_BF16 || type == GB_F16;
    return fits && gb_tensor_count(tensor) == 1;
}

/* Is it the index along the dim `from_end` dims before the end? */
static bool is_index(const gb_op *op, int from_end)
{
    if (!op || op->kind != GB_OP_GEN_INDEX)
        return false;
    int ndims = gb_op_output(op, 0)->ndims;
    return gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, 0), ndims) == ndims - from_end;
}

/* `op` without a shift by a number: what is shifted, or NULL; *shift is the number's value. */
static const gb_op *unshift(const gb_graph *graph, const gb_attention_chain *chain, const gb_op *op,
        gb_op_kind kind, uint32_t *shift)
{
    *shift = GB_NONE;
    if (!op || op->kind != kind || !is_number(graph, chain, op->inputs[1], true))
        return op;
    *shift = op->inputs[1];
    return producer_of(graph, chain, op->inputs[0]);
}

bool gb_attention_find_causal(const gb_graph *graph, const gb_attention_chain *chain,
        uint32_t scores, gb_attention_mask *mask)
{
    const gb_op *select = producer_of(graph, chain, scores);
    if (!select || select->kind != GB_OP_SELECT ||
            !is_number(graph, chain, select->inputs[2], false))
        return false;
    const gb_op *visible = producer_of(graph, chain, select->inputs[0]);
    if (!visible || visible->kind != GB_OP_GREATER_EQUAL)
        return false;
    const gb_op *row = producer_of(graph, chain, visible->inputs[0]);
    row = unshift(graph, chain, row, GB_OP_SUBTRACT, &mask->shift_down);
    row = unshift(graph, chain, row, GB_OP_ADD, &mask->shift_up);
    mask->fill = select->inputs[2];
    mask->visible = select->inputs[1];
    return is_index(row, 2) && is_index(producer_of(graph, chain, visible->inputs[1]), 1);
}

void gb_attention_keep_producers(const gb_graph *graph, const gb_attention_chain *chain,
        uint32_t value, gb_attention_chain *kept)
{
    bool needed[GB_ATTENTION_CHAIN_OPS] = {false};
    kept->n = 0;
    for (uint32_t i = chain->n; i-- > 0;) {
        uint32_t output = graph->ops[chain->ops[i]]->outputs[0];
        needed[i] = output == value;
        for (uint32_t j = i + 1; j < chain->n; j++) {
            const gb_op *reader = graph->ops[chain->ops[j]];
            for (uint32_t k = 0; needed[j] && k < reader->n_inputs; k++)
                needed[i] = needed[i] ||
                            (reader->inputs[k] == output && reader->kind != GB_OP_GEN_INDEX);
        }
    }
    for (uint32_t i = 0; i < chain->n; i++)
        if (needed[i])
            kept->ops[kept->n++] = chain->ops[i];
}
