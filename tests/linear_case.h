/* One-op graphs run on the CPU engine against a naive evaluation in f64, for MatMul and convolutions. */
#ifndef GB_TESTS_LINEAR_CASE_H
#define GB_TESTS_LINEAR_CASE_H

#include "base/dtype.h"
#include "graph/ops/op_table.h"
#include "isa_case.h"
#include <criterion/criterion.h>
#include <graphbench/graphbench.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { LINEAR_CASE_INPUTS = 3 };

typedef struct linear_case {
    gb_op *op;
    int n_inputs;
    gb_logical_tensor inputs[LINEAR_CASE_INPUTS], output;
    void *data[LINEAR_CASE_INPUTS]; /* owned */
} linear_case;

/* Reproducible numbers ------------------------------------------------------------------------- */

static inline uint64_t random_bits(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return *state >> 33;
}

/* 0 .. n - 1 */
static inline int64_t random_below(uint64_t *state, int64_t n)
{
    return (int64_t)(random_bits(state) % (uint64_t)n);
}

static inline size_t tensor_bytes(const gb_logical_tensor *tensor)
{
    size_t bytes = 0;
    cr_assert_eq(gb_logical_tensor_get_mem_size(tensor, &bytes), GB_SUCCESS, "%s", gb_last_error());
    return bytes;
}

/* Strides of a random kind: dense, padded, or with the dims in another order in memory. */
static inline void random_strides(uint64_t *state, gb_logical_tensor *tensor)
{
    int order[GB_MAX_NDIMS], n = tensor->ndims;
    for (int d = 0; d < n; d++)
        order[d] = d;
    int64_t kind = random_below(state, 4), stride = kind == 3 ? 2 : 1;
    for (int d = n - 1; kind == 2 && d > 0; d--) {
        int other = (int)random_below(state, d + 1), kept = order[d];
        order[d] = order[other], order[other] = kept;
    }
    for (int i = n; i-- > 0;) {
        tensor->strides[order[i]] = stride;
        stride *= tensor->dims[order[i]] > 0 ? tensor->dims[order[i]] : 1;
        stride += kind == 1 ? random_below(state, 4) : 0;
    }
}

static inline int64_t offset_at(const gb_logical_tensor *tensor, const int64_t *position)
{
    int64_t offset = 0;
    for (int d = 0; d < tensor->ndims; d++)
        offset += position[d] * tensor->strides[d];
    return offset;
}

/* Position of element `index` in row-major order. */
static inline void position_of(const gb_logical_tensor *tensor, int64_t index, int64_t *position)
{
    for (int d = tensor->ndims; d-- > 0; index /= tensor->dims[d])
        position[d] = index % tensor->dims[d];
}

/* Elements get values between -1 and 1; the gaps of the memory hold NaN. */
static inline void *random_data(uint64_t *state, const gb_logical_tensor *tensor)
{
    size_t bytes = tensor_bytes(tensor);
    char *data = malloc(bytes ? bytes : 1);
    memset(data, 0xff, bytes);
    int64_t position[GB_MAX_NDIMS] = {0};
    for (int64_t i = 0; i < gb_tensor_count(tensor); i++) {
        position_of(tensor, i, position);
        gb_element_set(tensor->data_type, data, offset_at(tensor, position),
                (double)random_below(state, 2001) / 1000 - 1);
    }
    return data;
}

static inline double element_at(
        const gb_logical_tensor *tensor, const void *data, const int64_t *position)
{
    return gb_element_get(tensor->data_type, data, offset_at(tensor, position));
}

/* Running -------------------------------------------------------------------------------------- */

static inline void check_status(gb_status status)
{
    cr_assert_eq(status, GB_SUCCESS, "%s: %s", gb_status_name(status), gb_last_error());
}

/* The op alone in a graph, compiled. */
static inline gb_compiled_partition *compile_case(const linear_case *c, const gb_engine *engine)
{
    gb_graph *graph;
    gb_partition *partition;
    gb_compiled_partition *compiled;
    const gb_logical_tensor *inputs[LINEAR_CASE_INPUTS], *output = &c->output;
    for (int i = 0; i < c->n_inputs; i++)
        inputs[i] = &c->inputs[i];
    check_status(gb_graph_create(&graph, GB_ENGINE_CPU));
    check_status(gb_graph_add_op(graph, c->op));
    check_status(gb_graph_finalize(graph));
    check_status(gb_graph_filter(graph, GB_POLICY_FUSION));
    check_status(gb_graph_get_partitions(graph, 1, &partition, NULL));
    check_status(gb_partition_compile(
            partition, &compiled, (size_t)c->n_inputs, inputs, 1, &output, engine));
    gb_partition_destroy(partition);
    gb_graph_destroy(graph);
    return compiled;
}

/* Runs with a number of threads, at the level that isa_case_begin() has chosen; the result's memory (gaps poisoned with
 * `poison`) is to be freed. Twice, so that prepared constants are used again. */
static inline void *run_case(const linear_case *c, int threads, int poison)
{
    gb_engine *engine;
    gb_stream *stream;
    gb_tensor *tensors[LINEAR_CASE_INPUTS], *output;
    size_t bytes = tensor_bytes(&c->output);
    char *result = malloc(bytes + 64);
    memset(result, poison, bytes + 64);
    omp_set_num_threads(threads);
    check_status(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    check_status(gb_stream_create(&stream, engine));
    gb_compiled_partition *compiled = compile_case(c, engine);
    for (int i = 0; i < c->n_inputs; i++)
        check_status(gb_tensor_create(&tensors[i], &c->inputs[i], engine, c->data[i]));
    check_status(gb_tensor_create(&output, &c->output, engine, result));
    const gb_tensor *ins[LINEAR_CASE_INPUTS];
    gb_tensor *outs[] = {output};
    for (int i = 0; i < c->n_inputs; i++)
        ins[i] = tensors[i];
    for (int i = 0; i < 2; i++)
        check_status(gb_compiled_partition_execute(
                compiled, stream, (size_t)c->n_inputs, ins, 1, outs, NULL));
    gb_tensor_destroy(output);
    for (int i = 0; i < c->n_inputs; i++)
        gb_tensor_destroy(tensors[i]);
    gb_compiled_partition_destroy(compiled);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
    for (size_t i = bytes; i < bytes + 64; i++)
        cr_assert_eq((unsigned char)result[i], poison, "written beyond the end");
    return result;
}

/* Value and the sum of absolute products of one element, and how many products there are. */
typedef struct expected {
    double value, magnitude;
    int64_t terms;
} expected;

/* |got - value| within gamma_k of the products, rounding of the result included. */
static inline bool within_bound(gb_data_type type, double got, expected e)
{
    double unit = ldexp(1, -24), terms = (double)(e.terms + 2);
    double bound = terms * unit * e.magnitude / (1 - terms * unit);
    bound += gb_dtype_get(type)->unit * (fabs(e.value) + bound) + ldexp(1, -120);
    if (type == GB_F16)
        bound += ldexp(1, -25);
    return fabs(got - e.value) <= bound;
}

static inline void free_case(linear_case *c)
{
    for (int i = 0; i < c->n_inputs; i++)
        free(c->data[i]);
    gb_op_destroy(c->op);
}

#endif
