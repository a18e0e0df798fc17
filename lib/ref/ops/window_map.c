/* Tables of window positions per axis, and their combination tile by tile. */
#include "ref/ops/window_map.h"

#include "base/memory.h"
#include "base/status.h"
#include <stdlib.h>
#include <string.h>

/* Negative enough to stay negative when the offsets of the other axes are added. */
static const int64_t outside = INT64_MIN / 32;

gb_ref_view gb_ref_view_of(const gb_op *op, const gb_logical_tensor *tensor)
{
    int axes[GB_MAX_NDIMS];
    int64_t strides[GB_MAX_NDIMS];
    gb_data_axes(op, tensor->ndims, axes);
    gb_dense_strides(tensor->ndims, tensor->dims, strides);
    gb_ref_view view = {.n_spatial = tensor->ndims - 2, .positions = 1};
    for (int i = 0; i < view.n_spatial; i++) {
        view.spatial[i] = tensor->dims[axes[i + 2]];
        view.positions *= view.spatial[i];
    }
    view.batch = tensor->dims[axes[0]];
    view.channels = tensor->dims[axes[1]];
    view.batch_stride = strides[axes[0]];
    view.channel_stride = strides[axes[1]];
    view.position_stride = strides[axes[tensor->ndims - 1]];
    return view;
}

/* One axis of the windows. */
typedef struct axis_rule {
    int64_t stride, dilation, pad, source, target;
    bool gradient;
} axis_rule;

static int64_t source_position(const axis_rule *rule, int64_t target, int64_t tap)
{
    int64_t at = rule->gradient ? target + rule->pad - tap * rule->dilation
                                : target * rule->stride + tap * rule->dilation - rule->pad;
    if (at < 0)
        return -1;
    if (rule->gradient) {
        if (at % rule->stride != 0)
            return -1;
        at /= rule->stride;
    }
    return at < rule->source ? at : -1;
}

static gb_status window_map_create_axis(
        gb_ref_window_map *map, int axis, const axis_rule *rule, int64_t source_stride)
{
    size_t cells;
    if (!gb_size_mul((size_t)map->extent[axis], (size_t)rule->target, &cells))
        return gb_fail(
                GB_OUT_OF_MEMORY, "window of %lld taps is too large", (long long)map->extent[axis]);
    int64_t *table = gb_calloc(cells, sizeof(int64_t));
    map->table[axis] = table;
    if (!table)
        return GB_OUT_OF_MEMORY;
    for (int64_t tap = 0; tap < map->extent[axis]; tap++) {
        for (int64_t i = 0; i < rule->target; i++) {
            int64_t at = source_position(rule, i, tap);
            table[tap * rule->target + i] = at < 0 ? outside : at * source_stride;
        }
    }
    return GB_SUCCESS;
}

/* Appends the columns whose coordinates are congruent to `residue` modulo the strides. */
static void append_residue(
        gb_ref_window_map *map, const gb_window *window, const int64_t *residue, int64_t *filled)
{
    const gb_ref_view *target = &map->target;
    int n = target->n_spatial;
    for (int64_t batch = 0; batch < target->batch; batch++) {
        int64_t at[GB_MAX_NDIMS];
        memcpy(at, residue, (size_t)n * sizeof(int64_t));
        int d = 0;
        while (d >= 0) {
            int64_t position = 0;
            for (int i = 0; i < n; i++)
                position = position * target->spatial[i] + at[i];
            map->order[(*filled)++] = batch * target->positions + position;
            for (d = n - 1; d >= 0; d--) {
                at[d] += window->strides[d];
                if (at[d] < target->spatial[d])
                    break;
                at[d] = residue[d];
            }
        }
    }
}

/* With strides, a gradient's positions use different taps by residue class: equal ones side by side
 * let whole tiles skip taps. */
static gb_status create_order(gb_ref_window_map *map, const gb_window *window)
{
    const gb_ref_view *target = &map->target;
    int n = target->n_spatial;
    map->order = gb_calloc((size_t)map->columns, sizeof(int64_t));
    if (!map->order)
        return GB_OUT_OF_MEMORY;
    int64_t residue[GB_MAX_NDIMS] = {0}, filled = 0;
    int d = map->columns > 0 ? 0 : -1;
    while (d >= 0) {
        append_residue(map, window, residue, &filled);
        for (d = n - 1; d >= 0; d--) {
            if (++residue[d] < gb_min_i64(window->strides[d], target->spatial[d]))
                break;
            residue[d] = 0;
        }
    }
    return GB_SUCCESS;
}

