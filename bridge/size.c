/* Sizes that are expressions of symbols, as torch.export writes them: calls such as
 * Mul(Integer(2), Symbol('s0', positive=True)), or formulas such as 2*s0. What they are for other
 * values of the symbols. Whoever wrote them is not trusted; what is not understood is a size that is
 * not known. */
#include "graph.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_NESTING = 32,
    MOST_NAME = 255, /* of a symbol; longer names are of none */
    MOST_TEXT = 4096 /* of an expression; longer ones are not understood */
};

/* Values of symbols to evaluate with. */
typedef struct bound_symbols {
    const gb_bridge_graph *graph;
    const int64_t *of_symbols;
    const bool *are_known;
} bound_symbols;

typedef struct parser {
    const bound_symbols *values;
    const char *at;
    int nesting;
    bool failed;
} parser;

/* An integer, or what a scale makes of one on its way to the next integer. */
typedef struct number {
    int64_t whole;
    double real;
    bool is_real;
} number;

static number parse_sum(parser *p);

static number give_up(parser *p)
{
    p->failed = true;
    return (number){0};
}

static number whole(int64_t value)
{
    return (number){.whole = value};
}

static number real(double value)
{
    return (number){.real = value, .is_real = true};
}

static double as_real(number a)
{
    return a.is_real ? a.real : (double)a.whole;
}

static bool take(parser *p, const char *token)
{
    size_t length = strlen(token);
    p->at += strspn(p->at, " ");
    if (strncmp(p->at, token, length) != 0)
        return false;
    p->at += length;
    return true;
}

/* ---- arithmetic ---- */

static number add(parser *p, number a, number b)
{
    int64_t sum;
    if (a.is_real || b.is_real)
        return real(as_real(a) + as_real(b));
    return __builtin_add_overflow(a.whole, b.whole, &sum) ? give_up(p) : whole(sum);
}

static number multiply(parser *p, number a, number b)
{
    int64_t product;
    if (a.is_real || b.is_real)
        return real(as_real(a) * as_real(b));
    return __builtin_mul_overflow(a.whole, b.whole, &product) ? give_up(p) : whole(product);
}

/* Rounded towards minus infinity, as Python does. */
static number divide(parser *p, number a, number b)
{
    if (a.is_real || b.is_real || b.whole == 0 || (a.whole == INT64_MIN && b.whole == -1))
        return give_up(p);
    return whole(a.whole / b.whole - (a.whole % b.whole != 0 && (a.whole < 0) != (b.whole < 0)));
}

static number modulo(parser *p, number a, number b)
{
    number quotient = divide(p, a, b);
    return p->failed ? quotient : whole(a.whole - quotient.whole * b.whole);
}

static number divide_exactly(parser *p, number a, number b)
{
    number quotient = divide(p, a, b);
    return p->failed || a.whole % b.whole != 0 ? give_up(p) : quotient;
}

static number divide_truly(parser *p, number a, number b)
{
    return as_real(b) == 0 ? give_up(p) : real(as_real(a) / as_real(b));
}

static number power(parser *p, number base, number exponent)
{
    number result = whole(1);
    if (exponent.is_real || exponent.whole < 0 || exponent.whole > 62)
        return give_up(p);
    for (int64_t i = 0; i < exponent.whole && !p->failed; i++)
        result = multiply(p, result, base);
    return result;
}

static number larger(parser *p, number a, number b)
{
    return a.is_real || b.is_real ? give_up(p) : (a.whole > b.whole ? a : b);
}

static number smaller(parser *p, number a, number b)
{
    return a.is_real || b.is_real ? give_up(p) : (a.whole < b.whole ? a : b);
}

static number round_to(parser *p, double value)
{
    return value > -0x1p62 && value < 0x1p62 ? whole((int64_t)value) : give_up(p);
}

static number to_whole(parser *p, number a)
{
    return a.is_real ? give_up(p) : a;
}

static number to_real(parser *p, number a)
{
    (void)p;
    return real(as_real(a));
}

static number truncate(parser *p, number a)
{
    return round_to(p, trunc(as_real(a)));
}

