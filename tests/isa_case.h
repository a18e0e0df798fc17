/* Tests that run once per instruction set level. A level that this machine does not have is skipped
 * with the reason, never run as another. */
#ifndef GB_TESTS_ISA_CASE_H
#define GB_TESTS_ISA_CASE_H

#include "base/cpu.h"
#include "kernels/isa/kernels.h"
#include <criterion/criterion.h>
#include <stdlib.h>

/* Has the library run at a level. Must come before anything is compiled or executed: the library
 * chooses its kernels once per process, and every Criterion test is a process. */
static inline void isa_case_begin(gb_isa isa)
{
    setenv("GB_MAX_ISA", gb_isa_name(isa), 1);
    if (gb_cpu_isa() != isa)
        cr_skip_test("this machine does not have %s", gb_isa_name(isa));
    cr_assert_eq(gb_kernels_get()->isa, isa, "the library runs %s instead of %s",
            gb_isa_name(gb_kernels_get()->isa), gb_isa_name(isa));
}

/* One test for each level: name_baseline, name_avx2, name_avx512, name_amx. The body gets the level
 * as `isa`. */
#define ISA_TEST(suite, name)                                                                      \
    static void body_##suite##_##name(gb_isa isa);                                                 \
    ISA_TEST_AT(suite, name, baseline, GB_ISA_BASELINE)                                            \
    ISA_TEST_AT(suite, name, avx2, GB_ISA_AVX2)                                                    \
    ISA_TEST_AT(suite, name, avx512, GB_ISA_AVX512)                                                \
    ISA_TEST_AT(suite, name, amx, GB_ISA_AMX)                                                      \
    static void body_##suite##_##name(gb_isa isa)

#define ISA_TEST_AT(suite, name, text, level)                                                      \
    Test(suite, name##_##text)                                                                     \
    {                                                                                              \
        isa_case_begin(level);                                                                     \
        body_##suite##_##name(level);                                                              \
    }

#endif
