/* The power of the bounds on chains of ops: honest implementations, whatever they keep, round or
 * reorder, lie within; the same code with a small fault planted does not. */
#include "ref_case.h"

/* Rounds to a significand of `bits` bits, subnormals of f16 included; 24 bits are f32. */
static float rounded(float x, int bits)
{
    int exponent;
    if (x == 0 || bits >= 24)
        return x;
    frexpf(x, &exponent);
    int last = bits == 11 && exponent < -13 ? -24 : exponent - bits;
    return ldexpf(rintf(ldexpf(x, -last)), last);
}

static int bits_of(gb_data_type type)
{
    return type == GB_BF16 ? 8 : type == GB_F16 ? 11 : 24;
}

/* Long sums ------------------------------------------------------------------------------------ */

enum { TERMS = 20000, LANES = 16 };

typedef enum order { FORWARDS, IN_LANES, IN_BLOCKS, ORDERS } order;

static float add_up(const float *terms, order how)
{
    float lanes[LANES] = {0}, total = 0;
    for (int i = 0; i < TERMS; i++) {
        int lane = how == FORWARDS ? 0 : how == IN_LANES ? i % LANES : i / (TERMS / LANES);
        lanes[lane] += terms[i];
    }
    for (int lane = 0; lane < LANES; lane++)
        total += lanes[lane];
    return total;
}

typedef enum data { RANDOM, RAMP, POSITIVE, WAVES, DATA } data;

static double *make_data(data kind, uint64_t seed)
{
    double *x = ref_case_randoms(seed, TERMS, 24);
    for (int i = 0; i < TERMS; i++) {
        if (kind == RAMP)
            x[i] = (double)(float)((i - TERMS / 2 + 0.5) / (TERMS / 2));
        if (kind == POSITIVE)
            x[i] = fabs(x[i]);
        if (kind == WAVES)
            x[i] = (double)(float)sin(0.001 * i);
    }
    return x;
}

/* Errors that any order makes, over those of the bound; the largest is kept in *worst. */
static void check_orders(const gb_ref_tensor *reference, const float *terms, double *worst)
{
    for (order how = 0; how < ORDERS; how++) {
        double error = fabs((double)add_up(terms, how) - reference->value[0]);
        cr_expect_leq(error, reference->bound[0], "order %d", (int)how);
        *worst = fmax(*worst, error / reference->bound[0]);
    }
}

Test(ref_sums, any_order_of_any_data_is_within_and_a_lost_term_is_not)
{
    for (int i = 0; i < DATA * 2; i++) {
        data kind = (data)(i / 2);
        double *x = make_data(kind, 5), *y = ref_case_randoms(6, TERMS, 24), worst = 0;
        float terms[TERMS];
        for (int k = 0; k < TERMS; k++)
            terms[k] = i % 2 ? (float)x[k] : (float)x[k] * (float)y[k];
        ref_case c = ref_case_begin(i % 2 ? GB_OP_REDUCE_SUM : GB_OP_MATMUL);
        if (i % 2)
            ref_case_ints(&c, GB_ATTR_AXES, LIST(0));
        ref_case_input(&c, GB_F32, LIST(TERMS), x);
        if (i % 2 == 0)
            ref_case_input(&c, GB_F32, LIST(TERMS), y);
        ref_case_output(&c, GB_F32, 0, NULL);
        const gb_ref_tensor *reference = ref_case_run(&c);
        check_orders(reference, terms, &worst);
        int lost = 0;
        for (int k = 0; k < TERMS; k += 100)
            lost += fabs((double)terms[k]) > reference->bound[0] * (1 + worst);
        int wanted = kind == RANDOM ? 160 : 60; /* a ramp has large partial sums */
        cr_expect_geq(lost, wanted, "data %d: %d of 200, bound %g", i, lost, reference->bound[0]);
        ref_case_end(&c);
        free(x);
        free(y);
    }
}

/* Chains of ops -------------------------------------------------------------------------------- */

typedef struct chain {
    gb_graph *graph;
    gb_ref_store *store;
    size_t n_ops, n_tensors, ids[16];
    gb_logical_tensor tensors[32];
} chain;

