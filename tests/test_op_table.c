/* The op table: every row is complete, and every rule of a row is enforced by gb_op_verify(). */
#include "graph/ops/op_table.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { NO_CHANGE = -1 };

/* An op of a row, with at most one thing wrong. */
typedef struct recipe {
    const gb_op_schema *schema;
    uint32_t n_inputs, n_outputs;
    int wrong_port; /* inputs first, then outputs; NO_CHANGE = none */
    gb_data_type wrong_type;
    int left_out; /* attribute of the row that is not set */
} recipe;

static recipe sound(gb_op_kind kind)
{
    const gb_op_schema *schema = gb_op_schema_get(kind);
    bool variadic = schema->n_inputs && schema->inputs[0].variadic;
    return (recipe){schema, variadic ? 2 : schema->max_inputs,
            schema->n_outputs && schema->outputs[0].variadic ? 1 : schema->max_outputs, NO_CHANGE,
            GB_UNDEF, NO_CHANGE};
}

static const gb_port_schema *port_of(const gb_op_schema *schema, bool is_input, uint32_t i)
{
    uint32_t n = is_input ? schema->n_inputs : schema->n_outputs;
    return &(is_input ? schema->inputs : schema->outputs)[i < n ? i : n - 1];
}

static gb_data_type sound_type(const gb_op_schema *schema, bool is_input, uint32_t i)
{
    gb_type_set types = port_of(schema, is_input, i)->types;
    if (schema->kind == GB_OP_TYPE_CAST && !is_input)
        return GB_BF16;
    if (types >> GB_F32 & 1)
        return GB_F32;
    int type = 1;
    while (!(types >> type & 1))
        type++;
    return (gb_data_type)type;
}

static void add_port(gb_op *op, const recipe *plan, bool is_input, uint32_t i)
{
    int port = (int)(is_input ? i : plan->n_inputs + i);
    gb_data_type type =
            port == plan->wrong_port ? plan->wrong_type : sound_type(plan->schema, is_input, i);
    gb_logical_tensor tensor;
    cr_assert_eq(gb_logical_tensor_init(&tensor, (size_t)port, type, GB_UNKNOWN_NDIMS,
                         GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF),
            GB_SUCCESS);
    cr_assert_eq(
            is_input ? gb_op_add_input(op, &tensor) : gb_op_add_output(op, &tensor), GB_SUCCESS);
}

static void set_plausible(gb_op *op, const gb_attr_schema *attr)
{
    static const int64_t ones[2] = {1, 1};
    const float one = 1;
    const uint8_t yes = 1;
    gb_status status = GB_INVALID_ARGUMENTS;
    switch (gb_op_attr_type(attr->name)) {
    case GB_ATTR_TYPE_F32:
    case GB_ATTR_TYPE_F32S:
        status = gb_op_set_attr_f32(op, attr->name, 1, &one);
        break;
    case GB_ATTR_TYPE_S64:
        status = gb_op_set_attr_s64(op, attr->name, 1, ones);
        break;
    case GB_ATTR_TYPE_S64S:
        status = gb_op_set_attr_s64(op, attr->name, 2, ones);
        break;
    case GB_ATTR_TYPE_BOOL:
        status = gb_op_set_attr_bool(op, attr->name, 1, &yes);
        break;
    case GB_ATTR_TYPE_STRING:
        status = gb_op_set_attr_str(op, attr->name, attr->values[0], strlen(attr->values[0]));
        break;
    case GB_ATTR_TYPE_POINTER:
    case GB_ATTR_TYPE_NONE:
        break;
    }
    cr_assert_eq(status, GB_SUCCESS);
}

static gb_op *cook(const recipe *plan)
{
    gb_op *op;
    cr_assert_eq(gb_op_create(&op, 7, plan->schema->kind, ""), GB_SUCCESS);
    for (uint32_t i = 0; i < plan->n_inputs; i++)
        add_port(op, plan, true, i);
    for (uint32_t i = 0; i < plan->n_outputs; i++)
        add_port(op, plan, false, i);
    for (uint32_t i = 0; i < plan->schema->n_attrs; i++) {
        const gb_attr_schema *attr = &plan->schema->attrs[i];
        bool wanted = attr->required || attr->name == GB_ATTR_SIZES;
        if (wanted && (int)i != plan->left_out)
            set_plausible(op, attr);
    }
    cr_assert_eq(gb_op_fill_defaults(op), GB_SUCCESS);
    return op;
}

