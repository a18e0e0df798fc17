/* Which instruction each element-wise op becomes, and what is known about instructions. */
#include "kernels/plan/pointwise_rules.h"

#include "base/dtype.h"
#include "kernels/plan/pointwise_builder.h"

static const gb_pointwise_rule rules[GB_OP_LAST] = {
        [GB_OP_ABS] = {1, GB_POINTWISE_ABS},
        [GB_OP_CLAMP] = {1, GB_POINTWISE_CLAMP, .alpha = GB_ATTR_MIN, .beta = GB_ATTR_MAX},
        [GB_OP_ELU] = {1, GB_POINTWISE_ELU, .alpha = GB_ATTR_ALPHA},
        [GB_OP_EXP] = {1, GB_POINTWISE_EXP},
        [GB_OP_GELU] = {1, GB_POINTWISE_GELU_ERF, GB_POINTWISE_GELU_TANH},
        [GB_OP_HARD_SIGMOID] = {1, GB_POINTWISE_HARDSIGMOID, .alpha = GB_ATTR_ALPHA,
                .beta = GB_ATTR_BETA},
        [GB_OP_HARD_SWISH] = {1, GB_POINTWISE_HARDSWISH},
        [GB_OP_LEAKY_RELU] = {1, GB_POINTWISE_LEAKY_RELU, .alpha = GB_ATTR_ALPHA},
        [GB_OP_LOG] = {1, GB_POINTWISE_LOG},
        [GB_OP_MISH] = {1, GB_POINTWISE_MISH},
        [GB_OP_POW] = {1, GB_POINTWISE_POW, .beta = GB_ATTR_BETA},
        [GB_OP_RECIPROCAL] = {1, GB_POINTWISE_RECIPROCAL},
        [GB_OP_RELU] = {1, GB_POINTWISE_RELU},
        [GB_OP_ROUND] = {1, GB_POINTWISE_ROUND_EVEN},
        [GB_OP_SIGMOID] = {1, GB_POINTWISE_SIGMOID},
        [GB_OP_SOFTPLUS] = {1, GB_POINTWISE_SOFTPLUS, .beta = GB_ATTR_BETA},
        [GB_OP_SQRT] = {1, GB_POINTWISE_SQRT},
        [GB_OP_SQUARE] = {1, GB_POINTWISE_SQUARE},
        [GB_OP_TANH] = {1, GB_POINTWISE_TANH},
        [GB_OP_ADD] = {2, GB_POINTWISE_ADD, .integer = GB_POINTWISE_ADD_S32},
        [GB_OP_SUBTRACT] = {2, GB_POINTWISE_SUB, .integer = GB_POINTWISE_SUB_S32},
        [GB_OP_MULTIPLY] = {2, GB_POINTWISE_MUL},
        [GB_OP_DIVIDE] = {2, GB_POINTWISE_DIV},
        [GB_OP_MAXIMUM] = {2, GB_POINTWISE_MAX},
        [GB_OP_MINIMUM] = {2, GB_POINTWISE_MIN},
        [GB_OP_SQUARED_DIFFERENCE] = {2, GB_POINTWISE_SQUARED_DIFFERENCE},
        [GB_OP_GREATER_EQUAL] = {2, GB_POINTWISE_GREATER_EQUAL,
                .integer = GB_POINTWISE_GREATER_EQUAL_S32},
        [GB_OP_BIAS_ADD] = {2, GB_POINTWISE_ADD},
        [GB_OP_PRELU] = {2, GB_POINTWISE_PRELU},
        [GB_OP_SELECT] = {3, GB_POINTWISE_SELECT},
        [GB_OP_ABS_BACKWARD] = {2, GB_POINTWISE_ABS_BACKWARD},
        [GB_OP_CLAMP_BACKWARD] = {2, GB_POINTWISE_CLAMP_BACKWARD, GB_POINTWISE_CLAMP_BACKWARD,
                .alpha = GB_ATTR_MIN, .beta = GB_ATTR_MAX},
        [GB_OP_ELU_BACKWARD] = {2, GB_POINTWISE_ELU_BACKWARD, GB_POINTWISE_ELU_BACKWARD_DST,
                .alpha = GB_ATTR_ALPHA},
        [GB_OP_GELU_BACKWARD] = {2, GB_POINTWISE_GELU_ERF_BACKWARD,
                GB_POINTWISE_GELU_TANH_BACKWARD},
        [GB_OP_HARD_SIGMOID_BACKWARD] = {2, GB_POINTWISE_HARDSIGMOID_BACKWARD,
                .alpha = GB_ATTR_ALPHA, .beta = GB_ATTR_BETA},
        [GB_OP_HARD_SWISH_BACKWARD] = {2, GB_POINTWISE_HARDSWISH_BACKWARD},
        [GB_OP_MISH_BACKWARD] = {2, GB_POINTWISE_MISH_BACKWARD},
        [GB_OP_RELU_BACKWARD] = {2, GB_POINTWISE_RELU_BACKWARD, GB_POINTWISE_RELU_BACKWARD},
        [GB_OP_SIGMOID_BACKWARD] = {2, GB_POINTWISE_SIGMOID_BACKWARD,
                GB_POINTWISE_SIGMOID_BACKWARD_DST},
        [GB_OP_SOFTPLUS_BACKWARD] = {2, GB_POINTWISE_SOFTPLUS_BACKWARD, .beta = GB_ATTR_BETA},
        [GB_OP_SQRT_BACKWARD] = {2, GB_POINTWISE_SQRT_BACKWARD, GB_POINTWISE_SQRT_BACKWARD_DST},
        [GB_OP_TANH_BACKWARD] = {2, GB_POINTWISE_TANH_BACKWARD, GB_POINTWISE_TANH_BACKWARD_DST},
};

