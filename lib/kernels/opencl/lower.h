/* How OpenCL kernels join the library: one row per op kind. */
#ifndef GB_KERNELS_OPENCL_LOWER_H
#define GB_KERNELS_OPENCL_LOWER_H

#include "kernels/opencl/writer.h"
#include "kernels/plan/conv_gradient_problem.h"
#include "kernels/plan/conv_problem.h"

typedef struct gb_cl_lowering {
    /* As those of gb_capability. */
    bool (*supports)(const gb_op *op, const char **reason);
    bool takes_epilogue;
    bool (*fuses_producer)(const gb_op *anchor, uint32_t input, const gb_op *op);
    uint32_t (*writes_formats)(const gb_graph *graph, const gb_group *group, uint32_t value,
            gb_format_candidate *candidates);
    /* Adds steps for a group whose anchor is such an op. */
    gb_status (*lower)(gb_program *program, const gb_group *group);
} gb_cl_lowering;

extern const gb_cl_lowering gb_cl_lowering_movement, gb_cl_lowering_concat,
        gb_cl_lowering_reorder;                      /* lower_movement.c */
extern const gb_cl_lowering gb_cl_lowering_matmul;   /* lower_matmul.c */
extern const gb_cl_lowering gb_cl_lowering_conv;     /* lower_conv.c */
extern const gb_cl_lowering gb_cl_lowering_gradient; /* lower_conv.c: of weights */
/* lower_depthwise.c: convolutions of few channels a group. Do they have such a kernel? */
bool gb_cl_fits_depthwise(gb_program *program, const gb_conv_problem *conv);
/* Adds the step, whose uses but those of source and weights are known. */
gb_status gb_cl_add_depthwise(gb_cl_writer *w, const gb_conv_problem *conv);
/* The same for gradients of weights. */
bool gb_cl_fits_depthwise_gradient(gb_program *program, const gb_gradient_problem *gradient);
gb_status gb_cl_add_depthwise_gradient(gb_cl_writer *w, const gb_gradient_problem *gradient);
extern const gb_cl_lowering gb_cl_lowering_pool, gb_cl_lowering_pool_backward; /* lower_pool.c */
extern const gb_cl_lowering gb_cl_lowering_resample; /* lower_resample.c */
extern const gb_cl_lowering gb_cl_lowering_reduction, gb_cl_lowering_softmax,
        gb_cl_lowering_norm; /* lower_rows.c */
extern const gb_cl_lowering gb_cl_lowering_softmax_backward, gb_cl_lowering_prelu_backward,
        gb_cl_lowering_batch_norm, gb_cl_lowering_layer_norm_backward; /* lower_two_pass.c */

extern const gb_cl_lowering gb_cl_lowering_defined; /* lower_defined.c: of the application's own */

/* A region that one kernel runs. */
typedef struct gb_cl_region_lowering {
    const gb_region *region;
    /* As gb_capability.accepts_region, on a CPU or another device; NULL: always. */
    bool (*accepts)(const gb_graph *graph, const void *parts, bool on_cpu);
    gb_status (*lower)(gb_program *program, const gb_group *group);
} gb_cl_region_lowering;

extern const gb_cl_region_lowering gb_cl_lowering_gated_matmul; /* lower_matmul.c */
extern const gb_cl_region_lowering gb_cl_lowering_conv_pair;    /* lower_conv_pair.c */
extern const gb_cl_region_lowering gb_cl_lowering_attention,
        gb_cl_lowering_attention_gradients; /* lower_attention.c */
extern const gb_cl_region_lowering gb_cl_lowering_batch_norm_relu,
        gb_cl_lowering_relu_batch_norm_backward; /* lower_two_pass.c */

gb_status gb_cl_lower_pointwise(gb_program *program, const gb_group *group);

/* NULL: a pointwise program computes the op, or there is no kernel. */
const gb_cl_lowering *gb_cl_lowering_of(gb_op_kind kind);

/* Adds a step that copies a value into a new buffer, densely in row-major order. */
gb_status gb_cl_add_dense_copy(gb_program *program, uint32_t value, uint32_t *buffer);
/* Begins a step. */
gb_status gb_cl_begin(gb_program *program, const char *kernel, gb_cl_writer *w);

#endif
