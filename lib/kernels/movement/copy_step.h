/* A step of strided copies: boxes of elements that go from buffer to buffer. */
#ifndef GB_KERNELS_MOVEMENT_COPY_STEP_H
#define GB_KERNELS_MOVEMENT_COPY_STEP_H

#include "kernels/cpu/step_call.h"
#include "kernels/movement/copy.h"

enum { GB_COPY_SCRATCH = UINT32_MAX }; /* as a slot: the scratch that all threads share */

typedef struct gb_copy_task {
    gb_copy_plan plan;
    int phase;
    uint32_t src_slot, dst_slot;
    int64_t src_offset, dst_offset; /* bytes */
} gb_copy_task;

typedef struct gb_copy_step {
    uint32_t n_tasks;
    bool in_step; /* work item by work item of all tasks, which have as many */
    uint32_t cleared;
    size_t clear_bytes; /* of the buffer at slot `cleared`, zeroed in phase 0 */
    gb_copy_task tasks[];
} gb_copy_step;

/* Parameters of the step, with room for as many tasks, all zero; NULL when out of memory. */
gb_copy_step *gb_copy_step_make(gb_step *step, size_t n_tasks);
/* Adds the step, which has its uses and phases. */
gb_status gb_copy_step_add(gb_program *program, gb_step *step, gb_copy_step *copies);

#endif