static number round_down(parser *p, number a)
{
    return round_to(p, floor(as_real(a)));
}

static number round_up(parser *p, number a)
{
    return round_to(p, ceil(as_real(a)));
}

/* ---- the text ---- */

static const struct {
    const char *name;
    number (*of_one)(parser *p, number a);
    number (*of_two)(parser *p, number a, number b);
    bool takes_list; /* of_two, from left to right */
} functions[] = {
        {"Integer", to_whole, NULL, false},
        {"ToFloat", to_real, NULL, false},
        {"TruncToInt", truncate, NULL, false},
        {"FloorToInt", round_down, NULL, false},
        {"CeilToInt", round_up, NULL, false},
        {"Add", NULL, add, true},
        {"Mul", NULL, multiply, true},
        {"Pow", NULL, power, false},
        {"PowByNatural", NULL, power, false},
        {"FloorDiv", NULL, divide, false},
        {"CleanDiv", NULL, divide_exactly, false},
        {"IntTrueDiv", NULL, divide_truly, false},
        {"FloatTrueDiv", NULL, divide_truly, false},
        {"Mod", NULL, modulo, false},
        {"PythonMod", NULL, modulo, false},
        {"Max", NULL, larger, true},
        {"Min", NULL, smaller, true},
};

static number parse_call(parser *p, const char *name, size_t length)
{
    size_t f = 0;
    while (f < BR_COUNT(functions) &&
            (strlen(functions[f].name) != length || memcmp(functions[f].name, name, length) != 0))
        f++;
    if (f == BR_COUNT(functions))
        return give_up(p);
    number result = parse_sum(p);
    int count = 1;
    for (; !p->failed && take(p, ","); count++) {
        number next = parse_sum(p);
        if (!p->failed)
            result = functions[f].of_two ? functions[f].of_two(p, result, next) : give_up(p);
    }
    if (p->failed || !take(p, ")") ||
            (count != 2 && functions[f].of_two && !functions[f].takes_list))
        return give_up(p);
    return functions[f].of_one ? functions[f].of_one(p, result) : result;
}

static size_t name_length(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        length++;
    return isdigit((unsigned char)*text) ? 0 : length;
}

/* Takes the symbol at *text: its name, or Symbol('its name', ...). False: there is none. */
static bool take_symbol(const char **text, const char **name, size_t *length)
{
    static const char begin[] = "Symbol('";
    if (strncmp(*text, begin, sizeof begin - 1) != 0) {
        *name = *text;
        *length = name_length(*text);
        const char *after = *text + *length;
        if (*length == 0 || after[strspn(after, " ")] == '(')
            return false;
        *text = after;
        return true;
    }
    *name = *text + sizeof begin - 1;
    *length = name_length(*name);
    const char *end = strchr(*name, ')');
    if (*length == 0 || (*name)[*length] != '\'' || !end)
        return false;
    *text = end + 1;
    return true;
}

static uint32_t find_symbol(const gb_bridge_graph *graph, const char *name, size_t length)
{
    char text[MOST_NAME + 1];
    if (length > MOST_NAME)
        return BR_NONE;
    memcpy(text, name, length);
    text[length] = '\0';
    return br_names_find(&graph->symbol_names, text);
}

static bool is_long(const char *expression)
{
    return strnlen(expression, MOST_TEXT + 1) > MOST_TEXT;
}

/* 12, or 1.5 */
static number parse_digits(parser *p)
{
    int64_t value = 0;
    char *end;
    const char *begin = p->at;
    bool fits = true;
    for (; isdigit((unsigned char)*p->at); p->at++)
        fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_add_overflow(value, *p->at - '0', &value);
    if (*p->at != '.')
        return fits ? whole(value) : give_up(p);
    double decimal = strtod(begin, &end);
    p->at = end;
    return real(decimal);
}

/* Float('1.5', precision=53) */
static number parse_float(parser *p)
{
    number value = isdigit((unsigned char)*p->at) ? parse_digits(p) : give_up(p);
    const char *end = p->failed || *p->at != '\'' ? NULL : strchr(p->at, ')');
    if (!end)
        return give_up(p);
    p->at = end + 1;
    return to_real(p, value);
}

