/* What the processor can do, asked once. */
#ifndef GB_BASE_CPU_H
#define GB_BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>

/* Instruction set levels that kernels are built for, each including the ones before it. */
typedef enum gb_isa {
    GB_ISA_BASELINE, /* what every machine of the architecture has (x86-64: SSE2) */
    GB_ISA_AVX2,     /* AVX2, FMA, F16C */
    GB_ISA_AVX512,   /* AVX-512 F, BW, DQ, VL */
    GB_ISA_COUNT
} gb_isa;

/* The best level of this machine, capped by the environment variable GB_MAX_ISA (a name below). */
gb_isa gb_cpu_isa(void);
/* "baseline", "avx2", "avx512". */
const char *gb_isa_name(gb_isa isa);
/* Sums of four 8-bit products per lane in one instruction, at level avx512 (VNNI). */
bool gb_cpu_has_dot(void);

/* Makes this thread flush f32 subnormals, in operands and results, until
 * gb_cpu_restore_subnormals() gets the returned state: arithmetic on them is a hundred times
 * slower. Does nothing where the processor has no such mode. */
unsigned gb_cpu_flush_subnormals(void);
/* The opposite, where comparisons must tell subnormals apart. */
unsigned gb_cpu_keep_subnormals(void);
void gb_cpu_restore_subnormals(unsigned state);

#endif
