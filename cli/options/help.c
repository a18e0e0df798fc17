/* What is written from the option table: --help, --version and the reproducer line. */
#include "cli/options/build.h"
#include "cli/options/option_parsers.h"
#include "cli/options/options.h"

#include <stdio.h>
#include <string.h>

static const char *const group_titles[GROUP_COUNT] = {
        [GROUP_CASES] = "Cases",
        [GROUP_REWRITING] =
                "Changing the graph of the following cases (lists: one case for each combination)",
        [GROUP_RUNNING] = "What is run",
        [GROUP_MEASURING] = "Measuring",
        [GROUP_OUTPUT] = "Output",
        [GROUP_IGNORED] = "Accepted for benchdnn command lines, without effect",
};

static void print_option(const gb_option *option)
{
    char left[64];
    snprintf(left, sizeof(left), "--%s%s%s", option->name, option->argument ? "=" : "",
            option->argument ? option->argument : "");
    /* A long spelling gets a line of its own. */
    printf(strlen(left) < 30 ? "  %-30s" : "  %s\n%32s", left, "");
    printf("%s", option->help);
    if (option->fallback && *option->fallback)
        printf(" [%s]", option->fallback);
    putchar('\n');
}

static void print_ignored(void)
{
    int column = 0;
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        if (gb_cli_options[i].group != GROUP_IGNORED)
            continue;
        int width = (int)strlen(gb_cli_options[i].name) + 3;
        if (column && column + width > 92) {
            putchar('\n');
            column = 0;
        }
        column += printf(column ? " --%s" : "  --%s", gb_cli_options[i].name);
    }
    putchar('\n');
}

void gb_cli_print_help(void)
{
    puts("Usage: graph-bench [OPTION]... --case=FILE [[OPTION]... --case=FILE]...\n"
         "       graph-bench [OPTION]... --batch=FILE\n"
         "\n"
         "Runs deep-learning graphs in the JSON format of oneDNN Graph dumps: checks results "
         "against\n"
         "an independent reference, measures time, shows partitions and kernels. Options are read\n"
         "from left to right and hold until they are set again; a comma separates alternatives.\n"
         "Default values stand in [brackets].");
    for (int group = 0; group < GROUP_COUNT; group++) {
        printf("\n%s:\n", group_titles[group]);
        if (group == GROUP_IGNORED) {
            print_ignored();
            continue;
        }
        for (size_t i = 0; i < gb_cli_option_count(); i++)
            if (gb_cli_options[i].group == (gb_option_group)group)
                print_option(&gb_cli_options[i]);
    }
    puts("\nExamples:\n"
         "  graph-bench --case=op/convolution.json              check one graph\n"
         "  graph-bench --mode=CP -v1 --batch=demo              check and measure a batch of "
         "cases\n"
         "  graph-bench --dt=f32,bf16 --in-shapes=0:8x64*ba,0:16x64 --case=op/relu.json\n"
         "                                                      four cases of one graph\n"
         "\nExit status: 0 all cases good, 1 a case failed, 2 wrong usage, 3 results could not be "
         "written, 128 + N ended by signal N.");
}

void gb_cli_print_version(void)
{
    const gb_version *version = gb_get_version();
    printf("graph-bench %d.%d.%d", version->major, version->minor, version->patch);
    if (*gb_cli_build.commit)
        printf(" (%s)", gb_cli_build.commit);
    putchar('\n');
}

/* One argument, quoted for a shell where it has to be. */
static void add_argument(gb_text *text, const char *name, const char *value)
{
    static const char special[] = " \t\n\"'\\$`&|;<>(){}!#~?";
    if (text->length)
        gb_cli_text_add(text, " ");
    if (!value[strcspn(value, special)]) {
        gb_cli_text_add(text, "--%s=%s", name, value);
        return;
    }
    gb_cli_text_add(text, "'--%s=", name);
    for (; *value; value++)
        gb_cli_text_add(text, *value == '\'' ? "'\\''" : "%c", *value);
    gb_cli_text_add(text, "'");
}

static void add_globals(const gb_settings *settings, gb_text *text)
{
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        const gb_option *option = &gb_cli_options[i];
        const char *value = settings->text[i];
        if (!option->in_repro || !value)
            continue;
        if (option->repeats) {
            for (size_t j = 0; j < settings->n_input_dirs; j++)
                add_argument(text, option->name, settings->input_dirs[j]);
        } else if (settings->canonical || !option->fallback ||
                   strcmp(value, option->fallback) != 0) {
            add_argument(text, option->name, value);
        }
    }
}

void gb_cli_write_arguments(const gb_settings *settings,
        const gb_alternative *const choice[AXIS_COUNT], const char *file, gb_text *arguments)
{
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        const gb_option *option = &gb_cli_options[i];
        if (!option->of_case)
            continue;
        bool two_forms = option->take == gb_cli_parse_option_dt;
        gb_axis first = two_forms ? AXIS_DT : (gb_axis)option->offset;
        gb_axis last = two_forms ? AXIS_DT_IDS : first;
        for (int axis = (int)first; axis <= (int)last; axis++) {
            const char *text = choice[axis]->text;
            const char *fallback = gb_cli_axis_default((gb_axis)axis);
            if (strcmp(text, fallback) != 0 || (settings->canonical && *fallback))
                add_argument(arguments, option->name, text);
        }
    }
    add_argument(arguments, "case", file);
}

void gb_cli_write_repro(const gb_settings *settings, const gb_alternative *const choice[AXIS_COUNT],
        const char *file, gb_text *repro)
{
    add_globals(settings, repro);
    gb_cli_text_add(repro, repro->length ? " --graph " : "--graph ");
    gb_text arguments = {0};
    gb_cli_write_arguments(settings, choice, file, &arguments);
    gb_cli_text_add(repro, "%s", gb_cli_text_get(&arguments));
    gb_cli_text_free(&arguments);
}
