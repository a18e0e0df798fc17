/* A pointwise convolution and a depthwise one behind it as one kernel of a CPU, cl/conv_pair.cl. */
#include "base/memory.h"
#include "base/status.h"
#include "fusion/regions/regions.h"
#include "kernels/opencl/gemm.h"
#include "kernels/plan/conv_problem.h"

#include <stdio.h>

enum {
    BATCH,
    Y,
    X,
    N_AXES,
    LANES = 16,
    SHORT_SUM = 64,  /* terms: from here on turning results costs little beside the product */
    WIDE_IMAGE = 24, /* positions of a row: tiles of 6 leave few over */
    MOST_BLOCKS = 4, /* vectors of channels of a work-item */
    PRIVATE_FLOATS = 48 * 1024,   /* that it should keep, ... */
    MOST_PRIVATE_FLOATS = 1 << 17 /* ... and that it may */
};

typedef struct pair {
    const gb_conv_problem *producer, *conv;
    int64_t ring, line; /* rows of the image that are kept, positions of each */
    int64_t blocks, groups, bands, band_rows;
} pair;

static int64_t extent(const gb_conv_axis *axis, int64_t results)
{
    return (results - 1) * axis->stride + (axis->kernel - 1) * axis->dilation + 1;
}

static pair describe(const gb_conv_problem *producer, const gb_conv_problem *conv)
{
    const gb_conv_axis *y = &conv->axes[Y], *x = &conv->axes[X];
    pair p = {.producer = producer, .conv = conv, .ring = extent(y, 1), .blocks = 1};
    p.line = gb_max_i64(x->pad + x->in, extent(x, x->out));
    return p;
}

/* Floats that a work-item keeps. */
static double private_floats(const pair *p, int64_t blocks)
{
    const gb_conv_axis *axes = p->conv->axes;
    double terms = (double)p->producer->in_channels;
    double taps = (double)axes[Y].kernel * (double)axes[X].kernel;
    return LANES * ((double)(blocks + 1) * (terms + LANES) +
                           (double)blocks * (taps + (double)p->ring * (double)p->line));
}

/* What is not bounded by the rows that are kept is an int of the kernel's, too. */
static bool axis_fits(const gb_conv_axis *axis)
{
    return axis->pad >= 0 && axis->pad <= INT32_MAX / 4 && axis->stride <= INT32_MAX / 4 &&
           axis->input_dilation == 1;
}

static bool fits(const pair *p)
{
    const gb_conv_problem *producer = p->producer, *conv = p->conv;
    return conv->n_axes == N_AXES && gb_conv_is_pointwise(producer) && producer->in_channels > 0 &&
           conv->groups > 1 && conv->in_channels == 1 && conv->out_channels == 1 &&
           axis_fits(&conv->axes[Y]) && axis_fits(&conv->axes[X]) &&
           private_floats(p, 1) <= MOST_PRIVATE_FLOATS;
}

/* Channels, then rows are divided while there is too little for all units. */
static void divide(const gb_cl_shape *shape, pair *p)
{
    const gb_conv_problem *conv = p->conv;
    int64_t images = conv->axes[BATCH].out, rows = conv->axes[Y].out;
    int64_t wanted = (int64_t)shape->items * shape->units;
    int64_t vectors = gb_div_up(conv->groups, LANES);
    p->blocks = MOST_BLOCKS;
    while (p->blocks > 1 && (private_floats(p, p->blocks) > PRIVATE_FLOATS ||
                                    images * gb_div_up(vectors, p->blocks) < wanted))
        p->blocks /= 2;
    p->groups = gb_div_up(vectors, p->blocks);
    p->bands = gb_div_up(wanted, gb_max_i64(1, images * p->groups));
    p->bands = gb_max_i64(1, gb_min_i64(p->bands, rows / gb_max_i64(1, p->ring)));
    p->band_rows = gb_div_up(rows, p->bands);
    p->bands = gb_div_up(rows, p->band_rows);
}

