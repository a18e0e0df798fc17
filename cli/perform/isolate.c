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
           (settings->isolate == ISOLATE_AUTO && settings->in_batch && checks);
}

/* ------------------------------------------------------------ the process */

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
        if (isolation->quiet) {
            int nowhere = open("/dev/null", O_WRONLY);
            dup2(nowhere, STDOUT_FILENO);
            dup2(nowhere, STDERR_FILENO);
        }
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

static gb_status open_stage(gb_isolation *isolation)
{
    int file = memfd_create("graph-bench stage", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, sizeof(gb_stage)) != 0) {
        if (file >= 0)
            close(file);
        return gb_cli_fail(GB_RUNTIME_ERROR, "--isolate: no shared memory: %s", strerror(errno));
    }
    gb_stage *stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (stage == MAP_FAILED) {
        close(file);
        return gb_cli_fail(GB_RUNTIME_ERROR, "--isolate: no shared memory: %s", strerror(errno));
    }
    isolation->stage = stage;
    isolation->stage_file = file;
    return GB_SUCCESS;
}

/* Takes leave of the worker; how it ended. */
static int bury(gb_isolation *isolation)
{
    int ended = 0;
    close(isolation->socket);
    while (waitpid(isolation->worker, &ended, 0) < 0 && errno == EINTR)
        continue;
    isolation->worker = 0;
    return ended;
}

static void end_worker(gb_isolation *isolation)
{
    if (isolation->worker == 0)
        return;
    kill(isolation->worker, SIGKILL);
    bury(isolation);
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
    if (isolation->stage) {
        munmap(isolation->stage, sizeof *isolation->stage);
        close(isolation->stage_file);
    }
    free(isolation->engine);
    *isolation = (gb_isolation){.worker = 0};
}

/* Bytes that the worker has in memory. */
static double resident_bytes(const gb_isolation *isolation)
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

static void set_end(const gb_isolation *isolation, gb_case_result *result, gb_case_status status,
        const char *why)
{
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

typedef struct limits {
    double seconds, bytes; /* 0: none */
} limits;

static limits limits_of(gb_isolation *isolation, const gb_settings *settings)
{
    if (isolation->memory_limit <= 0)
        isolation->memory_limit = gb_cli_memory_limit();
    double bytes = settings->case_memory > 0 ? settings->case_memory
                                             : default_memory_share * isolation->memory_limit;
    return (limits){settings->case_timeout_s * (double)settings->seeds, bytes};
}

/* Waits for the first byte of an answer. False: a limit was met, which the result says then, and
 * the worker is gone. */
static bool wait_for_answer(gb_isolation *isolation, const limits *most, gb_case_result *result)
{
    struct pollfd answer = {.fd = isolation->socket, .events = POLLIN};
    int64_t begin = gb_cli_now_ns();
    char why[64];
    for (;;) {
        int ready = poll(&answer, 1, GLANCE_MS);
        if (ready > 0)
            return true;
        double seconds = (double)(gb_cli_now_ns() - begin) * 1e-9;
        bool late = most->seconds > 0 && seconds > most->seconds;
        bool large = resident_bytes(isolation) > most->bytes;
        if (!late && !large)
            continue;
        end_worker(isolation);
        if (large)
            snprintf(why, sizeof why, "more than %.3g GiB", most->bytes / 0x1p30);
        else
            snprintf(why, sizeof why, "after %g s", most->seconds);
        set_end(isolation, result, large ? CASE_OUT_OF_MEMORY : CASE_TIMEOUT, why);
        return false;
    }
}

/* ------------------------------------------------------------ cases */

static gb_status take_answer(gb_isolation *isolation, gb_parcel *answer, gb_case_result *result)
{
    gb_outcome outcome;
    gb_case_result taken;
    bool whole = gb_cli_take_outcome(answer, &outcome, &taken);
    gb_cli_result_free(result);
    *result = taken;
    gb_status status = outcome.status;
    if (outcome.messages)
        gb_cli_messages_add(outcome.messages);
    if (status != GB_SUCCESS)
        gb_cli_fail(status, "%s", outcome.failure ? outcome.failure : "");
    isolation->blamed = outcome.blamed;
    gb_cli_probe_note(outcome.best_probe);
    free(isolation->engine);
    isolation->engine = outcome.engine;
    outcome.engine = NULL;
    gb_cli_outcome_free(&outcome);
    return whole ? status : gb_cli_fail(GB_RUNTIME_ERROR, "the worker's answer is broken");
}

static gb_status ensure_worker(
        gb_isolation *isolation, const limits *most, const gb_settings *settings)
{
    if (!isolation->stage)
        CLI_TRY(open_stage(isolation));
    /* What earlier cases left must not count against this one. */
    if (isolation->worker && resident_bytes(isolation) > most->bytes / 2)
        end_worker(isolation);
    bool measures = settings->mode & MODE_PERFORMANCE;
    if (isolation->isa != settings->isa || isolation->measures != measures)
        dismiss_worker(isolation);
    isolation->isa = settings->isa;
    isolation->measures = measures;
    return isolation->worker ? GB_SUCCESS : start(isolation);
}

/* What the worker makes of a case. */
static gb_status perform_in_worker(gb_isolation *isolation, const gb_settings *settings,
        const gb_parcel *letter, gb_case_result *result)
{
    limits most = limits_of(isolation, settings);
    CLI_TRY(ensure_worker(isolation, &most, settings));
    *isolation->stage = (gb_stage){.phase = PHASE_LOAD, .seed = settings->seed};
    if (gb_cli_parcel_send(letter, isolation->socket)) {
        if (!wait_for_answer(isolation, &most, result))
            return GB_SUCCESS;
        gb_parcel answer = {.at = 0};
        bool answered = gb_cli_parcel_receive(&answer, isolation->socket);
        gb_status status = answered ? take_answer(isolation, &answer, result) : GB_SUCCESS;
        gb_cli_parcel_free(&answer);
        if (answered)
            return status;
    }
    set_crash(isolation, result);
    return GB_SUCCESS;
}

gb_status gb_cli_isolated_perform(gb_isolation *isolation, const gb_settings *settings,
        const gb_case *test, const char *refusal, bool visit, gb_case_result *result)
{
    int64_t begin = gb_cli_now_ns();
    result->seed = settings->seed;
    gb_parcel letter = {.at = 0};
    char *copied = refusal ? gb_cli_copy(refusal) : NULL;
    gb_errand errand = {.refusal = copied,
            .visit = visit,
            .blamed = isolation->blamed,
            .best_probe = gb_cli_probe_best()};
    gb_cli_put_errand(&letter, &errand, settings, test);
    free(copied);
    fflush(stdout);
    gb_status status = perform_in_worker(isolation, settings, &letter, result);
    /* A worker that ended while it had nothing to do: the case is not to blame, another one gets it. */
    if (status == GB_SUCCESS && result->status == CASE_CRASHED && !isolation->stage->begun)
        status = perform_in_worker(isolation, settings, &letter, result);
    gb_cli_parcel_free(&letter);
    if (status != GB_SUCCESS && !isolation->worker)
        gb_cli_result_set(result, CASE_UNTESTED_FAILED, "Cannot run");
    if (result->status == CASE_CRASHED || result->status == CASE_TIMEOUT ||
            result->status == CASE_OUT_OF_MEMORY)
        result->elapsed_ns = gb_cli_now_ns() - begin;
    return status;
}
