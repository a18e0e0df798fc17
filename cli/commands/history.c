/* graph-bench history: results by commit, machine and case. */
#include "cli/commands/history.h"

#include "cli/commands/arguments.h"
#include "cli/commands/files.h"
#include "cli/options/case_name.h"
#include "cli/options/message.h"
#include "cli/report/new_file.h"

#include <stdlib.h>
#include <string.h>

enum { OPTION_OUTPUT, OPTION_FLOOR };

const gb_command_option gb_cli_history_options[] = {
        [OPTION_OUTPUT] = {"o", "FILE", NULL, "write to FILE and not to the standard output"},
        [OPTION_FLOOR] = {"floor", "PERCENT", "2%", "report: smaller steps are not told"},
        {0},
};

#ifdef GB_HAS_SQLITE

#include "cli/stats/steps.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>

/* Raised when a reader of the last version would misunderstand the file (PRAGMA user_version). */
enum { SCHEMA_VERSION = 2, BUSY_MS = 20000 };

/* Steps in plots: smaller ones are not told. */
static const double plot_floor = 0.02;

struct gb_history {
    sqlite3 *db;
    const char *path; /* lent */
    bool writes;
};

/* One row of `runs` for each report; `identity` is a hash of it, NULL where version 1 added it. One
 * row of `results` for each partition that was measured, in the order of the runs, and one with
 * `part` -1 for all of them end to end. */
#define RUN_COLUMNS                                                                                \
    "(id INTEGER PRIMARY KEY, identity TEXT UNIQUE, time TEXT NOT NULL, commit_id TEXT,"           \
    " machine TEXT NOT NULL, compiler TEXT, arguments TEXT);"
static const char schema[] =
        "CREATE TABLE runs" RUN_COLUMNS
        "CREATE TABLE results(run INTEGER NOT NULL REFERENCES runs(id), repro TEXT NOT NULL,"
        " part INTEGER NOT NULL, ops TEXT, status TEXT, digest TEXT, median_ns INTEGER,"
        " low_ns INTEGER, high_ns INTEGER, stopped_by TEXT);"
        "CREATE INDEX by_case ON results(repro, part);"
        "PRAGMA user_version = 2;";

/* Version 1 took runs of one time, machine and arguments for one: a constraint that only a new table
 * is without. */
static const char from_version_1[] =
        "CREATE TABLE runs_2" RUN_COLUMNS
        "INSERT INTO runs_2 SELECT id, NULL, time, commit_id, machine, compiler, arguments FROM"
        " runs;"
        "DROP TABLE runs;"
        "ALTER TABLE runs_2 RENAME TO runs;"
        "PRAGMA user_version = 2;";

/* What cannot be read is wrong usage, as a report that cannot be; what cannot be written is not. */
static gb_status failed(const gb_history *history)
{
    int code = sqlite3_errcode(history->db);
    bool unread = code == SQLITE_NOTADB || code == SQLITE_CORRUPT || code == SQLITE_ERROR;
    gb_status status = history->writes && !unread ? GB_RUNTIME_ERROR : GB_INVALID_ARGUMENTS;
    if (sqlite3_extended_errcode(history->db) == SQLITE_READONLY_ROLLBACK)
        return gb_cli_fail(status,
                "%s: a writer was ended in the middle; the next history add mends the file",
                history->path);
    return gb_cli_fail(status, "%s: %s", history->path, sqlite3_errmsg(history->db));
}

static gb_status execute(const gb_history *history, const char *sql)
{
    return sqlite3_exec(history->db, sql, NULL, NULL, NULL) == SQLITE_OK ? GB_SUCCESS
                                                                         : failed(history);
}

static gb_status prepare(const gb_history *history, const char *sql, sqlite3_stmt **statement)
{
    int code = sqlite3_prepare_v2(history->db, sql, -1, statement, NULL);
    return code == SQLITE_OK ? GB_SUCCESS : failed(history);
}

