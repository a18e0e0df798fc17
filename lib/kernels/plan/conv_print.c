/* Text of convolution problems: images as batch x channels x positions, taps and attributes per
 * spatial axis; what is as usual is left out. */
#include "kernels/plan/conv_gradient_problem.h"
#include "kernels/plan/conv_problem.h"

#include <inttypes.h>

enum { IN, OUT, KERNEL, STRIDE, INPUT_DILATION, PAD, DILATION, NUMBERS };

/* What is said of all axes, number by number. */
typedef struct conv_text {
    int n_axes;
    int64_t numbers[NUMBERS][GB_AXES];
} conv_text;

static const struct {
    const char *name;
    int number;
    int64_t usual;
} attributes[] = {{"strides", STRIDE, 1}, {"input_dilations", INPUT_DILATION, 1}, {"pads", PAD, 0},
        {"dilations", DILATION, 1}};

/* One number per spatial axis: 3x3. */
static void print_axes(const conv_text *text, int number, FILE *out)
{
    for (int a = 1; a < text->n_axes; a++)
        fprintf(out, "%s%" PRId64, a > 1 ? "x" : "", text->numbers[number][a]);
}

static void print_image(
        const conv_text *text, int number, gb_data_type type, int64_t channels, FILE *out)
{
    fprintf(out, "%s:%" PRId64 "x%" PRId64 "x", gb_data_type_name(type), text->numbers[number][0],
            channels);
    print_axes(text, number, out);
}

static void print_attributes(const conv_text *text, int64_t groups, FILE *out)
{
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        bool unusual = false;
        for (int a = 1; a < text->n_axes; a++)
            unusual = unusual || text->numbers[attributes[i].number][a] != attributes[i].usual;
        if (!unusual)
            continue;
        fprintf(out, " %s=", attributes[i].name);
        print_axes(text, attributes[i].number, out);
    }
    if (groups != 1)
        fprintf(out, " groups=%" PRId64, groups);
}

static gb_data_type type_of(const gb_pointwise_operand *result)
{
    return result ? result->type : GB_F32;
}

/* Where channels lie, and how quantized values are to be read. */
static void print_memory(const gb_conv_problem *conv, const gb_pointwise_operand *result, FILE *out)
{
    const gb_conv_axis *last = &conv->axes[conv->n_axes - 1];
    if (!conv->producer && conv->src_channel_stride == 1 && last->src_stride != 1)
        fputs(" source=channels_last", out);
    if (result && result->strides[conv->channel_dim] == 1 && result->strides[last->dim] != 1)
        fputs(" result=channels_last", out);
    if (conv->zero_point != 0)
        fprintf(out, " zero_point=%g", (double)conv->zero_point);
    if (conv->n_scales > 0)
        fprintf(out, " scale=%g weights_scales=%" PRId64, (double)conv->scale, conv->n_scales);
    if (conv->bias.type != GB_UNDEF)
        fprintf(out, " bias=%s", gb_data_type_name(conv->bias.type));
}

static void print_conv(const gb_conv_problem *conv, FILE *out)
{
    const gb_pointwise_operand *result = gb_conv_result(&conv->pointwise);
    conv_text text = {.n_axes = conv->n_axes};
    for (int a = 0; a < conv->n_axes; a++) {
        const gb_conv_axis *axis = &conv->axes[a];
        const int64_t numbers[NUMBERS] = {[IN] = axis->in,
                [OUT] = axis->out,
                [KERNEL] = axis->kernel,
                [STRIDE] = axis->stride,
                [INPUT_DILATION] = axis->input_dilation,
                [PAD] = axis->pad,
                [DILATION] = axis->dilation};
        for (int i = 0; i < NUMBERS; i++)
            text.numbers[i][a] = numbers[i];
    }
    fputs("conv ", out);
    print_image(&text, OUT, type_of(result), conv->groups * conv->out_channels, out);
    fputs(" = ", out);
    print_image(&text, IN, conv->src_type, conv->groups * conv->in_channels, out);
    fprintf(out, " * %s:", gb_data_type_name(conv->weights_type));
    print_axes(&text, KERNEL, out);
    print_attributes(&text, conv->groups, out);
    print_memory(conv, result, out);
    fputc('\n', out);
}

void gb_conv_problem_print(const gb_conv_problem *conv, FILE *out)
{
    print_conv(conv, out);
    if (!conv->producer)
        return;
    fputs("  its source: ", out);
    print_conv(conv->producer, out);
}

void gb_gradient_problem_print(const gb_gradient_problem *gradient, FILE *out)
{
    const gb_gradient_side *plain = &gradient->sides[GB_GRADIENT_PLAIN];
    const gb_gradient_side *window = &gradient->sides[GB_GRADIENT_WINDOW];
    conv_text text = {.n_axes = gradient->n_axes};
    for (int a = 0; a < gradient->n_axes; a++) {
        const gb_gradient_axis *axis = &window->axes[a];
        const int64_t numbers[NUMBERS] = {[IN] = axis->in,
                [OUT] = gradient->out[a],
                [KERNEL] = axis->kernel,
                [STRIDE] = axis->stride,
                [INPUT_DILATION] = 1,
                [PAD] = axis->pad,
                [DILATION] = axis->dilation};
        for (int i = 0; i < NUMBERS; i++)
            text.numbers[i][a] = numbers[i];
    }
    fprintf(out,
            "conv gradient %s:", gb_data_type_name(type_of(gb_conv_result(&gradient->pointwise))));
    print_axes(&text, KERNEL, out);
    fputs(" = ", out);
    print_image(&text, OUT, plain->type, gradient->groups * plain->channels, out);
    fputs(" * ", out);
    print_image(&text, IN, window->type, gradient->groups * window->channels, out);
    print_attributes(&text, gradient->groups, out);
    fputc('\n', out);
}
