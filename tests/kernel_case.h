/* Small graphs run by the library at a chosen instruction set and compared with the reference,
 * element by element within its bounds, for the tests of kernels. Every case runs with several
 * layouts, with 1 and 2 threads, and with results in the memory of inputs, whose results must be
 * equal bit by bit; memory around and between the elements must stay untouched, and
 * so must that behind the parts of the library's scratch. */
#ifndef GB_TESTS_KERNEL_CASE_H
#define GB_TESTS_KERNEL_CASE_H

#include "base/dtype.h"
#include "graph/ir/format.h"
#include "isa_case.h"
#include "ref/ref.h"
#include <criterion/criterion.h>
#include <graphbench/graphbench_tools.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KERNEL_CASE_TENSORS = 160,
    KERNEL_CASE_OPS = 96,
    KERNEL_CASE_GUARD = 64,
    KERNEL_CASE_TEXT = 512,
    KERNEL_CASE_UNBOUNDED = 20
};

typedef enum kernel_layout {
    LAYOUT_DENSE,
    LAYOUT_GAPS,        /* elements apart along the last and the first axis */
    LAYOUT_REVERSED,    /* the first axis is the contiguous one */
    LAYOUT_MIXED,       /* inputs reversed, outputs dense */
    LAYOUT_INTERLEAVED, /* the first two axes do not nest: rows of one lie between those of the
                           other */
    LAYOUT_COUNT,
    LAYOUT_REPEATED = LAYOUT_COUNT, /* inputs have stride 0 along their first axis */
    LAYOUT_BLOCKED                  /* the first two axes turned, and the last two in blocks */
} kernel_layout;

typedef struct kernel_case kernel_case;
struct kernel_case {
    gb_graph *graph;
    size_t n_tensors, n_ops;
    bool produced[KERNEL_CASE_TENSORS], read[KERNEL_CASE_TENSORS];
    gb_logical_tensor tensors[KERNEL_CASE_TENSORS]; /* id = index */
    gb_op *ops[KERNEL_CASE_OPS];
    bool special; /* inputs hold infinities, NaN, zeros and subnormals */
    bool dense_only;
    bool repeated;                      /* runs LAYOUT_REPEATED as well */
    bool blocked;                       /* runs LAYOUT_BLOCKED as well */
    bool is_fixed[KERNEL_CASE_TENSORS]; /* all elements of the input have this value */
    double fixed[KERNEL_CASE_TENSORS];
    double scale, offset; /* of the inputs; scale 0 counts as 1 */
    /* Values of the inputs, `uniform` being one in -1..1 of their own; NULL: uniform * scale +
     * offset. */
    double (*value)(const kernel_case *c, size_t id, int64_t index, double uniform);
    gb_policy policy; /* 0 counts as fusion */
    /* Why more than 1 in KERNEL_CASE_UNBOUNDED elements of the results may have no bound, so that
     * any value would do; NULL: they may not. */
    const char *unbounded;
    int64_t n_compared, n_unbounded; /* elements of the latest run */
    /* Of the latest run: partitions, and bytes written for tensors inside of them. */
    size_t n_partitions, intermediates;
    char kernels[KERNEL_CASE_TEXT]; /* of all partitions, apart by spaces */
};

typedef struct kernel_memory {
    char *block, *data, *before; /* data lies in block behind a guard; before is a copy of block */
    size_t bytes;
} kernel_memory;

#define SHAPE(...)                                                                                 \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* One test for each instruction set. */
#define KERNEL_TEST(suite, name)                                                                   \
    static void kernels_##suite##_##name(void);                                                    \
    ISA_TEST(suite, name)                                                                          \
    {                                                                                              \
        (void)isa;                                                                                 \
        kernels_##suite##_##name();                                                                \
    }                                                                                              \
    static void kernels_##suite##_##name(void)

