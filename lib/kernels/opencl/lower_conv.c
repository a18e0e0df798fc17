/* Convolutions of both directions and their weight gradients, on cl/gemm.cl without a copy of the
 * image: rows are positions, or output channels of a gradient, and each tap of the kernel says where
 * they begin. Pointwise convolutions are plain products. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/gemm.h"
#include "kernels/plan/conv_gradient_problem.h"
#include "kernels/plan/conv_problem.h"
#include "kernels/plan/dequantization.h"

#include <stdio.h>
#include <string.h>

/* One axis of a source: leaves with -1 where the position `name` is outside, adds to `at`. */
static void print_axis(gb_cl_writer *w, const char *position, int64_t dilation, int64_t pad,
        int64_t input_dilation, int64_t in, int64_t stride, bool has_tap)
{
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "    q = %s", position);
    if (has_tap)
        gb_cl_print(t, " + t * p[%u] - p[%u]", gb_cl_number(w, dilation), gb_cl_number(w, pad));
    gb_cl_print(t, ";\n");
    if (input_dilation > 1) {
        uint32_t zeros = gb_cl_number(w, input_dilation);
        gb_cl_print(t, "    if (q < 0 || q %% p[%u] != 0)\n        return -1;\n    q /= p[%u];\n",
                zeros, zeros);
    }
    if (has_tap)
        gb_cl_print(t, "    if (q < 0 || q >= p[%u])\n        return -1;\n", gb_cl_number(w, in));
    gb_cl_print(t, "    at += q * p[%u];\n", gb_cl_number(w, stride));
}

/* "i2 * p[7]", or with what stands for i2. */
static void name_position(
        gb_cl_writer *w, char *name, size_t bytes, const char *index, int64_t stride)
{
    if (stride == 1)
        snprintf(name, bytes, "%s", index);
    else
        snprintf(name, bytes, "%s * p[%u]", index, gb_cl_number(w, stride));
}

/* Digit of `tap` of an axis with several; the last axis runs fastest. */
static void print_tap_digit(gb_cl_writer *w, int64_t kernel)
{
    uint32_t n = gb_cl_number(w, kernel);
    gb_cl_print(&w->text, "    t = tap %% p[%u];\n    tap /= p[%u];\n", n, n);
}

/* gb_a_tap(): where the row of a position begins for a tap; gb_b_tap(): the tap's weights. */
static int64_t print_conv_taps(gb_cl_writer *w, const gb_conv_problem *conv)
{
    gb_cl_text *t = &w->text;
    int64_t taps = 1;
    char index[16], position[48];
    gb_cl_print(t, "static inline long gb_a_tap(GB_PARAMETERS");
    gb_cl_print_indices(w, conv->pointwise.ndims, true);
    gb_cl_print(t, ", long tap)\n{\n    long q, t = 0, at = 0;\n");
    for (int a = conv->n_axes; a-- > 0;) {
        const gb_conv_axis *axis = &conv->axes[a];
        bool moves = axis->kernel > 1 || axis->pad != 0 || axis->input_dilation > 1 ||
                     (axis->out - 1) * axis->stride >= axis->in;
        if (axis->kernel > 1)
            print_tap_digit(w, axis->kernel);
        else
            gb_cl_print(t, "    t = 0;\n");
        snprintf(index, sizeof index, "i%d", axis->dim);
        name_position(w, position, sizeof position, index, axis->stride);
        print_axis(w, position, axis->dilation, axis->pad, axis->input_dilation, axis->in,
                axis->src_stride, moves);
        taps *= axis->kernel;
    }
    gb_cl_print(t,
            "    return at;\n}\nstatic inline long gb_b_tap(GB_PARAMETERS, long tap)\n{\n"
            "    long t, at = p[%u];\n",
            gb_cl_number(w, conv->first_weight));
    for (int a = conv->n_axes; a-- > 0;)
        if (conv->axes[a].kernel > 1) {
            print_tap_digit(w, conv->axes[a].kernel);
            gb_cl_print(t, "    at += t * p[%u];\n", gb_cl_number(w, conv->axes[a].tap_stride));
        }
    gb_cl_print(t, "    return at;\n}\n");
    return taps;
}

