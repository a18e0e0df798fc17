/* Convolutions of both directions, and gradients of their weights, whose groups have few channels,
 * depthwise ones above all: on cl/window.cl. Products of so few channels would be packing for the
 * most part. */
#include "base/memory.h"
#include "base/status.h"
#include "kernels/opencl/windows.h"
#include "kernels/plan/conv_problem.h"

#include <stdio.h>
#include <string.h>

/* Channels of a group that are summed up for each result: with positions in lanes, with channels in lanes,
 * and one by one. */
enum {
    MOST_ALONG_LINE = 8,
    MOST_ALONG_CHANNELS = 2,
    MOST_ONE_BY_ONE = 4,
    MOST_PAIRS = 16 /* of channels of both sides, each of which a gradient of weights sums up */
};

/* Weights from channel to channel, counted over all groups; 0: there is no such number. */
static int64_t weight_stride(const gb_conv_problem *conv)
{
    if (conv->out_channels == 1)
        return conv->group_stride;
    return conv->group_stride == conv->out_channels * conv->out_stride ? conv->out_stride : 0;
}

/* The space of results and the axes of windows: spatial ones, those that are missing first. */
static gb_cl_windows space_of(const gb_conv_problem *conv)
{
    gb_cl_windows windows = {.ndims = conv->pointwise.ndims, .channel_dim = conv->channel_dim};
    int missing = GB_CL_WINDOW_AXES - (conv->n_axes - 1);
    memcpy(windows.dims, conv->pointwise.dims, sizeof windows.dims);
    for (int a = 0; a < GB_CL_WINDOW_AXES; a++) {
        windows.axes[a] = gb_cl_no_window_axis();
        if (a < missing)
            continue;
        const gb_conv_axis *axis = &conv->axes[a - missing + 1];
        windows.axes[a] = (gb_cl_window_axis){.dim = axis->dim,
                .size = axis->in,
                .kernel = axis->kernel,
                .step = axis->stride,
                .dilation = axis->dilation,
                .pad = axis->pad,
                .zeros = axis->input_dilation,
                .source = axis->src_stride,
                .by_tap = axis->tap_stride};
    }
    return windows;
}

bool gb_cl_fits_depthwise(gb_program *program, const gb_conv_problem *conv)
{
    gb_cl_writer w = {.program = program};
    if (conv->groups == 1 || conv->n_axes > GB_CL_WINDOW_AXES + 1 || weight_stride(conv) == 0)
        return false;
    gb_cl_windows windows = space_of(conv);
    gb_cl_choose_window_lanes(&w, &windows, conv->src_channel_stride);
    if (!gb_cl_shape_of(program).is_cpu)
        return conv->in_channels <= MOST_ONE_BY_ONE;
    if (windows.lane_dim < 0)
        return false;
    return conv->in_channels <= (windows.along_line ? MOST_ALONG_LINE : MOST_ALONG_CHANNELS);
}

/* Where groups have several results, each channel of the source serves as many: GB_READ() with channels
 * in lanes, where `own` is the first one. */
static void print_spread(gb_cl_writer *w, const gb_conv_problem *conv)
{
    gb_cl_print(&w->text,
            "GB_INLINE GB_FLOATS gb_spread(GB_PARAMETERS, long i, int channel, int lanes)\n{\n"
            "    float part[GB_LANES];\n"
            "    for (int l = 0; l < GB_LANES; l++)\n"
            "        part[l] = l < lanes ? GB_LOAD(i + (channel + l) / %d * p[%u]) : 0.0f;\n"
            "    return GB_LOAD_WORDS(0, part);\n}\n"
            "#undef GB_READ\n#define GB_READ(i) gb_spread(GB_PASSED, i, own, lanes)\n",
            (int)conv->out_channels, gb_cl_number(w, conv->in_channels * conv->src_channel_stride));
}

static void print_source(
        gb_cl_writer *w, const gb_conv_problem *conv, gb_cl_windows *windows, uint32_t slot)
{
    int64_t last = (conv->groups * conv->in_channels - 1) * conv->src_channel_stride;
    int64_t group = conv->in_channels * conv->src_channel_stride;
    bool along_channels = windows->lane_dim >= 0 && !windows->along_line;
    for (int a = 0; a < conv->n_axes; a++)
        last += (conv->axes[a].in - 1) * conv->axes[a].src_stride;
    gb_cl_print_window_source(
            w, windows, gb_cl_type_name(conv->src_type), slot, group, last, conv->zero_point);
    if (along_channels && conv->out_channels > 1)
        print_spread(w, conv);
    else if (conv->out_channels > 1)
        snprintf(windows->source_base, sizeof windows->source_base, " + i%d / %d * p[%u]",
                windows->channel_dim, (int)conv->out_channels, gb_cl_number(w, group));
    else
        snprintf(windows->source_base, sizeof windows->source_base, " + i%d * p[%u]",
                windows->channel_dim, gb_cl_number(w, group));
}