static bool complains_about(const char *word)
{
    return strstr(gb_last_error(), word) != NULL;
}

/* Verifies and destroys. */
static gb_status verify(gb_op *op)
{
    gb_status status = gb_op_verify(op);
    gb_op_destroy(op);
    return status;
}

#define EACH_KIND(kind) (int kind = 0; kind < GB_OP_LAST; kind++)

Test(op_table, names_parse_back_and_differ)
{
    for
        EACH_KIND(kind)
        {
            const gb_op_schema *schema = gb_op_schema_get((gb_op_kind)kind);
            gb_op_kind parsed;
            cr_assert_eq((int)schema->kind, kind);
            cr_assert_eq(gb_op_kind_parse(schema->name, &parsed), GB_SUCCESS);
            cr_assert_eq((int)parsed, kind, "%s", schema->name);
        }
    cr_assert_null(gb_op_schema_get(GB_OP_LAST));
}

static void check_ports(const gb_op_schema *schema, const gb_port_schema *ports, uint32_t n,
        uint32_t min, uint32_t max, uint32_t legal)
{
    uint32_t required = 0;
    bool variadic = false, optional = false;
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_not_null(ports[i].name, "%s", schema->name);
        cr_assert_neq(ports[i].types, 0u, "%s", schema->name);
        cr_assert_not(ports[i].required && optional, "%s: required behind optional", schema->name);
        required += ports[i].required;
        variadic |= ports[i].variadic;
        optional |= !ports[i].required;
    }
    cr_assert(variadic || n == max, "%s", schema->name);
    cr_assert(variadic || required == min, "%s", schema->name);
    if (legal)
        cr_assert_eq(legal & ~(((2u << max) - 1) & ~((1u << min) - 1)), 0u, "%s", schema->name);
}

static void check_attr_row(const gb_op_schema *schema, const gb_attr_schema *attr)
{
    const char *name = schema->name;
    cr_assert_neq(gb_op_attr_type(attr->name), GB_ATTR_TYPE_NONE, "%s", name);
    cr_assert_not(attr->required && attr->has_default, "%s", name);
    if (attr->has_default)
        cr_assert_eq(attr->default_value.name, attr->name, "%s", name);
    if (!attr->values)
        return;
    cr_assert_eq(gb_op_attr_type(attr->name), GB_ATTR_TYPE_STRING, "%s", name);
    if (attr->has_default)
        cr_assert_str_eq(attr->default_value.value.string, attr->values[0], "%s", name);
}

Test(op_table, rows_are_complete)
{
    for
        EACH_KIND(kind)
        {
            const gb_op_schema *schema = gb_op_schema_get((gb_op_kind)kind);
            cr_assert_not_null(schema->summary, "%s", schema->name);
            cr_assert_not_null(schema->infer, "%s", schema->name);
            check_ports(schema, schema->inputs, schema->n_inputs, schema->min_inputs,
                    schema->max_inputs, schema->input_counts);
            check_ports(schema, schema->outputs, schema->n_outputs, schema->min_outputs,
                    schema->max_outputs, schema->output_counts);
            for (uint32_t i = 0; i < schema->n_attrs; i++)
                check_attr_row(schema, &schema->attrs[i]);
        }
}

static bool lists(const gb_op_kind *kinds, gb_op_kind kind)
{
    while (*kinds != GB_OP_LAST && *kinds != kind)
        kinds++;
    return *kinds == kind;
}

/* Groups that repeat an op, estimates of work and the bounds of the reference go by these flags: a
 * new op has them, or its name stands here. */
