/* The peaks of instructions other than f32 multiply-adds: independent chains in registers. */
#include "cli/run/roof_dot.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHAINS = 12, CHAINS_512 = 24 };

/* `next` of chain x, with operands a and b that the compiler must not know to stay what they are:
 * nothing may be computed once for all. */
#define LOOP(function, isa, vector, chains, zero, constraint, next)                                \
    static __attribute__((target(isa))) void function(long steps)                                  \
    {                                                                                              \
        vector chain[chains], a = zero, b = zero;                                                  \
        for (int i = 0; i < (chains); i++)                                                         \
            chain[i] = zero;                                                                       \
        __asm__ volatile("" : constraint(a));                                                      \
        for (long step = 0; step < steps; step++)                                                  \
            _Pragma("GCC unroll 24") for (int i = 0; i < (chains); i++)                            \
            {                                                                                      \
                vector x = chain[i];                                                               \
                __asm__ volatile("" : constraint(b));                                              \
                x = next;                                                                          \
                __asm__ volatile("" : constraint(x));                                              \
                chain[i] = x;                                                                      \
            }                                                                                      \
    }

/* Without the type of its lanes, which not every compiler has. */
static inline __attribute__((target("avx512f,avx512fp16"), always_inline)) __m512i fma_ph(
        __m512i sum, __m512i a, __m512i b)
{
    __asm__("vfmadd231ph %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}

LOOP(dot_pairs, "avx2", __m256i, CHAINS, _mm256_setzero_si256(), "+x",
        _mm256_add_epi32(x, _mm256_madd_epi16(a, b)))
LOOP(dot_pairs_512, "avx512f,avx512bw", __m512i, CHAINS_512, _mm512_setzero_si512(), "+v",
        _mm512_add_epi32(x, _mm512_madd_epi16(a, b)))
LOOP(dot_bytes, "avx512f,avx512vnni", __m512i, CHAINS_512, _mm512_setzero_si512(), "+v",
        _mm512_dpbusd_epi32(x, a, b))
LOOP(dot_bf16, "avx512f,avx512bf16", __m512, CHAINS_512, _mm512_setzero_ps(), "+v",
        _mm512_dpbf16_ps(x, (__m512bh)a, (__m512bh)b))
LOOP(fma_f16, "avx512f,avx512fp16", __m512i, CHAINS_512, _mm512_setzero_si512(), "+v",
        fma_ph(x, a, b))

/* Products of whole tiles of AMX, on four chains of sums; `next` as text, with operands in 4 and 6. */
enum { CHAINS_TILES = 4 };
#define TILE_LOOP(function, next)                                                                  \
    static void function(long steps)                                                               \
    {                                                                                              \
        struct {                                                                                   \
            uint8_t palette, rest[15];                                                             \
            uint16_t row_bytes[16];                                                                \
            uint8_t rows[16];                                                                      \
        } config = {.palette = 1};                                                                 \
        for (int i = 0; i < 8; i++)                                                                \
            config.row_bytes[i] = 64, config.rows[i] = 16;                                         \
        __asm__ volatile("ldtilecfg %0" : : "m"(config));                                          \
        for (long step = 0; step < steps; step++)                                                  \
            __asm__ volatile(next " %%tmm6, %%tmm4, %%tmm0; " next                                 \
                                  " %%tmm6, %%tmm4, %%tmm1; " next                                 \
                                  " %%tmm6, %%tmm4, %%tmm2; " next " %%tmm6, %%tmm4, %%tmm3"       \
                             :                                                                     \
                             :);                                                                   \
        __asm__ volatile("tilerelease");                                                           \
    }
TILE_LOOP(tile_bytes, "tdpbusd")
TILE_LOOP(tile_bf16, "tdpbf16ps")

static bool cpuid_bit(unsigned subleaf, int reg, int bit)
{
    unsigned words[4];
    return __get_cpuid_count(7, subleaf, &words[0], &words[1], &words[2], &words[3]) &&
           (words[reg] >> bit & 1);
}

enum { EAX, EBX, ECX, EDX };

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
}
static bool has_vnni(void)
{
    return has_avx512() && cpuid_bit(0, ECX, 11);
}
static bool has_bf16(void)
{
    return has_avx512() && cpuid_bit(1, EAX, 5);
}
static bool has_f16(void)
{
    return has_avx512() && cpuid_bit(0, EDX, 23);
}
/* Linux has to be asked for them. */
static bool has_tiles(void)
{
#if defined(__linux__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 };
    return has_bf16() && cpuid_bit(0, EDX, 22) && cpuid_bit(0, EDX, 24) && cpuid_bit(0, EDX, 25) &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
#else
    return false;
#endif
}

/* Of each type the fastest first. */
static const struct {
    bool (*has)(void);
    gb_roof_dot dot;
} instructions[] = {
        {has_tiles, {"int8", "tdpbusd tmm", CHAINS_TILES, 32768, tile_bytes}},
        {has_vnni, {"int8", "vpdpbusd zmm", CHAINS_512, 128, dot_bytes}},
        {has_avx512, {"int8", "vpmaddwd zmm, vpaddd", CHAINS_512, 64, dot_pairs_512}},
        {has_avx2, {"int8", "vpmaddwd ymm, vpaddd", CHAINS, 32, dot_pairs}},
        {has_tiles, {"bf16", "tdpbf16ps tmm", CHAINS_TILES, 16384, tile_bf16}},
        {has_bf16, {"bf16", "vdpbf16ps zmm", CHAINS_512, 64, dot_bf16}},
        {has_f16, {"f16", "vfmaddph zmm", CHAINS_512, 64, fma_f16}},
};

const gb_roof_dot *gb_cli_roof_dot_at(unsigned index)
{
    const char *type = "";
    __builtin_cpu_init();
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
        if (strcmp(instructions[i].dot.type, type) == 0 || !instructions[i].has())
            continue;
        type = instructions[i].dot.type;
        if (index-- == 0)
            return &instructions[i].dot;
    }
    return NULL;
}

#else

const gb_roof_dot *gb_cli_roof_dot_at(unsigned index)
{
    (void)index;
    return NULL;
}

#endif
