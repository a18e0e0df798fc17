/* AvgPool and MaxPool, and their gradients, on cl/window.cl. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/rows.h"
#include "kernels/opencl/windows.h"
#include "kernels/plan/pool_problem.h"

#include <stdio.h>
#include <string.h>

/* Results are windows, taps their cells. */
static gb_cl_window_axis window_axis(const gb_pool_axis *axis, const int64_t *strides)
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

/* The number of the last element of an operand, which has `cells` along the axes. */
static int64_t last_of(const gb_cl_windows *windows, const int64_t *strides)
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

/* GB_COUNTS: the cells of windows that a mean counts. */
static void print_counts(gb_cl_writer *w, const gb_pool_axis *axes, bool exclude_pad)
{
    gb_cl_print(&w->text, "#define GB_COUNTS %u\n", w->n_numbers);
    for (int a = 0; a < GB_POOL_AXES; a++) {
        gb_cl_number(w, axes[a].stride);
        gb_cl_number(w, axes[a].pad_begin);
        gb_cl_number(w, axes[a].kernel);
        gb_cl_number(w, exclude_pad ? 0 : -axes[a].pad_begin);
        gb_cl_number(w, axes[a].in + (exclude_pad ? 0 : axes[a].pad_end));
    }
}

/* Pools have no channels to sum up. */
static void print_take(gb_cl_writer *w, float start, const char *take)
{
    gb_cl_print(&w->text,
            "#define GB_CHANNELS 1\n#define GB_CHANNEL_SOURCE 0\n#define GB_CHANNEL_OTHER 0\n"
            "#define GB_START as_float((int)p[%u])\n#define GB_TAKE %s\n",
            gb_cl_float(w, start), take);
}

/* The place of the first maximum; NaN is none. */
#define TAKE_PLACE                                                                                 \
    "place = x > sum ? cell_place : place; sum = x > sum ? x : sum;\n#define GB_PLACE"

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
        windows.axes[a] = window_axis(&problem->axes[a], src.strides);
    int64_t channel_stride = src.strides[problem->channel_dim];
    gb_cl_choose_window_lanes(w, &windows, channel_stride);
    gb_cl_order_dims(&windows, src.strides);
    GB_TRY(gb_cl_order_pointwise(w, &windows, &problem->pointwise, &pointwise));
    gb_cl_print_arguments(w);
    GB_TRY(gb_cl_print_pointwise(w, &pointwise, "gb_post", windows.lane_dim));
    gb_cl_print_window_source(w, &windows, gb_cl_type_name(src.type), src.slot, channel_stride,
            last_of(&windows, src.strides), problem->zero_point);
    print_take(w, problem->start, problem->mean ? "sum += x;" : "sum = gb_max(sum, x);");
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

enum { SPACE_DIMS = GB_POOL_SPATIAL_DIM + GB_POOL_AXES };

/* The space of the image, or of its windows. */
static gb_cl_windows space_of(const gb_pool_backward_problem *problem, bool windows)
{
    gb_cl_windows space = {.ndims = SPACE_DIMS, .channel_dim = GB_POOL_CHANNEL_DIM};
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
    gb_cl_windows windows = space_of(problem, true);
    windows.moved = channels_last ? GB_POOL_CHANNEL_DIM : SPACE_DIMS - 1;
    gb_cl_order_dims(&windows, windows.dims);
    int64_t ordered[GB_AXES];
    gb_dense_strides(SPACE_DIMS, windows.dims, ordered);
    for (int d = 0, from = 0; d < SPACE_DIMS; d++)
        strides[d] = d == windows.moved ? ordered[SPACE_DIMS - 1] : ordered[from++];
}