static void print_conv_loads(
        gb_cl_writer *w, const gb_conv_problem *conv, uint32_t src, uint32_t weights, int row_dim)
{
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "#define GB_A_TAP(row, tap) gb_a_tap(GB_PASSED");
    for (int d = 0; d < conv->pointwise.ndims; d++) {
        if (d == row_dim)
            gb_cl_print(t, ", row");
        else if (d == conv->channel_dim)
            gb_cl_print(t, ", 0");
        else
            gb_cl_print(t, ", i%d", d);
    }
    gb_cl_print(t, ", tap)\n#define GB_B_TAP(tap) gb_b_tap(GB_PASSED, tap)\n");
    gb_cl_print(t, "#define GB_LOAD_A(at, row, k) (gb_load_%s(m%u, (at) + a_first + (k) * p[%u])",
            gb_cl_type_name(conv->src_type), src, gb_cl_number(w, conv->src_channel_stride));
    if (conv->zero_point != 0)
        gb_cl_print(t, " - as_float((int)p[%u])", gb_cl_float(w, conv->zero_point));
    uint32_t in = gb_cl_number(w, conv->in_stride), out = gb_cl_number(w, conv->out_stride);
    gb_cl_print(t,
            ")\n#define GB_LOAD_B(at, k, column) gb_load_%s(m%u, (at) + b_first + (k) * p[%u] "
            "+ (column) * p[%u])\n",
            gb_cl_type_name(conv->weights_type), weights, in, out);
    if (conv->out_stride == 1 && conv->weights_type == GB_F32)
        gb_cl_print(t,
                "#define GB_B_ADDRESS(at, k, column) "
                "((__global const float *)m%u + (at) + b_first + (k) * p[%u] + (column))\n",
                weights, in);
}

/* Columns are the channels of a group, and groups a batch dim in front of all. */
static gb_status print_conv(
        gb_cl_writer *w, const gb_conv_problem *conv, uint32_t src, uint32_t weights)
{
    gb_cl_text *t = &w->text;
    int row_dim = conv->axes[conv->n_axes - 1].dim;
    if (!gb_cl_type_name(conv->src_type) || !gb_cl_type_name(conv->weights_type))
        return gb_fail(GB_UNIMPLEMENTED, "OpenCL has no convolution of %s",
                gb_data_type_name(conv->src_type));
    gb_cl_print_arguments(w);
    GB_TRY(gb_cl_print_pointwise(w, &conv->pointwise, "gb_post"));
    int64_t taps = print_conv_taps(w, conv);
    int64_t dims[GB_AXES];
    memcpy(dims, conv->pointwise.dims, sizeof dims);
    dims[conv->channel_dim] = conv->out_channels;
    gb_cl_tile_space space = {.ndims = conv->pointwise.ndims,
            .dims = dims,
            .row_dim = row_dim,
            .col_dim = conv->channel_dim,
            .k = conv->in_channels,
            .groups = conv->groups};
    gb_cl_print_tile_space(w, &space);
    gb_cl_print(t, "#define GB_BASES long a_first = group * p[%u], b_first = group * p[%u];\n",
            gb_cl_number(w, conv->in_channels * conv->src_channel_stride),
            gb_cl_number(w, conv->group_stride));
    gb_cl_print(t, "#define GB_TAPS p[%u]\n", gb_cl_number(w, taps));
    print_conv_loads(w, conv, src, weights, row_dim);
    w->family = gb_cl_gemm;
    return GB_SUCCESS;
}

static gb_status lower_conv(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_conv_problem conv = {0};
    gb_cl_writer w;
    uint32_t src, weights;
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    GB_TRY(gb_cl_begin(program, "conv", &w));
    GB_TRY(gb_conv_read_group(program, group, w.step, &conv));
    w.step->work = 2 * (double)gb_tensor_count(gb_op_output(op, 0)) * (double)conv.in_channels;
    for (int a = 0; a < conv.n_axes; a++)
        w.step->work *= (double)conv.axes[a].kernel;
    if (gb_conv_is_pointwise(&conv)) {
        gb_gemm_problem gemm = {0};
        GB_TRY(gb_conv_read_product(program, group, w.step, &conv, &gemm));
        return gb_cl_add_product(&w, &gemm);
    }
    GB_TRY(gb_step_use_buffer(w.step, conv.src_buffer, false, &src));
    GB_TRY(gb_step_use_buffer(w.step, conv.weights_buffer, false, &weights));
    return gb_cl_writer_add(&w, print_conv(&w, &conv, src, weights));
}

/* Weight gradients ----------------------------------------------------------------------------- */

/* gb_side(): where the channels of a side lie at position o of the last axis and `outer` of the
 * others, or -1 outside of it. */
static void print_side(gb_cl_writer *w, const gb_gradient_problem *g, int side, const char *name)
{
    gb_cl_text *t = &w->text;
    const gb_gradient_side *s = &g->sides[side];
    char position[48];
    gb_cl_print(t, "static inline long %s(GB_PARAMETERS", name);
    gb_cl_print_indices(w, g->pointwise.ndims, true);
    gb_cl_print(t, ", long outer, long o)\n{\n    long q, t = 0, at = 0;\n");
    for (int a = g->n_axes; a-- > 0;) {
        const gb_gradient_axis *axis = &s->axes[a];
        bool windowed = side == GB_GRADIENT_WINDOW && g->tap_dims[a] >= 0;
        if (a + 1 < g->n_axes) {
            uint32_t n = gb_cl_number(w, g->out[a]);
            gb_cl_print(t, "    o = outer %% p[%u];\n    outer /= p[%u];\n", n, n);
        }
        if (windowed)
            gb_cl_print(t, "    t = i%d;\n", g->tap_dims[a]);
        name_position(w, position, sizeof position, "o", axis->stride);
        print_axis(w, position, axis->dilation, axis->pad, 1, axis->in, axis->src_stride, windowed);
    }
    gb_cl_print(t, "    return at;\n}\n");
}

