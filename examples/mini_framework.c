/* A mini framework: it hands over its whole graph, an op that the library does not know included,
 * runs that op itself, and lets results share the memory of inputs where the library says they may.
 */
#include "example.h"

#include <string.h>

enum { X, W, PRODUCT, ACTIVE, RUNNING, SCALE, Y, TENSORS };
enum { ROWS = 4, SIZE = 16 };
enum { MATMUL, RELU, RUNNING_SUM, SCALED, OPS };

/* The framework's own op, opaque to the library: sums along each row, up to each element. */
static void running_sum(const float *src, float *dst)
{
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < SIZE; c++)
            dst[r * SIZE + c] = src[r * SIZE + c] + (c ? dst[r * SIZE + c - 1] : 0);
}

typedef struct framework {
    gb_engine *engine;
    gb_stream *stream;
    float *memory[TENSORS];
    gb_logical_tensor layouts[TENSORS]; /* as compiling settled them */
    int shared;                         /* results that took over an input's memory */
} framework;

static gb_graph *build(framework *f)
{
    const int64_t rows[] = {ROWS, SIZE}, square[] = {SIZE, SIZE}, one[] = {1};
    f->layouts[X] = dense(X, GB_F32, 2, rows, GB_PROPERTY_VARIABLE);
    f->layouts[W] = dense(W, GB_F32, 2, square, GB_PROPERTY_CONSTANT);
    f->layouts[SCALE] = dense(SCALE, GB_F32, 1, one, GB_PROPERTY_VARIABLE);
    f->layouts[RUNNING] = dense(RUNNING, GB_F32, 2, rows, GB_PROPERTY_VARIABLE);
    f->layouts[PRODUCT] = inferred(PRODUCT, GB_F32, 2);
    f->layouts[ACTIVE] = inferred(ACTIVE, GB_F32, 2);
    f->layouts[Y] = inferred(Y, GB_F32, 2);
    const gb_logical_tensor *t = f->layouts;
    gb_graph *graph;
    CHECK(gb_graph_create(&graph, GB_ENGINE_CPU));
    add_op(graph, make_op(MATMUL, GB_OP_MATMUL, "product", &t[X], &t[W], NULL, &t[PRODUCT]));
    add_op(graph, make_op(RELU, GB_OP_RELU, "relu", &t[PRODUCT], NULL, NULL, &t[ACTIVE]));
    add_op(graph, make_op(RUNNING_SUM, GB_OP_WILDCARD, "running sum", &t[ACTIVE], NULL, NULL,
                          &t[RUNNING]));
    add_op(graph, make_op(SCALED, GB_OP_MULTIPLY, "scale", &t[RUNNING], &t[SCALE], NULL, &t[Y]));
    CHECK(gb_graph_finalize(graph));
    return graph;
}

/* Memory for a result: that of an input which nobody needs any more, if the two may share it. */
static float *place(framework *f, const gb_compiled_partition *compiled, size_t output)
{
    size_t count;
    const gb_inplace_pair *pairs;
    CHECK(gb_compiled_partition_get_inplace_ports(compiled, &count, &pairs));
    for (size_t i = 0; i < count; i++)
        if (pairs[i].output_id == output && pairs[i].input_id == RUNNING) {
            f->shared++;
            return f->memory[RUNNING];
        }
    size_t bytes; /* of the layout that the library chose */
    CHECK(gb_logical_tensor_get_mem_size(&f->layouts[output], &bytes));
    return calloc(1, bytes);
}

