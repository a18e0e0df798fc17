/* The roofs of what cases run on, measured: the machine's processors, all threads together, or an
 * OpenCL device. */
#ifndef GB_CLI_RUN_ROOF_H
#define GB_CLI_RUN_ROOF_H

#include "cli/run/measure.h"

#include <graphbench/graphbench.h>

/* What data come from: the caches of all threads together, memory. */
typedef enum gb_roof_level {
    GB_ROOF_L1,
    GB_ROOF_L2,
    GB_ROOF_L3,
    GB_ROOF_MEMORY,
    GB_ROOF_LEVELS
} gb_roof_level;

/* Per second; 0: not measured, or there is no such instruction or cache. */
typedef struct gb_roof {
    double flops;           /* f32 operations; a multiply-add counts as two */
    double half_flops;      /* of multiply-adds of f16 */
    double bf16_flops;      /* of dot products of bf16 pairs; processors only */
    double int8_operations; /* of dot products of 8-bit integers, in the fastest instruction for them */
    double bytes;           /* read from and written to memory */
    /* Processors only: the same for a working set in each cache, and how large it may be. */
    double cache_bytes[GB_ROOF_MEMORY], cache_size[GB_ROOF_MEMORY];
} gb_roof;

/* Bytes per second for a working set of so many bytes: of the fastest cache that may hold it. */
double gb_cli_roof_bandwidth(const gb_roof *roof, double bytes);

/* Prints the processors' roofs: all instructions, and all ways to go over each level of memory, for
 * one thread and for all. Takes some seconds. */
void gb_cli_roof_print(void);

/* Prints what gb_cli_roof_of() found of an OpenCL device. */
void gb_cli_roof_print_device(const gb_roof *roof);

/* Of an engine. The processors' take about half a second, and memory far larger than the caches is
 * streamed; of all ways to go over it the fastest counts, as other programs find it, too. An OpenCL
 * device's are taken by its own clock, with kernels that are built first; all are 0 when it cannot
 * be used. */
void gb_cli_roof_of(gb_engine_kind engine, size_t index, gb_roof *roof);
/* The second of these; for builds with OpenCL. */
void gb_cli_roof_of_device(size_t index, gb_roof *roof);

/* Probes, short enough to stand beside every visit (cli/run/measure.h), per second. Of the cores: a
 * millisecond of multiply-adds, and some microseconds of a += b in L1; what all threads would reach
 * as fast as the slowest, for which a kernel waits; and a hundred meetings of all threads. Of the
 * memory: some milliseconds of streaming 64 MiB by all threads together; the memory stays allocated
 * (0: there is none). */
gb_rates gb_cli_probe_core(void);
double gb_cli_probe_memory(void);
/* The best of the probes of the cores so far, 0 before the first. */
gb_rates gb_cli_probe_best(void);
/* Counts what another process has seen; gb_cli_probe_core() counts its own. */
void gb_cli_probe_note(gb_rates reached);

#endif
