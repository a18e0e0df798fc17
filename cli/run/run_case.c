/* Running one case: from the loaded graph to the verdict and the times. */
#include "cli/case/filter.h"
#include "cli/options/message.h"
#include "cli/run/blame.h"
#include "cli/run/device_time.h"
#include "cli/run/evict.h"
#include "cli/run/explain.h"
#include "cli/run/fill.h"
#include "cli/run/golden.h"
#include "cli/run/held_memory.h"
#include "cli/run/session.h"
#include "cli/run/stage.h"
#include "cli/run/take_times.h"
#include "cli/run/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gb_cli_result_set(gb_case_result *result, gb_case_status status, const char *format, ...)
{
    result->status = status;
    free(result->reason);
    result->reason = NULL;
    if (!format)
        return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    result->reason = gb_cli_copy(text);
}

void gb_cli_result_free(gb_case_result *result)
{
    for (size_t i = 0; i < result->n_partitions; i++) {
        free(result->partitions[i].ops);
        free(result->partitions[i].pattern);
        free(result->partitions[i].kernels);
        free(result->partitions[i].reason);
        gb_cli_measurement_free(&result->partitions[i].measured);
    }
    free(result->partitions);
    gb_cli_measurement_free(&result->whole.measured);
    free(result->chosen);
    free(result->reason);
    *result = (gb_case_result){0};
}

/* Adds the time since *since to a phase and moves *since on. */
static void book(gb_workload *work, gb_phase phase, int64_t *since)
{
    int64_t now = gb_cli_now_ns();
    work->result->phase_ns[phase] += now - *since;
    *since = now;
}

static gb_status fill_plain(const gb_workload *work, gb_memory *memory)
{
    if (work->settings->load_tensors_dir) {
        if (!gb_cli_has_input_file(work, memory) && gb_cli_fill_from_model(work->graph, memory))
            return GB_SUCCESS;
        return gb_cli_load_input(work, memory);
    }
    LIB_TRY(gb_cli_fill(work->graph, work->settings->fill, work->settings->seed, memory));
    return GB_SUCCESS;
}

/* The data as rows first, which the library brings into blocks. */
static gb_status fill_opaque(const gb_workload *work, gb_memory *memory)
{
    gb_memory rows = {0};
    gb_logical_tensor dense;
    LIB_TRY(gb_cli_describe_dense(&memory->tensor, &dense));
    LIB_TRY(gb_cli_memory_create(&rows, &dense, work->session->engine));
    gb_stream *stream = work->session->stream;
    gb_status status = fill_plain(work, &rows);
    if (status == GB_SUCCESS) {
        status = gb_cli_memory_upload(&rows, stream);
        if (status == GB_SUCCESS)
            status = gb_tensor_reorder(rows.handle, memory->handle, stream);
        if (status == GB_SUCCESS)
            status = gb_cli_memory_download(memory, stream);
        if (status != GB_SUCCESS)
            gb_cli_fail_library(status);
    }
    gb_cli_memory_free(&rows);
    return status;
}

static gb_status fill_inputs(gb_workload *work)
{
    gb_cli_stage_enter(PHASE_FILL, NULL);
    for (size_t i = 0; i < work->n_memories; i++) {
        gb_memory *memory = &work->memories[i];
        if (!work->is_given[i])
            continue;
        CLI_TRY(memory->tensor.layout_type == GB_LAYOUT_OPAQUE ? fill_opaque(work, memory)
                                                               : fill_plain(work, memory));
    }
    return gb_cli_workload_bind(work);
}

static gb_status execute_first(gb_workload *work, gb_work_part *part)
{
    int64_t start = gb_cli_now_ns();
    if (work->session->held)
        part->first_block = gb_cli_held_next(work->session->held);
    LIB_TRY(gb_cli_work_part_execute(work, part, false));
    part->result->first_ns = gb_cli_now_ns() - start;
    if (work->session->held)
        part->end_block = gb_cli_held_next(work->session->held);
    return gb_cli_work_part_download(work, part);
}