Test(op_table, element_wise_ops_have_their_flags)
{
    static const gb_op_kind neither[] = {
            GB_OP_DIVIDE, GB_OP_RECIPROCAL, GB_OP_SQRT, GB_OP_LAST}; /* cheap nor costly */
    static const gb_op_kind fresh[] = {GB_OP_LOG, GB_OP_POW, GB_OP_RECIPROCAL, GB_OP_ROUND,
            GB_OP_SQRT, GB_OP_SQUARE, GB_OP_SQUARED_DIFFERENCE, GB_OP_QUANTIZE,
            GB_OP_DYNAMIC_QUANTIZE, GB_OP_LAST}; /* errors grow out of proportion, or begin anew */
    for
        EACH_KIND(kind)
        {
            const gb_op_schema *schema = gb_op_schema_get((gb_op_kind)kind);
            gb_op_class class = schema->op_class;
            bool moves = class == GB_CLASS_MOVEMENT, gradient = schema->flags & GB_OP_FLAG_BACKWARD;
            bool element_wise = class == GB_CLASS_UNARY || class == GB_CLASS_BINARY ||
                                class == GB_CLASS_SELECT || class == GB_CLASS_CONVERSION;
            bool cheap = schema->flags & GB_OP_FLAG_CHEAP,
                 costly = schema->flags & GB_OP_FLAG_COSTLY;
            bool passes = schema->flags & GB_OP_FLAG_PASSES_ERRORS;
            cr_expect_not(cheap && costly, "%s", schema->name);
            cr_expect_not(passes && gradient, "%s", schema->name);
            if (element_wise)
                cr_expect_eq(
                        cheap || costly, !lists(neither, (gb_op_kind)kind), "%s", schema->name);
            if (element_wise || moves)
                cr_expect_eq(passes, !lists(fresh, (gb_op_kind)kind), "%s", schema->name);
        }
}

/* Inputs of one name mean the same in every op; data that is made up goes by it. */
Test(op_table, inputs_say_what_values_they_are_for)
{
    static const struct {
        const char *name;
        gb_value_range range;
    } names[] = {{"weights", GB_RANGE_WEIGHTS}, {"variance", GB_RANGE_POSITIVE},
            {"scales", GB_RANGE_SCALE}, {"zps", GB_RANGE_ZERO_POINT}, {"seed", GB_RANGE_SEED},
            {"offset", GB_RANGE_OFFSET}, {"probability", GB_RANGE_PROBABILITY},
            {"axes", GB_RANGE_AXES}};
    for (int kind = 0; kind < GB_OP_LAST; kind++) {
        const gb_op_schema *schema = gb_op_schema_get((gb_op_kind)kind);
        for (uint32_t i = 0; i < schema->n_inputs; i++) {
            gb_value_range expected = GB_RANGE_ANY,
                           found = gb_op_kind_get_input_range((gb_op_kind)kind, i);
            for (size_t k = 0; k < sizeof names / sizeof *names; k++)
                if (strcmp(schema->inputs[i].name, names[k].name) == 0)
                    expected = names[k].range;
            bool is_data = i == 0 || schema->op_class == GB_CLASS_BINARY;
            cr_expect(found == expected || (expected == GB_RANGE_ANY && is_data), "%s: %s",
                    schema->name, schema->inputs[i].name);
        }
        for (uint32_t i = 0; i < schema->n_outputs; i++)
            cr_expect_eq(schema->outputs[i].range, GB_RANGE_ANY, "%s", schema->name);
    }
    cr_expect_eq(gb_op_kind_get_input_range(GB_OP_LOG, 0), GB_RANGE_POSITIVE);
    cr_expect_eq(gb_op_kind_get_input_range(GB_OP_DIVIDE, 0), GB_RANGE_ANY);
    cr_expect_eq(gb_op_kind_get_input_range(GB_OP_DIVIDE, 1), GB_RANGE_DIVISOR);
    cr_expect_eq(gb_op_kind_get_input_range(GB_OP_REDUCE_PROD, 0), GB_RANGE_FACTOR);
    cr_expect_eq(gb_op_kind_get_input_range(GB_OP_LOG, 1), GB_RANGE_ANY);
    cr_expect_eq(gb_op_kind_get_input_range(GB_OP_LAST, 0), GB_RANGE_ANY);
}

