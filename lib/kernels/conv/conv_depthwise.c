/* Runs depthwise convolutions: no sums over channels, so the source is read about once. */
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/conv/conv_pair.h"
#include "kernels/cpu/step_call.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL };

/* Runs the kernel with the taps of a class (-1: none). */
static void add_taps(const gb_conv *conv, int64_t class, gb_depthwise *tile)
{
    tile->taps = 0;
    tile->run = conv->run;
    tile->run_step = conv->run_step;
    if (class >= 0) {
        int64_t first = conv->residue_taps[class];
        tile->taps = conv->residue_taps[class + 1] - first;
        tile->offsets = conv->offsets.source + first;
        tile->weight_offsets = conv->offsets.panel + first;
    }
    if (conv->wide)
        conv->kernels->depthwise_positions(tile);
    else
        conv->kernels->depthwise_channels(tile);
}

/* Result position of the work item's line, its offset in the copy and its class of taps. */
static int64_t conv_depthwise_locate(const gb_conv_item *u, int64_t *position, int64_t *class)
{
    const gb_conv *conv = u->conv;
    int64_t offset = 0;
    *class = 0;
    for (int a = 0; a < conv->n_axes; a++) {
        int dim = conv->axes[a].dim;
        position[dim] = u->first[a] + u->line[a];
        if (a != conv->tile_axis)
            offset += gb_conv_item_find(u, a, position[dim], class);
    }
    position[conv->channel_dim] = u->out_first;
    return offset;
}

static const float *weights_of(const gb_conv_item *u, int64_t channel)
{
    const float *weights = u->call->buffers[u->conv->weights];
    return weights + channel / PANEL * u->conv->taps * PANEL + channel % PANEL;
}

/* One call of the kernel and the pointwise program on its results: rows x cols from `position` of
 * the result. */
static void run_tile(gb_conv_item *u, gb_depthwise *tile, int64_t class, const int64_t *position,
        int row_dim, int col_dim)
{
    const gb_conv *conv = u->conv;
    gb_pointwise_view views[GB_POINTWISE_OPERANDS];
    gb_pointwise_views(&conv->epilogue, u->call->buffers, position, row_dim, col_dim, views);
    tile->dst = conv->direct ? (float *)views[0].data : u->registers;
    tile->dst_row = conv->direct ? views[0].row_stride : tile->cols;
    add_taps(conv, class, tile);
    if (!conv->direct)
        conv->kernels->pointwise_run(&conv->epilogue, views, tile->rows, tile->cols, u->registers);
}

/* Input channel of an output channel of the work item, among those of the copy. */
static int64_t input_of(const gb_conv_item *u, int64_t channel)
{
    return (u->out_first + channel) / u->conv->repeats - u->out_first / u->conv->repeats;
}

/* Positions along the vectors; rows are those of the row axis. One channel. */
static void run_plane(gb_conv_item *u, int64_t channel)
{
    const gb_conv *conv = u->conv;
    const gb_conv_axis *cols = &conv->axes[conv->tile_axis];
    int row_dim = conv->row_axis < 0 ? -1 : conv->axes[conv->row_axis].dim;
    int64_t rows = conv->row_axis < 0 ? 1 : u->count[conv->row_axis];
    int64_t row = 0, position[GB_AXES], class;
    if (conv->row_axis >= 0)
        row = conv->axes[conv->row_axis].stride_in_copy * conv->axes[conv->row_axis].copy_stride;
    memset(u->line, 0, sizeof u->line);
    do {
        const float *src = u->copy + conv_depthwise_locate(u, position, &class) +
                           input_of(u, channel) * conv->copy_channel_stride;
        position[conv->channel_dim] += channel;
        int64_t line = row_dim < 0 ? 0 : position[row_dim];
        for (int64_t c = 0; c < u->count[conv->tile_axis]; c += GB_TILE_ELEMENTS) {
            int64_t n = gb_min_i64(GB_TILE_ELEMENTS, u->count[conv->tile_axis] - c);
            int64_t most = GB_TILE_ELEMENTS / n;
            position[cols->dim] = u->first[conv->tile_axis] + c;
            for (int64_t r = 0; r < rows; r += most) {
                gb_depthwise tile = {.src = src + r * row + c, .row = row, .cols = n};
                tile.rows = gb_min_i64(most, rows - r);
                tile.weights = weights_of(u, u->out_first + channel);
                if (row_dim >= 0)
                    position[row_dim] = line + r;
                run_tile(u, &tile, class, position, row_dim, cols->dim);
            }
        }
    } while (gb_conv_item_next_line(u, conv->row_axis));
}

