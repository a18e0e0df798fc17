/* Attention as one kernel: every family of post-ops, sizes that no block divides, and scratch that
 * does not grow with the square of the sequence. */
#include "kernel_case.h"

#include "kernels/attention/attention_causal.h"
#include "kernels/cpu/step_call.h"

typedef enum mask_kind { NO_MASK, ADDED, SELECTED, CAUSAL, BOTTOM_RIGHT } mask_kind;

typedef struct form {
    gb_data_type type; /* of Q, K, V and the result; scores are f32 */
    int ndims;
    int64_t q[5], k[5], v[5];
    bool transpose_b, divide, soft_cap, stats, dropout, quantize, inf_as_zero;
    bool by_rows; /* P^T V, where V has a row for each query */
    mask_kind mask;
    double fill;  /* of hidden scores; 0: the lowest number */
    double shift; /* of the rows, BOTTOM_RIGHT */
} form;

static size_t scalar(kernel_case *c, gb_data_type type, double value)
{
    size_t id = kernel_case_tensor(c, type, SHAPE(1));
    c->is_fixed[id] = true;
    c->fixed[id] = value;
    return id;
}

static size_t post_op_of(kernel_case *c, gb_op_kind kind, gb_data_type type, size_t a, size_t b)
{
    gb_op *op = kernel_case_op(c, kind);
    kernel_case_in(c, op, a);
    if (b != SIZE_MAX)
        kernel_case_in(c, op, b);
    return kernel_case_out(c, op, type);
}

static size_t product(
        kernel_case *c, gb_data_type type, size_t a, bool transpose_a, size_t b, bool transpose_b)
{
    gb_op *op = kernel_case_op(c, GB_OP_MATMUL);
    kernel_case_flag(op, GB_ATTR_TRANSPOSE_A, transpose_a);
    kernel_case_flag(op, GB_ATTR_TRANSPOSE_B, transpose_b);
    kernel_case_in(c, op, a);
    kernel_case_in(c, op, b);
    return kernel_case_out(c, op, type);
}

static size_t matmul(kernel_case *c, gb_data_type type, size_t a, size_t b, bool transpose_b)
{
    return product(c, type, a, false, b, transpose_b);
}

static size_t select_of(kernel_case *c, size_t condition, size_t then, size_t otherwise)
{
    gb_op *op = kernel_case_op(c, GB_OP_SELECT);
    kernel_case_in(c, op, condition);
    kernel_case_in(c, op, then);
    kernel_case_in(c, op, otherwise);
    return kernel_case_out(c, op, GB_F32);
}

static size_t index_of(kernel_case *c, size_t scores, int64_t axis)
{
    gb_op *op = kernel_case_op(c, GB_OP_GEN_INDEX);
    kernel_case_int(op, GB_ATTR_AXIS, axis);
    kernel_case_in(c, op, scores);
    return kernel_case_out(c, op, GB_S32);
}

static size_t hide(kernel_case *c, const form *f, size_t scores)
{
    double fill = f->fill != 0 ? f->fill : -0x1.fffffep127;
    size_t rows = index_of(c, scores, -2);
    if (f->mask == BOTTOM_RIGHT) {
        rows = post_op_of(c, GB_OP_ADD, GB_S32, rows, scalar(c, GB_S32, f->shift + 5));
        rows = post_op_of(c, GB_OP_SUBTRACT, GB_S32, rows, scalar(c, GB_S32, 5));
    }
    size_t cols = index_of(c, scores, -1);
    size_t visible = post_op_of(c, GB_OP_GREATER_EQUAL, GB_BOOLEAN, rows, cols);
    return select_of(c, visible, scores, scalar(c, GB_F32, fill));
}

static size_t apply_mask(kernel_case *c, const form *f, size_t scores, int64_t keys)
{
    int64_t queries = f->q[f->ndims - 2];
    if (f->mask == ADDED)
        return post_op_of(
                c, GB_OP_ADD, GB_F32, scores, kernel_case_tensor(c, f->type, SHAPE(queries, keys)));
    if (f->mask == SELECTED)
        return select_of(c, kernel_case_tensor(c, GB_BOOLEAN, SHAPE(1, keys)), scores,
                scalar(c, GB_F32, -1e9));
    return f->mask == NO_MASK ? scores : hide(c, f, scores);
}

