/* Interpolate and InterpolateBackward, on cl/resample.cl. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/windows.h"
#include "kernels/plan/resample_problem.h"

#include <string.h>

/* The numbers of an axis. Index of the first. */
static uint32_t write_axis(
        gb_cl_writer *w, const gb_resample_problem *problem, const gb_resample_axis *axis)
{
    const gb_resample_taps *taps = &axis->taps;
    uint32_t first = gb_cl_number(w, taps->taps);
    gb_cl_number(w, taps->count);
    gb_cl_number(w, gb_operand_stride(&problem->src, axis->dim));
    for (int64_t t = 0; t < taps->taps; t++)
        for (int64_t i = 0; i < taps->count; i++) {
            int64_t at = t * taps->pitch + i;
            uint32_t bits;
            memcpy(&bits, &taps->weight[at], sizeof bits);
            if (taps->weight[at] == 0)
                gb_cl_number(w, 0);
            else
                gb_cl_number(w, ((int64_t)taps->index[at] << 32) | bits);
        }
    return first;
}

/* An axis that says nothing: one tap. */
static uint32_t write_one_tap(gb_cl_writer *w)
{
    const int64_t numbers[] = {1, 1, 0, 0x3F800000}; /* weight 1 */
    uint32_t first = w->n_numbers;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        gb_cl_number(w, numbers[i]);
    return first;
}

/* The space, and what decides about lanes. */
static gb_cl_windows space_of(const gb_resample_problem *problem)
{
    gb_cl_windows windows = {
            .ndims = problem->pointwise.ndims, .channel_dim = problem->channel_dim};
    memcpy(windows.dims, problem->pointwise.dims, sizeof windows.dims);
    for (int a = 0; a < GB_RESAMPLE_AXES; a++) {
        windows.axes[a] = gb_cl_no_window_axis();
        windows.axes[a].dim = problem->axes[a].dim;
        windows.axes[a].size = problem->axes[a].size;
        windows.axes[a].kernel = gb_max_i64(1, problem->axes[a].taps.taps);
        windows.axes[a].source = gb_operand_stride(&problem->src, problem->axes[a].dim);
    }
    return windows;
}

static void print_axes(
        gb_cl_writer *w, const gb_resample_problem *problem, const gb_cl_windows *windows)
{
    gb_cl_text *t = &w->text;
    bool along_line = windows->lane_dim >= 0 && windows->along_line;
    for (int a = 0; a < GB_RESAMPLE_AXES; a++) {
        bool is_line = along_line && a == GB_RESAMPLE_AXES - 1;
        if (is_line)
            gb_cl_print(t, "#define GB_ALONG_LINE\n#define GB_LINE (p + %u)\n",
                    write_axis(w, problem, &problem->axes[a]));
        gb_cl_print(t, "#define GB_AXIS_%d (p + %u)\n", a,
                is_line ? write_one_tap(w) : write_axis(w, problem, &problem->axes[a]));
    }
    if (windows->lane_dim >= 0)
        gb_cl_print(t, "#define GB_MOST_TAPS %d\n", gb_cl_window_list(windows));
}

static gb_status print_resample(gb_cl_writer *w, const gb_resample_problem *problem)
{
    gb_cl_text *t = &w->text;
    gb_pointwise_program pointwise;
    int64_t source[GB_AXES];
    gb_cl_windows windows = space_of(problem);
    int64_t channel_stride = problem->src.strides[problem->channel_dim];
    gb_cl_choose_window_lanes(w, &windows, channel_stride);
    memcpy(source, problem->src.strides, sizeof source);
    gb_cl_order_dims(&windows, source);
    GB_TRY(gb_cl_order_pointwise(w, &windows, &problem->pointwise, &pointwise));
    gb_cl_print_arguments(w);
    GB_TRY(gb_cl_print_pointwise(w, &pointwise, "gb_post", windows.lane_dim));
    gb_cl_print_window_source(w, &windows, gb_cl_type_name(problem->src.type), problem->src.slot,
            channel_stride, 0, 0);
    print_axes(w, problem, &windows);
    gb_cl_print(t, "%s", gb_cl_resample);
    gb_cl_print_window_element(w, &windows);
    gb_cl_print(t, "    gb_post(GB_PASSED");
    gb_cl_print_indices(w, windows.ndims, false);
    gb_cl_print(t, "%sgb_resample(GB_PASSED%s, ", windows.lane_dim < 0 ? ", " : ", lanes, ",
            windows.lane_dim < 0 ? "" : ", taps");
    gb_cl_print_window_outer(w, &windows, source);
    gb_cl_print_window_positions(w, &windows);
    gb_cl_print(t, "));\n}\n");
    gb_cl_print_window_space(w, &windows);
    return GB_SUCCESS;
}

static gb_status lower_resample(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_resample_problem problem = {0};
    gb_cl_writer w;
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    GB_TRY(gb_cl_begin(program, "interpolate", &w));
    GB_TRY(gb_resample_describe(program, group, w.step, &problem));
    GB_TRY(gb_step_describe(program, w.step, gb_resample_problem_print, &problem));
    w.step->work = 16 * (double)gb_tensor_count(gb_op_output(op, 0));
    return gb_cl_writer_add(&w, print_resample(&w, &problem));
}

/* Sizes may be a tensor; types are those of the schema. */
static bool resample_supports(const gb_op *op, const char **reason)
{
    *reason = "data type";
    uint32_t input = op->kind == GB_OP_INTERPOLATE_BACKWARD ? 1 : 0;
    return gb_cl_type_name(gb_op_input(op, input)->data_type) != NULL;
}

const gb_cl_lowering gb_cl_lowering_resample = {
        .supports = resample_supports, .takes_epilogue = true, .lower = lower_resample};
