/* AvgPool and MaxPool, and their gradients, on cl/window.cl. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/pools.h"
#include "kernels/opencl/rows.h"

#include <stdio.h>
#include <string.h>

gb_cl_window_axis gb_cl_pool_axis(const gb_pool_axis *axis, const int64_t *strides)
{
    return (gb_cl_window_axis){.dim = axis->dim,
            .size = axis->in,
            .kernel = axis->kernel,
            .step = axis->stride,
            .dilation = axis->dilation,
            .pad = axis->pad_begin,
            .zeros = 1,
            .source = axis->dim < 0 ? 0 : strides[axis->dim]};
}

/* Results are elements of the image, taps the windows that reach them: from the last cell to the first. */
static gb_cl_window_axis gathering_axis(const gb_pool_axis *axis, const int64_t *strides)
{
    return (gb_cl_window_axis){.dim = axis->dim,
            .size = axis->out,
            .kernel = axis->kernel,
            .step = 1,
            .dilation = axis->dilation,
            .pad = (axis->kernel - 1) * axis->dilation - axis->pad_begin,
            .zeros = axis->stride,
            .source = axis->dim < 0 ? 0 : strides[axis->dim]};
}

int64_t gb_cl_pool_last(const gb_cl_windows *windows, const int64_t *strides)
{
    int64_t dims[GB_AXES], last = 0;
    memcpy(dims, windows->dims, sizeof dims);
    for (int a = 0; a < GB_CL_WINDOW_AXES; a++)
        if (windows->axes[a].dim >= 0)
            dims[windows->axes[a].dim] = windows->axes[a].size;
    for (int d = 0; d < windows->ndims; d++)
        last += (dims[d] - 1) * strides[d];
    return last;
}

/* GB_COUNTS: the cells of windows that a mean counts. Padding that no window reaches is left out, as windows
 * whose cells are 32-bit integers are counted in such, too. */
static void print_counts(gb_cl_writer *w, const gb_pool_axis *axes, bool exclude_pad)
{
    gb_cl_print(&w->text, "#define GB_COUNTS %u\n", w->n_numbers);
    for (int a = 0; a < GB_POOL_AXES; a++) {
        int64_t padded = axes[a].in + (exclude_pad ? 0 : axes[a].pad_end);
        int64_t reached = (axes[a].out - 1) * axes[a].stride - axes[a].pad_begin + axes[a].kernel;
        gb_cl_number(w, axes[a].stride);
        gb_cl_number(w, axes[a].pad_begin);
        gb_cl_number(w, axes[a].kernel);
        gb_cl_number(w, exclude_pad ? 0 : -axes[a].pad_begin);
        gb_cl_number(w, gb_min_i64(padded, reached));
    }
}

void gb_cl_print_pool_take(gb_cl_writer *w, float start, const char *take)
{
    gb_cl_print(&w->text,
            "#define GB_CHANNELS 1\n#define GB_CHANNEL_SOURCE 0\n#define GB_CHANNEL_OTHER 0\n"
            "#define GB_START as_float((int)p[%u])\n#define GB_TAKE %s\n",
            gb_cl_float(w, start), take);
}

/* Forward -------------------------------------------------------------------------------------- */

static void print_window_mean(gb_cl_writer *w, const gb_cl_windows *windows, const int64_t *strides)
{
    static const int64_t none[GB_AXES] = {0};
    gb_cl_print(&w->text, "gb_div(");
    gb_cl_print_window(w, windows, strides, none, "0");
    gb_cl_print(&w->text, ", gb_divisor(");
    for (int a = 0; a < GB_CL_WINDOW_AXES; a++) {
        if (windows->axes[a].dim < 0)
            gb_cl_print(&w->text, "%s0", a ? ", " : "");
        else
            gb_cl_print(&w->text, "%si%d", a ? ", " : "", windows->axes[a].dim);
    }
    gb_cl_print(&w->text, "))");
}

