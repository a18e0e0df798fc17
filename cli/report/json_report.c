/* --json=FILE: all results as one document. */
#include "cli/report/json_report.h"

#include "cli/options/message.h"
#include "cli/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Raised when a reader of the last version would misunderstand the document. */
enum { SCHEMA_VERSION = 1 };

/* The cases wait as text in a file without a name: nobody may ask for them until the last option,
 * and a long run must not keep them in memory. */
struct gb_json_report {
    FILE *cases; /* NULL: none can be made */
    size_t n;
};

gb_json_report *gb_cli_json_create(void)
{
    gb_json_report *report = gb_cli_realloc(NULL, 1, sizeof *report);
    *report = (gb_json_report){.cases = tmpfile()};
    return report;
}

void gb_cli_json_free(gb_json_report *report)
{
    if (!report)
        return;
    if (report->cases)
        fclose(report->cases);
    free(report);
}

enum { JSON_STYLE = JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE };

/* Each line behind the indentation of a list in the document. */
static void write_case(FILE *file, json_object *object)
{
    const char *line = json_object_to_json_string_ext(object, JSON_STYLE);
    while (*line) {
        size_t length = strcspn(line, "\n");
        fprintf(file, "    %.*s%s", (int)length, line, line[length] ? "\n" : "");
        line += length + (line[length] != '\0');
    }
}

static void add_text(json_object *object, const char *key, const char *text)
{
    json_object_object_add(object, key, text ? json_object_new_string(text) : NULL);
}

/* Negative: not measured, null. */
static void add_ns(json_object *object, const char *key, int64_t ns)
{
    json_object_object_add(object, key, ns < 0 ? NULL : json_object_new_int64(ns));
}

static void add_number(json_object *object, const char *key, double value)
{
    json_object_object_add(object, key, value < 0 ? NULL : json_object_new_double(value));
}

static json_object *memory_object(const gb_memory_use *use)
{
    json_object *object = json_object_new_object();
    json_object_object_add(object, "arena", json_object_new_uint64(use->arena));
    json_object_object_add(object, "intermediates", json_object_new_uint64(use->intermediates));
    json_object_object_add(object, "scratch", json_object_new_uint64(use->scratch));
    json_object_object_add(object, "constants", json_object_new_uint64(use->constants));
    return object;
}

static json_object *partition_object(const gb_partition_result *p)
{
    json_object *object = json_object_new_object();
    json_object_object_add(object, "id", json_object_new_uint64(p->id));
    add_text(object, "ops", p->ops);
    add_text(object, "pattern", p->pattern);
    add_text(object, "kernels", p->kernels);
    add_text(object, "reason", p->reason);
    add_ns(object, "compile_ns", p->compile_ns);
    add_ns(object, "first_ns", p->first_ns);
    add_ns(object, "min_ns", p->min_ns);
    add_ns(object, "median_ns", p->median_ns);
    add_ns(object, "average_ns", p->average_ns);
    add_ns(object, "p90_ns", p->p90_ns);
    add_ns(object, "p99_ns", p->p99_ns);
    add_ns(object, "mad_ns", p->mad_ns);
    json_object_object_add(object, "samples", json_object_new_int64(p->n_samples));
    add_number(object, "flops", p->flops);
    add_number(object, "bytes", p->bytes);
    json_object_object_add(object, "inplace", json_object_new_uint64(p->n_inplace));
    add_number(object, "margin", p->margin);
    json_object_object_add(object, "memory", p->kernels ? memory_object(&p->memory) : NULL);
    return object;
}

static json_object *chosen_object(const gb_case_result *result)
{
    json_object *object = json_object_new_object();
    for (size_t i = 0; i < result->n_chosen; i++) {
        char key[24];
        snprintf(key, sizeof key, "%zu", result->chosen[i].tensor_id);
        add_text(object, key, result->chosen[i].text);
    }
    return object;
}

/* 64 bits do not fit the numbers of every reader. */
static void add_digest(json_object *object, const gb_case_result *result)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, result->digest);
    add_text(object, "digest", result->executed ? text : NULL);
}

