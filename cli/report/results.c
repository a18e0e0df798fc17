/* The records of a run. */
#include "cli/report/results.h"

#include "cli/options/message.h"
#include "cli/report/temporary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Raised when a reader of the last version would misunderstand the document. */
enum { SCHEMA_VERSION = 1 };

enum { RECORD_STYLE = JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE };

/* Cases, a line each, in a file without a name. */
typedef struct case_file {
    FILE *stream; /* NULL: there was no case yet */
    long end;     /* behind the last case */
    int error;    /* why one was lost, as errno tells it; 0: none was */
} case_file;

struct gb_results {
    case_file *cases;     /* owned */
    json_object *members; /* everything but the cases */
    size_t n;
    long *order; /* owned: where the lines begin, in the order of the report; NULL: as they lie */
};

gb_results *gb_cli_results_create(void)
{
    gb_results *results = gb_cli_realloc(NULL, 1, sizeof *results);
    *results = (gb_results){.cases = gb_cli_realloc(NULL, 1, sizeof *results->cases),
            .members = json_object_new_object()};
    *results->cases = (case_file){.stream = NULL};
    gb_cli_results_set(results, "schema", json_object_new_string("graph-bench-report"));
    gb_cli_results_set(results, "schema_version", json_object_new_int(SCHEMA_VERSION));
    return results;
}

void gb_cli_results_free(gb_results *results)
{
    if (!results)
        return;
    if (results->cases->stream)
        fclose(results->cases->stream);
    free(results->cases);
    json_object_put(results->members);
    free(results->order);
    free(results);
}

/* The first reason is the one that counts. */
static void lose_case(case_file *cases)
{
    if (!cases->error)
        cases->error = errno ? errno : EIO;
}

/* The file is made for the first case: who has none, such as --version, needs no place for it. */
static bool write_line(case_file *cases, const char *text, size_t length)
{
    if (!cases->stream)
        cases->stream = gb_cli_temporary_file();
    return cases->stream && fseek(cases->stream, cases->end, SEEK_SET) == 0 &&
           fwrite(text, 1, length, cases->stream) == length && putc('\n', cases->stream) != EOF;
}

/* The text of a case, without line breaks. The result is where it lies. Behind one that was lost none
 * is written: gb_cli_results_check() tells of it. */
static long add_line(gb_results *results, const char *text, size_t length)
{
    case_file *cases = results->cases;
    long at = cases->end;
    results->n++;
    errno = 0;
    if (!cases->error && write_line(cases, text, length))
        cases->end += (long)length + 1;
    else
        lose_case(cases);
    return at;
}

gb_status gb_cli_results_check(const gb_results *results)
{
    case_file *cases = results->cases;
    errno = 0;
    if (cases->stream && (fflush(cases->stream) != 0 || ferror(cases->stream)))
        lose_case(cases);
    if (!cases->error)
        return GB_SUCCESS;
    return gb_cli_fail(GB_RUNTIME_ERROR, "results cannot be kept in a temporary file in %s: %s",
            gb_cli_temporary_folder(), strerror(cases->error));
}

void gb_cli_results_add(gb_results *results, json_object *record)
{
    const char *text = json_object_to_json_string_ext(record, RECORD_STYLE);
    add_line(results, text, strlen(text));
    json_object_put(record);
}

void gb_cli_results_arrange(gb_results *results, long *order, size_t n)
{
    free(results->order);
    results->order = order;
    results->n = n;
}

void gb_cli_results_set(gb_results *results, const char *key, json_object *value)
{
    json_object_object_add(results->members, key, value);
}

json_object *gb_cli_results_get(const gb_results *results, const char *key)
{
    return json_object_object_get(results->members, key);
}

size_t gb_cli_results_count(const gb_results *results)
{
    return results->n;
}

