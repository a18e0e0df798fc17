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
    GB_ISA_AMX,      /* VNNI and BF16 of AVX-512; AMX tiles of 8-bit integers and of bf16 */
    GB_ISA_COUNT
} gb_isa;

/* The best level of this machine, capped by the environment variable GB_MAX_ISA (a name below).
 * The first call on a machine with AMX asks the system, for the whole process, to keep the state of
 * tiles, unless GB_MAX_ISA names a lower level. */
gb_isa gb_cpu_isa(void);
/* "baseline", "avx2", "avx512", "amx". */
const char *gb_isa_name(gb_isa isa);
/* Sums of four 8-bit products, or of two of bf16, per lane in one instruction, from level avx512 on
 * (VNNI, BF16). */
bool gb_cpu_has_dot(void);
bool gb_cpu_has_dot_bf16(void);
/* ... and that takes no longer than a multiply-add of f32: not on all that have it. */
bool gb_cpu_has_fast_dot_bf16(void);

/* vcvtneps2bf16 is there (BF16 of AVX-512), whatever GB_MAX_ISA says: kernels of level avx512 ask.
 * Set before main() begins. */
extern bool gb_cpu_converts_bf16;

/* Makes this thread flush f32 subnormals, in operands and results, until
 * gb_cpu_restore_subnormals() gets the returned state: arithmetic on them is a hundred times
 * slower. Does nothing where the processor has no such mode. */
unsigned gb_cpu_flush_subnormals(void);
/* The opposite, where comparisons must tell subnormals apart. */
unsigned gb_cpu_keep_subnormals(void);
void gb_cpu_restore_subnormals(unsigned state);

#endif
