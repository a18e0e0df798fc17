/* Stores to a data type: what they add to the bound of a value. */
#include "base/dtype.h"
#include "base/memory.h"
#include "ref/bounds/bound.h"
#include "ref/bounds/clones.h"

#include <string.h>

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

/* Below this, the numbers of the type are multiples of a step. */
static double normal_of(gb_data_type type)
{
    const gb_dtype_info *info = gb_dtype_get(type);
    bool flushes = type == GB_F32 || type == GB_BF16;
    return flushes ? info->tiny : 2 * info->tiny / info->unit;
}

double gb_ref_store_split(gb_data_type type)
{
    const gb_dtype_info *info = gb_dtype_get(type);
    return info->bits == 16 ? ldexp(info->unit, 53) + 1 : 0;
}

/* The store of v +- e to a type with subnormals below `normal`: rounding is monotone, so the ends
 * of the interval go farthest, unless the store is skipped. */
static inline double nearest_error(double v, double e, double split, double normal, double tiny)
{
    double up = gb_ref_nearest(v + e, split) - v, down = v - gb_ref_nearest(v - e, split);
    double farther = up > down ? up : down;
    return (farther > e ? farther : e) + (fabs(v) - e < normal ? tiny : GB_REF_ETA);
}

/* The normal number of a type nearest to x, of two that are equally near the even one; `excess`
 * is that of excess_bits(). */
static inline double nearest_even(double x, uint64_t excess)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + (excess >> 1) + ((bits & (excess + 1)) != 0)) & ~excess;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The significand bits that x must lack to be rounded once on its way to a narrow type: it is an
 * f32 number then, and for the 8-bit types one of f16, too. */
static uint64_t bits_before(const gb_dtype_info *type)
{
    return excess_bits(type->bits == 8 ? 0x1p-11 : GB_REF_U);
}

static inline bool lacks(double x, uint64_t excess)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & excess) == 0;
}

double gb_ref_store_shift(gb_data_type type, double v)
{
    const gb_dtype_info *info = gb_dtype_get(type);
    if (!info->is_float || type == GB_F32 || !(fabs(v) <= info->max))
        return 0;
    double step = ldexp(2 * info->unit, ilogb(fmax(fabs(v), normal_of(type))));
    return nearbyint(v / step) * step - v;
}

gb_ref_pair gb_ref_stored(gb_data_type type, gb_ref_pair x, gb_ref_reader reader)
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
    double size = fabs(x.v), normal = normal_of(type),
           certain = info->max * (1 + info->unit) * (1 + info->unit);
    /* What is rounded once is known to the last bit. */
    bool once = type != GB_F32 && x.e == 0 && lacks(x.v, bits_before(info));
    if (once && reader == GB_REF_READ_BY_NONE && size >= normal) {
        double near = nearest_even(x.v, excess_bits(info->unit));
        return (gb_ref_pair){fabs(near) <= info->max ? near : overflow_result(type, x.v), 0};
    }
    if (size + y.e <= info->max && info->bits == 16)
        return (gb_ref_pair){
                x.v, nearest_error(x.v, y.e, gb_ref_store_split(type), normal, info->tiny)};
    if (size + y.e <= info->max)
        return rounded(y, info->unit, info->tiny);
    bool skipped = reader == GB_REF_READ_INSIDE && type != GB_F32 && type != GB_BF16;
    if (size - y.e > certain && !skipped)
        return (gb_ref_pair){overflow_result(type, x.v), 0};
    return (gb_ref_pair){x.v, INFINITY};
}

/* The rule for values that stay within the range of a floating type, without decisions: up to two
 * roundings on the way to the type, then its own. */
typedef struct store_rule {
    double max, unit, tiny;
    double units[2], tinies[2];    /* of the roundings on the way; 0 = none */
    double normal, steps_per_unit; /* below `normal`, numbers are multiples of a step */
    double split;                  /* of nearest_error(); 0 = by `unit` */
    uint64_t excess, before;       /* bits of f64 below the type's, and see bits_before() */
    bool settled;                  /* nobody reads it: what is rounded once is known */
} store_rule;

