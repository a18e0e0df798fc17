/* The taps of Interpolate and of its gradient along one axis. */
#ifndef GB_KERNELS_WINDOW_RESAMPLE_H
#define GB_KERNELS_WINDOW_RESAMPLE_H

#include "graph/ops/op_table.h"
#include "kernels/isa/resample_types.h"
#include "runtime/program.h"

typedef enum gb_resample_mode { GB_RESAMPLE_NEAREST, GB_RESAMPLE_LINEAR } gb_resample_mode;

/* Fills in the table of an axis that has `in` elements before Interpolate and `out` behind it;
 * pitch = count. Of the gradient: positions are those of `in`, which gather from `out`. index and
 * weight are to be freed. */
gb_status gb_resample_axis(gb_step *step, gb_resample_mode mode, bool align_corners, bool gradient,
        int64_t in, int64_t out, gb_resample_taps *taps);

#endif
