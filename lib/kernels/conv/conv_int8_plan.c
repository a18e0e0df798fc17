/* Plans convolutions of quantized values, and packs their weights. */
#include "kernels/conv/conv_vnni.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/conv/conv_depthwise.h"
#include "kernels/conv/conv_winograd.h"
#include "kernels/cpu/step_call.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL };

/* Weights -------------------------------------------------------------------------------------- */

typedef struct packing {
    const gb_kernels *kernels;
    int vnni_factor;
    int64_t first, groups, group_stride, n, n_stride, channels, channel_stride;
    int64_t block, words; /* of input channels: in a block, in all */
    int64_t taps;
    int n_taps;
    int64_t tap_dims[GB_AXES], tap_strides[GB_AXES];
    bool filtered;      /* panels are transformed for minimal filtering, from ... */
    gb_scratch packed;  /* ... a packed one */
    int64_t zero_point; /* of the source, as its quantized values are moved */
    float scale;
    uint32_t src, dst, terms, factors;
    int64_t n_scales;
    float scales[];
} packing;

static int64_t panel_words(const packing *p)
{
    return p->words * (p->filtered ? GB_WINOGRAD_PRODUCTS : p->taps) * PANEL;
}

static int64_t tap_offset(const packing *p, int64_t tap)
{
    int64_t offset = 0;
    for (int i = p->n_taps; i-- > 0; tap /= p->tap_dims[i])
        offset += tap % p->tap_dims[i] * p->tap_strides[i];
    return offset;
}

/* Blocks of channels, in each all taps. */
static void pack_panel(const packing *p, const char *src, int64_t columns, int32_t *dst)
{
    gb_dot_pack pack = {.vnni_factor = p->vnni_factor,
            .is_signed = true,
            .n = columns,
            .k_stride = p->channel_stride,
            .n_stride = p->n_stride,
            .dst_row = PANEL,
            .panel_stride = PANEL,
            .dst = dst};
    for (int64_t word = 0; word < p->words; word += p->block) {
        int64_t first = word * p->vnni_factor, n = gb_min_i64(p->block, p->words - word);
        pack.k = gb_min_i64(n * p->vnni_factor, p->channels - first);
        for (int64_t tap = 0; tap < p->taps; tap++) {
            pack.src = src + first * p->channel_stride + tap_offset(p, tap);
            p->kernels->dot_pack(&pack);
            pack.dst += n * PANEL;
        }
    }
}

static void transform_panel(const packing *p, const int32_t *packed, int32_t *dst)
{
    const gb_winograd_weights weights = {.pairs = true,
            .taps = (const float *)(const void *)packed,
            .terms = p->words,
            .dst = (float *)(void *)dst};
    p->kernels->winograd_weights(&weights);
}

static void pack_weights(const gb_step_call *call)
{
    const packing *p = call->params;
    int64_t begin, end, panels = gb_div_up(p->n, PANEL);
    while (gb_take_items(call, p->groups * panels, &begin, &end))
        for (int64_t i = begin; i < end; i++) {
            int64_t group = i / panels, n = i % panels * PANEL,
                    columns = gb_min_i64(PANEL, p->n - n);
            const char *src = call->buffers[p->src];
            int32_t *dst = (int32_t *)call->buffers[p->dst] + i * panel_words(p);
            int32_t *terms = (int32_t *)call->buffers[p->terms] + i * PANEL;
            float *factors = (float *)call->buffers[p->factors] + i * PANEL;
            int32_t *packed = p->filtered ? gb_scratch_get(call, p->packed) : dst;
            pack_panel(
                    p, src + p->first + group * p->group_stride + n * p->n_stride, columns, packed);
            if (p->filtered)
                transform_panel(p, packed, dst);
            gb_dot_sums sums = {.vnni_factor = p->vnni_factor,
                    .is_signed = true,
                    .words = packed,
                    .n = PANEL,
                    .stride = 1,
                    .k = p->words * p->taps,
                    .step = PANEL,
                    .sums = terms};
            p->kernels->dot_sums(&sums);
            for (int64_t c = 0; c < PANEL; c++) {
                terms[c] = (int32_t)((uint32_t)terms[c] * (uint32_t)-p->zero_point);
                factors[c] = p->scale * p->scales[(group * p->n + n + c) % p->n_scales];
            }
        }
}

/* Lines of taps, then the taps of a line, which runs along the tile axis. */
static void order_filtered(const gb_conv_plan *conv, int order[GB_AXES])
{
    order[0] = 0;
    order[1] = conv->n_axes - conv->tile_axis;
    order[2] = conv->tile_axis;
}

