/* Data types: sizes, ranges and exact scalar conversions. */
#include "base/dtype.h"

#include "base/status.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const gb_dtype_info types[] = {
        [GB_F16] = {"f16", 16, true, true, -65504, 65504, 0x1p-11, 0x1p-25},
        [GB_BF16] = {"bf16", 16, true, true, -0x1.FEp127, 0x1.FEp127, 0x1p-8, 0x1p-126},
        [GB_F32] = {"f32", 32, true, true, -(double)FLT_MAX, (double)FLT_MAX, 0x1p-24, 0x1p-126},
        [GB_S32] = {"s32", 32, false, true, INT32_MIN, INT32_MAX, 0, 0},
        [GB_S8] = {"s8", 8, false, true, INT8_MIN, INT8_MAX, 0, 0},
        [GB_U8] = {"u8", 8, false, false, 0, UINT8_MAX, 0, 0},
        [GB_BOOLEAN] = {"boolean", 8, false, false, 0, 1, 0, 0},
        [GB_F8_E5M2] = {"f8_e5m2", 8, true, true, -57344, 57344, 0x1p-3, 0x1p-17},
        [GB_F8_E4M3] = {"f8_e4m3", 8, true, true, -448, 448, 0x1p-4, 0x1p-10},
        [GB_S4] = {"s4", 4, false, true, -8, 7, 0, 0},
        [GB_U4] = {"u4", 4, false, false, 0, 15, 0, 0},
        [GB_S64] = {"s64", 64, false, true, -0x1p63, 0x1p63, 0, 0},
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

const gb_dtype_info *gb_dtype_get(gb_data_type type)
{
    size_t index = (size_t)type;
    return index < TYPE_COUNT && types[index].name ? &types[index] : NULL;
}

const char *gb_data_type_name(gb_data_type type)
{
    const gb_dtype_info *info = gb_dtype_get(type);
    return info ? info->name : "undef";
}

gb_status gb_data_type_parse(const char *name, gb_data_type *type)
{
    if (!name || !type)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_data_type_parse: NULL argument");
    for (int i = 0; i < TYPE_COUNT; i++) {
        if (types[i].name && strcmp(types[i].name, name) == 0) {
            *type = (gb_data_type)i;
            return GB_SUCCESS;
        }
    }
    return gb_fail(GB_INVALID_ARGUMENTS, "unknown data type \"%s\"", name);
}

size_t gb_data_type_bytes(gb_data_type type, size_t count)
{
    const gb_dtype_info *info = gb_dtype_get(type);
    if (!info)
        return 0;
    return info->bits == 4 ? (count + 1) / 2 : count * (info->bits / 8);
}

static uint32_t f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float f32_from(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t gb_f32_to_bf16(float value)
{
    uint32_t bits = f32_bits(value);
    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40);
    if ((bits & 0x7F800000) == 0)
        return (uint16_t)(bits >> 16 & 0x8000); /* subnormals flush */
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float gb_bf16_to_f32(uint16_t bits)
{
    return f32_from((uint32_t)bits << 16);
}

uint16_t gb_f32_to_f16(float value)
{
    uint32_t bits = f32_bits(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7FFFFFFF;
    if (magnitude > 0x7F800000)
        return (uint16_t)(sign | 0x7E00 | (bits >> 13 & 0x3FF));
    if (magnitude >= 0x477FF000)
        return (uint16_t)(sign | 0x7C00); /* 65520 and above */
    if (magnitude < 0x38800000) {         /* below 2^-14: steps of 2^-24 */
        float steps = fabsf(value) * 0x1p24f;
        return (uint16_t)(sign | (uint16_t)nearbyintf(steps));
    }
    uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((rounded - 0x38000000) >> 13));
}

float gb_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;
    if (exponent == 31)
        return f32_from(sign | 0x7F800000 | fraction << 13 | (fraction ? 0x400000 : 0));
    if (exponent == 0)
        return copysignf((float)fraction * 0x1p-24f, f32_from(sign | 0x3F800000));
    return f32_from(sign | (exponent + 112) << 23 | fraction << 13);
}

uint8_t gb_f32_to_f8_e5m2(float value)
{
    uint16_t half = gb_f32_to_f16(value);
    if ((half & 0x7FFF) > 0x7C00)
        return (uint8_t)(half >> 8 | 2);
    return (uint8_t)((half + 0x7F + (half >> 8 & 1)) >> 8);
}

float gb_f8_e5m2_to_f32(uint8_t bits)
{
    return gb_f16_to_f32((uint16_t)(bits << 8));
}

uint8_t gb_f32_to_f8_e4m3(float value)
{
    float half = gb_f16_to_f32(gb_f32_to_f16(value));
    uint8_t sign = signbit(half) ? 0x80 : 0;
    float magnitude = fabsf(half);
    if (!(magnitude <= 464.0F))
        return sign | 0x7F; /* NaN too */
    if (magnitude < 0x1p-6f)
        return (uint8_t)(sign | (uint8_t)nearbyintf(magnitude * 0x1p9f));
    uint32_t wide = f32_bits(magnitude);
    uint32_t rounded = wide + 0x7FFFF + (wide >> 20 & 1);
    uint32_t code = (rounded >> 20) - (120U << 3);
    return (uint8_t)(sign | (code > 0x7E ? 0x7E : code));
}

