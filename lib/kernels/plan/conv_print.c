/* Convolutions and their weight gradients as text; what is as usual is left out. */
#include "kernels/plan/conv_gradient_problem.h"
#include "kernels/plan/conv_problem.h"

#include <inttypes.h>

enum { BATCH, CHANNELS, POSITIONS }; /* dims of images as they are printed */

/* What is said of the spatial axes, list by list. */
typedef struct conv_text {
    int n; /* spatial axes */
    int64_t taps[GB_AXES], strides[GB_AXES], input_dilations[GB_AXES], pads[GB_AXES],
            dilations[GB_AXES];
} conv_text;

/* "2x64x56x56": the batch, channels and positions of an image. */
static void print_image(const gb_printer *printer, int64_t *dims, int64_t channels, int n_axes)
{
    dims[BATCH] = dims[CHANNELS];
    dims[CHANNELS] = channels;
    gb_print_sizes(printer, n_axes + 1, dims);
}

static void print_list(
        const gb_printer *printer, const char *name, int n, const int64_t *numbers, int64_t usual)
{
    bool unusual = false;
    for (int i = 0; i < n; i++)
        unusual = unusual || numbers[i] != usual;
    if (!unusual)
        return;
    fprintf(printer->file, ", %s ", name);
    gb_print_sizes(printer, n, numbers);
}

static void print_window(const gb_printer *printer, const conv_text *text, int64_t groups)
{
    fputs(", taps ", printer->file);
    gb_print_sizes(printer, text->n, text->taps);
    print_list(printer, "strides", text->n, text->strides, 1);
    print_list(printer, "input dilations", text->n, text->input_dilations, 1);
    print_list(printer, "pads", text->n, text->pads, 0);
    print_list(printer, "dilations", text->n, text->dilations, 1);
    if (groups != 1)
        fprintf(printer->file, ", groups %" PRId64, groups);
    fputs(":\n", printer->file);
}

/* "  source: f32 %0 [802816,1,14336,256]" */
static void print_tensor(const gb_printer *printer, const char *name, gb_data_type type,
        uint32_t buffer, int n, const int64_t *strides)
{
    fprintf(printer->file, "  %s: %s ", name, gb_data_type_name(type));
    gb_print_buffer(printer, buffer);
    fputs(" ", printer->file);
    gb_print_strides(printer, n, strides);
}

/* Convolutions --------------------------------------------------------------------------------- */

static void print_shapes(const gb_printer *printer, const gb_conv_problem *conv)
{
    int64_t in[GB_AXES + 1], out[GB_AXES + 1];
    conv_text text = {.n = conv->n_axes - 1};
    for (int a = 0; a < conv->n_axes; a++) {
        const gb_conv_axis *axis = &conv->axes[a];
        in[a + 1] = axis->in;
        out[a + 1] = axis->out;
        if (a == 0)
            continue;
        text.taps[a - 1] = axis->kernel;
        text.strides[a - 1] = axis->stride;
        text.input_dilations[a - 1] = axis->input_dilation;
        text.pads[a - 1] = axis->pad;
        text.dilations[a - 1] = axis->dilation;
    }
    fputs("conv of ", printer->file);
    print_image(printer, in, conv->groups * conv->in_channels, conv->n_axes);
    fputs(" to ", printer->file);
    print_image(printer, out, conv->groups * conv->out_channels, conv->n_axes);
    print_window(printer, &text, conv->groups);
}

static void print_source(const gb_printer *printer, const gb_conv_problem *conv)
{
    int64_t strides[GB_AXES + 1] = {
            [BATCH] = conv->axes[0].src_stride, [CHANNELS] = conv->src_channel_stride};
    if (conv->producer) {
        fputs("  source: what the producer makes\n", printer->file);
        return;
    }
    for (int a = 1; a < conv->n_axes; a++)
        strides[POSITIONS + a - 1] = conv->axes[a].src_stride;
    print_tensor(printer, "source", conv->src_type, conv->src_buffer, conv->n_axes + 1, strides);
    if (conv->src_channel_stride == 1 && conv->axes[conv->n_axes - 1].src_stride != 1)
        fputs(", channels last", printer->file);
    if (conv->zero_point != 0)
        fprintf(printer->file, ", zero point %g", (double)conv->zero_point);
    if (conv->n_scales > 0)
        fprintf(printer->file, ", scale %g", (double)conv->scale);
    fputs("\n", printer->file);
}

