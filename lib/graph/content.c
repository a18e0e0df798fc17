/* Hashing and comparing graphs by content. Ops get colours that depend on their surroundings alone,
 * and are ordered by them. */
#include "graph/content.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
 * 2014). */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    uint64_t x = hash + UINT64_C(0x9E3779B97F4A7C15) + value;
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static uint64_t mix_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++)
        hash = mix(hash, byte[i]);
    return hash;
}

static bool is_strided(const gb_logical_tensor *tensor)
{
    return tensor->layout_type == GB_LAYOUT_STRIDED;
}

static uint64_t tensor_hash(const gb_logical_tensor *tensor)
{
    uint64_t hash = mix((uint64_t)tensor->data_type, (uint64_t)tensor->property);
    hash = mix(mix(hash, (uint64_t)tensor->layout_type), (uint64_t)tensor->ndims);
    if (tensor->layout_type == GB_LAYOUT_OPAQUE)
        hash = mix(hash, tensor->layout_id);
    for (int d = 0; d < tensor->ndims; d++) {
        hash = mix(hash, (uint64_t)tensor->dims[d]);
        if (is_strided(tensor))
            hash = mix(hash, (uint64_t)tensor->strides[d]);
    }
    return hash;
}

static bool same_tensor(const gb_logical_tensor *a, const gb_logical_tensor *b)
{
    if (a->data_type != b->data_type || a->property != b->property || a->ndims != b->ndims ||
            a->layout_type != b->layout_type)
        return false;
    if (a->layout_type == GB_LAYOUT_OPAQUE && a->layout_id != b->layout_id)
        return false;
    for (int d = 0; d < a->ndims; d++)
        if (a->dims[d] != b->dims[d] || (is_strided(a) && a->strides[d] != b->strides[d]))
            return false;
    return true;
}

/* The bytes of an attribute's value. */
static const void *attr_bytes(const gb_attr *attr, size_t *bytes)
{
    switch (gb_op_attr_type(attr->name)) {
    case GB_ATTR_TYPE_F32:
        *bytes = sizeof attr->value.f32;
        return &attr->value.f32;
    case GB_ATTR_TYPE_S64:
        *bytes = sizeof attr->value.s64;
        return &attr->value.s64;
    case GB_ATTR_TYPE_BOOL:
        *bytes = sizeof attr->value.boolean;
        return &attr->value.boolean;
    case GB_ATTR_TYPE_F32S:
        *bytes = attr->count * sizeof(float);
        return attr->value.f32s;
    case GB_ATTR_TYPE_S64S:
        *bytes = attr->count * sizeof(int64_t);
        return attr->value.s64s;
    default:
        *bytes = attr->count;
        return attr->value.string;
    }
}

/* Kind and attributes, these in any order. */
static uint64_t op_hash(const gb_op *op)
{
    uint64_t attrs = 0;
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        size_t bytes;
        const void *data = attr_bytes(&op->attrs[i], &bytes);
        attrs += mix_bytes(mix(bytes, (uint64_t)op->attrs[i].name), data, bytes);
    }
    return mix(mix(attrs, (uint64_t)op->kind), ((uint64_t)op->n_inputs << 32) | op->n_outputs);
}

static bool same_attrs(const gb_op *a, const gb_op *b)
{
    if (a->n_attrs != b->n_attrs)
        return false;
    for (uint32_t i = 0; i < a->n_attrs; i++) {
        const gb_attr *other = gb_op_find_attr(b, a->attrs[i].name);
        size_t bytes, other_bytes;
        if (!other)
            return false;
        const void *data = attr_bytes(&a->attrs[i], &bytes);
        const void *other_data = attr_bytes(other, &other_bytes);
        if (bytes != other_bytes || (bytes && memcmp(data, other_data, bytes) != 0))
            return false;
    }
    return true;
}

/* Colours that tell ops and values apart by their surroundings (Weisfeiler and Leman's refinement,
 * along the edges in both directions). */
typedef struct colours {
    uint64_t *ops, *values;
} colours;

/* From the inputs of the graph to its results. */
static void refine_downwards(const gb_graph *graph, colours *c)
{
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        const gb_op *op = graph->ops[i];
        for (uint32_t k = 0; k < op->n_inputs; k++)
            c->ops[i] = mix(c->ops[i], c->values[op->inputs[k]]);
        for (uint32_t k = 0; k < op->n_outputs; k++)
            c->values[op->outputs[k]] = mix(mix(c->values[op->outputs[k]], c->ops[i]), k);
    }
}

static void refine_value(const gb_value *value, const colours *c, uint64_t *colour)
{
    uint64_t readers = 0;
    for (uint32_t u = 0; u < value->n_uses; u++)
        readers += mix(c->ops[value->uses[u].op], value->uses[u].input);
    *colour = mix(*colour, readers);
}

/* From the results back to the inputs. */
static void refine_upwards(const gb_graph *graph, colours *c)
{
    for (uint32_t i = graph->n_ops; i-- > 0;) {
        const gb_op *op = graph->ops[i];
        for (uint32_t k = 0; k < op->n_outputs; k++) {
            uint64_t *colour = &c->values[op->outputs[k]];
            refine_value(&graph->values[op->outputs[k]], c, colour);
            c->ops[i] = mix(c->ops[i], *colour);
        }
    }
    for (uint32_t v = 0; v < graph->n_values; v++)
        if (graph->values[v].producer == GB_NONE)
            refine_value(&graph->values[v], c, &c->values[v]);
}

