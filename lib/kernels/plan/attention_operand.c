/* What the descriptions of attention and of its gradients share: operands, numbers, masks. */
#include "kernels/plan/attention_operand.h"

#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/plan/pointwise_builder.h"

#include <string.h>

void gb_attention_operand_init(const gb_op *op, uint32_t input, bool transposed, int n_batch,
        gb_attention_operand *operand)
{
    const gb_logical_tensor *tensor = gb_op_input(op, input);
    int n = tensor->ndims, missing = n_batch - (n - 2);
    operand->type = tensor->data_type;
    operand->row_stride = tensor->strides[transposed ? n - 1 : n - 2];
    operand->col_stride = tensor->strides[transposed ? n - 2 : n - 1];
    for (int d = 0; d < n - 2; d++)
        operand->strides[d + missing] = tensor->dims[d] == 1 ? 0 : tensor->strides[d];
}

gb_status gb_attention_source_init(gb_program *program, const gb_attention_chain *chain,
        uint32_t value, bool along_rows, gb_step *step, gb_attention_operand *operand)
{
    const gb_graph *graph = gb_program_graph(program);
    const gb_logical_tensor *tensor = &graph->values[value].tensor;
    uint32_t post_ops[GB_ATTENTION_CHAIN_OPS], output = value;
    memcpy(post_ops, chain->ops, sizeof post_ops);
    gb_group group = {.anchor = GB_NONE,
            .ops = post_ops,
            .n_ops = chain->n,
            .outputs = &output,
            .n_outputs = 1};
    gb_scratch_operands scratch_operands = {.n = 1, .values = {value}};
    gb_attention_source *source = gb_step_alloc(step, 1, sizeof *source);
    if (!source)
        return GB_OUT_OF_MEMORY;
    operand->source = source;
    source->along_rows = along_rows;
    source->ndims = tensor->ndims;
    memcpy(source->dims, tensor->dims, sizeof tensor->dims);
    for (int d = 0; d < GB_AXES; d++)
        source->sizes[d] = 1;
    GB_TRY(gb_pointwise_split(graph->ops[post_ops[0]], source->sizes));
    for (int d = 0, place = 0; d < tensor->ndims; d++, place++) {
        place += source->sizes[d] > 1;
        source->places[d] = (uint8_t)place;
    }
    return gb_pointwise_build_with_scratch(
            program, &group, GB_NONE, &scratch_operands, tensor, step, &source->pointwise);
}

gb_status gb_attention_scalar_init(
        gb_program *program, gb_step *step, uint32_t value, gb_attention_scalar *scalar)
{
    scalar->is_set = value != GB_NONE;
    if (!scalar->is_set)
        return GB_SUCCESS;
    scalar->type = gb_program_graph(program)->values[value].tensor.data_type;
    return gb_program_use(program, step, value, false, &scalar->slot);
}

gb_status gb_attention_causal_init(gb_program *program, gb_step *step,
        const gb_attention_mask *mask, gb_attention_causal *causal)
{
    causal->is_set = true;
    GB_TRY(gb_attention_scalar_init(program, step, mask->shift_up, &causal->shift_up));
    GB_TRY(gb_attention_scalar_init(program, step, mask->shift_down, &causal->shift_down));
    return gb_attention_scalar_init(program, step, mask->fill, &causal->fill);
}
