/* What holds of post-ops and groups, whoever forms them. */
#include "fusion/passes/passes.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>

bool gb_begins_group(const gb_op *op)
{
    int64_t groups;
    if (op->kind == GB_OP_DEQUANTIZE)
        return gb_quantize_groups(op, &groups) >= 0;
    if (op->kind != GB_OP_DYNAMIC_DEQUANTIZE)
        return false;
    bool begins = gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false);
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        gb_data_type type = gb_op_input(op, i)->data_type;
        begins = begins || type == GB_S4 || type == GB_U4;
    }
    return begins;
}

/* Does the op repeat operands of fewer dims along those that come first? */
static bool repeats_operands(const gb_op *op)
{
    gb_op_class class = gb_op_schema_get(op->kind)->op_class;
    return class == GB_CLASS_BINARY || class == GB_CLASS_COMPARE || class == GB_CLASS_SELECT;
}

bool gb_runs_anywhere(const gb_op *op)
{
    gb_op_class class = gb_op_schema_get(op->kind)->op_class;
    return repeats_operands(op) || class == GB_CLASS_UNARY || class == GB_CLASS_CONVERSION;
}

/* It runs again for each tile. Does that cost next to nothing: one element a row, or a row so short
 * that a tile has many, without divisions and exponentials? */
static bool repeats_quickly(const gb_capability *capability, const gb_op *op)
{
    const gb_logical_tensor *made = gb_op_output(op, 0);
    int64_t row = made->ndims > 0 ? made->dims[made->ndims - 1] : 1;
    if (row == 1 || row > capability->cost.repeated_row)
        return row == 1;
    return gb_op_has_flag(op->kind, GB_OP_FLAG_CHEAP);
}

bool gb_runs_with_reader(const gb_capability *capability, const gb_op *op, const gb_op *reader)
{
    const gb_logical_tensor *made = gb_op_output(op, 0), *space = gb_op_output(reader, 0);
    if (gb_begins_group(op))
        return false;
    return gb_dims_equal(made, space) ||
           (gb_runs_anywhere(op) && repeats_quickly(capability, op) && repeats_operands(reader) &&
                   gb_broadcasts_onto(made->ndims, made->dims, space->ndims, space->dims));
}

bool gb_leaves_partition(const gb_pass_context *context, const gb_value *value)
{
    for (size_t i = 0; i < context->n_outputs; i++)
        if (context->output_ids[i] == value->tensor.id)
            return true;
    return false;
}

bool gb_list_has(uint32_t n, const uint32_t *list, uint32_t index)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == index)
            return true;
    return false;
}

gb_status gb_op_list_add(gb_op_list *list, uint32_t op)
{
    return gb_op_list_add_all(list, 1, &op);
}

gb_status gb_op_list_add_all(gb_op_list *list, uint32_t n, const uint32_t *ops)
{
    if (!gb_reserve(&list->ops, &list->capacity, (size_t)list->n + n, sizeof *list->ops))
        return GB_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < n; i++)
        list->ops[list->n++] = ops[i];
    return GB_SUCCESS;
}

void gb_op_list_free(gb_op_list *list)
{
    free(list->ops);
    *list = (gb_op_list){0};
}

void gb_group_clear(gb_group *group)
{
    free(group->parts);
    free(group->prologue);
    free(group->ops);
    free(group->outputs);
    *group = (gb_group){0};
}

void gb_groups_free(gb_groups *groups)
{
    if (!groups)
        return;
    for (uint32_t i = 0; i < groups->n_groups; i++)
        gb_group_clear(&groups->groups[i]);
    free(groups->groups);
    free(groups);
}
