/* The reference in slices: every op by its rule, graphs and parts of graphs with as little memory
 * as they can be evaluated in. */
#include "graph/ir/graph.h"
#include "graph/ops/op_table.h"
#include "op_values.h"
#include "ref/slices/slice_rules.h"
#include "ref_case.h"

#include <dirent.h>
#include <graphbench/graphbench_tools.h>
#include <omp.h>
#include <stdio.h>

static void ok(gb_status status, const char *name)
{
    cr_assert_eq(status, GB_SUCCESS, "%s: %s", name, gb_last_error());
}

/* Data ----------------------------------------------------------------------------------------- */

static void put_random(gb_ref_store *store, const gb_graph *graph, const gb_value *value)
{
    gb_ref_tensor tensor = {.tensor = value->tensor};
    const gb_op *reader = graph->ops[value->uses[0].op];
    uint64_t state = 977 * value->tensor.id + 1;
    tensor.count = gb_tensor_count(&tensor.tensor);
    tensor.value = malloc((size_t)tensor.count * sizeof(double) + 1);
    bool divides = reader->kind == GB_OP_DIVIDE && value->uses[0].input == 1;
    for (int64_t i = 0; i < tensor.count; i++) {
        double uniform = ref_case_random(&state, 3); /* 3 bits fit every type */
        tensor.value[i] = op_value(reader->kind, value->uses[0].input, tensor.tensor.data_type, i,
                divides ? fabs(uniform) / 2 + 0.125 : uniform);
    }
    ok(gb_ref_store_put(store, &tensor), "put");
}

/* The inputs of the graph. */
static gb_ref_store *make_store(const gb_graph *graph)
{
    gb_ref_store *store;
    ok(gb_ref_store_create(&store), "store");
    for (uint32_t v = 0; v < graph->n_values; v++)
        if (graph->values[v].producer == GB_NONE)
            put_random(store, graph, &graph->values[v]);
    return store;
}

static void put_copy(gb_ref_store *store, const gb_ref_tensor *tensor)
{
    gb_ref_tensor copy = *tensor;
    size_t bytes = (size_t)tensor->count * sizeof(double);
    copy.value = malloc(bytes + 1);
    memcpy(copy.value, tensor->value, bytes);
    if (tensor->bound) {
        copy.bound = malloc(bytes + 1);
        memcpy(copy.bound, tensor->bound, bytes);
    }
    ok(gb_ref_store_put(store, &copy), "copy");
}

static bool is_same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/* The rule of each op -------------------------------------------------------------------------- */

/* Indices begin .. end-1 of an axis; `elements` has room for as many as the tensor has. */
static int64_t list_slice(
        const gb_logical_tensor *whole, int axis, int64_t begin, int64_t end, int64_t *elements)
{
    int64_t strides[GB_MAX_NDIMS], count = 0;
    gb_dense_strides(whole->ndims, whole->dims, strides);
    for (int64_t i = 0; i < gb_tensor_count(whole); i++) {
        int64_t index = i / strides[axis] % whole->dims[axis];
        if (index >= begin && index < end)
            elements[count++] = i;
    }
    return count;
}

typedef struct part {
    const gb_op *op;
    const int *axes;
    int64_t index, parts;
} part;

static int64_t slice_of(
        const part *p, uint32_t port, const gb_logical_tensor *whole, int64_t *elements)
{
    int axis = p->axes[port];
    int64_t length = axis < 0 ? 0 : whole->dims[axis] / p->parts;
    if (axis >= 0)
        return list_slice(whole, axis, p->index * length, (p->index + 1) * length, elements);
    for (int64_t i = 0; i < gb_tensor_count(whole); i++)
        elements[i] = i;
    return gb_tensor_count(whole);
}

