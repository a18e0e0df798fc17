/* Integer products: the micro-kernel, and the copies that bring quantized values of 8 bits into its
 * VNNI groups.
 *
 * A VNNI group is 32 bits with `vnni_factor` neighbours along K: 4 bytes, of A without sign and of
 * B with sign, or 2 halves with sign. Where the bytes of an operand have the other kind of sign,
 * copies move all its quantized values by 128, A up and B down; the sums of VNNI groups then serve
 * to correct the products (see gb_dot_finish). K beyond the end of a matrix is 0 in both VNNI
 * groups.
 *
 * Everything is exact: sums wrap around in 32 bits, and are right when the final ones fit.
 * The micro-kernel reads A through offsets, so that a convolution can point it at the channels of
 * every tap: VNNI groups of `vnni_factor` channels of one position, copied by dot_copy or dot_pack,
 * or read in place from u8 channels-last memory whose channels are a multiple of 4. */
#ifndef GB_KERNELS_ISA_DOT_H
#define GB_KERNELS_ISA_DOT_H

#include <graphbench/graphbench.h>

/* What the instruction set works on. */
typedef struct gb_dot_form {
    int vnni_factor; /* 4 or 2 */
    int rows, cols;  /* of the largest tile */
} gb_dot_form;

typedef gb_dot_form gb_dot_form_fn(void);

/* result(m, n) = (sum(m, n) + column_terms[n] + row_terms[m] * column_factors[n])
 *              * column_scales[n] * row_scales[m]                                     as f32
 * For A stored with zero point za and B with zb (moved as the quantized values are), column_terms
 * are za (K zb - sums of B), row_terms the sums of A, column_factors -zb. */
typedef struct gb_dot_finish {
    const int32_t *column_terms;
    const int32_t *row_terms, *column_factors; /* or both NULL */
    const float *column_scales, *row_scales;   /* row_scales: or NULL */
} gb_dot_finish;

/* One tile of sums: C(m, n) = C_in(m, n) + sum over VNNI groups k of A(m, k) B(k, n), where
 *   A(m, k) = a[m * a_row + a_offsets[k]]
 *   B(k, n) = b[b_offsets[k] + n], whole vectors are read: room for cols rounded up to VLEN. */
typedef struct gb_dot_tile {
    int vnni_factor;
    const int32_t *a, *b;
    int64_t a_row;
    const int64_t *a_offsets, *b_offsets;
    int64_t k;           /* VNNI groups */
    int64_t run;         /* as in gb_gemm_tile, in VNNI groups */
    const int32_t *c_in; /* NULL: zero; whole vectors are read */
    int64_t c_in_row;
    const gb_dot_finish *finish; /* NULL: c_out gets the sums as s32; entry 0 is row or column 0 of
                                    the tile, and whole vectors are read */
    void *c_out;                 /* s32, or f32; nothing is written beyond cols */
    int64_t c_out_row;
    int rows, cols; /* 1 .. what dot_form says */
} gb_dot_tile;

typedef void gb_dot_tile_fn(const gb_dot_tile *tile);

/* Quantized values of 8 bits into VNNI groups, dst[r * dst_row + w] from elements src(r, w * depth
 * ...): a matrix of which K runs along the columns. Strides are in elements. */
typedef struct gb_dot_copy {
    int vnni_factor;
    bool is_signed; /* the quantized values are s8 */
    bool flip;      /* move by 128: the other sign */
    const void *src;
    int64_t rows, k, row_stride, k_stride;
    int32_t *dst;
    int64_t dst_row;
} gb_dot_copy;

typedef void gb_dot_copy_fn(const gb_dot_copy *copy);

/* Columns of a K x N matrix in VNNI groups: VNNI group (w, n) at dst[n / PANEL * panel_stride + w *
 * dst_row + n % PANEL], with zeros in the columns up to the end of the panel; or with panel_stride
 * 0 at dst[w * dst_row + n], nothing beyond n. */
typedef struct gb_dot_pack {
    int vnni_factor;
    bool is_signed, flip;
    const void *src;
    int64_t k, n, k_stride, n_stride;
    int32_t *dst;
    int64_t dst_row, panel_stride;
} gb_dot_pack;

typedef void gb_dot_pack_fn(const gb_dot_pack *pack);

/* sums[i] (+)= the elements of words[i * stride + w * step], w < k; one of the strides is 1. Halves
 * and the bytes of B have a sign. */
typedef struct gb_dot_sums {
    int vnni_factor;
    bool is_signed, add;
    const int32_t *words;
    int64_t n, stride, k, step;
    int32_t *sums;
} gb_dot_sums;

typedef void gb_dot_sums_fn(const gb_dot_sums *sums);

#endif
