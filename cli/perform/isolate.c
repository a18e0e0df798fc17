/* Cases performed by a worker. */
#define _GNU_SOURCE
#include "cli/perform/isolate.h"

#include "cli/options/message.h"
#include "cli/perform/waiting.h"
#include "cli/run/memory_limit.h"
#include "cli/run/roof.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* How often the memory of a worker is looked at. */
enum { GLANCE_MS = 20 };
/* Of the memory that the process may have, what a case may take by default: what is known in
 * advance to need more than three quarters is skipped. */
static const double default_memory_share = 0.9;

bool gb_cli_is_isolated(const gb_settings *settings)
{
    bool checks =
            settings->mode & (MODE_CORRECTNESS | MODE_RUN) && !(settings->mode & MODE_PERFORMANCE);
    return settings->isolate == ISOLATE_ON || settings->isa != ISA_MACHINE ||
           (settings->isolate == ISOLATE_AUTO &&
                   ((settings->in_batch && checks) || settings->has_limit));
}

/* ------------------------------------------------------------ the process */

static const int streams[WORKER_STREAMS] = {STDOUT_FILENO, STDERR_FILENO};

/* In the process that becomes the worker. */
static void redirect(const gb_isolation *isolation)
{
    int nowhere = isolation->output == OUTPUT_QUIET ? open("/dev/null", O_WRONLY) : -1;
    for (int i = 0; i < WORKER_STREAMS && isolation->output != OUTPUT_SHOWN; i++)
        dup2(isolation->output == OUTPUT_KEPT ? isolation->printed[i] : nowhere, streams[i]);
}

