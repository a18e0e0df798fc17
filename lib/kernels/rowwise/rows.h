/* What softmax and the norms share: splitting the output space into blocks of rows or columns,
 * loading a block as f32, and running the pointwise program on the result. */
#ifndef GB_KERNELS_ROWWISE_ROWS_H
#define GB_KERNELS_ROWWISE_ROWS_H

#include "kernels/isa/kernels.h"
#include "kernels/plan/space.h"

enum { GB_ROW_KEPT, GB_ROW_REDUCED }; /* roles of dims */

typedef struct gb_row_plan {
    gb_pointwise_program epilogue; /* over the dims of the space below */
    gb_data_type src_type;
    uint32_t src_slot;
    int64_t src_strides[GB_AXES];
    int64_t granule; /* blocks of columns are multiples of it; 0 counts as 1 */
    int n_kept, n_reduced;
    uint8_t kept[GB_AXES], reduced[GB_AXES]; /* dims of the space, outermost first */
    bool columns;    /* the innermost dim is kept: vectors lie across it; otherwise along a row */
    int64_t n;       /* elements of one row or column */
    int64_t block;   /* rows or columns of a block, along the last kept dim */
    int64_t items;   /* blocks */
    bool direct_src; /* kernels read the source itself */
    bool direct_dst; /* kernels write the destination itself */
    size_t buffer_offset; /* of the dense block in the scratch, behind the registers; 0: register 0
                             holds it */
    size_t scratch;       /* bytes used; more of the thread's scratch is the caller's */
} gb_row_plan;

typedef struct gb_row_block {
    const float *x; /* as in row_types.h */
    float *y;
    int64_t x_stride, y_stride, count;
    const int64_t *position; /* of the first row or column, in the space */
    char *scratch;           /* behind the plan's own */
} gb_row_block;

typedef void gb_row_compute_fn(
        const gb_row_plan *plan, const gb_step_call *call, const gb_row_block *block);

/* Plans over the dims of `space`, whose views are: the source (plan->src_strides), the operands of
 * plan->tile, and any more. */
void gb_row_plan_init(gb_row_plan *plan, gb_space *space);
/* Calls compute for the blocks of this thread. */
void gb_row_run(const gb_row_plan *plan, const gb_step_call *call, gb_row_compute_fn *compute);
/* Elements of the source, for step.work. */
double gb_row_elements(const gb_row_plan *plan);

#endif
