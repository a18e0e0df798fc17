/* Lowers SoftMaxBackward and LogSoftmaxBackward: blocks of rows or columns that stay in the caches have kernels of their
 * own; others, and those of mixed types, go through the two-pass kernels. */
#include "base/machine.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"
#include "kernels/rowwise/kept_blocks.h"
#include "kernels/rowwise/two_pass.h"

#include <string.h>

typedef struct softmax_backward {
    gb_two_pass_problem problem;
    int64_t block;        /* of rows or columns that are computed at once; 0: none are */
    gb_two_pass two_pass; /* of others */
} softmax_backward;

enum {
    TASKS = 32,            /* that many suffice for any number of threads */
    WORTH_TASKS = 1 << 14, /* elements that are worth several */
    LEAST_COLUMNS = 64     /* of a block */
};

static void softmax_backward_finish(const gb_two_pass_item *item, bool store)
{
    (void)store;
    memcpy(item->params[0], item->sum[0], (size_t)item->count * sizeof(float));
}

static void softmax_backward_run(const gb_step_call *call)
{
    const softmax_backward *plan = call->params;
    gb_two_pass_run(&plan->two_pass, call);
}

static void run_at_once(const gb_step_call *call)
{
    const softmax_backward *plan = call->params;
    const gb_two_pass_problem *problem = &plan->problem;
    const gb_reduced_space *space = &problem->space;
    const bool columns = gb_reduces_columns(space);
    const int dim = columns ? gb_last_reduced(space) : gb_last_kept(space);
    const gb_operand *of[3] = {&problem->in[0], &problem->in[1], &problem->out};
    const int64_t size = (int64_t)gb_data_type_bytes(problem->out.type, 1);
    int64_t begin, end;
    while (gb_take_items(call, gb_kept_blocks(space, plan->block), &begin, &end))
        for (int64_t item = begin; item < end; item++) {
            int64_t position[GB_AXES] = {0};
            const int64_t count = gb_kept_block(space, plan->block, item, position);
            char *first[3];
            for (int i = 0; i < 3; i++)
                first[i] = (char *)call->buffers[of[i]->slot] +
                           gb_offset(space->ndims, of[i]->strides, position) * size;
            const gb_softmax_gradient_block block = {.kind = problem->kind,
                    .type = problem->out.type,
                    .count = count,
                    .n = space->n,
                    .in = {first[0], first[1]},
                    .out = first[2],
                    .in_step = {gb_operand_stride(of[0], dim), gb_operand_stride(of[1], dim)},
                    .out_step = gb_operand_stride(of[2], dim)};
            if (columns)
                gb_kernels_get()->softmax_gradient_columns(&block);
            else
                gb_kernels_get()->softmax_gradient_rows(&block);
        }
}

/* Rows or columns of a block; 0 where they are not computed at once: of several types, too long for the caches, too few
 * to keep threads busy, or with elements apart. */
static int64_t choose_block(const gb_two_pass_problem *problem)
{
    const gb_reduced_space *space = &problem->space;
    const gb_operand *of[3] = {&problem->in[0], &problem->in[1], &problem->out};
    const int last = space->ndims - 1, kept = gb_last_kept(space);
    if (space->n == 0 || kept < 0 || space->n_reduced > 1)
        return 0;
    for (int i = 0; i < 3; i++)
        if (of[i]->type != problem->out.type || of[i]->strides[last] != 1)
            return 0;
    const int64_t bytes = 2 * (int64_t)gb_data_type_bytes(problem->out.type, 1);
    const int64_t near = (int64_t)gb_machine_get()->l2_bytes / 2 / bytes / space->n;
    const int64_t all = gb_product(space->n_kept, space->kept, space->dims);
    const bool columns = gb_reduces_columns(space);
    int64_t block = gb_min_i64(near, gb_div_up(all, TASKS));
    if (columns)
        block = gb_min_i64(gb_div_up(block, LEAST_COLUMNS) * LEAST_COLUMNS, GB_TILE_ELEMENTS);
    block = gb_min_i64(block, space->dims[kept]);
    const bool busy = all * space->n < WORTH_TASKS ||
                      gb_kept_blocks(space, gb_max_i64(block, 1)) >= TASKS / 2;
    return busy && near >= (columns ? LEAST_COLUMNS : 1) ? block : 0;
}

static gb_status softmax_backward_plan(gb_step *step, const gb_two_pass_problem *problem)
{
    softmax_backward *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    plan->problem = *problem;
    step->params = plan;
    plan->block = choose_block(problem);
    if (plan->block > 0) {
        step->run = run_at_once;
        return GB_SUCCESS;
    }
    plan->two_pass = gb_two_pass_make(step, &plan->problem);
    plan->two_pass.finish = softmax_backward_finish;
    if (problem->space.n == 0) /* however many lines of no elements */
        plan->two_pass.items = 0;
    step->run = softmax_backward_run;
    return GB_SUCCESS;
}

static gb_status softmax_backward_lower(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_two_pass_problem problem = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "softmax_backward", &step));
    GB_TRY(gb_softmax_backward_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_two_pass_problem_print, &problem));
    GB_TRY(softmax_backward_plan(step, &problem));
    step->work = (problem.kind == GB_TWO_PASS_LOG_SOFTMAX ? 16 : 8) *
                 (double)gb_tensor_count(gb_op_input(op, 0));
    return gb_program_add(program, step);
}

const gb_lowering gb_lowering_softmax_backward = {.name = "softmax_backward",
        .supports = gb_all_types_float,
        .lower = softmax_backward_lower};
