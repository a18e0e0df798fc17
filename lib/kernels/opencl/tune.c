/* The search for a device's shape: from the one that is given it goes on to neighbours, field by
 * field, and keeps what makes the works of that field faster in the geometric mean. Results do not
 * depend on it: kernels of every shape compute the same. */
#include "base/memory.h"
#include "base/verbose.h"
#include "kernels/opencl/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_TENSORS = 5,
    LEAST_RUNS = 3,
    MOST_RUNS = 50,
    RUN_MS = 80 /* for one candidate on one work */
};

/* What a candidate has to be faster by. */
static const double least_gain = 0.02;

/* C = A B, or attention of `rows` queries and keys with heads of `columns`. */
typedef struct work {
    const char *name;
    bool attention;
    int64_t batch, rows, columns, k;
} work;

static const work works[] = {
        {"square", false, 1, 768, 768, 768},
        {"tall", false, 1, 4096, 128, 256},
        {"thin", false, 1, 512, 512, 32},
        {"batched", false, 16, 128, 128, 64},
        {"vector", false, 1, 1, 2048, 2048},
        {"heads", true, 8, 256, 64, 64},
        {"long heads", true, 1, 1024, 128, 128},
};
enum { WORKS = 7 };
_Static_assert(sizeof works / sizeof *works == WORKS, "times of all works");

/* Neighbours of a shape, those of products and those of attention. */
static const struct {
    bool attention, cpu;
    const char *shape;
} steps[] = {
        {false, true, "row_tiles=4"},
        {false, true, "row_tiles=12"},
        {false, true, "row_tiles=16"},
        {false, true, "row_tiles=24"},
        {false, true, "column_tiles=2"},
        {false, true, "column_tiles=8"},
        {false, true, "column_tiles=16"},
        {false, true, "depth=128"},
        {false, true, "depth=384"},
        {false, true, "depth=512"},
        {false, true, "tile_rows=4"},
        {false, true, "tile_rows=8"},
        {false, true, "tile_rows=8,lanes=8"},
        {false, true, "items=2"},
        {false, true, "items=8"},
        {true, true, "attention_rows=16"},
        {true, true, "attention_rows=48"},
        {true, true, "attention_keys=32"},
        {true, true, "attention_keys=128"},
        {true, true, "attention_tile=6,attention_rows=36"},
        {false, false, "local_memory=0"},
        {false, false, "local_memory=1"},
        {false, false, "row_tiles=8,column_tiles=8"},
        {false, false, "row_tiles=16,column_tiles=8"},
        {false, false, "tile_rows=8"},
        {false, false, "lanes=8"},
        {false, false, "depth=8"},
        {false, false, "depth=32"},
        {true, false, "attention_rows=8"},
        {true, false, "attention_keys=32"},
};

/* A work on an engine. */
typedef struct problem {
    const work *w;
    gb_partition *partition;
    size_t n_in;
    gb_logical_tensor in[MOST_TENSORS], out;
    gb_tensor *in_tensors[MOST_TENSORS], *out_tensor;
} problem;

static gb_status describe(gb_logical_tensor *t, size_t id, int64_t batch, int64_t rows, int64_t n)
{
    const int64_t dims[] = {batch, rows, n};
    return gb_logical_tensor_init_with_dims(
            t, id, GB_F32, 3, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE);
}

static gb_status add_op(gb_graph *graph, size_t id, gb_op_kind kind, bool transposes,
        const gb_logical_tensor *a, const gb_logical_tensor *b, const gb_logical_tensor *result)
{
    const uint8_t yes = 1;
    const int64_t last = 2;
    gb_op *op;
    GB_TRY(gb_op_create(&op, id, kind, "tune"));
    gb_status status = gb_op_add_input(op, a);
    if (status == GB_SUCCESS && b)
        status = gb_op_add_input(op, b);
    if (status == GB_SUCCESS && transposes)
        status = gb_op_set_attr_bool(op, GB_ATTR_TRANSPOSE_B, 1, &yes);
    if (status == GB_SUCCESS && kind == GB_OP_SOFTMAX)
        status = gb_op_set_attr_s64(op, GB_ATTR_AXIS, 1, &last);
    if (status == GB_SUCCESS)
        status = gb_op_add_output(op, result);
    if (status == GB_SUCCESS)
        status = gb_graph_add_op(graph, op);
    gb_op_destroy(op);
    return status;
}

