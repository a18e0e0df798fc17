/* The line that a measured case prints. */
#include "cli/report/perf_line.h"

#include "cli/options/perf_template.h"

#include <stdio.h>

void gb_cli_print_perf_header(const gb_settings *settings)
{
    const char *at = gb_cli_perf_template_text(settings->perf_template);
    gb_perf_part part;
    printf("Template entries: %s\n", at);
    while (*at && gb_cli_perf_template_next(&at, &part) == GB_SUCCESS) {
        if (part.mode)
            fputs(part.mode == '-' ? "min_" : part.mode == '0' ? "avg_" : "max_", stdout);
        printf("%.*s", (int)part.length, part.text);
    }
    putchar('\n');
}

/* What is known of a case as a whole: times end to end of several partitions, sums of all else. */
typedef struct totals {
    double ops, bytes, compile_ms, max_ms;
} totals;

double gb_cli_perf_min_ms(const gb_case_result *result)
{
    return gb_cli_result_has_whole(result) ? (double)result->whole.times.min_ns * 1e-6
                                           : result->min_ms;
}

double gb_cli_perf_average_ms(const gb_case_result *result)
{
    return gb_cli_result_has_whole(result) ? (double)result->whole.times.average_ns * 1e-6
                                           : result->average_ms;
}

static totals sum(const gb_case_result *result)
{
    totals t = {0};
    for (size_t i = 0; i < result->n_partitions; i++) {
        const gb_partition_result *p = &result->partitions[i];
        t.ops += p->flops > 0 ? p->flops : 0;
        t.bytes += p->bytes > 0 ? p->bytes : 0;
        t.compile_ms += p->compile_ns > 0 ? (double)p->compile_ns * 1e-6 : 0;
        t.max_ms += p->times.max_ns > 0 ? (double)p->times.max_ns * 1e-6 : 0;
    }
    if (gb_cli_result_has_whole(result))
        t.max_ms = (double)result->whole.times.max_ns * 1e-6;
    return t;
}

static void print_kernels(const gb_case_result *result)
{
    for (size_t i = 0; i < result->n_partitions; i++)
        if (result->partitions[i].kernels)
            printf("%s%s", i ? ";" : "", result->partitions[i].kernels);
}

static double rate(double work, double ms)
{
    return ms > 0 ? work / ms * 1e3 : 0;
}

static void print_part(const gb_perf_part *part, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result)
{
    totals t = sum(result);
    double ms = part->mode == '0'   ? gb_cli_perf_average_ms(result)
                : part->mode == '+' ? t.max_ms
                                    : gb_cli_perf_min_ms(result);
    double value = 0;
    switch (part->token) {
    case PERF_LITERAL:
        printf("%.*s", (int)part->length, part->text);
        return;
    case PERF_DESC:
        fputs(test->arguments, stdout);
        return;
    case PERF_DRIVER:
        fputs("graph", stdout);
        return;
    case PERF_ENGINE:
        fputs(gb_engine_kind_name(settings->engine_kind), stdout);
        return;
    case PERF_IDX:
        printf("%zu", test->index);
        return;
    case PERF_IMPL:
        print_kernels(result);
        return;
    case PERF_PRB:
        fputs(test->repro, stdout);
        return;
    case PERF_BW:
        value = rate(t.bytes, ms);
        break;
    case PERF_CTIME:
        value = t.compile_ms;
        break;
    case PERF_FLOPS:
        value = rate(t.ops, ms);
        break;
    case PERF_IOBYTES:
        value = t.bytes;
        break;
    case PERF_OPS:
        value = t.ops;
        break;
    case PERF_TIME:
        value = ms;
        break;
    }
    printf("%.6g", value / part->unit);
}

void gb_cli_print_perf_line(
        const gb_settings *settings, const gb_case *test, const gb_case_result *result)
{
    const char *at = gb_cli_perf_template_text(settings->perf_template);
    gb_perf_part part;
    while (*at && gb_cli_perf_template_next(&at, &part) == GB_SUCCESS)
        print_part(&part, settings, test, result);
    putchar('\n');
}
