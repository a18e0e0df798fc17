/* Registers and operands of a tile program while it is built: what they hold, and how long. */
#include "base/memory.h"
#include "base/status.h"
#include "kernels/plan/tile_builder.h"

#include <string.h>

static gb_status too_large(const char *what)
{
    return gb_fail(GB_UNIMPLEMENTED, "group of element-wise ops needs too many %s", what);
}

/* Room for one more element of an array of the tile program that holds n. */
static gb_status grow(
        gb_tile_builder *b, void *array /* T** */, uint32_t n, uint32_t *capacity, size_t size)
{
    void **block = array;
    if (n < *capacity)
        return GB_SUCCESS;
    uint32_t more = *capacity ? 2 * *capacity : 8;
    void *grown = gb_step_resize(b->step, *block, more, size);
    if (!grown)
        return GB_OUT_OF_MEMORY;
    *block = grown;
    *capacity = more;
    return GB_SUCCESS;
}

gb_status gb_tile_emit(gb_tile_builder *b, gb_tile_instruction instruction)
{
    if (b->tile->n_instructions == GB_TILE_INSTRUCTIONS)
        return too_large("instructions");
    GB_TRY(grow(b, &b->tile->instructions, b->tile->n_instructions, &b->instruction_capacity,
            sizeof instruction));
    b->tile->instructions[b->tile->n_instructions++] = instruction;
    return GB_SUCCESS;
}

static bool is_result(const gb_tile_builder *b, uint32_t value)
{
    for (uint32_t i = 0; i < b->n_results; i++)
        if (b->result_values[i] == value)
            return true;
    return false;
}

bool gb_tile_read_later(const gb_tile_builder *b, uint32_t value)
{
    for (uint32_t i = b->next_link; i < b->group->n_links; i++) {
        const gb_op *op = b->graph->ops[b->group->links[i]];
        if (op->kind == GB_OP_GEN_INDEX)
            continue; /* reads the shape only */
        for (uint32_t k = 0; k < op->n_inputs; k++)
            if (op->inputs[k] == value)
                return true;
    }
    return false;
}

void gb_tile_drop_dead(gb_tile_builder *b)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->n_bindings; i++) {
        const gb_tile_binding *held = &b->bindings[i];
        bool stored =
                b->stores_last && held->operand == GB_TILE_NO_OPERAND && is_result(b, held->value);
        if (stored || gb_tile_read_later(b, held->value))
            b->bindings[kept++] = *held;
    }
    b->n_bindings = kept;
}

bool gb_tile_is_free(const gb_tile_builder *b, unsigned reg)
{
    if (b->in_use[reg])
        return false;
    for (uint32_t i = 0; i < b->n_bindings; i++)
        if (b->bindings[i].reg == reg)
            return false;
    return true;
}

gb_status gb_tile_take(gb_tile_builder *b, uint8_t *reg)
{
    for (unsigned i = 0; i < GB_TILE_REGISTERS; i++) {
        if (!gb_tile_is_free(b, i))
            continue;
        b->in_use[i] = true;
        b->partial[i] = false;
        if (i >= b->tile->n_registers)
            b->tile->n_registers = i + 1;
        *reg = (uint8_t)i;
        return GB_SUCCESS;
    }
    return too_large("registers");
}

gb_status gb_tile_bind(gb_tile_builder *b, uint32_t value, uint32_t operand, uint8_t reg, bool s32)
{
    if (!gb_reserve(
                &b->bindings, &b->binding_capacity, (size_t)b->n_bindings + 1, sizeof *b->bindings))
        return GB_OUT_OF_MEMORY;
    b->bindings[b->n_bindings++] = (gb_tile_binding){value, operand, reg, s32};
    return GB_SUCCESS;
}

/* ------------------------------------------------------------------------------------- operands */

void gb_tile_spread(
        const gb_tile_builder *b, const int64_t *along, const int64_t *across, int64_t *strides)
{
    int n = 0;
    memset(strides, 0, GB_AXES * sizeof *strides);
    for (int d = 0; d < b->space->ndims; d++) {
        if (b->sizes[d] > 1)
            strides[n++] = across ? across[d] : along[d] * b->sizes[d];
        strides[n++] = along[d];
    }
}

gb_status gb_tile_align(
        const gb_tile_builder *b, const gb_logical_tensor *tensor, int lead, int64_t *strides)
{
    int64_t along[GB_AXES] = {0}, steps[GB_AXES];
    bool fits = true;
    gb_tensor_steps(tensor, steps);
    for (int d = 0; d < tensor->ndims; d++) {
        int at = lead + d;
        if (tensor->dims[d] == 1)
            continue;
        fits = fits && at >= 0 && at < b->space->ndims && tensor->dims[d] == b->space->dims[at];
        if (fits)
            along[at] = steps[d];
    }
    if (!fits)
        return gb_fail(GB_INVALID_SHAPE, "%s does not broadcast onto %s", gb_tensor_label(tensor),
                gb_tensor_label(b->space));
    gb_tile_spread(b, along, NULL, strides);
    return GB_SUCCESS;
}