Test(op_table, traits)
{
    for (int kind = 0; kind < GB_OP_LAST; kind++) {
        const gb_op_schema *schema = gb_op_schema_get((gb_op_kind)kind);
        unsigned traits = gb_op_kind_get_traits((gb_op_kind)kind);
        bool backward = strstr(schema->name, "Backward");
        cr_expect_eq(backward, (traits & GB_TRAIT_BACKWARD) != 0, "%s", schema->name);
        cr_expect(!(traits & GB_TRAIT_CHAINS) || traits & (GB_TRAIT_UNARY | GB_TRAIT_BINARY), "%s",
                schema->name);
        cr_expect(
                (traits & (GB_TRAIT_UNARY | GB_TRAIT_BINARY)) != (GB_TRAIT_UNARY | GB_TRAIT_BINARY),
                "%s", schema->name);
        /* one input, one output, elements as they were: movement, but for Concat, and casts */
        bool moves = (schema->op_class == GB_CLASS_MOVEMENT && kind != GB_OP_CONCAT) ||
                     kind == GB_OP_TYPE_CAST;
        cr_expect_eq(moves, (traits & GB_TRAIT_PASSES_VALUES) != 0, "%s", schema->name);
    }
    cr_expect_eq(gb_op_kind_get_traits(GB_OP_RELU), GB_TRAIT_UNARY | GB_TRAIT_CHAINS);
    cr_expect_eq(gb_op_kind_get_traits(GB_OP_POW), GB_TRAIT_UNARY);
    cr_expect_eq(gb_op_kind_get_traits(GB_OP_DROPOUT), GB_TRAIT_UNARY);
    cr_expect_eq(gb_op_kind_get_traits(GB_OP_TANH_BACKWARD), GB_TRAIT_UNARY | GB_TRAIT_BACKWARD);
    cr_expect_eq(gb_op_kind_get_traits(GB_OP_ADD),
            GB_TRAIT_BINARY | GB_TRAIT_BROADCASTS | GB_TRAIT_CHAINS);
    cr_expect_eq(gb_op_kind_get_traits(GB_OP_BIAS_ADD), GB_TRAIT_BINARY | GB_TRAIT_CHAINS);
    cr_expect_eq(gb_op_kind_get_traits(GB_OP_SELECT), GB_TRAIT_BINARY | GB_TRAIT_BROADCASTS);
    cr_expect_eq(gb_op_kind_get_traits(GB_OP_PRELU), GB_TRAIT_BROADCASTS);
    cr_expect_eq(gb_op_kind_get_traits(GB_OP_MATMUL), 0);
    cr_expect_eq(gb_op_kind_get_traits(GB_OP_LAST), 0);
}

/* The fusion catalogue's chains are of these; others of the classes stand here by name. */
Test(op_table, chain_flags_mark_the_ops_of_fusion_chains)
{
    static const gb_op_kind outside[] = {
            GB_OP_POW, GB_OP_RECIPROCAL, GB_OP_SQUARED_DIFFERENCE, GB_OP_LAST};
    for
        EACH_KIND(kind)
        {
            const gb_op_schema *schema = gb_op_schema_get((gb_op_kind)kind);
            bool unary = schema->op_class == GB_CLASS_UNARY;
            bool binary = schema->op_class == GB_CLASS_BINARY;
            bool chains = !lists(outside, (gb_op_kind)kind);
            bool backward = strstr(schema->name, "Backward") != NULL;
            cr_expect_eq((schema->flags & GB_OP_FLAG_CHAIN_UNARY) != 0, unary && chains, "%s",
                    schema->name);
            cr_expect_eq((schema->flags & GB_OP_FLAG_CHAIN_BINARY) != 0, binary && chains, "%s",
                    schema->name);
            cr_expect_eq((schema->flags & GB_OP_FLAG_BACKWARD) != 0, backward, "%s", schema->name);
        }
}

Test(op_table, sound_ops_pass)
{
    for
        EACH_KIND(kind)
        {
            recipe plan = sound((gb_op_kind)kind);
            cr_assert_eq(verify(cook(&plan)), GB_SUCCESS, "%s", gb_last_error());
        }
}

Test(op_table, every_default_is_filled)
{
    for
        EACH_KIND(kind)
        {
            recipe plan = sound((gb_op_kind)kind);
            gb_op *op = cook(&plan);
            for (uint32_t i = 0; i < plan.schema->n_attrs; i++) {
                const gb_attr_schema *attr = &plan.schema->attrs[i];
                if (attr->has_default)
                    cr_assert_not_null(gb_op_find_attr(op, attr->name), "%s", plan.schema->name);
            }
            gb_op_destroy(op);
        }
}

Test(op_table, defaults_do_not_replace)
{
    gb_op *op;
    const int64_t axis = 3;
    cr_assert_eq(gb_op_create(&op, 1, GB_OP_SOFTMAX, ""), GB_SUCCESS);
    cr_assert_eq(gb_op_set_attr_s64(op, GB_ATTR_AXIS, 1, &axis), GB_SUCCESS);
    cr_assert_eq(gb_op_fill_defaults(op), GB_SUCCESS);
    cr_assert_eq(gb_op_attr_s64(op, GB_ATTR_AXIS, 0), 3);
    cr_assert(gb_op_attr_is(op, GB_ATTR_MODE, "none", false));
    gb_op_destroy(op);
}

