/* Data types of the twin: ranges, and elements from and to memory. */
#include "base/memory.h"
#include "ref/naive/naive_op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A binary floating format below 32 bits: values are fraction * 2^(exponent - fraction_bits). */
typedef struct small_format {
    int fraction_bits, least_exponent;
    double highest;
    bool has_infinity; /* else the code of all ones alone is NaN */
} small_format;

static const small_format f16 = {10, -14, 65504, true}, bf16 = {7, -126, 0x1.FEp127, true},
                          f8_e5m2 = {2, -14, 57344, true}, f8_e4m3 = {3, -6, 448, false};

/* To the nearest value of the format, ties to the even fraction; overflow gives infinity or NaN. */
static double round_to(const small_format *f, double x)
{
    int exponent;
    if (x == 0 || !isfinite(x))
        return isinf(x) && !f->has_infinity ? (double)NAN : x;
    frexp(x, &exponent);
    exponent = exponent - 1 > f->least_exponent ? exponent - 1 : f->least_exponent;
    double step = ldexp(1, exponent - f->fraction_bits), rounded = nearbyint(x / step) * step;
    if (fabs(rounded) > f->highest)
        rounded = f->has_infinity ? copysign((double)INFINITY, x) : (double)NAN;
    return copysign(rounded, x);
}

/* The code of a value that the format can hold. */
static unsigned encode(const small_format *f, int bits, double x)
{
    unsigned sign = signbit(x) ? 1U << (bits - 1) : 0, ones = (1U << (bits - 1)) - 1;
    unsigned infinity = ones >> f->fraction_bits << f->fraction_bits;
    int exponent;
    if (isnan(x))
        return sign | ones;
    if (isinf(x))
        return sign | infinity;
    frexp(x, &exponent);
    exponent -= 1;
    if (x == 0 || exponent < f->least_exponent)
        return sign | (unsigned)ldexp(fabs(x), f->fraction_bits - f->least_exponent);
    unsigned fraction =
            (unsigned)(ldexp(fabs(x), f->fraction_bits - exponent) - ldexp(1, f->fraction_bits));
    return sign | (unsigned)(exponent - f->least_exponent + 1) << f->fraction_bits | fraction;
}

static double decode(const small_format *f, int bits, unsigned code)
{
    unsigned ones = (1U << (bits - 1)) - 1, magnitude = code & ones;
    unsigned fraction = magnitude & ((1U << f->fraction_bits) - 1);
    int field = (int)(magnitude >> f->fraction_bits);
    double sign = code >> (bits - 1) ? -1 : 1, value;
    if (f->has_infinity && field == (int)(ones >> f->fraction_bits))
        value = fraction ? (double)NAN : (double)INFINITY;
    else if (!f->has_infinity && magnitude == ones)
        value = (double)NAN;
    else if (field == 0)
        value = ldexp(fraction, f->least_exponent - f->fraction_bits);
    else
        value = ldexp(fraction + ldexp(1, f->fraction_bits),
                f->least_exponent + field - 1 - f->fraction_bits);
    return sign * value;
}

bool gb_naive_is_integer(gb_data_type type)
{
    return type == GB_S64 || type == GB_S32 || type == GB_S8 || type == GB_U8 || type == GB_S4 ||
           type == GB_U4;
}

double gb_naive_lowest(gb_data_type type)
{
    switch (type) {
    case GB_S64:
        return -0x1p63;
    case GB_S32:
        return -2147483648.0;
    case GB_S8:
        return -128;
    case GB_S4:
        return -8;
    case GB_U8:
    case GB_U4:
    case GB_BOOLEAN:
        return 0;
    default:
        return -gb_naive_highest(type);
    }
}

double gb_naive_highest(gb_data_type type)
{
    switch (type) {
    case GB_S64:
        return 0x1p63;
    case GB_S32:
        return 2147483647;
    case GB_S8:
        return 127;
    case GB_U8:
        return 255;
    case GB_S4:
        return 7;
    case GB_U4:
        return 15;
    case GB_BOOLEAN:
        return 1;
    case GB_F16:
        return f16.highest;
    case GB_BF16:
        return bf16.highest;
    case GB_F8_E5M2:
        return f8_e5m2.highest;
    case GB_F8_E4M3:
        return f8_e4m3.highest;
    default:
        return 0x1.FFFFFEp127;
    }
}

double gb_naive_to_integer(gb_data_type type, double value)
{
    if (isnan(value))
        return 0;
    if (value <= gb_naive_lowest(type))
        return gb_naive_lowest(type);
    if (value >= gb_naive_highest(type))
        return gb_naive_highest(type);
    return nearbyint(value);
}

/* What a type makes of a value beyond its range; others stay as they are, not rounded. */
double gb_naive_settle(gb_data_type type, double value)
{
    if (gb_naive_is_integer(type))
        return gb_naive_to_integer(type, value);
    switch (type) {
    case GB_F32:
        return isfinite((float)value) ? value : (double)(float)value;
    case GB_BF16:
        return isfinite(round_to(&bf16, value)) ? value : round_to(&bf16, value);
    case GB_F16:
        return isfinite(round_to(&f16, value)) ? value : round_to(&f16, value);
    case GB_F8_E5M2:
        return isfinite(round_to(&f8_e5m2, value)) ? value : round_to(&f8_e5m2, value);
    case GB_F8_E4M3:
        return isfinite(round_to(&f8_e4m3, value)) ? value : round_to(&f8_e4m3, value);
    default:
        return value;
    }
}

