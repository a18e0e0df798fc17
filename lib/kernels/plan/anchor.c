/* The tile program of an anchor, with the anchor's own bias in front. */
#include "kernels/plan/anchor.h"

#include "base/status.h"

#include <string.h>

/* Before the links run only register 0 is in use: what comes in front of them has register 1. */
static gb_status prepend(const gb_op *op, const gb_tile_instruction *instructions, uint32_t n,
        gb_step *step, gb_tile_program *tile)
{
    if (tile->n_instructions + n > GB_TILE_INSTRUCTIONS)
        return gb_fail(GB_UNIMPLEMENTED, "%s: too many operations fused", gb_op_label(op));
    gb_tile_instruction *room = gb_step_resize(
            step, tile->instructions, (size_t)tile->n_instructions + n, sizeof *room);
    if (!room)
        return GB_OUT_OF_MEMORY;
    tile->instructions = room;
    memmove(tile->instructions + n, tile->instructions,
            tile->n_instructions * sizeof *instructions);
    memcpy(tile->instructions, instructions, n * sizeof *instructions);
    tile->n_instructions += n;
    if (tile->n_registers < 2)
        tile->n_registers = 2;
    return GB_SUCCESS;
}

gb_status gb_tile_scale_first(
        const gb_op *op, float shift, float factor, gb_step *step, gb_tile_program *tile)
{
    const gb_tile_instruction first[] = {
            {.opcode = GB_TILE_CONSTANT, .dst = 1, .alpha = shift},
            {.opcode = GB_TILE_SUB, .dst = 0, .a = 0, .b = 1},
            {.opcode = GB_TILE_CONSTANT, .dst = 1, .alpha = factor},
            {.opcode = GB_TILE_MUL, .dst = 0, .a = 0, .b = 1},
    };
    uint32_t skipped = shift == 0 ? 2 : 0;
    return prepend(op, first + skipped, 4 - skipped, step, tile);
}

/* register 1 = bias; register 0 += register 1. */
static gb_status add_bias(gb_program *program, const gb_op *op, uint32_t value,
        const int64_t *strides, gb_step *step, gb_tile_program *tile)
{
    if (tile->n_operands >= GB_TILE_OPERANDS)
        return gb_fail(GB_UNIMPLEMENTED, "%s: too many operations fused", gb_op_label(op));
    const gb_tile_instruction first[] = {
            {.opcode = GB_TILE_LOAD,
                    .dst = 1,
                    .operand = (uint8_t)tile->n_operands,
                    .type = GB_F32},
            {.opcode = GB_TILE_ADD, .dst = 0, .a = 0, .b = 1},
    };
    GB_TRY(prepend(op, first, 2, step, tile));
    gb_tile_operand *operands =
            gb_step_resize(step, tile->operands, (size_t)tile->n_operands + 1, sizeof *operands);
    if (!operands)
        return GB_OUT_OF_MEMORY;
    tile->operands = operands;
    gb_tile_operand *operand = &operands[tile->n_operands++];
    gb_data_type type = gb_program_graph(program)->values[value].tensor.data_type;
    *operand = (gb_tile_operand){.type = type, .bytes = gb_tile_element_bytes(type)};
    memcpy(operand->strides, strides, sizeof(int64_t) * (size_t)tile->ndims);
    return gb_program_use(program, step, value, false, &operand->slot);
}

gb_status gb_anchor_tile(gb_program *program, const gb_group *group, uint32_t bias,
        const int64_t *bias_strides, const gb_tile_locals *locals, gb_step *step,
        gb_tile_program *tile)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    const gb_tile_locals none = {.n = 0};
    GB_TRY(gb_tile_build_local(program, group, op->outputs[0], locals ? locals : &none,
            gb_op_output(op, 0), step, tile));
    if (bias >= op->n_inputs)
        return GB_SUCCESS;
    return add_bias(program, op, op->inputs[bias], bias_strides, step, tile);
}

gb_tile_operand *gb_tile_result(gb_tile_program *tile)
{
    for (uint32_t i = 0; i < tile->n_operands; i++)
        if (tile->operands[i].written)
            return &tile->operands[i];
    return NULL;
}
