/* Runs depthwise convolutions of 8-bit quantized values. */
#include "kernels/conv/conv_depthwise_int8.h"

#include "base/memory.h"
#include "base/parallel.h"

enum { COLUMNS = GB_DEPTHWISE_COLUMNS };

/* A work item at work. */
typedef struct item {
    const gb_conv_depthwise_int8 *plan;
    const gb_step_call *call;
    int64_t position[GB_AXES], first, channels; /* by dim of the result; first: channel */
    int64_t *offsets, *weight_offsets;
    float *registers, *columns;
    gb_pointwise_view *views, *tile_views;
    bool in_tiles; /* post_ops hold what the pointwise program does with the line */
    gb_tile_post_ops post_ops;
} item;

/* Lists the taps that read inside the source at the item's position, and one of weight 0 where their
 * number is odd; returns how many. *source: of the element that offset 0 stands for. */
static int64_t list_taps(item *u, int64_t *source)
{
    const gb_conv_depthwise_int8 *plan = u->plan;
    int64_t low[GB_AXES], count[GB_AXES], n = 1, last = 0;
    *source = 0;
    for (int a = 0; a < plan->n_axes; a++) {
        const gb_conv_axis *axis = &plan->axes[a];
        int64_t begin = u->position[axis->dim] * axis->stride - axis->pad;
        int64_t end = gb_min_i64(gb_ceil_div(axis->in - begin, axis->dilation), axis->kernel);
        low[a] = gb_max_i64(gb_ceil_div(-begin, axis->dilation), 0);
        count[a] = gb_max_i64(end - low[a], 0);
        n *= count[a];
        *source += (begin + low[a] * axis->dilation) * axis->src_stride;
    }
    if (n == 0)
        *source = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t offset = 0, tap = 0, taps = 1, rest = i;
        for (int a = plan->n_axes; a-- > 0; rest /= count[a]) {
            const gb_conv_axis *axis = &plan->axes[a];
            offset += rest % count[a] * axis->dilation * axis->src_stride;
            tap += (low[a] + rest % count[a]) * taps;
            taps *= axis->kernel;
        }
        u->offsets[i] = last = offset;
        u->weight_offsets[i] = tap * plan->weights_row;
    }
    if (n % 2 == 0)
        return n;
    u->offsets[n] = last;
    u->weight_offsets[n] = plan->taps * plan->weights_row;
    return n + 1;
}

/* Results as f32, then the pointwise program. */
static void run_behind(item *u, const gb_depthwise_int8 *run)
{
    const gb_pointwise_program *epilogue = &u->plan->epilogue;
    const int64_t most = GB_TILE_ELEMENTS / COLUMNS;
    for (int64_t c = 0; c < run->cols; c += COLUMNS)
        for (int64_t r = 0; r < run->rows; r += most) {
            gb_depthwise_int8 tile = *run;
            tile.src = (const char *)run->src + r * run->row + c;
            tile.weights += c;
            tile.factors += c;
            tile.rows = gb_min_i64(most, run->rows - r);
            tile.cols = tile.dst_row = gb_min_i64(COLUMNS, run->cols - c);
            tile.dst = u->registers;
            u->plan->kernels->depthwise_int8(&tile);
            for (uint32_t i = 0; i < epilogue->n_operands; i++)
                u->tile_views[i] = gb_pointwise_view_at(
                        &u->views[i], run->post_row + r, c, epilogue->operands[i].bytes);
            u->plan->kernels->pointwise_run(
                    epilogue, u->tile_views, tile.rows, tile.cols, u->registers);
        }
}

/* Positions first .. end - 1 of the line, at which the same taps count. */
static void run_positions(item *u, int64_t first, int64_t end)
{
    const gb_conv_depthwise_int8 *plan = u->plan;
    const gb_conv_axis *tile = &plan->axes[plan->tile_axis];
    const float *factors = u->call->buffers[plan->weights];
    int64_t source;
    u->position[tile->dim] = first;
    gb_depthwise_int8 run = {.is_signed = plan->is_signed,
            .zero_point = plan->zero_point,
            .offsets = u->offsets,
            .weight_offsets = u->weight_offsets,
            .taps = list_taps(u, &source),
            .row = tile->stride * tile->src_stride,
            .weights = gb_depthwise_weights(plan, factors) + u->first,
            .factors = factors + u->first,
            .rows = end - first,
            .cols = u->channels,
            .post_row = first};
    run.src = (const char *)u->call->buffers[plan->src] + source + u->first;
    if (!u->in_tiles) {
        run_behind(u, &run);
        return;
    }
    run.post_ops = &u->post_ops;
    plan->kernels->depthwise_int8(&run);
}

static void run_line(item *u)
{
    const gb_conv_depthwise_int8 *plan = u->plan;
    const gb_conv_axis *tile = &plan->axes[plan->tile_axis];
    u->position[tile->dim] = 0;
    u->position[plan->channel_dim] = u->first;
    gb_pointwise_views(
            &plan->epilogue, u->call->buffers, u->position, tile->dim, plan->channel_dim, u->views);
    u->in_tiles = plan->column_floats &&
                  plan->kernels->tile_post_ops(&plan->epilogue, u->views, tile->out, u->channels,
                          u->columns, plan->column_floats, &u->post_ops);
    for (int64_t o = 0; o < plan->inner_first; o++)
        run_positions(u, o, o + 1);
    if (plan->inner_first < plan->inner_end)
        run_positions(u, plan->inner_first, plan->inner_end);
    for (int64_t o = plan->inner_end; o < tile->out; o++)
        run_positions(u, o, o + 1);
}

static void run_item(item *u, int64_t index)
{
    const gb_conv_depthwise_int8 *plan = u->plan;
    int64_t rest = index / plan->blocks;
    u->first = index % plan->blocks * plan->block;
    u->channels = gb_min_i64(plan->block, plan->channels - u->first);
    for (int a = plan->n_axes; a-- > 0;) {
        if (a == plan->tile_axis)
            continue;
        u->position[plan->axes[a].dim] = rest % plan->axes[a].out;
        rest /= plan->axes[a].out;
    }
    run_line(u);
}

void gb_conv_depthwise_int8_run(const gb_step_call *call)
{
    const gb_conv_depthwise_int8 *plan = call->params;
    item u = {.plan = plan,
            .call = call,
            .offsets = gb_scratch_get(call, plan->offsets),
            .registers = gb_scratch_get(call, plan->registers),
            .columns = gb_scratch_get(call, plan->columns),
            .views = gb_scratch_get(call, plan->views),
            .tile_views = gb_scratch_get(call, plan->tile_views)};
    int64_t begin, end;
    u.weight_offsets = u.offsets + plan->taps + 1;
    while (gb_take_items(call, plan->lines * plan->blocks, &begin, &end))
        for (int64_t i = begin; i < end; i++)
            run_item(&u, i);
}
