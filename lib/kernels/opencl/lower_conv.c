/* Convolutions of both directions and their weight gradients, on cl/gemm.cl without a copy of the
 * image: rows or columns are positions, the other ones channels, and each tap of the kernel says
 * where the channels of a position begin. Pointwise convolutions are plain products. */
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

/* GB_TAP(tap): tap0, tap1, ... of the axes with several; the last axis runs fastest. */
static int64_t print_tap_digits(gb_cl_writer *w, const gb_conv_problem *conv)
{
    int64_t taps = 1;
    gb_cl_print(&w->text, "#define GB_TAP(tap) long rest_of_tap = tap;");
    for (int a = conv->n_axes; a-- > 0;)
        if (conv->axes[a].kernel > 1) {
            uint32_t n = gb_cl_number(w, conv->axes[a].kernel);
            gb_cl_print(
                    &w->text, " long tap%d = rest_of_tap %% p[%u]; rest_of_tap /= p[%u];", a, n, n);
            taps *= conv->axes[a].kernel;
        }
    gb_cl_print(&w->text, "\n");
    return taps;
}

/* ", long tap1, long tap2" or ", tap1, tap2" */
static void print_tap_list(gb_cl_writer *w, const gb_conv_problem *conv, bool declared)
{
    for (int a = 0; a < conv->n_axes; a++)
        if (conv->axes[a].kernel > 1)
            gb_cl_print(&w->text, ", %stap%d", declared ? "long " : "", a);
}

/* How a convolution becomes a product. */
typedef struct conv_space {
    bool positions_are_columns;
    bool is_merged[GB_AXES]; /* axes that positions run through, the last one among them */
    int64_t positions;       /* of all these */
} conv_space;

/* Do all tensors that results meet go on along axis a as they end along the axis behind it? */
static bool goes_on(const gb_conv_problem *conv, int a)
{
    const gb_conv_axis *axis = &conv->axes[a], *next = &conv->axes[a + 1];
    for (uint32_t i = 0; i < conv->pointwise.n_operands; i++) {
        const int64_t *strides = conv->pointwise.operands[i].strides;
        if (strides[axis->dim] != strides[next->dim] * next->out)
            return false;
    }
    return true;
}

/* Columns are what lies side by side in the result. */
static conv_space choose_space(const gb_conv_problem *conv)
{
    const gb_conv_axis *last = &conv->axes[conv->n_axes - 1];
    const gb_pointwise_operand *result = gb_conv_result(&conv->pointwise);
    conv_space s = {.positions = last->out};
    s.positions_are_columns = result && result->strides[conv->channel_dim] != 1 && last->out > 1 &&
                              result->strides[last->dim] == 1;
    s.is_merged[conv->n_axes - 1] = true;
    for (int a = conv->n_axes - 1; a-- > 0;) {
        if (!goes_on(conv, a) || s.positions * conv->axes[a].out > INT32_MAX)
            break;
        s.is_merged[a] = true;
        s.positions *= conv->axes[a].out;
    }
    return s;
}

/* gb_image(): where the channels of a position begin for a tap. */
static void print_image_taps(gb_cl_writer *w, const gb_conv_problem *conv)
{
    gb_cl_text *t = &w->text;
    char index[16], position[48];
    gb_cl_print(t, "static inline long gb_image(GB_PARAMETERS");
    gb_cl_print_indices(w, conv->pointwise.ndims, true);
    print_tap_list(w, conv, true);
    gb_cl_print(t, ")\n{\n    long q, t = 0, at = 0;\n");
    for (int a = conv->n_axes; a-- > 0;) {
        const gb_conv_axis *axis = &conv->axes[a];
        bool moves = axis->kernel > 1 || axis->pad != 0 || axis->input_dilation > 1 ||
                     (axis->out - 1) * axis->stride >= axis->in;
        if (axis->kernel > 1)
            gb_cl_print(t, "    t = tap%d;\n", a);
        else
            gb_cl_print(t, "    t = 0;\n");
        snprintf(index, sizeof index, "i%d", axis->dim);
        name_position(w, position, sizeof position, index, axis->stride);
        print_axis(w, position, axis->dilation, axis->pad, axis->input_dilation, axis->in,
                axis->src_stride, moves);
    }
    gb_cl_print(t, "    return at;\n}\n");
}

