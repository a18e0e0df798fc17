/* Outputs in the memory of inputs: every pair that is reported for our own graphs gives the bits of
 * separate memory, and the pairs that should be there are, and no others. (Tests of kernels execute
 * their pairs, too: kernel_case.h.) */
#include "runtime_case.h"

#include <dirent.h>
#include <graphbench/graphbench_tools.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>

enum { MOST_PORTS = 64 };

static gb_engine *engine;
static gb_stream *stream;

static void open_engine(void)
{
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    runtime_ok(gb_stream_create(&stream, engine));
}

static void close_engine(void)
{
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
}

TestSuite(inplace, .init = open_engine, .fini = close_engine);

/* A compiled partition with memory for its ports, inputs first. */
typedef struct ports {
    const gb_compiled_partition *compiled;
    size_t n_inputs, n;
    gb_logical_tensor tensors[MOST_PORTS];
    size_t bytes[MOST_PORTS];
    char *original[MOST_PORTS]; /* of inputs */
    char *memory[MOST_PORTS];
} ports;

/* Small numbers in any type. */
static void fill(const gb_logical_tensor *tensor, char *data, size_t bytes, unsigned seed)
{
    size_t size = gb_data_type_bytes(tensor->data_type, 1);
    for (size_t i = 0; i < bytes / size; i++) {
        seed = seed * 1664525U + 1013904223U;
        float value = (float)(seed >> 20) / 2048 - 1;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        uint64_t code = seed >> 28; /* 0 .. 15 */
        switch (tensor->data_type) {
        case GB_F32:
            memcpy(data + i * size, &value, size);
            break;
        case GB_BF16:
            bits >>= 16;
            memcpy(data + i * size, &bits, size);
            break;
        case GB_F16:
            code = 0x3000 | seed >> 22;
            memcpy(data + i * size, &code, size);
            break;
        case GB_S32:
        case GB_S64:
            code &= 1;
            memcpy(data + i * size, &code, size);
            break;
        default:
            data[i] = (char)(tensor->data_type == GB_BOOLEAN ? code & 1 : code);
            break;
        }
    }
}

static void allocate(ports *p)
{
    for (size_t i = 0; i < p->n; i++) {
        runtime_ok(gb_compiled_partition_query_logical_tensor(
                p->compiled, p->tensors[i].id, &p->tensors[i]));
        runtime_ok(gb_logical_tensor_get_mem_size(&p->tensors[i], &p->bytes[i]));
        size_t room = p->bytes[i] + 64;
        p->original[i] = calloc(1, room);
        p->memory[i] = calloc(1, room);
        fill(&p->tensors[i], p->original[i], p->bytes[i], (unsigned)i * 77 + 5);
    }
}

static void release(ports *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->original[i]);
        free(p->memory[i]);
    }
}

/* Executes on fresh inputs, with the memory of port `output` at that of port `input`. */
static gb_status run(const ports *p, size_t output, size_t input)
{
    gb_tensor *tensors[MOST_PORTS];
    for (size_t i = 0; i < p->n; i++) {
        memcpy(p->memory[i], p->original[i], p->bytes[i]);
        char *data = p->memory[i == output ? input : i];
        runtime_ok(p->tensors[i].property == GB_PROPERTY_HOST_SCALAR
                           ? gb_tensor_create_scalar(&tensors[i], &p->tensors[i], data)
                           : gb_tensor_create(&tensors[i], &p->tensors[i], engine, data));
    }
    gb_status status = gb_compiled_partition_execute(p->compiled, stream, p->n_inputs,
            (const gb_tensor *const *)tensors, p->n - p->n_inputs, tensors + p->n_inputs, NULL);
    for (size_t i = 0; i < p->n; i++)
        gb_tensor_destroy(tensors[i]);
    return status;
}

static size_t find(const ports *p, size_t id, bool is_input)
{
    for (size_t i = is_input ? 0 : p->n_inputs; i < p->n; i++)
        if (p->tensors[i].id == id)
            return i;
    cr_assert_fail("no port %zu", id);
    return 0;
}

/* Executes every pair in place; returns their number. */
static size_t check_pairs(ports *p, const char *name)
{
    const gb_inplace_pair *pairs;
    size_t count;
    char *apart[MOST_PORTS];
    runtime_ok(gb_compiled_partition_get_inplace_ports(p->compiled, &count, &pairs));
    if (count == 0 || run(p, p->n, p->n) != GB_SUCCESS) /* no kernels for made-up axes */
        return 0;
    for (size_t i = p->n_inputs; i < p->n; i++)
        apart[i] = memcpy(malloc(p->bytes[i] + 1), p->memory[i], p->bytes[i]);
    for (size_t k = 0; k < count; k++) {
        size_t input = find(p, pairs[k].input_id, true),
               output = find(p, pairs[k].output_id, false);
        runtime_ok(run(p, output, input));
        for (size_t i = p->n_inputs; i < p->n; i++)
            cr_expect_eq(memcmp(p->memory[i == output ? input : i], apart[i], p->bytes[i]), 0,
                    "%s: output %zu in the memory of input %zu (%s)", name, pairs[k].output_id,
                    pairs[k].input_id, gb_compiled_partition_get_kernels(p->compiled));
    }
    for (size_t i = p->n_inputs; i < p->n; i++)
        free(apart[i]);
    return count;
}

