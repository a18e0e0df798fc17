/* Tensors that are written: each element has a place of its own. */
#ifndef GB_GRAPH_IR_WRITTEN_H
#define GB_GRAPH_IR_WRITTEN_H

#include "graph/ir/graph.h"

/* Do elements of a strided tensor share memory? Not as long as dims or strides are unknown. Strides
 * for which this would take long to find out (more than a million steps; where axes nest it takes
 * one for each) count as shared. */
bool gb_elements_overlap(const gb_logical_tensor *tensor);
/* GB_INVALID_ARGUMENTS when they do, so that nothing may be written to it. */
gb_status gb_check_written(const gb_logical_tensor *tensor);
/* The same of every tensor that an op of the graph makes. */
gb_status gb_graph_check_written(const gb_graph *graph);

#endif