static number parse_atom(parser *p)
{
    const char *name;
    size_t length;
    if (take(p, "(")) {
        number result = parse_sum(p);
        return take(p, ")") ? result : give_up(p);
    }
    if (isdigit((unsigned char)*p->at))
        return parse_digits(p);
    if (take(p, "Float('"))
        return parse_float(p);
    if (take_symbol(&p->at, &name, &length)) {
        uint32_t symbol = find_symbol(p->values->graph, name, length);
        if (symbol == BR_NONE || !p->values->are_known[symbol])
            return give_up(p);
        return whole(p->values->of_symbols[symbol]);
    }
    name = p->at;
    length = name_length(name);
    p->at += length;
    return length > 0 && take(p, "(") ? parse_call(p, name, length) : give_up(p);
}

static number parse_power(parser *p)
{
    number base = parse_atom(p);
    if (p->failed || !take(p, "**"))
        return base;
    number exponent = parse_atom(p);
    return p->failed ? exponent : power(p, base, exponent);
}

static number parse_unary(parser *p)
{
    bool is_negative = false;
    while (take(p, "-"))
        is_negative = !is_negative;
    number result = parse_power(p);
    return is_negative && !p->failed ? multiply(p, result, whole(-1)) : result;
}

static number parse_product(parser *p)
{
    static const struct {
        const char *sign;
        number (*call)(parser *p, number a, number b);
    } signs[] = {{"//", divide}, {"*", multiply}, {"/", divide_exactly}, {"%", modulo}};
    number result = parse_unary(p);
    for (size_t i = 0; i < BR_COUNT(signs) && !p->failed;) {
        if (!take(p, signs[i].sign)) {
            i++;
            continue;
        }
        number next = parse_unary(p);
        if (!p->failed)
            result = signs[i].call(p, result, next);
        i = 0;
    }
    return result;
}

static number parse_sum(parser *p)
{
    if (++p->nesting > MOST_NESTING)
        return give_up(p);
    number result = parse_product(p);
    while (!p->failed) {
        bool is_difference = take(p, "-");
        if (!is_difference && !take(p, "+"))
            break;
        number next = parse_product(p);
        if (is_difference && !p->failed)
            next = multiply(p, next, whole(-1));
        if (!p->failed)
            result = add(p, result, next);
    }
    p->nesting--;
    return result;
}

/* The size with another value, which is known or not. */
static br_size evaluate(const bound_symbols *values, const br_size *size)
{
    parser p = {.values = values, .at = size->expr};
    br_size made = *size;
    if (!size->expr)
        return made;
    number value = is_long(size->expr) ? give_up(&p) : parse_sum(&p);
    p.at += strspn(p.at, " ");
    made.unknown = p.failed || *p.at || value.is_real;
    made.value = made.unknown ? 0 : value.whole;
    return made;
}

/* ---- symbols of a graph ---- */

/* Adds the symbols that an expression names; one that stands alone has the value of the size. */
static bool note_symbols(gb_bridge_graph *graph, const br_size *size)
{
    const char *at = size->expr && !is_long(size->expr) ? size->expr : "", *name;
    size_t length;
    while (*at) {
        const char *begin = at;
        if (!take_symbol(&at, &name, &length)) {
            length = name_length(at); /* of a function, whose name is passed over */
            while (length == 0 && isdigit((unsigned char)*at))
                at++;
            at += length > 0 ? length : (*at != '\0');
            continue;
        }
        if (length > MOST_NAME)
            continue;
        uint32_t index = find_symbol(graph, name, length);
        if (index == BR_NONE) {
            const char *copy = br_copy_text(&graph->arena, name, length);
            if (!copy ||
                    !br_grow(&graph->arena, &graph->symbols, &graph->symbols_capacity,
                            graph->n_symbols, sizeof *graph->symbols) ||
                    br_names_add(&graph->arena, &graph->symbol_names, copy) == BR_NONE)
                return false;
            index = graph->n_symbols++;
            graph->symbols[index] =
                    (br_symbol){.name = copy, .min = 0, .max = INT64_MAX, .is_open = true};
        }
        if (begin == size->expr && *at == '\0' && !size->unknown) {
            graph->symbols[index].value = size->value;
            graph->symbols[index].is_open = false;
        }
    }
    return true;
}

