/* Input data for the graphs under test. */
#include "cli/fill.h"

#include <math.h>
#include <ref/ref.h>
#include <stdlib.h>

/* What values an input should have, by the op that reads it. */
typedef enum domain {
    DOMAIN_ANY,         /* around 0, size 1 */
    DOMAIN_WEIGHTS,     /* so small that sums of products stay of size 1 */
    DOMAIN_POSITIVE,    /* away from 0 */
    DOMAIN_DIVISOR,     /* either sign, away from 0 */
    DOMAIN_FACTOR,      /* around +-1, so that long products stay finite */
    DOMAIN_SCALAR,      /* one element for all: positive, near 1 */
    DOMAIN_PROBABILITY, /* 0.5 */
    DOMAIN_SCALE,       /* small powers of two */
    DOMAIN_ZERO_POINT,
    DOMAIN_SEED,
    DOMAIN_OFFSET,
    DOMAIN_AXES /* -1, -2, ... */
} domain;

static const struct {
    gb_op_kind kind;
    size_t input;
    domain domain;
} rules[] = {
        {GB_OP_MATMUL, 1, DOMAIN_WEIGHTS},
        {GB_OP_CONVOLUTION, 1, DOMAIN_WEIGHTS},
        {GB_OP_CONVOLUTION_BACKWARD_DATA, 1, DOMAIN_WEIGHTS},
        {GB_OP_CONV_TRANSPOSE, 1, DOMAIN_WEIGHTS},
        {GB_OP_CONV_TRANSPOSE_BACKWARD_DATA, 1, DOMAIN_WEIGHTS},
        {GB_OP_LOG, 0, DOMAIN_POSITIVE},
        {GB_OP_SQRT, 0, DOMAIN_POSITIVE},
        {GB_OP_SQRT_BACKWARD, 0, DOMAIN_POSITIVE},
        {GB_OP_POW, 0, DOMAIN_POSITIVE},
        {GB_OP_RECIPROCAL, 0, DOMAIN_DIVISOR},
        {GB_OP_DIVIDE, 1, DOMAIN_DIVISOR},
        {GB_OP_REDUCE_PROD, 0, DOMAIN_FACTOR},
        {GB_OP_BATCH_NORM_INFERENCE, 4, DOMAIN_POSITIVE},
        {GB_OP_BATCH_NORM_FORWARD_TRAINING, 2, DOMAIN_POSITIVE},
        {GB_OP_BATCH_NORM_BACKWARD, 3, DOMAIN_POSITIVE},
        {GB_OP_LAYER_NORM_BACKWARD, 3, DOMAIN_POSITIVE},
        {GB_OP_DYNAMIC_QUANTIZE, 1, DOMAIN_SCALE},
        {GB_OP_DYNAMIC_QUANTIZE, 2, DOMAIN_ZERO_POINT},
        {GB_OP_DYNAMIC_DEQUANTIZE, 1, DOMAIN_SCALE},
        {GB_OP_DYNAMIC_DEQUANTIZE, 2, DOMAIN_ZERO_POINT},
        {GB_OP_DROPOUT, 1, DOMAIN_SEED},
        {GB_OP_DROPOUT, 2, DOMAIN_OFFSET},
        {GB_OP_DROPOUT, 3, DOMAIN_PROBABILITY},
        {GB_OP_REDUCE_L1, 1, DOMAIN_AXES},
        {GB_OP_REDUCE_L2, 1, DOMAIN_AXES},
        {GB_OP_REDUCE_MAX, 1, DOMAIN_AXES},
        {GB_OP_REDUCE_MEAN, 1, DOMAIN_AXES},
        {GB_OP_REDUCE_MIN, 1, DOMAIN_AXES},
        {GB_OP_REDUCE_PROD, 1, DOMAIN_AXES},
        {GB_OP_REDUCE_SUM, 1, DOMAIN_AXES},
};

/* Ops that pass values on: what matters is who reads their result. */
static bool passes_on(gb_op_kind kind)
{
    return kind == GB_OP_STATIC_RESHAPE || kind == GB_OP_STATIC_TRANSPOSE ||
           kind == GB_OP_REORDER || kind == GB_OP_TYPE_CAST;
}

static size_t input_index(const gb_op *op, size_t tensor_id)
{
    gb_logical_tensor tensor;
    size_t i = 0;
    while (gb_op_get_input(op, i, &tensor) == GB_SUCCESS && tensor.id != tensor_id)
        i++;
    return i;
}

