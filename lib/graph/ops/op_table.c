/* The op table: the rows of ops.def, with the words they are written in. */
#include "graph/ops/op_table.h"

#include "base/status.h"
#include "graph/ops/op_rules.h"
#include <string.h>

/* Sets of data types. */
enum {
    UNDEF = 1 << GB_UNDEF,
    F16 = 1 << GB_F16,
    BF16 = 1 << GB_BF16,
    F32 = 1 << GB_F32,
    S32 = 1 << GB_S32,
    S8 = 1 << GB_S8,
    U8 = 1 << GB_U8,
    BOOLEAN = 1 << GB_BOOLEAN,
    F8 = 1 << GB_F8_E5M2 | 1 << GB_F8_E4M3,
    S4 = 1 << GB_S4,
    U4 = 1 << GB_U4,
    S64 = 1 << GB_S64,
    F = F32 | BF16 | F16,
    ALL_TYPES = 0x7fffffff
};

/* Legal counts of tensors. */
enum { ONE_OR_THREE = 1 << 1 | 1 << 3 };

/* clang-format off */

/* Ports: name, type variable (0: a type of its own), types. */
#define REQ(name, variable, types)  {name, true, false, variable, types, GB_RANGE_ANY}
#define OPT(name, variable, types)  {name, false, false, variable, types, GB_RANGE_ANY}
#define MANY(name, variable, types) {name, false, true, variable, types, GB_RANGE_ANY}
/* The same of an input whose values are not just any. */
#define REQ_OF(values, name, variable, types) \
                                    {name, true, false, variable, types, GB_RANGE_##values}
#define OPT_OF(values, name, variable, types) \
                                    {name, false, false, variable, types, GB_RANGE_##values}

#define COUNT(type, ...)            (sizeof((type[]){__VA_ARGS__}) / sizeof(type))
#define IN(min, max, ...)           .min_inputs = min, .max_inputs = max, \
                                    .n_inputs = COUNT(gb_port_schema, __VA_ARGS__), \
                                    .inputs = {__VA_ARGS__}
#define OUT(min, max, ...)          .min_outputs = min, .max_outputs = max, \
                                    .n_outputs = COUNT(gb_port_schema, __VA_ARGS__), \
                                    .outputs = {__VA_ARGS__}

/* Attributes. */
#define ATTRS(...)                  .n_attrs = COUNT(gb_attr_schema, __VA_ARGS__), \
                                    .attrs = {__VA_ARGS__}
#define NO_ATTRS                    .n_attrs = 0
#define NEEDED(a)                   {.name = GB_ATTR_##a, .required = true}
#define OPTIONAL(a)                 {.name = GB_ATTR_##a}
#define VALUE(a, n, field, ...)     {.name = GB_ATTR_##a, .count = n, .value.field = __VA_ARGS__}
#define DEFAULT(a, ...)             {.name = GB_ATTR_##a, .has_default = true, \
                                     .default_value = VALUE(a, __VA_ARGS__)}
#define F32_IS(a, x)                DEFAULT(a, 1, f32, x)
#define S64_IS(a, x)                DEFAULT(a, 1, s64, x)
#define BOOL_IS(a, x)               DEFAULT(a, 1, boolean, x)
#define LIST_IS(a, n, ...)          DEFAULT(a, n, s64s, (int64_t[]){__VA_ARGS__})
#define TEXT_IS(a, x)               DEFAULT(a, sizeof(x) - 1, string, x)
/* One of the strings listed, the first when not set. */
#define CHOICE(a, first, ...)       {.name = GB_ATTR_##a, .has_default = true, \
                                     .default_value = VALUE(a, sizeof(first) - 1, string, first), \
                                     .values = (const char *const[]){first, __VA_ARGS__, NULL}}
#define NEEDED_CHOICE(a, ...)       {.name = GB_ATTR_##a, .required = true, \
                                     .values = (const char *const[]){__VA_ARGS__, NULL}}

#define ZEROS_IS(a)                 LIST_IS(a, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
#define ONES_IS(a)                  LIST_IS(a, 12, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
#define EMPTY_IS(a)                 LIST_IS(a, 0, 0)
#define AUTO_BROADCAST              CHOICE(AUTO_BROADCAST, "numpy", "none")
#define DATA_FORMAT                 CHOICE(DATA_FORMAT, "NXC", "NCX")
#define USE_DST                     BOOL_IS(USE_DST, 1)
#define GELU_MODE                   CHOICE(MODE, "gelu_erf", "gelu_tanh")
#define EPSILON                     F32_IS(EPSILON, 1e-5f)

#define CHAIN_UNARY                 GB_OP_FLAG_CHAIN_UNARY
#define CHAIN_BINARY                GB_OP_FLAG_CHAIN_BINARY
#define BACKWARD                    GB_OP_FLAG_BACKWARD
#define CHEAP                       GB_OP_FLAG_CHEAP
#define COSTLY                      GB_OP_FLAG_COSTLY
#define PASSES_ERRORS               GB_OP_FLAG_PASSES_ERRORS
#define PASSES_VALUES               GB_OP_FLAG_PASSES_VALUES