/* gb_weights_at(): where the weights of a tap begin. */
static void print_weights_taps(gb_cl_writer *w, const gb_conv_problem *conv)
{
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "static inline long gb_weights_at(GB_PARAMETERS");
    print_tap_list(w, conv, true);
    gb_cl_print(t, ")\n{\n    return p[%u]", gb_cl_number(w, conv->first_weight));
    for (int a = conv->n_axes; a-- > 0;)
        if (conv->axes[a].kernel > 1)
            gb_cl_print(t, " + tap%d * p[%u]", a, gb_cl_number(w, conv->axes[a].tap_stride));
    gb_cl_print(t, ";\n}\n");
}

/* The places of positions, and where the image begins there. `side` is A or B. */
static void print_image_places(
        gb_cl_writer *w, const gb_conv_problem *conv, const conv_space *s, char side)
{
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "#define GB_%c_PLACES(n)", side);
    for (int a = 0; a < conv->n_axes; a++)
        if (s->is_merged[a])
            gb_cl_print(t, " int axis%d[n];", a);
    gb_cl_print(t, "\n#define GB_%c_PLACE(r, position) int within##r = (int)(position);", side);
    for (int a = conv->n_axes; a-- > 0;)
        if (s->is_merged[a] && a > 0 && s->is_merged[a - 1]) {
            uint32_t out = gb_cl_number(w, conv->axes[a].out);
            gb_cl_print(t, " axis%d[r] = within##r %% (int)p[%u]; within##r /= (int)p[%u];", a, out,
                    out);
        } else if (s->is_merged[a]) {
            gb_cl_print(t, " axis%d[r] = within##r;", a);
        }
    gb_cl_print(t, "\n#define GB_%c_AT(r, tap) gb_image(GB_PASSED", side);
    for (int d = 0; d < conv->pointwise.ndims; d++) {
        int a = 0;
        while (a < conv->n_axes && conv->axes[a].dim != d)
            a++;
        if (a < conv->n_axes && s->is_merged[a])
            gb_cl_print(t, ", axis%d[r]", a);
        else if (d == conv->channel_dim)
            gb_cl_print(t, ", 0");
        else
            gb_cl_print(t, ", i%d", d);
    }
    print_tap_list(w, conv, false);
    gb_cl_print(t, ")\n");
}

/* gb_images(): the same as gb_image() for the positions of lanes, where those are of axes without
 * zeros between elements; the last dims of an image fit 31 bits. */
static void print_image_lanes(gb_cl_writer *w, const gb_conv_problem *conv, const conv_space *s)
{
    gb_cl_text *t = &w->text;
    int64_t most = 0;
    for (int a = 0; a < conv->n_axes; a++) {
        const gb_conv_axis *axis = &conv->axes[a];
        most += (axis->in - 1) * axis->src_stride;
        if (axis->input_dilation > 1 || axis->in * axis->dilation > INT16_MAX ||
                axis->out * axis->stride > INT16_MAX)
            return;
    }
    if (!w->lanes || most > INT32_MAX / 4)
        return;
    gb_cl_print(t, "static inline GB_INT gb_images(GB_PARAMETERS");
    gb_cl_print_indices(w, conv->pointwise.ndims, true);
    for (int a = 0; a < conv->n_axes; a++)
        if (s->is_merged[a])
            gb_cl_print(t, ", const int *axis%d", a);
    print_tap_list(w, conv, true);
    gb_cl_print(t, ")\n{\n    GB_INT q, outside = 0, at = 0;\n");
    for (int a = 0; a < conv->n_axes; a++) {
        const gb_conv_axis *axis = &conv->axes[a];
        gb_cl_print(t, "    q = ");
        if (s->is_merged[a])
            gb_cl_print(t, "GB_LOAD_WORDS(0, axis%d)", a);
        else
            gb_cl_print(t, "(GB_INT)((int)i%d)", axis->dim);
        if (axis->stride != 1)
            gb_cl_print(t, " * (int)p[%u]", gb_cl_number(w, axis->stride));
        if (axis->kernel > 1)
            gb_cl_print(t, " + (int)(tap%d * p[%u])", a, gb_cl_number(w, axis->dilation));
        gb_cl_print(t,
                " - (int)p[%u];\n    outside |= q < 0 | q >= (int)p[%u];\n"
                "    at += q * (int)p[%u];\n",
                gb_cl_number(w, axis->pad), gb_cl_number(w, axis->in),
                gb_cl_number(w, axis->src_stride));
    }
    gb_cl_print(t, "    return outside ? (GB_INT)(-1) : at;\n}\n"
                   "#define GB_B_AT_LANES(c, tap) gb_images(GB_PASSED");
    for (int d = 0; d < conv->pointwise.ndims; d++) {
        bool merged = d == conv->channel_dim;
        for (int a = 0; a < conv->n_axes; a++)
            merged = merged || (conv->axes[a].dim == d && s->is_merged[a]);
        gb_cl_print(t, merged ? ", 0" : ", i%d", d);
    }
    for (int a = 0; a < conv->n_axes; a++)
        if (s->is_merged[a])
            gb_cl_print(t, ", axis%d + (c)", a);
    print_tap_list(w, conv, false);
    gb_cl_print(t, ")\n");
}

