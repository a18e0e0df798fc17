/* Blocks of a convolution for the caches and threads at hand. */
#include "kernels/conv_plan.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/anchor.h"
#include "kernels/packing.h"

#include <stdlib.h>

enum { PANEL = GB_GEMM_PANEL, LINE = GB_CACHE_LINE / sizeof(float), TRIES = 64 };

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* An odd number of cache lines: neighbours at this distance spread over all cache sets. */
static int64_t odd_lines(int64_t count)
{
    return (gb_div_up(count, LINE) | 1) * LINE;
}

/* x with a x = 1 modulo m, for a and m without common divisor. */
static int64_t inverse_of(int64_t a, int64_t m)
{
    int64_t r = m, rest = a % m, x = 0, next = 1;
    while (rest) {
        int64_t quotient = r / rest, kept = r - quotient * rest;
        r = rest, rest = kept;
        kept = x - quotient * next;
        x = next, next = kept;
    }
    return x < 0 ? x + m : x;
}

static void plan_axis(gb_conv_axis *axis)
{
    int64_t dilation = axis->kernel > 1 ? axis->dilation : 0;
    int64_t stride = axis->out > 1 ? axis->stride : 0;
    axis->phases = 1;
    axis->divisor = greatest_divisor(axis->up, dilation);
    axis->classes = gb_min_i64(axis->up / axis->divisor, axis->kernel);
    axis->inverse = inverse_of(dilation / axis->divisor, axis->up / axis->divisor);
    axis->step = axis->up > 1 ? 1 : gb_max_i64(greatest_divisor(stride, dilation), 1);
    axis->stride_in_copy = stride / axis->step;
    axis->dilation_in_copy = dilation / axis->divisor / axis->step;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}

int64_t gb_conv_begin(const gb_conv_axis *axis, int64_t first)
{
    return -floor_div(axis->pad - first * axis->stride, axis->up);
}

int64_t gb_conv_first_tap(const gb_conv_axis *axis, int64_t o)
{
    int64_t classes = axis->up / axis->divisor, rest = (axis->pad - o) % axis->up;
    if (axis->up == 1)
        return 0;
    if (rest % axis->divisor)
        return -1;
    int64_t tap = (rest / axis->divisor + classes) % classes * axis->inverse % classes;
    return tap < axis->kernel ? tap : -1;
}

int64_t gb_conv_class_taps(const gb_conv_axis *axis, int64_t first_tap)
{
    return gb_div_up(axis->kernel - first_tap, axis->classes);
}

int64_t gb_conv_extent(const gb_conv_axis *axis, int64_t count)
{
    int64_t taps = axis->kernel - 1, extent;
    if (axis->up > 1)
        extent = floor_div(count - 1 + taps * axis->dilation - axis->pad, axis->up) -
                 gb_conv_begin(axis, 0) + 1;
    else
        extent = (count - 1) * axis->stride_in_copy + taps * axis->dilation_in_copy + 1;
    return gb_div_up(gb_max_i64(extent, 1), axis->phases) * axis->phases;
}

static int64_t result_stride(gb_conv *conv, int dim)
{
    return gb_tile_result(&conv->tile)->strides[dim];
}

/* As many positions as a tile can take; the axis along which the result is contiguous otherwise. */
static void choose_tile_axis(gb_conv *conv, int64_t rows)
{
    conv->tile_axis = 0;
    for (int a = 1; a < conv->n_axes; a++) {
        const gb_conv_axis *axis = &conv->axes[a], *best = &conv->axes[conv->tile_axis];
        int64_t filled = gb_min_i64(gb_div_up(axis->out, axis->up), rows);
        int64_t most = gb_min_i64(gb_div_up(best->out, best->up), rows);
        bool closer = result_stride(conv, axis->dim) <= result_stride(conv, best->dim);
        if (filled > most || (filled == most && closer))
            conv->tile_axis = a;
    }
    conv->skip_axis = -1;
    for (int a = conv->n_axes; a-- > 1;)
        if (a != conv->tile_axis && conv->axes[a].kernel > 1)
            conv->skip_axis = a;
}

static double filled(int64_t count, int64_t unit)
{
    return (double)count / (double)(gb_div_up(count, unit) * unit);
}

