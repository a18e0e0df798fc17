/* Random graphs with shared tensors, diamonds and Ends give results within the bounds of the
 * reference, under every policy and in every layout, whatever is fused. */
#include "kernel_case.h"

enum { GRAPHS = 1200, MOST_OPS = 18, MOST_ELEMENTS = 2000 };

static kernel_case c;
static uint64_t state;

static uint32_t random_below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 33) % n);
}

/* The tensor as inference will find it. */
static void set_dims(size_t id, int ndims, const int64_t *dims)
{
    c.tensors[id].ndims = ndims;
    for (int d = 0; d < ndims; d++)
        c.tensors[id].dims[d] = dims[d];
}

static size_t new_input(int ndims, const int64_t *dims)
{
    return kernel_case_tensor(&c, GB_F32, ndims, dims);
}

static size_t finish(gb_op *op, gb_data_type type, int ndims, const int64_t *dims)
{
    size_t id = kernel_case_tensor(&c, type, GB_UNKNOWN_NDIMS, NULL);
    c.produced[id] = true;
    kernel_ok(gb_op_add_output(op, &c.tensors[id]));
    set_dims(id, ndims, dims);
    return id;
}

/* Ops take descriptions of unknown dims, as their outputs get them. */
static void read_tensor(gb_op *op, size_t id)
{
    gb_logical_tensor tensor = c.tensors[id];
    if (c.produced[id])
        kernel_ok(gb_logical_tensor_init(&tensor, id, tensor.data_type, GB_UNKNOWN_NDIMS,
                GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    c.read[id] = true;
    kernel_ok(gb_op_add_input(op, &tensor));
}

/* A recent f32 tensor, so that chains and diamonds form, or a new input. */
static size_t pick(void)
{
    const int64_t dims[] = {1 + random_below(3), 1 + random_below(6), 2 + random_below(9)};
    for (int tries = 0; tries < 6 && c.n_tensors > 0; tries++) {
        size_t back = random_below(random_below(4) ? 2 : (uint32_t)c.n_tensors);
        if (back < c.n_tensors && c.tensors[c.n_tensors - 1 - back].data_type == GB_F32)
            return c.n_tensors - 1 - back;
    }
    int skipped = (int)random_below(2);
    return new_input(3 - skipped, dims + skipped);
}

static size_t like(gb_op *op, size_t x)
{
    return finish(op, GB_F32, c.tensors[x].ndims, c.tensors[x].dims);
}

static size_t add_unary(size_t x)
{
    static const gb_op_kind kinds[] = {GB_OP_ABS, GB_OP_RELU, GB_OP_SIGMOID, GB_OP_TANH, GB_OP_ELU,
            GB_OP_GELU, GB_OP_SQUARE, GB_OP_HARD_SWISH, GB_OP_REORDER};
    gb_op_kind kind = kinds[random_below(sizeof kinds / sizeof *kinds)];
    gb_op *op = kernel_case_op(&c, kind);
    if (kind == GB_OP_ELU)
        kernel_case_float(op, GB_ATTR_ALPHA, 0.5F);
    read_tensor(op, x);
    return like(op, x);
}

static bool same_dims(size_t a, size_t b)
{
    const gb_logical_tensor *x = &c.tensors[a], *y = &c.tensors[b];
    return x->ndims == y->ndims &&
           memcmp(x->dims, y->dims, (size_t)x->ndims * sizeof *x->dims) == 0;
}

/* With a tensor of the same dims, or a new one that broadcasts; on either side. */
static size_t add_binary(size_t x)
{
    static const gb_op_kind kinds[] = {
            GB_OP_ADD, GB_OP_MULTIPLY, GB_OP_SUBTRACT, GB_OP_MAXIMUM, GB_OP_MINIMUM};
    size_t before = c.n_tensors, other = pick();
    if (!same_dims(x, other)) {
        c.n_tensors = before;
        int64_t dims[GB_MAX_NDIMS];
        for (int d = 0; d < c.tensors[x].ndims; d++)
            dims[d] = random_below(3) ? c.tensors[x].dims[d] : 1;
        other = new_input(c.tensors[x].ndims, dims);
    }
    bool swapped = random_below(2);
    gb_op *op = kernel_case_op(&c, kinds[random_below(sizeof kinds / sizeof *kinds)]);
    read_tensor(op, swapped ? other : x);
    read_tensor(op, swapped ? x : other);
    return like(op, x);
}

static size_t add_matmul(size_t x)
{
    const gb_logical_tensor *src = &c.tensors[x];
    int64_t k = src->dims[src->ndims - 1], n = 1 + random_below(9);
    size_t weights = new_input(2, (const int64_t[]){k, n});
    gb_op *op = kernel_case_op(&c, GB_OP_MATMUL);
    read_tensor(op, x);
    read_tensor(op, weights);
    int64_t dims[GB_MAX_NDIMS];
    memcpy(dims, src->dims, sizeof dims);
    dims[src->ndims - 1] = n;
    return finish(op, GB_F32, src->ndims, dims);
}

static size_t add_rows(size_t x)
{
    bool softmax = random_below(2);
    gb_op *op = kernel_case_op(&c, softmax ? GB_OP_SOFTMAX : GB_OP_LAYER_NORM);
    if (softmax)
        kernel_case_int(op, GB_ATTR_AXIS, -1);
    else
        kernel_case_flag(op, GB_ATTR_USE_AFFINE, false);
    if (!softmax)
        kernel_case_flag(op, GB_ATTR_KEEP_STATS, false);
    read_tensor(op, x);
    return like(op, x);
}

static size_t add_transpose(size_t x)
{
    int n = c.tensors[x].ndims;
    int64_t order[GB_MAX_NDIMS], dims[GB_MAX_NDIMS];
    for (int d = 0; d < n; d++)
        order[d] = d;
    for (int d = n - 1; d > 0; d--) {
        int other = (int)random_below((uint32_t)d + 1);
        int64_t held = order[d];
        order[d] = order[other];
        order[other] = held;
    }
    for (int d = 0; d < n; d++)
        dims[d] = c.tensors[x].dims[order[d]];
    gb_op *op = kernel_case_op(&c, GB_OP_STATIC_TRANSPOSE);
    kernel_case_ints(op, GB_ATTR_ORDER, n, order);
    read_tensor(op, x);
    return finish(op, GB_F32, n, dims);
}

/* Merges two neighbouring dims, or splits one. */
static size_t add_reshape(size_t x)
{
    const gb_logical_tensor *src = &c.tensors[x];
    int64_t dims[GB_MAX_NDIMS];
    int at = (int)random_below((uint32_t)src->ndims), n = src->ndims;
    memcpy(dims, src->dims, sizeof dims);
    if (n > 1 && at < n - 1 && random_below(2)) {
        dims[at] *= dims[at + 1];
        n--;
        memmove(dims + at + 1, dims + at + 2, (size_t)(n - at - 1) * sizeof *dims);
    } else if (n < 5) {
        int64_t part = dims[at] % 2 ? 1 : 2;
        memmove(dims + at + 1, dims + at, (size_t)(n - at) * sizeof *dims);
        dims[at] = part;
        dims[at + 1] /= part;
        n++;
    }
    gb_op *op = kernel_case_op(&c, GB_OP_STATIC_RESHAPE);
    kernel_case_ints(op, GB_ATTR_SHAPE, n, dims);
    kernel_case_flag(op, GB_ATTR_SPECIAL_ZERO, false);
    read_tensor(op, x);
    return finish(op, GB_F32, n, dims);
}

/* To bf16 or u8 and back. */
static size_t add_conversion(size_t x)
{
    bool cast = random_below(2);
    gb_op_kind kinds[] = {
            cast ? GB_OP_TYPE_CAST : GB_OP_QUANTIZE, cast ? GB_OP_TYPE_CAST : GB_OP_DEQUANTIZE};
    for (int i = 0; i < 2; i++) {
        gb_op *op = kernel_case_op(&c, kinds[i]);
        if (!cast) {
            kernel_case_float(op, GB_ATTR_SCALES, 0.03F);
            kernel_case_ints(op, GB_ATTR_ZPS, 1, &(int64_t){100});
        }
        read_tensor(op, x);
        x = finish(op, i ? GB_F32 : cast ? GB_BF16 : GB_U8, c.tensors[x].ndims, c.tensors[x].dims);
    }
    return x;
}

static void add_end(size_t x)
{
    read_tensor(kernel_case_op(&c, GB_OP_END), x);
}

static void make_graph(uint64_t seed)
{
    static size_t (*const makers[])(size_t) = {add_unary, add_unary, add_binary, add_binary,
            add_matmul, add_rows, add_transpose, add_transpose, add_reshape, add_conversion};
    c = (kernel_case){0};
    state = seed * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t n = 2 + random_below(MOST_OPS - 1);
    while (c.n_ops < n) {
        size_t x = makers[random_below(sizeof makers / sizeof *makers)](pick());
        if (random_below(8) == 0)
            add_end(x);
        if (kernel_case_count(&c.tensors[x]) > MOST_ELEMENTS)
            return;
    }
}

Test(fusion_runs, random_graphs_under_every_policy)
{
    static const gb_policy policies[] = {GB_POLICY_FUSION, GB_POLICY_DEBUG, GB_POLICY_MAX};
    size_t fused = 0;
    int64_t compared = 0, unbounded = 0;
    setenv("GB_PASSES", "check", 1);
    for (uint64_t seed = 1; seed <= GRAPHS; seed++)
        for (int p = 0; p < 3; p++) {
            char name[64];
            make_graph(seed);
            c.policy = policies[p];
            c.unbounded = "a chain divides by what may be 0; all graphs together have a quota";
            snprintf(name, sizeof name, "seed %llu policy %d", (unsigned long long)seed, p);
            kernel_case_run_layout(&c, (kernel_layout)(seed % LAYOUT_COUNT), name);
            compared += c.n_compared;
            unbounded += c.n_unbounded;
            fused += p == 0 && c.n_partitions < c.n_ops;
            cr_assert(p != 1 || c.n_partitions == c.n_ops);
            for (size_t i = 0; i < c.n_ops; i++)
                gb_op_destroy(c.ops[i]);
        }
    cr_expect(unbounded * KERNEL_CASE_UNBOUNDED <= compared, "%lld of %lld elements have no bound",
            (long long)unbounded, (long long)compared);
    cr_expect_gt(fused, GRAPHS / 3, "random graphs hardly fuse: %zu", fused);
}
