/* Structs of attributes that start with their size, so that they may grow. */
#ifndef GB_RUNTIME_ATTRS_H
#define GB_RUNTIME_ATTRS_H

#include <graphbench/graphbench.h>

/* Copies what the caller gives (NULL: nothing) to `attrs` of `bytes`, which come as zeros. Another
 * size than that of a version that was is GB_INVALID_ARGUMENTS. */
gb_status gb_attrs_take(const char *function, void *attrs, size_t bytes, const void *given);

#endif
