/* Element-wise ops and their chains against the reference, at every instruction set. */
#include "graph/ops/op_table.h"
#include "kernel_case.h"

static const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};

/* Attributes with values that reach all branches. */
static void set_attributes(gb_op *op, gb_op_kind kind, int variant)
{
    const gb_op_schema *schema = gb_op_schema_get(kind);
    for (uint32_t i = 0; i < schema->n_attrs; i++) {
        gb_op_attr name = schema->attrs[i].name;
        switch (name) {
        case GB_ATTR_ALPHA:
            kernel_case_float(op, name, kind == GB_OP_LEAKY_RELU ? -0.3F : 0.4F);
            break;
        case GB_ATTR_BETA:
            kernel_case_float(op, name, variant ? 1.5F : 0.5F);
            break;
        case GB_ATTR_MIN:
            kernel_case_float(op, name, -0.5F);
            break;
        case GB_ATTR_MAX:
            kernel_case_float(op, name, 0.75F);
            break;
        case GB_ATTR_USE_DST:
            kernel_case_flag(op, name, variant);
            break;
        case GB_ATTR_MODE:
            kernel_case_text(op, name, variant ? "gelu_tanh" : "gelu_erf");
            break;
        default:
            break;
        }
    }
}

static void unary(gb_op_kind kind, gb_data_type type, int variant, int ndims, const int64_t *dims,
        kernel_case settings)
{
    kernel_case c = settings;
    gb_op *op = kernel_case_op(&c, kind);
    set_attributes(op, kind, variant);
    bool positive = kind == GB_OP_LOG || kind == GB_OP_SQRT || kind == GB_OP_SQRT_BACKWARD ||
                    kind == GB_OP_POW;
    if (positive && !c.special)
        c.offset = c.scale != 0 ? c.scale : 1;
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    if (gb_op_schema_get(kind)->op_class == GB_CLASS_UNARY_BACKWARD)
        kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    kernel_case_out(&c, op, type);
    char name[80];
    snprintf(name, sizeof name, "%s %s variant %d", gb_op_kind_name(kind), gb_data_type_name(type),
            variant);
    kernel_case_run(&c, name);
}

static bool is_unary(gb_op_kind kind)
{
    gb_op_class class = gb_op_schema_get(kind)->op_class;
    return class == GB_CLASS_UNARY || class == GB_CLASS_UNARY_BACKWARD;
}

KERNEL_TEST(tile, unary)
{
    const double scales[] = {1, 8, 100};
    for (int kind = 0; kind < GB_OP_LAST; kind++)
        for (int i = 0; is_unary((gb_op_kind)kind) && i < 18; i++) {
            kernel_case c = {.scale = scales[i / 2 % 3]};
            unary((gb_op_kind)kind, types[i / 6], i % 2, SHAPE(5, 7, 37), c);
        }
}

KERNEL_TEST(tile, unary_special)
{
    for (int kind = 0; kind < GB_OP_LAST; kind++)
        for (int i = 0; is_unary((gb_op_kind)kind) && i < 6; i++) {
            kernel_case c = {.scale = 3, .special = true};
            unary((gb_op_kind)kind, types[i / 2], i % 2, SHAPE(3, 211), c);
        }
}

KERNEL_TEST(tile, unary_shapes)
{
    kernel_case c = {.scale = 2};
    unary(GB_OP_RELU, GB_F32, 0, SHAPE(100003), c);
    unary(GB_OP_EXP, GB_BF16, 0, SHAPE(2, 1, 3, 1, 2, 1, 2, 1, 2, 3, 1, 5), c);
    unary(GB_OP_TANH, GB_F32, 0, SHAPE(70, 1, 90), c);
    unary(GB_OP_ABS, GB_F16, 0, SHAPE(130, 33, 5), c);
    unary(GB_OP_ABS, GB_F32, 0, SHAPE(1), c);
    unary(GB_OP_ABS, GB_F32, 0, SHAPE(1030, 1), c);
    unary(GB_OP_SQUARE, GB_F32, 0, SHAPE(3, 0, 5), c);
    unary(GB_OP_SIGMOID, GB_F32, 0, 0, NULL, c);
    for (int64_t n = 1; n <= 35; n++)
        unary(GB_OP_MISH, types[n % 3], 0, SHAPE(3, n), c);
}

