/* The convolution family except weight gradients: a sum over taps and channels that reads the image
 * (forward) or the result (gradient) of the underlying convolution.
 *
 * All six ops are views of one convolution y[n,o,p] = sum x[n,c,p*S+k*D-P] w[o,c,k]: a transposed
 * convolution computes x from y, its data gradient y from x. */
#include "ref/ops/conv.h"
#include "ref/bounds/clones.h"
#include "ref/ops/ref_functions.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include <stdlib.h>
#include <string.h>

gb_ref_kernel gb_ref_kernel_of(const gb_op *op, const gb_logical_tensor *weights)
{
    int axes[GB_MAX_NDIMS];
    int64_t strides[GB_MAX_NDIMS];
    gb_weights_axes(op, weights->ndims, axes);
    gb_dense_strides(weights->ndims, weights->dims, strides);
    gb_ref_kernel kernel = {.taps = 1};
    for (int i = 2; i < weights->ndims; i++) {
        kernel.extent[i - 2] = weights->dims[axes[i]];
        kernel.taps *= kernel.extent[i - 2];
    }
    kernel.results = weights->dims[axes[0]];
    kernel.images = weights->dims[axes[1]];
    kernel.result_stride = strides[axes[0]];
    kernel.image_stride = strides[axes[1]];
    kernel.tap_stride = strides[axes[weights->ndims - 1]];
    return kernel;
}

gb_status gb_ref_conv_bind(const gb_op *op, const gb_logical_tensor *image,
        const gb_logical_tensor *result, const gb_logical_tensor *weights, bool transposed,
        gb_ref_conv *conv)
{
    if (image->ndims < 3 || image->ndims != result->ndims || image->ndims != weights->ndims)
        return gb_fail(GB_INVALID_SHAPE, "%s: ranks of data and weights differ or are below 3",
                gb_op_label(op));
    conv->image = gb_ref_view_of(op, image);
    conv->result = gb_ref_view_of(op, result);
    conv->kernel = gb_ref_kernel_of(op, weights);
    GB_TRY(gb_window_get(op, image->ndims - 2, conv->image.spatial, conv->kernel.extent, transposed,
            &conv->window));
    conv->groups = conv->window.groups;
    if (conv->groups < 1 || conv->image.channels != conv->kernel.images * conv->groups ||
            conv->result.channels != conv->kernel.results ||
            conv->kernel.results % conv->groups != 0 || conv->image.batch != conv->result.batch)
        return gb_fail(
                GB_INVALID_SHAPE, "%s: channels of data and weights do not fit", gb_op_label(op));
    return GB_SUCCESS;
}

typedef struct correlation {
    gb_ref_window_map map;
    gb_ref_dot dot;
    const gb_ref_tensor *bias;
    gb_ref_tensor *dst;
    int64_t rows_per_group, depth_per_group; /* channels of target and source */
    double *packed, *wide_packed;            /* weights as [target channel][tap][source channel] */
    double *norms; /* where kernels may filter: sums of squares of the taps, [target channel][source
                      channel] */
    int64_t width; /* columns of a tile */
    gb_status status[1];
} correlation;

static void conv_gather(const correlation *c, const gb_ref_window_tile *columns,
        const double *source, int64_t tap, int64_t channel, double *row)
{
    const int64_t *offsets = columns->offsets + tap * columns->capacity;
    const double *from = source + channel * c->map.source.channel_stride;
    for (int64_t j = 0; j < columns->count; j++)
        row[j] = offsets[j] < 0 ? 0 : from[offsets[j]];
}

