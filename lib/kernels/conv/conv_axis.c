/* The arithmetic of one axis of a convolution: which source positions and taps a result position
 * meets. */
#include "base/memory.h"
#include "kernels/conv/conv_numbers.h"
#include "kernels/conv/conv_plan.h"

/* x with a x = 1 modulo m, for a and m without common divisor. */
static int64_t inverse_of(int64_t a, int64_t m)
{
    int64_t r = m, rest = a % m, x = 0, next = 1;
    while (rest) {
        int64_t quotient = r / rest, kept = r - quotient * rest;
        r = rest, rest = kept;
        kept = x - quotient * next;
        x = next, next = kept;
    }
    return x < 0 ? x + m : x;
}

gb_conv_plan_axis gb_conv_axis_plan(const gb_conv_axis *axis)
{
    int64_t dilation = axis->kernel > 1 ? axis->dilation : 0;
    int64_t stride = axis->out > 1 ? axis->stride : 0, up = axis->input_dilation;
    int64_t divisor = gb_greatest_divisor(up, dilation);
    int64_t step = up > 1 ? 1 : gb_max_i64(gb_greatest_divisor(stride, dilation), 1);
    return (gb_conv_plan_axis){.in = axis->in,
            .out = axis->out,
            .kernel = axis->kernel,
            .stride = axis->stride,
            .dilation = axis->dilation,
            .pad = axis->pad,
            .input_dilation = up,
            .dim = axis->dim,
            .src_stride = axis->src_stride,
            .step = step,
            .stride_in_copy = stride / step,
            .residues = gb_min_i64(up / divisor, axis->kernel),
            .divisor = divisor,
            .inverse = inverse_of(dilation / divisor, up / divisor),
            .dilation_in_copy = dilation / divisor / step,
            .interleave = 1};
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}

int64_t gb_conv_first_source(const gb_conv_plan_axis *axis, int64_t first)
{
    return -floor_div(axis->pad - first * axis->stride, axis->input_dilation);
}

int64_t gb_conv_first_tap(const gb_conv_plan_axis *axis, int64_t o)
{
    int64_t classes = axis->input_dilation / axis->divisor,
            rest = (axis->pad - o) % axis->input_dilation;
    if (axis->input_dilation == 1)
        return 0;
    if (rest % axis->divisor)
        return -1;
    int64_t tap = (rest / axis->divisor + classes) % classes * axis->inverse % classes;
    return tap < axis->kernel ? tap : -1;
}

int64_t gb_conv_class_taps(const gb_conv_plan_axis *axis, int64_t first_tap)
{
    return gb_div_up(axis->kernel - first_tap, axis->residues);
}

int64_t gb_conv_extent(const gb_conv_plan_axis *axis, int64_t count)
{
    int64_t taps = axis->kernel - 1, extent;
    if (axis->input_dilation > 1)
        extent = floor_div(count - 1 + taps * axis->dilation - axis->pad, axis->input_dilation) -
                 gb_conv_first_source(axis, 0) + 1;
    else
        extent = (count - 1) * axis->stride_in_copy + taps * axis->dilation_in_copy + 1;
    return gb_div_up(gb_max_i64(extent, 1), axis->interleave) * axis->interleave;
}
