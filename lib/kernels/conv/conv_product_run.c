/* Runs implicit products: work items are blocks of positions x output channels. */
#include "kernels/conv/conv_product.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/cpu/step_call.h"
#include "kernels/isa/prefetch.h"
#include "kernels/isa/tile_rows.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL };

/* Results of one run of the pointwise program: a run of positions of the line, from `first` of the
 * work item on, and channels of the work item. */
typedef struct tile_group {
    int64_t first, positions, channel;
} tile_group;

static int64_t weight_bytes(const gb_conv_product *plan)
{
    return plan->halves == GB_UNDEF ? 4 : 2;
}

/* Of a panel of the weights, for this block of channels. */
static int64_t panel_bytes(const gb_conv_product_item *u)
{
    return u->item.n_in * u->item.conv->taps * PANEL * weight_bytes(u->plan);
}

/* Tiles ---------------------------------------------------------------------------------------- */

void gb_conv_product_multiply(
        const gb_conv_product_item *u, gb_gemm_tile *tile, int64_t rows, int64_t cols)
{
    const gb_conv_product *plan = u->plan;
    const gb_gemm_limits most = {.rows = (int)plan->tile_rows,
            .cols = (int)plan->tile_cols,
            .few_rows = (int)plan->few_rows,
            .few_rows_cols = (int)plan->few_rows_cols};
    gb_multiply_tiles(plan->conv.kernels->gemm_tile, &most, tile, rows, cols);
}

static void multiply_floats(const gb_conv_product_item *u, gb_gemm_tile *whole, int64_t positions,
        int64_t channels, int64_t channel)
{
    (void)channel;
    gb_conv_product_multiply(u, whole, positions, channels);
}

static void multiply_wide(const gb_conv_product_item *u, gb_gemm_tile *whole, int64_t positions,
        int64_t channels, int64_t channel)
{
    (void)channel;
    gb_conv_product_multiply(u, whole, channels, positions);
}

static void copy_floats(gb_conv_product_item *u, int64_t first_channel, bool clear)
{
    gb_conv_item_copy(&u->item, first_channel, clear);
}

const gb_conv_arithmetic gb_conv_floats = {copy_floats, multiply_floats, false};
const gb_conv_arithmetic gb_conv_floats_wide = {copy_floats, multiply_wide, false};

/* Do these positions read weights for the first time, that have not been asked for? */
static bool reads_anew(const gb_conv_product_item *u)
{
    return u->done == 0 && !u->follows;
}

/* What comes into the caches meanwhile. Where weights are read for the first time, the panel beside
 * it; later the same panel for the next block of input channels, of the next output channels, or of
 * the first ones for the next positions. NULL: it is there, or another thread's. */
static const char *next_panel(const gb_conv_product_item *u, int64_t panel)
{
    const gb_conv_plan *conv = u->item.conv;
    const int64_t apart = conv->in_channels * conv->taps * PANEL * weight_bytes(u->plan);
    const char *panels = u->panels + panel * apart;
    if (conv->wide)
        return NULL;
    if (reads_anew(u))
        return (panel + 1) * PANEL < u->item.out_first + u->item.n_out ? panels + apart : NULL;
    if (u->item.n_in + u->in_first < conv->in_channels)
        return panels + panel_bytes(u);
    if (!u->leads || (conv->out_blocks == 1 && conv->in_block >= conv->in_channels))
        return NULL;
    panels -= u->in_first * conv->taps * PANEL * weight_bytes(u->plan);
    return u->item.out_first + u->item.n_out < conv->out_channels
                   ? panels + conv->out_block / PANEL * apart
                   : panels - u->item.out_first / PANEL * apart;
}

