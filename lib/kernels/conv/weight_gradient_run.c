/* Runs a weight gradient: products of chunks of positions, then the sum of the parts. */
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/conv/weight_gradient.h"
#include "kernels/cpu/step_call.h"
#include "kernels/plan/space.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL, GROUP_ROWS = GB_TILE_ELEMENTS / PANEL };

typedef struct item {
    const gb_weight_gradient *gradient;
    const gb_step_call *call;
    float *copies[2], *registers; /* of the sides */
    gb_pointwise_view *views;     /* of the operands of the epilogue */
    int64_t *offsets[2];          /* of the chunk's positions, per side */
    int64_t listed[GB_AXES];      /* size of the chunk that `offsets` are for */
    int64_t run;                  /* positions whose offsets rise by equal steps */
    const float *src[2];          /* the chunk's first position */
    int64_t first[2], count[2];   /* channels, per side */
    int64_t group, part;
    int64_t position[GB_AXES], size[GB_AXES]; /* the chunk: a box of positions */
    int64_t positions;
    float *sums;  /* of the part and group */
    bool started; /* sums hold earlier chunks */
} item;

/* Elements from position to position along an axis, in what tiles read. */
static int64_t position_step(const gb_gradient_plan_side *side, int a)
{
    const gb_gradient_plan_axis *axis = &side->axes[a];
    return side->in_place ? axis->stride * axis->src_stride
                          : axis->stride_in_copy * axis->copy_stride;
}

static int64_t tap_step(const gb_gradient_plan_side *side, int a)
{
    const gb_gradient_plan_axis *axis = &side->axes[a];
    return side->in_place ? axis->dilation * axis->src_stride
                          : axis->dilation_in_copy * axis->copy_stride;
}

static int64_t channel_step(const gb_gradient_plan_side *side)
{
    return side->in_place ? side->channel_stride : side->copy_channel_stride;
}

/* Positions of the chunk, from the first on, that are equally far apart on both sides: those of the
 * last axis, and of the ones before it for as long as each goes on where the one behind it ends. */
static int64_t equal_steps(const item *u)
{
    const gb_weight_gradient *gradient = u->gradient;
    int64_t run = 1, steps[2] = {0, 0};
    for (int a = gradient->n_axes; a-- > 0;) {
        if (u->size[a] == 1)
            continue;
        for (int s = 0; s < 2; s++) {
            int64_t step = position_step(&gradient->sides[s], a);
            if (run == 1)
                steps[s] = step;
            else if (step != run * steps[s])
                return run;
        }
        run *= u->size[a];
    }
    return run;
}

static void list_offsets(item *u)
{
    const gb_weight_gradient *gradient = u->gradient;
    size_t bytes = sizeof(int64_t) * (size_t)gradient->n_axes;
    if (memcmp(u->listed, u->size, bytes) == 0)
        return;
    memcpy(u->listed, u->size, bytes);
    for (int s = 0; s < 2; s++) {
        int64_t count = 1, *offsets = u->offsets[s];
        offsets[0] = 0;
        for (int a = gradient->n_axes; a-- > 0;) {
            int64_t step = position_step(&gradient->sides[s], a);
            for (int64_t i = count; i < count * u->size[a]; i++)
                offsets[i] = offsets[i - count] + step;
            count *= u->size[a];
        }
    }
    u->run = equal_steps(u);
}

static void prepare_side(item *u, int s)
{
    const gb_weight_gradient *gradient = u->gradient;
    const gb_gradient_plan_side *side = &gradient->sides[s];
    const void *data = u->call->buffers[side->slot];
    int64_t channel = u->group * side->channels + u->first[s];
    if (!side->in_place) {
        u->src[s] = u->copies[s];
        gb_gradient_copy(
                gradient, side, u->position, u->size, channel, u->count[s], data, u->copies[s]);
        return;
    }
    int64_t offset = channel * side->channel_stride;
    for (int a = 0; a < gradient->n_axes; a++) {
        const gb_gradient_plan_axis *axis = &side->axes[a];
        offset += (u->position[a] * axis->stride - axis->pad) * axis->src_stride;
    }
    u->src[s] = (const float *)data + offset;
}

