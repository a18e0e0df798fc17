/* The description of the machine: what GB_CACHES may hold. */
#include "base/cpu.h"
#include "base/machine.h"

#include <criterion/criterion.h>
#include <graphbench/graphbench_tools.h>
#include <unistd.h>

static void check(const char *text, size_t l1, size_t l2, size_t l3)
{
    gb_machine machine = {.l1_bytes = 1 << 15, .l2_bytes = 1 << 20, .l3_bytes = 1 << 25};
    cr_expect(gb_machine_parse(text, &machine), "%s", text);
    cr_expect_eq(machine.l1_bytes, l1, "%s", text);
    cr_expect_eq(machine.l2_bytes, l2, "%s", text);
    cr_expect_eq(machine.l3_bytes, l3, "%s", text);
}

Test(machine, parts_may_be_left_out)
{
    check("", 1 << 15, 1 << 20, 1 << 25);
    check("49152", 49152, 1 << 20, 1 << 25);
    check("49152:2097152", 49152, 2097152, 1 << 25);
    check(":2097152", 1 << 15, 2097152, 1 << 25);
    check("::0", 1 << 15, 1 << 20, 0);
    check("4096:8192:16384", 4096, 8192, 16384);
}

Test(machine, what_cannot_be_understood_changes_nothing)
{
    static const char *const texts[] = {"x", "1x", "48K", "-1", "4096:8192:1:1", "4095", ":100",
            "99999999999999999999999", " 4096", "4096 "};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        gb_machine machine = {.l1_bytes = 1 << 15, .l2_bytes = 1 << 20, .l3_bytes = 1 << 25};
        cr_expect_not(gb_machine_parse(texts[i], &machine), "%s", texts[i]);
        cr_expect_eq(machine.l1_bytes, 1 << 15);
        cr_expect_eq(machine.l2_bytes, 1 << 20);
        cr_expect_eq(machine.l3_bytes, 1 << 25);
    }
}

Test(machine, caches_are_described)
{
    const gb_machine *machine = gb_machine_get();
    cr_expect_geq(machine->l1_bytes, 4096);
    cr_expect_geq(machine->l2_bytes, 4096);
    cr_expect_eq(machine, gb_machine_get());
}

/* One core reaches no more of the L3 than there is, and a description in its place changes nothing
 * of what the system tells. */
Test(machine, caches_of_the_system_are_told)
{
    size_t told[3], again[3];
    gb_get_caches(told);
    cr_expect(gb_machine_replace("4096:8192:16384"));
    gb_get_caches(again);
    gb_machine_replace(NULL);
    for (int level = 0; level < 3; level++)
        cr_expect_eq(told[level], again[level]);
    double all = (double)sysconf(_SC_LEVEL3_CACHE_SIZE);
    cr_expect(all <= 0 || (double)told[2] <= all); /* all: not told by some hypervisors */
}

/* Where the processor has dot instructions they are taken when told, with other caches, too; never when not. */
Test(machine, products_of_bf16_are_chosen)
{
    const int own = gb_machine_get()->bf16_groups;
    const bool has = gb_cpu_isa() == GB_ISA_AMX || gb_cpu_has_dot_bf16();
    cr_expect_eq(gb_set_bf16_products(GB_BF16_PRODUCTS_DOT), has ? GB_SUCCESS : GB_UNIMPLEMENTED);
    cr_expect_eq(gb_machine_get()->bf16_groups > 0, has);
    cr_expect(gb_machine_replace("4096:8192"));
    cr_expect_eq(gb_machine_get()->bf16_groups > 0, has);
    cr_expect_eq(gb_set_bf16_products(GB_BF16_PRODUCTS_F32), GB_SUCCESS);
    cr_expect_eq(gb_machine_get()->bf16_groups, 0);
    gb_machine_replace(NULL);
    cr_expect_eq(gb_machine_get()->bf16_groups, 0);
    cr_expect_eq(gb_set_bf16_products(GB_BF16_PRODUCTS_AUTO), GB_SUCCESS);
    cr_expect_eq(gb_machine_get()->bf16_groups, own);
}

/* Twice as many lanes and multiply-adds at each level, as the widths of their registers have it; AMX
 * has the vectors of AVX-512. */
Test(machine, vectors_are_described)
{
    const gb_machine *machine = gb_machine_get();
    bool tiles = gb_cpu_isa() == GB_ISA_AMX;
    int level = tiles ? (int)GB_ISA_AVX512 : (int)gb_cpu_isa();
    cr_expect_eq(machine->byte_groups, tiles ? 256 : machine->multiply_adds);
    cr_expect(!tiles || machine->bf16_groups == 256);
    cr_expect_eq(machine->lanes, 4 << level);
    cr_expect_eq(machine->multiply_adds, 8 << level);
    gb_machine_replace("4096:8192");
    cr_expect_eq(gb_machine_get()->lanes, 4 << level);
    gb_machine_replace(NULL);
}