static gb_status read_number(const gb_history *history, const char *sql, int *number)
{
    sqlite3_stmt *statement;
    CLI_TRY(prepare(history, sql, &statement));
    bool good = sqlite3_step(statement) == SQLITE_ROW;
    *number = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return good ? GB_SUCCESS : failed(history);
}

static gb_status end_transaction(const gb_history *history, gb_status status, bool keeps)
{
    if (status == GB_SUCCESS && keeps)
        status = execute(history, "COMMIT");
    if (status != GB_SUCCESS || !keeps)
        sqlite3_exec(history->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* Another program's file may have any version, and even tables of these names. */
static gb_status check_columns(const gb_history *history)
{
    sqlite3_stmt *statement;
    CLI_TRY(prepare(history,
            "SELECT id, time, commit_id, machine, compiler, arguments, repro, part, ops, status,"
            " digest, median_ns, low_ns, high_ns, stopped_by FROM results JOIN runs ON run = id",
            &statement));
    sqlite3_finalize(statement);
    return GB_SUCCESS;
}

/* 0: the file is empty. What is no history is left alone. */
static gb_status read_version(const gb_history *history, int *version)
{
    int all, own;
    CLI_TRY(read_number(history, "SELECT count(*) FROM sqlite_master", &all));
    CLI_TRY(read_number(history, "PRAGMA user_version", version));
    if (all == 0 && *version == 0)
        return GB_SUCCESS;
    CLI_TRY(read_number(history,
            "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('runs',"
            " 'results')",
            &own));
    if (own != 2)
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "%s: this is another program's SQLite file, version %d, and no history",
                history->path, *version);
    if (*version < 1 || *version > SCHEMA_VERSION)
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "%s: the history has version %d, this program reads 1 to %d", history->path,
                *version, SCHEMA_VERSION);
    return check_columns(history);
}

/* Of two writers that find an empty file, or an older one, both may come here: the second finds what
 * the first has made. */
static gb_status make_tables(const gb_history *history)
{
    int version;
    CLI_TRY(execute(history, "BEGIN IMMEDIATE"));
    gb_status status = read_version(history, &version);
    if (status == GB_SUCCESS && version < SCHEMA_VERSION)
        status = execute(history, version ? from_version_1 : schema);
    return end_transaction(history, status, true);
}

/* All of the file is looked at before anything is told from it. */
static gb_status check_pages(const gb_history *history)
{
    sqlite3_stmt *statement;
    CLI_TRY(prepare(history, "PRAGMA quick_check(1)", &statement));
    gb_status status = GB_SUCCESS;
    if (sqlite3_step(statement) != SQLITE_ROW)
        status = failed(history);
    else if (strcmp((const char *)sqlite3_column_text(statement, 0), "ok") != 0)
        status = gb_cli_fail(GB_INVALID_ARGUMENTS, "%s: the file is damaged", history->path);
    sqlite3_finalize(statement);
    return status;
}

static gb_status check_file(const gb_history *history)
{
    int version;
    CLI_TRY(read_version(history, &version));
    if (history->writes)
        return version < SCHEMA_VERSION ? make_tables(history) : GB_SUCCESS;
    if (version == 0)
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "%s: the file is empty, and no history (graph-bench history add makes one)",
                history->path);
    return check_pages(history);
}

/* The SQL function case_name(repro): what is a series of one case is in one order. */
static void case_name(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    const unsigned char *line = sqlite3_value_text(values[0]);
    sqlite3_result_text(context, gb_cli_case_name(line ? (const char *)line : ""), -1, free);
}

gb_status gb_cli_history_open(const char *path, bool writes, gb_history **history)
{
    gb_history *opened = gb_cli_realloc(NULL, 1, sizeof *opened);
    *opened = (gb_history){.path = path, .writes = writes};
    *history = NULL;
    int flags = writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    gb_status status = GB_SUCCESS;
    if (sqlite3_open_v2(path, &opened->db, flags, NULL) != SQLITE_OK)
        status = failed(opened);
    sqlite3_busy_timeout(opened->db, BUSY_MS);
    if (status == GB_SUCCESS &&
            sqlite3_create_function(opened->db, "case_name", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                    NULL, case_name, NULL, NULL) != SQLITE_OK)
        status = failed(opened);
    if (status == GB_SUCCESS)
        status = check_file(opened);
    if (status == GB_SUCCESS)
        *history = opened;
    else
        gb_cli_history_close(opened);
    return status;
}

