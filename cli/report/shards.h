/* --shard: which part of the cases runs. By a hash of the reproducer line, so that a case stays in
 * its shard whatever else is run; or, with --shard-costs, by what the cases of an earlier report
 * took, so that all shards take about as long. */
#ifndef GB_CLI_REPORT_SHARDS_H
#define GB_CLI_REPORT_SHARDS_H

#include "cli/case/case.h"

#include <json-c/json.h>

/* A case of the report of costs. */
typedef struct gb_shard_case gb_shard_case;

/* All zero: no report of costs was named. */
typedef struct gb_shards {
    gb_shard_case *cases; /* owned; the longest first */
    size_t n_cases;
    uint32_t division;    /* a hash of the cases and their costs, the same in all shards of a run; 0
                             without costs */
    json_object *numbers; /* owned; the cases' shards, from 0 on, by reproducer line; NULL: they
                             are not divided yet */
} gb_shards;

/* Reads the report that --shard-costs names, if there is one that has not been read. */
gb_status gb_cli_shards_read(const gb_settings *settings, gb_shards *shards);
void gb_cli_shards_free(gb_shards *shards);

/* Is the case to be run? The first call divides the cases of the report of costs: the longest
 * first, each into the shard that has least to do, so that all shards come to the same division.
 * Cases that it does not have go by their hash. */
bool gb_cli_shards_fit(const gb_settings *settings, gb_shards *shards, const gb_case *test);

/* Continues a hash of the names of cases, 0 at first: shards of one run come to the same. */
uint32_t gb_cli_shards_hash(uint32_t hash, const gb_case *test);

#endif
