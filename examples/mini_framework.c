/* A mini framework: it hands over its whole graph, an op that the library does not know included,
 * and runs that op itself. Results between the library's partitions lie as the library likes best,
 * from one compile to the next, and may share the memory of inputs where the library says so.
 */
#include "example.h"

#include <string.h>

/* result = running sum of relu(MIX (X W)), times SCALE */
enum { X, W, MIX, PRODUCT, MIXED, ACTIVE, RUNNING, SCALE, RESULT, TENSORS };
enum { ROWS = 100, INNER = 64, DEPTH = 40, COLUMNS = 96 };
enum { MATMUL, MIXING, RELU, RUNNING_SUM, SCALED, OPS };

/* The framework's own op, opaque to the library: sums along each row, up to each element. It reads
 * and writes rows. */
static void running_sum(const float *src, float *dst)
{
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            dst[r * COLUMNS + c] = src[r * COLUMNS + c] + (c ? dst[r * COLUMNS + c - 1] : 0);
}

typedef struct framework {
    gb_engine *engine;
    gb_stream *stream;
    float *memory[TENSORS];
    gb_logical_tensor layouts[TENSORS]; /* as compiling settled them */
    int shared;                         /* results that took over an input's memory */
    int opaque;                         /* results in blocks */
} framework;

static gb_graph *build(framework *f)
{
    const int64_t x[] = {INNER, DEPTH}, w[] = {DEPTH, COLUMNS}, mix[] = {ROWS, INNER};
    const int64_t rows[] = {ROWS, COLUMNS}, one[] = {1};
    f->layouts[X] = dense(X, GB_F32, 2, x, GB_PROPERTY_VARIABLE);
    f->layouts[W] = dense(W, GB_F32, 2, w, GB_PROPERTY_CONSTANT);
    f->layouts[MIX] = dense(MIX, GB_F32, 2, mix, GB_PROPERTY_VARIABLE);
    f->layouts[SCALE] = dense(SCALE, GB_F32, 1, one, GB_PROPERTY_VARIABLE);
    f->layouts[RUNNING] = dense(RUNNING, GB_F32, 2, rows, GB_PROPERTY_VARIABLE);
    f->layouts[PRODUCT] = inferred(PRODUCT, GB_F32, 2);
    f->layouts[MIXED] = inferred(MIXED, GB_F32, 2);
    f->layouts[ACTIVE] = inferred(ACTIVE, GB_F32, 2);
    f->layouts[RESULT] = inferred(RESULT, GB_F32, 2);
    const gb_logical_tensor *t = f->layouts;
    gb_graph *graph;
    CHECK(gb_graph_create(&graph, GB_ENGINE_CPU));
    add_op(graph, make_op(MATMUL, GB_OP_MATMUL, "product", &t[X], &t[W], NULL, &t[PRODUCT]));
    add_op(graph, make_op(MIXING, GB_OP_MATMUL, "mix", &t[MIX], &t[PRODUCT], NULL, &t[MIXED]));
    add_op(graph, make_op(RELU, GB_OP_RELU, "relu", &t[MIXED], NULL, NULL, &t[ACTIVE]));
    add_op(graph, make_op(RUNNING_SUM, GB_OP_WILDCARD, "running sum", &t[ACTIVE], NULL, NULL,
                          &t[RUNNING]));
    add_op(graph,
            make_op(SCALED, GB_OP_MULTIPLY, "scale", &t[RUNNING], &t[SCALE], NULL, &t[RESULT]));
    CHECK(gb_graph_finalize(graph));
    return graph;
}

/* Memory for a result: that of an input which nobody needs any more, if the two may share it. Here
 * every tensor between two ops has one reader, and the framework fills the others. */
static float *place(framework *f, const gb_compiled_partition *compiled, size_t output)
{
    size_t count, bytes;
    const gb_inplace_pair *pairs;
    CHECK(gb_compiled_partition_get_inplace_ports(compiled, &count, &pairs));
    for (size_t i = 0; i < count; i++) {
        size_t input = pairs[i].input_id;
        if (pairs[i].output_id != output || (input != PRODUCT && input != RUNNING))
            continue;
        float *memory = f->memory[input];
        f->memory[input] = NULL;
        f->shared++;
        return memory;
    }
    /* The bytes of the layout that the library chose, which may have padding. */
    CHECK(gb_logical_tensor_get_mem_size(&f->layouts[output], &bytes));
    return calloc(1, bytes);
}