/* The line at a place; at most 0, and the case is lost, where there is none. */
static ssize_t read_line(case_file *cases, long place, char **line, size_t *capacity)
{
    ssize_t length = -1;
    errno = 0;
    if (cases->stream && fseek(cases->stream, place, SEEK_SET) == 0)
        length = getline(line, capacity, cases->stream);
    if (length <= 0)
        lose_case(cases);
    return length;
}

/* The line at *cursor, and moves it on: a count where there is an order, a place where not. At most 0
 * behind the last. */
static ssize_t next_line(const gb_results *results, long *cursor, char **line, size_t *capacity)
{
    long end = results->order ? (long)results->n : results->cases->end;
    if (*cursor >= end)
        return -1;
    long place = results->order ? results->order[*cursor] : *cursor;
    ssize_t length = read_line(results->cases, place, line, capacity);
    *cursor = results->order ? *cursor + 1 : place + length;
    return length;
}

static json_object *parse_line(case_file *cases, const char *line)
{
    json_object *record = json_tokener_parse(line);
    errno = 0;
    if (!record)
        lose_case(cases);
    return record;
}

json_object *gb_cli_results_next(const gb_results *results, long *cursor)
{
    char *line = NULL;
    size_t capacity = 0;
    bool found = next_line(results, cursor, &line, &capacity) > 0;
    json_object *record = found ? parse_line(results->cases, line) : NULL;
    free(line);
    return record;
}

json_object *gb_cli_results_at(const gb_results *results, long place)
{
    char *line = NULL;
    size_t capacity = 0;
    bool found = read_line(results->cases, place, &line, &capacity) > 0;
    json_object *record = found ? parse_line(results->cases, line) : NULL;
    free(line);
    return record;
}

const char *gb_cli_record_text(json_object *record, const char *key)
{
    json_object *value = json_object_object_get(record, key);
    return value ? json_object_get_string(value) : "";
}

static size_t count_partitions(json_object *record)
{
    json_object *parts = json_object_object_get(record, "partitions");
    return json_object_is_type(parts, json_type_array) ? json_object_array_length(parts) : 0;
}

size_t gb_cli_record_count_rows(json_object *record)
{
    return count_partitions(record) + (json_object_object_get(record, "end_to_end") ? 1 : 0);
}

gb_rates gb_cli_record_rates(json_object *visit)
{
    return (gb_rates){.flops = json_object_get_double(json_object_object_get(visit, "probe_flops")),
            .l1 = json_object_get_double(
                    json_object_object_get(visit, "probe_l1_bytes_per_second")),
            .handshakes = json_object_get_double(
                    json_object_object_get(visit, "probe_handshakes_per_second")),
            .clock = json_object_get_double(json_object_object_get(visit, "probe_clock"))};
}

json_object *gb_cli_record_row(json_object *record, size_t row, int64_t *part)
{
    bool whole = row == count_partitions(record);
    *part = whole ? WHOLE_GRAPH : (int64_t)row;
    return whole ? json_object_object_get(record, "end_to_end")
                 : json_object_array_get_idx(json_object_object_get(record, "partitions"), row);
}

/* ------------------------------------------------------------ files */

/* The cases go in as the last member, in front of the brace that ends the document. */
bool gb_cli_results_write_json(const gb_results *results, FILE *file)
{
    const char *text = json_object_to_json_string_ext(
            results->members, RECORD_STYLE | JSON_C_TO_STRING_PRETTY);
    fprintf(file, "%.*s,\n  \"cases\": [", (int)(strlen(text) - strlen("\n}")), text);
    char *line = NULL;
    size_t capacity = 0, n = 0;
    long cursor = 0;
    for (ssize_t length; (length = next_line(results, &cursor, &line, &capacity)) > 0; n++)
        fprintf(file, "%s\n%.*s", n ? "," : "", (int)length - 1, line);
    free(line);
    fputs("\n]\n}\n", file);
    return n == results->n && gb_cli_results_check(results) == GB_SUCCESS && !ferror(file);
}

static gb_status read_failed(const char *path, const char *reason)
{
    return gb_cli_fail(GB_INVALID_ARGUMENTS, "%s: %s", path, reason);
}

