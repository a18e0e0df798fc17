/* The list of fusion patterns: patterns.def. */
#include "fusion/patterns/pattern_nodes.h"

const gb_pattern gb_patterns[] = {
#define GB_PATTERN(name, root) {#name, &gb_root_##root},
#include "fusion/patterns/patterns.def"
#undef GB_PATTERN
        {NULL, NULL},
};
