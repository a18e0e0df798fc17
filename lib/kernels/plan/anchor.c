/* The pointwise program of an anchor, with the anchor's own bias in front. */
#include "kernels/plan/anchor.h"

#include "base/status.h"

#include <string.h>

/* Before the post-ops run only register 0 is in use: what comes in front of them has register 1. */
static gb_status prepend(const gb_op *op, const gb_pointwise_instruction *instructions, uint32_t n,
        gb_step *step, gb_pointwise_program *pointwise)
{
    if (pointwise->n_instructions + n > GB_POINTWISE_INSTRUCTIONS)
        return gb_fail(GB_UNIMPLEMENTED, "%s: too many operations fused", gb_op_label(op));
    gb_pointwise_instruction *room = gb_step_resize(
            step, pointwise->instructions, (size_t)pointwise->n_instructions + n, sizeof *room);
    if (!room)
        return GB_OUT_OF_MEMORY;
    pointwise->instructions = room;
    memmove(pointwise->instructions + n, pointwise->instructions,
            pointwise->n_instructions * sizeof *instructions);
    memcpy(pointwise->instructions, instructions, n * sizeof *instructions);
    pointwise->n_instructions += n;
    if (pointwise->n_registers < 2)
        pointwise->n_registers = 2;
    return GB_SUCCESS;
}

gb_status gb_pointwise_scale_first(
        const gb_op *op, float shift, float factor, gb_step *step, gb_pointwise_program *pointwise)
{
    const gb_pointwise_instruction first[] = {
            {.opcode = GB_POINTWISE_CONSTANT, .dst = 1, .alpha = shift},
            {.opcode = GB_POINTWISE_SUB, .dst = 0, .a = 0, .b = 1},
            {.opcode = GB_POINTWISE_CONSTANT, .dst = 1, .alpha = factor},
            {.opcode = GB_POINTWISE_MUL, .dst = 0, .a = 0, .b = 1},
    };
    uint32_t skipped = shift == 0 ? 2 : 0;
    return prepend(op, first + skipped, 4 - skipped, step, pointwise);
}

gb_status gb_pointwise_raise_first(
        const gb_op *op, float least, gb_step *step, gb_pointwise_program *pointwise)
{
    const gb_pointwise_instruction first[] = {
            {.opcode = GB_POINTWISE_CONSTANT, .dst = 1, .alpha = least},
            {.opcode = GB_POINTWISE_MAX, .dst = 0, .a = 0, .b = 1},
    };
    return prepend(op, first, 2, step, pointwise);
}

/* register 1 = bias; register 0 += register 1. */
static gb_status add_bias(gb_program *program, const gb_op *op, uint32_t value,
        const int64_t *strides, gb_step *step, gb_pointwise_program *pointwise)
{
    if (pointwise->n_operands >= GB_POINTWISE_OPERANDS)
        return gb_fail(GB_UNIMPLEMENTED, "%s: too many operations fused", gb_op_label(op));
    const gb_pointwise_instruction first[] = {
            {.opcode = GB_POINTWISE_LOAD,
                    .dst = 1,
                    .operand = (uint8_t)pointwise->n_operands,
                    .type = GB_F32},
            {.opcode = GB_POINTWISE_ADD, .dst = 0, .a = 0, .b = 1},
    };
    GB_TRY(prepend(op, first, 2, step, pointwise));
    gb_pointwise_operand *operands = gb_step_resize(
            step, pointwise->operands, (size_t)pointwise->n_operands + 1, sizeof *operands);
    if (!operands)
        return GB_OUT_OF_MEMORY;
    pointwise->operands = operands;
    gb_pointwise_operand *operand = &operands[pointwise->n_operands++];
    gb_data_type type = gb_program_graph(program)->values[value].tensor.data_type;
    *operand = (gb_pointwise_operand){.type = type, .bytes = gb_pointwise_element_bytes(type)};
    memcpy(operand->strides, strides, sizeof(int64_t) * (size_t)pointwise->ndims);
    return gb_program_use(program, step, value, false, &operand->slot);
}

gb_status gb_anchor_epilogue(gb_program *program, const gb_group *group, uint32_t bias,
        const int64_t *bias_strides, const gb_scratch_operands *scratch_operands, gb_step *step,
        gb_pointwise_program *pointwise)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    const gb_scratch_operands none = {.n = 0};
    GB_TRY(gb_pointwise_build_with_scratch(program, group, op->outputs[0],
            scratch_operands ? scratch_operands : &none, gb_op_output(op, 0), step, pointwise));
    if (bias >= op->n_inputs)
        return GB_SUCCESS;
    return add_bias(program, op, op->inputs[bias], bias_strides, step, pointwise);
}

gb_pointwise_operand *gb_pointwise_result(gb_pointwise_program *pointwise)
{
    for (uint32_t i = 0; i < pointwise->n_operands; i++)
        if (pointwise->operands[i].written)
            return &pointwise->operands[i];
    return NULL;
}
