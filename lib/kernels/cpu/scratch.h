/* Scratch of a thread, part by part: planning adds a part and keeps what names it, running asks for
 * it by that name. */
#ifndef GB_KERNELS_CPU_SCRATCH_H
#define GB_KERNELS_CPU_SCRATCH_H

#include "base/guard.h"
#include "base/memory.h"
#include "kernels/cpu/step_call.h"
#include "runtime/program.h"

/* A part of the scratch that each thread has while it runs a step. */
typedef struct gb_scratch {
    size_t offset;
} gb_scratch;

/* Puts bytes that nothing may write behind the parts that there are (base/guard.h), memory permitting. */
void gb_scratch_guard(gb_step *step);

/* Adds a part of so many bytes; it begins with a cache line. */
static inline gb_scratch gb_scratch_add(gb_step *step, size_t bytes)
{
    gb_scratch part = {gb_align_up(step->thread_scratch, GB_CACHE_LINE)};
    step->thread_scratch = part.offset + bytes;
    if (gb_guard_bytes())
        gb_scratch_guard(step);
    return part;
}

static inline void *gb_scratch_get(const gb_step_call *call, gb_scratch part)
{
    return call->scratch + part.offset;
}

#endif