static size_t check_partition(const gb_partition *partition, const char *name)
{
    ports p = {.n_inputs = 0};
    size_t n_outputs;
    const gb_logical_tensor *list[MOST_PORTS];
    gb_compiled_partition *compiled;
    runtime_ok(gb_partition_get_input_ports(partition, 0, NULL, &p.n_inputs));
    runtime_ok(gb_partition_get_output_ports(partition, 0, NULL, &n_outputs));
    cr_assert_leq(p.n_inputs + n_outputs, MOST_PORTS);
    runtime_ok(gb_partition_get_input_ports(partition, p.n_inputs, p.tensors, NULL));
    p.n_inputs = runtime_each_once(p.tensors, p.n_inputs);
    p.n = p.n_inputs + n_outputs;
    runtime_ok(gb_partition_get_output_ports(partition, n_outputs, p.tensors + p.n_inputs, NULL));
    for (size_t i = 0; i < p.n; i++) {
        if (p.tensors[i].layout_type == GB_LAYOUT_UNDEF)
            p.tensors[i].layout_type = GB_LAYOUT_STRIDED;
        list[i] = &p.tensors[i];
    }
    runtime_ok(gb_partition_compile(
            partition, &compiled, p.n_inputs, list, n_outputs, list + p.n_inputs, engine));
    p.compiled = compiled;
    allocate(&p);
    size_t count = check_pairs(&p, name);
    release(&p);
    gb_compiled_partition_destroy(compiled);
    return count;
}

static size_t check_graph(gb_graph *graph, const char *name)
{
    gb_partition *partitions[MOST_PORTS];
    size_t n, count = 0;
    runtime_ok(gb_graph_infer_shapes(graph));
    runtime_ok(gb_graph_finalize(graph));
    runtime_ok(gb_graph_filter(graph, GB_POLICY_FUSION));
    runtime_ok(gb_graph_get_partitions(graph, 0, NULL, &n));
    cr_assert_leq(n, MOST_PORTS);
    runtime_ok(gb_graph_get_partitions(graph, n, partitions, NULL));
    for (size_t i = 0; i < n; i++) {
        uint8_t supported;
        runtime_ok(gb_partition_is_supported(partitions[i], &supported));
        if (supported)
            count += check_partition(partitions[i], name);
        gb_partition_destroy(partitions[i]);
    }
    gb_graph_destroy(graph);
    return count;
}

static size_t check_folder(const char *folder)
{
    char path[1024];
    snprintf(path, sizeof path, GB_TEST_DATA "/../inputs/graph/%s", folder);
    DIR *directory = opendir(path);
    cr_assert_not_null(directory, "%s", path);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        gb_graph *graph;
        if (!strstr(entry->d_name, ".json"))
            continue;
        snprintf(path, sizeof path, GB_TEST_DATA "/../inputs/graph/%s/%s", folder, entry->d_name);
        runtime_ok(gb_graph_load_json(&graph, path, NULL, NULL));
        count += check_graph(graph, entry->d_name);
    }
    closedir(directory);
    return count;
}

/* Of 99, 155 and 110 graphs. */
Test(inplace, pairs_of_single_ops)
{
    cr_expect_geq(check_folder("op"), 55);
}

Test(inplace, pairs_of_patterns)
{
    cr_expect_geq(check_folder("pattern"), 50);
}

Test(inplace, pairs_of_complex_fusions)
{
    cr_expect_geq(check_folder("complex_fusion"), 60);
}

static bool is_one_of(const gb_op_kind *kinds, size_t n, gb_op_kind kind)
{
    for (size_t i = 0; i < n; i++)
        if (kinds[i] == kind)
            return true;
    return false;
}

/* Needs an input whole, or elements elsewhere, before it writes. */
static bool reads_around(gb_op_kind kind)
{
    static const gb_op_kind kinds[] = {GB_OP_MATMUL, GB_OP_CONVOLUTION, GB_OP_CONV_TRANSPOSE,
            GB_OP_CONVOLUTION_BACKWARD_DATA, GB_OP_CONVOLUTION_BACKWARD_WEIGHTS,
            GB_OP_CONV_TRANSPOSE_BACKWARD_DATA, GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS,
            GB_OP_MAX_POOL, GB_OP_AVG_POOL, GB_OP_MAX_POOL_BACKWARD, GB_OP_AVG_POOL_BACKWARD,
            GB_OP_INTERPOLATE, GB_OP_STATIC_TRANSPOSE, GB_OP_BIAS_ADD_BACKWARD};
    return is_one_of(kinds, sizeof kinds / sizeof *kinds, kind);
}

