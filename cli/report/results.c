/* The records of a run. */
#include "cli/report/results.h"

#include "cli/options/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Raised when a reader of the last version would misunderstand the document. */
enum { SCHEMA_VERSION = 1 };

enum { RECORD_STYLE = JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE };

struct gb_results {
    FILE *cases;          /* a line each */
    json_object *members; /* everything but the cases */
    size_t n;
};

gb_results *gb_cli_results_create(void)
{
    FILE *cases = tmpfile();
    if (!cases) {
        gb_cli_fail(GB_RUNTIME_ERROR, "no temporary file can be made: %s", strerror(errno));
        return NULL;
    }
    gb_results *results = gb_cli_realloc(NULL, 1, sizeof *results);
    *results = (gb_results){.cases = cases, .members = json_object_new_object()};
    gb_cli_results_set(results, "schema", json_object_new_string("graph-bench-report"));
    gb_cli_results_set(results, "schema_version", json_object_new_int(SCHEMA_VERSION));
    return results;
}

void gb_cli_results_free(gb_results *results)
{
    if (!results)
        return;
    fclose(results->cases);
    json_object_put(results->members);
    free(results);
}

void gb_cli_results_add(gb_results *results, json_object *record)
{
    fseek(results->cases, 0, SEEK_END);
    fprintf(results->cases, "%s\n", json_object_to_json_string_ext(record, RECORD_STYLE));
    results->n++;
    json_object_put(record);
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

json_object *gb_cli_results_next(const gb_results *results, long *cursor)
{
    char *line = NULL;
    size_t capacity = 0;
    json_object *record = NULL;
    if (fseek(results->cases, *cursor, SEEK_SET) == 0 &&
            getline(&line, &capacity, results->cases) > 0) {
        record = json_tokener_parse(line);
        *cursor = ftell(results->cases);
    }
    free(line);
    return record;
}

const char *gb_cli_record_text(json_object *record, const char *key)
{
    json_object *value = json_object_object_get(record, key);
    return value ? json_object_get_string(value) : "";
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
    fseek(results->cases, 0, SEEK_SET);
    for (ssize_t length; (length = getline(&line, &capacity, results->cases)) > 0; n++)
        fprintf(file, "%s\n%.*s", n ? "," : "", (int)length - 1, line);
    free(line);
    fputs("\n]\n}\n", file);
    return n == results->n && !ferror(results->cases) && !ferror(file);
}

static gb_status read_failed(const char *path, const char *reason)
{
    return gb_cli_fail(GB_INVALID_ARGUMENTS, "%s: %s", path, reason);
}

/* Line and column of the byte at `offset`. */
static void locate(FILE *file, size_t offset, size_t *line, size_t *column)
{
    *line = *column = 1;
    rewind(file);
    for (int c; offset > 0 && (c = getc(file)) != EOF; offset--) {
        *column = c == '\n' ? 1 : *column + 1;
        *line += c == '\n';
    }
}

static gb_status parse_file(const char *path, FILE *file, json_object **document)
{
    char block[65536];
    size_t length, before = 0;
    json_tokener *tokener = json_tokener_new();
    enum json_tokener_error error = json_tokener_continue;
    *document = NULL;
    while (error == json_tokener_continue && (length = fread(block, 1, sizeof block, file)) > 0) {
        *document = json_tokener_parse_ex(tokener, block, (int)length);
        error = json_tokener_get_error(tokener);
        if (error == json_tokener_continue)
            before += length;
    }
    size_t offset = before + json_tokener_get_parse_end(tokener), line, column;
    json_tokener_free(tokener);
    if (error == json_tokener_success)
        return GB_SUCCESS;
    if (error == json_tokener_continue)
        return read_failed(path, before ? "the report ends too early" : "the report is empty");
    locate(file, offset, &line, &column);
    return gb_cli_fail(GB_INVALID_ARGUMENTS, "%s:%zu:%zu: %s", path, line, column,
            json_tokener_error_desc(error));
}

static gb_status take_document(const char *path, json_object *document, gb_results *results)
{
    json_object *cases = json_object_object_get(document, "cases");
    const char *schema = json_object_get_string(json_object_object_get(document, "schema"));
    int version = json_object_get_int(json_object_object_get(document, "schema_version"));
    if (!schema || strcmp(schema, "graph-bench-report") != 0 ||
            !json_object_is_type(cases, json_type_array))
        return read_failed(path, "this is no report of graph-bench (--json=FILE writes one)");
    if (version != SCHEMA_VERSION)
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "%s: the report has schema_version %d, this program reads %d", path, version,
                SCHEMA_VERSION);
    for (size_t i = 0; i < json_object_array_length(cases); i++) {
        json_object *record = json_object_array_get_idx(cases, i);
        if (!json_object_is_type(record, json_type_object))
            return gb_cli_fail(GB_INVALID_ARGUMENTS, "%s: case %zu is no object", path, i);
        gb_cli_results_add(results, json_object_get(record));
    }
    json_object_object_foreach(document, key, value)
    {
        if (strcmp(key, "cases") != 0)
            gb_cli_results_set(results, key, json_object_get(value));
    }
    return GB_SUCCESS;
}

gb_status gb_cli_results_read(const char *path, gb_results **results)
{
    *results = NULL;
    FILE *file = fopen(path, "r");
    if (!file)
        return read_failed(path, strerror(errno));
    json_object *document;
    gb_status status = parse_file(path, file, &document);
    fclose(file);
    if (status == GB_SUCCESS) {
        *results = gb_cli_results_create();
        status = *results ? take_document(path, document, *results) : GB_RUNTIME_ERROR;
    }
    json_object_put(document);
    if (status != GB_SUCCESS) {
        gb_cli_results_free(*results);
        *results = NULL;
    }
    return status;
}
