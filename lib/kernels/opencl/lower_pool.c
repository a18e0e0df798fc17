/* AvgPool and MaxPool, a window for each work-item, and their gradients, an element for each. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/rows.h"
#include "kernels/plan/pool_problem.h"

#include <string.h>

/* The numbers of the axes; `strides` of what the cells are read from, by dim. Index of the first. */
static uint32_t write_axes(gb_cl_writer *w, const gb_pool_axis *axes, const int64_t *strides)
{
    uint32_t first = w->n_numbers;
    for (int a = 0; a < GB_POOL_AXES; a++) {
        const gb_pool_axis *axis = &axes[a];
        const int64_t numbers[] = {axis->in, axis->out, axis->kernel, axis->stride, axis->dilation,
                axis->pad_begin, axis->pad_end, axis->dim < 0 ? 0 : strides[axis->dim]};
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            gb_cl_number(w, numbers[i]);
    }
    return first;
}

/* ", i2, i3": the positions along the axes, 0 for those that are missing. */
static void print_positions(gb_cl_text *t, const gb_pool_axis *axes)
{
    for (int a = 0; a < GB_POOL_AXES; a++) {
        if (axes[a].dim < 0)
            gb_cl_print(t, ", 0");
        else
            gb_cl_print(t, ", i%d", axes[a].dim);
    }
}

/* Where the windows at a position begin along all other dims. */
static void print_outer(
        gb_cl_writer *w, int ndims, const gb_pool_axis *axes, const int64_t *strides)
{
    int64_t outer[GB_AXES];
    memcpy(outer, strides, sizeof outer);
    for (int a = 0; a < GB_POOL_AXES; a++)
        if (axes[a].dim >= 0)
            outer[axes[a].dim] = 0;
    gb_cl_print_offset(w, ndims, outer);
}

static void print_kind(gb_cl_writer *w, bool mean, bool exclude_pad, float start)
{
    gb_cl_print(&w->text, "#define GB_MEAN %d\n#define GB_EXCLUDE_PAD %d\n", mean, exclude_pad);
    gb_cl_print(&w->text, "#define GB_START as_float((int)p[%u])\n", gb_cl_float(w, start));
}

/* Forward -------------------------------------------------------------------------------------- */

static gb_status print_pool(gb_cl_writer *w, const gb_pool_problem *problem)
{
    const gb_pointwise_program *pointwise = &problem->pointwise;
    gb_cl_text *t = &w->text;
    gb_cl_print_arguments(w);
    GB_TRY(gb_cl_print_pointwise(w, pointwise, "gb_post", GB_CL_NO_LANES));
    uint32_t axes = write_axes(w, problem->axes, problem->src.strides);
    print_kind(w, problem->mean, problem->exclude_pad, problem->start);
    gb_cl_print(t, "#define GB_LOAD(i) (gb_load_%s(m%u, i)", gb_cl_type_name(problem->src.type),
            problem->src.slot);
    if (problem->zero_point != 0)
        gb_cl_print(t, " - as_float((int)p[%u])", gb_cl_float(w, problem->zero_point));
    gb_cl_print(t, ")\n%sstatic inline void gb_element(GB_PARAMETERS", gb_cl_pool);
    gb_cl_print_indices(w, pointwise->ndims, true);
    gb_cl_print(t, ")\n{\n    gb_post(GB_PASSED");
    gb_cl_print_indices(w, pointwise->ndims, false);
    gb_cl_print(t, ", gb_window(GB_PASSED, p + %u, ", axes);
    print_outer(w, pointwise->ndims, problem->axes, problem->src.strides);
    print_positions(t, problem->axes);
    gb_cl_print(t, "));\n}\n");
    gb_cl_print_space(w, pointwise->ndims, pointwise->dims, "gb_element", "");
    return GB_SUCCESS;
}

