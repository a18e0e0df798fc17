/* Lowers a convolution of 8-bit quantized values: the Dequantize of source and weights, the
 * convolution in integers, and the post-ops behind it. */
#include "base/status.h"
#include "fusion/regions/regions.h"
#include "kernels/conv/conv_depthwise_int8.h"
#include "kernels/conv/conv_formats.h"
#include "kernels/conv/conv_vnni.h"
#include "kernels/cpu/lower.h"

static bool conv_int8_accepts(const gb_graph *graph, const void *parts)
{
    gb_conv_problem conv = {0};
    (void)graph;
    return gb_conv_describe_int8(parts, &conv) == GB_SUCCESS &&
           (gb_conv_int8_fits(&conv) || gb_conv_depthwise_int8_fits(&conv));
}

static gb_status conv_int8_lower(gb_program *program, const gb_group *group)
{
    gb_conv_problem conv = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "conv int8", &step));
    GB_TRY(gb_conv_read_int8(program, group, step, &conv));
    return gb_conv_add(program, step, &conv);
}

static uint32_t conv_int8_writes_formats(const gb_graph *graph, const gb_group *group,
        uint32_t value, gb_format_candidate *candidates)
{
    const gb_conv_int8_parts *parts = group->parts;
    if (parts->conv->kind != GB_OP_CONVOLUTION)
        return 0;
    return gb_conv_writes_formats(graph, group, parts->conv, value, candidates);
}

const gb_region_lowering gb_lowering_conv_int8 = {.region = &gb_region_conv_int8,
        .accepts = conv_int8_accepts,
        .lower = conv_int8_lower,
        .writes_formats = conv_int8_writes_formats};
const gb_region_lowering gb_lowering_conv_transpose_int8 = {
        .region = &gb_region_conv_transpose_int8,
        .accepts = conv_int8_accepts,
        .lower = conv_int8_lower};
