/* Tables of taps: which source elements with which weights make a position. */
#ifndef GB_KERNELS_PLAN_RESAMPLE_TAPS_H
#define GB_KERNELS_PLAN_RESAMPLE_TAPS_H

#include <stdint.h>

/* The taps of `count` positions of an axis: tap t of position i reads index[t * pitch + i] with
 * weight[t * pitch + i]; a weight of 0 stands for no tap. */
typedef struct gb_resample_taps {
    int64_t taps, pitch, count;
    const int32_t *index;
    const float *weight;
} gb_resample_taps;

#endif
