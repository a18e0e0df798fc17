/* Memory that an engine's allocator gave out and did not get back: with memory of the program's for
 * everything else, that is where the library has what it prepared of constants. */
#ifndef GB_CLI_RUN_HELD_MEMORY_H
#define GB_CLI_RUN_HELD_MEMORY_H

#include <graphbench/graphbench.h>

typedef struct gb_held_memory gb_held_memory;

/* An engine on the CPU whose memory is listed in *held, which must outlive the engine. */
gb_status gb_cli_held_engine_create(gb_engine **engine, gb_held_memory **held);
void gb_cli_held_free(gb_held_memory *held);
/* The serial of the next block. */
size_t gb_cli_held_next(gb_held_memory *held);
/* Visits the blocks held now with serials from `first` up to, without, `end`. */
void gb_cli_held_visit(gb_held_memory *held, size_t first, size_t end,
        void (*visit)(void *context, const void *data, size_t bytes), void *context);

#endif
