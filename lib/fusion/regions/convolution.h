/* Regions of convolutions. */
#ifndef GB_FUSION_REGIONS_CONVOLUTION_H
#define GB_FUSION_REGIONS_CONVOLUTION_H

#include "fusion/regions/links.h"

/* A convolution, and another one behind it with post-ops between the two: a pointwise and a
 * depthwise one where the engine has a kernel for the pair. */
typedef struct gb_conv_pair_parts {
    const gb_op *pointwise, *depthwise;
    gb_region_chain between, after;
} gb_conv_pair_parts;

/* What makes numbers of the 8-bit codes that a convolution reads. */
typedef struct gb_conv_codes {
    const gb_op *dequantize;
    uint32_t n_casts, casts[2]; /* TypeCast between the op and the convolution */
} gb_conv_codes;

/* A convolution whose source has one scale and zero point, and whose weights are symmetric with one
 * scale or one for each output channel. */
typedef struct gb_conv_int8_parts {
    const gb_op *conv;
    gb_conv_codes src, weights;
    gb_region_chain post_ops;
    float scale;        /* of the source */
    int64_t zero_point; /* fits the type of its codes */
    int64_t n_scales;
    const float *scales; /* of the weights; an attribute of its op */
} gb_conv_int8_parts;

#endif
