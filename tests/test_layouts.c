/* Layouts from compile to compile: results left to the library, opaque tensors as inputs and
 * outputs, and what the kernels make of them. */
#include "graph/ir/format.h"
#include "graph/ops/op_table.h"
#include "kernel_case.h"

enum { MOST = 4 };

typedef struct chain_case {
    gb_graph *graph;
    gb_engine *engine;
    gb_stream *stream;
    gb_logical_tensor tensors[24];
    void *memory[24];
    size_t n_tensors;
    char kernels[256];
} chain_case;

static size_t add_tensor(chain_case *c, int ndims, const int64_t *dims)
{
    size_t id = c->n_tensors++;
    kernel_ok(gb_logical_tensor_init_with_dims(
            &c->tensors[id], id, GB_F32, ndims, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    return id;
}

static void add_op(chain_case *c, gb_op *op, size_t a, size_t b, size_t dst)
{
    kernel_ok(gb_op_add_input(op, &c->tensors[a]));
    if (b != a)
        kernel_ok(gb_op_add_input(op, &c->tensors[b]));
    kernel_ok(gb_op_add_output(op, &c->tensors[dst]));
    kernel_ok(gb_graph_add_op(c->graph, op));
    gb_op_destroy(op);
}

static gb_op *make_op(gb_op_kind kind)
{
    static size_t id;
    gb_op *op;
    kernel_ok(gb_op_create(&op, id++, kind, gb_op_kind_name(kind)));
    return op;
}

static void open_case(chain_case *c)
{
    memset(c, 0, sizeof *c);
    kernel_ok(gb_graph_create(&c->graph, GB_ENGINE_CPU));
    kernel_ok(gb_engine_create(&c->engine, GB_ENGINE_CPU, 0));
    kernel_ok(gb_stream_create(&c->stream, c->engine));
}

static void allocate(chain_case *c, size_t id)
{
    size_t bytes;
    kernel_ok(gb_logical_tensor_get_mem_size(&c->tensors[id], &bytes));
    c->memory[id] = malloc(bytes);
    size_t size = gb_data_type_bytes(c->tensors[id].data_type, 1);
    for (size_t i = 0; i < bytes / size; i++) /* small integers: sums are exact */
        gb_element_set(c->tensors[id].data_type, c->memory[id], (int64_t)i,
                (double)((i * 7 + id * 3) % 9) - (c->tensors[id].data_type == GB_U8 ? 0 : 4));
}

/* Compiles and runs one partition; results in between are left to the library when `any`. */
static void run_partition(chain_case *c, const gb_partition *partition, bool any)
{
    gb_logical_tensor ports[2][MOST];
    const gb_logical_tensor *lists[2][MOST];
    gb_tensor *tensors[2][MOST];
    size_t n[2];
    gb_compiled_partition *compiled;
    kernel_ok(gb_partition_get_input_ports(partition, 0, NULL, &n[0]));
    kernel_ok(gb_partition_get_input_ports(partition, n[0], ports[0], NULL));
    kernel_ok(gb_partition_get_output_ports(partition, 0, NULL, &n[1]));
    kernel_ok(gb_partition_get_output_ports(partition, n[1], ports[1], NULL));
    for (size_t i = 0; i < n[0]; i++)
        lists[0][i] = &c->tensors[ports[0][i].id];
    for (size_t i = 0; i < n[1]; i++) {
        size_t readers;
        kernel_ok(gb_graph_get_consumers(c->graph, ports[1][i].id, 0, NULL, &readers));
        if (any && readers > 0)
            c->tensors[ports[1][i].id].layout_type = GB_LAYOUT_ANY;
        lists[1][i] = &c->tensors[ports[1][i].id];
    }
    kernel_ok(
            gb_partition_compile(partition, &compiled, n[0], lists[0], n[1], lists[1], c->engine));
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < n[side]; i++) {
            size_t id = ports[side][i].id;
            kernel_ok(gb_compiled_partition_query_logical_tensor(compiled, id, &c->tensors[id]));
            if (!c->memory[id])
                allocate(c, id);
            kernel_ok(
                    gb_tensor_create(&tensors[side][i], &c->tensors[id], c->engine, c->memory[id]));
        }
    kernel_ok(gb_compiled_partition_execute(compiled, c->stream, n[0],
            (const gb_tensor *const *)tensors[0], n[1], tensors[1], NULL));
    size_t length = strlen(c->kernels);
    snprintf(c->kernels + length, sizeof c->kernels - length, "%s ",
            gb_compiled_partition_get_kernels(compiled));
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < n[side]; i++)
            gb_tensor_destroy(tensors[side][i]);
    gb_compiled_partition_destroy(compiled);
}

static void run_case(chain_case *c, gb_policy policy, bool any)
{
    gb_partition *partitions[8];
    size_t n;
    kernel_ok(gb_graph_finalize(c->graph));
    kernel_ok(gb_graph_filter(c->graph, policy));
    kernel_ok(gb_graph_get_partitions(c->graph, 0, NULL, &n));
    kernel_ok(gb_graph_get_partitions(c->graph, n, partitions, NULL));
    for (size_t i = 0; i < n; i++) {
        run_partition(c, partitions[i], any);
        gb_partition_destroy(partitions[i]);
    }
}

static void close_case(chain_case *c)
{
    for (size_t i = 0; i < c->n_tensors; i++)
        free(c->memory[i]);
    gb_stream_destroy(c->stream);
    gb_engine_destroy(c->engine);
    gb_graph_destroy(c->graph);
}

/* The same chain with and without any: equal bit by bit, at 1 and 2 threads. Returns the case with
 * any for a look at its tensors. */
