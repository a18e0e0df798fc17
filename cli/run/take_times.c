/* Times of partitions, and of all of them end to end. */
#include "cli/run/take_times.h"

#include "cli/options/message.h"
#include "cli/run/device_time.h"
#include "cli/run/end_to_end.h"
#include "cli/run/evict.h"
#include "cli/run/inplace.h"
#include "cli/run/stage.h"
#include "cli/run/visits.h"

typedef struct measured_part {
    const gb_workload *work;
    const gb_work_part *part;
} measured_part;

/* With in-place pairs each call overwrites its own input, as in a program that gives both one
 * buffer. */
static int execute_part(void *payload)
{
    const measured_part *measured = payload;
    return (int)gb_cli_work_part_execute(
            measured->work, measured->part, measured->part->n_shared > 0);
}

static void evict(void *context)
{
    gb_cli_evict(context);
}

/* A visit; before each call goes out of the caches what the settings name of these partitions. */
static gb_status measure(const gb_workload *work, const gb_work_part *parts, size_t n_parts,
        gb_measured_fn function, void *payload, gb_visit_plan *plan, gb_measurement *into)
{
    gb_eviction eviction = {0};
    gb_status status = GB_SUCCESS;
    bool cold = work->settings->cold_cache != COLD_NONE;
    for (size_t p = 0; cold && p < n_parts && status == GB_SUCCESS; p++)
        status = gb_cli_eviction_add(work, &parts[p], &eviction);
    if (eviction.n > 0) {
        plan->before = evict;
        plan->context = &eviction;
    }
    if (status == GB_SUCCESS) {
        status = (gb_status)gb_cli_measure_visit(function, payload, plan, into);
        if (status != GB_SUCCESS)
            gb_cli_fail_library(status);
    }
    gb_cli_eviction_free(&eviction);
    return status;
}

/* What was timed must still be what was checked: the outputs' bits are those of before. */
static gb_status measure_part(gb_workload *work, gb_work_part *part, gb_verdict *verdict)
{
    measured_part payload = {work, part};
    uint64_t hash = gb_cli_work_part_hash(work, part);
    gb_visit_plan plan = gb_cli_visit_plan(work->settings, work->n_parts, false);
    CLI_TRY(gb_cli_inplace_fill(work, part));
    gb_cli_stage_enter(PHASE_MEASURE, part->result->kernels);
    CLI_TRY(measure(work, part, 1, execute_part, &payload, &plan, &part->result->measured));
#ifdef GB_HAS_OPENCL
    if (work->settings->engine_kind == GB_ENGINE_GPU)
        CLI_TRY(gb_cli_device_measure(work, part, plan.budget_ns / 8));
#endif
    if (part->n_shared) {
        CLI_TRY(gb_cli_verify_shared(work, part, hash, verdict));
    } else {
        CLI_TRY(gb_cli_work_part_download(work, part));
        gb_cli_verify_unchanged(work, part, hash, verdict);
    }
    work->result->measured = true;
    return GB_SUCCESS;
}

static int execute_whole(void *payload)
{
    return (int)gb_cli_end_to_end_execute(payload);
}

static gb_status measure_whole(gb_workload *work, gb_end_to_end *whole, gb_verdict *verdict)
{
    gb_visit_plan plan = gb_cli_visit_plan(work->settings, work->n_parts, true);
    gb_cli_stage_enter(PHASE_MEASURE, "end to end");
    CLI_TRY(gb_cli_end_to_end_open(work, whole));
    CLI_TRY(gb_cli_end_to_end_prepare(whole));
    CLI_TRY(measure(work, work->parts, work->n_parts, execute_whole, whole, &plan,
            &work->result->whole.measured));
    return gb_cli_end_to_end_check(whole, verdict);
}

gb_status gb_cli_take_times(gb_workload *work, gb_verdict *verdict)
{
    for (size_t i = 0; i < work->n_parts && !verdict->failed; i++)
        CLI_TRY(measure_part(work, &work->parts[i], verdict));
    if (work->n_parts > 1 && !verdict->failed) {
        gb_end_to_end whole = {0};
        gb_status status = measure_whole(work, &whole, verdict);
        gb_cli_end_to_end_close(&whole);
        CLI_TRY(status);
    }
    return GB_SUCCESS;
}