/* One macro that reads the image, an element or `lanes` of them. */
static void print_image_load(gb_cl_writer *w, const gb_conv_problem *conv, bool columns,
        const char *macro, const char *verb, uint32_t slot, uint32_t group_base, const char *lanes)
{
    gb_cl_text *t = &w->text;
    gb_cl_print(t, "#define %s (gb_%s_%s(m%u, (at) + group * p[%u] + (k) * p[%u]%s%s)", macro, verb,
            gb_cl_type_name(conv->src_type), slot, group_base,
            gb_cl_number(w, conv->src_channel_stride), columns ? " + (column)" : "", lanes);
    if (conv->zero_point != 0)
        gb_cl_print(t, " - as_float((int)p[%u])", gb_cl_float(w, conv->zero_point));
    gb_cl_print(t, ")\n");
}

/* Elements of the image; as columns, `column` counts on from the position. */
static void print_image(gb_cl_writer *w, const gb_conv_problem *conv, const conv_space *s,
        uint32_t slot, uint32_t group_base)
{
    gb_cl_text *t = &w->text;
    bool columns = s->positions_are_columns, exact = conv->zero_point == 0;
    const gb_conv_axis *last = &conv->axes[conv->n_axes - 1];
    uint32_t channel = gb_cl_number(w, conv->src_channel_stride);
    print_image_places(w, conv, s, columns ? 'B' : 'A');
    print_image_load(w, conv, columns,
            columns ? "GB_LOAD_B(at, k, column)" : "GB_LOAD_A(at, row, k)", "load", slot,
            group_base, "");
    if (w->lanes && (columns ? last->src_stride : conv->src_channel_stride) == 1)
        print_image_load(w, conv, columns,
                columns ? "GB_LANES_OF_B(at, k, column)" : "GB_LANES_OF_A(at, row, k)", "read",
                slot, group_base, ", GB_LANES");
    int64_t most = 0;
    for (int a = 0; a < conv->n_axes; a++)
        most += (conv->axes[a].in - 1) * conv->axes[a].src_stride;
    if (w->lanes && columns && last->src_stride == 1)
        gb_cl_print(t, "#define GB_B_MOST p[%u]\n", gb_cl_number(w, most));
    if (columns)
        print_image_lanes(w, conv, s);
    if (columns)
        gb_cl_print(t, "#define GB_B_SPREAD\n#define GB_B_IN_ORDER %d\n", last->src_stride == 1);
    if (conv->src_type != GB_F32 || !exact)
        return;
    if (columns && last->src_stride == 1)
        gb_cl_print(t,
                "#define GB_B_ADDRESS(at, k, column) ((__global const float *)m%u + (at) + "
                "group * p[%u] + (k) * p[%u] + (column))\n",
                slot, group_base, channel);
    if (!columns && conv->src_channel_stride == 1)
        gb_cl_print(t,
                "#define GB_A_ADDRESS(at, row) ((__global const float *)m%u + (at) + group * "
                "p[%u])\n",
                slot, group_base);
}

