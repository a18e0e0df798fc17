/* Getting started: a convolution with bias and ReLU, from logical tensors to a result. */
#include "example.h"

/* Tensors are known by ids of the caller's choice. */
enum { SRC, WEIGHTS, BIAS, SUM, DST };
enum { N = 1, C = 3, H = 8, W = 8, OC = 16 };

/* 1. Describe the graph: tensors first, then the ops that read and make them. */
static gb_graph *build(void)
{
    gb_logical_tensor src = dense(SRC, GB_F32, 4, (int64_t[]){N, C, H, W}, GB_PROPERTY_VARIABLE);
    /* Constant: may be packed once and kept. */
    gb_logical_tensor weights =
            dense(WEIGHTS, GB_F32, 4, (int64_t[]){OC, C, 3, 3}, GB_PROPERTY_CONSTANT);
    gb_logical_tensor bias = dense(BIAS, GB_F32, 1, (int64_t[]){OC}, GB_PROPERTY_CONSTANT);
    gb_logical_tensor sum = inferred(SUM, GB_F32, 4), dst = inferred(DST, GB_F32, 4);

    gb_op *conv = make_op(0, GB_OP_CONVOLUTION, "conv", &src, &weights, &bias, &sum);
    const int64_t ones[] = {1, 1};
    CHECK(gb_op_set_attr_s64(conv, GB_ATTR_STRIDES, 2, ones));
    CHECK(gb_op_set_attr_s64(conv, GB_ATTR_DILATIONS, 2, ones));
    CHECK(gb_op_set_attr_s64(conv, GB_ATTR_PADS_BEGIN, 2, ones));
    CHECK(gb_op_set_attr_s64(conv, GB_ATTR_PADS_END, 2, ones));
    CHECK(gb_op_set_attr_str(conv, GB_ATTR_DATA_FORMAT, "NCX", 3));
    CHECK(gb_op_set_attr_str(conv, GB_ATTR_WEIGHTS_FORMAT, "OIX", 3));

    gb_graph *graph;
    CHECK(gb_graph_create(&graph, GB_ENGINE_CPU));
    add_op(graph, conv);
    add_op(graph, make_op(1, GB_OP_RELU, "relu", &sum, NULL, NULL, &dst));
    CHECK(gb_graph_finalize(graph));
    return graph;
}

/* 2. Ask which parts of it the library runs as one: here, all of it. */
static gb_partition *only_partition(gb_graph *graph)
{
    size_t count;
    gb_partition *partition;
    CHECK(gb_graph_filter(graph, GB_POLICY_FUSION));
    CHECK(gb_graph_get_partitions(graph, 0, NULL, &count));
    EXPECT(count == 1);
    CHECK(gb_graph_get_partitions(graph, count, &partition, NULL));
    printf("one partition, formed by pattern %s\n", gb_partition_get_pattern(partition));
    return partition;
}

int main(void)
{
    gb_graph *graph = build();
    gb_partition *partition = only_partition(graph);
    gb_engine *engine;
    gb_stream *stream;
    CHECK(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    CHECK(gb_stream_create(&stream, engine));

    /* 3. Compile it for the shapes at hand. The output's are worked out. */
    gb_logical_tensor ports[3], dst = inferred(DST, GB_F32, 4);
    CHECK(gb_partition_get_input_ports(partition, 3, ports, NULL));
    const gb_logical_tensor *inputs[] = {&ports[0], &ports[1], &ports[2]}, *outputs[] = {&dst};
    gb_compiled_partition *compiled;
    CHECK(gb_partition_compile(partition, &compiled, 3, inputs, 1, outputs, engine));
    CHECK(gb_compiled_partition_query_logical_tensor(compiled, DST, &dst));
    printf("kernels: %s\n", gb_compiled_partition_get_kernels(compiled));

    /* 4. Execute it on memory of the caller's, or of the library's. */
    static float data[3][N * C * H * W + OC * C * 9];
    gb_tensor *in[3], *out;
    for (int i = 0; i < 3; i++) {
        fill_random(data[i], sizeof data[i] / sizeof(float), (unsigned)i * 6 + 11);
        CHECK(gb_tensor_create(&in[i], &ports[i], engine, data[i]));
    }
    CHECK(gb_tensor_create(&out, &dst, engine, GB_MEMORY_ALLOCATE));
    const gb_tensor *in_list[] = {in[0], in[1], in[2]};
    gb_tensor *out_list[] = {out};
    CHECK(gb_compiled_partition_execute(compiled, stream, 3, in_list, 1, out_list, NULL));
    CHECK(gb_stream_wait(stream));

    /* The first result by hand: the window's upper left lies in the padding. */
    void *result;
    CHECK(gb_tensor_get_data_handle(out, &result));
    double expected = data[BIAS][0];
    for (int c = 0; c < C; c++)
        for (int y = 0; y < 2; y++)
            for (int x = 0; x < 2; x++)
                expected += (double)data[SRC][(c * H + y) * W + x] *
                            (double)data[WEIGHTS][(c * 3 + y + 1) * 3 + x + 1];
    expected = expected > 0 ? expected : 0;
    printf("dst[0] = %.6f, by hand %.6f\n", (double)((float *)result)[0], expected);
    EXPECT(fabs((double)((float *)result)[0] - expected) < 1e-5);

    for (int i = 0; i < 3; i++)
        CHECK(gb_tensor_destroy(in[i]));
    CHECK(gb_tensor_destroy(out));
    CHECK(gb_compiled_partition_destroy(compiled));
    CHECK(gb_partition_destroy(partition));
    CHECK(gb_stream_destroy(stream));
    CHECK(gb_engine_destroy(engine));
    CHECK(gb_graph_destroy(graph));
    return 0;
}
