/* The post-ops that a region takes behind its last anchor. */
#ifndef GB_FUSION_REGIONS_POST_OPS_H
#define GB_FUSION_REGIONS_POST_OPS_H

#include "fusion/fusion.h"

/* Op indices. */
typedef struct gb_region_chain {
    uint32_t n, ops[GB_GROUP_OPS];
} gb_region_chain;

/* Is it an element-wise op with one result whose parameters fit tiles of any shape? */
bool gb_region_is_post_op(const gb_pass_context *context, const gb_op *op);

/* Fills in the element-wise ops that can run on the output of `anchor` before it is written, and
 * the conversions that make other operands of theirs alone, in topological order. Dims are
 * known. */
void gb_region_find_post_ops(const gb_graph *graph, const gb_pass_context *context,
        const gb_op *anchor, gb_region_chain *post_ops);

#endif