static chain chain_begin(void)
{
    chain c = {0};
    cr_assert_eq(gb_graph_create(&c.graph, GB_ENGINE_CPU), GB_SUCCESS);
    cr_assert_eq(gb_ref_store_create(&c.store), GB_SUCCESS);
    return c;
}

static size_t chain_tensor(chain *c, gb_data_type type, int ndims, const int64_t *dims)
{
    gb_logical_tensor_init_with_dims(&c->tensors[c->n_tensors], c->n_tensors, type, ndims, dims,
            GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE);
    return c->n_tensors++;
}

static size_t chain_input(
        chain *c, gb_data_type type, int ndims, const int64_t *dims, const float *values)
{
    size_t id = chain_tensor(c, type, ndims, dims);
    gb_ref_tensor tensor = {.tensor = c->tensors[id], .count = ref_case_count(ndims, dims)};
    tensor.value = malloc((size_t)tensor.count * sizeof(double));
    for (int64_t i = 0; i < tensor.count; i++)
        tensor.value[i] = (double)values[i];
    cr_assert_eq(gb_ref_store_put(c->store, &tensor), GB_SUCCESS);
    return id;
}

/* Adds op(inputs) -> output; negative inputs are left out. Attributes are set by the caller. */
static gb_op *chain_op(chain *c, gb_op_kind kind, int a, int b, size_t output)
{
    gb_op *op;
    cr_assert_eq(gb_op_create(&op, c->n_ops, kind, "op"), GB_SUCCESS);
    c->ids[c->n_ops] = c->n_ops;
    c->n_ops++;
    cr_assert_eq(gb_op_add_input(op, &c->tensors[a]), GB_SUCCESS);
    if (b >= 0)
        cr_assert_eq(gb_op_add_input(op, &c->tensors[b]), GB_SUCCESS);
    cr_assert_eq(gb_op_add_output(op, &c->tensors[output]), GB_SUCCESS);
    return op;
}

static void chain_add(chain *c, gb_op *op)
{
    cr_assert_eq(gb_graph_add_op(c->graph, op), GB_SUCCESS, "%s", gb_last_error());
    gb_op_destroy(op);
}

static const gb_ref_tensor *chain_run(chain *c, size_t output)
{
    cr_assert_eq(gb_graph_finalize(c->graph), GB_SUCCESS, "%s", gb_last_error());
    cr_assert_eq(gb_ref_execute(c->graph, c->n_ops, c->ids, c->store), GB_SUCCESS, "%s",
            gb_last_error());
    return gb_ref_store_get(c->store, output);
}

static void chain_end(chain *c)
{
    gb_graph_destroy(c->graph);
    gb_ref_store_destroy(c->store);
}

