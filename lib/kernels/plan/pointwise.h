/* Pointwise programs: a chain (DAG) of element-wise ops that runs on L1-resident tiles, alone or as
 * the epilogue of an anchor.
 *
 * The program works on registers, each a tile of rows x cols 32-bit lanes stored densely (row
 * length cols): f32, or s32 where the instruction says so. An anchor leaves its accumulators in
 * register 0 before the program runs. Operands are tensors seen through strides over the dims of an
 * iteration space (the anchor's output); stride 0 broadcasts.
 */
#ifndef GB_KERNELS_PLAN_POINTWISE_H
#define GB_KERNELS_PLAN_POINTWISE_H

#include "kernels/plan/axes.h"
#include "runtime/program_text.h"

enum {
    GB_TILE_ELEMENTS = 1024,     /* most elements of one tile: rows * cols <= GB_TILE_ELEMENTS */
    GB_TILES_TOGETHER = 16,      /* as many as a program without anchor had better run at once */
    GB_POINTWISE_REGISTERS = 24, /* registers of one program */
    GB_POINTWISE_OPERANDS = 168, /* most operands of one program */
    GB_STREAM_RUN = 256, /* bytes of the shortest run that is worth a store past the caches */
    GB_POINTWISE_INSTRUCTIONS = 428 /* most; with the limits above, enough for any group */
};

/* The opcodes, as pointwise_opcodes.def describes them. */
typedef enum gb_pointwise_opcode {
#define GB_POINTWISE_MOVEMENT(enumerator, name, sources, parameters)   GB_POINTWISE_##enumerator,
#define GB_POINTWISE_ARITHMETIC(enumerator, name, sources, parameters) GB_POINTWISE_##enumerator,
#include "kernels/plan/pointwise_opcodes.def"
    GB_POINTWISE_OPCODES
} gb_pointwise_opcode;

typedef struct gb_pointwise_instruction {
    uint8_t opcode;       /* gb_pointwise_opcode */
    uint8_t dst, a, b, c; /* registers */
    uint8_t operand;      /* LOAD, STORE, INDEX, DROPOUT */
    uint8_t type; /* ROUND: gb_data_type; LOAD, STORE: GB_S32 for s32 lanes, otherwise f32 */
    float alpha, beta;
} gb_pointwise_instruction;

/* An index operand has no memory: element i of it is the number i. With strides 1 along a dim and 0
 * elsewhere it gives the position along that dim; with the strides of a tensor, the offsets there.
 */
typedef struct gb_pointwise_operand {
    gb_data_type type; /* of an index operand GB_S64 */
    bool written, is_index;
    bool streamed;  /* written past the caches, where it lies in long runs */
    bool far;       /* read, from memory */
    bool in_panels; /* the innermost dim of the tensor lies in blocks: its stride holds from block
                       to block, inside of one elements follow each other */
    uint8_t bytes;  /* of an element; of 4-bit types 0 */
    uint32_t slot;  /* in gb_step_call.buffers */
    int64_t strides[GB_AXES]; /* elements, per dim of the space */
} gb_pointwise_operand;

/* Copies share operands and instructions, which are memory of the step that the program was built
 * for. */
typedef struct gb_pointwise_program {
    int ndims; /* the iteration space */
    int64_t dims[GB_AXES];
    uint32_t n_registers, n_operands, n_instructions;
    bool loads_first; /* no operand is read after a result is written: they may share memory,
                         element by element */
    bool over_source; /* results may lie over what the anchor reads, the buffer `source` */
    uint32_t source;
    gb_pointwise_operand *operands;
    gb_pointwise_instruction *instructions;
} gb_pointwise_program;

/* Where a tile of one operand lies: element (r, c) at data[(r * row_stride + c * col_stride)
 * elements of its type]; of 4-bit types, which are only read, `nibble` (0 or 1) elements further
 * on. `offset` is that of the first element from the start of the operand: all that a view of an
 * index operand has, whose data is NULL. */
typedef struct gb_pointwise_view {
    char *data;
    int64_t row_stride, col_stride;
    int64_t offset;
    int nibble;
    bool streamed; /* written past the caches, where it lies in long runs */
    bool far;      /* read, from memory */
} gb_pointwise_view;

