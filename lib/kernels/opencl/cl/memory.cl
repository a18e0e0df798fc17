/* Elements in memory: what is read becomes f32. */
#define GB_MEMORY __global const uchar *
#define GB_RESULT __global uchar *

/* What a kernel works with: one number, or lanes where vectors.cl comes. */
#define GB_FLOATS  float
#define GB_INTS int

#define GB_FLOAT_TYPE(name, type)                                                                  \
    GB_INLINE float gb_load_##name(GB_MEMORY m, long i)                                            \
    {                                                                                              \
        return gb_##name##_decode(((__global const type *)m)[i]);                                  \
    }                                                                                              \
    GB_INLINE void gb_store_##name(GB_RESULT m, long i, float v)                                   \
    {                                                                                              \
        ((__global type *)m)[i] = (type)gb_##name##_encode(v);                                     \
    }
GB_FLOAT_TYPE(bf16, ushort)
GB_FLOAT_TYPE(f16, ushort)
GB_FLOAT_TYPE(f8_e5m2, uchar)
GB_FLOAT_TYPE(f8_e4m3, uchar)

GB_INLINE float gb_load_f32(GB_MEMORY m, long i)
{
    return ((__global const float *)m)[i];
}
GB_INLINE void gb_store_f32(GB_RESULT m, long i, float v)
{
    ((__global float *)m)[i] = v;
}
GB_INLINE int gb_load_lane(GB_MEMORY m, long i)
{
    return ((__global const int *)m)[i];
}
GB_INLINE void gb_store_lane(GB_RESULT m, long i, int v)
{
    ((__global int *)m)[i] = v;
}
GB_INLINE float gb_load_s32(GB_MEMORY m, long i)
{
    return convert_float_rte(((__global const int *)m)[i]);
}
GB_INLINE void gb_store_s32(GB_RESULT m, long i, float v)
{
    ((__global int *)m)[i] = gb_s32_encode(v);
}
GB_INLINE float gb_load_s8(GB_MEMORY m, long i)
{
    return (float)((__global const char *)m)[i];
}
GB_INLINE void gb_store_s8(GB_RESULT m, long i, float v)
{
    ((__global char *)m)[i] = (char)gb_saturate(v, -128.0f, 127.0f);
}
GB_INLINE float gb_load_u8(GB_MEMORY m, long i)
{
    return (float)m[i];
}
GB_INLINE void gb_store_u8(GB_RESULT m, long i, float v)
{
    m[i] = (uchar)gb_saturate(v, 0.0f, 255.0f);
}
GB_INLINE float gb_load_boolean(GB_MEMORY m, long i)
{
    return m[i] ? 1.0f : 0.0f;
}
GB_INLINE void gb_store_boolean(GB_RESULT m, long i, float v)
{
    m[i] = v != 0.0f ? 1 : 0;
}
/* Two to a byte, the first in the low bits. */
GB_INLINE float gb_load_u4(GB_MEMORY m, long i)
{
    return (float)((m[i >> 1] >> ((int)(i & 1) * 4)) & 15);
}
GB_INLINE float gb_load_s4(GB_MEMORY m, long i)
{
    int code = (m[i >> 1] >> ((int)(i & 1) * 4)) & 15;
    return (float)((code ^ 8) - 8);
}

/* Offset of element `index` of a list of dims: n, then n pairs of a dim and a stride, the one that
 * runs fastest first. */
GB_INLINE long gb_offset(__global const long *list, long index)
{
    long offset = 0, n = list[0];
    for (long d = 0; d < n; d++) {
        long dim = list[1 + 2 * d];
        offset += index % dim * list[2 + 2 * d];
        index /= dim;
    }
    return offset;
}
