/* Ops that the program defines: in files, graphs, partitions, and executed among those of the
 * library. */
#include "runtime_case.h"

#include <stdatomic.h>
#include <stdio.h>

/* y = |x| summed over the columns, times "factor": rows x columns -> rows. */
static gb_status infer_norm(
        void *context, const gb_op *op, size_t n_outputs, gb_logical_tensor *outputs)
{
    gb_logical_tensor x;
    (void)context;
    if (n_outputs != 1 || gb_op_get_input(op, 0, &x) != GB_SUCCESS || x.ndims != 2)
        return GB_INVALID_SHAPE;
    outputs[0].ndims = 1;
    outputs[0].dims[0] = x.dims[0];
    return GB_SUCCESS;
}

static void run_in_turn(void *pool, int n, void (*body)(void *context, int i), void *context)
{
    (void)pool;
    for (int i = 0; i < n; i++)
        body(context, i);
}

static gb_op_attr factor;

static gb_status run_norm(
        void *context, const gb_op *op, const void *const *inputs, void *const *outputs)
{
    gb_logical_tensor x, y;
    const void *value;
    size_t count;
    gb_op_get_input(op, 0, &x);
    gb_op_get_output(op, 0, &y);
    gb_op_get_attr(op, factor, &count, &value);
    ++*(int *)context;
    for (int64_t r = 0; r < x.dims[0]; r++) {
        float sum = 0;
        for (int64_t c = 0; c < x.dims[1]; c++) {
            float element = ((const float *)inputs[0])[r * x.strides[0] + c * x.strides[1]];
            sum += element < 0 ? -element : element;
        }
        ((float *)outputs[0])[r * y.strides[0]] = sum * (count ? *(const float *)value : 1);
    }
    return GB_SUCCESS;
}

static const char *columns_first(void *context, const gb_op *op, size_t port)
{
    (void)context;
    (void)op;
    return port == 0 ? "ba" : NULL;
}

static int calls;

static gb_op_kind define_norm(void)
{
    const gb_op_definition definition = {.size = sizeof definition,
            .name = "RowNorm",
            .min_inputs = 1,
            .max_inputs = 1,
            .min_outputs = 1,
            .max_outputs = 1,
            .infer = infer_norm,
            .run = run_norm,
            .layout = columns_first,
            .context = &calls};
    gb_op_kind kind;
    runtime_ok(gb_op_attr_define("factor", GB_ATTR_TYPE_F32, &factor));
    runtime_ok(gb_op_kind_define(&definition, &kind));
    return kind;
}

