/* Planning of a convolution: which sides its tiles have, the order of its sums, its step. */
#include "kernels/conv/conv_dot.h"
#include "kernels/conv/conv_pair.h"

#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/cpu/step_call.h"
#include "kernels/gemm/packing.h"
#include "kernels/isa/costs.h"
#include "kernels/plan/anchor.h"

enum { PANEL = GB_GEMM_PANEL };

static int64_t result_stride(gb_conv *conv, int dim)
{
    return gb_pointwise_result(&conv->epilogue)->strides[dim];
}

/* As many positions as a tile can take; the axis along which the result is contiguous otherwise. */
static void choose_tile_axis(gb_conv *conv, int64_t rows)
{
    conv->tile_axis =
            conv->producer ? conv->n_axes - 1 : 0; /* rows of an image that is being made */
    for (int a = 1; a < conv->n_axes && !conv->producer; a++) {
        const gb_conv_axis *axis = &conv->axes[a], *best = &conv->axes[conv->tile_axis];
        int64_t filled = gb_min_i64(gb_div_up(axis->out, axis->input_dilation), rows);
        int64_t most = gb_min_i64(gb_div_up(best->out, best->input_dilation), rows);
        bool closer = result_stride(conv, axis->dim) <= result_stride(conv, best->dim);
        if (filled > most || (filled == most && closer))
            conv->tile_axis = a;
    }
    conv->skip_axis = -1;
    for (int a = conv->n_axes; a-- > 1;)
        if (a != conv->tile_axis && conv->axes[a].kernel > 1 && !(conv->dot && conv->dot->fill))
            conv->skip_axis = a;
}

/* Without taps, positions of the axis next to the tile axis can follow in the same line. */
static void join_axes(gb_conv *conv)
{
    int a = conv->tile_axis == conv->n_axes - 1 ? conv->n_axes - 2 : conv->n_axes - 1;
    const gb_conv_axis *tile = &conv->axes[conv->tile_axis], *axis = &conv->axes[a];
    bool join = !conv->depthwise && tile->kernel * axis->kernel == 1 &&
                tile->input_dilation * axis->input_dilation == 1;
    for (uint32_t i = 0; i < conv->epilogue.n_operands; i++) {
        const int64_t *strides = conv->epilogue.operands[i].strides;
        join = join && strides[axis->dim] == strides[tile->dim] * tile->out;
    }
    conv->joined_axis = join ? a : -1;
}

static double filled(int64_t count, int64_t item)
{
    return (double)count / (double)(gb_div_up(count, item) * item);
}

/* Few output channels leave vectors of channels empty: then positions go along the vectors. */
static void choose_sides(gb_conv *conv, gb_gemm_limits limits)
{
    gb_conv_axis *tile = &conv->axes[conv->tile_axis];
    int64_t lanes = limits.cols / 2;
    double narrow = conv->depthwise ? 0 : filled(conv->out_channels, lanes);
    int64_t line = tile->out * (conv->joined_axis < 0 ? 1 : conv->axes[conv->joined_axis].out);
    double wide = filled(line, lanes) * (double)gb_min_i64(conv->out_channels, 4) / 4;
    if (conv->joined_axis >= 0 && result_stride(conv, tile->dim) == 1)
        narrow *= gb_costs_get()->transposed;
    if (conv->depthwise && tile->input_dilation == 1)
        tile->interleave = gb_max_i64(1, tile->stride_in_copy);
    conv->wide = !conv->dot && tile->stride_in_copy <= tile->interleave &&
                 tile->input_dilation == 1 && wide > narrow &&
                 result_stride(conv, conv->channel_dim) != 1;
    if (!conv->wide)
        tile->interleave = 1;
    conv->channels_last = !conv->wide && (conv->depthwise || conv->src_channel_stride == 1);
    conv->transposed = !conv->wide && !conv->depthwise &&
                       result_stride(conv, conv->channel_dim) != 1 &&
                       result_stride(conv, tile->dim) == 1;
    conv->tile_cols = limits.cols;
    if (conv->wide) {
        int64_t rows = gb_min_i64(conv->out_channels, PANEL);
        conv->tile_rows = gb_div_up(rows, gb_div_up(rows, limits.rows));
        conv->group_positions = PANEL;
    } else {
        int64_t most = GB_TILE_ELEMENTS / PANEL, up = gb_min_i64(tile->input_dilation, most);
        int64_t rows = gb_min_i64(most / up, limits.rows), out = gb_div_up(line, up);
        conv->tile_rows = gb_div_up(out, gb_div_up(out, rows));
        conv->group_positions = most / (conv->tile_rows * up) * conv->tile_rows * up;
        if (conv->transposed && conv->joined_axis >= 0 && out > most) { /* whole cache lines */
            conv->tile_rows = gb_div_up(most, gb_div_up(most, rows));
            conv->group_positions = most;
        }
    }
    int along = conv->wide || conv->transposed ? tile->dim : conv->channel_dim;
    conv->direct = gb_pointwise_is_plain_store(&conv->epilogue) && result_stride(conv, along) == 1;
}