/* Has the tiles ask for their part of what is read next, all the time and not in a burst. */
static void share_next(const gb_conv_product_item *u, const tile_group *g, int64_t channels,
        int64_t panel, gb_gemm_tile *whole)
{
    const gb_conv_product *plan = u->plan;
    const int64_t tiles =
            gb_div_up(g->positions, plan->tile_rows) * gb_div_up(channels, plan->tile_cols);
    whole->next = whole->k ? next_panel(u, panel) : NULL;
    if (!whole->next)
        return;
    /* The positions that share it: the first ones may ask for all of a panel, or for none of the next block. */
    const int64_t begin = u->done > 0 && !u->follows ? u->first_group : 0;
    const int64_t end = reads_anew(u) ? g->positions : u->positions;
    const double part = (double)panel_bytes(u) / (double)(end - begin);
    whole->next += (int64_t)(part * (double)(u->done - begin));
    whole->next_step = (int64_t)(part * (double)g->positions) / (tiles * whole->k) + 1;
}

/* The product of positions `first`, first + up, .. of the line and the channels of a panel, in a tile of zeros. */
static void set_product(
        const gb_conv_product_item *u, int64_t first, int64_t panel, gb_gemm_tile *tile)
{
    const gb_conv_plan *conv = u->item.conv;
    const gb_conv_plan_axis *axis = &conv->axes[conv->tile_axis];
    const gb_conv_offsets *offsets =
            u->item.n_in == conv->in_block ? &conv->offsets : &u->plan->last_offsets;
    int64_t class = u->residue;
    const float *src = u->src + gb_conv_item_find(&u->item, conv->tile_axis,
                                        u->item.first[conv->tile_axis] + first, &class);
    if (class < 0)
        return;
    const void *weights =
            u->panels + panel * conv->in_channels * conv->taps * PANEL * weight_bytes(u->plan);
    int64_t taps = (conv->residue_taps[class + 1] - conv->residue_taps[class]) / u->skip_taps;
    int64_t term = (conv->residue_taps[class] + u->skip_first * taps) * u->item.n_in;
    tile->k = (u->skip_end - u->skip_first) * taps * u->item.n_in;
    tile->run = u->item.n_in * u->plan->run_taps;
    if (conv->wide) {
        tile->a = weights, tile->a_row = 1, tile->a_offsets = offsets->panel + term;
        tile->b = src, tile->b_offsets = offsets->source + term;
        return;
    }
    tile->a = src;
    tile->a_row = axis->stride_in_copy / axis->interleave * axis->copy_stride;
    tile->a_offsets = offsets->source + term;
    tile->b_offsets = offsets->panel + term;
    if (u->plan->halves == GB_UNDEF) {
        tile->b = weights;
    } else {
        tile->halves = weights;
        tile->halves_type = u->plan->halves;
    }
}

/* The group's results for a panel, `row` elements from row to row: positions x channels, or the
 * other way when wide. Adds to c_in, if there is one. With post-ops, of the line or of the group
 * alone, they go where those say. */
static void multiply_panel(const gb_conv_product_item *u, const tile_group *g, int64_t channels,
        const float *c_in, float *c_out, int64_t row, const gb_tile_post_ops *post_ops)
{
    const gb_conv_plan *conv = u->item.conv;
    int64_t up = conv->axes[conv->tile_axis].input_dilation;
    for (int64_t p = 0; p < up && p < g->positions; p++) {
        const int64_t panel = (u->item.out_first + g->channel) / PANEL;
        gb_gemm_tile tile = {.k = 0};
        if (!u->plan->arithmetic->sums_made) {
            set_product(u, g->first + p, panel, &tile);
            share_next(u, g, channels, panel, &tile);
        }
        int64_t positions = gb_div_up(g->positions - p, up);
        tile.c_in = c_in ? c_in + p * PANEL : NULL;
        tile.c_in_row = up * PANEL;
        tile.c_out = c_out + p * row;
        tile.c_out_row = up * row;
        tile.post_ops = post_ops;
        if (!u->plan->transposed) {
            tile.row = conv->wide ? g->channel : g->first;
            tile.col = conv->wide ? g->first : g->channel;
        }
        u->plan->arithmetic->multiply(
                u, &tile, positions, channels, u->item.out_first + g->channel);
    }
}