/* The first op that reads the tensor, looking through ops that pass values on. */
static gb_op *find_reader(const gb_graph *graph, size_t tensor_id, size_t *input)
{
    for (;;) {
        size_t count = 0;
        if (gb_graph_get_consumers(graph, tensor_id, &count, NULL) != GB_SUCCESS || count == 0)
            return NULL;
        gb_op **readers = malloc(count * sizeof(gb_op *));
        if (!readers)
            return NULL;
        gb_graph_get_consumers(graph, tensor_id, &count, readers);
        gb_op *reader = readers[0];
        free(readers);
        *input = input_index(reader, tensor_id);
        gb_op_kind kind;
        gb_op_get_kind(reader, &kind);
        gb_logical_tensor output;
        if (!passes_on(kind) || gb_op_get_output(reader, 0, &output) != GB_SUCCESS)
            return reader;
        tensor_id = output.id;
    }
}

static domain find_domain(const gb_op *reader, size_t input)
{
    gb_op_kind kind = GB_OP_LAST;
    if (reader)
        gb_op_get_kind(reader, &kind);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].kind == kind && rules[i].input == input)
            return rules[i].domain;
    return DOMAIN_ANY;
}

/* Terms of the sums that the weights enter: elements per output channel or column. */
static double count_terms(const gb_op *reader, size_t input)
{
    gb_logical_tensor weights, output;
    if (gb_op_get_input(reader, input, &weights) != GB_SUCCESS ||
            gb_op_get_output(reader, 0, &output) != GB_SUCCESS || weights.ndims < 1)
        return 1;
    gb_op_kind kind;
    gb_op_get_kind(reader, &kind);
    const void *transposed = NULL;
    size_t count = 0;
    if (kind == GB_OP_MATMUL) {
        gb_op_get_attr(reader, GB_ATTR_TRANSPOSE_B, &transposed, &count);
        bool last = weights.ndims == 1 || (count && *(const uint8_t *)transposed);
        return (double)weights.dims[weights.ndims - (last ? 1 : 2)];
    }
    int64_t largest = 1;
    for (int d = 0; d < weights.ndims; d++)
        if (weights.dims[d] > largest)
            largest = weights.dims[d];
    return (double)gb_cli_count(&weights) / (double)largest;
}

/* splitmix64, a published mixing function: every bit of the argument reaches every bit of the
 * result. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

typedef struct source {
    domain domain;
    gb_data_type type;
    uint64_t key;
    double scale; /* of weights */
    int halvings; /* of scales, when what they scale are weights */
} source;

static bool is_integer(gb_data_type type)
{
    return type != GB_F32 && type != GB_BF16 && type != GB_F16 && type != GB_F8_E5M2 &&
           type != GB_F8_E4M3;
}

static double integer_value(const source *s, uint64_t bits)
{
    double sign = s->type == GB_U8 || s->type == GB_U4 ? 0 : 1;
    switch (s->type) {
    case GB_BOOLEAN:
        return (double)(bits & 1);
    case GB_S4:
    case GB_U4:
        return (double)(bits % 16) - 8 * sign;
    case GB_S8:
    case GB_U8:
        return (double)(bits % 65) - 32 * sign;
    default:
        return (double)(bits % 201) - 100;
    }
}

/* Small integers, or powers of two where integers will not do. */
static double exact_value(const source *s, uint64_t bits)
{
    static const double powers[] = {1, -1, 2, -2, 4, -4, 0.5, -0.5};
    switch (s->domain) {
    case DOMAIN_WEIGHTS:
        return (double)(bits % 5) - 2;
    case DOMAIN_POSITIVE:
        return (double)(bits % 8) + 1;
    case DOMAIN_DIVISOR:
        return powers[bits % 8];
    case DOMAIN_FACTOR:
        return powers[bits % 2];
    case DOMAIN_SCALAR:
        return bits % 2 ? 1 : 0.5;
    default:
        return (double)(bits % 9) - 4;
    }
}

/* Sum of four uniform numbers: mean 0, variance 1, close to a normal distribution. */
static inline double near_normal(uint64_t bits)
{
    double sum = (double)(bits & 0xFFFF) + (double)(bits >> 16 & 0xFFFF) +
                 (double)(bits >> 32 & 0xFFFF) + (double)(bits >> 48);
    return (sum / 65536 - 2 + 2.0 / 65536) * 1.7320508075688772;
}

static double normal_value(const source *s, uint64_t bits)
{
    double x = near_normal(bits);
    switch (s->domain) {
    case DOMAIN_WEIGHTS:
        return x * s->scale;
    case DOMAIN_POSITIVE:
        return fabs(x) + 0.25;
    case DOMAIN_DIVISOR:
        return x + copysign(0.5, x);
    case DOMAIN_FACTOR:
        return copysign(1 + x / 64, (bits & 1) ? 1.0 : -1.0);
    case DOMAIN_SCALAR:
        return 0.5 + fabs(x) / 2;
    default:
        return x;
    }
}

