/* Lowers Concat, StaticReshape, StaticTranspose and Reorder to strided copies. */
#include "base/dtype.h"
#include "base/status.h"
#include "graph/ir/format.h"
#include "kernels/cpu/lower.h"
#include "kernels/movement/copy_step.h"

bool gb_has_bytes(const gb_op *op, const char **reason)
{
    gb_data_type type = gb_op_output(op, 0)->data_type;
    const gb_dtype_info *info = gb_dtype_get(type);
    bool same = info && info->bits >= 8;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        same = same && gb_op_input(op, i)->data_type == type;
    if (!same)
        *reason = "data type";
    return same;
}

typedef gb_status describe_fn(
        gb_program *program, const gb_group *group, gb_step *step, gb_copy_problem *problem);

static gb_status lower_copies(
        gb_program *program, const gb_group *group, const char *kernel, describe_fn *describe)
{
    gb_copy_problem problem = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, kernel, &step));
    GB_TRY(describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_copy_problem_print, &problem));
    GB_TRY(gb_copy_step_plan(step, &problem));
    return gb_program_add(program, step);
}

static gb_status concat_lower(gb_program *program, const gb_group *group)
{
    return lower_copies(program, group, "concat", gb_concat_describe);
}

const gb_lowering gb_lowering_concat = {
        .name = "concat", .supports = gb_has_bytes, .lower = concat_lower};

static gb_status movement_lower(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    bool transpose = op->kind == GB_OP_STATIC_TRANSPOSE;
    return lower_copies(program, group, transpose ? "transpose" : "copy", gb_movement_describe);
}

const gb_lowering gb_lowering_movement = {
        .name = "copy", .supports = gb_has_bytes, .lower = movement_lower};

static gb_status reorder_lower(gb_program *program, const gb_group *group)
{
    return lower_copies(program, group, "copy", gb_reorder_describe);
}

const gb_lowering gb_lowering_reorder = {.name = "copy",
        .supports = gb_has_bytes,
        .writes_formats = gb_reorder_writes_formats,
        .lower = reorder_lower};
