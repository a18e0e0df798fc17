/* Weight gradients of depthwise convolutions: products of two tensors channel by channel. */
#include "kernels/isa/vec.h"

enum { PANEL = GB_GEMM_PANEL, TAPS = 4, VECTORS = 2 };

GB_INLINE void multiply(const gb_channel_products *p, int64_t tap, int c, const int taps)
{
    vf sums[TAPS][VECTORS];
    const float *a_base = p->a + c, *b_base = p->b + tap * p->tap_step + c;
    float *target = p->sums + tap * PANEL + c;
#pragma GCC unroll 4
    for (int t = 0; t < taps; t++)
#pragma GCC unroll 2
        for (int v = 0; v < VECTORS; v++)
            sums[t][v] = p->add ? vf_load(target + t * PANEL + v * VLEN) : vf_zero();
    for (int64_t k = 0; k < p->k; k++) {
        const float *a = a_base + p->a_offsets[k], *b = b_base + p->b_offsets[k];
#pragma GCC unroll 2
        for (int v = 0; v < VECTORS; v++) {
            vf factor = vf_load(a + v * VLEN);
#pragma GCC unroll 4
            for (int t = 0; t < taps; t++)
                sums[t][v] = vf_fma(factor, vf_load(b + t * p->tap_step + v * VLEN), sums[t][v]);
        }
    }
#pragma GCC unroll 4
    for (int t = 0; t < taps; t++)
#pragma GCC unroll 2
        for (int v = 0; v < VECTORS; v++)
            vf_store(target + t * PANEL + v * VLEN, sums[t][v]);
}

void GB_ISA_NAME(channel_products)(const gb_channel_products *p)
{
    for (int64_t tap = 0; tap < p->taps; tap += TAPS)
        for (int c = 0; c < PANEL; c += VECTORS * VLEN)
            switch (p->taps - tap) {
            case 1:
                multiply(p, tap, c, 1);
                break;
            case 2:
                multiply(p, tap, c, 2);
                break;
            case 3:
                multiply(p, tap, c, 3);
                break;
            default:
                multiply(p, tap, c, TAPS);
                break;
            }
}
