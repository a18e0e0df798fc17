/* What happens when memory runs out: every allocation of the library fails in turn while a graph is
 * read, edited, partitioned, compiled and executed. Each time there must be a status that says so,
 * and everything taken must be given back.
 *
 *     fault_allocation GRAPH.json ...      then 10,000 life cycles of one partition, which leave
 * nothing
 *
 * The linker puts the functions below in the place of the C library's (--wrap). */
#include <graphbench/graphbench_tools.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CYCLES = 10000 };

static atomic_long until_failure = -1; /* allocations that still succeed; negative: all */
static atomic_long live;               /* blocks taken and not given back */
static atomic_bool failed;             /* since this was last cleared */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
void __wrap_free(void *memory);

static bool fails(void)
{
    if (until_failure < 0 || atomic_fetch_sub(&until_failure, 1) != 0)
        return false;
    failed = true;
    return true;
}

static void *counted(void *memory)
{
    live += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    if (fails())
        return NULL;
    void *moved = __real_realloc(memory, size);
    live += moved && !memory;
    return moved;
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (fails())
        return 12; /* ENOMEM */
    int error = __real_posix_memalign(memory, alignment, size);
    live += !error;
    return error;
}

void __wrap_free(void *memory)
{
    live -= memory != NULL;
    __real_free(memory);
}

/* Executes once, on zeros. */
static gb_status execute(const gb_compiled_partition *compiled, gb_engine *engine,
        const gb_logical_tensor *in, size_t n_in, const gb_logical_tensor *out, size_t n_out)
{
    enum { MOST = 32 };
    gb_tensor *tensors[2 * MOST] = {NULL};
    gb_stream *stream = NULL;
    const int64_t zero = 0;
    gb_status status = n_in > MOST || n_out > MOST ? GB_RUNTIME_ERROR : GB_SUCCESS;
    for (size_t i = 0; i < n_in + n_out && status == GB_SUCCESS; i++) {
        gb_logical_tensor tensor = i < n_in ? in[i] : out[i - n_in];
        if (i >= n_in)
            status = gb_compiled_partition_query_logical_tensor(compiled, tensor.id, &tensor);
        if (status == GB_SUCCESS && tensor.property == GB_PROPERTY_HOST_SCALAR)
            status = gb_tensor_create_scalar(&tensors[i], &tensor, &zero);
        else if (status == GB_SUCCESS)
            status = gb_tensor_create(&tensors[i], &tensor, engine, GB_MEMORY_ALLOCATE);
        void *data = NULL;
        size_t bytes;
        if (status == GB_SUCCESS && gb_tensor_get_data_handle(tensors[i], &data) == GB_SUCCESS &&
                data && gb_logical_tensor_get_mem_size(&tensor, &bytes) == GB_SUCCESS)
            memset(data, 0, bytes);
    }
    if (status == GB_SUCCESS)
        status = gb_stream_create(&stream, engine);
    for (int round = 0; round < 2 && status == GB_SUCCESS; round++)
        status = gb_compiled_partition_execute(compiled, stream, n_in,
                (const gb_tensor *const *)tensors, n_out, tensors + n_in, NULL);
    gb_stream_destroy(stream);
    for (size_t i = 0; i < n_in + n_out && i < 2 * MOST; i++)
        gb_tensor_destroy(tensors[i]);
    return status;
}

static void forget_dims(gb_logical_tensor *tensor)
{
    for (int d = 0; d < tensor->ndims; d++)
        tensor->dims[d] = tensor->strides[d] = GB_UNKNOWN_DIM;
}

/* Gives matrices and images blocks. */
static void block(gb_logical_tensor *tensor)
{
    if (tensor->ndims == 2)
        gb_logical_tensor_set_layout(tensor, "bA3a");
    if (tensor->ndims == 4)
        gb_logical_tensor_set_layout(tensor, "aBcd4b");
}

/* DYNAMIC: compiles with unknown dims, and creates outputs without. */
typedef enum compile_way { DENSE, DYNAMIC, BLOCKED, WAYS } compile_way;

static gb_status compile_and_execute(
        const gb_partition *partition, gb_engine *engine, compile_way way)
{
    enum { MOST = 32 };
    gb_logical_tensor in[MOST], out[MOST], open[MOST];
    const gb_logical_tensor *inputs[MOST], *outputs[MOST];
    size_t n_in, n_out;
    gb_partition_get_input_ports(partition, 0, NULL, &n_in);
    gb_partition_get_output_ports(partition, 0, NULL, &n_out);
    if (n_in > MOST || n_out > MOST)
        return GB_RUNTIME_ERROR;
    gb_partition_get_input_ports(partition, n_in, in, NULL);
    gb_partition_get_output_ports(partition, n_out, out, NULL);
    for (size_t i = 0; i < n_in; i++) {
        if (way == BLOCKED)
            block(&in[i]);
        inputs[i] = &open[i];
        open[i] = in[i];
        if (way == DYNAMIC)
            forget_dims(&open[i]);
    }
    for (size_t i = 0; i < n_out; i++) {
        outputs[i] = &out[i];
        if (way == DYNAMIC)
            forget_dims(&out[i]);
        if (way == BLOCKED)
            block(&out[i]);
    }
    gb_compiled_partition *compiled = NULL;
    gb_status status =
            gb_partition_compile(partition, &compiled, n_in, inputs, n_out, outputs, engine);
    if (status == GB_SUCCESS)
        status = execute(compiled, engine, in, n_in, out, n_out);
    gb_compiled_partition_destroy(compiled);
    return status;
}

