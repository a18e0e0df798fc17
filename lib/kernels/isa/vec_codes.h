/* Loads of codes of every type by a constant type tag. */
#ifndef GB_KERNELS_ISA_VEC_CODES_H
#define GB_KERNELS_ISA_VEC_CODES_H

#include "kernels/isa/vec_float.h"

GB_INLINE bool gb_is_nibble(const gb_data_type type)
{
    return type == GB_S4 || type == GB_U4;
}

GB_INLINE int64_t gb_code_bytes(const gb_data_type type)
{
    switch (type) {
    case GB_F32:
    case GB_S32:
        return 4;
    case GB_BF16:
    case GB_F16:
        return 2;
    default:
        return 1;
    }
}

/* 8-bit quantized values in lanes -> numbers. */
GB_INLINE vf gb_code_decode(const gb_data_type type, vi codes)
{
    switch (type) {
    case GB_S8:
        return gb_s8_decode(codes);
    case GB_S4:
        return gb_s4_decode(codes);
    case GB_F8_E4M3:
        return gb_f8_e4m3_decode(codes);
    case GB_F8_E5M2:
        return gb_f8_e5m2_decode(codes);
    default:
        return gb_u8_decode(codes);
    }
}

/* n <= VLEN 8- or 4-bit elements from `first` on, `stride` apart, as codes in lanes. */
GB_INLINE vi gb_load_codes(
        const gb_data_type type, const void *codes, int64_t first, int64_t stride, int64_t n)
{
    const uint8_t *bytes = codes;
    if (gb_is_nibble(type)) {
        if (stride == 1 && n == VLEN && first % 2 == 0)
            return gb_load_u4(bytes + first / 2);
        uint8_t spread[VLEN] = {0};
        for (int64_t i = 0; i < n; i++) {
            int64_t at = first + i * stride;
            spread[i] = (uint8_t)((bytes[at / 2] >> (at % 2 * 4)) & 15);
        }
        return gb_load_u8(spread);
    }
    if (stride == 1)
        return n == VLEN ? gb_load_u8(bytes + first) : gb_load_u8_n(bytes + first, n);
    uint8_t spread[VLEN] = {0};
    for (int64_t i = 0; i < n; i++)
        spread[i] = bytes[first + i * stride];
    return gb_load_u8(spread);
}

/* n <= VLEN elements of any type as numbers; the other lanes hold what the code 0 stands for. */
GB_INLINE vf vf_load_codes(
        const gb_data_type type, const void *codes, int64_t first, int64_t stride, int64_t n)
{
    if (gb_code_bytes(type) == 1)
        return gb_code_decode(type, gb_load_codes(type, codes, first, stride, n));
    if (type == GB_S32) {
        if (stride == 1)
            return vf_from_vi(vi_load_n((const int32_t *)codes + first, n));
        int32_t spread[VLEN] = {0};
        for (int64_t i = 0; i < n; i++)
            spread[i] = ((const int32_t *)codes)[first + i * stride];
        return vf_from_vi(vi_load(spread));
    }
    return vf_gather_float(type, (const char *)codes + first * gb_code_bytes(type), stride, n);
}

/* Whether rows of elements that are `step` apart, the first at `first`, begin at whole bytes. */
GB_INLINE bool gb_rows_are_whole(const gb_data_type type, int64_t first, int64_t step)
{
    return !gb_is_nibble(type) || (first % 2 == 0 && step % 2 == 0);
}

/* Bytes of elements, an even number of them if they have 4 bits. */
GB_INLINE int64_t gb_bytes_of_codes(const gb_data_type type, int64_t count)
{
    return gb_is_nibble(type) ? count / 2 : count * gb_code_bytes(type);
}

/* Elements in a line of the caches. */
GB_INLINE int64_t gb_codes_of_line(const gb_data_type type)
{
    return gb_is_nibble(type) ? 128 : 64 / gb_code_bytes(type);
}

/* VLEN elements from a byte on, as numbers. */
GB_INLINE vf vf_load_whole_codes(const gb_data_type type, const uint8_t *p)
{
    return vf_load_codes(type, p, 0, 1, VLEN);
}

/* A case that calls an instance of call(argument, type). */
#define GB_CODE_CASE(type, call, argument)                                                         \
    case type:                                                                                     \
        call(argument, type);                                                                      \
        break;

#define GB_EACH_CODE(X, call, argument)                                                            \
    X(GB_S8, call, argument)                                                                       \
    X(GB_U8, call, argument)                                                                       \
    X(GB_S4, call, argument)                                                                       \
    X(GB_U4, call, argument)                                                                       \
    X(GB_F8_E4M3, call, argument)                                                                  \
    X(GB_F8_E5M2, call, argument)                                                                  \
    X(GB_S32, call, argument)                                                                      \
    X(GB_BF16, call, argument)                                                                     \
    X(GB_F16, call, argument)                                                                      \
    X(GB_F32, call, argument)
#define GB_CODE_INSTANCE(type, call, argument)                                                     \
    static void call##_##type(const argument *given)                                               \
    {                                                                                              \
        call(given, type);                                                                         \
    }
#define GB_CODE_ENTRY(type, call, argument) [type] = call##_##type,
/* Defines `table`: call(const argument *, type) for each type of codes. Functions of their own, so
 * that one's stack frame does not hold the arrays of all others. */
#define GB_CODE_TABLE(table, call, argument)                                                       \
    GB_EACH_CODE(GB_CODE_INSTANCE, call, argument)                                                 \
    static void (*const table[])(const argument *) = {GB_EACH_CODE(GB_CODE_ENTRY, call, argument)};

#endif
