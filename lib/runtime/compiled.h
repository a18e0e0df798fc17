/* The compiled partition: an immutable program, and the constants it prepared. */
#ifndef GB_RUNTIME_COMPILED_H
#define GB_RUNTIME_COMPILED_H

#include "runtime/runtime.h"

typedef enum gb_buffer_home {
    GB_HOME_INPUT,    /* the caller's input `index` */
    GB_HOME_OUTPUT,   /* the caller's output `index` */
    GB_HOME_ARENA,    /* `offset` in the scratchpad */
    GB_HOME_CONSTANTS /* `offset` in the constant block */
} gb_buffer_home;

typedef struct gb_buffer {
    gb_buffer_home home;
    uint32_t index;
    size_t bytes, offset;
    uint32_t first_step, last_step; /* life of an arena buffer */
    bool constant;                  /* same content in every execution */
} gb_buffer;

struct gb_program {
    gb_graph *graph; /* owned; the partition's graph after the passes */
    int n_threads;
    uint32_t n_steps, step_capacity;
    gb_step *steps;         /* owned */
    bool *step_is_constant; /* owned; runs once per set of constants */
    uint32_t n_buffers, buffer_capacity;
    gb_buffer *buffers;                /* owned */
    uint32_t *value_buffers;           /* per value of the graph, GB_NONE = none yet; owned */
    size_t arena_bytes;                /* temporaries */
    size_t shared_bytes, thread_bytes; /* scratch of steps */
    size_t constant_bytes;
    size_t n_slots; /* uses of all steps */
    double work, constant_work;
};

/* Results of the constant steps for one set of constant inputs. */
typedef struct gb_constants {
    uint32_t references;
    void *memory;  /* of the engine's allocator */
    void **inputs; /* memory of every input of the partition when they were made (NULL for variable
                      ones) */
} gb_constants;

struct gb_compiled_partition {
    gb_engine *engine; /* counted */
    gb_program program;
    uint32_t n_inputs, n_outputs;
    gb_logical_tensor *inputs, *outputs; /* as compiled, in the caller's order; owned */
    char *kernels;                       /* owned */
    uint32_t n_inplace;
    gb_inplace_pair *inplace; /* owned */
    double flops, bytes;
    pthread_mutex_t lock;    /* of `constants` */
    gb_constants *constants; /* the latest set; NULL before the first execution */
};

/* Fills in the pairs of ports that may share memory. */
gb_status gb_find_inplace_pairs(gb_compiled_partition *compiled);

/* Decides where every buffer lies and which steps are constant. */
gb_status gb_program_plan(gb_program *program);
void gb_program_clear(gb_program *program);
/* Bytes an execution on n_threads threads needs as scratchpad, cache-line alignment included. */
size_t gb_program_scratch(const gb_program *program, int n_threads);

void gb_constants_release(gb_compiled_partition *compiled, gb_constants *constants);

#endif
