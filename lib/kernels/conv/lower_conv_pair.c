/* Lowers a pointwise convolution and a depthwise one behind it, with the post-ops that follow
 * either. */
#include "base/status.h"
#include "fusion/regions/regions.h"
#include "kernels/conv/conv_pair.h"
#include "kernels/cpu/lower.h"

static bool conv_pair_accepts(const gb_graph *graph, const void *parts)
{
    gb_conv_problem producer = {0}, conv = {0};
    (void)graph;
    return gb_conv_describe_pair(parts, &producer, &conv) == GB_SUCCESS && gb_conv_pair_fits(&conv);
}

static gb_status conv_pair_lower(gb_program *program, const gb_group *group)
{
    gb_conv_problem producer = {0}, conv = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "conv pair", &step));
    GB_TRY(gb_conv_read_pair(program, group, step, &producer, &conv));
    return gb_conv_add(program, step, &conv);
}

const gb_region_lowering gb_lowering_conv_pair = {
        .region = &gb_region_conv_pair, .accepts = conv_pair_accepts, .lower = conv_pair_lower};