float gb_f8_e4m3_to_f32(uint8_t bits)
{
    float sign = bits & 0x80 ? -1.0F : 1.0F;
    int exponent = bits >> 3 & 15, fraction = bits & 7;
    if ((bits & 0x7F) == 0x7F)
        return f32_from((uint32_t)(bits & 0x80) << 24 | 0x7FC00000);
    if (exponent == 0)
        return sign * (float)fraction * 0x1p-9f;
    return sign * ldexpf((float)(8 + fraction), exponent - 10);
}

/* Does something for each i, with `at` the place of element i. */
#define EACH(does)                                                                                 \
    for (int64_t i = 0, at = first; i < count; i++, at += step)                                    \
    does

void gb_elements_get(gb_data_type type, const void *data, int64_t first, int64_t step,
        int64_t count, double *values)
{
    const uint8_t *bytes = data;
    const uint16_t *halves = data;
    switch (type) {
    case GB_F32:
        EACH(values[i] = (double)((const float *)data)[at]);
        return;
    case GB_BF16:
        EACH(values[i] = (double)gb_bf16_to_f32(halves[at]));
        return;
    case GB_F16:
        EACH(values[i] = (double)gb_f16_to_f32(halves[at]));
        return;
    case GB_F8_E5M2:
        EACH(values[i] = (double)gb_f8_e5m2_to_f32(bytes[at]));
        return;
    case GB_F8_E4M3:
        EACH(values[i] = (double)gb_f8_e4m3_to_f32(bytes[at]));
        return;
    case GB_S64:
        EACH(values[i] = (double)((const int64_t *)data)[at]);
        return;
    case GB_S32:
        EACH(values[i] = ((const int32_t *)data)[at]);
        return;
    case GB_S8:
        EACH(values[i] = ((const int8_t *)data)[at]);
        return;
    case GB_U8:
        EACH(values[i] = bytes[at]);
        return;
    case GB_BOOLEAN:
        EACH(values[i] = bytes[at] != 0);
        return;
    case GB_U4:
        EACH(values[i] = bytes[at / 2] >> (at % 2 * 4) & 15);
        return;
    case GB_S4:
        EACH(values[i] = ((bytes[at / 2] >> (at % 2 * 4) & 15) ^ 8) - 8);
        return;
    case GB_UNDEF:
        break;
    }
    EACH(values[i] = (double)NAN);
}

double gb_element_get(gb_data_type type, const void *data, int64_t index)
{
    double value;
    gb_elements_get(type, data, index, 0, 1, &value);
    return value;
}

/* To the nearest integer of the range, of two the even one; NaN becomes 0. */
static int32_t saturate(double value, int32_t lowest, int32_t max)
{
    if (isnan(value))
        return 0;
    return value <= lowest ? lowest : value >= max ? max : (int32_t)lrint(value);
}

static int64_t saturate_s64(double value)
{
    if (isnan(value))
        return 0;
    return value <= -0x1p63 ? INT64_MIN : value >= 0x1p63 ? INT64_MAX : llrint(value);
}

static void set_nibble(uint8_t *bytes, int64_t at, unsigned nibble)
{
    unsigned shift = (unsigned)(at % 2 * 4);
    bytes[at / 2] = (uint8_t)((bytes[at / 2] & ~(15U << shift)) | (nibble & 15) << shift);
}

void gb_elements_set(gb_data_type type, void *data, int64_t first, int64_t step, int64_t count,
        const double *values)
{
    uint8_t *bytes = data;
    uint16_t *halves = data;
    switch (type) {
    case GB_F32:
        EACH(((float *)data)[at] = (float)values[i]);
        break;
    case GB_BF16:
        EACH(halves[at] = gb_f32_to_bf16((float)values[i]));
        break;
    case GB_F16:
        EACH(halves[at] = gb_f32_to_f16((float)values[i]));
        break;
    case GB_F8_E5M2:
        EACH(bytes[at] = gb_f32_to_f8_e5m2((float)values[i]));
        break;
    case GB_F8_E4M3:
        EACH(bytes[at] = gb_f32_to_f8_e4m3((float)values[i]));
        break;
    case GB_S64:
        EACH(((int64_t *)data)[at] = saturate_s64(values[i]));
        break;
    case GB_S32:
        EACH(((int32_t *)data)[at] = saturate(values[i], INT32_MIN, INT32_MAX));
        break;
    case GB_S8:
        EACH(((int8_t *)data)[at] = (int8_t)saturate(values[i], INT8_MIN, INT8_MAX));
        break;
    case GB_U8:
        EACH(bytes[at] = (uint8_t)saturate(values[i], 0, UINT8_MAX));
        break;
    case GB_BOOLEAN:
        EACH(bytes[at] = values[i] != 0);
        break;
    case GB_U4:
        EACH(set_nibble(bytes, at, (unsigned)saturate(values[i], 0, 15)));
        break;
    case GB_S4:
        EACH(set_nibble(bytes, at, (unsigned)saturate(values[i], -8, 7)));
        break;
    case GB_UNDEF:
        break;
    }
}

void gb_element_set(gb_data_type type, void *data, int64_t index, double value)
{
    gb_elements_set(type, data, index, 0, 1, &value);
}
