/* The passes, one file each. */
#ifndef GB_FUSION_PASSES_H
#define GB_FUSION_PASSES_H

#include "fusion/fusion.h"

/* Needs known dims. Divides the ops into groups that run as one kernel each: context->groups. End
 * ops belong to none. */
gb_status gb_pass_group(gb_graph *graph, gb_pass_context *context);

#endif