static float *random_floats(uint64_t seed, int64_t count, int bits, float scale)
{
    double *values = ref_case_randoms(seed, count, 24);
    float *floats = malloc((size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; i++)
        floats[i] = rounded((float)values[i] * scale, bits);
    free(values);
    return floats;
}

/* Attention ------------------------------------------------------------------------------------ */

enum { QUERIES = 24, KEYS = 200, SIZE = 32, BLOCK = 16 };
static const float logit_scale = 0.25F;

typedef struct attention {
    gb_data_type type;
    float *q, *k, *v; /* Q x D, K x D, K x D */
} attention;

typedef enum variant {
    ROUNDED,          /* every intermediate in the type of its tensor */
    ONLINE,           /* blocks of keys with a running maximum, nothing rounded */
    ONLINE_ROUNDED_P, /* the same, exp(x - running maximum) rounded to the type */
    HONEST,
    LOST_KEY = HONEST,
    LOST_RESCALE, /* of the sum, once */
    STALE_MAX,    /* the output keeps the scale of the block before, once */
    COARSE_P,     /* probabilities in bf16 where the graph wants more, in f8 where it wants bf16 */
    VARIANTS
} variant;

static float logit(const attention *a, int query, int key, int bits)
{
    float sum = 0;
    for (int d = 0; d < SIZE; d++)
        sum += a->q[query * SIZE + d] * a->k[key * SIZE + d];
    return rounded(rounded(sum, bits) * logit_scale, bits);
}

static void attend_rounded(const attention *a, int query, int bits, float *out)
{
    float p[KEYS], max = -INFINITY, sum = 0;
    for (int key = 0; key < KEYS; key++) {
        p[key] = logit(a, query, key, bits);
        max = fmaxf(max, p[key]);
    }
    for (int key = 0; key < KEYS; key++)
        sum += p[key] = expf(p[key] - max);
    for (int key = 0; key < KEYS; key++)
        for (int d = 0; d < SIZE; d++)
            out[d] += rounded(p[key] / sum, bits) * a->v[key * SIZE + d];
}

/* One pass over blocks of keys; base 2, the factors folded into one. */
static void attend_online(const attention *a, int query, variant how, float *out)
{
    int bits = how == ONLINE ? 24 : bits_of(a->type);
    float slip = a->type == GB_F32 ? 0.02F : 0.2F;
    if (how == COARSE_P)
        bits = bits > 8 ? 8 : 4;
    int keys = how == LOST_KEY ? KEYS - 1 : KEYS, faulty = KEYS / BLOCK / 2;
    float max = -INFINITY, sum = 0;
    for (int first = 0; first < keys; first += BLOCK) {
        float x[BLOCK], peak = max;
        int n = keys - first < BLOCK ? keys - first : BLOCK;
        for (int i = 0; i < n; i++) {
            x[i] = logit(a, query, first + i, 24) * 1.44269504F;
            peak = fmaxf(peak, x[i]);
        }
        float rescale = exp2f(max - peak);
        bool fault = first / BLOCK == faulty;
        max = peak;
        sum *= how == LOST_RESCALE && fault ? 1 - slip : rescale;
        for (int d = 0; d < SIZE; d++)
            out[d] *= how == STALE_MAX && fault ? (1 + slip) * rescale : rescale;
        for (int i = 0; i < n; i++) {
            float p = exp2f(x[i] - max);
            sum += p;
            for (int d = 0; d < SIZE; d++)
                out[d] += rounded(p, bits) * a->v[(first + i) * SIZE + d];
        }
    }
    for (int d = 0; d < SIZE; d++)
        out[d] *= 1 / sum;
}

static const gb_ref_tensor *run_attention(const attention *a, chain *c)
{
    *c = chain_begin();
    size_t q = chain_input(c, a->type, LIST(QUERIES, SIZE), a->q);
    size_t k = chain_input(c, a->type, LIST(KEYS, SIZE), a->k);
    size_t scale = chain_input(c, a->type, LIST(1), &logit_scale);
    size_t v = chain_input(c, a->type, LIST(KEYS, SIZE), a->v);
    size_t dots = chain_tensor(c, a->type, LIST(QUERIES, KEYS));
    size_t logits = chain_tensor(c, a->type, LIST(QUERIES, KEYS));
    size_t p = chain_tensor(c, a->type, LIST(QUERIES, KEYS));
    size_t out = chain_tensor(c, a->type, LIST(QUERIES, SIZE));
    gb_op *op = chain_op(c, GB_OP_MATMUL, (int)q, (int)k, dots);
    gb_op_set_attr_bool(op, GB_ATTR_TRANSPOSE_B, 1, &(uint8_t){1});
    chain_add(c, op);
    chain_add(c, chain_op(c, GB_OP_MULTIPLY, (int)dots, (int)scale, logits));
    op = chain_op(c, GB_OP_SOFTMAX, (int)logits, -1, p);
    gb_op_set_attr_s64(op, GB_ATTR_AXIS, 1, &(int64_t){-1});
    chain_add(c, op);
    chain_add(c, chain_op(c, GB_OP_MATMUL, (int)p, (int)v, out));
    return chain_run(c, out);
}

/* Rows with an element outside its bound. */
static int rows_outside(const attention *a, const gb_ref_tensor *reference, variant how)
{
    int rows = 0;
    for (int query = 0; query < QUERIES; query++) {
        float out[SIZE] = {0};
        if (how == ROUNDED)
            attend_rounded(a, query, bits_of(a->type), out);
        else
            attend_online(a, query, how, out);
        bool outside = false;
        for (int d = 0; d < SIZE; d++) {
            int64_t at = query * SIZE + d;
            double got = (double)rounded(out[d], bits_of(a->type));
            outside |= fabs(got - reference->value[at]) > reference->bound[at];
        }
        rows += outside;
    }
    return rows;
}

Test(ref_chains, attention_in_one_pass_is_within_and_its_faults_are_not)
{
    static const gb_data_type types[] = {GB_F32, GB_F16, GB_BF16};
    /* Of 24 rows with each fault, those that must be found. */
    static const int least[3][VARIANTS] = {
            {0, 0, 0, 22, 24, 24, 24}, {0, 0, 0, 14, 22, 22, 0}, {0, 0, 0, 4, 18, 20, 1}};
    for (int t = 0; t < 3; t++) {
        int bits = bits_of(types[t]);
        attention a = {types[t], random_floats(1, QUERIES * SIZE, bits, 2),
                random_floats(2, KEYS * SIZE, bits, 2), random_floats(3, KEYS * SIZE, bits, 1)};
        chain c;
        const gb_ref_tensor *reference = run_attention(&a, &c);
        for (variant how = 0; how < VARIANTS; how++) {
            int outside = rows_outside(&a, reference, how);
            if (how < HONEST)
                cr_expect_eq(outside, 0, "type %d, variant %d: %d rows", t, (int)how, outside);
            else
                cr_expect_geq(outside, least[t][how], "type %d, variant %d: %d rows", t, (int)how,
                        outside);
        }
        chain_end(&c);
        free(a.q);
        free(a.k);
        free(a.v);
    }
}

/* Quantised products --------------------------------------------------------------------------- */

enum { ROWS = 8, DEPTH = 512, COLUMNS = 16, GROUP = 32 };

typedef struct product {
    float a[ROWS * DEPTH], b[DEPTH * COLUMNS]; /* u8, s8 or s4 steps */
    float scales[DEPTH / GROUP * COLUMNS];     /* of b */
    int compensated;                           /* terms of the sum of b that is subtracted */
} product;

static const float a_scale = 0.0371F, b_scale = 0.00913F;
enum { A_ZERO = 117 };

static product make_product(uint64_t seed, int b_range)
{
    product p = {.compensated = DEPTH};
    float *a = random_floats(seed, ROWS * DEPTH, 24, 100);
    float *b = random_floats(seed + 1, DEPTH * COLUMNS, 24, (float)b_range);
    float *scales = random_floats(seed + 2, DEPTH / GROUP * COLUMNS, 11, 0.05F);
    for (int i = 0; i < ROWS * DEPTH; i++)
        p.a[i] = rintf(A_ZERO + a[i]);
    for (int i = 0; i < DEPTH * COLUMNS; i++)
        p.b[i] = rintf(b[i]);
    for (int i = 0; i < DEPTH / GROUP * COLUMNS; i++)
        p.scales[i] = rounded(0.06F + scales[i], 11);
    free(a);
    free(b);
    free(scales);
    return p;
}

static void set_quantization(gb_op *op, float scale, int64_t zero)
{
    gb_op_set_attr_f32(op, GB_ATTR_SCALES, 1, &scale);
    gb_op_set_attr_s64(op, GB_ATTR_ZPS, 1, &zero);
}

/* Dequantize x 2, through bf16 if `narrow`, MatMul. */
static const gb_ref_tensor *run_integer_product(const product *p, bool narrow, chain *c)
{
    *c = chain_begin();
    size_t a = chain_input(c, GB_U8, LIST(ROWS, DEPTH), p->a);
    size_t b = chain_input(c, GB_S8, LIST(DEPTH, COLUMNS), p->b);
    size_t x = chain_tensor(c, GB_F32, LIST(ROWS, DEPTH));
    size_t w = chain_tensor(c, GB_F32, LIST(DEPTH, COLUMNS));
    gb_op *op = chain_op(c, GB_OP_DEQUANTIZE, (int)a, -1, x);
    set_quantization(op, a_scale, A_ZERO);
    chain_add(c, op);
    op = chain_op(c, GB_OP_DEQUANTIZE, (int)b, -1, w);
    set_quantization(op, b_scale, 0);
    chain_add(c, op);
    if (narrow) {
        size_t x16 = chain_tensor(c, GB_BF16, LIST(ROWS, DEPTH));
        size_t w16 = chain_tensor(c, GB_BF16, LIST(DEPTH, COLUMNS));
        chain_add(c, chain_op(c, GB_OP_TYPE_CAST, (int)x, -1, x16));
        chain_add(c, chain_op(c, GB_OP_TYPE_CAST, (int)w, -1, w16));
        x = x16;
        w = w16;
    }
    size_t out = chain_tensor(c, narrow ? GB_BF16 : GB_F32, LIST(ROWS, COLUMNS));
    chain_add(c, chain_op(c, GB_OP_MATMUL, (int)x, (int)w, out));
    return chain_run(c, out);
}

typedef float (*product_fn)(const product *p, int row, int column);

/* The products of integers, and the zero point of a taken out by the sum of b. */
static float multiply_integers(const product *p, int row, int column)
{
    int32_t sum = 0, columns = 0;
    for (int k = 0; k < DEPTH; k++)
        sum += (int32_t)p->a[row * DEPTH + k] * (int32_t)p->b[k * COLUMNS + column];
    for (int k = 0; k < p->compensated; k++)
        columns += (int32_t)p->b[k * COLUMNS + column];
    return (float)(sum - A_ZERO * columns) * (a_scale * b_scale);
}

static float multiply_floats(const product *p, int row, int column)
{
    float sum = 0;
    for (int k = DEPTH; k-- > 0;)
        sum += (p->a[row * DEPTH + k] - A_ZERO) * a_scale * (p->b[k * COLUMNS + column] * b_scale);
    return sum;
}

static float multiply_narrow(const product *p, int row, int column)
{
    float sum = 0;
    for (int k = 0; k < DEPTH; k++)
        sum += rounded((p->a[row * DEPTH + k] - A_ZERO) * a_scale, 8) *
               rounded(p->b[k * COLUMNS + column] * b_scale, 8);
    return sum;
}

/* Pairs of products are added in 16 bits, as an instruction that saturates does. */
static float multiply_saturating(const product *p, int row, int column)
{
    int32_t sum = 0, columns = 0;
    for (int k = 0; k < DEPTH; k += 2) {
        int32_t pair = 0;
        for (int i = k; i < k + 2; i++) {
            pair += (int32_t)p->a[row * DEPTH + i] * (int32_t)p->b[i * COLUMNS + column];
            columns += (int32_t)p->b[i * COLUMNS + column];
        }
        sum += pair > INT16_MAX ? INT16_MAX : pair < INT16_MIN ? INT16_MIN : pair;
    }
    return (float)(sum - A_ZERO * columns) * (a_scale * b_scale);
}

static int products_outside(
        const product *p, const gb_ref_tensor *reference, product_fn multiply, int bits)
{
    int outside = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        double got = (double)rounded(multiply(p, i / COLUMNS, i % COLUMNS), bits);
        outside += fabs(got - reference->value[i]) > reference->bound[i];
    }
    return outside;
}

