/* Finding out what an input of a graph is for. */
#include "cli/run/fill_role.h"

#include "cli/run/memory.h"

#include <graphbench/graphbench_tools.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const gb_fill_domain domains[] = {
        [GB_RANGE_ANY] = DOMAIN_ANY,
        [GB_RANGE_WEIGHTS] = DOMAIN_WEIGHTS,
        [GB_RANGE_POSITIVE] = DOMAIN_POSITIVE,
        [GB_RANGE_DIVISOR] = DOMAIN_DIVISOR,
        [GB_RANGE_FACTOR] = DOMAIN_FACTOR,
        [GB_RANGE_PROBABILITY] = DOMAIN_PROBABILITY,
        [GB_RANGE_SCALE] = DOMAIN_SCALE,
        [GB_RANGE_ZERO_POINT] = DOMAIN_ZERO_POINT,
        [GB_RANGE_SEED] = DOMAIN_SEED,
        [GB_RANGE_OFFSET] = DOMAIN_OFFSET,
        [GB_RANGE_AXES] = DOMAIN_AXES,
};

static gb_op_kind kind_of(const gb_op *op)
{
    gb_op_kind kind = GB_OP_LAST;
    if (op)
        gb_op_get_kind(op, &kind);
    return kind;
}

/* Ops that pass values on: what matters is who reads their result. */
static bool passes_on(gb_op_kind kind)
{
    return gb_op_kind_get_traits(kind) & GB_TRAIT_PASSES_VALUES;
}

static gb_fill_domain find_domain(const gb_op *reader, size_t input)
{
    return domains[gb_op_kind_get_input_range(kind_of(reader), input)];
}

static size_t input_index(const gb_op *op, size_t tensor_id)
{
    gb_logical_tensor tensor;
    size_t i = 0;
    while (gb_op_get_input(op, i, &tensor) == GB_SUCCESS && tensor.id != tensor_id)
        i++;
    return i;
}

/* Of the ops that read the tensor, the first with a wish of its own, else the first. */
static const gb_op *direct_reader(const gb_graph *graph, size_t tensor_id, size_t *input)
{
    size_t count = 0;
    if (gb_graph_get_consumers(graph, tensor_id, 0, NULL, &count) != GB_SUCCESS || count == 0)
        return NULL;
    const gb_op **readers = malloc(count * sizeof(gb_op *));
    if (!readers)
        return NULL;
    gb_graph_get_consumers(graph, tensor_id, count, readers, NULL);
    size_t chosen = 0;
    for (size_t i = count; i-- > 0;)
        if (find_domain(readers[i], input_index(readers[i], tensor_id)) != DOMAIN_ANY)
            chosen = i;
    const gb_op *reader = readers[chosen];
    free(readers);
    *input = input_index(reader, tensor_id);
    return reader;
}

/* The op that reads the tensor, looking through ops that pass values on. */
static const gb_op *find_reader(const gb_graph *graph, size_t tensor_id, size_t *input)
{
    for (;;) {
        const gb_op *reader = direct_reader(graph, tensor_id, input);
        gb_logical_tensor output;
        if (!passes_on(kind_of(reader)) || gb_op_get_output(reader, 0, &output) != GB_SUCCESS)
            return reader;
        tensor_id = output.id;
    }
}

/* The op that made an input of `op`, looking through ops that pass values on; NULL for an input of
 * the graph, whose tensor is then *source. */
static const gb_op *find_producer(
        const gb_graph *graph, const gb_op *op, size_t input, gb_logical_tensor *source)
{
    const gb_op *producer = NULL;
    if (gb_op_get_input(op, input, source) != GB_SUCCESS)
        return NULL;
    while (gb_graph_get_producer(graph, source->id, &producer) == GB_SUCCESS && producer) {
        if (!passes_on(kind_of(producer)) || gb_op_get_input(producer, 0, source) != GB_SUCCESS)
            return producer;
        producer = NULL;
    }
    return NULL;
}

static bool attr_is_set(const gb_op *op, gb_op_attr attr)
{
    const void *flag = NULL;
    size_t count = 0;
    return gb_op_get_attr(op, attr, &count, &flag) == GB_SUCCESS && count && *(const uint8_t *)flag;
}

