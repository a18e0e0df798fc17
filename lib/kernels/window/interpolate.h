/* How the CPU resamples: an element is the weighted sum of a few elements of the source, by a table of
 * taps per axis.
 */
#ifndef GB_KERNELS_WINDOW_INTERPOLATE_H
#define GB_KERNELS_WINDOW_INTERPOLATE_H

#include "kernels/cpu/step_call.h"
#include "kernels/plan/resample_problem.h"
#include "kernels/rowwise/epilogue.h"

/* Rows of the source that are kept, and taps of the height, where rows are widened. */
enum { GB_INTERPOLATE_HELD_ROWS = 2 };

/* Elements begin .. end - 1 of a line. */
typedef struct gb_line_range {
    int64_t begin, end;
} gb_line_range;

typedef enum gb_interpolation_way {
    /* vectors across the channels */
    GB_INTERPOLATE_COPIED,   /* channels of the nearest position as they are */
    GB_INTERPOLATE_JOINED,   /* of lines whose positions have all channels; rows are joined first */
    GB_INTERPOLATE_CHANNELS, /* each position is a sum of its own */
    /* along the width */
    GB_INTERPOLATE_PICKED,  /* nearest elements as they are */
    GB_INTERPOLATE_PLANAR,  /* a work item is a plane of height and width */
    GB_INTERPOLATE_WIDENED, /* rows are resampled along the width first, then added up */
    GB_INTERPOLATE_ROWS     /* rows are added up first */
} gb_interpolation_way;

typedef struct gb_interpolation {
    gb_resample_problem problem;
    gb_interpolation_way way;
    bool doubled;         /* picked elements: each twice */
    bool streams;         /* joined lines whose positions are whole lines of the caches */
    int row_dim, col_dim; /* a work item is rows x cols of these; row_dim may be -1 */
    int64_t rows, cols, items;
    gb_epilogue epilogue;
    gb_scratch results;     /* of a work item; register 0 where more is done with them */
    gb_scratch line;        /* along the width, or joined */
    gb_scratch widened;     /* rows of the source at the width of a work item */
    gb_line_range *ranges;  /* that the taps of a work item read, for each step along the width */
    gb_resample_taps plane; /* of a position in a plane of the source */
} gb_interpolation;

/* Begin and length of a work item along a dim. */
static inline int64_t gb_interpolation_step(const gb_interpolation *params, int dim)
{
    return dim == params->col_dim ? params->cols : dim == params->row_dim ? params->rows : 1;
}

/* The taps of `count` positions from `first` on. */
static inline gb_resample_taps gb_taps_part(
        const gb_resample_taps *taps, int64_t first, int64_t count)
{
    gb_resample_taps part = *taps;
    part.index += first;
    part.weight += first;
    part.count = count;
    return part;
}

void gb_interpolate_run(const gb_step_call *call);

#endif