static void put_slice(const part *p, uint32_t port, const gb_ref_store *whole, gb_ref_store *store)
{
    const gb_ref_tensor *from = gb_ref_store_get(whole, gb_op_tensor(p->op, port)->id);
    int64_t *elements = malloc((size_t)from->count * sizeof *elements + 1);
    gb_ref_tensor slice = {.tensor = from->tensor};
    slice.count = slice_of(p, port, &from->tensor, elements);
    if (p->axes[port] >= 0)
        slice.tensor.dims[p->axes[port]] /= p->parts;
    slice.value = malloc((size_t)slice.count * sizeof(double) + 1);
    for (int64_t i = 0; i < slice.count; i++)
        slice.value[i] = from->value[elements[i]];
    ok(gb_ref_store_put(store, &slice), "slice");
    free(elements);
}

/* Sums may be found exact in a slice that are not on the whole: bounds may be smaller. */
static void expect_slice(
        const part *p, uint32_t port, const gb_ref_store *whole, const gb_ref_store *store)
{
    size_t id = gb_op_tensor(p->op, port)->id;
    const gb_ref_tensor *expected = gb_ref_store_get(whole, id), *got = gb_ref_store_get(store, id);
    const char *kind = gb_op_kind_name(p->op->kind), *form = gb_op_get_name(p->op);
    int64_t *elements = malloc((size_t)expected->count * sizeof *elements + 1), wrong = 0;
    int64_t count = slice_of(p, port, &expected->tensor, elements);
    cr_assert_eq(got->count, count);
    for (int64_t i = 0; i < count; i++) {
        double bound = ref_case_bound(expected, elements[i]), own = ref_case_bound(got, i);
        wrong += !is_same(got->value[i], expected->value[elements[i]]) || !(own <= bound) ||
                 !(own == bound || own == 0);
    }
    cr_expect_eq(wrong, 0, "%s (%s), part %lld of %lld: %lld elements of output %u differ", kind,
            form, (long long)p->index, (long long)p->parts, (long long)wrong,
            port - p->op->n_inputs);
    free(elements);
}

static int64_t divisor_of_all(const gb_op *op, const int *axes)
{
    for (int64_t parts = 64; parts > 1; parts--) {
        bool divides = true;
        for (uint32_t port = 0; port < op->n_inputs + op->n_outputs; port++)
            divides &= axes[port] < 0 || gb_op_tensor(op, port)->dims[axes[port]] % parts == 0;
        if (divides)
            return parts;
    }
    return 1;
}

/* How many axes the op of the graph can be cut along. */
static int check_op(const gb_graph *graph, const gb_ref_store *whole)
{
    int axes[2 * GB_MAX_PORTS], cuts = 0;
    const gb_op *op = graph->ops[0];
    for (int axis = 0; axis < gb_op_output(op, 0)->ndims; axis++) {
        if (gb_op_output(op, 0)->dims[axis] < 2 || !gb_ref_slice_axes(op, axis, axes))
            continue;
        part p = {.op = op, .axes = axes, .parts = divisor_of_all(op, axes)};
        gb_graph *clone;
        ok(gb_graph_clone(graph, NULL, 0, &clone), "clone");
        for (uint32_t port = 0; port < op->n_inputs + op->n_outputs; port++)
            if (axes[port] >= 0)
                clone->values[gb_graph_find_value(clone, gb_op_tensor(op, port)->id)]
                        .tensor.dims[axes[port]] /= p.parts;
        for (; p.parts > 1 && p.index < p.parts; p.index++) {
            gb_ref_store *store;
            ok(gb_ref_store_create(&store), "store");
            for (uint32_t port = 0; port < op->n_inputs; port++)
                put_slice(&p, port, whole, store);
            ok(gb_ref_execute(clone, 1, &op->id, store), gb_op_kind_name(op->kind));
            for (uint32_t port = op->n_inputs; port < op->n_inputs + op->n_outputs; port++)
                expect_slice(&p, port, whole, store);
            gb_ref_store_destroy(store);
        }
        cuts += p.parts > 1;
        gb_graph_destroy(clone);
    }
    return cuts;
}