Test(op_table, wrong_counts_are_refused)
{
    for
        EACH_KIND(kind)
        {
            recipe plan = sound((gb_op_kind)kind);
            if (plan.schema->min_inputs > 0) {
                plan.n_inputs = plan.schema->min_inputs - 1;
                cr_assert_eq(verify(cook(&plan)), GB_INVALID_GRAPH_OP, "%s", plan.schema->name);
                cr_assert(complains_about("input"));
            }
            plan = sound((gb_op_kind)kind);
            if (plan.schema->max_inputs == UINT32_MAX)
                continue;
            plan.n_inputs = plan.schema->max_inputs + 1;
            cr_assert_eq(verify(cook(&plan)), GB_INVALID_GRAPH_OP, "%s", plan.schema->name);
            plan = sound((gb_op_kind)kind);
            plan.n_outputs = plan.schema->max_outputs;
            gb_op *op = cook(&plan);
            gb_logical_tensor more = {.id = 99, .ndims = GB_UNKNOWN_NDIMS, .data_type = GB_F32};
            cr_assert_eq(gb_op_add_output(op, &more), GB_SUCCESS);
            cr_assert_eq(verify(op), GB_INVALID_GRAPH_OP, "%s", plan.schema->name);
            cr_assert(complains_about("output"));
        }
}

Test(op_table, counts_between_the_legal_ones_are_refused)
{
    recipe plan = sound(GB_OP_LAYER_NORM);
    plan.n_inputs = 2;
    cr_assert_eq(verify(cook(&plan)), GB_INVALID_GRAPH_OP);
    cr_assert(complains_about("2 input tensors, expected 1 or 3"), "%s", gb_last_error());
}

static gb_data_type type_outside(gb_type_set types)
{
    for (int type = GB_S64; type > 0; type--)
        if (gb_data_type_bytes((gb_data_type)type, 2) > 0 && !(types >> type & 1))
            return (gb_data_type)type;
    return GB_UNDEF;
}

Test(op_table, wrong_types_are_refused)
{
    for
        EACH_KIND(kind)
        {
            recipe plan = sound((gb_op_kind)kind);
            for (uint32_t port = 0; kind != GB_OP_WILDCARD && port < plan.n_inputs + plan.n_outputs;
                    port++) {
                bool is_input = port < plan.n_inputs;
                uint32_t i = is_input ? port : port - plan.n_inputs;
                const gb_port_schema *schema = port_of(plan.schema, is_input, i);
                plan.wrong_port = (int)port;
                plan.wrong_type = type_outside(schema->types);
                cr_assert_eq(verify(cook(&plan)), GB_INVALID_GRAPH_OP, "%s", plan.schema->name);
                cr_assert(complains_about(schema->name), "%s", gb_last_error());
                cr_assert(complains_about("allowed"), "%s", gb_last_error());
            }
        }
}

Test(op_table, type_variables_bind)
{
    for
        EACH_KIND(kind)
        {
            recipe plan = sound((gb_op_kind)kind);
            for (uint32_t i = 1; i < plan.n_inputs; i++) {
                const gb_port_schema *port = port_of(plan.schema, true, i);
                char first = port_of(plan.schema, true, 0)->type_variable;
                if (!first || port->type_variable != first)
                    continue;
                plan.wrong_port = (int)i;
                plan.wrong_type = GB_F16;
                cr_assert_eq(verify(cook(&plan)), GB_INVALID_GRAPH_OP, "%s", plan.schema->name);
                cr_assert(complains_about("f16, but"), "%s", gb_last_error());
            }
        }
}

Test(op_table, missing_attributes_are_named)
{
    for
        EACH_KIND(kind)
        {
            recipe plan = sound((gb_op_kind)kind);
            for (uint32_t i = 0; i < plan.schema->n_attrs; i++) {
                if (!plan.schema->attrs[i].required)
                    continue;
                plan.left_out = (int)i;
                cr_assert_eq(verify(cook(&plan)), GB_INVALID_GRAPH_OP, "%s", plan.schema->name);
                cr_assert(complains_about(gb_op_attr_name(plan.schema->attrs[i].name)));
            }
        }
}

