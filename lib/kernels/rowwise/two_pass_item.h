/* Inside of two-pass kernels: what planning and running share, and the work on one work item. */
#ifndef GB_KERNELS_ROWWISE_TWO_PASS_ITEM_H
#define GB_KERNELS_ROWWISE_TWO_PASS_ITEM_H

#include "kernels/rowwise/two_pass.h"

enum {
    GB_TWO_PASS_MOST_KEPT = 256, /* kept indices of a work item */
    GB_TWO_PASS_PIECE = 4096     /* elements that are converted and computed at once */
};

static inline bool gb_two_pass_reduces(const gb_two_pass *two_pass)
{
    return two_pass->problem->kind != GB_TWO_PASS_SCALE;
}

static inline bool gb_two_pass_applies(const gb_two_pass *two_pass)
{
    return two_pass->problem->kind != GB_TWO_PASS_PRELU_BACKWARD;
}

/* Is the second sum one of squared differences from the mean? */
static inline bool gb_two_pass_has_moments(const gb_two_pass *two_pass)
{
    return two_pass->problem->kind == GB_TWO_PASS_BATCH_NORM ||
           two_pass->problem->kind == GB_TWO_PASS_BATCH_NORM_RELU;
}

/* Sets up the work item `index` in the thread's scratch. */
void gb_two_pass_open(const gb_two_pass *two_pass, const gb_step_call *call, int64_t index,
        gb_two_pass_item *item);
/* Sets sums of `count` kept indices to 0. */
void gb_two_pass_clear(float *const *sums, int64_t count);
/* Adds the sums a and b of n elements to item->sum, which is that of `before` elements. */
void gb_two_pass_join(
        const gb_two_pass_item *item, int64_t before, int64_t n, const float *a, const float *b);
/* Pieces begin..end-1 into item->sum. */
void gb_two_pass_reduce_pieces(const gb_two_pass_item *item, int64_t begin, int64_t end);
/* Results of pieces begin..end-1. */
void gb_two_pass_apply_pieces(const gb_two_pass_item *item, int64_t begin, int64_t end);
/* Reduced elements in front of a piece. */
int64_t gb_two_pass_elements_before(const gb_two_pass *two_pass, int64_t index);

#endif
