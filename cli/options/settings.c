/* Defaults of the settings and the work of --reset. */
#include "cli/options/settings.h"

#include "cli/options/options.h"

#include <stdlib.h>
#include <string.h>

void gb_cli_settings_init(gb_settings *settings)
{
    *settings = (gb_settings){0};
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        gb_cli_alternatives_default((gb_axis)axis, &settings->axes[axis]);
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        const gb_option *option = &gb_cli_options[i];
        /* A row's own default is always legal. */
        if (option->take && option->fallback && !option->of_case)
            gb_cli_option_set(settings, option, NULL);
    }
    settings->has_limit = false;
}

void gb_cli_settings_free(gb_settings *settings)
{
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        gb_cli_alternatives_free((gb_axis)axis, &settings->axes[axis]);
    for (size_t i = 0; i < settings->n_input_dirs; i++)
        free(settings->input_dirs[i]);
    for (size_t i = 0; i < settings->n_filters; i++)
        free(settings->filters[i]);
    for (size_t i = 0; i < OPTION_LIMIT; i++)
        free(settings->text[i]);
}

void gb_cli_settings_reset(gb_settings *settings)
{
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        gb_cli_alternatives_free((gb_axis)axis, &settings->axes[axis]);
        gb_cli_alternatives_default((gb_axis)axis, &settings->axes[axis]);
    }
}

const char *gb_cli_isa_word(gb_isa_limit isa)
{
    static const char *const words[] = {[ISA_MACHINE] = "machine",
            [ISA_BASELINE] = "baseline",
            [ISA_AVX2] = "avx2",
            [ISA_AVX512] = "avx512",
            [ISA_AMX] = "amx"};
    return words[isa];
}

void gb_cli_settings_copy(const gb_settings *settings,
        const gb_alternative *const choice[AXIS_COUNT], gb_settings *copy)
{
    gb_cli_settings_init(copy);
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        const gb_option *option = &gb_cli_options[i];
        /* What was taken once is legal. */
        if (option->take && !option->of_case && !option->repeats && settings->text[i])
            gb_cli_option_set(copy, option, settings->text[i]);
    }
    copy->in_batch = settings->in_batch;
    copy->has_limit = settings->has_limit;
    for (; copy->n_filters < settings->n_filters; copy->n_filters++)
        copy->filters[copy->n_filters] = gb_cli_copy(settings->filters[copy->n_filters]);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        gb_alternatives parsed;
        if (strcmp(choice[axis]->text, copy->axes[axis].items[0].text) == 0 ||
                gb_cli_alternatives_parse((gb_axis)axis, choice[axis]->text, &parsed) != GB_SUCCESS)
            continue;
        gb_cli_alternatives_free((gb_axis)axis, &copy->axes[axis]);
        copy->axes[axis] = parsed;
    }
}

double gb_cli_budget_ms(const gb_settings *settings)
{
    return settings->mode & MODE_FAST ? 10 : settings->max_ms;
}