/* A report that is read case by case, so that a large one does not have to fit into memory. Lines
 * are read in turn; `at` is the next character of the one that is there. */
typedef struct reader {
    const char *path;
    FILE *file;
    char *line; /* owned */
    size_t capacity, length, at;
    size_t before;              /* bytes of the file in front of the line */
    gb_text frame;              /* the document without its cases */
    size_t list_at, list_bytes; /* where the cases were, and how much was left out */
    bool has_cases;
    size_t n;
    json_tokener *tokener;
    gb_results *to;
    gb_results_take *take;
    void *data;
} reader;

static bool next_of_file(reader *r)
{
    ssize_t length = getline(&r->line, &r->capacity, r->file);
    r->before += r->length;
    r->length = length > 0 ? (size_t)length : 0;
    r->at = 0;
    return length > 0;
}

/* Line and column of a byte of the file. */
static gb_status fault_at(const reader *r, size_t offset, const char *what)
{
    size_t line = 1, column = 1;
    rewind(r->file);
    for (int c; offset > 0 && (c = getc(r->file)) != EOF; offset--) {
        column = c == '\n' ? 1 : column + 1;
        line += c == '\n';
    }
    return gb_cli_fail(GB_INVALID_ARGUMENTS, "%s:%zu:%zu: %s", r->path, line, column, what);
}

/* One value from here on; its text, lent, where it lies on one line, else "". */
static gb_status read_value(reader *r, json_object **value, const char **text, size_t *length)
{
    size_t begin = r->at;
    bool one_line = true;
    json_tokener_reset(r->tokener);
    for (;;) {
        *value = json_tokener_parse_ex(r->tokener, r->line + r->at, (int)(r->length - r->at));
        enum json_tokener_error error = json_tokener_get_error(r->tokener);
        size_t end = r->at + json_tokener_get_parse_end(r->tokener);
        if (error == json_tokener_success) {
            r->at = end;
            *text = one_line ? r->line + begin : "";
            *length = one_line ? end - begin : 0;
            return GB_SUCCESS;
        }
        if (error != json_tokener_continue)
            return fault_at(r, r->before + end, json_tokener_error_desc(error));
        if (!next_of_file(r))
            return read_failed(r->path, "the report ends too early");
        one_line = false;
    }
}

static gb_status read_case(reader *r)
{
    json_object *record;
    const char *text;
    size_t length;
    CLI_TRY(read_value(r, &record, &text, &length));
    if (!json_object_is_type(record, json_type_object)) {
        json_object_put(record);
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "%s: case %zu is no object", r->path, r->n);
    }
    if (length == 0) {
        text = json_object_to_json_string_ext(record, RECORD_STYLE);
        length = strlen(text);
    }
    while (text[length - 1] != '}') /* the parser took white space behind the value along */
        length--;
    long place = add_line(r->to, text, length);
    r->n++;
    if (r->take)
        r->take(r->data, record, place);
    json_object_put(record);
    return GB_SUCCESS;
}

/* Behind the bracket that opens the list, up to the one that closes it. */
static gb_status read_cases(reader *r)
{
    for (;;) {
        while (r->at < r->length && strchr(" \t\r\n,", r->line[r->at]))
            r->at++;
        if (r->at == r->length) {
            if (!next_of_file(r))
                return read_failed(r->path, "the report ends too early");
        } else if (r->line[r->at] == ']') {
            return GB_SUCCESS;
        } else {
            CLI_TRY(read_case(r));
        }
    }
}

/* The list of cases is taken out where it begins on a line of its own, as in all that this program
 * writes. Other documents are read as a whole. */
static gb_status read_frame(reader *r)
{
    static const char list[] = "  \"cases\": [";
    while (next_of_file(r)) {
        if (!r->has_cases && strncmp(r->line, list, strlen(list)) == 0) {
            r->has_cases = true;
            gb_cli_text_add(&r->frame, "%s", list);
            r->list_at = r->before + strlen(list);
            r->at = strlen(list);
            CLI_TRY(read_cases(r));
            r->list_bytes = r->before + r->at - r->list_at;
        }
        gb_cli_text_add(&r->frame, "%s", r->line + r->at);
    }
    return GB_SUCCESS;
}

