/* Folders that hold all that a failure needs to be seen again. */
#ifndef GB_CLI_PERFORM_REPRO_H
#define GB_CLI_PERFORM_REPRO_H

#include "cli/perform/isolate.h"

/* Signals from now on end trials early, and whoever makes them has a few seconds to write what there
 * is. To be called before there are other threads. */
void gb_cli_trials_start(void);
/* Performs a case in the worker, unless a signal ends the run: nobody has it then, and that is a
 * failure. */
gb_status gb_cli_trial(gb_isolation *isolation, const gb_settings *settings, const gb_case *test,
        gb_case_result *result);

/* Options, in front of those of gb_cli_write_repro(), without which the verdict would end the program,
 * or come late. */
void gb_cli_write_limits(const gb_settings *settings, gb_case_status status, gb_text *text);

/* Of one run; all zero at the start. */
typedef struct gb_repro_folders {
    size_t n, bytes;        /* written so far */
    bool full;              /* the warning was given */
    gb_isolation isolation; /* the runs that the folders need are not those of the cases */
} gb_repro_folders;

/* Writes a folder for a failed case below --repro-dir, unless a limit is met, and prints its path. A
 * failure has a message. */
gb_status gb_cli_repro_write(gb_repro_folders *folders, const gb_settings *settings,
        const gb_case *test, const gb_case_result *result, const char *messages);
void gb_cli_repro_free(gb_repro_folders *folders);

/* Runs the case of a folder again, and prints whether it fails in the same way. *fails: it does, in
 * this way or another. A failure has a message: there is no such folder. */
gb_status gb_cli_repro_run(const char *folder, bool *fails);

#endif
