/* The vector vocabulary of one instruction set behind plain functions, for tests that are not
 * compiled for it. */
#ifndef GB_TESTS_VEC_PROBE_H
#define GB_TESTS_VEC_PROBE_H

#include "base/cpu.h"
#include <graphbench/graphbench.h>

enum { PROBE_LANES = 16, PROBE_TYPES = GB_F8_E4M3 + 1 };

/* Functions of one vector. */
typedef enum probe_function {
    PROBE_EXP,
    PROBE_EXPM1,
    PROBE_LOG,
    PROBE_LOG1P,
    PROBE_TANH,
    PROBE_SIGMOID,
    PROBE_SOFTPLUS,
    PROBE_GELU_ERF,
    PROBE_GELU_TANH,
    PROBE_MISH,
    PROBE_GELU_ERF_SLOPE,
    PROBE_GELU_TANH_SLOPE,
    PROBE_MISH_SLOPE,
    PROBE_ROUND,
    PROBE_FLOOR,
    PROBE_CEIL,
    PROBE_FUNCTIONS
} probe_function;

typedef struct vec_probe {
    gb_isa isa;
    int lanes;
    /* n = lanes calls the form for whole vectors. */
    void (*load[PROBE_TYPES])(const void *codes, int64_t n, float *lanes);
    void (*store[PROBE_TYPES])(void *codes, const float *lanes, int64_t n);
    void (*function[PROBE_FUNCTIONS])(const float *x, float *y);
    void (*pow)(const float *x, float beta, float *y);
    void (*div_known)(const float *x, float y, float *quotients);
    void (*scale)(const float *x, int32_t n, float *y);
    void (*min_max)(const float *x, const float *y, float *min, float *max);
    void (*gather)(const float *p, int64_t stride, int64_t n, float *y);
    /* sum, product, largest, smallest */
    void (*reduce)(const float *x, float *results);
} vec_probe;

extern const vec_probe gb_vec_probe_baseline;
#if defined(__x86_64__)
extern const vec_probe gb_vec_probe_avx2, gb_vec_probe_avx512;
#endif

/* NULL when the machine does not have the level. */
static inline const vec_probe *vec_probe_of(gb_isa isa)
{
    const vec_probe *probes[GB_ISA_COUNT] = {
        [GB_ISA_BASELINE] = &gb_vec_probe_baseline,
#if defined(__x86_64__)
        [GB_ISA_AVX2] = &gb_vec_probe_avx2,
        [GB_ISA_AVX512] = &gb_vec_probe_avx512,
        [GB_ISA_AMX] = &gb_vec_probe_avx512
#endif
    };
    return isa <= gb_cpu_isa() ? probes[isa] : NULL;
}

#endif
