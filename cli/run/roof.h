/* The machine's roofs, measured: how many f32 multiply-adds and how many bytes per second its
 * threads reach together. */
#ifndef GB_CLI_RUN_ROOF_H
#define GB_CLI_RUN_ROOF_H

typedef struct gb_roof {
    double flops; /* f32 operations per second; a multiply-add counts as two */
    double bytes; /* streamed from and to memory per second */
} gb_roof;

/* Takes about a third of a second. Memory far larger than the caches is streamed; 0 when there is
 * none. */
void gb_cli_roof_measure(gb_roof *roof);

/* Probes, short enough to stand beside every visit (cli/run/measure.h): what all threads reach
 * together, per second. A millisecond of multiply-adds; some milliseconds of streaming 64 MiB,
 * which stay allocated (0: there are none). */
double gb_cli_probe_compute(void);
double gb_cli_probe_memory(void);
/* The best of the compute probe so far, 0 before the first. */
double gb_cli_probe_best(void);

#endif
