#include "../op_values.h"
#include "base/dtype.h"
#include "fuzz.h"
#include "graph/ir/format.h"
#include "graph/ir/graph.h"
#include "ref/ref.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_OPS = 48,
    MOST_TENSORS = 256,
    MOST_ELEMENTS = 4096,
    MOST_BYTES = 1 << 16,
    MOST_FLOPS = 1 << 21
};

typedef struct memory {
    gb_logical_tensor tensor; /* as it lies */
    bool is_result;
    void *data; /* owned */
} memory;

typedef struct runner {
    gb_graph *graph;
    const fuzz_run *run;
    gb_engine *engine;
    gb_stream *stream;
    size_t n;
    memory memories[MOST_TENSORS]; /* in the order of the graph's values */
} runner;

static int64_t count_elements(const gb_logical_tensor *t)
{
    int64_t count = 1;
    for (int d = 0; d < t->ndims; d++) {
        if (t->dims[d] < 0 || t->dims[d] > MOST_ELEMENTS || count > MOST_ELEMENTS)
            return MOST_ELEMENTS + 1;
        count *= t->dims[d];
    }
    return count;
}

static bool is_small(const gb_logical_tensor *t)
{
    size_t bytes;
    return t->ndims >= 0 && count_elements(t) <= MOST_ELEMENTS &&
           gb_logical_tensor_get_mem_size(t, &bytes) == GB_SUCCESS && bytes <= MOST_BYTES;
}

/* Inputs and results without a layout are dense, or left to the library where the run says so. */
static void set_layout(gb_graph *graph, gb_logical_tensor *t, bool any)
{
    if (t->layout_type != GB_LAYOUT_ANY && t->layout_type != GB_LAYOUT_UNDEF)
        return;
    t->layout_type = any ? GB_LAYOUT_ANY : GB_LAYOUT_STRIDED;
    if (!any)
        gb_dense_strides(t->ndims, t->dims, t->strides);
    fuzz_succeeded(gb_graph_set_tensor(graph, t), "gb_graph_set_tensor");
}

/* Shapes known, layouts set, and quick to run? */
static bool prepare(runner *r)
{
    size_t n = r->graph->n_values;
    double flops, bytes;
    if (gb_graph_get_op_num(r->graph) > MOST_OPS || n > MOST_TENSORS ||
            !fuzz_succeeded(gb_graph_infer_shapes(r->graph), "gb_graph_infer_shapes"))
        return false;
    for (size_t i = 0; i < n; i++) {
        gb_logical_tensor t = r->graph->values[i].tensor;
        bool is_result = r->graph->values[i].producer != GB_NONE;
        if (t.ndims < 0 || count_elements(&t) > MOST_ELEMENTS)
            return false;
        set_layout(r->graph, &t, is_result && r->run->any);
        t = r->graph->values[i].tensor;
        if (t.layout_type != GB_LAYOUT_ANY && !is_small(&t))
            return false;
        r->memories[i] = (memory){.tensor = t, .is_result = is_result};
    }
    r->n = n;
    return fuzz_succeeded(gb_graph_get_work(r->graph, &flops, &bytes), "gb_graph_get_work") &&
           flops <= MOST_FLOPS && fuzz_succeeded(gb_graph_finalize(r->graph), "gb_graph_finalize");
}

static double value_of(const runner *r, size_t id, int64_t index)
{
    const gb_value *value = &r->graph->values[gb_graph_find_value(r->graph, id)];
    uint64_t x =
            ((uint64_t)index * 64 + id + 1 + (r->run->seed << 40)) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x ^= x >> 27;
    gb_op_kind kind = value->n_uses ? r->graph->ops[value->uses[0].op]->kind : GB_OP_ABS;
    uint32_t input = value->n_uses ? value->uses[0].input : 0;
    return op_value(kind, input, value->tensor.data_type, index, (double)(x >> 11) * 0x1p-52 - 1);
}

static int64_t offset_of(const gb_logical_tensor *t, int64_t index)
{
    int64_t position[GB_MAX_NDIMS];
    for (int d = t->ndims; d-- > 0; index /= t->dims[d])
        position[d] = index % t->dims[d];
    return gb_tensor_offset(t, position);
}

