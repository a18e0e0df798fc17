/* What plans weigh, and that compiling and executing need little stack: every small graph that the
 * project has, compiled and executed on a thread with 128 KiB, its workers' stacks alike
 * (OMP_STACKSIZE in tests/CMakeLists.txt). */
#include "kernels/attention/attention_backward_plan.h"
#include "kernels/attention/attention_by_rows.h"
#include "kernels/conv/conv_pair.h"
#include "kernels/conv/conv_product.h"
#include "kernels/gemm/gemm_plan.h"
#include "kernels/plan/pointwise.h"
#include "runtime/compiled.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STACK = 128 * 1024,
    MOST_PORTS = 64,
    FIXED = 4 * 1024,   /* most bytes of a plan without what follows from its sizes */
    STEP = 8 * 1024,    /* most bytes that a step of the graphs here keeps on average */
    LARGEST = 64 * 1024 /* and at most: lists of offsets of long sums */
};

/* What all steps of a directory keep. */
typedef struct tally {
    const char *directory;
    size_t graphs, steps, bytes, largest;
    char failure[256];
} tally;

static gb_status execute(const gb_compiled_partition *compiled, gb_engine *engine, size_t n_in,
        const gb_logical_tensor *in, size_t n_out, const gb_logical_tensor *out)
{
    gb_tensor *tensors[2 * MOST_PORTS] = {NULL};
    gb_stream *stream = NULL;
    gb_status status = gb_stream_create(&stream, engine);
    for (size_t i = 0; i < n_in + n_out && status == GB_SUCCESS; i++) {
        gb_logical_tensor tensor = i < n_in ? in[i] : out[i - n_in];
        const int64_t zero = 0;
        void *data = NULL;
        size_t bytes = 0;
        if (i >= n_in)
            gb_compiled_partition_query_logical_tensor(compiled, tensor.id, &tensor);
        if (tensor.property == GB_PROPERTY_HOST_SCALAR)
            status = gb_tensor_create_scalar(&tensors[i], &tensor, &zero);
        else
            status = gb_tensor_create(&tensors[i], &tensor, engine, GB_MEMORY_ALLOCATE);
        if (status == GB_SUCCESS && tensor.property != GB_PROPERTY_HOST_SCALAR) {
            gb_tensor_get_data_handle(tensors[i], &data);
            gb_logical_tensor_get_mem_size(&tensor, &bytes);
            if (data)
                memset(data, 0, bytes);
        }
    }
    if (status == GB_SUCCESS)
        status = gb_compiled_partition_execute(compiled, stream, n_in,
                (const gb_tensor *const *)tensors, n_out, tensors + n_in, NULL);
    for (size_t i = 0; i < n_in + n_out; i++)
        gb_tensor_destroy(tensors[i]);
    gb_stream_destroy(stream);
    return status;
}

static void weigh(const gb_compiled_partition *compiled, tally *t)
{
    const gb_program *program = &compiled->executable->program;
    for (uint32_t i = 0; i < program->n_steps; i++) {
        size_t bytes = gb_step_bytes(&program->steps[i]);
        t->steps++;
        t->bytes += bytes;
        t->largest = bytes > t->largest ? bytes : t->largest;
        if (bytes > LARGEST)
            snprintf(t->failure, sizeof t->failure, "a step \"%s\" keeps %zu bytes",
                    program->steps[i].kernel, bytes);
    }
}

static gb_status run_partition(const gb_partition *partition, gb_engine *engine, tally *t)
{
    static gb_logical_tensor in[MOST_PORTS], out[MOST_PORTS]; /* one thread is at work */
    static const gb_logical_tensor *inputs[MOST_PORTS], *outputs[MOST_PORTS];
    gb_compiled_partition *compiled = NULL;
    size_t n_in, n_out;
    gb_partition_get_input_ports(partition, 0, NULL, &n_in);
    gb_partition_get_output_ports(partition, 0, NULL, &n_out);
    if (n_in > MOST_PORTS || n_out > MOST_PORTS)
        return GB_INVALID_ARGUMENTS;
    gb_partition_get_input_ports(partition, n_in, in, NULL);
    gb_partition_get_output_ports(partition, n_out, out, NULL);
    for (size_t i = 0; i < n_in; i++)
        inputs[i] = &in[i];
    for (size_t i = 0; i < n_out; i++)
        outputs[i] = &out[i];
    gb_status status =
            gb_partition_compile(partition, &compiled, n_in, inputs, n_out, outputs, engine);
    if (status == GB_SUCCESS)
        status = execute(compiled, engine, n_in, in, n_out, out);
    if (status == GB_SUCCESS)
        weigh(compiled, t);
    gb_compiled_partition_destroy(compiled);
    return status;
}

