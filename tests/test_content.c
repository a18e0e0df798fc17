/* Contents of graphs: equal whatever ids and order of adding, different when anything else is. */
#include "graph/ir/content.h"

#include <criterion/criterion.h>
#include <math.h>

enum { INPUTS = 6, OPS = 14, GRAPHS = 500 };

static uint64_t state = 1;

static uint32_t random_below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 33) % n);
}

/* A random graph as data: op i adds or multiplies, or clamps, earlier values. */
typedef struct plan {
    gb_op_kind kinds[OPS];
    uint32_t inputs[OPS][2]; /* values below INPUTS are the graph's, then come the results of ops */
    float low[OPS];
    int64_t size;
    gb_data_type type;
} plan;

static plan random_plan(void)
{
    const gb_op_kind kinds[] = {GB_OP_ADD, GB_OP_MULTIPLY, GB_OP_CLAMP};
    plan p = {.size = 1 + random_below(5), .type = random_below(2) ? GB_F32 : GB_BF16};
    for (uint32_t i = 0; i < OPS; i++) {
        p.kinds[i] = kinds[random_below(3)];
        p.low[i] = (float)random_below(3);
        for (int k = 0; k < 2; k++)
            p.inputs[i][k] = INPUTS / 2 + random_below(INPUTS / 2 + i);
    }
    return p;
}

/* Two halves that mirror each other, op 2i and op 2i + 1, and read of each other: no op can be told
 * from its image. */
static plan random_twins(void)
{
    plan p = random_plan();
    for (uint32_t i = 0; i < OPS; i += 2) {
        p.kinds[i + 1] = p.kinds[i];
        p.low[i + 1] = p.low[i];
        for (int k = 0; k < 2; k++) {
            p.inputs[i][k] = random_below(INPUTS + i);
            p.inputs[i + 1][k] = p.inputs[i][k] ^ 1;
        }
    }
    return p;
}

static void add(gb_op *op, bool output, const plan *p, size_t id)
{
    gb_logical_tensor tensor;
    cr_assert_eq(gb_logical_tensor_init_with_dims(&tensor, id, p->type, 1, &p->size,
                         GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE),
            GB_SUCCESS);
    cr_assert_eq((output ? gb_op_add_output : gb_op_add_input)(op, &tensor), GB_SUCCESS);
}

