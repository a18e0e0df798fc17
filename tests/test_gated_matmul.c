/* Two products of one source of which one is a gate, and a third behind them: one kernel for the
 * first two, nothing in memory but what the third one reads; sizes that no block divides, all forms
 * of weights, layouts and numbers of threads, on every instruction set. */
#include "kernel_case.h"

typedef enum gate_kind { PLAIN, GELU, SWISH, HARDSWISH, GATE_KINDS } gate_kind;

/* Weights of codes: type, positions along K and columns that share a scale; GB_UNDEF: floats. */
typedef struct code_form {
    gb_data_type type;
    int64_t k_group, n_group;
    bool zps;
} code_form;

typedef struct mlp {
    gb_data_type type;
    int64_t batch, rows, k, hidden, columns; /* batch 0: a matrix */
    gate_kind gate;
    bool up_first;     /* in the product of both */
    bool bias;         /* of gate and up */
    bool constant;     /* weights */
    bool transpose;    /* weights */
    bool channels;     /* a factor per hidden channel behind the product of both */
    bool wide_results; /* products are f32 and a cast brings them back */
    bool dense;        /* no other layouts */
    code_form codes;
    const char *kernels; /* expected; NULL: that of as many rows */
} mlp;

static size_t unary(kernel_case *c, gb_op_kind kind, size_t src, gb_data_type type)
{
    gb_op *op = kernel_case_op(c, kind);
    kernel_case_in(c, op, src);
    return kernel_case_out(c, op, type);
}

static size_t binary(kernel_case *c, gb_op_kind kind, size_t a, size_t b)
{
    gb_op *op = kernel_case_op(c, kind);
    kernel_case_in(c, op, a);
    kernel_case_in(c, op, b);
    return kernel_case_out(c, op, c->tensors[a].data_type);
}

static size_t source(kernel_case *c, const mlp *f)
{
    if (f->batch)
        return kernel_case_tensor(c, f->type, SHAPE(f->batch, f->rows, f->k));
    return kernel_case_tensor(c, f->type, SHAPE(f->rows, f->k));
}

static size_t weights(kernel_case *c, const mlp *f, int64_t k, int64_t n)
{
    const code_form *codes = &f->codes;
    int64_t shape[2] = {k, n}, group[2] = {codes->k_group, codes->n_group}, groups[2];
    bool floats = codes->type == GB_UNDEF;
    if (f->transpose)
        shape[0] = n, shape[1] = k, group[0] = codes->n_group, group[1] = codes->k_group;
    size_t id = kernel_case_tensor(c, floats ? f->type : codes->type, 2, shape);
    if (f->constant)
        c->tensors[id].property = GB_PROPERTY_CONSTANT;
    if (floats)
        return id;
    gb_op *op = kernel_case_op(c, GB_OP_DYNAMIC_DEQUANTIZE);
    for (int d = 0; d < 2; d++)
        groups[d] = shape[d] / group[d];
    kernel_case_text(op, GB_ATTR_QTYPE, "per_group");
    kernel_case_ints(op, GB_ATTR_GROUP_SHAPE, 2, group);
    kernel_case_in(c, op, id);
    kernel_case_in(c, op, kernel_case_tensor(c, f->type, 2, groups));
    if (codes->zps)
        kernel_case_in(c, op, kernel_case_tensor(c, codes->type, 2, groups));
    return kernel_case_out(c, op, f->type);
}

static size_t product(kernel_case *c, const mlp *f, size_t src, int64_t k, int64_t n, bool first)
{
    size_t matrix = weights(c, f, k, n);
    gb_op *op = kernel_case_op(c, GB_OP_MATMUL);
    kernel_case_in(c, op, src);
    kernel_case_in(c, op, matrix);
    if (first && f->bias)
        kernel_case_in(c, op, kernel_case_tensor(c, f->type, SHAPE(n)));
    kernel_case_flag(op, GB_ATTR_TRANSPOSE_B, f->transpose);
    return kernel_case_out(c, op, first && f->wide_results ? GB_F32 : f->type);
}

static size_t activate(kernel_case *c, const mlp *f, size_t gate)
{
    gb_data_type type = c->tensors[gate].data_type;
    switch (f->gate) {
    case GELU:
        return unary(c, GB_OP_GELU, gate, type);
    case SWISH:
        return binary(c, GB_OP_MULTIPLY, gate, unary(c, GB_OP_SIGMOID, gate, type));
    case HARDSWISH:
        return unary(c, GB_OP_HARD_SWISH, gate, type);
    default:
        return gate;
    }
}

