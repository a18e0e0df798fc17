/* How the CPU runs two-pass problems.
 *
 * The kept axes fall into work items of up to `block` indices of the last one. A work item small
 * enough runs alone: sum, then result, from the cache. Where there are few work items their reduced
 * axes fall into segments, which depend on sizes only: one phase sums segments, one joins them in
 * order, one computes results.
 */
#ifndef GB_KERNELS_ROWWISE_TWO_PASS_H
#define GB_KERNELS_ROWWISE_TWO_PASS_H

#include "kernels/cpu/scratch.h"
#include "kernels/isa/kernels.h"
#include "kernels/plan/two_pass_problem.h"

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
    const gb_two_pass_problem *problem;
    /* Sets the per-row parameters that the sum needs; NULL: none. */
    void (*prepare)(const gb_two_pass_item *item);
    /* Turns sums into the per-row parameters of the result. `store`: also writes outputs of its
     * own, once for each work item. NULL: nothing to do. */
    void (*finish)(const gb_two_pass_item *item, bool store);
    bool columns;          /* the innermost dim is kept */
    bool far;              /* inputs come from memory */
    int64_t block;         /* kept indices of a work item */
    int64_t items, splits; /* no segments where there are sums across */
    int64_t step, pieces;  /* of the innermost reduced dim in a piece; pieces of a work item */
    bool one_tile; /* a work item's inputs fit the buffers, and are still there in the second pass */
    int64_t groups;                          /* of work items that share sums across */
    gb_scratch params, sums, parts, buffers; /* of a work item */
};

/* Plans the problem, which stays where it is as long as the step; sets scratch and phases of the
 * step. prepare and finish are the caller's. */
gb_two_pass gb_two_pass_make(gb_step *step, const gb_two_pass_problem *problem);
/* All phases but the joining of groups, which is phase 1 and the caller's. */
void gb_two_pass_run(const gb_two_pass *two_pass, const gb_step_call *call);
/* Sums across of a group, per reduced element in the order of the plan's reduced dims. */
float *gb_two_pass_cross(
        const gb_two_pass *two_pass, const gb_step_call *call, int64_t group, int which);

/* Loads or stores a work item's values of a tensor that runs over the kept dims. */
void gb_two_pass_load(const gb_two_pass_item *item, const gb_operand *operand, float *values);
void gb_two_pass_store(
        const gb_two_pass_item *item, const gb_operand *operand, const float *values);

#endif
