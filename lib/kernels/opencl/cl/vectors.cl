/* Kernels in lanes: a kernel works with GB_LANES elements at a time, n of which are there. Behind
 * numbers.cl and math.cl for lanes. */
#undef GB_FLOATS
#undef GB_INTS
#define GB_FLOATS  GB_FLOAT
#define GB_INTS GB_INT
#if GB_LANES == 16
#define GB_LANE_NUMBERS (GB_INT)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#elif GB_LANES == 8
#define GB_LANE_NUMBERS (GB_INT)(0, 1, 2, 3, 4, 5, 6, 7)
#elif GB_LANES == 4
#define GB_LANE_NUMBERS (GB_INT)(0, 1, 2, 3)
#else
#define GB_LANE_NUMBERS (GB_INT)(0, 1)
#endif
#define GB_WORDS(type)     GB_LANES_OF(type, GB_LANES)
#define GB_LOAD_WORDS      GB_LANES_OF(vload, GB_LANES)
#define GB_STORE_WORDS     GB_LANES_OF(vstore, GB_LANES)

/* Copies n neighbours, fewer than there are lanes: by halves, quarters and so on. */
#define GB_COPY_PART(to, from, n)                                                                  \
    {                                                                                              \
        int done = 0;                                                                              \
        GB_COPY_EIGHT(to, from, n)                                                                 \
        GB_COPY_FOUR(to, from, n)                                                                  \
        if (n & 2) {                                                                               \
            vstore2(vload2(0, from + done), 0, to + done);                                         \
            done += 2;                                                                             \
        }                                                                                          \
        if (n & 1)                                                                                 \
            (to)[done] = (from)[done];                                                             \
    }
#if GB_LANES > 8
#define GB_COPY_EIGHT(to, from, n)                                                                 \
    if (n & 8) {                                                                                   \
        vstore8(vload8(0, from), 0, to);                                                           \
        done = 8;                                                                                  \
    }
#else
#define GB_COPY_EIGHT(to, from, n)
#endif
#if GB_LANES > 4
#define GB_COPY_FOUR(to, from, n)                                                                  \
    if (n & 4) {                                                                                   \
        vstore4(vload4(0, from + done), 0, to + done);                                             \
        done += 4;                                                                                 \
    }
#else
#define GB_COPY_FOUR(to, from, n)
#endif

/* gb_read_NAME, gb_write_NAME: neighbours from element i on; gb_gather_NAME, gb_scatter_NAME: every
 * stride-th one; gb_read_listed_NAME, gb_write_listed_NAME: those with such numbers in a list of
 * dims. Missing lanes read 0. */
#define GB_READERS(name, type, result, decoded)                                                    \
    GB_INLINE result gb_gather_##name(GB_MEMORY m, long i, long stride, int n)                     \
    {                                                                                              \
        type part[GB_LANES];                                                                       \
        for (int l = 0; l < GB_LANES; l++)                                                         \
            part[l] = l < n ? ((__global const type *)m)[i + l * stride] : 0;                      \
        GB_WORDS(type) word = GB_LOAD_WORDS(0, part);                                              \
        return decoded;                                                                            \
    }                                                                                              \
    GB_INLINE result gb_read_##name(GB_MEMORY m, long i, int n)                                    \
    {                                                                                              \
        __global const type *from = (__global const type *)m + i;                                  \
        GB_WORDS(type) word;                                                                       \
        if (n < GB_LANES) {                                                                        \
            type part[GB_LANES];                                                                   \
            GB_STORE_WORDS((GB_WORDS(type))(0), 0, part);                                          \
            GB_COPY_PART(part, from, n)                                                            \
            word = GB_LOAD_WORDS(0, part);                                                         \
        } else {                                                                                   \
            word = GB_LOAD_WORDS(0, from);                                                         \
        }                                                                                          \
        return decoded;                                                                            \
    }                                                                                              \
    GB_INLINE result gb_read_listed_##name(                                                        \
            GB_MEMORY m, __global const long *list, long i, long stride, int n)                    \
    {                                                                                              \
        type part[GB_LANES];                                                                       \
        for (int l = 0; l < GB_LANES; l++)                                                         \
            part[l] = l < n ? ((__global const type *)m)[gb_offset(list, i + l * stride)] : 0;     \
        GB_WORDS(type) word = GB_LOAD_WORDS(0, part);                                              \
        return decoded;                                                                            \
    }