static void start_chunk(item *u, int64_t index)
{
    const gb_weight_gradient *gradient = u->gradient;
    u->positions = 1;
    for (int a = gradient->n_axes; a-- > 0;) {
        u->position[a] = index % gradient->chunks_along[a] * gradient->chunk[a];
        u->size[a] = gb_min_i64(gradient->chunk[a], gradient->out[a] - u->position[a]);
        u->positions *= u->size[a];
        index /= gradient->chunks_along[a];
    }
    list_offsets(u);
    prepare_side(u, 0);
    prepare_side(u, 1);
}

/* Taps ----------------------------------------------------------------------------------------- */

/* Offset of tap `tap` (counted over all axes, the last one fastest) in what the windows read. */
static int64_t tap_offset(const gb_weight_gradient *gradient, int64_t tap)
{
    const gb_gradient_plan_side *window = &gradient->sides[GB_GRADIENT_WINDOW];
    int64_t offset = 0;
    for (int a = gradient->n_axes; a-- > 0; tap /= window->axes[a].kernel)
        offset += tap % window->axes[a].kernel * tap_step(window, a);
    return offset;
}

/* Taps from one tap of the axis to its next. */
static int64_t taps_inside(const gb_weight_gradient *gradient, int axis)
{
    int64_t taps = 1;
    for (int a = axis + 1; a < gradient->n_axes; a++)
        taps *= gradient->sides[GB_GRADIENT_WINDOW].axes[a].kernel;
    return taps;
}

/* Products ------------------------------------------------------------------------------------- */

/* `rows` rows in tiles; row r reads a + r * a_row and is summed at sums + r * sum_row. */
static void weight_gradient_multiply(const item *u, const float *a, int64_t a_row, const float *b,
        int64_t rows, int64_t cols, float *sums, int64_t sum_row)
{
    const gb_weight_gradient *gradient = u->gradient;
    gb_gemm_tile tile = {.a_row = a_row,
            .a_offsets = u->offsets[gradient->rows],
            .b_offsets = u->offsets[gradient->vectors],
            .k = u->positions,
            .run = u->run,
            .c_in_row = sum_row,
            .c_out_row = sum_row};
    for (int64_t r = 0; r < rows; r += gradient->tile_rows)
        for (int64_t c = 0; c < cols; c += gradient->tile_cols) {
            tile.rows = (int)gb_min_i64(gradient->tile_rows, rows - r);
            tile.cols = (int)gb_min_i64(gradient->tile_cols, cols - c);
            tile.a = a + r * a_row;
            tile.b = b + c;
            tile.c_out = sums + r * sum_row + c;
            tile.c_in = u->started ? tile.c_out : NULL;
            gradient->kernels->gemm_tile(&tile);
        }
}

/* One panel; the rows of tiles are channels. */
static void multiply_channels(const item *u, const float *b, int64_t cols, float *sums)
{
    const gb_weight_gradient *gradient = u->gradient;
    const gb_gradient_plan_side *rows = &gradient->sides[gradient->rows];
    bool shifts_rows = gradient->rows == GB_GRADIENT_WINDOW;
    for (int64_t tap = 0; tap < gradient->taps; tap++) {
        int64_t shift = tap_offset(gradient, tap);
        weight_gradient_multiply(u, u->src[gradient->rows] + (shifts_rows ? shift : 0),
                channel_step(rows), b + (shifts_rows ? 0 : shift), u->count[gradient->rows], cols,
                sums + (tap * rows->channels + u->first[gradient->rows]) * PANEL, PANEL);
    }
}