/* Few output channels leave vectors of channels empty: then positions go along the vectors. */
static void choose_sides(gb_conv *conv, gb_gemm_limits limits)
{
    gb_conv_axis *tile = &conv->axes[conv->tile_axis];
    int64_t lanes = limits.cols / 2;
    double narrow = conv->depthwise ? 0 : filled(conv->out_channels, lanes);
    double wide = filled(tile->out, lanes) * (double)gb_min_i64(conv->out_channels, 4) / 4;
    conv->wide = tile->stride_in_copy <= 1 && tile->up == 1 && wide > narrow &&
                 result_stride(conv, conv->channel_dim) != 1;
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
        int64_t most = GB_TILE_ELEMENTS / PANEL, up = gb_min_i64(tile->up, most);
        int64_t rows = gb_min_i64(most / up, limits.rows), out = gb_div_up(tile->out, up);
        conv->tile_rows = gb_div_up(out, gb_div_up(out, rows));
        conv->group_positions = most / (conv->tile_rows * up) * conv->tile_rows * up;
    }
    int along = conv->wide || conv->transposed ? tile->dim : conv->channel_dim;
    conv->direct = gb_tile_is_plain_store(&conv->tile) && result_stride(conv, along) == 1;
}

static void choose_depth(gb_conv *conv)
{
    conv->taps = conv->classes = conv->class_most = 1;
    for (int a = conv->n_axes; a-- > 0;) {
        gb_conv_axis *axis = &conv->axes[a];
        axis->class_stride = conv->classes;
        conv->taps *= axis->kernel;
        conv->classes *= axis->classes;
        conv->class_most *= gb_conv_class_taps(axis, 0);
    }
    int64_t k_most = (int64_t)(gb_cpu_l1_bytes() / (PANEL * sizeof(float)));
    int64_t most = gb_max_i64(1, k_most / conv->class_most);
    int64_t blocks = gb_max_i64(1, gb_div_up(conv->in_channels, most));
    conv->in_block = gb_max_i64(1, gb_div_up(conv->in_channels, blocks));
}

/* Channels in the copy. */
static int64_t channels_in_copy(const gb_conv *conv)
{
    return conv->depthwise ? conv->out_block : conv->in_block;
}

/* Sizes that follow from the blocks. Floats of the copy. */
static double lay_out(gb_conv *conv)
{
    double positions = 1;
    int64_t stride = 1;
    if (conv->channels_last)
        stride = odd_lines(channels_in_copy(conv));
    conv->copy_channel_stride = 1;
    for (int i = -1; i < conv->n_axes; i++) {
        int a = i < 0 ? conv->tile_axis : conv->n_axes - 1 - i;
        if (i >= 0 && a == conv->tile_axis)
            continue;
        gb_conv_axis *axis = &conv->axes[a];
        axis->blocks = gb_div_up(axis->out, axis->block);
        axis->extent = gb_conv_extent(axis, axis->block);
        axis->copy_stride = stride;
        positions *= (double)axis->extent;
        if (positions > 1e15)
            return positions; /* refused later */
        stride *= axis->extent;
    }
    if (conv->channels_last)
        return (double)stride;
    conv->copy_channel_stride = odd_lines(stride);
    return (double)conv->copy_channel_stride * (double)channels_in_copy(conv);
}

typedef struct block_search {
    int threads;
    double best;
    int64_t blocks[GB_MAX_NDIMS], out_block;
} block_search;

/* Cycles of the busiest thread per input channel. */
static double cost_of(gb_conv *conv, int threads)
{
    double positions = 1, copied = 1;
    int64_t units = conv->groups * gb_div_up(conv->out_channels, conv->out_block);
    for (int a = 0; a < conv->n_axes; a++) {
        positions *= (double)conv->axes[a].block;
        copied *= (double)conv->axes[a].extent;
        units *= conv->axes[a].blocks;
    }
    double channels = (double)gb_min_i64(conv->out_block, conv->out_channels);
    double unit = positions * channels * (double)conv->class_most / 32 + 0.3 * copied + 20;
    if (conv->depthwise)
        unit = channels * (positions * (double)conv->taps / 16 + 0.3 * copied + 40);
    return (double)gb_div_up(units, threads) * unit;
}

static void try_blocks(gb_conv *conv, block_search *search)
{
    double floats = lay_out(conv), sums = (double)gb_max_i64(conv->out_block, PANEL);
    for (int a = 0; a < conv->n_axes; a++)
        sums *= (double)conv->axes[a].block;
    double budget = (double)(gb_cpu_l2_bytes() / sizeof(float));
    bool fits =
            floats <= budget / 4 && (conv->in_block == conv->in_channels || sums <= budget * 3 / 8);
    double cost = search->best < 0 || fits ? cost_of(conv, search->threads) : 0;
    if (search->best >= 0 && (!fits || cost >= search->best))
        return;
    search->best = cost;
    search->out_block = conv->out_block;
    for (int a = 0; a < conv->n_axes; a++)
        search->blocks[a] = conv->axes[a].block;
}

