/* The verdict on an output: what the comparison lets pass, and what it distrusts. And the input
 * data that keep results worth comparing. */
#include "cli/run/compare.h"
#include "cli/run/fill_role.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

enum { COUNT = 100 };

typedef struct pair {
    double value[COUNT], bound[COUNT], got[COUNT];
    gb_ref_tensor expected, output;
} pair;

/* 1, 2, 3, ... within a hundredth. */
static void pair_make(pair *p, gb_data_type type)
{
    for (int i = 0; i < COUNT; i++) {
        p->value[i] = p->got[i] = i + 1;
        p->bound[i] = 0.01 * (i + 1);
    }
    p->expected = (gb_ref_tensor){.count = COUNT, .value = p->value, .bound = p->bound};
    p->output = (gb_ref_tensor){.count = COUNT, .value = p->got};
    p->expected.tensor.data_type = p->output.tensor.data_type = type;
}

static gb_comparison compare(const pair *p)
{
    gb_comparison result;
    gb_cli_compare(&p->output, &p->expected, 1, &result);
    return result;
}

Test(compare, any_element_outside_its_bound_is_an_error)
{
    for (int i = 0; i < COUNT; i++) {
        for (int step = -3; step <= 3; step++) {
            pair p;
            pair_make(&p, GB_F32);
            p.got[i] += 0.45 * step * p.bound[i];
            gb_comparison c = compare(&p);
            cr_expect_eq(c.errors, abs(step) > 2);
            cr_expect_float_eq(c.margin, 0.45 * abs(step), 1e-9);
        }
    }
}

Test(compare, exact_elements_are_held_to_equality)
{
    pair p;
    pair_make(&p, GB_F32);
    p.expected.bound = NULL;
    cr_expect_eq(compare(&p).errors, 0);
    p.got[7] = nextafter(p.got[7], 0);
    gb_comparison c = compare(&p);
    cr_expect_eq(c.errors, 1);
    cr_expect_eq(c.points[0].index, 7);
    cr_expect(isinf(c.margin));
}

Test(compare, values_that_are_not_finite)
{
    static const struct {
        gb_data_type type;
        double expected, bound, got;
        int errors;
    } rows[] = {
            {GB_F32, NAN, 0, NAN, 0}, {GB_F32, NAN, 0, 1, 1}, {GB_F32, 1, 0.1, NAN, 1},
            {GB_F32, INFINITY, 0, INFINITY, 0}, {GB_F32, INFINITY, 0, -INFINITY, 1},
            {GB_F32, 1, 0.1, INFINITY, 1}, {GB_F16, 65504, 40, INFINITY, 0},
            {GB_F16, 65504, 40, -INFINITY, 1}, {GB_F16, 60000, 40, INFINITY, 1},
            {GB_F8_E4M3, 448, 20, NAN, 0}, {GB_F16, 65504, 0, INFINITY, 1},
            {GB_F32, -FLT_MAX, 0, -INFINITY, 1}, {GB_F8_E4M3, 448, 0, NAN, 1},
            {GB_F32, 5, INFINITY, NAN, 0}, /* unbounded: not compared */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pair p;
        pair_make(&p, rows[i].type);
        p.value[3] = rows[i].expected;
        p.bound[3] = rows[i].bound;
        p.got[3] = rows[i].got;
        cr_expect_eq(compare(&p).errors, rows[i].errors, "row %zu", i);
    }
}

static const char *reason(const pair *p)
{
    gb_comparison c = compare(p);
    return gb_cli_mistrust(&c, 0);
}

Test(compare, results_that_prove_little_are_named)
{
    pair p;
    pair_make(&p, GB_F32);
    cr_expect_str_eq(reason(&p), "");
    for (int i = 0; i < COUNT; i++)
        p.bound[i] *= 20;
    cr_expect_str_eq(reason(&p), "bounds as large as the values");
    p.bound[0] = p.bound[1] = INFINITY;
    cr_expect_str_eq(reason(&p), "unbounded errors");
    for (int i = 0; i < COUNT; i++)
        p.value[i] = p.got[i] = i < 4;
    cr_expect_str_eq(reason(&p), "zeros by mathematics");
    for (int i = 0; i < COUNT; i++)
        p.value[i] = 1e-3 * i;
    cr_expect_str_eq(reason(&p), "mostly zeros");
    for (int i = 0; i < COUNT; i++)
        p.value[i] = p.got[i] = 3;
    cr_expect_str_eq(reason(&p), "constant by mathematics");
    p.value[5] = 3.01;
    cr_expect_str_eq(reason(&p), "all elements alike");
}

/* 93 to 95 with an uncertainty of 1 says nothing, however small 1 is beside 93. */
Test(compare, zero_points_do_not_hide_the_size_of_bounds)
{
    pair p;
    pair_make(&p, GB_U8);
    for (int i = 0; i < COUNT; i++) {
        p.value[i] = p.got[i] = 93 + i % 3;
        p.bound[i] = 1;
    }
    cr_expect_str_eq(reason(&p), "bounds as large as the values");
    for (int i = 0; i < COUNT; i++)
        p.value[i] = p.got[i] = 43 + i;
    cr_expect_str_eq(reason(&p), "");
}

/* Roles of inputs ------------------------------------------------------------------------------ */

typedef struct net {
    gb_graph *graph;
    size_t n_ops;
} net;

static gb_logical_tensor tensor_of(size_t id, gb_data_type type, int64_t rows, int64_t columns)
{
    gb_logical_tensor tensor;
    cr_assert_eq(gb_logical_tensor_init_with_dims(&tensor, id, type, 2,
                         (const int64_t[]){rows, columns}, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF),
            GB_SUCCESS);
    return tensor;
}

