/* Steps of strided copies: planning and running them. */
#include "kernels/movement/copy_step.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/cpu/step_call.h"
#include "kernels/movement/copy.h"
#include "kernels/plan/pointwise.h"

#include <string.h>

typedef struct copy_step {
    gb_copy_problem problem;
    bool in_step;         /* work item by work item of all moves, which have as many */
    gb_copy_plan plans[]; /* of the moves */
} copy_step;

static char *copy_address(const gb_step_call *call, uint32_t slot)
{
    return slot == GB_COPY_SCRATCH ? call->shared : call->buffers[slot];
}

static void run_move(
        const copy_step *copies, uint32_t i, const gb_step_call *call, int64_t begin, int64_t end)
{
    const gb_copy_move *move = &copies->problem.moves[i];
    gb_copy_items(&copies->plans[i], copy_address(call, move->src_slot) + move->src_offset,
            copy_address(call, move->dst_slot) + move->dst_offset, begin, end);
}

/* Slices of as many work items are copied side by side, so that the destination is written in
 * order. */
static void run_in_step(const copy_step *copies, const gb_step_call *call)
{
    int64_t begin, end;
    while (gb_take_items(call, copies->plans[0].items, &begin, &end))
        for (int64_t item = begin; item < end; item++)
            for (uint32_t i = 0; i < copies->problem.n_moves; i++)
                run_move(copies, i, call, item, item + 1);
}

static void copy_clear(const gb_copy_problem *problem, const gb_step_call *call)
{
    int64_t begin, end;
    gb_split((int64_t)problem->clear_bytes, call->thread, call->n_threads, &begin, &end);
    if (begin < end)
        memset(copy_address(call, problem->cleared) + begin, 0, (size_t)(end - begin));
}

static void copy_run(const gb_step_call *call)
{
    const copy_step *copies = call->params;
    int64_t begin, end;
    if (copies->in_step) {
        run_in_step(copies, call);
        return;
    }
    if (call->phase == 0)
        copy_clear(&copies->problem, call);
    for (uint32_t i = 0; i < copies->problem.n_moves; i++) {
        gb_split(copies->plans[i].items, call->thread, call->n_threads, &begin, &end);
        if (copies->problem.moves[i].phase == call->phase)
            run_move(copies, i, call, begin, end);
    }
}

gb_status gb_copy_step_plan(gb_step *step, const gb_copy_problem *problem)
{
    uint32_t n = problem->n_moves;
    copy_step *copies = gb_step_alloc(step, 1, sizeof *copies + n * sizeof *copies->plans);
    if (!copies)
        return GB_OUT_OF_MEMORY;
    copies->problem = *problem;
    copies->in_step = problem->side_by_side;
    step->work = (double)problem->clear_bytes;
    for (uint32_t i = 0; i < n; i++)
        step->work += gb_copy_box_bytes(&problem->moves[i].box);
    for (uint32_t i = 0; i < n; i++) {
        gb_copy_plan_init(
                &copies->plans[i], &problem->moves[i].box, gb_streams(step->work / 2, false));
        copies->in_step = copies->in_step && copies->plans[i].items == copies->plans[0].items;
    }
    for (uint32_t i = 0; i < step->n_uses; i++)
        step->uses[i].elementwise = gb_copy_moves_nothing(problem);
    step->params = copies;
    step->run = copy_run;
    step->n_phases = problem->n_phases;
    step->shared_scratch = problem->scratch_bytes;
    return GB_SUCCESS;
}
