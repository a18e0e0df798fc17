/* Vector conversions and elementary operations against their scalar twins, at every instruction
 * set: all codes, and f32 at random and at every edge, bit for bit. */
#include "base/dtype.h"
#include "isa_case.h"
#include "vec_probe.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const gb_data_type types[] = {
        GB_F32, GB_BF16, GB_F16, GB_S32, GB_S8, GB_U8, GB_BOOLEAN, GB_F8_E5M2, GB_F8_E4M3};
enum { TYPES = sizeof types / sizeof *types, STORES = 200000 };

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t state = 88172645463325252U;

static uint32_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

/* Bit patterns at and around every threshold of the narrow types. */
static const uint32_t edges[] = {0, 0x80000000, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC12345,
        0x7FBFFFFF, 0x477FEFFF, 0x477FF000, 0x477FFFFF, 0x38800000, 0x387FFFFF, 0x33000000,
        0x33000001, 0x32FFFFFF, 1, 0x007FFFFF, 0x00800000, 0x4EFFFFFF, 0x4F000000, 0xCF000000,
        0xCF000001, 0x43E80000, 0x43E80001, 0x43E7FFFF, 0x7F7FFFFF, 0x7F7F8000, 0x7F7F7FFF,
        0x42FF0000, 0x43008000, 0xC3008000, 0x437F8000, 0x3F000000, 0x3FC00000, 0x40200000};

static float sample(void)
{
    uint32_t r = next_random(), sign = r & 0x80000000, exponent = (next_random() % 60 + 90) << 23;
    switch (next_random() % 6) {
    case 0:
        return from_bits(r);
    case 1:
        return (float)(int)(r % 2048 - 1024) * 0.25F; /* integers and their ties */
    case 2:
        return from_bits(sign | exponent | (r & 0x7FFFFF));
    case 3:
        return from_bits(sign | exponent | (r & 0x7FE000) | 0x1000); /* ties of f16 */
    case 4:
        return from_bits((r & 0xFFF80000) | 0x80000 >> (r & 7)); /* ties of the others */
    default:
        return from_bits(edges[r % (sizeof edges / sizeof *edges)]);
    }
}

/* The signs and payloads of NaN would not survive f64. */
static float scalar_load(gb_data_type type, const uint32_t *codes, int i)
{
    uint16_t half;
    memcpy(&half, (const char *)codes + (size_t)i * sizeof half, sizeof half);
    if (type == GB_BF16)
        return gb_bf16_to_f32(half);
    return (float)gb_element_get(type, codes, i);
}

static void check_loads(const vec_probe *probe, gb_data_type type)
{
    size_t size = gb_data_type_bytes(type, 1);
    uint32_t count = size == 1 ? 256 : 65536;
    for (uint32_t code = 0; code < count; code += (uint32_t)probe->lanes) {
        uint32_t codes[PROBE_LANES] = {0};
        float got[PROBE_LANES];
        for (int i = 0; i < probe->lanes; i++) {
            uint32_t value = size == 4 ? next_random() : code + (uint32_t)i;
            memcpy((char *)codes + (size_t)i * size, &value, size);
        }
        for (int n = 0; n <= probe->lanes; n++) {
            probe->load[type](codes, n, got);
            for (int i = 0; i < probe->lanes; i++) {
                float want = i < n ? scalar_load(type, codes, i) : 0;
                cr_assert(bits_of(got[i]) == bits_of(want) || (type == GB_F32 && isnan(want)),
                        "%s, %s: code %u of %d: %08x, expected %08x", gb_isa_name(probe->isa),
                        gb_data_type_name(type), code + (uint32_t)i, n, bits_of(got[i]),
                        bits_of(want));
            }
        }
    }
}

static void check_stores(const vec_probe *probe, gb_data_type type)
{
    size_t size = gb_data_type_bytes(type, 1);
    for (int k = 0; k < STORES; k++) {
        float x[PROBE_LANES];
        char got[PROBE_LANES * 4 + 8], want[PROBE_LANES * 4 + 8];
        memset(got, 0xA5, sizeof got);
        memset(want, 0xA5, sizeof want);
        int n = k % 2 ? probe->lanes : (int)(next_random() % (uint32_t)(probe->lanes + 1));
        for (int i = 0; i < probe->lanes; i++)
            x[i] = sample();
        for (int i = 0; i < n; i++) {
            if (type == GB_BF16 || type == GB_F16) { /* NaN keeps its bits only without f64 */
                uint16_t code = type == GB_BF16 ? gb_f32_to_bf16(x[i]) : gb_f32_to_f16(x[i]);
                memcpy(want + (size_t)i * size, &code, size);
            } else if (type == GB_F32) {
                memcpy(want + (size_t)i * size, &x[i], size);
            } else if (type == GB_F8_E5M2) {
                want[i] = (char)gb_f32_to_f8_e5m2(x[i]);
            } else {
                gb_element_set(type, want, i, (double)x[i]);
            }
        }
        probe->store[type](got, x, n);
        cr_assert(memcmp(got, want, sizeof got) == 0, "%s, %s: n %d, first %08x",
                gb_isa_name(probe->isa), gb_data_type_name(type), n, bits_of(x[0]));
    }
}

