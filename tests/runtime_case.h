/* What the tests of the runtime share: tensors, small graphs, compiling and executing them. */
#ifndef GB_TESTS_RUNTIME_CASE_H
#define GB_TESTS_RUNTIME_CASE_H

#include <criterion/criterion.h>
#include <graphbench/graphbench.h>
#include <stdlib.h>
#include <string.h>

enum { RUNTIME_CASE_PORTS = 8 };

static inline void runtime_ok(gb_status status)
{
    cr_assert_eq(status, GB_SUCCESS, "%s: %s", gb_status_name(status), gb_last_error());
}

static inline gb_logical_tensor runtime_matrix(
        size_t id, int64_t rows, int64_t columns, gb_property property)
{
    gb_logical_tensor tensor;
    runtime_ok(gb_logical_tensor_init_with_dims(
            &tensor, id, GB_F32, 2, (const int64_t[]){rows, columns}, GB_LAYOUT_STRIDED, property));
    return tensor;
}

static inline void runtime_op(gb_graph *graph, size_t id, gb_op_kind kind, size_t n_inputs,
        const gb_logical_tensor *const *inputs, const gb_logical_tensor *output)
{
    gb_op *op;
    runtime_ok(gb_op_create(&op, id, kind, ""));
    for (size_t i = 0; i < n_inputs; i++)
        runtime_ok(gb_op_add_input(op, inputs[i]));
    if (output)
        runtime_ok(gb_op_add_output(op, output));
    runtime_ok(gb_graph_add_op(graph, op));
    gb_op_destroy(op);
}

/* The only partition of a graph, which is destroyed. */
static inline gb_partition *runtime_partition(gb_graph *graph)
{
    gb_partition *partition;
    runtime_ok(gb_graph_finalize(graph));
    runtime_ok(gb_graph_filter(graph, GB_POLICY_FUSION));
    runtime_ok(gb_graph_get_partitions(graph, 1, &partition, NULL));
    gb_graph_destroy(graph);
    return partition;
}

/* A compiled partition with its engine and stream; ports in the order of the partition. */
typedef struct runtime_case {
    gb_engine *engine;
    gb_stream *stream;
    gb_partition *partition;
    gb_compiled_partition *compiled;
    size_t n_inputs, n_outputs;
    gb_logical_tensor inputs[RUNTIME_CASE_PORTS], outputs[RUNTIME_CASE_PORTS];
} runtime_case;

/* Drops tensors that are listed again; returns how many are left. */
static inline size_t runtime_each_once(gb_logical_tensor *ports, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0, k; i < n; i++) {
        for (k = 0; k < kept && ports[k].id != ports[i].id; k++)
            ;
        if (k == kept)
            ports[kept++] = ports[i];
    }
    return kept;
}

static inline void runtime_compile(runtime_case *c, gb_graph *graph, const gb_allocator *allocator)
{
    const gb_logical_tensor *in[RUNTIME_CASE_PORTS], *out[RUNTIME_CASE_PORTS];
    memset(c, 0, sizeof *c);
    if (allocator)
        runtime_ok(gb_engine_create_with_allocator(&c->engine, GB_ENGINE_CPU, 0, allocator));
    else
        runtime_ok(gb_engine_create(&c->engine, GB_ENGINE_CPU, 0));
    runtime_ok(gb_stream_create(&c->stream, c->engine));
    c->partition = runtime_partition(graph);
    runtime_ok(gb_partition_get_input_ports(c->partition, 0, NULL, &c->n_inputs));
    runtime_ok(gb_partition_get_output_ports(c->partition, 0, NULL, &c->n_outputs));
    runtime_ok(gb_partition_get_input_ports(c->partition, c->n_inputs, c->inputs, NULL));
    runtime_ok(gb_partition_get_output_ports(c->partition, c->n_outputs, c->outputs, NULL));
    c->n_inputs = runtime_each_once(c->inputs, c->n_inputs);
    for (size_t i = 0; i < c->n_inputs; i++)
        in[i] = &c->inputs[i];
    for (size_t i = 0; i < c->n_outputs; i++)
        out[i] = &c->outputs[i];
    runtime_ok(gb_partition_compile(
            c->partition, &c->compiled, c->n_inputs, in, c->n_outputs, out, c->engine));
}

static inline void runtime_close(runtime_case *c)
{
    gb_compiled_partition_destroy(c->compiled);
    gb_partition_destroy(c->partition);
    gb_stream_destroy(c->stream);
    gb_engine_destroy(c->engine);
}

/* Executes on memory of the caller, in the order of the ports. */
static inline gb_status runtime_execute(
        const runtime_case *c, void *const *inputs, void *const *outputs, gb_tensor *scratchpad)
{
    gb_tensor *in[RUNTIME_CASE_PORTS], *out[RUNTIME_CASE_PORTS];
    for (size_t i = 0; i < c->n_inputs; i++)
        runtime_ok(gb_tensor_create(&in[i], &c->inputs[i], c->engine, inputs[i]));
    for (size_t i = 0; i < c->n_outputs; i++)
        runtime_ok(gb_tensor_create(&out[i], &c->outputs[i], c->engine, outputs[i]));
    gb_status status = gb_compiled_partition_execute(c->compiled, c->stream, c->n_inputs,
            (const gb_tensor *const *)in, c->n_outputs, out, scratchpad);
    for (size_t i = 0; i < c->n_inputs; i++)
        gb_tensor_destroy(in[i]);
    for (size_t i = 0; i < c->n_outputs; i++)
        gb_tensor_destroy(out[i]);
    return status;
}

static inline void runtime_fill(float *values, size_t n, float first)
{
    for (size_t i = 0; i < n; i++)
        values[i] = first + (float)(i * 7 % 31) / 16 - 1;
}

#endif
