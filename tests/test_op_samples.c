/* Every op kind alone, in each form and each combination of data types that its schema allows: it
 * is supported, runs with every layout, and agrees with the reference. */
#include "graph/ops/op_table.h"
#include "kernel_case.h"
#include "op_values.h"

#include <graphbench/graphbench_tools.h>

enum { MAX_PORTS = 8 };

static gb_op_kind kind_of(const kernel_case *c)
{
    gb_op_kind kind;
    kernel_ok(gb_op_get_kind(c->ops[0], &kind));
    return kind;
}

static bool is_reduction(gb_op_kind kind)
{
    return kind >= GB_OP_REDUCE_L1 && kind <= GB_OP_REDUCE_SUM;
}

static double value(const kernel_case *c, size_t id, int64_t index, double uniform)
{
    return op_value(kind_of(c), (uint32_t)id, c->tensors[id].data_type, index, uniform);
}

static void name_case(const kernel_case *c, char *text, size_t size)
{
    size_t used = (size_t)snprintf(
            text, size, "%s (%s)", gb_op_kind_name(kind_of(c)), gb_op_get_name(c->ops[0]));
    for (size_t id = 0; id < c->n_tensors && used < size; id++)
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                !id                                       ? " "
                : c->produced[id] && !c->produced[id - 1] ? " -> "
                                                          : ",",
                gb_data_type_name(c->tensors[id].data_type));
}

/* A case of the sample, whose tensors have the numbers of its ports as ids. */
static void make_case(gb_op *op, kernel_case *c)
{
    size_t n_inputs = gb_op_get_input_num(op), n_outputs = gb_op_get_output_num(op);
    cr_assert_leq(n_inputs + n_outputs, MAX_PORTS * 2);
    c->ops[c->n_ops++] = op;
    for (size_t i = 0; i < n_inputs + n_outputs; i++) {
        bool is_input = i < n_inputs;
        c->read[i] = is_input;
        c->produced[i] = !is_input;
        kernel_ok(is_input ? gb_op_get_input(op, i, &c->tensors[i])
                           : gb_op_get_output(op, i - n_inputs, &c->tensors[i]));
    }
    c->n_tensors = n_inputs + n_outputs;
    c->value = value;
    c->blocked = true;
    c->repeated = !(is_reduction(kind_of(c)) && n_inputs > 1); /* axes must differ */
}

static void check_supported(const gb_op *op, const char *name)
{
    gb_partition *partition;
    uint8_t supported;
    kernel_ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
    kernel_ok(gb_partition_is_supported(partition, &supported));
    cr_assert(supported, "%s: %s", name, gb_partition_get_unsupported_reason(partition));
    gb_partition_destroy(partition);
}

static void check_kind(gb_op_kind kind)
{
    for (size_t i = 0, n = gb_op_sample_num(kind); i < n; i++) {
        gb_op *op;
        char name[200];
        kernel_case c = {0};
        kernel_ok(gb_op_sample_create(&op, kind, i));
        make_case(op, &c);
        name_case(&c, name, sizeof name);
        check_supported(op, name);
        kernel_case_run(&c, name);
    }
}

KERNEL_TEST(op_samples, all_run_and_are_right)
{
    for (int kind = 0; kind < GB_OP_LAST; kind++)
        check_kind((gb_op_kind)kind);
}

/* Compiles the only op of a graph. */
static gb_compiled_partition *compile_op(gb_graph *graph, const gb_engine *engine)
{
    gb_partition *partition;
    gb_compiled_partition *compiled;
    gb_logical_tensor in[MAX_PORTS], out[MAX_PORTS];
    const gb_logical_tensor *inputs[MAX_PORTS], *outputs[MAX_PORTS];
    size_t n_in, n_out;
    kernel_ok(gb_graph_filter(graph, GB_POLICY_DEBUG));
    kernel_ok(gb_graph_get_partitions(graph, 1, &partition, NULL));
    kernel_ok(gb_partition_get_input_ports(partition, 0, NULL, &n_in));
    kernel_ok(gb_partition_get_output_ports(partition, 0, NULL, &n_out));
    kernel_ok(gb_partition_get_input_ports(partition, n_in, in, NULL));
    kernel_ok(gb_partition_get_output_ports(partition, n_out, out, NULL));
    for (size_t i = 0; i < MAX_PORTS; i++) {
        inputs[i] = &in[i];
        outputs[i] = &out[i];
    }
    kernel_ok(gb_partition_compile(partition, &compiled, n_in, inputs, n_out, outputs, engine));
    gb_partition_destroy(partition);
    return compiled;
}