/* The program itself, started anew: it has no threads yet, and no device is open. */
static gb_status start(gb_isolation *isolation)
{
    int ends[2];
    char socket_text[16], stage_text[16], parent_text[24];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return gb_cli_fail(GB_RUNTIME_ERROR, "--isolate: no socket: %s", strerror(errno));
    snprintf(socket_text, sizeof socket_text, "%d", ends[1]);
    snprintf(stage_text, sizeof stage_text, "%d", isolation->stage_file);
    snprintf(parent_text, sizeof parent_text, "%ld", (long)getpid());
    char *const arguments[] = {"graph-bench", "worker", socket_text, stage_text, parent_text, NULL};
    fflush(stdout);
    pid_t worker = fork();
    if (worker == 0) {
        fcntl(ends[1], F_SETFD, 0);
        fcntl(isolation->stage_file, F_SETFD, 0);
        redirect(isolation);
        if (!isolation->measures)
            gb_cli_wait_asleep();
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    int error = errno;
    close(ends[1]);
    if (worker < 0) {
        close(ends[0]);
        return gb_cli_fail(GB_RUNTIME_ERROR, "--isolate: no process: %s", strerror(error));
    }
    isolation->worker = worker;
    isolation->socket = ends[0];
    return GB_SUCCESS;
}

static void close_files(gb_isolation *isolation)
{
    if (isolation->stage)
        munmap(isolation->stage, sizeof *isolation->stage);
    isolation->stage = NULL;
    close(isolation->stage_file);
    for (int i = 0; i < WORKER_STREAMS && isolation->output == OUTPUT_KEPT; i++)
        close(isolation->printed[i]);
}

/* What is shared with the worker. */
static gb_status open_files(gb_isolation *isolation)
{
    isolation->stage_file = memfd_create("graph-bench stage", MFD_CLOEXEC);
    bool made =
            isolation->stage_file >= 0 && ftruncate(isolation->stage_file, sizeof(gb_stage)) == 0;
    for (int i = 0; i < WORKER_STREAMS && isolation->output == OUTPUT_KEPT; i++) {
        isolation->printed[i] = memfd_create("graph-bench output", MFD_CLOEXEC);
        made = made && isolation->printed[i] >= 0;
    }
    void *stage = made ? mmap(NULL, sizeof *isolation->stage, PROT_READ | PROT_WRITE, MAP_SHARED,
                                 isolation->stage_file, 0)
                       : MAP_FAILED;
    isolation->stage = stage == MAP_FAILED ? NULL : stage;
    if (isolation->stage)
        return GB_SUCCESS;
    int error = errno;
    close_files(isolation);
    return gb_cli_fail(GB_RUNTIME_ERROR, "--isolate: no shared memory: %s", strerror(error));
}

/* Writers share the place in the file: the next worker begins at its start again. */
char *gb_cli_isolated_printed(gb_isolation *isolation, int stream)
{
    int file = isolation->printed[stream];
    off_t length = isolation->stage ? lseek(file, 0, SEEK_CUR) : 0;
    char *text = gb_cli_realloc(NULL, (size_t)length + 1, 1);
    ssize_t got = length > 0 ? pread(file, text, (size_t)length, 0) : 0;
    text[got > 0 ? got : 0] = '\0';
    if (length > 0 && ftruncate(file, 0) == 0)
        lseek(file, 0, SEEK_SET);
    return text;
}

/* Has the worker ended? Processes that it has started may go on, and hold its socket. */
static bool has_ended(gb_isolation *isolation)
{
    if (!isolation->dead && isolation->worker)
        isolation->dead = waitpid(isolation->worker, &isolation->ended, WNOHANG) > 0;
    return isolation->dead;
}

/* No failure is looked into any more. */
static void forget_verdict(gb_isolation *isolation)
{
    if (!isolation->judged)
        return;
    gb_cli_outcome_free(&isolation->verdict);
    gb_cli_result_free(&isolation->verdict_result);
    isolation->judged = false;
}

/* Takes leave of the worker; how it ended. One that does not end by itself is ended. */
static int bury(gb_isolation *isolation)
{
    enum { MOST_MS = 2000 };
    close(isolation->socket);
    for (int ms = 0; ms < MOST_MS && !has_ended(isolation); ms++)
        poll(NULL, 0, 1);
    if (!has_ended(isolation))
        kill(isolation->worker, SIGKILL);
    while (!isolation->dead && waitpid(isolation->worker, &isolation->ended, 0) < 0 &&
            errno == EINTR)
        continue;
    isolation->worker = 0;
    isolation->dead = false;
    return isolation->ended;
}

static void stop_worker(gb_isolation *isolation)
{
    isolation->busy = false;
    if (isolation->worker == 0)
        return;
    kill(isolation->worker, SIGKILL);
    bury(isolation);
}

void gb_cli_isolated_stop(gb_isolation *isolation)
{
    stop_worker(isolation);
    forget_verdict(isolation);
}

/* It ends by itself, in order, when nothing more can come. */
static void dismiss_worker(gb_isolation *isolation)
{
    if (isolation->worker == 0)
        return;
    shutdown(isolation->socket, SHUT_RDWR);
    bury(isolation);
}

void gb_cli_isolation_free(gb_isolation *isolation)
{
    dismiss_worker(isolation);
    forget_verdict(isolation);
    if (isolation->stage)
        close_files(isolation);
    gb_cli_parcel_free(&isolation->letter);
    free(isolation->engine);
    *isolation = (gb_isolation){.worker = 0};
}

double gb_cli_isolated_bytes(const gb_isolation *isolation)
{
    char path[64];
    char line[128] = "";
    snprintf(path, sizeof path, "/proc/%ld/statm", (long)isolation->worker);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    char *end = fgets(line, sizeof line, file) ? strchr(line, ' ') : NULL; /* behind all its size */
    fclose(file);
    return (end ? strtod(end, NULL) : 0) * (double)sysconf(_SC_PAGESIZE);
}

/* ------------------------------------------------------------ verdicts */

static const char *signal_name(int number)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {{SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"},
            {SIGILL, "SIGILL"}, {SIGKILL, "SIGKILL"}, {SIGTRAP, "SIGTRAP"}, {SIGSYS, "SIGSYS"},
            {SIGXCPU, "SIGXCPU"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == number)
            return names[i].name;
    return strsignal(number);
}

/* "execute, gemm_f32": where the worker was. */
static void describe_stage(const gb_isolation *isolation, gb_text *text)
{
    gb_stage stage = *isolation->stage; /* nobody writes there any more */
    stage.what[sizeof stage.what - 1] = '\0';
    bool known = stage.phase >= 0 && stage.phase < PHASE_COUNT;
    gb_cli_text_add(text, "%s", known ? gb_cli_phase_name((gb_phase)stage.phase) : "?");
    if (*stage.what)
        gb_cli_text_add(text, ", %s", stage.what);
}

/* Keeps what the process that performed the case knows. */
static void accept_outcome(gb_isolation *isolation, gb_outcome *outcome)
{
    if (outcome->messages)
        gb_cli_messages_add(outcome->messages);
    if (outcome->status != GB_SUCCESS)
        gb_cli_fail(outcome->status, "%s", outcome->failure ? outcome->failure : "");
    isolation->blamed = outcome->blamed;
    gb_cli_probe_note(outcome->best_probe);
    free(isolation->engine);
    isolation->engine = outcome->engine;
    outcome->engine = NULL;
    gb_cli_outcome_free(outcome);
}

/* A case that had failed before: what ended the worker came of looking into it. */
static void keep_verdict(gb_isolation *isolation, gb_case_result *result, const char *why)
{
    int output = isolation->output == OUTPUT_KEPT ? isolation->printed[0] : STDOUT_FILENO;
    fflush(stdout);
    if (isolation->output != OUTPUT_QUIET)
        dprintf(output, "[BLAME] not known: looking into it ended (%s)\n", why);
    gb_cli_result_free(result);
    *result = isolation->verdict_result;
    isolation->judged = false;
    accept_outcome(isolation, &isolation->verdict);
    isolation->blamed++;
}

static void set_end(
        gb_isolation *isolation, gb_case_result *result, gb_case_status status, const char *why)
{
    if (isolation->judged) {
        keep_verdict(isolation, result, why);
        return;
    }
    gb_text text = {0};
    describe_stage(isolation, &text);
    gb_cli_result_set(result, status, "%s, %s", why, gb_cli_text_get(&text));
    gb_cli_text_free(&text);
    result->seed = isolation->stage->seed;
    result->loaded = isolation->stage->phase != PHASE_LOAD;
}

static void set_crash(gb_isolation *isolation, gb_case_result *result)
{
    char why[64];
    int ended = bury(isolation);
    if (WIFSIGNALED(ended))
        snprintf(why, sizeof why, "%s", signal_name(WTERMSIG(ended)));
    else
        snprintf(why, sizeof why, "exit status %d", WEXITSTATUS(ended));
    set_end(isolation, result, CASE_CRASHED, why);
}

static void set_limits(gb_isolation *isolation, const gb_settings *settings)
{
    if (isolation->memory_limit <= 0)
        isolation->memory_limit = gb_cli_memory_limit();
    isolation->most_seconds = settings->case_timeout_s * (double)settings->seeds;
    isolation->most_bytes = settings->case_memory > 0
                                    ? settings->case_memory
                                    : default_memory_share * isolation->memory_limit;
}

/* Is a limit met? Then the worker is ended, as the result says. */
static bool meets_limit(gb_isolation *isolation, gb_case_result *result)
{
    char why[64];
    double seconds = (double)(gb_cli_now_ns() - isolation->begin_ns) * 1e-9;
    bool late = isolation->most_seconds > 0 && seconds > isolation->most_seconds;
    bool large = gb_cli_isolated_bytes(isolation) > isolation->most_bytes;
    if (!late && !large)
        return false;
    stop_worker(isolation);
    if (large)
        snprintf(why, sizeof why, "more than %.3g GiB", isolation->most_bytes / 0x1p30);
    else
        snprintf(why, sizeof why, "after %g s", isolation->most_seconds);
    set_end(isolation, result, large ? CASE_OUT_OF_MEMORY : CASE_TIMEOUT, why);
    return true;
}

/* ------------------------------------------------------------ cases */

static gb_status take_answer(
        gb_isolation *isolation, gb_parcel *answer, gb_case_result *result, bool *more)
{
    gb_outcome outcome;
    gb_case_result taken;
    bool whole = gb_cli_take_outcome(answer, &outcome, &taken);
    *more = whole && outcome.more;
    forget_verdict(isolation);
    if (*more) {
        isolation->judged = true;
        isolation->verdict = outcome;
        isolation->verdict_result = taken;
        isolation->begin_ns = gb_cli_now_ns(); /* looking into it may take as long again */
        return GB_SUCCESS;
    }
    gb_cli_result_free(result);
    *result = taken;
    gb_status status = outcome.status;
    accept_outcome(isolation, &outcome);
    return whole ? status : gb_cli_fail(GB_RUNTIME_ERROR, "the worker's answer is broken");
}

static gb_status ensure_worker(gb_isolation *isolation)
{
    if (!isolation->stage)
        CLI_TRY(open_files(isolation));
    /* What earlier cases left must not count against this one. */
    if (isolation->worker && gb_cli_isolated_bytes(isolation) > isolation->most_bytes / 2)
        gb_cli_isolated_stop(isolation);
    return isolation->worker ? GB_SUCCESS : start(isolation);
}

/* To a worker that is gone, nothing is sent: what becomes of the case is seen later. */
static gb_status send_letter(gb_isolation *isolation, int64_t seed)
{
    CLI_TRY(ensure_worker(isolation));
    *isolation->stage = (gb_stage){.phase = PHASE_LOAD, .seed = seed};
    forget_verdict(isolation);
    isolation->busy = true;
    isolation->begin_ns = gb_cli_now_ns();
    gb_cli_parcel_send(&isolation->letter, isolation->socket);
    return GB_SUCCESS;
}

gb_status gb_cli_isolated_start(gb_isolation *isolation, const gb_settings *settings,
        const gb_case *test, const char *refusal, bool visit, gb_case_result *result)
{
    char *copied = refusal ? gb_cli_copy(refusal) : NULL;
    gb_errand errand = {.refusal = copied,
            .visit = visit,
            .blamed = isolation->blamed,
            .best_probe = gb_cli_probe_best()};
    gb_cli_parcel_free(&isolation->letter);
    gb_cli_put_errand(&isolation->letter, &errand, settings, test);
    free(copied);
    fflush(stdout);
    set_limits(isolation, settings);
    bool measures = settings->mode & MODE_PERFORMANCE;
    if (isolation->isa != settings->isa || isolation->measures != measures)
        dismiss_worker(isolation);
    isolation->isa = settings->isa;
    isolation->measures = measures;
    isolation->sent_again = false;
    result->seed = settings->seed;
    gb_status status = send_letter(isolation, settings->seed);
    if (status != GB_SUCCESS)
        gb_cli_result_set(result, CASE_UNTESTED_FAILED, "Cannot run");
    return status;
}

void gb_cli_isolated_wait(const gb_isolation *isolations, size_t n)
{
    struct pollfd answers[MOST_WORKERS];
    nfds_t busy = 0;
    for (size_t i = 0; i < n; i++)
        if (isolations[i].busy)
            answers[busy++] = (struct pollfd){.fd = isolations[i].socket, .events = POLLIN};
    if (busy > 0)
        poll(answers, busy, GLANCE_MS);
}

static bool has_answer(const gb_isolation *isolation)
{
    struct pollfd answer = {.fd = isolation->socket, .events = POLLIN};
    return poll(&answer, 1, 0) > 0;
}

/* What became of the case: an answer, or the end of the worker. */
static gb_status end_case(gb_isolation *isolation, gb_case_result *result, bool *more)
{
    gb_parcel answer = {.at = 0};
    gb_status status = GB_SUCCESS;
    *more = false;
    if (has_answer(isolation) && gb_cli_parcel_receive(&answer, isolation->socket))
        status = take_answer(isolation, &answer, result, more);
    else
        set_crash(isolation, result);
    gb_cli_parcel_free(&answer);
    return status;
}

bool gb_cli_isolated_ended(gb_isolation *isolation, gb_case_result *result, gb_status *status)
{
    bool more;
    *status = GB_SUCCESS;
    if (!has_answer(isolation) && !has_ended(isolation)) {
        if (!meets_limit(isolation, result))
            return false;
    } else {
        *status = end_case(isolation, result, &more);
        if (more)
            return false;
        /* A worker that ended while it had nothing to do: the case is not to blame, another one gets it. */
        if (*status == GB_SUCCESS && result->status == CASE_CRASHED && !isolation->stage->begun &&
                !isolation->sent_again) {
            isolation->sent_again = true;
            gb_cli_result_free(result);
            *result = (gb_case_result){.seed = isolation->stage->seed};
            *status = send_letter(isolation, isolation->stage->seed);
            if (*status == GB_SUCCESS)
                return false;
            gb_cli_result_set(result, CASE_UNTESTED_FAILED, "Cannot run");
        }
    }
    isolation->busy = false;
    if (result->status == CASE_CRASHED || result->status == CASE_TIMEOUT ||
            result->status == CASE_OUT_OF_MEMORY)
        result->elapsed_ns = gb_cli_now_ns() - isolation->begin_ns;
    return true;
}

gb_status gb_cli_isolated_perform(gb_isolation *isolation, const gb_settings *settings,
        const gb_case *test, const char *refusal, bool visit, gb_case_result *result)
{
    gb_status status;
    CLI_TRY(gb_cli_isolated_start(isolation, settings, test, refusal, visit, result));
    do
        gb_cli_isolated_wait(isolation, 1);
    while (!gb_cli_isolated_ended(isolation, result, &status));
    return status;
}
