/* --csv: a row for each partition, and one for all of them end to end. */
#include "cli/report/record.h"
#include "cli/report/render.h"

#include <string.h>

/* Columns are named as the members of the report (docs/json-report.md). */
static const struct {
    const char *name, *key;
    bool of_partition;
} columns[] = {
        {"index", "index", false},
        {"status", "status", false},
        {"file", "file", false},
        {"repro", "repro", false},
        {"reason", "reason", false},
        {"digest", "digest", false},
        {"partition", "id", true},
        {"ops", "ops", true},
        {"pattern", "pattern", true},
        {"kernels", "kernels", true},
        {"compile_ns", "compile_ns", true},
        {"build_ns", "build_ns", true},
        {"first_ns", "first_ns", true},
        {"device_ns", "device_ns", true},
        {"min_ns", "min_ns", true},
        {"median_ns", "median_ns", true},
        {"average_ns", "average_ns", true},
        {"p90_ns", "p90_ns", true},
        {"p99_ns", "p99_ns", true},
        {"mad_ns", "mad_ns", true},
        {"samples", "samples", true},
        {"flops", "flops", true},
        {"bytes", "bytes", true},
        {"margin", "margin", true},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void write_field(json_object *value, FILE *file)
{
    const char *text = value ? json_object_get_string(value) : "";
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, file);
        return;
    }
    putc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', file);
        putc(*text, file);
    }
    putc('"', file);
}

/* The row of all partitions end to end has the word "all" for a number. */
static void write_row(json_object *record, json_object *partition, bool whole, FILE *file)
{
    for (size_t c = 0; c < COLUMNS; c++) {
        if (c)
            putc(',', file);
        if (whole && strcmp(columns[c].name, "partition") == 0) {
            fputs("all", file);
            continue;
        }
        json_object *object = columns[c].of_partition ? partition : record;
        write_field(json_object_object_get(object, columns[c].key), file);
    }
    fputs("\r\n", file);
}

bool gb_cli_write_csv(const gb_results *results, FILE *file)
{
    for (size_t c = 0; c < COLUMNS; c++)
        fprintf(file, "%s%s", c ? "," : "", columns[c].name);
    fputs("\r\n", file);
    long cursor = 0;
    for (json_object *record; (record = gb_cli_results_next(results, &cursor));) {
        json_object *partitions = json_object_object_get(record, "partitions");
        size_t n = gb_cli_list_count(partitions);
        for (size_t i = 0; i < (n ? n : 1); i++)
            write_row(record, n ? json_object_array_get_idx(partitions, i) : NULL, false, file);
        json_object *whole = json_object_object_get(record, "end_to_end");
        if (whole)
            write_row(record, whole, true, file);
        json_object_put(record);
    }
    return gb_cli_results_check(results) == GB_SUCCESS && !ferror(file);
}
