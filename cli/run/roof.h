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

#endif