static packing *describe_packing(
        gb_step *step, const gb_conv_problem *problem, const gb_conv_product *plan)
{
    const gb_conv_plan *conv = &plan->conv;
    int order[GB_AXES], n_taps = gb_conv_tap_order(conv, order);
    size_t bytes = (size_t)problem->n_scales * sizeof(float);
    packing *p = gb_step_alloc(step, 1, sizeof *p + bytes);
    if (!p)
        return NULL;
    p->kernels = conv->kernels;
    p->vnni_factor = plan->vnni->form.vnni_factor;
    p->first = problem->first_weight;
    p->groups = problem->groups;
    p->group_stride = problem->group_stride;
    p->n = problem->out_channels;
    p->n_stride = problem->out_stride;
    p->channels = problem->in_channels;
    p->channel_stride = problem->in_stride;
    p->block = conv->in_block;
    p->words = conv->in_channels;
    p->taps = conv->taps;
    p->n_taps = n_taps;
    p->filtered = plan->winograd;
    if (p->filtered) {
        order_filtered(conv, order);
        p->packed = gb_scratch_add(step, gb_float_bytes(p->words * p->taps * PANEL));
    }
    for (int i = 0; i < p->n_taps; i++) {
        p->tap_dims[i] = problem->axes[order[i]].kernel;
        p->tap_strides[i] = problem->axes[order[i]].tap_stride;
    }
    p->zero_point = plan->vnni->zero_point + (plan->vnni->flip ? 128 : 0);
    p->scale = problem->scale;
    p->n_scales = problem->n_scales;
    memcpy(p->scales, problem->scales, bytes);
    step->run = pack_weights;
    step->params = p;
    step->params_bytes = sizeof *p + bytes;
    return p;
}

/* Adds a temporary that both steps use. */
static gb_status add_result(gb_program *program, gb_step *made, gb_step *read, size_t count,
        uint32_t *written_slot, uint32_t *read_slot)
{
    size_t bytes;
    uint32_t buffer;
    if (!gb_size_mul(count, sizeof(int32_t), &bytes) || bytes > INT64_MAX)
        return gb_fail(GB_OUT_OF_MEMORY, "packed weights do not fit the address space");
    GB_TRY(gb_program_temporary(program, bytes, &buffer));
    GB_TRY(gb_step_use_buffer(made, buffer, true, written_slot));
    return gb_step_use_buffer(read, buffer, false, read_slot);
}

gb_status gb_conv_int8_add_weights(
        gb_program *program, gb_step *step, const gb_conv_problem *problem, gb_conv_product *plan)
{
    gb_conv_plan *conv = &plan->conv;
    size_t columns = (size_t)(conv->groups * gb_div_up(conv->out_channels, PANEL) * PANEL), count;
    gb_step *made;
    GB_TRY(gb_program_begin(program, "pack", &made));
    packing *p = describe_packing(made, problem, plan);
    if (!p)
        return GB_OUT_OF_MEMORY;
    if (!gb_size_mul(columns / PANEL, (size_t)panel_words(p), &count))
        return gb_fail(GB_OUT_OF_MEMORY, "packed weights do not fit the address space");
    made->work = 4 * (double)count;
    GB_TRY(gb_step_use_buffer(made, problem->weights_buffer, false, &p->src));
    GB_TRY(add_result(program, made, step, count, &p->dst, &conv->weights));
    GB_TRY(add_result(program, made, step, columns, &p->terms, &plan->vnni->terms));
    GB_TRY(add_result(program, made, step, columns, &p->factors, &plan->vnni->factors));
    return gb_program_add(program, made);
}

/* Plan ----------------------------------------------------------------------------------------- */

bool gb_conv_sums_integers(const gb_conv_problem *problem)
{
    enum { MOST_TERMS = 1 << 16 };
    double terms = (double)problem->in_channels;
    for (int a = 0; a < problem->n_axes; a++) {
        if (problem->axes[a].input_dilation != 1)
            return false;
        terms *= (double)problem->axes[a].kernel;
    }
    return problem->n_scales > 0 && terms > 0 && terms <= MOST_TERMS;
}

/* Pointwise ones are products of matrices, which take quantized values themselves. */
bool gb_conv_int8_fits(const gb_conv_problem *problem)
{
    return gb_conv_sums_integers(problem) && !gb_conv_is_pointwise(problem) &&
           !gb_conv_is_depthwise(problem);
}

gb_conv_vnni gb_conv_int8_begin(const gb_conv_problem *problem)
{
    gb_conv_vnni int8 = {.channels = problem->in_channels,
            .zero_point = (int64_t)problem->zero_point,
            .form = gb_kernels_get()->dot_form(false),
            .is_signed = problem->src_type == GB_S8};
    int vnni_factor = int8.form.vnni_factor;
    int8.flip = int8.is_signed && vnni_factor == 4;
    uint32_t code = (uint32_t)(int8.zero_point + (int8.flip ? 128 : 0)), word = 0;
    for (int i = 0; i < vnni_factor; i++)
        word |= (code & (vnni_factor == 4 ? 0xFF : 0xFFFF)) << (i * 32 / vnni_factor);
    int8.fill = (int32_t)word;
    return int8;
}

gb_status gb_conv_int8_plan(gb_program *program, gb_step *step, const gb_conv_problem *problem)
{
    gb_conv_vnni *int8 = gb_step_alloc(step, 1, sizeof *int8);
    gb_conv_product *plan;
    if (!int8)
        return GB_OUT_OF_MEMORY;
    *int8 = gb_conv_int8_begin(problem);
    GB_TRY(gb_conv_product_choose(step, problem, int8, gb_program_threads(program), &plan));
    GB_TRY(gb_conv_int8_add_weights(program, step, problem, plan));
    return gb_step_use_buffer(step, problem->src_buffer, false, &plan->conv.src);
}