static gb_status run_partitions(gb_graph *graph)
{
    enum { MOST = 16 };
    gb_partition *partitions[MOST] = {NULL};
    gb_engine *engine = NULL;
    size_t count = 0;
    gb_status status = gb_engine_create(&engine, GB_ENGINE_CPU, 0);
    if (status == GB_SUCCESS)
        status = gb_graph_get_partitions(graph, 0, NULL, &count);
    if (status == GB_SUCCESS)
        status = count > MOST ? GB_RUNTIME_ERROR
                              : gb_graph_get_partitions(graph, count, partitions, NULL);
    for (size_t i = 0; i < count && status == GB_SUCCESS; i++) {
        uint8_t supported = 0;
        gb_partition_is_supported(partitions[i], &supported);
        for (int way = DENSE; supported && way < WAYS && status == GB_SUCCESS; way++)
            status = compile_and_execute(partitions[i], engine, way);
    }
    for (size_t i = 0; i < MOST; i++)
        gb_partition_destroy(partitions[i]);
    gb_engine_destroy(engine);
    return status;
}

static gb_status run_graph(const char *path)
{
    gb_graph *graph = NULL;
    gb_status status = gb_graph_load(&graph, path, NULL, NULL);
    if (status == GB_SUCCESS)
        status = gb_graph_infer_shapes(graph);
    if (status == GB_SUCCESS)
        status = gb_graph_finalize(graph);
    if (status == GB_SUCCESS)
        status = gb_graph_filter(graph, GB_POLICY_FUSION);
    if (status == GB_SUCCESS)
        status = run_partitions(graph);
    gb_graph_destroy(graph);
    return status;
}

static gb_status count_op(void *context, const gb_op *op)
{
    (void)op;
    ++*(size_t *)context;
    return GB_SUCCESS;
}

/* Puts an op behind the first input, looks at the graph in all ways, and takes the op out again. */
static gb_status edit(gb_graph *graph, gb_op *op, size_t input)
{
    size_t id, visited = 0;
    uint64_t hash;
    uint8_t equal;
    gb_op_get_id(op, &id);
    gb_status status = gb_graph_insert_op(graph, input, GB_NO_ID, op);
    if (status == GB_SUCCESS)
        status = gb_graph_replace_op(graph, id, op);
    if (status == GB_SUCCESS)
        status = gb_graph_visit(graph, GB_VISIT_DEPTH_FIRST, count_op, &visited);
    if (status == GB_SUCCESS)
        status = gb_graph_get_hash(graph, &hash);
    if (status == GB_SUCCESS)
        status = gb_graph_is_equal(graph, graph, &equal);
    if (status == GB_SUCCESS)
        status = gb_graph_save_text(graph, "/dev/null");
    if (status == GB_SUCCESS)
        status = gb_graph_remove_op(graph, id);
    return status;
}

static gb_status edit_graph(const char *path)
{
    enum { MOST = 32 };
    gb_graph *graph = NULL;
    gb_op *op = NULL;
    gb_logical_tensor inputs[MOST];
    size_t count = 0;
    gb_status status = gb_graph_load(&graph, path, NULL, NULL);
    if (status == GB_SUCCESS)
        status = gb_graph_get_inputs(graph, 0, NULL, &count);
    if (status == GB_SUCCESS)
        status = count > MOST ? GB_RUNTIME_ERROR : gb_graph_get_inputs(graph, count, inputs, NULL);
    if (status == GB_SUCCESS)
        status =
                gb_graph_make_op(&op, graph, "Wildcard", 1, &inputs[0].id, 1, &inputs[0].data_type);
    if (status == GB_SUCCESS)
        status = edit(graph, op, inputs[0].id);
    gb_op_destroy(op);
    gb_graph_destroy(graph);
    return status;
}

/* Lets allocation number 0, 1, 2, ... fail until none does. */
static bool every_failure_is_reported(const char *path, gb_status (*run)(const char *path))
{
    for (long n = 0;; n++) {
        long before = live;
        failed = false;
        until_failure = n;
        gb_status status = run(path);
        until_failure = -1;
        if (live != before) {
            printf("%s: %ld blocks are left when allocation %ld fails\n", path, live - before, n);
            return false;
        }
        if (!failed && status == GB_SUCCESS) {
            printf("%s: %ld allocations, each failure reported\n", path, n);
            return true;
        }
        if (status != GB_OUT_OF_MEMORY && status != GB_SUCCESS) { /* it may do without */
            printf("%s: allocation %ld fails: status %s (%s)\n", path, n, gb_status_name(status),
                    gb_last_error());
            return false;
        }
    }
}

static bool cycles_leave_nothing(const char *path)
{
    long before = live;
    for (int i = 0; i < CYCLES; i++)
        if (run_graph(path) != GB_SUCCESS) {
            printf("%s: cycle %d: %s\n", path, i, gb_last_error());
            return false;
        }
    printf("%s: %d life cycles leave %ld blocks\n", path, CYCLES, live - before);
    return live == before;
}

int main(int argc, char **argv)
{
    bool good = argc > 1;
    for (int i = 1; i < argc; i++)
        good = every_failure_is_reported(argv[i], run_graph) &&
               every_failure_is_reported(argv[i], edit_graph) && good;
    return good && cycles_leave_nothing(argv[1]) ? 0 : 1;
}