/* Cases of a document that was read as a whole. */
static gb_status take_cases(reader *r, json_object *cases)
{
    for (size_t i = 0; i < json_object_array_length(cases); i++) {
        json_object *record = json_object_array_get_idx(cases, i);
        if (!json_object_is_type(record, json_type_object))
            return gb_cli_fail(GB_INVALID_ARGUMENTS, "%s: case %zu is no object", r->path, i);
        const char *text = json_object_to_json_string_ext(record, RECORD_STYLE);
        long place = add_line(r->to, text, strlen(text));
        if (r->take)
            r->take(r->data, record, place);
    }
    return GB_SUCCESS;
}

static gb_status parse_frame(reader *r, json_object **document)
{
    const char *text = gb_cli_text_get(&r->frame);
    if (!*text)
        return read_failed(r->path, "the report is empty");
    json_tokener_reset(r->tokener);
    *document = json_tokener_parse_ex(r->tokener, text, (int)strlen(text));
    enum json_tokener_error error = json_tokener_get_error(r->tokener);
    if (error == json_tokener_continue)
        return read_failed(r->path, "the report ends too early");
    if (error != json_tokener_success) {
        size_t offset = json_tokener_get_parse_end(r->tokener);
        offset += r->has_cases && offset > r->list_at ? r->list_bytes : 0;
        return fault_at(r, offset, json_tokener_error_desc(error));
    }
    size_t end = json_tokener_get_parse_end(r->tokener);
    if (text[end + strspn(text + end, " \t\r\n")])
        return fault_at(r, end + (r->has_cases && end > r->list_at ? r->list_bytes : 0),
                "there is more behind the report");
    json_object *cases = json_object_object_get(*document, "cases");
    const char *schema = json_object_get_string(json_object_object_get(*document, "schema"));
    int version = json_object_get_int(json_object_object_get(*document, "schema_version"));
    if (!schema || strcmp(schema, "graph-bench-report") != 0 ||
            !json_object_is_type(cases, json_type_array))
        return read_failed(r->path, "this is no report of graph-bench (--json=FILE writes one)");
    if (version != SCHEMA_VERSION)
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "%s: the report has schema_version %d, this program reads %d", r->path, version,
                SCHEMA_VERSION);
    CLI_TRY(take_cases(r, cases));
    json_object_object_del(*document, "cases");
    return GB_SUCCESS;
}

gb_status gb_cli_results_append(gb_results *results, const char *path, json_object **members,
        gb_results_take *take, void *data)
{
    *members = NULL;
    reader r = {.path = path, .to = results, .take = take, .data = data};
    r.file = fopen(path, "r");
    if (!r.file)
        return read_failed(path, strerror(errno));
    r.tokener = json_tokener_new();
    gb_status status = read_frame(&r);
    if (status == GB_SUCCESS)
        status = parse_frame(&r, members);
    if (status == GB_SUCCESS)
        status = gb_cli_results_check(results);
    if (status != GB_SUCCESS) {
        json_object_put(*members);
        *members = NULL;
    }
    json_tokener_free(r.tokener);
    gb_cli_text_free(&r.frame);
    free(r.line);
    fclose(r.file);
    return status;
}

gb_status gb_cli_results_read(const char *path, gb_results **results)
{
    json_object *members;
    *results = gb_cli_results_create();
    gb_status status = gb_cli_results_append(*results, path, &members, NULL, NULL);
    if (status == GB_SUCCESS) {
        json_object_object_foreach(members, key, value)
                gb_cli_results_set(*results, key, json_object_get(value));
    } else {
        gb_cli_results_free(*results);
        *results = NULL;
    }
    json_object_put(members);
    return status;
}