/* Of the gradient's kernel, which says how winners lie. */
static gb_cl_windows plan_gradient(gb_cl_writer *w, const gb_pool_backward_problem *problem)
{
    gb_cl_windows windows = space_of(problem, false);
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
    gb_cl_windows windows = space_of(problem, true);
    memcpy(strides, strides_of_winners, sizeof strides);
    memcpy(src, problem->src.strides, sizeof src);
    for (int a = GB_POOL_AXES; a-- > 0; place *= problem->axes[a].in) {
        windows.axes[a] = window_axis(&problem->axes[a], src);
        windows.axes[a].by_cell = place;
    }
    int64_t channel_stride = src[GB_POOL_CHANNEL_DIM];
    gb_cl_choose_window_lanes(w, &windows, channel_stride);
    gb_cl_order_dims(&windows, src);
    gb_cl_order_dims(&windows, strides);
    gb_cl_print_arguments(w);
    gb_cl_print_window_source(w, &windows, gb_cl_type_name(problem->src.type), slot, channel_stride,
            last_of(&windows, src), 0);
    print_take(w, problem->lowest, TAKE_PLACE);
    gb_cl_print_windows(w, &windows);
    gb_cl_print_window_element(w, &windows);
    gb_cl_print(t, "    ");
    gb_cl_print_write(w, "lane", winners, SPACE_DIMS, strides, windows.lane_dim);
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
            problem->diff_dst.slot, channel_stride, last_of(&windows, diff_dst), 0);
    if (problem->mean) {
        print_counts(w, problem->axes, problem->exclude_pad);
        print_take(w, 0, "sum += x * share;\n#define GB_SHARES");
    } else {
        memcpy(other, strides_of_winners, sizeof other);
        for (int a = 0; a < GB_POOL_AXES; a++)
            windows.axes[a].by_cell = other[GB_POOL_SPATIAL_DIM + a];
        gb_cl_order_dims(&windows, other);
        gb_cl_print_window_places(w, &windows, winners, last_of(&windows, other));
        print_take(w, 0, "sum += found == own ? x : (GB_FLOATS)(0.0f);");
        name_own_place(w, problem, &windows, own, sizeof own);
    }
    gb_cl_print_windows(w, &windows);
    gb_cl_print_window_element(w, &windows);
    gb_cl_print(t, "    ");
    gb_cl_print_write(w, gb_cl_type_name(problem->diff_src.type), problem->diff_src.slot,
            SPACE_DIMS, diff_src, windows.lane_dim);
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

/* The gradient of a maximum in one kernel, on a CPU: a work-item has the images of one channel, or of some
 * neighbouring ones in lanes. It walks the windows, clears what they reach first, and adds the gradient of
 * each where its maximum lies. */
typedef struct planes {
    gb_cl_windows windows;  /* over the windows' space */
    int64_t image[GB_AXES]; /* dims of the image, and */
    gb_operand sums; /* strides, in the order of that space; f32: the result itself, or a buffer */
    bool converts;   /* sums become the result in the end */
    int64_t channels, blocks; /* of a work-item; of all channels */
} planes;

/* Where images are as large as that, and few, kernels of more work-items win more than a launch costs. */
enum { MOST_CHANNELS = 64, LARGE_IMAGE = 1 << 16 };

static bool has_lanes(const planes *p)
{
    return p->windows.lane_dim >= 0;
}

static planes plan_planes(gb_cl_writer *w, const gb_pool_backward_problem *problem)
{
    planes p = {.windows = space_of(problem, true), .sums = problem->diff_src, .channels = 1};
    gb_cl_windows image = space_of(problem, false);
    int64_t wanted = 2 * (int64_t)gb_cl_shape_of(w->program).units;
    for (int a = 0; a < GB_POOL_AXES; a++)
        p.windows.axes[a] = window_axis(&problem->axes[a], problem->src.strides);
    gb_cl_choose_window_lanes(w, &p.windows, problem->src.strides[GB_POOL_CHANNEL_DIM]);
    if (has_lanes(&p) && !p.windows.along_line) {
        p.channels = MOST_CHANNELS;
        while (p.channels > w->lanes &&
                problem->batch * gb_div_up(problem->channels, p.channels) < wanted)
            p.channels /= 2;
    }
    p.blocks = gb_div_up(problem->channels, p.channels);
    memcpy(p.image, image.dims, sizeof p.image);
    gb_cl_order_dims(&p.windows, p.image);
    p.converts = problem->diff_src.type != GB_F32;
    if (p.converts)
        gb_dense_strides(SPACE_DIMS, p.image, p.sums.strides);
    else
        gb_cl_order_dims(&p.windows, p.sums.strides);
    return p;
}

