/* The interpreter of the command line and of batch files: options change the settings, cases run
 * with them at once. Its parts are files of this folder. */
#ifndef GB_CLI_APP_INTERPRETER_H
#define GB_CLI_APP_INTERPRETER_H

#include "cli/app/jobs.h"
#include "cli/case/batch.h"
#include "cli/options/options.h"
#include "cli/perform/isolate.h"
#include "cli/perform/perform.h"
#include "cli/perform/repro.h"
#include "cli/perform/single.h"
#include "cli/report/expectations.h"
#include "cli/report/output.h"
#include "cli/report/progress.h"
#include "cli/report/selection.h"
#include "cli/report/shards.h"
#include "cli/run/session.h"
#include "cli/run/visits.h"

#include <pthread.h>
#include <stdatomic.h>

/* A wrong option in a batch file: the cases it was meant for must not run without it. */
typedef struct gb_option_fault {
    gb_text place; /* "" = none */
    size_t line;   /* as of gb_interpreter.line */
} gb_option_fault;

/* Beside the rows of the option table there is one for words that are no option. */
enum { NO_OPTION = OPTION_LIMIT, FAULT_COUNT };

typedef struct gb_interpreter {
    gb_settings settings;
    gb_search search;
    gb_performer performer;
    gb_isolation isolation; /* of cases that run alone */
    gb_jobs jobs;           /* cases that run beside others */
    gb_repro_folders repro;
    gb_report report;
    gb_progress progress;
    gb_output *output; /* owned */
    gb_selection selection;
    gb_shards shards;
    gb_expectations expectations;
    gb_pool pool; /* measured cases that wait for further visits, and what came behind them */
    atomic_size_t pool_printed; /* of these, so many were printed */
    size_t pool_counted;        /* and so many counted */
    pthread_mutex_t lock;       /* of report, output, pool and jobs: a signal's thread reads them */
    size_t next_index;
    size_t n_left; /* cases of other shards, and those that --rerun-failed need not repeat */
    bool checking; /* only look for usage errors; run nothing */
    bool counting; /* while checking, count the cases, of batch files too, and say nothing */
    bool ended;    /* --help, --version or --list-ops was met */
    bool stopped;  /* a limit was met, a signal came, or results cannot be written */
    bool finished; /* the files were written for the last time */
    bool unwritten;
    bool out_of_time; /* --budget */
    bool usage_error;
    int depth;        /* of batch files */
    const char *file; /* the batch file being read; NULL = the command line */
    gb_text place;    /* "file:line", "" on the command line */
    size_t line;      /* number of the logical line being read, over all files */
    size_t n_lines;
    size_t n_batches;   /* read so far */
    bool too_deep;      /* said already */
    bool has_cases;     /* one was met */
    bool keeps_records; /* --json or the like is there, or may come in a batch file */
    gb_text refusal;    /* why --strict-env lets nothing be measured */
    char *engine;       /* owned; description of the engine that ran last, or NULL */
    int known_threads;  /* the run knows what probes of so many reached before; 0: it does not */
    bool has_roof;      /* the report's, of this engine */
    gb_engine_kind roof_kind;
    int64_t roof_index;
    gb_option_fault faults[FAULT_COUNT];
    bool warned[OPTION_LIMIT]; /* of an option without effect */
} gb_interpreter;

/* Takes one word of the command line or of a batch file: interpret.c. */
void gb_cli_interpret(gb_interpreter *app, const char *token);
/* --batch: batches.c. */
void gb_cli_read_batch(gb_interpreter *app, const char *name);
/* --case: cases.c. */
void gb_cli_run_cases(gb_interpreter *app, const char *file);
/* Is --budget spent? The run ends then. */
bool gb_cli_is_out_of_time(gb_interpreter *app);
/* There are more than `limit` of `what`. Nothing more is read: what ran is reported, and the run
 * fails. */