static void run_partition(framework *f, const gb_partition *partition)
{
    enum { MOST = 4 };
    size_t n_inputs;
    gb_logical_tensor ports[MOST], out;
    const gb_logical_tensor *inputs[MOST], *outputs[] = {&out};
    gb_compiled_partition *compiled;
    gb_tensor *tensors[MOST], *result;
    CHECK(gb_partition_get_input_ports_num(partition, &n_inputs));
    EXPECT(n_inputs <= MOST);
    CHECK(gb_partition_get_input_ports(partition, n_inputs, ports));
    CHECK(gb_partition_get_output_ports(partition, 1, &out));
    for (size_t i = 0; i < n_inputs; i++)
        inputs[i] = &f->layouts[ports[i].id];
    if (out.id != ACTIVE) /* what only the library reads, or the end, it may lay out as it likes */
        out.layout_type = GB_LAYOUT_ANY;
    CHECK(gb_partition_compile(partition, &compiled, n_inputs, inputs, 1, outputs, f->engine));
    CHECK(gb_compiled_partition_query_logical_tensor(compiled, out.id, &f->layouts[out.id]));
    f->memory[out.id] = place(f, compiled, out.id);
    for (size_t i = 0; i < n_inputs; i++)
        CHECK(gb_tensor_create(&tensors[i], inputs[i], f->engine, f->memory[ports[i].id]));
    CHECK(gb_tensor_create(&result, &f->layouts[out.id], f->engine, f->memory[out.id]));
    CHECK(gb_compiled_partition_execute(compiled, f->stream, n_inputs,
            (const gb_tensor *const *)tensors, 1, (const gb_tensor *[]){result}, NULL));
    printf("  ran %s\n", gb_compiled_partition_get_kernels(compiled));
    for (size_t i = 0; i < n_inputs; i++)
        CHECK(gb_tensor_destroy(tensors[i]));
    CHECK(gb_tensor_destroy(result));
    CHECK(gb_compiled_partition_destroy(compiled));
}

static void run_partitions(framework *f, gb_graph *graph)
{
    size_t count;
    gb_partition *partitions[OPS];
    CHECK(gb_graph_filter(graph, GB_POLICY_FUSION));
    CHECK(gb_graph_get_partition_num(graph, &count));
    EXPECT(count == 3);
    CHECK(gb_graph_get_partitions(graph, count, partitions));
    for (size_t i = 0; i < count; i++) {
        uint8_t supported;
        CHECK(gb_partition_is_supported(partitions[i], &supported));
        printf("partition %zu: %s\n", i, supported ? "the library's" : "the framework's");
        if (supported)
            run_partition(f, partitions[i]);
        else
            running_sum(f->memory[ACTIVE], f->memory[RUNNING]);
        CHECK(gb_partition_destroy(partitions[i]));
    }
}

static void check_result(const framework *f)
{
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int c = 0; c < SIZE; c++) {
            double product = 0;
            for (int k = 0; k < SIZE; k++)
                product += (double)f->memory[X][r * SIZE + k] * (double)f->memory[W][k * SIZE + c];
            sum += product > 0 ? product : 0;
            EXPECT(fabs(sum * (double)*f->memory[SCALE] - (double)f->memory[Y][r * SIZE + c]) <
                    1e-4);
        }
    }
}

int main(void)
{
    framework f = {0};
    gb_graph *graph = build(&f);
    CHECK(gb_engine_create(&f.engine, GB_ENGINE_CPU, 0));
    CHECK(gb_stream_create(&f.stream, f.engine));
    f.memory[X] = calloc(ROWS * SIZE, sizeof(float));
    f.memory[W] = calloc(SIZE * SIZE, sizeof(float));
    f.memory[SCALE] = calloc(1, sizeof(float));
    f.memory[RUNNING] = calloc(ROWS * SIZE, sizeof(float));
    fill_random(f.memory[X], ROWS * SIZE, 1);
    fill_random(f.memory[W], SIZE * SIZE, 2);
    *f.memory[SCALE] = 0.5F;
    run_partitions(&f, graph);
    check_result(&f);
    printf("results that share an input's memory: %d\n", f.shared);
    EXPECT(f.shared == 1);
    for (int i = 0; i < TENSORS; i++)
        if (i != Y || f.memory[Y] != f.memory[RUNNING])
            free(f.memory[i]);
    CHECK(gb_stream_destroy(f.stream));
    CHECK(gb_engine_destroy(f.engine));
    CHECK(gb_graph_destroy(graph));
    return 0;
}
