/* Plans and runs depthwise convolutions of planes. */
#include "kernels/conv/conv_planes.h"

#include "base/dtype.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/conv/conv_depthwise.h"
#include "kernels/conv/conv_item.h"
#include "kernels/conv/conv_views.h"
#include "kernels/cpu/step_call.h"

/* MOST_KERNEL: along columns; each tap has its masks. MOST_COLUMNS: of results; each tile of them is looked at. */
enum { PANEL = GB_GEMM_PANEL, BATCH = 0, MOST_KERNEL = 32, MOST_COLUMNS = 1 << 20 };

/* Plan ----------------------------------------------------------------------------------------- */

static const gb_conv_axis *x_axis(const gb_conv_problem *problem)
{
    return &problem->axes[problem->n_axes - 1];
}

bool gb_conv_planes_can_read(const gb_conv_problem *problem)
{
    const gb_conv_axis *batch = &problem->axes[BATCH], *x = x_axis(problem);
    const bool is_forward = x->input_dilation == 1 && problem->axes[1].input_dilation == 1;
    return (problem->n_axes == 2 || problem->n_axes == 3) && is_forward && x->stride <= 2 &&
           x->kernel <= MOST_KERNEL && x->out <= MOST_COLUMNS && batch->kernel == 1 &&
           batch->stride == 1 && batch->pad == 0 &&
           gb_conv_result(&problem->pointwise)->strides[x->dim] == 1;
}

/* Codes in rows of less than a tile are copied as quickly: AVX2, 14 positions 0.9 of the time, 7 0.85. */
static bool has_short_codes(const gb_conv_problem *problem)
{
    const int64_t tile = GB_PLANE_ACROSS * gb_kernels_get()->gemm_limits().lanes;
    return gb_dtype_get(problem->src_type)->bits == 8 && x_axis(problem)->out < tile;
}

bool gb_conv_planes_fits(const gb_conv_problem *problem)
{
    return gb_conv_depthwise_fits(problem) && x_axis(problem)->src_stride == 1 &&
           gb_conv_planes_can_read(problem) && !has_short_codes(problem);
}

/* Result rows that no tap reads beyond the plane at. */
static void find_inner(gb_depthwise_plane *plane, int64_t rows)
{
    const int64_t reach = (plane->kernel[0] - 1) * plane->dilation[0];
    const int64_t first = gb_ceil_div(plane->pad[0], plane->step[0]);
    const int64_t end = gb_ceil_div(plane->height + plane->pad[0] - reach, plane->step[0]);
    plane->inner_first = gb_min_i64(gb_max_i64(first, 0), rows);
    plane->inner_end = gb_max_i64(gb_min_i64(end, rows), plane->inner_first);
}

/* Source columns that a tap reads for a tile of columns. */
static int64_t columns_of_tile(const gb_depthwise_plane *plane, int lanes)
{
    return GB_PLANE_ACROSS * plane->step[1] * lanes;
}

/* Does a tile read columns beyond the plane, or may it be the last one, which a single vector runs? */
static bool needs_masks(const gb_depthwise_plane *plane, int64_t tile, int lanes)
{
    const int64_t columns = columns_of_tile(plane, lanes), first = tile * columns - plane->pad[1];
    const int64_t reach = (plane->kernel[1] - 1) * plane->dilation[1];
    const bool is_last = plane->cols - tile * GB_PLANE_ACROSS * lanes <= lanes;
    return first < 0 || first + reach + columns > plane->width || is_last;
}

static void fill_masks(const gb_depthwise_plane *plane, int64_t tile, int lanes, int32_t *masks)
{
    const int64_t columns = columns_of_tile(plane, lanes), first = tile * columns - plane->pad[1];
    for (int64_t j = 0; j < plane->kernel[1]; j++)
        for (int64_t i = 0; i < columns; i++) {
            const int64_t x = first + j * plane->dilation[1] + i;
            *masks++ = -(x >= 0 && x < plane->width);
        }
}