static gb_status print_pool(gb_cl_writer *w, const gb_pool_problem *problem)
{
    static const int64_t none[GB_AXES] = {0};
    gb_cl_text *t = &w->text;
    gb_pointwise_program pointwise;
    gb_operand src = problem->src;
    gb_cl_windows windows = {
            .ndims = problem->pointwise.ndims, .channel_dim = problem->channel_dim};
    memcpy(windows.dims, problem->pointwise.dims, sizeof windows.dims);
    for (int a = 0; a < GB_POOL_AXES; a++)
        windows.axes[a] = gb_cl_pool_axis(&problem->axes[a], src.strides);
    int64_t channel_stride = src.strides[problem->channel_dim];
    gb_cl_choose_window_lanes(w, &windows, channel_stride);
    gb_cl_order_dims(&windows, src.strides);
    GB_TRY(gb_cl_order_pointwise(w, &windows, &problem->pointwise, &pointwise));
    gb_cl_print_arguments(w);
    GB_TRY(gb_cl_print_pointwise(w, &pointwise, "gb_post", windows.lane_dim));
    gb_cl_print_window_source(w, &windows, gb_cl_type_name(src.type), src.slot, channel_stride,
            gb_cl_pool_last(&windows, src.strides), problem->zero_point);
    gb_cl_print_pool_take(w, problem->start, problem->mean ? "sum += x;" : "sum = gb_max(x, sum);");
    if (problem->mean)
        print_counts(w, problem->axes, problem->exclude_pad);
    gb_cl_print_windows(w, &windows);
    gb_cl_print_window_element(w, &windows);
    gb_cl_print(t, "    gb_post(GB_PASSED");
    gb_cl_print_indices(w, windows.ndims, false);
    gb_cl_print(t, windows.lane_dim < 0 ? ", " : ", lanes, ");
    if (problem->mean)
        print_window_mean(w, &windows, src.strides);
    else
        gb_cl_print_window(w, &windows, src.strides, none, "0");
    gb_cl_print(t, ");\n}\n");
    gb_cl_print_window_space(w, &windows);
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

gb_cl_windows gb_cl_pool_space(const gb_pool_backward_problem *problem, bool windows)
{
    gb_cl_windows space = {.ndims = GB_CL_POOL_DIMS, .channel_dim = GB_POOL_CHANNEL_DIM};
    space.dims[GB_POOL_BATCH_DIM] = problem->batch;
    space.dims[GB_POOL_CHANNEL_DIM] = problem->channels;
    for (int a = 0; a < GB_POOL_AXES; a++)
        space.dims[GB_POOL_SPATIAL_DIM + a] = windows ? problem->axes[a].out : problem->axes[a].in;
    return space;
}

/* How the winners of windows lie: so that what runs in lanes does so where they are read. */
static void winner_strides(
        const gb_pool_backward_problem *problem, bool channels_last, int64_t *strides)
{
    gb_cl_windows windows = gb_cl_pool_space(problem, true);
    windows.moved = channels_last ? GB_POOL_CHANNEL_DIM : GB_CL_POOL_DIMS - 1;
    gb_cl_order_dims(&windows, windows.dims);
    int64_t ordered[GB_AXES];
    gb_dense_strides(GB_CL_POOL_DIMS, windows.dims, ordered);
    for (int d = 0, from = 0; d < GB_CL_POOL_DIMS; d++)
        strides[d] = d == windows.moved ? ordered[GB_CL_POOL_DIMS - 1] : ordered[from++];
}

/* Of the gradient's kernel, which says how winners lie. */
static gb_cl_windows plan_gradient(gb_cl_writer *w, const gb_pool_backward_problem *problem)
{
    gb_cl_windows windows = gb_cl_pool_space(problem, false);
    for (int a = 0; a < GB_POOL_AXES; a++)
        windows.axes[a] = gathering_axis(&problem->axes[a], problem->diff_dst.strides);
    gb_cl_choose_window_lanes(w, &windows, problem->diff_dst.strides[GB_POOL_CHANNEL_DIM]);
    return windows;
}

/* The place in the image of each window's maximum, as an int. */
static gb_status print_winners(gb_cl_writer *w, const gb_pool_backward_problem *problem,
        const int64_t *strides_of_winners, uint32_t slot, uint32_t winners)
{
    static const int64_t none[GB_AXES] = {0};
    gb_cl_text *t = &w->text;
    int64_t strides[GB_AXES], src[GB_AXES], place = 1;
    gb_cl_windows windows = gb_cl_pool_space(problem, true);
    memcpy(strides, strides_of_winners, sizeof strides);
    memcpy(src, problem->src.strides, sizeof src);
    for (int a = GB_POOL_AXES; a-- > 0; place *= problem->axes[a].in) {
        windows.axes[a] = gb_cl_pool_axis(&problem->axes[a], src);
        windows.axes[a].by_cell = place;
    }
    int64_t channel_stride = src[GB_POOL_CHANNEL_DIM];
    gb_cl_choose_window_lanes(w, &windows, channel_stride);
    gb_cl_order_dims(&windows, src);
    gb_cl_order_dims(&windows, strides);
    gb_cl_print_arguments(w);
    gb_cl_print_window_source(w, &windows, gb_cl_type_name(problem->src.type), slot, channel_stride,
            gb_cl_pool_last(&windows, src), 0);
    gb_cl_print_pool_take(w, problem->lowest, GB_CL_TAKE_PLACE);
    gb_cl_print_windows(w, &windows);
    gb_cl_print_window_element(w, &windows);
    gb_cl_print(t, "    ");
    gb_cl_print_write(w, "lane", winners, GB_CL_POOL_DIMS, strides, windows.lane_dim);
    gb_cl_print_window(w, &windows, src, none, "0");
    gb_cl_print(t, ");\n}\n");
    gb_cl_print_window_space(w, &windows);
    return GB_SUCCESS;
}

/* The place of an element in its image. */
static void name_own_place(gb_cl_writer *w, const gb_pool_backward_problem *problem,
        const gb_cl_windows *windows, char *name, size_t bytes)
{
    int64_t place = 1;
    int n = snprintf(name, bytes, "(int)(0");
    for (int a = GB_POOL_AXES; a-- > problem->first_axis; place *= problem->axes[a].in)
        n += snprintf(name + n, bytes - (size_t)n, " + i%d * p[%u]", windows->axes[a].dim,
                gb_cl_number(w, place));
    snprintf(name + n, bytes - (size_t)n, ")%s",
            windows->lane_dim >= 0 && windows->along_line ? " + GB_LANE_NUMBERS" : "");
}

static gb_status print_gradient(gb_cl_writer *w, const gb_pool_backward_problem *problem,
        const int64_t *strides_of_winners, uint32_t winners)
{
    gb_cl_text *t = &w->text;
    int64_t diff_dst[GB_AXES], diff_src[GB_AXES], other[GB_AXES] = {0};
    char own[160] = "0";
    gb_cl_windows windows = plan_gradient(w, problem);
    memcpy(diff_dst, problem->diff_dst.strides, sizeof diff_dst);
    memcpy(diff_src, problem->diff_src.strides, sizeof diff_src);
    int64_t channel_stride = diff_dst[GB_POOL_CHANNEL_DIM];
    gb_cl_order_dims(&windows, diff_dst);
    gb_cl_order_dims(&windows, diff_src);
    gb_cl_print_arguments(w);
    gb_cl_print_window_source(w, &windows, gb_cl_type_name(problem->diff_dst.type),
            problem->diff_dst.slot, channel_stride, gb_cl_pool_last(&windows, diff_dst), 0);
    if (problem->mean) {
        print_counts(w, problem->axes, problem->exclude_pad);
        gb_cl_print_pool_take(w, 0, "sum += x * share;\n#define GB_SHARES");
    } else {
        memcpy(other, strides_of_winners, sizeof other);
        for (int a = 0; a < GB_POOL_AXES; a++)
            windows.axes[a].by_cell = other[GB_POOL_SPATIAL_DIM + a];
        gb_cl_order_dims(&windows, other);
        gb_cl_print_window_places(w, &windows, winners, gb_cl_pool_last(&windows, other));
        gb_cl_print_pool_take(w, 0, "sum += found == own ? x : (GB_FLOATS)(0.0f);");
        name_own_place(w, problem, &windows, own, sizeof own);
    }
    gb_cl_print_windows(w, &windows);
    gb_cl_print_window_element(w, &windows);
    gb_cl_print(t, "    ");
    gb_cl_print_write(w, gb_cl_type_name(problem->diff_src.type), problem->diff_src.slot,
            GB_CL_POOL_DIMS, diff_src, windows.lane_dim);
    gb_cl_print_window(w, &windows, diff_dst, other, own);
    gb_cl_print(t, ");\n}\n");
    gb_cl_print_window_space(w, &windows);
    return GB_SUCCESS;
}

/* A step of its own, which reads what the described one does. */
static gb_status add_winners(gb_program *program, const gb_op *op, gb_step *described,
        const gb_pool_backward_problem *problem, const int64_t *strides, uint32_t *buffer)
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
    return gb_cl_writer_add(&w, print_winners(&w, problem, strides, src, winners));
}