/* The place of an axis in the order of the space; also of one that is missing. */
static int dim_of(const planes *p, int axis)
{
    return GB_POOL_SPATIAL_DIM + axis - (p->windows.channel_dim == SPACE_DIMS - 1 && has_lanes(p));
}

/* Places are 32-bit integers. */
static bool fits_planes(gb_program *program, const gb_pool_backward_problem *problem)
{
    gb_cl_writer w = {.program = program};
    gb_cl_shape shape = gb_cl_shape_of(program);
    int64_t last = 0, elements = 1;
    if (problem->mean || !shape.is_cpu)
        return false;
    planes p = plan_planes(&w, problem);
    for (int a = problem->first_axis; a < GB_POOL_AXES; a++) {
        int64_t steps = problem->axes[a].in - 1, stride = p.sums.strides[dim_of(&p, a)];
        if (steps > 0 && stride > (INT32_MAX - last) / steps)
            return false;
        last += steps * stride;
        elements *= problem->axes[a].in;
    }
    return problem->batch * p.blocks >= shape.units || elements < LARGE_IMAGE;
}

/* The axis along which a work-item goes on from slab to slab: the first, if it does not run in lanes. */
static int slab_axis(const gb_pool_backward_problem *problem, const planes *p)
{
    return dim_of(p, problem->first_axis) == p->windows.lane_dim ? 0 : problem->first_axis;
}

/* static inline void NAME(GB_PARAMETERS, long i0, ..., int lanes) */
static void begin_function(gb_cl_writer *w, const planes *p, const char *name, bool lists)
{
    gb_cl_print(&w->text, "static inline void %s(GB_PARAMETERS", name);
    gb_cl_print_indices(w, SPACE_DIMS, true);
    gb_cl_print(&w->text, ", int lanes%s)\n{\n    ",
            lists && has_lanes(p) ? ", const gb_taps *taps" : "");
}

/* static inline void NAME_slab(GB_PARAMETERS, long i0, ...): calls NAME at all positions of a slab. */
static void print_slab(gb_cl_writer *w, const gb_pool_backward_problem *problem, const planes *p,
        const int64_t *dims, const char *name, bool lists)
{
    gb_cl_text *t = &w->text;
    int lane_dim = p->windows.lane_dim;
    bool in_lanes = has_lanes(p), passes_taps = lists && in_lanes;
    gb_cl_print(t, "static inline void %s_slab(GB_PARAMETERS", name);
    gb_cl_print_indices(w, SPACE_DIMS, true);
    gb_cl_print(t, ")\n{\n");
    if (in_lanes)
        gb_cl_print(t, "    long low = i%d, high = min(low + p[%u], p[%u]);\n", lane_dim,
                gb_cl_number(w, p->windows.along_line ? dims[lane_dim] : p->channels),
                gb_cl_number(w, dims[lane_dim]));
    for (int a = 0; a < GB_POOL_AXES; a++) {
        int d = dim_of(p, a);
        if (a != slab_axis(problem, p) && d != lane_dim)
            gb_cl_print(t, "    for (i%d = 0; i%d < p[%u]; i%d++)\n", d, d,
                    gb_cl_number(w, dims[d]), d);
    }
    gb_cl_print(t, "    {\n    ");
    if (passes_taps)
        gb_cl_print_window_taps(t, &p->windows);
    if (in_lanes)
        gb_cl_print(t, "\n    for (i%d = low; i%d < high; i%d += GB_LANES)\n    ", lane_dim,
                lane_dim, lane_dim);
    gb_cl_print(t, "%s(GB_PASSED", name);
    gb_cl_print_indices(w, SPACE_DIMS, false);
    if (in_lanes)
        gb_cl_print(t, ", (int)min((long)GB_LANES, high - i%d)", lane_dim);
    gb_cl_print(t, "%s%s);\n    }\n}\n", in_lanes ? "" : ", 1", passes_taps ? ", &taps" : "");
}

