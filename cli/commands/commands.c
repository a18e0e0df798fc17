/* The table of subcommands, and their help. */
#include "cli/commands/commands.h"

#include "cli/options/exit_status.h"
#include "cli/options/message.h"
#include "cli/options/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const gb_command commands[] = {
        {"report", "[OPTION]... REPORT -o FILE",
                "write a report of --json in another form: FILE ends in .html, .xml (JUnit), .csv "
                "or .json",
                gb_cli_report_options, gb_cli_command_report, .operands = OPERANDS_FILES},
        {"merge", "[OPTION]... REPORT... -o FILE",
                "join the reports of shards, or of several runs, and say what is missing or "
                "contradictory",
                gb_cli_merge_options, gb_cli_command_merge, .operands = OPERANDS_FILES},
        {"compare", "[OPTION]... BASE NEW",
                "tell what became slower, faster, wrong or right from one report to the other",
                gb_cli_compare_options, gb_cli_command_compare, .operands = OPERANDS_FILES},
        {"ab", "[OPTION]... [SIDE A] -- [SIDE B] -- CASES",
                "measure two programs, sets of options or instruction sets in turn; a side is "
                "[NAME=VALUE]... [PROGRAM] [OPTION]...",
                gb_cli_ab_options, gb_cli_command_ab, .operands = OPERANDS_FILES,
                .takes_cases = true},
        {"history", "add FILE REPORT... | report FILE | export FILE",
                "keep results in an SQLite file and find steps in their times",
                gb_cli_history_options, gb_cli_command_history, .operands = OPERANDS_FILES},
        {"env", "[OPTION]...", "tell what this machine is, and whether times of it can be trusted",
                gb_cli_env_options, gb_cli_command_env, .operands = OPERANDS_NONE},
        {"roof", "[OPTION]...",
                "measure the peaks of this machine's instructions, and the bandwidth of its caches "
                "and of memory, or those of an OpenCL device",
                gb_cli_roof_options, gb_cli_command_roof, .operands = OPERANDS_NONE},
        {"list", "ops | devices | cases ARGUMENTS | patterns ARGUMENTS | kernels ARGUMENTS",
                "print the op set, devices, the cases that arguments name, or what patterns and "
                "kernels these use, with counts",
                NULL, gb_cli_command_list, .operands = OPERANDS_NONE, .takes_cases = true},
        {"completion", "bash | zsh",
                "print a script that completes commands and options in a shell", NULL,
                gb_cli_command_completion, .operands = OPERANDS_NONE},
        {"reduce", "[OPTION]... --case=FILE -o FILE",
                "find a smaller graph that fails as the case does; options are those of "
                "graph-bench",
                gb_cli_reduce_options, gb_cli_command_reduce, .operands = OPERANDS_NONE,
                .takes_cases = true},
        {"fuzz", "[OPTION]...",
                "make random graphs, check each in several ways, and reduce those that fail",
                gb_cli_fuzz_options, gb_cli_command_fuzz, .operands = OPERANDS_NONE},
        {"repro", "FOLDER",
                "run the case of a folder of --repro-dir again, and say whether it fails in the "
                "same way",
                NULL, gb_cli_command_repro, .operands = OPERANDS_FOLDERS},
        {"worker", "SOCKET STAGE PARENT",
                "run the cases that another graph-bench sends; --isolate starts it, nobody else",
                NULL, gb_cli_command_worker, .operands = OPERANDS_NONE},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

const gb_command *gb_cli_command_at(unsigned index)
{
    return index < COMMANDS ? &commands[index] : NULL;
}

/* The row whose name is like the word; NULL: the word is an option, a file or something else. */
static const gb_command *find_nearest(const char *word)
{
    const gb_command *nearest = NULL;
    size_t best = strlen(word) / 2 + 1;
    bool is_name = word[0] != '-' && !strpbrk(word, "./") && strcmp(word, "run") != 0;
    for (unsigned i = 0; i < COMMANDS && is_name; i++) {
        size_t distance = gb_cli_edit_distance(word, commands[i].name);
        if (distance >= best)
            continue;
        best = distance;
        nearest = &commands[i];
    }
    return nearest;
}

static int tell_nearest(const gb_command *command, int argc, char **argv)
{
    (void)command;
    (void)argc;
    gb_cli_print_error(NULL, "\"%.80s\" is no command; did you mean graph-bench %s?", argv[0],
            find_nearest(argv[0])->name);
    return EXIT_USAGE;
}

/* What a misspelt name runs. It has no help. */
static const gb_command misspelt = {.run = tell_nearest};

const gb_command *gb_cli_command_find(const char *name)
{
    for (unsigned i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return find_nearest(name) ? &misspelt : NULL;
}

static void print_help(const gb_command *command)
{
    printf("Usage: graph-bench %s %s\n\n%s.\n", command->name, command->arguments, command->help);
    const gb_command_option *option = command->options;
    if (option && option->name)
        puts("\nOptions:");
    for (; option && option->name; option++) {
        char left[64];
        bool is_short = strlen(option->name) == 1;
        snprintf(left, sizeof left, "%s%s%s%s", is_short ? "-" : "--", option->name,
                !option->argument ? ""
                : is_short        ? " "
                                  : "=",
                option->argument ? option->argument : "");
        /* A long spelling gets a line of its own. */
        printf(strlen(left) < 22 ? "  %-22s" : "  %s\n%24s", left, "");
        printf("%s", option->help);
        if (option->fallback)
            printf(" [%s]", option->fallback);
        putchar('\n');
    }
}

int gb_cli_command_run(const gb_command *command, int argc, char **argv)
{
    for (int i = 1; command->help && i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(command);
            return fflush(stdout) == 0 ? EXIT_GOOD : EXIT_UNWRITTEN;
        }
    return command->run(command, argc, argv);
}
