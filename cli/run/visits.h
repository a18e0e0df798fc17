/* Several visits of each case over the run: cases wait in a pool until all their visits are done,
 * and are visited in random order, so that a bad minute of the machine falls on many cases a little
 * and not on one. */
#ifndef GB_CLI_RUN_VISITS_H
#define GB_CLI_RUN_VISITS_H

#include "cli/run/run.h"

/* Cases that wait together; with the samples of each, what bounds the memory. Nothing of a case
 * stays compiled or allocated between two visits. */
enum { POOL_LIMIT = 64 };

typedef struct gb_waiting_case {
    gb_settings settings; /* of this case alone; owned */
    gb_case test;         /* lent: `texts`, and `choice` by the settings */
    char *texts[4];       /* owned: file, path, repro, arguments */
    gb_case_result result;
    char *messages; /* owned */
    int64_t visits;
    bool failed; /* no further visit */
} gb_waiting_case;

/* All zero is empty. */
typedef struct gb_pool {
    gb_waiting_case *cases[POOL_LIMIT]; /* owned */
    size_t n;
    gb_rates best;            /* probes that the summaries know of */
    int64_t patient_until_ns; /* on the monotonic clock; 0: all cases still have visits of their own to make */
} gb_pool;

/* What one visit of a partition, one of `n_parts`, may take. Of several, all of them end to end take
 * as much as all of them alone: half of the visit's budget. */
gb_visit_plan gb_cli_visit_plan(const gb_settings *settings, size_t n_parts, bool end_to_end);

/* A case that outlives the interpreter's settings. Takes the result over; to be freed by
 * gb_cli_waiting_case_free(). */
gb_waiting_case *gb_cli_waiting_case_create(const gb_settings *settings, const gb_case *test,
        gb_case_result *result, const char *messages);
void gb_cli_waiting_case_free(gb_waiting_case *waiting);

/* Adds a case behind its first visit. Takes the result over. */
void gb_cli_pool_add(gb_pool *pool, const gb_settings *settings, const gb_case *test,
        gb_case_result *result, const char *messages);
/* The order of the next round of visits: `order` gets the numbers of the cases that need one,
 * shuffled. How many these are; 0: all are done. */
size_t gb_cli_pool_round(gb_pool *pool, size_t order[POOL_LIMIT]);
/* Takes the visit over. What it said (`messages`, a line each) is kept, unless an earlier visit said
 * the same. */
void gb_cli_pool_join(
        gb_waiting_case *waiting, gb_case_result *visit, gb_status status, const char *messages);
void gb_cli_pool_clear(gb_pool *pool);

#endif
