/* --explain: what fusion made of a case, and why not more. */
#ifndef GB_CLI_RUN_EXPLAIN_H
#define GB_CLI_RUN_EXPLAIN_H

#include "cli/run/workload.h"

#include <stdio.h>

/* A tensor between two ops; `part` is an index into the workload's partitions, SIZE_MAX for an End
 * that stands alone. */
typedef struct gb_explained_edge {
    gb_logical_tensor tensor;
    size_t producer_id, consumer_id;
    size_t producer_part, consumer_part;
    const gb_unfused_edge *unfused; /* NULL: both ops are in one partition */
} gb_explained_edge;

typedef struct gb_explanation {
    const gb_workload *work; /* lent */
    size_t n_edges, n_unfused;
    gb_explained_edge *edges; /* owned; in the order of tensors */
    gb_unfused_edge *unfused; /* owned */
} gb_explanation;

/* Writes what the settings ask for; the workload is partitioned, and compiled as far as possible.
 */
gb_status gb_cli_explain(const gb_workload *work);

gb_op_kind gb_cli_explained_kind(const gb_explanation *explanation, size_t op_id);
void gb_cli_explain_json(const gb_explanation *explanation, FILE *file);
void gb_cli_explain_dot(const gb_explanation *explanation, FILE *file);

#endif
