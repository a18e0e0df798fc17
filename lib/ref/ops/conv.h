/* The geometry that all ops of the convolution family share. */
#ifndef GB_REF_OPS_CONV_H
#define GB_REF_OPS_CONV_H

#include "ref/ops/dot.h"
#include "ref/ops/window_map.h"

/* Weights of the underlying convolution: `results` output channels, `images` input channels per
 * group; for transposed ops the output channels are those of src. */
typedef struct gb_ref_kernel {
    int64_t results, images, taps;
    int64_t extent[GB_MAX_NDIMS];
    int64_t result_stride, image_stride, tap_stride;
} gb_ref_kernel;

typedef struct gb_ref_conv {
    gb_ref_view image, result; /* the larger and the smaller side */
    gb_ref_kernel kernel;
    gb_window window;
    int64_t groups;
} gb_ref_conv;

gb_ref_kernel gb_ref_kernel_of(const gb_op *op, const gb_logical_tensor *weights);
/* `image` and `result` are src and dst of the underlying convolution; `transposed` is for the
 * padding of ConvTranspose. */
gb_status gb_ref_conv_bind(const gb_op *op, const gb_logical_tensor *image,
        const gb_logical_tensor *result, const gb_logical_tensor *weights, bool transposed,
        gb_ref_conv *conv);

#endif