static void print_take(
        gb_cl_writer *w, const gb_conv_problem *conv, gb_cl_windows *windows, uint32_t slot)
{
    const char *name = gb_cl_type_name(conv->weights_type);
    int64_t stride = weight_stride(conv);
    gb_cl_text *t = &w->text;
    snprintf(windows->other_base, sizeof windows->other_base, " + p[%u]",
            gb_cl_number(w, conv->first_weight));
    gb_cl_print(t,
            "#define GB_CHANNELS %d\n#define GB_CHANNEL_SOURCE p[%u]\n"
            "#define GB_CHANNEL_OTHER p[%u]\n#define GB_START 0.0f\n"
            "#define GB_TAKE sum = GB_ADD_PRODUCT(x, ",
            (int)conv->in_channels, gb_cl_number(w, conv->src_channel_stride),
            gb_cl_number(w, conv->in_stride));
    if (windows->lane_dim < 0 || windows->along_line)
        gb_cl_print(t, "(GB_FLOATS)(gb_load_%s(m%u, other))", name, slot);
    else if (stride == 1)
        gb_cl_print(t, "gb_read_%s(m%u, other, lanes)", name, slot);
    else
        gb_cl_print(
                t, "gb_gather_%s(m%u, other, p[%u], lanes)", name, slot, gb_cl_number(w, stride));
    gb_cl_print(t, ", sum);\n");
}

static gb_status print_depthwise(
        gb_cl_writer *w, const gb_conv_problem *conv, uint32_t src, uint32_t weights)
{
    gb_cl_text *t = &w->text;
    gb_pointwise_program pointwise;
    int64_t source[GB_AXES] = {0}, other[GB_AXES] = {0};
    char own[16];
    if (!gb_cl_type_name(conv->src_type) || !gb_cl_type_name(conv->weights_type))
        return gb_fail(GB_UNIMPLEMENTED, "OpenCL has no convolution of %s",
                gb_data_type_name(conv->src_type));
    gb_cl_windows windows = space_of(conv);
    gb_cl_choose_window_lanes(w, &windows, conv->src_channel_stride);
    GB_TRY(gb_cl_order_pointwise(w, &windows, &conv->pointwise, &pointwise));
    source[conv->axes[0].dim] = conv->axes[0].src_stride;
    other[conv->channel_dim] = weight_stride(conv);
    gb_cl_order_dims(&windows, source);
    gb_cl_order_dims(&windows, other);
    gb_cl_print_arguments(w);
    GB_TRY(gb_cl_print_pointwise(w, &pointwise, "gb_post", windows.lane_dim));
    print_source(w, conv, &windows, src);
    print_take(w, conv, &windows, weights);
    gb_cl_print_windows(w, &windows);
    gb_cl_print_window_element(w, &windows);
    snprintf(own, sizeof own, "(int)i%d", windows.channel_dim);
    gb_cl_print(t, "    gb_post(GB_PASSED");
    gb_cl_print_indices(w, windows.ndims, false);
    gb_cl_print(t, windows.lane_dim < 0 ? ", " : ", lanes, ");
    gb_cl_print_window(w, &windows, source, other, own);
    gb_cl_print(t, ");\n}\n");
    gb_cl_print_window_space(w, &windows);
    return GB_SUCCESS;
}

gb_status gb_cl_add_depthwise(gb_cl_writer *w, const gb_conv_problem *conv)
{
    uint32_t src, weights;
    GB_TRY(gb_step_use_buffer(w->step, conv->src_buffer, false, &src));
    GB_TRY(gb_step_use_buffer(w->step, conv->weights_buffer, false, &weights));
    return gb_cl_writer_add(w, print_depthwise(w, conv, src, weights));
}

/* Gradients of weights ------------------------------------------------------------------------- */