/* Channels fill lanes best. Positions save turning results that lie along them, which counts where sums are
 * short. */
static bool runs_along_x(const pair *p)
{
    const gb_pointwise_operand *result = gb_conv_result(&p->conv->pointwise);
    return result && result->strides[p->conv->channel_dim] != 1 &&
           p->producer->in_channels < SHORT_SUM && p->conv->axes[X].in >= 2 * LANES;
}

/* Text ------------------------------------------------------------------------------------------ */

static void print_sizes(gb_cl_writer *w, const pair *p)
{
    static const char names[] = {'B', 'Y', 'X'};
    const gb_conv_problem *conv = p->conv;
    gb_cl_text *t = &w->text;
    int64_t items = conv->axes[BATCH].out * p->groups * p->bands;
    gb_cl_print(t,
            "#define GB_WORK_ITEMS p[%u]\n#define GB_GROUPS p[%u]\n#define GB_BANDS p[%u]\n"
            "#define GB_BAND_ROWS p[%u]\n#define GB_CHANNELS p[%u]\n"
            "#define GB_HEIGHT p[%u]\n#define GB_WIDTH p[%u]\n"
            "#define GB_OUT_HEIGHT p[%u]\n#define GB_OUT_WIDTH p[%u]\n",
            gb_cl_number(w, items), gb_cl_number(w, p->groups), gb_cl_number(w, p->bands),
            gb_cl_number(w, p->band_rows), gb_cl_number(w, conv->groups),
            gb_cl_number(w, conv->axes[Y].in), gb_cl_number(w, conv->axes[X].in),
            gb_cl_number(w, conv->axes[Y].out), gb_cl_number(w, conv->axes[X].out));
    gb_cl_print(t,
            "#define GB_BLOCKS %d\n#define GB_TERMS %d\n#define GB_RING %d\n#define GB_LINE %d\n",
            (int)p->blocks, (int)p->producer->in_channels, (int)p->ring, (int)p->line);
    for (int a = Y; a < N_AXES; a++)
        gb_cl_print(t,
                "#define GB_TAPS_%c %d\n#define GB_STEP_%c %d\n#define GB_DILATION_%c %d\n"
                "#define GB_PAD_%c %d\n",
                names[a], (int)conv->axes[a].kernel, names[a], (int)conv->axes[a].stride, names[a],
                (int)conv->axes[a].dilation, names[a], (int)conv->axes[a].pad);
    gb_cl_set_items(w, items, 1);
}

/* GB_SOURCE: along terms where these are neighbours, as channels are in lanes then. */
static void print_source(
        gb_cl_writer *w, const gb_conv_problem *producer, bool along_x, uint32_t slot)
{
    const gb_conv_axis *axes = producer->axes;
    bool along_terms = !along_x && producer->src_channel_stride == 1;
    int64_t step = along_terms ? 1 : axes[X].src_stride;
    gb_cl_text *t = &w->text;
    gb_cl_print(t,
            "%s#define GB_SOURCE(image, k, y, x, n) gb_%s_%s(m%u, (image) * p[%u] + (k) * p[%u] "
            "+ (y) * p[%u] + (x) * p[%u], ",
            along_terms ? "#define GB_ALONG_TERMS\n" : "", step == 1 ? "read" : "gather",
            gb_cl_type_name(producer->src_type), slot, gb_cl_number(w, axes[BATCH].src_stride),
            gb_cl_number(w, producer->src_channel_stride), gb_cl_number(w, axes[Y].src_stride),
            gb_cl_number(w, axes[X].src_stride));
    if (step == 1)
        gb_cl_print(t, "n)\n");
    else
        gb_cl_print(t, "p[%u], n)\n", gb_cl_number(w, step));
}