static gb_status add_ops(gb_graph *graph, problem *p)
{
    const work *w = p->w;
    gb_logical_tensor scores, weights;
    p->n_in = w->attention ? 3 : 2;
    GB_TRY(describe(&p->in[0], 0, w->batch, w->rows, w->k));
    GB_TRY(describe(&p->out, 4, w->batch, w->rows, w->columns));
    if (!w->attention) {
        GB_TRY(describe(&p->in[1], 1, w->batch, w->k, w->columns));
        return add_op(graph, 0, GB_OP_MATMUL, false, &p->in[0], &p->in[1], &p->out);
    }
    GB_TRY(describe(&p->in[1], 1, w->batch, w->rows, w->k));
    GB_TRY(describe(&p->in[2], 2, w->batch, w->rows, w->columns));
    GB_TRY(describe(&scores, 5, w->batch, w->rows, w->rows));
    GB_TRY(describe(&weights, 6, w->batch, w->rows, w->rows));
    GB_TRY(add_op(graph, 0, GB_OP_MATMUL, true, &p->in[0], &p->in[1], &scores));
    GB_TRY(add_op(graph, 1, GB_OP_SOFTMAX, false, &scores, NULL, &weights));
    return add_op(graph, 2, GB_OP_MATMUL, false, &weights, &p->in[2], &p->out);
}

static gb_status make_partition(problem *p)
{
    gb_graph *graph;
    size_t n = 0;
    GB_TRY(gb_graph_create(&graph, GB_ENGINE_GPU));
    gb_status status = add_ops(graph, p);
    if (status == GB_SUCCESS)
        status = gb_graph_finalize(graph);
    if (status == GB_SUCCESS)
        status = gb_graph_filter(graph, GB_POLICY_FUSION);
    if (status == GB_SUCCESS)
        status = gb_graph_get_partitions(graph, 1, &p->partition, &n);
    gb_graph_destroy(graph);
    return status;
}

static gb_status fill(gb_tensor *tensor, const gb_logical_tensor *description, gb_stream *stream)
{
    void *numbers;
    size_t n;
    GB_TRY(gb_logical_tensor_get_element_count(description, &n));
    GB_TRY(gb_tensor_map(tensor, stream, &numbers));
    for (size_t i = 0; i < n; i++)
        ((float *)numbers)[i] = (float)(i % 17) / 16 - 0.5f;
    return gb_tensor_unmap(tensor, stream, numbers);
}

static gb_status set_up(problem *p, const work *w, gb_engine *engine, gb_stream *stream)
{
    *p = (problem){.w = w};
    GB_TRY(make_partition(p));
    GB_TRY(gb_tensor_create(&p->out_tensor, &p->out, engine, GB_MEMORY_ALLOCATE));
    for (size_t i = 0; i < p->n_in; i++) {
        GB_TRY(gb_tensor_create(&p->in_tensors[i], &p->in[i], engine, GB_MEMORY_ALLOCATE));
        GB_TRY(fill(p->in_tensors[i], &p->in[i], stream));
    }
    return GB_SUCCESS;
}

static void clear(problem *p)
{
    for (size_t i = 0; i < p->n_in; i++)
        gb_tensor_destroy(p->in_tensors[i]);
    gb_tensor_destroy(p->out_tensor);
    gb_partition_destroy(p->partition);
}

static gb_status run(const problem *p, gb_compiled_partition *compiled, gb_stream *stream)
{
    const gb_tensor *in[MOST_TENSORS];
    for (size_t i = 0; i < p->n_in; i++)
        in[i] = p->in_tensors[i];
    GB_TRY(gb_compiled_partition_execute(compiled, stream, p->n_in, in, 1, &p->out_tensor, NULL));
    return gb_stream_wait(stream);
}

/* The shortest run, after one that may still build. */
static gb_status measure_compiled(
        const problem *p, gb_compiled_partition *compiled, gb_stream *stream, double *best)
{
    GB_TRY(run(p, compiled, stream));
    int64_t end = gb_nanoseconds() + (int64_t)RUN_MS * 1000000;
    *best = INFINITY;
    for (int i = 0; i < LEAST_RUNS || (i < MOST_RUNS && gb_nanoseconds() < end); i++) {
        int64_t start = gb_nanoseconds();
        GB_TRY(run(p, compiled, stream));
        *best = fmin(*best, (double)(gb_nanoseconds() - start));
    }
    return GB_SUCCESS;
}

