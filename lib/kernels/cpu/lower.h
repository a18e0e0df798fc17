/* How CPU kernels join the library: lowerings.def has a row per op kind, naming what lowers it. */
#ifndef GB_KERNELS_CPU_LOWER_H
#define GB_KERNELS_CPU_LOWER_H

#include "kernels/cpu/step_call.h"
#include "kernels/plan/pointwise_rules.h"
#include "runtime/backend.h"

typedef struct gb_lowering {
    const char *name;
    /* Can the kernel run this op? Types and attributes are known, dims perhaps not. `reason`
     * (static) says why not. */
    bool (*supports)(const gb_op *op, const char **reason);
    /* Goes the kernel on with a pointwise program on its output 0? */
    bool takes_epilogue;
    /* Takes the kernel an op in front of it over (gb_capability)? NULL: none. */
    bool (*fuses_producer)(const gb_op *anchor, uint32_t input, const gb_op *op);
    /* Formats in which the kernel takes an input, or writes an output of its group (gb_capability).
     * NULL: dense and other strided layouts only. */
    uint32_t (*reads_formats)(const gb_op *anchor, uint32_t input, gb_format_candidate *candidates);
    uint32_t (*writes_formats)(const gb_graph *graph, const gb_group *group, uint32_t value,
            gb_format_candidate *candidates);
    /* Does it write its result in the format of its input (gb_capability)? */
    bool keeps_formats;
    /* Adds steps for a group whose anchor is such an op. */
    gb_status (*lower)(gb_program *program, const gb_group *group);
} gb_lowering;

/* Element-wise ops (post-ops): group without anchor, run as a pointwise program over the space. */
gb_status gb_lower_pointwise(gb_program *program, const gb_group *group);

/* A kernel for a region (lib/fusion/regions). */
typedef struct gb_region_lowering {
    const gb_region *region;
    /* Can the kernel run what was matched? NULL: all of it. */
    bool (*accepts)(const gb_graph *graph, const void *parts);
    gb_status (*lower)(gb_program *program, const gb_group *group);
    /* As that of gb_lowering. */
    uint32_t (*writes_formats)(const gb_graph *graph, const gb_group *group, uint32_t value,
            gb_format_candidate *candidates);
} gb_region_lowering;

/* All of them, each in the file that lowers it. */
#define GB_LOWERING(kind, lowering)  extern const gb_lowering gb_lowering_##lowering;
#define GB_REGION_LOWERING(lowering) extern const gb_region_lowering gb_lowering_##lowering;
#include "kernels/cpu/lowerings.def"

/* The rows of region kernels, in the order in which their regions are tried; NULL behind the last
 * (lowering_table.c). */
const gb_region_lowering *gb_region_lowering_at(uint32_t index);
/* The row of a region that the table has. */
const gb_region_lowering *gb_region_lowering_of(const gb_region *region);

/* Row of the op kind, NULL when none (lowering_table.c). */
const gb_lowering *gb_lowering_get(gb_op_kind kind);

/* Common check for supports(), beside those of op_table.h: all tensors are of one type of whole
 * bytes. */
bool gb_has_bytes(const gb_op *op, const char **reason);

#endif
