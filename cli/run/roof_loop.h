/* The loops that find the roofs, built once per instruction set: independent f32 multiply-adds, and
 * sweeps over memory. */
#ifndef GB_CLI_RUN_ROOF_LOOP_H
#define GB_CLI_RUN_ROOF_LOOP_H

#include <stddef.h>

/* Chains that run beside each other: enough to fill the multiply-add units of the widest vectors.
 */
enum { GB_ROOF_LANES = 256 };

/* Does `steps` multiply-adds on each of GB_ROOF_LANES chains; the result keeps the compiler honest.
 */
typedef float gb_roof_loop(long steps);

gb_roof_loop gb_cli_roof_loop_baseline, gb_cli_roof_loop_avx2, gb_cli_roof_loop_avx512;

/* Ways to go over memory. */
typedef enum gb_roof_pattern {
    GB_ROOF_READ_1, /* a, as one stream, which the hardware prefetches */
    GB_ROOF_READ_2, /* a, as two or four streams, with prefetches 2 KiB ahead */
    GB_ROOF_READ_4,
    GB_ROOF_COPY,          /* b to a */
    GB_ROOF_COPY_STREAMED, /* the same with stores past the caches */
    GB_ROOF_UPDATE,        /* a += b */
    GB_ROOF_PATTERNS
} gb_roof_pattern;

/* Goes once over `floats` floats of a, and of b where the pattern has it: both aligned to a line,
 * a multiple of 512. */
typedef float gb_roof_sweep(gb_roof_pattern pattern, float *a, float *b, size_t floats);

gb_roof_sweep gb_cli_roof_sweep_baseline, gb_cli_roof_sweep_avx2, gb_cli_roof_sweep_avx512;

#endif