static size_t hidden_bytes(const mlp *f)
{
    int64_t count = (f->batch ? f->batch : 1) * f->rows * f->hidden;
    return gb_data_type_bytes(f->type, (size_t)count);
}

static void run(const mlp *f, const char *name)
{
    kernel_case c = {.scale = 1};
    size_t x = source(&c, f), gate = product(&c, f, x, f->k, f->hidden, true);
    gate = activate(&c, f, gate);
    size_t up = product(&c, f, x, f->k, f->hidden, true);
    size_t h = f->up_first ? binary(&c, GB_OP_MULTIPLY, up, gate)
                           : binary(&c, GB_OP_MULTIPLY, gate, up);
    if (f->wide_results)
        h = unary(&c, GB_OP_TYPE_CAST, h, f->type);
    product(&c, f, h, f->hidden, f->columns, false);
    /* Quantized values of 4 bits lie next to each other. */
    c.dense_only = f->dense || f->codes.type != GB_UNDEF;
    kernel_case_run(&c, name);
    const char *expected = f->kernels ? f->kernels : f->rows == 1 ? "gated gemv" : "gated gemm";
    cr_assert_eq(c.n_partitions, 1, "%s: %zu partitions", name, c.n_partitions);
    cr_assert(strstr(c.kernels, expected), "%s: %s", name, c.kernels);
    cr_assert_eq(c.intermediates, hidden_bytes(f), "%s: %zu bytes in between, not %zu", name,
            c.intermediates, hidden_bytes(f));
}

static const gb_data_type floats[] = {GB_F32, GB_BF16, GB_F16};

KERNEL_TEST(gated_matmul, forms)
{
    for (int i = 0; i < 48; i++) {
        mlp f = {.rows = 2 + 15 * (i % 4), .k = 3 + 17 * (i % 5), .hidden = 5 + 31 * (i % 3)};
        f.columns = 1 + 13 * (i % 7);
        f.type = floats[i % 3];
        f.batch = i % 5 == 1 ? 3 : 0;
        f.gate = (gate_kind)(i % GATE_KINDS);
        f.up_first = i & 4, f.bias = i % 3 == 1;
        f.constant = i & 8, f.transpose = i & 16;
        f.wide_results = f.type != GB_F32 && i % 2;
        run(&f, "forms");
    }
}

/* Results that take several blocks of K, rows and columns. */
KERNEL_TEST(gated_matmul, blocks)
{
    for (int i = 0; i < 4; i++) {
        mlp f = {.type = i == 3 ? GB_BF16 : GB_F32, .rows = 70, .k = 900, .hidden = 331};
        f.columns = 40, f.gate = SWISH;
        f.constant = i & 1, f.transpose = i & 2, f.bias = i == 2;
        run(&f, "blocks");
    }
}

/* One row: the matrices are read once, as they lie; with gaps they are copied. */
KERNEL_TEST(gated_matmul, vectors)
{
    for (int i = 0; i < 24; i++) {
        mlp f = {.type = floats[i % 3], .rows = 1, .k = 9 + 23 * (i % 5), .columns = 7};
        f.hidden = i % 4 == 3 ? 2600 : 6 + 59 * (i % 3);
        f.gate = (gate_kind)(i % GATE_KINDS);
        f.bias = i % 5 == 2, f.constant = i & 1, f.transpose = i & 2, f.up_first = i & 4;
        f.wide_results = f.type == GB_F16;
        f.dense = i % 6 < 3;
        f.kernels = f.dense ? "gated gemv" : "gated gem";
        run(&f, "vectors");
    }
}

/* Codes are dequantized on the way: a matrix of floats is never made of them. */
KERNEL_TEST(gated_matmul, codes)
{
    static const gb_data_type types[] = {GB_S4, GB_U4, GB_S8, GB_U8};
    static const int64_t rows[] = {1, 5, 33};
    for (int i = 0; i < 48; i++) {
        mlp f = {.type = floats[i % 3], .rows = rows[i % 3], .k = 64, .hidden = 160, .columns = 32};
        f.gate = (gate_kind)(i % GATE_KINDS);
        f.up_first = i & 4, f.constant = i & 8;
        f.codes = (code_form){.type = types[i / 3 % 4], .k_group = 1, .n_group = 1, .zps = i & 2};
        if (i % 5 < 3)
            f.codes.k_group = 16;
        else
            f.codes.n_group = 32;
        f.transpose = i & 16;
        run(&f, "codes");
    }
}