static inline void kernel_ok(gb_status status)
{
    cr_assert_eq(status, GB_SUCCESS, "%s: %s", gb_status_name(status), gb_last_error());
}

/* An input, or with ndims -1 an output whose dims are inferred. */
static inline size_t kernel_case_tensor(
        kernel_case *c, gb_data_type type, int ndims, const int64_t *dims)
{
    size_t id = c->n_tensors++;
    gb_logical_tensor *tensor = &c->tensors[id];
    if (ndims < 0)
        kernel_ok(gb_logical_tensor_init(
                tensor, id, type, ndims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    else
        kernel_ok(gb_logical_tensor_init_with_dims(
                tensor, id, type, ndims, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    return id;
}

static inline gb_op *kernel_case_op(kernel_case *c, gb_op_kind kind)
{
    gb_op *op;
    kernel_ok(gb_op_create(&op, c->n_ops, kind, gb_op_kind_name(kind)));
    c->ops[c->n_ops++] = op;
    return op;
}

static inline void kernel_case_in(kernel_case *c, gb_op *op, size_t id)
{
    c->read[id] = true;
    kernel_ok(gb_op_add_input(op, &c->tensors[id]));
}

static inline size_t kernel_case_out(kernel_case *c, gb_op *op, gb_data_type type)
{
    size_t id = kernel_case_tensor(c, type, GB_UNKNOWN_NDIMS, NULL);
    c->produced[id] = true;
    kernel_ok(gb_op_add_output(op, &c->tensors[id]));
    return id;
}

static inline void kernel_case_ints(gb_op *op, gb_op_attr attr, int n, const int64_t *values)
{
    kernel_ok(gb_op_set_attr_s64(op, attr, (size_t)n, n ? values : &(int64_t){0}));
}
static inline void kernel_case_int(gb_op *op, gb_op_attr attr, int64_t value)
{
    kernel_ok(gb_op_set_attr_s64(op, attr, 1, &value));
}
static inline void kernel_case_float(gb_op *op, gb_op_attr attr, float value)
{
    kernel_ok(gb_op_set_attr_f32(op, attr, 1, &value));
}
static inline void kernel_case_flag(gb_op *op, gb_op_attr attr, bool value)
{
    uint8_t byte = value;
    kernel_ok(gb_op_set_attr_bool(op, attr, 1, &byte));
}
static inline void kernel_case_text(gb_op *op, gb_op_attr attr, const char *text)
{
    kernel_ok(gb_op_set_attr_str(op, attr, text, strlen(text)));
}

/* Elements that are no whole bytes, and more axes, stay dense. */
static inline void kernel_case_block(gb_logical_tensor *t)
{
    static const char *const layouts[] = {NULL, "A4a", "BA4a3b", "bAC3a4c", "baCD2d3c4d"};
    if (t->ndims > 0 && t->ndims <= 5 && gb_dtype_get(t->data_type)->bits >= 8)
        kernel_ok(gb_logical_tensor_set_layout(t, t->ndims <= 4 ? layouts[t->ndims] : "bacDE2d3e"));
}

static inline void kernel_case_layout(kernel_case *c, gb_logical_tensor *t, kernel_layout layout)
{
    bool reversed = layout == LAYOUT_REVERSED || (layout == LAYOUT_MIXED && !c->produced[t->id]);
    int64_t stride = 1;
    t->layout_type = GB_LAYOUT_STRIDED;
    if (layout == LAYOUT_GAPS)
        stride = 2;
    for (int i = 0; i < t->ndims; i++) {
        int d = reversed ? i : t->ndims - 1 - i;
        t->strides[d] = stride;
        stride *= t->dims[d] > 0 ? t->dims[d] : 1;
        if (layout == LAYOUT_GAPS && i == t->ndims - 2)
            stride += 3;
    }
    if (layout == LAYOUT_INTERLEAVED && t->ndims >= 2 && t->dims[0] > 1 && t->dims[1] > 1) {
        int64_t inner = t->strides[1], fewer = t->dims[0] < t->dims[1] ? 0 : 1;
        t->strides[fewer] = (t->dims[fewer] + 1) * inner;
        t->strides[1 - fewer] = t->dims[fewer] * inner;
    }
    if (layout == LAYOUT_REPEATED && !c->produced[t->id] && t->ndims)
        t->strides[0] = 0;
    if (layout == LAYOUT_BLOCKED)
        kernel_case_block(t);
}

static inline int64_t kernel_case_count(const gb_logical_tensor *t)
{
    int64_t count = 1;
    for (int d = 0; d < t->ndims; d++)
        count *= t->dims[d];
    return count;
}

/* Offset of a logical element. */
static inline int64_t kernel_case_offset(const gb_logical_tensor *t, int64_t index)
{
    int64_t position[GB_MAX_NDIMS];
    for (int d = t->ndims; d-- > 0; index /= t->dims[d])
        position[d] = index % t->dims[d];
    return gb_tensor_offset(t, position);
}

static inline double kernel_case_value(const kernel_case *c, size_t id, int64_t index)
{
    uint64_t x = ((uint64_t)index * 64 + id + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    x ^= x >> 31;
    if (c->special && x % 8 == 0) {
        const double specials[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 1e-40, -1e-40, 3e4};
        return specials[x / 8 % 8];
    }
    double uniform = (double)(x >> 11) * 0x1p-52 - 1;
    if (c->value)
        return c->value(c, id, index, uniform);
    return uniform * (c->scale != 0 ? c->scale : 1) + c->offset;
}

static inline kernel_memory kernel_case_alloc(const kernel_case *c, const gb_logical_tensor *t)
{
    kernel_memory m;
    kernel_ok(gb_logical_tensor_get_mem_size(t, &m.bytes));
    size_t total = m.bytes + 2 * KERNEL_CASE_GUARD;
    m.block = aligned_alloc(KERNEL_CASE_GUARD,
            (total + KERNEL_CASE_GUARD - 1) / KERNEL_CASE_GUARD * KERNEL_CASE_GUARD);
    m.before = malloc(total);
    m.data = m.block + KERNEL_CASE_GUARD;
    for (size_t i = 0; i < total; i++)
        m.block[i] = (char)(i * 37 + t->id + 11);
    if (!c->produced[t->id])
        for (int64_t i = 0, n = kernel_case_count(t); i < n; i++)
            gb_element_set(t->data_type, m.data, kernel_case_offset(t, i),
                    c->is_fixed[t->id] ? c->fixed[t->id] : kernel_case_value(c, t->id, i));
    memcpy(m.before, m.block, total);
    return m;
}

static inline void kernel_case_free(kernel_memory *m)
{
    free(m->block);
    free(m->before);
}

/* Nothing but elements of outputs has changed. */
static inline void kernel_case_check_guards(
        const kernel_case *c, const gb_logical_tensor *t, kernel_memory *m, const char *what)
{
    size_t size = gb_data_type_bytes(t->data_type, 1);
    if (c->produced[t->id] && t->layout_type == GB_LAYOUT_OPAQUE) /* padding is zero */
        memset(m->before + KERNEL_CASE_GUARD, 0, m->bytes);
    if (c->produced[t->id])
        for (int64_t i = 0, n = kernel_case_count(t); i < n; i++) {
            size_t at = (size_t)kernel_case_offset(t, i) * size + KERNEL_CASE_GUARD;
            memcpy(m->before + at, m->block + at, size);
        }
    cr_assert(memcmp(m->block, m->before, m->bytes + 2 * KERNEL_CASE_GUARD) == 0,
            "%s: tensor %zu: memory outside of the elements was written", what, t->id);
}

static inline void kernel_case_compare(kernel_case *c, const gb_logical_tensor *t,
        const kernel_memory *m, const gb_ref_tensor *expected, const char *what)
{
    c->n_compared += expected->count;
    for (int64_t i = 0; i < expected->count; i++) {
        double got = gb_element_get(t->data_type, m->data, kernel_case_offset(t, i));
        double want = expected->value[i], bound = expected->bound ? expected->bound[i] : 0;
        bool same = got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= bound;
        c->n_unbounded += isinf(bound);
        cr_assert(same || isinf(bound),
                "%s: tensor %zu element %lld: got %.9g, expected %.9g +- %.3g", what, t->id,
                (long long)i, got, want, bound);
    }
}

/* What has no bound proves nothing: only a small share of the elements may be like that. */
static inline void kernel_case_check_quota(const kernel_case *c, const char *what)
{
    bool within = c->n_unbounded * KERNEL_CASE_UNBOUNDED <= c->n_compared;
    cr_assert(within || c->unbounded, "%s: %lld of %lld elements have no bound", what,
            (long long)c->n_unbounded, (long long)c->n_compared);
}

static inline void kernel_case_forget(kernel_case *c, size_t n_partitions)
{
    c->n_partitions = n_partitions;
    c->intermediates = 0;
    c->kernels[0] = '\0';
}

static inline void kernel_case_note(kernel_case *c, const gb_compiled_partition *compiled)
{
    gb_memory_use use;
    size_t length = strlen(c->kernels);
    kernel_ok(gb_compiled_partition_get_memory(compiled, &use));
    c->intermediates += use.intermediates;
    snprintf(c->kernels + length, sizeof c->kernels - length, "%s%s", length ? " " : "",
            gb_compiled_partition_get_kernels(compiled));
}

static inline void kernel_case_point(
        gb_tensor *const *tensors, const gb_logical_tensor *ports, size_t n, size_t id, char *data)
{
    for (size_t i = 0; i < n; i++)
        if (ports[i].id == id)
            kernel_ok(gb_tensor_set_data_handle(tensors[i], data));
}

/* Executes again with all pairs of ports that may share memory doing so: the results are the same.
 */
static inline void kernel_case_share(const kernel_case *c, const gb_compiled_partition *compiled,
        const kernel_memory *memory, gb_stream *stream,
        gb_logical_tensor (*ports)[KERNEL_CASE_TENSORS], gb_tensor *(*tensors)[KERNEL_CASE_TENSORS],
        const size_t *count)
{
    const gb_inplace_pair *pairs;
    char *shared[KERNEL_CASE_TENSORS];
    size_t n;
    kernel_ok(gb_compiled_partition_get_inplace_ports(compiled, &n, &pairs));
    for (size_t i = 0; i < n; i++) {
        const kernel_memory *input = &memory[pairs[i].input_id];
        cr_assert_eq(input->bytes, memory[pairs[i].output_id].bytes);
        shared[i] = memcpy(malloc(input->bytes + 1), input->data, input->bytes);
        kernel_case_point(tensors[0], ports[0], count[0], pairs[i].input_id, shared[i]);
        kernel_case_point(tensors[1], ports[1], count[1], pairs[i].output_id, shared[i]);
    }
    if (n > 0)
        kernel_ok(gb_compiled_partition_execute(compiled, stream, count[0],
                (const gb_tensor *const *)tensors[0], count[1], tensors[1], NULL));
    for (size_t i = 0; i < n; i++) {
        const gb_logical_tensor *t = &c->tensors[pairs[i].output_id];
        const char *apart = memory[t->id].data;
        size_t size = gb_data_type_bytes(t->data_type, 1);
        for (int64_t k = 0, all = kernel_case_count(t); k < all; k++) {
            size_t at = (size_t)kernel_case_offset(t, k) * size;
            cr_assert(memcmp(shared[i] + at, apart + at, size) == 0,
                    "tensor %zu in the memory of %zu: element %lld differs (%s)", t->id,
                    pairs[i].input_id, (long long)k, gb_compiled_partition_get_kernels(compiled));
        }
        free(shared[i]);
    }
}

static inline void kernel_case_execute(
        kernel_case *c, kernel_memory *memory, const gb_engine *engine, gb_stream *stream)
{
    size_t num;
    gb_set_memory_checks(1);
    kernel_ok(gb_graph_filter(c->graph, c->policy ? c->policy : GB_POLICY_FUSION));
    kernel_ok(gb_graph_get_partitions(c->graph, 0, NULL, &num));
    kernel_case_forget(c, num);
    gb_partition *partitions[KERNEL_CASE_OPS];
    kernel_ok(gb_graph_get_partitions(c->graph, num, partitions, NULL));
    for (size_t p = 0; p < num; p++) {
        uint8_t runs;
        kernel_ok(gb_partition_is_supported(partitions[p], &runs));
        if (!runs) { /* End */
            gb_partition_destroy(partitions[p]);
            continue;
        }
        gb_logical_tensor ports[2][KERNEL_CASE_TENSORS];
        const gb_logical_tensor *lists[2][KERNEL_CASE_TENSORS];
        gb_tensor *tensors[2][KERNEL_CASE_TENSORS];
        size_t count[2];
        kernel_ok(gb_partition_get_input_ports(partitions[p], 0, NULL, &count[0]));
        kernel_ok(gb_partition_get_input_ports(partitions[p], count[0], ports[0], NULL));
        kernel_ok(gb_partition_get_output_ports(partitions[p], 0, NULL, &count[1]));
        kernel_ok(gb_partition_get_output_ports(partitions[p], count[1], ports[1], NULL));
        for (int side = 0; side < 2; side++)
            for (size_t i = 0; i < count[side]; i++) {
                size_t id = ports[side][i].id;
                lists[side][i] = &c->tensors[id];
                kernel_ok(gb_tensor_create(
                        &tensors[side][i], &c->tensors[id], engine, memory[id].data));
            }
        gb_compiled_partition *compiled;
        kernel_ok(gb_partition_compile(
                partitions[p], &compiled, count[0], lists[0], count[1], lists[1], engine));
        kernel_ok(gb_compiled_partition_execute(compiled, stream, count[0],
                (const gb_tensor *const *)tensors[0], count[1], tensors[1], NULL));
        kernel_case_note(c, compiled);
        kernel_case_share(c, compiled, memory, stream, ports, tensors, count);
        gb_compiled_partition_destroy(compiled);
        gb_partition_destroy(partitions[p]);
        for (int side = 0; side < 2; side++)
            for (size_t i = 0; i < count[side]; i++)
                gb_tensor_destroy(tensors[side][i]);
    }
}

/* The reference reads strided tensors. */
static inline void kernel_case_read(
        const gb_logical_tensor *t, const char *data, gb_ref_tensor *tensor)
{
    if (t->layout_type == GB_LAYOUT_STRIDED) {
        kernel_ok(gb_ref_tensor_read(tensor, t, data));
        return;
    }
    gb_logical_tensor dense;
    size_t bytes;
    kernel_ok(gb_logical_tensor_init_with_dims(
            &dense, t->id, t->data_type, t->ndims, t->dims, GB_LAYOUT_STRIDED, t->property));
    kernel_ok(gb_logical_tensor_get_mem_size(&dense, &bytes));
    char *copy = malloc(bytes + 1);
    for (int64_t i = 0, n = kernel_case_count(t); i < n; i++)
        gb_element_set(t->data_type, copy, i,
                gb_element_get(t->data_type, data, kernel_case_offset(t, i)));
    kernel_ok(gb_ref_tensor_read(tensor, &dense, copy));
    free(copy);
}

static inline gb_ref_store *kernel_case_reference(kernel_case *c, const kernel_memory *memory)
{
    gb_ref_store *store;
    size_t ids[KERNEL_CASE_OPS];
    kernel_ok(gb_ref_store_create(&store));
    for (size_t id = 0; id < c->n_tensors; id++) {
        gb_ref_tensor tensor = {0};
        if (c->produced[id])
            continue;
        kernel_case_read(&c->tensors[id], memory[id].data, &tensor);
        kernel_ok(gb_ref_store_put(store, &tensor));
    }
    for (size_t i = 0; i < c->n_ops; i++) {
        const gb_op *op;
        kernel_ok(gb_graph_get_op(c->graph, i, &op));
        kernel_ok(gb_op_get_id(op, &ids[i]));
    }
    kernel_ok(gb_ref_execute(c->graph, c->n_ops, ids, store));
    return store;
}

/* The graph with one layout on all tensors. */
static inline void kernel_case_graph(kernel_case *c, kernel_layout layout)
{
    kernel_ok(gb_graph_create(&c->graph, GB_ENGINE_CPU));
    for (size_t i = 0; i < c->n_ops; i++)
        kernel_ok(gb_graph_add_op(c->graph, c->ops[i]));
    kernel_ok(gb_graph_infer_shapes(c->graph));
    for (size_t id = 0; id < c->n_tensors; id++) {
        kernel_ok(gb_graph_find_tensor(c->graph, id, &c->tensors[id]));
        kernel_case_layout(c, &c->tensors[id], layout);
        kernel_ok(gb_graph_set_tensor(c->graph, &c->tensors[id]));
    }
    kernel_ok(gb_graph_finalize(c->graph));
}

static inline void kernel_case_run_layout(kernel_case *c, kernel_layout layout, const char *name)
{
    char what[160];
    snprintf(what, sizeof what, "%s, layout %d", name, (int)layout);
    kernel_case_graph(c, layout);
    gb_engine *engine;
    gb_stream *stream;
    kernel_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    kernel_ok(gb_stream_create(&stream, engine));
    kernel_memory memory[2][KERNEL_CASE_TENSORS];
    gb_ref_store *store = NULL;
    c->n_compared = c->n_unbounded = 0;
    for (int run = 0; run < 2; run++) {
        omp_set_num_threads(run + 1);
        for (size_t id = 0; id < c->n_tensors; id++)
            memory[run][id] = kernel_case_alloc(c, &c->tensors[id]);
        if (!store)
            store = kernel_case_reference(c, memory[run]);
        kernel_case_execute(c, memory[run], engine, stream);
    }
    for (size_t id = 0; id < c->n_tensors; id++) {
        bool inner = c->produced[id] && c->read[id];
        kernel_case_check_guards(c, &c->tensors[id], &memory[0][id], what);
        if (c->produced[id] && !inner) {
            kernel_case_compare(
                    c, &c->tensors[id], &memory[0][id], gb_ref_store_get(store, id), what);
            cr_assert(memcmp(memory[0][id].block, memory[1][id].block,
                              memory[0][id].bytes + 2 * KERNEL_CASE_GUARD) == 0,
                    "%s: tensor %zu differs between 1 and 2 threads", what, id);
        }
        kernel_case_free(&memory[0][id]);
        kernel_case_free(&memory[1][id]);
    }
    kernel_case_check_quota(c, what);
    gb_ref_store_destroy(store);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
    gb_graph_destroy(c->graph);
}

/* Runs with all layouts and frees the case. */
static inline void kernel_case_run(kernel_case *c, const char *name)
{
    for (int layout = 0; layout < LAYOUT_COUNT; layout++)
        if (layout == LAYOUT_DENSE || !c->dense_only)
            kernel_case_run_layout(c, (kernel_layout)layout, name);
    if (c->repeated)
        kernel_case_run_layout(c, LAYOUT_REPEATED, name);
    if (c->blocked)
        kernel_case_run_layout(c, LAYOUT_BLOCKED, name);
    for (size_t i = 0; i < c->n_ops; i++)
        gb_op_destroy(c->ops[i]);
}

#endif