static double number_load(gb_data_type type, const unsigned char *bytes, int64_t i)
{
    float f32;
    int32_t s32;
    int64_t s64;
    uint16_t u16;
    switch (type) {
    case GB_F32:
        memcpy(&f32, bytes + 4 * i, 4);
        return (double)f32;
    case GB_S32:
        memcpy(&s32, bytes + 4 * i, 4);
        return s32;
    case GB_S64:
        memcpy(&s64, bytes + 8 * i, 8);
        return (double)s64;
    case GB_F16:
        memcpy(&u16, bytes + 2 * i, 2);
        return decode(&f16, 16, u16);
    case GB_BF16:
        memcpy(&u16, bytes + 2 * i, 2);
        return decode(&bf16, 16, u16);
    case GB_F8_E5M2:
        return decode(&f8_e5m2, 8, bytes[i]);
    case GB_F8_E4M3:
        return decode(&f8_e4m3, 8, bytes[i]);
    case GB_S8:
        return bytes[i] < 128 ? bytes[i] : bytes[i] - 256;
    case GB_U8:
        return bytes[i];
    case GB_BOOLEAN:
        return bytes[i] ? 1 : 0;
    case GB_U4: /* two in a byte, the even one in the low half */
    case GB_S4: {
        int half = i % 2 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15;
        return type == GB_S4 && half > 7 ? half - 16 : half;
    }
    default:
        return (double)NAN;
    }
}

/* A result passes through f32; on its way to f8 also through f16; a subnormal f32 is 0 in bf16. */
static void save(gb_data_type type, unsigned char *bytes, int64_t i, double value)
{
    float f32 = (float)value;
    int64_t whole = 0;
    uint16_t u16;
    if (gb_naive_is_integer(type)) {
        value = gb_naive_to_integer(type, value);
        whole = value >= 0x1p63 ? INT64_MAX : (int64_t)value;
    }
    switch (type) {
    case GB_F32:
        memcpy(bytes + 4 * i, &f32, 4);
        break;
    case GB_S32:
        memcpy(bytes + 4 * i, &(int32_t){(int32_t)whole}, 4);
        break;
    case GB_S64:
        memcpy(bytes + 8 * i, &whole, 8);
        break;
    case GB_F16:
        u16 = (uint16_t)encode(&f16, 16, round_to(&f16, (double)f32));
        memcpy(bytes + 2 * i, &u16, 2);
        break;
    case GB_BF16:
        if (fpclassify(f32) == FP_SUBNORMAL)
            f32 = copysignf(0, f32);
        u16 = (uint16_t)encode(&bf16, 16, round_to(&bf16, (double)f32));
        memcpy(bytes + 2 * i, &u16, 2);
        break;
    case GB_F8_E5M2:
        value = round_to(&f8_e5m2, round_to(&f16, (double)f32));
        bytes[i] = (unsigned char)encode(&f8_e5m2, 8, value);
        break;
    case GB_F8_E4M3:
        value = round_to(&f8_e4m3, round_to(&f16, (double)f32));
        bytes[i] = (unsigned char)encode(&f8_e4m3, 8, value);
        break;
    case GB_S8:
    case GB_U8:
        bytes[i] = (unsigned char)whole;
        break;
    case GB_BOOLEAN:
        bytes[i] = value != 0;
        break;
    case GB_S4:
    case GB_U4:
        bytes[i / 2] = (unsigned char)(i % 2 ? (bytes[i / 2] & 0x0F) | (whole & 15) << 4
                                             : (bytes[i / 2] & 0xF0) | (whole & 15));
        break;
    default:
        break;
    }
}

/* Element of the memory that holds the logical element p. */
static int64_t place_of(const gb_logical_tensor *layout, int64_t p)
{
    int64_t place = 0;
    for (int d = layout->ndims - 1; d >= 0; d--) {
        place += p % layout->dims[d] * layout->strides[d];
        p /= layout->dims[d];
    }
    return place;
}

gb_status gb_naive_read(
        gb_naive_tensor *tensor, const gb_logical_tensor *layout, const void *memory)
{
    gb_naive_tensor made = {.type = layout->data_type, .ndims = layout->ndims, .count = 1};
    bool known = layout->ndims >= 0 && layout->ndims <= GB_MAX_NDIMS &&
                 (layout->ndims == 0 || layout->layout_type == GB_LAYOUT_STRIDED);
    for (int d = 0; known && d < layout->ndims; d++) {
        made.dims[d] = layout->dims[d];
        known = layout->dims[d] >= 0 && layout->strides[d] >= 0 &&
                !__builtin_mul_overflow(made.count, layout->dims[d], &made.count);
    }
    if (!known)
        return gb_fail(GB_INVALID_ARGUMENTS, "naive reference: tensor %zu has no known strides",
                layout->id);
    made.value = gb_calloc((size_t)made.count, sizeof(double));
    if (!made.value)
        return GB_OUT_OF_MEMORY;
    for (int64_t p = 0; p < made.count; p++)
        made.value[p] = number_load(layout->data_type, memory, place_of(layout, p));
    if (layout->data_type == GB_S64 && made.count > 0)
        memcpy(&made.whole, memory, sizeof made.whole);
    *tensor = made;
    return GB_SUCCESS;
}

void gb_naive_write(const gb_naive_tensor *tensor, const gb_logical_tensor *layout, void *memory)
{
    for (int64_t p = 0; p < tensor->count; p++)
        save(layout->data_type, memory, place_of(layout, p), tensor->value[p]);
}

double gb_naive_stored(gb_data_type type, double value)
{
    unsigned char memory[8] = {0};
    save(type, memory, 0, value);
    return number_load(type, memory, 0);
}

void gb_naive_free(gb_naive_tensor *tensor)
{
    free(tensor->value);
    *tensor = (gb_naive_tensor){0};
}
