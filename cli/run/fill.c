/* Input data for the graphs under test. */
#include "cli/run/fill.h"

#include "cli/run/fill_loop.h"
#include "cli/run/fill_role.h"
#include "cli/run/machine.h"

#include <math.h>
#include <ref/ref.h>
#include <stdlib.h>
#include <string.h>

typedef struct source {
    gb_fill_role role;
    gb_data_type type;
    uint64_t key;
} source;

static bool is_integer(gb_data_type type)
{
    return type != GB_F32 && type != GB_BF16 && type != GB_F16 && type != GB_F8_E5M2 &&
           type != GB_F8_E4M3;
}

/* Bits of the types that quantised values have; 0 for the others. */
static int quantized_bits(gb_data_type type)
{
    return type == GB_S8 || type == GB_U8 ? 8 : type == GB_S4 || type == GB_U4 ? 4 : 0;
}

static double lowest_of(gb_data_type type)
{
    return type == GB_S8 ? -128 : type == GB_S4 ? -8 : 0;
}

static double integer_value(const source *s, uint64_t bits)
{
    double sign = s->type == GB_U8 || s->type == GB_U4 ? 0 : 1;
    switch (s->type) {
    case GB_BOOLEAN:
        return (double)(bits & 1);
    case GB_S4:
    case GB_U4:
        return (double)(bits % 16) - 8 * sign;
    case GB_S8:
    case GB_U8:
        return (double)(bits % 65) - 32 * sign;
    default:
        return (double)(bits % 201) - 100;
    }
}

/* Small integers, or powers of two where integers will not do. */
static double exact_value(const source *s, uint64_t bits)
{
    static const double powers[] = {1, -1, 2, -2, 4, -4, 0.5, -0.5};
    switch (s->role.domain) {
    case DOMAIN_WEIGHTS:
        return (double)(bits % 5) - 2;
    case DOMAIN_POSITIVE:
        return (double)(bits % 8) + 1;
    case DOMAIN_DIVISOR:
        return powers[bits % 8];
    case DOMAIN_FACTOR:
        return powers[bits % 2];
    case DOMAIN_SCALAR:
        return ldexp(bits % 2 ? 1 : 0.5, (int)rint(log2(s->role.size)));
    default:
        return (double)(bits % 9) - 4;
    }
}

/* Long products stay far from overflow in any order when most factors are close to 1. */
static double normal_factor(const source *s, uint64_t bits)
{
    enum { STRONG = 16 }; /* factors of any size, about */
    double x = gb_cli_near_normal(bits), chance = ldexp((double)(gb_cli_mix(bits) >> 11), -53);
    double magnitude = chance * s->role.terms < STRONG ? exp2(x / 2)
                                                       : 1 + x * fmin(0x1p-6, 32 / s->role.terms);
    return copysign(magnitude, (bits & 1) ? 1.0 : -1.0);
}

static double normal_value(const source *s, uint64_t bits)
{
    double x = gb_cli_near_normal(bits), size = s->role.size;
    switch (s->role.domain) {
    case DOMAIN_POSITIVE:
        return (fabs(x) + 0.25) * size;
    case DOMAIN_DIVISOR:
        return (x + copysign(0.5, x)) * size;
    case DOMAIN_FACTOR:
        return normal_factor(s, bits) * size;
    case DOMAIN_SCALAR:
        return (0.75 + fabs(x) / 4) * size;
    default:
        return s->role.grid > 0 ? rint(x * size / s->role.grid) * s->role.grid : x * size;
    }
}

/* Where the zero point leaves no room on one side, all values lie on the other. */
static gb_fill_steps steps_of(const source *s)
{
    double low = lowest_of(s->type), high = low + ldexp(1, quantized_bits(s->type)) - 1;
    double below = s->role.centre - low, above = high - s->role.centre;
    return (gb_fill_steps){.step = s->role.step,
            .centre = s->role.centre,
            .low = low,
            .high = high,
            .sides = 4 * below < above   ? 1
                     : 4 * above < below ? -1
                                         : 0};
}

/* The step nearest to a value. */
static double quantized_value(const source *s, uint64_t bits)
{
    gb_fill_steps to = steps_of(s);
    double steps = rint(normal_value(s, bits) / to.step);
    steps = to.sides == 0 ? steps : copysign(steps, to.sides);
    bool nonzero = s->role.domain == DOMAIN_POSITIVE || s->role.domain == DOMAIN_DIVISOR;
    if (steps == 0 && nonzero)
        steps = 1;
    return fmin(fmax(to.centre + steps, to.low), to.high);
}

