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

/* Lists the taps that count at the item's position, and one of weight 0 where their number is odd; returns how many.
 * *source: of the element that offset 0 stands for. */
static int64_t list_taps(item *u, int64_t *source)
{
    const gb_conv_depthwise_int8 *plan = u->plan;
    const gb_conv_line_taps taps =
            gb_conv_lines_taps(&plan->lines, u->position, u->offsets, u->weight_offsets);
    int64_t n = taps.n;
    *source = taps.source;
    if (n % 2 != 0) {
        u->offsets[n] = u->offsets[n - 1];
        u->weight_offsets[n++] = plan->lines.taps;
    }
    for (int64_t i = 0; i < n; i++)
        u->weight_offsets[i] *= plan->weights_row;
    return n;
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
    const gb_conv_axis *tile = gb_conv_lines_axis(&plan->lines);
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
    const gb_conv_axis *tile = gb_conv_lines_axis(&plan->lines);
    u->position[tile->dim] = 0;
    u->position[plan->channel_dim] = u->first;
    gb_pointwise_views(
            &plan->epilogue, u->call->buffers, u->position, tile->dim, plan->channel_dim, u->views);
    u->in_tiles = plan->column_floats &&
                  plan->kernels->tile_post_ops(&plan->epilogue, u->views, tile->out, u->channels,
                          u->columns, plan->column_floats, &u->post_ops);
    for (int64_t o = 0, end; o < tile->out; o = end) {
        end = o + gb_conv_lines_alike(&plan->lines, o, tile->out);
        run_positions(u, o, end);
    }
}

static void run_item(item *u, int64_t index)
{
    const gb_conv_depthwise_int8 *plan = u->plan;
    u->first = index % plan->blocks * plan->block;
    u->channels = gb_min_i64(plan->block, plan->channels - u->first);
    gb_conv_lines_find(&plan->lines, index / plan->blocks, u->position);
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
    u.weight_offsets = u.offsets + plan->lines.taps + 1;
    while (gb_take_items(call, plan->lines.n_lines * plan->blocks, &begin, &end))
        for (int64_t i = begin; i < end; i++)
            run_item(&u, i);
}