const gb_pointwise_rule *gb_pointwise_rule_of(gb_op_kind kind)
{
    return (unsigned)kind < GB_OP_LAST && rules[kind].sources ? &rules[kind] : NULL;
}

bool gb_pointwise_supports(const gb_op *op, const char **reason)
{
    if (gb_pointwise_quantizes(op->kind) || gb_pointwise_is_positional(op->kind))
        return true; /* all types of the schema */
    bool known = op->kind == GB_OP_BATCH_NORM_INFERENCE || op->kind == GB_OP_TYPE_CAST ||
                 gb_pointwise_rule_of(op->kind);
    if (!known) {
        *reason = "no kernel";
        return false;
    }
    for (uint32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
        const gb_logical_tensor *tensor =
                i < op->n_inputs ? gb_op_input(op, i) : gb_op_output(op, i - op->n_inputs);
        gb_data_type type = tensor->data_type;
        if (gb_dtype_is_f(type) || type == GB_S32 || type == GB_BOOLEAN)
            continue;
        *reason = "data type";
        return false;
    }
    return true;
}

/* The other opcode is another function; of the rest, a gradient by the result, which the op in
 * front has computed already. */
static bool has_modes(gb_op_kind kind)
{
    return kind == GB_OP_GELU || kind == GB_OP_GELU_BACKWARD;
}

uint8_t gb_pointwise_opcode_of(const gb_op *op, const gb_pointwise_rule *rule)
{
    if (!rule->other)
        return rule->opcode;
    bool other = has_modes(op->kind) ? gb_op_attr_is(op, GB_ATTR_MODE, "gelu_tanh", false)
                                     : gb_op_attr_bool(op, GB_ATTR_USE_DST, true);
    return other ? rule->other : rule->opcode;
}

bool gb_pointwise_is_costly(uint8_t opcode)
{
    if (opcode == GB_POINTWISE_DROPOUT)
        return gb_op_has_flag(GB_OP_DROPOUT, GB_OP_FLAG_COSTLY);
    if (opcode == GB_POINTWISE_SWISH)
        return gb_op_has_flag(GB_OP_SIGMOID, GB_OP_FLAG_COSTLY);
    for (int i = 0; i < GB_OP_LAST; i++) {
        gb_op_kind kind = (gb_op_kind)i;
        const gb_pointwise_rule *rule = gb_pointwise_rule_of(kind);
        bool has = rule && (rule->opcode == opcode || (rule->other == opcode && has_modes(kind)));
        if (has && gb_op_has_flag(kind, GB_OP_FLAG_COSTLY))
            return true;
    }
    return false;
}

bool gb_pointwise_is_plain_store(const gb_pointwise_program *pointwise)
{
    const gb_pointwise_instruction *first = &pointwise->instructions[0];
    return pointwise->n_instructions == 1 && first->opcode == GB_POINTWISE_STORE && first->a == 0 &&
           first->type != GB_S32 && pointwise->operands[first->operand].type == GB_F32;
}

/* Memory that is read lies in the cache already. */
static bool is_read(const gb_pointwise_program *pointwise, void *const *buffers, const void *memory)
{
    for (uint32_t i = 0; i < pointwise->n_operands; i++) {
        const gb_pointwise_operand *operand = &pointwise->operands[i];
        bool in_memory = !operand->is_index && operand->slot < GB_SCRATCH_OPERAND;
        if (in_memory && !operand->written && buffers[operand->slot] == memory)
            return true;
    }
    return pointwise->over_source && buffers[pointwise->source] == memory;
}

uint8_t gb_pointwise_element_bytes(gb_data_type type)
{
    return (uint8_t)(gb_dtype_get(type)->bits / 8);
}

void gb_pointwise_views(const gb_pointwise_program *pointwise, void *const *buffers,
        const int64_t *position, int row_dim, int col_dim, gb_pointwise_view *views)
{
    for (uint32_t i = 0; i < pointwise->n_operands; i++) {
        const gb_pointwise_operand *operand = &pointwise->operands[i];
        int64_t offset = 0;
        for (int d = 0; d < pointwise->ndims; d++)
            offset += position[d] * operand->strides[d];
        views[i] = (gb_pointwise_view){.row_stride = row_dim < 0 ? 0 : operand->strides[row_dim],
                .col_stride = col_dim < 0 ? 0 : operand->strides[col_dim],
                .offset = offset,
                .far = operand->far};
        if (operand->is_index || operand->slot >= GB_SCRATCH_OPERAND)
            continue;
        views[i].streamed =
                operand->streamed && !is_read(pointwise, buffers, buffers[operand->slot]);
        views[i].nibble = operand->bytes == 0 ? offset % 2 : 0;
        offset = operand->bytes == 0 ? offset / 2 : offset * operand->bytes;
        views[i].data = (char *)buffers[operand->slot] + offset;
    }
}