static void choose_depth(gb_conv *conv)
{
    conv->taps = conv->residues = conv->residue_most_taps = 1;
    for (int a = conv->n_axes; a-- > 0;) {
        gb_conv_axis *axis = &conv->axes[a];
        axis->residue_stride = conv->residues;
        conv->taps *= axis->kernel;
        conv->residues *= axis->residues;
        conv->residue_most_taps *= gb_conv_class_taps(axis, 0);
    }
    int64_t k_most = (int64_t)(gb_machine_get()->l1_bytes / (PANEL * sizeof(float)));
    int64_t most = gb_max_i64(1, k_most / conv->residue_most_taps);
    int64_t blocks = gb_max_i64(1, gb_div_up(conv->in_channels, most));
    conv->in_block = gb_max_i64(1, gb_div_up(conv->in_channels, blocks));
}

int gb_conv_tap_order(const gb_conv *conv, int order[GB_AXES])
{
    int n = 0;
    if (conv->skip_axis >= 0)
        order[n++] = conv->skip_axis;
    for (int a = 0; a < conv->n_axes; a++)
        if (a != conv->skip_axis)
            order[n++] = a;
    return n;
}

/* Taps along the rows of tiles, when the results of neighbouring rows read the same source rows. */
static void choose_run(gb_conv *conv)
{
    int order[GB_AXES], n = gb_conv_tap_order(conv, order),
                        a = conv->wide ? conv->row_axis : conv->tile_axis;
    conv->run = conv->run_step = 1;
    if (!conv->depthwise || conv->residues > 1 || a < 0)
        return;
    conv->run = gb_conv_axis_run(&conv->axes[a]);
    if (conv->run == 1)
        return;
    for (int i = n; order[--i] != a;)
        conv->run_step *= conv->axes[order[i]].kernel;
}

/* One tap of a class: where it starts in the copy, and its place in panels. `index` counts the taps
 * of the class. */
static void place_tap(const gb_conv *conv, const int64_t *first_taps, int64_t index,
        int64_t *source, int64_t *place)
{
    int order[GB_AXES], n = gb_conv_tap_order(conv, order);
    int64_t taps = 1;
    *source = *place = 0;
    for (int i = n; i-- > 0;) {
        const gb_conv_axis *axis = &conv->axes[order[i]];
        int64_t first = first_taps[order[i]], count = gb_conv_class_taps(axis, first);
        int64_t position = index % count * axis->dilation_in_copy;
        *source += position / axis->interleave * axis->copy_stride +
                   position % axis->interleave * (axis->extent / axis->interleave);
        *place += (first + index % count * axis->residues) * taps;
        taps *= axis->kernel;
        index /= count;
    }
}

static void conv_fill_offsets(const gb_conv *conv, int64_t channels, gb_conv_offsets offsets)
{
    for (int64_t class = 0, term = 0; class < conv->residues; class ++) {
        int64_t first_taps[GB_AXES], count = 1, source, place;
        for (int a = 0; a < conv->n_axes; a++) {
            first_taps[a] = class / conv->axes[a].residue_stride % conv->axes[a].residues;
            count *= gb_conv_class_taps(&conv->axes[a], first_taps[a]);
        }
        conv->residue_taps[class + 1] = conv->residue_taps[class] + count;
        for (int64_t tap = 0; tap < count; tap++) {
            place_tap(conv, first_taps, tap, &source, &place);
            for (int64_t c = 0; c < channels; c++, term++) {
                offsets.source[term] = source + c * conv->copy_channel_stride;
                offsets.panel[term] = (place * channels + c) * PANEL;
            }
        }
    }
}

static gb_status pack_weights(gb_program *program, gb_conv *conv)
{
    int order[GB_AXES];
    gb_packing packing = {.type = conv->weights_type,
            .first = conv->first_weight,
            .n = conv->out_channels,
            .n_stride = conv->out_stride,
            .inner = conv->in_channels,
            .inner_block = conv->in_block,
            .inner_stride = conv->in_stride,
            .n_taps = gb_conv_tap_order(conv, order),
            .n_batch = 1,
            .batch_dims = {conv->groups},
            .batch_strides = {conv->group_stride}};
    for (int i = 0; i < packing.n_taps; i++) {
        packing.tap_dims[i] = conv->axes[order[i]].kernel;
        packing.tap_strides[i] = conv->axes[order[i]].tap_stride;
    }
    return gb_packing_add(program, &packing, conv->weights_buffer, &conv->weights_buffer);
}

