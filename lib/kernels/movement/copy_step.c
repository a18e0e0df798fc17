/* Steps of strided copies: making and running them. */
#include "kernels/movement/copy_step.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/plan/pointwise.h"

#include <string.h>

static char *copy_address(const gb_step_call *call, uint32_t slot)
{
    return slot == GB_COPY_SCRATCH ? call->shared : call->buffers[slot];
}

static void run_task(const gb_copy_task *task, const gb_step_call *call, int64_t begin, int64_t end)
{
    const char *src = copy_address(call, task->src_slot) + task->src_offset;
    gb_copy_items(
            &task->plan, src, copy_address(call, task->dst_slot) + task->dst_offset, begin, end);
}

/* Slices of as many work items are copied side by side, so that the destination is written in
 * order. */
static void run_in_step(const gb_copy_step *copies, const gb_step_call *call)
{
    int64_t begin, end;
    gb_split(copies->tasks[0].plan.items, call->thread, call->n_threads, &begin, &end);
    for (int64_t item = begin; item < end; item++)
        for (uint32_t i = 0; i < copies->n_tasks; i++)
            run_task(&copies->tasks[i], call, item, item + 1);
}

static void copy_clear(const gb_copy_step *copies, const gb_step_call *call)
{
    int64_t begin, end;
    gb_split((int64_t)copies->clear_bytes, call->thread, call->n_threads, &begin, &end);
    if (begin < end)
        memset(copy_address(call, copies->cleared) + begin, 0, (size_t)(end - begin));
}

static void copy_run(const gb_step_call *call)
{
    const gb_copy_step *copies = call->params;
    int64_t begin, end;
    if (copies->in_step) {
        run_in_step(copies, call);
        return;
    }
    if (call->phase == 0)
        copy_clear(copies, call);
    for (uint32_t i = 0; i < copies->n_tasks; i++) {
        gb_split(copies->tasks[i].plan.items, call->thread, call->n_threads, &begin, &end);
        if (copies->tasks[i].phase == call->phase)
            run_task(&copies->tasks[i], call, begin, end);
    }
}

gb_copy_step *gb_copy_step_make(gb_step *step, size_t n_tasks)
{
    size_t bytes;
    if (n_tasks > UINT32_MAX || !gb_size_mul(n_tasks, sizeof(gb_copy_task), &bytes))
        return NULL;
    gb_copy_step *copies = gb_step_alloc(step, 1, sizeof *copies + bytes);
    if (copies)
        copies->n_tasks = (uint32_t)n_tasks;
    return copies;
}

/* Does every element lie where it should, if both sides share memory? */
static bool moves_nothing(const gb_copy_step *copies)
{
    bool still = copies->clear_bytes == 0;
    for (uint32_t i = 0; i < copies->n_tasks && still; i++) {
        const gb_copy_task *task = &copies->tasks[i];
        size_t bytes = (size_t)task->plan.ndims * sizeof *task->plan.src_strides;
        still = task->src_slot != GB_COPY_SCRATCH && task->dst_slot != GB_COPY_SCRATCH &&
                task->src_offset == task->dst_offset &&
                memcmp(task->plan.src_strides, task->plan.dst_strides, bytes) == 0;
    }
    return still;
}

gb_status gb_copy_step_add(gb_program *program, gb_step *step, gb_copy_step *copies)
{
    step->run = copy_run;
    step->params = copies;
    for (uint32_t i = 0; i < step->n_uses; i++)
        step->uses[i].elementwise = moves_nothing(copies);
    step->work = (double)copies->clear_bytes;
    for (uint32_t i = 0; i < copies->n_tasks; i++)
        step->work += gb_copy_bytes(&copies->tasks[i].plan);
    for (uint32_t i = 0; i < copies->n_tasks; i++)
        copies->tasks[i].plan.streamed = gb_streams(step->work / 2);
    return gb_program_add(program, step);
}