void gb_cli_history_close(gb_history *history)
{
    if (!history)
        return;
    sqlite3_close(history->db);
    free(history);
}

/* Times of two machines are compared where this is equal. */
static char *machine_of(json_object *environment)
{
    gb_text text = {0};
    gb_cli_text_add(&text, "%s; %s; %s processors",
            gb_cli_record_text(json_object_object_get(environment, "cpu"), "model"),
            gb_cli_record_text(environment, "engine"),
            gb_cli_record_text(environment, "processors"));
    return text.data;
}

/* ------------------------------------------------------------ add */

static void bind_text(sqlite3_stmt *statement, int place, json_object *value)
{
    if (value)
        sqlite3_bind_text(statement, place, json_object_get_string(value), -1, SQLITE_TRANSIENT);
    else
        sqlite3_bind_null(statement, place);
}

static void bind_number(sqlite3_stmt *statement, int place, json_object *value)
{
    if (value)
        sqlite3_bind_int64(statement, place, json_object_get_int64(value));
    else
        sqlite3_bind_null(statement, place);
}

static uint64_t hash_json(uint64_t hash, json_object *value)
{
    return gb_cli_hash_text(hash, json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN));
}

/* A hash of all that a report tells: parts of one run, and equal machines in the same second, differ
 * in little. */
static uint64_t hash_results(const gb_results *results)
{
    static const char *const members[] = {"environment", "shard", "merged", "ended", "summary"};
    uint64_t hash = GB_TEXT_HASH;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        hash = hash_json(hash, gb_cli_results_get(results, members[i]));
    long cursor = 0;
    for (json_object *record; (record = gb_cli_results_next(results, &cursor));) {
        hash = hash_json(hash, record);
        json_object_put(record);
    }
    return hash;
}

static gb_status add_run(
        const gb_history *history, const gb_results *results, sqlite3_int64 *run, bool *known)
{
    json_object *environment = gb_cli_results_get(results, "environment");
    json_object *build = json_object_object_get(environment, "build");
    sqlite3_stmt *statement;
    CLI_TRY(prepare(history,
            "INSERT OR IGNORE INTO runs(time, commit_id, machine, compiler, arguments, identity)"
            " VALUES(?, ?, ?, ?, ?, ?)",
            &statement));
    char identity[17];
    snprintf(identity, sizeof identity, "%016" PRIx64, hash_results(results));
    char *machine = machine_of(environment);
    json_object *time = json_object_object_get(environment, "time");
    sqlite3_bind_text(statement, 1, time ? json_object_get_string(time) : "", -1, SQLITE_TRANSIENT);
    bind_text(statement, 2, json_object_object_get(build, "commit"));
    sqlite3_bind_text(statement, 3, machine, -1, SQLITE_TRANSIENT);
    bind_text(statement, 4, json_object_object_get(build, "compiler"));
    bind_text(statement, 5, json_object_object_get(environment, "arguments"));
    sqlite3_bind_text(statement, 6, identity, -1, SQLITE_TRANSIENT);
    bool good = sqlite3_step(statement) == SQLITE_DONE;
    *known = good && sqlite3_changes(history->db) == 0;
    *run = sqlite3_last_insert_rowid(history->db);
    sqlite3_finalize(statement);
    free(machine);
    return good ? GB_SUCCESS : failed(history);
}

