/* Convolutions that read the source where it lies, and leave out the taps beyond it. They run along lines of result
 * positions; at all but the ends of a line the same taps count. */
#ifndef GB_KERNELS_CONV_CONV_LINES_H
#define GB_KERNELS_CONV_CONV_LINES_H

#include "kernels/plan/conv_problem.h"

typedef struct gb_conv_lines {
    int n_axes, tile_axis; /* lines run along the tile axis */
    gb_conv_axis axes[GB_AXES];
    int64_t inner_first, inner_end; /* positions of a line that no tap reads beyond the source at */
    int64_t taps, n_lines;          /* in all */
} gb_conv_lines;

/* The taps that count at a position. */
typedef struct gb_conv_line_taps {
    int64_t n, source; /* source: the element that offset 0 stands for */
    int64_t inside; /* of the n, those that follow each other along the axes behind the tile axis */
} gb_conv_line_taps;

/* The axis that lines run along. */
static inline const gb_conv_axis *gb_conv_lines_axis(const gb_conv_lines *lines)
{
    return &lines->axes[lines->tile_axis];
}

gb_conv_lines gb_conv_lines_make(const gb_conv_problem *problem);
/* Multiplications for each channel. */
double gb_conv_lines_terms(const gb_conv_lines *lines);
/* The position, by dim of the result, of line `index`, but for the tile axis. */
void gb_conv_lines_find(const gb_conv_lines *lines, int64_t index, int64_t *position);
/* Lists where the taps that count at a position read, and their numbers among all taps, of which the last axis counts
 * fastest. */
gb_conv_line_taps gb_conv_lines_taps(
        const gb_conv_lines *lines, const int64_t *position, int64_t *offsets, int64_t *numbers);
/* Positions from `first` on that have the same taps, up to `end`. */
int64_t gb_conv_lines_alike(const gb_conv_lines *lines, int64_t first, int64_t end);

#endif
