/* Plans depthwise convolutions of 8-bit quantized values, and packs their weights. */
#include "kernels/conv/conv_depthwise_int8.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/conv/conv_depthwise.h"
#include "kernels/conv/conv_views.h"
#include "kernels/conv/conv_vnni.h"
#include "kernels/cpu/step_call.h"

#include <string.h>

enum { COLUMNS = GB_DEPTHWISE_COLUMNS };

/* Source channels that lie together, enough of them to fill vectors. */
bool gb_conv_depthwise_int8_fits(const gb_conv_problem *problem)
{
    enum { LEAST_CHANNELS = 16 };
    return !problem->producer && gb_conv_sums_integers(problem) && gb_conv_is_depthwise(problem) &&
           problem->out_channels == 1 && problem->groups >= LEAST_CHANNELS &&
           problem->src_channel_stride == 1;
}

/* Weights -------------------------------------------------------------------------------------- */

typedef struct packing {
    int64_t channels, padded, channel_stride; /* of the weights */
    int64_t taps;
    const int64_t *offsets; /* of the taps in the weights */
    float scale;
    uint32_t src, dst;
    int64_t n_scales;
    const float *scales;
} packing;

static void pack_weights(const gb_step_call *call)
{
    const packing *p = call->params;
    int64_t begin, end;
    const int8_t *src = call->buffers[p->src];
    float *factors = call->buffers[p->dst];
    int16_t *weights = (int16_t *)(void *)(factors + p->padded);
    while (gb_take_items(call, p->padded / COLUMNS, &begin, &end))
        for (int64_t c = begin * COLUMNS; c < end * COLUMNS; c++) {
            const bool counts = c < p->channels;
            factors[c] = counts ? p->scale * p->scales[c % p->n_scales] : 0;
            for (int64_t t = 0; t < p->taps; t++)
                weights[t * p->padded + c] =
                        counts ? src[c * p->channel_stride + p->offsets[t]] : 0;
            weights[p->taps * p->padded + c] = 0;
        }
}

/* The last axis counts fastest. */
static void list_taps(const gb_conv_problem *problem, int64_t taps, int64_t *offsets)
{
    for (int64_t t = 0; t < taps; t++) {
        int64_t rest = t;
        offsets[t] = problem->first_weight;
        for (int a = problem->n_axes; a-- > 0; rest /= problem->axes[a].kernel)
            offsets[t] += rest % problem->axes[a].kernel * problem->axes[a].tap_stride;
    }
}

static gb_status add_packing(gb_program *program, gb_step *step, const gb_conv_problem *problem,
        gb_conv_depthwise_int8 *plan)
{
    gb_step *made;
    uint32_t buffer;
    size_t bytes;
    GB_TRY(gb_program_begin(program, "pack", &made));
    packing *p = gb_step_alloc(made, 1, sizeof *p);
    int64_t *offsets = gb_step_alloc(made, (size_t)plan->lines.taps, sizeof *offsets);
    float *scales = gb_step_alloc(made, (size_t)problem->n_scales, sizeof *scales);
    if (!p || !offsets || !scales)
        return GB_OUT_OF_MEMORY;
    list_taps(problem, plan->lines.taps, offsets);
    memcpy(scales, problem->scales, (size_t)problem->n_scales * sizeof *scales);
    *p = (packing){.channels = problem->groups,
            .padded = plan->weights_row,
            .channel_stride = problem->group_stride,
            .taps = plan->lines.taps,
            .offsets = offsets,
            .scale = problem->scale,
            .n_scales = problem->n_scales,
            .scales = scales};
    size_t channel = sizeof(float) + (size_t)(plan->lines.taps + 1) * sizeof(int16_t);
    if (!gb_size_mul((size_t)plan->weights_row, channel, &bytes) || bytes > INT64_MAX)
        return gb_fail(GB_OUT_OF_MEMORY, "packed weights do not fit the address space");
    made->run = pack_weights;
    made->params = p;
    made->work = 4 * (double)plan->weights_row * (double)plan->lines.taps;
    GB_TRY(gb_step_use_buffer(made, problem->weights_buffer, false, &p->src));
    GB_TRY(gb_program_temporary(program, bytes, &buffer));
    GB_TRY(gb_step_use_buffer(made, buffer, true, &p->dst));
    GB_TRY(gb_step_use_buffer(step, buffer, false, &plan->weights));
    return gb_program_add(program, made);
}

/* Plan ----------------------------------------------------------------------------------------- */

/* Even blocks of channels: enough work items for the threads, and weights that stay in L1. */
static void choose_blocks(gb_conv_depthwise_int8 *plan, int threads)
{
    enum { ITEMS = 16, MOST_CHANNELS = 1024, LEAST_CHANNELS = 64 };
    int64_t least = gb_div_up(plan->channels, MOST_CHANNELS);
    int64_t most = gb_max_i64(least, plan->channels / LEAST_CHANNELS);
    int64_t wanted =
            threads > 1 ? gb_div_up(ITEMS * threads, gb_max_i64(plan->lines.n_lines, 1)) : 1;
    int64_t blocks = gb_min_i64(gb_max_i64(wanted, least), most);
    plan->block = gb_div_up(gb_div_up(plan->channels, COLUMNS), blocks) * COLUMNS;
    plan->blocks = gb_div_up(plan->channels, plan->block);
}

static void add_scratch(gb_step *step, gb_conv_depthwise_int8 *plan)
{
    const gb_pointwise_program *epilogue = &plan->epilogue;
    plan->offsets = gb_scratch_add(step, 2 * (size_t)(plan->lines.taps + 1) * sizeof(int64_t));
    plan->views = gb_conv_add_views(step, epilogue);
    plan->tile_views = gb_conv_add_views(step, epilogue);
    plan->registers = gb_scratch_add(step, gb_pointwise_scratch(epilogue));
    plan->column_floats = gb_tile_post_ops_floats(epilogue, plan->block);
    plan->columns = gb_scratch_add(step, gb_float_bytes(plan->column_floats));
}

gb_status gb_conv_depthwise_int8_plan(
        gb_program *program, gb_step *step, const gb_conv_problem *problem)
{
    gb_conv_depthwise_int8 *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    *plan = (gb_conv_depthwise_int8){.epilogue = problem->pointwise,
            .channel_dim = problem->channel_dim,
            .kernels = gb_kernels_get(),
            .is_signed = problem->src_type == GB_S8,
            .zero_point = (int)problem->zero_point,
            .lines = gb_conv_lines_make(problem),
            .channels = problem->groups,
            .weights_row = (int64_t)gb_align_up((size_t)problem->groups, COLUMNS)};
    choose_blocks(plan, gb_program_threads(program));
    add_scratch(step, plan);
    GB_TRY(add_packing(program, step, problem, plan));
    step->work = 2 * gb_conv_lines_terms(&plan->lines) * (double)plan->channels;
    step->params = plan;
    return gb_step_use_buffer(step, problem->src_buffer, false, &plan->src);
}
