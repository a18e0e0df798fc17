/* What the fuzz targets share. A target takes any bytes; what must not happen ends the process. */
#ifndef GB_TESTS_FUZZ_H
#define GB_TESTS_FUZZ_H

#include <graphbench/graphbench.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The target itself: called by libFuzzer, or by replay.c for each file of a corpus. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process with the message, unless the condition holds. */
void fuzz_check(bool condition, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A status that is no success is one of the documented ones and has a message. Returns whether it
 * is a success. */
bool fuzz_succeeded(gb_status status, const char *what);

/* Saves the graph with `save`, reads it again with `parse`, and saves that: both texts must be the
 * same. */
typedef gb_status (*fuzz_save)(const gb_graph *graph, const char *path);
typedef gb_status (*fuzz_parse)(gb_graph **graph, const char *text, size_t length);
void fuzz_check_round_trip(const gb_graph *graph, fuzz_save save, fuzz_parse parse);

/* How fuzz_run_graph() runs a graph. */
typedef struct fuzz_run {
    gb_policy policy;
    int threads;   /* 1 or 2 */
    bool any;      /* results have the layout that the library likes */
    uint64_t seed; /* of the values of inputs */
} fuzz_run;

/* Infers, partitions, compiles and executes the graph, all tensors in memory of exactly their size,
 * and holds the results to the reference. What is too large for a quick run, or refused with a
 * documented status, is left. Returns whether everything ran. */
bool fuzz_run_graph(gb_graph *graph, const fuzz_run *run);

#endif