static gb_status conv_add_scratch(gb_conv *conv, gb_step *step)
{
    double size = gb_conv_lay_out(conv);
    if (size > 1e12)
        return gb_fail(GB_OUT_OF_MEMORY, "a convolution's window spans %.3g source elements", size);
    /* Wide tiles read whole vectors, up to a panel beyond the last position. */
    conv->copy_bytes = gb_float_bytes((int64_t)size + PANEL);
    conv->copy = gb_scratch_add(step, conv->copy_bytes);
    if (conv->in_block < conv->in_channels) {
        int64_t blocks[GB_AXES], lines = 1;
        for (int a = 0; a < conv->n_axes; a++) {
            blocks[a] = conv->axes[a].block;
            lines *= a == conv->tile_axis || a == conv->joined_axis ? 1 : blocks[a];
        }
        int64_t groups = gb_div_up(gb_conv_line(conv, blocks), conv->group_positions);
        int64_t sums = lines * groups * conv->out_block / PANEL * GB_TILE_ELEMENTS;
        conv->sums = gb_scratch_add(step, gb_float_bytes(sums));
    }
    if (conv->transposed)
        conv->transpose_buffer = gb_scratch_add(step, gb_float_bytes(GB_TILE_ELEMENTS));
    conv->registers = gb_scratch_add(step, gb_pointwise_scratch(&conv->epilogue));
    return GB_SUCCESS;
}

/* The plan as the step's parameters, the offsets behind it. */
static gb_status conv_plan_finish(gb_program *program, gb_step *step, const gb_conv *plan)
{
    int64_t k = plan->in_block * plan->taps;
    int64_t last = plan->in_channels % plan->in_block;
    size_t bytes;
    if (!gb_size_mul(5 * sizeof(int64_t), (size_t)k, &bytes))
        return gb_fail(GB_OUT_OF_MEMORY, "convolution with %lld taps", (long long)plan->taps);
    gb_conv *conv = gb_step_alloc(step, 1, sizeof *conv + bytes + sizeof(int64_t));
    if (!conv)
        return GB_OUT_OF_MEMORY;
    *conv = *plan;
    conv->producer = NULL;
    conv->dot = NULL;
    step->params = conv;
    if (plan->dot) {
        conv->dot = gb_step_alloc(step, 1, sizeof *conv->dot);
        if (!conv->dot)
            return GB_OUT_OF_MEMORY;
        *conv->dot = *plan->dot;
    }
    step->kernel = conv->depthwise ? "depthwise" : conv->dot ? "conv int8" : "conv";
    step->run = conv->depthwise ? gb_depthwise_run : gb_conv_run;
    GB_TRY(conv_add_scratch(conv, step));
    int64_t *lists = (int64_t *)(conv + 1);
    conv->offsets = (gb_conv_offsets){lists, lists + k};
    conv->last_offsets = last ? (gb_conv_offsets){lists + 2 * k, lists + 3 * k} : conv->offsets;
    conv->residue_taps = lists + 4 * k;
    conv_fill_offsets(conv, conv->in_block, conv->offsets);
    if (last)
        conv_fill_offsets(conv, last, conv->last_offsets);
    double terms = (double)conv->groups * (double)conv->out_channels * (double)conv->in_channels *
                   (double)conv->taps;
    for (int a = 0; a < conv->n_axes; a++)
        terms *= (double)conv->axes[a].out / (double)conv->axes[a].input_dilation;
    step->work = conv->depthwise ? 4 * terms : terms / 4;
    if (conv->dot) {
        GB_TRY(gb_conv_dot_pack(program, step, conv));
        return gb_step_use_buffer(step, conv->src_buffer, false, &conv->src);
    }
    GB_TRY(gb_step_use_buffer(step, conv->weights_buffer, false, &conv->weights));
    if (plan->producer)
        return gb_conv_pair_finish(program, step, conv, plan->producer);
    return gb_step_use_buffer(step, conv->src_buffer, false, &conv->src);
}

gb_status gb_conv_add(gb_program *program, gb_step *step, const gb_conv *conv)
{
    gb_conv plan = *conv;
    plan.kernels = gb_kernels_get();
    gb_gemm_limits limits = plan.kernels->gemm_limits();
    gb_conv_dot dot;
    if (plan.dot) {
        dot = *plan.dot;
        plan.dot = &dot;
        gb_conv_dot_init(&plan);
        limits = (gb_gemm_limits){.rows = dot.form.rows, .cols = dot.form.cols};
    }
    for (int a = 0; a < plan.n_axes; a++)
        gb_conv_axis_plan(&plan.axes[a]);
    choose_tile_axis(&plan, limits.rows);
    join_axes(&plan);
    choose_sides(&plan, limits);
    choose_depth(&plan);
    if (plan.producer)
        gb_conv_pair_blocks(&plan, plan.producer, gb_program_threads(program));
    else
        gb_conv_choose_blocks(&plan, gb_program_threads(program));
    choose_run(&plan);
    if (!plan.dot)
        GB_TRY(pack_weights(program, &plan));
    GB_TRY(conv_plan_finish(program, step, &plan));
    return gb_program_add(program, step);
}
