/* How CPU kernels join the library: one row per op kind, each naming what lowers it. */
#ifndef GB_KERNELS_CPU_LOWER_H
#define GB_KERNELS_CPU_LOWER_H

#include "kernels/cpu/step_call.h"
#include "kernels/plan/pointwise_rules.h"
#include "runtime/backend.h"

typedef struct gb_lowering {
    const char *name;
    /* Can the kernel run this op? Types and attributes are known, dims perhaps not. `reason`
     * (static) says why not. */
    bool (*supports)(const gb_op *op, const char **reason);
    /* Goes the kernel on with a pointwise program on its output 0? */
    bool takes_epilogue;
    /* Takes the kernel an op in front of it over (gb_capability)? NULL: none. */
    bool (*fuses_producer)(const gb_op *anchor, uint32_t input, const gb_op *op);
    /* Formats in which the kernel takes an input, or writes an output of its group (gb_capability).
     * NULL: dense and other strided layouts only. */
    uint32_t (*reads_formats)(const gb_op *anchor, uint32_t input, gb_format_candidate *candidates);
    uint32_t (*writes_formats)(const gb_graph *graph, const gb_group *group, uint32_t value,
            gb_format_candidate *candidates);
    /* Adds steps for a group whose anchor is such an op. */
    gb_status (*lower)(gb_program *program, const gb_group *group);
} gb_lowering;

extern const gb_lowering gb_lowering_matmul;                       /* lower_matmul.c */
extern const gb_lowering gb_lowering_convolution;                  /* lower_convolution.c */
extern const gb_lowering gb_lowering_conv_transpose_backward_data; /* lower_convolution.c */
extern const gb_lowering
        gb_lowering_weight_gradient; /* ConvolutionBackwardWeights, ConvTransposeBackwardWeights */
extern const gb_lowering gb_lowering_softmax;   /* SoftMax, LogSoftmax */
extern const gb_lowering gb_lowering_norm;      /* LayerNorm, RMSNorm, GroupNorm */
extern const gb_lowering gb_lowering_reduction; /* Reduce* */
extern const gb_lowering gb_lowering_pool;      /* AvgPool, MaxPool */
extern const gb_lowering gb_lowering_concat;    /* Concat */
extern const gb_lowering gb_lowering_movement;  /* StaticReshape, StaticTranspose: strided copies */
extern const gb_lowering gb_lowering_reorder;   /* Reorder */
extern const gb_lowering gb_lowering_softmax_backward; /* SoftMaxBackward, LogSoftmaxBackward */
extern const gb_lowering
        gb_lowering_batch_norm; /* BatchNormForwardTraining, BatchNormTrainingBackward */
extern const gb_lowering gb_lowering_layer_norm_backward;
extern const gb_lowering gb_lowering_prelu_backward;
extern const gb_lowering gb_lowering_bias_backward;
extern const gb_lowering gb_lowering_pool_backward; /* AvgPoolBackward, MaxPoolBackward */
extern const gb_lowering gb_lowering_interpolate;   /* Interpolate, InterpolateBackward */
extern const gb_lowering gb_lowering_defined;       /* ops that the program defined */
/* Element-wise ops (post-ops): group without anchor, run as a pointwise program over the space. */
gb_status gb_lower_pointwise(gb_program *program, const gb_group *group);

/* A kernel for a region (lib/fusion/regions). */
typedef struct gb_region_lowering {
    const gb_region *region;
    /* Can the kernel run what was matched? NULL: all of it. */
    bool (*accepts)(const gb_graph *graph, const void *parts);
    gb_status (*lower)(gb_program *program, const gb_group *group);
    /* As that of gb_lowering. */
    uint32_t (*writes_formats)(const gb_graph *graph, const gb_group *group, uint32_t value,
            gb_format_candidate *candidates);
} gb_region_lowering;

extern const gb_region_lowering gb_lowering_attention;           /* attention_lower.c */
extern const gb_region_lowering gb_lowering_attention_gradients; /* attention_lower.c */
extern const gb_region_lowering gb_lowering_conv_pair;           /* lower_conv_pair.c */
extern const gb_region_lowering gb_lowering_conv_int8,
        gb_lowering_conv_transpose_int8;                  /* lower_conv_int8.c */
extern const gb_region_lowering gb_lowering_gated_matmul; /* lower_gated_matmul.c */
extern const gb_region_lowering gb_lowering_batch_norm_relu,
        gb_lowering_relu_batch_norm_backward; /* lower_batch_norm.c */

/* The rows of region kernels, in the order in which their regions are tried; NULL behind the last
 * (lowering_table.c). */
const gb_region_lowering *gb_region_lowering_at(uint32_t index);
/* The row of a region that the table has. */
const gb_region_lowering *gb_region_lowering_of(const gb_region *region);

/* Row of the op kind, NULL when none (lowering_table.c). */
const gb_lowering *gb_lowering_get(gb_op_kind kind);

/* Common check for supports(), beside those of op_table.h: all tensors are of one type of whole
 * bytes. */
bool gb_has_bytes(const gb_op *op, const char **reason);

#endif