Test(op_table, unlisted_strings_are_refused)
{
    for
        EACH_KIND(kind)
        {
            recipe plan = sound((gb_op_kind)kind);
            for (uint32_t i = 0; i < plan.schema->n_attrs; i++) {
                const gb_attr_schema *attr = &plan.schema->attrs[i];
                if (!attr->values)
                    continue;
                gb_op *op = cook(&plan);
                cr_assert_eq(gb_op_set_attr_str(op, attr->name, "bogus", 5), GB_SUCCESS);
                cr_assert_eq(verify(op), GB_INVALID_GRAPH_OP, "%s", plan.schema->name);
                cr_assert(complains_about(attr->values[0]), "%s", gb_last_error());
            }
        }
}

Test(op_table, foreign_attributes_are_refused)
{
    const float value = 1;
    for
        EACH_KIND(kind)
        {
            recipe plan = sound((gb_op_kind)kind);
            gb_op *op = cook(&plan);
            gb_op_attr foreign = gb_op_find_attr(op, GB_ATTR_MOMENTUM)       ? GB_ATTR_ALPHA
                                 : kind == GB_OP_BATCH_NORM_FORWARD_TRAINING ? GB_ATTR_ALPHA
                                                                             : GB_ATTR_MOMENTUM;
            cr_assert_eq(gb_op_set_attr_f32(op, foreign, 1, &value), GB_SUCCESS);
            gb_status expected = kind == GB_OP_WILDCARD ? GB_SUCCESS : GB_INVALID_GRAPH_OP;
            cr_assert_eq(verify(op), expected, "%s", plan.schema->name);
        }
}

/* Checks of single ops ------------------------------------------------------------------------- */

static void set_list(gb_op *op, gb_op_attr attr, size_t count, const int64_t *values)
{
    cr_assert_eq(gb_op_set_attr_s64(op, attr, count, values), GB_SUCCESS);
}

Test(op_check, negative_pads)
{
    recipe plan = sound(GB_OP_CONVOLUTION);
    gb_op *op = cook(&plan);
    set_list(op, GB_ATTR_PADS_END, 2, (int64_t[]){0, -1});
    cr_assert_eq(verify(op), GB_INVALID_GRAPH_OP);
    plan = sound(GB_OP_MAX_POOL);
    op = cook(&plan);
    set_list(op, GB_ATTR_PADS_BEGIN, 2, (int64_t[]){-1, 0});
    cr_assert_eq(verify(op), GB_INVALID_GRAPH_OP);
    op = cook(&plan);
    set_list(op, GB_ATTR_PADS_END, 2, (int64_t[]){-1, 0});
    cr_assert_eq(verify(op), GB_SUCCESS);
}

Test(op_check, pool_dilations_match_the_kernel)
{
    recipe plan = sound(GB_OP_MAX_POOL);
    gb_op *op = cook(&plan);
    set_list(op, GB_ATTR_DILATIONS, 1, (int64_t[]){1});
    cr_assert_eq(verify(op), GB_INVALID_GRAPH_OP);
    op = cook(&plan);
    set_list(op, GB_ATTR_DILATIONS, 2, (int64_t[]){2, 3});
    cr_assert_eq(verify(op), GB_SUCCESS);
}

static gb_status verify_with_type(gb_op_kind kind, int port, gb_data_type type)
{
    recipe plan = sound(kind);
    plan.wrong_port = port;
    plan.wrong_type = type;
    return verify(cook(&plan));
}

Test(op_check, types_that_go_together)
{
    recipe plan = sound(GB_OP_MATMUL);
    int dst = (int)plan.n_inputs;
    cr_assert_eq(verify_with_type(GB_OP_MATMUL, dst, GB_F16), GB_INVALID_GRAPH_OP);
    cr_assert_eq(verify_with_type(GB_OP_SOFTMAX, 1, GB_BF16), GB_SUCCESS);
    cr_assert_eq(verify_with_type(GB_OP_SOFTMAX, 2, GB_BF16), GB_INVALID_GRAPH_OP);
    cr_assert_eq(verify_with_type(GB_OP_SOFTMAX_BACKWARD, 2, GB_F16), GB_INVALID_GRAPH_OP);
    cr_assert_eq(verify_with_type(GB_OP_TYPE_CAST, 0, GB_F16), GB_INVALID_GRAPH_OP);
    cr_assert_eq(verify_with_type(GB_OP_TYPE_CAST, 1, GB_F32), GB_INVALID_GRAPH_OP);
    cr_assert_eq(verify_with_type(GB_OP_RMS_NORM, 1, GB_BF16), GB_INVALID_GRAPH_OP);
    cr_assert_eq(verify_with_type(GB_OP_RMS_NORM, 1, GB_F16), GB_SUCCESS);
}

