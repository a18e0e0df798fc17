/* Convolutions of 3 x 3 taps by minimal filtering, F(2 x 2, 3 x 3): 2 x 2 results take 16 products in
 * place of 36 (S. Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin and S. Gray, Fast
 * Algorithms for Convolutional Neural Networks, 2016). Of a tile d of 4 x 4 source positions, weights
 * g and results y, for each channel:
 *
 *   d' = B^T d B   g' = G g G^T   y = A^T (sum over channels of d' g', element by element) A
 *
 *   B^T = | 1  0 -1  0 |   G = | 1    0    0  |   A^T = | 1  1  1  0 |
 *         | 0  1  1  0 |       | 1/2  1/2 1/2 |         | 0  1 -1 -1 |
 *         | 0 -1  1  0 |       | 1/2 -1/2 1/2 |
 *         | 0  1  0 -1 |       | 0    0    1  |
 *
 * A result takes nothing of the tile but the 3 x 3 positions that its window has. The 16 elements of
 * d', g' and their products lie in 16 matrices, one behind the other.
 *
 * Of quantized values of 8 bits all of it is exact in integers: 4 g', by 2 G in place of G, has no
 * fractions. Elements of d' are at most 4 * 255, those of 4 g' 9 * 128, so that both are s16, of which
 * pairs of channels, the VNNI groups of dot.h, make sums of s32. Those wrap around, and 4 y is right
 * where it fits. */
#ifndef GB_KERNELS_ISA_WINOGRAD_TYPES_H
#define GB_KERNELS_ISA_WINOGRAD_TYPES_H

#include "kernels/isa/dot.h"
#include "kernels/isa/tile_post_ops.h"

enum { GB_WINOGRAD_PRODUCTS = 16 };

/* d' of a row of tiles, whose channels are neighbours in memory; each tile is two positions behind
 * the one before. */
typedef struct gb_winograd_source {
    bool pairs;             /* of s16, in place of floats: two channels */
    const float *src;       /* first position of the first tile */
    int64_t line, position; /* floats from line to line, from position to position */
    int64_t tiles, channels;
    float *dst; /* element i of tile t: dst[i * matrix + t * row + channel] */
    int64_t matrix, row;
    float *most; /* of each tile: raised to the largest magnitude in it, NaN aside; not of pairs */
} gb_winograd_source;

/* Whole vectors are written: there is room for channels rounded up to VLEN. */
typedef void gb_winograd_source_fn(const gb_winograd_source *source);

/* g' of PANEL columns; of pairs 4 g'. */
typedef struct gb_winograd_weights {
    bool pairs;
    const float *taps; /* of term k: taps[(tap * terms + k) * PANEL], 9 taps */
    int64_t terms;
    float *dst; /* element i of term k: dst[(i * terms + k) * PANEL] */
} gb_winograd_weights;

/* Returns the largest magnitude of the taps, NaN aside; of pairs nothing. */
typedef float gb_winograd_weights_fn(const gb_winograd_weights *weights);

/* One of the two lines of results of a row of tiles. */
typedef struct gb_winograd_result {
    const float
            *sums; /* of the first tile; element i of tile t: sums[i * matrix + t * row + col] */
    int64_t matrix, row;
    const gb_dot_finish *finish; /* of sums that are s32, column 0 first; NULL: they are f32 */
    int line;                    /* 0 or 1 */
    int64_t positions, cols;     /* results: positions of the line, columns */
    float *dst;                  /* positions are dst_row apart */
    int64_t dst_row;
    const gb_tile_post_ops *post_ops;  /* say where results go in place of dst; NULL: none */
    int64_t first_position, first_col; /* of the line in the block that post_ops are of */
} gb_winograd_result;

typedef void gb_winograd_result_fn(const gb_winograd_result *result);

#endif
