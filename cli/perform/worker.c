/* The process that performs cases for another one. */
#include "cli/perform/worker.h"

#include "cli/options/exit_status.h"
#include "cli/options/message.h"
#include "cli/perform/parcel.h"
#include "cli/run/roof.h"
#include "cli/run/stage.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Who reads the results decides when to end; a worker must not outlive it. */
static bool bind_to(long parent)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == (pid_t)parent;
}

/* Where memory gets scarce, this process is the one to end. */
static void volunteer(void)
{
    FILE *file = fopen("/proc/self/oom_score_adj", "w");
    if (!file)
        return;
    fputs("500", file);
    fclose(file);
}

/* Before the library chooses its kernels. What the environment leaves out stays out. */
static void limit_isa(gb_isa_limit isa)
{
    const char *given = getenv("GB_MAX_ISA");
    for (int lower = ISA_BASELINE; given && lower < (int)isa; lower++)
        if (strcmp(given, gb_cli_isa_word((gb_isa_limit)lower)) == 0)
            return;
    if (isa != ISA_MACHINE)
        setenv("GB_MAX_ISA", gb_cli_isa_word(isa), 1);
}

/* What a case came to, or has come to so far, with what this process knows. */
static void put_answer(const gb_performer *performer, gb_status status, bool more,
        const gb_case_result *result, gb_parcel *answer)
{
    const gb_engine *engine = performer->session.engine;
    const char *description = engine ? gb_engine_get_description(engine) : NULL;
    gb_outcome outcome = {.status = status,
            .failure = gb_cli_copy(gb_cli_failure()),
            .messages = gb_cli_copy(gb_cli_messages()),
            .engine = description ? gb_cli_copy(description) : NULL,
            .blamed = performer->session.blamed,
            .best_probe = gb_cli_probe_best(),
            .more = more};
    gb_cli_put_outcome(answer, &outcome, result);
    gb_cli_outcome_free(&outcome);
    fflush(stdout);
}

typedef struct reader {
    const gb_performer *performer;
    int socket;
} reader;

/* Looking into a failure may crash or hang: the verdict goes out before. */
static void send_failure(void *context, const gb_case_result *result)
{
    const reader *to = context;
    gb_parcel answer = {.at = 0};
    put_answer(to->performer, GB_SUCCESS, true, result, &answer);
    gb_cli_parcel_send(&answer, to->socket);
    gb_cli_parcel_free(&answer);
}

static void perform(gb_performer *performer, gb_errand *errand, gb_parcel *answer)
{
    gb_case_result result = {.status = CASE_UNTESTED_FAILED};
    gb_cli_messages_clear();
    limit_isa(errand->settings.isa);
    performer->session.blamed = errand->blamed;
    gb_cli_probe_note(errand->best_probe);
    gb_status status = errand->visit ? gb_cli_perform_visit(
                                               performer, &errand->settings, &errand->test, &result)
                                     : gb_cli_perform(performer, &errand->settings, &errand->test,
                                               errand->refusal, &result);
    put_answer(performer, status, false, &result, answer);
    gb_cli_result_free(&result);
}

int gb_cli_worker_run(int socket, int stage, long parent)
{
    gb_stage *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, stage, 0);
    if (shared == MAP_FAILED || !bind_to(parent)) {
        gb_cli_print_error(NULL, "worker: to be started by --isolate only");
        return EXIT_USAGE;
    }
    /* The end of this process must show, whatever programs it has started. */
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    fcntl(stage, F_SETFD, FD_CLOEXEC);
    volunteer();
    gb_cli_stage_share(shared);
    /* What a case printed before it died is worth reading. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    gb_performer performer = {.sets_pass_mode = false};
    reader to = {.performer = &performer, .socket = socket};
    performer.session.on_failure = send_failure;
    performer.session.on_failure_context = &to;
    gb_parcel letter = {.at = 0};
    bool goes_on = true;
    while (goes_on && gb_cli_parcel_receive(&letter, socket)) {
        gb_errand errand;
        gb_parcel answer = {.at = 0};
        goes_on = gb_cli_take_errand(&letter, &errand);
        if (goes_on) {
            gb_cli_stage_begin();
            perform(&performer, &errand, &answer);
            goes_on = gb_cli_parcel_send(&answer, socket);
        }
        gb_cli_parcel_free(&answer);
        gb_cli_errand_free(&errand);
    }
    gb_cli_parcel_free(&letter);
    gb_cli_performer_free(&performer);
    gb_cli_stage_share(NULL);
    munmap(shared, sizeof *shared);
    return EXIT_GOOD;
}
