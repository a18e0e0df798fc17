/* What a failed case is due to. */
#include "cli/run/blame.h"

#include "cli/options/message.h"
#include "cli/run/compare.h"
#include "cli/run/session.h"

#include <graphbench/graphbench_tools.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_FAILURES = 20 }; /* of a session that are looked into */

typedef enum outcome { RIGHT, WRONG, UNKNOWN } outcome;

/* Error in units of the last place; of integers in steps. */
static double distance_in_units(gb_data_type type, double expected, double got)
{
    double unit = gb_cli_unit_roundoff(type), error = fabs(got - expected);
    return unit > 0 ? error / (2 * unit * ldexp(1, ilogb(expected))) : error;
}

static void print_mismatch(const gb_workload *work, const gb_case_result *result)
{
    if (result->n_mismatches == 0) {
        printf("\n");
        return;
    }
    const gb_mismatch *m = &result->mismatches[0];
    gb_logical_tensor tensor = {.data_type = GB_F32};
    gb_graph_find_tensor(work->graph, m->tensor_id, &tensor);
    printf(": tensor %zu[%" PRId64 "] exp:%.9g got:%.9g bound:%.4g", m->tensor_id, m->index,
            m->expected, m->got, m->bound);
    bool is_float = gb_cli_unit_roundoff(tensor.data_type) > 0;
    if (!is_float || (isfinite(m->expected) && m->expected != 0))
        printf(" (%.4g %s)", distance_in_units(tensor.data_type, m->expected, m->got),
                is_float ? "ulp" : "steps");
    printf(", %s\n", m->comparison);
}

/* The partition that made the first wrong element, or did something else wrong; NULL when that is not
 * known. */
static const gb_work_part *find_wrong(const gb_workload *work)
{
    if (work->result->n_mismatches == 0)
        return work->wrong;
    size_t memory = gb_cli_workload_find(work, work->result->mismatches[0].tensor_id);
    for (size_t i = 0; i < work->n_parts; i++)
        for (size_t k = 0; k < work->parts[i].n_outputs; k++)
            if (work->parts[i].outputs[k] == memory)
                return &work->parts[i];
    return NULL;
}

static void print_op(const gb_workload *work)
{
    const gb_work_part *part = find_wrong(work);
    if (part)
        printf("[BLAME] op %zu %s is wrong alone (%s)", part->ops[0], part->result->ops,
                part->result->kernels ? part->result->kernels : "");
    else
        printf("[BLAME] wrong op by op as well");
    print_mismatch(work, work->result);
}

/* One run of its own; told where `names_op` and it fails. */
static outcome try_again(const gb_workload *failed, const gb_settings *settings, bool names_op)
{
    gb_case_result result = {0};
    gb_verdict verdict = {0};
    bool go_on = true;
    gb_workload work = {.session = failed->session,
            .settings = settings,
            .test = failed->test,
            .graph = failed->graph,
            .result = &result,
            .quiet = true,
            .any_layouts = failed->any_layouts && !names_op};
    gb_status status = gb_cli_attempt(&work, &verdict, &go_on);
    outcome found = status != GB_SUCCESS || !go_on ? UNKNOWN : verdict.failed ? WRONG : RIGHT;
    if (found == WRONG && names_op)
        print_op(&work);
    free(verdict.mistrust);
    gb_cli_workload_free(&work);
    gb_cli_result_free(&result);
    return found;
}

/* The pass without which the case is right; NULL: none alone. */
static const char *find_pass(const gb_workload *failed)
{
    static const char *const passes[] = {"fold_qdq", "hoist_elementwise", "split_heads",
            "batch_shared_kv", "views", "layouts", "blocks"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof passes / sizeof *passes && !found; i++) {
        if (gb_set_left_out_pass(passes[i]) == GB_SUCCESS &&
                try_again(failed, failed->settings, false) == RIGHT)
            found = passes[i];
    }
    gb_set_left_out_pass(NULL);
    return found;
}

void gb_cli_blame(const gb_workload *failed)
{
    gb_settings by_op = *failed->settings;
    by_op.policy = GB_POLICY_DEBUG;
    if (!failed->settings->blame || !(failed->settings->mode & MODE_CORRECTNESS) ||
            failed->settings->golden_dir || failed->session->blamed++ >= MOST_FAILURES)
        return;
    gb_cli_session_set_mode(failed->settings, true);
    const gb_work_part *part = find_wrong(failed);
    if (try_again(failed, failed->settings, false) == RIGHT) {
        printf("[BLAME] not seen again: what is cached or timed, the order of cases, or chance\n");
        gb_cli_session_set_mode(failed->settings, false);
        return;
    }
    outcome alone = try_again(failed, &by_op, true);
    const char *pass = alone == WRONG ? NULL : find_pass(failed);
    if (alone != WRONG) {
        if (pass)
            printf("[BLAME] right without the pass %s", pass);
        else if (part)
            printf("[BLAME] %s; partition %zu, %s, pattern %s, kernels %s",
                    alone == RIGHT ? "right op by op" : "not run op by op", part->result->id,
                    part->result->ops, part->result->pattern,
                    part->result->kernels ? part->result->kernels : "");
        else
            printf("[BLAME] %s", alone == RIGHT ? "right op by op" : "not known");
        print_mismatch(failed, failed->result);
    }
    gb_cli_session_set_mode(failed->settings, false);
}
