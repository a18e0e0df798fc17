/* What each word of the command line and of batch files does. */
#include "cli/app/interpreter.h"

#include "cli/commands/commands.h"
#include "cli/options/message.h"
#include "cli/options/option_parsers.h"
#include "cli/report/op_cells.h"

#include <graphbench/graphbench_tools.h>
#include <stdio.h>
#include <string.h>

static void warn_ignored(gb_interpreter *app, const gb_option *option)
{
    bool *warned = &app->warned[option - gb_cli_options];
    if (!*warned && !app->checking)
        gb_cli_print_warning(gb_cli_text_get(&app->place), "--%s has no effect here", option->name);
    *warned = *warned || !app->checking;
}

static void print_help(void)
{
    gb_cli_print_help();
    puts("\nSubcommands:");
    const gb_command *command;
    for (unsigned i = 0; (command = gb_cli_command_at(i)); i++)
        printf("  graph-bench %s %s\n      %s\n", command->name, command->arguments, command->help);
}

/* The schema of every op, and what runs of it. */
static void list_ops(gb_interpreter *app)
{
    bool all_ran = gb_op_table_write("-") == GB_SUCCESS;
    if (all_ran &&
            gb_cli_write_op_cells(&app->performer.session, &app->settings, &all_ran) != GB_SUCCESS)
        gb_cli_print_error(NULL, "%s", gb_cli_failure());
    app->report.n_option_errors += !all_ran;
}

static void end_with(gb_interpreter *app, gb_option_action action)
{
    app->ended = true;
    if (app->checking)
        return;
    if (action == ACTION_HELP)
        print_help();
    else if (action == ACTION_VERSION)
        gb_cli_print_version();
    else if (action == ACTION_LIST_DEVICES)
        gb_cli_list_devices();
    else
        list_ops(app);
}

static void reset(gb_interpreter *app)
{
    gb_cli_settings_reset(&app->settings);
    gb_cli_forget_case_faults(app);
}

/* What an option names is read at once: what cannot be read is wrong usage. */
static gb_status read_named_files(gb_interpreter *app)
{
    const char *path = app->settings.expect_file;
    if (app->counting)
        return GB_SUCCESS;
    if (path && app->expectations.n == 0) /* there is one for the run */
        CLI_TRY(gb_cli_expectations_read(path, &app->expectations));
    CLI_TRY(gb_cli_shards_read(&app->settings, &app->shards));
    app->report.shard_division = app->shards.division;
    return gb_cli_selection_read(&app->settings, &app->selection);
}

void gb_cli_interpret(gb_interpreter *app, const char *token)
{
    const gb_option *option;
    const char *value;
    if (gb_cli_option_find(token, &option, &value) != GB_SUCCESS) {
        gb_cli_option_error(app, option);
        return;
    }
    switch (option->action) {
    case ACTION_CASE:
        gb_cli_run_cases(app, value);
        return;
    case ACTION_BATCH:
        gb_cli_read_batch(app, value);
        return;
    case ACTION_RESET:
        reset(app);
        return;
    case ACTION_HELP:
    case ACTION_VERSION:
    case ACTION_LIST_OPS:
    case ACTION_LIST_DEVICES:
        end_with(app, option->action);
        return;
    case ACTION_IGNORE:
        warn_ignored(app, option);
        return;
    case ACTION_NONE:
        break;
    }
    if (!option->take)
        return;
    if (!value && option->value_optional)
        value = "1";
    gb_status status = option->writes ? gb_cli_set_output(app, option, value)
                                      : gb_cli_option_set(&app->settings, option, value);
    if (app->checking && !app->counting && app->has_cases &&
            option->take == gb_cli_parse_option_shard)
        gb_cli_print_warning(gb_cli_text_get(&app->place),
                "--shard stands behind cases: they run in every shard");
    if (status == GB_SUCCESS && option->once) {
        status = read_named_files(app);
        if (status != GB_SUCCESS)
            gb_cli_set_option(&app->settings, option->name, NULL);
    }
    if (status != GB_SUCCESS)
        gb_cli_option_error(app, option);
    else
        gb_cli_forget_fault(app, option);
    if (status == GB_SUCCESS && option->take == gb_cli_take_seed && !app->checking &&
            strcmp(value, "random") == 0)
        printf("seed: %lld\n", (long long)app->settings.seed);
}