/* The axes of the side that windows move over, those that are missing first. */
static gb_cl_windows windows_of(const gb_gradient_problem *g)
{
    const gb_gradient_side *plain = &g->sides[GB_GRADIENT_PLAIN],
                           *window = &g->sides[GB_GRADIENT_WINDOW];
    int missing = GB_CL_WINDOW_AXES - (g->n_axes - 1);
    gb_cl_windows windows = {.ndims = g->pointwise.ndims, .channel_dim = plain->dim};
    bool channels = plain->channels == 1 && window->channels == 1 && plain->channel_stride == 1 &&
                    window->channel_stride == 1 && g->groups >= GB_CL_LEAST_LANES;
    windows.along_line = !channels;
    windows.lane_dim = channels ? plain->dim : GB_CL_NO_LANES;
    for (int a = 0; a < GB_CL_WINDOW_AXES; a++) {
        windows.axes[a] = gb_cl_no_window_axis();
        if (a < missing)
            continue;
        const gb_gradient_axis *axis = &window->axes[a - missing + 1];
        windows.axes[a] = (gb_cl_window_axis){.dim = g->tap_dims[a - missing + 1],
                .size = axis->in,
                .kernel = axis->kernel,
                .step = axis->stride,
                .dilation = axis->dilation,
                .pad = axis->pad,
                .zeros = 1,
                .source = axis->src_stride};
    }
    return windows;
}

bool gb_cl_fits_depthwise_gradient(gb_program *program, const gb_gradient_problem *g)
{
    const gb_gradient_side *plain = &g->sides[GB_GRADIENT_PLAIN],
                           *window = &g->sides[GB_GRADIENT_WINDOW];
    if (!gb_cl_shape_of(program).is_cpu || g->groups == 1 || g->n_axes > GB_CL_WINDOW_AXES + 1 ||
            !plain->grouped || plain->channels * window->channels > MOST_PAIRS)
        return false;
    gb_cl_windows windows = windows_of(g);
    const gb_cl_window_axis *line = &windows.axes[GB_CL_WINDOW_AXES - 1];
    int64_t positions = g->out[g->n_axes - 1];
    return line->kernel <= GB_CL_FEW_LINE_TAPS &&
           (!windows.along_line ||
                   (positions >= GB_CL_LEAST_LANES && gb_cl_line_fits(line, positions)));
}

/* GB_RESULT_POSITION: an item has all dims of the result but the line's taps, channels in lanes. Items. */
static int64_t print_result_position(
        gb_cl_writer *w, const gb_gradient_problem *g, const gb_cl_windows *windows)
{
    const gb_gradient_side *plain = &g->sides[GB_GRADIENT_PLAIN],
                           *window = &g->sides[GB_GRADIENT_WINDOW];
    gb_cl_text *t = &w->text;
    int64_t items = 1;
    gb_cl_print(t, "#define GB_RESULT_POSITION long rest = get_global_id(0);");
    for (int d = g->pointwise.ndims; d-- > 0;) {
        int64_t dim = g->pointwise.dims[d];
        if (d == windows->axes[GB_CL_WINDOW_AXES - 1].dim)
            continue;
        if (d == windows->lane_dim)
            dim = gb_div_up(dim, w->lanes);
        uint32_t size = gb_cl_number(w, dim);
        gb_cl_print(t, " long i%d = rest %% p[%u]%s; rest /= p[%u];", d, size,
                d == windows->lane_dim ? " * GB_LANES" : "", size);
        items *= dim;
    }
    if (windows->lane_dim >= 0)
        gb_cl_print(t, " const int lanes = (int)min((long)GB_LANES, p[%u] - i%d);",
                gb_cl_number(w, g->pointwise.dims[windows->lane_dim]), windows->lane_dim);
    for (int a = 0; a < GB_CL_WINDOW_AXES - 1; a++) {
        if (windows->axes[a].dim < 0)
            gb_cl_print(t, " const long k%d = 0;", a);
        else
            gb_cl_print(t, " const long k%d = i%d;", a, windows->axes[a].dim);
    }
    gb_cl_print(t,
            " const long plain = i%d * p[%u], source = (i%d / p[%u] * p[%u] + i%d) * p[%u];\n",
            plain->dim, gb_cl_number(w, plain->channel_stride), plain->dim,
            gb_cl_number(w, plain->channels), gb_cl_number(w, window->channels), window->dim,
            gb_cl_number(w, window->channel_stride));
    return items;
}

