/* Convolutions: what is to be computed, whoever computes it.
 *
 * For every output channel n and every position o, the pointwise program takes
 *
 *   sum over input channels c of n's group and taps t of source(c, r) * weights(n, c, t)
 *
 * where r is the source position that tap t meets at o; beyond the source there are zeros. Forward,
 * transposed and the gradient by the source: all of them are described so. */
#ifndef GB_KERNELS_PLAN_CONV_PROBLEM_H
#define GB_KERNELS_PLAN_CONV_PROBLEM_H

#include "fusion/regions/convolution.h"
#include "kernels/plan/gemm_problem.h"

/* The batch, or a spatial axis. Result position o reads positions o * stride + tap * dilation - pad
 * of the source, or of the source with input_dilation - 1 zeros between neighbours: then only every
 * so many taps meet a source position, and which ones depends on o modulo input_dilation. */
typedef struct gb_conv_axis {
    int64_t in, out, kernel, stride, dilation, pad;
    int64_t input_dilation;         /* 1, or stride is 1 */
    int64_t src_stride, tap_stride; /* elements of the source and of the weights */
    int dim;                        /* of the result */
} gb_conv_axis;

/* The bias of a convolution that makes the source of another one. */
typedef struct gb_conv_bias {
    gb_data_type type; /* GB_UNDEF: there is none */
    uint32_t buffer;   /* of the program */
    int64_t stride;
} gb_conv_bias;

typedef struct gb_conv_problem gb_conv_problem;
struct gb_conv_problem {
    gb_pointwise_program pointwise; /* over the dims of the result */
    int channel_dim;                /* of the result */
    int n_axes;
    gb_conv_axis axes[GB_AXES];                /* the batch first */
    int64_t groups, in_channels, out_channels; /* channels of one group */

    gb_data_type src_type, weights_type;
    uint32_t src_buffer, weights_buffer; /* of the program */
    int64_t src_channel_stride;
    int64_t in_stride, out_stride;      /* of the weights, along input and output channels */
    int64_t group_stride, first_weight; /* from group to group; that of tap 0 */

    /* Where the source is quantized values of 8 bits, their distance from the zero point counts.
     * With n_scales 0, weights are floats, and the pointwise program begins with the scale of the
     * source. Otherwise they are quantized values, too, and the pointwise program takes the sum
     * times scale * scales[n % n_scales], n counted over all groups. */
    float zero_point, scale;
    int64_t n_scales;
    const float *scales; /* of the graph */

    /* The convolution that makes the source, or NULL: its results are positions and channels of the
     * image that this one reads as f32. No buffer holds that image: src_buffer and the strides of
     * the source say nothing then. */
    const gb_conv_problem *producer;
    /* Of a producer: the pointwise program takes sums with this bias, and reads and writes scratch
     * operands; without instructions, nothing follows. The bias of others is in their program. */
    gb_conv_bias bias;
};

/* Describes what the op computes on tensors that stand for its source and weights: all but the
 * pointwise program, buffers and quantization. `problem` is zeroed before. Fails where attributes
 * and shapes do not agree. */
gb_status gb_conv_describe(const gb_op *op, const gb_logical_tensor *src,
        const gb_logical_tensor *weights, gb_conv_problem *problem);
/* The same with the op's own inputs. */
gb_status gb_conv_describe_op(const gb_op *op, gb_conv_problem *problem);
/* Of a convolution of 8-bit quantized values: all but the pointwise program and buffers. */
gb_status gb_conv_describe_int8(const gb_conv_int8_parts *parts, gb_conv_problem *problem);
/* Of a pair: the first convolution as `producer`, the second one, which it makes the source of, as
 * `problem`; all but pointwise programs and buffers. */
gb_status gb_conv_describe_pair(
        const gb_conv_pair_parts *parts, gb_conv_problem *producer, gb_conv_problem *problem);

/* Is the op before an input one that a convolution does while it reads (gb_capability)? Pointwise
 * ones expand quantized values as products do, others those of their source. */
bool gb_conv_takes_prologue(const gb_op *anchor, uint32_t input, const gb_op *op);
/* Does the op run from the positions of windows to the image that they move over? Its weights then
 * have input channels where others have output channels. */
bool gb_conv_is_backward(const gb_op *op);
/* Every position reads one source position of its own, none of them padding, and there is one
 * group: a matrix product. */
bool gb_conv_is_pointwise(const gb_conv_problem *problem);

/* The whole problem of a group; `step` gets the uses of its pointwise program. `problem` (and
 * `producer`) are zeroed before and constant from then on.
 * Of a group around a convolution. A pointwise one has no buffers yet: it is to be run as a product
 * (gb_conv_read_product()). */
gb_status gb_conv_read_group(
        gb_program *program, const gb_group *group, gb_step *step, gb_conv_problem *problem);
/* Of a region of quantized values. */
gb_status gb_conv_read_int8(
        gb_program *program, const gb_group *group, gb_step *step, gb_conv_problem *problem);
/* Of a region of two convolutions. */
gb_status gb_conv_read_pair(gb_program *program, const gb_group *group, gb_step *step,
        gb_conv_problem *producer, gb_conv_problem *problem);
/* The product that a pointwise convolution of a group is; quantized values stay such. */
gb_status gb_conv_read_product(gb_program *program, const gb_group *group, gb_step *step,
        const gb_conv_problem *problem, gb_gemm_problem *gemm);

/* The first tensor that the program writes, or NULL. */
const gb_pointwise_operand *gb_conv_result(const gb_pointwise_program *pointwise);

/* As a gb_print_fn for a gb_conv_problem. */
void gb_conv_problem_print(const gb_printer *printer, const void *conv_problem);

#endif