/* Adds the taps x channels [begin, end) of one group, at most GB_REF_TILE_DEPTH of them. */
static void add_slab(const correlation *c, const gb_ref_window_tile *columns, gb_ref_tile *tile,
        int64_t group, int64_t begin, int64_t end, int64_t tile_row, int64_t row, int64_t rows)
{
    int64_t depth = c->depth_per_group, all = depth * c->map.taps;
    const gb_ref_operand *source = &c->dot.operands[0];
    for (int64_t k = begin; k < end; k++) {
        int64_t tap = k / depth, channel = group * depth + k % depth;
        int64_t at = (k - begin) * GB_REF_TILE;
        conv_gather(c, columns, source->value, tap, channel, tile->slab + at);
        if (tile->wide_slab)
            conv_gather(c, columns, source->wide, tap, channel, tile->wide_slab + at);
    }
    int64_t from = row * all + begin;
    gb_ref_tile_multiply(tile, tile_row, rows, columns->count, end - begin, c->packed + from,
            tile->wide_slab ? c->wide_packed + from : NULL, all, 1);
}

/* Does any column have a tap of the elements [begin, end)? */
static bool has_tap(const gb_ref_window_tile *columns, int64_t depth, int64_t begin, int64_t end)
{
    for (int64_t tap = begin / depth; tap * depth < end; tap++)
        if (columns->tap_columns[tap] != 0)
            return true;
    return false;
}

/* Sums of the target channels row .. row+rows-1, all of one group, skipping taps that no column
 * has. Products are added in groups that start at multiples of their size, so that a sum is the
 * same in any tile; but a single column has no products with padding. */
static void sum_group(const correlation *c, const gb_ref_window_tile *columns, gb_ref_tile *tile,
        int64_t tile_row, int64_t row, int64_t rows)
{
    int64_t depth = c->depth_per_group, all = depth * c->map.taps;
    int64_t group = row / c->rows_per_group, step = c->width > 1 ? GB_REF_TILE_STEP : 1;
    for (int64_t k = 0; k < all;) {
        int64_t end = k, limit = gb_min_i64(all, k + GB_REF_TILE_DEPTH);
        while (end < limit && has_tap(columns, depth, end, gb_min_i64(limit, end + step)))
            end = gb_min_i64(limit, end + step);
        if (end > k)
            add_slab(c, columns, tile, group, k, end, tile_row, row, rows);
        k = end > k ? end : k + step;
    }
}

/* Minimal filtering ----------------------------------------------------------------------------- */

/* Kernels may compute convolutions of 3 x 3 taps at distance 1 by F(2 x 2, 3 x 3), where there are at
 * least so many channels. Results take sums and differences of source values first, so their errors
 * grow with the norms of windows rather than with products of their elements (docs/numerics.md). */
enum { FILTERED_CHANNELS = 32, FILTERED_TAPS = 9 };

static bool may_filter(const gb_ref_call *call, const gb_ref_conv *conv, int64_t depth)
{
    const gb_window *window = &conv->window;
    for (int i = 0; i < 2; i++)
        if (!gb_dtype_is_f(call->inputs[i]->tensor.data_type))
            return false;
    if (conv->image.n_spatial != 2 || conv->groups != 1 || depth < FILTERED_CHANNELS)
        return false;
    for (int i = 0; i < 2; i++)
        if (conv->kernel.extent[i] != 3 || window->strides[i] != 1 || window->dilations[i] != 1)
            return false;
    return true;
}

/* Are sums that filtering makes exact wherever the sums of products are? It takes up to 81 / 9 times
 * their magnitude, in quarters of their grid. */
static bool filters_exactly(const gb_ref_dot *dot, const gb_ref_tensor *bias, int64_t depth)
{
    const gb_ref_survey *a = &dot->operands[0].survey, *b = &dot->operands[1].survey;
    double total = FILTERED_TAPS * FILTERED_TAPS * (double)depth * a->max * b->max;
    for (int64_t i = 0; bias && i < bias->count; i++)
        total = fmax(total, fabs(bias->value[i]) * FILTERED_TAPS);
    return gb_ref_sums_are_exact(&dot->accumulator, total, a->grid + b->grid - 2);
}

