/* Weight gradients of the convolution family: for each tap, a product of image and result channels
 * over all positions. */
#include "ref/ops/conv.h"
#include "ref/ops/ref_functions.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include <stdlib.h>
#include <string.h>

typedef struct weight_gradient {
    gb_ref_conv conv;
    gb_ref_window_map map; /* target: the result */
    gb_ref_dot dot;
    gb_ref_tensor *dst;
    int64_t results_per_group;
    int64_t taps;      /* of a block */
    int64_t width;     /* positions handled at a time */
    int image, result; /* which operands of dot */
    gb_status status[1];
} weight_gradient;

/* One block of gradients: taps [tap, tap+taps) of image channels [channel, channel+channels) of any
 * groups, and the result channels [first, first+columns) of each of these groups. In the tile, a
 * row is a tap and image channel, a column a result channel. */
typedef struct block {
    int64_t tap, taps, channel, channels, first, columns;
} block;

/* Per thread. */
typedef struct scratch {
    gb_ref_window_tile positions;
    gb_ref_tile tile;
    double *rows, *wide_rows;        /* image elements, [channel][position] */
    int64_t terms[GB_REF_TILE_ROWS]; /* per tap of the block */
    bool *lost;                      /* elements of the tile of which nothing is known */
} scratch;

static void gather_image(const weight_gradient *w, const scratch *s, const double *image,
        int64_t tap, int64_t channel, int64_t channels, double *rows)
{
    const int64_t *offsets = s->positions.offsets + tap * s->positions.capacity;
    for (int64_t i = 0; i < channels; i++) {
        const double *from = image + (channel + i) * w->conv.image.channel_stride;
        for (int64_t j = 0; j < s->positions.count; j++)
            rows[i * GB_REF_TILE_DEPTH + j] = offsets[j] < 0 ? 0 : from[offsets[j]];
    }
}

static void gather_result(const weight_gradient *w, const scratch *s, const double *result,
        int64_t channel, int64_t channels, double *slab)
{
    for (int64_t i = 0; i < channels; i++) {
        const double *from = result + (channel + i) * w->conv.result.channel_stride;
        for (int64_t j = 0; j < s->positions.count; j++)
            slab[j * GB_REF_TILE + i] = from[s->positions.target[j]];
    }
}

/* Kernels may multiply padding by the gradient: 0 times one that is not finite leaves nothing
 * known. Of a single position that has padding at the tap. */
static void meet_padding(
        const weight_gradient *w, const block *b, int64_t row, int64_t channels, scratch *s)
{
    for (int64_t j = 0; w->width == 1 && j < b->columns; j++) {
        bool finite = isfinite(s->tile.slab[j]) &&
                      !(s->tile.wide_slab && !isfinite(s->tile.wide_slab[j]));
        for (int64_t i = 0; !finite && i < channels; i++)
            s->lost[(row + i) * GB_REF_TILE + j] = true;
    }
}

/* Adds the positions at hand for some channels of one group. */
static void add_group(
        const weight_gradient *w, const block *b, int64_t channel, int64_t channels, scratch *s)
{
    const gb_ref_operand *image = &w->dot.operands[w->image];
    const gb_ref_operand *result = &w->dot.operands[w->result];
    int64_t from = channel / w->conv.kernel.images * w->results_per_group + b->first;
    gather_result(w, s, result->value, from, b->columns, s->tile.slab);
    if (s->tile.wide_slab)
        gather_result(w, s, result->wide, from, b->columns, s->tile.wide_slab);
    for (int64_t tap = 0; tap < b->taps; tap++) {
        int64_t row = tap * b->channels + channel - b->channel;
        if (s->positions.tap_columns[tap] == 0) {
            meet_padding(w, b, row, channels, s);
            continue;
        }
        gather_image(w, s, image->value, tap, channel, channels, s->rows);
        if (s->tile.wide_slab)
            gather_image(w, s, image->wide, tap, channel, channels, s->wide_rows);
        gb_ref_tile_multiply(&s->tile, row, channels, b->columns, s->positions.count, s->rows,
                s->wide_rows, GB_REF_TILE_DEPTH, 1);
    }
}

static void close_row(
        const weight_gradient *w, const block *b, int64_t tap, int64_t channel, scratch *s)
{
    const gb_ref_kernel *kernel = &w->conv.kernel;
    int64_t terms = s->terms[tap], row = tap * b->channels + channel - b->channel;
    int64_t first = channel / kernel->images * w->results_per_group + b->first;
    int64_t to =
            channel % kernel->images * kernel->image_stride + (b->tap + tap) * kernel->tap_stride;
    double factor = w->dot.exact ? 0 : gb_ref_sum_factor(terms, w->dot.accumulator.unit, NULL);
    for (int64_t j = 0; j < b->columns; j++) {
        int64_t at = to + (first + j) * kernel->result_stride;
        w->dst->value[at] = gb_ref_dot_close(&w->dot, &s->tile, row * GB_REF_TILE + j, factor,
                terms, NULL, 0, &w->dst->bound[at]);
        if (s->lost[row * GB_REF_TILE + j])
            w->dst->bound[at] = INFINITY;
    }
}