static store_rule rule_of(gb_data_type type, gb_ref_reader reader)
{
    const gb_dtype_info *info = gb_dtype_get(type);
    store_rule rule = {.max = info->max, .unit = info->unit, .tiny = info->tiny};
    bool flushes = type == GB_F32 || type == GB_BF16;
    rule.normal = normal_of(type);
    rule.split = gb_ref_store_split(type);
    rule.settled = type != GB_F32 && reader == GB_REF_READ_BY_NONE;
    rule.before = bits_before(info);
    rule.steps_per_unit = flushes ? 1 / info->tiny : 0.5 / info->tiny;
    rule.excess = excess_bits(info->unit);
    if (type != GB_F32) {
        rule.units[0] = GB_REF_U;
        rule.tinies[0] = GB_REF_ETA;
    }
    if (info->bits == 8) {
        rule.units[1] = 0x1p-11;
        rule.tinies[1] = 0x1p-25;
    }
    return rule;
}

/* Writes the new values and bounds; returns how many elements may leave the range, where they are
 * not valid. */
GB_REF_CLONES static int64_t apply_rule(const store_rule *rule, int64_t count,
        const double *restrict value, const double *restrict bound, double *restrict new_value,
        double *restrict new_bound)
{
    const store_rule r = *rule;
    int64_t irregular = 0;
    for (int64_t i = 0; i < count; i++) {
        double v = value[i], e = bound[i], size = fabs(v);
        uint64_t bits;
        memcpy(&bits, &v, sizeof bits);
        double steps = size * r.steps_per_unit, whole = steps + 0x1.8p52 - 0x1.8p52;
        bool fine = (size >= r.normal) & ((bits & r.excess) == 0);
        bool exact = (e == 0) & (fine | ((size < r.normal) & (steps == whole)));
        bool is_f32 = (e == 0) & ((double)(float)v == v);
        double first = e + (r.units[0] * (size + e) + r.tinies[0]);
        double y = is_f32 ? e : first;
        y += r.units[1] * (size + y) + r.tinies[1];
        double last = r.split > 0 ? nearest_error(v, y, r.split, r.normal, r.tiny)
                                  : y + (r.unit * (size + y) + r.tiny);
        irregular += !(size + y <= r.max);
        bool known = (e == 0) & r.settled & (size >= r.normal) & ((bits & r.before) == 0);
        new_value[i] = known ? nearest_even(v, r.excess) : v;
        new_bound[i] = exact | known ? 0 : last;
    }
    return irregular;
}

static void store_each(
        gb_data_type type, gb_ref_reader reader, int64_t count, double *value, double *bound)
{
    for (int64_t i = 0; i < count; i++) {
        gb_ref_pair x = gb_ref_stored(type, (gb_ref_pair){value[i], bound[i]}, reader);
        value[i] = x.v;
        bound[i] = x.e;
    }
}

bool gb_ref_store_row(
        gb_data_type type, gb_ref_reader reader, int64_t count, double *value, double *bound)
{
    enum { BLOCK = 512 };
    double new_value[BLOCK], new_bound[BLOCK];
    bool is_float = gb_dtype_get(type)->is_float, any = false;
    store_rule rule = {0};
    if (is_float)
        rule = rule_of(type, reader);
    for (int64_t at = 0; at < count; at += BLOCK) {
        int64_t n = gb_min_i64(BLOCK, count - at);
        if (is_float && apply_rule(&rule, n, value + at, bound + at, new_value, new_bound) == 0) {
            memcpy(value + at, new_value, (size_t)n * sizeof(double));
            memcpy(bound + at, new_bound, (size_t)n * sizeof(double));
        } else {
            store_each(type, reader, n, value + at, bound + at);
        }
        for (int64_t i = at; i < at + n && !any; i++)
            any = bound[i] > 0;
    }
    return any;
}