static gb_status add_partition(const gb_history *history, sqlite3_stmt *statement,
        sqlite3_int64 run, json_object *record, int64_t index, json_object *part)
{
    sqlite3_reset(statement);
    sqlite3_bind_int64(statement, 1, run);
    sqlite3_bind_text(
            statement, 2, gb_cli_case_name(gb_cli_record_text(record, "repro")), -1, free);
    sqlite3_bind_int64(statement, 3, index);
    bind_text(statement, 4, json_object_object_get(part, "ops"));
    bind_text(statement, 5, json_object_object_get(record, "status"));
    bind_text(statement, 6, json_object_object_get(record, "digest"));
    static const char *const numbers[] = {"median_ns", "low_ns", "high_ns"};
    for (int i = 0; i < 3; i++)
        bind_number(statement, 7 + i, json_object_object_get(part, numbers[i]));
    bind_text(statement, 10, json_object_object_get(part, "stopped_by"));
    return sqlite3_step(statement) == SQLITE_DONE ? GB_SUCCESS : failed(history);
}

static gb_status add_cases(const gb_history *history, const gb_results *results, sqlite3_int64 run)
{
    sqlite3_stmt *statement;
    CLI_TRY(prepare(history,
            "INSERT INTO results(run, repro, part, ops, status, digest, median_ns, low_ns, high_ns,"
            " stopped_by) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            &statement));
    gb_status status = GB_SUCCESS;
    long cursor = 0;
    for (json_object *record;
            status == GB_SUCCESS && (record = gb_cli_results_next(results, &cursor));
            json_object_put(record)) {
        size_t n = gb_cli_record_count_rows(record);
        for (size_t i = 0; i < n && status == GB_SUCCESS; i++) {
            int64_t part;
            json_object *row = gb_cli_record_row(record, i, &part);
            status = add_partition(history, statement, run, record, part, row);
        }
        if (n == 0)
            status = add_partition(history, statement, run, record, 0, NULL);
    }
    sqlite3_finalize(statement);
    return status == GB_SUCCESS ? gb_cli_results_check(results) : status;
}

#define RESULTS_OF                                                                                 \
    "SELECT case_name(repro), part, ops, status, digest, median_ns, low_ns, high_ns, stopped_by"   \
    " FROM results WHERE run = "

/* Did version 1, which kept no hash, add this run? Then all that is kept of it is equal. */
static gb_status find_older(const gb_history *history, sqlite3_int64 run, bool *known)
{
    sqlite3_stmt *statement;
    CLI_TRY(prepare(history,
            "SELECT 1 FROM runs AS new JOIN runs AS old ON old.time = new.time"
            " AND old.machine = new.machine AND old.arguments IS new.arguments"
            " AND old.commit_id IS new.commit_id AND old.compiler IS new.compiler"
            " WHERE new.id = ? AND old.identity IS NULL"
            " AND NOT EXISTS (" RESULTS_OF "new.id EXCEPT " RESULTS_OF "old.id)"
            " AND NOT EXISTS (" RESULTS_OF "old.id EXCEPT " RESULTS_OF "new.id)",
            &statement));
    sqlite3_bind_int64(statement, 1, run);
    int code = sqlite3_step(statement);
    *known = code == SQLITE_ROW;
    sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? GB_SUCCESS : failed(history);
}

static gb_status add_results(const gb_history *history, const gb_results *results, bool *known)
{
    sqlite3_int64 run;
    CLI_TRY(add_run(history, results, &run, known));
    if (*known)
        return GB_SUCCESS;
    CLI_TRY(add_cases(history, results, run));
    return find_older(history, run, known);
}

/* One transaction for each report: it is in the history as a whole or not at all. */
static gb_status add_report(const gb_history *history, const char *path)
{
    gb_results *results;
    bool known = false;
    CLI_TRY(gb_cli_results_read(path, &results));
    gb_status status = execute(history, "BEGIN IMMEDIATE");
    if (status == GB_SUCCESS) {
        status = add_results(history, results, &known);
        status = end_transaction(history, status, !known);
    }
    if (status == GB_SUCCESS && known)
        gb_cli_print_warning(path, "this report is in the history already");
    gb_cli_results_free(results);
    return status;
}

/* ------------------------------------------------------------ report */

/* The medians of one partition on one machine, in the order of time. */
typedef struct series {
    char *machine, *repro, *ops; /* owned */
    sqlite3_int64 part;
    size_t n;
    double *ns;     /* owned */
    char **commits; /* owned, as is each; "time commit" */
} series;

static void series_free(series *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->commits[i]);
    free(s->commits);
    free(s->ns);
    free(s->machine);
    free(s->repro);
    free(s->ops);
    *s = (series){0};
}

static const char *column(sqlite3_stmt *statement, int index)
{
    const unsigned char *text = sqlite3_column_text(statement, index);
    return text ? (const char *)text : "";
}

/* All of them: each is measured up to the next one. The caller's. */
static gb_step *find_steps(const double *ns, size_t n, double floor, size_t *n_steps)
{
    gb_step *steps = gb_cli_realloc(NULL, n, sizeof *steps);
    *n_steps = gb_stats_steps(ns, n, floor, steps, n);
    return steps;
}

static void tell_steps(const series *s, double floor, size_t *n_steps, FILE *file)
{
    size_t n;
    gb_step *steps = find_steps(s->ns, s->n, floor, &n);
    char name[40] = "";
    if (s->part != WHOLE_GRAPH)
        snprintf(name, sizeof name, "partition %lld ", (long long)s->part);
    for (size_t i = 0; i < n; i++)
        fprintf(file, "%s  %+.1f %%  %.4g -> %.4g ms  at %s  %s%s: %s  [%s]\n",
                steps[i].change > 0 ? "SLOWER" : "FASTER", 100 * steps[i].change,
                s->ns[steps[i].at - 1] * 1e-6, s->ns[steps[i].at] * 1e-6, s->commits[steps[i].at],
                name, s->ops, s->repro, s->machine);
    free(steps);
    *n_steps += n;
}

static bool belongs(const series *s, sqlite3_stmt *row)
{
    return s->n > 0 && s->part == sqlite3_column_int64(row, 2) &&
           gb_cli_case_names_are_equal(s->repro, column(row, 1)) &&
           strcmp(s->machine, column(row, 0)) == 0;
}

static void append(series *s, sqlite3_stmt *row)
{
    if (s->n == 0) {
        s->machine = gb_cli_copy(column(row, 0));
        s->repro = gb_cli_copy(column(row, 1));
        s->part = sqlite3_column_int64(row, 2);
        s->ops = gb_cli_copy(column(row, 3));
    }
    gb_text commit = {0};
    gb_cli_text_add(&commit, "%s %.12s", column(row, 5), column(row, 6));
    s->ns = gb_cli_realloc(s->ns, s->n + 1, sizeof *s->ns);
    s->commits = gb_cli_realloc(s->commits, s->n + 1, sizeof *s->commits);
    s->ns[s->n] = (double)sqlite3_column_int64(row, 4);
    s->commits[s->n++] = commit.data;
}

static gb_status report(const gb_history *history, double floor, FILE *file)
{
    sqlite3_stmt *statement;
    CLI_TRY(prepare(history,
            "SELECT machine, repro, part, ops, median_ns, time, commit_id FROM results JOIN runs ON"
            " run = runs.id WHERE median_ns > 0"
            " ORDER BY machine, case_name(repro), part, time, runs.id",
            &statement));
    series s = {0};
    size_t n_series = 0, n_steps = 0;
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        if (s.n > 0 && !belongs(&s, statement)) {
            tell_steps(&s, floor, &n_steps, file);
            series_free(&s);
        }
        n_series += s.n == 0;
        append(&s, statement);
    }
    if (s.n > 0)
        tell_steps(&s, floor, &n_steps, file);
    series_free(&s);
    sqlite3_finalize(statement);
    if (code != SQLITE_DONE)
        return failed(history);
    fprintf(file, "%zu series, %zu steps\n", n_series, n_steps);
    return GB_SUCCESS;
}