void gb_cli_stop_run(gb_interpreter *app, const char *what, size_t limit);

/* ---- wrong options: faults.c ---- */

/* Tells the message recorded last of a wrong option; NULL: the word is no option. */
void gb_cli_option_error(gb_interpreter *app, const gb_option *option);
/* The option is right again. */
void gb_cli_forget_fault(gb_interpreter *app, const gb_option *option);
/* So are all that describe cases. */
void gb_cli_forget_case_faults(gb_interpreter *app);
/* The place of a wrong option that was meant for the next case, or NULL. The value of an option that
 * describes cases stays wrong until it is set again or reset; others concern their line. */
const char *gb_cli_fault_of_case(const gb_interpreter *app);

/* ---- options that name what is written: outputs.c ---- */

/* Takes the value; where what it names cannot be written, the one before stays. */
gb_status gb_cli_set_output(gb_interpreter *app, const gb_option *option, const char *value);

/* ---- the machine beside measurements: machine.c ---- */

/* Looks at the machine in front of a case that is measured. Why it may not be, or NULL. */
const char *gb_cli_prepare_machine(gb_interpreter *app);
/* The roof is what the machine was seen to reach: a neighbour may have been there before. */
void gb_cli_raise_roof(gb_interpreter *app);

/* ---- measured cases that wait: waiting.c ---- */

/* Measured cases wait for their further visits; others are reported at once, or behind those. The
 * result stays the caller's; it is empty where the case waits. */
void gb_cli_end_case(gb_interpreter *app, const gb_settings *settings, const gb_case *test,
        gb_case_result *result);
/* All further visits of the cases in the pool, as long as the run goes on; then they are
 * reported, in their order. */
void gb_cli_finish_pool(gb_interpreter *app);

/* ---- several workers: jobs.c ---- */

/* May a case with these settings run beside others? */
bool gb_cli_runs_beside(const gb_settings *settings);
/* Starts the case as soon as a worker is free; it is reported behind those that started before. */
void gb_cli_perform_beside(gb_interpreter *app, const gb_case *test);
/* gb_cli_end_case() of a case that has its verdict, behind those that started before. */
void gb_cli_end_behind_jobs(gb_interpreter *app, const gb_case *test, gb_case_result *result);
/* Waits for all cases that run, and reports them, as long as the run goes on. */
void gb_cli_finish_jobs(gb_interpreter *app);
/* Prints or counts those that have ended and are not reported; with the lock, when the run is
 * interrupted. */
void gb_cli_report_ended_jobs(gb_interpreter *app, bool print);
void gb_cli_jobs_free(gb_jobs *jobs);

/* ---- results: reporting.c ---- */

/* It is printed without the lock: who reads the standard output may keep the program waiting, but not
 * a signal's thread. */
void gb_cli_report_case(gb_interpreter *app, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result, const char *messages);
/* The parts of it. Counting is called with the lock. */
void gb_cli_print_case(gb_interpreter *app, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result);
void gb_cli_count_case(gb_interpreter *app, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result, const char *messages);
/* The description of the engine that ran a case alone just now, or NULL. */
const char *gb_cli_engine_at_work(const gb_interpreter *app, const gb_settings *settings);
/* The description of the engine that ran last; NULL: none did. Kept beside the engine: a signal's
 * thread reports while the main one may be changing engines. Called with the lock. */
void gb_cli_keep_engine(gb_interpreter *app, const char *description);
/* Writes the files for the last time. Called with the lock; only the first call does anything. */
gb_status gb_cli_finish_files(gb_interpreter *app, const char *ended);
/* Results that cannot be written end the run: nobody would learn of what follows. */
void gb_cli_lose_results(gb_interpreter *app, const char *message);

/* For gb_cli_interrupt_start(), on a thread of a signal, while a case runs. The lock is kept: nothing
 * may follow. */
void gb_cli_finish_interrupted(void *app, int signal);

#endif
