/* Runs a whole graph: what a framework's executor does with partitions. */
#ifndef EXECUTOR_H
#define EXECUTOR_H

#include "example.h"

typedef struct executor executor;

/* Partitions, compiles and allocates for a finalized graph all of whose input shapes are known;
 * gives up on an op that no engine supports. */
executor *executor_create(gb_graph *graph);
void executor_destroy(executor *run);

/* Memory of a tensor: inputs are filled in by the caller. */
void *executor_data(const executor *run, size_t tensor_id);
/* All partitions once. */
void executor_run(executor *run);
/* Says which partitions were formed and what they run. */
void executor_print(const executor *run);
size_t executor_partitions(const executor *run);

#endif
