/* Costs per instruction set. */
#include "kernels/isa/costs.h"

#include "base/machine.h"
#include "kernels/isa/kernels.h"

/* AVX-512: measured when each planner was written, with two multiply-adds of 16 lanes a cycle. What
 * matters is the ratio of the others to a multiply-add (gb_multiply_add_cost), and that is kept at
 * the lower levels but where it was measured to differ: depthwise_multiply_add, bench_costs on Zen
 * 3. Copies alone take fewer cycles there than these rows say (bench_costs: 0.3 with AVX2), but
 * they push out of the caches what is read next: with rows of 0.3 to 0.4, blocks became smaller and
 * 11 cases of the batch perf 0.975 times as fast (ResNet-50 0.92 to 0.95).
 *
 * transposed_terms, unaligned (Zen 3, AVX2, 3x3, NCHW, vectors of positions beside those of
 * channels): 27 terms 0.58 of the time, 288 0.97, 576 1.02 to 1.1, 864 1.02, 1728 1.05.
 *
 * joined_terms (Zen 3, AVX2, one thread, 1x1 of every second position, NCHW): 784 positions, which
 * fill vectors, of 32 terms 0.89 of the time, 64 0.93, 256 0.93 to 1; 49 positions of 32 terms 1.02,
 * 64 1.07, 256 1.2, 1024 1.28 to 1.64. With AVX-512 it was not measured: 12 is the factor of 0.85 that
 * stood here before, at 64 terms.
 *
 * widened_rows (Zen 3, one thread, constant weights of 512 to 4096 rows and columns): AVX2 widens
 * beside its multiply-adds, in products of 2 to 512 rows at 0.98 to 2.6 of the speed of f32 panels;
 * SSE2 takes up to 1.6 times as long. With AVX-512 tiles of a single row of tiles, which wait for
 * memory, can widen.
 *
 * few_columns (Zen 3, two threads): 2 to 4 columns take 0.2 to 0.8 of the time of single elements with AVX2, 0.3 to
 * 0.7 with SSE2; 5 to 7 take 0.5 to 0.9 with AVX2, 1.5 to 2.7 with SSE2. With AVX-512 it was not measured. */
static const gb_costs costs[GB_ISA_COUNT] = {
        [GB_ISA_BASELINE] = {.depthwise_multiply_add = 0.28,
                .gemm_copy = 2,
                .gemm_read = 0.12,
                .conv_copy = 1.2,
                .conv_item = 80,
                .depthwise_unit = 160,
                .attention_pack = 2,
                .joined_terms = 5,
                .transposed_terms = 20,
                .unaligned = 0.95,
                .winograd_source = 10,
                .winograd_result = 16,
                .widened_rows = 0,
                .few_columns = 4},
        [GB_ISA_AVX2] = {.depthwise_multiply_add = 0.14,
                .gemm_copy = 1,
                .gemm_read = 0.06,
                .conv_copy = 0.6,
                .conv_item = 40,
                .depthwise_unit = 80,
                .attention_pack = 1,
                .joined_terms = 5,
                .transposed_terms = 20,
                .unaligned = 0.95,
                .winograd_source = 5,
                .winograd_result = 8,
                .widened_rows = INT64_MAX,
                .few_columns = 7},
        [GB_ISA_AVX512] = {.depthwise_multiply_add = 1.0 / 16,
                .gemm_copy = 0.5,
                .gemm_read = 0.03,
                .conv_copy = 0.3,
                .conv_item = 20,
                .depthwise_unit = 40,
                .attention_pack = 0.5,
                .joined_terms = 12,
                .transposed_terms = 20,
                .unaligned = 0.95,
                .winograd_source = 2.5,
                .winograd_result = 4,
                .widened_rows = 14,
                .few_columns = 4},
};

const gb_costs *gb_costs_get(void)
{
    const gb_isa isa = gb_kernels_get()->isa;
    return &costs[isa == GB_ISA_AMX ? GB_ISA_AVX512 : isa]; /* what tiles do not change */
}

double gb_multiply_add_cost(void)
{
    return 1.0 / gb_machine_get()->multiply_adds;
}

double gb_group_cost(bool floats)
{
    const gb_machine *machine = gb_machine_get();
    return 1.0 / (floats ? machine->bf16_groups : machine->byte_groups);
}