static gb_status print_gradient(
        gb_cl_writer *w, const gb_gradient_problem *g, const uint32_t *slots)
{
    gb_cl_text *t = &w->text;
    const gb_gradient_side *plain = &g->sides[GB_GRADIENT_PLAIN],
                           *window = &g->sides[GB_GRADIENT_WINDOW];
    int64_t dims[GB_AXES], outer = 1;
    if (!gb_cl_type_name(plain->type) || !gb_cl_type_name(window->type))
        return gb_fail(GB_UNIMPLEMENTED, "OpenCL has no weight gradient of %s",
                gb_data_type_name(plain->type));
    for (int a = 0; a + 1 < g->n_axes; a++)
        outer *= g->out[a];
    gb_cl_print_arguments(w);
    GB_TRY(gb_cl_print_pointwise(w, &g->pointwise, "gb_post"));
    print_side(w, g, GB_GRADIENT_PLAIN, "gb_plain");
    print_side(w, g, GB_GRADIENT_WINDOW, "gb_window");
    memcpy(dims, g->pointwise.dims, sizeof dims);
    dims[plain->dim] = plain->channels;
    dims[window->dim] = window->channels;
    gb_cl_tile_space space = {.ndims = g->pointwise.ndims,
            .dims = dims,
            .row_dim = plain->dim,
            .col_dim = window->dim,
            .k = g->out[g->n_axes - 1],
            .groups = g->groups,
            .groups_in_rows = plain->grouped};
    gb_cl_print_tile_space(w, &space);
    gb_cl_print(t, "#define GB_BASES long a_first = group * p[%u], b_first = group * p[%u];\n",
            gb_cl_number(w, plain->channels * plain->channel_stride),
            gb_cl_number(w, window->channels * window->channel_stride));
    gb_cl_print(t, "#define GB_TAPS p[%u]\n#define GB_POSITIONS GB_PASSED", gb_cl_number(w, outer));
    for (int d = 0; d < g->pointwise.ndims; d++) {
        if (d == plain->dim || d == window->dim)
            gb_cl_print(t, ", 0");
        else
            gb_cl_print(t, ", i%d", d);
    }
    /* The outer position; both sides are asked for the place of each k. */
    gb_cl_print(t,
            "\n#define GB_A_TAP(row, tap) (tap)\n#define GB_B_TAP(tap) (tap)\n"
            "#define GB_LOAD_A(at, row, k) gb_load_%s(m%u, a_first + (row) * p[%u] + "
            "gb_plain(GB_POSITIONS, at, k))\n",
            gb_cl_type_name(plain->type), slots[GB_GRADIENT_PLAIN],
            gb_cl_number(w, plain->channel_stride));
    gb_cl_print(t,
            "static inline float gb_load_window(__global const uchar *m, long at, long rest)\n{\n"
            "    return at < 0 ? 0.0f : gb_load_%s(m, at + rest);\n}\n"
            "#define GB_LOAD_B(at, k, column) gb_load_window(m%u, gb_window(GB_POSITIONS, at, k), "
            "b_first + (column) * p[%u])\n",
            gb_cl_type_name(window->type), slots[GB_GRADIENT_WINDOW],
            gb_cl_number(w, window->channel_stride));
    w->family = gb_cl_gemm;
    return GB_SUCCESS;
}

static gb_status lower_gradient(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_gradient_problem gradient = {0};
    gb_cl_writer w;
    uint32_t slots[2];
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    GB_TRY(gb_cl_begin(program, "conv", &w));
    GB_TRY(gb_gradient_read_group(program, group, w.step, &gradient));
    for (int i = 0; i < 2; i++)
        GB_TRY(gb_step_use_buffer(w.step, gradient.sides[i].buffer, false, &slots[i]));
    w.step->work = 2 * (double)gb_tensor_count(gb_op_output(op, 0));
    for (int a = 0; a < gradient.n_axes; a++)
        w.step->work *= (double)gradient.out[a];
    return gb_cl_writer_add(&w, print_gradient(&w, &gradient, slots));
}

const gb_cl_lowering gb_cl_lowering_conv = {.supports = gb_convolution_types_float,
        .takes_epilogue = true,
        .fuses_producer = gb_conv_takes_prologue,
        .lower = lower_conv};
const gb_cl_lowering gb_cl_lowering_gradient = {
        .supports = gb_convolution_types_float, .takes_epilogue = true, .lower = lower_gradient};
