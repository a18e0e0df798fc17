/* The pointwise program behind an anchor, run tile by tile on the results that the anchor leaves in
 * register 0. */
#ifndef GB_KERNELS_ROWWISE_EPILOGUE_H
#define GB_KERNELS_ROWWISE_EPILOGUE_H

#include "kernels/cpu/scratch.h"
#include "kernels/isa/kernels.h"

/* What it takes of a thread's scratch. */
typedef struct gb_epilogue {
    gb_scratch registers, views;
} gb_epilogue;

static inline gb_epilogue gb_epilogue_add(gb_step *step, const gb_pointwise_program *pointwise)
{
    return (gb_epilogue){.registers = gb_scratch_add(step, gb_pointwise_scratch(pointwise)),
            .views = gb_scratch_add(step, pointwise->n_operands * sizeof(gb_pointwise_view))};
}

/* Of a work item whose results are only stored: more than a tile. */
enum { GB_STORED_ELEMENTS = 4096 };

/* Are results only stored, side by side along col_dim? */
static inline bool gb_epilogue_stores(const gb_pointwise_program *pointwise, int col_dim)
{
    const gb_pointwise_operand *dst = &pointwise->operands[pointwise->instructions[0].operand];
    return pointwise->n_instructions == 1 && col_dim >= 0 && dst->strides[col_dim] == 1;
}

/* The same, and of `type`: can elements of it be copied there as they are? */
static inline bool gb_epilogue_copies(
        const gb_pointwise_program *pointwise, int col_dim, gb_data_type type)
{
    const gb_pointwise_instruction *first = &pointwise->instructions[0];
    return gb_epilogue_stores(pointwise, col_dim) && first->opcode == GB_POINTWISE_STORE &&
           pointwise->operands[first->operand].type == type;
}

/* Where a work item at `position` stores what it copies. */
static inline const gb_pointwise_view *gb_epilogue_target(const gb_epilogue *epilogue,
        const gb_pointwise_program *pointwise, const gb_step_call *call, const int64_t *position,
        int row_dim, int col_dim)
{
    gb_pointwise_view *views = gb_scratch_get(call, epilogue->views);
    gb_pointwise_views(pointwise, call->buffers, position, row_dim, col_dim, views);
    return &views[pointwise->instructions[0].operand];
}

/* Room for the results of a work item: register 0, or more where they are only stored. */
static inline gb_scratch gb_epilogue_room(
        gb_step *step, const gb_epilogue *epilogue, int64_t elements)
{
    return elements > GB_TILE_ELEMENTS ? gb_scratch_add(step, gb_float_bytes(elements))
                                       : epilogue->registers;
}

/* Register 0: rows x cols results, one behind the other. */
static inline float *gb_epilogue_results(const gb_epilogue *epilogue, const gb_step_call *call)
{
    return gb_scratch_get(call, epilogue->registers);
}

/* `results`, or the tensor where nothing is left to do with them but to store them there, one behind the other. They
 * need no gb_epilogue_run() then. *streamed: they are to go past the caches; NULL: the caller does not do that. */
static inline float *gb_epilogue_place(const gb_epilogue *epilogue,
        const gb_pointwise_program *pointwise, const gb_step_call *call, const int64_t *position,
        int row_dim, int col_dim, int64_t rows, int64_t cols, float *results, bool *streamed)
{
    gb_pointwise_view *view = gb_scratch_get(call, epilogue->views);
    if (streamed)
        *streamed = false;
    if (!gb_pointwise_is_plain_store(pointwise))
        return results;
    gb_pointwise_views(pointwise, call->buffers, position, row_dim, col_dim, view);
    view += pointwise->instructions[0].operand;
    bool dense = (cols == 1 || view->col_stride == 1) && (rows == 1 || view->row_stride == cols);
    if (!dense || (view->streamed && !streamed))
        return results;
    if (streamed)
        *streamed = view->streamed;
    return (float *)(void *)view->data;
}

/* Goes on with rows x cols results, which stand for the elements of the space from `position` on,
 * along row_dim and col_dim (-1: no rows). Those of a program with one register may lie anywhere. */
static inline void gb_epilogue_run(const gb_epilogue *epilogue,
        const gb_pointwise_program *pointwise, const gb_step_call *call, const int64_t *position,
        int row_dim, int col_dim, int64_t rows, int64_t cols, float *results)
{
    gb_pointwise_view *views = gb_scratch_get(call, epilogue->views);
    gb_pointwise_views(pointwise, call->buffers, position, row_dim, col_dim, views);
    gb_kernels_get()->pointwise_run(pointwise, views, rows, cols, results);
}

#endif
