/* What the processor can do, asked once. */
#include "base/cpu.h"

#include "base/environment.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static const char *const names[GB_ISA_COUNT] = {"baseline", "avx2", "avx512"};

const char *gb_isa_name(gb_isa isa)
{
    return names[isa];
}

#if defined(__x86_64__)
/* Not among the names that every compiler's __builtin_cpu_supports() knows. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

static gb_isa detect(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
        return GB_ISA_BASELINE;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return GB_ISA_AVX512;
    return GB_ISA_AVX2;
#else
    return GB_ISA_BASELINE;
#endif
}

/* The highest level that GB_MAX_ISA allows. */
static gb_isa allowed(void)
{
    static atomic_bool told;
    const char *name = getenv("GB_MAX_ISA");
    if (!name || !*name)
        return GB_ISA_COUNT - 1;
    for (int i = 0; i < GB_ISA_COUNT; i++)
        if (strcmp(name, names[i]) == 0)
            return (gb_isa)i;
    if (!atomic_exchange(&told, true))
        gb_environment_complain("GB_MAX_ISA", name, strlen(name), "baseline | avx2 | avx512");
    return GB_ISA_COUNT - 1;
}

gb_isa gb_cpu_isa(void)
{
    gb_isa isa = detect(), most = allowed();
    return isa < most ? isa : most;
}

bool gb_cpu_has_dot(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return gb_cpu_isa() == GB_ISA_AVX512 && __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

enum { DENORMALS_ARE_ZERO = 0x40, FLUSH_TO_ZERO = 0x8000 };

unsigned gb_cpu_flush_subnormals(void)
{
#if defined(__x86_64__)
    unsigned state = _mm_getcsr();
    _mm_setcsr(state | DENORMALS_ARE_ZERO | FLUSH_TO_ZERO);
    return state;
#else
    return 0;
#endif
}

unsigned gb_cpu_keep_subnormals(void)
{
#if defined(__x86_64__)
    unsigned state = _mm_getcsr();
    _mm_setcsr(state & ~(unsigned)(DENORMALS_ARE_ZERO | FLUSH_TO_ZERO));
    return state;
#else
    return 0;
#endif
}

void gb_cpu_restore_subnormals(unsigned state)
{
#if defined(__x86_64__)
    _mm_setcsr(state);
#else
    (void)state;
#endif
}
