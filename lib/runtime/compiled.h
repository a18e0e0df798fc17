/* The compiled partition: an immutable program, shared by all that is compiled from equal content,
 * and the constants it used last. */
#ifndef GB_RUNTIME_COMPILED_H
#define GB_RUNTIME_COMPILED_H

#include "graph/ir/content.h"
#include "runtime/constant_cache.h"
#include "runtime/runtime.h"

typedef enum gb_buffer_placement {
    GB_PLACEMENT_INPUT,     /* input port `index` */
    GB_PLACEMENT_OUTPUT,    /* output port `index` */
    GB_PLACEMENT_ARENA,     /* `offset` in the scratchpad */
    GB_PLACEMENT_CONSTANTS, /* `offset` in the constant block */
    GB_PLACEMENT_LITERALS   /* `offset` in the program's memory of numbers */
} gb_buffer_placement;

typedef struct gb_buffer {
    gb_buffer_placement placement;
    uint32_t index;
    size_t bytes, offset;
    float *numbers;                 /* known at compilation; owned; NULL once they lie in memory */
    uint32_t first_step, last_step; /* life of an arena buffer */
    bool constant;                  /* same content in every execution */
    bool prepares;                  /* an input that constant steps read */
} gb_buffer;

/* A step between gb_program_begin() and gb_program_add(). */
typedef struct gb_unfinished_step {
    struct gb_unfinished_step *next;
    gb_step step;
} gb_unfinished_step;

struct gb_program {
    gb_graph *graph; /* owned; the partition's graph after the passes */
    uint64_t compile_key;
    bool is_printed; /* steps keep their text */
    uint32_t group;  /* that steps are being added for */
    uint32_t n_steps, step_capacity;
    gb_step *steps;                 /* owned */
    gb_unfinished_step *unfinished; /* owned */
    bool *step_is_constant;         /* owned; runs once per set of constants */
    uint32_t n_buffers, buffer_capacity;
    gb_buffer *buffers;      /* owned */
    uint32_t *value_buffers; /* per value of the graph, GB_NONE = none yet; owned */
    size_t arena_bytes;      /* temporaries */
    size_t constant_bytes, number_bytes;
    size_t guard_bytes; /* behind each temporary and constant, which nothing may write */
    void *numbers;      /* memory object with all numbers; the executable's; NULL: there are none */
    size_t n_slots;     /* uses of all steps */
    double work, constant_work;
    double spared; /* of steps that are not constant */
    void *state;   /* the backend's */
};

/* One end of a partition: the value of the graph, and the tensor as compiled. Tensor ids are those
 * of whoever compiled first. */
typedef struct gb_port {
    uint32_t value;
    gb_logical_tensor tensor;
} gb_port;

/* Numbers of ports that may share memory. */
typedef struct gb_port_pair {
    uint32_t input, output;
} gb_port_pair;

/* What compiling asks: the graph with the caller's descriptions of its ports, and which values
 * leave it. */
typedef struct gb_request {
    const gb_engine *engine;
    uint64_t compile_key; /* the engine's at the time */
    gb_graph *graph;      /* owned */
    gb_content content;
    uint32_t n_inputs, n_outputs;
    uint32_t *inputs, *outputs; /* values of the ports; owned */
} gb_request;

/* What compiling makes. Immutable. */
typedef struct gb_executable {
    atomic_uint references;
    gb_request request; /* what was asked; its graph is as it was before the passes */
    gb_request settled; /* what is asked with the results as they became, where the request left
                           them open; without a graph otherwise */
    gb_engine *engine;  /* counted */
    gb_program program;
    gb_port *inputs, *outputs; /* as many as the request has; owned */
    char *kernels;             /* owned */
    uint32_t n_pairs;
    gb_port_pair *pairs; /* owned */
    double flops, bytes;
    size_t owner;        /* of constants that no other code could share; no code had it before; 0:
                            there are none */
    gb_digest constants; /* what the constant steps do; of the owner when there is one */
} gb_executable;

/* Compiles anew. When it succeeds, what the request owns belongs to the executable; the request
 * itself is left as it is. */
gb_status gb_executable_create(
        gb_request *request, const gb_backend *backend, gb_executable **executable);
/* The executable for a request, from the cache when it has it. Takes the request over when it is
 * compiled anew. Counted for the caller. *same is the executable's request that equals the one
 * asked. */
gb_status gb_executable_get(gb_request *request, const gb_backend *backend,
        gb_executable **executable, const gb_request **same);
void gb_executable_release(gb_executable *executable);
void gb_request_clear(gb_request *request);