/* Sums of squares of the taps of each target and source channel. */
static double *sum_tap_squares(const correlation *c, const double *weights)
{
    int64_t depth = c->depth_per_group, rows = c->map.target.channels;
    double *norms = gb_calloc((size_t)(rows * depth), sizeof(double));
    for (int64_t row = 0; norms && row < rows; row++)
        for (int64_t tap = 0; tap < c->map.taps; tap++)
            for (int64_t k = 0; k < depth; k++) {
                double w = weights[(row * c->map.taps + tap) * depth + k];
                norms[row * depth + k] += w * w;
            }
    return norms;
}

GB_REF_CLONES static void add_squares(int64_t columns, const double *row, double *restrict squares)
{
    for (int64_t j = 0; j < columns; j++)
        squares[j] += row[j] * row[j];
}

GB_REF_CLONES static void add_scaled(
        int64_t columns, double factor, const double *row, double *restrict sums)
{
    for (int64_t j = 0; j < columns; j++)
        sums[j] += factor * row[j];
}

/* Rounding of results that filtering makes, of the rows of a tile: 8 standard deviations of sums over
 * the channels, four times the norms (docs/numerics.md). The slab is used for squares of windows. */
static void bound_filtering(const correlation *c, const gb_ref_window_tile *columns,
        gb_ref_tile *tile, int64_t first_row, int64_t rows)
{
    const gb_ref_operand *source = &c->dot.operands[0];
    const double *values = source->wide ? source->wide : source->value;
    double gathered[GB_REF_TILE];
    int64_t depth = c->depth_per_group, n = columns->count;
    for (int64_t k = 0; k < depth; k++) {
        memset(tile->slab, 0, sizeof gathered);
        for (int64_t tap = 0; tap < c->map.taps; tap++) {
            conv_gather(c, columns, values, tap, k, gathered);
            add_squares(n, gathered, tile->slab);
        }
        for (int64_t i = 0; i < rows; i++)
            add_scaled(n, c->norms[(first_row + i) * depth + k], tile->slab,
                    tile->other + i * GB_REF_TILE);
    }
    double factor = 8 * sqrt((double)depth) * 4 * c->dot.accumulator.unit;
    for (int64_t at = 0; at < rows * GB_REF_TILE; at++)
        tile->other[at] = factor * sqrt(tile->other[at]);
}

/* Results ---------------------------------------------------------------------------------------- */

/* Kernels may multiply padding by the weights: 0 times one that is not finite, or may not be, leaves
 * nothing known. */
static bool padding_counts(
        const correlation *c, const gb_ref_window_tile *columns, int64_t column, int64_t channel)
{
    int64_t all = c->depth_per_group * c->map.taps;
    bool finite = c->width > 1 || columns->column_taps[column] == c->map.taps;
    for (int64_t k = channel * all; !finite && k < (channel + 1) * all; k++)
        if (!isfinite(c->packed[k]) || (c->wide_packed && !isfinite(c->wide_packed[k])))
            return true;
    return false;
}

static void close_rows(const correlation *c, const gb_ref_window_tile *columns, gb_ref_tile *tile,
        int64_t first_row, int64_t rows)
{
    double factor[GB_REF_TILE] = {0};
    int64_t terms[GB_REF_TILE];
    for (int64_t j = 0; j < columns->count; j++) {
        terms[j] = columns->column_taps[j] * c->depth_per_group + (c->bias != NULL);
        if (!c->dot.exact)
            factor[j] = gb_ref_sum_factor(terms[j], c->dot.accumulator.unit, NULL);
    }
    for (int64_t i = 0; i < rows; i++) {
        int64_t channel = first_row + i;
        for (int64_t j = 0; j < columns->count; j++) {
            int64_t at = columns->target[j] + channel * c->map.target.channel_stride;
            c->dst->value[at] = gb_ref_dot_close(&c->dot, tile, i * GB_REF_TILE + j, factor[j],
                    terms[j], c->bias, channel, &c->dst->bound[at]);
            if (padding_counts(c, columns, j, channel))
                c->dst->bound[at] = INFINITY;
        }
    }
}

