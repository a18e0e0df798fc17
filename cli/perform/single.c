/* A case that the arguments of a subcommand name. */
#include "cli/perform/single.h"

#include "cli/case/batch.h"
#include "cli/options/message.h"
#include "cli/options/options.h"
#include "cli/report/report.h"

#include <stdlib.h>
#include <string.h>

static gb_status read_words(
        size_t n_words, char *const *words, gb_settings *settings, const char **file)
{
    for (size_t i = 0; i < n_words; i++) {
        const gb_option *option;
        const char *value;
        CLI_TRY(gb_cli_option_find(words[i], &option, &value));
        if (option->action == ACTION_CASE) {
            if (*file)
                return gb_cli_fail(GB_INVALID_ARGUMENTS, "one --case, please");
            *file = value;
        } else if (option->action == ACTION_RESET) {
            gb_cli_settings_reset(settings);
        } else if (option->take) {
            if (!value && option->value_optional)
                value = "1";
            CLI_TRY(gb_cli_option_set(settings, option, value));
        } else if (option->action != ACTION_NONE && option->action != ACTION_IGNORE) {
            return gb_cli_fail(GB_INVALID_ARGUMENTS, "--%s names no case", option->name);
        }
    }
    return *file ? GB_SUCCESS : gb_cli_fail(GB_INVALID_ARGUMENTS, "--case=FILE is missing");
}

gb_status gb_cli_single_read(size_t n_words, char *const *words, gb_errand *errand)
{
    const char *file = NULL;
    *errand = (gb_errand){.visit = false};
    gb_cli_settings_init(&errand->settings);
    gb_settings *settings = &errand->settings;
    CLI_TRY(read_words(n_words, words, settings, &file));
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        errand->test.choice[axis] = &settings->axes[axis].items[0];
        if (settings->axes[axis].count != 1)
            return gb_cli_fail(
                    GB_INVALID_ARGUMENTS, "one case, please: a list has several alternatives");
    }
    gb_search search = {.count = 0};
    gb_text repro = {0}, arguments = {0};
    gb_cli_write_repro(settings, errand->test.choice, file, &repro);
    gb_cli_write_arguments(settings, errand->test.choice, file, &arguments);
    errand->texts[0] = gb_cli_copy(file);
    errand->texts[1] = gb_cli_search(&search, settings, file);
    errand->texts[2] = repro.data;
    errand->texts[3] = arguments.data;
    errand->test.file = errand->texts[0];
    errand->test.path = errand->texts[1];
    errand->test.repro = errand->texts[2];
    errand->test.arguments = errand->texts[3];
    gb_cli_search_free(&search);
    return GB_SUCCESS;
}

void gb_cli_set_option(gb_settings *settings, const char *name, const char *value)
{
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        const gb_option *option = &gb_cli_options[i];
        if (strcmp(option->name, name) != 0)
            continue;
        if (value) {
            gb_cli_option_set(settings, option, value);
            continue;
        }
        memcpy((char *)settings + option->offset, &(const char *){NULL}, sizeof(const char *));
        free(settings->text[i]);
        settings->text[i] = NULL;
    }
}

void gb_cli_plain_settings(const gb_settings *from, gb_settings *to)
{
    static const char *const silent[][2] = {{"blame", "false"}, {"verbose", "0"},
            {"explain", "none"}, {"print", "none"}, {"save-tensors", NULL}, {"save-graph", NULL},
            {"golden", NULL}, {"load-tensors", NULL}};
    const gb_alternative *choice[AXIS_COUNT];
    gb_settings none;
    gb_cli_settings_init(&none);
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        choice[axis] = &none.axes[axis].items[0];
    gb_cli_settings_copy(from, choice, to);
    gb_cli_settings_free(&none);
    to->in_batch = false;
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        gb_cli_set_option(to, silent[i][0], silent[i][1]);
}

char *gb_cli_failure_class(const gb_case_result *result)
{
    gb_text text = {0};
    gb_cli_text_add(&text, "%s", gb_cli_case_status_name(result->status));
    if (result->status == CASE_CRASHED && result->reason)
        gb_cli_text_add(&text, " (%.*s)", (int)strcspn(result->reason, ","), result->reason);
    if (result->status == CASE_UNTESTED_FAILED && result->reason)
        gb_cli_text_add(&text, " (%s)", result->reason);
    return text.data;
}
