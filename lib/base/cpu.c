/* What the processor can do, asked once. */
#include "base/cpu.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[GB_ISA_COUNT] = {"baseline", "avx2", "avx512"};

const char *gb_isa_name(gb_isa isa)
{
    return names[isa];
}

static gb_isa detect(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return GB_ISA_BASELINE;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return GB_ISA_AVX512;
    return GB_ISA_AVX2;
#else
    return GB_ISA_BASELINE;
#endif
}

gb_isa gb_cpu_isa(void)
{
    gb_isa isa = detect();
    const char *cap = getenv("GB_MAX_ISA");
    for (int i = 0; cap && i < (int)isa; i++)
        if (strcmp(cap, names[i]) == 0) return (gb_isa)i;
    return isa;
}

static size_t cache_bytes(int name, size_t otherwise)
{
    long bytes = sysconf(name);
    return bytes > 0 ? (size_t)bytes : otherwise;
}

size_t gb_cpu_l1_bytes(void)
{
    return cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32U << 10);
}

size_t gb_cpu_l2_bytes(void)
{
    return cache_bytes(_SC_LEVEL2_CACHE_SIZE, 512U << 10);
}