static gb_status lower_pool(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_pool_problem problem = {0};
    gb_cl_writer w;
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    GB_TRY(gb_cl_begin(program, "pool", &w));
    GB_TRY(gb_pool_describe(program, group, w.step, &problem));
    GB_TRY(gb_step_describe(program, w.step, gb_pool_problem_print, &problem));
    w.step->work = (double)gb_tensor_count(gb_op_output(op, 0));
    for (int a = 0; a < GB_POOL_AXES; a++)
        w.step->work *= (double)problem.axes[a].kernel;
    if (gb_pool_is_global(&problem)) {
        gb_reduction_problem reduction;
        GB_TRY(gb_pool_as_reduction(&problem, w.step, &reduction));
        return gb_cl_add_reduction(program, w.step, &reduction);
    }
    return gb_cl_writer_add(&w, print_pool(&w, &problem));
}

/* Backward ------------------------------------------------------------------------------------- */

enum { SPACE_DIMS = GB_POOL_SPATIAL_DIM + GB_POOL_AXES };

/* dims of the image, or of the windows */
static void set_dims(const gb_pool_backward_problem *problem, bool windows, int64_t *dims)
{
    dims[GB_POOL_BATCH_DIM] = problem->batch;
    dims[GB_POOL_CHANNEL_DIM] = problem->channels;
    for (int a = 0; a < GB_POOL_AXES; a++)
        dims[GB_POOL_SPATIAL_DIM + a] = windows ? problem->axes[a].out : problem->axes[a].in;
}

/* The place in the image of each window's maximum, as an int. */
static gb_status print_winners(
        gb_cl_writer *w, const gb_pool_backward_problem *problem, uint32_t src, uint32_t winners)
{
    gb_cl_text *t = &w->text;
    int64_t dims[GB_AXES], strides[GB_AXES];
    set_dims(problem, true, dims);
    gb_dense_strides(SPACE_DIMS, dims, strides);
    gb_cl_print_arguments(w);
    uint32_t axes = write_axes(w, problem->axes, problem->src.strides);
    print_kind(w, false, false, problem->lowest);
    gb_cl_print(t, "#define GB_WINNER\n#define GB_LOAD(i) gb_load_%s(m%u, i)\n%s",
            gb_cl_type_name(problem->src.type), src, gb_cl_pool);
    gb_cl_print(t, "static inline void gb_element(GB_PARAMETERS");
    gb_cl_print_indices(w, SPACE_DIMS, true);
    gb_cl_print(t, ")\n{\n    ((__global int *)m%u)[", winners);
    gb_cl_print_offset(w, SPACE_DIMS, strides);
    gb_cl_print(t, "] = gb_window(GB_PASSED, p + %u, ", axes);
    print_outer(w, SPACE_DIMS, problem->axes, problem->src.strides);
    print_positions(t, problem->axes);
    gb_cl_print(t, ");\n}\n");
    gb_cl_print_space(w, SPACE_DIMS, dims, "gb_element", "");
    return GB_SUCCESS;
}

/* An element of what lies along the windows o0 .. o2, of batch i0 and channel i1. */
static void print_window_offset(gb_cl_writer *w, const int64_t *strides)
{
    gb_cl_print_offset(w, GB_POOL_SPATIAL_DIM, strides);
    for (int a = 0; a < GB_POOL_AXES; a++)
        gb_cl_print(
                &w->text, " + o%d * p[%u]", a, gb_cl_number(w, strides[GB_POOL_SPATIAL_DIM + a]));
}