static void move_views(
        const gb_conv_product_item *u, int64_t position, int64_t channel, bool positions_are_rows)
{
    for (uint32_t i = 0; i < u->item.conv->epilogue.n_operands; i++) {
        int64_t row = positions_are_rows ? position : channel;
        int64_t col = positions_are_rows ? channel : position;
        u->views[i] = gb_pointwise_view_at(
                &u->line_views[i], row, col, u->item.conv->epilogue.operands[i].bytes);
    }
}

static bool positions_are_rows(const gb_conv_product *plan)
{
    return !plan->conv.wide && !plan->transposed;
}

/* The operand that the pointwise program's results go to. */
static uint32_t result_operand(const gb_pointwise_program *program)
{
    return program->instructions[program->n_instructions - 1].operand;
}

/* Tiles leave finished results of the group, as they store them, which then change rows and columns
 * on the way to their place. */
static void finish_transposed(
        gb_conv_product_item *u, const tile_group *g, int64_t channels, const float *sums)
{
    const gb_conv_plan *conv = u->item.conv;
    gb_tile_post_ops group = u->post_ops;
    const int64_t bytes = group.bytes;
    for (int i = 0; i < group.n_steps; i++)
        group.steps[i].other = gb_tile_operand(&group.steps[i], g->first, g->channel);
    group.dst = (char *)u->transposed;
    group.dst_row = PANEL;
    group.apart = false;
    move_views(u, g->first, g->channel, false);
    gb_prefetch_operands(
            &conv->epilogue, u->views, channels, g->positions, conv->taps * u->item.n_in);
    multiply_panel(u, g, channels, sums, u->registers, 0, &group);
    const gb_pointwise_view *result = &u->views[result_operand(&conv->epilogue)];
    conv->kernels->transpose((size_t)bytes, group.dst, PANEL * bytes, result->data,
            result->row_stride * bytes, channels, g->positions);
}

/* The last block of K: results go through the pointwise program. */
static void finish_group(
        gb_conv_product_item *u, const tile_group *g, int64_t channels, const float *sums)
{
    const gb_conv_plan *conv = u->item.conv;
    if (u->in_tiles && u->plan->transposed) {
        finish_transposed(u, g, channels, sums);
        return;
    }
    if (u->in_tiles) {
        multiply_panel(u, g, channels, sums, u->registers, 0, &u->post_ops);
        return;
    }
    bool along_channels = positions_are_rows(u->plan);
    int64_t rows = along_channels ? g->positions : channels;
    int64_t cols = along_channels ? channels : g->positions;
    move_views(u, g->first, g->channel, along_channels);
    float *target = conv->direct ? (float *)u->views[0].data : u->registers;
    int64_t target_row = conv->direct ? u->views[0].row_stride : cols;
    if (!conv->direct || u->plan->transposed) /* tiles ask for what they store themselves */
        gb_prefetch_operands(&conv->epilogue, u->views, rows, cols, conv->taps * u->item.n_in);
    if (u->plan->transposed) {
        multiply_panel(u, g, channels, sums, u->transposed, PANEL, NULL);
        conv->kernels->transpose(sizeof(float), (const char *)u->transposed, PANEL * sizeof(float),
                (char *)target, target_row * (int64_t)sizeof(float), rows, cols);
    } else {
        multiply_panel(u, g, channels, sums, target, target_row, NULL);
    }
    if (!conv->direct)
        conv->kernels->pointwise_run(&conv->epilogue, u->views, rows, cols, u->registers);
}

static void multiply_group(gb_conv_product_item *u, int64_t first, int64_t positions, float *sums)
{
    const gb_conv_plan *conv = u->item.conv;
    bool last = u->in_first + u->item.n_in == conv->in_channels;
    int64_t lanes = u->plan->tile_cols / 2;
    u->group_first = first;
    for (int64_t channel = 0; channel < u->item.n_out; channel += PANEL, sums += GB_TILE_ELEMENTS) {
        int64_t channels = gb_min_i64(PANEL, u->item.n_out - channel);
        tile_group g = {.first = first, .positions = positions, .channel = channel};
        const float *earlier = u->in_first ? sums : NULL;
        if (last) {
            finish_group(u, &g, channels, earlier);
            continue;
        }
        /* Whole vectors, so that they can be read back. */
        if (conv->wide)
            g.positions = (int64_t)gb_align_up((size_t)positions, (size_t)lanes);
        else
            channels = (int64_t)gb_align_up((size_t)channels, (size_t)lanes);
        multiply_panel(u, &g, channels, earlier, sums, PANEL, NULL);
    }
}