static void print_slab_call(gb_cl_writer *w, const char *name)
{
    gb_cl_print(&w->text, "%s_slab(GB_PASSED", name);
    gb_cl_print_indices(w, SPACE_DIMS, false);
    gb_cl_print(&w->text, ");\n");
}

/* What windows reach is cleared when the first of them comes. */
static void print_plane_kernel(
        gb_cl_writer *w, const gb_pool_backward_problem *problem, const planes *p)
{
    gb_cl_text *t = &w->text;
    int slab = dim_of(p, slab_axis(problem, p)), channel = p->windows.channel_dim;
    const gb_pool_axis *axis = &problem->axes[slab_axis(problem, p)];
    uint32_t blocks = gb_cl_number(w, p->blocks), in = gb_cl_number(w, axis->in);
    gb_cl_set_items(w, problem->batch * p->blocks, 1);
    gb_cl_print(t,
            "__kernel GB_ITEMS void " GB_CL_KERNEL "(GB_ARGUMENTS)\n{\n    GB_BEGIN\n"
            "    long item = get_global_id(0), ready = 0, i%d = item / p[%u], i%d = item %% p[%u] "
            "* p[%u]",
            GB_POOL_BATCH_DIM, blocks, channel, blocks, gb_cl_number(w, p->channels));
    for (int a = 0; a < GB_POOL_AXES; a++)
        gb_cl_print(t, ", i%d = 0", dim_of(p, a));
    gb_cl_print(t,
            ";\n    for (long o = 0; o < p[%u]; o++) {\n"
            "    long reach = min(p[%u], o * p[%u] + p[%u]);\n"
            "    for (i%d = ready; i%d < reach; i%d++)\n    ",
            gb_cl_number(w, axis->out), in, gb_cl_number(w, axis->stride),
            gb_cl_number(w, gb_pool_extent(axis) - axis->pad_begin), slab, slab, slab);
    print_slab_call(w, "gb_clear");
    gb_cl_print(t, "    ready = max(ready, reach);\n    i%d = o;\n    ", slab);
    print_slab_call(w, "gb_give");
    gb_cl_print(t, "    }\n    for (i%d = ready; i%d < p[%u]; i%d++)\n    ", slab, slab, in, slab);
    print_slab_call(w, "gb_clear");
    if (p->converts) {
        gb_cl_print(t, "    for (i%d = 0; i%d < p[%u]; i%d++)\n    ", slab, slab, in, slab);
        print_slab_call(w, "gb_convert");
    }
    gb_cl_print(t, "}\n");
}

/* Adds the gradients of windows where their maxima lie. */
static void print_give(gb_cl_writer *w, const gb_pool_backward_problem *problem, const planes *p)
{
    static const int64_t none[GB_AXES] = {0};
    gb_cl_text *t = &w->text;
    const gb_cl_windows *windows = &p->windows;
    int64_t src[GB_AXES], diff_dst[GB_AXES];
    int64_t lane_stride =
            has_lanes(p) && !windows->along_line ? p->sums.strides[windows->lane_dim] : 0;
    memcpy(src, problem->src.strides, sizeof src);
    memcpy(diff_dst, problem->diff_dst.strides, sizeof diff_dst);
    gb_cl_order_dims(windows, src);
    gb_cl_order_dims(windows, diff_dst);
    begin_function(w, p, "gb_give", true);
    gb_cl_print(t, "GB_INTS places = ");
    gb_cl_print_window(w, windows, src, none, "0");
    gb_cl_print(t, ";\n    GB_FLOATS gradients = ");
    gb_cl_print_read(w, gb_cl_type_name(problem->diff_dst.type), problem->diff_dst.slot, SPACE_DIMS,
            diff_dst, windows->lane_dim);
    gb_cl_print(t, ";\n    __global float *sums = (__global float *)m%u + ", p->sums.slot);
    gb_cl_print_window_outer(w, windows, p->sums.strides);
    gb_cl_print(t, ";\n%s",
            has_lanes(p) ? "    int place[GB_LANES];\n    float gradient[GB_LANES];\n"
                           "    GB_STORE_WORDS(places, 0, place);\n"
                           "    GB_STORE_WORDS(gradients, 0, gradient);\n"
                         : "    int place[] = {places};\n    float gradient[] = {gradients};\n");
    gb_cl_print(t,
            "    GB_AS_IT_IS\n    for (int l = 0; l < lanes; l++)\n        if (place[l] >= 0)\n"
            "            sums[place[l] + l * p[%u]] += gradient[l];\n}\n",
            gb_cl_number(w, lane_stride));
}

