/* Channels last, as a format and as a question to tensors and groups. */
#include "kernels/plan/channels_last.h"

#include "graph/ir/format.h"
#include "graph/ops/op_table.h"

#include <string.h>

const gb_format *gb_channels_last(int ndims)
{
    const gb_format *format;
    char text[GB_FORMAT_TEXT], *end = text;
    if (ndims < 3)
        return NULL;
    *end++ = 'a';
    for (int d = 2; d < ndims; d++)
        *end++ = (char)('a' + d);
    strcpy(end, "b");
    return gb_format_parse(text, &format) == GB_SUCCESS ? format : NULL;
}

bool gb_has_channels_first(const gb_op *op)
{
    return gb_op_attr_is(op, GB_ATTR_DATA_FORMAT, "NCX", false);
}

bool gb_lies_channels_last(const gb_logical_tensor *tensor)
{
    const gb_format *format = gb_channels_last(tensor->ndims);
    return format && gb_tensor_lies_in(tensor, format);
}

bool gb_source_lies_channels_last(const gb_graph *graph, const gb_group *group, uint32_t value)
{
    uint32_t producer = graph->values[value].producer;
    while (producer != GB_NONE && (gb_list_has(group->n_prologue, group->prologue, producer) ||
                                          gb_list_has(group->n_ops, group->ops, producer))) {
        value = graph->ops[producer]->inputs[0];
        producer = graph->values[value].producer;
    }
    return gb_lies_channels_last(&graph->values[value].tensor);
}

/* Is the op between an input of the anchor and what it was made of? */
static bool is_in_front(const gb_graph *graph, const gb_op *anchor, const gb_op *op)
{
    for (uint32_t i = 0; i < anchor->n_inputs; i++)
        for (uint32_t producer = graph->values[anchor->inputs[i]].producer; producer != GB_NONE;
                producer = graph->values[graph->ops[producer]->inputs[0]].producer)
            if (producer == op->index)
                return true;
    return false;
}

/* Do all tensors of the size of the result that post-ops read lie with channels last? */
static bool side_images_lie_so(const gb_graph *graph, const gb_group *group, const gb_op *anchor)
{
    for (uint32_t i = 0; i < group->n_ops; i++) {
        const gb_op *op = graph->ops[group->ops[i]];
        if (op == anchor || is_in_front(graph, anchor, op))
            continue;
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            const gb_logical_tensor *input = gb_op_input(op, k);
            uint32_t producer = graph->values[op->inputs[k]].producer;
            bool inside =
                    producer != GB_NONE &&
                    (producer == anchor->index || gb_list_has(group->n_ops, group->ops, producer));
            if (!inside && gb_dims_equal(input, gb_op_output(anchor, 0)) &&
                    !gb_lies_channels_last(input))
                return false;
        }
    }
    return true;
}

bool gb_may_write_channels_last(
        const gb_graph *graph, const gb_group *group, const gb_op *anchor, uint32_t value)
{
    return gb_has_channels_first(anchor) && group->n_outputs == 1 &&
           gb_dims_equal(&graph->values[value].tensor, gb_op_output(anchor, 0)) &&
           side_images_lie_so(graph, group, anchor);
}