static size_t softmax(kernel_case *c, const form *f, size_t scores)
{
    gb_op *op = kernel_case_op(c, GB_OP_SOFTMAX);
    kernel_case_int(op, GB_ATTR_AXIS, -1);
    kernel_case_text(op, GB_ATTR_MODE, f->inf_as_zero ? "inf_as_zero" : "none");
    kernel_case_in(c, op, scores);
    size_t weights = kernel_case_out(c, op, f->dropout || f->quantize ? GB_F32 : f->type);
    if (f->stats)
        kernel_case_out(c, op, GB_F32);
    return weights;
}

static size_t convert(kernel_case *c, gb_op_kind kind, size_t value, float scale)
{
    gb_op *op = kernel_case_op(c, kind);
    kernel_case_ints(op, GB_ATTR_ZPS, 1, (const int64_t[]){3});
    kernel_ok(gb_op_set_attr_f32(op, GB_ATTR_SCALES, 1, &scale));
    kernel_case_in(c, op, value);
    return kernel_case_out(c, op, kind == GB_OP_QUANTIZE ? GB_U8 : GB_F32);
}

/* A matrix: quantised ones are u8 that is dequantised. */
static size_t operand(kernel_case *c, const form *f, const int64_t *dims)
{
    size_t id = kernel_case_tensor(c, f->quantize ? GB_U8 : f->type, f->ndims, dims);
    return f->quantize ? convert(c, GB_OP_DEQUANTIZE, id, 0.25F) : id;
}

static size_t drop(kernel_case *c, size_t weights)
{
    gb_op *op = kernel_case_op(c, GB_OP_DROPOUT);
    kernel_case_in(c, op, weights);
    kernel_case_in(c, op, scalar(c, GB_S64, 1234));
    kernel_case_in(c, op, scalar(c, GB_S64, 7));
    kernel_case_in(c, op, scalar(c, GB_F32, 0.25));
    return kernel_case_out(c, op, GB_F32);
}

static void build(kernel_case *c, const form *f)
{
    size_t q = operand(c, f, f->q), k = operand(c, f, f->k), v = operand(c, f, f->v);
    size_t scores = matmul(c, GB_F32, q, k, f->transpose_b);
    gb_op_kind scaling = f->divide ? GB_OP_DIVIDE : GB_OP_MULTIPLY;
    scores = post_op_of(c, scaling, GB_F32, scores, scalar(c, GB_F32, f->divide ? 2.5 : 0.4));
    if (f->soft_cap) {
        scores = post_op_of(c, GB_OP_TANH, GB_F32, scores, SIZE_MAX);
        scores = post_op_of(c, GB_OP_MULTIPLY, GB_F32, scores, scalar(c, GB_F32, 3));
    }
    scores = apply_mask(c, f, scores, f->by_rows ? f->k[f->ndims - 2] : f->v[f->ndims - 2]);
    size_t weights = softmax(c, f, scores);
    if (f->quantize)
        weights = convert(
                c, GB_OP_DEQUANTIZE, convert(c, GB_OP_QUANTIZE, weights, 1 / 200.0F), 1 / 200.0F);
    if (f->dropout)
        weights = drop(c, weights);
    if (f->dropout && f->type != GB_F32)
        weights = post_op_of(c, GB_OP_TYPE_CAST, f->type, weights, SIZE_MAX);
    size_t result = product(c, f->type, weights, f->by_rows, v, false);
    if (f->quantize)
        convert(c, GB_OP_QUANTIZE, result, 0.02F);
}