static gb_logical_tensor open_tensor(size_t id)
{
    gb_logical_tensor tensor;
    runtime_ok(gb_logical_tensor_init(
            &tensor, id, GB_F32, GB_UNKNOWN_NDIMS, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    return tensor;
}

/* x (0) > ReLU > RowNorm > Square (3). */
static gb_graph *build(gb_op_kind kind, const float *scale)
{
    gb_graph *graph;
    gb_op *op;
    gb_logical_tensor x = runtime_matrix(0, 3, 4, GB_PROPERTY_VARIABLE), positive = x,
                      norm = open_tensor(2), y = open_tensor(3);
    positive.id = 1;
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_RELU, 1, (const gb_logical_tensor *[]){&x}, &positive);
    runtime_ok(gb_op_create(&op, 1, kind, ""));
    runtime_ok(gb_op_add_input(op, &positive));
    runtime_ok(gb_op_add_output(op, &norm));
    if (scale)
        runtime_ok(gb_op_set_attr_f32(op, factor, 1, scale));
    runtime_ok(gb_graph_add_op(graph, op));
    gb_op_destroy(op);
    runtime_op(graph, 2, GB_OP_SQUARE, 1, (const gb_logical_tensor *[]){&norm}, &y);
    return graph;
}

Test(defined_ops, kinds_have_names)
{
    gb_op_kind kind = define_norm(), found;
    gb_op *op;
    cr_expect_geq(kind, GB_OP_DEFINED);
    cr_expect_str_eq(gb_op_kind_name(kind), "RowNorm");
    runtime_ok(gb_op_kind_parse("RowNorm", &found));
    cr_expect_eq(found, kind);
    runtime_ok(gb_op_create(&op, 4, kind, ""));
    runtime_ok(gb_op_get_kind(op, &found));
    cr_expect_eq(found, kind);
    cr_expect_str_eq(gb_op_get_name(op), "RowNorm_4");
    gb_graph *graph;
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    cr_expect_eq(gb_graph_add_op(graph, op), GB_INVALID_GRAPH_OP); /* without tensors */
    cr_expect(strstr(gb_last_error(), "op 4 (RowNorm)"), "%s", gb_last_error());
    gb_op_destroy(op);
    gb_graph_destroy(graph);
}

Test(defined_ops, content_and_files)
{
    const float two = 2, three = 3;
    gb_op_kind kind = define_norm(), found;
    gb_graph *graphs[] = {
            build(kind, &two), build(kind, &two), build(kind, &three), build(GB_OP_WILDCARD, NULL)};
    uint8_t equal;
    for (int i = 1; i < 4; i++) {
        runtime_ok(gb_graph_is_equal(graphs[0], graphs[i], &equal));
        cr_expect_eq(equal, i == 1, "%d", i);
    }
    char path[] = "/tmp/test_defined_ops_XXXXXX";
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    for (int json = 0; json < 2; json++) {
        gb_graph *again;
        const gb_op *op;
        runtime_ok(
                json ? gb_graph_save_json(graphs[0], path) : gb_graph_save_text(graphs[0], path));
        runtime_ok(gb_graph_load(&again, path, NULL, NULL));
        runtime_ok(gb_graph_find_op(again, 1, &op));
        runtime_ok(gb_op_get_kind(op, &found));
        cr_expect_eq(found, kind);
        runtime_ok(gb_graph_is_equal(graphs[0], again, &equal));
        cr_expect(equal);
        gb_graph_destroy(again);
    }
    remove(path);
    for (int i = 0; i < 4; i++)
        gb_graph_destroy(graphs[i]);
}

/* Runs all partitions on tensors by id; layouts between them are the library's choice. */
static void run_all(gb_graph *graph, float *x, float *y)
{
    gb_partition *partitions[3];
    gb_engine *engine;
    gb_stream *stream;
    gb_tensor *tensors[4] = {NULL};
    size_t n;
    runtime_ok(gb_graph_finalize(graph));
    runtime_ok(gb_graph_filter(graph, GB_POLICY_FUSION));
    runtime_ok(gb_graph_get_partitions(graph, 0, NULL, &n));
    cr_assert_eq(n, 3);
    runtime_ok(gb_graph_get_partitions(graph, n, partitions, NULL));
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    runtime_ok(gb_stream_create(&stream, engine));
    gb_logical_tensor in = runtime_matrix(0, 3, 4, GB_PROPERTY_VARIABLE), out;
    runtime_ok(gb_tensor_create(&tensors[0], &in, engine, x));
    for (size_t i = 0; i < n; i++) {
        uint8_t supported;
        gb_compiled_partition *compiled;
        runtime_ok(gb_partition_is_supported(partitions[i], &supported));
        cr_assert(supported);
        out = open_tensor(i + 1);
        out.layout_type = GB_LAYOUT_ANY;
        runtime_ok(gb_partition_compile(partitions[i], &compiled, 1,
                (const gb_logical_tensor *[]){&in}, 1, (const gb_logical_tensor *[]){&out},
                engine));
        runtime_ok(gb_compiled_partition_query_logical_tensor(compiled, i + 1, &out));
        runtime_ok(gb_tensor_create(
                &tensors[i + 1], &out, engine, i == 2 ? (void *)y : GB_MEMORY_ALLOCATE));
        runtime_ok(gb_compiled_partition_execute(compiled, stream, 1,
                (const gb_tensor *[]){tensors[i]}, 1, (gb_tensor *[]){tensors[i + 1]}, NULL));
        cr_expect(i != 1 || strstr(gb_compiled_partition_get_kernels(compiled), "defined"));
        in = out;
        gb_compiled_partition_destroy(compiled);
        gb_partition_destroy(partitions[i]);
    }
    for (int i = 0; i < 4; i++)
        gb_tensor_destroy(tensors[i]);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
}

Test(defined_ops, run_among_others)
{
    const float two = 2;
    float x[12] = {1, -2, 3, -4, 5, 6, -7, 8, -9, -10, -11, -12}, y[3] = {9, 9, 9};
    gb_graph *graph = build(define_norm(), &two);
    calls = 0;
    run_all(graph, x, y);
    cr_expect(y[0] == 64 && y[1] == 38 * 38 && y[2] == 0, "%g %g %g", (double)y[0], (double)y[1],
            (double)y[2]);
    cr_expect_eq(calls, 1);
    gb_graph_destroy(graph);
}

Test(defined_ops, shapes_and_preferred_layouts)
{
    gb_op_kind kind = define_norm();
    gb_op *op;
    gb_partition *partition;
    gb_logical_tensor x = runtime_matrix(0, 3, 4, GB_PROPERTY_VARIABLE), y = open_tensor(1), found;
    runtime_ok(gb_op_create(&op, 1, kind, ""));
    runtime_ok(gb_op_add_input(op, &x));
    runtime_ok(gb_op_add_output(op, &y));
    runtime_ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
    runtime_ok(gb_partition_infer_shape(
            partition, 1, (const gb_logical_tensor *[]){&x}, 1, (gb_logical_tensor *[]){&y}));
    cr_expect(y.ndims == 1 && y.dims[0] == 3);
    runtime_ok(gb_partition_query_preferred_layout(
            partition, 1, (const gb_logical_tensor *[]){&x}, 0, &found));
    cr_expect(found.strides[0] == 1 && found.strides[1] == 3);
    const int64_t cube[] = {2, 2, 2};
    runtime_ok(gb_logical_tensor_init_with_dims(
            &x, 0, GB_F32, 3, cube, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    y = open_tensor(1);
    cr_expect_eq(gb_partition_infer_shape(partition, 1, (const gb_logical_tensor *[]){&x}, 1,
                         (gb_logical_tensor *[]){&y}),
            GB_INVALID_SHAPE);
    gb_partition_destroy(partition);
    gb_op_destroy(op);
}

static gb_op_attr scale_at, scale_note;

/* y = x times what the pointer points to, plus the note. */
static gb_status run_scale(
        void *context, const gb_op *op, const void *const *inputs, void *const *outputs)
{
    const void *pointer, *note;
    size_t count;
    (void)context;
    gb_op_get_attr(op, scale_at, &count, &pointer);
    gb_op_get_attr(op, scale_note, &count, &note);
    ((float *)outputs[0])[0] = ((const float *)inputs[0])[0] * **(const float *const *)pointer +
                               (float)*(const int64_t *)note;
    return GB_SUCCESS;
}

/* Equal as content, but the function reads other pointers and notes. A constant input makes what
 * the function computes a constant, which other compiled partitions may share, too. */
Test(defined_ops, pointers_and_notes_are_those_of_the_op)
{
    const gb_op_definition definition = {.size = sizeof definition,
            .name = "ScaleAt",
            .min_inputs = 1,
            .max_inputs = 1,
            .min_outputs = 1,
            .max_outputs = 1,
            .run = run_scale};
    static float scales[] = {2, 10};
    static const struct {
        int scale;
        int64_t note;
        bool known;
    } cases[] = {{0, 1, false}, {1, 1, false}, {1, 3, false}, {1, 1, true}};
    gb_op_kind kind;
    gb_engine *engine;
    gb_stream *stream;
    runtime_ok(gb_op_attr_define("scale_at", GB_ATTR_TYPE_POINTER, &scale_at));
    runtime_ok(gb_op_attr_define("temp.scale_note", GB_ATTR_TYPE_S64, &scale_note));
    runtime_ok(gb_op_kind_define(&definition, &kind));
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    runtime_ok(gb_stream_create(&stream, engine));
    for (int i = 0; i < 8; i++) {
        int c = i % 4;
        gb_logical_tensor x = runtime_matrix(
                                  0, 1, 1, i < 4 ? GB_PROPERTY_VARIABLE : GB_PROPERTY_CONSTANT),
                          y = runtime_matrix(1, 1, 1, GB_PROPERTY_VARIABLE);
        float in = 4, out = 0;
        gb_op *op;
        gb_partition *partition;
        gb_compiled_partition *compiled;
        gb_tensor *from, *to;
        gb_cache_counters before, after;
        runtime_ok(gb_op_create(&op, 5, kind, ""));
        runtime_ok(gb_op_add_input(op, &x));
        runtime_ok(gb_op_add_output(op, &y));
        runtime_ok(gb_op_set_attr_pointer(op, scale_at, &scales[cases[c].scale]));
        runtime_ok(gb_op_set_attr_s64(op, scale_note, 1, &cases[c].note));
        runtime_ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
        runtime_ok(gb_get_compiled_partition_cache_counters(&before));
        runtime_ok(gb_partition_compile(partition, &compiled, 1, (const gb_logical_tensor *[]){&x},
                1, (const gb_logical_tensor *[]){&y}, engine));
        runtime_ok(gb_get_compiled_partition_cache_counters(&after));
        cr_expect_eq(after.hits - before.hits, cases[c].known, "%d", i);
        runtime_ok(gb_tensor_create(&from, &x, engine, &in));
        runtime_ok(gb_tensor_create(&to, &y, engine, &out));
        runtime_ok(gb_compiled_partition_execute(
                compiled, stream, 1, (const gb_tensor *[]){from}, 1, (gb_tensor *[]){to}, NULL));
        cr_expect_eq(
                out, 4 * scales[cases[c].scale] + (float)cases[c].note, "%d: %g", i, (double)out);
        gb_tensor_destroy(from);
        gb_tensor_destroy(to);
        gb_compiled_partition_destroy(compiled);
        gb_partition_destroy(partition);
        gb_op_destroy(op);
    }
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
}

static atomic_int tries;

/* Fails the first time. */
static gb_status run_badly(
        void *context, const gb_op *op, const void *const *inputs, void *const *outputs)
{
    (void)context;
    (void)op;
    if (atomic_fetch_add(&tries, 1) == 0)
        return GB_UNIMPLEMENTED;
    ((float *)outputs[0])[0] = 2 * ((const float *)inputs[0])[0];
    return GB_SUCCESS;
}

/* On OpenMP's threads and the program's own, as an ordinary step and as one that prepares a
 * constant: a failure comes out of the call that it happens in, and the next one starts anew. */
Test(defined_ops, a_failure_comes_out)
{
    const gb_op_definition definition = {.size = sizeof definition,
            .name = "Moody",
            .min_inputs = 1,
            .max_inputs = 1,
            .min_outputs = 1,
            .max_outputs = 1,
            .run = run_badly};
    gb_op_kind kind;
    gb_engine *engine;
    runtime_ok(gb_op_kind_define(&definition, &kind));
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    for (int round = 0; round < 4; round++) {
        gb_property property = round & 1 ? GB_PROPERTY_CONSTANT : GB_PROPERTY_VARIABLE;
        const gb_stream_attrs attrs = {.size = sizeof attrs,
                .parallel_for = round & 2 ? run_in_turn : NULL,
                .concurrency = round & 2 ? 2 : 0};
        gb_logical_tensor x = runtime_matrix(0, 1, 1, property), y = x;
        y.id = 1;
        y.property = GB_PROPERTY_VARIABLE;
        float in = (float)(4 + round), out = 1;
        gb_op *op;
        gb_partition *partition;
        gb_compiled_partition *compiled;
        gb_stream *stream;
        gb_tensor *from, *to;
        runtime_ok(gb_op_create(&op, 5, kind, ""));
        runtime_ok(gb_op_add_input(op, &x));
        runtime_ok(gb_op_add_output(op, &y));
        runtime_ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
        runtime_ok(gb_partition_compile(partition, &compiled, 1, (const gb_logical_tensor *[]){&x},
                1, (const gb_logical_tensor *[]){&y}, engine));
        runtime_ok(gb_stream_create_with_attrs(&stream, engine, &attrs));
        runtime_ok(gb_tensor_create(&from, &x, engine, &in));
        runtime_ok(gb_tensor_create(&to, &y, engine, &out));
        tries = 0;
        cr_expect_eq(gb_compiled_partition_execute(compiled, stream, 1, (const gb_tensor *[]){from},
                             1, (gb_tensor *[]){to}, NULL),
                GB_UNIMPLEMENTED);
        cr_expect_str_eq(gb_last_error(), "op 5 (Moody): its function failed (unimplemented)");
        runtime_ok(gb_compiled_partition_execute(
                compiled, stream, 1, (const gb_tensor *[]){from}, 1, (gb_tensor *[]){to}, NULL));
        cr_expect_eq(out, 2 * in, "%d: %g", round, (double)out);
        cr_expect_eq(tries, 2);
        gb_tensor_destroy(from);
        gb_tensor_destroy(to);
        gb_stream_destroy(stream);
        gb_compiled_partition_destroy(compiled);
        gb_partition_destroy(partition);
        gb_op_destroy(op);
    }
    gb_engine_destroy(engine);
}

/* An OpenCL device's engine, or skips the test. */
static gb_engine *device_engine(void)
{
    gb_engine *engine;
    size_t count = 0;
    if (gb_engine_get_count(GB_ENGINE_GPU, &count) != GB_SUCCESS || count == 0)
        cr_skip_test("no OpenCL device");
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_GPU, 0));
    return engine;
}

/* x (0) > op > y (1), a partition for a device. */
static gb_partition *device_partition(
        gb_op_kind kind, const gb_logical_tensor *x, const gb_logical_tensor *y)
{
    gb_partition *partition;
    gb_op *op;
    runtime_ok(gb_op_create(&op, 5, kind, ""));
    runtime_ok(gb_op_add_input(op, x));
    runtime_ok(gb_op_add_output(op, y));
    runtime_ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_GPU));
    gb_op_destroy(op);
    return partition;
}