static gb_status measure(const problem *p, gb_engine *engine, gb_stream *stream, double *best)
{
    const gb_logical_tensor *in[MOST_TENSORS], *out[] = {&p->out};
    gb_compiled_partition *compiled;
    for (size_t i = 0; i < p->n_in; i++)
        in[i] = &p->in[i];
    GB_TRY(gb_partition_compile(p->partition, &compiled, p->n_in, in, 1, out, engine));
    gb_status status = measure_compiled(p, compiled, stream, best);
    gb_compiled_partition_destroy(compiled);
    return status;
}

/* The times of a shape on the works of products, or on those of attention. */
static gb_status measure_all(const problem *problems, bool attention, const gb_cl_shape *shape,
        gb_engine *engine, gb_stream *stream, double *times)
{
    gb_cl_engine_of(engine)->shape = *shape;
    for (int i = 0; i < WORKS; i++)
        if (works[i].attention == attention)
            GB_TRY(measure(&problems[i], engine, stream, &times[i]));
    return GB_SUCCESS;
}

/* How many times as long as `before`, in the geometric mean. */
static double compare(bool attention, const double *before, const double *times)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < WORKS; i++)
        if (works[i].attention == attention) {
            sum += log(times[i] / before[i]);
            n++;
        }
    return exp(sum / n);
}

static void report(const char *candidate, double ratio, bool kept)
{
    gb_line line;
    if (!gb_verbose_on(GB_VERBOSE_CREATE) || !gb_line_begin(&line, "tune"))
        return;
    gb_line_field(&line, "%s", candidate);
    gb_line_field(&line, "%.3f", ratio);
    gb_line_field(&line, "%s", kept ? "kept" : "left");
    gb_line_end(&line);
}

/* What there is now is measured anew beside each candidate, since other programs come and go. */
static gb_status search(const gb_cl_device *device, const problem *problems, gb_engine *engine,
        gb_stream *stream, gb_cl_shape *shape, int64_t end)
{
    double best[WORKS], times[WORKS];
    for (size_t i = 0; i < sizeof steps / sizeof *steps && gb_nanoseconds() < end; i++) {
        gb_cl_shape next = *shape;
        if (steps[i].cpu != (bool)shape->is_cpu ||
                !gb_cl_shape_read(&next, device, steps[i].shape, strlen(steps[i].shape)) ||
                gb_cl_shape_key(&next) == gb_cl_shape_key(shape))
            continue;
        GB_TRY(measure_all(problems, steps[i].attention, shape, engine, stream, best));
        GB_TRY(measure_all(problems, steps[i].attention, &next, engine, stream, times));
        double ratio = compare(steps[i].attention, best, times);
        bool kept = ratio < 1 - least_gain;
        report(steps[i].shape, ratio, kept);
        if (kept)
            *shape = next;
    }
    return GB_SUCCESS;
}

static gb_status search_on(const gb_cl_device *device, gb_engine *engine, gb_stream *stream,
        gb_cl_shape *shape, int64_t end)
{
    problem problems[WORKS] = {{0}};
    gb_status status = GB_SUCCESS;
    int n = 0;
    while (n < WORKS && status == GB_SUCCESS) {
        status = set_up(&problems[n], &works[n], engine, stream);
        n++;
    }
    if (status == GB_SUCCESS)
        status = search(device, problems, engine, stream, shape, end);
    while (n > 0)
        clear(&problems[--n]);
    return status;
}

void gb_cl_shape_search(const gb_cl_device *device, gb_cl_shape *shape, int seconds)
{
    int64_t end = gb_nanoseconds() + (int64_t)seconds * 1000000000;
    const cl_context_properties properties[] = {
            CL_CONTEXT_PLATFORM, (cl_context_properties)(void *)device->platform, 0};
    gb_engine *engine;
    gb_stream *stream;
    cl_int error;
    cl_context context = clCreateContext(properties, 1, &device->id, NULL, NULL, &error);
    gb_status status = context ? gb_ocl_engine_create_with_context(
                                         &engine, device->id, context, GB_OCL_MEMORY_AUTO, NULL)
                               : gb_cl_fail(error, "creating a context");
    if (status == GB_SUCCESS) {
        status = gb_stream_create(&stream, engine);
        if (status == GB_SUCCESS) {
            status = search_on(device, engine, stream, shape, end);
            gb_stream_destroy(stream);
        }
        gb_engine_destroy(engine);
    }
    if (context)
        clReleaseContext(context);
    gb_verbose_result("tune", status);
}