/* Index of the operand, which may be known already. */
static gb_status place_operand(gb_tile_builder *b, const gb_tile_operand *operand, uint32_t *index)
{
    for (*index = 0; *index < b->tile->n_operands; (*index)++) {
        const gb_tile_operand *known = &b->tile->operands[*index];
        if (known->slot == operand->slot && known->written == operand->written &&
                known->is_index == operand->is_index &&
                memcmp(known->strides, operand->strides, sizeof operand->strides) == 0)
            return GB_SUCCESS;
    }
    if (b->tile->n_operands == GB_TILE_OPERANDS)
        return too_large("operands");
    GB_TRY(grow(b, &b->tile->operands, b->tile->n_operands, &b->operand_capacity, sizeof *operand));
    gb_tile_operand *placed = &b->tile->operands[b->tile->n_operands++];
    *placed = *operand;
    placed->bytes = gb_tile_element_bytes(operand->type);
    return GB_SUCCESS;
}

static gb_status add_operand(gb_tile_builder *b, uint32_t buffer, gb_data_type type,
        const int64_t *strides, bool written, uint32_t *index)
{
    gb_tile_operand operand = {.type = type, .written = written};
    memcpy(operand.strides, strides, sizeof operand.strides);
    /* Beside locals the program is part of a kernel that runs it on other elements, too. */
    bool by_element = b->stores_last && b->locals.n == 0;
    GB_TRY((by_element ? gb_step_use_by_element : gb_step_use_buffer)(
            b->step, buffer, written, &operand.slot));
    return place_operand(b, &operand, index);
}

gb_status gb_tile_add_index(gb_tile_builder *b, const int64_t *strides, uint32_t *index)
{
    gb_tile_operand operand = {.type = GB_S64, .is_index = true};
    memcpy(operand.strides, strides, sizeof operand.strides);
    return place_operand(b, &operand, index);
}

/* Index among the values in the caller's memory, GB_NONE when it is none. */
static uint32_t local_index(const gb_tile_builder *b, uint32_t value)
{
    for (uint32_t i = 0; i < b->locals.n; i++)
        if (b->locals.values[i] == value)
            return i;
    return GB_NONE;
}

gb_status gb_tile_add_value(
        gb_tile_builder *b, uint32_t value, const int64_t *strides, bool written, uint32_t *index)
{
    uint32_t buffer, local = local_index(b, value);
    if (local != GB_NONE) {
        gb_tile_operand operand = {
                .type = GB_F32, .written = written, .slot = GB_TILE_LOCAL + local};
        memcpy(operand.strides, strides, sizeof operand.strides);
        return place_operand(b, &operand, index);
    }
    GB_TRY(gb_program_value(b->program, value, &buffer));
    gb_data_type type = b->graph->values[value].tensor.data_type;
    return add_operand(b, buffer, type, strides, written, index);
}

bool gb_tile_broadcasts(const gb_tile_builder *b, uint32_t operand)
{
    const int64_t *strides = b->tile->operands[operand].strides;
    for (int d = 0; d < b->tile->ndims; d++)
        if (strides[d] == 0 && b->tile->dims[d] != 1)
            return true;
    return false;
}

/* A register with the value of binding `held`, s32 lanes or f32 as asked for. */
static gb_status convert(gb_tile_builder *b, gb_tile_binding held, bool s32, uint8_t *reg)
{
    *reg = held.reg;
    b->in_use[held.reg] = true;
    if (held.s32 == s32)
        return GB_SUCCESS;
    GB_TRY(gb_tile_take(b, reg));
    b->partial[*reg] = b->partial[held.reg];
    uint8_t opcode = s32 ? GB_TILE_TO_S32 : GB_TILE_FROM_S32;
    return gb_tile_emit(b, (gb_tile_instruction){.opcode = opcode, .dst = *reg, .a = held.reg});
}

static gb_status load(gb_tile_builder *b, uint32_t operand, bool s32, uint8_t *reg)
{
    GB_TRY(gb_tile_take(b, reg));
    b->partial[*reg] = gb_tile_broadcasts(b, operand);
    return gb_tile_emit(b, (gb_tile_instruction){.opcode = GB_TILE_LOAD,
                                   .dst = *reg,
                                   .operand = (uint8_t)operand,
                                   .type = s32 ? GB_S32 : GB_F32});
}

gb_status gb_tile_fetch(
        gb_tile_builder *b, uint32_t value, const int64_t *strides, bool s32, uint8_t *reg)
{
    for (uint32_t i = 0; i < b->n_bindings; i++)
        if (b->bindings[i].value == value && b->bindings[i].operand == GB_TILE_NO_OPERAND)
            return convert(b, b->bindings[i], s32, reg);
    uint32_t operand;
    GB_TRY(gb_tile_add_value(b, value, strides, false, &operand));
    for (uint32_t i = 0; i < b->n_bindings; i++)
        if (b->bindings[i].operand == operand)
            return convert(b, b->bindings[i], s32, reg);
    bool lanes = s32 && b->tile->operands[operand].type == GB_S32;
    GB_TRY(load(b, operand, lanes, reg));
    GB_TRY(gb_tile_bind(b, value, operand, *reg, lanes));
    return convert(b, b->bindings[b->n_bindings - 1], s32, reg);
}

gb_status gb_tile_fetch_buffer(gb_tile_builder *b, uint32_t buffer, gb_data_type type,
        const int64_t *strides, uint8_t *reg)
{
    uint32_t operand;
    GB_TRY(add_operand(b, buffer, type, strides, false, &operand));
    return load(b, operand, false, reg);
}
