/* The rules of error bounds that ops share: intervals, sums, rounding to integers and to stored
 * types. */
#include "ref/bound.h"

#include "base/dtype.h"

#include <string.h>

double gb_ref_sum_factor(int64_t k, double u, int *statistical)
{
    double terms = (double)k;
    if (k <= 64)
        return terms * u;
    if (statistical)
        *statistical = 1;
    return fmin(terms * u, 8 * sqrt(terms) * u);
}

gb_ref_pair gb_ref_settle(gb_ref_pair x)
{
    if (!isfinite(x.v))
        x.e = isinf(x.e) ? x.e : 0;
    if (isnan(x.e))
        x.e = INFINITY;
    return x;
}

/* How far a candidate lies from v; equal infinities and two NaN are no distance, anything else is
 * infinite. */
static double distance(double v, double candidate)
{
    if (isfinite(v) && isfinite(candidate))
        return fabs(candidate - v);
    if (v == candidate || (isnan(v) && isnan(candidate)))
        return 0;
    return INFINITY;
}

gb_ref_pair gb_ref_either(gb_ref_pair x, gb_ref_pair other)
{
    x.e = fmax(x.e, distance(x.v, other.v) + other.e);
    return gb_ref_settle(x);
}

static gb_ref_pair corners(gb_ref_pair a, gb_ref_pair b, double v, bool divide)
{
    gb_ref_pair x = {v, 0};
    if (!isfinite(a.e) || !isfinite(b.e))
        return (gb_ref_pair){v, INFINITY};
    for (int i = 0; i < 4; i++) {
        double p = i & 1 ? a.v + a.e : a.v - a.e, q = i & 2 ? b.v + b.e : b.v - b.e;
        x.e = fmax(x.e, distance(v, divide ? p / q : p * q));
    }
    return x;
}

gb_ref_pair gb_ref_mul_special(gb_ref_pair a, gb_ref_pair b)
{
    return corners(a, b, a.v * b.v, false);
}

gb_ref_pair gb_ref_div_special(gb_ref_pair a, gb_ref_pair b)
{
    bool pole = b.e > 0 && fabs(b.v) <= b.e;
    return pole ? (gb_ref_pair){a.v / b.v, INFINITY} : corners(a, b, a.v / b.v, true);
}

gb_ref_pair gb_ref_rsqrt(gb_ref_pair x, double epsilon)
{
    double shifted = x.v + epsilon, low = fmax(shifted - x.e, 0);
    gb_ref_pair root = {1 / sqrt(shifted), 0};
    root.e = distance(root.v, 1 / sqrt(low));
    return gb_ref_widen(root, 3 * GB_REF_U * fabs(root.v));
}

gb_ref_pair gb_ref_interval(gb_ref_scalar_fn f, const void *parameters, gb_ref_pair x,
        const double *points, int n_points, double lowest)
{
    gb_ref_pair y = {f(parameters, x.v), 0};
    if (x.e == 0)
        return y;
    if (!isfinite(x.e))
        return (gb_ref_pair){y.v, INFINITY};
    double low = x.v - x.e, high = x.v + x.e;
    if (x.v >= lowest)
        low = fmax(low, lowest);
    y.e = fmax(distance(y.v, f(parameters, low)), distance(y.v, f(parameters, high)));
    for (int i = 0; i < n_points; i++) {
        if (low < points[i] && points[i] < high)
            y.e = fmax(y.e, distance(y.v, f(parameters, points[i])));
    }
    return y;
}

static double to_integer(double x, double lowest, double highest)
{
    return nearbyint(fmin(fmax(x, lowest), highest));
}

gb_ref_pair gb_ref_to_integer(gb_ref_pair x, double lowest, double highest)
{
    if (isnan(x.v))
        return (gb_ref_pair){0, INFINITY};
    gb_ref_pair y = {to_integer(x.v, lowest, highest), 0};
    if (x.e > 0) {
        double down = y.v - to_integer(x.v - x.e, lowest, highest);
        double up = to_integer(x.v + x.e, lowest, highest) - y.v;
        y.e = fmax(up, down);
    }
    return y;
}

/* The significand bits of f64 below those of a type with unit roundoff `unit`. */
static uint64_t excess_bits(double unit)
{
    return (UINT64_C(1) << (53 + ilogb(unit))) - 1;
}

/* Is the finite x a number of the type that no implementation flushes? */
static bool representable(const gb_dtype_info *type, double x)
{
    double size = fabs(x);
    if (x == 0)
        return true;
    if (size > type->max)
        return false;
    if (type->unit < 0x1p-12 ||
            type->tiny < 0x1p-100) { /* f32, bf16: 2^-126 is the smallest normal number */
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        return size >= type->tiny && (bits & excess_bits(type->unit)) == 0;
    }
    double steps = size / (2 * type->tiny), digits = 1 / type->unit;
    if (steps < digits)
        return steps == nearbyint(steps);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & excess_bits(type->unit)) == 0;
}

/* What the type makes of a value beyond its range. */
static double overflow_result(gb_data_type type, double v)
{
    return type == GB_F8_E4M3 ? (double)NAN : copysign(INFINITY, v);
}

static gb_ref_pair rounded(gb_ref_pair x, double unit, double tiny)
{
    x.e += unit * (fabs(x.v) + x.e) + tiny;
    return x;
}

gb_ref_pair gb_ref_stored(gb_data_type type, gb_ref_pair x, bool kept)
{
    const gb_dtype_info *info = gb_dtype_get(type);
    if (!info->is_float)
        return gb_ref_settle(x);
    if (!isfinite(x.v) || !isfinite(x.e)) {
        if (type == GB_F8_E4M3 && isinf(x.v))
            x.v = (double)NAN;
        return gb_ref_settle(x);
    }
    if (x.e == 0 && representable(info, x.v))
        return x;
    /* Narrow types are rounded twice or three times: to f32, to f16 for the 8-bit ones, to the
     * type. */
    gb_ref_pair y = x;
    if (type != GB_F32 && !(x.e == 0 && (double)(float)x.v == x.v))
        y = rounded(y, GB_REF_U, GB_REF_ETA);
    if (info->bits == 8)
        y = rounded(y, 0x1p-11, 0x1p-25);
    /* About half a step beyond the largest number the result becomes infinity, or NaN. */
    double size = fabs(x.v), certain = info->max * (1 + info->unit) * (1 + info->unit);
    if (size + y.e <= info->max)
        return rounded(y, info->unit, info->tiny);
    bool skipped = kept && type != GB_F32 && type != GB_BF16;
    if (size - y.e > certain && !skipped)
        return (gb_ref_pair){overflow_result(type, x.v), 0};
    return (gb_ref_pair){x.v, INFINITY};
}

gb_ref_pair gb_ref_sum_get(const gb_ref_sum *sum, int *statistical)
{
    gb_ref_pair x = {sum->value, sum->bound};
    if (sum->terms <= 1 || !isfinite(sum->value))
        return gb_ref_settle(x);
    if (sum->bound == 0 && gb_ref_sums_are_exact(&gb_ref_f32_sums, sum->magnitude, sum->grid))
        return x;
    double factor = gb_ref_sum_factor(sum->terms, GB_REF_U, statistical);
    return gb_ref_widen(x, factor * (sum->magnitude + sum->bound) + GB_REF_ETA);
}
