/* The environment doctor. Each check reads what Linux says; what is not there is no fault. */
#define _GNU_SOURCE
#include "cli/report/doctor.h"

#include "cli/run/machine.h"
#include "cli/run/measure.h"

#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Shares of the processors' time, and changes of the clock, from which on times are doubtful or
 * worthless. */
static const double doubtful_steal = 0.01, bad_steal = 0.1;
static const double doubtful_clock = 0.03, bad_clock = 0.25;
static const long watch_ns = 250000000;

static void add(gb_diagnosis *d, const char *name, gb_check_grade grade, const char *advice,
        const char *format, ...) __attribute__((format(printf, 5, 6)));

static void add(gb_diagnosis *d, const char *name, gb_check_grade grade, const char *advice,
        const char *format, ...)
{
    gb_check *check = &d->checks[d->n++];
    *check = (gb_check){.name = name, .advice = advice, .grade = grade};
    va_list args;
    va_start(args, format);
    vsnprintf(check->finding, sizeof check->finding, format, args);
    va_end(args);
}

static int allowed_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                       : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static void check_affinity(gb_diagnosis *d, int threads, int allowed)
{
    add(d, "affinity", threads > allowed ? CHECK_BAD : CHECK_GOOD,
            "threads take turns on a processor: use --threads, OMP_NUM_THREADS or taskset",
            "%d threads on %d processors", threads, allowed);
}

/* The quota of the control group, version 2 or 1, in processors; 0: none. */
static double read_quota(void)
{
    char line[64];
    double quota;
    if (gb_cli_first_line("/sys/fs/cgroup/cpu.max", line, sizeof line)) {
        char *period;
        quota = strtod(line, &period); /* "max": none */
        return quota > 0 ? quota / strtod(period, NULL) : 0;
    }
    if (!gb_cli_first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof line) ||
            (quota = strtod(line, NULL)) <= 0 ||
            !gb_cli_first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", line, sizeof line))
        return 0;
    return quota / strtod(line, NULL);
}

int gb_cli_usable_processors(void)
{
    double quota = read_quota();
    int allowed = allowed_processors();
    return quota > 0 && quota < allowed ? (int)fmax(1, quota) : allowed;
}

static void check_quota(gb_diagnosis *d, int threads)
{
    double quota = read_quota();
    if (quota > 0)
        add(d, "quota", quota < threads ? CHECK_BAD : CHECK_GOOD,
                "the control group stops the program in the middle: use fewer threads",
                "%.3g processors for %d threads", quota, threads);
    else
        add(d, "quota", CHECK_GOOD, NULL, "none");
}

static void check_smt(gb_diagnosis *d, int threads, int allowed)
{
    char line[64];
    if (!gb_cli_first_line("/sys/devices/system/cpu/smt/active", line, sizeof line))
        return;
    bool active = strcmp(line, "1") == 0;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    bool crowded = active && 2 * threads > allowed;
    add(d, "SMT", crowded ? CHECK_DOUBTFUL : CHECK_GOOD,
            "two threads share a core: use half as many, or pin them to cores of their own",
            "%s, %ld processors", active ? "on" : "off", online);
}

static void check_governor(gb_diagnosis *d)
{
    char line[64];
    if (!gb_cli_first_line(
                "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", line, sizeof line)) {
        add(d, "governor", CHECK_GOOD, NULL, "none to be seen");
        return;
    }
    add(d, "governor", strcmp(line, "performance") == 0 ? CHECK_GOOD : CHECK_DOUBTFUL,
            "the clock follows the load: choose the governor performance", "%s", line);
}

static void check_huge_pages(gb_diagnosis *d)
{
    char line[128];
    if (!gb_cli_first_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line))
        return;
    char *chosen = strchr(line, '[');
    bool never = chosen && strncmp(chosen, "[never]", 7) == 0;
    add(d, "huge pages", never ? CHECK_DOUBTFUL : CHECK_GOOD,
            "streams take up to 1.5 times as long: write madvise to transparent_hugepage/enabled",
            "%s", line);
}

static void check_load(gb_diagnosis *d, double busy, int threads, int allowed)
{
    double load[1], room = allowed - busy;
    if (getloadavg(load, 1) != 1)
        load[0] = -1;
    gb_check_grade grade = room >= threads - 0.25  ? CHECK_GOOD
                           : room >= 0.5 * threads ? CHECK_DOUBTFUL
                                                   : CHECK_BAD;
    add(d, "load", grade, "other programs run: stop them, or use fewer threads",
            "%.2f of %d processors busy, average of the last minute %.2f", busy, allowed, load[0]);
}

static void check_steal(gb_diagnosis *d, double steal)
{
    gb_check_grade grade = steal > bad_steal        ? CHECK_BAD
                           : steal > doubtful_steal ? CHECK_DOUBTFUL
                                                    : CHECK_GOOD;
    add(d, "steal", grade, "the hypervisor gives processors to others: measure at another time",
            "%.1f %% of the time", 100 * steal);
}

static void check_clock(gb_diagnosis *d, double before_ns, double after_ns)
{
    double change = fabs(after_ns / before_ns - 1);
    gb_check_grade grade = change > bad_clock        ? CHECK_BAD
                           : change > doubtful_clock ? CHECK_DOUBTFUL
                                                     : CHECK_GOOD;
    add(d, "clock", grade, "the frequency changes, or a neighbour shares the core",
            "a chained multiply-add takes %.3g ns, then %.3g ns", before_ns, after_ns);
}

void gb_cli_diagnose(int threads, gb_diagnosis *diagnosis)
{
    int allowed = allowed_processors();
    *diagnosis = (gb_diagnosis){0};
    double before_ns = gb_cli_chain_ns();
    gb_cpu_times begin = gb_cli_cpu_times();
    nanosleep(&(struct timespec){.tv_nsec = watch_ns}, NULL);
    double steal = gb_cli_steal_since(&begin), idle = gb_cli_idle_since(&begin);
    double after_ns = gb_cli_chain_ns();
    diagnosis->chain_ns = after_ns;
    check_affinity(diagnosis, threads, allowed);
    check_quota(diagnosis, threads);
    check_smt(diagnosis, threads, allowed);
    check_governor(diagnosis);
    check_huge_pages(diagnosis);
    if (idle >= 0)
        check_load(diagnosis, (1 - idle) * (double)allowed, threads, allowed);
    check_steal(diagnosis, steal);
    check_clock(diagnosis, before_ns, after_ns);
}

bool gb_cli_diagnosis_is_bad(const gb_diagnosis *diagnosis)
{
    bool bad = false;
    for (size_t i = 0; i < diagnosis->n; i++)
        bad = bad || diagnosis->checks[i].grade == CHECK_BAD;
    return bad;
}

json_object *gb_cli_diagnosis_record(const gb_diagnosis *diagnosis)
{
    static const char *const words[] = {
            [CHECK_GOOD] = "good", [CHECK_DOUBTFUL] = "doubtful", [CHECK_BAD] = "bad"};
    json_object *list = json_object_new_array();
    for (size_t i = 0; i < diagnosis->n; i++) {
        const gb_check *check = &diagnosis->checks[i];
        json_object *object = json_object_new_object();
        json_object_object_add(object, "name", json_object_new_string(check->name));
        json_object_object_add(object, "grade", json_object_new_string(words[check->grade]));
        json_object_object_add(object, "finding", json_object_new_string(check->finding));
        json_object_object_add(object, "advice",
                check->grade == CHECK_GOOD ? NULL : json_object_new_string(check->advice));
        json_object_array_add(list, object);
    }
    return list;
}