/* What only the library reads it may lay out as it likes; the framework's op and the caller want
 * rows. The layout that compiling settled on goes with the tensor, into the next compile. */
static void compile(framework *f, const gb_partition *partition, gb_compiled_partition **compiled,
        size_t n_inputs, const gb_logical_tensor *const *inputs, size_t output)
{
    gb_logical_tensor *out = &f->layouts[output];
    const gb_logical_tensor *outputs[] = {out};
    if (output == PRODUCT)
        out->layout_type = GB_LAYOUT_ANY;
    CHECK(gb_partition_compile(partition, compiled, n_inputs, inputs, 1, outputs, f->engine));
    CHECK(gb_compiled_partition_query_logical_tensor(*compiled, output, out));
    f->opaque += out->layout_type == GB_LAYOUT_OPAQUE;
    printf("  compiled %s, result in layout %s\n", gb_compiled_partition_get_kernels(*compiled),
            gb_logical_tensor_get_layout(out));
}

static void run_partition(framework *f, const gb_partition *partition)
{
    enum { MOST = 4 };
    size_t n_inputs;
    gb_logical_tensor ports[MOST], out;
    const gb_logical_tensor *inputs[MOST];
    gb_compiled_partition *compiled;
    gb_tensor *tensors[MOST], *result;
    CHECK(gb_partition_get_input_ports(partition, 0, NULL, &n_inputs));
    EXPECT(n_inputs <= MOST);
    CHECK(gb_partition_get_input_ports(partition, n_inputs, ports, NULL));
    CHECK(gb_partition_get_output_ports(partition, 1, &out, NULL));
    for (size_t i = 0; i < n_inputs; i++)
        inputs[i] = &f->layouts[ports[i].id];
    compile(f, partition, &compiled, n_inputs, inputs, out.id);
    for (size_t i = 0; i < n_inputs; i++)
        CHECK(gb_tensor_create(&tensors[i], inputs[i], f->engine, f->memory[ports[i].id]));
    f->memory[out.id] = place(f, compiled, out.id);
    CHECK(gb_tensor_create(&result, &f->layouts[out.id], f->engine, f->memory[out.id]));
    CHECK(gb_compiled_partition_execute(compiled, f->stream, n_inputs,
            (const gb_tensor *const *)tensors, 1, (gb_tensor *[]){result}, NULL));
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
    CHECK(gb_graph_get_partitions(graph, 0, NULL, &count));
    EXPECT(count == 4);
    CHECK(gb_graph_get_partitions(graph, count, partitions, NULL));
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

static double product(const framework *f, int k, int c)
{
    double sum = 0;
    for (int d = 0; d < DEPTH; d++)
        sum += (double)f->memory[X][k * DEPTH + d] * (double)f->memory[W][d * COLUMNS + c];
    return sum;
}

static void check_result(const framework *f)
{
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int c = 0; c < COLUMNS; c++) {
            double mixed = 0;
            for (int k = 0; k < INNER; k++)
                mixed += (double)f->memory[MIX][r * INNER + k] * product(f, k, c);
            sum += mixed > 0 ? mixed : 0;
            double got = (double)f->memory[RESULT][r * COLUMNS + c];
            EXPECT(fabs(sum * (double)*f->memory[SCALE] - got) < 1e-2);
        }
    }
}

static float *filled(size_t count, unsigned seed)
{
    float *memory = calloc(count, sizeof *memory);
    fill_random(memory, count, seed);
    return memory;
}

int main(void)
{
    framework f = {0};
    gb_graph *graph = build(&f);
    CHECK(gb_engine_create(&f.engine, GB_ENGINE_CPU, 0));
    CHECK(gb_stream_create(&f.stream, f.engine));
    f.memory[X] = filled(INNER * DEPTH, 1);
    f.memory[W] = filled(DEPTH * COLUMNS, 2);
    f.memory[MIX] = filled(ROWS * INNER, 3);
    f.memory[SCALE] = filled(1, 4);
    f.memory[RUNNING] = calloc(ROWS * COLUMNS, sizeof(float));
    run_partitions(&f, graph);
    check_result(&f);
    printf("results that share an input's memory: %d, in blocks: %d\n", f.shared, f.opaque);
    EXPECT(f.shared == 1);
    EXPECT(f.opaque == 1);
    for (int i = 0; i < TENSORS; i++)
        free(f.memory[i]);
    CHECK(gb_stream_destroy(f.stream));
    CHECK(gb_engine_destroy(f.engine));
    CHECK(gb_graph_destroy(graph));
    return 0;
}