static gb_status print_gradient(
        gb_cl_writer *w, const gb_pool_backward_problem *problem, uint32_t winners)
{
    gb_cl_text *t = &w->text;
    int64_t dims[GB_AXES], strides[GB_AXES];
    gb_cl_print_arguments(w);
    uint32_t axes = write_axes(w, problem->axes, problem->diff_src.strides);
    print_kind(w, problem->mean, problem->exclude_pad, 0);
    gb_cl_print(t, "#define GB_GRADIENT gb_load_%s(m%u, ", gb_cl_type_name(problem->diff_dst.type),
            problem->diff_dst.slot);
    print_window_offset(w, problem->diff_dst.strides);
    gb_cl_print(t, ")\n#define GB_PLACE ");
    set_dims(problem, true, dims);
    gb_dense_strides(SPACE_DIMS, dims, strides);
    if (problem->mean) {
        gb_cl_print(t, "-1");
    } else {
        gb_cl_print(t, "((__global const int *)m%u)[", winners);
        print_window_offset(w, strides);
        gb_cl_print(t, "]");
    }
    gb_cl_print(t, "\n%sstatic inline void gb_element(GB_PARAMETERS", gb_cl_pool);
    gb_cl_print_indices(w, SPACE_DIMS, true);
    gb_cl_print(t, ")\n{\n    gb_store_%s(m%u, ", gb_cl_type_name(problem->diff_src.type),
            problem->diff_src.slot);
    gb_cl_print_offset(w, SPACE_DIMS, problem->diff_src.strides);
    gb_cl_print(t, ", gb_gather(GB_PASSED, p + %u, i0, i1, i2, i3, i4));\n}\n", axes);
    set_dims(problem, false, dims);
    gb_cl_print_space(w, SPACE_DIMS, dims, "gb_element", "");
    return GB_SUCCESS;
}

/* A step of its own, which reads what the described one does. */
static gb_status add_winners(gb_program *program, const gb_op *op, gb_step *described,
        const gb_pool_backward_problem *problem, uint32_t *buffer)
{
    gb_cl_writer w;
    uint32_t src, winners;
    int64_t image = 1;
    size_t count = (size_t)gb_tensor_count(gb_op_input(op, 1));
    for (int a = 0; a < GB_POOL_AXES; a++) {
        if (problem->axes[a].in > INT32_MAX / gb_max_i64(1, image))
            return gb_fail(GB_UNIMPLEMENTED, "%s: image too large", gb_op_label(op));
        image *= problem->axes[a].in;
    }
    GB_TRY(gb_program_temporary(program, count * sizeof(int32_t), buffer));
    GB_TRY(gb_cl_begin(program, described->kernel, &w));
    GB_TRY(gb_step_use_buffer(w.step, described->uses[problem->src.slot].buffer, false, &src));
    GB_TRY(gb_step_use_buffer(w.step, *buffer, true, &winners));
    w.step->work = described->work / 2;
    return gb_cl_writer_add(&w, print_winners(&w, problem, src, winners));
}

static gb_status lower_pool_backward(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_pool_backward_problem problem = {0};
    gb_cl_writer w;
    uint32_t buffer, winners = 0;
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    GB_TRY(gb_cl_begin(program, "pool_backward", &w));
    GB_TRY(gb_pool_backward_describe(program, group, w.step, &problem));
    GB_TRY(gb_step_describe(program, w.step, gb_pool_backward_problem_print, &problem));
    w.step->work = 8 * (double)gb_tensor_count(gb_op_output(op, 0));
    if (!problem.mean) {
        GB_TRY(add_winners(program, op, w.step, &problem, &buffer));
        GB_TRY(gb_step_use_buffer(w.step, buffer, false, &winners));
    }
    return gb_cl_writer_add(&w, print_gradient(&w, &problem, winners));
}

static bool pool_supports(const gb_op *op, const char **reason)
{
    *reason = "rank above 5";
    return gb_op_input(op, 0)->ndims <= GB_POOL_AXES + 2 && gb_all_types_float(op, reason);
}

static bool pool_backward_supports(const gb_op *op, const char **reason)
{
    const gb_logical_tensor *image = gb_op_output(op, 0);
    *reason = "rank above 5";
    if (image->ndims > GB_POOL_AXES + 2)
        return false;
    *reason = "data type"; /* the gradient and the image have the same; a shape may be a tensor */
    return gb_dtype_is_f(image->data_type);
}

const gb_cl_lowering gb_cl_lowering_pool = {.supports = pool_supports,
        .takes_epilogue = true,
        .fuses_producer = gb_pool_takes_prologue,
        .lower = lower_pool};
const gb_cl_lowering gb_cl_lowering_pool_backward = {
        .supports = pool_backward_supports, .lower = lower_pool_backward};
