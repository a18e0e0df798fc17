/* Operands that a kernel dequantizes itself: what Dequantize or DynamicDequantize in front of it,
 * and a cast behind that, make of quantized values.
 *
 * The group of the kernel lists these ops as its prologue (fusion/fusion.h).
 * gb_dequantization_read() says where the quantized values and their parameters are,
 * gb_dequantization_use_parameters() adds the parameters to a step, and at run time
 * gb_quantized_matrix (kernels/quantized_matrix.h) is filled from the buffers. */
#ifndef GB_KERNELS_PLAN_DEQUANTIZATION_H
#define GB_KERNELS_PLAN_DEQUANTIZATION_H

#include "kernels/plan/axes.h"
#include "runtime/program.h"

/* Scales or zero points, over the dims of the quantized values. */
typedef struct gb_dequantization_parameter {
    gb_data_type type;        /* GB_UNDEF: there are none */
    uint32_t value;           /* of the graph; GB_NONE: an attribute of the op */
    int64_t strides[GB_AXES]; /* elements, from group to group */
    uint32_t slot;            /* of the step */
} gb_dequantization_parameter;

typedef struct gb_dequantization {
    const gb_op *op;         /* the Dequantize; NULL: the operand is what it is */
    uint32_t codes;          /* value; with the dims of the operand */
    int64_t groups[GB_AXES]; /* positions of each dim that share parameters */
    gb_dequantization_parameter scales, zps;
    uint32_t slot; /* of the quantized values */
    /* The largest |code - zero point|; INT64_MAX when nothing is known of it. Integers only. */
    int64_t reach;
} gb_dequantization;

/* Can a kernel that dequantizes its operands take `op` over, the producer of an input or of the
 * input of an op that it took over before? */
bool gb_dequantization_takes(const gb_op *op);

/* Quantized values of 8 bits with one scale and one zero point, by attributes: f32 holds the
 * difference of a code and the zero point. */
typedef struct gb_per_tensor_quantization {
    float scale, zero_point;
} gb_per_tensor_quantization;

/* Does the op make numbers of such quantized values? */
bool gb_per_tensor_quantization_read(const gb_op *op, gb_per_tensor_quantization *codes);

/* What `value`, an input of the group's kernel, is made of by the ops of the group's prologue. */
void gb_dequantization_read(const gb_graph *graph, const gb_group *group, uint32_t value,
        gb_dequantization *dequantization);

/* Adds the parameters to the buffers that the step reads; attributes become constants of the
 * program.
 */
gb_status gb_dequantization_use_parameters(
        gb_program *program, gb_step *step, gb_dequantization *dequantization);

#endif