static chain_case compare(void (*build)(chain_case *), gb_policy policy)
{
    chain_case cases[4];
    for (int i = 0; i < 4; i++) {
        chain_case *c = &cases[i];
        omp_set_num_threads(1 + i / 2);
        open_case(c);
        build(c);
        run_case(c, policy, i % 2 == 0);
        size_t last = c->n_tensors - 1, bytes;
        kernel_ok(gb_logical_tensor_get_mem_size(&c->tensors[last], &bytes));
        cr_assert(memcmp(c->memory[last], cases[0].memory[last], bytes) == 0, "%s and %s differ",
                c->kernels, cases[0].kernels);
    }
    for (int i = 1; i < 4; i++)
        close_case(&cases[i]);
    return cases[0];
}

static void expect_layout(const chain_case *c, size_t id, const char *layout)
{
    cr_assert_str_eq(gb_logical_tensor_get_layout(&c->tensors[id]), layout, "tensor %zu: %s", id,
            gb_logical_tensor_get_layout(&c->tensors[id]));
}

/* MatMul --------------------------------------------------------------------------------------- */

static void product(chain_case *c, size_t a, size_t b, size_t dst)
{
    add_op(c, make_op(GB_OP_MATMUL), a, b, dst);
}

/* y = a b, then x y: panels of B as the first product writes them. */
static void build_right_product(chain_case *c)
{
    size_t a = add_tensor(c, SHAPE(70, 40)), b = add_tensor(c, SHAPE(40, 96));
    size_t x = add_tensor(c, SHAPE(100, 70)), y = add_tensor(c, SHAPE(70, 96));
    size_t z = add_tensor(c, SHAPE(100, 96));
    product(c, a, b, y);
    product(c, x, y, z);
}

KERNEL_TEST(layouts, results_become_right_operands)
{
    chain_case c = compare(build_right_product, GB_POLICY_DEBUG);
    expect_layout(&c, 3, "Ba32b");
    cr_assert_null(strstr(c.kernels, "copy"), "%s", c.kernels);
    close_case(&c);
}

/* y = a b, then y w: rows that lie 4 KiB apart would have to be copied, which for few columns is
 * cheaper than panels. */
static void build_left_product(chain_case *c)
{
    size_t a = add_tensor(c, SHAPE(33, 40)), b = add_tensor(c, SHAPE(40, 1024));
    size_t w = add_tensor(c, SHAPE(1024, 770)), y = add_tensor(c, SHAPE(33, 1024));
    size_t z = add_tensor(c, SHAPE(33, 770));
    product(c, a, b, y);
    product(c, y, w, z);
}

KERNEL_TEST(layouts, results_become_left_operands)
{
    chain_case c = compare(build_left_product, GB_POLICY_DEBUG);
    expect_layout(&c, 3, "Ba32b");
    cr_assert_null(strstr(c.kernels, "copy"), "%s", c.kernels);
    close_case(&c);
}

/* Batches, and element-wise ops behind the first product. */
static void build_batched_product(chain_case *c)
{
    size_t a = add_tensor(c, SHAPE(3, 90, 17)), b = add_tensor(c, SHAPE(3, 17, 64));
    size_t x = add_tensor(c, SHAPE(3, 90, 90)), p = add_tensor(c, SHAPE(3, 90, 64));
    size_t y = add_tensor(c, SHAPE(3, 90, 64)), z = add_tensor(c, SHAPE(3, 90, 64));
    product(c, a, b, p);
    add_op(c, make_op(GB_OP_RELU), p, p, y);
    product(c, x, y, z);
}

KERNEL_TEST(layouts, batches_become_right_operands)
{
    chain_case c = compare(build_batched_product, GB_POLICY_FUSION);
    expect_layout(&c, 4, "aCb32c");
    cr_assert_null(strstr(c.kernels, "copy"), "%s", c.kernels);
    close_case(&c);
}

/* Another reader wants rows: the result stays dense. */
static void build_product_of_two_readers(chain_case *c)
{
    build_right_product(c);
    size_t w = add_tensor(c, SHAPE(70, 96));
    add_op(c, make_op(GB_OP_SOFTMAX), 3, 3, w);
}

KERNEL_TEST(layouts, readers_must_agree)
{
    chain_case c = compare(build_product_of_two_readers, GB_POLICY_DEBUG);
    expect_layout(&c, 3, "strided");
    close_case(&c);
}

/* Sizes that do not fill panels stay dense. */
static void build_ragged_product(chain_case *c)
{
    size_t a = add_tensor(c, SHAPE(70, 40)), b = add_tensor(c, SHAPE(40, 97));
    size_t x = add_tensor(c, SHAPE(100, 70)), y = add_tensor(c, SHAPE(70, 97));
    size_t z = add_tensor(c, SHAPE(100, 97));
    product(c, a, b, y);
    product(c, x, y, z);
}

KERNEL_TEST(layouts, panels_are_full)
{
    chain_case c = compare(build_ragged_product, GB_POLICY_DEBUG);
    expect_layout(&c, 3, "strided");
    close_case(&c);
}

/* Convolution ---------------------------------------------------------------------------------- */

static void convolve_groups(
        chain_case *c, size_t src, size_t weights, size_t dst, int64_t pad, int64_t groups)
{
    const int64_t ones[] = {1, 1}, pads[] = {pad, pad};
    gb_op *op = make_op(GB_OP_CONVOLUTION);
    kernel_case_ints(op, GB_ATTR_STRIDES, 2, ones);
    kernel_case_ints(op, GB_ATTR_DILATIONS, 2, ones);
    kernel_case_ints(op, GB_ATTR_PADS_BEGIN, 2, pads);
    kernel_case_ints(op, GB_ATTR_PADS_END, 2, pads);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, "NCX");
    kernel_case_text(op, GB_ATTR_WEIGHTS_FORMAT, "OIX");
    kernel_case_int(op, GB_ATTR_GROUPS, groups);
    add_op(c, op, src, weights, dst);
}