static gb_status run_graph(const char *path, gb_engine *engine, tally *t)
{
    gb_graph *graph = NULL;
    gb_partition **partitions = NULL;
    size_t count = 0;
    gb_status status = gb_graph_load(&graph, path, NULL, NULL);
    if (status == GB_SUCCESS)
        status = gb_graph_infer_shapes(graph);
    if (status == GB_SUCCESS)
        status = gb_graph_finalize(graph);
    if (status == GB_SUCCESS)
        status = gb_graph_filter(graph, GB_POLICY_FUSION);
    if (status == GB_SUCCESS)
        status = gb_graph_get_partitions(graph, 0, NULL, &count);
    partitions = calloc(count + 1, sizeof *partitions);
    if (status == GB_SUCCESS)
        status = gb_graph_get_partitions(graph, count, partitions, NULL);
    for (size_t i = 0; i < count; i++) {
        uint8_t supported = 0;
        gb_partition_is_supported(partitions[i], &supported);
        if (status == GB_SUCCESS && supported)
            status = run_partition(partitions[i], engine, t);
        gb_partition_destroy(partitions[i]);
    }
    free(partitions);
    gb_graph_destroy(graph);
    return status;
}

static void *run_directory(void *context)
{
    tally *t = context;
    char path[600];
    gb_engine *engine = NULL;
    gb_status status = gb_engine_create(&engine, GB_ENGINE_CPU, 0);
    DIR *directory = opendir(t->directory);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (!strstr(entry->d_name, ".json") || t->failure[0])
            continue;
        snprintf(path, sizeof path, "%s/%s", t->directory, entry->d_name);
        status = run_graph(path, engine, t);
        t->graphs++;
        if (status != GB_SUCCESS)
            snprintf(t->failure, sizeof t->failure, "%.100s: %.100s", entry->d_name,
                    gb_last_error());
    }
    if (directory)
        closedir(directory);
    gb_engine_destroy(engine);
    return NULL;
}

static void check(const char *name)
{
    char directory[400];
    tally t = {.directory = directory};
    pthread_t thread;
    pthread_attr_t attributes;
    snprintf(directory, sizeof directory, "%s/../inputs/graph/%s", GB_TEST_DATA, name);
    pthread_attr_init(&attributes);
    cr_assert_eq(pthread_attr_setstacksize(&attributes, STACK), 0);
    cr_assert_eq(pthread_create(&thread, &attributes, run_directory, &t), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    cr_assert_eq(t.failure[0], '\0', "%s", t.failure);
    cr_assert_gt(t.graphs, 0, "no graphs in %s", directory);
    cr_log_info("%s: %zu graphs, %zu steps, %zu bytes each, the largest %zu", name, t.graphs,
            t.steps, t.bytes / t.steps, t.largest);
    cr_expect_leq(t.bytes, t.steps * STEP);
}

Test(plan_sizes, operations)
{
    check("op");
}
Test(plan_sizes, patterns)
{
    check("pattern");
}
Test(plan_sizes, complex_fusion)
{
    check("complex_fusion");
}

Test(plan_sizes, structs_are_small)
{
    size_t attention = sizeof(gb_attention_problem) + sizeof(gb_attention_by_rows);
    size_t gradients = sizeof(gb_attention_gradient_problem) + sizeof(gb_attention_backward);
    cr_expect_leq(sizeof(gb_pointwise_program), 256);
    cr_expect_leq(sizeof(gb_gemm), FIXED);
    cr_expect_leq(sizeof(gb_conv_product), FIXED);
    cr_expect_leq(sizeof(gb_conv_pair), FIXED);
    cr_expect_leq(attention, FIXED);
    cr_expect_leq(gradients, FIXED);
    cr_log_info("tile program %zu, gemm %zu, conv %zu, pair of convs %zu, attention %zu, its "
                "gradients %zu",
            sizeof(gb_pointwise_program), sizeof(gb_gemm), sizeof(gb_conv_product),
            sizeof(gb_conv_pair), attention, gradients);
}
