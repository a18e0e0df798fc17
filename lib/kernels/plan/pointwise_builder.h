/* Inside of the building of pointwise programs: instructions, operands and the registers that
 * values live in. */
#ifndef GB_KERNELS_PLAN_POINTWISE_BUILDER_H
#define GB_KERNELS_PLAN_POINTWISE_BUILDER_H

#include "kernels/plan/pointwise_rules.h"

enum { GB_POINTWISE_NO_OPERAND = UINT32_MAX };

/* A value that a register holds, or the value of an operand (with its strides) that it was loaded
 * from. */
typedef struct gb_pointwise_binding {
    uint32_t value, operand;
    uint8_t reg;
    bool s32;
} gb_pointwise_binding;

typedef struct gb_pointwise_builder {
    gb_program *program;
    const gb_graph *graph;
    const gb_group *group;
    const gb_logical_tensor *space;
    /* Groups without anchor only: dim d of the space is split in two dims of the pointwise program
     * when sizes[d] > 1, groups outside and sizes[d] positions inside. */
    int64_t sizes[GB_AXES];
    gb_step *step;
    gb_pointwise_program *pointwise;
    uint32_t operand_capacity, instruction_capacity; /* of the pointwise program, while it grows */
    gb_scratch_operands scratch_operands;
    uint32_t n_results; /* the first operands are the results */
    uint32_t result_values[GB_POINTWISE_OPERANDS];
    bool stores_last;
    uint32_t next_op; /* the first post-op not emitted yet */
    uint32_t n_bindings, binding_capacity;
    gb_pointwise_binding *bindings;       /* owned */
    bool in_use[GB_POINTWISE_REGISTERS];  /* by the post-op being emitted */
    bool partial[GB_POINTWISE_REGISTERS]; /* may be broadcast: must not be overwritten by a larger
                                      * result
                                      */
} gb_pointwise_builder;

gb_status gb_pointwise_emit(gb_pointwise_builder *b, gb_pointwise_instruction instruction);
gb_status gb_pointwise_bind(
        gb_pointwise_builder *b, uint32_t value, uint32_t operand, uint8_t reg, bool s32);
bool gb_pointwise_is_free(const gb_pointwise_builder *b, unsigned reg);
/* A free register, in use until the post-op is done. */
gb_status gb_pointwise_take(gb_pointwise_builder *b, uint8_t *reg);
/* Is the value an input of a post-op still to come? */
bool gb_pointwise_read_later(const gb_pointwise_builder *b, uint32_t value);
/* Frees the registers of values that nobody reads any more. */
void gb_pointwise_drop_dead(gb_pointwise_builder *b);

/* Strides over the dims of the pointwise program from strides over the space: `along` inside of
 * groups and on whole dims, `across` from group to group (NULL: as `along` goes on). */
void gb_pointwise_map_strides(const gb_pointwise_builder *b, const int64_t *along,
        const int64_t *across, int64_t *strides);
/* Strides over the space of a tensor whose dims are aligned with those from dim `lead` of the space
 * on. */
gb_status gb_pointwise_align(
        const gb_pointwise_builder *b, const gb_logical_tensor *tensor, int lead, int64_t *strides);
/* Index of the operand that is `value` seen through strides, and of an index operand. */
gb_status gb_pointwise_add_value(gb_pointwise_builder *b, uint32_t value, const int64_t *strides,
        bool written, uint32_t *index);
gb_status gb_pointwise_add_index(gb_pointwise_builder *b, const int64_t *strides, uint32_t *index);
/* Does the operand repeat along some dim? */
bool gb_pointwise_broadcasts(const gb_pointwise_builder *b, uint32_t operand);
/* A register that holds `value`, in s32 lanes or f32; loaded through `strides` if need be. */
gb_status gb_pointwise_fetch(
        gb_pointwise_builder *b, uint32_t value, const int64_t *strides, bool s32, uint8_t *reg);
/* A register loaded from a buffer that is no value of the graph. */
gb_status gb_pointwise_fetch_buffer(gb_pointwise_builder *b, uint32_t buffer, gb_data_type type,
        const int64_t *strides, uint8_t *reg);

/* pointwise_quantize.c: Quantize, Dequantize, DynamicQuantize, DynamicDequantize. */
bool gb_pointwise_quantizes(gb_op_kind kind);
gb_status gb_pointwise_emit_quantization(gb_pointwise_builder *b, const gb_op *op, uint8_t *reg);
/* How the first post-op splits the space. */
gb_status gb_pointwise_split(const gb_op *op, int64_t *sizes);

/* pointwise_positional.c: GenIndex, and Dropout with its second result. */
gb_status gb_pointwise_emit_positional(
        gb_pointwise_builder *b, const gb_op *op, gb_pointwise_binding *results);

#endif
