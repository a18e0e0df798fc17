/* Measuring a piece of code: warm-up, batches long enough for the clock, samples until the median
 * is known well. Knows nothing of what it times. */
#ifndef GB_CLI_RUN_MEASURE_H
#define GB_CLI_RUN_MEASURE_H

#include <stdint.h>

typedef struct gb_measurement {
    int64_t n_samples, calls_per_sample;
    /* Nanoseconds per call. */
    int64_t min_ns, median_ns, average_ns, p90_ns, p99_ns, mad_ns;
    const char *stopped_by; /* "precision", "budget" or "count"; static */
} gb_measurement;

/* Monotonic clock in nanoseconds. */
int64_t gb_cli_now_ns(void);

/* Returns 0 to go on; another value ends the measurement and is returned. */
typedef int (*gb_measured_fn)(void *payload);

/* Calls `function` for about budget_ms in all, or exactly `count` times when count > 0 (then every
 * call is a sample). */
int gb_cli_measure(gb_measured_fn function, void *payload, double budget_ms, int64_t count,
        gb_measurement *result);

#endif