/* Compiles the only partition of a case and leaves it. */
static gb_compiled_partition *compile_case(kernel_case *c, gb_engine *engine)
{
    gb_partition *partition;
    gb_compiled_partition *compiled;
    gb_logical_tensor ports[2][KERNEL_CASE_TENSORS];
    const gb_logical_tensor *lists[2][KERNEL_CASE_TENSORS];
    size_t num, count[2];
    kernel_case_graph(c, LAYOUT_DENSE);
    kernel_ok(gb_graph_filter(c->graph, GB_POLICY_FUSION));
    kernel_ok(gb_graph_get_partitions(c->graph, 0, NULL, &num));
    cr_assert_eq(num, 1);
    kernel_ok(gb_graph_get_partitions(c->graph, 1, &partition, NULL));
    kernel_ok(gb_partition_get_input_ports(partition, 0, NULL, &count[0]));
    kernel_ok(gb_partition_get_input_ports(partition, count[0], ports[0], NULL));
    kernel_ok(gb_partition_get_output_ports(partition, 0, NULL, &count[1]));
    kernel_ok(gb_partition_get_output_ports(partition, count[1], ports[1], NULL));
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < count[side]; i++)
            lists[side][i] = &c->tensors[ports[side][i].id];
    kernel_ok(gb_partition_compile(
            partition, &compiled, count[0], lists[0], count[1], lists[1], engine));
    gb_partition_destroy(partition);
    return compiled;
}

static void expect_kernel(kernel_case *c, const char *expected, const char *name)
{
    gb_engine *engine;
    kernel_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    gb_compiled_partition *compiled = compile_case(c, engine);
    const char *kernels = gb_compiled_partition_get_kernels(compiled);
    cr_expect(strstr(kernels, expected), "%s: kernels %s", name, kernels);
    gb_compiled_partition_destroy(compiled);
    gb_graph_destroy(c->graph);
    gb_engine_destroy(engine);
}

static void attention(const form *f)
{
    char name[160];
    snprintf(name, sizeof name, "%s %lldx%lld D %lld to %lld mask %d", gb_data_type_name(f->type),
            (long long)f->q[f->ndims - 2], (long long)f->v[f->ndims - 2],
            (long long)f->q[f->ndims - 1], (long long)f->v[f->ndims - 1], (int)f->mask);
    kernel_case c = {.scale = 2, .dense_only = f->dropout};
    build(&c, f);
    expect_kernel(&c, "attention:", name);
    kernel_case_run(&c, name);
    cr_expect_eq(c.intermediates, 0, "%s: %zu bytes in between", name, c.intermediates);
}

static form form_of(gb_data_type type, int64_t heads, int64_t queries, int64_t keys,
        int64_t features, int64_t columns)
{
    return (form){.type = type,
            .ndims = 4,
            .q = {2, heads, queries, features},
            .k = {2, heads, keys, features},
            .v = {2, heads, keys, columns},
            .transpose_b = true};
}

KERNEL_TEST(attention, sizes)
{
    const int64_t sizes[][4] = {{1, 1, 1, 1}, {1, 300, 7, 5}, {3, 77, 16, 16}, {29, 33, 5, 40},
            {61, 31, 64, 64}, {33, 600, 8, 33}, {16, 64, 130, 20}};
    const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        form f = form_of(types[i % 3], 2, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]);
        f.divide = i % 2;
        f.stats = i % 2;
        attention(&f);
    }
}

/* Where the machine multiplies bf16 as such: groups of rows, blocks of keys, and features with what
 * is left of each at its end. */
KERNEL_TEST(attention, bf16)
{
    const int64_t sizes[][4] = {{70, 601, 64, 70}, {33, 257, 7, 33}, {40, 300, 33, 16},
            {5, 31, 130, 20}, {64, 512, 64, 64}};
    for (int i = 0; i < 20; i++) {
        const int64_t *size = sizes[i % 5];
        form f = form_of(GB_BF16, 1 + i % 2, size[0], size[1], size[2], size[3]);
        f.divide = i % 2;
        f.stats = i % 3 == 1;
        f.dropout = i % 7 == 3;
        f.inf_as_zero = i % 4 == 2;
        f.mask = i / 5 % 3 == 2 ? ADDED : i / 5 % 3 == 1 ? CAUSAL : NO_MASK;
        attention(&f);
    }
}

KERNEL_TEST(attention, keys_as_columns)
{
    form f = form_of(GB_F32, 3, 20, 40, 24, 17);
    f.transpose_b = false;
    f.k[2] = 24;
    f.k[3] = 40;
    attention(&f);
    f.q[2] = 1;
    attention(&f);
}

