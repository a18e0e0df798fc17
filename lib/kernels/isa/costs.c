/* Costs per instruction set. */
#include "kernels/isa/costs.h"

#include "kernels/isa/kernels.h"

/* Measured with AVX-512, two multiply-adds of 16 lanes a cycle, when each planner was written. The
 * narrower levels have not been measured on their own: they take the same row, so that one plan per
 * shape is known to be good, and get rows of their own when somebody measures.
 *
 * widened_rows has been measured at the lower levels (Zen, one thread, constant weights of 512 to
 * 4096 rows and columns): AVX2 widens beside its multiply-adds, in products of 2 to 512 rows at
 * 0.98 to 2.6 of the speed of f32 panels; SSE2 takes up to 1.6 times as long. With AVX-512 tiles of
 * a single row of tiles, which wait for memory, can widen. */
#define MEASURED_AVX512(rows)                                                                      \
    {                                                                                              \
        .multiply_add = 1.0 / 32, .depthwise_multiply_add = 1.0 / 16, .gemm_copy = 0.5,            \
        .gemm_read = 0.03, .conv_copy = 0.3, .conv_item = 20, .depthwise_unit = 40,                \
        .attention_pack = 0.5, .transposed = 0.85, .widened_rows = (rows)                          \
    }

static const gb_costs costs[GB_ISA_COUNT] = {
        [GB_ISA_BASELINE] = MEASURED_AVX512(0),
        [GB_ISA_AVX2] = MEASURED_AVX512(INT64_MAX),
        [GB_ISA_AVX512] = MEASURED_AVX512(14),
};

const gb_costs *gb_costs_get(void)
{
    return &costs[gb_kernels_get()->isa];
}