/* Memory of exactly the size that the library asks for; results hold no zeros by chance. */
static void allocate(const runner *r, memory *m)
{
    size_t bytes;
    fuzz_check(gb_logical_tensor_get_mem_size(&m->tensor, &bytes) == GB_SUCCESS,
            "tensor %zu has no size: %s", m->tensor.id, gb_last_error());
    m->data = malloc(bytes ? bytes : 1);
    fuzz_check(m->data, "no memory");
    memset(m->data, m->is_result ? 0xA5 : 0, bytes);
    for (int64_t i = 0, n = count_elements(&m->tensor); !m->is_result && i < n; i++)
        gb_element_set(m->tensor.data_type, m->data, offset_of(&m->tensor, i),
                value_of(r, m->tensor.id, i));
}

static memory *find(runner *r, size_t id)
{
    size_t i = 0;
    while (i < r->n && r->memories[i].tensor.id != id)
        i++;
    fuzz_check(i < r->n, "a port has tensor %zu, which is not in the graph", id);
    return &r->memories[i];
}

typedef struct ports {
    size_t n;
    gb_logical_tensor tensors[MOST_TENSORS];
    const gb_logical_tensor *lent[MOST_TENSORS];
    gb_tensor *made[MOST_TENSORS];
} ports;

static void describe(runner *r, ports *p)
{
    for (size_t i = 0; i < p->n; i++) {
        p->tensors[i] = find(r, p->tensors[i].id)->tensor;
        p->lent[i] = &p->tensors[i];
    }
}

/* Tensors of the ports, on memory; ports of one id are one memory. */
static void make_tensors(runner *r, ports *p)
{
    for (size_t i = 0; i < p->n; i++) {
        memory *m = find(r, p->tensors[i].id);
        if (!m->data)
            allocate(r, m);
        gb_status status = gb_tensor_create(&p->made[i], &m->tensor, r->engine, m->data);
        fuzz_check(status == GB_SUCCESS, "gb_tensor_create: %s", gb_last_error());
    }
}

static void free_tensors(ports *p)
{
    for (size_t i = 0; i < p->n; i++)
        gb_tensor_destroy(p->made[i]);
}

static bool execute(runner *r, const gb_compiled_partition *compiled, ports *in, ports *out)
{
    for (size_t i = 0; i < out->n; i++) {
        memory *m = find(r, out->tensors[i].id);
        gb_status status =
                gb_compiled_partition_query_logical_tensor(compiled, m->tensor.id, &m->tensor);
        fuzz_check(status == GB_SUCCESS, "gb_compiled_partition_query_logical_tensor: %s",
                gb_last_error());
        fuzz_check(m->tensor.layout_type == GB_LAYOUT_STRIDED ||
                           m->tensor.layout_type == GB_LAYOUT_OPAQUE,
                "tensor %zu has no layout after compiling", m->tensor.id);
    }
    make_tensors(r, in);
    make_tensors(r, out);
    gb_status status = gb_compiled_partition_execute(compiled, r->stream, in->n,
            (const gb_tensor *const *)in->made, out->n, out->made, NULL);
    fuzz_check(status == GB_SUCCESS, "gb_compiled_partition_execute: %s", gb_last_error());
    free_tensors(in);
    free_tensors(out);
    return true;
}

static bool run_partition(runner *r, const gb_partition *partition)
{
    ports *in = calloc(2, sizeof *in), *out = in + 1;
    gb_compiled_partition *compiled = NULL;
    uint8_t supported = 0;
    bool good = gb_partition_is_supported(partition, &supported) == GB_SUCCESS && supported &&
                gb_partition_get_input_ports(partition, 0, NULL, &in->n) == GB_SUCCESS &&
                gb_partition_get_output_ports(partition, 0, NULL, &out->n) == GB_SUCCESS &&
                in->n <= MOST_TENSORS && out->n <= MOST_TENSORS &&
                gb_partition_get_input_ports(partition, in->n, in->tensors, NULL) == GB_SUCCESS &&
                gb_partition_get_output_ports(partition, out->n, out->tensors, NULL) == GB_SUCCESS;
    if (good) {
        describe(r, in);
        describe(r, out);
        good = fuzz_succeeded(gb_partition_compile(partition, &compiled, in->n, in->lent, out->n,
                                      out->lent, r->engine),
                "gb_partition_compile");
    }
    good = good && execute(r, compiled, in, out);
    gb_compiled_partition_destroy(compiled);
    free(in);
    return good;
}