static void print_weights(const gb_printer *printer, const gb_conv_problem *conv)
{
    int64_t strides[GB_AXES + 1] = {conv->out_stride, conv->in_stride};
    for (int a = 1; a < conv->n_axes; a++)
        strides[a + 1] = conv->axes[a].tap_stride;
    print_tensor(printer, "weights", conv->weights_type, conv->weights_buffer, conv->n_axes + 1,
            strides);
    if (conv->n_scales > 0)
        fprintf(printer->file, ", scales for %" PRId64 " channels", conv->n_scales);
    fputs("\n", printer->file);
}

static void print_conv(const gb_printer *printer, const gb_conv_problem *conv)
{
    print_shapes(printer, conv);
    print_source(printer, conv);
    print_weights(printer, conv);
    if (conv->bias.type != GB_UNDEF) {
        print_tensor(printer, "bias", conv->bias.type, conv->bias.buffer, 1, &conv->bias.stride);
        fputs("\n", printer->file);
    }
    if (conv->pointwise.n_instructions)
        gb_pointwise_print(printer, &conv->pointwise);
}

void gb_conv_problem_print(const gb_printer *printer, const void *conv_problem)
{
    const gb_conv_problem *conv = conv_problem;
    if (conv->producer) {
        fputs("producer: ", printer->file);
        print_conv(printer, conv->producer);
    }
    print_conv(printer, conv);
}

/* Weight gradients ----------------------------------------------------------------------------- */

static void print_side(const gb_printer *printer, const char *name,
        const gb_gradient_problem *gradient, const gb_gradient_side *side)
{
    int64_t strides[GB_AXES + 1] = {
            [BATCH] = side->axes[0].src_stride, [CHANNELS] = side->channel_stride};
    for (int a = 1; a < gradient->n_axes; a++)
        strides[POSITIONS + a - 1] = side->axes[a].src_stride;
    print_tensor(printer, name, side->type, side->buffer, gradient->n_axes + 1, strides);
    fputs("\n", printer->file);
}

void gb_gradient_problem_print(const gb_printer *printer, const void *gradient_problem)
{
    const gb_gradient_problem *gradient = gradient_problem;
    const gb_gradient_side *plain = &gradient->sides[GB_GRADIENT_PLAIN];
    const gb_gradient_side *window = &gradient->sides[GB_GRADIENT_WINDOW];
    int64_t in[GB_AXES + 1], out[GB_AXES + 1];
    conv_text text = {.n = gradient->n_axes - 1};
    for (int a = 0; a < gradient->n_axes; a++) {
        const gb_gradient_axis *axis = &window->axes[a];
        in[a + 1] = axis->in;
        out[a + 1] = gradient->out[a];
        if (a == 0)
            continue;
        text.taps[a - 1] = axis->kernel;
        text.strides[a - 1] = axis->stride;
        text.input_dilations[a - 1] = 1;
        text.pads[a - 1] = axis->pad;
        text.dilations[a - 1] = axis->dilation;
    }
    fputs("conv gradient of ", printer->file);
    print_image(printer, out, gradient->groups * plain->channels, gradient->n_axes);
    fputs(" by weights over ", printer->file);
    print_image(printer, in, gradient->groups * window->channels, gradient->n_axes);
    print_window(printer, &text, gradient->groups);
    print_side(printer, "plain", gradient, plain);
    print_side(printer, "window", gradient, window);
    gb_pointwise_print(printer, &gradient->pointwise);
}
