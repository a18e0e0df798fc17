/* A case made ready to execute: partitions, compiled partitions and the memory of every tensor
 * between them. */
#ifndef GB_CLI_RUN_WORKLOAD_H
#define GB_CLI_RUN_WORKLOAD_H

#include "cli/run/memory.h"
#include "cli/run/run.h"

/* An input that the partition may take from the memory of an output. */
typedef struct gb_shared_memory {
    size_t input, output; /* indices into memories */
    gb_tensor *handle;    /* the input's description on the output's data; owned */
} gb_shared_memory;

typedef struct gb_work_part {
    gb_partition *partition;         /* owned */
    gb_compiled_partition *compiled; /* owned; NULL before gb_cli_workload_compile() and for End */
    gb_compiled_partition *dynamic;  /* owned; with --dynamic, what is executed: `compiled` is its
                                        specialization */
    size_t n_ops, n_inputs, n_outputs;
    size_t *ops;              /* ids; owned */
    size_t *inputs, *outputs; /* indices into memories; owned */
    gb_tensor **handles;      /* inputs, then outputs; owned */
    size_t n_shared;
    gb_shared_memory *shared;      /* the partition's in-place pairs; owned */
    gb_tensor **shared_handles;    /* as `handles`, the inputs of pairs in their outputs' memory;
                                         owned; NULL without pairs */
    size_t first_block, end_block; /* of the session's memory: given out in the first execution */
    gb_partition_result *result;   /* lent: its row of the case's result */
} gb_work_part;

/* What a partition computed when it was checked before. */
typedef struct gb_checked_part {
    uint64_t digest; /* of its inputs and outputs */
    double margin;
} gb_checked_part;

typedef struct gb_workload {
    gb_session *session; /* lent */
    const gb_settings *settings;
    gb_case *test;
    gb_graph *graph; /* lent: the case's, finalized */
    gb_case_result *result;
    const gb_work_part *wrong; /* the first that is, or NULL; of `parts` */
    bool quiet;                /* failures are not printed: another run has told them */
    bool any_layouts;          /* tensors between partitions lie as the library likes */
    gb_checked_part *checked; /* per partition, of the case with strided ones; owned; may be NULL */
    size_t n_parts;
    gb_work_part *parts; /* in execution order; End ops form none; owned */
    size_t n_memories;
    gb_memory *memories; /* one per tensor that enters or leaves a partition; owned */
    bool *is_given;      /* per memory: filled with data, an input of the graph or what a Wildcard
                       makes; owned */
    double reference_bytes; /* that the reference may take beside the tensors */
    gb_memory scratchpad;   /* large enough for every partition; handle NULL when none is needed */
} gb_workload;

/* Finalizes the graph and partitions it. A verdict on the case (unsupported op, count of
 * partitions) is set in the result, and *go_on is false then. */
gb_status gb_cli_workload_partition(gb_workload *work, bool *go_on);
/* Compiles all partitions in order. */
gb_status gb_cli_workload_compile(gb_workload *work, bool *go_on);
/* Hash of all that the partition reads and writes, whatever its layout. */
gb_status gb_cli_work_part_digest(
        const gb_workload *work, const gb_work_part *part, uint64_t *digest);
/* Allocates the memory of all tensors and the scratchpad. */
gb_status gb_cli_workload_allocate(gb_workload *work, bool *go_on);
/* After the inputs got their data: hands everything to the library. */
gb_status gb_cli_workload_bind(gb_workload *work);
/* Do so many bytes suffice for what the reference has between the ops, at least in slices? */
bool gb_cli_reference_fits(const gb_workload *work, size_t n_ops, const size_t *ops, double bytes);
/* Index of the tensor's memory; the number of memories when there is none. */
size_t gb_cli_workload_find(const gb_workload *work, size_t tensor_id);
/* Puts one execution on the stream, with tensors in the order of `handles`. */
gb_status gb_cli_work_part_submit(
        const gb_workload *work, const gb_work_part *part, gb_tensor *const *handles);
/* Executes one partition once and waits until that is complete; `shared`: every in-place pair in
 * one buffer (cli/inplace.h). */
gb_status gb_cli_work_part_execute(const gb_workload *work, const gb_work_part *part, bool shared);
/* Of all bytes of its outputs, as the host has them. */
uint64_t gb_cli_work_part_hash(const gb_workload *work, const gb_work_part *part);
/* Is the tensor read by ops, and by no End, which marks a result? */
gb_status gb_cli_lies_between(const gb_workload *work, size_t tensor_id, bool *between);
/* Brings the partition's outputs to where the host reads them. */
gb_status gb_cli_work_part_download(const gb_workload *work, const gb_work_part *part);
void gb_cli_workload_free(gb_workload *work);

#endif
