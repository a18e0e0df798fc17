/* Where the windows of convolutions and pools read: for each target position and each kernel tap
 * the source element, or none.
 *
 * Seen as N, C, spatial, a tensor is addressed by three strides, as the spatial axes are adjacent
 * in both data formats. Targets are handled as columns 0 .. N*P-1 (P spatial positions), a tile of
 * columns at a time. */
#ifndef GB_REF_OPS_WINDOW_MAP_H
#define GB_REF_OPS_WINDOW_MAP_H

#include "graph/ops/op_table.h"

typedef struct gb_ref_view {
    int n_spatial;
    int64_t batch, channels, positions;
    int64_t spatial[GB_MAX_NDIMS];
    int64_t batch_stride, channel_stride, position_stride;
} gb_ref_view;

typedef struct gb_ref_window_map {
    gb_ref_view source, target;
    int64_t columns;              /* N * P of the target */
    int64_t taps;                 /* product of the extents */
    int64_t extent[GB_MAX_NDIMS]; /* taps per axis */
    int64_t *table[GB_MAX_NDIMS]; /* owned: [tap][target] -> source offset, negative: none */
    int64_t *order; /* owned: the columns so that those with the same taps are neighbours; NULL: as
                       they are */
} gb_ref_window_map;

/* A data tensor of `op`; its rank must be at least 3. */
gb_ref_view gb_ref_view_of(const gb_op *op, const gb_logical_tensor *tensor);

/* Target o reads source o * stride + k * dilation - pad; `gradient` turns that round: target i
 * reads the sources o of which i is the window cell k. */
gb_status gb_ref_window_map_create(gb_ref_window_map *map, const gb_ref_view *source,
        const gb_ref_view *target, const gb_window *window, bool gradient);
void gb_ref_window_map_destroy(gb_ref_window_map *map);

/* The columns of one tile, what the loops over taps and channels need of them. */
typedef struct gb_ref_window_tile {
    int64_t capacity, count;
    int64_t *offsets;     /* owned: [tap][capacity], source offset of channel 0, negative: none */
    int64_t *target;      /* owned: [capacity], target offset of channel 0 */
    int64_t *base;        /* owned: [capacity], source offset of the column's batch */
    int64_t *column_taps; /* owned: [capacity], how many taps a column has */
    int64_t *tap_columns; /* owned: [tap], how many columns a tap has */
    int64_t *coordinates; /* owned: [axis][capacity] */
} gb_ref_window_tile;

gb_status gb_ref_window_tile_create(
        const gb_ref_window_map *map, int64_t capacity, int64_t taps, gb_ref_window_tile *tile);
void gb_ref_window_tile_destroy(gb_ref_window_tile *tile);
/* Fills in columns first .. first+count-1 and taps first_tap .. first_tap+taps-1 (counted from 0 in
 * the tile). */
void gb_ref_window_tile_fill(const gb_ref_window_map *map, int64_t first, int64_t count,
        int64_t first_tap, int64_t taps, gb_ref_window_tile *tile);

#endif
