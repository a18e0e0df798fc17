/* The regions: several anchors, or an anchor and what stands beside it, that one kernel can run. Each file
 * here finds one kind of them, by what the ops compute. */
#ifndef GB_FUSION_REGIONS_REGIONS_H
#define GB_FUSION_REGIONS_REGIONS_H

#include "fusion/fusion.h"

/* Parts: gb_attention_parts, gb_attention_gradient_parts (attention.h). */
extern const gb_region gb_region_attention, gb_region_attention_gradients;
/* gb_conv_pair_parts, gb_conv_int8_parts (convolution.h). */
extern const gb_region gb_region_conv_pair, gb_region_conv_int8, gb_region_conv_transpose_int8;
/* gb_gated_matmul_parts (gated_matmul.h). */
extern const gb_region gb_region_gated_matmul;
/* gb_batch_norm_parts (batch_norm.h). */
extern const gb_region gb_region_batch_norm_relu, gb_region_relu_batch_norm_backward;

#endif
