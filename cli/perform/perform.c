/* Performing one case: load, rewrite, run under each seed. */
#include "cli/perform/perform.h"

#include "cli/case/filter.h"
#include "cli/options/message.h"
#include "cli/run/stage.h"

#include <graphbench/graphbench_tools.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void gb_cli_performer_free(gb_performer *performer)
{
    gb_cli_session_free(&performer->session);
    *performer = (gb_performer){0};
}

/* In the form that the name of the file asks for. */
static gb_status save_graph(const gb_settings *settings, const gb_case *test)
{
    const char *path = settings->save_graph_file;
    const char *extension = path ? strrchr(path, '.') : NULL;
    if (extension && strcmp(extension, ".gbt") == 0)
        LIB_TRY(gb_graph_save_text(test->graph, path));
    else if (path)
        LIB_TRY(gb_graph_save_json(test->graph, path));
    return GB_SUCCESS;
}

/* What --print and -v20 ask for. Where they never asked, GB_PASSES counts. */
static void set_pass_mode(gb_performer *performer, const gb_settings *settings)
{
    unsigned mode = settings->print;
    if (settings->verbose >= 20 && !getenv("GB_PASSES"))
        mode |= GB_PASS_PRINT;
    performer->sets_pass_mode = performer->sets_pass_mode || mode;
    if (performer->sets_pass_mode)
        gb_set_pass_mode(mode);
}

/* Loads and rewrites; *go_on is false when that came to a verdict. */
static gb_status prepare(
        const gb_settings *settings, gb_case *test, gb_case_result *result, bool *go_on)
{
    const char *stage = "Cannot load graph";
    int64_t begin = gb_cli_now_ns();
    *go_on = false;
    gb_cli_stage_enter(PHASE_LOAD, NULL);
    gb_status status = gb_cli_case_load(test);
    result->loaded = test->graph != NULL;
    if (status == GB_SUCCESS) {
        stage = "Rewriter failed";
        status = gb_cli_case_rewrite(test);
    }
    if (status == GB_SUCCESS) {
        status = gb_cli_case_verify(test);
        stage = status == GB_INVALID_ARGUMENTS ? NULL : stage;
    }
    if (status == GB_SUCCESS) {
        stage = "Cannot save graph";
        status = save_graph(settings, test);
    }
    result->phase_ns[PHASE_LOAD] = gb_cli_now_ns() - begin;
    if (status != GB_SUCCESS && !stage) {
        gb_cli_result_set(result, CASE_INVALID_ARGUMENTS, "%s", gb_cli_failure());
        return GB_SUCCESS;
    }
    if (status != GB_SUCCESS) {
        gb_cli_result_set(result, CASE_UNTESTED_FAILED, "%s", stage);
        return status;
    }
    bool fits;
    CLI_TRY(gb_cli_filter_fits_ops(settings, test, &fits));
    result->left_out = !fits;
    *go_on = fits;
    return GB_SUCCESS;
}

/* Of two results of a case under different seeds, which one to tell of. Verdicts that no data can
 * change come first. */
static int severity(const gb_case_result *result)
{
    switch (result->status) {
    case CASE_PASSED:
    case CASE_EXECUTED:
        return 0;
    case CASE_MISTRUSTED:
        return 1;
    default:
        return 2;
    }
}

/* Times, layouts and digest stay those of the first seed, the verdict is the worst. */
static void join_seed(gb_case_result *into, gb_case_result *run)
{
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        into->phase_ns[phase] += run->phase_ns[phase];
    into->elapsed_ns += run->elapsed_ns;
    for (size_t i = 0; i < into->n_partitions && i < run->n_partitions; i++)
        into->partitions[i].margin = fmax(into->partitions[i].margin, run->partitions[i].margin);
    if (severity(run) <= severity(into))
        return;
    char *reason = into->reason;
    into->status = run->status;
    into->reason = run->reason;
    run->reason = reason;
    into->seed = run->seed;
    into->n_errors = run->n_errors;
    into->n_total = run->n_total;
    into->n_mismatches = run->n_mismatches;
    memcpy(into->mismatches, run->mismatches, sizeof run->mismatches);
}

/* Only checks and plain runs profit from other data; what is shown is shown once. */
static gb_status run_seeds(
        gb_performer *performer, const gb_settings *settings, gb_case *test, gb_case_result *result)
{
    bool repeats = settings->mode & (MODE_CORRECTNESS | MODE_RUN);
    gb_settings one = *settings;
    result->seed = settings->seed;
    gb_status status = gb_cli_run_case(&performer->session, settings, test, result);
    one.mode &= ~(unsigned)(MODE_PERFORMANCE | MODE_FAST);
    one.explain = EXPLAIN_NONE;
    for (int64_t i = 1; status == GB_SUCCESS && repeats && i < settings->seeds; i++) {
        gb_case_result run = {0};
        if (severity(result) > 1)
            break;
        run.seed = one.seed = settings->seed + i;
        gb_cli_stage_set_seed(one.seed);
        status = gb_cli_run_case(&performer->session, &one, test, &run);
        join_seed(result, &run);
        if (status != GB_SUCCESS)
            result->seed = one.seed;
        gb_cli_result_free(&run);
    }
    return status;
}

gb_status gb_cli_perform(gb_performer *performer, const gb_settings *settings, gb_case *test,
        const char *refusal, gb_case_result *result)
{
    bool go_on;
    result->seed = settings->seed;
    CLI_TRY(prepare(settings, test, result, &go_on));
    if (!go_on)
        return GB_SUCCESS;
    if (settings->verbose >= 7)
        gb_cli_print_graph(test->graph);
    if (settings->mode & MODE_LIST) {
        gb_cli_result_set(result, CASE_LISTED, NULL);
        return GB_SUCCESS;
    }
    set_pass_mode(performer, settings);
    if (refusal) {
        gb_cli_result_set(result, CASE_UNTESTED_FAILED, "%s", refusal);
        return GB_SUCCESS;
    }
    int64_t begin = gb_cli_now_ns();
    gb_status status = run_seeds(performer, settings, test, result);
    result->elapsed_ns = gb_cli_now_ns() - begin;
    if (status != GB_SUCCESS)
        gb_cli_result_set(result, CASE_UNTESTED_FAILED, "Cannot run");
    return status;
}

gb_status gb_cli_perform_visit(
        gb_performer *performer, const gb_settings *settings, gb_case *test, gb_case_result *result)
{
    gb_settings measured = *settings;
    measured.mode &= ~(unsigned)MODE_CORRECTNESS;
    measured.explain = EXPLAIN_NONE;
    measured.golden_dir = measured.save_tensors_dir = NULL;
    if (performer->sets_pass_mode)
        gb_set_pass_mode(GB_PASS_NONE);
    result->seed = settings->seed;
    CLI_TRY(gb_cli_case_load(test));
    CLI_TRY(gb_cli_case_rewrite(test));
    return gb_cli_run_case(&performer->session, &measured, test, result);
}
