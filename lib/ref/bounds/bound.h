/* The arithmetic of bounded values: what an operation in f32, in any order, fused or not, does to a
 * value and its bound.
 *
 * A pair (v, e) says that every correct implementation holds a number within v +- e. Infinite e:
 * nothing is known. Functions that name no rounding leave it to the caller: gb_ref_round() adds
 * that of one f32 step, and the store to the result's type, made by gb_ref_execute(), includes the
 * last one.
 */
#ifndef GB_REF_BOUNDS_BOUND_H
#define GB_REF_BOUNDS_BOUND_H

#include "ref/bounds/ref_op.h"
#include "ref/bounds/sum.h"

#include <math.h>
#include <stdbool.h>

/* Relative allowance of exp, log, tanh, erf, ... in f32: 4 ulp, an ulp being at most 2 u. */
#define GB_REF_TRANSCENDENTAL (8 * GB_REF_U)

#define GB_REF_INFINITY ((double)INFINITY)

typedef struct gb_ref_pair {
    double v, e;
} gb_ref_pair;

static inline gb_ref_pair gb_ref_exact(double v)
{
    return (gb_ref_pair){v, 0};
}

/* An element as operand: a subnormal may be read as zero. */
static inline gb_ref_pair gb_ref_get(const gb_ref_tensor *tensor, int64_t i)
{
    gb_ref_pair x = {tensor->value[i], gb_ref_bound(tensor, i)};
    if (fabs(x.v) < GB_REF_ETA && fabs(x.v) > x.e)
        x.e = fabs(x.v);
    return x;
}

static inline void gb_ref_put(gb_ref_tensor *tensor, int64_t i, gb_ref_pair x)
{
    tensor->value[i] = x.v;
    tensor->bound[i] = x.e;
}

/* Results that are not finite: e becomes 0 (to be matched) or infinite (unknown), never NaN. */
static inline gb_ref_pair gb_ref_settle(gb_ref_pair x)
{
    if (!isfinite(x.v))
        x.e = isinf(x.e) ? x.e : 0;
    if (isnan(x.e))
        x.e = GB_REF_INFINITY;
    return x;
}
/* x, known to be one of the outcomes of a decision, when `other` is possible too. */
gb_ref_pair gb_ref_either(gb_ref_pair x, gb_ref_pair other);
/* Products and quotients with an operand or result that is not finite. */
gb_ref_pair gb_ref_mul_special(gb_ref_pair a, gb_ref_pair b);
gb_ref_pair gb_ref_div_special(gb_ref_pair a, gb_ref_pair b);

/* The same value with further rounding errors, which leave infinities and NaN what they are. */
static inline gb_ref_pair gb_ref_widen(gb_ref_pair x, double extra)
{
    if (!isfinite(x.v))
        return gb_ref_settle(x);
    x.e += extra;
    return isnan(x.e) ? gb_ref_settle(x) : x;
}

/* A step in f32 that may overflow leaves nothing known: a fused implementation does not take it. */
static inline gb_ref_pair gb_ref_in_range(gb_ref_pair x)
{
    if (isfinite(x.v) && fabs(x.v) + x.e >= gb_ref_f32_sums.limit)
        x.e = GB_REF_INFINITY;
    return x;
}

/* One rounding to f32; none when the exact result is an f32 number. */
static inline gb_ref_pair gb_ref_round(gb_ref_pair x)
{
    if (x.e == 0 && (double)(float)x.v == x.v && (fabs(x.v) >= GB_REF_ETA || x.v == 0))
        return x;
    return gb_ref_in_range(gb_ref_widen(x, GB_REF_U * (fabs(x.v) + x.e) + GB_REF_ETA));
}

static inline gb_ref_pair gb_ref_add(gb_ref_pair a, gb_ref_pair b)
{
    gb_ref_pair x = {a.v + b.v, a.e + b.e};
    return isfinite(x.v) ? x : gb_ref_settle(x);
}

static inline gb_ref_pair gb_ref_sub(gb_ref_pair a, gb_ref_pair b)
{
    return gb_ref_add(a, (gb_ref_pair){-b.v, b.e});
}

static inline gb_ref_pair gb_ref_mul(gb_ref_pair a, gb_ref_pair b)
{
    gb_ref_pair x = {a.v * b.v, fabs(a.v) * b.e + fabs(b.v) * a.e + a.e * b.e};
    return isfinite(x.v) && isfinite(x.e) ? x : gb_ref_mul_special(a, b);
}

static inline gb_ref_pair gb_ref_div(gb_ref_pair a, gb_ref_pair b)
{
    double size = fabs(b.v);
    if (!(size > b.e))
        return gb_ref_div_special(a, b);
    gb_ref_pair x = {a.v / b.v, (fabs(a.v) * b.e + size * a.e) / (size * (size - b.e))};
    return isfinite(x.v) && isfinite(x.e) ? x : gb_ref_div_special(a, b);
}

/* 1 / sqrt(x + epsilon) in f32: three steps. */
gb_ref_pair gb_ref_rsqrt(gb_ref_pair x, double epsilon);

