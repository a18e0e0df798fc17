/* Weight gradients of the convolution family: for each tap, a product of image and result channels
 * over all positions. */
#include "ref/conv.h"
#include "ref/ref_functions.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include <stdlib.h>

typedef struct weight_gradient {
    gb_ref_conv conv;
    gb_ref_window_map map; /* target: the result */
    gb_ref_dot dot;
    gb_ref_tensor *dst;
    int64_t results_per_group;
    int image, result; /* which operands of dot */
    gb_status status[1];
} weight_gradient;

/* Positions whose window has the tap, at most GB_REF_TILE_DEPTH of them. */
typedef struct position_list {
    int64_t count;
    int64_t image[GB_REF_TILE_DEPTH], result[GB_REF_TILE_DEPTH];
} position_list;

/* Per thread. */
typedef struct scratch {
    gb_ref_window_tile positions;
    gb_ref_tile tile;         /* rows: image channels, columns: result channels of a group */
    double *rows, *wide_rows; /* image elements, [channel][position] */
} scratch;

static void list_positions(const gb_ref_window_tile *tile, position_list *list)
{
    list->count = 0;
    for (int64_t j = 0; j < tile->count; j++) {
        if (tile->offsets[j] < 0)
            continue;
        list->image[list->count] = tile->offsets[j];
        list->result[list->count++] = tile->target[j];
    }
}

static void gather_image(const weight_gradient *w, const position_list *list, const double *image,
        int64_t channel, int64_t channels, double *rows)
{
    for (int64_t i = 0; i < channels; i++)
        for (int64_t j = 0; j < list->count; j++)
            rows[i * GB_REF_TILE_DEPTH + j] =
                    image[list->image[j] + (channel + i) * w->conv.image.channel_stride];
}

static void gather_result(const weight_gradient *w, const position_list *list, const double *result,
        int64_t channel, int64_t channels, double *slab)
{
    for (int64_t i = 0; i < channels; i++)
        for (int64_t j = 0; j < list->count; j++)
            slab[j * GB_REF_TILE + i] =
                    result[list->result[j] + (channel + i) * w->conv.result.channel_stride];
}

/* One block of gradients: a tap, image channels [channel, channel+channels) of any groups, and the
 * result channels [first, first+columns) of each of these groups. */
typedef struct block {
    int64_t tap, channel, channels, first, columns;
} block;

static void add_positions(
        const weight_gradient *w, const block *b, const position_list *list, scratch *s)
{
    const gb_ref_operand *image = &w->dot.operands[w->image];
    const gb_ref_operand *result = &w->dot.operands[w->result];
    int64_t end = b->channel + b->channels, per_group = w->conv.kernel.images;
    for (int64_t channel = b->channel; channel < end;) {
        int64_t group = channel / per_group;
        int64_t channels = gb_min_i64(end, (group + 1) * per_group) - channel;
        int64_t from = group * w->results_per_group + b->first;
        gather_image(w, list, image->value, channel, channels, s->rows);
        gather_result(w, list, result->value, from, b->columns, s->tile.slab);
        if (s->tile.wide) {
            gather_image(w, list, image->wide, channel, channels, s->wide_rows);
            gather_result(w, list, result->wide, from, b->columns, s->tile.wide_slab);
        }
        gb_ref_tile_multiply(&s->tile, channel - b->channel, channels, b->columns, list->count,
                s->rows, s->wide_rows, GB_REF_TILE_DEPTH, 1);
        channel += channels;
    }
}

static void close_block(const weight_gradient *w, const block *b, int64_t terms, const scratch *s)
{
    const gb_ref_kernel *kernel = &w->conv.kernel;
    double factor = w->dot.exact ? 0 : gb_ref_sum_factor(terms, w->dot.accumulator.unit, NULL);
    for (int64_t i = 0; i < b->channels; i++) {
        int64_t image = (b->channel + i) % kernel->images;
        int64_t first = (b->channel + i) / kernel->images * w->results_per_group + b->first;
        for (int64_t j = 0; j < b->columns; j++) {
            int64_t at = (first + j) * kernel->result_stride + image * kernel->image_stride +
                         b->tap * kernel->tap_stride;
            w->dst->value[at] = gb_ref_dot_close(&w->dot, &s->tile, i * GB_REF_TILE + j, factor,
                    terms, NULL, 0, &w->dst->bound[at]);
        }
    }
}

static void compute_block(const weight_gradient *w, const block *b, scratch *s)
{
    int64_t terms = 0;
    gb_ref_tile_clear(&s->tile, b->channels);
    for (int64_t first = 0; first < w->map.columns; first += GB_REF_TILE_DEPTH) {
        position_list list;
        int64_t count = gb_min_i64(GB_REF_TILE_DEPTH, w->map.columns - first);
        gb_ref_window_tile_fill(&w->map, first, count, b->tap, 1, &s->positions);
        list_positions(&s->positions, &list);
        terms += list.count;
        if (list.count > 0)
            add_positions(w, b, &list, s);
    }
    close_block(w, b, terms, s);
}

static void compute_blocks(const weight_gradient *w, int thread, int n_threads, scratch *s)
{
    int64_t row_blocks = gb_div_up(w->conv.image.channels, GB_REF_TILE_ROWS);
    int64_t column_blocks = gb_div_up(w->results_per_group, GB_REF_TILE);
    int64_t begin, end;
    gb_split(w->map.taps * row_blocks * column_blocks, thread, n_threads, &begin, &end);
    for (int64_t unit = begin; unit < end; unit++) {
        block b = {.tap = unit / column_blocks / row_blocks,
                .channel = unit / column_blocks % row_blocks * GB_REF_TILE_ROWS,
                .first = unit % column_blocks * GB_REF_TILE};
        b.channels = gb_min_i64(GB_REF_TILE_ROWS, w->conv.image.channels - b.channel);
        b.columns = gb_min_i64(GB_REF_TILE, w->results_per_group - b.first);
        compute_block(w, &b, s);
    }
}

static void compute_part(void *context, int thread, int n_threads)
{
    weight_gradient *w = context;
    const size_t rows = (size_t)GB_REF_TILE_ROWS * GB_REF_TILE_DEPTH;
    scratch s = {
            .rows = gb_calloc(rows, sizeof(double)), .wide_rows = gb_calloc(rows, sizeof(double))};
    if (s.rows && s.wide_rows &&
            gb_ref_window_tile_create(&w->map, GB_REF_TILE_DEPTH, 1, &s.positions) == GB_SUCCESS &&
            gb_ref_tile_create(&w->dot, &s.tile) == GB_SUCCESS)
        compute_blocks(w, thread, n_threads, &s);
    else
        __atomic_store_n(w->status, GB_OUT_OF_MEMORY, __ATOMIC_RELAXED);
    gb_ref_tile_destroy(&s.tile);
    gb_ref_window_tile_destroy(&s.positions);
    free(s.rows);
    free(s.wide_rows);
}

static gb_status compute(const gb_ref_call *call, weight_gradient *w)
{
    GB_TRY(gb_ref_window_map_create(
            &w->map, &w->conv.image, &w->conv.result, &w->conv.window, false));
    GB_TRY(gb_ref_dot_create(
            call->op, call->inputs[0], call->inputs[1], NULL, w->map.columns, &w->dot));
    if (!w->dot.exact)
        gb_ref_sum_factor(w->map.columns, w->dot.accumulator.unit, &w->dst->statistical);
    double work = (double)w->dst->count * (double)(w->map.columns + 1);
    gb_parallel(gb_threads_for(work), compute_part, w);
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
    gb_status status = compute(call, &w);
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