/* ------------------------------------------------------------ export */

static void write_field(const char *text, FILE *file)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, file);
        return;
    }
    putc('"', file);
    for (; *text; text++)
        fputs(*text == '"' ? "\"\"" : (char[]){*text, '\0'}, file);
    putc('"', file);
}

static gb_status export(const gb_history *history, FILE *file)
{
    sqlite3_stmt *statement;
    CLI_TRY(prepare(history,
            "SELECT time, commit_id, machine, compiler, repro, part, ops, status, digest, "
            "median_ns,"
            " low_ns, high_ns, stopped_by FROM results JOIN runs ON run = runs.id"
            " ORDER BY time, runs.id, results.rowid",
            &statement));
    int columns = sqlite3_column_count(statement), code;
    for (int i = 0; i < columns; i++)
        fprintf(file, "%s%s", sqlite3_column_name(statement, i), i + 1 < columns ? "," : "\r\n");
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        for (int i = 0; i < columns; i++) {
            write_field(column(statement, i), file);
            fputs(i + 1 < columns ? "," : "\r\n", file);
        }
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? GB_SUCCESS : failed(history);
}

/* The medians of one partition of a case on one machine. Names are kept; whole lines in older files. */
#define OF_SERIES                                                                                  \
    " FROM results JOIN runs ON run = runs.id WHERE machine = ?1 AND repro IN (?2, ?3) AND part"   \
    " = ?4 AND median_ns > 0 ORDER BY time, runs.id"