/* Operations for each element of the first output or input, or what else work.c counts. */
#define WORK(each, what)            .flops = each, .work = gb_work_##what

#define OP(k, text, class, bits, what, ...) \
    [GB_OP_##k] = {.kind = GB_OP_##k, .name = text, .summary = what, \
                   .op_class = GB_CLASS_##class, .flags = bits, __VA_ARGS__}

static const gb_op_schema table[GB_OP_LAST] = {
#include "graph/ops/ops.def"
};

/* clang-format on */

const gb_op_schema *gb_op_schema_get(gb_op_kind kind)
{
    return (unsigned)kind < GB_OP_LAST ? &table[kind] : NULL;
}

unsigned gb_op_kind_get_traits(gb_op_kind kind)
{
    const gb_op_schema *schema = gb_op_schema_get(kind);
    if (!schema)
        return 0;
    gb_op_class c = schema->op_class;
    bool backward = schema->flags & GB_OP_FLAG_BACKWARD;
    bool operands = c == GB_CLASS_BINARY || c == GB_CLASS_COMPARE || c == GB_CLASS_SELECT;
    bool bias = c == GB_CLASS_BIAS && !backward;
    bool chains = bias || schema->flags & (GB_OP_FLAG_CHAIN_UNARY | GB_OP_FLAG_CHAIN_BINARY);
    bool unary = c == GB_CLASS_UNARY || c == GB_CLASS_UNARY_BACKWARD || kind == GB_OP_DROPOUT;
    return (unary ? GB_TRAIT_UNARY : 0U) | (operands || bias ? GB_TRAIT_BINARY : 0U) |
           (operands || (c == GB_CLASS_PRELU && !backward) ? GB_TRAIT_BROADCASTS : 0U) |
           (chains ? GB_TRAIT_CHAINS : 0U) |
           (schema->flags & GB_OP_FLAG_PASSES_VALUES ? GB_TRAIT_PASSES_VALUES : 0U) |
           (backward ? GB_TRAIT_BACKWARD : 0U);
}

gb_value_range gb_op_kind_get_input_range(gb_op_kind kind, size_t input)
{
    const gb_op_schema *schema = gb_op_schema_get(kind);
    return schema && input < schema->n_inputs ? schema->inputs[input].range : GB_RANGE_ANY;
}

const char *const *gb_op_kind_get_attr_words(gb_op_kind kind, gb_op_attr attr)
{
    const gb_op_schema *schema = gb_op_schema_get(kind);
    for (uint32_t i = 0; schema && i < schema->n_attrs; i++)
        if (schema->attrs[i].name == attr)
            return schema->attrs[i].values;
    return NULL;
}

gb_status gb_op_put_attr(gb_op *op, const gb_attr *attr)
{
    switch (gb_op_attr_type(attr->name)) {
    case GB_ATTR_TYPE_F32:
        return gb_op_set_attr_f32(op, attr->name, 1, &attr->value.f32);
    case GB_ATTR_TYPE_F32S:
        return gb_op_set_attr_f32(op, attr->name, attr->count, attr->value.f32s);
    case GB_ATTR_TYPE_S64:
        return gb_op_set_attr_s64(op, attr->name, 1, &attr->value.s64);
    case GB_ATTR_TYPE_S64S:
        return gb_op_set_attr_s64(op, attr->name, attr->count, attr->value.s64s);
    case GB_ATTR_TYPE_BOOL:
        return gb_op_set_attr_bool(op, attr->name, 1, &attr->value.boolean);
    case GB_ATTR_TYPE_STRING:
        return gb_op_set_attr_str(op, attr->name, attr->value.string, attr->count);
    case GB_ATTR_TYPE_POINTER: /* of no attribute of the op set */
    case GB_ATTR_TYPE_NONE:
        break;
    }
    return gb_fail(
            GB_INVALID_ARGUMENTS, "%s: attribute %d has no type", gb_op_label(op), attr->name);
}

gb_status gb_op_fill_defaults(gb_op *op)
{
    const gb_op_schema *schema = gb_op_schema_get(op->kind);
    if (!schema)
        return gb_fail(
                GB_INVALID_GRAPH_OP, "%s: %d is not an op kind", gb_op_label(op), (int)op->kind);
    for (uint32_t i = 0; i < schema->n_attrs; i++) {
        const gb_attr_schema *attr = &schema->attrs[i];
        if (!attr->has_default || gb_op_find_attr(op, attr->name))
            continue;
        GB_TRY(gb_op_put_attr(op, &attr->default_value));
        op->attrs[op->n_attrs - 1].left_out = true; /* a new one is the last */
    }
    return GB_SUCCESS;
}
