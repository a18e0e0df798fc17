/* Lowers convolutions of both directions: pointwise ones are plain products, all others convolution
 * problems. */
#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/conv/conv_formats.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/cpu/lower.h"
#include "kernels/gemm/gemm_plan.h"
#include "kernels/isa/costs.h"
#include "kernels/plan/channels_last.h"
#include "kernels/plan/dequantization.h"

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

/* Depthwise kernels have channels along vectors where they lie last, and positions otherwise: of
 * these a line should be several vectors long. One AVX2 thread, 3x3, time with channels last to that with channels
 * first: 28 positions 0.88, 14 0.71, 7 0.33; every second of 28 0.64, of 14 0.37. */
static bool has_short_lines(const gb_logical_tensor *src)
{
    int64_t line = src->dims[src->ndims - 1];
    return line >= 0 && line < 4 * (int64_t)gb_machine_get()->lanes;
}

static bool is_depthwise(const gb_op *op)
{
    const gb_logical_tensor *src = gb_op_input(op, SRC);
    int64_t groups = gb_op_attr_s64(op, GB_ATTR_GROUPS, 1);
    return src->ndims > 2 && groups > 1 && groups == src->dims[1] &&
           groups == gb_op_output(op, 0)->dims[1];
}

/* Channels of a position lie in one line. */
static uint32_t conv_reads_formats(const gb_op *op, uint32_t input, gb_format_candidate *candidates)
{
    const gb_logical_tensor *src = gb_op_input(op, SRC);
    bool depthwise = is_depthwise(op) && has_short_lines(src);
    bool gains = gb_op_attr_s64(op, GB_ATTR_GROUPS, 1) == 1 || depthwise;
    if (input != SRC || !gains || !gb_has_channels_first(op))
        return 0;
    candidates[0] = (gb_format_candidate){
            .format = gb_channels_last(src->ndims), .gain = GB_CACHE_LINE, .kept = depthwise};
    return candidates[0].format != NULL;
}

/* Tiles have output channels along vectors, and need not be transposed. Depthwise kernels write
 * what they read. */
uint32_t gb_conv_writes_formats(const gb_graph *graph, const gb_group *group, const gb_op *op,
        uint32_t value, gb_format_candidate *candidates)
{
    const gb_logical_tensor *tensor = &graph->values[value].tensor;
    gb_conv_problem conv = {0};
    if (op->kind != GB_OP_CONVOLUTION || gb_conv_describe_op(op, &conv) != GB_SUCCESS ||
            !gb_may_write_channels_last(graph, group, op, value))
        return 0;
    if (is_depthwise(op) ? !gb_source_lies_channels_last(graph, group, op->inputs[SRC])
                         : conv.groups != 1 || conv.out_channels < GB_CHANNELS_LAST)
        return 0;
    double bytes = (double)gb_data_type_bytes(tensor->data_type, 1);
    for (int d = 0; d < tensor->ndims; d++)
        bytes *= (double)tensor->dims[d];
    candidates[0] = (gb_format_candidate){.format = gb_channels_last(tensor->ndims), .gain = bytes};
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
