/* Chains of multiply-adds in registers, eight to hide their latency, in vectors of some widths: which one a device
 * likes is found out. And streaming through memory. */
#ifdef FP_FAST_FMAF
#define MULTIPLY_ADD fma
#else
#define MULTIPLY_ADD mad
#endif

#define CHAINS(NAME, TYPE, STEP)                                                              \
    __kernel void NAME(__global TYPE *out, TYPE x, TYPE y, int steps)                         \
    {                                                                                         \
        TYPE a = x + (TYPE)get_global_id(0), b = a + x, c = b + x, d = c + x, e = d + x,      \
             f = e + x, g = f + x, h = g + x;                                                 \
        for (int i = 0; i < steps; i++) {                                                     \
            a = STEP(a, x, y), b = STEP(b, x, y), c = STEP(c, x, y), d = STEP(d, x, y);       \
            e = STEP(e, x, y), f = STEP(f, x, y), g = STEP(g, x, y), h = STEP(h, x, y);       \
        }                                                                                     \
        out[get_global_id(0)] = a + b + c + d + e + f + g + h;                                \
    }

CHAINS(f32_1, float, MULTIPLY_ADD)
CHAINS(f32_4, float4, MULTIPLY_ADD)
CHAINS(f32_8, float8, MULTIPLY_ADD)
CHAINS(f32_16, float16, MULTIPLY_ADD)

#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
CHAINS(f16_2, half2, fma)
CHAINS(f16_8, half8, fma)
CHAINS(f16_16, half16, fma)
#endif

#ifdef __opencl_c_integer_dot_product_input_4x8bit_packed
#define DOT(a, x, y) dot_acc_sat_4x8packed_ss_int((a), (x), (y))
CHAINS(int8_1, uint, DOT)
#endif

/* Ways to go over memory: a work-item takes `BLOCK` vectors, side by side on a CPU, where it is a loop, and one from
 * each of as many streams elsewhere, where neighbours run together. */
#define BLOCK 16
#ifdef GB_CPU
#define VECTOR(k) (get_global_id(0) * BLOCK + (k))
#else
#define VECTOR(k) (get_global_id(0) + (k)*get_global_size(0))
#endif

__kernel void stream_update(__global float8 *a, __global const float8 *b)
{
    for (int k = 0; k < BLOCK; k++)
        a[VECTOR(k)] += b[VECTOR(k)];
}

__kernel void stream_copy(__global float8 *a, __global const float8 *b)
{
    for (int k = 0; k < BLOCK; k++)
        a[VECTOR(k)] = b[VECTOR(k)];
}

__kernel void stream_read(__global float8 *a, __global const float8 *b)
{
    float8 sum = 0;
    for (int k = 0; k < BLOCK; k++)
        sum += b[VECTOR(k)];
    if (sum.s0 < 0) /* never: all are 1 */
        a[get_global_id(0)] = sum;
}
