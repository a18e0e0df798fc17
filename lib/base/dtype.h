/* Data types: sizes, ranges and exact scalar conversions. The kernels have vector twins of these;
 * tests hold them equal. */
#ifndef GB_BASE_DTYPE_H
#define GB_BASE_DTYPE_H

#include <graphbench/graphbench.h>
#include <stdbool.h>

typedef struct gb_dtype_info {
    const char *name;
    unsigned bits; /* storage */
    bool is_float;
    bool is_signed;
    double lowest, max; /* finite range */
    double unit;        /* u: half an ulp, relative; 0 for integers */
    double tiny; /* eta: half the smallest positive step, or the flush threshold where flushing is
                    allowed */
} gb_dtype_info;

/* NULL for a number that is not a type of the graph API (GB_UNDEF included). */
const gb_dtype_info *gb_dtype_get(gb_data_type type);

static inline bool gb_dtype_is_f(gb_data_type type) /* the set F of the op set */
{
    return type == GB_F32 || type == GB_BF16 || type == GB_F16;
}

/* f32 <-> 16 and 8 bit floats: round to nearest even, overflow to inf (f8_e4m3: NaN), NaN quieted.
 * f8 goes through f16. */
uint16_t gb_f32_to_bf16(float value);
float gb_bf16_to_f32(uint16_t bits);
uint16_t gb_f32_to_f16(float value);
float gb_f16_to_f32(uint16_t bits);
uint8_t gb_f32_to_f8_e5m2(float value);
float gb_f8_e5m2_to_f32(uint8_t bits);
uint8_t gb_f32_to_f8_e4m3(float value);
float gb_f8_e4m3_to_f32(uint8_t bits);

/* Elements first, first + step, ... of a packed array of any type, as f64 (s64 beyond 2^53 is
 * rounded). */
void gb_elements_get(gb_data_type type, const void *data, int64_t first, int64_t step,
        int64_t count, double *values);
double gb_element_get(gb_data_type type, const void *data, int64_t index);
/* Stores f64: floats through f32, integers saturate and round half to even (NaN becomes 0), boolean
 * is value != 0. */
void gb_elements_set(gb_data_type type, void *data, int64_t first, int64_t step, int64_t count,
        const double *values);
void gb_element_set(gb_data_type type, void *data, int64_t index, double value);

#endif