static void bind_series(
        sqlite3_stmt *statement, json_object *environment, const char *repro, int64_t partition)
{
    sqlite3_bind_text(statement, 1, machine_of(environment), -1, free);
    sqlite3_bind_text(statement, 2, gb_cli_case_name(repro), -1, free);
    sqlite3_bind_text(statement, 3, gb_cli_case_name_with_option(repro), -1, free);
    sqlite3_bind_int64(statement, 4, partition);
}

double gb_cli_history_noise(
        gb_history *history, json_object *environment, const char *repro, int64_t partition)
{
    sqlite3_stmt *statement;
    if (!history || prepare(history, "SELECT median_ns" OF_SERIES, &statement) != GB_SUCCESS)
        return 0;
    double *ns = NULL;
    size_t n = 0;
    bind_series(statement, environment, repro, partition);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        ns = gb_cli_realloc(ns, n + 1, sizeof *ns);
        ns[n++] = (double)sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    double noise = gb_stats_noise(ns, n);
    free(ns);
    return noise;
}

/* ------------------------------------------------------------ plots */

static json_object *point_of(sqlite3_stmt *row)
{
    json_object *point = json_object_new_array();
    for (int i = 0; i < 5; i++) {
        bool is_null = sqlite3_column_type(row, i) == SQLITE_NULL;
        json_object_array_add(point, is_null ? NULL
                                     : i < 2 ? json_object_new_string(column(row, i))
                                             : json_object_new_int64(sqlite3_column_int64(row, i)));
    }
    return point;
}

static json_object *steps_of(const double *ns, size_t n)
{
    size_t found;
    gb_step *steps = find_steps(ns, n, plot_floor, &found);
    json_object *list = json_object_new_array();
    for (size_t i = 0; i < found; i++) {
        json_object *step = json_object_new_array();
        json_object_array_add(step, json_object_new_uint64(steps[i].at));
        json_object_array_add(step, json_object_new_double(steps[i].change));
        json_object_array_add(list, step);
    }
    free(steps);
    return list;
}

gb_status gb_cli_history_series(gb_history *history, json_object *environment, const char *repro,
        int64_t partition, json_object **plot)
{
    sqlite3_stmt *statement;
    *plot = NULL;
    CLI_TRY(prepare(
            history, "SELECT time, commit_id, median_ns, low_ns, high_ns" OF_SERIES, &statement));
    bind_series(statement, environment, repro, partition);
    json_object *points = json_object_new_array();
    double *ns = NULL;
    size_t n = 0;
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        json_object_array_add(points, point_of(statement));
        ns = gb_cli_realloc(ns, n + 1, sizeof *ns);
        ns[n++] = (double)sqlite3_column_int64(statement, 2);
    }
    gb_status status = code == SQLITE_DONE ? GB_SUCCESS : failed(history);
    if (status == GB_SUCCESS && n >= 2) {
        *plot = json_object_new_object();
        json_object_object_add(*plot, "points", json_object_get(points));
        json_object_object_add(*plot, "steps", steps_of(ns, n));
    }
    json_object_put(points);
    sqlite3_finalize(statement);
    free(ns);
    return status;
}