/* The same values made of the same values need no second comparison. */
static gb_status was_checked(gb_workload *work, gb_work_part *part, bool *known)
{
    uint64_t digest;
    *known = false;
    if (!work->checked)
        return GB_SUCCESS;
    const gb_checked_part *checked = &work->checked[part - work->parts];
    CLI_TRY(gb_cli_work_part_digest(work, part, &digest));
    *known = digest == checked->digest;
    part->result->margin = checked->margin;
    return GB_SUCCESS;
}

/* What a right partition must do besides: leave its inputs alone, and make the same once more. */
static gb_status check_conduct(
        gb_workload *work, gb_work_part *part, const uint64_t *inputs, gb_verdict *verdict)
{
    CLI_TRY(gb_cli_verify_inputs(work, part, inputs, verdict));
    if (verdict->failed)
        return GB_SUCCESS;
    if (part->n_shared > 0)
        CLI_TRY(gb_cli_verify_shared(work, part, gb_cli_work_part_hash(work, part), verdict));
    else
        CLI_TRY(gb_cli_verify_again(work, part, verdict));
    gb_cli_verify_guards(work, part, verdict);
    return GB_SUCCESS;
}

static gb_status check_part(
        gb_workload *work, gb_work_part *part, const uint64_t *inputs, gb_verdict *verdict)
{
    int64_t since = gb_cli_now_ns();
    bool known;
    CLI_TRY(was_checked(work, part, &known));
    if (!known)
        CLI_TRY(gb_cli_verify_part(work, part, verdict));
    book(work, PHASE_REFERENCE, &since);
    CLI_TRY(check_conduct(work, part, inputs, verdict));
    book(work, PHASE_COMPARE, &since);
    return GB_SUCCESS;
}

static gb_status execute_part(gb_workload *work, gb_work_part *part, gb_verdict *verdict)
{
    int64_t since = gb_cli_now_ns();
    gb_cli_stage_enter(PHASE_EXECUTE, part->result->kernels);
    CLI_TRY(execute_first(work, part));
    book(work, PHASE_EXECUTE, &since);
    gb_cli_stage_enter(PHASE_REFERENCE, part->result->ops);
    gb_cli_verify_guards(work, part, verdict);
    book(work, PHASE_COMPARE, &since);
    return GB_SUCCESS;
}

static gb_status execute_and_check_part(gb_workload *work, gb_work_part *part, gb_verdict *verdict)
{
    if (!(work->settings->mode & MODE_CORRECTNESS))
        return execute_part(work, part, verdict);
    int64_t since = gb_cli_now_ns();
    uint64_t *inputs = gb_cli_hash_inputs(work, part);
    book(work, PHASE_COMPARE, &since);
    gb_status status = inputs ? execute_part(work, part, verdict) : GB_RUNTIME_ERROR;
    if (status == GB_SUCCESS)
        status = check_part(work, part, inputs, verdict);
    free(inputs);
    return status;
}

static gb_status execute_and_check(gb_workload *work, gb_verdict *verdict)
{
    for (size_t i = 0; i < work->n_parts && !verdict->failed; i++) {
        CLI_TRY(execute_and_check_part(work, &work->parts[i], verdict));
        work->wrong = verdict->failed ? &work->parts[i] : NULL;
    }
    return GB_SUCCESS;
}

/* Of the elements in their logical order, so that it tells nothing of layouts. */
static gb_status take_digest(gb_workload *work)
{
    work->result->executed = true;
    for (size_t p = 0; p < work->n_parts; p++) {
        uint64_t hash = 0, own;
        for (size_t i = 0; i < work->parts[p].n_outputs; i++) {
            const gb_memory *memory = &work->memories[work->parts[p].outputs[i]];
            LIB_TRY(gb_cli_memory_digest(memory, work->session->stream, &own));
            hash = hash * 31 + own;
        }
        work->result->digest = work->result->digest * 31 + hash;
    }
    return GB_SUCCESS;
}

