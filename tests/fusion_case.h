/* Small graphs for the tests of fusion: built op by op with any legal attributes, partitioned for
 * an engine that runs everything, and described as text. */
#ifndef GB_TESTS_FUSION_CASE_H
#define GB_TESTS_FUSION_CASE_H

#include "fusion/match/pattern.h"
#include "fusion/passes/passes.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUSION_CASE_TENSORS = 256, FUSION_CASE_TEXT = 4096 };

typedef struct fusion_case {
    gb_graph *graph;
    size_t n_tensors, n_ops;
    gb_logical_tensor tensors[FUSION_CASE_TENSORS]; /* id = index */
} fusion_case;

static inline void fusion_ok(gb_status status)
{
    cr_assert_eq(status, GB_SUCCESS, "%s: %s", gb_status_name(status), gb_last_error());
}

static inline bool fusion_supports(const gb_op *op, const char **reason)
{
    *reason = "not executed";
    return op->kind != GB_OP_END && op->kind != GB_OP_WILDCARD;
}

static inline bool fusion_takes_epilogue(const gb_op *op)
{
    return op->kind == GB_OP_MATMUL || op->kind == GB_OP_SOFTMAX;
}

static inline bool fusion_is_pointwise(const gb_op *op)
{
    return gb_op_schema_get(op->kind)->flags & (GB_OP_FLAG_CHAIN_UNARY | GB_OP_FLAG_CHAIN_BINARY);
}

static const gb_capability fusion_capability = {.supports = fusion_supports,
        .takes_epilogue = fusion_takes_epilogue,
        .is_pointwise = fusion_is_pointwise,
        .cost = {.group_post_ops = GB_GROUP_OPS,
                .repeated_row = 64,
                .head_terms = 512,
                .head_columns = 16}};

static inline void fusion_open(fusion_case *c)
{
    *c = (fusion_case){0};
    fusion_ok(gb_graph_create(&c->graph, GB_ENGINE_CPU));
}

static inline size_t fusion_tensor(
        fusion_case *c, gb_data_type type, int ndims, const int64_t *dims)
{
    size_t id = c->n_tensors++;
    cr_assert_lt(id, FUSION_CASE_TENSORS);
    if (ndims < 0)
        fusion_ok(gb_logical_tensor_init(
                &c->tensors[id], id, type, ndims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    else
        fusion_ok(gb_logical_tensor_init_with_dims(
                &c->tensors[id], id, type, ndims, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    return id;
}

/* Of unknown rank: patterns and the partitioner go by kinds and data types. */
static inline size_t fusion_input(fusion_case *c, gb_data_type type)
{
    return fusion_tensor(c, type, GB_UNKNOWN_NDIMS, NULL);
}

static inline void fusion_set_attr(gb_op *op, const gb_attr_schema *schema)
{
    const int64_t one = 1, ones[] = {1, 1}, zeros[] = {0, 0}, order[] = {1, 0};
    const float unit = 1;
    const uint8_t no = 0;
    gb_op_attr name = schema->name;
    bool pads = name == GB_ATTR_PADS_BEGIN || name == GB_ATTR_PADS_END;
    const char *text = schema->values ? schema->values[0] : "";
    switch (gb_op_attr_type(name)) {
    case GB_ATTR_TYPE_F32:
        fusion_ok(gb_op_set_attr_f32(op, name, 1, &unit));
        break;
    case GB_ATTR_TYPE_F32S:
        fusion_ok(gb_op_set_attr_f32(op, name, 1, &unit));
        break;
    case GB_ATTR_TYPE_S64:
        fusion_ok(gb_op_set_attr_s64(op, name, 1, &one));
        break;
    case GB_ATTR_TYPE_S64S:
        fusion_ok(gb_op_set_attr_s64(op, name, 2,
                pads                    ? zeros
                : name == GB_ATTR_ORDER ? order
                                        : ones));
        break;
    case GB_ATTR_TYPE_BOOL:
        fusion_ok(gb_op_set_attr_bool(op, name, 1, &no));
        break;
    default:
        fusion_ok(gb_op_set_attr_str(op, name, text, strlen(text)));
    }
}

static inline void fusion_set_attrs(gb_op *op, size_t n_inputs, size_t n_outputs)
{
    const gb_op_schema *schema = gb_op_schema_get(op->kind);
    for (uint32_t i = 0; i < schema->n_attrs; i++) {
        gb_op_attr name = schema->attrs[i].name;
        uint8_t stats = n_outputs > 1, affine = n_inputs > 1;
        if (name == GB_ATTR_KEEP_STATS)
            fusion_ok(gb_op_set_attr_bool(op, name, 1, &stats));
        else if (name == GB_ATTR_USE_AFFINE && !(schema->flags & GB_OP_FLAG_BACKWARD))
            fusion_ok(gb_op_set_attr_bool(op, name, 1, &affine));
        else if (schema->attrs[i].required || name == GB_ATTR_SIZES)
            fusion_set_attr(op, &schema->attrs[i]);
    }
}

/* Adds an op; its outputs are new tensors of the given types. Returns the first output. */
static inline size_t fusion_op_outputs(fusion_case *c, gb_op_kind kind, size_t n_inputs,
        const size_t *inputs, size_t n_outputs, const gb_data_type *types)
{
    gb_op *op;
    size_t first = c->n_tensors;
    fusion_ok(gb_op_create(&op, c->n_ops++, kind, gb_op_kind_name(kind)));
    for (size_t i = 0; i < n_inputs; i++)
        fusion_ok(gb_op_add_input(op, &c->tensors[inputs[i]]));
    for (size_t i = 0; i < n_outputs; i++)
        fusion_ok(gb_op_add_output(op, &c->tensors[fusion_input(c, types[i])]));
    fusion_set_attrs(op, n_inputs, n_outputs);
    fusion_ok(gb_graph_add_op(c->graph, op));
    gb_op_destroy(op);
    return first;
}

/* The partitioning as "pattern[op ids] pattern[op ids]"; "!" marks unsupported partitions. */
static inline void fusion_describe(
        const fusion_case *c, const gb_partitioning *partitioning, char text[FUSION_CASE_TEXT])
{
    size_t length = 0;
    for (uint32_t p = 0; p < partitioning->n_parts; p++) {
        const gb_part *part = &partitioning->parts[p];
        length += (size_t)snprintf(text + length, FUSION_CASE_TEXT - length, "%s%s%s[",
                p ? " " : "", part->pattern, part->unsupported ? "!" : "");
        for (uint32_t i = 0; i < part->n_ops; i++)
            length += (size_t)snprintf(text + length, FUSION_CASE_TEXT - length, "%s%zu",
                    i ? " " : "", c->graph->ops[part->ops[i]]->id);
        length += (size_t)snprintf(text + length, FUSION_CASE_TEXT - length, "]");
        cr_assert_lt(length, FUSION_CASE_TEXT);
    }
}

#endif