/* Axes from the inside out: an axis is split only when all inside it are whole. */
static void try_splits(gb_conv *conv, block_search *search)
{
    for (int a = 0; a < conv->n_axes; a++)
        conv->axes[a].block = gb_min_i64(conv->axes[a].up, conv->axes[a].out);
    for (int i = -1; i < conv->n_axes; i++) {
        int a = i < 0 ? conv->tile_axis : conv->n_axes - 1 - i;
        if (i >= 0 && a == conv->tile_axis)
            continue;
        gb_conv_axis *axis = &conv->axes[a];
        int64_t unit = i < 0 && !conv->wide ? conv->tile_rows : i < 0 ? PANEL : 1;
        unit *= axis->up;
        for (int64_t j = gb_min_i64(gb_div_up(axis->out, unit), TRIES); j > 0; j--) {
            int64_t block = gb_div_up(gb_div_up(axis->out, j), unit) * unit;
            axis->block = gb_min_i64(block, axis->out);
            try_blocks(conv, search);
        }
        axis->block = axis->out;
    }
}

static void use_blocks(gb_conv *conv, const block_search *search)
{
    conv->out_block = search->out_block;
    for (int a = 0; a < conv->n_axes; a++)
        conv->axes[a].block = search->blocks[a];
    lay_out(conv);
    conv->out_blocks = gb_div_up(conv->out_channels, conv->out_block);
    conv->units = conv->groups * conv->out_blocks;
    for (int a = 0; a < conv->n_axes; a++)
        conv->units *= conv->axes[a].blocks;
}

static void choose_blocks(gb_conv *conv, int threads)
{
    block_search search = {.threads = threads, .best = -1};
    int64_t k = conv->in_block * conv->taps;
    int64_t most = (int64_t)(gb_cpu_l2_bytes() * 3 / 8 / sizeof(float)) / gb_max_i64(k, 1) / PANEL;
    int64_t panels = gb_div_up(conv->out_channels, PANEL);
    int64_t least = gb_div_up(panels, gb_max_i64(most, 1));
    for (int64_t j = least; j <= panels && j < 8 * least + 8; j++) {
        conv->out_block = gb_div_up(panels, j) * PANEL;
        try_splits(conv, &search);
    }
    use_blocks(conv, &search);
}

/* Channels come in powers of two, so that none of their blocks crosses a panel. */
static void choose_depthwise_blocks(gb_conv *conv, int threads)
{
    block_search search = {.threads = threads, .best = -1};
    for (conv->out_block = PANEL; conv->out_block > 0;
            conv->out_block /= conv->wide ? 2 : PANEL + 1)
        try_splits(conv, &search);
    use_blocks(conv, &search);
    conv->row_axis = -1;
    for (int a = 0; a < conv->n_axes; a++)
        if (a != conv->tile_axis && conv->axes[a].up == 1 &&
                (conv->row_axis < 0 || conv->axes[a].block >= conv->axes[conv->row_axis].block))
            conv->row_axis = a;
}

/* Axes in the order of their taps in K. */
static int tap_order(const gb_conv *conv, int order[GB_MAX_NDIMS])
{
    int n = 0;
    if (conv->skip_axis >= 0)
        order[n++] = conv->skip_axis;
    for (int a = 0; a < conv->n_axes; a++)
        if (a != conv->skip_axis)
            order[n++] = a;
    return n;
}

/* One tap of a class: where it starts in the copy, and its place in panels. `index` counts the taps
 * of the class. */
static void place_tap(const gb_conv *conv, const int64_t *first_taps, int64_t index,
        int64_t *source, int64_t *place)
{
    int order[GB_MAX_NDIMS], n = tap_order(conv, order);
    int64_t taps = 1;
    *source = *place = 0;
    for (int i = n; i-- > 0;) {
        const gb_conv_axis *axis = &conv->axes[order[i]];
        int64_t first = first_taps[order[i]], count = gb_conv_class_taps(axis, first);
        int64_t position = index % count * axis->dilation_in_copy;
        *source += position / axis->phases * axis->copy_stride +
                   position % axis->phases * (axis->extent / axis->phases);
        *place += (first + index % count * axis->classes) * taps;
        taps *= axis->kernel;
        index /= count;
    }
}