/* What a compiled partition tells of its work is what the graph says. */
static void check_work(gb_op *sample, const gb_engine *engine)
{
    gb_graph *graph;
    double flops, bytes, of_partition, of_ports;
    kernel_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    kernel_ok(gb_graph_add_op(graph, sample));
    kernel_ok(gb_graph_infer_shapes(graph));
    kernel_ok(gb_graph_finalize(graph));
    kernel_ok(gb_graph_get_work(graph, &flops, &bytes));
    gb_compiled_partition *compiled = compile_op(graph, engine);
    kernel_ok(gb_compiled_partition_get_work(compiled, &of_partition, &of_ports));
    cr_expect_eq(flops, of_partition, "%s: %g, %g", gb_op_label(sample), flops, of_partition);
    cr_expect_eq(bytes, of_ports, "%s: %g, %g bytes", gb_op_label(sample), bytes, of_ports);
    gb_compiled_partition_destroy(compiled);
    gb_graph_destroy(graph);
}

Test(op_samples, work_is_that_of_the_graph)
{
    gb_engine *engine;
    kernel_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    for (int kind = 0; kind < GB_OP_LAST; kind++)
        for (size_t i = 0, n = gb_op_sample_num((gb_op_kind)kind); i < n; i++) {
            gb_op *op;
            kernel_ok(gb_op_sample_create(&op, (gb_op_kind)kind, i));
            check_work(op, engine);
            gb_op_destroy(op);
        }
    gb_engine_destroy(engine);
}

/* Does the op still hold together? */
static bool is_legal(const gb_op *op)
{
    gb_graph *graph;
    kernel_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    bool legal = gb_graph_add_op(graph, op) == GB_SUCCESS && gb_graph_infer(graph) == GB_SUCCESS;
    gb_graph_destroy(graph);
    return legal;
}

static bool axes_in_tensor(const gb_op *op)
{
    return is_reduction(op->kind) && op->n_inputs > 1;
}

/* Gives an axis of input `i`, and of the tensors that have the same size there, another size;
 * false when the op has no such input or axis, or values rather than dims tell the shape. */
static bool resize(gb_op *op, uint32_t i, int axis, int64_t size)
{
    if (i >= op->n_inputs || axis >= gb_op_input(op, i)->ndims)
        return false;
    if (axes_in_tensor(op) && i == 1)
        return false;
    int64_t before = gb_op_input(op, i)->dims[axis];
    for (uint32_t t = 0; t < op->n_own; t++) {
        gb_logical_tensor *tensor = &op->own[t];
        bool same = axis < tensor->ndims && tensor->dims[axis] == before;
        if (!same)
            continue;
        tensor->dims[axis] = size;
        gb_dense_strides(tensor->ndims, tensor->dims, tensor->strides);
    }
    return true;
}

/* Inserts axes of 1 and 2 before axis `at` of all tensors with the rank of input 0, and of the
 * statistics that a gradient reads. */
static bool widen(gb_op *op, int at, int more)
{
    int ndims = gb_op_input(op, 0)->ndims;
    if (at > ndims || ndims + more > GB_MAX_NDIMS || axes_in_tensor(op))
        return false;
    for (uint32_t t = 0; t < op->n_own; t++) {
        gb_logical_tensor *tensor = &op->own[t];
        bool is_stats = op->kind == GB_OP_LAYER_NORM_BACKWARD && (t == 2 || t == 3);
        if ((tensor->ndims != ndims && !is_stats) || at > tensor->ndims)
            continue;
        memmove(tensor->dims + at + more, tensor->dims + at,
                (size_t)(tensor->ndims - at) * sizeof *tensor->dims);
        for (int i = 0; i < more; i++)
            tensor->dims[at + i] = 1 + i % 2;
        tensor->ndims += more;
        gb_dense_strides(tensor->ndims, tensor->dims, tensor->strides);
    }
    return true;
}

/* Runs the op after a change, if that left it legal. */
static int run_changed(gb_op *op, bool changed)
{
    kernel_case c = {0};
    char name[200];
    if (!changed || !is_legal(op)) {
        gb_op_destroy(op);
        return 0;
    }
    make_case(op, &c);
    name_case(&c, name, sizeof name);
    kernel_case_run(&c, name);
    return 1;
}

