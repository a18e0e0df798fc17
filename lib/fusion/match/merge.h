/* The policy "max". */
#ifndef GB_FUSION_MATCH_MERGE_H
#define GB_FUSION_MATCH_MERGE_H

#include "fusion/fusion.h"

/* Joins partitions that one leads to the other of, and that the engine supports, to partitions of
 * at most `most_ops` ops (those that have more stay), so that none depends on its own results. The
 * parts come in an order of execution; `part_of` is that of the parts given, and does not change.
 * *merged and what it holds are the caller's; `parts` lose what it took over. */
gb_status gb_merge_parts(const gb_graph *graph, uint32_t most_ops, uint32_t n_parts, gb_part *parts,
        const uint32_t *part_of, uint32_t *n_merged, gb_part **merged);

#endif
