/* The rules of error bounds that ops share: intervals, sums, rounding to integers. */
#include "ref/bounds/bound.h"

double gb_ref_sum_factor(int64_t k, double u, int *statistical)
{
    double terms = (double)k;
    if (k <= 64)
        return terms * u;
    if (statistical)
        *statistical = 1;
    return fmin(terms * u, 8 * sqrt(terms) * u);
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
    if (x.v >= lowest && low < lowest - 4 * GB_REF_ETA)
        return (gb_ref_pair){y.v, INFINITY};
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
    return nearbyint(fmin(fmax(x, lowest), highest)) + 0.0; /* there is no -0 */
}

gb_ref_pair gb_ref_to_integer(gb_ref_pair x, double lowest, double highest)
{
    if (isinf(x.e) || isnan(x.e)) /* it may be NaN, which becomes 0 */
        return (gb_ref_pair){isnan(x.v) ? 0 : to_integer(x.v, lowest, highest), INFINITY};
    if (isnan(x.v))
        return (gb_ref_pair){0, 0};
    gb_ref_pair y = {to_integer(x.v, lowest, highest), 0};
    if (x.e > 0) {
        double down = y.v - to_integer(x.v - x.e, lowest, highest);
        double up = to_integer(x.v + x.e, lowest, highest) - y.v;
        y.e = fmax(up, down);
    }
    return y;
}

double gb_ref_sum_rounding(const gb_ref_sum *sum, int *statistical)
{
    if (sum->terms <= 1 || !isfinite(sum->value))
        return 0;
    if (sum->bound == 0 && gb_ref_sums_are_exact(&gb_ref_f32_sums, sum->magnitude, sum->grid))
        return 0;
    if (!(sum->magnitude + sum->bound < gb_ref_f32_sums.limit))
        return INFINITY; /* partial sums may overflow */
    double factor = gb_ref_sum_factor(sum->terms, GB_REF_U, statistical);
    double reach = gb_ref_sum_reach(sum->terms, sum->magnitude, sum->squares, sum->peak);
    double error = gb_ref_sum_of_errors(sum->bound, sum->bound_squares, 1, sum->shift);
    return factor * (reach + error) + GB_REF_ETA;
}

gb_ref_pair gb_ref_sum_get(const gb_ref_sum *sum, int *statistical)
{
    double error = gb_ref_sum_of_errors(sum->bound, sum->bound_squares, 1, sum->shift);
    gb_ref_pair x = {sum->value, error};
    /* Beside an infinity, finite terms may overflow to the opposite one. */
    if (isinf(sum->value) && !(sum->finite < gb_ref_f32_sums.limit))
        return (gb_ref_pair){sum->value, GB_REF_INFINITY};
    return gb_ref_widen(gb_ref_settle(x), gb_ref_sum_rounding(sum, statistical));
}