/* Wide range, zeros of both signs, subnormal numbers, values at the limits. */
static double adversarial_value(const source *s, uint64_t bits)
{
    int range = s->type == GB_F32 || s->type == GB_BF16 ? 20 : 4;
    if (s->domain == DOMAIN_WEIGHTS)
        range /= 2;
    if (s->domain == DOMAIN_FACTOR || s->domain == DOMAIN_SCALAR)
        return normal_value(s, bits);
    double sign = bits & 1 ? 1 : -1;
    double x = ldexp(
            1 + (double)(bits >> 40) / 0x1p24, (int)(bits >> 8 & 0xFFFF) % (2 * range + 1) - range);
    bool nonzero = s->domain == DOMAIN_POSITIVE || s->domain == DOMAIN_DIVISOR;
    if (!nonzero && (bits >> 1 & 31) == 0)
        x = 0;
    if (!nonzero && (bits >> 1 & 31) == 1)
        x = s->type == GB_F32 ? 0x1p-130 : 0x1p-24;
    return s->domain == DOMAIN_POSITIVE ? x : sign * x;
}

static double value_at(const source *s, gb_fill fill, int64_t index)
{
    uint64_t bits = mix(s->key + (uint64_t)index);
    switch (s->domain) {
    case DOMAIN_PROBABILITY:
        return 0.5;
    case DOMAIN_SEED:
        return 123456;
    case DOMAIN_OFFSET:
        return 1;
    case DOMAIN_AXES:
        return (double)(-1 - index);
    case DOMAIN_SCALE:
        return ldexp(1, -(int)(bits % 3) - 2 - s->halvings);
    case DOMAIN_ZERO_POINT:
        return s->type == GB_U8 || s->type == GB_U4 ? (double)(bits % 3) : (double)(bits % 5) - 2;
    default:
        break;
    }
    if (is_integer(s->type))
        return integer_value(s, bits);
    switch (fill) {
    case FILL_EXACT:
        return exact_value(s, bits);
    case FILL_ADVERSARIAL:
        return adversarial_value(s, bits);
    case FILL_NORMAL:
        break;
    }
    return normal_value(s, bits);
}

static void fill_values(const source *s, gb_fill fill, int64_t first, int64_t count, double *values)
{
    bool scaled = s->domain == DOMAIN_ANY || s->domain == DOMAIN_WEIGHTS;
    if (fill == FILL_NORMAL && scaled && !is_integer(s->type)) { /* most of the data */
        double scale = s->domain == DOMAIN_WEIGHTS ? s->scale : 1;
        for (int64_t i = 0; i < count; i++)
            values[i] = near_normal(mix(s->key + (uint64_t)(first + i))) * scale;
        return;
    }
    for (int64_t i = 0; i < count; i++)
        values[i] = value_at(s, fill, first + i);
}

/* Piece by piece, so that the values need no large memory of their own. */
static void fill_dense(const source *s, gb_fill fill, int64_t count, gb_memory *memory)
{
    enum { PIECE = 2048 }; /* even: elements of 4 bits share bytes */
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < count; first += PIECE) {
        double values[PIECE];
        int64_t n = count - first < PIECE ? count - first : PIECE;
        gb_logical_tensor layout = {.data_type = s->type,
                .ndims = 1,
                .dims = {n},
                .layout_type = GB_LAYOUT_STRIDED,
                .strides = {1}};
        gb_ref_tensor piece = {.tensor = layout, .count = n, .value = values};
        fill_values(s, fill, first, n, values);
        gb_ref_tensor_write(
                &piece, &layout, (char *)memory->data + gb_data_type_bytes(s->type, (size_t)first));
    }
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
    return ilogb(fmax(1, count_terms(next, input))) / 2;
}

gb_status gb_cli_fill(const gb_graph *graph, gb_fill fill, int64_t seed, gb_memory *memory)
{
    size_t input = 0;
    const gb_op *reader = find_reader(graph, memory->tensor.id, &input);
    source s = {.domain = find_domain(reader, input),
            .type = memory->tensor.data_type,
            .key = mix(mix((uint64_t)seed) + memory->tensor.id)};
    bool one_for_all = s.domain == DOMAIN_ANY || s.domain == DOMAIN_DIVISOR;
    if (one_for_all && gb_cli_count(&memory->tensor) == 1)
        s.domain = DOMAIN_SCALAR;
    if (s.domain == DOMAIN_WEIGHTS)
        s.scale = 1 / sqrt(fmax(1, count_terms(reader, input)));
    if (s.domain == DOMAIN_SCALE)
        s.halvings = count_halvings(graph, reader);
    int64_t count = gb_cli_count(&memory->tensor);
    if (gb_cli_is_dense(&memory->tensor)) {
        fill_dense(&s, fill, count, memory);
        return GB_SUCCESS;
    }
    gb_ref_tensor values = {.tensor = memory->tensor, .count = count};
    values.value = malloc((size_t)(count ? count : 1) * sizeof(double));
    if (!values.value)
        return GB_OUT_OF_MEMORY;
    fill_values(&s, fill, 0, count, values.value);
    gb_ref_tensor_write(&values, &memory->tensor, memory->data);
    gb_ref_tensor_free(&values);
    return GB_SUCCESS;
}
