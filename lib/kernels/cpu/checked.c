/* Checked memory of a run. */
#include "kernels/cpu/checked.h"

#include "base/guard.h"
#include "kernels/cpu/scratch.h"
#include "runtime/compiled.h"

void gb_scratch_guard(gb_step *step)
{
    size_t *guards = gb_step_resize(step, step->guards, step->n_guards + 1, sizeof *guards);
    if (!guards)
        return;
    step->guards = guards;
    guards[step->n_guards++] = step->thread_scratch;
    step->thread_scratch += gb_guard_bytes();
}

/* The buffer of a use, if the step writes memory of the library there; else NULL. */
static const gb_buffer *own_result(const gb_program *program, const gb_step_use *use)
{
    const gb_buffer *buffer = &program->buffers[use->buffer];
    bool own =
            buffer->placement == GB_PLACEMENT_ARENA || buffer->placement == GB_PLACEMENT_CONSTANTS;
    return own && use->written && buffer->bytes ? buffer : NULL;
}

void gb_checked_begin(const gb_program *program, uint32_t number, void *const *slots,
        const gb_checked_scratch *scratch)
{
    const gb_step *step = &program->steps[number];
    gb_poison(scratch->shared, scratch->shared_bytes);
    gb_poison(scratch->threads, scratch->thread_bytes * (size_t)scratch->n_threads);
    for (uint32_t i = 0; i < step->n_uses; i++) {
        const gb_buffer *buffer = own_result(program, &step->uses[i]);
        if (buffer && buffer->first_step == number)
            gb_poison(slots[i], buffer->bytes + program->guard_bytes);
    }
}

static bool scratch_is_intact(
        const gb_program *program, const gb_step *step, const gb_checked_scratch *scratch)
{
    for (int t = 0; t < scratch->n_threads; t++) {
        const char *own = scratch->threads + scratch->thread_bytes * (size_t)t;
        for (uint32_t g = 0; g < step->n_guards; g++)
            if (!gb_is_poison(own + step->guards[g], program->guard_bytes))
                return false;
        if (!gb_is_poison(own + step->thread_scratch, scratch->thread_bytes - step->thread_scratch))
            return false;
    }
    return true;
}

bool gb_checked_end(const gb_program *program, uint32_t number, void *const *slots,
        const gb_checked_scratch *scratch, const char **what)
{
    const gb_step *step = &program->steps[number];
    *what = "the scratch that threads share"; /* that of the threads lies behind it */
    const char *shared = scratch->shared;
    if (!gb_is_poison(shared + step->shared_scratch, scratch->shared_bytes - step->shared_scratch))
        return false;
    *what = "the scratch of a thread";
    if (!scratch_is_intact(program, step, scratch))
        return false;
    *what = "a temporary or prepared constants";
    for (uint32_t i = 0; i < step->n_uses; i++) {
        const gb_buffer *buffer = own_result(program, &step->uses[i]);
        if (buffer && !gb_is_poison((char *)slots[i] + buffer->bytes, program->guard_bytes))
            return false;
    }
    return true;
}
