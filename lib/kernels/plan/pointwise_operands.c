/* Registers and operands of a pointwise program while it is built: what they hold, and how long. */
#include "base/memory.h"
#include "base/status.h"
#include "kernels/plan/pointwise_builder.h"

#include <string.h>

static gb_status too_large(const char *what)
{
    return gb_fail(GB_UNIMPLEMENTED, "group of element-wise ops needs too many %s", what);
}

/* Room for one more element of an array of the pointwise program that holds n. */
static gb_status grow(
        gb_pointwise_builder *b, void *array /* T** */, uint32_t n, uint32_t *capacity, size_t size)
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

gb_status gb_pointwise_emit(gb_pointwise_builder *b, gb_pointwise_instruction instruction)
{
    if (b->pointwise->n_instructions == GB_POINTWISE_INSTRUCTIONS)
        return too_large("instructions");
    GB_TRY(grow(b, &b->pointwise->instructions, b->pointwise->n_instructions,
            &b->instruction_capacity, sizeof instruction));
    b->pointwise->instructions[b->pointwise->n_instructions++] = instruction;
    return GB_SUCCESS;
}

static bool is_result(const gb_pointwise_builder *b, uint32_t value)
{
    for (uint32_t i = 0; i < b->n_results; i++)
        if (b->result_values[i] == value)
            return true;
    return false;
}

bool gb_pointwise_read_later(const gb_pointwise_builder *b, uint32_t value)
{
    for (uint32_t i = b->next_op; i < b->group->n_ops; i++) {
        const gb_op *op = b->graph->ops[b->group->ops[i]];
        if (op->kind == GB_OP_GEN_INDEX)
            continue; /* reads the shape only */
        for (uint32_t k = 0; k < op->n_inputs; k++)
            if (op->inputs[k] == value)
                return true;
    }
    return false;
}

void gb_pointwise_drop_dead(gb_pointwise_builder *b)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->n_bindings; i++) {
        const gb_pointwise_binding *held = &b->bindings[i];
        bool stored = b->stores_last && held->operand == GB_POINTWISE_NO_OPERAND &&
                      is_result(b, held->value);
        if (stored || gb_pointwise_read_later(b, held->value))
            b->bindings[kept++] = *held;
    }
    b->n_bindings = kept;
}

bool gb_pointwise_is_free(const gb_pointwise_builder *b, unsigned reg)
{
    if (b->in_use[reg])
        return false;
    for (uint32_t i = 0; i < b->n_bindings; i++)
        if (b->bindings[i].reg == reg)
            return false;
    return true;
}

/* Forgets the operand that was loaded first of those that the op at hand does not read, and that can be
 * loaded again: nothing is stored before, or its memory is never a result's. */
static bool forget_operand(gb_pointwise_builder *b, unsigned *reg)
{
    for (uint32_t i = 0; i < b->n_bindings; i++) {
        const gb_pointwise_binding *held = &b->bindings[i];
        if (held->operand == GB_POINTWISE_NO_OPERAND || b->in_use[held->reg] ||
                (!b->stores_last &&
                        b->pointwise->operands[held->operand].slot >= GB_SCRATCH_OPERAND))
            continue;
        *reg = held->reg;
        memmove(&b->bindings[i], &b->bindings[i + 1],
                (b->n_bindings - i - 1) * sizeof *b->bindings);
        b->n_bindings--;
        return gb_pointwise_is_free(b, *reg);
    }
    return false;
}

gb_status gb_pointwise_take(gb_pointwise_builder *b, uint8_t *reg)
{
    unsigned i = 0;
    while (i < GB_POINTWISE_REGISTERS && !gb_pointwise_is_free(b, i))
        i++;
    if (i == GB_POINTWISE_REGISTERS && !forget_operand(b, &i))
        return too_large("registers");
    b->in_use[i] = true;
    b->partial[i] = false;
    if (i >= b->pointwise->n_registers)
        b->pointwise->n_registers = i + 1;
    *reg = (uint8_t)i;
    return GB_SUCCESS;
}

gb_status gb_pointwise_bind(
        gb_pointwise_builder *b, uint32_t value, uint32_t operand, uint8_t reg, bool s32)
{
    if (!gb_reserve(
                &b->bindings, &b->binding_capacity, (size_t)b->n_bindings + 1, sizeof *b->bindings))
        return GB_OUT_OF_MEMORY;
    b->bindings[b->n_bindings++] = (gb_pointwise_binding){value, operand, reg, s32};
    return GB_SUCCESS;
}

/* ------------------------------------------------------------------------------------- operands */

void gb_pointwise_map_strides(const gb_pointwise_builder *b, const int64_t *along,
        const int64_t *across, int64_t *strides)
{
    int n = 0;
    memset(strides, 0, GB_AXES * sizeof *strides);
    for (int d = 0; d < b->space->ndims; d++) {
        if (b->sizes[d] > 1)
            strides[n++] = across ? across[d] : along[d] * b->sizes[d];
        strides[n++] = along[d];
    }
}

gb_status gb_pointwise_align(
        const gb_pointwise_builder *b, const gb_logical_tensor *tensor, int lead, int64_t *strides)
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
    gb_pointwise_map_strides(b, along, NULL, strides);
    return GB_SUCCESS;
}