/* An element of the pointwise weights. */
static void print_weight(
        gb_cl_writer *w, const gb_conv_problem *producer, const char *name, uint32_t slot)
{
    gb_cl_print(&w->text, "#define %s gb_load_%s(m%u, p[%u] + (k) * p[%u] + (c) * p[%u])\n", name,
            gb_cl_type_name(producer->weights_type), slot, gb_cl_number(w, producer->first_weight),
            gb_cl_number(w, producer->in_stride), gb_cl_number(w, producer->out_stride));
}

static void print_taps(gb_cl_writer *w, const gb_conv_problem *conv, uint32_t slot)
{
    gb_cl_print(&w->text,
            "#define GB_TAP(c, y, x) gb_load_%s(m%u, p[%u] + (c) * p[%u] + (y) * p[%u] + (x) * "
            "p[%u])\n",
            gb_cl_type_name(conv->weights_type), slot, gb_cl_number(w, conv->first_weight),
            gb_cl_number(w, conv->group_stride), gb_cl_number(w, conv->axes[Y].tap_stride),
            gb_cl_number(w, conv->axes[X].tap_stride));
}

static gb_status print_packing(gb_cl_packing *packing, const gb_conv_problem *producer)
{
    gb_cl_writer *w = &packing->w;
    uint32_t slot;
    GB_TRY(gb_step_use_buffer(w->step, producer->weights_buffer, false, &slot));
    gb_cl_print_packing(packing);
    print_weight(w, producer, "GB_BASES\n#define GB_ELEMENT(c, tap, k)", slot);
    return GB_SUCCESS;
}

/* The weights' slot: of themselves, or where they never change in vectors of channels, laid out once. */
static gb_status use_weights(
        gb_cl_writer *w, const gb_conv_problem *producer, bool *packed, uint32_t *slot)
{
    const gb_conv_axis *axes = producer->axes;
    int64_t positions = axes[BATCH].out * axes[Y].out * axes[X].out;
    gb_cl_packing packing;
    *packed = gb_cl_shape_of(w->program).lanes == LANES && producer->out_channels > LANES / 2 &&
              gb_cl_packs(w->program, producer->weights_buffer, GB_CL_B, positions,
                      producer->out_channels, producer->weights_type == GB_F32);
    if (!*packed)
        return gb_step_use_buffer(w->step, producer->weights_buffer, false, slot);
    GB_TRY(gb_cl_begin_packing(w, GB_CL_B, positions, producer->out_channels, producer->in_channels,
            1, &packing, slot));
    return gb_cl_writer_add(&packing.w, print_packing(&packing, producer));
}

/* NAME(image, c, y, x, n, value) calls a function with the position in the order of a result's dims, and with
 * what it takes. */
static void print_call(gb_cl_writer *w, const gb_conv_problem *conv, const char *name,
        const char *function, const char *taken)
{
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "#define %s(image, c, y, x, n, value) %s(GB_PASSED", name, function);
    for (int d = 0; d < conv->pointwise.ndims; d++)
        gb_cl_print(t, ", %s",
                d == conv->channel_dim       ? "c"
                : d == conv->axes[BATCH].dim ? "image"
                : d == conv->axes[Y].dim     ? "y"
                                             : "x");
    gb_cl_print(t, ", n, %s)\n", taken);
}

static gb_status print_programs(gb_cl_writer *w, const pair *p, bool along_x, uint32_t bias)
{
    const gb_conv_problem *producer = p->producer, *conv = p->conv;
    int lane_dim = along_x ? conv->axes[X].dim : conv->channel_dim;
    GB_TRY(gb_cl_print_pointwise(w, &conv->pointwise, "gb_after", lane_dim));
    print_call(w, conv, "GB_AFTER", "gb_after", "value");
    if (producer->bias.type != GB_UNDEF)
        gb_cl_print(&w->text, "#define GB_BIAS(c) gb_load_%s(m%u, (c) * p[%u])\n",
                gb_cl_type_name(producer->bias.type), bias, gb_cl_number(w, producer->bias.stride));
    if (producer->pointwise.n_instructions == 0)
        return GB_SUCCESS;
    lane_dim = along_x ? producer->axes[X].dim : producer->channel_dim;
    GB_TRY(gb_cl_print_local_pointwise(w, &producer->pointwise, "gb_between", lane_dim, true));
    print_call(w, producer, "GB_BETWEEN", "gb_between", "0.0f, value");
    return GB_SUCCESS;
}

