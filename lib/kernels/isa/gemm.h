/* GEMM kernels: tiles of C = A B in f32, and the copies that bring operands of any type and order
 * into the form the tiles read. */
#ifndef GB_KERNELS_ISA_GEMM_H
#define GB_KERNELS_ISA_GEMM_H

#include "kernels/isa/tile_post_ops.h"

#include <graphbench/graphbench.h>

/* Inlined in any case: compilers take a function that only fetches for one without effects, and drop calls of it.
 */
#if defined(__GNUC__)
#define GB_FETCH(address, write) __builtin_prefetch(address, write)
#define GB_ALWAYS_INLINE         static inline __attribute__((always_inline))
#else
#define GB_FETCH(address, write) ((void)(address))
#define GB_ALWAYS_INLINE         static inline
#endif

/* The line will be read soon. */
GB_ALWAYS_INLINE void gb_prefetch(const void *address)
{
    GB_FETCH(address, 0);
}

/* The line will be written soon. */
GB_ALWAYS_INLINE void gb_prefetch_to_write(const void *address)
{
    GB_FETCH(address, 1);
}

enum {
    GB_GEMM_PANEL = 32 /* columns of a packed panel of B: every tile width divides it */
};

/* One tile: C(m, n) = C_in(m, n) + (sum over k of A(m, k) B(k, n)), summed in the order of k, where
 *   A(m, k) = a[m * a_row + a_offsets[k]]
 *   B(k, n) = b[b_offsets[k] + n], whole vectors are read: room for cols rounded up to VLEN. */
typedef struct gb_gemm_tile {
    const float *a, *b;
    const uint16_t *halves;   /* B in place of b, as numbers of 16 bits; NULL: there is none */
    gb_data_type halves_type; /* bf16 or f16 */
    int64_t a_row;
    const int64_t *a_offsets, *b_offsets;
    int64_t k;
    int64_t run;       /* terms of K, of which the last run may have fewer: in each run both offsets
                          rise by equal steps, the same in all runs. 0 or 1: nothing is known */
    const float *c_in; /* NULL: zero; whole vectors are read */
    int64_t c_in_row;
    float *c_out; /* nothing is written beyond cols */
    int64_t c_out_row;
    int rows, cols; /* 1 .. what gemm_limits says */
    int64_t tiles;  /* so many tiles of so many rows, one below the other; 0: one */
    const gb_tile_post_ops *post_ops; /* say where results go in place of c_out; NULL: none */
    int64_t row, col;                 /* of the tile in the block that post_ops are of */
    /* What is read soon: with each term of a run its line is asked for, and it moves on by so many
     * bytes: a line at most, or two where one tile asks for a whole panel. NULL: nothing. */
    const char *next;
    int64_t next_step;
} gb_gemm_tile;

typedef void gb_gemm_tile_fn(const gb_gemm_tile *tile);

/* Largest tiles of the instruction set: of up to few_rows rows and of f32 they may have
 * few_rows_cols columns, which then take less time. */
typedef struct gb_gemm_limits {
    int rows, cols;
    int few_rows, few_rows_cols;
    int lanes; /* of a vector */
} gb_gemm_limits;

typedef gb_gemm_limits gb_gemm_limits_fn(void);

/* dst[r * dst_row + c] = src(r, c) as f32, for floats of 8 to 32 bits, s8, u8. In elements. */
typedef struct gb_gemm_copy {
    gb_data_type type;
    const void *src;
    const void *next; /* what the next copy reads, of the same shape, or NULL: copies of floats
                         along rows fetch it */
    int64_t rows, cols, row_stride, col_stride;
    float *dst;
    int64_t dst_row;
} gb_gemm_copy;

typedef void gb_gemm_copy_fn(const gb_gemm_copy *copy);

/* Columns of a K x N matrix in panels of GB_GEMM_PANEL: element (k, n) as f32 at
 * dst[n / PANEL * panel_stride + k * PANEL + n % PANEL]; columns up to the panel's end are 0. */
typedef struct gb_gemm_pack {
    gb_data_type type;
    const void *src;
    int64_t k, n, k_stride, n_stride;
    float *dst;
    int64_t panel_stride;
} gb_gemm_pack;

typedef void gb_gemm_pack_fn(const gb_gemm_pack *pack);

/* Terms of several taps that lie side by side in memory, into one panel: term k of tap t, counted by
 * its place in memory, is row rows[t] + k of the panel. As gb_gemm_pack else; n <= GB_GEMM_PANEL. */
typedef struct gb_gemm_pack_taps {
    gb_data_type type;
    const void *src;
    int64_t k, n, k_stride, n_stride;
    int64_t taps;
    const int64_t *rows;
    float *dst;
} gb_gemm_pack_taps;

typedef void gb_gemm_pack_taps_fn(const gb_gemm_pack_taps *pack);

/* Matrix times vector: y[n] = sum over k of x[k] W(k, n), W of any floating type with k_stride or
 * n_stride equal to 1. The order of summation depends on the sizes and strides alone. */
typedef struct gb_gemv {
    gb_data_type type;
    const void *w;
    int64_t k, n, k_stride, n_stride;
    const float *x;
    float *y;
} gb_gemv;

typedef void gb_gemv_fn(const gb_gemv *gemv);

/* rows x cols results, each a sum over taps: the weight of a tap times the source at
 * src[r * row + offsets[tap] + c]. The weight is weights[weight_offsets[tap]] of a source of f32, of which whole
 * vectors are read (depthwise_positions), or weights[weight_offsets[tap] + c / PANEL * panel + c % PANEL], of a
 * source of any floating type, of which nothing is read beyond cols (depthwise_channels). With a `width` above 1, a
 * power of two that divides cols and is less than a vector has lanes (or as many, of f32), there is a sum for each
 * channel i of the column's group: of src[... + c - c % width + i], with weights i * PANEL further on.
 * A run of 3 or 5 taps, each run_step further on in the lists than the one before, reads source
 * rows that are `row` apart: then results of neighbouring rows share what they read. Otherwise run
 * is 1. The number of taps is a multiple of run * run_step. */
typedef struct gb_depthwise {
    const void *src;
    gb_data_type type; /* of the source */
    const float *weights;
    int64_t row, panel;
    const int64_t *offsets, *weight_offsets;
    int64_t taps, run, run_step, rows, cols;
    int64_t width; /* depthwise_channels: of groups; 0 or 1: each channel by itself */
    float *dst;
    int64_t dst_row;
    const gb_tile_post_ops *post_ops; /* depthwise_channels: in place of dst; or NULL */
    int64_t post_row;                 /* of the block that they are of: row 0 of the results */
} gb_depthwise;

typedef void gb_depthwise_fn(const gb_depthwise *depthwise);

/* Channel by channel, PANEL of them: sums[tap * PANEL + c] (+)= sum over k of
 * a[a_offsets[k] + c] * b[b_offsets[k] + tap * tap_step + c], in the order of k. */
typedef struct gb_channel_products {
    const float *a, *b;
    const int64_t *a_offsets, *b_offsets;
    int64_t k, taps, tap_step;
    float *sums;
    int add; /* to what sums hold, or 0 */
} gb_channel_products;

typedef void gb_channel_products_fn(const gb_channel_products *products);

#endif