/* The weights as second operand, keys as their rows: V^T P^T. */
static void turned(gb_data_type type, int64_t queries, int64_t keys, int64_t columns)
{
    kernel_case c = {.scale = 2};
    size_t q = kernel_case_tensor(&c, type, SHAPE(2, 3, queries, 16));
    size_t k = kernel_case_tensor(&c, type, SHAPE(2, 3, 16, keys));
    size_t v = kernel_case_tensor(&c, type, SHAPE(2, 3, columns, keys));
    size_t scores = matmul(&c, type, q, k, false);
    scores = post_op_of(&c, GB_OP_DIVIDE, type, scores, scalar(&c, type, 2));
    scores = post_op_of(&c, GB_OP_ADD, type, scores, kernel_case_tensor(&c, type, SHAPE(1, keys)));
    gb_op *op = kernel_case_op(&c, GB_OP_SOFTMAX);
    kernel_case_int(op, GB_ATTR_AXIS, 3);
    kernel_case_in(&c, op, scores);
    size_t weights = kernel_case_out(&c, op, type);
    op = kernel_case_op(&c, GB_OP_STATIC_TRANSPOSE);
    kernel_case_ints(op, GB_ATTR_ORDER, 4, (const int64_t[]){0, 1, 3, 2});
    kernel_case_in(&c, op, weights);
    weights = kernel_case_out(&c, op, type);
    matmul(&c, type, v, post_op_of(&c, GB_OP_REORDER, type, weights, SIZE_MAX), false);
    expect_kernel(&c, "attention:", "weights turned");
    kernel_case_run(&c, "weights turned");
}

KERNEL_TEST(attention, weights_turned)
{
    turned(GB_F32, 30, 50, 20);
    turned(GB_BF16, 1, 40, 7);
}

static size_t move_of(
        kernel_case *c, gb_op_kind kind, size_t value, gb_op_attr attr, int n, const int64_t *list)
{
    gb_op *op = kernel_case_op(c, kind);
    kernel_case_ints(op, attr, n, list);
    if (kind == GB_OP_STATIC_RESHAPE)
        kernel_case_flag(op, GB_ATTR_SPECIAL_ZERO, false);
    kernel_case_in(c, op, value);
    return kernel_case_out(c, op, c->tensors[value].data_type);
}

/* Products that sum over the rows of the weights: of few tasks in slices. */
KERNEL_TEST(attention, by_rows)
{
    const int64_t sizes[][4] = {{1, 1, 1, 1}, {7, 300, 7, 5}, {77, 3, 16, 16}, {33, 29, 40, 5},
            {700, 31, 20, 33}, {130, 64, 130, 20}};
    const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};
    for (int i = 0; i < 12; i++) {
        const int64_t *size = sizes[i % 6];
        form f = form_of(types[i % 3], 2, size[0], size[1], size[2], size[3]);
        f.v[2] = size[0];
        f.by_rows = true;
        f.stats = i % 3 == 1;
        f.dropout = i % 5 == 3;
        f.inf_as_zero = i % 4 == 2;
        f.mask = i % 3 == 2 ? ADDED : i % 4 == 1 ? CAUSAL : NO_MASK;
        attention(&f);
    }
}