static void loads(const vec_probe *probe)
{
    for (int t = 0; t < TYPES; t++)
        check_loads(probe, types[t]);
}

ISA_TEST(vec, loads)
{
    loads(vec_probe_of(isa));
}

static void stores(const vec_probe *probe)
{
    for (int t = 0; t < TYPES; t++)
        check_stores(probe, types[t]);
}

ISA_TEST(vec, stores)
{
    stores(vec_probe_of(isa));
}

static void same(const vec_probe *probe, const char *what, float x, float got, float want)
{
    cr_assert(bits_of(got) == bits_of(want) || (isnan(got) && isnan(want)),
            "%s: %s(%a) = %a, expected %a", gb_isa_name(probe->isa), what, (double)x, (double)got,
            (double)want);
}

static void rounding(const vec_probe *probe)
{
    for (int k = 0; k < STORES; k++) {
        float x[PROBE_LANES], y[PROBE_LANES];
        for (int i = 0; i < probe->lanes; i++)
            x[i] = sample();
        probe->function[PROBE_ROUND](x, y);
        for (int i = 0; i < probe->lanes; i++)
            same(probe, "round", x[i], y[i], nearbyintf(x[i]));
        probe->function[PROBE_FLOOR](x, y);
        for (int i = 0; i < probe->lanes; i++)
            same(probe, "floor", x[i], y[i], floorf(x[i]));
        probe->function[PROBE_CEIL](x, y);
        for (int i = 0; i < probe->lanes; i++)
            same(probe, "ceil", x[i], y[i], ceilf(x[i]));
    }
}

ISA_TEST(vec, rounding)
{
    rounding(vec_probe_of(isa));
}

static void scaling(const vec_probe *probe)
{
    for (int n = -252; n <= 254; n++) {
        float x[PROBE_LANES], y[PROBE_LANES];
        for (int i = 0; i < probe->lanes; i++)
            x[i] = sample();
        probe->scale(x, n, y);
        for (int i = 0; i < probe->lanes; i++) {
            float want = ldexpf(x[i], n);
            if (fabsf(want) >= 0x1p-126F || want == 0 || isnan(want))
                same(probe, "scale", x[i], y[i], want);
            else
                cr_assert(fabsf(y[i] - want) <= 0x1p-149F);
        }
    }
}

ISA_TEST(vec, scaling)
{
    scaling(vec_probe_of(isa));
}

static void min_and_max(const vec_probe *probe)
{
    for (int k = 0; k < STORES; k++) {
        float x[PROBE_LANES], y[PROBE_LANES], min[PROBE_LANES], max[PROBE_LANES];
        for (int i = 0; i < probe->lanes; i++) {
            x[i] = sample();
            y[i] = sample();
        }
        probe->min_max(x, y, min, max);
        for (int i = 0; i < probe->lanes; i++) {
            same(probe, "min", x[i], min[i], x[i] < y[i] ? x[i] : y[i]);
            same(probe, "max", x[i], max[i], x[i] > y[i] ? x[i] : y[i]);
        }
    }
}

ISA_TEST(vec, min_max)
{
    min_and_max(vec_probe_of(isa));
}

static void gathering(const vec_probe *probe)
{
    float memory[1000], y[PROBE_LANES];
    for (int i = 0; i < 1000; i++)
        memory[i] = (float)i;
    for (int64_t stride = -30; stride <= 30; stride++)
        for (int n = 0; n <= probe->lanes; n++) {
            probe->gather(memory + 500, stride, n, y);
            for (int i = 0; i < probe->lanes; i++)
                cr_assert_float_eq(y[i], i < n ? (float)(500 + i * stride) : 0, 0);
        }
    probe->gather(memory, INT64_C(1) << 40, 1, y); /* beyond 32-bit indices */
    cr_assert(y[0] == 0 && y[1] == 0);
}

ISA_TEST(vec, gather)
{
    gathering(vec_probe_of(isa));
}

static void reducing(const vec_probe *probe)
{
    float x[PROBE_LANES], results[4];
    for (int largest = 0; largest < probe->lanes; largest++) {
        float sum = 0, product = 1;
        for (int i = 0; i < probe->lanes; i++) {
            x[i] = i == largest ? 4 : i == (largest + 1) % probe->lanes ? -2 : 1;
            sum += x[i];
            product *= x[i];
        }
        probe->reduce(x, results);
        cr_assert(
                results[0] == sum && results[1] == product && results[2] == 4 && results[3] == -2);
    }
}

ISA_TEST(vec, reduce)
{
    reducing(vec_probe_of(isa));
}
