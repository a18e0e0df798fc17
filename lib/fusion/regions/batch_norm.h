/* Regions of a batch norm and the ReLU beside it. */
#ifndef GB_FUSION_REGIONS_BATCH_NORM_H
#define GB_FUSION_REGIONS_BATCH_NORM_H

#include "fusion/fusion.h"

typedef struct gb_batch_norm_parts {
    const gb_op *norm;
    const gb_op *
            relu; /* the ReLU behind the norm of training, or the ReLUBackward in front of its gradient */
} gb_batch_norm_parts;

#endif