/* Queries of all heads are columns of one product with the only head of the keys. */
static void one_key_head(gb_data_type type, int64_t heads, int64_t queries, int64_t keys,
        bool turned, bool over_keys)
{
    enum { BATCH = 2, FEATURES = 16, COLUMNS = 20 };
    const int64_t *to_scores = over_keys ? (int64_t[]){0, 2, 3, 1} : (int64_t[]){0, 2, 1, 3};
    const int64_t *to_columns = over_keys ? (int64_t[]){0, 3, 1, 2} : to_scores;
    kernel_case c = {.scale = 2};
    size_t k = turned ? kernel_case_tensor(&c, type, SHAPE(BATCH, FEATURES, keys))
                      : kernel_case_tensor(&c, type, SHAPE(BATCH, keys, FEATURES));
    size_t q = turned ? kernel_case_tensor(&c, type, SHAPE(BATCH, heads * queries, FEATURES))
                      : kernel_case_tensor(&c, type, SHAPE(BATCH, FEATURES, heads * queries));
    size_t v = turned ? kernel_case_tensor(&c, type, SHAPE(BATCH, keys, COLUMNS))
                      : kernel_case_tensor(&c, type, SHAPE(BATCH, COLUMNS, keys));
    size_t mask = over_keys ? kernel_case_tensor(&c, type, SHAPE(BATCH, 1, queries, keys))
                            : kernel_case_tensor(&c, type, SHAPE(BATCH, heads, keys, queries));
    size_t x = product(&c, type, k, turned, q, turned);
    x = move_of(&c, GB_OP_STATIC_RESHAPE, x, GB_ATTR_SHAPE, SHAPE(BATCH, keys, heads, queries));
    x = move_of(&c, GB_OP_STATIC_TRANSPOSE, x, GB_ATTR_ORDER, 4, to_scores);
    x = post_op_of(&c, GB_OP_ADD, type, mask, x);
    gb_op *op = kernel_case_op(&c, GB_OP_SOFTMAX);
    kernel_case_int(op, GB_ATTR_AXIS, -1);
    kernel_case_in(&c, op, x);
    x = kernel_case_out(&c, op, type);
    x = move_of(&c, GB_OP_STATIC_TRANSPOSE, x, GB_ATTR_ORDER, 4, to_columns);
    x = move_of(&c, GB_OP_STATIC_RESHAPE, x, GB_ATTR_SHAPE, SHAPE(BATCH, keys, heads * queries));
    product(&c, type, v, turned, x, false);
    expect_kernel(&c, "attention:", "one key head");
    kernel_case_run(&c, "one key head");
    cr_expect_eq(c.intermediates, 0, "%zu bytes by %s", c.intermediates, c.kernels);
}

/* Weights that add up to 1 over the queries. */
KERNEL_TEST(attention, one_key_head_by_row)
{
    one_key_head(GB_F32, 3, 21, 37, false, false);
    one_key_head(GB_BF16, 5, 18, 60, false, false);
    one_key_head(GB_F16, 1, 17, 9, true, false);
    one_key_head(GB_F32, 4, 30, 50, true, false);
}

KERNEL_TEST(attention, one_key_head)
{
    one_key_head(GB_F32, 3, 21, 37, false, true);
    one_key_head(GB_BF16, 5, 1, 300, false, true);
    one_key_head(GB_F16, 1, 17, 9, true, true);
    one_key_head(GB_F32, 4, 30, 50, true, true);
}

KERNEL_TEST(attention, post_ops)
{
    for (int i = 0; i < 8; i++) {
        form f = form_of(i % 2 ? GB_BF16 : GB_F32, 2, 30, 50, 16, 24);
        f.mask = i % 4 < 2 ? ADDED : SELECTED;
        f.soft_cap = i % 4 == 1;
        f.dropout = i % 3 == 2;
        f.stats = i % 2;
        f.inf_as_zero = i % 2;
        attention(&f);
    }
}

KERNEL_TEST(attention, exact_weights)
{
    const int64_t sizes[][3] = {{2, 30, 50}, {1, 17, 1100}, {3, 1, 70}};
    for (int i = 0; i < 3; i++) {
        form f = form_of(GB_F32, sizes[i][0], sizes[i][1], sizes[i][2], 16, 24);
        f.quantize = true;
        attention(&f);
    }
    form f = {.type = GB_F32, .ndims = 5, .transpose_b = true, .quantize = true};
    memcpy(f.q, (const int64_t[]){2, 2, 3, 1, 16}, sizeof f.q);
    memcpy(f.k, (const int64_t[]){2, 2, 1, 33, 16}, sizeof f.k);
    memcpy(f.v, (const int64_t[]){2, 2, 1, 33, 24}, sizeof f.v);
    attention(&f);
}

/* A matrix of codes with scales and zero points by groups of 8 along its features. */
static size_t compressed(kernel_case *c, gb_data_type type, int64_t rows, int64_t cols,
        bool groups_of_rows, bool zero_points)
{
    enum { GROUP = 8 };
    gb_op *op = kernel_case_op(c, GB_OP_DYNAMIC_DEQUANTIZE);
    int64_t shape[] = {1, 1, groups_of_rows ? GROUP : 1, groups_of_rows ? 1 : GROUP};
    kernel_case_text(op, GB_ATTR_QTYPE, "per_group");
    kernel_case_ints(op, GB_ATTR_GROUP_SHAPE, 4, shape);
    kernel_case_int(op, GB_ATTR_AXIS, groups_of_rows ? 2 : 3);
    kernel_case_in(c, op, kernel_case_tensor(c, type, SHAPE(2, 2, rows, cols)));
    kernel_case_in(
            c, op, kernel_case_tensor(c, GB_F32, SHAPE(2, 2, rows / shape[2], cols / shape[3])));
    if (zero_points)
        kernel_case_in(
                c, op, kernel_case_tensor(c, GB_S8, SHAPE(2, 2, rows / shape[2], cols / shape[3])));
    return kernel_case_out(c, op, GB_F32);
}

