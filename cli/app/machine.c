/* The look at the machine in front of cases that are measured. */
#include "cli/app/interpreter.h"

#include "cli/run/known_machine.h"

/* Do reports tell of the machine, too? Beside the shortest measurements it would take most of the
 * time to look at it. */
static bool reports_machine(const gb_settings *settings)
{
    return gb_cli_output_is_wanted(settings) && gb_cli_budget_ms(settings) >= 100;
}

/* Rates are told beside the roofs of what the case runs on, measured in the same run. */
static void measure_roof(gb_interpreter *app)
{
    const gb_settings *settings = &app->settings;
    bool wanted = settings->mode & MODE_PERFORMANCE &&
                  (settings->verbose >= 1 || reports_machine(settings));
    bool known = app->has_roof && app->roof_kind == settings->engine_kind &&
                 app->roof_index == settings->engine_index;
    if (!wanted || known)
        return;
    app->has_roof = true;
    app->roof_kind = settings->engine_kind;
    app->roof_index = settings->engine_index;
    gb_cli_roof_of(settings->engine_kind, (size_t)settings->engine_index, &app->report.roof);
}

static int threads_of(const gb_settings *settings)
{
    return settings->threads ? (int)settings->threads : gb_cli_default_threads();
}

/* Only several visits can wait for the machine's fast state. */
static void recall_machine(gb_interpreter *app)
{
    const gb_settings *settings = &app->settings;
    bool wanted = settings->engine_kind == GB_ENGINE_CPU && gb_cli_visit_count(settings) > 1;
    if (!wanted || app->known_threads == threads_of(settings))
        return;
    app->known_threads = threads_of(settings);
    gb_cli_known_machine_recall(app->known_threads);
}

/* The doctor looks once, in front of the first measurement that is long enough to be worth it. */
static void examine_machine(gb_interpreter *app)
{
    const gb_settings *settings = &app->settings;
    if (!(settings->mode & MODE_PERFORMANCE) || app->report.diagnosis.n > 0 ||
            !(settings->strict_env || reports_machine(settings)))
        return;
    gb_cli_diagnose(threads_of(settings), &app->report.diagnosis);
}

/* The name of the first check that --strict-env does not let pass, or NULL. */
static const gb_check *forbidding_check(const gb_interpreter *app)
{
    const gb_diagnosis *diagnosis = &app->report.diagnosis;
    if (!app->settings.strict_env || !(app->settings.mode & MODE_PERFORMANCE))
        return NULL;
    for (size_t i = 0; i < diagnosis->n; i++)
        if (diagnosis->checks[i].grade == CHECK_BAD)
            return &diagnosis->checks[i];
    return NULL;
}

const char *gb_cli_prepare_machine(gb_interpreter *app)
{
    examine_machine(app);
    const gb_check *bad = forbidding_check(app);
    gb_cli_text_clear(&app->refusal);
    if (!bad) {
        recall_machine(app);
        measure_roof(app);
        return NULL;
    }
    gb_cli_text_add(&app->refusal, "--strict-env: %s: %s", bad->name, bad->finding);
    return app->refusal.data;
}

void gb_cli_raise_roof(gb_interpreter *app)
{
    if (app->has_roof && app->roof_kind == GB_ENGINE_CPU &&
            app->report.roof.flops < gb_cli_probe_best().flops)
        app->report.roof.flops = gb_cli_probe_best().flops;
}
