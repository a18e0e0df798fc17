/* How OpenCL kernels join the library: one row per op kind. */
#ifndef GB_KERNELS_OPENCL_LOWER_H
#define GB_KERNELS_OPENCL_LOWER_H

#include "kernels/opencl/writer.h"

typedef struct gb_cl_lowering {
    /* As those of gb_capability. */
    bool (*supports)(const gb_op *op, const char **reason);
    bool takes_epilogue;
    bool (*fuses_producer)(const gb_op *anchor, uint32_t input, const gb_op *op);
    /* Adds steps for a group whose anchor is such an op. */
    gb_status (*lower)(gb_program *program, const gb_group *group);
} gb_cl_lowering;

extern const gb_cl_lowering gb_cl_lowering_movement; /* lower_movement.c */
extern const gb_cl_lowering gb_cl_lowering_concat;   /* lower_movement.c */
extern const gb_cl_lowering gb_cl_lowering_matmul;   /* lower_matmul.c */
extern const gb_cl_lowering gb_cl_lowering_conv;     /* lower_conv.c */
extern const gb_cl_lowering gb_cl_lowering_gradient; /* lower_conv.c: of weights */
extern const gb_cl_lowering gb_cl_lowering_pool;     /* lower_pool.c */
extern const gb_cl_lowering gb_cl_lowering_reduction, gb_cl_lowering_softmax,
        gb_cl_lowering_softmax_backward, gb_cl_lowering_norm; /* lower_rows.c */

/* A region that one kernel runs. */
typedef struct gb_cl_region_lowering {
    const gb_region *region;
    /* As gb_capability.accepts_region; NULL: always. */
    bool (*accepts)(const gb_graph *graph, const void *parts);
    gb_status (*lower)(gb_program *program, const gb_group *group);
} gb_cl_region_lowering;

extern const gb_cl_region_lowering gb_cl_lowering_attention; /* lower_attention.c */

gb_status gb_cl_lower_pointwise(gb_program *program, const gb_group *group);

/* NULL: a pointwise program computes the op, or there is no kernel. */
const gb_cl_lowering *gb_cl_lowering_of(gb_op_kind kind);

/* Begins a step. */
gb_status gb_cl_begin(gb_program *program, const char *kernel, gb_cl_writer *w);

#endif
