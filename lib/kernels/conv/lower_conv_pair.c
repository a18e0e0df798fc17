/* Lowers a pointwise convolution and a depthwise one behind it, with the post-ops that follow
 * either. */
#include "base/machine.h"
#include "base/parallel.h"
#include "base/status.h"
#include "fusion/regions/regions.h"
#include "kernels/conv/conv_pair.h"
#include "kernels/cpu/lower.h"

/* Does the image between the two leave the caches? One that stays there is written and read faster by
 * two kernels, each in blocks of its own. Two threads of AVX2, as one kernel beside two: 0.8 to 1.6
 * MB 1.1 to 1.2 in 9 of 11 shapes, 51 to 58 MB 0.77 to 1.03. */
static bool leaves_caches(const gb_conv_problem *producer)
{
    const gb_machine *machine = gb_machine_get();
    double bytes = sizeof(float) * (double)(producer->groups * producer->out_channels);
    for (int a = 0; a < producer->n_axes; a++)
        bytes *= (double)producer->axes[a].out;
    return bytes >= (machine->l3_bytes ? (double)machine->l3_bytes / 4
                                       : 2.0 * (double)machine->l2_bytes * gb_max_threads());
}

static bool conv_pair_accepts(const gb_graph *graph, const void *parts)
{
    gb_conv_problem producer = {0}, conv = {0};
    (void)graph;
    return gb_conv_describe_pair(parts, &producer, &conv) == GB_SUCCESS &&
           gb_conv_pair_fits(&conv) && leaves_caches(&producer);
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
