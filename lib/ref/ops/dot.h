/* Dot products, the arithmetic that MatMul and the convolution family share: each one is a sum of
 * products of elements of two operands, evaluated tile by tile with the sum of magnitudes beside
 * the sum. */
#ifndef GB_REF_OPS_DOT_H
#define GB_REF_OPS_DOT_H

#include "ref/bounds/sum.h"

/* A tile of results has up to GB_REF_TILE_ROWS x GB_REF_TILE columns, and takes its second factor
 * in slabs of up to GB_REF_TILE_DEPTH rows. The sizes keep a tile and a slab in a core's cache.
 * Of a slab, GB_REF_TILE_STEP products at a time are added up before they are added to the sum. */
enum { GB_REF_TILE_ROWS = 64, GB_REF_TILE = 256, GB_REF_TILE_DEPTH = 64, GB_REF_TILE_STEP = 4 };

typedef struct gb_ref_operand {
    const double *value; /* borrowed from the tensor */
    double *wide;        /* owned: largest magnitude the bound allows; NULL when exact */
    double split;        /* gb_ref_store_split() of what an op has stored; 0: others */
    gb_ref_survey survey;
} gb_ref_operand;

typedef struct gb_ref_dot {
    gb_ref_operand operands[2];
    gb_ref_accumulator accumulator;
    bool exact;   /* every sum is exact: sizes are not needed */
    bool wide;    /* both operands have `wide` */
    bool many;    /* more than GB_REF_FEW_TERMS terms: sizes are squares, not magnitudes */
    bool bounded; /* infinite sums are certain: no input has an infinite bound, no sum overflows */
    bool filters; /* tiles have `other`, for minimal filtering (ref/ops/conv.c) */
    double ratio; /* standard deviation over bound of the operands' errors */
} gb_ref_dot;

/* `terms` is the length of the longest dot product, the bias (may be NULL) not counted. Subnormal
 * inputs may be flushed and the graph's fpmath mode may round f32 inputs: both widen operands. */
gb_status gb_ref_dot_create(const gb_op *op, const gb_ref_tensor *a, const gb_ref_tensor *b,
        const gb_ref_tensor *bias, int64_t terms, gb_ref_dot *dot);
void gb_ref_dot_destroy(gb_ref_dot *dot);

/* One tile of sums and the slab of the second factor, per thread. Rows are GB_REF_TILE long. What
 * is not needed is NULL. */
typedef struct gb_ref_tile {
    double *sum;
    double *size;                  /* of products: sum of magnitudes or, of many, of squares */
    double *peak;                  /* of many: largest partial sum, slab by slab */
    double *error, *error_squares; /* sums of the errors of the products and of their squares */
    double *shift;                 /* of the sum by stores of the factors; NULL: there are none */
    double split[2];               /* of the first factors, and of the slab */
    double *other;                 /* rounding of another way to the sum; NULL: there is none */
    double *slab, *wide_slab;
    gb_ref_spread closed; /* of the elements that have been closed */
} gb_ref_tile;

/* `first`: the operand whose elements are the first factors. */
gb_status gb_ref_tile_create(const gb_ref_dot *dot, int first, gb_ref_tile *tile);
/* Adds the spread of the elements closed in this tile to that of the result; on any thread. */
void gb_ref_tile_report(const gb_ref_tile *tile, gb_ref_tensor *dst);
void gb_ref_tile_destroy(gb_ref_tile *tile);
void gb_ref_tile_clear(gb_ref_tile *tile, int64_t rows);
/* tile rows from first_row on += a x slab. Element (row, k) of the first factor is
 * a[row * row_stride + k * stride]; wide_a has the same layout. */
void gb_ref_tile_multiply(gb_ref_tile *tile, int64_t first_row, int64_t rows, int64_t columns,
        int64_t depth, const double *a, const double *wide_a, int64_t row_stride, int64_t stride);

/* The finished element at `at` of a tile: its value and bound, bias included when `bias` is not
 * NULL. `factor` is the g_k of `terms` terms. */
static inline double gb_ref_dot_close(const gb_ref_dot *dot, gb_ref_tile *tile, int64_t at,
        double factor, int64_t terms, const gb_ref_tensor *bias, int64_t bias_index, double *bound)
{
    double extra = bias ? bias->value[bias_index] : 0;
    gb_ref_terms t = {.count = terms,
            .sum = tile->sum[at] + extra,
            .other = tile->other && isfinite(tile->other[at]) ? tile->other[at] : 0};
    if (dot->exact) {
        *bound = 0;
        return t.sum;
    }
    double size = tile->size[at];
    if (dot->many) { /* the magnitudes by Cauchy and Schwarz */
        t.magnitude = sqrt((double)terms * size) + fabs(extra);
        t.reach = gb_ref_sum_reach(
                terms, t.magnitude, size + extra * extra, tile->peak[at] + fabs(extra));
    } else {
        t.magnitude = size + fabs(extra);
        t.reach = t.magnitude;
    }
    double shift = tile->shift ? tile->shift[at] : 0;
    if (dot->wide)
        t.error = gb_ref_sum_of_errors(tile->error[at], tile->error_squares[at], dot->ratio, shift);
    double own = bias ? gb_ref_bound(bias, bias_index) : 0, unit = dot->accumulator.unit * t.reach;
    t.error += own;
    *bound = gb_ref_sum_bound(&dot->accumulator, factor, &t, dot->bounded);
    if (isfinite(*bound)) {
        double inherited = dot->wide ? dot->ratio * dot->ratio * tile->error_squares[at] : 0;
        double rounding = fmax((double)terms * unit * unit, t.other * t.other / 64);
        gb_ref_spread_add(&tile->closed, inherited + shift * shift + rounding + own * own, *bound);
    }
    return t.sum;
}

#endif