/* Terms of the sums that the weights enter: elements per output channel or column. */
static double count_terms(const gb_op *reader, size_t input)
{
    gb_logical_tensor weights;
    if (gb_op_get_input(reader, input, &weights) != GB_SUCCESS || weights.ndims < 1)
        return 1;
    if (kind_of(reader) == GB_OP_MATMUL) {
        bool last = weights.ndims == 1 || attr_is_set(reader, GB_ATTR_TRANSPOSE_B);
        return fmax(1, (double)weights.dims[weights.ndims - (last ? 1 : 2)]);
    }
    int64_t largest = 1;
    for (int d = 0; d < weights.ndims; d++)
        if (weights.dims[d] > largest)
            largest = weights.dims[d];
    return fmax(1, (double)gb_cli_count(&weights) / (double)largest);
}

/* Does the product become probabilities that are quantised? */
static bool feeds_quantized_softmax(const gb_graph *graph, const gb_op *product)
{
    enum { FAR = 12 }; /* ops between */
    bool after_softmax = false;
    for (int i = 0; i < FAR; i++) {
        gb_logical_tensor result;
        size_t input;
        if (gb_op_get_output(product, 0, &result) != GB_SUCCESS)
            return false;
        product = find_reader(graph, result.id, &input);
        gb_op_kind kind = kind_of(product);
        if (!product || kind == GB_OP_MATMUL || kind == GB_OP_QUANTIZE)
            return after_softmax && kind == GB_OP_QUANTIZE;
        after_softmax |= kind == GB_OP_SOFTMAX;
    }
    return false;
}

/* Values of this size vary enough when they are quantised, and are seldom cut off. */
static double quantized_size(const gb_fill_role *role, gb_data_type type)
{
    double fewest = role->domain == DOMAIN_WEIGHTS ? 1 : 2;
    double most = type == GB_U4 || type == GB_S4 ? 3 : 40;
    return role->step * fmin(fmax(role->size / role->step, fewest), most);
}

/* What a static Dequantize makes of its input. */
static void add_quantization(const gb_op *dequantize, gb_data_type type, gb_fill_role *role)
{
    const void *scales = NULL, *zps = NULL;
    size_t n_scales = 0, n_zps = 0;
    gb_op_get_attr(dequantize, GB_ATTR_SCALES, &n_scales, &scales);
    gb_op_get_attr(dequantize, GB_ATTR_ZPS, &n_zps, &zps);
    for (size_t i = 0; i < n_scales; i++)
        role->step += fabs((double)((const float *)scales)[i]) / (double)n_scales;
    for (size_t i = 0; i < n_zps; i++)
        role->centre += (double)((const int64_t *)zps)[i] / (double)n_zps;
    role->centre = nearbyint(role->centre);
    if (role->step > 0)
        role->size = quantized_size(role, type);
}

/* Size of the other factor of a MatMul; 1 unless it is quantised. */
static double other_size(const gb_graph *graph, const gb_op *matmul)
{
    gb_logical_tensor source;
    const gb_op *producer = find_producer(graph, matmul, 0, &source);
    if (kind_of(producer) != GB_OP_DEQUANTIZE || find_producer(graph, producer, 0, &source))
        return 1;
    gb_fill_role other = {.domain = DOMAIN_ANY, .size = 1};
    add_quantization(producer, source.data_type, &other);
    return other.size;
}

/* Are the rows of the MatMul's first operand probabilities, perhaps quantised or with dropout? */
static bool weighs_by_softmax(const gb_graph *graph, const gb_op *matmul)
{
    gb_logical_tensor source;
    const gb_op *producer = find_producer(graph, matmul, 0, &source);
    while (kind_of(producer) == GB_OP_DEQUANTIZE || kind_of(producer) == GB_OP_QUANTIZE ||
            kind_of(producer) == GB_OP_DROPOUT || kind_of(producer) == GB_OP_MULTIPLY)
        producer = find_producer(graph, producer, 0, &source);
    return kind_of(producer) == GB_OP_SOFTMAX;
}

/* Quantised probabilities say something only when a few of them are large: how much logits should
 * vary, by the number of keys. */
