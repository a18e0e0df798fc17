/* Sample ops: one small, complete op for each form of a kind and each combination of data types
 * that its schema allows. */
#include "base/status.h"
#include "graph/ops/op_rules.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_ATTRS = 10, MAX_PORTS = 8 };

typedef struct op_sample {
    gb_op_kind kind;
    const char *form;
    const char *inputs, *outputs; /* shapes */
    gb_attr attrs[MAX_ATTRS];     /* ended by GB_ATTR_UNDEF */
} op_sample;

/* clang-format off */

#define VALUES(type, ...)           (type[]){__VA_ARGS__}
#define COUNT(type, ...)            (sizeof(VALUES(type, __VA_ARGS__)) / sizeof(type))
#define NOTHING                     {.name = GB_ATTR_UNDEF}
#define REAL(a, x)                  {GB_ATTR_##a, 1, {.f32 = x}}
#define REALS(a, ...)               {GB_ATTR_##a, COUNT(float, __VA_ARGS__), \
                                     {.f32s = VALUES(float, __VA_ARGS__)}}
#define INT(a, x)                   {GB_ATTR_##a, 1, {.s64 = x}}
#define INTS(a, ...)                {GB_ATTR_##a, COUNT(int64_t, __VA_ARGS__), \
                                     {.s64s = VALUES(int64_t, __VA_ARGS__)}}
