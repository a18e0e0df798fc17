/* Comparing an output with the reference. */
#include "cli/run/compare.h"

#include <math.h>
#include <string.h>

/* Share of the elements that makes a result trivial. */
static const double mostly = 0.95;

/* Largest finite value and unit roundoff of the floating types: where results may overflow. */
typedef struct limits {
    double max, unit;
    bool overflows_to_nan;
} limits;

static limits limits_of(gb_data_type type)
{
    switch (type) {
    case GB_F32:
        return (limits){0x1.FFFFFEp127, 0x1p-24, false};
    case GB_BF16:
        return (limits){0x1.FEp127, 0x1p-8, false};
    case GB_F16:
        return (limits){65504, 0x1p-11, false};
    case GB_F8_E5M2:
        return (limits){57344, 0x1p-3, false};
    case GB_F8_E4M3:
        return (limits){448, 0x1p-4, true};
    default:
        return (limits){INFINITY, 0, false};
    }
}

/* Does the result lie where a finite reference value may overflow? An exact one does not, however
 * large it is. */
static bool is_legal_overflow(double got, double expected, double bound, const limits *type)
{
    bool reaches = bound > 0 && fabs(expected) + bound >= type->max;
    if (!reaches || isinf(type->max))
        return false;
    if (type->overflows_to_nan)
        return isnan(got);
    return isinf(got) && signbit(got) == signbit(expected);
}

/* Error over bound: 0 fine, up to 1 within the bound, INFINITY when no bound could explain it. */
static double judge(double got, double expected, double bound, const limits *type)
{
    if (isnan(expected))
        return isnan(got) ? 0 : INFINITY;
    if (isinf(expected)) {
        if (got == expected || (type->overflows_to_nan && isnan(got)))
            return 0;
        return INFINITY;
    }
    if (isnan(got) || isinf(got))
        return is_legal_overflow(got, expected, bound, type) ? 0 : INFINITY;
    double error = fabs(got - expected);
    if (error == 0)
        return 0;
    return bound > 0 ? error / bound : (double)INFINITY;
}

static void add_point(gb_comparison *result, gb_point point)
{
    result->errors++;
    if (result->n_points < WORST_POINTS)
        result->points[result->n_points++] = point;
}

static void add_norms(gb_comparison *result, double got, double expected)
{
    if (!isfinite(got) || !isfinite(expected))
        return;
    double difference = fabs(got - expected);
    if (difference > result->max_difference)
        result->max_difference = difference;
    result->l2_difference += difference * difference;
    result->l2_expected += expected * expected;
}

/* How far the expected values lie from their mean (of integers, where a zero point may shift all of
 * them) or from 0, added up. */
static double add_magnitudes(const gb_ref_tensor *expected, bool integer)
{
    double mean = 0, magnitude = 0;
    int64_t n = 0;
    for (int64_t i = 0; integer && i < expected->count; i++) {
        n += isfinite(expected->value[i]) != 0;
        mean += isfinite(expected->value[i]) ? expected->value[i] : 0;
    }
    mean = n ? mean / (double)n : 0;
    for (int64_t i = 0; i < expected->count; i++) {
        bool unbounded = expected->bound && isinf(expected->bound[i]);
        if (isfinite(expected->value[i]) && !unbounded)
            magnitude += fabs(expected->value[i] - mean);
    }
    return magnitude;
}

/* Would every implementation give nothing but zeros, or the same value everywhere? */
static void find_monotony(const gb_ref_tensor *expected, gb_comparison *result)
{
    double zeros = 0;
    bool constant = true;
    for (int64_t i = 0; i < expected->count; i++) {
        zeros += expected->value[i] == 0;
        bool nan = isnan(expected->value[i]) && isnan(expected->value[0]);
        constant = constant && (nan || expected->value[i] == expected->value[0]);
    }
    result->zeros_expected = zeros > mostly * (double)expected->count;
    result->constant_expected = constant;
}

static void compare_finish(
        gb_comparison *result, double zeros, double bounds, const gb_ref_tensor *expected)
{
    result->l2_difference = sqrt(result->l2_difference);
    result->l2_expected = sqrt(result->l2_expected);
    result->zeros = result->total ? zeros / (double)result->total : 0;
    double magnitude =
            bounds > 0 ? add_magnitudes(expected, limits_of(expected->tensor.data_type).unit == 0)
                       : 1;
    result->typical_bound = magnitude > 0 ? bounds / magnitude : 0;
    if (result->zeros > mostly || result->constant)
        find_monotony(expected, result);
}

void gb_cli_compare(const gb_ref_tensor *got, const gb_ref_tensor *expected, double slack,
        gb_comparison *result)
{
    const limits type = limits_of(expected->tensor.data_type);
    *result = (gb_comparison){.total = expected->count, .constant = true};
    double zeros = 0, bounds = 0;
    for (int64_t i = 0; i < expected->count; i++) {
        double value = got->value[i], reference = expected->value[i];
        double bound = slack * (expected->bound ? expected->bound[i] : 0);
        zeros += value == 0;
        /* The bits: NaN is constant, too. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
        result->constant = result->constant && memcmp(&value, &got->value[0], sizeof value) == 0;
        add_norms(result, value, reference);
        if (isinf(bound)) {
            result->unbounded++;
            continue;
        }
        result->exact += bound == 0;
        if (isfinite(reference))
            bounds += fmax(0, bound - slack * type.unit * fabs(reference));
        double margin = judge(value, reference, bound, &type);
        gb_point point = {i, value, reference, bound};
        if (margin > 1)
            add_point(result, point);
        if (margin > result->margin) {
            result->margin = margin;
            result->worst = point;
        }
    }
    compare_finish(result, zeros, bounds, expected);
}

double gb_cli_unit_roundoff(gb_data_type type)
{
    return limits_of(type).unit;
}

const char *gb_cli_mistrust(const gb_comparison *comparison, double unit)
{
    enum { FEWEST = 10, ROUNDINGS = 64 };
    if (comparison->total < FEWEST)
        return 2 * comparison->unbounded > comparison->total ? "unbounded errors" : "";
    if (comparison->zeros > mostly)
        return comparison->zeros_expected ? "zeros by mathematics" : "mostly zeros";
    if (comparison->constant)
        return comparison->constant_expected ? "constant by mathematics" : "all elements alike";
    if ((double)comparison->unbounded > 0.01 * (double)comparison->total)
        return "unbounded errors";
    if (comparison->typical_bound > fmax(0.1, ROUNDINGS * unit))
        return "bounds as large as the values";
    return "";
}
