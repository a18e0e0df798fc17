/* The cells of pooling windows that lie inside the image, column by column. */
#ifndef GB_REF_OPS_WINDOW_CELLS_H
#define GB_REF_OPS_WINDOW_CELLS_H

#include "ref/ops/window_map.h"

/* Per position of one axis, the source offsets it reads, in ascending order. */
typedef struct gb_ref_axis_cells {
    int64_t *first;   /* owned: position i reads offsets[first[i]] .. offsets[first[i + 1] - 1] */
    int64_t *offsets; /* owned */
    int64_t most;     /* most cells of a position */
} gb_ref_axis_cells;

typedef struct gb_ref_window_cells {
    gb_ref_view source, target;
    int64_t columns; /* N * P of the target */
    int64_t most;    /* most cells of a column */
    gb_ref_axis_cells axes[GB_MAX_NDIMS];
} gb_ref_window_cells;

/* `gradient`: the target is the image, and the cells are the windows that contain it. */
gb_status gb_ref_window_cells_create(gb_ref_window_cells *cells, const gb_ref_view *source,
        const gb_ref_view *target, const gb_window *window, bool gradient);
void gb_ref_window_cells_destroy(gb_ref_window_cells *cells);
/* Source offsets (of channel 0) of one column in row-major order, room for `most`; the number of
 * them is returned. */
int64_t gb_ref_window_cells_list(
        const gb_ref_window_cells *cells, int64_t column, int64_t *offsets, int64_t *target);

#endif