static void fill_offsets(const gb_conv *conv, int64_t channels, gb_conv_offsets offsets)
{
    for (int64_t class = 0, term = 0; class < conv->classes; class ++) {
        int64_t first_taps[GB_MAX_NDIMS], count = 1, source, place;
        for (int a = 0; a < conv->n_axes; a++) {
            first_taps[a] = class / conv->axes[a].class_stride % conv->axes[a].classes;
            count *= gb_conv_class_taps(&conv->axes[a], first_taps[a]);
        }
        conv->class_taps[class + 1] = conv->class_taps[class] + count;
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
    int order[GB_MAX_NDIMS];
    gb_packing packing = {.type = conv->weights_type,
            .first = conv->first_weight,
            .n = conv->out_channels,
            .n_stride = conv->out_stride,
            .inner = conv->in_channels,
            .inner_block = conv->in_block,
            .inner_stride = conv->in_stride,
            .n_taps = tap_order(conv, order),
            .n_batch = 1,
            .batch_dims = {conv->groups},
            .batch_strides = {conv->group_stride}};
    for (int i = 0; i < packing.n_taps; i++) {
        packing.tap_dims[i] = conv->axes[order[i]].kernel;
        packing.tap_strides[i] = conv->axes[order[i]].tap_stride;
    }
    return gb_packing_add(program, &packing, conv->weights_buffer, &conv->weights_buffer);
}

static size_t floats(int64_t count)
{
    return gb_align_up((size_t)count * sizeof(float), GB_CACHE_LINE);
}

static gb_status choose_scratch(gb_conv *conv, gb_step *step)
{
    double size = lay_out(conv);
    if (size > 1e12)
        return gb_fail(GB_OUT_OF_MEMORY, "a convolution's window spans %.3g source elements", size);
    /* Wide tiles read whole vectors, up to a panel beyond the last position. */
    conv->copy_bytes = floats((int64_t)size + PANEL);
    if (conv->in_block < conv->in_channels) {
        const gb_conv_axis *tile = &conv->axes[conv->tile_axis];
        int64_t lines = 1, groups = gb_div_up(tile->block, conv->group_positions);
        for (int a = 0; a < conv->n_axes; a++)
            lines *= a == conv->tile_axis ? 1 : conv->axes[a].block;
        conv->sum_bytes = floats(lines * groups * conv->out_block / PANEL * GB_TILE_ELEMENTS);
    }
    conv->transpose_bytes = conv->transposed ? floats(GB_TILE_ELEMENTS) : 0;
    step->thread_scratch = conv->copy_bytes + conv->sum_bytes + conv->transpose_bytes +
                           gb_tile_scratch(&conv->tile);
    return GB_SUCCESS;
}

/* The plan as the step's parameters, the offsets behind it. */
static gb_status finish(gb_step *step, const gb_conv *plan)
{
    int64_t k = plan->in_block * plan->taps;
    int64_t last = plan->in_channels % plan->in_block;
    size_t bytes;
    if (!gb_size_mul(5 * sizeof(int64_t), (size_t)k, &bytes))
        return gb_fail(GB_OUT_OF_MEMORY, "convolution with %lld taps", (long long)plan->taps);
    gb_conv *conv = gb_calloc(1, sizeof *conv + bytes + sizeof(int64_t));
    if (!conv)
        return GB_OUT_OF_MEMORY;
    *conv = *plan;
    step->params = conv;
    step->kernel = conv->depthwise ? "depthwise" : "conv";
    step->run = conv->depthwise ? gb_depthwise_run : gb_conv_run;
    GB_TRY(choose_scratch(conv, step));
    int64_t *lists = (int64_t *)(conv + 1);
    conv->offsets = (gb_conv_offsets){lists, lists + k};
    conv->last_offsets = last ? (gb_conv_offsets){lists + 2 * k, lists + 3 * k} : conv->offsets;
    conv->class_taps = lists + 4 * k;
    fill_offsets(conv, conv->in_block, conv->offsets);
    if (last)
        fill_offsets(conv, last, conv->last_offsets);
    for (uint32_t i = 0; i < conv->tile.n_operands; i++)
        conv->operand_bytes[i] = (uint8_t)(gb_dtype_get(conv->tile.operands[i].type)->bits / 8);
    double terms = (double)conv->groups * (double)conv->out_channels * (double)conv->in_channels *
                   (double)conv->taps;
    for (int a = 0; a < conv->n_axes; a++)
        terms *= (double)conv->axes[a].out / (double)conv->axes[a].up;
    step->flops = 2 * terms;
    step->work = conv->depthwise ? 4 * terms : terms / 4;
    GB_TRY(gb_step_use_buffer(step, conv->src_buffer, false, &conv->src));
    return gb_step_use_buffer(step, conv->weights_buffer, false, &conv->weights);
}

gb_status gb_conv_add(gb_program *program, gb_step *step, const gb_conv *conv)
{
    gb_conv plan = *conv;
    plan.kernels = gb_kernels_get();
    gb_gemm_limits limits = plan.kernels->gemm_limits();
    for (int a = 0; a < plan.n_axes; a++)
        plan_axis(&plan.axes[a]);
    choose_tile_axis(&plan, limits.rows);
    choose_sides(&plan, limits);
    choose_depth(&plan);
    if (plan.depthwise)
        choose_depthwise_blocks(&plan, gb_program_threads(program));
    else
        choose_blocks(&plan, gb_program_threads(program));
    gb_status status = pack_weights(program, &plan);
    if (status == GB_SUCCESS)
        status = finish(step, &plan);
    if (status == GB_SUCCESS)
        return gb_program_add(program, step);
    gb_step_clear(step);
    return status;
}