static gb_op *sample(gb_op_kind kind, size_t n)
{
    gb_op *op;
    kernel_ok(gb_op_sample_create(&op, kind, n));
    return op;
}

/* Is sample n the first of its form? */
static bool is_first(gb_op_kind kind, size_t n)
{
    if (n == 0)
        return true;
    gb_op *before = sample(kind, n - 1), *op = sample(kind, n);
    bool differs = strcmp(gb_op_get_name(before), gb_op_get_name(op)) != 0;
    gb_op_destroy(before);
    gb_op_destroy(op);
    return differs;
}

/* The first sample of each form, one axis resized at a time. Returns how often that was legal. */
static int run_resized(gb_op_kind kind, int64_t size)
{
    int runs = 0;
    for (size_t n = 0, count = gb_op_sample_num(kind); n < count; n++)
        for (uint32_t i = 0; i < 3 && is_first(kind, n); i++)
            for (int axis = 0; axis < 4; axis++) {
                gb_op *op = sample(kind, n);
                runs += run_changed(op, resize(op, i, axis, size));
            }
    return runs;
}

static int run_widened(gb_op_kind kind, int rank)
{
    int runs = 0;
    for (size_t n = 0, count = gb_op_sample_num(kind); n < count; n++)
        for (int at = 0; at <= 2 && is_first(kind, n); at++) {
            gb_op *op = sample(kind, n);
            int more = rank - gb_op_input(op, 0)->ndims;
            runs += run_changed(op, more > 0 && widen(op, at, more));
        }
    return runs;
}

KERNEL_TEST(op_samples, axes_of_size_0_and_1)
{
    for (int kind = 0; kind < GB_OP_LAST; kind++)
        for (int64_t size = 0; size < 2; size++)
            cr_expect(run_resized((gb_op_kind)kind, size) > 0 || kind == GB_OP_WILDCARD ||
                              kind == GB_OP_END,
                    "%s never ran with an axis of size %d", gb_op_kind_name((gb_op_kind)kind),
                    (int)size);
}

/* All ops but those with windows, which have rank 5 at most. */
KERNEL_TEST(op_samples, high_ranks)
{
    for (int kind = 0; kind < GB_OP_LAST; kind++) {
        gb_op_class class = gb_op_schema_get((gb_op_kind)kind)->op_class;
        bool has_windows = class == GB_CLASS_CONVOLUTION || class == GB_CLASS_POOL ||
                           class == GB_CLASS_RESAMPLING;
        for (int rank = 5; rank <= GB_MAX_NDIMS; rank += 7) {
            bool runs = run_widened((gb_op_kind)kind, rank) > 0;
            bool may_not = has_windows || kind == GB_OP_WILDCARD || kind == GB_OP_END ||
                           kind == GB_OP_STATIC_TRANSPOSE;
            cr_expect(runs || may_not, "%s never ran with rank %d",
                    gb_op_kind_name((gb_op_kind)kind), rank);
        }
    }
}

Test(op_samples, only_wildcard_and_end_have_none)
{
    for (int kind = 0; kind < GB_OP_LAST; kind++) {
        bool none = kind == GB_OP_WILDCARD || kind == GB_OP_END;
        cr_assert_eq(gb_op_sample_num((gb_op_kind)kind) == 0, none, "%s",
                gb_op_kind_name((gb_op_kind)kind));
    }
}

/* Counting goes through all rows of a kind; none may be broken. */
Test(op_samples, rows_are_sound)
{
    for (int kind = 0; kind < GB_OP_LAST; kind++) {
        gb_op *op;
        size_t n = gb_op_sample_num((gb_op_kind)kind);
        cr_assert_eq(gb_op_sample_create(&op, (gb_op_kind)kind, n), GB_INVALID_ARGUMENTS);
        cr_assert_not_null(strstr(gb_last_error(), "samples, not"), "%s", gb_last_error());
    }
}

Test(op_samples, index_out_of_range)
{
    gb_op *op;
    size_t n = gb_op_sample_num(GB_OP_ABS);
    cr_assert_eq(n, 3);
    cr_assert_eq(gb_op_sample_create(&op, GB_OP_ABS, n), GB_INVALID_ARGUMENTS);
    cr_assert_eq(gb_op_sample_create(NULL, GB_OP_ABS, 0), GB_INVALID_ARGUMENTS);
    cr_assert_eq(gb_op_sample_create(&op, GB_OP_WILDCARD, 0), GB_INVALID_ARGUMENTS);
}