KERNEL_TEST(tile, pow_exponents)
{
    const float exponents[] = {-3, -2, -1, -0.5F, 0, 0.5F, 1, 2, 3, 4.25F, 17};
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++)
        for (int special = 0; special < 2; special++) {
            kernel_case c = {.scale = 2, .special = special};
            gb_op *op = kernel_case_op(&c, GB_OP_POW);
            kernel_case_float(op, GB_ATTR_BETA, exponents[i]);
            kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, SHAPE(40, 50)));
            kernel_case_out(&c, op, GB_F32);
            char name[40];
            snprintf(name, sizeof name, "Pow %g", (double)exponents[i]);
            kernel_case_run(&c, name);
        }
}

typedef struct binary_shapes {
    int a_ndims, b_ndims;
    int64_t a[4], b[4];
} binary_shapes;

static const binary_shapes broadcasts[] = {
        {3, 3, {4, 9, 37}, {4, 9, 37}},
        {3, 1, {4, 9, 37}, {37}},
        {1, 3, {37}, {4, 9, 37}},
        {3, 0, {4, 9, 37}, {0}},
        {0, 3, {0}, {4, 9, 37}},
        {4, 4, {2, 5, 1, 7}, {1, 5, 6, 7}},
        {2, 2, {70, 1}, {1, 90}},
        {2, 2, {33, 50}, {33, 1}},
        {2, 2, {33, 1}, {33, 50}},
        {4, 4, {3, 1, 5, 1}, {1, 4, 1, 6}},
        {2, 2, {1, 1}, {20, 30}},
        {0, 0, {0}, {0}},
        {1, 1, {1}, {3000}},
        {3, 3, {2, 0, 3}, {2, 1, 3}},
};
enum { BROADCASTS = sizeof broadcasts / sizeof *broadcasts };

static void binary(gb_op_kind kind, const gb_data_type t[3], const binary_shapes *s, bool special)
{
    kernel_case c = {.scale = 3, .special = special};
    if (special && kind == GB_OP_DIVIDE)
        c.unbounded = "subnormal divisors may count as 0";
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_in(&c, op, kernel_case_tensor(&c, t[0], s->a_ndims, s->a));
    kernel_case_in(&c, op, kernel_case_tensor(&c, t[1], s->b_ndims, s->b));
    kernel_case_out(&c, op, t[2]);
    char name[80];
    snprintf(name, sizeof name, "%s %s shapes %d", gb_op_kind_name(kind), gb_data_type_name(t[0]),
            (int)(s - broadcasts));
    kernel_case_run(&c, name);
}

KERNEL_TEST(tile, binary)
{
    const gb_op_kind kinds[] = {GB_OP_ADD, GB_OP_SUBTRACT, GB_OP_MULTIPLY, GB_OP_DIVIDE,
            GB_OP_MAXIMUM, GB_OP_MINIMUM, GB_OP_SQUARED_DIFFERENCE, GB_OP_GREATER_EQUAL};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int i = 0; i < BROADCASTS * 3; i++) {
            gb_data_type type = types[i % 3],
                         dst = kinds[k] == GB_OP_GREATER_EQUAL ? GB_BOOLEAN : type;
            binary(kinds[k], (gb_data_type[]){type, type, dst}, &broadcasts[i / 3], i % 2);
        }
}