/* Taps of the skip axis that read inside the source. */
static void choose_taps(gb_conv_product_item *u)
{
    const gb_conv_plan *conv = u->item.conv;
    u->skip_first = 0;
    u->skip_end = u->skip_taps = 1;
    if (conv->skip_axis < 0 || u->residue < 0)
        return;
    const gb_conv_plan_axis *axis = &conv->axes[conv->skip_axis];
    int64_t o = u->item.first[conv->skip_axis] + u->item.line[conv->skip_axis];
    int64_t tap = gb_conv_first_tap(axis, o), begin = gb_conv_source(axis, o, tap);
    int64_t apart = axis->dilation_in_copy * axis->step;
    u->skip_taps = gb_conv_class_taps(axis, tap);
    u->skip_first = gb_min_i64(gb_max_i64(gb_ceil_div(-begin, apart), 0), u->skip_taps);
    u->skip_end = gb_min_i64(gb_ceil_div(axis->in - begin, apart), u->skip_taps);
    u->skip_end = gb_max_i64(u->skip_first, u->skip_end);
}

/* May tiles take the post-ops of the line, or of two, which begin at `position`? */
static bool read_post_ops(gb_conv_product_item *u, const int64_t *position)
{
    const gb_conv_plan *conv = u->item.conv;
    const gb_pointwise_view *views = u->line_views;
    int64_t line = gb_conv_line(u->plan, u->item.count), channels = u->item.n_out;
    if (u->paired)
        line *= 2;
    if (u->plan->transposed) {
        const uint32_t result = result_operand(&conv->epilogue);
        if (views[result].col_stride != 1)
            return false;
        gb_pointwise_views(&conv->epilogue, u->item.call->buffers, position,
                conv->axes[conv->tile_axis].dim, conv->channel_dim, u->views);
        u->views[result] = (gb_pointwise_view){
                .data = (char *)u->transposed, .row_stride = PANEL, .col_stride = 1};
        views = u->views;
    }
    return conv->kernels->tile_post_ops(&conv->epilogue, views, conv->wide ? channels : line,
            conv->wide ? line : channels, u->columns, u->plan->column_floats, &u->post_ops);
}

static void locate_line(gb_conv_product_item *u)
{
    const gb_conv_plan *conv = u->item.conv;
    int64_t position[GB_AXES], offset = 0;
    u->residue = 0;
    for (int a = 0; a < conv->n_axes; a++) {
        const gb_conv_plan_axis *axis = &conv->axes[a];
        position[axis->dim] = u->item.first[a] + u->item.line[a];
        if (a != conv->tile_axis)
            offset += gb_conv_item_find(&u->item, a, position[axis->dim], &u->residue);
    }
    position[conv->channel_dim] = u->item.group * conv->out_channels + u->item.out_first;
    u->src = u->item.copy + offset;
    int tile_dim = conv->axes[conv->tile_axis].dim;
    bool rows = positions_are_rows(u->plan);
    if (u->in_first + u->item.n_in < conv->in_channels)
        return;
    gb_pointwise_views(&conv->epilogue, u->item.call->buffers, position,
            rows ? tile_dim : conv->channel_dim, rows ? conv->channel_dim : tile_dim,
            u->line_views);
    u->in_tiles = u->plan->column_floats && read_post_ops(u, position);
}

/* Positions of the next group when `rest` are left: the last two share them, because tiles of few
 * rows wait for their own multiply-adds. */
static int64_t positions_of_group(const gb_conv_product *plan, int64_t rest)
{
    if (rest <= plan->most_positions || rest >= 2 * plan->group_positions)
        return rest <= plan->most_positions ? rest : plan->group_positions;
    return gb_div_up(gb_div_up(rest, 2), plan->group_step) * plan->group_step;
}