static gb_status lower_pool_backward(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_pool_backward_problem problem = {0};
    gb_cl_writer w;
    int64_t strides[GB_AXES] = {0};
    uint32_t buffer, winners = 0;
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    GB_TRY(gb_cl_begin(program, "pool_backward", &w));
    GB_TRY(gb_pool_backward_describe(program, group, w.step, &problem));
    GB_TRY(gb_step_describe(program, w.step, gb_pool_backward_problem_print, &problem));
    w.step->work = 8 * (double)gb_tensor_count(gb_op_output(op, 0));
    if (gb_cl_fits_max_gradient(program, &problem))
        return gb_cl_add_max_gradient(&w, &problem);
    if (!problem.mean) {
        gb_cl_writer planned = {.program = program};
        gb_cl_windows windows = plan_gradient(&planned, &problem);
        winner_strides(&problem, windows.lane_dim >= 0 && !windows.along_line, strides);
        GB_TRY(add_winners(program, op, w.step, &problem, strides, &buffer));
        GB_TRY(gb_step_use_buffer(w.step, buffer, false, &winners));
    }
    return gb_cl_writer_add(&w, print_gradient(&w, &problem, strides, winners));
}

static bool pool_supports(const gb_op *op, const char **reason)
{
    *reason = "rank above 5";
    return gb_op_input(op, 0)->ndims <= GB_POOL_AXES + 2 && gb_pool_has_types(op, reason);
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