static void convolve(chain_case *c, size_t src, size_t weights, size_t dst, int64_t pad)
{
    convolve_groups(c, src, weights, dst, pad, 1);
}

static void build_convolutions(chain_case *c)
{
    size_t src = add_tensor(c, SHAPE(2, 16, 9, 9)), v = add_tensor(c, SHAPE(48, 16, 3, 3));
    size_t w = add_tensor(c, SHAPE(20, 48, 1, 1)), y = add_tensor(c, SHAPE(2, 48, 9, 9));
    size_t z = add_tensor(c, SHAPE(2, 20, 9, 9));
    convolve(c, src, v, y, 1);
    convolve(c, y, w, z, 0);
}

KERNEL_TEST(layouts, images_between_convolutions)
{
    chain_case c = compare(build_convolutions, GB_POLICY_DEBUG);
    const int64_t channels_last[] = {9 * 9 * 48, 1, 9 * 48, 48};
    expect_layout(&c, 3, "strided");
    cr_assert_arr_eq(c.tensors[3].strides, channels_last, sizeof channels_last);
    close_case(&c);
}

/* An element-wise reader of the other operand's size has channels first: no change of layout. */
static void build_residual_convolutions(chain_case *c)
{
    size_t src = add_tensor(c, SHAPE(2, 16, 9, 9)), v = add_tensor(c, SHAPE(48, 16, 3, 3));
    size_t w = add_tensor(c, SHAPE(20, 48, 1, 1)), y = add_tensor(c, SHAPE(2, 48, 9, 9));
    size_t side = add_tensor(c, SHAPE(2, 48, 9, 9)), sum = add_tensor(c, SHAPE(2, 48, 9, 9));
    size_t z = add_tensor(c, SHAPE(2, 20, 9, 9));
    convolve(c, src, v, y, 1);
    add_op(c, make_op(GB_OP_ADD), y, side, sum);
    convolve(c, sum, w, z, 0);
}

KERNEL_TEST(layouts, residuals_stay_as_they_are)
{
    chain_case c = compare(build_residual_convolutions, GB_POLICY_FUSION);
    cr_assert(gb_is_dense(&c.tensors[5]));
    close_case(&c);
}

/* A depthwise convolution of short lines between pointwise ones. */
static void build_depthwise(chain_case *c)
{
    size_t src = add_tensor(c, SHAPE(2, 16, 9, 9)), v = add_tensor(c, SHAPE(48, 16, 1, 1));
    size_t d = add_tensor(c, SHAPE(48, 1, 3, 3)), w = add_tensor(c, SHAPE(20, 48, 1, 1));
    size_t y = add_tensor(c, SHAPE(2, 48, 9, 9)), z = add_tensor(c, SHAPE(2, 48, 9, 9));
    size_t dst = add_tensor(c, SHAPE(2, 20, 9, 9));
    convolve(c, src, v, y, 0);
    convolve_groups(c, y, d, z, 1, 48);
    convolve(c, z, w, dst, 0);
}

KERNEL_TEST(layouts, depthwise_convolutions_of_short_lines)
{
    chain_case c = compare(build_depthwise, GB_POLICY_DEBUG);
    const int64_t channels_last[] = {9 * 9 * 48, 1, 9 * 48, 48};
    for (size_t id = 4; id < 6; id++) {
        expect_layout(&c, id, "strided");
        cr_assert_arr_eq(c.tensors[id].strides, channels_last, sizeof channels_last);
    }
    close_case(&c);
}

static void pool(chain_case *c, size_t src, size_t dst)
{
    const int64_t ones[] = {1, 1}, window[] = {3, 3};
    gb_op *op = make_op(GB_OP_MAX_POOL);
    kernel_case_ints(op, GB_ATTR_STRIDES, 2, ones);
    kernel_case_ints(op, GB_ATTR_KERNEL, 2, window);
    kernel_case_ints(op, GB_ATTR_PADS_BEGIN, 2, ones);
    kernel_case_ints(op, GB_ATTR_PADS_END, 2, ones);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, "NCX");
    add_op(c, op, src, src, dst);
}

/* Two blocks of a residual network between a pool and the mean over positions. */
static void build_residual_blocks(chain_case *c)
{
    const int64_t positions[] = {2, 3};
    size_t src = add_tensor(c, SHAPE(2, 16, 9, 9)), v = add_tensor(c, SHAPE(48, 16, 3, 3));
    size_t w[2], y[6], z;
    for (int i = 0; i < 2; i++)
        w[i] = add_tensor(c, SHAPE(48, 48, 1, 1));
    for (int i = 0; i < 6; i++)
        y[i] = add_tensor(c, SHAPE(2, 48, 9, 9));
    z = add_tensor(c, SHAPE(2, 48, 1, 1));
    convolve(c, src, v, y[0], 1);
    pool(c, y[0], y[1]);
    for (size_t i = 0; i < 2; i++) {
        convolve(c, y[1 + 2 * i], w[i], y[2 + 2 * i], 0);
        add_op(c, make_op(GB_OP_ADD), y[2 + 2 * i], y[1 + 2 * i], y[3 + 2 * i]);
    }
    gb_op *mean = make_op(GB_OP_REDUCE_MEAN);
    kernel_case_ints(mean, GB_ATTR_AXES, 2, positions);
    kernel_ok(gb_op_set_attr_bool(mean, GB_ATTR_KEEP_DIMS, 1, (const uint8_t[]){1}));
    add_op(c, mean, y[5], y[5], z);
}