Test(ref_chains, integer_products_are_within_and_their_faults_are_not)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        product p = make_product(11, 127);
        int bits = narrow ? 8 : 24;
        chain c;
        const gb_ref_tensor *reference = run_integer_product(&p, narrow, &c);
        cr_expect_eq(products_outside(&p, reference, multiply_integers, bits), 0);
        cr_expect_eq(products_outside(&p, reference, multiply_floats, bits), 0);
        if (narrow)
            cr_expect_eq(products_outside(&p, reference, multiply_narrow, bits), 0);
        cr_expect_gt(products_outside(&p, reference, multiply_saturating, bits), 100);
        p.compensated = DEPTH - 1;
        int found = products_outside(&p, reference, multiply_integers, bits);
        cr_expect_gt(found, narrow ? 40 : 110, "%d of 128", found);
        chain_end(&c);
    }
}

/* Compressed weights --------------------------------------------------------------------------- */

/* DynamicDequantize of s4 weights by groups with a scale each, MatMul with f32. */
static const gb_ref_tensor *run_compressed(const product *p, chain *c)
{
    *c = chain_begin();
    size_t a = chain_input(c, GB_F32, LIST(ROWS, DEPTH), p->a);
    size_t b = chain_input(c, GB_S4, LIST(DEPTH, COLUMNS), p->b);
    size_t scales = chain_input(c, GB_F32, LIST(DEPTH / GROUP, COLUMNS), p->scales);
    size_t w = chain_tensor(c, GB_F32, LIST(DEPTH, COLUMNS));
    size_t out = chain_tensor(c, GB_F32, LIST(ROWS, COLUMNS));
    gb_op *op = chain_op(c, GB_OP_DYNAMIC_DEQUANTIZE, (int)b, (int)scales, w);
    gb_op_set_attr_str(op, GB_ATTR_QTYPE, "per_group", strlen("per_group"));
    gb_op_set_attr_s64(op, GB_ATTR_GROUP_SHAPE, 2, (const int64_t[]){GROUP, 1});
    chain_add(c, op);
    chain_add(c, chain_op(c, GB_OP_MATMUL, (int)a, (int)w, out));
    return chain_run(c, out);
}

