/* Builds pointwise programs from the post-ops of a group. */
#include "base/status.h"
#include "kernels/plan/pointwise_builder.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RESULTS = 2 };

/* A register that holds `value`; `lead` as in gb_pointwise_align(). Values made in the group have
 * the dims of the space. */
static gb_status fetch(gb_pointwise_builder *b, uint32_t value, int lead, bool s32, uint8_t *reg)
{
    int64_t strides[GB_AXES];
    GB_TRY(gb_pointwise_align(b, &b->graph->values[value].tensor, lead, strides));
    return gb_pointwise_fetch(b, value, strides, s32, reg);
}

/* Dim of the space that the first dim of input `i` lies along. */
static int lead_of(const gb_pointwise_builder *b, const gb_op *op, uint32_t i)
{
    int ndims = b->space->ndims, input_ndims = gb_op_input(op, i)->ndims;
    bool per_channel = op->kind == GB_OP_BIAS_ADD || op->kind == GB_OP_BATCH_NORM_INFERENCE ||
                       (op->kind == GB_OP_PRELU && input_ndims == 1 && ndims > 1 &&
                               gb_op_attr_bool(op, GB_ATTR_PER_CHANNEL_BROADCAST, true));
    return per_channel && i > 0 ? gb_channel_axis(op, ndims) : ndims - input_ndims;
}

/* Register for the result: that of a source that dies here, if it has the size of the result; else
 * a fresh one. */
static gb_status result_register(
        gb_pointwise_builder *b, const uint8_t *sources, int n_sources, uint8_t *reg)
{
    bool partial = true;
    for (int i = 0; i < n_sources; i++)
        partial = partial && b->partial[sources[i]];
    for (int i = 0; i < n_sources; i++) {
        *reg = sources[i];
        if (gb_pointwise_is_free(b, *reg) && !b->partial[*reg])
            return GB_SUCCESS;
    }
    for (int i = 0; i < n_sources;
            i++) /* sources that die stay whole until the instruction is done */
        b->in_use[sources[i]] = true;
    GB_TRY(gb_pointwise_take(b, reg));
    b->partial[*reg] = partial;
    memset(b->in_use, 0, sizeof b->in_use);
    return GB_SUCCESS;
}

/* Is it the product of x and the sigmoid of x that was just computed, which nobody else reads? */
static bool completes_swish(const gb_pointwise_builder *b, uint8_t opcode, const uint8_t *sources)
{
    uint32_t n = b->pointwise->n_instructions;
    if (opcode != GB_POINTWISE_MUL || n == 0)
        return false;
    const gb_pointwise_instruction *last = &b->pointwise->instructions[n - 1];
    return last->opcode == GB_POINTWISE_SIGMOID && last->dst != last->a &&
           gb_pointwise_is_free(b, last->dst) &&
           ((sources[0] == last->a && sources[1] == last->dst) ||
                   (sources[0] == last->dst && sources[1] == last->a));
}

static gb_status pointwise_build_compute(gb_pointwise_builder *b,
        gb_pointwise_instruction instruction, const uint8_t *sources, int n_sources, uint8_t *reg)
{
    uint8_t x;
    memset(b->in_use, 0, sizeof b->in_use);                /* all sources are fetched */
    if (completes_swish(b, instruction.opcode, sources)) { /* x stays in one register */
        x = b->pointwise->instructions[--b->pointwise->n_instructions].a;
        instruction.opcode = GB_POINTWISE_SWISH;
        sources = &x;
        n_sources = 1;
    }
    instruction.a = sources[0];
    if (n_sources > 1)
        instruction.b = sources[1];
    if (n_sources > 2)
        instruction.c = sources[2];
    GB_TRY(result_register(b, sources, n_sources, reg));
    instruction.dst = *reg;
    return gb_pointwise_emit(b, instruction);
}