static void print_weights(gb_cl_writer *w, const gb_conv_problem *conv, const conv_space *s,
        uint32_t slot, uint32_t group_base)
{
    gb_cl_text *t = &w->text;
    bool rows = s->positions_are_columns;
    char side = rows ? 'A' : 'B';
    const char *own = rows ? "row" : "column";
    uint32_t in = gb_cl_number(w, conv->in_stride), out = gb_cl_number(w, conv->out_stride);
    gb_cl_print(t,
            "#define GB_%c_PLACES(n)\n#define GB_%c_PLACE(r, own)\n"
            "#define GB_%c_AT(r, tap) gb_weights_at(GB_PASSED",
            side, side, side);
    print_tap_list(w, conv, false);
    gb_cl_print(t, ")\n");
    gb_cl_print(t,
            "#define %s gb_load_%s(m%u, (at) + group * p[%u] + (k) * p[%u] + (%s) * p[%u])\n",
            rows ? "GB_LOAD_A(at, row, k)" : "GB_LOAD_B(at, k, column)",
            gb_cl_type_name(conv->weights_type), slot, group_base, in, own, out);
    bool along_k = conv->in_stride == 1 && (rows || conv->out_stride != 1);
    if (!rows && along_k)
        gb_cl_print(t, "#define GB_B_ALONG_K\n");
    if (w->lanes && (along_k || (!rows && conv->out_stride == 1)))
        gb_cl_print(t,
                "#define %s gb_read_%s(m%u, (at) + group * p[%u] + (k) * p[%u] + (%s) * p[%u], "
                "GB_LANES)\n",
                rows ? "GB_LANES_OF_A(at, row, k)" : "GB_LANES_OF_B(at, k, column)",
                gb_cl_type_name(conv->weights_type), slot, group_base, in, own, out);
    if (conv->weights_type != GB_F32)
        return;
    if (rows && conv->in_stride == 1)
        gb_cl_print(t,
                "#define GB_A_ADDRESS(at, row) ((__global const float *)m%u + (at) + group * p[%u] "
                "+ (row) * p[%u])\n",
                slot, group_base, out);
    if (!rows && conv->out_stride == 1)
        gb_cl_print(t,
                "#define GB_B_ADDRESS(at, k, column) ((__global const float *)m%u + (at) + "
                "group * p[%u] + (k) * p[%u] + (column))\n",
                slot, group_base, in);
}

static gb_status check_types(const gb_conv_problem *conv)
{
    if (!gb_cl_type_name(conv->src_type) || !gb_cl_type_name(conv->weights_type))
        return gb_fail(GB_UNIMPLEMENTED, "OpenCL has no convolution of %s",
                gb_data_type_name(conv->src_type));
    return GB_SUCCESS;
}

static gb_status print_packing(
        gb_cl_packing *packing, const gb_conv_problem *conv, const conv_space *s)
{
    gb_cl_writer *w = &packing->w;
    uint32_t slot;
    char side = s->positions_are_columns ? 'A' : 'B';
    GB_TRY(check_types(conv));
    GB_TRY(gb_step_use_buffer(w->step, conv->weights_buffer, false, &slot));
    gb_cl_print_packing(packing);
    print_tap_digits(w, conv);
    print_weights_taps(w, conv);
    print_weights(w, conv, s, slot, gb_cl_number(w, 0));
    gb_cl_print(&w->text,
            "#define GB_BASES long group = 0; GB_TAP(tap)\n"
            "#define GB_ELEMENT(own, tap, k) %s\n",
            side == 'A' ? "GB_LOAD_A(GB_A_AT(0, tap), own, k)"
                        : "GB_LOAD_B(GB_B_AT(0, tap), k, own)");
    return GB_SUCCESS;
}

/* Weights that never change, of one group. */
static gb_status pack_weights(gb_cl_writer *w, const gb_conv_problem *conv, const conv_space *s,
        int64_t taps, gb_cl_tile_space *space)
{
    gb_cl_packing packing;
    int which = s->positions_are_columns ? GB_CL_A : GB_CL_B;
    if (conv->groups > 1 || space->k == 0 ||
            !gb_cl_packs(w->program, conv->weights_buffer, which, space->rows, space->columns,
                    conv->weights_type == GB_F32))
        return GB_SUCCESS;
    space->is_packed[which] = true;
    GB_TRY(gb_cl_begin_packing(w, which, space->rows, space->columns, space->k, taps, &packing,
            &space->packed_slots[which]));
    return gb_cl_writer_add(&packing.w, print_packing(&packing, conv, s));
}

/* Groups are a batch dim in front of all. */
static gb_status print_conv(gb_cl_writer *w, const gb_conv_problem *conv, const conv_space *s,
        const gb_cl_tile_space *space, uint32_t src, uint32_t weights)
{
    gb_cl_text *t = &w->text;
    GB_TRY(check_types(conv));
    int lane_dim = gb_cl_choose_tile_lanes(w, space->col_dim, space->columns);
    gb_cl_print_arguments(w);
    GB_TRY(gb_cl_print_pointwise(w, &conv->pointwise, "gb_post", lane_dim));
    int64_t taps = print_tap_digits(w, conv);
    print_image_taps(w, conv);
    print_weights_taps(w, conv);
    gb_cl_print_tile_space(w, space);
    gb_cl_print(t, "#define GB_BASES\n#define GB_TAPS p[%u]\n", gb_cl_number(w, taps));
    print_image(w, conv, s, src, gb_cl_number(w, conv->in_channels * conv->src_channel_stride));
    print_weights(w, conv, s, weights, gb_cl_number(w, conv->group_stride));
    w->family = gb_cl_gemm;
    return GB_SUCCESS;
}