KERNEL_TEST(tile, binary_types)
{
    const gb_data_type mixed[][3] = {{GB_F32, GB_BF16, GB_F32}, {GB_F16, GB_F32, GB_F32},
            {GB_S32, GB_S32, GB_S32}, {GB_F32, GB_S32, GB_F32}, {GB_S32, GB_S32, GB_F32},
            {GB_F32, GB_F32, GB_S32}, {GB_BF16, GB_BF16, GB_F32}};
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
        for (int s = 0; s < BROADCASTS; s += 3) {
            binary(GB_OP_ADD, mixed[i], &broadcasts[s], false);
            binary(GB_OP_SUBTRACT, mixed[i], &broadcasts[s], false);
        }
    for (int s = 0; s < BROADCASTS; s++)
        binary(GB_OP_GREATER_EQUAL, (gb_data_type[]){GB_S32, GB_S32, GB_BOOLEAN}, &broadcasts[s],
                false);
}

static void select_case(int cond_ndims, const int64_t *cond, int a_ndims, const int64_t *a,
        int b_ndims, const int64_t *b, gb_data_type type)
{
    kernel_case c = {.scale = 1};
    gb_op *op = kernel_case_op(&c, GB_OP_SELECT);
    kernel_case_in(&c, op, kernel_case_tensor(&c, GB_BOOLEAN, cond_ndims, cond));
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, a_ndims, a));
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, b_ndims, b));
    kernel_case_out(&c, op, type);
    kernel_case_run(&c, "Select");
}

KERNEL_TEST(tile, select)
{
    for (int t = 0; t < 3; t++) {
        select_case(SHAPE(4, 33, 21), SHAPE(4, 33, 21), SHAPE(4, 33, 21), types[t]);
        select_case(SHAPE(33, 21), SHAPE(4, 33, 21), 0, NULL, types[t]);
        select_case(SHAPE(4, 1, 21), SHAPE(33, 1), SHAPE(4, 33, 21), types[t]);
        select_case(SHAPE(1), SHAPE(33, 1), SHAPE(1, 21), types[t]);
        select_case(SHAPE(70, 1), SHAPE(1, 80), SHAPE(70, 1), types[t]);
    }
}

static void per_channel(gb_op_kind kind, gb_data_type type, gb_data_type stats, int ndims,
        const int64_t *dims, const char *format)
{
    kernel_case c = {.scale = 0.5, .offset = 0.75};
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, format);
    if (kind == GB_OP_BATCH_NORM_INFERENCE)
        kernel_case_float(op, GB_ATTR_EPSILON, 1e-3F);
    int64_t channels = strcmp(format, "NCX") == 0 ? dims[1] : dims[ndims - 1];
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    for (int i = 0; i < (kind == GB_OP_BATCH_NORM_INFERENCE ? 4 : 1); i++)
        kernel_case_in(&c, op, kernel_case_tensor(&c, stats, 1, &channels));
    kernel_case_out(&c, op, type);
    kernel_case_run(&c, gb_op_kind_name(kind));
}

KERNEL_TEST(tile, per_channel)
{
    const gb_op_kind kinds[] = {GB_OP_BIAS_ADD, GB_OP_PRELU, GB_OP_BATCH_NORM_INFERENCE};
    const char *const formats[] = {"NCX", "NXC"};
    for (int i = 0; i < 18; i++) {
        gb_op_kind kind = kinds[i % 3];
        gb_data_type type = types[i / 3 % 3];
        gb_data_type stats = kind == GB_OP_BATCH_NORM_INFERENCE && type == GB_F16 ? GB_F32 : type;
        per_channel(kind, type, stats, SHAPE(3, 20, 17, 9), formats[i / 9]);
        per_channel(kind, type, stats, SHAPE(1, 64, 2, 2), formats[i / 9]);
        per_channel(kind, type, stats, SHAPE(5, 19), formats[i / 9]);
        per_channel(kind, type, stats, SHAPE(2, 3, 1500), formats[i / 9]);
    }
}

