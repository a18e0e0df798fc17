/* What a compiled partition needs of memory beside the tensors of its ports. */
#include "base/status.h"
#include "runtime/compiled.h"

/* Values of the graph that are kept in memory between two kernels. */
static size_t intermediate_bytes(const gb_program *program)
{
    size_t bytes = 0;
    for (uint32_t v = 0; v < program->graph->n_values; v++) {
        uint32_t buffer = program->value_buffers[v];
        if (buffer != GB_NONE && program->buffers[buffer].placement == GB_PLACEMENT_ARENA)
            bytes += program->buffers[buffer].bytes;
    }
    return bytes;
}

gb_status gb_compiled_partition_get_memory(
        const gb_compiled_partition *compiled, gb_memory_use *use)
{
    if (!compiled || !use)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_compiled_partition_get_memory: NULL argument");
    GB_TRY(gb_check_specialized(compiled, "memory"));
    const gb_program *program = &compiled->executable->program;
    *use = (gb_memory_use){
            .arena = program->arena_bytes,
            .intermediates = intermediate_bytes(program),
            .scratch = compiled->executable->engine->backend->scratch_bytes(program, NULL),
            .constants = program->constant_bytes,
    };
    return GB_SUCCESS;
}
