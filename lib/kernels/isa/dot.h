/* Products of narrow values: the micro-kernel, and the copies that bring quantized values of 8
 * bits, or bf16, into its VNNI groups.
 *
 * A VNNI group is 32 bits with `vnni_factor` neighbours along K: 4 bytes, of A without sign and of
 * B with sign, or 2 halves: with sign, or both bf16 (`floats`). Where the bytes of an operand have
 * the other kind of sign, copies move all its quantized values by 128, A up and B down; the sums of
 * VNNI groups then serve to correct the products (see gb_dot_finish). K beyond the end of a matrix
 * is 0 in both VNNI groups.
 *
 * Sums of integers are exact: they wrap around in 32 bits, and are right when the final ones fit.
 * Those of bf16 are f32, and subnormal numbers count as 0. The micro-kernel reads A through
 * offsets, so that a convolution can point it at the channels of every tap: VNNI groups of
 * `vnni_factor` channels of one position, copied by dot_copy or dot_pack, or read in place from u8
 * channels-last memory whose channels are a multiple of 4. */
#ifndef GB_KERNELS_ISA_DOT_H
#define GB_KERNELS_ISA_DOT_H

#include "kernels/isa/tile_post_ops.h"

#include <graphbench/graphbench.h>

/* What the instruction set works on. */
typedef struct gb_dot_form {
    int vnni_factor; /* 4 or 2; 0: there is no instruction for it, and no other function may be
                        called for such values */
    int rows, cols;  /* of the largest tile */
    int row_step;    /* tiles of fewer rows than a multiple of it take as long */
    int group_step;  /* runs of fewer VNNI groups than a multiple of it take as long */
    bool along_k;    /* tiles are fast where a row of A has its VNNI groups one after another */
} gb_dot_form;

/* For bf16 (`floats`), or quantized values. */
typedef gb_dot_form gb_dot_form_fn(bool floats);

/* Around the tiles that a thread multiplies: an instruction set may have something to set up, which
 * the first tile between the two does for all. */
typedef void gb_dot_begin_fn(void);
typedef void gb_dot_end_fn(void);

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
    bool floats;
    const int32_t *a, *b;
    int64_t a_row;
    const int64_t *a_offsets, *b_offsets;
    int64_t k;        /* VNNI groups */
    int64_t run;      /* as in gb_gemm_tile, in VNNI groups */
    const void *c_in; /* sums, s32 or f32; NULL: zero; whole vectors are read */
    int64_t c_in_row;
    const gb_dot_finish *finish; /* NULL: c_out gets the sums as they are, always those of bf16;
                                    entry 0 is row or column 0 of the tile, and whole vectors are
                                    read */
    void *c_out;                 /* s32, or f32; nothing is written beyond cols */
    int64_t c_out_row;
    const gb_tile_post_ops *post_ops; /* of results, in place of c_out; NULL: none */
    int64_t row, col;                 /* of the tile in the block that post_ops are of */
    int rows, cols;                   /* 1 .. what dot_form says */
    /* As in gb_gemm_tile; instructions on tile registers do not ask. */
    const char *next;
    int64_t next_step;
    int upper; /* rows that lie a_row apart; 0: all. The others follow from a + a_lower on. Only
                        where dot_form has row_step > 1, and up to it */
    int64_t a_lower;
} gb_dot_tile;

typedef void gb_dot_tile_fn(const gb_dot_tile *tile);

/* Values into VNNI groups, dst[r * dst_row + w] from elements src(r, w * vnni_factor ...): a matrix
 * of which K runs along the columns. Strides are in elements. */
typedef struct gb_dot_copy {
    int vnni_factor;
    bool floats;    /* bf16; else quantized values of 8 bits, of which ... */
    bool is_signed; /* ... they are s8 */
    bool flip;      /* ... they move by 128: the other sign */
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
    bool floats, is_signed, flip;
    const void *src;
    int64_t k, n, k_stride, n_stride;
    int32_t *dst;
    int64_t dst_row, panel_stride;
} gb_dot_pack;

typedef void gb_dot_pack_fn(const gb_dot_pack *pack);

/* Of quantized values: sums[i] (+)= the elements of words[i * stride + w * step], w < k; one of the
 * strides is 1. Halves and the bytes of B have a sign. */
typedef struct gb_dot_sums {
    int vnni_factor;
    bool is_signed, add;
    const int32_t *words;
    int64_t n, stride, k, step;
    int32_t *sums;
} gb_dot_sums;

typedef void gb_dot_sums_fn(const gb_dot_sums *sums);

#endif