static int check_kind(gb_op_kind kind)
{
    int cuts = 0;
    for (size_t i = 0; i < gb_op_sample_num(kind); i++) {
        gb_op *op;
        gb_graph *graph;
        ok(gb_op_sample_create(&op, kind, i), "sample");
        ok(gb_graph_create(&graph, GB_ENGINE_CPU), "graph");
        ok(gb_graph_add_op(graph, op), gb_op_kind_name(kind));
        ok(gb_graph_infer_shapes(graph), gb_op_kind_name(kind));
        ok(gb_graph_finalize(graph), gb_op_kind_name(kind));
        gb_ref_store *store = make_store(graph);
        ok(gb_ref_execute(graph, 1, &op->id, store), gb_op_kind_name(kind));
        cuts += check_op(graph, store);
        gb_ref_store_destroy(store);
        gb_graph_destroy(graph);
        gb_op_destroy(op);
    }
    return cuts;
}

/* Sums over the batch, statistics of it, numbers that depend on the place in the whole. */
static bool is_uncut(gb_op_kind kind)
{
    static const gb_op_kind kinds[] = {GB_OP_BATCH_NORM_BACKWARD, GB_OP_BATCH_NORM_FORWARD_TRAINING,
            GB_OP_BIAS_ADD_BACKWARD, GB_OP_CONVOLUTION_BACKWARD_WEIGHTS,
            GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS, GB_OP_DROPOUT, GB_OP_LAYER_NORM_BACKWARD,
            GB_OP_PRELU_BACKWARD};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i] == kind)
            return true;
    return false;
}

Test(ref_slice, slices_of_every_op_are_those_of_the_whole)
{
    for (int kind = 0; kind < GB_OP_LAST; kind++) {
        if (!gb_ref_supports((gb_op_kind)kind) || kind == GB_OP_END)
            continue;
        int cuts = check_kind((gb_op_kind)kind);
        cr_expect_eq(cuts == 0, is_uncut((gb_op_kind)kind), "%s: %d cuts",
                gb_op_kind_name((gb_op_kind)kind), cuts);
    }
}

/* 3 channels, so that sums of four products reach over taps; strides, so that tiles of positions
 * skip taps, others in a slice than in the whole. */
Test(ref_slice, images_of_a_batch_do_not_depend_on_their_neighbours)
{
    static const int64_t src[] = {5, 17, 19, 3}, weights[] = {5, 4, 2, 3}, dst[] = {5, 37, 40, 2};
    static const int64_t strides[] = {2, 2}, ones[] = {1, 1}, zeros[] = {0, 0};
    ref_case c = ref_case_begin(GB_OP_CONV_TRANSPOSE);
    ref_case_ints(&c, GB_ATTR_STRIDES, 2, strides);
    ref_case_ints(&c, GB_ATTR_DILATIONS, 2, ones);
    ref_case_ints(&c, GB_ATTR_PADS_BEGIN, 2, zeros);
    ref_case_ints(&c, GB_ATTR_PADS_END, 2, zeros);
    ref_case_text(&c, GB_ATTR_DATA_FORMAT, "NXC");
    ref_case_text(&c, GB_ATTR_WEIGHTS_FORMAT, "XOI");
    double *x = ref_case_randoms(1, ref_case_count(4, src), 20);
    double *w = ref_case_randoms(2, ref_case_count(4, weights), 20);
    for (int64_t i = 0; i < ref_case_count(4, src); i++)
        x[i] = ldexp(x[i], (int)(-i % 23)); /* so that sums round in f64 */
    ref_case_input(&c, GB_F32, 4, src, x);
    ref_case_input(&c, GB_F32, 4, weights, w);
    ref_case_output(&c, GB_F32, 4, dst);
    ref_case_run(&c);
    cr_expect_eq(check_op(c.graph, c.store), 1);
    ref_case_end(&c);
    free(x);
    free(w);
}

/* Graphs --------------------------------------------------------------------------------------- */

enum { MOST_OPS = 256 };

static gb_graph *load(const char *path)
{
    gb_graph *graph;
    char full[2048];
    snprintf(full, sizeof full, GB_TEST_DATA "/../inputs/graph/%s", path);
    ok(gb_graph_load(&graph, full, NULL, NULL), path);
    ok(gb_graph_infer_shapes(graph), path);
    ok(gb_graph_finalize(graph), path);
    return graph;
}