static float scale_of(const product *p, int k, int column)
{
    return p->scales[k / GROUP * COLUMNS + column];
}

static float decompress_first(const product *p, int row, int column)
{
    float sum = 0;
    for (int k = 0; k < DEPTH; k++)
        sum += p->a[row * DEPTH + k] * (p->b[k * COLUMNS + column] * scale_of(p, k, column));
    return sum;
}

static float scale_groups(const product *p, int row, int column)
{
    float total = 0;
    for (int group = 0; group < DEPTH; group += GROUP) {
        float sum = 0;
        for (int k = group; k < group + GROUP; k++)
            sum += p->a[row * DEPTH + k] * p->b[k * COLUMNS + column];
        total += sum * scale_of(p, group, column);
    }
    return total;
}

Test(ref_chains, compressed_weights_are_within_and_a_wrong_group_is_not)
{
    product p = make_product(21, 7);
    chain c;
    const gb_ref_tensor *reference = run_compressed(&p, &c);
    cr_expect_eq(products_outside(&p, reference, decompress_first, 24), 0);
    cr_expect_eq(products_outside(&p, reference, scale_groups, 24), 0);
    p.scales[3 * COLUMNS + 5] *= 1.0078125F;
    cr_expect_geq(products_outside(&p, reference, scale_groups, 24), ROWS - 1);
    chain_end(&c);
}