static bool run_partitions(runner *r)
{
    size_t n;
    if (!fuzz_succeeded(gb_graph_filter(r->graph, r->run->policy), "gb_graph_filter") ||
            gb_graph_get_partitions(r->graph, 0, NULL, &n) != GB_SUCCESS || n == 0)
        return false;
    fuzz_check(n <= gb_graph_get_op_num(r->graph), "more partitions than ops");
    gb_partition *partitions[MOST_OPS];
    fuzz_check(gb_graph_get_partitions(r->graph, n, partitions, NULL) == GB_SUCCESS, "%s",
            gb_last_error());
    bool good = true;
    for (size_t i = 0; i < n; i++) {
        good = good && run_partition(r, partitions[i]);
        gb_partition_destroy(partitions[i]);
    }
    return good;
}

/* Puts an input into the reference's store, by element: the reference itself knows no blocks. */
static void put_input(gb_ref_store *store, const memory *m)
{
    int64_t count = count_elements(&m->tensor);
    gb_ref_tensor t = {.tensor = m->tensor,
            .count = count,
            .value = malloc(((size_t)count + 1) * sizeof(double))};
    fuzz_check(t.value, "no memory");
    for (int64_t i = 0; i < count; i++)
        t.value[i] = gb_element_get(m->tensor.data_type, m->data, offset_of(&m->tensor, i));
    fuzz_check(gb_ref_store_put(store, &t) == GB_SUCCESS, "%s", gb_last_error());
}

static void compare(const memory *m, const gb_ref_tensor *expected)
{
    for (int64_t i = 0; i < expected->count; i++) {
        double got = gb_element_get(m->tensor.data_type, m->data, offset_of(&m->tensor, i));
        double want = expected->value[i], bound = expected->bound ? expected->bound[i] : 0;
        bool same = got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= bound ||
                    isinf(bound);
        fuzz_check(same, "tensor %zu element %lld: got %.9g, expected %.9g +- %.3g", m->tensor.id,
                (long long)i, got, want, bound);
    }
}

static void check_results(runner *r)
{
    gb_ref_store *store;
    size_t ids[MOST_OPS], n = 0;
    for (uint32_t i = 0; i < r->graph->n_ops; i++)
        if (r->graph->ops[i]->kind != GB_OP_END)
            ids[n++] = r->graph->ops[i]->id;
    fuzz_check(gb_ref_store_create(&store) == GB_SUCCESS, "no memory");
    for (size_t v = 0; v < r->n; v++)
        if (!r->memories[v].is_result && r->memories[v].data)
            put_input(store, &r->memories[v]);
    gb_status status = gb_ref_execute(r->graph, n, ids, store);
    fuzz_check(status == GB_SUCCESS, "the library ran what the reference does not: %s",
            gb_last_error());
    for (size_t v = 0; v < r->n; v++) {
        const memory *m = &r->memories[v];
        const gb_ref_tensor *expected = gb_ref_store_get(store, m->tensor.id);
        if (m->is_result && m->data && expected)
            compare(m, expected);
    }
    gb_ref_store_destroy(store);
}

bool fuzz_run_graph(gb_graph *graph, const fuzz_run *run)
{
    runner *r = calloc(1, sizeof *r);
    fuzz_check(r, "no memory");
    *r = (runner){.graph = graph, .run = run};
    omp_set_num_threads(run->threads);
    bool ran = prepare(r);
    if (ran) {
        fuzz_check(gb_engine_create(&r->engine, GB_ENGINE_CPU, 0) == GB_SUCCESS, "%s",
                gb_last_error());
        fuzz_check(gb_stream_create(&r->stream, r->engine) == GB_SUCCESS, "%s", gb_last_error());
        ran = run_partitions(r);
        if (ran)
            check_results(r);
        gb_stream_destroy(r->stream);
        gb_engine_destroy(r->engine);
    }
    for (size_t v = 0; v < r->n; v++)
        free(r->memories[v].data);
    free(r);
    return ran;
}
