/* Operands that a kernel expands itself: what Dequantize or DynamicDequantize in front of it, and a
 * cast behind that, make of codes.
 *
 * The group of the kernel lists these ops as its prologue (fusion/fusion.h). gb_expansion_read()
 * says where the codes and their parameters are, gb_expansion_use_parameters() adds the parameters to
 * a step, and at run time gb_compressed (kernels/compressed.h) is filled from the buffers. */
#ifndef GB_KERNELS_PLAN_EXPANSION_H
#define GB_KERNELS_PLAN_EXPANSION_H

#include "kernels/plan/axes.h"
#include "runtime/program.h"

/* Scales or zero points, over the dims of the codes. */
typedef struct gb_expansion_parameter {
    gb_data_type type;        /* GB_UNDEF: there are none */
    uint32_t value;           /* of the graph; GB_NONE: an attribute of the op */
    int64_t strides[GB_AXES]; /* elements, from group to group */
    uint32_t slot;            /* of the step */
} gb_expansion_parameter;

typedef struct gb_expansion {
    const gb_op *op;         /* the Dequantize; NULL: the operand is what it is */
    uint32_t codes;          /* value; with the dims of the operand */
    int64_t groups[GB_AXES]; /* positions of each dim that share parameters */
    gb_expansion_parameter scales, zps;
    uint32_t slot; /* of the codes */
    /* The largest |code - zero point|; INT64_MAX when nothing is known of it. Integers only. */
    int64_t reach;
} gb_expansion;

/* Can a kernel that expands its operands take `op` over, the producer of an input or of the input
 * of an op that it took over before? */
bool gb_expansion_takes(const gb_op *op);

/* Codes of 8 bits with one scale and one zero point, by attributes: f32 holds the difference of a
 * code and the zero point. */
typedef struct gb_scaled_codes {
    float scale, zero_point;
} gb_scaled_codes;

/* Does the op make numbers of such codes? */
bool gb_scaled_codes_read(const gb_op *op, gb_scaled_codes *codes);

/* What `value`, an input of the group's kernel, is made of by the ops of the group's prologue. */
void gb_expansion_read(
        const gb_graph *graph, const gb_group *group, uint32_t value, gb_expansion *expansion);

/* Adds the parameters to the buffers that the step reads; attributes become constants of the program.
 */
gb_status gb_expansion_use_parameters(gb_program *program, gb_step *step, gb_expansion *expansion);

#endif
