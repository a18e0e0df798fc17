/* How the CPU runs reductions: work items of up to GB_TILE_ELEMENTS outputs, each over pieces of its
 * reduced set. */
#ifndef GB_KERNELS_ROWWISE_REDUCTION_H
#define GB_KERNELS_ROWWISE_REDUCTION_H

#include "kernels/plan/reduction_problem.h"
#include "kernels/rowwise/epilogue.h"

typedef struct gb_reduction {
    gb_reduction_problem problem;
    bool columns;  /* vectors lie across the last kept dim; otherwise along the last reduced one */
    bool direct;   /* the kernel reads the source itself */
    int64_t block; /* outputs of a work item, along the last kept dim */
    int64_t items;
    int64_t inner;  /* of the last reduced dim, elements of one piece */
    int64_t pieces; /* of one work item */
    int64_t splits; /* into which the pieces of a work item fall, each summed on its own; depends on
                         sizes only */
    gb_epilogue epilogue; /* register 0 has the sums */
    gb_scratch part;      /* sums of a few pieces */
    gb_scratch converted; /* elements that kernels cannot read as they lie; not if `direct` */
} gb_reduction;

/* Plans the step, which has the problem's uses. */
gb_status gb_reduction_plan(gb_step *step, const gb_reduction_problem *problem);
/* The same for a reduction that is known when the step runs. */
gb_status gb_late_reduction_plan(gb_step *step, const gb_late_reduction_problem *problem);

#endif
