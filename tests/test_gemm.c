/* MatMul on the CPU: every instruction set, all tails, types, ranks, strides and thread counts. */
#include "linear_case.h"
#include <stdio.h>

static const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};

static gb_logical_tensor tensor_of(size_t id, gb_data_type type, int ndims, const int64_t *dims)
{
    gb_logical_tensor tensor;
    check_status(gb_logical_tensor_init_with_dims(
            &tensor, id, type, ndims, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    return tensor;
}

/* Geometry of a product: operands as vectors or matrices, with batch dims of their own. */
typedef struct geometry {
    int64_t m, n, k;
    bool a_vector, b_vector, transpose_a, transpose_b, has_bias, constant;
    int n_batch, a_missing, b_missing; /* batch dims that an operand leaves out */
    int64_t batch[4];
    bool a_broadcast[4], b_broadcast[4];
    gb_data_type type, dst_type;
} geometry;

static gb_logical_tensor operand_tensor(const geometry *g, bool is_a)
{
    int64_t dims[8];
    int n = 0, missing = is_a ? g->a_missing : g->b_missing;
    bool vector = is_a ? g->a_vector : g->b_vector;
    bool transpose = is_a ? g->transpose_a : g->transpose_b;
    int64_t rows = is_a ? g->m : g->k, cols = is_a ? g->k : g->n;
    for (int d = missing; d < g->n_batch && !vector; d++)
        dims[n++] = (is_a ? g->a_broadcast : g->b_broadcast)[d] ? 1 : g->batch[d];
    if (vector)
        dims[n++] = g->k;
    else
        dims[n++] = transpose ? cols : rows, dims[n++] = transpose ? rows : cols;
    return tensor_of(is_a ? 0 : 1, g->type, n, dims);
}

static gb_logical_tensor result_tensor(const geometry *g)
{
    int64_t dims[8];
    int n = 0;
    for (int d = 0; d < g->n_batch; d++)
        dims[n++] = g->batch[d];
    if (!g->a_vector)
        dims[n++] = g->m;
    if (!g->b_vector)
        dims[n++] = g->n;
    return tensor_of(100, g->dst_type, n, dims);
}

static linear_case make_case(const geometry *g, uint64_t *state, bool strided)
{
    linear_case c = {.n_inputs = g->has_bias ? 3 : 2};
    c.inputs[0] = operand_tensor(g, true);
    c.inputs[1] = operand_tensor(g, false);
    c.output = result_tensor(g);
    int64_t last = c.output.ndims ? c.output.dims[c.output.ndims - 1] : 1;
    c.inputs[2] = tensor_of(2, g->type, 1, &last);
    if (g->constant)
        c.inputs[1].property = GB_PROPERTY_CONSTANT;
    check_status(gb_op_create(&c.op, 1, GB_OP_MATMUL, "matmul"));
    uint8_t flags[] = {g->transpose_a, g->transpose_b};
    check_status(gb_op_set_attr_bool(c.op, GB_ATTR_TRANSPOSE_A, 1, &flags[0]));
    check_status(gb_op_set_attr_bool(c.op, GB_ATTR_TRANSPOSE_B, 1, &flags[1]));
    for (int i = 0; i < c.n_inputs; i++) {
        if (strided)
            random_strides(state, &c.inputs[i]);
        c.data[i] = random_data(state, &c.inputs[i]);
        check_status(gb_op_add_input(c.op, &c.inputs[i]));
    }
    if (strided)
        random_strides(state, &c.output);
    check_status(gb_op_add_output(c.op, &c.output));
    return c;
}

/* Position in an operand of batch position `batch` and matrix element (row, col). */
static double operand_at(const geometry *g, const linear_case *c, bool is_a, const int64_t *batch,
        int64_t row, int64_t col)
{
    const gb_logical_tensor *tensor = &c->inputs[is_a ? 0 : 1];
    int64_t position[GB_MAX_NDIMS] = {0};
    int n = 0, missing = is_a ? g->a_missing : g->b_missing;
    bool transpose = is_a ? g->transpose_a : g->transpose_b;
    if (is_a ? g->a_vector : g->b_vector) {
        position[0] = is_a ? col : row;
        return element_at(tensor, c->data[is_a ? 0 : 1], position);
    }
    for (int d = missing; d < g->n_batch; d++)
        position[n++] = (is_a ? g->a_broadcast : g->b_broadcast)[d] ? 0 : batch[d];
    position[n++] = transpose ? col : row;
    position[n++] = transpose ? row : col;
    return element_at(tensor, c->data[is_a ? 0 : 1], position);
}

static expected expected_at(const geometry *g, const linear_case *c, const int64_t *position)
{
    int n = g->n_batch;
    int64_t row = g->a_vector ? 0 : position[n++], col = g->b_vector ? 0 : position[n++];
    expected e = {.terms = g->k + 1};
    for (int64_t k = 0; k < g->k; k++) {
        double product = operand_at(g, c, true, position, row, k) *
                         operand_at(g, c, false, position, k, col);
        e.value += product;
        e.magnitude += fabs(product);
    }
    if (g->has_bias) {
        int64_t last = c->output.ndims ? position[c->output.ndims - 1] : 0;
        double bias = element_at(&c->inputs[2], c->data[2], &last);
        e.value += bias;
        e.magnitude += fabs(bias);
    }
    return e;
}

static void describe(const geometry *g, gb_isa isa, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s %s->%s m %d n %d k %d%s%s%s%s%s%s batch %d", gb_isa_name(isa),
            gb_data_type_name(g->type), gb_data_type_name(g->dst_type), (int)g->m, (int)g->n,
            (int)g->k, g->transpose_a ? " tA" : "", g->transpose_b ? " tB" : "",
            g->a_vector ? " vA" : "", g->b_vector ? " vB" : "", g->has_bias ? " bias" : "",
            g->constant ? " constant" : "", g->n_batch);
}

/* Right values on one thread, the same bits on two, nothing written into the gaps. */
static void check_geometry(const geometry *g, gb_isa isa, uint64_t *state, bool strided)
{
    linear_case c = make_case(g, state, strided);
    char text[160], *one = run_case(&c, 1, 0x55), *two = run_case(&c, 2, 0x55);
    size_t bytes = tensor_bytes(&c.output);
    describe(g, isa, text, sizeof text);
    cr_assert_eq(memcmp(one, two, bytes), 0, "%s: one and two threads differ", text);
    char *written = calloc(bytes + 1, 1);
    size_t size = gb_data_type_bytes(c.output.data_type, 1);
    for (int64_t i = 0; i < gb_tensor_count(&c.output); i++) {
        int64_t position[GB_MAX_NDIMS] = {0};
        position_of(&c.output, i, position);
        expected e = expected_at(g, &c, position);
        double got = element_at(&c.output, one, position);
        cr_assert(within_bound(c.output.data_type, got, e), "%s: element %d: %.9g, expected %.9g",
                text, (int)i, got, e.value);
        memset(written + (size_t)offset_at(&c.output, position) * size, 1, size);
    }
    for (size_t i = 0; i < bytes; i++)
        cr_assert(written[i] || one[i] == 0x55, "%s: gap byte %d written", text, (int)i);
    free(written);
    free(one);
    free(two);
    free_case(&c);
}

static geometry plain(int64_t m, int64_t n, int64_t k)
{
    return (geometry){.m = m, .n = n, .k = k, .type = GB_F32, .dst_type = GB_F32};
}

ISA_TEST(gemm, tails)
{
    uint64_t state = 1;
    for (int64_t m = 1; m <= 29; m++)
        for (int64_t n = 1; n <= 65; n++) {
            geometry g = plain(m, n, 1 + (m * 7 + n) % 23);
            g.constant = (m + n) % 3 == 0;
            check_geometry(&g, isa, &state, false);
        }
}

ISA_TEST(gemm, depth)
{
    uint64_t state = 2;
    for (int64_t k = 0; k <= 390; k += k < 40 || k > 380 ? 1 : 17) {
        geometry g = plain(17, 35, k);
        g.has_bias = k % 2;
        g.transpose_a = k % 3 == 1;
        g.transpose_b = k % 5 == 1;
        g.constant = k % 7 == 0;
        check_geometry(&g, isa, &state, false);
    }
}

ISA_TEST(gemm, large)
{
    static const int64_t sizes[][3] = {{300, 300, 1030}, {1030, 33, 70}, {30, 1100, 800},
            {64, 64, 1024}, {1, 3000, 500}, {3000, 1, 500}, {2, 2, 5000}, {1, 1, 10000}};
    uint64_t state = 3;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        geometry g = plain(sizes[i][0], sizes[i][1], sizes[i][2]);
        g.transpose_b = i % 2;
        g.has_bias = i % 3 == 0;
        check_geometry(&g, isa, &state, false);
    }
}

