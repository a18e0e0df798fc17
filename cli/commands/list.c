/* graph-bench list: cases, ops, patterns, kernels, devices. */
#include "cli/commands/arguments.h"
#include "cli/commands/files.h"
#include "cli/commands/sides.h"
#include "cli/options/message.h"
#include "cli/report/interrupt.h"
#include "cli/report/record.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Becomes the program with one option, which prints the list; only a failure returns. */
static int become(const char *option)
{
    char name[] = "graph-bench";
    char *argument = gb_cli_copy(option), *const argv[] = {name, argument, NULL};
    execv("/proc/self/exe", argv);
    gb_cli_print_error("list", "the program cannot be run again");
    free(argument);
    return EXIT_UNWRITTEN;
}

/* The part of a reproducer line that is the case. */
static void print_case(json_object *record)
{
    static const char border[] = "--graph ";
    const char *repro = gb_cli_record_text(record, "repro"), *found = strstr(repro, border);
    puts(found ? found + strlen(border) : repro);
}

static void count_uses(json_object *record, const char *key, json_object *uses)
{
    json_object *parts = json_object_object_get(record, "partitions");
    for (size_t i = 0; i < gb_cli_list_count(parts); i++) {
        const char *name = gb_cli_record_text(json_object_array_get_idx(parts, i), key);
        int count = json_object_get_int(json_object_object_get(uses, name));
        if (*name)
            json_object_object_add(uses, name, json_object_new_int(count + 1));
    }
}

static int by_name(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

static void print_uses(json_object *uses)
{
    size_t n = 0;
    const char **names =
            gb_cli_realloc(NULL, (size_t)json_object_object_length(uses) + 1, sizeof *names);
    json_object_object_foreach(uses, key, value)
    {
        (void)value;
        names[n++] = key;
    }
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++)
        printf("%6d  %s\n", json_object_get_int(json_object_object_get(uses, names[i])), names[i]);
    free(names);
}

/* What nothing was said of, such as an op that the engine does not support. */
static void tell_failure(json_object *record)
{
    if (gb_cli_list_count(json_object_object_get(record, "messages")) == 0)
        gb_cli_print_error(gb_cli_record_text(record, "file"), "%s (%s)",
                gb_cli_record_text(record, "status"), gb_cli_record_text(record, "reason"));
}

/* The cases, or what their partitions use. False: some have no partitions, or are not known. */
static bool print_list(const gb_results *results, const char *key)
{
    json_object *uses = json_object_new_object();
    bool good = gb_cli_count_option_errors(results) == 0;
    long cursor = 0;
    for (json_object *record; (record = gb_cli_results_next(results, &cursor));
            json_object_put(record)) {
        if (gb_cli_record_is_failure(record)) {
            tell_failure(record);
            good = false;
        }
        if (key)
            count_uses(record, key, uses);
        else
            print_case(record);
    }
    print_uses(uses);
    json_object_put(uses);
    return good;
}

/* What the cases of the arguments are, or what their partitions use; `key` NULL: the cases. */
static int list_of_cases(const char *mode, const char *key, int argc, char **argv)
{
    gb_side self = {.name = NULL};
    gb_text options = {0};
    gb_results *results = NULL;
    char *report = gb_cli_side_report();
    gb_cli_side_add_cases(mode, argc, argv, &options);
    gb_status status =
            report ? gb_cli_side_run(&self, options.data, report, &results) : GB_RUNTIME_ERROR;
    int signal = gb_cli_interrupt_signal(), result = gb_cli_command_failure(status);
    if (signal)
        result = 128 + signal;
    else if (status != GB_SUCCESS)
        gb_cli_print_error("list", "%s", gb_cli_failure());
    else
        result = print_list(results, key) ? EXIT_GOOD : EXIT_CASE_FAILED;
    if (status == GB_SUCCESS && gb_cli_results_check(results) != GB_SUCCESS) {
        gb_cli_print_error("list", "%s", gb_cli_failure());
        result = EXIT_UNWRITTEN;
    }
    gb_cli_results_free(results);
    gb_cli_side_report_free(report);
    gb_cli_text_free(&options);
    return fflush(stdout) == 0 && !ferror(stdout) ? result : EXIT_UNWRITTEN;
}

int gb_cli_command_list(const gb_command *command, int argc, char **argv)
{
    static const struct {
        const char *word, *option, *mode, *key;
    } lists[] = {
            {"cases", NULL, "L", NULL},
            {"ops", "--list-ops", NULL, NULL},
            {"patterns", NULL, "I", "pattern"},
            {"kernels", NULL, "I", "kernels"},
            {"devices", "--list-devices", NULL, NULL},
    };
    for (size_t i = 0; argc > 1 && i < sizeof lists / sizeof lists[0]; i++) {
        if (strcmp(lists[i].word, argv[1]) != 0)
            continue;
        if (lists[i].option && argc == 2)
            return become(lists[i].option);
        if (!lists[i].option && argc > 2)
            return list_of_cases(lists[i].mode, lists[i].key, argc - 2, argv + 2);
    }
    gb_cli_print_error("list", "this takes %s", command->arguments);
    return EXIT_USAGE;
}
