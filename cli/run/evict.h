/* Cold caches: what --cold-cache names is flushed to memory, line by line and from the caches of all
 * cores, before each timed execution. Code, plans and entries of the TLB stay where they are. */
#ifndef GB_CLI_RUN_EVICT_H
#define GB_CLI_RUN_EVICT_H

#include "cli/run/workload.h"

typedef struct gb_cached_range {
    const void *data; /* lent */
    size_t bytes;
} gb_cached_range;

/* All zero is empty. */
typedef struct gb_eviction {
    size_t n;
    gb_cached_range *ranges; /* owned */
} gb_eviction;

/* Can this machine do it, and is there something to evict? If not, the case is SKIPPED, and *go_on is
 * false. Of a compiled workload. */
gb_status gb_cli_eviction_check(gb_workload *work, bool *go_on);
/* Adds what the settings name of a partition that was executed: its weights and what was prepared of
 * constants, or all tensors, too. */
gb_status gb_cli_eviction_add(
        const gb_workload *work, const gb_work_part *part, gb_eviction *eviction);
/* Flushes; by all threads, which are awake then for what follows. */
void gb_cli_evict(const gb_eviction *eviction);
void gb_cli_eviction_free(gb_eviction *eviction);

#endif
