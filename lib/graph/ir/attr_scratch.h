/* Attributes that programs define (gb_op_attr_define). */
#ifndef GB_GRAPH_IR_ATTR_SCRATCH_H
#define GB_GRAPH_IR_ATTR_SCRATCH_H

#include "graph/ir/graph.h"

/* NULL when there is none of this number. */
const char *gb_scratch_name(gb_op_attr attr);
gb_attr_type gb_scratch_type(gb_op_attr attr); /* the attribute is defined */
bool gb_scratch_find(const char *name, gb_op_attr *attr);

#endif
