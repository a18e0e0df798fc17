/* Where buffers lie: constants apart, temporaries packed into one arena by their life times. */
#include "base/guard.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/compiled.h"

#include <graphbench/graphbench_tools.h>
#include <stdlib.h>

static bool is_written_elsewhere(const gb_program *program, const gb_step *step, uint32_t buffer)
{
    for (uint32_t s = 0; s < program->n_steps; s++)
        for (uint32_t i = 0; i < program->steps[s].n_uses && &program->steps[s] != step; i++)
            if (program->steps[s].uses[i].written && program->steps[s].uses[i].buffer == buffer)
                return true;
    return false;
}

/* A step is constant when it reads constant buffers only, and all it writes are temporaries that
 * no other step writes. */
static bool is_constant_step(const gb_program *program, const gb_step *step)
{
    bool reads = false;
    for (uint32_t i = 0; i < step->n_uses; i++) {
        const gb_buffer *buffer = &program->buffers[step->uses[i].buffer];
        bool fits = step->uses[i].written
                            ? buffer->placement == GB_PLACEMENT_ARENA &&
                                      !is_written_elsewhere(program, step, step->uses[i].buffer)
                            : buffer->constant;
        if (!fits)
            return false;
        reads = reads || !step->uses[i].written;
    }
    return reads;
}

static void mark_constants(gb_program *program)
{
    for (uint32_t s = 0; s < program->n_steps; s++) {
        const gb_step *step = &program->steps[s];
        program->step_is_constant[s] = is_constant_step(program, step);
        *(program->step_is_constant[s] ? &program->constant_work : &program->work) += step->work;
        program->spared += program->step_is_constant[s] ? 0 : step->spared;
        for (uint32_t i = 0; i < step->n_uses && program->step_is_constant[s]; i++) {
            gb_buffer *buffer = &program->buffers[step->uses[i].buffer];
            if (!step->uses[i].written) {
                buffer->prepares = true;
                continue;
            }
            buffer->constant = true;
            buffer->placement = GB_PLACEMENT_CONSTANTS;
        }
    }
}

static void find_lives(gb_program *program)
{
    for (uint32_t s = 0; s < program->n_steps; s++) {
        const gb_step *step = &program->steps[s];
        for (uint32_t i = 0; i < step->n_uses; i++) {
            gb_buffer *buffer = &program->buffers[step->uses[i].buffer];
            if (buffer->first_step == GB_NONE)
                buffer->first_step = s;
            buffer->last_step = s;
        }
    }
}

static bool live_together(const gb_buffer *a, const gb_buffer *b)
{
    return a->first_step <= b->last_step && b->first_step <= a->last_step;
}

/* Bytes that a buffer takes up. */
static size_t room_of(const gb_program *program, const gb_buffer *buffer)
{
    return gb_align_up(buffer->bytes + program->guard_bytes, GB_CACHE_LINE);
}

/* The lowest offset at which `buffer` fits among the n placed ones that live at the same time. */
static size_t lowest_offset(
        const gb_program *program, const gb_buffer *buffer, gb_buffer *const *placed, uint32_t n)
{
    size_t offset = 0, room = room_of(program, buffer);
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < n; i++) {
            const gb_buffer *other = placed[i];
            size_t end = other->offset + room_of(program, other);
            if (offset + room <= other->offset || end <= offset || !live_together(buffer, other))
                continue;
            offset = end;
            moved = true;
        }
    }
    return offset;
}