static gb_status add_conv(gb_cl_writer *w, const gb_conv_problem *conv)
{
    conv_space s = choose_space(conv);
    bool columns = s.positions_are_columns;
    int last = conv->axes[conv->n_axes - 1].dim;
    uint32_t src, weights = 0;
    int64_t taps = 1;
    gb_cl_tile_space space = {.pointwise = &conv->pointwise,
            .dims = conv->pointwise.dims,
            .row_dim = columns ? conv->channel_dim : last,
            .col_dim = columns ? last : conv->channel_dim,
            .rows = columns ? conv->out_channels : s.positions,
            .columns = columns ? s.positions : conv->out_channels,
            .k = conv->in_channels,
            .groups = conv->groups,
            .groups_in_rows = columns};
    for (int a = 0; a < conv->n_axes; a++) {
        taps *= conv->axes[a].kernel;
        if (s.is_merged[a])
            space.is_merged[conv->axes[a].dim] = true;
    }
    GB_TRY(pack_weights(w, conv, &s, taps, &space));
    GB_TRY(gb_step_use_buffer(w->step, conv->src_buffer, false, &src));
    if (!space.is_packed[GB_CL_A] && !space.is_packed[GB_CL_B])
        GB_TRY(gb_step_use_buffer(w->step, conv->weights_buffer, false, &weights));
    return gb_cl_writer_add(w, print_conv(w, conv, &s, &space, src, weights));
}

static gb_status lower_conv(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_conv_problem conv = {0};
    gb_cl_writer w;
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
    if (gb_cl_fits_depthwise(program, &conv))
        return gb_cl_add_depthwise(&w, &conv);
    return add_conv(&w, &conv);
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
    int64_t outer = 1;
    if (!gb_cl_type_name(plain->type) || !gb_cl_type_name(window->type))
        return gb_fail(GB_UNIMPLEMENTED, "OpenCL has no weight gradient of %s",
                gb_data_type_name(plain->type));
    for (int a = 0; a + 1 < g->n_axes; a++)
        outer *= g->out[a];
    int lane_dim = gb_cl_choose_tile_lanes(w, window->dim, window->channels);
    gb_cl_print_arguments(w);
    GB_TRY(gb_cl_print_pointwise(w, &g->pointwise, "gb_post", lane_dim));
    print_side(w, g, GB_GRADIENT_PLAIN, "gb_plain");
    print_side(w, g, GB_GRADIENT_WINDOW, "gb_window");
    gb_cl_tile_space space = {.pointwise = &g->pointwise,
            .dims = g->pointwise.dims,
            .row_dim = plain->dim,
            .col_dim = window->dim,
            .rows = plain->channels,
            .columns = window->channels,
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
            "\n#define GB_A_PLACES(n)\n#define GB_A_PLACE(r, row)\n#define GB_A_AT(r, tap) (tap)\n"
            "#define GB_B_PLACES(n)\n#define GB_B_PLACE(c, column)\n#define GB_B_AT(c, tap) (tap)\n"
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
    w.step->work = 2 * (double)gb_tensor_count(gb_op_output(op, 0));
    for (int a = 0; a < gradient.n_axes; a++)
        w.step->work *= (double)gradient.out[a];
    if (gb_cl_fits_depthwise_gradient(program, &gradient))
        return gb_cl_add_depthwise_gradient(&w, &gradient);
    for (int i = 0; i < 2; i++)
        GB_TRY(gb_step_use_buffer(w.step, gradient.sides[i].buffer, false, &slots[i]));
    return gb_cl_writer_add(&w, print_gradient(&w, &gradient, slots));
}

const gb_cl_lowering gb_cl_lowering_conv = {.supports = gb_convolution_types_float,
        .takes_epilogue = true,
        .fuses_producer = gb_conv_takes_prologue,
        .lower = lower_conv};
const gb_cl_lowering gb_cl_lowering_gradient = {
        .supports = gb_convolution_types_float, .takes_epilogue = true, .lower = lower_gradient};
