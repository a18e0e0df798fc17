/* What planners weigh: one row of costs per instruction set, and the limits that were measured. */
#ifndef GB_KERNELS_ISA_COSTS_H
#define GB_KERNELS_ISA_COSTS_H

#include "base/cpu.h"

#include <stdint.h>

/* Cycles of one core, per element unless said otherwise. Only their ratios count: planners compare
 * sums of them. */
typedef struct gb_costs {
    double depthwise_multiply_add; /* f32, where each weight serves one channel only */
    double gemm_copy; /* an element of A or B that is copied, converted or dequantized before use */
    double gemm_read; /* one that tiles read as it lies: what it takes to come from L2 */
    double conv_copy; /* an element of the padded copy of a source */
    double conv_item; /* a work item of a convolution, per input channel: calls and addresses */
    double depthwise_unit;   /* the same, per channel */
    double attention_pack;   /* an element of K or V that is packed */
    double transposed_terms; /* terms of the sum that transposing a convolution's result takes as long
                                as, where taps are read from lines of positions */
    double joined_terms;     /* the same where lines are joined, of 1x1 convolutions */
    double unaligned;        /* speed of tiles that read these taps as vectors, 1: that of others */
    double winograd_source, winograd_result; /* a tile of minimal filtering, per channel: its
                                                transform, and results out of its sums */
    int64_t widened_rows; /* no cycles: rows of a product up to which tiles that widen bf16 and
                              f16 as they read take no longer than those that read f32 */
    int64_t few_columns; /* no cycles: of fewer than 8 columns of 4-byte elements, at most so many are transposed in
                            registers */
} gb_costs;

/* Row of the instruction set that kernels have. */
const gb_costs *gb_costs_get(void);
/* A multiply-add of f32 in register tiles, which come close to what the machine can do. */
double gb_multiply_add_cost(void);
/* A VNNI group of two bf16 (`floats`) or of integers. */
double gb_group_cost(bool floats);

/* Limits that are no costs, of all instruction sets. */
enum {
    GB_PAGE_FLOATS = 1024,    /* rows this far apart share no page, and fall into the same sets of
                                  L1: 4 KiB */
    GB_COPY_B_TILES_NEAR = 6, /* B is copied when it is read by more tiles of rows than this, ... */
    GB_COPY_B_TILES_FAR = 1,  /* ... and than this where its rows are on pages of their own */
    GB_PANELS_A_COLUMNS = 768, /* columns of a product from which on a left operand in panels pays
                                  (bench_layouts: 512 at 0.99, 256 at 0.96 of the speed of rows) */
    GB_TILE_CHAINS = 6,        /* rows of a tile from which on multiply-adds hide their latency */
    GB_CHANNELS_LAST = 32, /* output channels of a convolution from which on channels last pay */
    GB_WINOGRAD_CHANNELS = 32, /* input channels of a convolution from which on minimal filtering is
                                  tried, as the reference's bounds say (docs/numerics.md) */
    GB_GRADIENT_MIN_ROWS = 16, /* channels of a weight gradient's work item are not halved below */
    GB_SPLIT_ITEMS = 32,     /* work items that keep the threads busy: with fewer sums are split */
    GB_SPLIT_POSITIONS = 512 /* positions of a split that are worth sums of its own */
};

#endif
