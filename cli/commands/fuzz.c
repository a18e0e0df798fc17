/* graph-bench fuzz: random graphs, each checked in several ways. */
#include "cli/perform/fuzz.h"

#include "cli/commands/arguments.h"
#include "cli/options/exit_status.h"
#include "cli/options/message.h"
#include "cli/options/options.h"
#include "cli/perform/single.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTION_TIME,
    OPTION_GRAPHS,
    OPTION_SEED,
    OPTION_ELEMENTS,
    OPTION_ENGINE,
    OPTION_AGAINST,
    OPTION_DIR
};

const gb_command_option gb_cli_fuzz_options[] = {
        [OPTION_TIME] = {"time", "SECONDS", "60", "how long; 0 = until --graphs"},
        [OPTION_GRAPHS] = {"graphs", "N", "0", "make N graphs at most; 0 = any number"},
        [OPTION_SEED] = {"seed", "N|random", "0", "which graphs; random draws one and prints it"},
        [OPTION_ELEMENTS] = {"elements", "N", "16384",
                "most elements of a tensor; with more, dims of inputs take any length"},
        [OPTION_ENGINE] = {"engine", "cpu|gpu[:INDEX]", "cpu", "as of graph-bench"},
        [OPTION_AGAINST] = {"against", "none|cpu|gpu[:INDEX]", "none",
                "another engine that each graph runs on: both must be right"},
        [OPTION_DIR] = {"repro-dir", "DIR", "fuzz-findings",
                "for graphs and folders of what is found"},
        {0},
};

/* With the parser of the option of graph-bench. */
static gb_status set(gb_settings *settings, const char *name, const char *value)
{
    gb_text word = {0};
    const gb_option *option;
    const char *text;
    gb_cli_text_add(&word, "--%s=%s", name, value);
    gb_status status = gb_cli_option_find(word.data, &option, &text);
    if (status == GB_SUCCESS)
        status = gb_cli_option_set(settings, option, text);
    gb_cli_text_free(&word);
    return status;
}

static gb_status read_number(const char *name, const char *text, double *number)
{
    char *end;
    *number = strtod(text, &end);
    if (end == text || *end || !(*number >= 0) || *number > 1e15)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "--%s: \"%s\" is no number from 0 on", name, text);
    return GB_SUCCESS;
}

/* Digits alone: a fraction that is cut off might leave 0, which means any number. */
static gb_status read_count(
        const char *name, const char *text, double low, double high, double *number)
{
    CLI_TRY(read_number(name, text, number));
    if (text[strspn(text, "0123456789")] || *number < low || *number > high)
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "--%s: \"%s\" is no whole number from %.0f to %.0f", name, text, low, high);
    return GB_SUCCESS;
}

/* Another engine, which this machine must have. */
static gb_status read_against(const char *text, const char **against)
{
    gb_settings settings;
    size_t count = 0;
    if (strcmp(text, "none") == 0)
        return GB_SUCCESS;
    gb_cli_settings_init(&settings);
    gb_status status = set(&settings, "engine", text);
    if (status == GB_SUCCESS)
        gb_engine_get_count(settings.engine_kind, &count);
    bool there = (size_t)settings.engine_index < count;
    gb_cli_settings_free(&settings);
    if (status == GB_SUCCESS && !there)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "--against: there is no engine %s", text);
    *against = text;
    return status;
}

static gb_status read_options(const gb_arguments *arguments, gb_fuzz *fuzz)
{
    double graphs, elements;
    const double most_graphs = 1e15, most_elements = 1 << 30;
    gb_settings *settings = &fuzz->settings;
    if (arguments->n_words > 0)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "\"%s\" is not an option", arguments->words[0]);
    CLI_TRY(read_number("time", arguments->values[OPTION_TIME], &fuzz->seconds));
    CLI_TRY(read_count("graphs", arguments->values[OPTION_GRAPHS], 0, most_graphs, &graphs));
    CLI_TRY(read_count(
            "elements", arguments->values[OPTION_ELEMENTS], 1, most_elements, &elements));
    CLI_TRY(set(settings, "engine", arguments->values[OPTION_ENGINE]));
    CLI_TRY(set(settings, "seed", arguments->values[OPTION_SEED]));
    CLI_TRY(read_against(arguments->values[OPTION_AGAINST], &fuzz->against));
    /* On a GPU drivers compile programs, which may take a second for each of a hundred ops. */
    bool compiles = settings->engine_kind == GB_ENGINE_GPU ||
                    (fuzz->against && strncmp(fuzz->against, "gpu", 3) == 0);
    CLI_TRY(set(settings, "case-timeout", compiles ? "200s" : "20s"));
    fuzz->graphs = (uint64_t)graphs;
    fuzz->elements = (int64_t)elements;
    fuzz->seed = (uint64_t)settings->seed;
    fuzz->folder = arguments->values[OPTION_DIR];
    if (strcmp(arguments->values[OPTION_SEED], "random") == 0)
        printf("seed: %" PRIu64 "\n", fuzz->seed);
    return GB_SUCCESS;
}

int gb_cli_command_fuzz(const gb_command *command, int argc, char **argv)
{
    gb_arguments arguments;
    gb_fuzz fuzz = {.seconds = 0};
    gb_fuzz_result result = {.graphs = 0};
    gb_cli_settings_init(&fuzz.settings);
    int exit_status = EXIT_USAGE;
    if (gb_cli_arguments_read(command, argc, argv, false, &arguments)) {
        if (read_options(&arguments, &fuzz) != GB_SUCCESS) {
            gb_cli_print_error(NULL, "fuzz: %s", gb_cli_failure());
        } else if (gb_cli_fuzz(&fuzz, &result) != GB_SUCCESS) {
            gb_cli_print_error(NULL, "fuzz: %s", gb_cli_failure());
            exit_status = EXIT_UNWRITTEN;
        } else {
            printf("graphs:%" PRIu64 " near-misses:%" PRIu64 " cases:%" PRIu64 " refused:%" PRIu64
                   " findings:%zu repeated:%zu (%.0f graphs per second)\n",
                    result.graphs, result.near_misses, result.cases, result.refused,
                    result.findings, result.repeated,
                    (double)result.graphs / (result.seconds > 0 ? result.seconds : 1));
            exit_status = result.findings ? EXIT_CASE_FAILED : EXIT_GOOD;
        }
    }
    gb_cli_arguments_free(&arguments);
    gb_cli_settings_free(&fuzz.settings);
    if (fflush(stdout) != 0)
        return EXIT_UNWRITTEN;
    return result.signal ? 128 + (int)result.signal : exit_status;
}
