/* The documented errors of functions that stand alone. */
#include "cli/run/alone.h"

#include <math.h>
#include <string.h>

/* Error of a result y of f32, in units of its last place times a weight, and absolute. */
typedef struct accuracy {
    gb_op_kind kind;
    double ulps;
    double (*weight)(double x, double y); /* NULL: 1 */
    double slack, slack_per_x;
} accuracy;

static double gaussian(double x, double y)
{
    (void)y;
    return 1 + x * x / 2;
}

static double gelu_tanh_weight(double x, double y)
{
    (void)y;
    return 1 + 2 * fabs(0.79788456080286535588 * x * (1 + 0.044715 * x * x));
}

/* What the logarithm is off by counts as often as it is multiplied: y = e^(beta ln x). */
static double power_weight(double x, double y)
{
    (void)x;
    return 1 + fabs(log(fabs(y))) / 40;
}

/* As docs/numerics.md lists them and tests/test_vec_math.c measures them. Slack: e^x is subnormal,
 * and flushed, where its product with x is not. Elu: the product with alpha is one rounding more
 * than expm1. */
static const accuracy table[] = {
        {GB_OP_EXP, 1.3, NULL, 0, 0},
        {GB_OP_LOG, 1.2, NULL, 0, 0},
        {GB_OP_TANH, 2.6, NULL, 0, 0},
        {GB_OP_SIGMOID, 2.5, NULL, 0, 0},
        {GB_OP_ELU, 3, NULL, 0, 0},
        {GB_OP_POW, 1.8, power_weight, 0, 0},
        {GB_OP_MISH, 4, NULL, 0x1p-126, 0x1p-124},
        {GB_OP_GELU, 4, gaussian, 0, 1e-9},
};
static const accuracy gelu_tanh = {GB_OP_GELU, 4, gelu_tanh_weight, 0, 0x1p-124};
static const accuracy softplus = {GB_OP_SOFTPLUS, 2, NULL, 0, 0};

static const accuracy *find(const gb_op *op)
{
    gb_op_kind kind;
    const void *value = NULL;
    size_t count = 0;
    if (gb_op_get_kind(op, &kind) != GB_SUCCESS)
        return NULL;
    if (kind == GB_OP_GELU && gb_op_get_attr(op, GB_ATTR_MODE, &count, &value) == GB_SUCCESS &&
            count == strlen("gelu_tanh") && memcmp(value, "gelu_tanh", count) == 0)
        return &gelu_tanh;
    /* Another beta is a product more in front of it. */
    if (kind == GB_OP_SOFTPLUS && gb_op_get_attr(op, GB_ATTR_BETA, &count, &value) == GB_SUCCESS &&
            count == 1 && *(const float *)value == 1)
        return &softplus;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].kind == kind)
            return &table[i];
    return NULL;
}

/* Distance of neighbours at v, of a type with so many digits whose smallest number is 2^least. */
static double unit_at(double v, int digits, int least)
{
    int exponent = v == 0 ? least : ilogb(v) - digits + 1;
    return ldexp(1, exponent > least ? exponent : least);
}

static double nearest(double v, int digits, int least)
{
    double unit = unit_at(v, digits, least);
    return nearbyint(v / unit) * unit;
}

/* How far from y a result of the type may lie when the one of f32 is off by up to e. */
static double stored_error(gb_data_type type, double y, double e)
{
    if (type == GB_F32)
        return e;
    int digits = type == GB_BF16 ? 8 : 11, least = type == GB_BF16 ? -133 : -24;
    return fmax(fabs(nearest(y + e, digits, least) - y), fabs(nearest(y - e, digits, least) - y));
}

void gb_cli_tighten(
        const gb_workload *work, const gb_work_part *part, const gb_ref_store *store, size_t id)
{
    const gb_op *op = NULL;
    gb_logical_tensor input;
    const gb_ref_tensor *result = gb_ref_store_get(store, id), *source;
    if (part->n_ops != 1 || work->settings->engine_kind != GB_ENGINE_CPU || !result->bound ||
            gb_graph_find_op(work->graph, part->ops[0], &op) != GB_SUCCESS ||
            gb_op_get_input(op, 0, &input) != GB_SUCCESS)
        return;
    const accuracy *a = find(op);
    gb_data_type type = result->tensor.data_type;
    source = gb_ref_store_get(store, input.id);
    bool known = type == GB_F32 || type == GB_BF16 || type == GB_F16;
    if (!a || !known || !source || source->count != result->count)
        return;
    for (int64_t i = 0; i < result->count; i++) {
        double x = source->value[i], y = result->value[i];
        bool normal = fabs(x) >= 0x1p-126 && fabs(y) >= 0x1p-126; /* subnormals may be flushed */
        if (!isfinite(x) || !isfinite(y) || !isfinite(result->bound[i]) || !normal)
            continue;
        double e = a->ulps * (a->weight ? a->weight(x, y) : 1) * unit_at(y, 24, -149);
        double bound = stored_error(type, y, e + a->slack + a->slack_per_x * fabs(x));
        if (bound < result->bound[i])
            result->bound[i] = bound;
    }
}
