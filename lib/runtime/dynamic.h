/* Compiled partitions for dims that are not known yet: one ordinary compiled partition for each set
 * of shapes that was asked for. */
#ifndef GB_RUNTIME_DYNAMIC_H
#define GB_RUNTIME_DYNAMIC_H

#include "runtime/runtime.h"

typedef struct gb_dynamic gb_dynamic;

/* Keeps the partition and the engine. `inputs` and `outputs` (n_inputs and n_outputs of them, as
 * compiled; id GB_NO_ID: no port) must live as long. */
gb_status gb_dynamic_create(gb_dynamic **dynamic, const gb_partition *partition,
        const gb_engine *engine, uint32_t n_inputs, const gb_logical_tensor *inputs,
        uint32_t n_outputs, const gb_logical_tensor *outputs);
void gb_dynamic_free(gb_dynamic *dynamic);
const gb_partition *gb_dynamic_partition(const gb_dynamic *dynamic);
const gb_engine *gb_dynamic_engine(const gb_dynamic *dynamic);

/* The compiled partition for the given descriptions, in the order of compiling; those of inputs are
 * complete, and all fit what was compiled. Made when there is none, by one thread if several ask
 * at once. Counted for the caller. */
gb_status gb_dynamic_get(gb_dynamic *dynamic, const gb_logical_tensor *const *inputs,
        const gb_logical_tensor *const *outputs, gb_compiled_partition **specialized);

#endif