void gb_cli_json_add(gb_json_report *report, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result)
{
    if (!report || !report->cases)
        return;
    json_object *object = json_object_new_object(), *partitions = json_object_new_array();
    json_object_object_add(object, "index", json_object_new_uint64(test->index));
    add_text(object, "repro", test->repro);
    add_text(object, "file", test->file);
    add_text(object, "status", gb_cli_case_status_name(result->status));
    add_text(object, "reason", result->reason);
    add_text(object, "layouts",
            settings->layouts == LAYOUTS_ANY && !settings->dynamic ? "any" : "strided");
    json_object_object_add(object, "chosen_layouts", chosen_object(result));
    json_object_object_add(object, "seed", json_object_new_int64(settings->seed));
    json_object_object_add(object, "errors", json_object_new_int64(result->n_errors));
    json_object_object_add(object, "compared", json_object_new_int64(result->n_total));
    add_digest(object, result);
    add_ns(object, "elapsed_ns", result->elapsed_ns);
    add_number(object, "min_ms", result->min_ms);
    add_number(object, "average_ms", result->average_ms);
    for (size_t i = 0; i < result->n_partitions; i++)
        json_object_array_add(partitions, partition_object(&result->partitions[i]));
    json_object_object_add(object, "partitions", partitions);
    fputs(report->n++ ? ",\n" : "\n", report->cases);
    write_case(report->cases, object);
    json_object_put(object);
}

static json_object *environment_object(const char *engine, const gb_roof *roof)
{
    json_object *object = json_object_new_object();
    const gb_version *version = gb_get_version();
    char text[64];
    snprintf(text, sizeof text, "%d.%d.%d", version->major, version->minor, version->patch);
    add_text(object, "version", text);
    add_text(object, "engine", engine);
    struct utsname system;
    if (uname(&system) == 0) {
        add_text(object, "system", system.sysname);
        add_text(object, "release", system.release);
        add_text(object, "machine", system.machine);
    }
    json_object_object_add(
            object, "processors", json_object_new_int64(sysconf(_SC_NPROCESSORS_ONLN)));
    add_text(object, "omp_num_threads", getenv("OMP_NUM_THREADS"));
    add_text(object, "max_isa", getenv("GB_MAX_ISA"));
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc))
        add_text(object, "time", text);
    add_number(object, "roof_flops", roof->flops > 0 ? roof->flops : -1);
    add_number(object, "roof_bytes_per_second", roof->bytes > 0 ? roof->bytes : -1);
    return object;
}

static bool json_report_copy(FILE *from, FILE *to)
{
    char block[65536];
    size_t length;
    rewind(from);
    while ((length = fread(block, 1, sizeof block, from)) > 0)
        if (fwrite(block, 1, length, to) != length)
            return false;
    return !ferror(from);
}

/* The cases go in as the last member, in front of the brace that ends the document. */
static bool write_document(gb_json_report *report, json_object *document, FILE *file)
{
    const char *text = json_object_to_json_string_ext(document, JSON_STYLE);
    fprintf(file, "%.*s,\n  \"cases\":[", (int)(strlen(text) - strlen("\n}")), text);
    bool written = fflush(report->cases) == 0 && !ferror(report->cases) &&
                   json_report_copy(report->cases, file);
    fputs(report->n ? "\n  ]\n}" : "]\n}", file);
    return written && !ferror(file);
}

gb_status gb_cli_json_write(
        gb_json_report *report, const char *path, const char *engine, const gb_roof *roof)
{
    if (!report || !report->cases)
        return gb_cli_fail(GB_RUNTIME_ERROR, "--json=%s: no temporary file could be made", path);
    FILE *file = fopen(path, "w");
    if (!file)
        return gb_cli_fail(
                GB_RUNTIME_ERROR, "--json=%s: cannot be written: %s", path, strerror(errno));
    json_object *document = json_object_new_object();
    json_object_object_add(document, "schema", json_object_new_string("graph-bench-report"));
    json_object_object_add(document, "schema_version", json_object_new_int(SCHEMA_VERSION));
    json_object_object_add(document, "environment", environment_object(engine, roof));
    bool written = write_document(report, document, file);
    json_object_put(document);
    if (fclose(file) != 0 || !written)
        return gb_cli_fail(
                GB_RUNTIME_ERROR, "--json=%s: cannot be written: %s", path, strerror(errno));
    return GB_SUCCESS;
}
