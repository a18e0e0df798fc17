/* A compiled program: steps that run one after another on all threads, their buffers, and where the
 * buffers lie.
 *
 * Lowering turns each group of a partition into steps. A step reads and writes buffers: tensors of
 * the caller, temporaries in the arena, constants computed once, or numbers known at compilation.
 * Steps whose inputs are all constant (packing weights) run once per contents of the constant
 * inputs; their outputs are kept (constant_cache.h).
 */
#ifndef GB_RUNTIME_PROGRAM_H
#define GB_RUNTIME_PROGRAM_H

#include "fusion/fusion.h"

typedef struct gb_program gb_program;

/* What a step on the host's threads is called with; its backend knows more
 * (kernels/cpu/step_call.h).
 */
typedef struct gb_step_call gb_step_call;

typedef struct gb_step_use {
    uint32_t buffer;
    bool written;
    bool elementwise; /* read: an element is not needed any more when what is written by element is
                        written in its place; written: each element once. Such a read and such a
                        write may share memory, if elements lie alike in both */
} gb_step_use;

/* What a step reads and writes, and how its backend does it: the runtime looks at the first half
 * only. */
typedef struct gb_step {
    const char *kernel; /* "gemm", "tile", ...; static; for reports */
    uint32_t n_uses, use_capacity;
    gb_step_use *uses; /* owned */
    double work;       /* operations or bytes, whichever takes longer */
    double spared; /* operations that gb_op_get_work() counts for its ops and that it need not make */
    uint32_t group; /* that it was lowered from, counted from 0; set by gb_program_add() */
    const char
            *text; /* what gb_step_describe() was told: lines; NULL: nothing. Memory of the step */

    /* The backend's implementation. */
    void *params;        /* memory of the step */
    size_t params_bytes; /* of params, when these bytes and run are all there is to know about the
                            work (they point to nothing that is the step's own); else 0 */
    struct gb_step_block *memory; /* owned: what gb_step_alloc() gave */
    /* Of backends that run steps on the host's threads. */
    void (*run)(const gb_step_call *call);
    size_t thread_scratch, shared_scratch; /* bytes */
    uint32_t n_guards;
    size_t *guards; /* in thread_scratch, where bytes begin that nothing may write (base/guard.h);
                       memory of the step */
    int n_phases;   /* run is called for phase 0 .. n_phases-1, all threads meeting in between; 0
                     counts as 1 */
} gb_step;

/* Appends a use of a buffer; *slot is its index in gb_step_call.buffers. The same buffer and access
 * give the same slot. */
gb_status gb_step_use_buffer(gb_step *step, uint32_t buffer, bool written, uint32_t *slot);
/* The same for an access by element, unless the step has another such use that is not. */
gb_status gb_step_use_elementwise(gb_step *step, uint32_t buffer, bool written, uint32_t *slot);
/* Zeroed memory that lives as long as the step: what its parameters point to. NULL when out of
 * memory; count 0 gives a valid pointer. */
void *gb_step_alloc(gb_step *step, size_t count, size_t size);
/* A block of the step (NULL: none yet) with room for `count` elements, more or fewer than it had:
 * those it had are kept, further ones are zeroed. NULL when out of memory; the block then stays. */
void *gb_step_resize(gb_step *step, void *block, size_t count, size_t size);
/* Bytes of all blocks. */
size_t gb_step_bytes(const gb_step *step);
/* Frees what a step owns. */
void gb_step_clear(gb_step *step);

/* The partition's graph after the passes. All values that groups read or write are strided with
 * known dims. */
const gb_graph *gb_program_graph(const gb_program *program);
/* gb_backend.compile_key() of the engine that it is compiled for. */
uint64_t gb_program_compile_key(const gb_program *program);
/* Buffer of a value of the graph: the caller's tensor, or a temporary made on first request. */
gb_status gb_program_value(gb_program *program, uint32_t value, uint32_t *buffer);
/* Shorthand: use of the buffer of a value. */
gb_status gb_program_use(
        gb_program *program, gb_step *step, uint32_t value, bool written, uint32_t *slot);
/* The same for an access by element. */
gb_status gb_program_use_elementwise(
        gb_program *program, gb_step *step, uint32_t value, bool written, uint32_t *slot);
/* A further temporary of the program. */
gb_status gb_program_temporary(gb_program *program, size_t bytes, uint32_t *buffer);
/* A buffer that steps only read: a copy of numbers known now, as attributes are. */
gb_status gb_program_literals(
        gb_program *program, const float *numbers, size_t count, uint32_t *buffer);
/* Is the buffer the program's own, which a later step reads? */
bool gb_program_is_temporary(const gb_program *program, uint32_t buffer);
/* Is the value's content promised not to change between executions? */
bool gb_program_is_constant(const gb_program *program, uint32_t value);
/* A step to be filled in, `kernel` as in gb_step. It is the program's from now on: what fails
 * before it is finished just leaves it behind. */
gb_status gb_program_begin(gb_program *program, const char *kernel, gb_step **step);
/* Finishes a step: it runs behind those that were finished before. The pointer is not valid any
 * more. */
gb_status gb_program_add(gb_program *program, gb_step *step);

#endif