static void set_verdict(gb_workload *work, const gb_verdict *verdict)
{
    work->result->n_errors = verdict->errors;
    work->result->n_total = verdict->total;
    if (verdict->failed)
        gb_cli_result_set(work->result, CASE_FAILED, NULL);
    else if (!(work->settings->mode & MODE_CORRECTNESS))
        gb_cli_result_set(work->result, CASE_EXECUTED, NULL);
    else if (verdict->mistrust)
        gb_cli_result_set(work->result, CASE_MISTRUSTED, "%s", verdict->mistrust);
    else
        gb_cli_result_set(work->result, CASE_PASSED, NULL);
}

static gb_status check_and_measure(gb_workload *work, gb_verdict *verdict)
{
    CLI_TRY(execute_and_check(work, verdict));
    CLI_TRY(take_digest(work));
    if (work->settings->golden_dir && !verdict->failed)
        CLI_TRY(gb_cli_verify_golden(work, verdict));
    if (work->settings->save_tensors_dir)
        CLI_TRY(gb_cli_save_tensors(work));
    int64_t since = gb_cli_now_ns();
    if (work->settings->mode & MODE_PERFORMANCE)
        CLI_TRY(gb_cli_take_times(work, verdict));
    gb_cli_result_summarize(work->result, work->settings);
    book(work, PHASE_MEASURE, &since);
    set_verdict(work, verdict);
    return GB_SUCCESS;
}

static bool filter_fits_patterns(const gb_workload *work)
{
    const gb_case_result *result = work->result;
    const char **patterns = gb_cli_realloc(NULL, result->n_partitions, sizeof *patterns);
    for (size_t i = 0; i < result->n_partitions; i++)
        patterns[i] = result->partitions[i].pattern;
    bool fits = gb_cli_filter_fits(work->settings, FILTER_PATTERN, result->n_partitions, patterns);
    free(patterns);
    return fits;
}

static gb_status partition_and_compile(gb_workload *work, bool *go_on)
{
    int64_t since = gb_cli_now_ns();
    CLI_TRY(gb_cli_workload_partition(work, go_on));
    book(work, PHASE_PARTITION, &since);
    work->result->left_out = !filter_fits_patterns(work);
    if (!*go_on || work->result->left_out) {
        *go_on = false;
        return GB_SUCCESS;
    }
    CLI_TRY(gb_cli_workload_compile(work, go_on));
    book(work, PHASE_COMPILE, &since);
    return GB_SUCCESS;
}

/* What the strided partitions computed, for those that lie otherwise. */
static gb_status keep_checked(const gb_workload *strided, gb_workload *work)
{
    work->checked = gb_cli_realloc(NULL, strided->n_parts, sizeof *work->checked);
    for (size_t i = 0; i < strided->n_parts; i++) {
        work->checked[i].margin = strided->parts[i].result->margin;
        CLI_TRY(gb_cli_work_part_digest(strided, &strided->parts[i], &work->checked[i].digest));
    }
    return GB_SUCCESS;
}

gb_status gb_cli_attempt(gb_workload *work, gb_verdict *verdict, bool *go_on)
{
    CLI_TRY(partition_and_compile(work, go_on));
    if (!*go_on)
        return GB_SUCCESS;
    int64_t since = gb_cli_now_ns();
    CLI_TRY(gb_cli_workload_allocate(work, go_on));
    if (!*go_on)
        return GB_SUCCESS;
    CLI_TRY(fill_inputs(work));
    book(work, PHASE_FILL, &since);
    return execute_and_check(work, verdict);
}

static gb_status run_strided(
        gb_workload *strided, gb_workload *work, gb_verdict *verdict, bool *go_on)
{
    CLI_TRY(gb_cli_attempt(strided, verdict, go_on));
    if (!*go_on)
        return GB_SUCCESS;
    if (!verdict->failed)
        return keep_checked(strided, work);
    gb_cli_print_error(work->test->file, "fails with --layouts=strided");
    return work->settings->save_tensors_dir ? gb_cli_save_tensors(strided) : GB_SUCCESS;
}