/* What enters a sum lies as its result does: all images of the network have their channels last. */
KERNEL_TEST(layouts, residual_blocks_have_channels_last)
{
    chain_case c = compare(build_residual_blocks, GB_POLICY_FUSION);
    const int64_t channels_last[] = {9 * 9 * 48, 1, 9 * 48, 48};
    const size_t ids[] = {4, 5, 7, 9}; /* those between partitions */
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        expect_layout(&c, ids[i], "strided");
        cr_assert_arr_eq(c.tensors[ids[i]].strides, channels_last, sizeof channels_last,
                "tensor %zu", ids[i]);
    }
    close_case(&c);
}

/* Element-wise partitions in between ----------------------------------------------------------- */

static void unary(chain_case *c, gb_op_kind kind, size_t src, size_t dst)
{
    gb_op *op = make_op(kind);
    if (kind == GB_OP_ELU)
        kernel_case_float(op, GB_ATTR_ALPHA, 1);
    add_op(c, op, src, src, dst);
}

static void build_post_ops_between_convolutions(chain_case *c)
{
    size_t src = add_tensor(c, SHAPE(2, 16, 9, 9)), v = add_tensor(c, SHAPE(48, 16, 3, 3));
    size_t w = add_tensor(c, SHAPE(20, 48, 1, 1)), y[4];
    for (size_t i = 0; i < 4; i++)
        y[i] = add_tensor(c, SHAPE(2, 48, 9, 9));
    size_t bias = add_tensor(c, SHAPE(48, 1, 1)), z = add_tensor(c, SHAPE(2, 20, 9, 9));
    convolve(c, src, v, y[0], 1);
    unary(c, GB_OP_RELU, y[0], y[1]);
    add_op(c, make_op(GB_OP_ADD), y[1], bias, y[2]);
    unary(c, GB_OP_SQUARE, y[2], y[3]);
    convolve(c, y[3], w, z, 0);
}

KERNEL_TEST(layouts, post_ops_hand_the_order_of_axes_on)
{
    chain_case c = compare(build_post_ops_between_convolutions, GB_POLICY_DEBUG);
    const int64_t channels_last[] = {9 * 9 * 48, 1, 9 * 48, 48};
    for (size_t id = 3; id < 7; id++) {
        expect_layout(&c, id, "strided");
        cr_assert_arr_eq(c.tensors[id].strides, channels_last, sizeof channels_last);
    }
    close_case(&c);
}

/* relu(a b), + a row, x times that. */
static void build_post_ops_between_products(chain_case *c)
{
    size_t a = add_tensor(c, SHAPE(70, 40)), b = add_tensor(c, SHAPE(40, 96));
    size_t x = add_tensor(c, SHAPE(100, 70)), bias = add_tensor(c, SHAPE(96)), y[4];
    for (size_t i = 0; i < 4; i++)
        y[i] = add_tensor(c, SHAPE(70, 96));
    size_t z = add_tensor(c, SHAPE(100, 96));
    product(c, a, b, y[0]);
    unary(c, GB_OP_RELU, y[0], y[1]);
    add_op(c, make_op(GB_OP_ADD), y[1], bias, y[2]);
    unary(c, GB_OP_ELU, y[2], y[3]);
    product(c, x, y[3], z);
}

KERNEL_TEST(layouts, post_ops_hand_blocks_on)
{
    chain_case c = compare(build_post_ops_between_products, GB_POLICY_DEBUG);
    for (size_t id = 4; id < 8; id++)
        expect_layout(&c, id, "Ba32b");
    cr_assert_null(strstr(c.kernels, "copy"), "%s", c.kernels);
    close_case(&c);
}

enum { MOST_OPERANDS = 3 };

/* Again in the memory of an operand: the same values. */
static void execute_in_place(const gb_compiled_partition *compiled, gb_stream *stream,
        const gb_logical_tensor *result, gb_tensor *const *memory, float *const *data,
        const float *values)
{
    const gb_inplace_pair *pairs;
    size_t n;
    kernel_ok(gb_compiled_partition_get_inplace_ports(compiled, &n, &pairs));
    cr_assert_eq(n, 1);
    const float *shared = data[pairs[0].input_id];
    kernel_ok(gb_tensor_set_data_handle(memory[2], data[pairs[0].input_id]));
    kernel_ok(gb_compiled_partition_execute(
            compiled, stream, 2, (const gb_tensor *const *)memory, 1, &memory[2], NULL));
    for (int64_t i = 0, all = kernel_case_count(result); i < all; i++)
        cr_assert_eq(shared[kernel_case_offset(result, i)], values[i], "element %lld (%s)",
                (long long)i, gb_compiled_partition_get_kernels(compiled));
}

/* The op on operands in the given layouts ("": dense), with the result in the layout of the first;
 * elements of the result in row-major order in `values`. */