static double sharpness(const gb_op *product)
{
    gb_logical_tensor logits;
    if (gb_op_get_output(product, 0, &logits) != GB_SUCCESS || logits.ndims < 1)
        return 1;
    return fmax(1, 0.75 * log2((double)logits.dims[logits.ndims - 1]));
}

static double weights_size(const gb_graph *graph, const gb_op *reader, size_t input)
{
    double size = 1 / sqrt(count_terms(reader, input));
    if (kind_of(reader) == GB_OP_MATMUL && weighs_by_softmax(graph, reader))
        return 1;
    if (kind_of(reader) == GB_OP_MATMUL && feeds_quantized_softmax(graph, reader))
        size *= sharpness(reader) / other_size(graph, reader);
    return size;
}

/* Is the operand the result of an op, other than of one that reads a quantised input of the graph?
 */
static bool is_computed(const gb_graph *graph, const gb_op *op, size_t input)
{
    gb_logical_tensor source;
    const gb_op *producer = find_producer(graph, op, input, &source);
    gb_op_kind kind = kind_of(producer);
    if (kind == GB_OP_DEQUANTIZE || kind == GB_OP_DYNAMIC_DEQUANTIZE)
        producer = find_producer(graph, producer, 0, &source);
    return producer != NULL;
}

/* A scalar that multiplies (or divides) a product of two computed matrices scales it to size 1. */
static double scalar_size(const gb_graph *graph, const gb_op *reader, size_t input)
{
    gb_op_kind kind = kind_of(reader);
    gb_logical_tensor source;
    if (kind != GB_OP_MULTIPLY && kind != GB_OP_DIVIDE)
        return 1;
    const gb_op *product = find_producer(graph, reader, !input, &source);
    if (kind_of(product) != GB_OP_MATMUL)
        return 1;
    bool computed = is_computed(graph, product, 0) && is_computed(graph, product, 1);
    double root = computed ? sqrt(count_terms(product, 1)) : 1;
    return kind == GB_OP_MULTIPLY ? 1 / root : root;
}

/* Elements that one result of a reduction is made of. */
static double count_factors(const gb_op *reduction, const gb_logical_tensor *tensor)
{
    gb_logical_tensor result;
    if (gb_op_get_output(reduction, 0, &result) != GB_SUCCESS || gb_cli_count(&result) < 1)
        return 1;
    return fmax(1, (double)gb_cli_count(tensor) / (double)gb_cli_count(&result));
}

/* Quantised weights stay as small as others when their scales are. */
static int count_halvings(const gb_graph *graph, const gb_op *reader)
{
    gb_logical_tensor output;
    size_t input = 0;
    if (gb_op_get_output(reader, 0, &output) != GB_SUCCESS)
        return 0;
    const gb_op *next = find_reader(graph, output.id, &input);
    if (find_domain(next, input) != DOMAIN_WEIGHTS)
        return 0;
    return ilogb(count_terms(next, input)) / 2;
}

/* Sums in f16 of any data are too rough to say much; of multiples of a coarse number they are
 * exact. */
static double find_grid(const gb_op *reader, const gb_fill_role *role)
{
    static const char f16[] = "f16";
    const void *mode = NULL;
    size_t length = 0;
    if (kind_of(reader) != GB_OP_MATMUL)
        return 0;
    gb_op_get_attr(reader, GB_ATTR_ACCUMULATION_MODE, &length, &mode);
    if (length != strlen(f16) || memcmp(mode, f16, length) != 0)
        return 0;
    return exp2(rint(log2(role->size)));
}

static gb_fill_role role_for(
        const gb_graph *graph, const gb_logical_tensor *tensor, const gb_op *reader, size_t input)
{
    gb_fill_role role = {.domain = find_domain(reader, input), .size = 1, .terms = 1};
    bool one_for_all = role.domain == DOMAIN_ANY || role.domain == DOMAIN_DIVISOR;
    if (one_for_all && gb_cli_count(tensor) == 1)
        role.domain = DOMAIN_SCALAR;
    if (role.domain == DOMAIN_SCALAR)
        role.size = scalar_size(graph, reader, input);
    if (role.domain == DOMAIN_WEIGHTS)
        role.size = weights_size(graph, reader, input);
    if (role.domain == DOMAIN_SCALE)
        role.halvings = count_halvings(graph, reader);
    if (role.domain == DOMAIN_FACTOR)
        role.terms = count_factors(reader, tensor);
    role.grid = find_grid(reader, &role);
    return role;
}

