/* Runs depthwise convolutions. */
#include "kernels/conv/conv_depthwise.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/cpu/step_call.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL };

/* Runs the kernel with the taps of a class (-1: none). */
static void add_taps(const gb_conv_depthwise *plan, int64_t class, gb_depthwise *tile)
{
    const gb_conv_plan *conv = &plan->conv;
    tile->taps = 0;
    tile->run = plan->run;
    tile->run_step = plan->run_step;
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
static int64_t locate_line(const gb_conv_depthwise_item *u, int64_t *position, int64_t *class)
{
    const gb_conv_plan *conv = u->item.conv;
    int64_t offset = 0;
    *class = 0;
    for (int a = 0; a < conv->n_axes; a++) {
        int dim = conv->axes[a].dim;
        position[dim] = u->item.first[a] + u->item.line[a];
        if (a != conv->tile_axis)
            offset += gb_conv_item_find(&u->item, a, position[dim], class);
    }
    position[conv->channel_dim] = u->item.out_first;
    return offset;
}

static const float *weights_of(const gb_conv_depthwise_item *u, int64_t channel)
{
    const float *weights = u->item.call->buffers[u->item.conv->weights];
    return weights + channel / PANEL * u->item.conv->taps * PANEL + channel % PANEL;
}

/* One call of the kernel and the pointwise program on its results: rows x cols from `position` of
 * the result. */
static void run_tile(gb_conv_depthwise_item *u, gb_depthwise *tile, int64_t class,
        const int64_t *position, int row_dim, int col_dim)
{
    const gb_conv_plan *conv = u->item.conv;
    gb_pointwise_view *views = u->views;
    gb_pointwise_views(&conv->epilogue, u->item.call->buffers, position, row_dim, col_dim, views);
    tile->dst = conv->direct ? (float *)views[0].data : u->registers;
    tile->dst_row = conv->direct ? views[0].row_stride : tile->cols;
    add_taps(u->plan, class, tile);
    if (!conv->direct)
        conv->kernels->pointwise_run(&conv->epilogue, views, tile->rows, tile->cols, u->registers);
}

/* Input channel of an output channel of the work item, among those of the copy. */
static int64_t input_of(const gb_conv_depthwise_item *u, int64_t channel)
{
    return (u->item.out_first + channel) / u->plan->repeats - u->item.out_first / u->plan->repeats;
}

/* Positions along the vectors; rows are those of the row axis. One channel. */
static void run_plane(gb_conv_depthwise_item *u, int64_t channel)
{
    const gb_conv_plan *conv = u->item.conv;
    const gb_conv_plan_axis *cols = &conv->axes[conv->tile_axis];
    int row_dim = u->plan->row_axis < 0 ? -1 : conv->axes[u->plan->row_axis].dim;
    int64_t rows = u->plan->row_axis < 0 ? 1 : u->item.count[u->plan->row_axis];
    int64_t row = 0, position[GB_AXES], class;
    if (u->plan->row_axis >= 0)
        row = conv->axes[u->plan->row_axis].stride_in_copy *
              conv->axes[u->plan->row_axis].copy_stride;
    memset(u->item.line, 0, sizeof u->item.line);
    do {
        const float *src = u->item.copy + locate_line(u, position, &class) +
                           input_of(u, channel) * conv->copy_channel_stride;
        position[conv->channel_dim] += channel;
        int64_t line = row_dim < 0 ? 0 : position[row_dim];
        for (int64_t c = 0; c < u->item.count[conv->tile_axis]; c += GB_TILE_ELEMENTS) {
            int64_t n = gb_min_i64(GB_TILE_ELEMENTS, u->item.count[conv->tile_axis] - c);
            int64_t most = GB_TILE_ELEMENTS / n;
            position[cols->dim] = u->item.first[conv->tile_axis] + c;
            for (int64_t r = 0; r < rows; r += most) {
                gb_depthwise tile = {
                        .src = src + r * row + c, .type = GB_F32, .row = row, .cols = n};
                tile.rows = gb_min_i64(most, rows - r);
                tile.weights = weights_of(u, u->item.out_first + channel);
                if (row_dim >= 0)
                    position[row_dim] = line + r;
                run_tile(u, &tile, class, position, row_dim, cols->dim);
            }
        }
    } while (gb_conv_item_next_line(&u->item, u->plan->row_axis));
}

/* Positions r .. r + rows of the line that starts at `src`; rows of one class are up apart. */
static void run_rows(gb_conv_depthwise_item *u, const float *src, int64_t line_class, int64_t r,
        int64_t rows, const int64_t *position)
{
    const gb_conv_plan *conv = u->item.conv;
    const gb_conv_plan_axis *axis = &conv->axes[conv->tile_axis];
    gb_pointwise_view *views = u->views;
    gb_pointwise_views(
            &conv->epilogue, u->item.call->buffers, position, axis->dim, conv->channel_dim, views);
    float *dst = conv->direct ? (float *)views[0].data : u->registers;
    int64_t dst_row = conv->direct ? views[0].row_stride : u->item.n_out;
    for (int64_t p = 0; p < axis->input_dilation && p < rows; p++) {
        int64_t class = line_class;
        int64_t offset = gb_conv_item_find(
                &u->item, conv->tile_axis, u->item.first[conv->tile_axis] + r + p, &class);
        gb_depthwise tile = {.src = src + offset,
                .type = GB_F32,
                .row = axis->stride_in_copy * axis->copy_stride,
                .weights = weights_of(u, u->item.out_first),
                .rows = gb_div_up(rows - p, axis->input_dilation),
                .cols = u->item.n_out,
                .dst = dst + p * dst_row,
                .dst_row = axis->input_dilation * dst_row};
        add_taps(u->plan, class, &tile);
    }
    if (!conv->direct)
        conv->kernels->pointwise_run(&conv->epilogue, views, rows, u->item.n_out, u->registers);
}

/* Channels along the vectors, a panel of them; rows are positions of the tile axis. */
static void run_panel(gb_conv_depthwise_item *u)
{
    const gb_conv_plan *conv = u->item.conv;
    int dim = conv->axes[conv->tile_axis].dim;
    int64_t position[GB_AXES], class, most = GB_TILE_ELEMENTS / PANEL;
    memset(u->item.line, 0, sizeof u->item.line);
    do {
        const float *src = u->item.copy + locate_line(u, position, &class);
        for (int64_t r = 0; r < u->item.count[conv->tile_axis]; r += most) {
            position[dim] = u->item.first[conv->tile_axis] + r;
            run_rows(u, src, class, r, gb_min_i64(most, u->item.count[conv->tile_axis] - r),
                    position);
        }
    } while (gb_conv_item_next_line(&u->item, -1));
}

/* Each channel of the copy for all output channels that read it, from the last one on. */
static void repeat_channels(const gb_conv_depthwise_item *u)
{
    const int64_t repeats = u->plan->repeats;
    gb_conv_copy_desc box;
    int64_t count = gb_conv_item_copy_desc(&u->item, u->item.out_first / repeats, 0, &box);
    for (int a = 0; a < u->item.conv->n_axes; a++)
        count *= box.dims[a];
    for (int64_t i = 0; i < count; i++) {
        float *channels = u->item.copy + box.to;
        for (int64_t a = 0, rest = i; a < u->item.conv->n_axes; rest /= box.dims[a++])
            channels += rest % box.dims[a] * box.dst[a];
        for (int64_t c = u->item.n_in; c-- > 0;) {
            const float value = channels[c];
            for (int64_t r = 0; r < repeats; r++)
                channels[c * repeats + r] = value;
        }
    }
}

void gb_conv_depthwise_run_item(gb_conv_depthwise_item *u)
{
    u->item.n_in = input_of(u, u->item.n_out - 1) + 1;
    gb_conv_item_copy(&u->item, u->item.out_first / u->plan->repeats, true);
    if (u->plan->repeats > 1 && !u->item.conv->wide)
        repeat_channels(u);
    for (int64_t channel = 0; u->item.conv->wide && channel < u->item.n_out; channel++)
        run_plane(u, channel);
    if (!u->item.conv->wide)
        run_panel(u);
}

gb_conv_depthwise_item gb_conv_depthwise_start(
        const gb_step_call *call, const gb_conv_depthwise *plan)
{
    const gb_conv_plan *conv = &plan->conv;
    return (gb_conv_depthwise_item){
            .item = {.conv = conv, .call = call, .copy = gb_scratch_get(call, conv->copy)},
            .plan = plan,
            .registers = gb_scratch_get(call, conv->registers),
            .views = gb_scratch_get(call, conv->views)};
}

void gb_conv_depthwise_run(const gb_step_call *call)
{
    const gb_conv_depthwise *plan = call->params;
    gb_conv_depthwise_item u = gb_conv_depthwise_start(call, plan);
    int64_t begin, end;
    while (gb_take_items(call, plan->conv.items, &begin, &end))
        for (int64_t i = begin; i < end; i++) {
            gb_conv_item_start(&u.item, i);
            gb_conv_depthwise_run_item(&u);
        }
}