static void find_colours(const gb_graph *graph, colours *c)
{
    enum { ROUNDS = 3 };
    for (uint32_t i = 0; i < graph->n_ops; i++)
        c->ops[i] = op_hash(graph->ops[i]);
    for (uint32_t v = 0; v < graph->n_values; v++)
        c->values[v] = tensor_hash(&graph->values[v].tensor);
    for (int round = 0; round < ROUNDS; round++) {
        refine_downwards(graph, c);
        refine_upwards(graph, c);
    }
}

static bool is_ready(const gb_graph *graph, const gb_op *op, const bool *placed)
{
    for (uint32_t k = 0; k < op->n_inputs; k++) {
        uint32_t producer = graph->values[op->inputs[k]].producer;
        if (producer != GB_NONE && !placed[producer])
            return false;
    }
    return true;
}

/* The smallest colour first among the ops that can come next. */
static void order_ops(
        const gb_graph *graph, const uint64_t *order, bool *placed, gb_content *content)
{
    while (content->n_ops < graph->n_ops) {
        uint32_t next = GB_NONE;
        for (uint32_t i = 0; i < graph->n_ops; i++)
            if (!placed[i] && (next == GB_NONE || order[i] < order[next]) &&
                    is_ready(graph, graph->ops[i], placed))
                next = i;
        placed[next] = true;
        content->ops[content->n_ops++] = next;
        content->hash = mix(content->hash, order[next]);
    }
}

static void mention(gb_content *content, bool *mentioned, const uint32_t *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (mentioned[values[i]])
            continue;
        mentioned[values[i]] = true;
        content->values[content->n_values++] = values[i];
    }
}

gb_status gb_content_create(const gb_graph *graph, gb_content *content)
{
    *content = (gb_content){.hash = mix((uint64_t)graph->engine_kind,
                                    2 * (uint64_t)graph->fpmath_mode + graph->fpmath_apply_to_int)};
    colours c = {.ops = gb_calloc(graph->n_ops, sizeof *c.ops),
            .values = gb_calloc(graph->n_values, sizeof *c.values)};
    bool *placed = gb_calloc(graph->n_ops, sizeof *placed);
    bool *mentioned = gb_calloc(graph->n_values, sizeof *mentioned);
    content->ops = gb_calloc(graph->n_ops, sizeof *content->ops);
    content->values = gb_calloc(graph->n_values, sizeof *content->values);
    bool complete = c.ops && c.values && placed && mentioned && content->ops && content->values;
    if (complete) {
        find_colours(graph, &c);
        order_ops(graph, c.ops, placed, content);
        for (uint32_t i = 0; i < graph->n_ops; i++) {
            const gb_op *op = graph->ops[content->ops[i]];
            mention(content, mentioned, op->inputs, op->n_inputs);
            mention(content, mentioned, op->outputs, op->n_outputs);
        }
    }
    free(c.ops);
    free(c.values);
    free(placed);
    free(mentioned);
    if (complete)
        return GB_SUCCESS;
    gb_content_clear(content);
    return GB_OUT_OF_MEMORY;
}

uint32_t gb_content_number(const gb_content *content, uint32_t value)
{
    uint32_t number = 0;
    while (content->values[number] != value)
        number++;
    return number;
}

void gb_content_clear(gb_content *content)
{
    free(content->ops);
    free(content->values);
    *content = (gb_content){0};
}

/* Are the values that two ops mention those with the same numbers? `numbers` takes a value of b to
 * the value of a with its number. */
static bool same_values(
        const uint32_t *of_a, const uint32_t *of_b, uint32_t n, const uint32_t *numbers)
{
    for (uint32_t i = 0; i < n; i++)
        if (of_a[i] != numbers[of_b[i]])
            return false;
    return true;
}

static bool same_ops(const gb_graph *a, const gb_content *of_a, const gb_graph *b,
        const gb_content *of_b, const uint32_t *numbers)
{
    for (uint32_t i = 0; i < of_a->n_ops; i++) {
        const gb_op *x = a->ops[of_a->ops[i]], *y = b->ops[of_b->ops[i]];
        if (x->kind != y->kind || x->n_inputs != y->n_inputs || x->n_outputs != y->n_outputs ||
                !same_attrs(x, y) || !same_values(x->inputs, y->inputs, x->n_inputs, numbers) ||
                !same_values(x->outputs, y->outputs, x->n_outputs, numbers))
            return false;
    }
    return true;
}

bool gb_content_equal(
        const gb_graph *a, const gb_content *of_a, const gb_graph *b, const gb_content *of_b)
{
    if (of_a->hash != of_b->hash || of_a->n_ops != of_b->n_ops ||
            of_a->n_values != of_b->n_values || a->engine_kind != b->engine_kind ||
            a->fpmath_mode != b->fpmath_mode || a->fpmath_apply_to_int != b->fpmath_apply_to_int)
        return false;
    for (uint32_t v = 0; v < of_a->n_values; v++)
        if (!same_tensor(&a->values[of_a->values[v]].tensor, &b->values[of_b->values[v]].tensor))
            return false;
    uint32_t *numbers = gb_calloc(b->n_values, sizeof *numbers);
    for (uint32_t v = 0; numbers && v < of_b->n_values; v++)
        numbers[of_b->values[v]] = of_a->values[v];
    bool equal = numbers && same_ops(a, of_a, b, of_b, numbers);
    free(numbers);
    return equal;
}
