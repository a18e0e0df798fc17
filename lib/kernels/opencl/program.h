/* Steps of an OpenCL engine: a kernel's source with the numbers it reads, and what is built of it. */
#ifndef GB_KERNELS_OPENCL_PROGRAM_H
#define GB_KERNELS_OPENCL_PROGRAM_H

#include "kernels/opencl/engine.h"
#include "runtime/compiled.h"

/* gb_step.params. A kernel's arguments are a buffer of numbers, the place of its own in there, and
 * for each use of the step a memory object and the offset in bytes. Sizes and strides are numbers,
 * so that many steps share a source. */
typedef struct gb_cl_step {
    const char *source;     /* memory of the step; numbers.cl and memory.cl come in front of it */
    bool uses_math;         /* math.cl, too */
    int lanes;              /* 2, 4, 8 or 16: vectors.cl, too; else 0 */
    const char *family;     /* one of these below, behind it; or NULL */
    const int64_t *numbers; /* memory of the step */
    uint32_t n_numbers;
    size_t global[3], local[3]; /* work-items; global[i] is a multiple of local[i] */
    /* Instead of all that: an op of the application's own, which the host calls, and the slots of
     * its inputs and outputs, memory of the step. NULL: a kernel. */
    const gb_op *op;
    const uint32_t *slots;
} gb_cl_step;

/* The files of lib/kernels/opencl/cl (sources.c, which the build writes). */
extern const char gb_cl_numbers[], gb_cl_math[], gb_cl_attention[], gb_cl_attention_gradients[],
        gb_cl_attention_over_queries[], gb_cl_attention_shared[], gb_cl_conv_pair[], gb_cl_gemm[],
        gb_cl_late[], gb_cl_memory[], gb_cl_pack[], gb_cl_resample[], gb_cl_rows[], gb_cl_tiles[],
        gb_cl_vectors[], gb_cl_window[];

/* Name of every kernel. */
#define GB_CL_KERNEL "gb_run"

/* program->state */
typedef struct gb_cl_program {
    pthread_mutex_t lock; /* while arguments are set */
    cl_mem numbers;       /* of all steps; NULL: there are none */
    uint32_t n_kernels;
    cl_kernel *kernels;     /* one for each step, NULL for an op that the host calls; owned */
    size_t *number_offsets; /* where those of a step begin; owned */
} gb_cl_program;

gb_status gb_cl_program_finish(gb_program *program, const gb_engine *engine);
void gb_cl_program_fini(gb_program *program);

/* built.c: the program of a source, from the engine's list, the disk or the compiler; to be
 * released. */
gb_status gb_cl_build(gb_cl_engine *e, const gb_cl_step *step, cl_program *built);
void gb_cl_built_free_all(gb_cl_engine *e);
/* All that the engine has built or loaded. */
gb_status gb_cl_built_collect(gb_cl_engine *e, gb_cl_blob_writer *writer);
/* Of the device, its driver and the options of builds. */
gb_digest gb_cl_device_digest(const gb_cl_device *device);

/* cache.c: binaries on disk, by a digest of all that they depend on. NULL when there is none; to be
 * freed. */
bool gb_cl_cache_is_on(void);
void *gb_cl_cache_load(const gb_digest *key, size_t *bytes);
void gb_cl_cache_store(const gb_digest *key, const void *data, size_t bytes);
void gb_cl_cache_drop(const gb_digest *key);

#endif
