/* Post-ops that a register tile takes itself, before its sums leave the registers. */
#ifndef GB_KERNELS_ISA_TILE_POST_OPS_H
#define GB_KERNELS_ISA_TILE_POST_OPS_H

#include "base/memory.h"
#include "kernels/plan/pointwise.h"

#include <math.h>

enum {
    GB_TILE_STEPS = 12,
    GB_TILE_INSTRUCTIONS = 26 /* of a pointwise program that may become so many steps */
};

/* Does an operation of one operand on n values in memory. */
typedef void gb_tile_loop_fn(int opcode, float alpha, float beta, float *values, int64_t n);

/* One operation on the sum of row m and column n: ADD, SUB, MUL, DIV, MAX, MIN with
 * other[m * other_row + n * other_col], RELU, LEAKY_RELU by alpha, or CLAMP to alpha and beta; any other
 * has one operand, and is done by `loop`.
 * other_row is 0 for values that all rows share, other_col for those that all columns do; it is 1
 * else. Values that differ from row to row and column to column may be of any type of results, and where they
 * are `moved`, (value - zero) * scale is what counts, each rounded. */
typedef struct gb_tile_step {
    int opcode; /* gb_pointwise_opcode */
    const char *other;
    gb_data_type type; /* of other */
    int bytes;
    int64_t other_row, other_col; /* in elements */
    bool moved;
    float zero, scale;
    float alpha, beta;
    gb_tile_loop_fn *loop;
} gb_tile_step;

/* Steps of integer sums that are quantized, by number, -1: there is none. A row that all rows share is added, then
 * quantized values of each row and column, limits are kept, a factor that is the same for all (or DIV_KNOWN) and a zero
 * point make codes. */
typedef struct gb_tile_codes {
    bool fits; /* these steps are all, and results are s8 or u8 */
    int8_t bias, added, factor, zero;
    float low, high;
} gb_tile_codes;

/* The post-ops of a block of rows and columns, and where its results go: f32, bf16, f16, s8 or u8. */
typedef struct gb_tile_post_ops {
    int n_steps;
    bool plain; /* f32, and the steps add a row that all rows share, then perhaps a value of each row
                   and column, and end with RELU or as they are: tiles look at no step for that */
    gb_tile_codes codes;
    gb_tile_step steps[GB_TILE_STEPS];
    gb_data_type type;
    int bytes; /* of an element of this type */
    char *dst;
    int64_t dst_row; /* in elements */
    bool apart;      /* rows of a panel do not follow each other in memory: their lines are asked
                        for, of a tile next_row and next_col ahead where products take little time */
    int64_t next_row, next_col;
} gb_tile_post_ops;

static inline const char *gb_tile_operand(const gb_tile_step *step, int64_t row, int64_t col)
{
    return step->other + (row * step->other_row + col * step->other_col) * step->bytes;
}

/* Are these the steps of plain post-ops? */
static inline bool gb_tile_is_plain(const gb_tile_post_ops *post_ops)
{
    const gb_tile_step *step = post_ops->steps, *end = step + post_ops->n_steps;
    if (post_ops->type != GB_F32 || step == end || step->opcode != GB_POINTWISE_ADD ||
            step->other_row != 0 || step->other_col != 1 || step->type != GB_F32 || step->moved)
        return false;
    step++;
    if (step < end && step->opcode == GB_POINTWISE_ADD && step->other_row != 0 &&
            step->other_col == 1 && step->type == GB_F32 && !step->moved)
        step++;
    return step == end || (step + 1 == end && step->opcode == GB_POINTWISE_RELU);
}

/* Is this `opcode` with values of f32 as they are: of each column, or with `shared` one for all? */
static inline bool gb_tile_step_is(const gb_tile_step *step, int opcode, bool shared)
{
    return step->opcode == opcode && step->type == GB_F32 && !step->moved && step->other_row == 0 &&
           step->other_col == !shared;
}

static inline gb_tile_codes gb_tile_find_codes(const gb_tile_post_ops *post_ops)
{
    gb_tile_codes codes = {
            .bias = -1, .added = -1, .factor = -1, .zero = -1, .low = -INFINITY, .high = INFINITY};
    const gb_tile_step *step = post_ops->steps;
    const int8_t n = (int8_t)post_ops->n_steps;
    int8_t i = 0;
    if (post_ops->type != GB_S8 && post_ops->type != GB_U8)
        return codes;
    if (i < n && gb_tile_step_is(&step[i], GB_POINTWISE_ADD, false))
        codes.bias = i++;
    if (i < n && step[i].opcode == GB_POINTWISE_ADD && step[i].other_col == 1 &&
            (step[i].type == GB_S8 || step[i].type == GB_U8))
        codes.added = i++;
    if (i < n && step[i].opcode == GB_POINTWISE_RELU) {
        codes.low = 0;
        i++;
    } else if (i < n && step[i].opcode == GB_POINTWISE_CLAMP) {
        codes.low = step[i].alpha;
        codes.high = step[i].beta;
        i++;
    }
    if (i < n && (gb_tile_step_is(&step[i], GB_POINTWISE_MUL, true) ||
                         step[i].opcode == GB_POINTWISE_DIV_KNOWN))
        codes.factor = i++;
    if (i < n && gb_tile_step_is(&step[i], GB_POINTWISE_ADD, true))
        codes.zero = i++;
    codes.fits = i == n && codes.factor >= 0;
    return codes;
}

/* Where the result of a row and column goes. */
static inline char *gb_tile_result(const gb_tile_post_ops *post_ops, int64_t row, int64_t col)
{
    return post_ops->dst + (row * post_ops->dst_row + col) * post_ops->bytes;
}

/* Makes steps of a program that begins with an anchor's sums, for a block of rows x cols. What they
 * need of each row or column, a factor for instance that is computed of several operands, is written
 * to the `floats` floats of `memory`. False: the program is not made of such steps, or there is too
 * little memory. */
typedef bool gb_tile_post_ops_fn(const gb_pointwise_program *pointwise,
        const gb_pointwise_view *views, int64_t rows, int64_t cols, float *memory, int64_t floats,
        gb_tile_post_ops *post_ops);

/* Floats that are enough for blocks of so many rows or columns; 0: the program is too long. */
static inline int64_t gb_tile_post_ops_floats(const gb_pointwise_program *pointwise, int64_t side)
{
    if (pointwise->n_instructions > GB_TILE_INSTRUCTIONS)
        return 0;
    return pointwise->n_instructions *
           (int64_t)gb_align_up((size_t)side, GB_CACHE_LINE / sizeof(float));
}

#endif