static void run_in_layouts(gb_op_kind kind, int64_t (*dims)[4], const char *const *layouts,
        char *kernels, size_t size, float *values)
{
    gb_logical_tensor tensors[MOST_OPERANDS];
    gb_tensor *memory[MOST_OPERANDS];
    gb_partition *partition;
    gb_compiled_partition *compiled;
    gb_engine *engine;
    gb_stream *stream;
    gb_op *op = make_op(kind);
    float *data[MOST_OPERANDS];
    kernel_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    kernel_ok(gb_stream_create(&stream, engine));
    if (kind == GB_OP_BIAS_ADD)
        kernel_case_text(op, GB_ATTR_DATA_FORMAT, "NCX");
    for (size_t i = 0; i < MOST_OPERANDS; i++) {
        size_t bytes;
        int ndims = kind == GB_OP_BIAS_ADD && i == 1 ? 1 : 4;
        kernel_ok(gb_logical_tensor_init_with_dims(
                &tensors[i], i, GB_F32, ndims, dims[i], GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
        if (*layouts[i])
            kernel_ok(gb_logical_tensor_set_layout(&tensors[i], layouts[i]));
        kernel_ok(gb_tensor_create(&memory[i], &tensors[i], engine, GB_MEMORY_ALLOCATE));
        kernel_ok(gb_tensor_get_data_handle(memory[i], (void **)&data[i]));
        kernel_ok(gb_logical_tensor_get_mem_size(&tensors[i], &bytes));
        memset(data[i], 0, bytes);
        for (int64_t n = 0, all = kernel_case_count(&tensors[i]); n < all; n++)
            data[i][kernel_case_offset(&tensors[i], n)] = (float)((n * 7 + (int)i) % 11) - 5;
        kernel_ok((i < 2 ? gb_op_add_input : gb_op_add_output)(op, &tensors[i]));
    }
    kernel_ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
    const gb_logical_tensor *in[] = {&tensors[0], &tensors[1]}, *out = &tensors[2];
    kernel_ok(gb_partition_compile(partition, &compiled, 2, in, 1, &out, engine));
    kernel_ok(gb_compiled_partition_execute(
            compiled, stream, 2, (const gb_tensor *const *)memory, 1, &memory[2], NULL));
    snprintf(kernels, size, "%s", gb_compiled_partition_get_kernels(compiled));
    for (int64_t n = 0, all = kernel_case_count(&tensors[2]); n < all; n++)
        values[n] = data[2][kernel_case_offset(&tensors[2], n)];
    execute_in_place(compiled, stream, &tensors[2], memory, data, values);
    gb_compiled_partition_destroy(compiled);
    gb_partition_destroy(partition);
    gb_op_destroy(op);
    for (size_t i = 0; i < MOST_OPERANDS; i++)
        gb_tensor_destroy(memory[i]);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
}

/* Whole operands must share the format, which must divide the sizes; others run along one axis. */
KERNEL_TEST(layouts, post_ops_run_on_blocks)
{
    static const struct {
        gb_op_kind kind;
        int64_t second[4];
        const char *layouts[MOST_OPERANDS];
        bool copies;
    } cases[] = {
            {GB_OP_ADD, {2, 32, 5, 6}, {"aBcd16b", "aBcd16b", "aBcd16b"}, false},
            {GB_OP_ADD, {2, 32, 5, 6}, {"aBcd16b", "aBcd8b", "aBcd16b"}, true},
            {GB_OP_ADD, {2, 32, 5, 6}, {"aBcd16b", "", "aBcd16b"}, true},
            {GB_OP_ADD, {2, 32, 5, 6}, {"aBcd16b", "aBcd16b", ""}, true},
            {GB_OP_MULTIPLY, {1, 32, 1, 1}, {"aBcd16b", "", "aBcd16b"}, false},
            {GB_OP_MULTIPLY, {1, 32, 1, 1}, {"ABcd2a8b2a", "", "ABcd2a8b2a"}, true},
            {GB_OP_SUBTRACT, {1, 1, 1, 6}, {"dBac4b8b3d", "", "dBac4b8b3d"}, false},
            {GB_OP_DIVIDE, {1, 1, 1, 1}, {"cBaD4b2d", "", "cBaD4b2d"}, false},
            {GB_OP_MAXIMUM, {1, 32, 5, 1}, {"aBcd16b", "", "aBcd16b"}, true},
            {GB_OP_ADD, {2, 32, 5, 6}, {"aBcd24b", "aBcd24b", "aBcd24b"}, true},
            {GB_OP_BIAS_ADD, {32}, {"aBcd16b", "", "aBcd16b"}, false},
            {GB_OP_PRELU, {1, 32, 1, 1}, {"aBcd16b", "", "aBcd16b"}, true},
    };
    const int64_t space[4] = {2, 32, 5, 6};
    static float expected[2 * 32 * 5 * 6], values[2 * 32 * 5 * 6];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t dims[MOST_OPERANDS][4];
        char kernels[128];
        const char *const dense[] = {"", "", ""};
        memcpy(dims[0], space, sizeof space);
        memcpy(dims[1], cases[i].second, sizeof space);
        memcpy(dims[2], space, sizeof space);
        run_in_layouts(cases[i].kind, dims, dense, kernels, sizeof kernels, expected);
        run_in_layouts(cases[i].kind, dims, cases[i].layouts, kernels, sizeof kernels, values);
        cr_expect_arr_eq(values, expected, sizeof values, "case %zu", i);
        cr_expect_eq(strstr(kernels, "copy") != NULL, cases[i].copies, "case %zu: %s", i, kernels);
    }
}

/* Codes ---------------------------------------------------------------------------------------- */

static void convert(chain_case *c, gb_op_kind kind, size_t src, size_t dst)
{
    const float scale = kind == GB_OP_QUANTIZE ? 32 : 0.5F;
    gb_op *op = make_op(kind);
    kernel_ok(gb_op_set_attr_f32(op, GB_ATTR_SCALES, 1, &scale));
    kernel_case_ints(op, GB_ATTR_ZPS, 1, (const int64_t[]){0});
    add_op(c, op, src, src, dst);
}

static size_t add_codes(chain_case *c, gb_data_type type, int ndims, const int64_t *dims)
{
    size_t id = add_tensor(c, ndims, dims);
    c->tensors[id].data_type = type;
    return id;
}

/* Dequantize, convolution, Quantize. */
static size_t convolve_codes(chain_case *c, size_t src, int64_t channels, int64_t kernel)
{
    const int64_t *dims = c->tensors[src].dims;
    const int64_t in = dims[1], out[] = {dims[0], channels, dims[2], dims[3]};
    const int64_t filter[] = {channels, in, kernel, kernel};
    size_t weights = add_codes(c, GB_S8, 4, filter), x = add_tensor(c, 4, dims);
    size_t w = add_tensor(c, 4, filter), y = add_tensor(c, 4, out);
    size_t dst = add_codes(c, GB_U8, 4, out);
    convert(c, GB_OP_DEQUANTIZE, src, x);
    convert(c, GB_OP_DEQUANTIZE, weights, w);
    convolve(c, x, w, y, kernel / 2);
    convert(c, GB_OP_QUANTIZE, y, dst);
    return dst;
}

static void build_code_convolutions(chain_case *c)
{
    size_t src = add_codes(c, GB_U8, SHAPE(2, 12, 7, 7));
    convolve_codes(c, convolve_codes(c, convolve_codes(c, src, 40, 3), 64, 1), 32, 3);
}

KERNEL_TEST(layouts, codes_between_convolutions)
{
    chain_case c = compare(build_code_convolutions, GB_POLICY_FUSION);
    for (size_t id = 5; id <= 10; id += 5) /* results of the first two */
        cr_assert_eq(c.tensors[id].strides[1], 1, "tensor %zu", id);
    close_case(&c);
}

/* Opaque tensors of the caller's --------------------------------------------------------------- */

enum { LEFT, RIGHT, RESULT };

/* x y in the given layouts ("": dense), x of 70 x 64 and y of 64 x 96; element (0, 0), ... of the
 * result in `values`. */
static void multiply(const char *const *layouts, bool transpose, gb_property property,
        char *kernels, size_t size, float *values)
{
    const int64_t dims[3][2] = {{70, 64}, {transpose ? 96 : 64, transpose ? 64 : 96}, {70, 96}};
    gb_logical_tensor tensors[3];
    gb_tensor *memory[3];
    gb_engine *engine;
    gb_stream *stream;
    gb_partition *partition;
    gb_compiled_partition *compiled;
    gb_op *op;
    float *data[3];
    kernel_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    kernel_ok(gb_stream_create(&stream, engine));
    for (size_t i = 0; i < 3; i++) {
        kernel_ok(gb_logical_tensor_init_with_dims(&tensors[i], i, GB_F32, 2, dims[i],
                GB_LAYOUT_STRIDED, i == RIGHT ? property : GB_PROPERTY_VARIABLE));
        if (*layouts[i])
            kernel_ok(gb_logical_tensor_set_layout(&tensors[i], layouts[i]));
        kernel_ok(gb_tensor_create(&memory[i], &tensors[i], engine, GB_MEMORY_ALLOCATE));
        kernel_ok(gb_tensor_get_data_handle(memory[i], (void **)&data[i]));
        size_t bytes;
        kernel_ok(gb_logical_tensor_get_mem_size(&tensors[i], &bytes));
        memset(data[i], 0, bytes);
        for (int64_t n = 0; n < dims[i][0] * dims[i][1]; n++) {
            const int64_t position[] = {n / dims[i][1], n % dims[i][1]};
            data[i][gb_tensor_offset(&tensors[i], position)] = (float)((n * 7) % 11) - 5;
        }
    }
    kernel_ok(gb_op_create(&op, 0, GB_OP_MATMUL, ""));
    kernel_case_flag(op, GB_ATTR_TRANSPOSE_B, transpose);
    kernel_ok(gb_op_add_input(op, &tensors[LEFT]));
    kernel_ok(gb_op_add_input(op, &tensors[RIGHT]));
    kernel_ok(gb_op_add_output(op, &tensors[RESULT]));
    kernel_ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
    const gb_logical_tensor *in[] = {&tensors[LEFT], &tensors[RIGHT]}, *out = &tensors[RESULT];
    kernel_ok(gb_partition_compile(partition, &compiled, 2, in, 1, &out, engine));
    for (int run = 0; run < 2; run++) /* constants are kept */
        kernel_ok(gb_compiled_partition_execute(
                compiled, stream, 2, (const gb_tensor *const *)memory, 1, &memory[RESULT], NULL));
    snprintf(kernels, size, "%s", gb_compiled_partition_get_kernels(compiled));
    for (int64_t n = 0; n < 70 * 96; n++)
        values[n] =
                data[RESULT][gb_tensor_offset(&tensors[RESULT], (const int64_t[]){n / 96, n % 96})];
    gb_compiled_partition_destroy(compiled);
    gb_partition_destroy(partition);
    gb_op_destroy(op);
    for (size_t i = 0; i < 3; i++)
        gb_tensor_destroy(memory[i]);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
}

/* Reorders run only where the kernel does not take the layout. */
KERNEL_TEST(layouts, opaque_operands)
{
    static const struct {
        const char *layouts[3];
        bool transpose;
        gb_property property;
        int copies;
    } cases[] = {
            {{"", "", ""}, false, GB_PROPERTY_VARIABLE, 0},
            {{"Ba32b", "", ""}, false, GB_PROPERTY_VARIABLE, 0},
            {{"", "Ba32b", ""}, false, GB_PROPERTY_VARIABLE, 0},
            {{"", "Ba32b", ""}, false, GB_PROPERTY_CONSTANT, 0},
            {{"", "", "Ba32b"}, false, GB_PROPERTY_VARIABLE, 0},
            {{"Ba32b", "Ba32b", "Ba32b"}, false, GB_PROPERTY_VARIABLE, 0},
            {{"Ba16b", "", ""}, false, GB_PROPERTY_VARIABLE, 1},
            {{"", "aB32b", ""}, false, GB_PROPERTY_VARIABLE, 1},
            {{"", "", "AB16a16b"}, false, GB_PROPERTY_VARIABLE, 1},
            {{"AB4a4b", "AB3b5a", "bA8a"}, false, GB_PROPERTY_CONSTANT, 3},
            {{"", "Ba32b", ""}, true, GB_PROPERTY_VARIABLE, 1},
    };
    static float expected[2][70 * 96], values[70 * 96];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char kernels[128];
        bool transpose = cases[i].transpose;
        const char *const dense[] = {"", "", ""};
        multiply(dense, transpose, GB_PROPERTY_VARIABLE, kernels, sizeof kernels,
                expected[transpose]);
        multiply(cases[i].layouts, transpose, cases[i].property, kernels, sizeof kernels, values);
        cr_assert_arr_eq(values, expected[transpose], sizeof values, "case %zu", i);
        int copies = 0;
        for (const char *at = kernels; (at = strstr(at, "copy")); at++)
            copies++;
        cr_assert_eq(copies, cases[i].copies, "case %zu: %s", i, kernels);
    }
}