static bool is_reduction(gb_op_kind kind)
{
    return kind >= GB_OP_REDUCE_L1 && kind <= GB_OP_REDUCE_SUM;
}

static int64_t count_of(const gb_logical_tensor *tensor)
{
    int64_t count = 1;
    for (int d = 0; d < tensor->ndims; d++)
        count *= tensor->dims[d];
    return count;
}

/* The sample alone: its result lies where an input of its size may, unless the op reads around. */
static void check_sample(gb_op *op, gb_op_kind kind)
{
    gb_graph *graph;
    runtime_case c;
    const gb_inplace_pair *pairs;
    size_t count;
    bool fits = false, paired = false;
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_ok(gb_graph_add_op(graph, op));
    runtime_compile(&c, graph, NULL);
    runtime_ok(
            gb_compiled_partition_query_logical_tensor(c.compiled, c.outputs[0].id, &c.outputs[0]));
    for (size_t i = 0; i < c.n_inputs; i++)
        fits = fits || (c.inputs[i].property == GB_PROPERTY_VARIABLE &&
                               count_of(&c.inputs[i]) == count_of(&c.outputs[0]) &&
                               gb_data_type_bytes(c.inputs[i].data_type, 16) ==
                                       gb_data_type_bytes(c.outputs[0].data_type, 16));
    runtime_ok(gb_compiled_partition_get_inplace_ports(c.compiled, &count, &pairs));
    for (size_t i = 0; i < count; i++)
        paired = paired || pairs[i].output_id == c.outputs[0].id;
    cr_expect_eq(paired, fits && !reads_around(kind), "%s (%s): %s", gb_op_kind_name(kind),
            gb_op_get_name(op), paired ? "shares" : "does not share");
    runtime_close(&c);
}

Test(inplace, results_lie_where_operands_may)
{
    for (int kind = 0; kind < GB_OP_LAST; kind++)
        for (size_t i = 0; i < gb_op_sample_num((gb_op_kind)kind); i++) {
            gb_op *op;
            if (is_reduction((gb_op_kind)kind))
                continue;
            runtime_ok(gb_op_sample_create(&op, (gb_op_kind)kind, i));
            check_sample(op, (gb_op_kind)kind);
            gb_op_destroy(op);
        }
}

/* The sum is written where its operand lies: no copy, and nothing kept in between. */
static void expect_sum_in_place(gb_graph *graph, size_t operand, size_t sum, const char *name)
{
    runtime_case c;
    const gb_inplace_pair *pairs;
    gb_memory_use use;
    size_t count;
    runtime_compile(&c, graph, NULL);
    runtime_ok(gb_compiled_partition_get_inplace_ports(c.compiled, &count, &pairs));
    cr_assert_eq(count, 1, "%s: %zu pairs (%s)", name, count,
            gb_compiled_partition_get_kernels(c.compiled));
    cr_expect_eq(pairs[0].input_id, operand);
    cr_expect_eq(pairs[0].output_id, sum);
    runtime_ok(gb_compiled_partition_get_memory(c.compiled, &use));
    cr_expect_eq(use.intermediates, 0);
    cr_expect_null(strstr(gb_compiled_partition_get_kernels(c.compiled), "copy"));
    check_partition(c.partition, name);
    runtime_close(&c);
}

/* 0 x 1 -> 2, + 3 -> 4 -> ReLU 5 */
static gb_graph *product_and_sum(int64_t m, int64_t k, int64_t n)
{
    gb_graph *graph;
    gb_logical_tensor t[] = {runtime_matrix(0, m, k, GB_PROPERTY_VARIABLE),
            runtime_matrix(1, k, n, GB_PROPERTY_VARIABLE),
            runtime_matrix(2, m, n, GB_PROPERTY_VARIABLE),
            runtime_matrix(3, m, n, GB_PROPERTY_VARIABLE),
            runtime_matrix(4, m, n, GB_PROPERTY_VARIABLE),
            runtime_matrix(5, m, n, GB_PROPERTY_VARIABLE)};
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_MATMUL, 2, (const gb_logical_tensor *[]){&t[0], &t[1]}, &t[2]);
    runtime_op(graph, 1, GB_OP_ADD, 2, (const gb_logical_tensor *[]){&t[2], &t[3]}, &t[4]);
    runtime_op(graph, 2, GB_OP_RELU, 1, (const gb_logical_tensor *[]){&t[4]}, &t[5]);
    return graph;
}