KERNEL_TEST(tile, prelu_slopes)
{
    const binary_shapes slopes[] = {{3, 3, {4, 5, 6}, {1, 5, 1}}, {3, 2, {4, 5, 6}, {5, 6}},
            {3, 1, {4, 5, 6}, {1}}, {3, 3, {4, 5, 6}, {4, 5, 6}}, {1, 1, {40}, {40}},
            {3, 1, {4, 5, 6}, {6}}};
    for (size_t i = 0; i < sizeof slopes / sizeof *slopes; i++) {
        kernel_case c = {.scale = 1};
        gb_op *op = kernel_case_op(&c, GB_OP_PRELU);
        kernel_case_flag(op, GB_ATTR_PER_CHANNEL_BROADCAST, false);
        kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, slopes[i].a_ndims, slopes[i].a));
        kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, slopes[i].b_ndims, slopes[i].b));
        kernel_case_out(&c, op, GB_F32);
        kernel_case_run(&c, "PReLU");
    }
}

KERNEL_TEST(tile, type_cast)
{
    for (int t = 1; t < 3; t++)
        for (int narrow = 0; narrow < 2; narrow++) {
            kernel_case c = {.scale = 1e5, .special = true};
            gb_op *op = kernel_case_op(&c, GB_OP_TYPE_CAST);
            kernel_case_in(
                    &c, op, kernel_case_tensor(&c, narrow ? GB_F32 : types[t], SHAPE(31, 53)));
            kernel_case_out(&c, op, narrow ? types[t] : GB_F32);
            kernel_case_run(&c, "TypeCast");
        }
}

/* Chains that fuse: values used twice, rounding in between, side operands of every shape. */

static size_t append_unary(kernel_case *c, gb_op_kind kind, size_t src, gb_data_type type)
{
    gb_op *op = kernel_case_op(c, kind);
    set_attributes(op, kind, 0);
    kernel_case_in(c, op, src);
    return kernel_case_out(c, op, type);
}

static size_t append_binary(kernel_case *c, gb_op_kind kind, size_t a, size_t b, gb_data_type type)
{
    gb_op *op = kernel_case_op(c, kind);
    kernel_case_in(c, op, a);
    kernel_case_in(c, op, b);
    return kernel_case_out(c, op, type);
}

KERNEL_TEST(tile, swish)
{
    for (int t = 0; t < 3; t++) {
        kernel_case c = {.scale = 4};
        size_t x = kernel_case_tensor(&c, types[t], SHAPE(6, 11, 45));
        size_t s = append_unary(&c, GB_OP_SIGMOID, x, types[t]);
        append_binary(&c, GB_OP_MULTIPLY, x, s, types[t]);
        kernel_case_run(&c, "x sigmoid(x)");
    }
}

KERNEL_TEST(tile, chain_with_operands)
{
    for (int t = 0; t < 3; t++) {
        kernel_case c = {.scale = 1.5};
        size_t x = kernel_case_tensor(&c, types[t], SHAPE(3, 21, 45));
        size_t row = kernel_case_tensor(&c, types[t], SHAPE(45)),
               column = kernel_case_tensor(&c, types[t], SHAPE(21, 1));
        size_t scalar = kernel_case_tensor(&c, types[t], 0, NULL),
               same = kernel_case_tensor(&c, types[t], SHAPE(3, 21, 45));
        size_t y = append_binary(&c, GB_OP_ADD, x, row, types[t]);
        y = append_unary(&c, GB_OP_GELU, y, types[t]);
        y = append_binary(&c, GB_OP_SUBTRACT, column, y, types[t]);
        y = append_binary(&c, GB_OP_MULTIPLY, scalar, y, types[t]);
        y = append_binary(&c, GB_OP_MAXIMUM, y, same, types[t]);
        append_binary(&c, GB_OP_ADD, same, y, types[t]);
        kernel_case_run(&c, "chain");
    }
}

/* f32 alone, which loops over sequences of steps take: every pair that begins with a binary op, operands of every
 * shape, rows and planes beyond the lanes that one loop leaves to the next (512). */