/* Builds the program of the post-ops of a group over `space` (dims of the anchor's output 0, or of
 * the post-ops' result): loads of side operands, the post-ops, stores of every value in
 * group->outputs except other outputs of the anchor. `anchor_value` is the value that register 0
 * holds on entry, GB_NONE without anchor. When the group has an anchor and no post-ops, the program
 * is the store of register 0. Uses of buffers are added to `step`. GB_UNIMPLEMENTED when the limits
 * above do not suffice. */
gb_status gb_pointwise_build(gb_program *program, const gb_group *group, uint32_t anchor_value,
        const gb_logical_tensor *space, gb_step *step, gb_pointwise_program *pointwise);

/* Writes a gb_pointwise_program, an instruction a line. */
gb_print_fn gb_pointwise_print;

/* Values that lie in the caller's memory as f32, not in buffers. The slot of their operands is
 * GB_SCRATCH_OPERAND + index; the caller sets their views. */
enum { GB_SCRATCH_OPERANDS = 5 };
#define GB_SCRATCH_OPERAND (UINT32_MAX - GB_SCRATCH_OPERANDS)

typedef struct gb_scratch_operands {
    uint32_t n;
    uint32_t values[GB_SCRATCH_OPERANDS];
} gb_scratch_operands;

/* As gb_pointwise_build(); no buffers are made for scratch operands. */
gb_status gb_pointwise_build_with_scratch(gb_program *program, const gb_group *group,
        uint32_t anchor_value, const gb_scratch_operands *scratch_operands,
        const gb_logical_tensor *space, gb_step *step, gb_pointwise_program *pointwise);

/* Is the program only `store register 0` to an f32 operand? Then the anchor may write its result
 * itself. */
bool gb_pointwise_is_plain_store(const gb_pointwise_program *pointwise);

/* Is so much written that it had better go past the caches? `bytes`: by all threads in one step;
 * `read_soon`: by the next steps. */
bool gb_streams(double bytes, bool read_soon);
/* Does so much come from memory, and not from a cache? Several tensors at once are fetched ahead then; from the
 * third-level cache that takes longer. */
bool gb_is_far(double bytes);

/* Does an instruction take many operations per element? */
bool gb_pointwise_is_costly(uint8_t opcode);

/* As gb_pointwise_operand.bytes. */
uint8_t gb_pointwise_element_bytes(gb_data_type type);

/* Views of all operands at the element `position` (ndims indices) of the space; a tile extends
 * along row_dim and col_dim
 * (-1: no rows). */
void gb_pointwise_views(const gb_pointwise_program *pointwise, void *const *buffers,
        const int64_t *position, int row_dim, int col_dim, gb_pointwise_view *views);

/* The view of a tile that begins `rows` rows and `cols` columns further on, of elements of `bytes`
 * bytes (gb_pointwise_operand.bytes: 0 means two elements in a byte). */
static inline gb_pointwise_view gb_pointwise_view_at(
        const gb_pointwise_view *view, int64_t rows, int64_t cols, int64_t bytes)
{
    gb_pointwise_view moved = *view;
    int64_t elements = rows * view->row_stride + cols * view->col_stride;
    moved.offset += elements;
    if (view->data && bytes) {
        moved.data += elements * bytes;
    } else if (view->data) {
        elements += view->nibble;
        moved.nibble = (int)(elements & 1);
        moved.data += (elements - moved.nibble) / 2;
    }
    return moved;
}

/* Runs the program on one tile; without an anchor, and where it only stores register 0 along its columns, rows *
 * cols may be more than GB_TILE_ELEMENTS.
 * f32 operands are read in place, and results written in place, where their columns are contiguous.
 * `registers`: n_registers * GB_TILE_ELEMENTS floats; register r starts at r * GB_TILE_ELEMENTS. In
 * the kernel table of each ISA as `pointwise_run`. */
typedef void gb_pointwise_run_fn(const gb_pointwise_program *pointwise,
        const gb_pointwise_view *views, int64_t rows, int64_t cols, float *registers);

static inline size_t gb_pointwise_scratch(const gb_pointwise_program *pointwise)
{
    return (size_t)(pointwise->n_registers ? pointwise->n_registers : 1) * GB_TILE_ELEMENTS *
           sizeof(float);
}

#endif