/* Index of the operand, which may be known already. */
static gb_status place_operand(
        gb_pointwise_builder *b, const gb_pointwise_operand *operand, uint32_t *index)
{
    for (*index = 0; *index < b->pointwise->n_operands; (*index)++) {
        const gb_pointwise_operand *known = &b->pointwise->operands[*index];
        if (known->slot == operand->slot && known->written == operand->written &&
                known->is_index == operand->is_index &&
                memcmp(known->strides, operand->strides, sizeof operand->strides) == 0)
            return GB_SUCCESS;
    }
    if (b->pointwise->n_operands == GB_POINTWISE_OPERANDS)
        return too_large("operands");
    GB_TRY(grow(b, &b->pointwise->operands, b->pointwise->n_operands, &b->operand_capacity,
            sizeof *operand));
    gb_pointwise_operand *placed = &b->pointwise->operands[b->pointwise->n_operands++];
    *placed = *operand;
    placed->bytes = gb_pointwise_element_bytes(operand->type);
    return GB_SUCCESS;
}

static gb_status add_operand(gb_pointwise_builder *b, uint32_t buffer, gb_data_type type,
        const int64_t *strides, bool written, uint32_t *index)
{
    gb_pointwise_operand operand = {.type = type, .written = written};
    memcpy(operand.strides, strides, sizeof operand.strides);
    /* Beside scratch operands the program is part of a kernel that runs it on other elements,
     * too. */
    bool elementwise = b->stores_last && b->scratch_operands.n == 0;
    GB_TRY((elementwise ? gb_step_use_elementwise : gb_step_use_buffer)(
            b->step, buffer, written, &operand.slot));
    return place_operand(b, &operand, index);
}

gb_status gb_pointwise_add_index(gb_pointwise_builder *b, const int64_t *strides, uint32_t *index)
{
    gb_pointwise_operand operand = {.type = GB_S64, .is_index = true};
    memcpy(operand.strides, strides, sizeof operand.strides);
    return place_operand(b, &operand, index);
}

/* Index among the values in the caller's memory, GB_NONE when it is none. */
static uint32_t local_index(const gb_pointwise_builder *b, uint32_t value)
{
    for (uint32_t i = 0; i < b->scratch_operands.n; i++)
        if (b->scratch_operands.values[i] == value)
            return i;
    return GB_NONE;
}

gb_status gb_pointwise_add_value(gb_pointwise_builder *b, uint32_t value, const int64_t *strides,
        bool written, uint32_t *index)
{
    uint32_t buffer, local = local_index(b, value);
    if (local != GB_NONE) {
        bool s32 = b->graph->values[value].tensor.data_type == GB_S32; /* as many bytes */
        gb_pointwise_operand operand = {.type = s32 ? GB_S32 : GB_F32,
                .written = written,
                .slot = GB_SCRATCH_OPERAND + local};
        memcpy(operand.strides, strides, sizeof operand.strides);
        return place_operand(b, &operand, index);
    }
    GB_TRY(gb_program_value(b->program, value, &buffer));
    gb_data_type type = b->graph->values[value].tensor.data_type;
    return add_operand(b, buffer, type, strides, written, index);
}

bool gb_pointwise_broadcasts(const gb_pointwise_builder *b, uint32_t operand)
{
    const int64_t *strides = b->pointwise->operands[operand].strides;
    for (int d = 0; d < b->pointwise->ndims; d++)
        if (strides[d] == 0 && b->pointwise->dims[d] != 1)
            return true;
    return false;
}

/* A register with the value of binding `held`, s32 lanes or f32 as asked for. */
static gb_status convert(gb_pointwise_builder *b, gb_pointwise_binding held, bool s32, uint8_t *reg)
{
    *reg = held.reg;
    b->in_use[held.reg] = true;
    if (held.s32 == s32)
        return GB_SUCCESS;
    GB_TRY(gb_pointwise_take(b, reg));
    b->partial[*reg] = b->partial[held.reg];
    uint8_t opcode = s32 ? GB_POINTWISE_TO_S32 : GB_POINTWISE_FROM_S32;
    return gb_pointwise_emit(
            b, (gb_pointwise_instruction){.opcode = opcode, .dst = *reg, .a = held.reg});
}

static gb_status pointwise_operands_load(
        gb_pointwise_builder *b, uint32_t operand, bool s32, uint8_t *reg)
{
    GB_TRY(gb_pointwise_take(b, reg));
    b->partial[*reg] = gb_pointwise_broadcasts(b, operand);
    return gb_pointwise_emit(b, (gb_pointwise_instruction){.opcode = GB_POINTWISE_LOAD,
                                        .dst = *reg,
                                        .operand = (uint8_t)operand,
                                        .type = s32 ? GB_S32 : GB_F32});
}

gb_status gb_pointwise_fetch(
        gb_pointwise_builder *b, uint32_t value, const int64_t *strides, bool s32, uint8_t *reg)
{
    for (uint32_t i = 0; i < b->n_bindings; i++)
        if (b->bindings[i].value == value && b->bindings[i].operand == GB_POINTWISE_NO_OPERAND)
            return convert(b, b->bindings[i], s32, reg);
    uint32_t operand;
    GB_TRY(gb_pointwise_add_value(b, value, strides, false, &operand));
    /* As f32 some integers are not what they were. */
    bool lanes = s32 && b->pointwise->operands[operand].type == GB_S32;
    for (uint32_t i = 0; i < b->n_bindings; i++)
        if (b->bindings[i].operand == operand && (b->bindings[i].s32 || !lanes))
            return convert(b, b->bindings[i], s32, reg);
    GB_TRY(pointwise_operands_load(b, operand, lanes, reg));
    GB_TRY(gb_pointwise_bind(b, value, operand, *reg, lanes));
    return convert(b, b->bindings[b->n_bindings - 1], s32, reg);
}

gb_status gb_pointwise_fetch_buffer(gb_pointwise_builder *b, uint32_t buffer, gb_data_type type,
        const int64_t *strides, uint8_t *reg)
{
    uint32_t operand;
    GB_TRY(add_operand(b, buffer, type, strides, false, &operand));
    return pointwise_operands_load(b, operand, false, reg);
}