#define FLAG(a, x)                  {GB_ATTR_##a, 1, {.boolean = x}}
#define TEXT(a, x)                  {GB_ATTR_##a, sizeof(x) - 1, {.string = x}}
#define SAMPLE(k, text, ins, outs, ...) \
    {.kind = GB_OP_##k, .form = text, .inputs = ins, .outputs = outs, .attrs = {__VA_ARGS__}}

static const op_sample samples[] = {
#include "graph/ops/op_samples.def"
};

/* clang-format on */

enum { N_SAMPLES = sizeof(samples) / sizeof(samples[0]) };

/* The ports of a sample, inputs first, and which type each has. Ports of one type variable share
 * one of the `n_free` types that can be chosen. */
typedef struct type_choice {
    uint32_t n_inputs, n_outputs, n_free;
    uint32_t slot[MAX_PORTS * 2];
    gb_type_set legal[MAX_PORTS * 2]; /* per free type */
    int type[MAX_PORTS * 2];          /* per free type, an index into order[] */
} type_choice;

static uint32_t count_shapes(const char *shapes)
{
    uint32_t count = 1;
    while ((shapes = strchr(shapes, ',')) != NULL) {
        shapes++;
        count++;
    }
    return count;
}

/* The order in which types are tried, and in which tables list them. */
static const gb_data_type order[] = {GB_F32, GB_BF16, GB_F16, GB_S32, GB_S8, GB_U8, GB_S4, GB_U4,
        GB_F8_E5M2, GB_F8_E4M3, GB_BOOLEAN, GB_S64};
enum { N_TYPES = sizeof(order) / sizeof(order[0]) };

/* The next legal type behind order[i], as an index; -1 when there is none. */
static int next_type(gb_type_set legal, int i)
{
    while (++i < N_TYPES)
        if (legal >> order[i] & 1)
            return i;
    return -1;
}

static void add_port(type_choice *choice, const gb_port_schema *port, char *variables)
{
    uint32_t i = 0, at = choice->n_inputs + choice->n_outputs;
    while (i < choice->n_free && (!port->type_variable || variables[i] != port->type_variable))
        i++;
    if (i == choice->n_free) {
        variables[i] = port->type_variable;
        choice->legal[i] = port->types;
        choice->type[i] = next_type(port->types, -1);
        choice->n_free++;
    }
    choice->slot[at] = i;
}

static type_choice first_choice(const op_sample *sample)
{
    const gb_op_schema *schema = gb_op_schema_get(sample->kind);
    type_choice choice = {0};
    char variables[MAX_PORTS * 2];
    uint32_t n_inputs = count_shapes(sample->inputs), n_outputs = count_shapes(sample->outputs);
    for (; choice.n_inputs < n_inputs; choice.n_inputs++) {
        uint32_t last = schema->n_inputs - 1;
        uint32_t row = choice.n_inputs < last ? choice.n_inputs : last;
        add_port(&choice, &schema->inputs[row], variables);
    }
    for (; choice.n_outputs < n_outputs; choice.n_outputs++)
        add_port(&choice, &schema->outputs[choice.n_outputs], variables);
    return choice;
}

/* The next combination of types, the last one running fastest; false behind the last. */
static bool advance(type_choice *choice)
{
    for (uint32_t i = choice->n_free; i-- > 0;) {
        choice->type[i] = next_type(choice->legal[i], choice->type[i]);
        if (choice->type[i] >= 0)
            return true;
        choice->type[i] = next_type(choice->legal[i], -1);
    }
    return false;
}

/* Reads one shape and moves on to the next. */
static gb_status make_tensor(
        const char **shapes, size_t id, gb_data_type type, gb_logical_tensor *tensor)
{
    int64_t dims[GB_MAX_NDIMS];
    int ndims = 0;
    const char *text = *shapes;
    if (*text == '?') {
        *shapes = text[1] ? text + 2 : text + 1;
        return gb_logical_tensor_init(
                tensor, id, type, GB_UNKNOWN_NDIMS, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE);
    }
    while (*text >= '0' && *text <= '9') {
        char *end;
        dims[ndims++] = strtoll(text, &end, 10);
        text = *end == 'x' ? end + 1 : end;
    }
    text += *text == '-';
    *shapes = text + (*text == ',');
    return gb_logical_tensor_init_with_dims(
            tensor, id, type, ndims, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE);
}

static gb_status fill_op(gb_op *op, const op_sample *sample, const type_choice *choice)
{
    const char *shapes = sample->inputs;
    gb_logical_tensor tensor;
    for (uint32_t i = 0; i < choice->n_inputs + choice->n_outputs; i++) {
        bool is_input = i < choice->n_inputs;
        if (i == choice->n_inputs)
            shapes = sample->outputs;
        gb_data_type type = order[choice->type[choice->slot[i]]];
        GB_TRY(make_tensor(&shapes, i, type, &tensor));
        GB_TRY(is_input ? gb_op_add_input(op, &tensor) : gb_op_add_output(op, &tensor));
    }
    for (int i = 0; i < MAX_ATTRS && sample->attrs[i].name != GB_ATTR_UNDEF; i++)
        GB_TRY(gb_op_put_attr(op, &sample->attrs[i]));
    return gb_op_fill_defaults(op);
}

static gb_status make_op(gb_op **op, const op_sample *sample, const type_choice *choice)
{
    GB_TRY(gb_op_create(op, 0, sample->kind, *sample->form ? sample->form : "plain"));
    gb_status status = fill_op(*op, sample, choice);
    if (status != GB_SUCCESS)
        gb_op_destroy(*op);
    return status;
}

/* Counts the legal samples of a kind, and delivers number `wanted`. */
static gb_status walk(gb_op_kind kind, size_t wanted, size_t *count, gb_op **op)
{
    *count = 0;
    for (const op_sample *sample = samples; sample < samples + N_SAMPLES; sample++) {
        if (sample->kind != kind)
            continue;
        type_choice choice = first_choice(sample);
        do {
            gb_op *made;
            GB_TRY(make_op(&made, sample, &choice));
            bool legal = gb_op_verify(made) == GB_SUCCESS;
            if (legal && *count == wanted) {
                *op = made;
                return GB_SUCCESS;
            }
            *count += legal;
            gb_op_destroy(made);
        } while (advance(&choice));
    }
    return GB_INVALID_ARGUMENTS;
}

size_t gb_op_sample_num(gb_op_kind kind)
{
    size_t count;
    walk(kind, SIZE_MAX, &count, NULL);
    return count;
}

gb_status gb_op_sample_create(gb_op **op, gb_op_kind kind, size_t index)
{
    size_t count;
    if (!op)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_sample_create: op is NULL");
    gb_status status = walk(kind, index, &count, op);
    if (status == GB_INVALID_ARGUMENTS)
        return gb_fail(status, "gb_op_sample_create: %s has %zu samples, not %zu",
                gb_op_kind_name(kind), count, index + 1);
    return status;
}
