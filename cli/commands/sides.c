/* Processes of graph-bench ab. */
#include "cli/commands/sides.h"

#include "cli/options/message.h"
#include "cli/report/interrupt.h"
#include "cli/report/temporary.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Behind a signal: so long this program may take to end by itself. */
enum { ENDING_SECONDS = 5 };

/* The group of the processes that run; 0: none. */
static atomic_int running;

/* On the thread that waits for signals; the main one goes on, without the side that ran. */
static void end_side(void *data, int signal)
{
    (void)data;
    (void)signal;
    pid_t group = atomic_load(&running);
    if (group > 0)
        kill(-group, SIGKILL);
    sleep(ENDING_SECONDS);
}

void gb_cli_side_take(gb_side *side, int n, char **words)
{
    *side = (gb_side){.variables = words};
    while (side->n_variables < n && words[side->n_variables][0] != '-' &&
            strchr(words[side->n_variables], '='))
        side->n_variables++;
    int next = side->n_variables;
    if (next < n && words[next][0] != '-')
        side->program = words[next++];
    side->options = words + next;
    side->n_options = n - next;
}

void gb_cli_side_free(gb_side *side)
{
    free(side->told);
    side->told = NULL;
}

void gb_cli_side_quote(const char *word, gb_text *text)
{
    gb_cli_text_add(text, " '");
    for (; *word; word++)
        gb_cli_text_add(text, *word == '\'' ? "'\\''" : "%c", *word);
    gb_cli_text_add(text, "'");
}

void gb_cli_side_add_options(const gb_side *side, gb_text *text)
{
    for (int i = 0; i < side->n_options; i++)
        gb_cli_side_quote(side->options[i], text);
}

void gb_cli_side_add_cases(const char *mode, int n, char *const *words, gb_text *text)
{
    static const char option[] = "--mode=";
    gb_cli_text_add(text, "%s%s", option, mode);
    for (int i = 0; i < n; i++)
        if (strncmp(words[i], option, strlen(option)) != 0)
            gb_cli_side_quote(words[i], text);
}

char *gb_cli_side_report(void)
{
    gb_cli_interrupt_start(end_side, NULL);
    gb_text path = {0};
    gb_cli_text_add(&path, "%s/graph-bench-XXXXXX", gb_cli_temporary_folder());
    if (!mkdtemp(path.data)) {
        gb_cli_fail(GB_RUNTIME_ERROR, "%s: %s", path.data, strerror(errno));
        gb_cli_text_free(&path);
        return NULL;
    }
    gb_cli_text_add(&path, "/report.json");
    return path.data;
}

/* Where a run leaves what it writes to its standard error, beside the report. To be freed. */
static char *messages_path(const char *report)
{
    gb_text path = {0};
    gb_cli_text_add(&path, "%s.messages", report);
    return path.data;
}

void gb_cli_side_report_free(char *path)
{
    if (!path)
        return;
    char *messages = messages_path(path);
    unlink(messages);
    free(messages);
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    free(path);
}

/* A group of its own, so that all of it can be ended, with the signals that this program waits for.
 */
static int spawn(const char *command, pid_t *child)
{
    char shell[] = "sh", flag[] = "-c";
    char *text = gb_cli_copy(command), *const argv[] = {shell, flag, text, NULL};
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    int error = posix_spawn(child, "/bin/sh", NULL, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    free(text);
    return error;
}

/* The shell's exit status; -1: it could not be run, or a signal ended it. */
static int run_shell(const char *command)
{
    pid_t child;
    int state = -1, error = spawn(command, &child);
    if (error == 0)
        atomic_store(&running, child);
    while (error == 0 && waitpid(child, &state, 0) < 0 && errno == EINTR)
        ;
    atomic_store(&running, 0);
    if (error != 0 || !WIFEXITED(state))
        return -1;
    return WEXITSTATUS(state);
}

gb_status gb_cli_side_run(
        const gb_side *side, const char *options, const char *report, gb_results **results)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    gb_text command = {0};
    for (int i = 0; i < side->n_variables; i++) {
        /* The name stays bare: a quoted one would be no assignment. */
        size_t name = strcspn(side->variables[i], "=");
        gb_text value = {0};
        gb_cli_side_quote(side->variables[i] + name + 1, &value);
        gb_cli_text_add(&command, "%.*s=%s ", (int)name, side->variables[i], value.data + 1);
        gb_cli_text_free(&value);
    }
    gb_cli_side_quote(side->program ? side->program : self, &command);
    gb_text json = {0};
    gb_cli_text_add(&json, "--json=%s", report);
    gb_cli_side_quote(json.data, &command);
    gb_cli_text_add(&command, " %s >/dev/null", options);
    gb_text redirected = {0};
    gb_cli_text_add(&redirected, "%s", command.data);
    if (side->name) {
        char *messages = messages_path(report);
        gb_cli_text_add(&redirected, " 2>");
        gb_cli_side_quote(messages, &redirected);
        free(messages);
    }
    unlink(report);
    int status = run_shell(redirected.data);
    gb_status read = gb_cli_results_read(report, results);
    if (read != GB_SUCCESS && read != GB_RUNTIME_ERROR)
        gb_cli_fail(read, "no report (exit status %d) of: %s", status, command.data);
    gb_cli_text_free(&json);
    gb_cli_text_free(&command);
    gb_cli_text_free(&redirected);
    return read;
}

/* All of a file; "" when there is none. To be freed. */
static char *read_text(const char *path)
{
    gb_text text = {0};
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "r");
    while (file && getline(&line, &room, file) >= 0)
        gb_cli_text_add(&text, "%s", line);
    free(line);
    if (file)
        fclose(file);
    return text.data ? text.data : gb_cli_copy("");
}

void gb_cli_side_tell(gb_side *side, const char *report)
{
    char *path = messages_path(report), *text = read_text(path);
    free(path);
    if (!side->told || strcmp(text, side->told) != 0) {
        for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
            fprintf(stderr, "%s: %.*s\n", side->name, (int)strcspn(line, "\n"), line);
    }
    free(side->told);
    side->told = text;
}