/* The name of the symbol that is all of an expression; else the expression. */
static const char *name_of(const gb_bridge_graph *graph, const char *expression)
{
    const char *at = expression, *name;
    size_t length;
    if (!expression || !take_symbol(&at, &name, &length) || *at)
        return expression;
    uint32_t index = find_symbol(graph, name, length);
    return index == BR_NONE ? expression : graph->symbols[index].name;
}

typedef bool (*visit_fn)(gb_bridge_graph *graph, br_size *size, const bound_symbols *values);

static bool note_size(gb_bridge_graph *graph, br_size *size, const bound_symbols *values)
{
    (void)values;
    return note_symbols(graph, size);
}

static bool fill_size(gb_bridge_graph *graph, br_size *size, const bound_symbols *values)
{
    (void)graph;
    if (size->unknown)
        *size = evaluate(values, size);
    return true;
}

static bool set_size(gb_bridge_graph *graph, br_size *size, const bound_symbols *values)
{
    (void)graph;
    *size = evaluate(values, size);
    return true;
}

static bool visit(gb_bridge_graph *graph, visit_fn function, const bound_symbols *values)
{
    for (uint32_t v = 0; v < graph->n_values; v++) {
        br_value *value = &graph->values[v];
        for (int d = 0; d < value->ndims; d++)
            if (!function(graph, &value->dims[d], values) ||
                    !function(graph, &value->strides[d], values))
                return false;
        if (value->kind == BR_SYMBOL && !function(graph, &value->symbol, values))
            return false;
    }
    for (uint32_t n = 0; n < graph->n_nodes; n++)
        for (uint32_t i = 0; i < graph->nodes[n].n_args; i++) {
            br_arg *arg = &graph->nodes[n].args[i];
            for (uint32_t k = 0; arg->sizes && k < arg->count; k++)
                if (!function(graph, &arg->sizes[k], values))
                    return false;
        }
    return true;
}

gb_status br_find_symbols(gb_bridge_graph *graph)
{
    if (!visit(graph, note_size, NULL))
        return br_out_of_memory();
    int64_t *of_symbols = br_alloc(&graph->arena, graph->n_symbols, sizeof *of_symbols);
    bool *are_known = br_alloc(&graph->arena, graph->n_symbols, sizeof *are_known);
    if (graph->arena.failed)
        return br_out_of_memory();
    for (uint32_t i = 0; i < graph->n_symbols; i++) {
        of_symbols[i] = graph->symbols[i].value;
        are_known[i] = !graph->symbols[i].is_open;
    }
    visit(graph, fill_size, &(bound_symbols){graph, of_symbols, are_known});
    return GB_SUCCESS;
}

/* ---- what callers see ---- */

size_t gb_bridge_graph_get_size_num(const gb_bridge_graph *graph)
{
    return graph ? graph->n_symbols : 0;
}

gb_status gb_bridge_graph_get_size(const gb_bridge_graph *graph, size_t index, gb_bridge_size *size)
{
    if (!graph || !size || index >= graph->n_symbols)
        return br_fail(GB_INVALID_ARGUMENTS, "no such size");
    const br_symbol *symbol = &graph->symbols[index];
    *size = (gb_bridge_size){.name = symbol->name,
            .value = symbol->is_open ? -1 : symbol->value,
            .min = symbol->min,
            .max = symbol->max};
    return GB_SUCCESS;
}

