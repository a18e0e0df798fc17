/* --junit: what CI servers show. A case that failed its check is a failure, one that could not be
 * checked an error, one that ended as --expect says is skipped; MISTRUSTED passes, with a note. What
 * is wrong with the run, and with none of its cases, is a test case of its own. */
#include "cli/options/utf8.h"
#include "cli/report/record.h"
#include "cli/report/render.h"
#include "cli/report/report.h"

#include <inttypes.h>
#include <string.h>

typedef enum outcome { OUTCOME_GOOD, OUTCOME_FAILURE, OUTCOME_ERROR, OUTCOME_SKIPPED } outcome;

static outcome outcome_of(json_object *record)
{
    const char *status = gb_cli_record_text(record, "status");
    if (json_object_object_get(record, "expected"))
        return OUTCOME_SKIPPED;
    if (strcmp(status, gb_cli_case_status_name(CASE_FAILED)) == 0)
        return OUTCOME_FAILURE;
    if (strcmp(status, gb_cli_case_status_name(CASE_SKIPPED)) == 0)
        return OUTCOME_SKIPPED;
    return gb_cli_record_is_failure(record) ? OUTCOME_ERROR : OUTCOME_GOOD;
}

/* U+FFFE and U+FFFF, three bytes each. */
static bool is_no_character(const char *at)
{
    return strncmp(at, "\xef\xbf\xbe", 3) == 0 || strncmp(at, "\xef\xbf\xbf", 3) == 0;
}

/* Characters that XML cannot hold become '?'. */
static void write_text(const char *text, FILE *file)
{
    gb_text clean = {0};
    gb_cli_utf8_add(&clean, text);
    for (const char *at = gb_cli_text_get(&clean); *at; at += is_no_character(at) ? 3 : 1) {
        unsigned char c = (unsigned char)*at;
        if (c == '&')
            fputs("&amp;", file);
        else if (c == '<')
            fputs("&lt;", file);
        else if (c == '>')
            fputs("&gt;", file);
        else if (c == '"')
            fputs("&quot;", file);
        else
            putc((c < 0x20 && c != '\n' && c != '\t') || is_no_character(at) ? '?' : c, file);
    }
    gb_cli_text_free(&clean);
}

static void write_attribute(const char *name, const char *value, FILE *file)
{
    fprintf(file, " %s=\"", name);
    write_text(value, file);
    putc('"', file);
}

static double seconds_of(json_object *record)
{
    return json_object_get_double(json_object_object_get(record, "elapsed_ns")) * 1e-9;
}

/* Messages, elements outside their bounds, and the command that shows it again. */
static void write_details(json_object *record, FILE *file)
{
    static const char *const lists[] = {"messages", "mismatches"};
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++) {
        json_object *list = json_object_object_get(record, lists[l]);
        for (size_t i = 0; i < gb_cli_list_count(list); i++) {
            write_text(gb_cli_list_text(list, i), file);
            putc('\n', file);
        }
    }
    const char *repro = gb_cli_record_text(record, "repro");
    write_text(*repro ? "graph-bench " : "", file);
    write_text(repro, file);
}

static void write_case(const char *class, const char *name, json_object *record, FILE *file)
{
    static const char *const elements[] = {
            [OUTCOME_FAILURE] = "failure",
            [OUTCOME_ERROR] = "error",
            [OUTCOME_SKIPPED] = "skipped",
    };
    outcome result = outcome_of(record);
    const char *status = gb_cli_record_text(record, "status");
    const char *reason = gb_cli_record_text(record, "reason");
    const char *expected = gb_cli_record_text(record, "expected");
    fputs("  <testcase", file);
    write_attribute("classname", class, file);
    write_attribute("name", name, file);
    fprintf(file, " time=\"%.6f\">\n", seconds_of(record));
    if (result == OUTCOME_GOOD) {
        fputs("    <system-out>", file);
        write_text(status, file);
        write_text(*reason ? ": " : "", file);
        write_text(reason, file);
        fputs("</system-out>\n", file);
    } else {
        fprintf(file, "    <%s", elements[result]);
        if (result != OUTCOME_SKIPPED)
            write_attribute("type", status, file);
        write_attribute("message", *expected ? expected : *reason ? reason : status, file);
        putc('>', file);
        write_details(record, file);
        fprintf(file, "</%s>\n", elements[result]);
    }
    fputs("  </testcase>\n", file);
}

/* ------------------------------------------------------------ the run as a whole */

static void add_fault(json_object *faults, const char *name, gb_case_status status, gb_text *reason)
{
    json_object *record = json_object_new_object();
    json_object_object_add(
            record, "status", json_object_new_string(gb_cli_case_status_name(status)));
    json_object_object_add(record, "reason", json_object_new_string(gb_cli_text_get(reason)));
    json_object_object_add(faults, name, record);
    gb_cli_text_free(reason);
}

/* By name, as a case has it: wrong options, an end before the last case, what --strict refuses. An
 * end is no failure where --budget asked for it. The caller's. */
static json_object *faults_of(const gb_results *results)
{
    json_object *faults = json_object_new_object(), *ended = gb_cli_results_get(results, "ended");
    int64_t wrong_options = gb_cli_count_option_errors(results);
    gb_text reason = {0};
    if (wrong_options > 0) {
        gb_cli_text_add(
                &reason, "%" PRId64 " wrong options or unreadable batch files", wrong_options);
        add_fault(faults, "options", CASE_UNTESTED_FAILED, &reason);
    }
    const char *how = ended ? json_object_get_string(ended) : "unknown";
    if (strcmp(how, "complete") != 0) {
        bool as_asked = strcmp(how, "budget") == 0;
        gb_cli_text_add(&reason, "the run did not come to its end: %s", how);
        add_fault(
                faults, "end of the run", as_asked ? CASE_SKIPPED : CASE_UNTESTED_FAILED, &reason);
    }
    json_object *strict = gb_cli_results_get(results, "strict");
    for (size_t i = 0; i < gb_cli_list_count(strict); i++)
        gb_cli_text_add(&reason, "%s%s", i ? "; " : "", gb_cli_list_text(strict, i));
    if (gb_cli_list_count(strict) > 0)
        add_fault(faults, "--strict", CASE_UNTESTED_FAILED, &reason);
    return faults;
}

bool gb_cli_write_junit(const gb_results *results, FILE *file)
{
    size_t counts[4] = {0};
    double seconds = 0;
    long cursor = 0;
    json_object *faults = faults_of(results);
    size_t n = gb_cli_results_count(results) + (size_t)json_object_object_length(faults);
    json_object_object_foreach(faults, key, found)
    {
        (void)key;
        counts[outcome_of(found)]++;
    }
    for (json_object *record; (record = gb_cli_results_next(results, &cursor));) {
        counts[outcome_of(record)]++;
        seconds += seconds_of(record);
        json_object_put(record);
    }
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuite name=\"graph-bench\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
            "skipped=\"%zu\" time=\"%.6f\">\n",
            n, counts[OUTCOME_FAILURE], counts[OUTCOME_ERROR], counts[OUTCOME_SKIPPED], seconds);
    cursor = 0;
    for (json_object *record; (record = gb_cli_results_next(results, &cursor));) {
        write_case(gb_cli_record_text(record, "file"), gb_cli_record_text(record, "repro"), record,
                file);
        json_object_put(record);
    }
    json_object_object_foreach(faults, name, fault) write_case("graph-bench", name, fault, file);
    json_object_put(faults);
    fputs("</testsuite>\n", file);
    return gb_cli_results_check(results) == GB_SUCCESS && !ferror(file);
}
