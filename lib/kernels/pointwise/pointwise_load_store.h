/* Tiles between f32 lanes and the quantized values of every data type in memory, with any
 * strides. */
#ifndef GB_KERNELS_POINTWISE_POINTWISE_LOAD_STORE_H
#define GB_KERNELS_POINTWISE_POINTWISE_LOAD_STORE_H

#include "kernels/pointwise/pointwise_put.h"

#include <stdlib.h>

/* Rows of a tile between lanes and quantized values of one type; steps in elements. */
typedef struct code_rows {
    int64_t rows, cols;
    char *codes;
    int64_t codes_row;
    float *lanes;
    int64_t lanes_row;
    bool streamed; /* quantized values go past the caches */
} code_rows;

#define CODES(type, bytes)                                                                         \
    static void load_##type(const code_rows *rows)                                                 \
    {                                                                                              \
        const code_rows t = *rows; /* stores may alias *rows */                                    \
        for (int64_t r = 0; r < t.rows; r++) {                                                     \
            const char *codes = t.codes + r * t.codes_row * (bytes);                               \
            float *lane = t.lanes + r * t.lanes_row;                                               \
            int64_t c = 0;                                                                         \
            for (; c + VLEN <= t.cols; c += VLEN)                                                  \
                vf_store(lane + c, vf_load_##type(codes + c * (bytes)));                           \
            int64_t rest = t.cols - c;                                                             \
            if (rest)                                                                              \
                vf_store_n(lane + c, vf_load_##type##_n(codes + c * (bytes), rest), rest);         \
        }                                                                                          \
    }                                                                                              \
    static void store_##type(const code_rows *rows)                                                \
    {                                                                                              \
        const code_rows t = *rows; /* stores may alias *rows */                                    \
        for (int64_t r = 0; r < t.rows; r++) {                                                     \
            char *codes = t.codes + r * t.codes_row * (bytes);                                     \
            const float *lane = t.lanes + r * t.lanes_row;                                         \
            bool streamed = t.streamed && (uintptr_t)codes % (VLEN * (bytes)) == 0;                \
            int64_t c = 0;                                                                         \
            for (; c + VLEN <= t.cols; c += VLEN)                                                  \
                put_##type(codes + c * (bytes), vf_load(lane + c), streamed);                      \
            int64_t rest = t.cols - c;                                                             \
            if (rest)                                                                              \
                vf_store_##type##_n(codes + c * (bytes), vf_load_n(lane + c, rest), rest);         \
        }                                                                                          \
    }

CODES(f32, 4)
CODES(s32, 4)
CODES(bf16, 2)
CODES(f16, 2)
CODES(s8, 1)
CODES(u8, 1)
CODES(boolean, 1)
CODES(f8_e5m2, 1)
CODES(f8_e4m3, 1)

typedef struct code_type {
    int64_t bytes;
    void (*load)(const code_rows *rows);
    void (*store)(const code_rows *rows);
} code_type;

static const code_type code_types[] = {
        [GB_F32] = {4, load_f32, store_f32},
        [GB_S32] = {4, load_s32, store_s32},
        [GB_BF16] = {2, load_bf16, store_bf16},
        [GB_F16] = {2, load_f16, store_f16},
        [GB_S8] = {1, load_s8, store_s8},
        [GB_U8] = {1, load_u8, store_u8},
        [GB_BOOLEAN] = {1, load_boolean, store_boolean},
        [GB_F8_E5M2] = {1, load_f8_e5m2, store_f8_e5m2},
        [GB_F8_E4M3] = {1, load_f8_e4m3, store_f8_e4m3},
};

/* ----------------------------------------------------------- moving quantized values by strides */

#define MOVE(type)                                                                                 \
    static void move_##type(const gb_pointwise_view *to, const gb_pointwise_view *from,            \
            int64_t rows, int64_t cols)                                                            \
    {                                                                                              \
        const type *src = (const type *)(const void *)from->data;                                  \
        type *dst = (type *)(void *)to->data;                                                      \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t c = 0; c < cols; c++)                                                     \
                dst[r * to->row_stride + c * to->col_stride] =                                     \
                        src[r * from->row_stride + c * from->col_stride];                          \
    }
MOVE(uint8_t)
MOVE(uint16_t)
MOVE(uint32_t)

static gb_pointwise_view transposed(gb_pointwise_view view)
{
    return (gb_pointwise_view){
            .data = view.data, .row_stride = view.col_stride, .col_stride = view.row_stride};
}

/* Copies elements of `bytes` bytes between memory with any strides (`far`) and packed memory, along
 * the shorter of the steps. */
static void move_codes(
        int64_t bytes, bool gather, gb_pointwise_view far, char *codes, int64_t rows, int64_t cols)
{
    gb_pointwise_view near = {.data = codes, .row_stride = cols, .col_stride = 1};
    if (rows > 1 && llabs(far.row_stride) < llabs(far.col_stride)) {
        int64_t swapped = rows;
        rows = cols;
        cols = swapped;
        far = transposed(far);
        near = transposed(near);
    }
    const gb_pointwise_view *to = gather ? &near : &far, *from = gather ? &far : &near;
    switch (bytes) {
    case 1:
        move_uint8_t(to, from, rows, cols);
        break;
    case 2:
        move_uint16_t(to, from, rows, cols);
        break;
    default:
        move_uint32_t(to, from, rows, cols);
        break;
    }
}

/* ----------------------------------------------------------------------------- 4-bit elements */

static uint8_t nibble_at(const uint8_t *bytes, int64_t offset)
{
    return (uint8_t)(offset & 1 ? bytes[offset / 2] >> 4 : bytes[offset / 2] & 0xF);
}

static void unpack_run(const uint8_t *bytes, int64_t offset, int64_t n, uint8_t *codes)
{
    int64_t first = n > 0 && (offset & 1), pairs = (n - first) / 2;
    if (first)
        codes[0] = nibble_at(bytes, offset);
    const uint8_t *from = bytes + (offset + first) / 2;
    uint8_t *to = codes + first;
    for (int64_t i = 0; i < pairs; i++) {
        to[2 * i] = from[i] & 0xF;
        to[2 * i + 1] = (uint8_t)(from[i] >> 4);
    }
    if (first + 2 * pairs < n)
        to[2 * pairs] = from[pairs] & 0xF;
}

/* One code of a byte per element, packed; those of signed elements are s8. */
static void unpack_nibbles(
        const gb_pointwise_view *far, bool is_signed, uint8_t *codes, int64_t rows, int64_t cols)
{
    const uint8_t *bytes = (const uint8_t *)far->data;
    for (int64_t r = 0; r < rows; r++) {
        int64_t offset = far->nibble + r * far->row_stride;
        uint8_t *row = codes + r * cols;
        if (far->col_stride == 1)
            unpack_run(bytes, offset, cols, row);
        else
            for (int64_t c = 0; c < cols; c++)
                row[c] = nibble_at(bytes, offset + c * far->col_stride);
    }
    for (int64_t i = 0; is_signed && i < rows * cols; i++)
        codes[i] = (uint8_t)((codes[i] ^ 8) - 8);
}

#undef CODES
#undef MOVE

#endif