static void compute_unit(const correlation *c, const gb_ref_window_tile *columns, gb_ref_tile *tile,
        int64_t first_row)
{
    int64_t end = gb_min_i64(first_row + GB_REF_TILE_ROWS, c->map.target.channels);
    gb_ref_tile_clear(tile, end - first_row);
    for (int64_t row = first_row; row < end;) {
        int64_t group_end = (row / c->rows_per_group + 1) * c->rows_per_group;
        int64_t rows = gb_min_i64(end, group_end) - row;
        sum_group(c, columns, tile, row - first_row, row, rows);
        row += rows;
    }
    if (tile->other)
        bound_filtering(c, columns, tile, first_row, end - first_row);
    close_rows(c, columns, tile, first_row, end - first_row);
}

/* Units are tiles of columns x blocks of target channels. */
static void compute_units(const correlation *c, int64_t begin, int64_t end,
        gb_ref_window_tile *columns, gb_ref_tile *tile)
{
    int64_t row_blocks = gb_div_up(c->map.target.channels, GB_REF_TILE_ROWS);
    int64_t filled = -1;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t first = unit / row_blocks * c->width;
        if (first != filled)
            gb_ref_window_tile_fill(&c->map, first, gb_min_i64(c->width, c->map.columns - first), 0,
                    c->map.taps, columns);
        filled = first;
        compute_unit(c, columns, tile, unit % row_blocks * GB_REF_TILE_ROWS);
    }
}

static void conv_compute_part(void *context, int thread, int n_threads)
{
    correlation *c = context;
    int64_t units = gb_div_up(c->map.columns, c->width) *
                    gb_div_up(c->map.target.channels, GB_REF_TILE_ROWS);
    int64_t begin, end;
    gb_split(units, thread, n_threads, &begin, &end);
    gb_ref_window_tile columns = {0};
    gb_ref_tile tile = {0};
    if (gb_ref_window_tile_create(&c->map, c->width, c->map.taps, &columns) == GB_SUCCESS &&
            gb_ref_tile_create(&c->dot, 1, &tile) == GB_SUCCESS) {
        compute_units(c, begin, end, &columns, &tile);
        gb_ref_tile_report(&tile, c->dst);
    } else {
        __atomic_store_n(c->status, GB_OUT_OF_MEMORY, __ATOMIC_RELAXED);
    }
    gb_ref_tile_destroy(&tile);
    gb_ref_window_tile_destroy(&columns);
}

/* Forward, the targets are the results o of the kernel and the sources its images c; the gradient
 * exchanges the two. */
static double *conv_pack(const gb_ref_conv *conv, const double *weights, bool gradient)
{
    const gb_ref_kernel *k = &conv->kernel;
    int64_t results = k->results / conv->groups; /* per group */
    int64_t rows = gradient ? k->images : results, depth = gradient ? results : k->images;
    int64_t size = conv->groups * rows * depth * k->taps;
    double *packed = gb_calloc((size_t)size, sizeof(double)), *to = packed;
    for (int64_t row = 0; packed && row < conv->groups * rows; row++) {
        int64_t base =
                gradient ? row / rows * results * k->result_stride + row % rows * k->image_stride
                         : row * k->result_stride;
        int64_t stride = gradient ? k->result_stride : k->image_stride;
        for (int64_t tap = 0; tap < k->taps; tap++)
            for (int64_t channel = 0; channel < depth; channel++)
                *to++ = weights[base + channel * stride + tap * k->tap_stride];
    }
    return packed;
}

static gb_status bind_bias(const gb_ref_call *call, int64_t channels, correlation *c)
{
    bool takes_bias = call->op->kind == GB_OP_CONVOLUTION || call->op->kind == GB_OP_CONV_TRANSPOSE;
    if (!takes_bias || call->n_inputs < 3)
        return GB_SUCCESS;
    c->bias = call->inputs[2];
    if (c->bias->count == channels)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: bias %s for %lld channels", gb_op_label(call->op),
            gb_tensor_label(&c->bias->tensor), (long long)channels);
}

