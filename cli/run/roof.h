/* The roofs of what cases run on, measured: the machine's processors, all threads together, or an
 * OpenCL device. */
#ifndef GB_CLI_RUN_ROOF_H
#define GB_CLI_RUN_ROOF_H

#include <graphbench/graphbench.h>

/* Per second; 0: not measured, or the device has no such instruction. */
typedef struct gb_roof {
    double flops;           /* f32 operations; a multiply-add counts as two */
    double half_flops;      /* the same in f16; OpenCL devices only */
    double int8_operations; /* of dot products of four pairs; OpenCL devices only */
    double bytes;           /* streamed from and to memory */
} gb_roof;

/* Of an engine. The processors' take about a third of a second, and memory far larger than the caches
 * is streamed. An OpenCL device's are taken by its own clock, with kernels that are built first; all
 * are 0 when it cannot be used. */
void gb_cli_roof_of(gb_engine_kind engine, size_t index, gb_roof *roof);
/* The second of these; for builds with OpenCL. */
void gb_cli_roof_of_device(size_t index, gb_roof *roof);

/* Probes, short enough to stand beside every visit (cli/run/measure.h): what all threads reach
 * together, per second. A millisecond of multiply-adds; some milliseconds of streaming 64 MiB,
 * which stay allocated (0: there are none). */
double gb_cli_probe_compute(void);
double gb_cli_probe_memory(void);
/* The best of the compute probe so far, 0 before the first. */
double gb_cli_probe_best(void);
/* What another process has seen counts, too. */
void gb_cli_probe_note(double best);

#endif