/* A pointer of NULL leaves an input out. */
static void add(net *n, gb_op_kind kind, const gb_logical_tensor *a, const gb_logical_tensor *b,
        const gb_logical_tensor *output)
{
    gb_op *op;
    cr_assert_eq(gb_op_create(&op, n->n_ops++, kind, "op"), GB_SUCCESS);
    gb_op_add_input(op, a);
    if (b)
        gb_op_add_input(op, b);
    gb_op_add_output(op, output);
    if (kind == GB_OP_DEQUANTIZE || kind == GB_OP_QUANTIZE) {
        gb_op_set_attr_f32(op, GB_ATTR_SCALES, 1, &(float){0.01F});
        gb_op_set_attr_s64(op, GB_ATTR_ZPS, 1, &(int64_t){120});
    }
    if (kind == GB_OP_SOFTMAX)
        gb_op_set_attr_s64(op, GB_ATTR_AXIS, 1, &(int64_t){-1});
    cr_assert_eq(gb_graph_add_op(n->graph, op), GB_SUCCESS, "%s", gb_last_error());
    gb_op_destroy(op);
}

/* u8 queries and keys, f32 values: MatMul, SoftMax, through u8 if `quantized`, MatMul. */
static net attention(gb_logical_tensor t[10], int quantized)
{
    net n = {0};
    cr_assert_eq(gb_graph_create(&n.graph, GB_ENGINE_CPU), GB_SUCCESS);
    t[0] = tensor_of(0, GB_U8, 16, 64);
    t[1] = tensor_of(1, GB_U8, 64, 256);
    t[2] = tensor_of(2, GB_F32, 16, 64);
    t[3] = tensor_of(3, GB_F32, 64, 256);
    for (size_t id = 4; id < 6; id++)
        t[id] = tensor_of(id, GB_F32, 16, 256);
    t[6] = tensor_of(6, GB_U8, 16, 256);
    t[7] = tensor_of(7, GB_F32, 16, 256);
    t[8] = tensor_of(8, GB_F32, 256, 32);
    t[9] = tensor_of(9, GB_F32, 16, 32);
    add(&n, GB_OP_DEQUANTIZE, &t[0], NULL, &t[2]);
    add(&n, GB_OP_DEQUANTIZE, &t[1], NULL, &t[3]);
    add(&n, GB_OP_MATMUL, &t[2], &t[3], &t[4]);
    add(&n, GB_OP_SOFTMAX, &t[4], NULL, &t[5]);
    if (quantized) {
        add(&n, GB_OP_QUANTIZE, &t[5], NULL, &t[6]);
        add(&n, GB_OP_DEQUANTIZE, &t[6], NULL, &t[7]);
    }
    add(&n, GB_OP_MATMUL, quantized ? &t[7] : &t[5], &t[8], &t[9]);
    cr_assert_eq(gb_graph_finalize(n.graph), GB_SUCCESS, "%s", gb_last_error());
    return n;
}

Test(fill_role, attention_gets_logits_that_fit_its_probabilities)
{
    for (int quantized = 0; quantized < 2; quantized++) {
        gb_logical_tensor t[10];
        net n = attention(t, quantized);
        gb_fill_role query = gb_cli_fill_role(n.graph, &t[0]);
        gb_fill_role key = gb_cli_fill_role(n.graph, &t[1]);
        gb_fill_role value = gb_cli_fill_role(n.graph, &t[8]);
        cr_expect_float_eq(query.step, 0.01, 1e-7);
        cr_expect_eq(query.centre, 120);
        cr_expect_float_eq(query.size, 0.4, 1e-6, "40 steps, no more");
        double logits = query.size * key.size * sqrt(64);
        double wanted = quantized ? 0.75 * log2(256) : query.size;
        cr_expect_leq(logits, wanted * 1.0001);
        cr_expect(key.size > 0.3999 || fabs(logits - wanted) < 1e-6, "%g", logits);
        cr_expect_eq(value.domain, DOMAIN_WEIGHTS);
        cr_expect_eq(value.size, 1);
        gb_graph_destroy(n.graph);
    }
}

Test(fill_role, a_scalar_brings_a_computed_product_to_size_1)
{
    net n = {0};
    cr_assert_eq(gb_graph_create(&n.graph, GB_ENGINE_CPU), GB_SUCCESS);
    gb_logical_tensor x = tensor_of(0, GB_F32, 8, 64), y = tensor_of(1, GB_F32, 64, 8);
    gb_logical_tensor a = tensor_of(2, GB_F32, 8, 64), b = tensor_of(3, GB_F32, 64, 8);
    gb_logical_tensor product = tensor_of(4, GB_F32, 8, 8), scale = tensor_of(5, GB_F32, 1, 1);
    gb_logical_tensor result = tensor_of(6, GB_F32, 8, 8);
    add(&n, GB_OP_TANH, &x, NULL, &a);
    add(&n, GB_OP_TANH, &y, NULL, &b);
    add(&n, GB_OP_MATMUL, &a, &b, &product);
    add(&n, GB_OP_DIVIDE, &product, &scale, &result);
    cr_assert_eq(gb_graph_finalize(n.graph), GB_SUCCESS, "%s", gb_last_error());
    gb_fill_role role = gb_cli_fill_role(n.graph, &scale);
    cr_expect_eq(role.domain, DOMAIN_SCALAR);
    cr_expect_eq(role.size, 8);
    gb_graph_destroy(n.graph);
}
