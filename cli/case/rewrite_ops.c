/* --op-attrs and --op-kind: attributes, kinds within a family, removal of ops. */
#include "cli/case/rewrite.h"

#include "cli/options/message.h"

#include <graphbench/graphbench_tools.h>
#include <string.h>

static gb_status find_op(gb_graph *graph, const char *option, size_t id, gb_op **op)
{
    if (gb_graph_edit_op(graph, id, op) == GB_SUCCESS)
        return GB_SUCCESS;
    return gb_cli_fail(GB_INVALID_ARGUMENTS, "--%s: the graph has no op %zu", option, id);
}

static gb_status rewrite_ops_set_attr(gb_op *op, const gb_attr_override *attr)
{
    uint8_t truth;
    switch (gb_op_attr_type(attr->attr)) {
    case GB_ATTR_TYPE_F32:
    case GB_ATTR_TYPE_F32S:
        return gb_op_set_attr_f32(op, attr->attr, attr->count, attr->f32s);
    case GB_ATTR_TYPE_S64:
    case GB_ATTR_TYPE_S64S:
        return gb_op_set_attr_s64(op, attr->attr, attr->count, attr->s64s);
    case GB_ATTR_TYPE_BOOL:
        truth = attr->s64s[0] != 0;
        return gb_op_set_attr_bool(op, attr->attr, 1, &truth);
    default:
        return gb_op_set_attr_str(op, attr->attr, attr->string, attr->count);
    }
}

gb_status gb_cli_rewrite_attrs(const gb_rewrite *rewrite)
{
    const gb_alternative *choice = rewrite->test->choice[AXIS_OP_ATTRS];
    for (size_t i = 0; i < choice->n_overrides; i++) {
        const gb_override *override = &choice->overrides[i];
        gb_op *op;
        CLI_TRY(find_op(rewrite->graph, "op-attrs", override->id, &op));
        if (override->value.attr.truncated)
            gb_cli_print_warning(rewrite->test->file,
                    "--op-attrs: %s of op %zu takes integers; fractions were cut off",
                    gb_op_attr_name(override->value.attr.attr), override->id);
        LIB_TRY(rewrite_ops_set_attr(op, &override->value.attr));
    }
    return GB_SUCCESS;
}

/* ------------------------------------------------------------ kinds */

/* Kinds of one family may take each other's place: a GB_TRAIT_UNARY or GB_TRAIT_BINARY, or 0. */
static unsigned family_of(gb_op_kind kind)
{
    return gb_op_kind_get_traits(kind) & (GB_TRAIT_UNARY | GB_TRAIT_BINARY);
}

/* The input that takes the place of a removed op's output: the one with a producer, or the only
 * one. */
static gb_status find_passed_input(
        const gb_rewrite *rewrite, const gb_op *op, size_t op_id, size_t *passed)
{
    size_t count = gb_op_get_input_num(op), produced = 0;
    *passed = 0;
    if (count == 1)
        return GB_SUCCESS;
    for (size_t i = 0; i < count; i++) {
        gb_logical_tensor tensor;
        const gb_op *producer;
        LIB_TRY(gb_op_get_input(op, i, &tensor));
        LIB_TRY(gb_graph_get_producer(rewrite->graph, tensor.id, &producer));
        if (!producer)
            continue;
        *passed = i;
        produced++;
    }
    if (produced == 1)
        return GB_SUCCESS;
    return gb_cli_fail(GB_INVALID_ARGUMENTS,
            "--op-kind: op %zu cannot be removed: %zu of its inputs come from other ops, not 1",
            op_id, produced);
}

static gb_status remove_op(const gb_rewrite *rewrite, const gb_op *op, size_t id, gb_op_kind kind)
{
    size_t passed;
    if (!(gb_op_kind_get_traits(kind) & GB_TRAIT_CHAINS) || gb_op_get_output_num(op) != 1)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "--op-kind: op %zu (%s) cannot be removed", id,
                gb_op_kind_name(kind));
    CLI_TRY(find_passed_input(rewrite, op, id, &passed));
    LIB_TRY(gb_graph_bypass_op(rewrite->graph, id, passed));
    if (gb_graph_get_op_num(rewrite->graph) == 0)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "--op-kind: no op is left");
    return GB_SUCCESS;
}

static gb_status change_kind(const gb_rewrite *rewrite, const gb_override *override)
{
    gb_op *op;
    gb_op_kind from, to = override->value.kind;
    CLI_TRY(find_op(rewrite->graph, "op-kind", override->id, &op));
    LIB_TRY(gb_op_get_kind(op, &from));
    if (to == KIND_REMOVED)
        return remove_op(rewrite, op, override->id, from);
    if (!family_of(from) || family_of(from) != family_of(to))
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "--op-kind: op %zu (%s) cannot become %s, which is of another family", override->id,
                gb_op_kind_name(from), gb_op_kind_name(to));
    LIB_TRY(gb_graph_set_op_kind(rewrite->graph, override->id, to));
    return GB_SUCCESS;
}

gb_status gb_cli_rewrite_kinds(const gb_rewrite *rewrite)
{
    const gb_alternative *choice = rewrite->test->choice[AXIS_OP_KIND];
    for (size_t i = 0; i < choice->n_overrides; i++)
        CLI_TRY(change_kind(rewrite, &choice->overrides[i]));
    return GB_SUCCESS;
}
