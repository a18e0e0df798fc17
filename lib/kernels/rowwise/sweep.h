/* Sweeps: sums of some inputs over the reduced axes, and a result of the inputs and the sums. The
 * plan behind the gradients of softmax, norms and PReLU and behind batch normalisation.
 *
 * The kept axes fall into units of up to `block` indices of the last one. A unit small enough runs
 * alone: sum, then result, from the cache. Where there are few units their reduced axes fall into
 * segments, which depend on sizes only: one phase sums segments, one joins them in order, one
 * computes results.
 */
#ifndef GB_KERNELS_ROWWISE_SWEEP_H
#define GB_KERNELS_ROWWISE_SWEEP_H

#include "kernels/isa/kernels.h"
#include "kernels/plan/space.h"

enum { GB_SWEEP_KEPT, GB_SWEEP_REDUCED }; /* roles of dims */

/* A tensor seen over the dims of the sweep. */
typedef struct gb_sweep_view {
    gb_data_type type; /* GB_UNDEF: none */
    uint32_t slot;
    int64_t strides[GB_AXES];
} gb_sweep_view;

typedef struct gb_sweep gb_sweep;

/* One unit while a thread works on it. */
typedef struct gb_sweep_unit {
    const gb_sweep *sweep;
    const gb_step_call *call;
    int64_t position[GB_AXES], count; /* of the kept indices */
    float *kept[GB_SWEEP_VALUES];     /* count values each */
    float *sum[GB_SWEEP_SUMS], *part[GB_SWEEP_SUMS];
    float *cross[GB_SWEEP_SUMS]; /* sums of the units of a group, per reduced element */
    float *buffers[GB_SWEEP_INPUTS + 1];
} gb_sweep_unit;

struct gb_sweep {
    gb_sweep_kind kind;
    gb_sweep_view in[GB_SWEEP_INPUTS], out;
    /* Sets the kept values that the sum needs; NULL: none. */
    void (*prepare)(const gb_sweep_unit *unit);
    /* Turns sums into the kept values of the result. `store`: also writes outputs of its own, once
     * for each unit. NULL: nothing to do. */
    void (*finish)(const gb_sweep_unit *unit, bool store);
    bool cross; /* sums across units as well; then there are no segments */
    int ndims;
    int64_t dims[GB_AXES];
    int n_kept, n_reduced;
    uint8_t kept[GB_AXES], reduced[GB_AXES]; /* outermost first */
    bool columns;                            /* the innermost dim is kept */
    int64_t n;                               /* elements that a sum runs over */
    int64_t block;                           /* kept indices of a unit */
    int64_t units, segments;
    int64_t step, pieces; /* of the innermost reduced dim in a piece; pieces of a unit */
    int64_t groups;       /* of units that share sums across */
};

/* Plans over the dims of `space`, whose views are in[0] first and then any. kind, views and
 * functions are set; sets scratch and phases of the step. */
void gb_sweep_init(gb_sweep *sweep, gb_space *space, gb_step *step);
/* All phases but the joining of groups, which is phase 1 and the caller's. */
void gb_sweep_run(const gb_sweep *sweep, const gb_step_call *call);
/* Sums across of a group, per reduced element in the order of the plan's reduced dims. */
float *gb_sweep_cross(const gb_sweep *sweep, const gb_step_call *call, int64_t group, int which);

/* Loads or stores a unit's values of a tensor that runs over the kept dims. */
void gb_sweep_load(const gb_sweep_unit *unit, const gb_sweep_view *view, float *values);
void gb_sweep_store(const gb_sweep_unit *unit, const gb_sweep_view *view, const float *values);

/* Uses a tensor of the step's op, its strides over the tensor's own dims. */
gb_status gb_sweep_use(
        gb_program *program, gb_step *step, uint32_t value, bool written, gb_sweep_view *view);
/* The same for an input or the result as large as the space: results are computed where sums are
 * complete, each from the inputs in its place. */
gb_status gb_sweep_use_whole(
        gb_program *program, gb_step *step, uint32_t value, bool written, gb_sweep_view *view);

#endif