Test(op_check, interpolate_takes_sizes_or_scales)
{
    const float scales[2] = {2, 2};
    recipe plan = sound(GB_OP_INTERPOLATE);
    gb_op *op = cook(&plan);
    cr_assert_eq(gb_op_set_attr_f32(op, GB_ATTR_SCALES, 2, scales), GB_SUCCESS);
    cr_assert_eq(gb_op_verify(op), GB_INVALID_GRAPH_OP);
    set_list(op, GB_ATTR_SIZES, 0, (int64_t[]){0});
    cr_assert_eq(gb_op_verify(op), GB_SUCCESS);
    gb_op_remove_attr(op, GB_ATTR_SCALES);
    cr_assert_eq(verify(op), GB_INVALID_GRAPH_OP);
}

Test(op_check, norm_flags_ask_for_tensors)
{
    const uint8_t no = 0;
    recipe plan = sound(GB_OP_GROUP_NORM);
    plan.n_outputs = 1;
    gb_op *op = cook(&plan);
    cr_assert_eq(gb_op_verify(op), GB_INVALID_GRAPH_OP);
    cr_assert_eq(gb_op_set_attr_bool(op, GB_ATTR_KEEP_STATS, 1, &no), GB_SUCCESS);
    cr_assert_eq(verify(op), GB_SUCCESS);
    plan = sound(GB_OP_LAYER_NORM);
    plan.n_inputs = 1;
    op = cook(&plan);
    cr_assert_eq(gb_op_verify(op), GB_INVALID_GRAPH_OP);
    cr_assert_eq(gb_op_set_attr_bool(op, GB_ATTR_USE_AFFINE, 1, &no), GB_SUCCESS);
    cr_assert_eq(verify(op), GB_SUCCESS);
    plan = sound(GB_OP_LAYER_NORM_BACKWARD);
    plan.n_inputs = 4;
    cr_assert_eq(verify(cook(&plan)), GB_INVALID_GRAPH_OP);
    plan = sound(GB_OP_LAYER_NORM_BACKWARD);
    plan.n_outputs = 1;
    cr_assert_eq(verify(cook(&plan)), GB_INVALID_GRAPH_OP);
}

Test(op_check, quantize_parameters)
{
    const float scales[2] = {1, 2};
    recipe plan = sound(GB_OP_QUANTIZE);
    gb_op *op = cook(&plan);
    set_list(op, GB_ATTR_ZPS, 1, (int64_t[]){3});
    cr_assert_eq(gb_op_verify(op), GB_SUCCESS);
    cr_assert_eq(gb_op_set_attr_f32(op, GB_ATTR_SCALES, 2, scales), GB_SUCCESS);
    cr_assert_eq(gb_op_verify(op), GB_INVALID_GRAPH_OP);
    cr_assert_eq(gb_op_set_attr_str(op, GB_ATTR_QTYPE, "per_channel", 11), GB_SUCCESS);
    cr_assert_eq(gb_op_verify(op), GB_INVALID_GRAPH_OP);
    set_list(op, GB_ATTR_ZPS, 2, (int64_t[]){3, 4});
    cr_assert_eq(verify(op), GB_SUCCESS);
}

/* A channel of zeros may be dequantized by 0, nothing can be divided by it. */
Test(op_check, quantize_scales_are_finite_and_divide)
{
    static const gb_op_kind kinds[] = {GB_OP_QUANTIZE, GB_OP_DEQUANTIZE};
    static const float scales[] = {0, -0.0f, INFINITY, -INFINITY, NAN};
    for (int i = 0; i < 2; i++)
        for (int s = 0; s < 5; s++) {
            recipe plan = sound(kinds[i]);
            gb_op *op = cook(&plan);
            bool fits = kinds[i] == GB_OP_DEQUANTIZE && scales[s] == 0;
            cr_assert_eq(gb_op_set_attr_f32(op, GB_ATTR_SCALES, 1, &scales[s]), GB_SUCCESS);
            cr_assert_eq(verify(op), fits ? GB_SUCCESS : GB_INVALID_GRAPH_OP);
            cr_assert(fits || complains_about("scales"));
        }
}