/* One panel; the rows of tiles are taps of one axis. */
static void multiply_taps(const item *u, const float *b, int64_t cols, float *sums)
{
    const gb_weight_gradient *gradient = u->gradient;
    const gb_gradient_plan_side *rows = &gradient->sides[gradient->rows];
    int axis = gradient->row_axis;
    int64_t kernel = rows->axes[axis].kernel, inside = taps_inside(gradient, axis);
    for (int64_t tap = 0; tap < gradient->taps; tap++) {
        if (tap / inside % kernel != 0)
            continue;
        const float *a = u->src[gradient->rows] + tap_offset(gradient, tap);
        for (int64_t c = 0; c < u->count[gradient->rows]; c++)
            weight_gradient_multiply(u, a + c * channel_step(rows), tap_step(rows, axis), b, kernel,
                    cols, sums + (tap * rows->channels + u->first[gradient->rows] + c) * PANEL,
                    inside * rows->channels * PANEL);
    }
}

static void multiply_each(const item *u, const float *b, int64_t cols, float *sums)
{
    (void)b, (void)cols;
    const gb_weight_gradient *gradient = u->gradient;
    gb_channel_products products = {.a = u->src[GB_GRADIENT_PLAIN],
            .a_offsets = u->offsets[GB_GRADIENT_PLAIN],
            .b_offsets = u->offsets[GB_GRADIENT_WINDOW],
            .k = u->positions,
            .add = u->started};
    const gb_gradient_plan_side *window = &gradient->sides[GB_GRADIENT_WINDOW];
    int last = gradient->n_axes - 1;
    int64_t kernel = window->axes[last].kernel;
    products.taps = kernel;
    products.tap_step = tap_step(window, last);
    for (int64_t tap = 0; tap < gradient->taps; tap += kernel) {
        products.b = u->src[GB_GRADIENT_WINDOW] + tap_offset(gradient, tap);
        products.sums = sums + tap * PANEL;
        gradient->kernels->channel_products(&products);
    }
}

/* What the rows of tiles are, by gb_gradient_rows: a panel of `cols` vectors, from `b` on. */
static void (*const multiply_panel[])(const item *u, const float *b, int64_t cols, float *sums) = {
        [GB_GRADIENT_CHANNELS] = multiply_channels,
        [GB_GRADIENT_TAPS] = multiply_taps,
        [GB_GRADIENT_NONE] = multiply_each,
};

static void multiply_chunk(item *u)
{
    const gb_weight_gradient *gradient = u->gradient;
    int vectors = gradient->vectors;
    int64_t panel_sums = gradient->taps * gradient->sum_rows * PANEL;
    for (int64_t c = 0; c < u->count[vectors]; c += PANEL) {
        int64_t panel = c / PANEL, cols = gb_min_i64(PANEL, u->count[vectors] - c);
        const float *b = u->src[vectors] + panel * gradient->sides[vectors].copy_channel_stride;
        float *sums = u->sums + (u->first[vectors] / PANEL + panel) * panel_sums;
        /* Whole vectors are summed, so that they can be read back. */
        cols = (int64_t)gb_align_up((size_t)cols, (size_t)gradient->tile_cols / 2);
        multiply_panel[gradient->rows_are](u, b, cols, sums);
    }
}

static void start_item(item *u, int64_t index)
{
    const gb_weight_gradient *gradient = u->gradient;
    bool depthwise = gradient->rows_are == GB_GRADIENT_NONE;
    for (int i = 0; i < 2; i++) {
        int s = i ? gradient->vectors : gradient->rows;
        const gb_gradient_plan_side *side = &gradient->sides[s];
        if (depthwise && s == gradient->rows)
            continue;
        u->first[s] = index % side->blocks * side->block;
        u->count[s] = gb_min_i64(side->block, side->channels - u->first[s]);
        index /= side->blocks;
    }
    if (depthwise) {
        u->first[gradient->rows] = u->first[gradient->vectors];
        u->count[gradient->rows] = u->count[gradient->vectors];
    }
    u->group = index % gradient->groups;
    u->part = index / gradient->groups;
    u->sums = (float *)u->call->shared + u->part * gradient->split_sums +
              u->group * (gradient->split_sums / gradient->groups);
}