static gb_status conv_prepare(
        const gb_ref_call *call, const gb_ref_conv *conv, bool gradient, correlation *c)
{
    const gb_ref_view *source = gradient ? &conv->result : &conv->image;
    const gb_ref_view *target = gradient ? &conv->image : &conv->result;
    GB_TRY(gb_ref_window_map_create(&c->map, source, target, &conv->window, gradient));
    c->rows_per_group = target->channels / conv->groups;
    c->depth_per_group = source->channels / conv->groups;
    GB_TRY(bind_bias(call, target->channels, c));
    int64_t terms = c->depth_per_group * conv->kernel.taps;
    GB_TRY(gb_ref_dot_create(call->op, call->inputs[0], call->inputs[1], c->bias, terms, &c->dot));
    /* Padding is a factor of 0, which an infinite weight would turn into NaN; a tile of one column
     * has no padding: its value is that of an implementation that leaves padding out. */
    c->width = c->dot.operands[1].survey.finite && c->dot.bounded ? GB_REF_TILE : 1;
    c->dot.filters = may_filter(call, conv, c->depth_per_group);
    if (c->dot.filters && c->dot.exact)
        c->dot.exact = filters_exactly(&c->dot, c->bias, c->depth_per_group);
    if (!c->dot.exact)
        gb_ref_sum_factor(terms, c->dot.accumulator.unit, &c->dst->statistical);
    c->packed = conv_pack(conv, c->dot.operands[1].value, gradient);
    if (!c->packed)
        return GB_OUT_OF_MEMORY;
    if (c->dot.wide) {
        c->wide_packed = conv_pack(conv, c->dot.operands[1].wide, gradient);
        if (!c->wide_packed)
            return GB_OUT_OF_MEMORY;
    }
    if (c->dot.filters && !c->dot.exact) {
        c->norms = sum_tap_squares(c, c->wide_packed ? c->wide_packed : c->packed);
        if (!c->norms)
            return GB_OUT_OF_MEMORY;
    }
    return GB_SUCCESS;
}

static gb_status correlate(const gb_ref_call *call, const gb_ref_conv *conv, bool gradient)
{
    correlation c = {.dst = &call->outputs[0], .status = {GB_SUCCESS}};
    if (c.dst->count == 0)
        return GB_SUCCESS;
    gb_status status = conv_prepare(call, conv, gradient, &c);
    if (status == GB_SUCCESS) {
        double work = (double)c.dst->count * (double)c.depth_per_group * (double)c.map.taps;
        gb_parallel(gb_threads_for(work), conv_compute_part, &c);
        status = c.status[0];
    }
    free(c.packed);
    free(c.wide_packed);
    free(c.norms);
    gb_ref_dot_destroy(&c.dot);
    gb_ref_window_map_destroy(&c.map);
    return status;
}

/* Result from image, and image from result; the source is input 0 in both. */
static gb_status forward(const gb_ref_call *call, bool transposed)
{
    gb_ref_conv conv;
    GB_TRY(gb_ref_conv_bind(call->op, &call->inputs[0]->tensor, &call->outputs[0].tensor,
            &call->inputs[1]->tensor, transposed, &conv));
    return correlate(call, &conv, false);
}

static gb_status backward(const gb_ref_call *call, bool transposed)
{
    gb_ref_conv conv;
    GB_TRY(gb_ref_conv_bind(call->op, &call->outputs[0].tensor, &call->inputs[0]->tensor,
            &call->inputs[1]->tensor, transposed, &conv));
    return correlate(call, &conv, true);
}

gb_status gb_ref_convolution(const gb_ref_call *call)
{
    return forward(call, false);
}

gb_status gb_ref_convolution_backward_data(const gb_ref_call *call)
{
    return backward(call, false);
}

gb_status gb_ref_conv_transpose(const gb_ref_call *call)
{
    return backward(call, true);
}

gb_status gb_ref_conv_transpose_backward_data(const gb_ref_call *call)
{
    return forward(call, false);
}