/* No reader: only ops that pass values on stand between the tensor and a result of the graph. */
static bool works_by_element(const gb_op *reader)
{
    if (!reader)
        return true;
    gb_op_kind kind = kind_of(reader);
    unsigned by_element = GB_TRAIT_UNARY | GB_TRAIT_BINARY | GB_TRAIT_PASSES_VALUES;
    return gb_op_kind_get_traits(kind) & by_element || kind == GB_OP_QUANTIZE ||
           kind == GB_OP_BIAS_ADD || kind == GB_OP_PRELU;
}

static gb_fill_role role_of(const gb_graph *graph, const gb_logical_tensor *tensor)
{
    size_t input = 0;
    const gb_op *reader = find_reader(graph, tensor->id, &input);
    gb_logical_tensor output;
    if (kind_of(reader) != GB_OP_DEQUANTIZE || input != 0 ||
            gb_op_get_output(reader, 0, &output) != GB_SUCCESS) {
        gb_fill_role role = role_for(graph, tensor, reader, input);
        role.by_element = works_by_element(reader);
        return role;
    }
    const gb_op *next = find_reader(graph, output.id, &input);
    gb_fill_role role = role_for(graph, &output, next, input);
    role.by_element = works_by_element(next);
    add_quantization(reader, tensor->data_type, &role);
    return role;
}

/* A reduction whose axes are sought. */
typedef struct reduced_axes {
    gb_logical_tensor src, dst;
    bool keep_dims;
    int8_t *axes;
} reduced_axes;

/* Finds `left` axes, the last ones that do: the source's from `at` on, without which the result's dims from
 * `to` on are left. */
static bool find_axes(const reduced_axes *r, int at, int to, int64_t left)
{
    if (at == r->src.ndims)
        return left == 0 && to == r->dst.ndims;
    bool there = to < r->dst.ndims;
    if (there && r->dst.dims[to] == r->src.dims[at] && find_axes(r, at + 1, to + 1, left))
        return true;
    if (left == 0 || (r->keep_dims && !(there && r->dst.dims[to] == 1)))
        return false;
    r->axes[left - 1] = (int8_t)(at - r->src.ndims);
    return find_axes(r, at + 1, r->keep_dims ? to + 1 : to, left - 1);
}

/* The axes that the dims of source and result tell, else -1, -2, ... */
static void choose_axes(
        const gb_graph *graph, const gb_logical_tensor *tensor, int8_t axes[GB_MAX_NDIMS])
{
    size_t input;
    const gb_op *reader = find_reader(graph, tensor->id, &input);
    reduced_axes r = {.keep_dims = attr_is_set(reader, GB_ATTR_KEEP_DIMS), .axes = axes};
    int64_t count = gb_cli_count(tensor);
    bool known = gb_op_get_input(reader, 0, &r.src) == GB_SUCCESS &&
                 gb_op_get_output(reader, 0, &r.dst) == GB_SUCCESS && r.src.ndims >= 0 &&
                 r.dst.ndims >= 0 && count <= GB_MAX_NDIMS;
    if (known && find_axes(&r, 0, 0, count))
        return;
    for (int i = 0; i < GB_MAX_NDIMS; i++)
        axes[i] = (int8_t)(-1 - i);
}

gb_fill_role gb_cli_fill_role(const gb_graph *graph, const gb_logical_tensor *tensor)
{
    gb_fill_role role = role_of(graph, tensor);
    if (role.domain == DOMAIN_AXES)
        choose_axes(graph, tensor, role.axes);
    bool has_rows = tensor->ndims > 0 && tensor->dims[tensor->ndims - 1] > 0;
    role.row = has_rows ? tensor->dims[tensor->ndims - 1] : 1;
    role.rows = gb_cli_count(tensor) / role.row;
    return role;
}
