/* The files that a run leaves. */
#include "cli/report/output.h"

#include "cli/options/message.h"
#include "cli/report/new_file.h"
#include "cli/report/record.h"
#include "cli/report/render.h"
#include "cli/report/results.h"
#include "cli/run/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *option;
    size_t path; /* offset into gb_settings */
    bool (*write)(const gb_results *results, FILE *file);
} formats[] = {
        {"json", offsetof(gb_settings, json_file), gb_cli_results_write_json},
        {"junit", offsetof(gb_settings, junit_file), gb_cli_write_junit},
        {"csv", offsetof(gb_settings, csv_file), gb_cli_write_csv},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* Writing takes at most this share of the run, and happens at most once a second. */
enum { WRITING_SHARE = 20 };
static const int64_t least_pause_ns = 1000000000;

struct gb_output {
    gb_results *results;
    int argc;
    char *const *argv;
    json_object *earlier;           /* environment of the report that is resumed, or NULL */
    int64_t written_ns, writing_ns; /* when the files were written last, and how long it took */
};

gb_output *gb_cli_output_create(int argc, char *const *argv)
{
    gb_output *output = gb_cli_realloc(NULL, 1, sizeof *output);
    *output = (gb_output){.results = gb_cli_results_create(), .argc = argc, .argv = argv};
    return output;
}

void gb_cli_output_free(gb_output *output)
{
    if (!output)
        return;
    gb_cli_results_free(output->results);
    free(output);
}

void gb_cli_output_resume(gb_output *output, json_object *environment)
{
    output->earlier = environment;
}

void gb_cli_output_add(gb_output *output, json_object *record)
{
    gb_cli_results_add(output->results, record);
}

static const char *path_of(const gb_settings *settings, size_t format)
{
    const char *path;
    memcpy(&path, (const char *)settings + formats[format].path, sizeof path);
    return path;
}

bool gb_cli_output_is_wanted(const gb_settings *settings)
{
    bool wanted = false;
    for (size_t format = 0; format < FORMATS; format++)
        wanted = wanted || path_of(settings, format);
    return wanted;
}

static json_object *summary_object(const gb_report *report)
{
    json_object *object = json_object_new_object();
    for (int status = 0; status < CASE_STATUS_COUNT; status++) {
        const char *name = gb_cli_case_status_name((gb_case_status)status);
        json_object_object_add(object, name, json_object_new_uint64(report->counts[status]));
    }
    json_object_object_add(
            object, "option_errors", json_object_new_uint64(report->n_option_errors));
    return object;
}

static json_object *shard_object(const gb_settings *settings, const gb_report *report)
{
    json_object *object = json_object_new_object();
    json_object_object_add(object, "number", json_object_new_int64(settings->shard));
    json_object_object_add(object, "count", json_object_new_int64(settings->n_shards));
    json_object_object_add(object, "division", json_object_new_int64(report->shard_division));
    json_object_object_add(object, "cases", json_object_new_int64(report->shard_cases));
    return object;
}

static json_object *strict_list(const gb_report *report)
{
    json_object *list = json_object_new_array();
    for (size_t i = 0; i < report->n_strict; i++)
        json_object_array_add(list, json_object_new_string(report->strict[i]));
    return list;
}

/* Members that only a run with cases finds out. */
static bool is_found_out(const char *key)
{
    static const char *const beginnings[] = {"engine", "roof_", "probe_", "doctor", "chain_"};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(key, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static void take_earlier(json_object *environment, json_object *earlier)
{
    json_object_object_foreach(earlier, key, value)
    {
        if (value && is_found_out(key) && !json_object_object_get(environment, key))
            json_object_object_add(environment, key, json_object_get(value));
    }
}

static gb_status not_written(const gb_settings *settings, size_t format, int error)
{
    return gb_cli_fail(GB_RUNTIME_ERROR, "--%s=%s: cannot be written: %s", formats[format].option,
            path_of(settings, format), strerror(error));
}

static gb_status write_file(gb_output *output, const gb_settings *settings, size_t format)
{
    gb_new_file file;
    bool good = gb_cli_new_file_open(path_of(settings, format), &file);
    if (good) /* a stream that cannot be written says so when it is closed */
        good = gb_cli_new_file_close(&file, formats[format].write(output->results, file.stream));
    return good ? GB_SUCCESS : not_written(settings, format, errno);
}

/* Makes what a file is written to before it takes its place, and leaves it open. */
static gb_status try_to_write(
        const gb_settings *settings, size_t format, gb_new_file *file, struct stat *info)
{
    if (!gb_cli_new_file_open(path_of(settings, format), file) ||
            fstat(fileno(file->stream), info) != 0)
        return not_written(settings, format, errno);
    return GB_SUCCESS;
}

static gb_status try_to_write_all(
        const gb_settings *settings, const bool probed[FORMATS], gb_new_file made[FORMATS])
{
    struct stat files[FORMATS];
    for (size_t format = 0; format < FORMATS; format++) {
        if (!probed[format])
            continue;
        CLI_TRY(try_to_write(settings, format, &made[format], &files[format]));
        for (size_t other = 0; other < format; other++)
            if (probed[other] && files[other].st_dev == files[format].st_dev &&
                    files[other].st_ino == files[format].st_ino)
                return gb_cli_fail(GB_INVALID_ARGUMENTS, "--%s and --%s name the same file, %s",
                        formats[other].option, formats[format].option, path_of(settings, format));
    }
    return GB_SUCCESS;
}

gb_status gb_cli_output_probe(const gb_settings *settings)
{
    bool probed[FORMATS];
    gb_new_file made[FORMATS] = {0};
    for (size_t format = 0; format < FORMATS; format++) {
        const char *path = path_of(settings, format);
        probed[format] = path && !gb_cli_new_file_is_special(path);
    }
    gb_status status = try_to_write_all(settings, probed, made);
    for (size_t format = 0; format < FORMATS; format++)
        if (made[format].stream)
            gb_cli_new_file_close(&made[format], false);
    return status;
}

void gb_cli_output_take_stdout(const gb_settings *settings)
{
    for (size_t format = 0; format < FORMATS; format++) {
        const char *path = path_of(settings, format);
        if (path && gb_cli_new_file_is_stdout(path))
            gb_cli_new_file_take_stdout();
    }
}

gb_status gb_cli_output_write(gb_output *output, const gb_settings *settings,
        const gb_report *report, const char *engine, const char *ended)
{
    int64_t begin = gb_cli_now_ns();
    bool last = strcmp(ended, "running") != 0;
    CLI_TRY(gb_cli_results_check(output->results));
    gb_cli_results_set(output->results, "ended", json_object_new_string(ended));
    gb_cli_results_set(output->results, "summary", summary_object(report));
    json_object *environment =
            gb_cli_environment_record(output->argc, output->argv, engine, &report->roof);
    if (report->diagnosis.n > 0) {
        double chain_ns = last ? gb_cli_chain_ns() : -1;
        json_object_object_add(environment, "doctor", gb_cli_diagnosis_record(&report->diagnosis));
        json_object_object_add(
                environment, "chain_before_ns", json_object_new_double(report->diagnosis.chain_ns));
        json_object_object_add(
                environment, "chain_after_ns", last ? json_object_new_double(chain_ns) : NULL);
    }
    if (output->earlier)
        take_earlier(environment, output->earlier);
    gb_cli_results_set(output->results, "environment", environment);
    if (settings->n_shards)
        gb_cli_results_set(output->results, "shard", shard_object(settings, report));
    if (settings->strict)
        gb_cli_results_set(output->results, "strict", strict_list(report));
    gb_status status = GB_SUCCESS;
    for (size_t format = 0; format < FORMATS && status == GB_SUCCESS; format++) {
        const char *path = path_of(settings, format);
        if (path && (last || !gb_cli_new_file_is_special(path)))
            status = write_file(output, settings, format);
    }
    output->written_ns = gb_cli_now_ns();
    output->writing_ns = output->written_ns - begin;
    return status;
}

gb_status gb_cli_output_refresh(
        gb_output *output, const gb_settings *settings, const gb_report *report, const char *engine)
{
    int64_t pause = WRITING_SHARE * output->writing_ns;
    if (pause < least_pause_ns)
        pause = least_pause_ns;
    if (output->written_ns && gb_cli_now_ns() - output->written_ns < pause)
        return GB_SUCCESS;
    return gb_cli_output_write(output, settings, report, engine, "running");
}