#define GB_WRITERS(name, type, value, encoded)                                                     \
    GB_INLINE void gb_scatter_##name(GB_RESULT m, long i, long stride, int n, value v)             \
    {                                                                                              \
        type part[GB_LANES];                                                                       \
        GB_STORE_WORDS(encoded, 0, part);                                                          \
        for (int l = 0; l < n; l++)                                                                \
            ((__global type *)m)[i + l * stride] = part[l];                                        \
    }                                                                                              \
    GB_INLINE void gb_write_##name(GB_RESULT m, long i, int n, value v)                            \
    {                                                                                              \
        __global type *to = (__global type *)m + i;                                                \
        if (n < GB_LANES) {                                                                        \
            type part[GB_LANES];                                                                   \
            GB_STORE_WORDS(encoded, 0, part);                                                      \
            GB_COPY_PART(to, part, n)                                                              \
        } else {                                                                                   \
            GB_STORE_WORDS(encoded, 0, to);                                                        \
        }                                                                                          \
    }                                                                                              \
    GB_INLINE void gb_write_listed_##name(                                                         \
            GB_RESULT m, __global const long *list, long i, long stride, int n, value v)           \
    {                                                                                              \
        type part[GB_LANES];                                                                       \
        GB_STORE_WORDS(encoded, 0, part);                                                          \
        for (int l = 0; l < n; l++)                                                                \
            ((__global type *)m)[gb_offset(list, i + l * stride)] = part[l];                       \
    }
#define GB_FROM(word)     GB_LANES_OF(convert_uint, GB_LANES)(word)
#define GB_TO(type, code) GB_LANES_OF(convert_##type, GB_LANES)(code)

GB_READERS(f32, float, GB_FLOATS, word)
GB_WRITERS(f32, float, GB_FLOATS, v)
GB_READERS(bf16, ushort, GB_FLOATS, gb_bf16_decode(GB_FROM(word)))
GB_WRITERS(bf16, ushort, GB_FLOATS, GB_TO(ushort, gb_bf16_encode(v)))
GB_READERS(f16, ushort, GB_FLOATS, gb_f16_decode(GB_FROM(word)))
GB_WRITERS(f16, ushort, GB_FLOATS, GB_TO(ushort, gb_f16_encode(v)))
GB_READERS(f8_e5m2, uchar, GB_FLOATS, gb_f8_e5m2_decode(GB_FROM(word)))
GB_WRITERS(f8_e5m2, uchar, GB_FLOATS, GB_TO(uchar, gb_f8_e5m2_encode(v)))
GB_READERS(f8_e4m3, uchar, GB_FLOATS, gb_f8_e4m3_decode(GB_FROM(word)))
GB_WRITERS(f8_e4m3, uchar, GB_FLOATS, GB_TO(uchar, gb_f8_e4m3_encode(v)))
GB_READERS(lane, int, GB_INTS, word)
GB_WRITERS(lane, int, GB_INTS, v)
GB_READERS(s32, int, GB_FLOATS, GB_TO_F(word))
GB_WRITERS(s32, int, GB_FLOATS, gb_s32_encode(v))
GB_READERS(s8, char, GB_FLOATS, GB_TO(float, word))
GB_WRITERS(s8, char, GB_FLOATS, GB_TO(char, gb_saturate(v, -128.0f, 127.0f)))
GB_READERS(u8, uchar, GB_FLOATS, GB_TO(float, word))
GB_WRITERS(u8, uchar, GB_FLOATS, GB_TO(uchar, gb_saturate(v, 0.0f, 255.0f)))
GB_READERS(boolean, uchar, GB_FLOATS, GB_TO(float, min(word, (uchar)1)))
GB_WRITERS(boolean, uchar, GB_FLOATS, GB_TO(uchar, v != 0.0f ? 1 : 0))

