/* Wrong options of batch files, and the cases that they were meant for. */
#include "cli/app/interpreter.h"

#include "cli/options/message.h"

void gb_cli_option_error(gb_interpreter *app, const gb_option *option)
{
    if (app->counting)
        return;
    gb_cli_print_error(gb_cli_text_get(&app->place), "%s", gb_cli_failure());
    if (!app->file) {
        app->usage_error = true;
        return;
    }
    app->report.n_option_errors++;
    gb_option_fault *fault = &app->faults[option ? option - gb_cli_options : NO_OPTION];
    fault->line = app->line;
    gb_cli_text_clear(&fault->place);
    gb_cli_text_add(&fault->place, "%s", gb_cli_text_get(&app->place));
}

const char *gb_cli_fault_of_case(const gb_interpreter *app)
{
    for (size_t i = 0; i < FAULT_COUNT; i++) {
        const gb_option_fault *fault = &app->faults[i];
        bool stays = i < gb_cli_option_count() && gb_cli_options[i].of_case;
        if (fault->place.length > 0 && (stays || fault->line == app->line))
            return fault->place.data;
    }
    return NULL;
}

void gb_cli_forget_fault(gb_interpreter *app, const gb_option *option)
{
    gb_cli_text_clear(&app->faults[option - gb_cli_options].place);
}

void gb_cli_forget_case_faults(gb_interpreter *app)
{
    for (size_t i = 0; i < gb_cli_option_count(); i++)
        if (gb_cli_options[i].of_case)
            gb_cli_forget_fault(app, &gb_cli_options[i]);
}
