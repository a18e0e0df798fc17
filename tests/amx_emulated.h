/* What lib/kernels/gemm/amx_tiles.h has, in plain C: tiles can be tested on machines without AMX, and
 * what they read and write under sanitizers. Included in front of dot_amx.c. */
#ifndef GB_TESTS_AMX_EMULATED_H
#define GB_TESTS_AMX_EMULATED_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GB_AMX_TILES_EMULATED 1

typedef struct gb_tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} gb_tile_config;

static gb_tile_config emulated_config;
static uint8_t emulated[8][16][64];

static inline void gb_tile_configure(const gb_tile_config *config)
{
    emulated_config = *config;
    memset(emulated, 0, sizeof emulated);
}

static inline void gb_tile_release(void)
{
    memset(&emulated_config, 0, sizeof emulated_config);
}

/* An instruction on a tile that is not configured is illegal. */
static inline void emulated_move(int tile, char *memory, int64_t stride, int load)
{
    if (emulated_config.rows[tile] == 0)
        abort();
    for (int r = 0; r < emulated_config.rows[tile]; r++)
        if (load)
            memcpy(emulated[tile][r], memory + r * stride, emulated_config.row_bytes[tile]);
        else
            memcpy(memory + r * stride, emulated[tile][r], emulated_config.row_bytes[tile]);
}

static inline void emulated_shapes(int sums, int a, int b)
{
    const gb_tile_config *c = &emulated_config;
    if (c->rows[sums] != c->rows[a] || c->row_bytes[a] != 4 * c->rows[b] ||
            c->row_bytes[sums] != c->row_bytes[b])
        abort();
}

static inline void emulated_dot_bytes(int sums, int a, int b)
{
    emulated_shapes(sums, a, b);
    for (int m = 0; m < emulated_config.rows[sums]; m++)
        for (int n = 0; n < emulated_config.row_bytes[sums] / 4; n++) {
            uint32_t sum;
            memcpy(&sum, emulated[sums][m] + 4 * n, 4);
            for (int k = 0; k < emulated_config.row_bytes[a]; k++)
                sum += (uint32_t)(emulated[a][m][k] * (int8_t)emulated[b][k / 4][4 * n + k % 4]);
            memcpy(emulated[sums][m] + 4 * n, &sum, 4);
        }
}

static inline float emulated_bf16(const uint8_t *half)
{
    uint32_t bits = (uint32_t)half[0] << 16 | (uint32_t)half[1] << 24;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void emulated_dot_bf16(int sums, int a, int b)
{
    emulated_shapes(sums, a, b);
    for (int m = 0; m < emulated_config.rows[sums]; m++)
        for (int n = 0; n < emulated_config.row_bytes[sums] / 4; n++) {
            float sum;
            memcpy(&sum, emulated[sums][m] + 4 * n, 4);
            for (int k = 0; k < emulated_config.row_bytes[a] / 2; k++)
                sum += emulated_bf16(emulated[a][m] + 2 * k) *
                       emulated_bf16(emulated[b][k / 2] + 4 * n + 2 * (k % 2));
            memcpy(emulated[sums][m] + 4 * n, &sum, 4);
        }
}

#define GB_TILE_ZERO(tile)               memset(emulated[tile], 0, sizeof emulated[tile])
#define GB_TILE_LOAD(tile, from, stride) emulated_move(tile, (char *)(uintptr_t)(from), stride, 1)
#define GB_TILE_LOAD_PASSING             GB_TILE_LOAD
#define GB_TILE_STORE(tile, to, stride)  emulated_move(tile, (char *)(to), stride, 0)
#define GB_TILE_DOT_BYTES(sums, a, b)    emulated_dot_bytes(sums, a, b)
#define GB_TILE_DOT_BF16(sums, a, b)     emulated_dot_bf16(sums, a, b)

#endif