static void compressed_keys(int64_t queries, int64_t keys, bool turned_keys, gb_data_type type)
{
    kernel_case c = {.scale = 2, .dense_only = type == GB_S4};
    size_t q = kernel_case_tensor(&c, GB_F32, SHAPE(2, 2, queries, 24));
    size_t k = turned_keys ? compressed(&c, type, 24, keys, true, true)
                           : compressed(&c, type, keys, 24, false, true);
    size_t scores = matmul(&c, GB_F32, q, k, !turned_keys);
    scores = post_op_of(&c, GB_OP_MULTIPLY, GB_F32, scores, scalar(&c, GB_F32, 0.25));
    gb_op *op = kernel_case_op(&c, GB_OP_SOFTMAX);
    kernel_case_int(op, GB_ATTR_AXIS, -1);
    kernel_case_in(&c, op, scores);
    size_t weights = kernel_case_out(&c, op, GB_F32);
    matmul(&c, GB_F32, weights, compressed(&c, GB_U8, keys, 16, false, false), false);
    expect_kernel(&c, "attention:", "compressed keys");
    kernel_case_run(&c, "compressed keys");
}

KERNEL_TEST(attention, compressed)
{
    compressed_keys(20, 72, false, GB_S8);
    compressed_keys(20, 72, true, GB_S4);
    compressed_keys(1, 600, false, GB_S4);
    compressed_keys(2, 600, true, GB_U8);
}

/* Rows with few or no visible keys, and fills that hide or only weaken. */
KERNEL_TEST(attention, causal)
{
    const double fills[] = {0, -1e9, -INFINITY, -3};
    const int64_t sizes[][2] = {{70, 70}, {40, 90}, {90, 40}, {20, 700}, {700, 60}};
    for (size_t i = 0; i < 5; i++)
        for (int k = 0; k < 4; k++) {
            form f = form_of(GB_F32, 1, sizes[i][0], sizes[i][1], 8, 16);
            f.mask = k % 2 ? BOTTOM_RIGHT : CAUSAL;
            f.shift = (double)(sizes[i][1] - sizes[i][0]);
            f.fill = fills[(i + (size_t)k) % 4];
            f.inf_as_zero = k < 2;
            attention(&f);
        }
}

KERNEL_TEST(attention, heads_share_keys)
{
    const int64_t queries[] = {1, 5, 40};
    for (int i = 0; i < 3; i++) {
        form f = {.type = i == 1 ? GB_F16 : GB_F32,
                .ndims = 5,
                .q = {2, 2, 3, queries[i], 16},
                .k = {2, 2, 1, 70, 16},
                .v = {2, 2, 1, 70, 24},
                .transpose_b = true,
                .mask = i == 2 ? CAUSAL : ADDED,
                .stats = i == 1};
        attention(&f);
    }
}

/* Few rows: keys are read as they lie and sliced. */
KERNEL_TEST(attention, decode)
{
    const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};
    for (int i = 0; i < 3; i++) {
        form f = form_of(types[i], 2, 1 + i, 1500, 40, 33);
        f.mask = i ? ADDED : NO_MASK;
        f.stats = i == 2;
        f.soft_cap = i == 1;
        attention(&f);
    }
}

/* Gradients ------------------------------------------------------------------------------------ */

static size_t sum_over(kernel_case *c, gb_data_type type, size_t value, int64_t axis)
{
    gb_op *op = kernel_case_op(c, GB_OP_REDUCE_SUM);
    kernel_case_ints(op, GB_ATTR_AXES, 1, &axis);
    kernel_case_flag(op, GB_ATTR_KEEP_DIMS, true);
    kernel_case_in(c, op, value);
    return kernel_case_out(c, op, type);
}