static gb_status print(gb_cl_writer *w, pair *p)
{
    const gb_conv_problem *producer = p->producer, *conv = p->conv;
    gb_cl_shape shape = gb_cl_shape_of(w->program);
    uint32_t src, pointwise, depthwise, bias = 0;
    bool packed;
    GB_TRY(gb_step_use_buffer(w->step, producer->src_buffer, false, &src));
    GB_TRY(use_weights(w, producer, &packed, &pointwise));
    GB_TRY(gb_step_use_buffer(w->step, conv->weights_buffer, false, &depthwise));
    if (producer->bias.type != GB_UNDEF)
        GB_TRY(gb_step_use_buffer(w->step, producer->bias.buffer, false, &bias));
    divide(&shape, p);
    bool along_x = runs_along_x(p);
    w->lanes = LANES;
    gb_cl_print_arguments(w);
    print_sizes(w, p);
    print_source(w, producer, along_x, src);
    if (packed)
        gb_cl_print(&w->text, "#define GB_PACKED ((__global const float *)m%u)\n", pointwise);
    else
        print_weight(w, producer, "GB_WEIGHT(k, c)", pointwise);
    print_taps(w, conv, depthwise);
    GB_TRY(print_programs(w, p, along_x, bias));
    /* Tiles of 6 rows hide the latency of sums, those of 4 leave less of a narrow image over. */
    bool wide = !along_x && conv->axes[X].in >= WIDE_IMAGE;
    gb_cl_print(&w->text, "%s#define GB_TILE_ROWS %d\n#define GB_POSITIONS %d\n%s",
            along_x ? "#define GB_ALONG_X\n" : "", wide ? 6 : 4, wide ? 12 : LANES, gb_cl_tiles);
    w->family = gb_cl_conv_pair;
    return GB_SUCCESS;
}

static double work_of(const pair *p)
{
    const gb_conv_axis *axes = p->conv->axes;
    double positions = (double)axes[BATCH].out * (double)p->conv->groups;
    return 2 * positions *
           ((double)axes[Y].in * (double)axes[X].in * (double)p->producer->in_channels +
                   (double)axes[Y].out * (double)axes[X].out * (double)axes[Y].kernel *
                           (double)axes[X].kernel);
}

static gb_status lower_conv_pair(gb_program *program, const gb_group *group)
{
    gb_conv_problem producer = {0}, conv = {0};
    gb_cl_writer w;
    GB_TRY(gb_cl_begin(program, "conv pair", &w));
    GB_TRY(gb_conv_read_pair(program, group, w.step, &producer, &conv));
    GB_TRY(gb_step_describe(program, w.step, gb_conv_problem_print, &conv));
    pair p = describe(&producer, &conv);
    w.step->work = work_of(&p);
    return gb_cl_writer_add(&w, print(&w, &p));
}

/* On other devices a work-item would have too much to do: there are two kernels. */
static bool accepts_conv_pair(const gb_graph *graph, const void *parts, bool on_cpu)
{
    gb_conv_problem producer = {0}, conv = {0};
    (void)graph;
    if (!on_cpu || gb_conv_describe_pair(parts, &producer, &conv) != GB_SUCCESS)
        return false;
    pair p = describe(&producer, &conv);
    return fits(&p);
}

const gb_cl_region_lowering gb_cl_lowering_conv_pair = {
        .region = &gb_region_conv_pair, .accepts = accepts_conv_pair, .lower = lower_conv_pair};