/* Two to a byte, which are taken apart together where the first is in the low bits. */
#define GB_NIBBLES(name, decoded)                                                                  \
    GB_INLINE GB_FLOATS gb_gather_##name(GB_MEMORY m, long i, long stride, int n)                       \
    {                                                                                              \
        float part[GB_LANES];                                                                      \
        for (int l = 0; l < GB_LANES; l++)                                                         \
            part[l] = l < n ? gb_load_##name(m, i + l * stride) : 0.0f;                            \
        return GB_LOAD_WORDS(0, part);                                                             \
    }                                                                                              \
    GB_INLINE GB_FLOATS gb_read_##name(GB_MEMORY m, long i, int n)                                      \
    {                                                                                              \
        if (n < GB_LANES || (i & 1))                                                               \
            return gb_gather_##name(m, i, 1, n);                                                   \
        GB_INT code = GB_PAIRS(m + (i >> 1));                                                        \
        return GB_TO_F(decoded);                                                                   \
    }
#if GB_LANES == 16
#define GB_PAIRS(m)                                                                                \
    (((GB_INT)(convert_int8(vload8(0, m)).s0011223344556677) >>                                      \
             (GB_INT)(0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4)) & 15)
#elif GB_LANES == 8
#define GB_PAIRS(m)                                                                                \
    (((GB_INT)(convert_int4(vload4(0, m)).s00112233) >> (GB_INT)(0, 4, 0, 4, 0, 4, 0, 4)) & 15)
#elif GB_LANES == 4
#define GB_PAIRS(m) (((GB_INT)(convert_int2(vload2(0, m)).s0011) >> (GB_INT)(0, 4, 0, 4)) & 15)
#else
#define GB_PAIRS(m) (((GB_INT)((int)(m)[0]) >> (GB_INT)(0, 4)) & 15)
#endif
GB_NIBBLES(u4, code)
GB_NIBBLES(s4, (code ^ 8) - 8)

/* gb_keep() of neighbours in a space whose numbers are `stride` apart. */
#ifdef GB_WITH_MATH
GB_INLINE GB_FLOATS gb_keep_lanes(ulong first, long stride, ulong seed, ulong offset, GB_FLOATS p)
{
    GB_ULONG index = first + GB_TO_UL(GB_LANE_NUMBERS) * (ulong)stride;
    return gb_keep(GB_TO_U(index), GB_TO_U(index >> 32), seed, offset, p);
}
#endif

/* Copies n neighbours, and n elements at distances. */
#define GB_COPY_LANES(to, from, n)                                                           \
    if (n == GB_LANES)                                                                             \
        GB_STORE_WORDS(GB_LOAD_WORDS(0, from), 0, to);                                             \
    else                                                                                           \
        GB_COPY_PART(to, from, n)
#define GB_COPY_STEPS(type, to, to_step, from, from_step, n)                                       \
    {                                                                                              \
        type part[GB_LANES];                                                                       \
        for (int l = 0; l < n; l++)                                                                \
            part[l] = (from)[l * from_step];                                                       \
        for (int l = 0; l < n; l++)                                                                \
            (to)[l * to_step] = part[l];                                                           \
    }
/* The same for a tile: n lanes, each with `columns` elements, which lie from_step apart, and next to each
 * other once copied. */
#define GB_COPY_TURNED(type, to, to_step, from, from_step, n, columns)                             \
    {                                                                                              \
        type tile[GB_LANES * GB_LANES];                                                            \
        for (int j = 0; j < columns; j++) {                                                        \
            type part[GB_LANES];                                                                   \
            if (n == GB_LANES)                                                                     \
                GB_STORE_WORDS(GB_LOAD_WORDS(0, (from) + j * from_step), 0, part);                 \
            else                                                                                   \
                for (int l = 0; l < n; l++)                                                        \
                    part[l] = (from)[j * from_step + l];                                           \
            for (int l = 0; l < GB_LANES; l++)                                                     \
                tile[l * GB_LANES + j] = part[l];                                                  \
        }                                                                                          \
        for (int l = 0; l < n; l++)                                                                \
            if (columns == GB_LANES)                                                               \
                GB_STORE_WORDS(GB_LOAD_WORDS(l, tile), 0, (to) + l * to_step);                     \
            else                                                                                   \
                for (int j = 0; j < columns; j++)                                                  \
                    (to)[l * to_step + j] = tile[l * GB_LANES + j];                                \
    }