/* Any value of the type, its ends more often. */
static double adversarial_integer(const source *s, uint64_t bits)
{
    double low = lowest_of(s->type), span = ldexp(1, quantized_bits(s->type));
    if (bits % 8 == 0)
        return bits & 8 ? low : low + span - 1;
    return low + floor((double)(bits >> 40) / 0x1p24 * span);
}

/* Wide range, zeros of both signs, subnormal numbers, values at the limits. */
static double adversarial_value(const source *s, uint64_t bits)
{
    int range = s->type == GB_F32 || s->type == GB_BF16 ? 20 : 4;
    if (s->role.domain == DOMAIN_WEIGHTS)
        range /= 2;
    if (s->role.domain == DOMAIN_FACTOR || s->role.domain == DOMAIN_SCALAR)
        return normal_value(s, bits);
    double sign = bits & 1 ? 1 : -1;
    double x = ldexp(
            1 + (double)(bits >> 40) / 0x1p24, (int)(bits >> 8 & 0xFFFF) % (2 * range + 1) - range);
    bool nonzero = s->role.domain == DOMAIN_POSITIVE || s->role.domain == DOMAIN_DIVISOR;
    if (!nonzero && (bits >> 1 & 31) == 0)
        x = 0;
    if (!nonzero && (bits >> 1 & 31) == 1)
        x = s->type == GB_F32 ? 0x1p-130 : 0x1p-24;
    return s->role.domain == DOMAIN_POSITIVE ? x : sign * x;
}

/* Half way between two neighbours of bf16, f16 or one of the 8-bit types, or between two integers;
 * far out, where integers of 8 bits saturate; so small that 1 + x is 1; so large that e^x is not
 * finite. Values that go into sums stay of size 1. */
static double edge_value(const source *s, uint64_t bits)
{
    static const int digits[] = {9, 12, 5, 4}; /* one more than the types have */
    bool nonzero = s->role.domain == DOMAIN_POSITIVE || s->role.domain == DOMAIN_DIVISOR;
    uint64_t odd = bits >> 16 & 0xFFFF;
    double sign = bits & 1 && s->role.domain != DOMAIN_POSITIVE ? -1 : 1;
    int n = digits[bits >> 4 & 3];
    double fraction = ldexp((double)((odd % (1U << (n - 2)) * 2 + 1) | 1U << (n - 1)), -n);
    if (!s->role.by_element)
        return bits & 2 ? normal_value(s, bits)
                        : sign * ldexp(fraction, (int)(bits >> 8 & 3)) * s->role.size;
    switch (bits >> 1 & 7) {
    case 0:
    case 1:
        return sign * ldexp(fraction, (int)(bits >> 8 & 15) - 8);
    case 2:
    case 3:
        return sign * ((double)(odd % 300) + 0.5);
    case 4:
        return sign * ldexp(1 + fraction, -(int)(bits >> 8 & 31) - 3);
    case 5:
        return sign * (20 + (double)odd / 0x1p16 * 90);
    case 6:
        if (nonzero)
            return normal_value(s, bits);
        return sign * (bits >> 8 & 1 ? 0.0 : 500);
    default:
        return normal_value(s, bits);
    }
}

/* Rows that are masked, or hold a NaN or an infinity; between them rows without. */
static double nan_value(const source *s, uint64_t bits, int64_t index)
{
    static const double specials[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 0};
    double infinity = s->role.domain == DOMAIN_POSITIVE ? (double)INFINITY : -(double)INFINITY;
    int64_t length = s->role.rows > 1 ? s->role.row : 16, row = index / length;
    uint64_t turn = gb_cli_mix(s->key ^ (uint64_t)row * 0x9e3779b97f4a7c15U);
    uint64_t among = s->role.rows > 96 ? 32 : s->role.rows > 12 ? 12 : 6;
    bool chosen = index % length == (int64_t)(turn >> 32) % length;
    if (s->role.domain == DOMAIN_WEIGHTS || s->role.domain == DOMAIN_FACTOR)
        return normal_value(s, bits);
    switch (turn % among) {
    case 0:
        return infinity;
    case 1:
        return bits >> 8 & 3 ? infinity : normal_value(s, bits);
    case 2:
        return chosen ? specials[turn >> 8 & 3] : normal_value(s, bits);
    case 3:
        return s->role.by_element && bits >> 8 & 1 ? specials[bits >> 9 & 3]
                                                   : normal_value(s, bits);
    default:
        return normal_value(s, bits);
    }
}