/* ------------------------------------------------------------ the command */

static gb_status write_out(const gb_arguments *arguments, const gb_history *history, bool exports)
{
    double floor;
    const char *path = arguments->values[OPTION_OUTPUT];
    if (!gb_cli_argument_percent("floor", arguments->values[OPTION_FLOOR], &floor))
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "wrong usage");
    gb_new_file file;
    if (!gb_cli_new_file_open(path ? path : "-", &file))
        return gb_cli_fail(GB_RUNTIME_ERROR, "%s: %s", path ? path : "output", strerror(errno));
    gb_status status = exports ? export(history, file.stream) : report(history, floor, file.stream);
    bool good = gb_cli_new_file_close(&file, status == GB_SUCCESS);
    if (status == GB_SUCCESS && !good)
        return gb_cli_fail(GB_RUNTIME_ERROR, "%s: %s", path ? path : "output", strerror(errno));
    return status;
}

static gb_status perform(const gb_arguments *arguments)
{
    const char *action = arguments->words[0];
    bool adds = strcmp(action, "add") == 0, exports = strcmp(action, "export") == 0;
    if (!adds && !exports && strcmp(action, "report") != 0)
        return gb_cli_fail(
                GB_INVALID_ARGUMENTS, "\"%.40s\" is none of add, report, export", action);
    if (adds ? arguments->n_words < 3 : arguments->n_words != 2)
        return gb_cli_fail(
                GB_INVALID_ARGUMENTS, "history add FILE REPORT..., report FILE, export FILE");
    gb_history *history;
    CLI_TRY(gb_cli_history_open(arguments->words[1], adds, &history));
    gb_status status = GB_SUCCESS;
    for (size_t i = 2; adds && i < arguments->n_words && status == GB_SUCCESS; i++)
        status = add_report(history, arguments->words[i]);
    if (!adds)
        status = write_out(arguments, history, exports);
    gb_cli_history_close(history);
    return status;
}

int gb_cli_command_history(const gb_command *command, int argc, char **argv)
{
    gb_arguments arguments;
    int result = EXIT_USAGE;
    if (gb_cli_arguments_read(command, argc, argv, false, &arguments)) {
        gb_status status = GB_INVALID_ARGUMENTS;
        if (arguments.n_words == 0)
            gb_cli_fail(status, "%s", command->arguments);
        else
            status = perform(&arguments);
        if (status != GB_SUCCESS)
            gb_cli_print_error("history", "%s", gb_cli_failure());
        result = status == GB_SUCCESS ? EXIT_GOOD : gb_cli_command_failure(status);
    }
    gb_cli_arguments_free(&arguments);
    return result;
}

#else

static const char missing[] =
        "this build has no history: install libsqlite3-dev and libgsl-dev, and configure again";

gb_status gb_cli_history_open(const char *path, bool writes, gb_history **history)
{
    (void)writes;
    *history = NULL;
    return gb_cli_fail(GB_UNIMPLEMENTED, "%s: %s", path, missing);
}

void gb_cli_history_close(gb_history *history)
{
    (void)history;
}

double gb_cli_history_noise(
        gb_history *history, json_object *environment, const char *repro, int64_t partition)
{
    (void)history;
    (void)environment;
    (void)repro;
    (void)partition;
    return 0;
}

gb_status gb_cli_history_series(gb_history *history, json_object *environment, const char *repro,
        int64_t partition, json_object **plot)
{
    (void)environment;
    (void)repro;
    (void)partition;
    *plot = NULL;
    return gb_cli_fail(GB_UNIMPLEMENTED, "%s", history ? missing : "no history");
}

int gb_cli_command_history(const gb_command *command, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    gb_cli_print_error(command->name, "%s", missing);
    return EXIT_USAGE;
}

#endif