static void run_items(item *u)
{
    const gb_weight_gradient *gradient = u->gradient;
    const gb_step_call *call = u->call;
    int64_t begin, end;
    while (gb_take_items(call, gradient->items, &begin, &end))
        for (int64_t i = begin; i < end; i++) {
            start_item(u, i);
            int64_t chunk = u->part * gradient->chunks / gradient->splits;
            int64_t last = (u->part + 1) * gradient->chunks / gradient->splits;
            for (u->started = false; chunk < last; chunk++, u->started = true) {
                start_chunk(u, chunk);
                multiply_chunk(u);
            }
        }
}

/* Sums of the parts ---------------------------------------------------------------------------- */

/* rows x cols sums of all parts, from row `row` on, densely into the registers. */
static void add_parts(const item *u, const float *sums, int64_t rows, int64_t cols)
{
    memset(u->registers, 0, sizeof(float) * (size_t)(rows * cols));
    for (int64_t part = 0; part < u->gradient->splits; part++, sums += u->gradient->split_sums)
        for (int64_t r = 0; r < rows; r++) {
            float *total = u->registers + r * cols;
            for (int64_t c = 0; c < cols; c++)
                total[c] += sums[r * PANEL + c];
        }
}

/* A panel at one tap. */
static void store_panel(item *u, int64_t group, int64_t panel, int64_t tap, const float *sums)
{
    const gb_weight_gradient *gradient = u->gradient;
    const gb_gradient_plan_side *rows = &gradient->sides[gradient->rows];
    const gb_gradient_plan_side *vectors = &gradient->sides[gradient->vectors];
    int64_t position[GB_AXES] = {0};
    int64_t cols = gb_min_i64(PANEL, vectors->channels - panel * PANEL);
    int64_t n_rows = gradient->sum_rows;
    for (int a = gradient->n_axes; a-- > 0;
            tap /= gradient->sides[GB_GRADIENT_WINDOW].axes[a].kernel)
        if (gradient->tap_dims[a] >= 0)
            position[gradient->tap_dims[a]] =
                    tap % gradient->sides[GB_GRADIENT_WINDOW].axes[a].kernel;
    for (int64_t r = 0; r < n_rows; r += GROUP_ROWS) {
        int64_t count = gb_min_i64(GROUP_ROWS, n_rows - r);
        position[rows->dim] = r + (rows->grouped ? group * rows->channels : 0);
        position[vectors->dim] = panel * PANEL + (vectors->grouped ? group * vectors->channels : 0);
        add_parts(u, sums + r * PANEL, count, cols);
        gb_pointwise_views(
                &gradient->epilogue, u->call->buffers, position, rows->dim, vectors->dim, u->views);
        gradient->kernels->pointwise_run(&gradient->epilogue, u->views, count, cols, u->registers);
    }
}

static void store_sums(item *u)
{
    const gb_weight_gradient *gradient = u->gradient;
    int64_t rows = gradient->sum_rows;
    int64_t begin, end;
    while (gb_take_items(
            u->call, gradient->groups * gradient->panels * gradient->taps, &begin, &end))
        for (int64_t i = begin; i < end; i++) {
            int64_t panel = i / gradient->taps;
            store_panel(u, panel / gradient->panels, panel % gradient->panels, i % gradient->taps,
                    (const float *)u->call->shared + i * rows * PANEL);
        }
}

void gb_weight_gradient_run(const gb_step_call *call)
{
    const gb_weight_gradient *gradient = call->params;
    item u = {.gradient = gradient, .call = call};
    for (int s = 0; s < 2; s++) {
        u.copies[s] = gb_scratch_get(call, gradient->sides[s].copy);
        u.offsets[s] = gb_scratch_get(call, gradient->sides[s].offsets);
    }
    u.registers = gb_scratch_get(call, gradient->registers);
    u.views = gb_scratch_get(call, gradient->views);
    if (call->phase == 0)
        run_items(&u);
    else
        store_sums(&u);
}
