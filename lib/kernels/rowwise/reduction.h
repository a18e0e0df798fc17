/* Reductions of a strided tensor over some of its axes. */
#ifndef GB_KERNELS_ROWWISE_REDUCTION_H
#define GB_KERNELS_ROWWISE_REDUCTION_H

#include "kernels/isa/kernels.h"
#include "kernels/plan/space.h"

typedef struct gb_reduction {
    gb_reduce_kind kind;
    bool mean, root;               /* of the sum at the end */
    float divisor;                 /* of the mean */
    float empty;                   /* result over no elements */
    bool at_least_empty;           /* which no result falls below */
    gb_pointwise_program epilogue; /* over the dims of the space, stride 0 along reduced ones */
    gb_data_type src_type;
    uint32_t src_slot;
    int64_t src_strides[GB_AXES];
    int n_kept, n_reduced;
    uint8_t kept[GB_AXES], reduced[GB_AXES]; /* dims of the space, outermost first */
    bool columns;  /* vectors lie across the last kept dim; otherwise along the last reduced one */
    bool direct;   /* the kernel reads the source itself */
    int64_t count; /* elements of one reduced set */
    int64_t block; /* outputs of a work item, along the last kept dim */
    int64_t items;
    int64_t inner;  /* of the last reduced dim, elements of one piece */
    int64_t pieces; /* of one work item */
    int64_t splits; /* into which the pieces of a work item fall, each summed on its own; depends on
                         sizes only */
} gb_reduction;

/* A pointwise program built over the dims of the output runs over those of the source, whose
 * reduced dims (role 1) are 1 in the output or missing there. */
void gb_reduction_widen(const gb_space *space, bool keep_dims, gb_pointwise_program *pointwise);
/* Plans over the dims of `space`, whose views are the source (src_strides) and the operands of the
 * pointwise program; roles 1 are reduced. */
void gb_reduction_init(gb_reduction *plan, gb_space *space);
size_t gb_reduction_thread_scratch(const gb_reduction *plan);
/* Several segments need two phases and shared scratch. */
size_t gb_reduction_shared_scratch(const gb_reduction *plan);
/* Enough shared scratch for any plan. */
size_t gb_reduction_shared_scratch_limit(void);
void gb_reduction_run(const gb_reduction *plan, const gb_step_call *call);

#endif
