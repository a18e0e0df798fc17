/* Inside of sweeps: what planning and running share, and the work on one unit. */
#ifndef GB_KERNELS_ROWWISE_SWEEP_UNIT_H
#define GB_KERNELS_ROWWISE_SWEEP_UNIT_H

#include "kernels/rowwise/sweep.h"

enum {
    GB_SWEEP_MOST_KEPT = 256, /* kept indices of a unit */
    GB_SWEEP_PIECE = 4096     /* elements that are converted and computed at once */
};

static inline bool gb_sweep_folds(const gb_sweep *sweep)
{
    return sweep->kind != GB_SWEEP_SCALE;
}

static inline bool gb_sweep_applies(const gb_sweep *sweep)
{
    return sweep->kind != GB_SWEEP_PRELU_BACKWARD;
}

/* Is the second sum one of squared differences from the mean? */
static inline bool gb_sweep_has_moments(const gb_sweep *sweep)
{
    return sweep->kind == GB_SWEEP_BATCH_NORM || sweep->kind == GB_SWEEP_BATCH_NORM_RELU;
}

static inline int gb_sweep_last_of(int n, const uint8_t *list)
{
    return n ? list[n - 1] : -1;
}

static inline int gb_sweep_last_kept(const gb_sweep *sweep)
{
    return gb_sweep_last_of(sweep->n_kept, sweep->kept);
}

static inline int gb_sweep_last_reduced(const gb_sweep *sweep)
{
    return gb_sweep_last_of(sweep->n_reduced, sweep->reduced);
}

static inline int64_t gb_sweep_size_of(const gb_sweep *sweep, int dim)
{
    return dim < 0 ? 1 : sweep->dims[dim];
}

/* Sets up the unit `index` in the thread's scratch. */
void gb_sweep_open(
        const gb_sweep *sweep, const gb_step_call *call, int64_t index, gb_sweep_unit *unit);
/* Sets sums of `count` kept indices to 0. */
void gb_sweep_clear(float *const *sums, int64_t count);
/* Pieces begin..end-1 into unit->sum. */
void gb_sweep_fold_pieces(const gb_sweep_unit *unit, int64_t begin, int64_t end);
/* Results of pieces begin..end-1. */
void gb_sweep_apply_pieces(const gb_sweep_unit *unit, int64_t begin, int64_t end);
/* Reduced elements in front of a piece. */
int64_t gb_sweep_elements_before(const gb_sweep *sweep, int64_t index);

#endif