static gb_status emit_rule(gb_pointwise_builder *b, const gb_op *op, gb_pointwise_binding *result)
{
    const gb_pointwise_rule *rule = gb_pointwise_rule_of(op->kind);
    gb_data_type type = gb_op_output(op, 0)->data_type;
    bool integer = rule->integer != 0;
    for (uint32_t i = 0; i < rule->sources; i++)
        integer = integer && gb_op_input(op, i)->data_type == GB_S32;
    if (type != GB_S32 && type != GB_BOOLEAN)
        integer = false;
    uint8_t sources[3];
    for (uint32_t i = 0; i < rule->sources; i++)
        GB_TRY(fetch(b, op->inputs[i], lead_of(b, op, i), integer, &sources[i]));
    gb_pointwise_drop_dead(b);
    gb_pointwise_instruction instruction = {
            .opcode = integer ? rule->integer : gb_pointwise_opcode_of(op, rule),
            .alpha = rule->alpha ? gb_op_attr_f32(op, rule->alpha, 0) : 0,
            .beta = rule->beta ? gb_op_attr_f32(op, rule->beta, 1) : 0,
    };
    GB_TRY(pointwise_build_compute(b, instruction, sources, rule->sources, &result->reg));
    result->s32 = type == GB_S32;
    if (!result->s32 || integer)
        return GB_SUCCESS;
    return gb_pointwise_emit(
            b, (gb_pointwise_instruction){
                       .opcode = GB_POINTWISE_TO_S32, .dst = result->reg, .a = result->reg});
}

/* The rounding is lost where the value is only stored: the store rounds. */
static gb_status emit_type_cast(
        gb_pointwise_builder *b, const gb_op *op, gb_pointwise_binding *result)
{
    uint8_t source;
    GB_TRY(fetch(b, op->inputs[0], lead_of(b, op, 0), false, &source));
    gb_pointwise_drop_dead(b);
    gb_data_type type = gb_op_output(op, 0)->data_type;
    result->reg = source;
    if (type == GB_F32 || !gb_pointwise_read_later(b, op->outputs[0]))
        return GB_SUCCESS;
    gb_pointwise_instruction round = {.opcode = GB_POINTWISE_ROUND, .type = (uint8_t)type};
    return pointwise_build_compute(b, round, &source, 1, &result->reg);
}

