/* Which elements Dropout keeps: draws of the counter-based generator Philox4x32-10 (Salmon et al.,
 * Parallel Random Numbers: As Easy as 1, 2, 3, 2011), PAIR vectors of counters at a time. */
#include "kernels/isa/vec.h"
#include "kernels/isa/vec_transpose.h"

enum { PAIR = 2, LANES = PAIR * VLEN, WORDS = 4, ROUNDS = 10, SLICES = VLEN / WORDS };

/* Words of LANES counters, and then their draws. */
typedef struct philox {
    vi c[WORDS][PAIR];
} philox;

static vi splat(uint64_t value)
{
    return vi_set1((int32_t)(uint32_t)value);
}

/* Two vectors at a time hide the latency of the products. */
GB_INLINE void philox_rounds(philox *p, uint32_t k0, uint32_t k1)
{
    vi m0 = splat(0xD2511F53), m1 = splat(0xCD9E8D57);
    for (int round = 0; round < ROUNDS; round++) {
        vi first_key = splat(k0), second_key = splat(k1);
        for (int v = 0; v < PAIR; v++) {
            vi high0, high1;
            vi low0 = vi_mul(m0, p->c[0][v], &high0), low1 = vi_mul(m1, p->c[2][v], &high1);
            p->c[0][v] = vi_xor(vi_xor(high1, p->c[1][v]), first_key);
            p->c[1][v] = low1;
            p->c[2][v] = vi_xor(vi_xor(high0, p->c[3][v]), second_key);
            p->c[3][v] = low0;
        }
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
}

/* Draws of the blocks of four whose first indices are given by words. Offset 0 stands for a 32-bit
 * generator in which the four elements of a block share one draw. */
GB_INLINE void draw(const gb_dropout_block *block, const vi *low, const vi *high, philox *p)
{
    bool shared = block->offset == 0;
    uint32_t seed = (uint32_t)block->seed;
    for (int v = 0; v < PAIR; v++) {
        p->c[0][v] = shared ? low[v] : splat(block->offset);
        p->c[1][v] = shared ? vi_add(low[v], splat(1)) : splat(block->offset >> 32);
        p->c[2][v] = low[v];
        p->c[3][v] = shared ? vi_add(low[v], splat(3)) : high[v];
    }
    philox_rounds(p, seed, shared ? seed : (uint32_t)(block->seed >> 32));
    for (int v = 0; shared && v < PAIR; v++)
        p->c[0][v] = p->c[1][v] = p->c[3][v] = p->c[2][v];
}

/* Lane of a vector of counters that holds the block which the interleaving of words puts there. */
#define BLOCK(lane) ((lane) % WORDS * SLICES + (lane) / WORDS)
static const int32_t block_of_lane[16] = {BLOCK(0) * 4, BLOCK(1) * 4, BLOCK(2) * 4, BLOCK(3) * 4,
        BLOCK(4) * 4, BLOCK(5) * 4, BLOCK(6) * 4, BLOCK(7) * 4, BLOCK(8) * 4, BLOCK(9) * 4,
        BLOCK(10) * 4, BLOCK(11) * 4, BLOCK(12) * 4, BLOCK(13) * 4, BLOCK(14) * 4, BLOCK(15) * 4};

static vi sign_turned(vi v)
{
    return vi_xor(v, vi_set1(INT32_MIN));
}

/* Neighbouring indices share blocks. Returns where the first element's draw is. */
static const int32_t *draw_neighbours(const gb_dropout_block *block, int32_t *draws)
{
    uint64_t start = block->first & ~UINT64_C(3);
    int64_t lead = (int64_t)(block->first - start);
    for (int64_t at = 0; at < lead + block->n; at += LANES * WORDS) {
        philox p;
        vi low[PAIR], high[PAIR], first = splat(start + (uint64_t)at);
        vi page = splat((start + (uint64_t)at) >> 32);
        for (int v = 0; v < PAIR; v++) {
            vi steps = vi_add(vi_load(block_of_lane), vi_set1(v * VLEN * WORDS));
            low[v] = vi_add(first, steps);
            vm carry = vi_gt(sign_turned(first), sign_turned(low[v]));
            high[v] = vi_select(carry, vi_add(page, splat(1)), page);
        }
        draw(block, low, high, &p);
        for (int v = 0; v < PAIR; v++) {
            vi words[WORDS] = {p.c[0][v], p.c[1][v], p.c[2][v], p.c[3][v]};
            vi_interleave(words);
            for (int w = 0; w < WORDS; w++)
                vi_store(draws + at + (v * WORDS + w) * VLEN, words[w]);
        }
    }
    return draws + lead;
}

static const int32_t *draw_apart(const gb_dropout_block *block, int32_t *draws)
{
    uint64_t step = (uint64_t)block->step;
    for (int64_t at = 0; at < block->n; at += LANES) {
        philox p;
        vi low[PAIR], high[PAIR];
        int32_t lows[LANES], highs[LANES], words[LANES];
        for (int i = 0; i < LANES; i++) {
            uint64_t index = block->first + (uint64_t)(at + i) * step;
            words[i] = (int32_t)(index & 3);
            lows[i] = (int32_t)(uint32_t)(index & ~UINT64_C(3));
            highs[i] = (int32_t)(uint32_t)(index >> 32);
        }
        for (int v = 0; v < PAIR; v++) {
            low[v] = vi_load(lows + v * VLEN);
            high[v] = vi_load(highs + v * VLEN);
        }
        draw(block, low, high, &p);
        for (int v = 0; v < PAIR; v++) {
            vi word = vi_load(words + v * VLEN), chosen = p.c[0][v];
            for (int w = 1; w < WORDS; w++)
                chosen = vi_select(vi_eq(word, vi_set1(w)), p.c[w][v], chosen);
            vi_store(draws + at + v * VLEN, chosen);
        }
    }
    return draws;
}

/* Unsigned comparison: both sides with the sign bit turned round. */
GB_INLINE vf kept(const gb_dropout_block *block, vi draws)
{
    vi limit = sign_turned(splat(block->threshold));
    return vf_select(vi_gt(sign_turned(draws), limit), vf_set1(1.0F), vf_zero());
}

void GB_ISA_NAME(dropout_keep)(const gb_dropout_block *block)
{
    int32_t draws[GB_DROPOUT_ELEMENTS + LANES * WORDS + WORDS];
    const int32_t *from =
            block->step == 1 ? draw_neighbours(block, draws) : draw_apart(block, draws);
    int64_t i = 0;
    for (; i + VLEN <= block->n; i += VLEN)
        vf_store(block->keep + i, kept(block, vi_load(from + i)));
    if (i < block->n)
        vf_store_n(block->keep + i, kept(block, vi_load_n(from + i, block->n - i)), block->n - i);
}
