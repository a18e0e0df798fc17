/* Input data: a pure function of (seed, tensor id, logical index), in the range that the op reading
 * the tensor calls for. */
#ifndef GB_CLI_RUN_FILL_H
#define GB_CLI_RUN_FILL_H

#include "cli/options/settings.h"
#include "cli/run/memory.h"

/* Fills the memory of an input of the (finalized) graph. */
gb_status gb_cli_fill(const gb_graph *graph, gb_fill fill, int64_t seed, gb_memory *memory);
/* Copies the contents that came with a model. False: there are none, or the tensor has another type
 * or layout now. */
bool gb_cli_fill_from_model(const gb_graph *graph, const gb_memory *memory);

#endif