/* Ids are i * step + first; ops are added in a random order when `shuffled`. */
static gb_graph *build_open(const plan *p, size_t first, size_t step, bool shuffled)
{
    gb_graph *graph;
    uint32_t order[OPS];
    cr_assert_eq(gb_graph_create(&graph, GB_ENGINE_CPU), GB_SUCCESS);
    for (uint32_t i = 0; i < OPS; i++)
        order[i] = i;
    for (uint32_t i = OPS; shuffled && i-- > 1;) {
        uint32_t j = random_below(i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (uint32_t n = 0; n < OPS; n++) {
        uint32_t i = order[n];
        gb_op *op;
        const float high = 9;
        cr_assert_eq(gb_op_create(&op, i * step + first, p->kinds[i], ""), GB_SUCCESS);
        add(op, false, p, p->inputs[i][0] * step + first);
        if (p->kinds[i] != GB_OP_CLAMP) {
            add(op, false, p, p->inputs[i][1] * step + first);
        } else {
            gb_op_attr names[] = {GB_ATTR_MIN, GB_ATTR_MAX};
            bool swap = shuffled && random_below(2);
            gb_op_set_attr_f32(op, names[swap], 1, swap ? &high : &p->low[i]);
            gb_op_set_attr_f32(op, names[!swap], 1, swap ? &p->low[i] : &high);
        }
        add(op, true, p, (INPUTS + i) * step + first);
        cr_assert_eq(gb_graph_add_op(graph, op), GB_SUCCESS, "%s", gb_last_error());
        gb_op_destroy(op);
    }
    return graph;
}

static gb_graph *build(const plan *p, size_t first, size_t step, bool shuffled)
{
    gb_graph *graph = build_open(p, first, step, shuffled);
    cr_assert_eq(gb_graph_finalize(graph), GB_SUCCESS, "%s", gb_last_error());
    return graph;
}

static bool equal(const gb_graph *a, const gb_graph *b)
{
    gb_content of_a, of_b;
    cr_assert_eq(gb_content_create(a, &of_a), GB_SUCCESS);
    cr_assert_eq(gb_content_create(b, &of_b), GB_SUCCESS);
    bool result = gb_content_equal(a, &of_a, b, &of_b);
    if (result)
        cr_expect_eq(of_a.hash, of_b.hash);
    gb_content_clear(&of_a);
    gb_content_clear(&of_b);
    return result;
}

Test(content, ids_and_order_of_adding_do_not_count)
{
    for (int i = 0; i < GRAPHS; i++) {
        plan p = random_plan();
        gb_graph *a = build(&p, 0, 1, false), *b = build(&p, 1000, 7, true);
        cr_assert(equal(a, b), "graph %d", i);
        gb_graph_destroy(a);
        gb_graph_destroy(b);
    }
}

Test(content, neither_do_they_among_ops_that_cannot_be_told_apart)
{
    for (int i = 0; i < GRAPHS; i++) {
        plan p = random_twins();
        gb_graph *a = build(&p, 0, 1, false), *b = build(&p, 1000, 7, true);
        cr_assert(equal(a, b), "graph %d", i);
        gb_graph_destroy(a);
        gb_graph_destroy(b);
    }
}

/* One change somewhere: a kind, an edge, an attribute, a dim or a type. */
static plan changed(const plan *p)
{
    plan q = *p;
    uint32_t op = random_below(OPS);
    switch (random_below(5)) {
    case 0:
        q.kinds[op] = p->kinds[op] == GB_OP_ADD ? GB_OP_MULTIPLY : GB_OP_ADD;
        break;
    case 1:
        q.kinds[OPS - 1] = GB_OP_ADD; /* its left edge leads elsewhere */
        q.inputs[OPS - 1][0] = (p->inputs[OPS - 1][0] + 1) % (INPUTS + OPS - 1);
        break;
    case 2:
        q.kinds[op] = GB_OP_CLAMP;
        q.low[op] = p->low[op] + 1;
        break;
    case 3:
        q.size++;
        break;
    default:
        q.type = p->type == GB_F32 ? GB_BF16 : GB_F32;
        break;
    }
    return q;
}

/* What a plan computes, as a polynomial's value at a point: different results prove that two plans
 * differ. */
static void results(const plan *p, double *values)
{
    for (int i = 0; i < INPUTS; i++)
        values[i] = sin(1 + i);
    for (uint32_t i = 0; i < OPS; i++) {
        double a = values[p->inputs[i][0]], b = values[p->inputs[i][1]];
        values[INPUTS + i] = p->kinds[i] == GB_OP_ADD        ? a + b
                             : p->kinds[i] == GB_OP_MULTIPLY ? a * b + 0.01
                                                             : a * 0.9 + (double)p->low[i];
    }
}

static bool differ(const plan *p, const plan *q)
{
    double x[INPUTS + OPS], y[INPUTS + OPS];
    results(p, x);
    results(q, y);
    double sum = 0, other = 0; /* whatever the order of the ops */
    for (uint32_t i = 0; i < INPUTS + OPS; i++) {
        sum += x[i] * x[i];
        other += y[i] * y[i];
    }
    return p->size != q->size || p->type != q->type || sum != other;
}

Test(content, any_change_counts)
{
    int tried = 0;
    for (int i = 0; i < GRAPHS; i++) {
        plan p = random_plan(), q = changed(&p);
        if (!differ(&p, &q))
            continue;
        gb_graph *a = build(&p, 0, 1, false), *b = build(&q, 0, 1, true);
        cr_assert(!equal(a, b), "graph %d", i);
        gb_graph_destroy(a);
        gb_graph_destroy(b);
        tried++;
    }
    cr_expect_gt(tried, GRAPHS / 2);
}

Test(content, the_fpmath_mode_counts)
{
    plan p = random_plan();
    gb_graph *a = build(&p, 0, 1, false), *b = build(&p, 0, 1, false);
    b->fpmath_mode = GB_FPMATH_BF16;
    cr_expect_not(equal(a, b));
    gb_graph_destroy(a);
    gb_graph_destroy(b);
}

Test(content, of_graphs_that_are_being_built)
{
    for (int i = 0; i < GRAPHS; i++) {
        plan p = random_twins(), q = changed(&p);
        gb_graph *a = build(&p, 0, 1, false), *b = build_open(&p, 50, 3, true),
                 *c = build_open(&q, 0, 1, true);
        uint64_t of_a, of_b, of_c;
        uint8_t same, other;
        cr_assert_eq(gb_graph_get_hash(a, &of_a), GB_SUCCESS);
        cr_assert_eq(gb_graph_get_hash(b, &of_b), GB_SUCCESS);
        cr_assert_eq(gb_graph_get_hash(c, &of_c), GB_SUCCESS);
        cr_assert_eq(gb_graph_is_equal(a, b, &same), GB_SUCCESS);
        cr_assert_eq(gb_graph_is_equal(b, c, &other), GB_SUCCESS);
        cr_assert(same);
        cr_assert_eq(of_a, of_b);
        cr_assert_eq(other, of_b == of_c);
        gb_graph_destroy(a);
        gb_graph_destroy(b);
        gb_graph_destroy(c);
    }
    cr_expect_eq(gb_graph_get_hash(NULL, &(uint64_t){0}), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_is_equal(NULL, NULL, &(uint8_t){0}), GB_INVALID_ARGUMENTS);
}

/* Ops differ by kind, attributes, descriptions and by which of their tensors are the same one. */
Test(content, of_ops)
{
    plan p = random_plan();
    gb_op *ops[5];
    uint64_t hashes[5];
    for (int i = 0; i < 5; i++) {
        plan own = p;
        own.size += i == 3;
        cr_assert_eq(gb_op_create(&ops[i], (size_t)i, i == 4 ? GB_OP_ADD : GB_OP_MULTIPLY, ""),
                GB_SUCCESS);
        add(ops[i], false, &own, 10 * (size_t)i);
        add(ops[i], false, &own, 10 * (size_t)i + (i != 2));
        add(ops[i], true, &own, 10 * (size_t)i + 2);
        cr_assert_eq(gb_op_get_hash(ops[i], &hashes[i]), GB_SUCCESS);
    }
    for (int i = 1; i < 5; i++) {
        uint8_t equal;
        cr_assert_eq(gb_op_is_equal(ops[0], ops[i], &equal), GB_SUCCESS);
        cr_expect_eq(equal, i == 1, "op %d", i);
        cr_expect_eq(hashes[0] == hashes[i], i == 1, "op %d", i);
    }
    for (int i = 0; i < 5; i++)
        gb_op_destroy(ops[i]);
}

/* 3000 ops that cannot be told apart take no longer than others. */
Test(content, many_equal_ops)
{
    gb_graph *graph;
    gb_content content;
    plan p = random_plan();
    cr_assert_eq(gb_graph_create(&graph, GB_ENGINE_CPU), GB_SUCCESS);
    for (size_t i = 0; i < 3000; i++) {
        gb_op *op;
        cr_assert_eq(gb_op_create(&op, i, GB_OP_ABS, ""), GB_SUCCESS);
        add(op, false, &p, 2 * i);
        add(op, true, &p, 2 * i + 1);
        cr_assert_eq(gb_graph_add_op(graph, op), GB_SUCCESS);
        gb_op_destroy(op);
    }
    cr_assert_eq(gb_graph_finalize(graph), GB_SUCCESS);
    cr_assert_eq(gb_content_create(graph, &content), GB_SUCCESS);
    cr_expect_eq(content.n_ops, 3000);
    cr_expect_eq(content.n_values, 6000);
    for (uint32_t i = 0; i < content.n_values; i++)
        cr_assert_eq(gb_content_number(&content, content.values[i]), i);
    gb_content_clear(&content);
    gb_graph_destroy(graph);
}