/* Quantised probabilities ---------------------------------------------------------------------- */

typedef enum steps { NEAREST, BY_RECIPROCAL, FROM_BF16, DOWNWARDS } steps;

static float step_of(float p, float scale, steps how)
{
    switch (how) {
    case BY_RECIPROCAL:
        return rintf(p * (1 / scale));
    case FROM_BF16:
        return rintf(rounded(p, 8) / scale);
    case DOWNWARDS:
        return floorf(p / scale);
    default:
        return rintf(p / scale);
    }
}

/* SoftMax in bf16, TypeCast, Quantize to u8: both neighbours where the roundings leave a doubt. */
Test(ref_chains, quantised_probabilities_are_within_and_truncated_ones_are_not)
{
    const float scale = 0.00392027F;
    float *logits = random_floats(31, QUERIES * KEYS, 8, 6);
    chain c = chain_begin();
    size_t x = chain_input(&c, GB_BF16, LIST(QUERIES, KEYS), logits);
    size_t p16 = chain_tensor(&c, GB_BF16, LIST(QUERIES, KEYS));
    size_t p = chain_tensor(&c, GB_F32, LIST(QUERIES, KEYS));
    size_t q = chain_tensor(&c, GB_U8, LIST(QUERIES, KEYS));
    gb_op *op = chain_op(&c, GB_OP_SOFTMAX, (int)x, -1, p16);
    gb_op_set_attr_s64(op, GB_ATTR_AXIS, 1, &(int64_t){-1});
    chain_add(&c, op);
    chain_add(&c, chain_op(&c, GB_OP_TYPE_CAST, (int)p16, -1, p));
    op = chain_op(&c, GB_OP_QUANTIZE, (int)p, -1, q);
    set_quantization(op, scale, 0);
    chain_add(&c, op);
    const gb_ref_tensor *reference = chain_run(&c, q);
    int outside[4] = {0}, unsure = 0;
    for (int i = 0; i < QUERIES * KEYS; i++) {
        const float *row = logits + i / KEYS * KEYS;
        float sum = 0;
        for (int key = 0; key < KEYS; key++)
            sum += expf(row[key] - 6);
        for (steps how = NEAREST; how <= DOWNWARDS; how++) {
            double got = (double)step_of(expf(logits[i] - 6) / sum, scale, how);
            outside[how] += fabs(got - reference->value[i]) > ref_case_bound(reference, i);
        }
        unsure += ref_case_bound(reference, i) > 0;
    }
    for (steps how = NEAREST; how < DOWNWARDS; how++)
        cr_expect_eq(outside[how], 0, "%d elements", outside[how]);
    cr_expect_gt(outside[DOWNWARDS], QUERIES * KEYS / 10, "%d elements", outside[DOWNWARDS]);
    cr_expect_lt(unsure, QUERIES * KEYS / 5, "%d elements", unsure);
    chain_end(&c);
    free(logits);
}

