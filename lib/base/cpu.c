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
#include <sys/syscall.h>
#include <unistd.h>
#endif

bool gb_cpu_converts_bf16;

static const char *const names[GB_ISA_COUNT] = {"baseline", "avx2", "avx512", "amx"};

const char *gb_isa_name(gb_isa isa)
{
    return names[isa];
}

#if defined(__x86_64__)
/* What not every compiler's __builtin_cpu_supports() knows by name, asked once: CPUID is slow on
 * virtual machines. */
enum { KNOWN = 1, F16C = 2, BF16 = 4, AMX = 8 };
enum { EAX, EBX, ECX, EDX };

static bool has_bit(unsigned leaf, unsigned subleaf, int reg, int bit)
{
    unsigned words[4];
    return __get_cpuid_count(leaf, subleaf, &words[0], &words[1], &words[2], &words[3]) &&
           (words[reg] >> bit & 1);
}

static bool cpu_has(int feature)
{
    static atomic_int features;
    int found = atomic_load_explicit(&features, memory_order_relaxed);
    if (found == 0) {
        found = KNOWN;
        found |= has_bit(1, 0, ECX, 29) ? F16C : 0;
        found |= has_bit(7, 1, EAX, 5) ? BF16 : 0;
        bool tiles = has_bit(7, 0, EDX, 24) && has_bit(7, 0, EDX, 22) && has_bit(7, 0, EDX, 25);
        found |= tiles ? AMX : 0;
        atomic_store_explicit(&features, found, memory_order_relaxed);
    }
    return found & feature;
}

static __attribute__((constructor)) void look_for_bf16(void)
{
    gb_cpu_converts_bf16 = cpu_has(BF16);
}

/* Linux, where it saves the data of tiles, lets those processes use them that have asked to. */
static bool may_use_tiles(void)
{
#if defined(__linux__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18, NO = 1, YES = 2 };
    static atomic_int answer;
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (known == 0) {
        known = syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 ? YES : NO;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known == YES;
#else
    return false;
#endif
}
#endif

/* The best level up to `most`. */
static gb_isa detect(gb_isa most)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !cpu_has(F16C))
        return GB_ISA_BASELINE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
            !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return GB_ISA_AVX2;
    bool amx = most >= GB_ISA_AMX && cpu_has(AMX) && cpu_has(BF16) &&
               __builtin_cpu_supports("avx512vnni") && may_use_tiles();
    return amx ? GB_ISA_AMX : GB_ISA_AVX512;
#else
    (void)most;
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
        gb_environment_complain("GB_MAX_ISA", name, strlen(name), "baseline | avx2 | avx512 | amx");
    return GB_ISA_COUNT - 1;
}

gb_isa gb_cpu_isa(void)
{
    gb_isa most = allowed(), isa = detect(most);
    return isa < most ? isa : most;
}

bool gb_cpu_has_dot(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return gb_cpu_isa() >= GB_ISA_AVX512 && __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

bool gb_cpu_has_dot_bf16(void)
{
#if defined(__x86_64__)
    return gb_cpu_isa() >= GB_ISA_AVX512 && cpu_has(BF16);
#else
    return false;
#endif
}

/* On a Xeon of the sixth generation it has 0.4 of the rate of multiply-adds of f32 (graph-bench
 * roof). Of AMD's processors it is said to have the same, and was not measured here. */
bool gb_cpu_has_fast_dot_bf16(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return gb_cpu_has_dot_bf16() && __builtin_cpu_is("amd");
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