static int larger_first(const void *a, const void *b)
{
    const gb_buffer *x = *(gb_buffer *const *)a, *y = *(gb_buffer *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (x > y) - (x < y);
}

static gb_status place_temporaries(gb_program *program)
{
    gb_buffer **order = gb_calloc(program->n_buffers, sizeof(gb_buffer *));
    if (!order)
        return GB_OUT_OF_MEMORY;
    uint32_t n = 0;
    for (uint32_t i = 0; i < program->n_buffers; i++)
        if (program->buffers[i].placement == GB_PLACEMENT_ARENA && program->buffers[i].bytes)
            order[n++] = &program->buffers[i];
    qsort(order, n, sizeof(gb_buffer *), larger_first);
    for (uint32_t i = 0; i < n; i++) {
        order[i]->offset = lowest_offset(program, order[i], order, i);
        size_t end = order[i]->offset + room_of(program, order[i]);
        if (end > program->arena_bytes)
            program->arena_bytes = end;
    }
    free(order);
    return GB_SUCCESS;
}

/* One behind another, in a block of their own. */
static void place_apart(gb_program *program, gb_buffer_placement placement, size_t *block)
{
    for (uint32_t i = 0; i < program->n_buffers; i++) {
        gb_buffer *buffer = &program->buffers[i];
        if (buffer->placement != placement)
            continue;
        buffer->offset = *block;
        *block += room_of(program, buffer);
    }
}

/* Bounds every sum of the plan, so that none of them can overflow. */
static gb_status check_total(const gb_program *program)
{
    const size_t most = PTRDIFF_MAX / 2;
    size_t total = GB_CACHE_LINE;
    bool fits = true;
    for (uint32_t i = 0; i < program->n_buffers && fits; i++) {
        fits = program->buffers[i].bytes <= most - total - GB_CACHE_LINE - program->guard_bytes;
        if (fits)
            total += room_of(program, &program->buffers[i]);
        fits = fits && total <= most - GB_CACHE_LINE - program->guard_bytes;
    }
    return fits ? GB_SUCCESS
                : gb_fail(GB_OUT_OF_MEMORY,
                          "the partition needs more memory than can be addressed");
}

void gb_set_memory_checks(int on)
{
    gb_guard_set(on);
}

gb_status gb_program_plan(gb_program *program)
{
    program->guard_bytes = gb_guard_bytes();
    GB_TRY(check_total(program));
    program->step_is_constant = gb_calloc(program->n_steps, sizeof *program->step_is_constant);
    if (!program->step_is_constant)
        return GB_OUT_OF_MEMORY;
    mark_constants(program);
    find_lives(program);
    GB_TRY(place_temporaries(program));
    place_apart(program, GB_PLACEMENT_CONSTANTS, &program->constant_bytes);
    place_apart(program, GB_PLACEMENT_LITERALS, &program->number_bytes);
    for (uint32_t s = 0; s < program->n_steps; s++)
        program->n_slots += program->steps[s].n_uses;
    return GB_SUCCESS;
}

size_t gb_code_scratch(const gb_executable *executable, const gb_stream *stream)
{
    const gb_program *program = &executable->program;
    size_t bytes =
            program->arena_bytes + executable->engine->backend->scratch_bytes(program, stream);
    return bytes ? bytes + GB_CACHE_LINE : 0; /* the caller's memory may be unaligned */
}

/* Its place among the inputs that constant steps read. */
static uint64_t input_number(const gb_program *program, uint32_t buffer)
{
    uint64_t number = 0;
    for (uint32_t b = 0; b < buffer; b++)
        number +=
                program->buffers[b].prepares && program->buffers[b].placement == GB_PLACEMENT_INPUT;
    return number;
}

static gb_digest digest_use(const gb_program *program, const gb_step_use *use)
{
    const gb_buffer *buffer = &program->buffers[use->buffer];
    bool is_input = buffer->placement == GB_PLACEMENT_INPUT;
    if (buffer->placement == GB_PLACEMENT_LITERALS)
        return gb_digest_memory(buffer->numbers, buffer->bytes);
    const uint64_t facts[] = {use->written, is_input, buffer->bytes,
            is_input ? input_number(program, use->buffer) : buffer->offset};
    return gb_digest_memory(facts, sizeof facts);
}

bool gb_program_digest_constants(
        const gb_program *program, const gb_backend *backend, gb_digest *digest)
{
    gb_digest all = {{program->constant_bytes, 0}}, what;
    for (uint32_t s = 0; s < program->n_steps; s++) {
        const gb_step *step = &program->steps[s];
        if (!program->step_is_constant[s])
            continue;
        if (!backend->identify(step, &what))
            return false;
        all = gb_digest_join(all, what);
        for (uint32_t i = 0; i < step->n_uses; i++)
            all = gb_digest_join(all, digest_use(program, &step->uses[i]));
    }
    *digest = all;
    return true;
}
