/* Convolution as an implicit product: positions x channels of the result, K over taps and input
 * channels. Rows of tiles are positions along the tile axis, vectors lie along output channels, or
 * the other way when there are few of them (`wide`). */
#ifndef GB_KERNELS_CONV_CONV_PRODUCT_H
#define GB_KERNELS_CONV_CONV_PRODUCT_H

#include "kernels/conv/conv_item.h"

typedef struct gb_conv_product_item gb_conv_product_item;

/* How elements are copied and multiplied: as floats, or as VNNI groups. */
typedef struct gb_conv_arithmetic {
    /* Copies the item's source positions of the channels first_channel .. + n_in, of all groups;
     * clears what lies outside the source first when `clear`. */
    void (*copy)(gb_conv_product_item *u, int64_t first_channel, bool clear);
    /* The product `whole` in tiles, of positions and channels of the group from `channel` on; it is used up. */
    void (*multiply)(const gb_conv_product_item *u, gb_gemm_tile *whole, int64_t positions,
            int64_t channels, int64_t channel);
    bool sums_made; /* before lines are run: multiply brings them to their place */
} gb_conv_arithmetic;

typedef struct gb_conv_product {
    gb_conv_plan conv;
    const gb_conv_arithmetic *arithmetic;
    struct gb_conv_vnni *vnni;         /* VNNI groups (conv_vnni.h), or NULL */
    struct gb_conv_winograd *winograd; /* minimal filtering (conv_winograd.h), or NULL */
    int joined_axis; /* its positions follow those of the tile axis without a gap, in the copy and
                        in all operands: lines run over both. -1: none */
    int paired_axis; /* two lines at a time that follow each other along it fill the halves of a tile's
                        rows; in all operands without a gap. -1: none */
    bool transposed;     /* tiles are positions x channels, the result wants the reverse */
    gb_data_type halves; /* type of weights that tiles widen as they read; GB_UNDEF: panels are of
                            f32, or VNNI groups */
    int64_t few_rows, few_rows_cols;        /* as in gb_gemm_limits */
    int64_t tile_rows, tile_cols, row_step; /* row_step: as in gb_dot_form */
    int64_t most_positions;  /* that a pointwise program run takes, a group of tiles, ... */
    int64_t group_positions; /* ... and of those groups of which more than two follow */
    int64_t group_step;      /* groups are a multiple of it but for the last one */
    gb_scratch sums, transpose_buffer;
    gb_scratch line_views;        /* as views, for a whole line */
    gb_scratch columns;           /* what post-ops in tiles need of each channel */
    int64_t column_floats;        /* 0: post-ops run over groups of tiles */
    gb_conv_offsets last_offsets; /* for the last block of channels */
    int64_t run_taps; /* taps of the tile axis whose terms follow each other by equal steps, in the copy and in panels;
                         1: terms of one tap do */
} gb_conv_product;

/* A work item at work. */
struct gb_conv_product_item {
    gb_conv_item item;
    const gb_conv_product *plan;
    float *copies, *sums, *transposed, *registers;
    int64_t copied;                        /* index of the block that the copy holds, -1: none */
    int64_t in_first;                      /* input channel of the current block */
    gb_pointwise_view *line_views, *views; /* of the line, and of a tile of it */
    const float *src;                      /* of the line in the copy */
    bool paired;                           /* two lines are at work */
    int64_t positions, done; /* of the work item, and those multiplied by this block of channels */
    int64_t group_first;     /* the group's first position in the line */
    int64_t first_group;     /* positions of the first group */
    bool follows, leads; /* as in gb_gemm_item: has this block of weights been asked for, or been
                                read? Is the thread's next work item the next one? */
    bool in_tiles;       /* post_ops hold what the pointwise program does with the line */
    gb_tile_post_ops post_ops;
    float *columns;
    int64_t residue; /* of the line's taps, the tile axis left out; -1: there are none */
    int64_t skip_taps, skip_first, skip_end; /* taps of the skip axis in the class, and which of
                                                them read inside the source */
    const char *panels;                      /* of the weights, for this block of channels */
    struct gb_conv_winograd_item *winograd;
};

/* Positions of a line, of so many on all axes. */
static inline int64_t gb_conv_line(const gb_conv_product *plan, const int64_t *counts)
{
    return counts[plan->conv.tile_axis] * (plan->joined_axis < 0 ? 1 : counts[plan->joined_axis]);
}

/* Floats: the last of the variants (conv_plan.c). */
bool gb_conv_product_fits(const gb_conv_problem *problem);
gb_status gb_conv_product_plan(gb_program *program, gb_step *step, const gb_conv_problem *problem);
void gb_conv_product_run(const gb_step_call *call);

/* Floats with positions along the rows of tiles, and along vectors (conv_product_run.c). */
extern const gb_conv_arithmetic gb_conv_floats, gb_conv_floats_wide;

/* Plans all but the weights, also for VNNI groups (`vnni`, memory of the step), and makes the plan
 * the parameters of the step. */
gb_status gb_conv_product_choose(gb_step *step, const gb_conv_problem *problem,
        struct gb_conv_vnni *vnni, int threads, gb_conv_product **plan);

/* Parts of it, for minimal filtering ------------------------------------------------------------*/

/* Positions along the tile axis, which is known, go through tiles and post-ops as rows. */
void gb_conv_product_take_lines(gb_conv_product *plan);
/* Scratch of the copy and of what follows the sums. */
void gb_conv_product_add_scratch(gb_step *step, gb_conv_product *plan);
/* The work item of a call. */
gb_conv_product_item gb_conv_product_start(const gb_step_call *call);
/* All tiles of `rows` x `cols` results; A moves by a_row per row, B by one element per column, and `tile` with them. */
void gb_conv_product_multiply(
        const gb_conv_product_item *u, gb_gemm_tile *tile, int64_t rows, int64_t cols);
/* All lines of what gb_conv_item_start() has chosen, for the current block of channels. */
void gb_conv_product_block(gb_conv_product_item *u);

#endif