static size_t sequence_operand(kernel_case *c, const int64_t *dims, uint32_t shape)
{
    return shape == 0   ? kernel_case_tensor(c, GB_F32, 3, dims)
           : shape == 1 ? kernel_case_tensor(c, GB_F32, 1, &dims[2])
           : shape == 2 ? kernel_case_tensor(c, GB_F32, SHAPE(dims[1], 1))
                        : kernel_case_tensor(c, GB_F32, 0, NULL);
}

static void sequence(const int64_t *dims, uint32_t draw, uint32_t steps)
{
    const gb_op_kind kinds[] = {GB_OP_ADD, GB_OP_SUBTRACT, GB_OP_MULTIPLY, GB_OP_DIVIDE,
            GB_OP_MAXIMUM, GB_OP_MINIMUM, GB_OP_RELU, GB_OP_CLAMP, GB_OP_ABS, GB_OP_SQUARE,
            GB_OP_LEAKY_RELU, GB_OP_HARD_SWISH};
    kernel_case c = {.scale = 0.5, .offset = 1}; /* divisors are not small */
    size_t y = kernel_case_tensor(&c, GB_F32, 3, dims);
    for (uint32_t i = 0; i < steps; i++) {
        const gb_op_kind kind = kinds[draw % 12];
        draw /= 12;
        if (gb_op_schema_get(kind)->op_class == GB_CLASS_BINARY) {
            size_t other = sequence_operand(&c, dims, (draw + i) % 4);
            y = append_binary(&c, kind, y, other, GB_F32);
        } else {
            y = append_unary(&c, kind, y, GB_F32);
        }
    }
    char name[60];
    snprintf(name, sizeof name, "%d steps over rows of %d", (int)steps, (int)dims[2]);
    kernel_case_run(&c, name);
}

KERNEL_TEST(tile, sequences)
{
    const int64_t dims[][3] = {{3, 21, 45}, {2, 3, 1100}, {1, 5, 530}, {4, 130, 3}};
    for (uint32_t i = 0; i < 144; i++)
        sequence(dims[i % 4], i + 144 * ((i * 2654435761U) >> 12), 2 + i % 5);
}

KERNEL_TEST(tile, rounding_between)
{
    kernel_case c = {.scale = 2};
    size_t x = kernel_case_tensor(&c, GB_F32, SHAPE(40, 41)),
           row = kernel_case_tensor(&c, GB_BF16, SHAPE(41));
    size_t y = append_unary(&c, GB_OP_TYPE_CAST, x, GB_BF16);
    y = append_binary(&c, GB_OP_MULTIPLY, y, row, GB_BF16);
    y = append_unary(&c, GB_OP_TYPE_CAST, y, GB_F32);
    append_unary(&c, GB_OP_RELU, y, GB_F32);
    kernel_case_run(&c, "casts");
}

KERNEL_TEST(tile, condition_inside)
{
    kernel_case c = {.scale = 3};
    size_t a = kernel_case_tensor(&c, GB_S32, SHAPE(30, 1)),
           b = kernel_case_tensor(&c, GB_S32, SHAPE(1, 70));
    size_t sum = kernel_case_tensor(&c, GB_S32, SHAPE(30, 70)),
           x = kernel_case_tensor(&c, GB_F32, SHAPE(30, 70));
    size_t low = kernel_case_tensor(&c, GB_F32, 0, NULL);
    size_t shifted = append_binary(&c, GB_OP_ADD, sum, a, GB_S32);
    size_t condition = append_binary(&c, GB_OP_GREATER_EQUAL, shifted, b, GB_BOOLEAN);
    gb_op *op = kernel_case_op(&c, GB_OP_SELECT);
    kernel_case_in(&c, op, condition);
    kernel_case_in(&c, op, x);
    kernel_case_in(&c, op, low);
    kernel_case_out(&c, op, GB_F32);
    kernel_case_run(&c, "mask");
}
