/* Loads of any floating type by a constant type tag: the switch disappears where they are inlined.
 */
#ifndef GB_KERNELS_ISA_VEC_FLOAT_H
#define GB_KERNELS_ISA_VEC_FLOAT_H

#include <graphbench/graphbench.h>

GB_INLINE size_t gb_float_size(const gb_data_type type)
{
    return type == GB_F32 ? sizeof(float) : sizeof(uint16_t);
}

/* n <= VLEN consecutive elements as f32. */
GB_INLINE vf vf_load_float(const gb_data_type type, const void *p, int64_t n)
{
    switch (type) {
    case GB_BF16:
        return n == VLEN ? vf_load_bf16(p) : vf_load_bf16_n(p, n);
    case GB_F16:
        return n == VLEN ? vf_load_f16(p) : vf_load_f16_n(p, n);
    default:
        return n == VLEN ? vf_load(p) : vf_load_n(p, n);
    }
}

/* n <= VLEN elements `stride` apart. */
GB_INLINE vf vf_gather_float(const gb_data_type type, const void *p, int64_t stride, int64_t n)
{
    if (stride == 1)
        return vf_load_float(type, p, n);
    if (type == GB_F32)
        return vf_gather(p, stride, n);
    uint16_t halves[VLEN];
    for (int64_t i = 0; i < n; i++)
        halves[i] = ((const uint16_t *)p)[i * stride];
    return vf_load_float(type, halves, n);
}

/* n <= VLEN lanes. */
GB_INLINE void vf_store_first(float *p, vf v, int64_t n)
{
    if (n == VLEN)
        vf_store(p, v);
    else
        vf_store_n(p, v, n);
}

/* n <= VLEN lanes as consecutive elements. */
GB_INLINE void vf_store_float(const gb_data_type type, void *p, vf v, int64_t n)
{
    switch (type) {
    case GB_BF16:
        if (n == VLEN)
            vf_store_bf16(p, v);
        else
            vf_store_bf16_n(p, v, n);
        break;
    case GB_F16:
        if (n == VLEN)
            vf_store_f16(p, v);
        else
            vf_store_f16_n(p, v, n);
        break;
    default:
        vf_store_first(p, v, n);
    }
}

/* Instantiates call(..., type) for the type of an operand. */
#define GB_FLOAT_SWITCH(type, call, argument)                                                      \
    switch (type) {                                                                                \
    case GB_BF16:                                                                                  \
        call(argument, GB_BF16);                                                                   \
        break;                                                                                     \
    case GB_F16:                                                                                   \
        call(argument, GB_F16);                                                                    \
        break;                                                                                     \
    default:                                                                                       \
        call(argument, GB_F32);                                                                    \
    }

#endif
