/* What a report keeps of a run. */
#include "cli/report/record.h"

#include "cli/options/build.h"
#include "cli/options/utf8.h"
#include "cli/report/report.h"
#include "cli/run/machine.h"

#include <graphbench/graphbench_tools.h>

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static void add_text(json_object *object, const char *key, const char *text)
{
    json_object_object_add(object, key, gb_cli_utf8_json(text));
}

/* Negative: not measured, null. */
static void add_ns(json_object *object, const char *key, int64_t ns)
{
    json_object_object_add(object, key, ns < 0 ? NULL : json_object_new_int64(ns));
}

/* JSON has no infinity: the largest number stands for it. */
static void add_number(json_object *object, const char *key, double value)
{
    json_object_object_add(
            object, key, value >= 0 ? json_object_new_double(fmin(value, DBL_MAX)) : NULL);
}

/* What JSON has no number for is a word. */
static void add_value(json_object *object, const char *key, double value)
{
    if (isfinite(value))
        json_object_object_add(object, key, json_object_new_double(value));
    else
        add_text(object, key, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
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

static json_object *samples_list(const gb_measurement *m, const gb_visit *visit)
{
    json_object *list = json_object_new_array();
    for (size_t i = visit->first; i < visit->first + visit->n_samples; i++)
        json_object_array_add(list, json_object_new_int64(m->samples[i].ns));
    return list;
}

/* What was not probed is null. */
static void add_rates(json_object *object, gb_rates rates)
{
    add_number(object, "probe_flops", rates.flops > 0 ? rates.flops : -1);
    add_number(object, "probe_l1_bytes_per_second", rates.l1 > 0 ? rates.l1 : -1);
    add_number(object, "probe_handshakes_per_second", rates.handshakes > 0 ? rates.handshakes : -1);
    add_number(object, "probe_clock", rates.clock > 0 ? rates.clock : -1);
}

static json_object *visit_object(
        const gb_measurement *m, const gb_visit *visit, const gb_settings *settings)
{
    json_object *object = json_object_new_object();
    size_t preempted = 0;
    for (size_t i = visit->first; i < visit->first + visit->n_samples; i++)
        preempted += m->samples[i].preempted;
    gb_rates best = gb_cli_probe_best();
    gb_visit_times times = gb_cli_visit_times(m, visit, best);
    json_object_object_add(object, "at_ns", json_object_new_int64(visit->at_ns));
    add_ns(object, "cold_ns", visit->cold_ns);
    add_ns(object, "median_ns", (int64_t)times.median_ns);
    add_ns(object, "slow_median_ns", (int64_t)times.slow_median_ns);
    json_object_object_add(object, "samples", json_object_new_uint64(visit->n_samples));
    json_object_object_add(
            object, "calls_per_sample", json_object_new_int64(visit->calls_per_sample));
    json_object_object_add(object, "preempted", json_object_new_uint64(preempted));
    add_text(object, "state",
            times.rates.flops <= 0                     ? NULL
            : gb_cli_rates_are_slow(times.rates, best) ? "slow"
                                                       : "fast");
    add_rates(object, times.rates);
    add_number(object, "probe_bytes_per_second", visit->bytes > 0 ? visit->bytes : -1);
    add_number(object, "steal", visit->steal);
    if (settings->samples)
        json_object_object_add(object, "samples_ns", samples_list(m, visit));
    return object;
}

static void add_times(json_object *object, const gb_measurement *measured, const gb_summary *times,
        const gb_settings *settings)
{
    add_ns(object, "min_ns", times->min_ns);
    add_ns(object, "median_ns", times->median_ns);
    add_ns(object, "low_ns", times->low_ns);
    add_ns(object, "high_ns", times->high_ns);
    add_ns(object, "average_ns", times->average_ns);
    add_ns(object, "p90_ns", times->p90_ns);
    add_ns(object, "p99_ns", times->p99_ns);
    add_ns(object, "mad_ns", times->mad_ns);
    json_object_object_add(object, "samples", json_object_new_int64(times->n_samples));
    json_object_object_add(object, "preempted", json_object_new_int64(times->n_preempted));
    json_object_object_add(object, "slow", json_object_new_int64(times->n_slow));
    add_text(object, "stopped_by", times->stopped_by);
    json_object *flags = json_object_new_array();
    for (int bit = 0; bit < FLAG_COUNT; bit++)
        if (times->flags & 1u << bit)
            json_object_array_add(flags, json_object_new_string(gb_cli_flag_name(bit)));
    json_object_object_add(object, "flags", flags);
    json_object *visits = json_object_new_array();
    for (size_t i = 0; i < measured->n_visits; i++)
        json_object_array_add(visits, visit_object(measured, &measured->visits[i], settings));
    json_object_object_add(object, "visits", visits);
}

static json_object *partition_object(const gb_partition_result *p, const gb_settings *settings)
{
    json_object *object = json_object_new_object();
    json_object_object_add(object, "id", json_object_new_uint64(p->id));
    add_text(object, "ops", p->ops);
    add_text(object, "pattern", p->pattern);
    add_text(object, "kernels", p->kernels);
    add_text(object, "reason", p->reason);
    add_ns(object, "compile_ns", p->compile_ns);
    add_ns(object, "build_ns", p->build_ns);
    add_ns(object, "first_ns", p->first_ns);
    add_ns(object, "device_ns", p->device_ns);
    add_times(object, &p->measured, &p->times, settings);
    add_number(object, "flops", p->flops);
    add_number(object, "executed_flops", p->executed_flops);
    add_number(object, "bytes", p->bytes);
    json_object_object_add(object, "inplace", json_object_new_uint64(p->n_inplace));
    add_number(object, "margin", p->margin);
    json_object_object_add(object, "memory", p->kernels ? memory_object(&p->memory) : NULL);
    return object;
}

static json_object *whole_object(const gb_case_result *result, const gb_settings *settings)
{
    json_object *object = json_object_new_object();
    double flops = 0;
    for (size_t i = 0; i < result->n_partitions; i++)
        flops += fmax(result->partitions[i].flops, 0);
    add_text(object, "ops", "end to end");
    add_times(object, &result->whole.measured, &result->whole.times, settings);
    add_number(object, "flops", flops);
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

static json_object *mismatch_object(const gb_mismatch *mismatch)
{
    json_object *object = json_object_new_object();
    add_text(object, "comparison", mismatch->comparison);
    json_object_object_add(object, "tensor", json_object_new_uint64(mismatch->tensor_id));
    json_object_object_add(object, "index", json_object_new_int64(mismatch->index));
    add_value(object, "expected", mismatch->expected);
    add_value(object, "got", mismatch->got);
    add_value(object, "bound", mismatch->bound);
    return object;
}

/* A list of the lines of a text. */
static json_object *lines_of(const char *text)
{
    json_object *list = json_object_new_array();
    while (*text) {
        size_t length = strcspn(text, "\n");
        char *line = gb_cli_copy_part(text, length);
        json_object_array_add(list, gb_cli_utf8_json(line));
        free(line);
        text += length + (text[length] != '\0');
    }
    return list;
}

json_object *gb_cli_case_record(const gb_settings *settings, const gb_case *test,
        const gb_case_result *result, const char *messages)
{
    json_object *object = json_object_new_object();
    json_object_object_add(object, "index", json_object_new_uint64(test->index));
    add_text(object, "status", gb_cli_case_status_name(result->status));
    add_text(object, "file", test->file);
    add_text(object, "path", test->path);
    add_text(object, "repro", test->repro);
    add_text(object, "reason", result->reason);
    json_object_object_add(object, "messages", lines_of(messages));
    add_text(object, "expected", result->expected);
    add_text(object, "layouts",
            settings->layouts == LAYOUTS_ANY && !settings->dynamic ? "any" : "strided");
    static const char *const cold[] = {
            [COLD_NONE] = "none", [COLD_WEIGHTS] = "wei", [COLD_ALL] = "all"};
    add_text(object, "cold_cache", cold[settings->cold_cache]);
    json_object_object_add(object, "chosen_layouts", chosen_object(result));
    json_object_object_add(object, "seed", json_object_new_int64(result->seed));
    json_object_object_add(object, "errors", json_object_new_int64(result->n_errors));
    json_object_object_add(object, "compared", json_object_new_int64(result->n_total));
    json_object *mismatches = json_object_new_array();
    for (size_t i = 0; i < result->n_mismatches; i++)
        json_object_array_add(mismatches, mismatch_object(&result->mismatches[i]));
    json_object_object_add(object, "mismatches", mismatches);
    add_digest(object, result);
    add_text(object, "memory_kind", result->memory_kind);
    add_ns(object, "elapsed_ns", result->elapsed_ns);
    add_number(object, "min_ms", result->measured ? result->min_ms : -1);
    add_number(object, "average_ms", result->measured ? result->average_ms : -1);
    json_object_object_add(object, "end_to_end",
            gb_cli_result_has_whole(result) ? whole_object(result, settings) : NULL);
    json_object *partitions = json_object_new_array();
    for (size_t i = 0; i < result->n_partitions; i++)
        json_object_array_add(partitions, partition_object(&result->partitions[i], settings));
    json_object_object_add(object, "partitions", partitions);
    return object;
}

/* ------------------------------------------------------------ reading */

bool gb_cli_record_is_failure(json_object *record)
{
    gb_case_status status;
    bool known = gb_cli_case_status_find(gb_cli_record_text(record, "status"), &status);
    return !json_object_object_get(record, "expected") &&
           (!known || gb_cli_case_status_is_failure(status));
}

int64_t gb_cli_count_option_errors(const gb_results *results)
{
    json_object *summary = gb_cli_results_get(results, "summary");
    return json_object_get_int64(json_object_object_get(summary, "option_errors"));
}

size_t gb_cli_list_count(json_object *list)
{
    return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

const char *gb_cli_list_text(json_object *list, size_t index)
{
    json_object *value = json_object_array_get_idx(list, index);
    return value ? json_object_get_string(value) : "";
}

/* ------------------------------------------------------------ the environment */

static json_object *build_object(void)
{
    json_object *object = json_object_new_object();
    add_text(object, "commit", *gb_cli_build.commit ? gb_cli_build.commit : NULL);
    add_text(object, "compiler", gb_cli_build.compiler);
    add_text(object, "flags", gb_cli_build.flags);
    add_text(object, "type", gb_cli_build.type);
    return object;
}

static void add_size(json_object *object, const char *key, size_t bytes)
{
    json_object_object_add(object, key, bytes ? json_object_new_int64((int64_t)bytes) : NULL);
}

static json_object *cpu_object(void)
{
    json_object *object = json_object_new_object();
    char *model = gb_cli_system_value("/proc/cpuinfo", "model name");
    add_text(object, "model", model);
    free(model);
    size_t caches[3];
    gb_get_caches(caches);
    add_size(object, "l1_bytes", caches[0]);
    add_size(object, "l2_bytes", caches[1]);
    add_size(object, "l3_bytes", caches[2]);
    char *allowed = gb_cli_system_value("/proc/self/status", "Cpus_allowed_list");
    add_text(object, "allowed", allowed);
    free(allowed);
    double load;
    add_number(object, "load", getloadavg(&load, 1) == 1 ? load : -1);
    return object;
}

static json_object *arguments_list(int argc, char *const *argv)
{
    json_object *list = json_object_new_array();
    for (int i = 1; i < argc; i++)
        json_object_array_add(list, gb_cli_utf8_json(argv[i]));
    return list;
}

json_object *gb_cli_environment_record(
        int argc, char *const *argv, const char *engine, const gb_roof *roof)
{
    json_object *object = json_object_new_object();
    const gb_version *version = gb_get_version();
    char text[64];
    snprintf(text, sizeof text, "%d.%d.%d", version->major, version->minor, version->patch);
    add_text(object, "version", text);
    add_text(object, "engine", engine);
    json_object_object_add(object, "build", build_object());
    json_object_object_add(object, "arguments", arguments_list(argc, argv));
    json_object_object_add(object, "cpu", cpu_object());
    struct utsname system;
    if (uname(&system) == 0) {
        add_text(object, "host", system.nodename);
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
    add_number(object, "roof_f16_flops", roof->half_flops > 0 ? roof->half_flops : -1);
    add_number(
            object, "roof_int8_operations", roof->int8_operations > 0 ? roof->int8_operations : -1);
    add_number(object, "roof_bf16_flops", roof->bf16_flops > 0 ? roof->bf16_flops : -1);
    add_number(object, "roof_bytes_per_second", roof->bytes > 0 ? roof->bytes : -1);
    static const char *const caches[GB_ROOF_MEMORY] = {
            "roof_l1_bytes_per_second", "roof_l2_bytes_per_second", "roof_l3_bytes_per_second"};
    for (int level = 0; level < GB_ROOF_MEMORY; level++)
        add_number(object, caches[level],
                roof->cache_bytes[level] > 0 ? roof->cache_bytes[level] : -1);
    add_rates(object, gb_cli_probe_best());
    return object;
}
