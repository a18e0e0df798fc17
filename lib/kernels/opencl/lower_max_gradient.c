/* The gradient of MaxPool in one kernel, on a CPU: a work-item has the images of one channel, or of some
 * neighbouring ones in lanes. It walks the windows, clears what they reach first, and adds the gradient of
 * each where its maximum lies. Maxima are found by cl/window.cl. */
#include "base/memory.h"
#include "base/status.h"
#include "kernels/opencl/pools.h"

#include <string.h>

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
    planes p = {
            .windows = gb_cl_pool_space(problem, true), .sums = problem->diff_src, .channels = 1};
    gb_cl_windows image = gb_cl_pool_space(problem, false);
    int64_t wanted = 2 * (int64_t)gb_cl_shape_of(w->program).units;
    for (int a = 0; a < GB_POOL_AXES; a++)
        p.windows.axes[a] = gb_cl_pool_axis(&problem->axes[a], problem->src.strides);
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
        gb_dense_strides(GB_CL_POOL_DIMS, p.image, p.sums.strides);
    else
        gb_cl_order_dims(&p.windows, p.sums.strides);
    return p;
}

/* The place of an axis in the order of the space; also of one that is missing. */
static int dim_of(const planes *p, int axis)
{
    return GB_POOL_SPATIAL_DIM + axis -
           (p->windows.channel_dim == GB_CL_POOL_DIMS - 1 && has_lanes(p));
}

/* Places are 32-bit integers. */
bool gb_cl_fits_max_gradient(gb_program *program, const gb_pool_backward_problem *problem)
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
    gb_cl_print_indices(w, GB_CL_POOL_DIMS, true);
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
    gb_cl_print_indices(w, GB_CL_POOL_DIMS, true);
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
    gb_cl_print_indices(w, GB_CL_POOL_DIMS, false);
    if (in_lanes)
        gb_cl_print(t, ", (int)min((long)GB_LANES, high - i%d)", lane_dim);
    gb_cl_print(t, "%s%s);\n    }\n}\n", in_lanes ? "" : ", 1", passes_taps ? ", &taps" : "");
}

static void print_slab_call(gb_cl_writer *w, const char *name)
{
    gb_cl_print(&w->text, "%s_slab(GB_PASSED", name);
    gb_cl_print_indices(w, GB_CL_POOL_DIMS, false);
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
    gb_cl_print_read(w, gb_cl_type_name(problem->diff_dst.type), problem->diff_dst.slot,
            GB_CL_POOL_DIMS, diff_dst, windows->lane_dim);
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
            GB_CL_POOL_DIMS, diff_src, p->windows.lane_dim);
    gb_cl_print_read(w, "f32", p->sums.slot, GB_CL_POOL_DIMS, p->sums.strides, p->windows.lane_dim);
    gb_cl_print(&w->text, ");\n}\n");
}

static gb_status print_planes(gb_cl_writer *w, const gb_pool_backward_problem *problem)
{
    planes p = plan_planes(w, problem);
    int64_t src[GB_AXES];
    uint32_t buffer;
    if (p.converts) {
        int64_t count = p.sums.strides[GB_POOL_BATCH_DIM] * problem->batch;
        GB_TRY(gb_program_temporary(w->program, (size_t)count * sizeof(float), &buffer));
        GB_TRY(gb_step_use_buffer(w->step, buffer, true, &p.sums.slot));
    }
    for (int a = problem->first_axis; a < GB_POOL_AXES; a++)
        p.windows.axes[a].by_cell = p.sums.strides[dim_of(&p, a)];
    memcpy(src, problem->src.strides, sizeof src);
    gb_cl_order_dims(&p.windows, src);
    gb_cl_print_arguments(w);
    gb_cl_print_window_source(w, &p.windows, gb_cl_type_name(problem->src.type), problem->src.slot,
            problem->src.strides[GB_POOL_CHANNEL_DIM], gb_cl_pool_last(&p.windows, src), 0);
    gb_cl_print_pool_take(w, problem->lowest, GB_CL_TAKE_PLACE);
    gb_cl_print_windows(w, &p.windows);
    begin_function(w, &p, "gb_clear", false);
    gb_cl_print_write(w, "f32", p.sums.slot, GB_CL_POOL_DIMS, p.sums.strides, p.windows.lane_dim);
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

gb_status gb_cl_add_max_gradient(gb_cl_writer *w, const gb_pool_backward_problem *problem)
{
    return gb_cl_writer_add(w, print_planes(w, problem));
}
