/* What pools and their gradients share: kernels of cl/window.cl without channels to sum up. */
#ifndef GB_KERNELS_OPENCL_POOLS_H
#define GB_KERNELS_OPENCL_POOLS_H

#include "kernels/opencl/windows.h"
#include "kernels/plan/pool_problem.h"

enum { GB_CL_POOL_DIMS = GB_POOL_SPATIAL_DIM + GB_POOL_AXES }; /* of the gradients' space */

/* Results are windows, taps their cells. */
gb_cl_window_axis gb_cl_pool_axis(const gb_pool_axis *axis, const int64_t *strides);
/* The number of the last element of an operand that has the cells along the axes. */
int64_t gb_cl_pool_last(const gb_cl_windows *windows, const int64_t *strides);
/* The space of the image of a gradient, or of its windows. */
gb_cl_windows gb_cl_pool_space(const gb_pool_backward_problem *problem, bool windows);

/* What a window begins with, and how it takes a cell. */
void gb_cl_print_pool_take(gb_cl_writer *w, float start, const char *take);
/* Keeps the place of the first maximum; NaN is none. */
#define GB_CL_TAKE_PLACE                                                                           \
    "place = x > sum ? cell_place : place; sum = gb_max(x, sum);\n#define GB_PLACE"

/* lower_max_gradient.c: can one kernel of the device make the gradient of a maximum? Adds the step, whose
 * uses are known. */
bool gb_cl_fits_max_gradient(gb_program *program, const gb_pool_backward_problem *problem);
gb_status gb_cl_add_max_gradient(gb_cl_writer *w, const gb_pool_backward_problem *problem);

#endif
