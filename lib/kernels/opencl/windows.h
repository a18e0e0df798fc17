/* Kernels of cl/window.cl: pools, convolutions of few channels a group, and the gradients of both. */
#ifndef GB_KERNELS_OPENCL_WINDOWS_H
#define GB_KERNELS_OPENCL_WINDOWS_H

#include "kernels/opencl/lower.h"

enum {
    GB_CL_WINDOW_AXES = 3,
    GB_CL_LEAST_LANES = 4,  /* results that are worth lanes */
    GB_CL_FEW_LINE_TAPS = 8 /* are written out */
};

/* As cl/window.cl says. */
typedef struct gb_cl_window_axis {
    int dim; /* of the space; -1: missing, all sizes are 1 */
    int64_t size, kernel, step, dilation, pad, zeros, source, by_tap, by_cell;
} gb_cl_window_axis;

/* A missing axis. */
gb_cl_window_axis gb_cl_no_window_axis(void);

typedef struct gb_cl_windows {
    int ndims; /* the space: that of results; what runs in lanes comes last */
    int64_t dims[GB_AXES];
    gb_cl_window_axis axes[GB_CL_WINDOW_AXES]; /* the last one is the line */
    int channel_dim;
    bool along_line;                      /* in lanes; otherwise along channels */
    int lane_dim;                         /* or GB_CL_NO_LANES */
    int moved;                            /* the dim that has become the last one */
    char source_base[64], other_base[32]; /* what is added to where both begin: expressions */
} gb_cl_windows;

/* Chooses lanes, on a CPU, and with them the order of dims; `channel_stride` is that of the source, or 0
 * where channels cannot run in lanes. */
void gb_cl_choose_window_lanes(gb_cl_writer *w, gb_cl_windows *windows, int64_t channel_stride);
/* Puts numbers of the dims of the space, such as strides, into its order. */
void gb_cl_order_dims(const gb_cl_windows *windows, int64_t *numbers);
/* The same for a pointwise program over the space; `ordered` is memory of the step. */
gb_status gb_cl_order_pointwise(const gb_cl_writer *w, const gb_cl_windows *windows,
        const gb_pointwise_program *pointwise, gb_pointwise_program *ordered);

/* What the macros of cl/window.cl say about a source: GB_LOAD and so on with an empty `suffix`, of elements
 * `name` (gb_cl_type_name()) of a slot, whose last one is number `last`. `zero_point` is taken off. */
void gb_cl_print_window_source(gb_cl_writer *w, const gb_cl_windows *windows, const char *name,
        uint32_t slot, int64_t channel_stride, int64_t last, float zero_point);
/* The same for the second one, of integers whose lanes are neighbours. */
void gb_cl_print_window_places(
        gb_cl_writer *w, const gb_cl_windows *windows, uint32_t slot, int64_t last);
/* GB_LINE and so on, of an axis; GB_ALONG_LINE where positions run in lanes. */
void gb_cl_print_window_line(gb_cl_writer *w, const gb_cl_window_axis *line, bool along_line);
/* GB_AXES, all but the line. */
void gb_cl_print_window_axes(gb_cl_writer *w, const gb_cl_windows *windows);
/* Do the cells that so many neighbouring positions look for, also beyond the image, fit 32-bit integers? */
bool gb_cl_line_fits(const gb_cl_window_axis *line, int64_t positions);
/* Lanes of a vector for so many results. */
int gb_cl_window_lanes(int64_t size);
/* All other macros but GB_TAKE and GB_START, and those of channels; then cl/window.cl. */
void gb_cl_print_windows(gb_cl_writer *w, const gb_cl_windows *windows);
/* "static void gb_element(GB_PARAMETERS, long i0, ...)\n{\n" */
void gb_cl_print_window_element(gb_cl_writer *w, const gb_cl_windows *windows);
/* Taps of a row that are listed, at most. */
int gb_cl_window_list(const gb_cl_windows *windows);
/* Where a position begins by strides over the space, those along axes left out. */
void gb_cl_print_window_outer(
        gb_cl_writer *w, const gb_cl_windows *windows, const int64_t *strides);
/* ", i2, i3, i4", without lanes: the positions along the axes, 0 for those that are missing. In lanes
 * ", i3, lanes" along the line, ", lanes" along channels. */
void gb_cl_print_window_positions(gb_cl_writer *w, const gb_cl_windows *windows);
/* "gb_window(...)" at a position: where the source begins there, and the other operand, by strides over
 * the space, those along axes left out; `own` is an expression. */
void gb_cl_print_window(gb_cl_writer *w, const gb_cl_windows *windows, const int64_t *source,
        const int64_t *other, const char *own);
/* Declares `taps`, the list of a row's, at a position. */
void gb_cl_print_window_taps(gb_cl_text *t, const gb_cl_windows *windows);
/* The kernel that calls gb_element. */
void gb_cl_print_window_space(gb_cl_writer *w, const gb_cl_windows *windows);

#endif
