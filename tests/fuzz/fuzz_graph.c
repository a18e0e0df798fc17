/* Graphs of legal ops made from bytes: samples of the op table whose inputs are what earlier ops
 * made, or new tensors of tiny dims. An op that does not go with its inputs is left out, so that
 * nearly all bytes make a graph that runs. */
#include "fuzz.h"
#include "graph/ir/graph.h"
#include "graph/ops/op_table.h"

#include <string.h>

enum { OPS = 10, TENSORS = 96, ELEMENTS = 512 };

typedef struct builder {
    const uint8_t *at, *end;
    gb_graph *graph;
    size_t n_ops, n_tensors; /* ids are counted */
    size_t n_known;
    gb_logical_tensor known[TENSORS]; /* that later ops may read */
} builder;

/* A number below n; 0 when the bytes are used up. */
static uint32_t take(builder *b, uint32_t n)
{
    uint32_t value = b->at < b->end ? *b->at++ : 0;
    if (n > 256 && b->at < b->end)
        value = value * 256 + *b->at++;
    return value % n;
}

static int64_t elements(const gb_logical_tensor *t)
{
    int64_t count = 1;
    for (int d = 0; d < t->ndims; d++)
        count *= t->dims[d];
    return count;
}

/* How the elements of an input lie: dense, the axes turned, with gaps, or repeated along the first.
 */
static void lay_out(builder *b, gb_logical_tensor *t)
{
    uint32_t how = take(b, 8);
    int64_t stride = how == 2 ? 3 : 1;
    gb_dense_strides(t->ndims, t->dims, t->strides);
    t->layout_type = GB_LAYOUT_STRIDED;
    for (int d = 0; (how == 1 || how == 2) && d < t->ndims; d++) {
        t->strides[d] = stride;
        stride *= t->dims[d] > 0 ? t->dims[d] : 1;
        stride += how == 2;
    }
    if (how == 3 && t->ndims > 0)
        t->strides[0] = 0;
}

/* A new input in the place of the sample's: most keep their dims, some lose or gain elements. */
static void change_dims(builder *b, gb_logical_tensor *t)
{
    static const int64_t sizes[] = {1, 0, 2, 3, 7, 16, 17, 33};
    uint32_t change = take(b, 4);
    if (change == 1 && t->ndims > 0)
        t->dims[take(b, (uint32_t)t->ndims)] = sizes[take(b, 8)];
    if (change == 2)
        for (int d = 0; d < t->ndims; d++)
            t->dims[d] = sizes[take(b, 8)];
    if (change == 3 && t->ndims < GB_MAX_NDIMS) {
        memmove(t->dims + 1, t->dims, (size_t)t->ndims * sizeof *t->dims);
        t->dims[0] = sizes[take(b, 8)];
        t->ndims++;
    }
}

/* An input of the op being made: a known tensor of the type, the latest first, or a new one. */
static void choose_input(builder *b, gb_logical_tensor *t)
{
    uint32_t back = take(b, 8), met = 0;
    for (size_t i = b->n_known; i-- > 0 && back < 6;)
        if (b->known[i].data_type == t->data_type && met++ == back % 3) {
            *t = b->known[i];
            return;
        }
    t->id = b->n_tensors++;
    change_dims(b, t);
    lay_out(b, t);
    t->property = take(b, 4) == 1 ? GB_PROPERTY_CONSTANT : GB_PROPERTY_VARIABLE;
}

/* Does the op alone hold together, with results that are small? These are told. */
static bool try_alone(gb_op *op, gb_logical_tensor *results)
{
    gb_graph *graph;
    double flops = 0, bytes;
    fuzz_check(gb_graph_create(&graph, GB_ENGINE_CPU) == GB_SUCCESS, "no memory");
    bool good = fuzz_succeeded(gb_graph_add_op(graph, op), "gb_graph_add_op") &&
                fuzz_succeeded(gb_graph_infer_shapes(graph), "gb_graph_infer_shapes") &&
                fuzz_succeeded(gb_graph_get_work(graph, &flops, &bytes), "gb_graph_get_work") &&
                flops < 1e6;
    for (uint32_t i = 0; good && i < op->n_outputs; i++) {
        good = gb_graph_find_tensor(graph, gb_op_output(op, i)->id, &results[i]) == GB_SUCCESS &&
               results[i].ndims >= 0;
        for (int d = 0; good && d < results[i].ndims; d++)
            good = results[i].dims[d] >= 0 && results[i].dims[d] <= ELEMENTS;
        good = good && elements(&results[i]) <= ELEMENTS;
    }
    gb_graph_destroy(graph);
    return good;
}

/* The kinds that fuse come more often. */
static gb_op_kind choose_kind(builder *b)
{
    static const gb_op_kind often[] = {GB_OP_MATMUL, GB_OP_CONVOLUTION, GB_OP_ADD, GB_OP_RELU,
            GB_OP_SOFTMAX, GB_OP_MULTIPLY, GB_OP_TYPE_CAST, GB_OP_QUANTIZE, GB_OP_DEQUANTIZE,
            GB_OP_STATIC_TRANSPOSE, GB_OP_STATIC_RESHAPE, GB_OP_REDUCE_SUM, GB_OP_LAYER_NORM,
            GB_OP_SELECT, GB_OP_CONCAT, GB_OP_EXP};
    uint32_t choice = take(b, 128);
    return choice < GB_OP_LAST ? (gb_op_kind)choice
                               : often[choice % (sizeof often / sizeof *often)];
}

static void add_op(builder *b)
{
    gb_op_kind kind = choose_kind(b);
    size_t samples = gb_op_sample_num(kind), tensors = b->n_tensors;
    gb_logical_tensor results[GB_MAX_PORTS];
    gb_op *op;
    if (samples == 0)
        return;
    fuzz_check(gb_op_sample_create(&op, kind, take(b, (uint32_t)samples)) == GB_SUCCESS, "%s",
            gb_last_error());
    op->id = b->n_ops;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        choose_input(b, &op->own[op->inputs[i]]);
    for (uint32_t i = 0; i < op->n_outputs; i++) {
        gb_logical_tensor *t = &op->own[op->outputs[i]];
        t->id = b->n_tensors++;
        t->ndims = GB_UNKNOWN_NDIMS;
    }
    if (b->n_tensors <= TENSORS && try_alone(op, results) &&
            fuzz_succeeded(gb_graph_add_op(b->graph, op), "gb_graph_add_op")) {
        b->n_ops++;
        for (uint32_t i = 0; i < op->n_inputs; i++)
            if (gb_op_input(op, i)->id >= tensors)
                b->known[b->n_known++] = *gb_op_input(op, i);
        for (uint32_t i = 0; i < op->n_outputs; i++) {
            b->known[b->n_known] = results[i];
            b->known[b->n_known].ndims = results[i].ndims;
            b->n_known++;
        }
    } else {
        b->n_tensors = tensors;
    }
    gb_op_destroy(op);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    builder b = {.at = data, .end = data + size};
    fuzz_check(gb_graph_create(&b.graph, GB_ENGINE_CPU) == GB_SUCCESS, "no memory");
    uint32_t how = take(&b, 256);
    const fuzz_run run = {.policy = how & 1 ? GB_POLICY_DEBUG : GB_POLICY_FUSION,
            .threads = how & 2 ? 2 : 1,
            .any = how & 4,
            .seed = how >> 3};
    while (b.at < b.end && b.n_ops < OPS)
        add_op(&b);
    if (b.n_ops > 0)
        fuzz_run_graph(b.graph, &run);
    gb_graph_destroy(b.graph);
    return 0;
}