/* Where the machine multiplies bf16 as such: several tiles, panels and blocks of K, each with what is
 * left at its end. */
ISA_TEST(gemm, bf16)
{
    static const int64_t sizes[][3] = {{33, 65, 389}, {70, 100, 1030}, {49, 33, 31}, {128, 96, 512},
            {17, 1, 77}, {5, 300, 1}, {16, 32, 2}, {40, 70, 2100}};
    uint64_t state = 11;
    for (int i = 0; i < 48; i++) {
        const int64_t *size = sizes[i % 8];
        geometry g = plain(size[0], size[1], size[2]);
        g.type = GB_BF16;
        g.dst_type = i % 3 ? GB_BF16 : GB_F32;
        g.transpose_a = i / 8 % 2;
        g.transpose_b = i / 16 % 2;
        g.constant = i / 8 % 3 == 0;
        g.has_bias = i % 5 == 0;
        g.n_batch = i % 4 == 3;
        g.batch[0] = 2;
        check_geometry(&g, isa, &state, i % 7 == 3);
    }
}

ISA_TEST(gemm, empty)
{
    uint64_t state = 4;
    for (int i = 0; i < 8; i++) {
        geometry g = plain(i & 1 ? 0 : 3, i & 2 ? 0 : 5, i & 4 ? 0 : 7);
        g.has_bias = i & 4;
        check_geometry(&g, isa, &state, false);
    }
}

