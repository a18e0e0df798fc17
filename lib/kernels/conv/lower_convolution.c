/* Lowers convolutions of both directions: pointwise ones are plain products, all others convolution
 * problems. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/conv/conv_formats.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/cpu/lower.h"
#include "kernels/gemm/gemm_plan.h"
#include "kernels/isa/costs.h"
#include "kernels/plan/dequantization.h"

#include <string.h>

enum { SRC, WEIGHTS };

static gb_status conv_lower(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    gb_conv_problem conv = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "conv", &step));
    GB_TRY(gb_conv_read_group(program, group, step, &conv));
    if (!gb_conv_is_pointwise(&conv))
        return gb_conv_add(program, step, &conv);
    gb_gemm_problem gemm = {0};
    GB_TRY(gb_conv_read_product(program, group, step, &conv, &gemm));
    return gb_gemm_add(program, step, &gemm);
}

/* Formats -------------------------------------------------------------------------------------- */

/* Channels last, where the op has them first: acdb, ...; NULL otherwise. */
static const gb_format *channels_last(const gb_op *op, int ndims)
{
    const gb_format *format;
    char text[GB_FORMAT_TEXT], *end = text;
    if (ndims < 3 || !gb_op_attr_is(op, GB_ATTR_DATA_FORMAT, "NCX", false))
        return NULL;
    *end++ = 'a';
    for (int d = 2; d < ndims; d++)
        *end++ = (char)('a' + d);
    strcpy(end, "b");
    return gb_format_parse(text, &format) == GB_SUCCESS ? format : NULL;
}

/* Channels of a position lie in one line. */
static uint32_t conv_reads_formats(const gb_op *op, uint32_t input, gb_format_candidate *candidates)
{
    if (input != SRC || gb_op_attr_s64(op, GB_ATTR_GROUPS, 1) != 1)
        return 0;
    const gb_logical_tensor *src = gb_op_input(op, SRC);
    candidates[0] = (gb_format_candidate){channels_last(op, src->ndims), GB_CACHE_LINE};
    return candidates[0].format != NULL;
}

/* Is the op between an input of the convolution and what it was made of? */
static bool is_in_front(const gb_graph *graph, const gb_op *conv, const gb_op *op)
{
    for (uint32_t i = SRC; i <= WEIGHTS; i++)
        for (uint32_t producer = graph->values[conv->inputs[i]].producer; producer != GB_NONE;
                producer = graph->values[graph->ops[producer]->inputs[0]].producer)
            if (producer == op->index)
                return true;
    return false;
}

/* Do post-ops read tensors of the result's size, which are hardly laid out with channels last? */
static bool has_side_images(const gb_graph *graph, const gb_group *group, const gb_op *conv)
{
    bool sides = false;
    for (uint32_t i = 0; i < group->n_ops; i++) {
        const gb_op *op = graph->ops[group->ops[i]];
        if (op == conv || is_in_front(graph, conv, op))
            continue;
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t producer = graph->values[op->inputs[k]].producer;
            bool inside =
                    producer != GB_NONE &&
                    (producer == conv->index || gb_lists_op(group->n_ops, group->ops, producer));
            sides = sides || (!inside && gb_dims_equal(gb_op_input(op, k), gb_op_output(conv, 0)));
        }
    }
    return sides;
}

/* Part of the vectors that rows of positions of one image leave empty, as products have them with
 * channels first. */
static double wasted(const gb_logical_tensor *dst)
{
    int64_t positions = 1;
    for (int d = 2; d < dst->ndims; d++)
        positions *= dst->dims[d];
    int64_t panels = gb_div_up(positions, GB_GEMM_PANEL) * GB_GEMM_PANEL;
    return panels ? 1 - (double)positions / (double)panels : 0;
}

/* Tiles have output channels along vectors, and need not be transposed. Pointwise ones of floats
 * have positions there, if the result does. */
uint32_t gb_conv_writes_formats(const gb_graph *graph, const gb_group *group, const gb_op *op,
        uint32_t value, gb_format_candidate *candidates)
{
    const gb_logical_tensor *tensor = &graph->values[value].tensor;
    gb_conv_problem conv = {0};
    if (op->kind != GB_OP_CONVOLUTION || gb_conv_describe_op(op, &conv) != GB_SUCCESS ||
            conv.groups != 1 || conv.out_channels < GB_CHANNELS_LAST ||
            !gb_dims_equal(tensor, gb_op_output(op, 0)) || group->n_outputs > 1 ||
            has_side_images(graph, group, op))
        return 0;
    size_t bytes = gb_data_type_bytes(tensor->data_type, 1);
    double saved = gb_conv_is_pointwise(&conv) && bytes > 1 ? wasted(tensor) : 1;
    if (saved < 0.05)
        return 0;
    for (int d = 0; d < tensor->ndims; d++)
        saved *= (double)tensor->dims[d];
    candidates[0] = (gb_format_candidate){channels_last(op, tensor->ndims), saved * (double)bytes};
    return candidates[0].format != NULL;
}

static uint32_t conv_writes_formats(const gb_graph *graph, const gb_group *group, uint32_t value,
        gb_format_candidate *candidates)
{
    return gb_conv_writes_formats(graph, group, graph->ops[group->anchor], value, candidates);
}

const gb_lowering gb_lowering_convolution = {.name = "convolution",
        .supports = gb_convolution_types_float,
        .takes_epilogue = true,
        .fuses_producer = gb_conv_takes_prologue,
        .reads_formats = conv_reads_formats,
        .writes_formats = conv_writes_formats,
        .lower = conv_lower};

/* Weights with input channels where a convolution has output channels: nothing else differs. */
const gb_lowering gb_lowering_conv_transpose_backward_data = {
        .name = "convolution", .supports = gb_all_types_float, .lower = conv_lower};