static void print_sum_post(
        gb_cl_writer *w, const gb_gradient_problem *g, const gb_cl_windows *windows)
{
    gb_cl_print(&w->text, "#define GB_POST(k, sum) gb_post(GB_PASSED");
    for (int d = 0; d < g->pointwise.ndims; d++) {
        if (d == windows->axes[GB_CL_WINDOW_AXES - 1].dim)
            gb_cl_print(&w->text, ", (long)(k)");
        else
            gb_cl_print(&w->text, ", i%d", d);
    }
    gb_cl_print(&w->text, "%s, sum)\n", windows->lane_dim < 0 ? "" : ", lanes");
}

/* The side that gives each position one product. */
static void print_plain(
        gb_cl_writer *w, const gb_gradient_problem *g, const gb_cl_windows *windows, uint32_t slot)
{
    const gb_gradient_side *plain = &g->sides[GB_GRADIENT_PLAIN];
    const char *name = gb_cl_type_name(plain->type);
    int missing = GB_CL_WINDOW_AXES - (g->n_axes - 1);
    int64_t line = plain->axes[g->n_axes - 1].src_stride;
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "#define GB_BATCH p[%u]\n#define GB_BATCH_PLAIN p[%u]\n",
            gb_cl_number(w, g->out[0]), gb_cl_number(w, plain->axes[0].src_stride));
    gb_cl_print(t, "#define GB_BATCH_SOURCE p[%u]\n",
            gb_cl_number(w, g->sides[GB_GRADIENT_WINDOW].axes[0].src_stride));
    gb_cl_print(t, "#define GB_PLAIN %u\n", w->n_numbers);
    for (int a = 0; a < GB_CL_WINDOW_AXES; a++) {
        gb_cl_number(w, a < missing ? 1 : g->out[a - missing + 1]);
        gb_cl_number(w, a < missing ? 0 : plain->axes[a - missing + 1].src_stride);
    }
    if (!windows->along_line || line == 1)
        gb_cl_print(t, "#define GB_READ_PLAIN(i, lanes) gb_read_%s(m%u, i, lanes)\n", name, slot);
    else
        gb_cl_print(t, "#define GB_READ_PLAIN(i, lanes) gb_gather_%s(m%u, i, p[%u], lanes)\n", name,
                slot, gb_cl_number(w, line));
}

static gb_status print_depthwise_gradient(
        gb_cl_writer *w, const gb_gradient_problem *g, const uint32_t *slots)
{
    const gb_gradient_side *plain = &g->sides[GB_GRADIENT_PLAIN],
                           *window = &g->sides[GB_GRADIENT_WINDOW];
    if (!gb_cl_type_name(plain->type) || !gb_cl_type_name(window->type))
        return gb_fail(GB_UNIMPLEMENTED, "OpenCL has no weight gradient of %s",
                gb_data_type_name(plain->type));
    gb_cl_windows windows = windows_of(g), read = windows;
    int64_t last = (g->groups * window->channels - 1) * window->channel_stride;
    for (int a = 0; a < g->n_axes; a++)
        last += (window->axes[a].in - 1) * window->axes[a].src_stride;
    w->lanes = gb_cl_window_lanes(windows.along_line ? g->out[g->n_axes - 1] : g->groups);
    gb_cl_print_arguments(w);
    GB_TRY(gb_cl_print_pointwise(w, &g->pointwise, "gb_post", windows.lane_dim));
    read.lane_dim = 0; /* whichever: cells are read in lanes */
    gb_cl_print_window_source(w, &read, gb_cl_type_name(window->type), slots[GB_GRADIENT_WINDOW],
            window->channel_stride, last, 0);
    gb_cl_print_window_axes(w, &read);
    gb_cl_print_window_line(w, &windows.axes[GB_CL_WINDOW_AXES - 1], windows.along_line);
    print_plain(w, g, &windows, slots[GB_GRADIENT_PLAIN]);
    int64_t items = print_result_position(w, g, &windows);
    print_sum_post(w, g, &windows);
    gb_cl_set_items(w, items, 1);
    gb_cl_print(&w->text, "#define GB_OF_WEIGHTS\n%s", gb_cl_window);
    return GB_SUCCESS;
}

gb_status gb_cl_add_depthwise_gradient(gb_cl_writer *w, const gb_gradient_problem *g)
{
    uint32_t slots[2];
    for (int i = 0; i < 2; i++)
        GB_TRY(gb_step_use_buffer(w->step, g->sides[i].buffer, false, &slots[i]));
    return gb_cl_writer_add(w, print_depthwise_gradient(w, g, slots));
}