static void compute_block(const weight_gradient *w, const block *b, scratch *s)
{
    int64_t end = b->channel + b->channels, per_group = w->conv.kernel.images;
    memset(s->terms, 0, sizeof(s->terms));
    memset(s->lost, 0, (size_t)GB_REF_TILE_ROWS * GB_REF_TILE * sizeof(*s->lost));
    gb_ref_tile_clear(&s->tile, b->taps * b->channels);
    for (int64_t first = 0; first < w->map.columns; first += w->width) {
        int64_t count = gb_min_i64(w->width, w->map.columns - first);
        gb_ref_window_tile_fill(&w->map, first, count, b->tap, b->taps, &s->positions);
        for (int64_t tap = 0; tap < b->taps; tap++)
            s->terms[tap] += s->positions.tap_columns[tap];
        for (int64_t channel = b->channel; channel < end;) {
            int64_t group_end = (channel / per_group + 1) * per_group;
            int64_t channels = gb_min_i64(end, group_end) - channel;
            add_group(w, b, channel, channels, s);
            channel += channels;
        }
    }
    for (int64_t tap = 0; tap < b->taps; tap++)
        for (int64_t channel = b->channel; channel < end; channel++)
            close_row(w, b, tap, channel, s);
}

static void compute_blocks(const weight_gradient *w, int thread, int n_threads, scratch *s)
{
    int64_t row_blocks = gb_div_up(w->conv.image.channels, GB_REF_TILE_ROWS);
    int64_t column_blocks = gb_div_up(w->results_per_group, GB_REF_TILE);
    int64_t begin, end;
    gb_split(gb_div_up(w->map.taps, w->taps) * row_blocks * column_blocks, thread, n_threads,
            &begin, &end);
    for (int64_t unit = begin; unit < end; unit++) {
        block b = {.tap = unit / column_blocks / row_blocks * w->taps,
                .channel = unit / column_blocks % row_blocks * GB_REF_TILE_ROWS,
                .first = unit % column_blocks * GB_REF_TILE};
        b.taps = gb_min_i64(w->taps, w->map.taps - b.tap);
        b.channels = gb_min_i64(GB_REF_TILE_ROWS, w->conv.image.channels - b.channel);
        b.columns = gb_min_i64(GB_REF_TILE, w->results_per_group - b.first);
        compute_block(w, &b, s);
    }
}

static void conv_weights_compute_part(void *context, int thread, int n_threads)
{
    weight_gradient *w = context;
    const size_t rows = (size_t)GB_REF_TILE_ROWS * GB_REF_TILE_DEPTH;
    scratch s = {.rows = gb_calloc(rows, sizeof(double)),
            .wide_rows = gb_calloc(rows, sizeof(double)),
            .lost = gb_calloc((size_t)GB_REF_TILE_ROWS * GB_REF_TILE, sizeof(bool))};
    if (s.rows && s.wide_rows && s.lost &&
            gb_ref_window_tile_create(&w->map, w->width, w->taps, &s.positions) == GB_SUCCESS &&
            gb_ref_tile_create(&w->dot, w->image, &s.tile) == GB_SUCCESS) {
        compute_blocks(w, thread, n_threads, &s);
        gb_ref_tile_report(&s.tile, w->dst);
    } else {
        __atomic_store_n(w->status, GB_OUT_OF_MEMORY, __ATOMIC_RELAXED);
    }
    gb_ref_tile_destroy(&s.tile);
    gb_ref_window_tile_destroy(&s.positions);
    free(s.rows);
    free(s.wide_rows);
    free(s.lost);
}

/* Few channels: several taps share a tile, as long as there are tiles for all threads. */
static void conv_weights_choose_blocks(weight_gradient *w)
{
    int64_t fit = gb_max_i64(1, GB_REF_TILE_ROWS / w->conv.image.channels);
    int64_t fair = gb_max_i64(1, w->map.taps / gb_max_threads());
    w->taps = gb_min_i64(fit, fair);
    /* Padding is a factor of 0, which an infinite gradient would turn into NaN; a single position
     * has no padding. */
    bool finite = w->dot.operands[w->result].survey.finite && w->dot.bounded;
    w->width = finite ? GB_REF_TILE_DEPTH : 1;
}

static gb_status conv_weights_compute(const gb_ref_call *call, weight_gradient *w)
{
    GB_TRY(gb_ref_window_map_create(
            &w->map, &w->conv.image, &w->conv.result, &w->conv.window, false));
    GB_TRY(gb_ref_dot_create(
            call->op, call->inputs[0], call->inputs[1], NULL, w->map.columns, &w->dot));
    if (!w->dot.exact)
        gb_ref_sum_factor(w->map.columns, w->dot.accumulator.unit, &w->dst->statistical);
    conv_weights_choose_blocks(w);
    double work = (double)w->dst->count * (double)(w->map.columns + 1);
    gb_parallel(gb_threads_for(work), conv_weights_compute_part, w);
    return w->status[0];
}

/* `image` says which input is the image of the underlying convolution. */
static gb_status backward_weights(const gb_ref_call *call, int image)
{
    weight_gradient w = {.dst = &call->outputs[0], .image = image, .result = !image};
    if (w.dst->count == 0)
        return GB_SUCCESS;
    GB_TRY(gb_ref_conv_bind(call->op, &call->inputs[image]->tensor, &call->inputs[!image]->tensor,
            &w.dst->tensor, false, &w.conv));
    w.results_per_group = w.conv.kernel.results / w.conv.groups;
    gb_status status = conv_weights_compute(call, &w);
    gb_ref_dot_destroy(&w.dot);
    gb_ref_window_map_destroy(&w.map);
    return status;
}

gb_status gb_ref_convolution_backward_weights(const gb_ref_call *call)
{
    return backward_weights(call, 0);
}

gb_status gb_ref_conv_transpose_backward_weights(const gb_ref_call *call)
{
    return backward_weights(call, 1);
}
