/* Several workers, a case each, at the same time. */
#include "cli/app/interpreter.h"

#include "cli/options/message.h"
#include "cli/report/doctor.h"
#include "cli/report/interrupt.h"
#include "cli/run/memory_limit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a worker should have, where their number is not given. */
static const double worker_bytes = 4 * 0x1p30;
/* Of the memory that the process may have, what all workers may take together. */
static const double memory_share = 0.9;

/* ------------------------------------------------------------ who runs beside others */

/* As many as the machine has room for. */
static size_t workers_that_fit(void)
{
    static size_t n; /* it is asked for each case */
    if (n == 0) {
        double most = fmin(gb_cli_usable_processors(), MOST_WORKERS);
        n = (size_t)fmax(1, fmin(most, floor(gb_cli_memory_limit() / worker_bytes)));
    }
    return n;
}

static size_t workers_wanted(const gb_settings *settings)
{
    if (settings->jobs > 0)
        return (size_t)settings->jobs;
    /* A device is one, and who divides a run knows of its other parts on this machine. */
    bool one = settings->engine_kind != GB_ENGINE_CPU || settings->n_shards > 0;
    return one ? 1 : workers_that_fit();
}

bool gb_cli_runs_beside(const gb_settings *settings)
{
    bool shows = settings->verbose > 0 || settings->explain != EXPLAIN_NONE || settings->print ||
                 settings->save_graph_file || settings->save_tensors_dir;
    return gb_cli_is_isolated(settings) && !(settings->mode & MODE_PERFORMANCE) && !shows &&
           workers_wanted(settings) > 1;
}

/* ------------------------------------------------------------ the queue */

static gb_job *add_job(
        gb_interpreter *app, const gb_case *test, gb_case_result *result, gb_job_state state)
{
    gb_jobs *jobs = &app->jobs;
    gb_job *job = &jobs->queue[jobs->n];
    *job = (gb_job){.state = state, .place = gb_cli_copy(gb_cli_text_get(&app->place))};
    job->of = gb_cli_waiting_case_create(&app->settings, test, result, gb_cli_messages());
    pthread_mutex_lock(&app->lock);
    jobs->n++;
    pthread_mutex_unlock(&app->lock);
    return job;
}

static void free_job(gb_job *job)
{
    gb_cli_waiting_case_free(job->of);
    free(job->place);
    for (int i = 0; i < WORKER_STREAMS; i++)
        gb_cli_text_free(&job->printed[i]);
}

static void print_what_was_kept(const gb_job *job)
{
    fputs(gb_cli_text_get(&job->printed[0]), stdout);
    fflush(stdout);
    fputs(gb_cli_text_get(&job->printed[1]), stderr);
}

/* The first one has ended: nothing stands in front of its verdict. */
static void report_first(gb_interpreter *app)
{
    gb_jobs *jobs = &app->jobs;
    gb_job job = jobs->queue[0];
    pthread_mutex_lock(&app->lock);
    memmove(&jobs->queue[0], &jobs->queue[1], --jobs->n * sizeof job);
    pthread_mutex_unlock(&app->lock);
    gb_cli_progress_hide(&app->progress);
    print_what_was_kept(&job);
    gb_cli_messages_clear();
    gb_cli_messages_add(job.of->messages);
    if (!job.of->result.left_out)
        gb_cli_end_case(app, &job.of->settings, &job.of->test, &job.of->result);
    free_job(&job);
}

/* ------------------------------------------------------------ workers */

/* What has ended, and why, is known: it waits for the cases in front of it. */
static void end_job(gb_interpreter *app, gb_job *job, gb_case_result *result, gb_status status)
{
    gb_isolation *worker = &app->jobs.workers[job->worker];
    app->jobs.blamed += worker->blamed - job->blamed;
    for (int i = 0; i < WORKER_STREAMS; i++) {
        char *text = gb_cli_isolated_printed(worker, i);
        gb_cli_text_add(&job->printed[i], "%s", text);
        free(text);
    }
    if (status != GB_SUCCESS)
        gb_cli_defer_error(&job->printed[1], job->place, "%s", gb_cli_failure());
    if (!result->left_out)
        result->expected =
                gb_cli_expected_reason(&app->expectations, &job->of->test, result->status);
    pthread_mutex_lock(&app->lock);
    gb_cli_keep_engine(app, worker->engine);
    gb_cli_result_free(&job->of->result);
    job->of->result = *result;
    free(job->of->messages);
    job->of->messages = gb_cli_copy(gb_cli_messages());
    job->state = JOB_ENDED;
    pthread_mutex_unlock(&app->lock);
}

static void set_state(gb_interpreter *app, gb_job *job, gb_job_state state)
{
    pthread_mutex_lock(&app->lock);
    job->state = state;
    pthread_mutex_unlock(&app->lock);
}

static void start_job(gb_interpreter *app, gb_job *job, size_t worker)
{
    gb_jobs *jobs = &app->jobs;
    gb_isolation *isolation = &jobs->workers[worker];
    gb_case_result result = {0};
    isolation->output = OUTPUT_KEPT;
    isolation->blamed = job->blamed = jobs->blamed;
    job->worker = worker;
    set_state(app, job, JOB_RUNS);
    gb_cli_messages_clear();
    gb_status status = gb_cli_isolated_start(
            isolation, &job->of->settings, &job->of->test, NULL, false, &result);
    if (status != GB_SUCCESS)
        end_job(app, job, &result, status);
}