static gb_status create_tables(gb_ref_window_map *map, const gb_window *window, bool gradient)
{
    int64_t stride = map->source.position_stride;
    bool strided = false;
    for (int axis = map->target.n_spatial - 1; axis >= 0; axis--) {
        axis_rule rule = {window->strides[axis], window->dilations[axis], window->pads_begin[axis],
                map->source.spatial[axis], map->target.spatial[axis], gradient};
        map->extent[axis] = window->kernel[axis];
        GB_TRY(window_map_create_axis(map, axis, &rule, stride));
        stride *= map->source.spatial[axis];
        strided |= window->strides[axis] > 1;
    }
    if (!gb_dims_count(map->target.n_spatial, map->extent, &map->taps))
        return gb_fail(GB_OUT_OF_MEMORY, "too many taps in a window");
    return gradient && strided ? create_order(map, window) : GB_SUCCESS;
}

gb_status gb_ref_window_map_create(gb_ref_window_map *map, const gb_ref_view *source,
        const gb_ref_view *target, const gb_window *window, bool gradient)
{
    *map = (gb_ref_window_map){.source = *source, .target = *target};
    map->columns = target->batch * target->positions;
    gb_status status = create_tables(map, window, gradient);
    if (status != GB_SUCCESS)
        gb_ref_window_map_destroy(map);
    return status;
}

void gb_ref_window_map_destroy(gb_ref_window_map *map)
{
    for (int axis = 0; axis < GB_MAX_NDIMS; axis++)
        free(map->table[axis]);
    free(map->order);
    *map = (gb_ref_window_map){0};
}

gb_status gb_ref_window_tile_create(
        const gb_ref_window_map *map, int64_t capacity, int64_t taps, gb_ref_window_tile *tile)
{
    size_t columns = (size_t)capacity, cells;
    *tile = (gb_ref_window_tile){.capacity = capacity};
    if (!gb_size_mul((size_t)taps, columns, &cells))
        return gb_fail(GB_OUT_OF_MEMORY, "too many taps in a window");
    tile->offsets = gb_calloc(cells, sizeof(int64_t));
    tile->target = gb_calloc(columns, sizeof(int64_t));
    tile->base = gb_calloc(columns, sizeof(int64_t));
    tile->column_taps = gb_calloc(columns, sizeof(int64_t));
    tile->tap_columns = gb_calloc((size_t)taps, sizeof(int64_t));
    tile->coordinates = gb_calloc(columns * (size_t)map->target.n_spatial, sizeof(int64_t));
    if (tile->offsets && tile->target && tile->base && tile->column_taps && tile->tap_columns &&
            tile->coordinates)
        return GB_SUCCESS;
    gb_ref_window_tile_destroy(tile);
    return GB_OUT_OF_MEMORY;
}

void gb_ref_window_tile_destroy(gb_ref_window_tile *tile)
{
    free(tile->offsets);
    free(tile->target);
    free(tile->base);
    free(tile->column_taps);
    free(tile->tap_columns);
    free(tile->coordinates);
    *tile = (gb_ref_window_tile){0};
}

static void locate_columns(const gb_ref_window_map *map, int64_t first, gb_ref_window_tile *tile)
{
    const gb_ref_view *target = &map->target;
    for (int64_t j = 0; j < tile->count; j++) {
        int64_t column = map->order ? map->order[first + j] : first + j;
        int64_t position = column % target->positions, batch = column / target->positions;
        tile->target[j] = batch * target->batch_stride + position * target->position_stride;
        tile->column_taps[j] = 0;
        tile->base[j] = batch * map->source.batch_stride;
        for (int axis = target->n_spatial - 1; axis >= 0; axis--) {
            tile->coordinates[axis * tile->capacity + j] = position % target->spatial[axis];
            position /= target->spatial[axis];
        }
    }
}

static void fill_tap(
        const gb_ref_window_map *map, int64_t tap, int64_t row, gb_ref_window_tile *tile)
{
    int64_t *offsets = tile->offsets + row * tile->capacity;
    memcpy(offsets, tile->base, (size_t)tile->count * sizeof(int64_t));
    for (int axis = map->target.n_spatial - 1; axis >= 0; axis--) {
        int64_t axis_tap = tap % map->extent[axis];
        const int64_t *table = map->table[axis] + axis_tap * map->target.spatial[axis];
        const int64_t *coordinates = tile->coordinates + axis * tile->capacity;
        for (int64_t j = 0; j < tile->count; j++)
            offsets[j] += table[coordinates[j]];
        tap /= map->extent[axis];
    }
    tile->tap_columns[row] = 0;
    for (int64_t j = 0; j < tile->count; j++) {
        tile->column_taps[j] += offsets[j] >= 0;
        tile->tap_columns[row] += offsets[j] >= 0;
    }
}

void gb_ref_window_tile_fill(const gb_ref_window_map *map, int64_t first, int64_t count,
        int64_t first_tap, int64_t taps, gb_ref_window_tile *tile)
{
    tile->count = count;
    locate_columns(map, first, tile);
    for (int64_t tap = 0; tap < taps; tap++)
        fill_tap(map, first_tap + tap, tap, tile);
}
