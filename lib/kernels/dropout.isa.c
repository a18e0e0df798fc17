/* Dropout by the counter-based generator Philox4x32-10 (Salmon et al., Parallel Random Numbers: As
 * Easy as 1, 2, 3, 2011), LANES counters at a time. */
#include "kernels/vec.h"

enum { PAIR = 2, LANES = PAIR * VLEN, WORDS = 4, ROUNDS = 10 };

/* The words of LANES counters, and their draws. */
typedef struct philox {
    uint32_t words[WORDS][LANES];
} philox;

/* Two vectors at a time hide the latency of the products. */
static void philox_rounds(philox *p, uint32_t k0, uint32_t k1)
{
    vi c[WORDS][PAIR], m0 = vi_set1((int32_t)0xD2511F53), m1 = vi_set1((int32_t)0xCD9E8D57);
    for (int w = 0; w < WORDS; w++)
        for (int v = 0; v < PAIR; v++)
            c[w][v] = vi_load((const int32_t *)p->words[w] + v * VLEN);
    for (int round = 0; round < ROUNDS; round++) {
        vi first_key = vi_set1((int32_t)k0), second_key = vi_set1((int32_t)k1);
        for (int v = 0; v < PAIR; v++) {
            vi high0, high1, low0 = vi_mul(m0, c[0][v], &high0), low1 = vi_mul(m1, c[2][v], &high1);
            c[0][v] = vi_xor(vi_xor(high1, c[1][v]), first_key);
            c[1][v] = low1;
            c[2][v] = vi_xor(vi_xor(high0, c[3][v]), second_key);
            c[3][v] = low0;
        }
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    for (int w = 0; w < WORDS; w++)
        for (int v = 0; v < PAIR; v++)
            vi_store((int32_t *)p->words[w] + v * VLEN, c[w][v]);
}

/* Draws of the blocks of four that the indices first, first + step, ... lie in. Offset 0 stands for
 * a 32-bit generator in which the four elements of a block share one draw. */
static void draw_blocks(const gb_dropout_block *block, uint64_t first, uint64_t step, philox *p)
{
    bool shared = block->offset == 0;
    uint32_t(*c)[LANES] = p->words, seed = (uint32_t)block->seed;
    for (int i = 0; i < LANES; i++) {
        uint64_t index = (first + (uint64_t)i * step) & ~UINT64_C(3);
        uint32_t low = (uint32_t)index;
        c[0][i] = shared ? low : (uint32_t)block->offset;
        c[1][i] = shared ? low + 1 : (uint32_t)(block->offset >> 32);
        c[2][i] = low;
        c[3][i] = shared ? low + 3 : (uint32_t)(index >> 32);
    }
    philox_rounds(p, seed, shared ? seed : (uint32_t)(block->seed >> 32));
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
        for (int i = 0; i < LANES; i++) {
            uint32_t *four = draws + at + i * WORDS;
            four[0] = p.words[0][i];
            four[1] = p.words[1][i];
            four[2] = p.words[2][i];
            four[3] = p.words[3][i];
        }
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
            draws[at + i] = p.words[(first + (uint64_t)i * step) & 3][i];
    }
    return draws;
}

/* Unsigned comparison: both sides with the sign bit turned round. */
GB_INLINE void choose(const gb_dropout_block *block, const uint32_t *draws, int64_t i, int64_t n)
{
    const int32_t *p = (const int32_t *)draws + i;
    vi sign = vi_set1(INT32_MIN), limit = vi_xor(vi_set1((int32_t)block->threshold), sign);
    vi draw = n == VLEN ? vi_load(p) : vi_load_n(p, n);
    vf x = n == VLEN ? vf_load(block->src + i) : vf_load_n(block->src + i, n), zero = vf_zero();
    vm keep = vi_gt(vi_xor(draw, sign), limit);
    x = vf_select(keep, vf_mul(x, vf_set1(block->scale)), zero);
    vf mask = vf_select(keep, vf_set1(1.0F), zero);
    if (n == VLEN) {
        vf_store(block->dst + i, x);
        vf_store_u8(block->keep + i, mask);
    } else {
        vf_store_n(block->dst + i, x, n);
        vf_store_u8_n(block->keep + i, mask, n);
    }
}

void GB_ISA_NAME(dropout)(const gb_dropout_block *block)
{
    uint32_t draws[GB_DROPOUT_ELEMENTS + LANES * WORDS + WORDS];
    const uint32_t *draw =
            block->step == 1 ? draw_neighbours(block, draws) : draw_apart(block, draws);
    int64_t i = 0;
    for (; i + VLEN <= block->n; i += VLEN)
        choose(block, draw, i, VLEN);
    if (i < block->n)
        choose(block, draw, i, block->n - i);
}