/* What the conversion of an integer to f32 adds to its bound. */
static inline double gb_ref_conversion(double integer)
{
    return integer == (double)(float)integer ? 0 : GB_REF_U * fabs(integer);
}

typedef double (*gb_ref_scalar_fn)(const void *parameters, double x);
/* f over the interval x: its ends and those of the `n_points` extrema and jumps that lie inside.
 * `lowest` is the edge of the domain of f: a result is unbounded where x may be below it by more than
 * what flushing subnormals makes. */
gb_ref_pair gb_ref_interval(gb_ref_scalar_fn f, const void *parameters, gb_ref_pair x,
        const double *points, int n_points, double lowest);

/* Rounds half to even and saturates: 0 bound unless the interval contains an edge. */
gb_ref_pair gb_ref_to_integer(gb_ref_pair x, double lowest, double highest);
/* Who reads a tensor, of the graph's ops (End is none). Inside: an op that is evaluated with the
 * one that makes it, so that a fused implementation may skip the store and never overflow. */
typedef enum gb_ref_reader {
    GB_REF_READ_BY_NONE,
    GB_REF_READ_ELSEWHERE,
    GB_REF_READ_INSIDE
} gb_ref_reader;
/* The pair after its store to `type`. What nobody reads and is rounded once becomes the number that
 * is stored, with bound 0. */
gb_ref_pair gb_ref_stored(gb_data_type type, gb_ref_pair x, gb_ref_reader reader);
/* The same for `count` elements in place. Is any bound above zero then? */
bool gb_ref_store_row(
        gb_data_type type, gb_ref_reader reader, int64_t count, double *value, double *bound);

/* How far the store of v to a floating type of up to 16 bits moves it, or 0. Terms that are integers
 * and a constant, for instance, move alike. */
double gb_ref_store_shift(gb_data_type type, double v);
/* 2^s + 1 for a 16-bit type, whose numbers lack the last s bits of f64; 0 for the others. */
double gb_ref_store_split(gb_data_type type);
/* Splits off the low bits of x (T. Dekker): the number nearest to x with a significand of 53 - s
 * bits, where split = 2^s + 1. Of two that are equally near it may be either. */
static inline double gb_ref_nearest(double x, double split)
{
    double product = x * split;
    return product - (product - x);
}

/* A sum accumulated in f32 in any order. Start from zeros. */
typedef struct gb_ref_sum {
    double value, magnitude, squares, peak; /* of the terms; largest partial sum so far */
    double bound, bound_squares;            /* of the terms' bounds */
    double shift;                           /* of gb_ref_store_shift() */
    double finite;                          /* magnitudes and bounds of the terms that are finite */
    int64_t terms;
    int grid; /* every term is a multiple of 2^grid, see sum.h */
} gb_ref_sum;

static inline void gb_ref_sum_add(gb_ref_sum *sum, gb_ref_pair x)
{
    sum->value += x.v;
    sum->magnitude += fabs(x.v);
    sum->finite += isfinite(x.v) ? fabs(x.v) + x.e : 0;
    sum->squares += x.v * x.v;
    sum->peak = fmax(sum->peak, fabs(sum->value));
    sum->bound += x.e;
    sum->bound_squares += x.e * x.e;
    if (x.v != 0) {
        int grid = gb_ref_grid(x.v);
        if (sum->terms == 0 || grid < sum->grid)
            sum->grid = grid;
        sum->terms++;
    }
}
/* An element of a tensor as a term: what its store does is known, too. */
static inline void gb_ref_sum_add_element(gb_ref_sum *sum, const gb_ref_tensor *tensor, int64_t i)
{
    gb_ref_pair x = gb_ref_get(tensor, i);
    gb_ref_sum_add(sum, x);
    if (x.e > 0)
        sum->shift += gb_ref_store_shift(tensor->tensor.data_type, x.v);
}
/* The product of an element of each; a move of either counts as often as the other says. */
static inline void gb_ref_sum_add_product(
        gb_ref_sum *sum, const gb_ref_tensor *a, const gb_ref_tensor *b, int64_t i)
{
    gb_ref_pair x = gb_ref_get(a, i), y = gb_ref_get(b, i);
    gb_ref_sum_add(sum, gb_ref_mul(x, y));
    double moved = (x.e > 0 ? gb_ref_store_shift(a->tensor.data_type, x.v) * y.v : 0) +
                   (y.e > 0 ? gb_ref_store_shift(b->tensor.data_type, y.v) * x.v : 0);
    sum->shift += isfinite(moved) ? moved : 0;
}
/* The error of the accumulation alone: 0 when every partial sum is an f32 number, whatever the
 * order. Sets *statistical (may be NULL) when the statistical bound was used. */
double gb_ref_sum_rounding(const gb_ref_sum *sum, int *statistical);
/* The sum with the errors of its terms and of its accumulation. */
gb_ref_pair gb_ref_sum_get(const gb_ref_sum *sum, int *statistical);

#endif