/* The host calls the function between kernels; a failure comes out of the call, and the stream goes
 * on. */
Test(defined_ops, on_a_device)
{
    const gb_op_definition moody = {.size = sizeof moody,
            .name = "Moody",
            .min_inputs = 1,
            .max_inputs = 1,
            .min_outputs = 1,
            .max_outputs = 1,
            .run = run_badly};
    gb_engine *engine = device_engine();
    gb_logical_tensor x = runtime_matrix(0, 3, 4, GB_PROPERTY_VARIABLE), y;
    const float numbers[12] = {1, -2, 3, -4, 5, 6, -7, 8, -9, -10, -11, -12};
    gb_op_kind kinds[2] = {define_norm()};
    gb_stream *stream;
    runtime_ok(gb_op_kind_define(&moody, &kinds[1]));
    runtime_ok(gb_stream_create(&stream, engine));
    for (int k = 0; k < 2; k++) {
        gb_compiled_partition *compiled;
        gb_tensor *from, *to;
        float results[12] = {0};
        runtime_ok(gb_logical_tensor_init_with_dims(&y, 1, GB_F32, k ? 2 : 1,
                (const int64_t[]){3, 4}, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
        gb_partition *partition = device_partition(kinds[k], &x, &y);
        runtime_ok(gb_partition_compile(partition, &compiled, 1, (const gb_logical_tensor *[]){&x},
                1, (const gb_logical_tensor *[]){&y}, engine));
        runtime_ok(gb_tensor_create(&from, &x, engine, GB_MEMORY_ALLOCATE));
        runtime_ok(gb_tensor_create(&to, &y, engine, GB_MEMORY_ALLOCATE));
        runtime_ok(gb_tensor_write(from, stream, 0, sizeof numbers, numbers));
        tries = 0;
        gb_status status = gb_compiled_partition_execute(
                compiled, stream, 1, (const gb_tensor *[]){from}, 1, (gb_tensor *[]){to}, NULL);
        cr_expect_eq(status, k ? GB_UNIMPLEMENTED : GB_SUCCESS);
        if (k) {
            cr_expect_str_eq(gb_last_error(), "op 5 (Moody): its function failed (unimplemented)");
            runtime_ok(gb_compiled_partition_execute(compiled, stream, 1,
                    (const gb_tensor *[]){from}, 1, (gb_tensor *[]){to}, NULL));
        }
        runtime_ok(
                gb_tensor_read(to, stream, 0, k ? sizeof results : 3 * sizeof *results, results));
        cr_expect_eq(results[0], k ? 2 : 10);
        cr_expect(k || (results[1] == 26 && results[2] == 42));
        gb_tensor_destroy(from);
        gb_tensor_destroy(to);
        gb_compiled_partition_destroy(compiled);
        gb_partition_destroy(partition);
    }
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
}

/* Without a kernel an op is a Wildcard with a name. */
Test(defined_ops, without_a_kernel)
{
    const gb_op_definition definition = {
            .size = sizeof definition, .name = "Unknown", .max_inputs = 9, .max_outputs = 9};
    gb_op_kind kind;
    gb_partition *partitions[3];
    uint8_t supported;
    runtime_ok(gb_op_kind_define(&definition, &kind));
    gb_graph *graph = build(kind, NULL);
    runtime_ok(gb_graph_finalize(graph));
    runtime_ok(gb_graph_filter(graph, GB_POLICY_FUSION));
    runtime_ok(gb_graph_get_partitions(graph, 3, partitions, NULL));
    for (int i = 0; i < 3; i++) {
        runtime_ok(gb_partition_is_supported(partitions[i], &supported));
        cr_expect_eq(supported, i != 1);
        gb_partition_destroy(partitions[i]);
    }
    gb_graph_destroy(graph);
}
