/* Stores of whole vectors of every type, perhaps past the caches. */
#ifndef GB_KERNELS_POINTWISE_POINTWISE_PUT_H
#define GB_KERNELS_POINTWISE_POINTWISE_PUT_H

#include "kernels/isa/vec.h"

#define PUT(type, stream)                                                                          \
    GB_INLINE void put_##type(void *p, vf v, bool streamed)                                        \
    {                                                                                              \
        if (streamed)                                                                              \
            stream;                                                                                \
        else                                                                                       \
            vf_store_##type(p, v);                                                                 \
    }
PUT(f32, vf_stream(p, v))
PUT(s32, vf_stream(p, vi_as_vf(gb_s32_encode(v))))
PUT(bf16, vf_stream_bf16(p, v))
PUT(f16, gb_stream_u16(p, gb_f16_encode(v)))
PUT(s8, gb_stream_u8(p, gb_s8_encode(v)))
PUT(u8, gb_stream_u8(p, gb_u8_encode(v)))
PUT(boolean, gb_stream_u8(p, gb_boolean_encode(v)))
PUT(f8_e5m2, gb_stream_u8(p, gb_f8_e5m2_encode(v)))
PUT(f8_e4m3, gb_stream_u8(p, gb_f8_e4m3_encode(v)))
#undef PUT

#endif
