/* Building a program: steps and buffers, as lowering adds them. */
#include "base/memory.h"
#include "base/status.h"
#include "runtime/compiled.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static gb_status add_use(gb_step *step, gb_step_use use, uint32_t *slot)
{
    for (uint32_t i = 0; i < step->n_uses; i++) {
        gb_step_use *known = &step->uses[i];
        if (known->buffer != use.buffer || known->written != use.written)
            continue;
        known->elementwise = known->elementwise && use.elementwise;
        *slot = i;
        return GB_SUCCESS;
    }
    if (!gb_reserve(&step->uses, &step->use_capacity, (size_t)step->n_uses + 1, sizeof *step->uses))
        return GB_OUT_OF_MEMORY;
    *slot = step->n_uses;
    step->uses[step->n_uses++] = use;
    return GB_SUCCESS;
}

gb_status gb_step_use_buffer(gb_step *step, uint32_t buffer, bool written, uint32_t *slot)
{
    return add_use(step, (gb_step_use){.buffer = buffer, .written = written}, slot);
}

gb_status gb_step_use_elementwise(gb_step *step, uint32_t buffer, bool written, uint32_t *slot)
{
    return add_use(step, (gb_step_use){buffer, written, .elementwise = true}, slot);
}

/* A block of a step's memory; what the step sees begins behind it. */
typedef struct gb_step_block {
    struct gb_step_block *next;
    size_t bytes;
    max_align_t data[];
} gb_step_block;

void *gb_step_resize(gb_step *step, void *block, size_t count, size_t size)
{
    gb_step_block **post_op = &step->memory;
    size_t bytes;
    if (!gb_size_mul(count, size, &bytes) || bytes > SIZE_MAX - sizeof(gb_step_block)) {
        gb_fail(GB_OUT_OF_MEMORY, "%zu elements of %zu bytes", count, size);
        return NULL;
    }
    while (block && (*post_op)->data != block)
        post_op = &(*post_op)->next;
    gb_step_block *known = block ? *post_op : NULL, *next = known ? known->next : step->memory;
    size_t before = known ? known->bytes : 0;
    gb_step_block *made = realloc(known, sizeof *made + bytes);
    if (!made) {
        gb_fail(GB_OUT_OF_MEMORY, "%zu bytes", bytes);
        return NULL;
    }
    if (bytes > before)
        memset((char *)made->data + before, 0, bytes - before);
    *made = (gb_step_block){.next = next, .bytes = bytes};
    *post_op = made;
    return made->data;
}

void *gb_step_alloc(gb_step *step, size_t count, size_t size)
{
    return gb_step_resize(step, NULL, count, size);
}

size_t gb_step_bytes(const gb_step *step)
{
    size_t bytes = 0;
    for (const gb_step_block *block = step->memory; block; block = block->next)
        bytes += block->bytes;
    return bytes;
}

void gb_step_clear(gb_step *step)
{
    for (gb_step_block *block = step->memory, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    free(step->uses);
    *step = (gb_step){0};
}

const gb_graph *gb_program_graph(const gb_program *program)
{
    return program->graph;
}

uint64_t gb_program_compile_key(const gb_program *program)
{
    return program->compile_key;
}

static gb_status add_buffer(gb_program *program, gb_buffer buffer, uint32_t *index)
{
    if (!gb_reserve(&program->buffers, &program->buffer_capacity, (size_t)program->n_buffers + 1,
                sizeof *program->buffers))
        return GB_OUT_OF_MEMORY;
    *index = program->n_buffers;
    program->buffers[program->n_buffers++] = buffer;
    return GB_SUCCESS;
}

gb_status gb_program_temporary(gb_program *program, size_t bytes, uint32_t *buffer)
{
    return add_buffer(program,
            (gb_buffer){.placement = GB_PLACEMENT_ARENA, .bytes = bytes, .first_step = GB_NONE},
            buffer);
}

bool gb_program_is_temporary(const gb_program *program, uint32_t buffer)
{
    return program->buffers[buffer].placement == GB_PLACEMENT_ARENA;
}

gb_status gb_program_literals(
        gb_program *program, const float *numbers, size_t count, uint32_t *buffer)
{
    gb_buffer made = {.placement = GB_PLACEMENT_LITERALS,
            .bytes = count * sizeof *numbers,
            .numbers = gb_calloc(count, sizeof *numbers),
            .constant = true};
    if (!made.numbers)
        return GB_OUT_OF_MEMORY;
    memcpy(made.numbers, numbers, made.bytes);
    gb_status status = add_buffer(program, made, buffer);
    if (status != GB_SUCCESS)
        free(made.numbers);
    return status;
}

gb_status gb_program_value(gb_program *program, uint32_t value, uint32_t *buffer)
{
    value = gb_graph_storage(program->graph, value);
    if (program->value_buffers[value] == GB_NONE) {
        size_t bytes;
        GB_TRY(gb_logical_tensor_get_mem_size(&program->graph->values[value].tensor, &bytes));
        GB_TRY(gb_program_temporary(program, bytes, &program->value_buffers[value]));
    }
    *buffer = program->value_buffers[value];
    return GB_SUCCESS;
}

gb_status gb_program_use(
        gb_program *program, gb_step *step, uint32_t value, bool written, uint32_t *slot)
{
    uint32_t buffer;
    GB_TRY(gb_program_value(program, value, &buffer));
    return gb_step_use_buffer(step, buffer, written, slot);
}

gb_status gb_program_use_elementwise(
        gb_program *program, gb_step *step, uint32_t value, bool written, uint32_t *slot)
{
    uint32_t buffer;
    GB_TRY(gb_program_value(program, value, &buffer));
    return gb_step_use_elementwise(step, buffer, written, slot);
}

bool gb_program_is_constant(const gb_program *program, uint32_t value)
{
    uint32_t storage = gb_graph_storage(program->graph, value);
    return program->graph->values[storage].tensor.property == GB_PROPERTY_CONSTANT;
}

gb_status gb_program_begin(gb_program *program, const char *kernel, gb_step **step)
{
    gb_unfinished_step *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    made->step.kernel = kernel;
    made->next = program->unfinished;
    program->unfinished = made;
    *step = &made->step;
    return GB_SUCCESS;
}

gb_status gb_program_add(gb_program *program, gb_step *step)
{
    if (!gb_reserve(&program->steps, &program->step_capacity, (size_t)program->n_steps + 1,
                sizeof *program->steps))
        return GB_OUT_OF_MEMORY;
    step->group = program->group;
    program->steps[program->n_steps++] = *step;
    gb_unfinished_step **post_op = &program->unfinished, *finished;
    while (&(*post_op)->step != step)
        post_op = &(*post_op)->next;
    finished = *post_op;
    *post_op = finished->next;
    free(finished);
    return GB_SUCCESS;
}

void gb_program_clear(gb_program *program)
{
    for (uint32_t i = 0; i < program->n_steps; i++)
        gb_step_clear(&program->steps[i]);
    free(program->steps);
    for (gb_unfinished_step *left = program->unfinished, *next; left; left = next) {
        next = left->next;
        gb_step_clear(&left->step);
        free(left);
    }
    free(program->step_is_constant);
    for (uint32_t i = 0; i < program->n_buffers; i++)
        free(program->buffers[i].numbers);
    free(program->buffers);
    free(program->value_buffers);
    gb_graph_destroy(program->graph);
    *program = (gb_program){0};
}
