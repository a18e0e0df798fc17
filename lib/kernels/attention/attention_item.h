/* A work item of attention at work: its rows and keys in scratch, and the products of a block. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_ITEM_H
#define GB_KERNELS_ATTENTION_ATTENTION_ITEM_H

#include "kernels/attention/attention_causal.h"
#include "kernels/attention/attention_dequantize.h"
#include "kernels/attention/attention_plan.h"
#include "kernels/attention/attention_tiles.h"

typedef struct gb_attention_item {
    const gb_attention_plan *plan;
    const gb_step_call *call;
    int64_t position[GB_AXES]; /* batch dims, queries; then keys or columns */
    int64_t task, split, first_row, rows;
    float *q, *acc, *max, *sum, *factor, *k, *v, *scores, *product, *registers, *tiles;
    int32_t *weights;  /* a group of rows as VNNI groups */
    int32_t *integers; /* see attention_bytes.c */
    int64_t dense_key; /* the first key of what sources have made of K and V */
    gb_causal_bounds causal_bounds;
} gb_attention_item;

/* Some rows of the work item, and keys of a block: k, v hold them packed. */
typedef struct gb_attention_block {
    int64_t row, rows, key, keys;
    int64_t packed_key;  /* the first key that k and v hold */
    bool first;          /* of the rows' blocks */
    const float *factor; /* of each row, which weights are still to be multiplied with; NULL: 1 */
    const gb_tile_post_ops *results; /* what becomes of the sums; NULL: they are kept */
} gb_attention_block;

/* Sets what lies in the scratch of the thread. */
void gb_attention_place_scratch(gb_attention_item *u);
/* Q of the work item's rows as dense f32, scaled, or as VNNI groups, which are not, unless it is read as it lies; uses
 * `factor`. */
void gb_attention_load_queries(gb_attention_item *u);
/* Rows of Q as VNNI groups: `copy` says of what. */
void gb_attention_copy_queries(
        gb_attention_item *u, const gb_attention_operand *q, gb_dot_copy copy);
/* What scores of unscaled Q are multiplied with. */
float gb_attention_scale(const gb_attention_item *u);
/* factor = 1 / sum; of rows without weights, what their weights are. */
void gb_attention_set_factors(gb_attention_item *u, int64_t row, int64_t rows);
/* data[r] *= factor[row + r], row by row. */
void gb_attention_scale_rows(const gb_attention_item *u, int64_t row, int64_t rows, float *data,
        int64_t row_stride, int64_t cols);
/* From the maxima and sums of the work item's rows. */
void gb_attention_store_stats(gb_attention_item *u);
/* A tiling over the work item's task, without rows and columns. */
gb_attention_tiling gb_attention_tiling_of(
        gb_attention_item *u, const gb_pointwise_program *pointwise);
/* The problem's `before` as post-ops of tiles that write the block's scores, with room for a step in
 * front. False: it cannot be; the post-ops only store. */
bool gb_attention_read_score_ops(
        gb_attention_item *u, const gb_attention_block *b, gb_tile_post_ops *post_ops);
/* Multiplies with factor[0] before all else, or with that of each row (row: 1); there is room. */
void gb_attention_put_in_front(gb_tile_post_ops *post_ops, const float *factor, int64_t row);
/* The problem's `after`, behind a product with `factor` (of each of the block's rows, or NULL), as post-ops of tiles
 * that write results. False: it cannot be. */
bool gb_attention_read_result_ops(gb_attention_item *u, const gb_attention_block *b,
        const float *factor, gb_tile_post_ops *post_ops);
/* From scores to scores: keys `first` .. `end` of a block. */
void gb_attention_run_score_ops(gb_attention_item *u, const gb_attention_block *b,
        const gb_attention_program *program, int64_t first, int64_t end);

/* Readies K of some keys, and V if asked for: from quantized values to f32, into panels, unless
 * they are read as they lie. */
void gb_attention_pack(gb_attention_item *u, int64_t key, int64_t keys, bool values);
/* Products of a block's rows and keys. True: the problem's `before` has been done with them. */
bool gb_attention_multiply_queries(gb_attention_item *u, const gb_attention_block *b);
/* Adds the block's weights times V to the sums of its rows, which become results where the block says so. */
void gb_attention_multiply_weights(const gb_attention_item *u, const gb_attention_block *b);

#endif
