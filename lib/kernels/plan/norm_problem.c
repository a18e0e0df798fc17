/* Describes LayerNorm, RMSNorm and GroupNorm. */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/plan/per_axis.h"
#include "kernels/plan/row_problem.h"

#include <inttypes.h>
#include <string.h>

enum { BATCH = 0 }; /* the dim of samples */

static gb_status use_stats(gb_program *program, const gb_op *op, uint32_t output, gb_step *step,
        gb_norm_statistic *stats)
{
    const gb_logical_tensor *tensor = gb_op_output(op, output);
    stats->operand.type = tensor->data_type;
    stats->tensor = *tensor;
    return gb_program_use(program, step, op->outputs[output], true, &stats->operand.slot);
}

static gb_status use_affine(gb_program *program, const gb_op *op, uint32_t input, int64_t count,
        gb_step *step, gb_norm_affine *affine)
{
    const gb_logical_tensor *tensor = gb_op_input(op, input);
    if (gb_tensor_count(tensor) != count)
        return gb_fail(GB_INVALID_SHAPE, "%s: input %u is %s, expected %lld elements",
                gb_op_label(op), input, gb_tensor_label(tensor), (long long)count);
    affine->present = true;
    affine->tensor = *tensor;
    return gb_program_use(program, step, op->inputs[input], false, &affine->slot);
}

static gb_status use_affines(
        gb_program *program, const gb_op *op, gb_step *step, gb_norm_problem *problem)
{
    int64_t count = problem->affine_count;
    if (op->n_inputs < 2 || !gb_op_attr_bool(op, GB_ATTR_USE_AFFINE, true))
        return GB_SUCCESS;
    GB_TRY(use_affine(program, op, 1, count, step, &problem->gamma));
    if (op->n_inputs < 3)
        return GB_SUCCESS;
    return use_affine(program, op, 2, count, step, &problem->beta);
}

/* Trailing axes --------------------------------------------------------------------------------- */

/* Statistics over the axes of src before `end`; they may be given under other dims. */
static gb_status use_layer_stats(gb_program *program, const gb_op *op, uint32_t output, int end,
        gb_step *step, gb_norm_statistic *stats)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    int64_t *strides = stats->operand.strides;
    GB_TRY(use_stats(program, op, output, step, stats));
    stats->numbered = !gb_per_axis_strides(src, 0, end, &stats->tensor, strides);
    if (stats->numbered)
        gb_dense_strides(end, src->dims, strides);
    return GB_SUCCESS;
}

/* Trailing axes are reduced; gamma and beta run over them, the statistics over the others. */
static gb_status shape_layer(gb_program *program, const gb_op *op, gb_step *step, gb_space *space,
        gb_norm_problem *problem)
{
    int begin = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_BEGIN_NORM_AXIS, -1), space->ndims);
    if (begin < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"begin_norm_axis\" out of range",
                gb_op_label(op));
    gb_dense_strides(space->ndims - begin, space->dims + begin, problem->affine_strides + begin);
    problem->affine_count = 1;
    for (int d = begin; d < space->ndims; d++) {
        space->roles[d] = GB_REDUCED;
        problem->affine_count *= space->dims[d];
    }
    problem->root_mean_square = op->kind == GB_OP_RMS_NORM;
    problem->has_stats = !problem->root_mean_square && op->n_outputs > 2;
    if (!problem->has_stats)
        return GB_SUCCESS;
    GB_TRY(use_layer_stats(program, op, 1, begin, step, &problem->mean));
    return use_layer_stats(program, op, 2, begin, step, &problem->variance);
}

/* Groups of channels ---------------------------------------------------------------------------- */

/* Can groups of a few channels, which lie next to each other, be columns of one block? */
static bool groups_as_columns(
        const gb_logical_tensor *src, int axis, int64_t inner, int64_t widest_group)
{
    if (inner == 1 || inner > widest_group || src->strides[axis] != 1)
        return false;
    for (int d = 0; d < src->ndims; d++)
        if (d != axis && src->dims[d] != 1 && src->strides[d] == 1)
            return false;
    return true;
}

static void split_strides(int64_t *strides, int ndims, int axis, int64_t inner)
{
    memmove(strides + axis + 1, strides + axis, (size_t)(ndims - axis) * sizeof *strides);
    strides[axis] *= inner;
}

/* The channels become groups x channels of a group in all views. */
static void split_channels(gb_space *space, int axis, int64_t groups, int64_t inner)
{
    int ndims = space->ndims++;
    for (int v = 0; v < space->n_views; v++)
        split_strides(space->strides[v], ndims, axis, inner);
    memmove(space->dims + axis + 1, space->dims + axis,
            (size_t)(ndims - axis) * sizeof *space->dims);
    space->dims[axis] = groups;
    space->dims[axis + 1] = inner;
}