Test(op_check, no_zero_points_with_f8)
{
    static const gb_op_kind kinds[] = {GB_OP_QUANTIZE, GB_OP_DEQUANTIZE};
    for (int i = 0; i < 2; i++) {
        recipe plan = sound(kinds[i]);
        plan.wrong_port = i == 0 ? 1 : 0;
        plan.wrong_type = GB_F8_E4M3;
        gb_op *op = cook(&plan);
        cr_assert_eq(gb_op_verify(op), GB_SUCCESS, "%s", gb_last_error());
        set_list(op, GB_ATTR_ZPS, 1, (int64_t[]){0});
        cr_assert_eq(verify(op), GB_INVALID_GRAPH_OP);
        cr_assert(complains_about("f8"));
    }
}

/* Verifies a DynamicDequantize with vectors of the lengths given as scales and zps. */
static gb_status verify_dynamic(const char *qtype, int64_t scales, int64_t zps)
{
    static const gb_data_type types[] = {GB_S8, GB_F32, GB_S8};
    const int64_t lengths[] = {4, scales, zps};
    gb_op *op;
    gb_logical_tensor tensor;
    cr_assert_eq(gb_op_create(&op, 1, GB_OP_DYNAMIC_DEQUANTIZE, ""), GB_SUCCESS);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(gb_logical_tensor_init_with_dims(&tensor, i, types[i], 1, &lengths[i],
                             GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF),
                GB_SUCCESS);
        cr_assert_eq(gb_op_add_input(op, &tensor), GB_SUCCESS);
    }
    tensor.id = 3;
    tensor.data_type = GB_F32;
    cr_assert_eq(gb_op_add_output(op, &tensor), GB_SUCCESS);
    cr_assert_eq(gb_op_set_attr_str(op, GB_ATTR_QTYPE, qtype, strlen(qtype)), GB_SUCCESS);
    cr_assert_eq(gb_op_fill_defaults(op), GB_SUCCESS);
    return verify(op);
}

Test(op_check, dynamic_parameters)
{
    cr_assert_eq(verify_dynamic("per_tensor", 1, 1), GB_SUCCESS);
    cr_assert_eq(verify_dynamic("per_tensor", 4, 1), GB_INVALID_GRAPH_OP);
    cr_assert_eq(verify_dynamic("per_tensor", 1, 4), GB_INVALID_GRAPH_OP);
    cr_assert_eq(verify_dynamic("per_channel", 4, 4), GB_SUCCESS);
    cr_assert_eq(verify_dynamic("per_channel", 4, 1), GB_SUCCESS);
    cr_assert_eq(verify_dynamic("per_channel", 4, 3), GB_INVALID_GRAPH_OP);
    cr_assert_eq(verify_dynamic("per_group", 4, 4), GB_INVALID_GRAPH_OP); /* no group_shape */
}

Test(op_check, wildcard_takes_anything)
{
    const float value = 1;
    recipe plan = sound(GB_OP_WILDCARD);
    plan.n_inputs = 70;
    plan.n_outputs = 0;
    gb_op *op = cook(&plan);
    cr_assert_eq(gb_op_set_attr_f32(op, GB_ATTR_ALPHA, 1, &value), GB_SUCCESS);
    cr_assert_eq(verify(op), GB_SUCCESS);
}

Test(op_check, concat_joins_up_to_64)
{
    recipe plan = sound(GB_OP_CONCAT);
    plan.n_inputs = 64;
    cr_assert_eq(verify(cook(&plan)), GB_SUCCESS);
    plan.n_inputs = 65;
    cr_assert_eq(verify(cook(&plan)), GB_INVALID_GRAPH_OP);
    plan.n_inputs = 1;
    cr_assert_eq(verify(cook(&plan)), GB_SUCCESS);
}

Test(op_table, words_of_attributes)
{
    const char *const *words = gb_op_kind_get_attr_words(GB_OP_QUANTIZE, GB_ATTR_QTYPE);
    cr_assert_not_null(words);
    cr_expect_str_eq(words[0], "per_tensor");
    cr_expect_str_eq(words[1], "per_channel");
    cr_expect_null(words[2]);
    cr_expect_null(gb_op_kind_get_attr_words(GB_OP_QUANTIZE, GB_ATTR_AXIS));
    cr_expect_null(gb_op_kind_get_attr_words(GB_OP_ADD, GB_ATTR_QTYPE));
    cr_expect_null(gb_op_kind_get_attr_words(GB_OP_LAST, GB_ATTR_QTYPE));
}