/* A worker without a case, best one that has the kernels already; `n`: all are at work. */
static size_t idle_worker(const gb_jobs *jobs, size_t n, gb_isa_limit isa)
{
    size_t idle = n;
    for (size_t i = n; i-- > 0;)
        if (!jobs->workers[i].busy && (idle == n || jobs->workers[i].isa == isa))
            idle = i;
    return idle;
}

static gb_job *job_that(gb_jobs *jobs, gb_job_state state)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->queue[i].state == state)
            return &jobs->queue[i];
    return NULL;
}

static size_t count_running(const gb_jobs *jobs)
{
    size_t n = 0;
    for (size_t i = 0; i < jobs->n; i++)
        n += jobs->queue[i].state == JOB_RUNS;
    return n;
}

/* Together workers may take more memory than there is, though none of them does: the case that began
 * last runs again when no other does. */
static void spare_memory(gb_interpreter *app)
{
    gb_jobs *jobs = &app->jobs;
    double bytes = 0;
    if (count_running(jobs) < 2)
        return;
    for (size_t i = 0; i < jobs->n_workers; i++)
        bytes += jobs->workers[i].worker ? gb_cli_isolated_bytes(&jobs->workers[i]) : 0;
    if (bytes < memory_share * jobs->memory_limit)
        return;
    for (size_t i = 0; i < jobs->n_workers; i++)
        if (!jobs->workers[i].busy)
            gb_cli_isolated_stop(&jobs->workers[i]);
    gb_job *last = NULL;
    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->queue[i].state == JOB_RUNS)
            last = &jobs->queue[i];
    gb_isolation *worker = &jobs->workers[last->worker];
    gb_cli_isolated_stop(worker);
    for (int i = 0; i < WORKER_STREAMS; i++)
        free(gb_cli_isolated_printed(worker, i));
    set_state(app, last, JOB_WAITS);
}

/* Waits for a short while, and reports what can be reported then. */
static void look_at_workers(gb_interpreter *app)
{
    gb_jobs *jobs = &app->jobs;
    gb_cli_isolated_wait(jobs->workers, jobs->n_workers);
    for (size_t i = 0; i < jobs->n; i++) {
        gb_job *job = &jobs->queue[i];
        gb_case_result result = {0};
        gb_status status;
        gb_cli_messages_clear();
        if (job->state == JOB_RUNS &&
                gb_cli_isolated_ended(&jobs->workers[job->worker], &result, &status))
            end_job(app, job, &result, status);
    }
    spare_memory(app);
    gb_job *waiting = job_that(jobs, JOB_WAITS);
    if (waiting && count_running(jobs) == 0)
        start_job(app, waiting, 0);
    while (jobs->n > 0 && jobs->queue[0].state == JOB_ENDED && !app->unwritten)
        report_first(app);
}

/* ------------------------------------------------------------ the interpreter's side */

void gb_cli_perform_beside(gb_interpreter *app, const gb_case *test)
{
    gb_jobs *jobs = &app->jobs;
    size_t n = workers_wanted(&app->settings);
    while (!app->stopped && (jobs->n == JOB_LIMIT || job_that(jobs, JOB_WAITS) ||
                                    idle_worker(jobs, n, app->settings.isa) == n))
        look_at_workers(app);
    gb_case_result result = {.seed = app->settings.seed};
    gb_cli_messages_clear();
    app->stopped = app->stopped || gb_cli_interrupt_signal();
    if (app->stopped || gb_cli_is_out_of_time(app))
        return;
    jobs->n_workers = jobs->n_workers > n ? jobs->n_workers : n;
    if (jobs->memory_limit <= 0)
        jobs->memory_limit = gb_cli_memory_limit();
    gb_cli_progress_show(&app->progress, test->index, test->file);
    gb_job *job = add_job(app, test, &result, JOB_RUNS);
    start_job(app, job, idle_worker(jobs, n, app->settings.isa));
}

void gb_cli_end_behind_jobs(gb_interpreter *app, const gb_case *test, gb_case_result *result)
{
    while (app->jobs.n == JOB_LIMIT && !app->stopped)
        look_at_workers(app);
    if (app->jobs.n == 0)
        gb_cli_end_case(app, &app->settings, test, result);
    else if (app->jobs.n < JOB_LIMIT)
        add_job(app, test, result, JOB_ENDED);
}

void gb_cli_finish_jobs(gb_interpreter *app)
{
    while (app->jobs.n > 0 && !app->unwritten)
        look_at_workers(app);
}

void gb_cli_report_ended_jobs(gb_interpreter *app, bool print)
{
    for (size_t i = 0; i < app->jobs.n; i++) {
        const gb_job *job = &app->jobs.queue[i];
        const gb_waiting_case *of = job->of;
        if (job->state != JOB_ENDED || of->result.left_out)
            continue;
        if (print) {
            print_what_was_kept(job);
            gb_cli_print_case(app, &of->settings, &of->test, &of->result);
        } else {
            gb_cli_count_case(app, &of->settings, &of->test, &of->result, of->messages);
        }
    }
}

void gb_cli_jobs_free(gb_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n_workers; i++) {
        if (jobs->workers[i].busy)
            gb_cli_isolated_stop(&jobs->workers[i]);
        gb_cli_isolation_free(&jobs->workers[i]);
    }
    for (size_t i = 0; i < jobs->n; i++)
        free_job(&jobs->queue[i]);
    *jobs = (gb_jobs){.n = 0};
}
