/* The executor of the CPU backend: steps on OpenMP's threads, or on the caller's. */
#ifndef GB_KERNELS_CPU_EXECUTE_H
#define GB_KERNELS_CPU_EXECUTE_H

#include "runtime/backend.h"

/* The functions of gb_backend. */
gb_status gb_cpu_finish(gb_program *program, const gb_engine *engine);
void gb_cpu_program_fini(gb_program *program);
size_t gb_cpu_scratch_bytes(const gb_program *program, const gb_stream *stream);
gb_status gb_cpu_execute(const gb_execution *execution);
gb_status gb_cpu_digest(
        gb_stream *stream, void *memory, size_t offset, size_t bytes, gb_digest *digest);
gb_status gb_cpu_stream_init(gb_stream *stream, const gb_stream_interop *interop);
void gb_cpu_stream_fini(gb_stream *stream);

#endif