/* Ids of ops first .. end-1, but for End. */
static size_t list_ops(const gb_graph *graph, uint32_t first, uint32_t end, size_t ids[MOST_OPS])
{
    size_t count = 0;
    for (uint32_t i = first; i < end; i++)
        if (graph->ops[i]->kind != GB_OP_END)
            ids[count++] = graph->ops[i]->id;
    cr_assert_leq(count, MOST_OPS);
    return count;
}

/* Values are equal, but for those that a slice knows as they are stored; bounds are as close as
 * ratios of errors are in slices and on the whole. */
static void expect_same(const gb_graph *graph, const gb_ref_store *whole,
        const gb_ref_store *sliced, const char *name)
{
    for (uint32_t v = 0; v < graph->n_values; v++) {
        size_t id = graph->values[v].tensor.id;
        const gb_ref_tensor *a = gb_ref_store_get(whole, id), *b = gb_ref_store_get(sliced, id);
        cr_assert_eq(a == NULL, b == NULL, "%s: tensor %zu is in one of them only", name, id);
        int64_t wrong = 0, loose = 0;
        for (int64_t i = 0; a && i < a->count; i++) {
            double bound = ref_case_bound(a, i), own = ref_case_bound(b, i);
            bool stored = own == 0 && fabs(a->value[i] - b->value[i]) <= bound;
            wrong += !is_same(a->value[i], b->value[i]) && !stored;
            loose += !(own <= 1.1 * bound) || !(own >= 0.9 * bound || own == 0);
        }
        cr_expect_eq(wrong, 0, "%s: %lld values of tensor %zu differ", name, (long long)wrong, id);
        cr_expect_eq(loose, 0, "%s: %lld bounds of tensor %zu differ", name, (long long)loose, id);
        if (a) {
            cr_expect_eq(memcmp(&a->tensor, &b->tensor, sizeof a->tensor), 0, "%s", name);
            cr_expect_eq(a->statistical, b->statistical, "%s", name);
        }
    }
}

/* The list whole and within `bytes`; `given` has what enters it. */
static void compare_within(const gb_graph *graph, size_t n, const size_t *ids,
        const gb_ref_store *given, double bytes, const char *name)
{
    gb_ref_store *stores[2];
    for (int i = 0; i < 2; i++) {
        ok(gb_ref_store_create(&stores[i]), name);
        for (size_t k = 0; k < n; k++) {
            const gb_op *op = graph->ops[gb_graph_find_op_index(graph, ids[k])];
            for (uint32_t port = 0; port < op->n_inputs; port++) {
                const gb_value *value = &graph->values[op->inputs[port]];
                size_t maker = 0;
                while (maker < n && (value->producer == GB_NONE ||
                                            ids[maker] != graph->ops[value->producer]->id))
                    maker++;
                if (maker == n && !gb_ref_store_get(stores[i], value->tensor.id))
                    put_copy(stores[i], gb_ref_store_get(given, value->tensor.id));
            }
        }
    }
    ok(gb_ref_execute(graph, n, ids, stores[0]), name);
    ok(gb_ref_execute_within(graph, n, ids, bytes, stores[1]), name);
    expect_same(graph, stores[0], stores[1], name);
    gb_ref_store_destroy(stores[0]);
    gb_ref_store_destroy(stores[1]);
}

/* Is the list cut? With the least memory, and with some more. */
static bool check_list(const gb_graph *graph, size_t n, const size_t *ids,
        const gb_ref_store *given, const char *name)
{
    double whole, least;
    ok(gb_ref_get_memory(graph, n, ids, &whole), name);
    ok(gb_ref_get_least_memory(graph, n, ids, &least), name);
    cr_assert_leq(least, whole, "%s", name);
    if (least > 0) {
        gb_ref_store *store;
        ok(gb_ref_store_create(&store), name);
        cr_expect_eq(gb_ref_execute_within(graph, n, ids, least - 1, store), GB_OUT_OF_MEMORY);
        cr_expect(strstr(gb_last_error(), "the reference needs"), "%s", gb_last_error());
        gb_ref_store_destroy(store);
    }
    if (least == whole)
        return false;
    compare_within(graph, n, ids, given, least, name);
    compare_within(graph, n, ids, given, least + 0.4 * (whole - least), name);
    return true;
}

