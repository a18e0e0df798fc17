/* Two-pass kernels: sums of some inputs over the reduced axes, and a result of the inputs and the
 * sums. The plan behind the gradients of softmax, norms and PReLU and behind batch normalisation.
 *
 * The kept axes fall into work items of up to `block` indices of the last one. A work item small
 * enough runs alone: sum, then result, from the cache. Where there are few work items their reduced
 * axes fall into segments, which depend on sizes only: one phase sums segments, one joins them in
 * order, one computes results.
 */
#ifndef GB_KERNELS_ROWWISE_TWO_PASS_H
#define GB_KERNELS_ROWWISE_TWO_PASS_H

#include "kernels/isa/kernels.h"
#include "kernels/plan/space.h"

enum { GB_TWO_PASS_KEPT, GB_TWO_PASS_REDUCED }; /* roles of dims */

/* A tensor seen over the dims of the two-pass kernel. */
typedef struct gb_two_pass_view {
    gb_data_type type; /* GB_UNDEF: none */
    uint32_t slot;
    int64_t strides[GB_AXES];
} gb_two_pass_view;

typedef struct gb_two_pass gb_two_pass;

/* One work item while a thread works on it. */
typedef struct gb_two_pass_item {
    const gb_two_pass *two_pass;
    const gb_step_call *call;
    int64_t position[GB_AXES], count;  /* of the kept indices */
    float *params[GB_TWO_PASS_VALUES]; /* count values each */
    float *sum[GB_TWO_PASS_SUMS], *part[GB_TWO_PASS_SUMS];
    float *cross[GB_TWO_PASS_SUMS]; /* sums of the work items of a group, per reduced element */
    float *buffers[GB_TWO_PASS_INPUTS + 1];
} gb_two_pass_item;

struct gb_two_pass {
    gb_two_pass_kind kind;
    gb_two_pass_view in[GB_TWO_PASS_INPUTS], out;
    /* Sets the per-row parameters that the sum needs; NULL: none. */
    void (*prepare)(const gb_two_pass_item *item);
    /* Turns sums into the per-row parameters of the result. `store`: also writes outputs of its
     * own, once for each work item. NULL: nothing to do. */
    void (*finish)(const gb_two_pass_item *item, bool store);
    bool cross; /* sums across work items as well; then there are no segments */
    int ndims;
    int64_t dims[GB_AXES];
    int n_kept, n_reduced;
    uint8_t kept[GB_AXES], reduced[GB_AXES]; /* outermost first */
    bool columns;                            /* the innermost dim is kept */
    int64_t n;                               /* elements that a sum runs over */
    int64_t block;                           /* kept indices of a work item */
    int64_t items, splits;
    int64_t step, pieces; /* of the innermost reduced dim in a piece; pieces of a work item */
    int64_t groups;       /* of work items that share sums across */
};

/* Plans over the dims of `space`, whose views are in[0] first and then any. kind, views and
 * functions are set; sets scratch and phases of the step. */
void gb_two_pass_init(gb_two_pass *two_pass, gb_space *space, gb_step *step);
/* All phases but the joining of groups, which is phase 1 and the caller's. */
void gb_two_pass_run(const gb_two_pass *two_pass, const gb_step_call *call);
/* Sums across of a group, per reduced element in the order of the plan's reduced dims. */
float *gb_two_pass_cross(
        const gb_two_pass *two_pass, const gb_step_call *call, int64_t group, int which);

/* Loads or stores a work item's values of a tensor that runs over the kept dims. */
void gb_two_pass_load(const gb_two_pass_item *item, const gb_two_pass_view *view, float *values);
void gb_two_pass_store(
        const gb_two_pass_item *item, const gb_two_pass_view *view, const float *values);

/* Uses a tensor of the step's op, its strides over the tensor's own dims. */
gb_status gb_two_pass_use(
        gb_program *program, gb_step *step, uint32_t value, bool written, gb_two_pass_view *view);
/* The same for an input or the result as large as the space: results are computed where sums are
 * complete, each from the inputs in its place. */
gb_status gb_two_pass_use_whole(
        gb_program *program, gb_step *step, uint32_t value, bool written, gb_two_pass_view *view);

#endif