struct gb_compiled_partition {
    atomic_uint references;
    gb_executable *executable;  /* counted; NULL when there are unknown dims */
    struct gb_dynamic *dynamic; /* owned; instead of code then */
    uint32_t n_inputs, n_outputs;
    gb_logical_tensor *inputs, *outputs; /* as compiled, in the caller's order; owned */
    uint32_t *input_ports; /* per input port of the executable: its place in the caller's order;
                              owned */
    uint32_t *output_ports;
    gb_inplace_pair *inplace; /* as many as the executable has pairs; owned */
    pthread_mutex_t lock;     /* of `constants` */
    gb_partition *partition;  /* counted */
    char *ops;                /* kinds and names, for reports; owned */
    gb_constants *constants;  /* those it used last, held; NULL before the first execution */
};

/* Adds an owner; gb_compiled_partition_destroy() takes one away. */
gb_compiled_partition *gb_compiled_partition_retain(const gb_compiled_partition *compiled);
/* Compiles for descriptions that leave nothing of the inputs open. */
gb_status gb_compile_for_shapes(gb_compiled_partition **compiled, const gb_partition *partition,
        uint64_t compile_key, size_t n_inputs, const gb_logical_tensor *const *inputs,
        size_t n_outputs, const gb_logical_tensor *const *outputs, const gb_engine *engine);
/* What an execution is given. */
typedef struct gb_execute_arguments {
    gb_stream *stream;
    size_t n_inputs, n_outputs;
    const gb_tensor *const *inputs; /* the caller's, in the order of compilation */
    gb_tensor *const *outputs;
    gb_tensor *scratchpad; /* or NULL */
    size_t n_dependencies;
    const gb_event *const *dependencies;
    gb_event **event; /* result; NULL: nobody asks */
} gb_execute_arguments;

/* gb_compiled_partition_execute_with_events(), whose failures nobody is told of yet. */
gb_status gb_execute(const gb_compiled_partition *compiled, const gb_execute_arguments *arguments);
/* Executes what was compiled with unknown dims, on tensors that fit it. */
gb_status gb_execute_specialized(
        const gb_compiled_partition *compiled, const gb_execute_arguments *arguments);

/* Fails where an answer depends on dims that are unknown. */
gb_status gb_check_specialized(const gb_compiled_partition *compiled, const char *what);

/* Gives the partition's ports in `graph`, a clone of its own, the dims of the inputs given, dense,
 * and all that follows from them. */
gb_status gb_fill_in_dense(const gb_partition *partition, gb_graph *graph, size_t n_inputs,
        const gb_logical_tensor *const *inputs);

/* Is the rank, a dim or a stride unknown? */
bool gb_is_open(const gb_logical_tensor *tensor);
/* Makes strides unknown. */
void gb_forget_layout(gb_logical_tensor *tensor);
/* Makes rank, dims and strides unknown. */
void gb_forget_shape(gb_logical_tensor *tensor);
/* The same for all values of `graph`, a clone of the partition's, which are to be inferred anew.
 * Where all inputs are given with the dims that the graph has, dims stay: some follow from nothing
 * else. */
void gb_forget_shapes(const gb_partition *partition, gb_graph *graph, size_t n_inputs,
        const gb_logical_tensor *const *inputs);
/* The first of the list with the id, or NULL. */
const gb_logical_tensor *gb_find_tensor(
        size_t n, const gb_logical_tensor *const *tensors, size_t id);

/* Does what an application gives fit what was compiled, whose unknown rank, dims and strides fit
 * any? `may_be_open`: unknown ones of `given` fit, too. The message starts with `side` and
 * position. */
gb_status gb_check_given(const gb_logical_tensor *given, const gb_logical_tensor *compiled,
        bool may_be_open, const char *side, uint32_t position);
/* The same for the tensors of an execution. */
gb_status gb_check_tensors(const gb_compiled_partition *compiled, const gb_tensor *const *inputs,
        gb_tensor *const *outputs);

/* Fills in the pairs of ports that may share memory. */
gb_status gb_find_inplace_pairs(gb_executable *executable);

/* Decides where every buffer lies and which steps are constant. */
gb_status gb_program_plan(gb_program *program);
void gb_program_clear(gb_program *program);
/* The planned program as text (docs/program-text.md), step by step; `groups` is what it was lowered
 * from. */
void gb_program_print(const gb_program *program, const gb_groups *groups, FILE *file);
/* What the constant steps make of their inputs, whatever program they are part of. False: not all
 * of them tell. */
bool gb_program_digest_constants(
        const gb_program *program, const gb_backend *backend, gb_digest *digest);
/* Bytes an execution on the stream (NULL: on any) needs as scratchpad, cache-line alignment
 * included. */
size_t gb_code_scratch(const gb_executable *executable, const gb_stream *stream);

#endif
