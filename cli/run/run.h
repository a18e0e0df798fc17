/* Running one loaded case: partition, compile, execute, compare, measure. */
#ifndef GB_CLI_RUN_RUN_H
#define GB_CLI_RUN_RUN_H

#include "cli/case/case.h"
#include "cli/run/measure.h"

typedef enum gb_case_status {
    CASE_PASSED,
    CASE_FAILED,
    CASE_MISTRUSTED,
    CASE_SKIPPED,
    CASE_UNIMPLEMENTED,
    CASE_INVALID_ARGUMENTS,
    CASE_UNTESTED_FAILED,
    CASE_CRASHED, /* of cases in a worker, as the next two */
    CASE_TIMEOUT,
    CASE_OUT_OF_MEMORY,
    CASE_LISTED,
    CASE_INITIALIZED,
    CASE_EXECUTED,
    CASE_STATUS_COUNT
} gb_case_status;

/* Where the time of a case goes; the summary adds them up. */
typedef enum gb_phase {
    PHASE_LOAD, /* load and rewrite */
    PHASE_PARTITION,
    PHASE_COMPILE,
    PHASE_FILL,
    PHASE_REFERENCE,
    PHASE_EXECUTE,
    PHASE_COMPARE,
    PHASE_MEASURE,
    PHASE_COUNT
} gb_phase;

/* All partitions back to back, of a case that has several. */
typedef struct gb_whole_result {
    gb_measurement measured; /* owned; none: not measured */
    gb_summary times;        /* of `measured`; gb_cli_result_summarize() */
} gb_whole_result;

/* Times are -1 when not measured. */
typedef struct gb_partition_result {
    size_t id;     /* its place in the case */
    char *ops;     /* owned: op kinds, "Convolution+ReLU" */
    char *pattern; /* owned */
    char *kernels; /* owned; NULL while not compiled */
    char *reason;  /* owned; why it is unsupported or did not compile, or NULL */
    int64_t compile_ns;
    int64_t build_ns;        /* of these, building an OpenCL device's kernels, or loading them */
    int64_t first_ns;        /* first execution, with the preparation of constants */
    gb_measurement measured; /* owned; none: not measured */
    gb_summary times;        /* of `measured`; gb_cli_result_summarize() */
    int64_t device_ns;       /* shortest execution by the device's own clock */
    double flops;            /* per execution; < 0: not known */
    double executed_flops;   /* of these, what kernels make; < 0: not known */
    double bytes;
    gb_memory_use memory;
    size_t n_inplace; /* pairs of ports that shared a buffer when timed */
    double margin;    /* largest error / bound of its outputs; < 0: not compared */
} gb_partition_result;

/* A tensor between partitions that lies otherwise than the graph says. */
typedef struct gb_chosen_layout {
    size_t tensor_id;
    char text[64]; /* "aBcd16b"; "acdb" for strides in another order; else "strided" */
} gb_chosen_layout;

/* An element outside its bound. */
typedef struct gb_mismatch {
    const char *comparison; /* static; what was compared, "reference" */
    size_t tensor_id;
    int64_t index; /* logical, row-major */
    double expected, got, bound;
} gb_mismatch;

enum { MISMATCH_LIMIT = 10 };

typedef struct gb_case_result {
    gb_case_status status;
    char *reason;         /* owned; text in parentheses behind the status, or NULL */
    const char *expected; /* lent; why --expect expected this status, "" without a reason; NULL: it
                             did not */
    int64_t seed;         /* of the input data that led to the status */
    bool loaded;          /* there was a graph */
    bool left_out;        /* by --filter: no case after all */
    int64_t n_errors;     /* printed with FAILED when n_total > 0 */
    int64_t n_total;
    int64_t elapsed_ns; /* without load and rewrite */
    int64_t phase_ns[PHASE_COUNT];
    size_t n_mismatches; /* the first ones */
    gb_mismatch mismatches[MISMATCH_LIMIT];
    const char *memory_kind; /* static; of an OpenCL engine, else NULL */
    bool measured;
    double min_ms; /* sums over the partitions; 0 when not measured */
    double average_ms;
    gb_whole_result whole; /* end to end */
    bool executed;
    uint64_t digest; /* of the bytes of all outputs of all partitions, when executed */
    size_t n_chosen;
    gb_chosen_layout *chosen; /* owned */
    size_t n_partitions;
    gb_partition_result *partitions; /* owned */
} gb_case_result;

/* What outlives a case: the engine and its stream. All zero is a session that has none yet. */
typedef struct gb_session {
    gb_engine *engine; /* owned */
    gb_engine_kind engine_kind;
    int64_t engine_index, threads;
    gb_memory_kind memory_kind;
    bool out_of_order;
    struct gb_held_memory *held; /* the engine's memory, owned; NULL without --cold-cache */
    int blamed;                  /* failures that were looked into */
    /* Called with the verdict of a failed case before it is looked into, which may crash or hang; NULL: not. */
    void (*on_failure)(void *context, const gb_case_result *result);
    void *on_failure_context; /* lent */
    gb_stream *stream;        /* owned */
} gb_session;

void gb_cli_session_free(gb_session *session);

/* Runs a loaded case as far as the mode asks and fills in the result, which is all zero at the
 * start. Every outcome that the result can express is a success; a failure status (message:
 * gb_cli_failure()) means that the program itself broke, and is reported as UNTESTED_FAILED. Errors
 * that concern the case go to stderr here. */
gb_status gb_cli_run_case(
        gb_session *session, const gb_settings *settings, gb_case *test, gb_case_result *result);

/* Sets status and reason (printf style; NULL = none). */
void gb_cli_result_set(gb_case_result *result, gb_case_status status, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
void gb_cli_result_free(gb_case_result *result);

/* Visits that the settings ask for: how often a case is compiled and measured anew. */
int64_t gb_cli_visit_count(const gb_settings *settings);
/* Takes the samples of another visit of the same case over. False when that did not end as a
 * measurement, or its outputs have other bits; *what says why (static). */
bool gb_cli_result_join(gb_case_result *into, gb_case_result *visit, const char **what);
/* Makes `times` and the sums over the partitions from all visits so far. */
void gb_cli_result_summarize(gb_case_result *result, const gb_settings *settings);
/* Has it been measured end to end? */
bool gb_cli_result_has_whole(const gb_case_result *result);

#endif
