/* Images with their channels last: n x c x h x w in the order acdb, which kernels of images read
 * and write besides the dense order. */
#ifndef GB_KERNELS_PLAN_CHANNELS_LAST_H
#define GB_KERNELS_PLAN_CHANNELS_LAST_H

#include "fusion/fusion.h"

/* The format; NULL for tensors without axes of positions. */
const gb_format *gb_channels_last(int ndims);
/* Does the op have its channels first by its attribute data_format? */
bool gb_has_channels_first(const gb_op *op);
bool gb_lies_channels_last(const gb_logical_tensor *tensor);
/* Does what the group reads for the value lie so? Ops that it took over, such as Dequantize, may lie
 * between. */
bool gb_source_lies_channels_last(const gb_graph *graph, const gb_group *group, uint32_t value);
/* Can the kernel of `anchor`, which has channels first by its attribute, write the only output of
 * its group with channels last, so that post-ops read nothing of its size that lies otherwise? */
bool gb_may_write_channels_last(
        const gb_graph *graph, const gb_group *group, const gb_op *anchor, uint32_t value);

#endif
