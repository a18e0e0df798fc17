/* Movement: boxes of elements that go from buffer to buffer. What Concat, StaticReshape,
 * StaticTranspose and Reorder are. */
#ifndef GB_KERNELS_PLAN_COPY_PROBLEM_H
#define GB_KERNELS_PLAN_COPY_PROBLEM_H

#include "kernels/plan/axes.h"
#include "runtime/program_text.h"

/* A box of elements seen from both sides, in normal form (kernels/plan/space.h). */
typedef struct gb_copy_box {
    int ndims;
    size_t element; /* bytes: 1, 2, 4 or 8 */
    int64_t dims[GB_AXES];
    int64_t src_strides[GB_AXES], dst_strides[GB_AXES]; /* elements */
} gb_copy_box;

enum { GB_COPY_SCRATCH = UINT32_MAX }; /* as a slot: scratch that all threads share */

typedef struct gb_copy_move {
    gb_copy_box box;
    int phase; /* moves of a later phase read what those of an earlier one write */
    uint32_t src_slot, dst_slot;
    int64_t src_offset, dst_offset; /* bytes */
} gb_copy_move;

typedef struct gb_copy_problem {
    uint32_t n_moves;
    gb_copy_move *moves; /* memory of the step */
    int n_phases;
    bool side_by_side;    /* one phase, whose destinations are slices of the same buffer */
    size_t scratch_bytes; /* of GB_COPY_SCRATCH */
    size_t clear_bytes;   /* zeroed in phase 0, in the buffer at slot `cleared` */
    uint32_t cleared;
} gb_copy_problem;

/* A box of `dims`, its strides in elements of so many bytes. */
void gb_copy_box_init(gb_copy_box *box, int ndims, const int64_t *dims, const int64_t *src_strides,
        const int64_t *dst_strides, size_t element);

/* Describe the group of such an anchor. Add what is read and written to the step. */
gb_status gb_concat_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_copy_problem *problem);
gb_status gb_movement_describe(/* StaticReshape, StaticTranspose */
        gb_program *program, const gb_group *group, gb_step *step, gb_copy_problem *problem);
gb_status gb_reorder_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_copy_problem *problem);

/* Formats that a Reorder may write: those that the readers of its result prefer. */
uint32_t gb_reorder_writes_formats(const gb_graph *graph, const gb_group *group, uint32_t value,
        gb_format_candidate *candidates);

/* Room for `count` further moves, zeroed; NULL when out of memory. */
gb_copy_move *gb_copy_add_moves(gb_step *step, gb_copy_problem *problem, size_t count);

/* Does every element lie where it should, if both sides share memory? */
bool gb_copy_moves_nothing(const gb_copy_problem *problem);
/* Bytes read and written. */
double gb_copy_box_bytes(const gb_copy_box *box);

/* Writes a gb_copy_problem, up to a few of its moves. */
gb_print_fn gb_copy_problem_print;

#endif