/* Writes sums as the result's type. */
static void print_convert(gb_cl_writer *w, const gb_pool_backward_problem *problem, const planes *p)
{
    int64_t diff_src[GB_AXES];
    memcpy(diff_src, problem->diff_src.strides, sizeof diff_src);
    gb_cl_order_dims(&p->windows, diff_src);
    begin_function(w, p, "gb_convert", false);
    gb_cl_print_write(w, gb_cl_type_name(problem->diff_src.type), problem->diff_src.slot,
            SPACE_DIMS, diff_src, p->windows.lane_dim);
    gb_cl_print_read(w, "f32", p->sums.slot, SPACE_DIMS, p->sums.strides, p->windows.lane_dim);
    gb_cl_print(&w->text, ");\n}\n");
}

static gb_status print_planes(
        gb_cl_writer *w, const gb_pool_backward_problem *problem, uint32_t buffer)
{
    planes p = plan_planes(w, problem);
    int64_t src[GB_AXES];
    if (p.converts)
        GB_TRY(gb_step_use_buffer(w->step, buffer, true, &p.sums.slot));
    for (int a = problem->first_axis; a < GB_POOL_AXES; a++)
        p.windows.axes[a].by_cell = p.sums.strides[dim_of(&p, a)];
    memcpy(src, problem->src.strides, sizeof src);
    gb_cl_order_dims(&p.windows, src);
    gb_cl_print_arguments(w);
    gb_cl_print_window_source(w, &p.windows, gb_cl_type_name(problem->src.type), problem->src.slot,
            problem->src.strides[GB_POOL_CHANNEL_DIM], last_of(&p.windows, src), 0);
    print_take(w, problem->lowest, TAKE_PLACE);
    gb_cl_print_windows(w, &p.windows);
    begin_function(w, &p, "gb_clear", false);
    gb_cl_print_write(w, "f32", p.sums.slot, SPACE_DIMS, p.sums.strides, p.windows.lane_dim);
    gb_cl_print(&w->text, "(GB_FLOATS)(0.0f));\n}\n");
    print_slab(w, problem, &p, p.image, "gb_clear", false);
    print_give(w, problem, &p);
    print_slab(w, problem, &p, p.windows.dims, "gb_give", true);
    if (p.converts) {
        print_convert(w, problem, &p);
        print_slab(w, problem, &p, p.image, "gb_convert", false);
    }
    print_plane_kernel(w, problem, &p);
    return GB_SUCCESS;
}

static gb_status lower_planes(
        gb_cl_writer *w, const gb_pool_backward_problem *problem, const gb_op *op)
{
    uint32_t buffer = 0;
    if (problem->diff_src.type != GB_F32)
        GB_TRY(gb_program_temporary(
                w->program, (size_t)gb_tensor_count(gb_op_output(op, 0)) * sizeof(float), &buffer));
    return gb_cl_writer_add(w, print_planes(w, problem, buffer));
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
    if (fits_planes(program, &problem))
        return lower_planes(&w, &problem, op);
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
