/* The formats that convolutions write, those of regions, too. */
#ifndef GB_KERNELS_CONV_CONV_FORMATS_H
#define GB_KERNELS_CONV_CONV_FORMATS_H

#include "fusion/fusion.h"

/* The formats in which a group around the convolution `op` writes `value` (gb_capability). */
uint32_t gb_conv_writes_formats(const gb_graph *graph, const gb_group *group, const gb_op *op,
        uint32_t value, gb_format_candidate *candidates);

#endif
