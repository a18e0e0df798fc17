/* Plans convolutions that multiply bf16 as such. */
#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv/conv_vnni.h"
#include "kernels/cpu/step_call.h"

/* With few channels tiles are mostly empty, though channels of the taps of a line share them: tiles of floats are
 * faster then, and than the vectors of bf16 that take the place of tiles where less than a quarter would be full
 * (dot_amx.c). */
static bool fills_tiles(const gb_conv_problem *problem)
{
    const gb_dot_form form = gb_kernels_get()->dot_form(true);
    const gb_machine *machine = gb_machine_get();
    const gb_conv_axis *last = &problem->axes[problem->n_axes - 1];
    const int64_t taps = last->dilation == 1 ? last->kernel : 1;
    const int64_t words = taps * gb_div_up(problem->in_channels, form.vnni_factor);
    const int64_t multiplied = gb_div_up(words, form.group_step) * form.group_step;
    const double as_bf16 = (double)multiplied / machine->bf16_groups;
    return 4 * words >= form.group_step &&
           as_bf16 < (double)(taps * problem->in_channels) / machine->multiply_adds;
}

bool gb_conv_bf16_fits(const gb_conv_problem *problem)
{
    if (gb_machine_get()->bf16_groups == 0 || problem->producer || problem->n_scales > 0 ||
            problem->src_type != GB_BF16 || problem->weights_type != GB_BF16)
        return false;
    for (int a = 0; a < problem->n_axes; a++)
        if (problem->axes[a].input_dilation != 1)
            return false;
    return fills_tiles(problem);
}

gb_status gb_conv_bf16_plan(gb_program *program, gb_step *step, const gb_conv_problem *problem)
{
    gb_conv_vnni *vnni = gb_step_alloc(step, 1, sizeof *vnni);
    gb_conv_product *plan;
    uint32_t packed;
    if (!vnni)
        return GB_OUT_OF_MEMORY;
    *vnni = (gb_conv_vnni){.channels = problem->in_channels,
            .form = gb_kernels_get()->dot_form(true),
            .floats = true};
    GB_TRY(gb_conv_product_choose(step, problem, vnni, gb_program_threads(program), &plan));
    GB_TRY(gb_conv_pack_weights(program, problem, &plan->conv, problem->out_stride, false,
            vnni->form.vnni_factor, &packed));
    GB_TRY(gb_step_use_buffer(step, packed, false, &plan->conv.weights));
    return gb_step_use_buffer(step, problem->src_buffer, false, &plan->conv.src);
}