/* Towers --------------------------------------------------------------------------------------- */

enum { LAYERS = 8, WIDTH = 128, BATCH = 4 };

/* Products of bf16 matrices one after the other, each intermediate rounded or not; of one layer a
 * term is lost. */
static void run_layers(const float *x, const float *weights, int bits, int faulty, float *out)
{
    float in[BATCH * WIDTH];
    memcpy(in, x, sizeof in);
    for (int layer = 0; layer < LAYERS; layer++) {
        const float *w = weights + layer * WIDTH * WIDTH;
        int own_bits = layer == LAYERS - 1 ? 8 : bits;
        for (int i = 0; i < BATCH * WIDTH; i++) {
            float sum = 0;
            for (int k = layer == faulty; k < WIDTH; k++)
                sum += in[i / WIDTH * WIDTH + k] * w[k * WIDTH + i % WIDTH];
            out[i] = rounded(sum, own_bits);
        }
        memcpy(in, out, sizeof in);
    }
}

static int count_outside(const gb_ref_tensor *reference, const float *got)
{
    int outside = 0;
    for (int i = 0; i < BATCH * WIDTH; i++)
        outside += fabs((double)got[i] - reference->value[i]) > reference->bound[i];
    return outside;
}

Test(ref_chains, bounds_do_not_explode_in_towers)
{
    float *x = random_floats(41, BATCH * WIDTH, 8, 1), out[BATCH * WIDTH];
    float *weights = random_floats(42, LAYERS * WIDTH * WIDTH, 8, 0.15F);
    chain c = chain_begin();
    size_t in = chain_input(&c, GB_BF16, LIST(BATCH, WIDTH), x);
    for (int layer = 0; layer < LAYERS; layer++) {
        size_t w = chain_input(&c, GB_BF16, LIST(WIDTH, WIDTH), weights + layer * WIDTH * WIDTH);
        size_t result = chain_tensor(&c, GB_BF16, LIST(BATCH, WIDTH));
        chain_add(&c, chain_op(&c, GB_OP_MATMUL, (int)in, (int)w, result));
        in = result;
    }
    const gb_ref_tensor *reference = chain_run(&c, in);
    double bounds = 0, values = 0;
    for (int i = 0; i < BATCH * WIDTH; i++) {
        bounds += reference->bound[i];
        values += fabs(reference->value[i]);
    }
    cr_expect_lt(bounds, 0.1 * values, "%g of %g", bounds, values);
    double memory;
    cr_assert_eq(gb_ref_get_memory(c.graph, c.n_ops, c.ids, &memory), GB_SUCCESS);
    cr_expect_eq(memory, (3 * 16 + 8) * BATCH * WIDTH + 8 * WIDTH * WIDTH,
            "source, result, the spare arrays of one, and a third array of both operands");
    for (int bits = 8; bits <= 24; bits += 16) {
        run_layers(x, weights, bits, -1, out);
        cr_expect_eq(count_outside(reference, out), 0, "%d bits", bits);
        run_layers(x, weights, bits, LAYERS / 2, out);
        int found = count_outside(reference, out);
        cr_expect_gt(found, BATCH * WIDTH / 8, "%d bits: %d", bits, found);
    }
    chain_end(&c);
    free(x);
    free(weights);
}
