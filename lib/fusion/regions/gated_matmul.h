/* The region of two products of one source, of which one passes through post-ops (the gate and its
 * activation) and then meets the other. */
#ifndef GB_FUSION_REGIONS_GATED_MATMUL_H
#define GB_FUSION_REGIONS_GATED_MATMUL_H

#include "fusion/regions/links.h"

enum { GB_GATED_DEQUANTIZED = 4 };

typedef struct gb_gated_product {
    const gb_op *op;
    uint32_t n_dequantized,
            dequantized[GB_GATED_DEQUANTIZED]; /* ops that make its weights of codes */
} gb_gated_product;

typedef struct gb_gated_matmul_parts {
    gb_gated_product gate, up;
    gb_region_chain before; /* post-ops behind the gate, the last op first */
    gb_region_chain after;  /* from the post-op that both products reach on */
    uint32_t made, result;  /* values that leave the two */
} gb_gated_matmul_parts;

#endif
