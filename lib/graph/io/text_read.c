/* Graphs from the text form. A reader goes through the text once; every fault is told with its line
 * and column, and the op it is in. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/io/text.h"
#include "graph/io/text_reader.h"
#include "graph/io/write.h"

#include <stdlib.h>
#include <string.h>

static gb_status read_outputs(gb_text_reader *r)
{
    r->n_outputs = 0;
    gb_text_skip_blanks(r);
    if (r->at == r->end || *r->at != '%')
        return GB_SUCCESS;
    do {
        gb_logical_tensor tensor;
        GB_TRY(gb_text_read_tensor(r, &tensor));
        if (!gb_reserve(
                    &r->outputs, &r->output_capacity, r->n_outputs + (size_t)1, sizeof *r->outputs))
            return GB_OUT_OF_MEMORY;
        r->outputs[r->n_outputs++] = tensor;
    } while (gb_text_take(r, ','));
    return gb_text_expect(r, '=');
}

static gb_status read_inputs(gb_text_reader *r)
{
    GB_TRY(gb_text_expect(r, '('));
    if (gb_text_take(r, ')'))
        return GB_SUCCESS;
    do {
        gb_logical_tensor tensor;
        gb_text_skip_blanks(r);
        const char *start = r->at;
        GB_TRY(gb_text_read_tensor(r, &tensor));
        gb_status status = gb_op_add_input(r->op, &tensor);
        if (status != GB_SUCCESS)
            return gb_text_prefix(r, start, status);
    } while (gb_text_take(r, ','));
    return gb_text_expect(r, ')');
}

/* What follows the outputs. */
static gb_status read_operation(gb_text_reader *r)
{
    GB_TRY(read_inputs(r));
    for (uint32_t i = 0; i < r->n_outputs; i++) {
        gb_status status = gb_op_add_output(r->op, &r->outputs[i]);
        if (status != GB_SUCCESS)
            return gb_text_prefix(r, r->at, status);
    }
    while (!gb_text_at_end_of_line(r))
        GB_TRY(gb_text_read_attr(r));
    return GB_SUCCESS;
}

static gb_status read_kind(gb_text_reader *r, size_t id, const char *name)
{
    char word[GB_TEXT_WORD];
    gb_op_kind kind;
    gb_text_skip_blanks(r);
    const char *start = r->at;
    GB_TRY(gb_text_read_word(r, "_", "the kind of an op", word));
    if (gb_op_kind_parse(word, &kind) != GB_SUCCESS)
        return gb_text_fail(r, start, "unknown op kind \"%s\"", word);
    return gb_op_create(&r->op, id, kind, name);
}

static gb_status read_op(gb_text_reader *r)
{
    size_t id;
    char *name = NULL;
    const char *start = r->at;
    GB_TRY(gb_text_read_unsigned(r, "the id of an op", &id));
    gb_text_skip_blanks(r);
    if (r->at < r->end && *r->at == '"') {
        GB_TRY(gb_text_read_string(r));
        name = gb_strdup(r->string);
        if (!name)
            return GB_OUT_OF_MEMORY;
    }
    gb_status status = gb_text_expect(r, ':');
    if (status == GB_SUCCESS)
        status = read_outputs(r);
    if (status == GB_SUCCESS)
        status = read_kind(r, id, name ? name : "");
    free(name);
    GB_TRY(status);
    GB_TRY(read_operation(r));
    status = gb_graph_add_op(r->graph, r->op);
    if (status != GB_SUCCESS)
        return gb_text_prefix(r, start, status);
    gb_op_free(r->op);
    r->op = NULL;
    return GB_SUCCESS;
}

static gb_status read_engine(gb_text_reader *r)
{
    char word[GB_TEXT_WORD];
    GB_TRY(gb_text_read_word(r, "_", "an engine kind", word));
    return gb_engine_kind_parse(word, &r->graph->engine_kind);
}

static gb_status read_fpmath(gb_text_reader *r)
{
    char word[GB_TEXT_WORD];
    GB_TRY(gb_text_read_word(r, "_", "an fpmath mode", word));
    return gb_fpmath_mode_parse(word, &r->graph->fpmath_mode);
}

static gb_status read_apply_to_int(gb_text_reader *r)
{
    return gb_text_read_bool(r, &r->graph->fpmath_apply_to_int);
}

static gb_status read_version(gb_text_reader *r)
{
    GB_TRY(gb_text_read_string(r));
    snprintf(r->graph->version, sizeof r->graph->version, "%s", r->string);
    return GB_SUCCESS;
}

/* An attribute of the graph. */
static gb_status read_graph_attr(gb_text_reader *r)
{
    GB_TRY(gb_graph_attr_carrier(r->graph, &r->op));
    gb_status status = gb_text_read_attr(r);
    r->op = NULL;
    return status;
}

static gb_status read_setting(gb_text_reader *r)
{
    static const struct {
        const char *key;
        gb_status (*read)(gb_text_reader *r);
    } settings[] = {
            {"engine=", read_engine},
            {"fpmath=", read_fpmath},
            {"apply_to_int=", read_apply_to_int},
            {"version=", read_version},
            {"attr:", read_graph_attr},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (!gb_text_take_text(r, settings[i].key))
            continue;
        const char *start = r->at;
        gb_status status = settings[i].read(r);
        return status == GB_INVALID_ARGUMENTS ? gb_text_prefix(r, start, status) : status;
    }
    return gb_text_fail_expected(r, "engine=, fpmath=, apply_to_int=, version= or attr:");
}

static gb_status read_graph(gb_text_reader *r)
{
    if (!gb_text_next_line(r) || !gb_text_take_text(r, "graph"))
        return gb_text_fail_expected(r, "the word \"graph\"");
    while (!gb_text_at_end_of_line(r))
        GB_TRY(read_setting(r));
    while (gb_text_next_line(r))
        GB_TRY(read_op(r));
    if (r->graph->n_ops == 0)
        return gb_text_fail(r, r->at, "the graph has no ops");
    gb_status status = gb_graph_check(r->graph);
    return status == GB_SUCCESS ? status : gb_fail_prefix(status, "%s", r->name);
}

/* Bytes of a byte order mark in front. */
static size_t mark_length(const char *text, size_t length)
{
    static const char byte_order_mark[] = "\xEF\xBB\xBF";
    size_t bytes = sizeof byte_order_mark - 1;
    return length >= bytes && memcmp(text, byte_order_mark, bytes) == 0 ? bytes : 0;
}

bool gb_is_text(const char *text, size_t length)
{
    const char *end = text + length;
    text += mark_length(text, length);
    gb_text_reader r = {.at = text, .end = end, .line_start = text};
    return gb_text_next_line(&r) && gb_text_word_length(&r, "_") == strlen("graph") &&
           gb_text_take_text(&r, "graph");
}

gb_status gb_graph_parse_text(gb_graph **graph, const char *text, size_t length, const char *name)
{
    if (!graph || !text || !name)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_parse_text: NULL argument");
    size_t mark = mark_length(text, length);
    gb_text_reader r = {.name = name,
            .at = text + mark,
            .end = text + length,
            .line_start = text + mark,
            .line = 1};
    gb_c_locale locale;
    GB_TRY(gb_enter_c_locale(&locale));
    gb_status status = gb_graph_create(&r.graph, GB_ENGINE_ANY);
    if (status == GB_SUCCESS)
        status = read_graph(&r);
    gb_leave_c_locale(&locale);
    gb_op_free(r.op);
    free(r.outputs);
    free(r.string);
    if (status == GB_SUCCESS)
        *graph = r.graph;
    else
        gb_graph_destroy(r.graph);
    return status;
}