Test(inplace, products_add_where_the_operand_lies)
{
    const int64_t sizes[][3] = {{1, 64, 300}, {7, 33, 65}, {70, 1500, 130}, {130, 40, 1}};
    for (int threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            char name[64];
            snprintf(name, sizeof name, "product %zu on %d threads", i, threads);
            omp_set_num_threads(threads);
            expect_sum_in_place(product_and_sum(sizes[i][0], sizes[i][1], sizes[i][2]), 3, 5, name);
        }
}

static gb_logical_tensor image(
        size_t id, bool channels_last, int64_t channels, int64_t height, int64_t width)
{
    gb_logical_tensor tensor;
    const int64_t last[] = {2, height, width, channels}, first[] = {2, channels, height, width};
    runtime_ok(gb_logical_tensor_init_with_dims(&tensor, id, GB_F32, 4,
            channels_last ? last : first, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    return tensor;
}

/* 0 * 1 -> 2, 3 + 2 -> 4, with 3 x 3 windows */
static gb_graph *convolution_and_sum(
        bool channels_last, int64_t in, int64_t out, int64_t groups, int64_t stride)
{
    enum { HEIGHT = 11, WIDTH = 18 };
    const int64_t strides[] = {stride, stride}, ones[] = {1, 1};
    const int64_t filter[] = {out, in / groups, 3, 3};
    gb_graph *graph;
    gb_op *op;
    gb_logical_tensor weights, src = image(0, channels_last, in, HEIGHT, WIDTH), t[5];
    for (size_t i = 2; i < 5; i++)
        t[i] = image(i, channels_last, out, (HEIGHT - 1) / stride + 1, (WIDTH - 1) / stride + 1);
    runtime_ok(gb_logical_tensor_init_with_dims(
            &weights, 1, GB_F32, 4, filter, GB_LAYOUT_STRIDED, GB_PROPERTY_CONSTANT));
    runtime_ok(gb_op_create(&op, 0, GB_OP_CONVOLUTION, ""));
    runtime_ok(gb_op_set_attr_s64(op, GB_ATTR_STRIDES, 2, strides));
    runtime_ok(gb_op_set_attr_s64(op, GB_ATTR_PADS_BEGIN, 2, ones));
    runtime_ok(gb_op_set_attr_s64(op, GB_ATTR_PADS_END, 2, ones));
    runtime_ok(gb_op_set_attr_s64(op, GB_ATTR_DILATIONS, 2, ones));
    runtime_ok(gb_op_set_attr_s64(op, GB_ATTR_GROUPS, 1, &groups));
    runtime_ok(gb_op_set_attr_str(op, GB_ATTR_WEIGHTS_FORMAT, "OIX", 3));
    runtime_ok(gb_op_set_attr_str(op, GB_ATTR_DATA_FORMAT, channels_last ? "NXC" : "NCX", 3));
    runtime_ok(gb_op_add_input(op, &src));
    runtime_ok(gb_op_add_input(op, &weights));
    runtime_ok(gb_op_add_output(op, &t[2]));
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_ok(gb_graph_add_op(graph, op));
    gb_op_destroy(op);
    runtime_op(graph, 1, GB_OP_ADD, 2, (const gb_logical_tensor *[]){&t[3], &t[2]}, &t[4]);
    return graph;
}

Test(inplace, convolutions_add_where_the_operand_lies)
{
    const int64_t forms[][4] = {{5, 7, 1, 1}, {300, 70, 1, 1}, {24, 40, 2, 1}, {48, 48, 48, 1},
            {6, 36, 1, 2}, {37, 37, 37, 1}};
    for (int threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < 2 * sizeof forms / sizeof *forms; i++) {
            char name[64];
            const int64_t *f = forms[i / 2];
            snprintf(name, sizeof name, "convolution %zu on %d threads", i, threads);
            omp_set_num_threads(threads);
            expect_sum_in_place(convolution_and_sum(i % 2, f[0], f[1], f[2], f[3]), 3, 4, name);
        }
}

/* An operand that the product itself reads must stay whole. */
Test(inplace, what_is_read_elsewhere_is_kept)
{
    gb_graph *graph;
    runtime_case c;
    const gb_inplace_pair *pairs;
    size_t count;
    gb_logical_tensor t[5];
    for (size_t i = 0; i < 5; i++)
        t[i] = runtime_matrix(i, 20, 20, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_MATMUL, 2, (const gb_logical_tensor *[]){&t[0], &t[1]}, &t[2]);
    runtime_op(graph, 1, GB_OP_ADD, 2, (const gb_logical_tensor *[]){&t[2], &t[0]}, &t[3]);
    runtime_compile(&c, graph, NULL);
    runtime_ok(gb_compiled_partition_get_inplace_ports(c.compiled, &count, &pairs));
    cr_expect_eq(count, 0);
    runtime_close(&c);
}