/* Equal content with other preferred layouts is other code. */
Test(layouts, wishes_are_part_of_the_content)
{
    size_t y = 3;
    for (int readers = 0; readers < 2; readers++) {
        chain_case c;
        open_case(&c);
        build_right_product(&c);
        if (readers)
            add_op(&c, make_op(GB_OP_SOFTMAX), y, y, add_tensor(&c, SHAPE(70, 96)));
        run_case(&c, GB_POLICY_DEBUG, true);
        expect_layout(&c, y, readers ? "strided" : "Ba32b");
        close_case(&c);
    }
}

Test(layouts, sizes_of_what_was_chosen)
{
    chain_case c;
    size_t bytes;
    open_case(&c);
    build_right_product(&c);
    run_case(&c, GB_POLICY_DEBUG, true);
    kernel_ok(gb_logical_tensor_get_mem_size(&c.tensors[3], &bytes));
    cr_assert_eq(bytes, 70 * 96 * sizeof(float));
    close_case(&c);
}

/* What an application asks for --------------------------------------------------------------------
 */

static void build_reordered_product(chain_case *c)
{
    size_t w = add_tensor(c, SHAPE(70, 96)), x = add_tensor(c, SHAPE(100, 70));
    size_t y = add_tensor(c, SHAPE(70, 96)), z = add_tensor(c, SHAPE(100, 96));
    add_op(c, make_op(GB_OP_REORDER), w, w, y);
    product(c, x, y, z);
}

