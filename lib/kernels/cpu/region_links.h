/* The links that a region takes behind its last anchor. */
#ifndef GB_KERNELS_CPU_REGION_LINKS_H
#define GB_KERNELS_CPU_REGION_LINKS_H

#include "fusion/fusion.h"

/* Writes the element-wise ops that can run on the output of `anchor` before it is written, and the
 * conversions that make other operands of theirs alone, in topological order; returns their number,
 * at most `most`. Dims are known. */
uint32_t gb_region_links(const gb_graph *graph, const gb_pass_context *context, const gb_op *anchor,
        uint32_t most, uint32_t *links);

#endif