/* (x - mean) (gamma / sqrt(variance + epsilon)) + beta; the factor is computed once per channel. */
static gb_status emit_batch_norm(
        gb_pointwise_builder *b, const gb_op *op, gb_pointwise_binding *result)
{
    enum { SRC, GAMMA, BETA, MEAN, VARIANCE };
    uint8_t in[5], epsilon = 0;
    for (uint32_t i = 0; i < 5; i++)
        GB_TRY(fetch(b, op->inputs[i], lead_of(b, op, i), false, &in[i]));
    GB_TRY(gb_pointwise_take(b, &epsilon));
    b->partial[epsilon] = true;
    float value = gb_op_attr_f32(op, GB_ATTR_EPSILON, 0);
    GB_TRY(gb_pointwise_emit(
            b, (gb_pointwise_instruction){
                       .opcode = GB_POINTWISE_CONSTANT, .dst = epsilon, .alpha = value}));
    uint8_t t = epsilon;
    const gb_pointwise_instruction steps[] = {
            {.opcode = GB_POINTWISE_ADD, .dst = t, .a = in[VARIANCE], .b = t},
            {.opcode = GB_POINTWISE_SQRT, .dst = t, .a = t},
            {.opcode = GB_POINTWISE_DIV, .dst = t, .a = in[GAMMA], .b = t},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        GB_TRY(gb_pointwise_emit(b, steps[i]));
    uint8_t x = 0;
    GB_TRY(gb_pointwise_take(b, &x));
    GB_TRY(gb_pointwise_emit(
            b, (gb_pointwise_instruction){
                       .opcode = GB_POINTWISE_SUB, .dst = x, .a = in[SRC], .b = in[MEAN]}));
    GB_TRY(gb_pointwise_emit(
            b, (gb_pointwise_instruction){.opcode = GB_POINTWISE_MUL, .dst = x, .a = x, .b = t}));
    gb_pointwise_drop_dead(b);
    GB_TRY(gb_pointwise_emit(
            b, (gb_pointwise_instruction){
                       .opcode = GB_POINTWISE_ADD, .dst = x, .a = x, .b = in[BETA]}));
    memset(b->in_use, 0, sizeof b->in_use);
    result->reg = x;
    return GB_SUCCESS;
}

/* The results of a post-op: one, or two. */
static gb_status emit_op(gb_pointwise_builder *b, const gb_op *op, gb_pointwise_binding *results)
{
    if (gb_pointwise_quantizes(op->kind))
        return gb_pointwise_emit_quantization(b, op, &results[0].reg);
    if (gb_pointwise_is_positional(op->kind))
        return gb_pointwise_emit_positional(b, op, results);
    if (op->kind == GB_OP_BATCH_NORM_INFERENCE)
        return emit_batch_norm(b, op, &results[0]);
    if (op->kind == GB_OP_TYPE_CAST)
        return emit_type_cast(b, op, &results[0]);
    return emit_rule(b, op, &results[0]);
}

static gb_status emit_stores(gb_pointwise_builder *b, const gb_pointwise_binding *result)
{
    for (uint32_t i = 0; i < b->n_results; i++) {
        if (b->result_values[i] != result->value)
            continue;
        GB_TRY(gb_pointwise_emit(b, (gb_pointwise_instruction){.opcode = GB_POINTWISE_STORE,
                                            .a = result->reg,
                                            .operand = (uint8_t)i,
                                            .type = result->s32 ? GB_S32 : GB_F32}));
    }
    return GB_SUCCESS;
}

static gb_status emit_post_op(gb_pointwise_builder *b, uint32_t index)
{
    const gb_op *op = b->graph->ops[b->group->ops[index]];
    gb_pointwise_binding results[MAX_RESULTS] = {0};
    b->next_op = index + 1;
    memset(b->in_use, 0, sizeof b->in_use);
    GB_TRY(emit_op(b, op, results));
    memset(b->in_use, 0, sizeof b->in_use);
    for (uint32_t i = 0; i < op->n_outputs && i < MAX_RESULTS; i++) {
        gb_pointwise_binding *result = &results[i];
        result->value = op->outputs[i];
        GB_TRY(gb_pointwise_bind(
                b, result->value, GB_POINTWISE_NO_OPERAND, result->reg, result->s32));
        if (!b->stores_last)
            GB_TRY(emit_stores(b, result));
    }
    gb_pointwise_drop_dead(b);
    return GB_SUCCESS;
}

static bool made_in_group(const gb_pointwise_builder *b, uint32_t value, uint32_t anchor_value)
{
    uint32_t producer = b->graph->values[value].producer;
    if (value == anchor_value)
        return true;
    for (uint32_t i = 0; i < b->group->n_ops; i++)
        if (b->group->ops[i] == producer)
            return true;
    return false;
}

static gb_status add_results(gb_pointwise_builder *b, uint32_t anchor_value)
{
    for (uint32_t i = 0; i < b->group->n_outputs; i++) {
        uint32_t value = b->group->outputs[i], operand;
        if (!made_in_group(b, value, anchor_value))
            continue;
        const gb_logical_tensor *tensor = &b->graph->values[value].tensor;
        int64_t strides[GB_AXES];
        GB_TRY(gb_pointwise_align(b, tensor, b->space->ndims - tensor->ndims, strides));
        GB_TRY(gb_pointwise_add_value(b, value, strides, true, &operand));
        b->pointwise->operands[operand].in_panels = tensor->layout_type == GB_LAYOUT_OPAQUE;
        if (gb_pointwise_broadcasts(b, operand))
            return gb_fail(GB_INVALID_SHAPE, "%s is not the whole of %s", gb_tensor_label(tensor),
                    gb_tensor_label(b->space));
        if (operand == b->n_results)
            b->result_values[b->n_results++] = value;
    }
    return GB_SUCCESS;
}

/* The dims of the program: those of the space, split where the first post-op asks for it. */
static gb_status set_dims(gb_pointwise_builder *b, uint32_t anchor_value)
{
    const gb_logical_tensor *space = b->space;
    gb_pointwise_program *pointwise = b->pointwise;
    for (int d = 0; d < GB_AXES; d++)
        b->sizes[d] = 1;
    if (anchor_value == GB_NONE)
        GB_TRY(gb_pointwise_split(b->graph->ops[b->group->ops[0]], b->sizes));
    for (int d = 0; d < space->ndims; d++) {
        bool split = b->sizes[d] > 1;
        if (pointwise->ndims + split >= GB_AXES)
            return gb_fail(GB_UNIMPLEMENTED, "%s has too many dims to be split in groups",
                    gb_tensor_label(space));
        if (split)
            pointwise->dims[pointwise->ndims++] = space->dims[d] / b->sizes[d];
        pointwise->dims[pointwise->ndims++] = split ? b->sizes[d] : space->dims[d];
    }
    return GB_SUCCESS;
}

/* Is one of several results an operand as it was loaded? Its register may be the operand's memory,
 * where another result may have been stored before. */
static bool stores_operand(const gb_pointwise_builder *b)
{
    bool loaded[GB_POINTWISE_REGISTERS] = {false}, found = false;
    for (uint32_t i = 0; i < b->pointwise->n_instructions; i++) {
        const gb_pointwise_instruction *instruction = &b->pointwise->instructions[i];
        if (instruction->opcode == GB_POINTWISE_STORE)
            found = found || loaded[instruction->a];
        else
            loaded[instruction->dst] = instruction->opcode == GB_POINTWISE_LOAD;
    }
    return found && b->n_results > 1;
}

static gb_status pointwise_build(gb_pointwise_builder *b, uint32_t anchor_value)
{
    gb_pointwise_program *pointwise = b->pointwise;
    *pointwise = (gb_pointwise_program){
            .operands = pointwise->operands, .instructions = pointwise->instructions};
    GB_TRY(set_dims(b, anchor_value));
    pointwise->n_registers = 1;
    pointwise->loads_first = b->stores_last;
    b->n_results = b->n_bindings = b->next_op = 0;
    GB_TRY(add_results(b, anchor_value));
    if (anchor_value != GB_NONE) {
        gb_pointwise_binding anchor = {anchor_value, GB_POINTWISE_NO_OPERAND, 0, false};
        GB_TRY(gb_pointwise_bind(b, anchor.value, anchor.operand, anchor.reg, anchor.s32));
        if (!b->stores_last)
            GB_TRY(emit_stores(b, &anchor));
        gb_pointwise_drop_dead(b);
    }
    for (uint32_t i = 0; i < b->group->n_ops; i++)
        GB_TRY(emit_post_op(b, i));
    for (uint32_t i = 0; b->stores_last && i < b->n_bindings; i++)
        if (b->bindings[i].operand == GB_POINTWISE_NO_OPERAND)
            GB_TRY(emit_stores(b, &b->bindings[i]));
    return GB_SUCCESS;
}

static void choose_streams(gb_pointwise_builder *b)
{
    const gb_pointwise_program *pointwise = b->pointwise;
    for (uint32_t i = 0; i < pointwise->n_operands; i++) {
        gb_pointwise_operand *operand = &pointwise->operands[i];
        if (operand->is_index || operand->slot >= GB_SCRATCH_OPERAND)
            continue;
        double bytes = (double)gb_data_type_bytes(operand->type, 1);
        for (int d = 0; d < pointwise->ndims; d++)
            if (operand->strides[d])
                bytes *= (double)pointwise->dims[d];
        operand->far = !operand->written && gb_is_far(bytes);
        operand->streamed =
                operand->written && gb_streams(bytes, gb_program_is_temporary(b->program,
                                                              b->step->uses[operand->slot].buffer));
    }
}

/* Gives back what operands and instructions do not need. */
static gb_status pointwise_build_pack(gb_pointwise_builder *b)
{
    gb_pointwise_program *pointwise = b->pointwise;
    pointwise->operands = gb_step_resize(
            b->step, pointwise->operands, pointwise->n_operands, sizeof *pointwise->operands);
    pointwise->instructions = gb_step_resize(b->step, pointwise->instructions,
            pointwise->n_instructions, sizeof *pointwise->instructions);
    return pointwise->operands && pointwise->instructions ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

static gb_status build_either_way(gb_pointwise_builder *b, uint32_t anchor_value)
{
    b->pointwise->operands = NULL;
    b->pointwise->instructions = NULL;
    b->stores_last = true;
    gb_status status = pointwise_build(b, anchor_value);
    if (status == GB_UNIMPLEMENTED || (status == GB_SUCCESS && stores_operand(b))) {
        b->stores_last = false;
        status = pointwise_build(b, anchor_value);
    }
    free(b->bindings);
    GB_TRY(status);
    choose_streams(b);
    return pointwise_build_pack(b);
}

gb_status gb_pointwise_build_with_scratch(gb_program *program, const gb_group *group,
        uint32_t anchor_value, const gb_scratch_operands *scratch_operands,
        const gb_logical_tensor *space, gb_step *step, gb_pointwise_program *pointwise)
{
    gb_pointwise_builder b = {.program = program,
            .graph = gb_program_graph(program),
            .group = group,
            .space = space,
            .step = step,
            .pointwise = pointwise,
            .scratch_operands = *scratch_operands};
    return build_either_way(&b, anchor_value);
}

gb_status gb_pointwise_build(gb_program *program, const gb_group *group, uint32_t anchor_value,
        const gb_logical_tensor *space, gb_step *step, gb_pointwise_program *pointwise)
{
    gb_scratch_operands none = {.n = 0};
    return gb_pointwise_build_with_scratch(
            program, group, anchor_value, &none, space, step, pointwise);
}