KERNEL_TEST(layouts, reorders_make_what_products_want)
{
    chain_case c = compare(build_reordered_product, GB_POLICY_DEBUG);
    expect_layout(&c, 2, "Ba32b");
    close_case(&c);
}

/* What the only partition of a case would like for one of two inputs. */
static gb_logical_tensor preferred(chain_case *c, size_t id, bool compiled_first)
{
    gb_partition *partition;
    gb_compiled_partition *compiled;
    gb_logical_tensor found = {.id = GB_NO_ID};
    const gb_logical_tensor *in[] = {&c->tensors[0], &c->tensors[1]}, *out[] = {&c->tensors[2]};
    kernel_ok(gb_graph_finalize(c->graph));
    kernel_ok(gb_graph_filter(c->graph, GB_POLICY_DEBUG));
    kernel_ok(gb_graph_get_partitions(c->graph, 1, &partition, NULL));
    if (compiled_first) {
        kernel_ok(gb_partition_compile(partition, &compiled, 2, in, 1, out, c->engine));
        kernel_ok(gb_compiled_partition_query_preferred_layout(compiled, id, &found));
        gb_compiled_partition_destroy(compiled);
    } else {
        kernel_ok(gb_partition_query_preferred_layout(partition, 2, in, id, &found));
    }
    gb_partition_destroy(partition);
    return found;
}

Test(layouts, inputs_have_preferred_ones)
{
    for (int compiled_first = 0; compiled_first < 2; compiled_first++)
        for (int constant = 0; constant < 2; constant++) {
            chain_case c;
            open_case(&c);
            add_tensor(&c, SHAPE(100, 70));
            add_tensor(&c, SHAPE(70, 96));
            add_tensor(&c, SHAPE(100, 96));
            if (constant)
                c.tensors[1].property = GB_PROPERTY_CONSTANT;
            product(&c, 0, 1, 2);
            gb_logical_tensor left = preferred(&c, 0, compiled_first),
                              right = preferred(&c, 1, compiled_first);
            cr_expect_str_eq(gb_logical_tensor_get_layout(&left), "strided");
            cr_expect_str_eq(gb_logical_tensor_get_layout(&right), "Ba32b");
            cr_expect(right.id == 1 && right.property == c.tensors[1].property);
            c.tensors[1] = right; /* and it is content with what it asked for */
            right = preferred(&c, 1, compiled_first);
            cr_expect_str_eq(gb_logical_tensor_get_layout(&right), "Ba32b");
            close_case(&c);
        }
}

/* The rows of the layouts of a product, as the texts of left, right and result; each compiles for
 * its inputs to its result without a copy, and is not another. */
