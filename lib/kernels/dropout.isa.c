/* Dropout by the counter-based generator Philox4x32-10 (Salmon et al., Parallel Random Numbers: As
 * Easy as 1, 2, 3, 2011), LANES counters at a time. */
#include "kernels/vec.h"

enum { LANES = 16, WORDS = 4, ROUNDS = 10 };

typedef struct philox {
    uint32_t counter[WORDS][LANES];
    uint32_t key[2];
} philox;

static void philox_rounds(philox *p)
{
    uint32_t(*c)[LANES] = p->counter, k0 = p->key[0], k1 = p->key[1];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LANES; i++) {
            uint64_t a = UINT64_C(0xD2511F53) * c[0][i], b = UINT64_C(0xCD9E8D57) * c[2][i];
            uint32_t first = (uint32_t)(b >> 32) ^ c[1][i] ^ k0;
            uint32_t third = (uint32_t)(a >> 32) ^ c[3][i] ^ k1;
            c[0][i] = first;
            c[1][i] = (uint32_t)b;
            c[2][i] = third;
            c[3][i] = (uint32_t)a;
        }
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
}

/* Draws of the blocks of four that the indices first, first + step, ... lie in. Offset 0 stands for
 * a 32-bit generator in which the four elements of a block share one draw. */
static void draw_blocks(const gb_dropout_block *block, uint64_t first, uint64_t step, philox *p)
{
    bool shared = block->offset == 0;
    uint32_t(*c)[LANES] = p->counter, seed = (uint32_t)block->seed;
    p->key[0] = seed;
    p->key[1] = shared ? seed : (uint32_t)(block->seed >> 32);
    for (int i = 0; i < LANES; i++) {
        uint64_t index = (first + (uint64_t)i * step) & ~UINT64_C(3);
        uint32_t low = (uint32_t)index;
        c[0][i] = shared ? low : (uint32_t)block->offset;
        c[1][i] = shared ? low + 1 : (uint32_t)(block->offset >> 32);
        c[2][i] = low;
        c[3][i] = shared ? low + 3 : (uint32_t)(index >> 32);
    }
    philox_rounds(p);
    for (int i = 0; shared && i < LANES; i++)
        c[0][i] = c[1][i] = c[3][i] = c[2][i];
}

/* Neighbouring indices share blocks. Returns where the first element's draw is. */
static const uint32_t *draw_neighbours(const gb_dropout_block *block, uint32_t *draws)
{
    philox p;
    uint64_t start = block->first & ~UINT64_C(3);
    int64_t lead = (int64_t)(block->first - start);
    for (int64_t at = 0; at < lead + block->n; at += LANES * WORDS) {
        draw_blocks(block, start + (uint64_t)at, WORDS, &p);
        for (int i = 0; i < LANES; i++)
            for (int w = 0; w < WORDS; w++)
                draws[at + i * WORDS + w] = p.counter[w][i];
    }
    return draws + lead;
}

static const uint32_t *draw_apart(const gb_dropout_block *block, uint32_t *draws)
{
    philox p;
    uint64_t step = (uint64_t)block->step;
    for (int64_t at = 0; at < block->n; at += LANES) {
        uint64_t first = block->first + (uint64_t)at * step;
        draw_blocks(block, first, step, &p);
        for (int i = 0; i < LANES; i++)
            draws[at + i] = p.counter[(first + (uint64_t)i * step) & 3][i];
    }
    return draws;
}

void GB_ISA_NAME(dropout)(const gb_dropout_block *block)
{
    uint32_t draws[GB_DROPOUT_ELEMENTS + LANES * WORDS + WORDS];
    const uint32_t *draw =
            block->step == 1 ? draw_neighbours(block, draws) : draw_apart(block, draws);
    uint32_t threshold = block->threshold;
    for (int64_t i = 0; i < block->n; i++) {
        bool keep = draw[i] > threshold;
        block->dst[i] = keep ? block->src[i] * block->scale : 0;
        block->keep[i] = keep;
    }
}