/* Are all tensors ones that memory can hold? */
static gb_status check_values(const gb_bridge_graph *graph, const bound_symbols *values)
{
    for (uint32_t v = 0; v < graph->n_values; v++) {
        br_value value = graph->values[v];
        bool is_open = value.kind != BR_TENSOR || value.ndims < 0 || !value.is_strided;
        for (int d = 0; d < value.ndims; d++) {
            value.dims[d] = evaluate(values, &value.dims[d]);
            value.strides[d] = evaluate(values, &value.strides[d]);
            is_open = is_open || value.dims[d].unknown || value.strides[d].unknown;
            if (value.dims[d].value < 0 || value.strides[d].value < 0)
                return br_fail(GB_INVALID_SHAPE, "dim %d of \"%.100s\" would be %lld", d,
                        value.name, (long long)value.dims[d].value);
        }
        size_t bytes;
        if (!is_open && (!br_value_bytes(&value, &bytes) || bytes > (size_t)PTRDIFF_MAX))
            return br_fail(
                    GB_INVALID_SHAPE, "no memory can hold \"%.100s\" of this size", value.name);
    }
    return GB_SUCCESS;
}

static gb_status choose_values(const gb_bridge_graph *graph, size_t count,
        const gb_bridge_size *sizes, int64_t *of_symbols, bool *are_known)
{
    for (uint32_t i = 0; i < graph->n_symbols; i++) {
        of_symbols[i] = graph->symbols[i].value;
        are_known[i] = !graph->symbols[i].is_open;
    }
    for (size_t k = 0; k < count; k++) {
        const char *name = sizes[k].name ? sizes[k].name : "";
        uint32_t index = find_symbol(graph, name, strlen(name));
        if (index == BR_NONE)
            return br_fail(GB_INVALID_ARGUMENTS, "the graph has no size \"%.100s\"", name);
        const br_symbol *symbol = &graph->symbols[index];
        if (sizes[k].value < symbol->min || sizes[k].value > symbol->max)
            return br_fail(GB_INVALID_SHAPE, "size %.100s is from %lld to %lld, not %lld", name,
                    (long long)symbol->min, (long long)symbol->max, (long long)sizes[k].value);
        of_symbols[index] = sizes[k].value;
        are_known[index] = true;
    }
    return GB_SUCCESS;
}

gb_status gb_bridge_graph_set_sizes(
        gb_bridge_graph *graph, size_t count, const gb_bridge_size *sizes)
{
    if (!graph || (count && !sizes))
        return br_fail(GB_INVALID_ARGUMENTS, "graph or sizes are NULL");
    if (br_graph_is_shared(graph))
        return br_fail(GB_INVALID_ARGUMENTS, "modules were made of the graph");
    int64_t *of_symbols = calloc((size_t)graph->n_symbols + 1, sizeof *of_symbols);
    bool *are_known = calloc((size_t)graph->n_symbols + 1, sizeof *are_known);
    gb_status status = of_symbols && are_known ? GB_SUCCESS : br_out_of_memory();
    const bound_symbols chosen = {graph, of_symbols, are_known};
    if (status == GB_SUCCESS)
        status = choose_values(graph, count, sizes, of_symbols, are_known);
    if (status == GB_SUCCESS)
        status = check_values(graph, &chosen);
    if (status == GB_SUCCESS) {
        visit(graph, set_size, &chosen);
        for (uint32_t i = 0; i < graph->n_symbols; i++) {
            graph->symbols[i].value = of_symbols[i];
            graph->symbols[i].is_open = !are_known[i];
        }
    }
    free(of_symbols);
    free(are_known);
    return status;
}

size_t gb_bridge_graph_get_input_num(const gb_bridge_graph *graph)
{
    return graph ? graph->n_inputs : 0;
}

gb_status gb_bridge_graph_get_input(
        const gb_bridge_graph *graph, size_t index, gb_bridge_input *input)
{
    if (!graph || !input || index >= graph->n_inputs)
        return br_fail(GB_INVALID_ARGUMENTS, "no such input");
    const br_value *value = &graph->values[graph->inputs[index]];
    *input = (gb_bridge_input){.name = value->name,
            .is_user = value->role == BR_USER,
            .dtype = value->kind == BR_TENSOR ? (int32_t)value->dtype->type : GB_UNDEF,
            .ndims = value->kind == BR_TENSOR && value->ndims > 0 ? value->ndims : 0};
    for (int d = 0; d < input->ndims; d++) {
        input->dims[d] = value->dims[d].unknown ? -1 : value->dims[d].value;
        input->expressions[d] = name_of(graph, value->dims[d].expr);
    }
    return GB_SUCCESS;
}
