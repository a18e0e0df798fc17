/* Lowers a pointwise convolution and a depthwise one behind it, with the post-ops that follow
 * either. */
#include "base/machine.h"
#include "base/parallel.h"
#include "base/status.h"
#include "fusion/regions/regions.h"
#include "kernels/conv/conv_pair.h"
#include "kernels/cpu/lower.h"

/* Does the image between the two leave the caches? One that stays there is written and read faster by
 * two kernels, each in blocks of its own. One and two threads of AVX2, time as one kernel to that as
 * two: eight shapes of 0.8 to 6.4 MB 0.69 to 1.31, 1.14 in geometric mean; three of 51 MB 0.90 to
 * 1.20, 1.05. */
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