static size_t cast(kernel_case *c, const form *f, size_t value)
{
    return f->type == GB_F32 ? value : post_op_of(c, GB_OP_TYPE_CAST, f->type, value, SIZE_MAX);
}

/* Weights from statistics, then dS, scaled. `stats` stands for: the unscaled dS leaves. */
static void build_gradients(kernel_case *c, const form *f)
{
    int64_t result[5], rows[5];
    memcpy(result, f->q, sizeof result);
    memcpy(rows, f->q, sizeof rows);
    result[f->ndims - 1] = f->v[f->ndims - 1];
    rows[f->ndims - 1] = 1;
    size_t q = kernel_case_tensor(c, f->type, f->ndims, f->q);
    size_t k = kernel_case_tensor(c, f->type, f->ndims, f->k);
    size_t v = kernel_case_tensor(c, f->type, f->ndims, f->v);
    size_t g = kernel_case_tensor(c, f->type, f->ndims, result);
    size_t o = kernel_case_tensor(c, f->type, f->ndims, result);
    size_t stats = kernel_case_tensor(c, GB_F32, f->ndims, rows);
    size_t scale = scalar(c, GB_F32, 0.3);
    bool shared = f->ndims == 5;
    size_t scores = product(c, GB_F32, q, false, k, true);
    scores = post_op_of(c, GB_OP_MULTIPLY, GB_F32, scores, scale);
    scores = apply_mask(c, f, scores, f->by_rows ? f->k[f->ndims - 2] : f->v[f->ndims - 2]);
    size_t p = post_op_of(c, GB_OP_SUBTRACT, GB_F32, scores, stats);
    p = post_op_of(c, GB_OP_EXP, GB_F32, p, SIZE_MAX);
    size_t dv = product(c, f->type, cast(c, f, f->dropout ? drop(c, p) : p), true, g, false);
    if (shared)
        sum_over(c, f->type, dv, 2);
    size_t dp = product(c, GB_F32, g, false, v, true);
    if (f->dropout)
        dp = drop(c, dp);
    size_t mean = sum_over(c, GB_F32, post_op_of(c, GB_OP_MULTIPLY, GB_F32, o, g), f->ndims - 1);
    size_t ds = post_op_of(c, GB_OP_SUBTRACT, GB_F32, dp, mean);
    ds = post_op_of(c, GB_OP_MULTIPLY, GB_F32, p, ds);
    size_t exposed = ds;
    if (f->stats) {
        gb_op *end = kernel_case_op(c, GB_OP_END);
        kernel_case_in(c, end, ds);
    }
    ds = cast(c, f, post_op_of(c, GB_OP_MULTIPLY, GB_F32, ds, scale));
    size_t dk = product(c, f->type, ds, true, q, false);
    if (shared)
        sum_over(c, f->type, dk, 2);
    product(c, f->type, ds, false, k, false);
    if (f->stats)
        c->read[exposed] = false; /* compared as an output */
}

static void gradients(const form *f)
{
    char name[160];
    snprintf(name, sizeof name, "gradients %s %lldx%lld mask %d", gb_data_type_name(f->type),
            (long long)f->q[f->ndims - 2], (long long)f->v[f->ndims - 2], (int)f->mask);
    kernel_case c = {.scale = 1, .dense_only = f->dropout};
    build_gradients(&c, f);
    expect_kernel(&c, "attention_backward:", name);
    kernel_case_run(&c, name);
    cr_expect_eq(c.intermediates, 0, "%s: %zu bytes in between", name, c.intermediates);
}

KERNEL_TEST(attention_gradients, sizes)
{
    const int64_t sizes[][4] = {{1, 1, 1, 2}, {1, 300, 7, 5}, {30, 77, 16, 17}, {129, 33, 5, 40},
            {33, 600, 8, 33}, {260, 64, 33, 20}};
    const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        form f = form_of(types[i % 3], 2, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]);
        f.stats = i % 2;
        gradients(&f);
    }
}

KERNEL_TEST(attention_gradients, post_ops)
{
    const mask_kind masks[] = {ADDED, CAUSAL, BOTTOM_RIGHT, SELECTED};
    for (int i = 0; i < 8; i++) {
        form f = form_of(i % 2 ? GB_BF16 : GB_F32, 2, 50, 60, 16, 24);
        f.mask = masks[i % 4];
        f.shift = 10;
        f.dropout = i % 3 == 2;
        f.stats = i % 4 < 2;
        gradients(&f);
    }
}