/* Checks the case with the strides of the graph, too, when the library has chosen other layouts. */
static gb_status check_strided(gb_workload *work, gb_verdict *verdict, bool *go_on)
{
    gb_case_result result = {0};
    gb_workload strided = {.session = work->session,
            .settings = work->settings,
            .test = work->test,
            .graph = work->graph,
            .result = &result};
    gb_status status = run_strided(&strided, work, verdict, go_on);
    gb_cli_workload_free(&strided);
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        work->result->phase_ns[phase] += result.phase_ns[phase];
    work->result->n_mismatches = result.n_mismatches;
    memcpy(work->result->mismatches, result.mismatches, sizeof result.mismatches);
    if (!*go_on)
        gb_cli_result_set(work->result, result.status, "--layouts=strided: %s",
                result.reason ? result.reason : "");
    gb_cli_result_free(&result);
    return status;
}

static gb_status run_case_prepare(gb_workload *work, bool *go_on)
{
    CLI_TRY(partition_and_compile(work, go_on));
    return work->settings->explain ? gb_cli_explain(work) : GB_SUCCESS;
}

static gb_status run_chosen(gb_workload *work, gb_verdict *verdict)
{
    bool go_on = true;
    int64_t since = gb_cli_now_ns();
    CLI_TRY(gb_cli_workload_allocate(work, &go_on));
    if (!go_on)
        return GB_SUCCESS;
    CLI_TRY(fill_inputs(work));
    book(work, PHASE_FILL, &since);
    return check_and_measure(work, verdict);
}

static gb_status run_case_run(gb_workload *work)
{
    bool go_on = true;
    CLI_TRY(gb_cli_session_open(work->session, work->settings, work->result, &go_on));
    if (!go_on)
        return GB_SUCCESS;
#ifdef GB_HAS_OPENCL
    if (work->settings->engine_kind == GB_ENGINE_GPU)
        work->result->memory_kind = gb_cli_device_memory_kind(work->session);
#endif
    CLI_TRY(run_case_prepare(work, &go_on));
    if (!go_on)
        return GB_SUCCESS;
    if (work->settings->mode & MODE_INIT) {
        gb_cli_result_set(work->result, CASE_INITIALIZED, NULL);
        return GB_SUCCESS;
    }
    CLI_TRY(gb_cli_eviction_check(work, &go_on));
    if (!go_on)
        return GB_SUCCESS;
    gb_verdict verdict = {0};
    gb_status status = GB_SUCCESS;
    if (work->settings->mode & MODE_CORRECTNESS && work->result->n_chosen > 0)
        status = check_strided(work, &verdict, &go_on);
    if (status == GB_SUCCESS && go_on && verdict.failed)
        set_verdict(work, &verdict);
    else if (status == GB_SUCCESS && go_on)
        status = run_chosen(work, &verdict);
    free(verdict.mistrust);
    return status;
}

gb_status gb_cli_run_case(
        gb_session *session, const gb_settings *settings, gb_case *test, gb_case_result *result)
{
    if (settings->mode & MODE_LIST) {
        gb_cli_result_set(result, CASE_LISTED, NULL);
        return GB_SUCCESS;
    }
    int64_t start = gb_cli_now_ns();
    gb_workload work = {.session = session,
            .settings = settings,
            .test = test,
            .graph = test->graph,
            .result = result,
            .any_layouts = settings->layouts == LAYOUTS_ANY && !settings->dynamic};
    gb_status status = run_case_run(&work);
    if (status == GB_SUCCESS && result->status == CASE_FAILED) {
        result->elapsed_ns = gb_cli_now_ns() - start;
        if (session->on_failure)
            session->on_failure(session->on_failure_context, result);
        gb_cli_blame(&work);
    }
    gb_cli_workload_free(&work);
    result->elapsed_ns = gb_cli_now_ns() - start;
    return status;
}