void gb_conv_product_block(gb_conv_product_item *u)
{
    const int pair = u->plan->paired_axis;
    int64_t line = gb_conv_line(u->plan, u->item.count), panels = gb_div_up(u->item.n_out, PANEL);
    float *sums = u->sums;
    memset(u->item.line, 0, sizeof u->item.line);
    u->positions = 1;
    for (int a = 0; a < u->item.conv->n_axes; a++)
        u->positions *= u->item.count[a];
    u->done = 0;
    do {
        u->paired = pair >= 0 && u->item.line[pair] + 1 < u->item.count[pair];
        locate_line(u);
        choose_taps(u);
        int64_t positions = u->paired ? 2 * line : line;
        for (int64_t first = 0, group; first < positions; first += group) {
            group = positions_of_group(u->plan, positions - first);
            u->first_group = u->done == 0 ? group : u->first_group;
            multiply_group(u, first, group, sums);
            sums += panels * GB_TILE_ELEMENTS;
            u->done += group;
        }
        if (u->paired)
            u->item.line[pair]++;
    } while (gb_conv_item_next_line(&u->item, u->plan->joined_axis));
}

/* Are the copies of a work item still there for the next one? */
static bool keeps_copies(const gb_conv_plan *conv)
{
    return conv->copy_apart > 0 || conv->in_block >= conv->in_channels;
}

static void run_item(gb_conv_product_item *u, int64_t index)
{
    const gb_conv_plan *conv = u->item.conv;
    gb_conv_item_start(&u->item, index);
    const char *weights = u->item.call->buffers[conv->weights];
    int64_t group = gb_div_up(conv->out_channels, PANEL) * conv->in_channels * conv->taps * PANEL;
    u->in_first = 0;
    do {
        u->item.n_in = gb_min_i64(conv->in_block, conv->in_channels - u->in_first);
        u->panels = weights + (u->item.group * group + u->in_first * conv->taps * PANEL) *
                                      weight_bytes(u->plan);
        u->item.copy = u->copies + u->in_first / conv->in_block * conv->copy_apart;
        if (u->copied != index / conv->out_blocks || !keeps_copies(conv)) {
            int64_t first = u->item.group * conv->in_channels + u->in_first;
            u->plan->arithmetic->copy(u, first, u->in_first == 0);
        }
        gb_conv_product_block(u);
        u->in_first += u->item.n_in;
        u->follows = true;
    } while (u->in_first < conv->in_channels);
    u->copied = index / conv->out_blocks;
}

gb_conv_product_item gb_conv_product_start(const gb_step_call *call)
{
    const gb_conv_product *plan = call->params;
    const gb_conv_plan *conv = &plan->conv;
    return (gb_conv_product_item){
            .item = {.conv = conv, .call = call, .copy = gb_scratch_get(call, conv->copy)},
            .plan = plan,
            .copied = -1,
            .copies = gb_scratch_get(call, conv->copy),
            .sums = gb_scratch_get(call, plan->sums),
            .transposed = gb_scratch_get(call, plan->transpose_buffer),
            .registers = gb_scratch_get(call, conv->registers),
            .views = gb_scratch_get(call, conv->views),
            .line_views = gb_scratch_get(call, plan->line_views),
            .columns = gb_scratch_get(call, plan->columns)};
}

void gb_conv_product_run(const gb_step_call *call)
{
    gb_conv_product_item u = gb_conv_product_start(call);
    const gb_conv_plan *conv = u.item.conv;
    int64_t begin, end, own_begin, own_end, before = -2; /* none */
    gb_split(conv->items, call->thread, call->n_threads, &own_begin, &own_end);
    conv->kernels->dot_begin();
    while (gb_take_items(call, conv->items, &begin, &end))
        for (int64_t i = begin; i < end; before = i++) {
            u.follows = i == before + 1;
            u.leads = i >= own_begin && i + 1 < own_end;
            run_item(&u, i);
        }
    conv->kernels->dot_end();
}