/* Positions r .. r + rows of the line that starts at `src`; rows of one class are up apart. */
static void run_rows(gb_conv_item *u, const float *src, int64_t line_class, int64_t r, int64_t rows,
        const int64_t *position)
{
    const gb_conv *conv = u->conv;
    const gb_conv_axis *axis = &conv->axes[conv->tile_axis];
    gb_pointwise_view views[GB_POINTWISE_OPERANDS];
    gb_pointwise_views(
            &conv->epilogue, u->call->buffers, position, axis->dim, conv->channel_dim, views);
    float *dst = conv->direct ? (float *)views[0].data : u->registers;
    int64_t dst_row = conv->direct ? views[0].row_stride : u->n_out;
    for (int64_t p = 0; p < axis->input_dilation && p < rows; p++) {
        int64_t class = line_class;
        int64_t offset =
                gb_conv_item_find(u, conv->tile_axis, u->first[conv->tile_axis] + r + p, &class);
        gb_depthwise tile = {.src = src + offset,
                .row = axis->stride_in_copy * axis->copy_stride,
                .weights = weights_of(u, u->out_first),
                .rows = gb_div_up(rows - p, axis->input_dilation),
                .cols = u->n_out,
                .dst = dst + p * dst_row,
                .dst_row = axis->input_dilation * dst_row};
        add_taps(conv, class, &tile);
    }
    if (!conv->direct)
        conv->kernels->pointwise_run(&conv->epilogue, views, rows, u->n_out, u->registers);
}

/* Channels along the vectors, a panel of them; rows are positions of the tile axis. */
static void run_panel(gb_conv_item *u)
{
    const gb_conv *conv = u->conv;
    int dim = conv->axes[conv->tile_axis].dim;
    int64_t position[GB_AXES], class, most = GB_TILE_ELEMENTS / PANEL;
    memset(u->line, 0, sizeof u->line);
    do {
        const float *src = u->copy + conv_depthwise_locate(u, position, &class);
        for (int64_t r = 0; r < u->count[conv->tile_axis]; r += most) {
            position[dim] = u->first[conv->tile_axis] + r;
            run_rows(u, src, class, r, gb_min_i64(most, u->count[conv->tile_axis] - r), position);
        }
    } while (gb_conv_item_next_line(u, -1));
}

/* Each channel of the copy for all output channels that read it, from the last one on. */
static void repeat_channels(const gb_conv_item *u)
{
    const int64_t repeats = u->conv->repeats;
    gb_conv_copy_desc box;
    int64_t count = gb_conv_item_copy_desc(u, u->out_first / repeats, 0, &box);
    for (int a = 0; a < u->conv->n_axes; a++)
        count *= box.dims[a];
    for (int64_t i = 0; i < count; i++) {
        float *channels = u->copy + box.to;
        for (int64_t a = 0, rest = i; a < u->conv->n_axes; rest /= box.dims[a++])
            channels += rest % box.dims[a] * box.dst[a];
        for (int64_t c = u->n_in; c-- > 0;) {
            const float value = channels[c];
            for (int64_t r = 0; r < repeats; r++)
                channels[c * repeats + r] = value;
        }
    }
}

void gb_depthwise_item(gb_conv_item *u)
{
    u->n_in = input_of(u, u->n_out - 1) + 1;
    gb_conv_item_copy(u, u->out_first / u->conv->repeats, true);
    if (u->conv->repeats > 1 && !u->conv->wide)
        repeat_channels(u);
    for (int64_t channel = 0; u->conv->wide && channel < u->n_out; channel++)
        run_plane(u, channel);
    if (!u->conv->wide)
        run_panel(u);
}

void gb_depthwise_run(const gb_step_call *call)
{
    const gb_conv *conv = call->params;
    gb_conv_item u = {.conv = conv,
            .call = call,
            .copy = gb_scratch_get(call, conv->copy),
            .registers = gb_scratch_get(call, conv->registers)};
    int64_t begin, end;
    gb_split(conv->items, call->thread, call->n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        gb_conv_item_start(&u, i);
        gb_depthwise_item(&u);
    }
}
