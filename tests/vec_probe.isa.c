/* The vector vocabulary behind plain functions; compiled once per instruction set. */
#include "vec_probe.h"

#include "kernels/isa/vec_math.h"

extern const vec_probe GB_ISA_NAME(vec_probe);

#define CODES(type)                                                                                \
    static void load_##type(const void *codes, int64_t n, float *lanes)                            \
    {                                                                                              \
        vf_store(lanes, n == VLEN ? vf_load_##type(codes) : vf_load_##type##_n(codes, n));         \
    }                                                                                              \
    static void store_##type(void *codes, const float *lanes, int64_t n)                           \
    {                                                                                              \
        if (n == VLEN)                                                                             \
            vf_store_##type(codes, vf_load(lanes));                                                \
        else                                                                                       \
            vf_store_##type##_n(codes, vf_load(lanes), n);                                         \
    }

CODES(f32)
CODES(bf16)
CODES(f16)
CODES(s32)
CODES(s8)
CODES(u8)
CODES(boolean)
CODES(f8_e5m2)
CODES(f8_e4m3)

#define FUNCTION(name)                                                                             \
    static void of_##name(const float *x, float *y)                                                \
    {                                                                                              \
        vf_store(y, vf_##name(vf_load(x)));                                                        \
    }

FUNCTION(exp)
FUNCTION(expm1)
FUNCTION(log)
FUNCTION(log1p)
FUNCTION(tanh)
FUNCTION(sigmoid)
FUNCTION(softplus)
FUNCTION(gelu_erf)
FUNCTION(gelu_tanh)
FUNCTION(mish)
FUNCTION(gelu_erf_slope)
FUNCTION(gelu_tanh_slope)
FUNCTION(mish_slope)
FUNCTION(round)
FUNCTION(floor)
FUNCTION(ceil)

static void power(const float *x, float beta, float *y)
{
    vf_store(y, vf_pow(vf_load(x), beta));
}

static void div_known(const float *x, float y, float *quotients)
{
    vf_store(quotients, vf_div_known(vf_load(x), vf_set1(y), vf_set1(1 / y)));
}

static void scale(const float *x, int32_t n, float *y)
{
    vf_store(y, vf_scale(vf_load(x), vi_set1(n)));
}

static void min_max(const float *x, const float *y, float *min, float *max)
{
    vf_store(min, vf_min(vf_load(x), vf_load(y)));
    vf_store(max, vf_max(vf_load(x), vf_load(y)));
}

static void gather(const float *p, int64_t stride, int64_t n, float *y)
{
    vf_store(y, vf_gather(p, stride, n));
}

static void reduce(const float *x, float *results)
{
    vf v = vf_load(x);
    results[0] = vf_sum(v);
    results[1] = vf_prod(v);
    results[2] = vf_max_lane(v);
    results[3] = vf_min_lane(v);
}

#define CODES_OF(table)                                                                            \
    {                                                                                              \
        [GB_F32] = table##_f32, [GB_BF16] = table##_bf16, [GB_F16] = table##_f16,                  \
        [GB_S32] = table##_s32, [GB_S8] = table##_s8, [GB_U8] = table##_u8,                        \
        [GB_BOOLEAN] = table##_boolean, [GB_F8_E5M2] = table##_f8_e5m2,                            \
        [GB_F8_E4M3] = table##_f8_e4m3                                                             \
    }

const vec_probe GB_ISA_NAME(vec_probe) = {
        .isa = GB_ISA_LEVEL,
        .lanes = VLEN,
        .load = CODES_OF(load),
        .store = CODES_OF(store),
        .function = {of_exp, of_expm1, of_log, of_log1p, of_tanh, of_sigmoid, of_softplus,
                of_gelu_erf, of_gelu_tanh, of_mish, of_gelu_erf_slope, of_gelu_tanh_slope,
                of_mish_slope, of_round, of_floor, of_ceil},
        .pow = power,
        .div_known = div_known,
        .scale = scale,
        .min_max = min_max,
        .gather = gather,
        .reduce = reduce,
};