static geometry random_geometry(uint64_t *state)
{
    geometry g = plain(
            1 + random_below(state, 40), 1 + random_below(state, 70), random_below(state, 60));
    g.type = types[random_below(state, 3)];
    g.dst_type = random_below(state, 2) ? g.type : GB_F32;
    g.transpose_a = random_below(state, 2);
    g.transpose_b = random_below(state, 2);
    g.a_vector = random_below(state, 6) == 0;
    g.b_vector = random_below(state, 6) == 0;
    g.has_bias = random_below(state, 2);
    g.constant = random_below(state, 2);
    g.m = g.a_vector ? 1 : g.m;
    g.n = g.b_vector ? 1 : g.n;
    g.n_batch = g.a_vector && g.b_vector ? 0 : (int)random_below(state, 4);
    for (int d = 0; d < g.n_batch; d++) {
        int64_t who = random_below(state, 4);
        g.batch[d] = 1 + random_below(state, 4);
        g.a_broadcast[d] = who == 1 && !g.b_vector;
        g.b_broadcast[d] = who == 2 && !g.a_vector;
    }
    while (g.a_missing < g.n_batch && g.a_broadcast[g.a_missing] && random_below(state, 2))
        g.a_missing++;
    while (g.b_missing < g.n_batch && g.b_broadcast[g.b_missing] && random_below(state, 2))
        g.b_missing++;
    if (g.a_vector)
        g.a_missing = g.n_batch;
    if (g.b_vector)
        g.b_missing = g.n_batch;
    return g;
}

/* Constants of 16 bits that do not stay in L2 are kept as they are, and widened by the tiles where
 * that pays: the results have the bits of a product that copies its right operand as f32. */
ISA_TEST(gemm, constant_halves)
{
    static const int64_t rows[] = {2, 7, 13, 29, 40, 150}, depths[] = {1, 70, 700};
    uint64_t state = 6;
    setenv("GB_CACHES", "32768:4096:0", 1); /* has not been asked for */
    for (int i = 0; i < 2 * 6 * 3 * 2; i++) {
        geometry g = plain(rows[i / 2 % 6], 33 + 40 * (i % 3), depths[i / 12 % 3]);
        g.type = i % 2 ? GB_BF16 : GB_F16;
        g.transpose_b = i >= 36;
        uint64_t same = state;
        char text[160];
        linear_case copied = make_case(&g, &state, i % 5 == 0);
        g.constant = true;
        linear_case kept = make_case(&g, &same, i % 5 == 0);
        char *wanted = run_case(&copied, 1, 0), *one = run_case(&kept, 1, 0);
        char *two = run_case(&kept, 2, 0);
        size_t bytes = tensor_bytes(&kept.output);
        describe(&g, isa, text, sizeof text);
        /* Tiles of AMX multiply bf16 as it is, and split K elsewhere where the right operand is constant. */
        if (isa != GB_ISA_AMX || g.type != GB_BF16)
            cr_assert_eq(memcmp(wanted, one, bytes), 0, "%s: not as copied", text);
        cr_assert_eq(memcmp(one, two, bytes), 0, "%s: one and two threads differ", text);
        free(wanted);
        free(one);
        free(two);
        free_case(&copied);
        free_case(&kept);
    }
}

ISA_TEST(gemm, random)
{
    uint64_t state = 5;
    for (int i = 0; i < 1500; i++) {
        geometry g = random_geometry(&state);
        check_geometry(&g, isa, &state, true);
    }
}

/* 65,536 equal products: in one sum that takes all of them roundings go the same way for long, which adds up
 * to a relative error of 1.4e-4. */
ISA_TEST(gemm, equal_products)
{
    uint64_t state = 7;
    for (int i = 0; i < 8; i++) {
        geometry g = plain(i % 2 ? 1 : 3, 40, 65536);
        g.a_vector = i % 2;
        g.m = g.a_vector ? 1 : g.m;
        g.transpose_b = i / 2 % 2;
        g.constant = i / 4;
        char text[160];
        linear_case c = make_case(&g, &state, false);
        const float a = 0.1F, b = 0.3F + 0.071F * (float)(i + 1);
        for (int64_t k = 0; k < g.m * g.k; k++)
            ((float *)c.data[0])[k] = a;
        for (int64_t k = 0; k < g.n * g.k; k++)
            ((float *)c.data[1])[k] = b;
        float *results = (float *)(void *)run_case(&c, 1, 0);
        const double wanted = 65536 * (double)a * (double)b;
        describe(&g, isa, text, sizeof text);
        for (int64_t n = 0; n < g.m * g.n; n++)
            cr_assert_leq(fabs((double)results[n] - wanted), 4e-5 * wanted, "%s: %.9g, not %.9g",
                    text, (double)results[n], wanted);
        free(results);
        free_case(&c);
    }
}