/* Every tensor of the graph, kept. */
static gb_ref_store *evaluate_each(const gb_graph *graph, const char *name)
{
    gb_ref_store *store = make_store(graph);
    for (uint32_t i = 0; i < graph->n_ops; i++)
        if (graph->ops[i]->kind != GB_OP_END)
            ok(gb_ref_execute(graph, 1, &graph->ops[i]->id, store), name);
    return store;
}

/* The graph, and parts of it, whose ends are read outside and whose inputs have bounds. */
static bool check_file(const char *path, uint64_t seed)
{
    gb_graph *graph = load(path);
    size_t ids[MOST_OPS], n = list_ops(graph, 0, graph->n_ops, ids);
    gb_ref_store *all = evaluate_each(graph, path);
    bool cut = check_list(graph, n, ids, all, path);
    for (int i = 0; i < 2 && graph->n_ops > 2; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t first = (uint32_t)(seed >> 40) % (graph->n_ops - 1);
        uint32_t end = first + 2 + (uint32_t)(seed >> 20 & 0xfff) % (graph->n_ops - first - 1);
        n = list_ops(graph, first, end, ids);
        check_list(graph, n, ids, all, path);
    }
    gb_ref_store_destroy(all);
    gb_graph_destroy(graph);
    return cut;
}

/* How many of the graphs can be cut. */
static int check_folder(const char *folder)
{
    char path[1024];
    int cuts = 0;
    snprintf(path, sizeof path, GB_TEST_DATA "/../inputs/graph/%s", folder);
    omp_set_num_threads(1); /* slices are too small for more */
    DIR *directory = opendir(path);
    cr_assert_not_null(directory, "%s", path);
    for (struct dirent *entry; (entry = readdir(directory));) {
        bool copy = strstr(entry->d_name, "_bf16") || strstr(entry->d_name, "_f16");
        if (!strstr(entry->d_name, ".json") || copy) /* of an f32 graph in other types */
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        cuts += check_file(path, strlen(path));
    }
    closedir(directory);
    return cuts;
}

Test(ref_slice, patterns)
{
    int cuts = check_folder("pattern");
    cr_expect_geq(cuts, 90, "%d", cuts);
}

Test(ref_slice, complex_fusions)
{
    int cuts = check_folder("complex_fusion");
    cr_expect_geq(cuts, 55, "%d", cuts);
}

/* The random numbers of Dropout depend on places in the whole. */
Test(ref_slice, what_cannot_be_cut_says_so)
{
    double whole, least;
    gb_graph *graph = load("pattern/unary_dropout.json");
    size_t ids[MOST_OPS], n = list_ops(graph, 0, graph->n_ops, ids);
    gb_ref_store *store = make_store(graph);
    ok(gb_ref_get_memory(graph, n, ids, &whole), "memory");
    ok(gb_ref_get_least_memory(graph, n, ids, &least), "least memory");
    cr_expect_eq(least, whole);
    cr_expect_eq(gb_ref_execute_within(graph, n, ids, whole - 1, store), GB_OUT_OF_MEMORY);
    cr_expect(strstr(gb_last_error(), "no axis to cut"), "%s", gb_last_error());
    ok(gb_ref_execute_within(graph, n, ids, whole, store), "whole");
    cr_expect_eq(gb_ref_execute_within(NULL, n, ids, 0, store), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_ref_execute_within(graph, n, ids, 0, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_ref_get_least_memory(graph, n, NULL, &least), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_ref_get_least_memory(graph, n, ids, NULL), GB_INVALID_ARGUMENTS);
    gb_ref_store_destroy(store);
    gb_graph_destroy(graph);
}