static gb_status use_group_stats(
        gb_program *program, const gb_op *op, int axis, gb_step *step, gb_norm_problem *problem)
{
    problem->has_stats = op->n_outputs > 2;
    if (!problem->has_stats)
        return GB_SUCCESS;
    GB_TRY(use_stats(program, op, 1, step, &problem->mean));
    GB_TRY(use_stats(program, op, 2, step, &problem->variance));
    gb_norm_statistic *stats[] = {&problem->mean, &problem->variance};
    for (int i = 0; i < 2; i++) {
        int64_t sample = stats[i]->tensor.strides[0], group = stats[i]->tensor.strides[1];
        stats[i]->operand.strides[BATCH] = sample * problem->group;
        stats[i]->operand.strides[axis] = group;
    }
    return GB_SUCCESS;
}

/* All but the batch and the groups is reduced. */
static gb_status shape_group(gb_program *program, const gb_op *op, int64_t widest_group,
        gb_step *step, gb_space *space, gb_norm_problem *problem)
{
    int axis = gb_channel_axis(op, space->ndims);
    int64_t groups = gb_op_attr_s64(op, GB_ATTR_GROUPS, 1), channels = space->dims[axis];
    if (groups < 1 || channels % groups)
        return gb_fail(GB_INVALID_SHAPE, "%s: %lld channels in %lld groups", gb_op_label(op),
                (long long)channels, (long long)groups);
    int64_t inner = channels / groups;
    problem->affine_count = channels;
    if (groups_as_columns(gb_op_input(op, 0), axis, inner, widest_group)) {
        problem->group = inner;
        problem->affine_strides[axis] = 1;
    } else {
        split_channels(space, axis, groups, inner);
        problem->affine_strides[axis] = inner;
        problem->affine_strides[axis + 1] = 1;
    }
    for (int d = 0; d < space->ndims; d++)
        space->roles[d] = d == BATCH || d == axis ? GB_KEPT : GB_REDUCED;
    return use_group_stats(program, op, axis, step, problem);
}

gb_status gb_norm_describe(gb_program *program, const gb_group *group, int64_t widest_group,
        gb_step *step, gb_norm_problem *problem)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_row_problem *rows = &problem->rows;
    gb_space space = gb_space_of(gb_op_input(op, 0));
    problem->group = 1;
    problem->epsilon = gb_op_attr_f32(op, GB_ATTR_EPSILON, 1e-5F);
    GB_TRY(gb_operand_use_elementwise(program, step, op->inputs[0], false, &rows->src));
    GB_TRY(gb_pointwise_build(
            program, group, op->outputs[0], gb_op_output(op, 0), step, &rows->pointwise));
    gb_space_add(&space, rows->src.strides);
    gb_space_add_pointwise(&space, &rows->pointwise);
    if (op->kind == GB_OP_GROUP_NORM)
        GB_TRY(shape_group(program, op, widest_group, step, &space, problem));
    else
        GB_TRY(shape_layer(program, op, step, &space, problem));
    GB_TRY(use_affines(program, op, step, problem));
    if (problem->gamma.present)
        gb_space_add(&space, problem->affine_strides);
    if (problem->has_stats) {
        gb_space_add(&space, problem->mean.operand.strides);
        gb_space_add(&space, problem->variance.operand.strides);
    }
    gb_reduced_space_init(&space, &rows->space);
    gb_space_set_pointwise(&space, &rows->pointwise);
    rows->pointwise.over_source = true;
    rows->pointwise.source = rows->src.slot;
    return GB_SUCCESS;
}

/* Text ------------------------------------------------------------------------------------------ */

static void print_affine(const gb_printer *printer, const char *name, const gb_norm_affine *affine)
{
    const gb_logical_tensor *tensor = &affine->tensor;
    if (!affine->present)
        return;
    fprintf(printer->file, "  %s: %s ", name, gb_data_type_name(tensor->data_type));
    gb_print_slot(printer, affine->slot);
    fputs(" in order of ", printer->file);
    gb_print_sizes(printer, tensor->ndims, tensor->dims);
    fputs(" ", printer->file);
    gb_print_strides(printer, tensor->ndims, tensor->strides);
    fputs("\n", printer->file);
}

void gb_norm_problem_print(const gb_printer *printer, const void *norm_problem)
{
    const gb_norm_problem *problem = norm_problem;
    const gb_reduced_space *space = &problem->rows.space;
    fputs(problem->root_mean_square ? "root mean square norm over " : "norm over ", printer->file);
    gb_reduced_space_print(printer, space);
    if (problem->group > 1)
        fprintf(printer->file, " in groups of %" PRId64, problem->group);
    fprintf(printer->file, ", epsilon %g:\n", (double)problem->epsilon);
    gb_operand_print(printer, "src", &problem->rows.src, space->ndims);
    print_affine(printer, "gamma", &problem->gamma);
    print_affine(printer, "beta", &problem->beta);
    if (problem->has_stats) {
        gb_operand_print(printer, "mean", &problem->mean.operand, space->ndims);
        gb_operand_print(printer, "variance", &problem->variance.operand, space->ndims);
    }
    gb_pointwise_print(printer, &problem->rows.pointwise);
}
