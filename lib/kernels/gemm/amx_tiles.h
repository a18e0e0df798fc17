/* Tile registers of AMX, as text, so that every compiler knows them. A register has up to 16 rows of
 * up to 64 bytes; how many, a configuration says for all of them. Registers are named by literals. */
#ifndef GB_KERNELS_GEMM_AMX_TILES_H
#define GB_KERNELS_GEMM_AMX_TILES_H

#include <stdint.h>

typedef struct gb_tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} gb_tile_config;

static inline void gb_tile_configure(const gb_tile_config *config)
{
    __asm__ volatile("ldtilecfg %0" : : "m"(*config));
}

static inline void gb_tile_release(void)
{
    __asm__ volatile("tilerelease");
}

#define GB_TILE_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile ::)
/* Rows that are `stride` bytes apart. */
#define GB_TILE_LOAD(tile, from, stride)                                                           \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile                                            \
                     :                                                                             \
                     : "r"(from), "r"((int64_t)(stride))                                           \
                     : "memory")
/* The same of rows that shall not take the place of others in L1. */
#define GB_TILE_LOAD_PASSING(tile, from, stride)                                                   \
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #tile                                          \
                     :                                                                             \
                     : "r"(from), "r"((int64_t)(stride))                                           \
                     : "memory")
#define GB_TILE_STORE(tile, to, stride)                                                            \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)"                                        \
                     :                                                                             \
                     : "r"(to), "r"((int64_t)(stride))                                             \
                     : "memory")
/* sums(m, n) += sum over VNNI groups k of a(m, k) b(k, n): u8 times s8, and bf16. */
#define GB_TILE_DOT_BYTES(sums, a, b)                                                              \
    __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #sums ::)
#define GB_TILE_DOT_BF16(sums, a, b)                                                               \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sums ::)

#endif
