/* Measuring a piece of code: visits, each of which warms up and takes samples that last long enough
 * for the clock, beside probes that tell what state the machine is in; and what the samples of all
 * visits say. Knows nothing of what it times. */
#ifndef GB_CLI_RUN_MEASURE_H
#define GB_CLI_RUN_MEASURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* What the probes of the cores reached, per second; 0: not known. Another program on a core's other
 * hardware thread may leave multiply-adds in registers alone and halve what L1 gives, or the reverse. Threads
 * on cores that share no cache, as a hypervisor may place them, meet far less often. */
typedef struct gb_rates {
    double flops, l1;  /* operations; bytes */
    double handshakes; /* meetings of all threads */
    double clock;      /* steps of a chain of dependent instructions */
} gb_rates;

/* Time per call, and what is known of the moment when it was taken. */
typedef struct gb_sample {
    int64_t ns;
    gb_rates rates; /* the lower of the probes around it */
    bool preempted;
} gb_sample;

/* What one visit found. Times of what was not measured are -1. */
typedef struct gb_visit {
    int64_t at_ns;   /* its beginning, on the monotonic clock */
    int64_t cold_ns; /* the first call after much memory was streamed through the caches */
    int64_t calls_per_sample;
    size_t first, n_samples; /* its part of the samples */
    double bytes;            /* of the memory probe, per second; 0: not probed */
    double steal;            /* share of the processors' time that the hypervisor took */
} gb_visit;

/* Samples of all visits, in the order taken. All zero has none. */
typedef struct gb_measurement {
    size_t n_samples, sample_capacity;
    gb_sample *samples; /* owned */
    size_t n_visits;
    gb_visit *visits; /* owned */
    int64_t spent_ns;
    bool fixed, out_of_budget; /* a count was given; the last visit ended at its budget */
} gb_measurement;

typedef struct gb_visit_plan {
    int64_t budget_ns, least_ns; /* of the visit */
    double precision;            /* half-width of the median's interval that is narrow enough */
    int64_t count;               /* > 0: exactly so many samples of one call each */
    bool probes;
    bool one_of_several; /* others follow: ends at its least time while the machine is slow, and with
                            fewer samples of what takes long */
    /* Done before each call, and not timed; samples are of one call each then. NULL: nothing. */
    void (*before)(void *context);
    void *context;
} gb_visit_plan;

/* What the samples look like besides their quantiles. */
enum {
    FLAG_DRIFT = 1,     /* the visits' medians rise or fall */
    FLAG_BIMODAL = 2,   /* two heaps with a gap between them */
    FLAG_OUTLIERS = 4,  /* more than one in twenty lies far above the rest */
    FLAG_PREEMPTED = 8, /* all had to be taken: too few passed undisturbed */
    FLAG_SLOW = 16,     /* the machine was slow all the time, as far as this run knows */
    FLAG_STEAL = 32,    /* the hypervisor took processor time */
    FLAG_COUNT = 6
};
/* The word of the flag 1 << bit. */
const char *gb_cli_flag_name(int bit);

/* Times are nanoseconds per call, of the samples that count: those taken without preemption while
 * the machine was fast, if there are enough of them. */
typedef struct gb_summary {
    int64_t n_samples, n_preempted, n_slow; /* all; those set apart */
    int64_t min_ns, median_ns, average_ns, p90_ns, p99_ns, max_ns, mad_ns;
    int64_t low_ns,
            high_ns;      /* 95 % interval of the median, from order statistics; with three visits
                                or more of the visits' medians */
    size_t n_fast_visits; /* that have samples which count */
    unsigned flags;
    const char *stopped_by; /* "converged", "noisy", "budget" or "fixed"; static */
} gb_summary;

/* Of what was not measured: times are -1. */
extern const gb_summary gb_cli_no_times;

/* Monotonic clock in nanoseconds. */
int64_t gb_cli_now_ns(void);

/* Returns 0 to go on; another value ends the measurement and is returned. */
typedef int (*gb_measured_fn)(void *payload);

/* Adds a visit. After a failure the measurement is as before. */
int gb_cli_measure_visit(
        gb_measured_fn function, void *payload, const gb_visit_plan *plan, gb_measurement *into);
/* Adds the visits of `from`, which is empty then. */
void gb_cli_measurement_join(gb_measurement *into, gb_measurement *from);
void gb_cli_measurement_free(gb_measurement *measurement);

/* What all visits say together; there is at least one sample. Samples are slow against `best`, the
 * best of the probes so far (0: unknown). */
void gb_cli_measurement_summarize(
        const gb_measurement *measurement, double precision, gb_rates best, gb_summary *summary);
/* What one visit says. */
typedef struct gb_visit_times {
    double median_ns; /* of the samples that count; -1: too few do */
    double slow_median_ns; /* where too few count, of all that were not preempted, if the machine was in one
                              state all the time; else -1 */
    gb_rates rates; /* beside the samples of that median, on average; 0: not known */
} gb_visit_times;

gb_visit_times gb_cli_visit_times(
        const gb_measurement *measurement, const gb_visit *visit, gb_rates best);

/* In what a machine falls short of the best of its probes. */
enum {
    STATE_SLOW_ARITHMETIC = 1, /* a neighbour on a core's other hardware thread */
    STATE_SLOW_L1 = 2,
    STATE_FAR_CORES = 4, /* threads meet seldom: their cores share no cache */
};
/* A set of these; 0: fast, or not known. */
unsigned gb_cli_rates_state(gb_rates rates, gb_rates best);
bool gb_cli_rates_are_slow(gb_rates rates, gb_rates best);
/* The lower, and the higher of each. */
gb_rates gb_cli_rates_min(gb_rates a, gb_rates b);
gb_rates gb_cli_rates_max(gb_rates a, gb_rates b);

/* Of values in ascending order: the interval of their median between order statistics (binomial,
 * 95 %; fewer than six values do not reach that, and give all of their range). */
void gb_cli_median_interval(const int64_t *sorted, size_t n, int64_t *low, int64_t *high);

#endif