/* Masks of all tiles of columns, in memory of the step. */
static gb_status add_masks(gb_step *step, gb_depthwise_plane *plane)
{
    const int lanes = gb_kernels_get()->gemm_limits().lanes;
    const int64_t tiles = gb_div_up(plane->cols, GB_PLANE_ACROSS * lanes);
    const int64_t words = plane->kernel[1] * columns_of_tile(plane, lanes);
    int64_t needed = 0;
    for (int64_t t = 0; t < tiles; t++)
        needed += needs_masks(plane, t, lanes);
    const int32_t **list = gb_step_alloc(step, (size_t)tiles, sizeof *list);
    int32_t *masks = gb_step_alloc(step, (size_t)(needed * words), sizeof *masks);
    if ((!list && tiles) || (!masks && needed))
        return GB_OUT_OF_MEMORY;
    for (int64_t t = 0; t < tiles; t++)
        if (needs_masks(plane, t, lanes)) {
            fill_masks(plane, t, lanes, masks);
            list[t] = masks;
            masks += words;
        }
    plane->masks = list;
    return GB_SUCCESS;
}

static gb_depthwise_plane make_plane(const gb_conv_problem *problem)
{
    const gb_conv_axis one = {.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    const gb_conv_axis *x = x_axis(problem);
    const gb_conv_axis *y = problem->n_axes == 3 ? &problem->axes[1] : &one;
    gb_depthwise_plane plane = {.src_row = y->src_stride,
            .height = y->in,
            .width = x->in,
            .weight_row = y->tap_stride,
            .weight_col = x->tap_stride,
            .kernel = {y->kernel, x->kernel},
            .step = {y->stride, x->stride},
            .dilation = {y->dilation, x->dilation},
            .pad = {y->pad, x->pad},
            .cols = x->out};
    find_inner(&plane, y->out);
    return plane;
}

/* Do tiles take the post-ops? Results of 16 bits leave a tile through memory anyway, and more at a time behind several:
 * AVX2, 0.82 to 0.91 of the time; f32 1.08 to 1.14, 8 bits 1.08 to 1.27 where rows are not short. */
static bool takes_post_ops(const gb_conv_problem *problem)
{
    return gb_conv_result(&problem->pointwise)->bytes != 2;
}

gb_status gb_conv_planes_make(gb_program *program, gb_step *step, const gb_conv_problem *problem,
        int64_t most_rows, gb_conv_planes *planes)
{
    const gb_conv_axis *batch = &problem->axes[BATCH];
    const gb_conv_axis *y = problem->n_axes == 3 ? &problem->axes[1] : NULL;
    *planes = (gb_conv_planes){.epilogue = problem->pointwise,
            .channel_dim = problem->channel_dim,
            .batch_dim = batch->dim,
            .y_dim = y ? y->dim : -1,
            .x_dim = x_axis(problem)->dim,
            .kernels = gb_kernels_get(),
            .plane = make_plane(problem),
            .batch = batch->out,
            .channels = problem->groups * problem->out_channels,
            .repeats = problem->out_channels,
            .first_weight = problem->first_weight,
            .weight_stride = problem->group_stride / problem->out_channels,
            .src_type = GB_F32,
            .rows = y ? y->out : 1,
            .direct = gb_pointwise_is_plain_store(&problem->pointwise)};
    GB_TRY(add_masks(step, &planes->plane));
    planes->views = gb_conv_add_views(step, &planes->epilogue);
    planes->registers = gb_scratch_add(step, gb_pointwise_scratch(&planes->epilogue));
    if (!planes->direct && takes_post_ops(problem))
        planes->column_floats = gb_tile_post_ops_floats(
                &planes->epilogue, gb_max_i64(most_rows, planes->plane.cols));
    planes->columns = gb_scratch_add(step, gb_float_bytes(planes->column_floats));
    step->work = 4 * (double)planes->batch * (double)planes->channels * (double)planes->rows *
                 (double)planes->plane.cols *
                 ((double)planes->plane.kernel[0] * (double)planes->plane.kernel[1]);
    uint32_t weights = problem->weights_buffer;
    if (problem->weights_type != GB_F32) {
        GB_TRY(gb_conv_pack_depthwise(program, problem, &weights));
        planes->packed = true;
        planes->plane.weight_row = planes->plane.kernel[1] * PANEL;
        planes->plane.weight_col = PANEL;
    }
    return gb_step_use_buffer(step, weights, false, &planes->weights);
}

/* Source rows that `rows` result rows read, as if the plane went on. */
static int64_t source_rows(const gb_depthwise_plane *plane, int64_t rows)
{
    return (rows - 1) * plane->step[0] + (plane->kernel[0] - 1) * plane->dilation[0] + 1;
}

/* Rows of a work item: enough items for the threads, and enough rows that neighbours share what they read; where these
 * become f32, not more than stay in a quarter of L2. */
static int64_t choose_block(const gb_conv_problem *problem, int threads)
{
    enum { ITEMS = 4, LEAST = 16 };
    const gb_depthwise_plane plane = make_plane(problem);
    const int64_t rows = problem->n_axes == 3 ? problem->axes[1].out : 1;
    const int64_t planes = problem->axes[BATCH].out * problem->groups * problem->out_channels;
    const int64_t wanted = gb_div_up((int64_t)ITEMS * threads, gb_max_i64(planes, 1));
    const int64_t block = gb_div_up(rows, gb_min_i64(wanted, gb_max_i64(rows / LEAST, 1)));
    const int64_t floats = (int64_t)(gb_machine_get()->l2_bytes / sizeof(float) / 4);
    const int64_t room = floats / gb_max_i64(plane.width, 1) - source_rows(&plane, 1);
    const int64_t most = gb_max_i64(room / plane.step[0] + 1, 1);
    return problem->src_type == GB_F32 ? block : gb_min_i64(block, most);
}

/* Rows that become f32 first. */
static void use_numbers(gb_step *step, const gb_conv_problem *problem, gb_conv_planes *planes)
{
    gb_depthwise_plane *plane = &planes->plane;
    const int64_t rows = gb_min_i64(source_rows(plane, planes->block), plane->height);
    planes->src_type = problem->src_type;
    planes->zero_point = problem->zero_point;
    planes->src_row = plane->src_row;
    plane->src_row = plane->width;
    planes->numbers = gb_scratch_add(step, gb_float_bytes(rows * plane->width));
}

gb_status gb_conv_planes_plan(gb_program *program, gb_step *step, const gb_conv_problem *problem)
{
    gb_conv_planes *planes = gb_step_alloc(step, 1, sizeof *planes);
    if (!planes)
        return GB_OUT_OF_MEMORY;
    const int64_t block = choose_block(problem, gb_program_threads(program));
    GB_TRY(gb_conv_planes_make(program, step, problem, block, planes));
    planes->block = block;
    planes->blocks = gb_div_up(planes->rows, gb_max_i64(block, 1));
    planes->batch_stride = problem->axes[BATCH].src_stride;
    planes->channel_stride = problem->src_channel_stride;
    if (problem->src_type != GB_F32)
        use_numbers(step, problem, planes);
    step->params = planes;
    return gb_step_use_buffer(step, problem->src_buffer, false, &planes->src);
}

/* Run ------------------------------------------------------------------------------------------ */

static void find_views(const gb_conv_planes_item *u)
{
    const gb_conv_planes *planes = u->planes;
    gb_pointwise_views(&planes->epilogue, u->call->buffers, u->position, planes->y_dim,
            planes->x_dim, u->views);
}

/* The post-ops behind tiles of as many rows and columns as the pointwise program takes; of a row that is longer than
 * that the kernel computes one piece after the other. */
static void run_behind(gb_conv_planes_item *u, gb_depthwise_plane *plane)
{
    const gb_conv_planes *planes = u->planes;
    const gb_depthwise_plane whole = *plane;
    const int64_t most_cols = gb_min_i64(whole.cols, GB_TILE_ELEMENTS);
    const int64_t most_rows = GB_TILE_ELEMENTS / most_cols;
    const int64_t tile = GB_PLANE_ACROSS * planes->kernels->gemm_limits().lanes;
    plane->dst = u->registers;
    for (int64_t r = 0; r < whole.rows; r += most_rows)
        for (int64_t c = 0; c < whole.cols; c += most_cols) {
            plane->first = whole.first + r;
            plane->rows = gb_min_i64(most_rows, whole.rows - r);
            plane->cols = plane->dst_row = gb_min_i64(most_cols, whole.cols - c);
            plane->masks = whole.masks + c / tile;
            plane->pad[1] = whole.pad[1] - c * whole.step[1];
            if (planes->y_dim >= 0)
                u->position[planes->y_dim] = plane->first;
            u->position[planes->x_dim] = c;
            find_views(u);
            planes->kernels->depthwise_plane(plane);
            planes->kernels->pointwise_run(
                    &planes->epilogue, u->views, plane->rows, plane->cols, u->registers);
        }
}

static const float *weights_of(const gb_conv_planes_item *u, int64_t channel)
{
    const gb_conv_planes *planes = u->planes;
    const float *weights = u->call->buffers[planes->weights];
    const int64_t taps = planes->plane.kernel[0] * planes->plane.kernel[1];
    return weights + (planes->packed ? channel / PANEL * taps * PANEL + channel % PANEL
                                     : planes->first_weight + channel * planes->weight_stride);
}

void gb_conv_planes_run_item(gb_conv_planes_item *u, const float *src, int64_t batch,
        int64_t channel, int64_t first, int64_t rows)
{
    const gb_conv_planes *planes = u->planes;
    gb_depthwise_plane plane = planes->plane;
    gb_tile_post_ops post_ops;
    plane.src = src;
    plane.weights = weights_of(u, channel);
    plane.first = plane.post_first = first;
    plane.rows = rows;
    u->position[planes->batch_dim] = batch;
    u->position[planes->channel_dim] = channel;
    if (planes->y_dim >= 0)
        u->position[planes->y_dim] = first;
    u->position[planes->x_dim] = 0;
    find_views(u);
    if (planes->direct) {
        plane.dst = (float *)(void *)u->views[0].data;
        plane.dst_row = u->views[0].row_stride;
    } else if (planes->column_floats &&
               planes->kernels->tile_post_ops(&planes->epilogue, u->views, rows, plane.cols,
                       u->columns, planes->column_floats, &post_ops)) {
        plane.post_ops = &post_ops;
    } else {
        run_behind(u, &plane);
        return;
    }
    planes->kernels->depthwise_plane(&plane);
}

gb_conv_planes_item gb_conv_planes_start(const gb_step_call *call, const gb_conv_planes *planes)
{
    return (gb_conv_planes_item){.planes = planes,
            .call = call,
            .registers = gb_scratch_get(call, planes->registers),
            .columns = gb_scratch_get(call, planes->columns),
            .numbers = gb_scratch_get(call, planes->numbers),
            .views = gb_scratch_get(call, planes->views)};
}

/* Of the plane at `src` the rows that `rows` result rows from `first` on read, as f32; where its row 0 would be. */
static const float *make_numbers(
        const gb_conv_planes_item *u, const char *src, int64_t first, int64_t rows)
{
    const gb_conv_planes *planes = u->planes;
    const gb_depthwise_plane *plane = &planes->plane;
    const int64_t begin = first * plane->step[0] - plane->pad[0];
    const int64_t low = gb_min_i64(gb_max_i64(begin, 0), plane->height);
    const int64_t high = gb_min_i64(begin + source_rows(plane, rows), plane->height);
    const bool dense = planes->src_row == plane->width;
    const int64_t count = gb_max_i64(high - low, 0);
    const gb_gemm_copy copy = {.type = planes->src_type,
            .src = src + low * planes->src_row * gb_dtype_get(planes->src_type)->bits / 8,
            .rows = dense ? 1 : count,
            .cols = dense ? count * plane->width : plane->width,
            .row_stride = planes->src_row,
            .col_stride = 1,
            .dst = u->numbers,
            .dst_row = plane->width};
    planes->kernels->gemm_copy(&copy);
    if (planes->zero_point != 0)
        gb_conv_subtract(planes->zero_point, &copy);
    return u->numbers - low * plane->width;
}

void gb_conv_planes_run(const gb_step_call *call)
{
    const gb_conv_planes *planes = call->params;
    const char *src = call->buffers[planes->src];
    const int64_t size = gb_dtype_get(planes->src_type)->bits / 8;
    gb_conv_planes_item u = gb_conv_planes_start(call, planes);
    int64_t begin, end;
    while (gb_take_items(call, planes->batch * planes->channels * planes->blocks, &begin, &end))
        for (int64_t i = begin; i < end; i++) {
            const int64_t first = i % planes->blocks * planes->block, index = i / planes->blocks;
            const int64_t channel = index % planes->channels, batch = index / planes->channels;
            const int64_t rows = gb_min_i64(planes->block, planes->rows - first);
            const char *plane = src + (batch * planes->batch_stride +
                                              channel / planes->repeats * planes->channel_stride) *
                                              size;
            const float *numbers = planes->src_type == GB_F32
                                           ? (const float *)(const void *)plane
                                           : make_numbers(&u, plane, first, rows);
            gb_conv_planes_run_item(&u, numbers, batch, channel, first, rows);
        }
}