/* Keys that a mask hides: from some rows, from all, none; with fills that do not hide at all. */
KERNEL_TEST(attention_gradients, causal)
{
    const double fills[] = {0, -INFINITY, -3};
    const int64_t sizes[][2] = {{300, 300}, {130, 600}, {600, 130}, {40, 90}};
    for (int i = 0; i < 12; i++) {
        form f = form_of(GB_F32, 1, sizes[i % 4][0], sizes[i % 4][1], 8, 16);
        f.q[0] = f.k[0] = f.v[0] = 1;
        f.mask = i % 2 ? BOTTOM_RIGHT : CAUSAL;
        f.shift = (double)(f.k[2] - f.q[2]);
        f.fill = fills[i / 4];
        f.stats = i % 3 == 0;
        gradients(&f);
    }
}

KERNEL_TEST(attention_gradients, heads_share_keys)
{
    for (int i = 0; i < 3; i++) {
        form f = {.type = i == 1 ? GB_F16 : GB_F32,
                .ndims = 5,
                .q = {2, 2, 3, 45, 16},
                .k = {2, 2, 1, i == 2 ? 700 : 70, 16},
                .v = {2, 2, 1, i == 2 ? 700 : 70, 24},
                .mask = i == 0 ? CAUSAL : NO_MASK};
        gradients(&f);
    }
}

static size_t scratch_of(int64_t length, bool causal)
{
    form f = form_of(GB_F32, 16, length, length, 64, 64);
    f.q[0] = f.k[0] = f.v[0] = 1;
    f.mask = causal ? CAUSAL : SELECTED;
    kernel_case c = {0};
    gb_engine *engine;
    gb_logical_tensor scratch;
    kernel_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    build(&c, &f);
    gb_compiled_partition *compiled = compile_case(&c, engine);
    kernel_ok(gb_compiled_partition_get_scratchpad(compiled, &scratch));
    gb_compiled_partition_destroy(compiled);
    gb_graph_destroy(c.graph);
    for (size_t i = 0; i < c.n_ops; i++)
        gb_op_destroy(c.ops[i]);
    gb_engine_destroy(engine);
    return (size_t)scratch.dims[0];
}

Test(attention_scratch, grows_at_most_with_the_length)
{
    for (int causal = 0; causal < 2; causal++) {
        size_t bytes = scratch_of(4096, causal);
        cr_expect_lt(bytes, (size_t)64 << 20, "%zu bytes", bytes);
        cr_expect_leq(scratch_of(8192, causal), 2 * bytes);
    }
}

/* Indices are s32 and saturate: both shifts count, not what they add up to. */
Test(attention, large_shifts_of_a_causal_mask_are_left_to_the_post_ops)
{
    static const struct shifts {
        int32_t up, down;
        bool is_set;
    } cases[] = {{0, 0, true}, {5, -7, true}, {1000000, 1000000, true},
            {INT32_MAX, INT32_MAX, false}, {INT32_MIN, INT32_MIN, false}, {INT32_MAX, 0, false},
            {0, INT32_MIN, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shifts c = cases[i];
        float fill = -3;
        void *buffers[] = {&c.up, &c.down, &fill};
        gb_step_call call = {.buffers = buffers};
        gb_attention_causal causal = {.is_set = true,
                .shift_up = {true, GB_S32, 0},
                .shift_down = {true, GB_S32, 1},
                .fill = {true, GB_F32, 2}};
        gb_causal_bounds bounds = gb_causal_bounds_of(&call, &causal, 100, 90);
        cr_assert_eq(bounds.is_set, c.is_set, "shifts %d and %d", c.up, c.down);
        if (!c.is_set)
            continue;
        cr_assert_eq(bounds.shift, (int64_t)c.up - c.down);
        cr_assert_float_eq(bounds.fill, -3, 0);
        cr_assert_eq(gb_attention_visible_keys(&bounds, 3),
                gb_max_i64(0, gb_min_i64(90, 4 + bounds.shift)));
    }
}