Test(layouts, combinations)
{
    chain_case c;
    gb_partition *partition;
    gb_logical_tensor rows[64 * 3], few[3];
    size_t count;
    open_case(&c);
    add_tensor(&c, SHAPE(100, 70));
    add_tensor(&c, SHAPE(70, 96));
    add_tensor(&c, SHAPE(100, 96));
    c.tensors[1].property = GB_PROPERTY_CONSTANT;
    product(&c, 0, 1, 2);
    const gb_logical_tensor *in[] = {&c.tensors[1], &c.tensors[0]};
    kernel_ok(gb_graph_finalize(c.graph));
    kernel_ok(gb_graph_filter(c.graph, GB_POLICY_DEBUG));
    kernel_ok(gb_graph_get_partitions(c.graph, 1, &partition, NULL));
    kernel_ok(gb_partition_query_layouts(partition, 2, in, 64, rows, &count));
    cr_assert_geq(count, 2);
    cr_expect_eq(gb_partition_query_layouts(partition, 2, in, 1, few, NULL), GB_INVALID_ARGUMENTS);
    bool packed = false;
    for (size_t r = 0; r < count; r++) {
        const gb_logical_tensor *row = rows + 3 * r, *result = &row[2];
        gb_compiled_partition *compiled;
        gb_logical_tensor found, open = *result;
        cr_expect(row[0].id == 1 && row[1].id == 0 && result->id == 2);
        cr_expect_eq(row[0].property, GB_PROPERTY_CONSTANT);
        for (int i = 0; i < 2; i++)
            cr_expect(r > 0 || strcmp(gb_logical_tensor_get_layout(&row[i]), "strided") == 0);
        packed |= strcmp(gb_logical_tensor_get_layout(&row[0]), "Ba32b") == 0;
        for (size_t other = 0; other < r; other++) {
            uint8_t equal[2];
            for (int i = 0; i < 2; i++)
                kernel_ok(gb_logical_tensor_is_equal(&row[i], &rows[3 * other + i], &equal[i]));
            cr_expect_not(equal[0] && equal[1], "row %zu", r);
        }
        kernel_ok(gb_partition_compile(partition, &compiled, 2,
                (const gb_logical_tensor *[]){&row[0], &row[1]}, 1,
                (const gb_logical_tensor *[]){&open}, c.engine));
        kernel_ok(gb_compiled_partition_query_logical_tensor(compiled, 2, &found));
        uint8_t same;
        kernel_ok(gb_logical_tensor_has_same_layout_and_dtype(&found, result, &same));
        cr_expect(same, "row %zu", r);
        cr_expect_null(strstr(gb_compiled_partition_get_kernels(compiled), "copy"), "row %zu: %s",
                r, gb_compiled_partition_get_kernels(compiled));
        gb_compiled_partition_destroy(compiled);
    }
    cr_expect(packed, "no row has packed weights");
    gb_partition_destroy(partition);
    close_case(&c);
}

Test(layouts, a_single_op_chooses_its_result)
{
    gb_op *op = make_op(GB_OP_CONVOLUTION);
    gb_partition *partition;
    gb_compiled_partition *first, *again;
    gb_engine *engine;
    gb_logical_tensor src, weights, dst, found;
    const int64_t ones[] = {1, 1}, zeros[] = {0, 0};
    gb_cache_counters before, after;
    kernel_ok(gb_logical_tensor_init_with_dims(
            &src, 0, GB_F32, 4, (int64_t[]){1, 16, 9, 9}, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    kernel_ok(gb_logical_tensor_init_with_dims(&weights, 1, GB_F32, 4, (int64_t[]){64, 16, 3, 3},
            GB_LAYOUT_STRIDED, GB_PROPERTY_CONSTANT));
    kernel_ok(gb_logical_tensor_init(
            &dst, 2, GB_F32, GB_UNKNOWN_NDIMS, GB_LAYOUT_ANY, GB_PROPERTY_VARIABLE));
    kernel_ok(gb_op_set_attr_s64(op, GB_ATTR_STRIDES, 2, ones));
    kernel_ok(gb_op_set_attr_s64(op, GB_ATTR_DILATIONS, 2, ones));
    kernel_ok(gb_op_set_attr_s64(op, GB_ATTR_PADS_BEGIN, 2, zeros));
    kernel_ok(gb_op_set_attr_s64(op, GB_ATTR_PADS_END, 2, zeros));
    kernel_ok(gb_op_set_attr_str(op, GB_ATTR_DATA_FORMAT, "NCX", 3));
    kernel_ok(gb_op_set_attr_str(op, GB_ATTR_WEIGHTS_FORMAT, "OIX", 3));
    kernel_ok(gb_op_add_input(op, &src));
    kernel_ok(gb_op_add_input(op, &weights));
    kernel_ok(gb_op_add_output(op, &dst));
    kernel_ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
    kernel_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    const gb_logical_tensor *in[] = {&src, &weights}, *out[] = {&dst};
    kernel_ok(gb_partition_compile(partition, &first, 2, in, 1, out, engine));
    kernel_ok(gb_compiled_partition_query_logical_tensor(first, 2, &found));
    cr_expect_eq(found.strides[1], 1, "channels do not lie innermost");
    cr_expect_eq(found.dims[2], 7);
    out[0] = &found;
    kernel_ok(gb_get_compiled_partition_cache_counters(&before));
    kernel_ok(gb_partition_compile(partition, &again, 2, in, 1, out, engine));
    kernel_ok(gb_get_compiled_partition_cache_counters(&after));
    cr_expect_eq(after.hits, before.hits + 1);
    cr_expect_eq(after.misses, before.misses);
    gb_compiled_partition_destroy(first);
    gb_compiled_partition_destroy(again);
    gb_partition_destroy(partition);
    gb_engine_destroy(engine);
    gb_op_destroy(op);
}