/* Of a type with so many bits of exponent and fraction. */
static double decode(uint32_t bits, int exponent_bits, int fraction_bits)
{
    int top = (1 << exponent_bits) - 1, exponent = (int)(bits >> fraction_bits) & top;
    double fraction = (double)(bits & ((1U << fraction_bits) - 1));
    double sign = bits >> (exponent_bits + fraction_bits) & 1 ? -1 : 1,
           whole = ldexp(1, fraction_bits);
    if (exponent == top)
        return fraction > 0 ? (double)NAN : sign * (double)INFINITY;
    int scale = (exponent > 0 ? exponent : 1) - top / 2 - fraction_bits;
    return sign * ldexp(exponent > 0 ? whole + fraction : fraction, scale);
}

/* Has no infinities: the largest exponent is one like the others, but for the last fraction. */
static double decode_e4m3(uint32_t bits)
{
    int exponent = (int)(bits >> 3) & 15;
    double fraction = (double)(bits & 7), sign = bits >> 7 ? -1 : 1;
    if ((bits & 127) == 127)
        return (double)NAN;
    return sign * ldexp(exponent > 0 ? 8 + fraction : fraction, (exponent > 0 ? exponent : 1) - 10);
}

/* A NaN whose bits are all set: a carry from its low bits would go into the sign. */
static double nan_of_ones(void)
{
    uint64_t bits = UINT64_MAX >> 1;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The bit patterns of the type one after the other, or evenly spread where there are more of them
 * than elements: all of a 16-bit type in 65536 elements. */
static double bits_value(const source *s, int64_t index, uint64_t bits)
{
    uint64_t count = (uint64_t)(s->role.rows * s->role.row), at = (uint64_t)index;
    if (s->type == GB_BF16)
        return decode((uint32_t)(count < 65536 ? at * (65536 / count) : at) & 0xFFFF, 8, 7);
    if (s->type == GB_F16)
        return decode((uint32_t)(count < 65536 ? at * (65536 / count) : at) & 0xFFFF, 5, 10);
    if (s->type == GB_F8_E5M2 || s->type == GB_F8_E4M3) {
        uint32_t pattern = (uint32_t)(count < 256 ? at * (256 / count) : at) & 0xFF;
        return s->type == GB_F8_E5M2 ? decode(pattern, 5, 2) : decode_e4m3(pattern);
    }
    if (index % 97 == 96)
        return nan_of_ones();
    uint64_t step = (UINT64_C(1) << 32) / count + 1;
    return decode((uint32_t)(at * step + bits % step), 8, 23);
}

/* The last ones, and the first of which f32 has no equal. */
static const double extreme_zero_points[] = {INT32_MAX, INT32_MIN, 0x1p24 + 1, -0x1p24 - 3};

/* What decides about Dropout: everything, nothing and nearly so; more than 32 bits, and the offset 0,
 * which stands for another generator. */
static const double edge_probabilities[] = {0.3, 0, 1, 0x1p-20, 1 - 0x1p-12, 0.75};
static const double edge_seeds[] = {0, -1, 0x1p40 + 12345, -0x1p35 - 7, 0x1p62, 0x7FFFFFFF};
static const double edge_offsets[] = {0, 1, 0x1p33 + 5, -1};

#define ONE_OF(list, bits) ((list)[(bits) % (sizeof(list) / sizeof *(list))])

static double value_at(const source *s, gb_fill fill, int64_t index)
{
    uint64_t bits = gb_cli_mix(s->key + (uint64_t)index);
    switch (s->role.domain) {
    case DOMAIN_PROBABILITY:
        return fill == FILL_EDGES ? ONE_OF(edge_probabilities, bits) : 0.5;
    case DOMAIN_SEED:
        return fill == FILL_EDGES ? ONE_OF(edge_seeds, bits) : 123456;
    case DOMAIN_OFFSET:
        return fill == FILL_EDGES ? ONE_OF(edge_offsets, bits) : 1;
    case DOMAIN_AXES:
        return index < GB_MAX_NDIMS ? (double)s->role.axes[index] : -1;
    case DOMAIN_SCALE:
        return ldexp(1, -(int)(bits % 3) - 2 - s->role.halvings);
    case DOMAIN_ZERO_POINT:
        if (fill == FILL_EDGES && s->type == GB_S32 && bits >> 8 & 1)
            return ONE_OF(extreme_zero_points, bits >> 9);
        return s->type == GB_U8 || s->type == GB_U4 ? (double)(bits % 3) : (double)(bits % 5) - 2;
    default:
        break;
    }
    bool any_integer = fill == FILL_ADVERSARIAL || fill == FILL_EDGES || fill == FILL_BITS;
    if (quantized_bits(s->type) && any_integer)
        return adversarial_integer(s, bits);
    if (quantized_bits(s->type) && fill != FILL_EXACT && s->role.step > 0)
        return quantized_value(s, bits);
    if (is_integer(s->type))
        return integer_value(s, bits);
    switch (fill) {
    case FILL_EXACT:
        return exact_value(s, bits);
    case FILL_ADVERSARIAL:
        return adversarial_value(s, bits);
    case FILL_EDGES:
        return s->role.domain == DOMAIN_FACTOR || s->role.domain == DOMAIN_SCALAR
                       ? normal_value(s, bits)
                       : edge_value(s, bits);
    case FILL_BITS:
        return s->role.by_element && s->role.domain != DOMAIN_SCALAR ? bits_value(s, index, bits)
                                                                     : normal_value(s, bits);
    case FILL_NAN:
        return s->role.domain == DOMAIN_SCALAR ? normal_value(s, bits) : nan_value(s, bits, index);
    case FILL_NORMAL:
        break;
    }
    return normal_value(s, bits);
}

static gb_fill_loop *const loops[] = {
        [GB_LOOPS_BASELINE] = gb_cli_fill_loop_baseline,
#if defined(__x86_64__)
        [GB_LOOPS_AVX2] = gb_cli_fill_loop_avx2,
        [GB_LOOPS_AVX512] = gb_cli_fill_loop_avx512,
#endif
};

/* Most of the data: normal values as they are, or as steps. */
static bool is_plain(const source *s, gb_fill fill)
{
    bool scaled = s->role.domain == DOMAIN_ANY || s->role.domain == DOMAIN_WEIGHTS;
    bool has_steps = quantized_bits(s->type) && s->role.step > 0;
    return fill == FILL_NORMAL && scaled && s->role.grid == 0 &&
           (has_steps || !is_integer(s->type));
}

static void fill_values(const source *s, gb_fill fill, int64_t first, int64_t count, double *values)
{
    if (is_plain(s, fill)) {
        gb_fill_steps steps = steps_of(s);
        loops[gb_cli_loop_level()](s->key + (uint64_t)first, count, s->role.size,
                is_integer(s->type) ? &steps : NULL, values);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        values[i] = value_at(s, fill, first + i);
}

/* Piece by piece, so that the values need no large memory of their own. */
static void fill_dense(const source *s, gb_fill fill, int64_t count, gb_memory *memory)
{
    enum { PIECE = 2048 }; /* even: elements of 4 bits share bytes */
#pragma omp parallel for schedule(static) if (count > PIECE)
    for (int64_t first = 0; first < count; first += PIECE) {
        double values[PIECE];
        int64_t n = count - first < PIECE ? count - first : PIECE;
        gb_logical_tensor layout = {.data_type = s->type,
                .ndims = 1,
                .dims = {n},
                .layout_type = GB_LAYOUT_STRIDED,
                .strides = {1}};
        gb_ref_tensor piece = {.tensor = layout, .count = n, .value = values};
        fill_values(s, fill, first, n, values);
        gb_ref_tensor_write(
                &piece, &layout, (char *)memory->data + gb_data_type_bytes(s->type, (size_t)first));
    }
}

bool gb_cli_fill_from_model(const gb_graph *graph, const gb_memory *memory)
{
    const void *data = NULL;
    size_t bytes = 0;
    if (memory->tensor.property != GB_PROPERTY_CONSTANT ||
            gb_graph_get_constant(graph, memory->tensor.id, &data, &bytes) != GB_SUCCESS || !data ||
            bytes != memory->bytes || !gb_cli_is_dense(&memory->tensor))
        return false;
    memcpy(memory->data, data, bytes);
    return true;
}

gb_status gb_cli_fill(const gb_graph *graph, gb_fill fill, int64_t seed, gb_memory *memory)
{
    if (gb_cli_fill_from_model(graph, memory))
        return GB_SUCCESS;
    source s = {.role = gb_cli_fill_role(graph, &memory->tensor),
            .type = memory->tensor.data_type,
            .key = gb_cli_mix(gb_cli_mix((uint64_t)seed) + memory->tensor.id)};
    int64_t count = gb_cli_count(&memory->tensor);
    if (gb_cli_is_dense(&memory->tensor)) {
        fill_dense(&s, fill, count, memory);
        return GB_SUCCESS;
    }
    gb_ref_tensor values = {.tensor = memory->tensor, .count = count};
    values.value = malloc((size_t)(count ? count : 1) * sizeof(double));
    if (!values.value)
        return GB_OUT_OF_MEMORY;
    fill_values(&s, fill, 0, count, values.value);
    gb_ref_tensor_write(&values, &memory->tensor, memory->data);
    gb_ref_tensor_free(&values);
    return GB_SUCCESS;
}
