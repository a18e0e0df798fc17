/* Hashing and comparing single tensors and ops, whatever they are called. */
#include "base/status.h"
#include "graph/ir/content.h"

#include <string.h>

/* The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
 * 2014). */
uint64_t gb_hash_mix(uint64_t hash, uint64_t value)
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
        hash = gb_hash_mix(hash, byte[i]);
    return hash;
}

static bool is_strided(const gb_logical_tensor *tensor)
{
    return tensor->layout_type == GB_LAYOUT_STRIDED;
}

/* That of any is what readers prefer. */
static bool has_layout_id(const gb_logical_tensor *tensor)
{
    return tensor->layout_type == GB_LAYOUT_OPAQUE || tensor->layout_type == GB_LAYOUT_ANY;
}

uint64_t gb_tensor_hash(const gb_logical_tensor *tensor)
{
    uint64_t hash = gb_hash_mix((uint64_t)tensor->data_type, (uint64_t)tensor->property);
    hash = gb_hash_mix(hash, (uint64_t)tensor->layout_type);
    hash = gb_hash_mix(hash, (uint64_t)tensor->ndims);
    if (has_layout_id(tensor))
        hash = gb_hash_mix(hash, tensor->layout_id);
    for (int d = 0; d < tensor->ndims; d++) {
        hash = gb_hash_mix(hash, (uint64_t)tensor->dims[d]);
        if (is_strided(tensor))
            hash = gb_hash_mix(hash, (uint64_t)tensor->strides[d]);
    }
    return hash;
}

bool gb_tensor_same(const gb_logical_tensor *a, const gb_logical_tensor *b)
{
    if (a->data_type != b->data_type || a->property != b->property || a->ndims != b->ndims ||
            a->layout_type != b->layout_type)
        return false;
    if (has_layout_id(a) && a->layout_id != b->layout_id)
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
    case GB_ATTR_TYPE_POINTER:
        *bytes = sizeof attr->value.pointer;
        return &attr->value.pointer;
    default:
        *bytes = attr->count;
        return attr->value.string;
    }
}

/* Numbers of attributes that the program defined depend on the order in which it did. */
static uint64_t name_hash(gb_op_attr name)
{
    if (!gb_attr_is_defined(name))
        return (uint64_t)name;
    const char *text = gb_op_attr_name(name);
    return mix_bytes(strlen(text), text, strlen(text));
}

uint64_t gb_op_hash(const gb_op *op)
{
    uint64_t attrs = 0;
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const gb_attr *attr = &op->attrs[i];
        size_t bytes;
        if (gb_attr_is_note(attr->name))
            continue;
        const void *data = attr_bytes(attr, &bytes);
        attrs += mix_bytes(gb_hash_mix(bytes, name_hash(attr->name)), data, bytes);
    }
    uint64_t hash = gb_hash_mix(attrs, (uint64_t)op->kind);
    if (op->definition)
        hash = mix_bytes(hash, op->definition->name, strlen(op->definition->name));
    return gb_hash_mix(hash, ((uint64_t)op->n_inputs << 32) | op->n_outputs);
}

/* Attributes that count or, if `notes`, those that do not. */
static uint32_t count_attrs(const gb_op *op, bool notes)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < op->n_attrs; i++)
        count += gb_attr_is_note(op->attrs[i].name) == notes;
    return count;
}

static bool holds_attrs_of(const gb_op *op, const gb_op *other, bool notes)
{
    for (uint32_t i = 0; i < other->n_attrs; i++) {
        const gb_attr *attr = &other->attrs[i], *own = gb_op_find_attr(op, attr->name);
        size_t bytes, own_bytes;
        if (gb_attr_is_note(attr->name) != notes)
            continue;
        if (!own)
            return false;
        const void *data = attr_bytes(attr, &bytes), *own_data = attr_bytes(own, &own_bytes);
        if (bytes != own_bytes || (bytes && memcmp(data, own_data, bytes) != 0))
            return false;
    }
    return true;
}

static bool same_attrs(const gb_op *a, const gb_op *b, bool notes)
{
    return count_attrs(a, notes) == count_attrs(b, notes) && holds_attrs_of(a, b, notes);
}

bool gb_op_same(const gb_op *a, const gb_op *b)
{
    return a->kind == b->kind && a->definition == b->definition && a->n_inputs == b->n_inputs &&
           a->n_outputs == b->n_outputs && same_attrs(a, b, false);
}

bool gb_op_same_notes(const gb_op *a, const gb_op *b)
{
    return same_attrs(a, b, true);
}

/* The first of the op's tensors, inputs and then outputs, that is the one at place `i`, too. */
static uint32_t first_place(const gb_op *op, uint32_t i)
{
    const gb_logical_tensor *tensor = gb_op_tensor(op, i);
    uint32_t place = 0;
    while (gb_op_tensor(op, place)->id != tensor->id)
        place++;
    return place;
}

gb_status gb_op_get_hash(const gb_op *op, uint64_t *hash)
{
    if (!op || !hash)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_get_hash: NULL argument");
    *hash = gb_op_hash(op);
    for (uint32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
        *hash = gb_hash_mix(*hash, gb_tensor_hash(gb_op_tensor(op, i)));
        *hash = gb_hash_mix(*hash, first_place(op, i));
    }
    return GB_SUCCESS;
}

gb_status gb_op_is_equal(const gb_op *a, const gb_op *b, uint8_t *equal)
{
    if (!a || !b || !equal)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_is_equal: NULL argument");
    *equal = gb_op_same(a, b);
    for (uint32_t i = 0; *equal && i < a->n_inputs + a->n_outputs; i++)
        *equal = gb_tensor_same(gb_op_tensor(a, i), gb_op_tensor(b, i)) &&
                 first_place(a, i) == first_place(b, i);
    return GB_SUCCESS;
}
