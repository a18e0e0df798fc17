/* The machine that plans are made for, described once. */
#include "base/machine.h"

#include "base/cpu.h"
#include "base/environment.h"

#include <ctype.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static gb_machine machine, replacement;
static int replaced;
static gb_bf16_products bf16_products;

int gb_machine_parse(const char *text, gb_machine *described)
{
    gb_machine read = *described;
    size_t *const parts[] = {&read.l1_bytes, &read.l2_bytes, &read.l3_bytes};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t bytes = 0;
        if (isdigit((unsigned char)*text)) {
            for (; isdigit((unsigned char)*text); text++) {
                size_t digit = (size_t)(*text - '0');
                if (bytes > (SIZE_MAX - digit) / 10)
                    return 0;
                bytes = 10 * bytes + digit;
            }
            if (i < 2 && bytes < 4096)
                return 0; /* no plan is made for less */
            *parts[i] = bytes;
        }
        if (*text != ':' || i == 2)
            break;
        text++;
    }
    if (*text)
        return 0;
    *described = read;
    return 1;
}

static size_t system_bytes(int name)
{
    long bytes = sysconf(name);
    return bytes > 0 ? (size_t)bytes : 0;
}

/* Of the L3 that the first core reads. What sysconf() says of it may be the sum of all L3 caches of
 * the machine, of which a core reaches one. */
static size_t l3_bytes(void)
{
    char text[32] = "";
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
    if (file && !fgets(text, sizeof text, file))
        *text = 0;
    if (file)
        fclose(file);
    char *unit;
    unsigned long long kibibytes = strtoull(text, &unit, 10);
    bool told = kibibytes && kibibytes < SIZE_MAX >> 10 && *unit == 'K';
    return told ? (size_t)kibibytes << 10 : system_bytes(_SC_LEVEL3_CACHE_SIZE);
}

void gb_machine_caches(size_t bytes[3])
{
    bytes[0] = system_bytes(_SC_LEVEL1_DCACHE_SIZE);
    bytes[1] = system_bytes(_SC_LEVEL2_CACHE_SIZE);
    bytes[2] = l3_bytes();
}

/* Multiply-adds with two units of each instruction set, which the cores of servers have; SSE2
 * multiplies and adds apart. A tile of AMX takes 16 cycles for 16 x 16 x 16 VNNI groups. */
static const struct {
    int lanes, multiply_adds, groups;
} vectors[GB_ISA_COUNT] = {[GB_ISA_BASELINE] = {4, 8, 8},
        [GB_ISA_AVX2] = {8, 16, 16},
        [GB_ISA_AVX512] = {16, 32, 32},
        [GB_ISA_AMX] = {16, 32, 256}};

static int bf16_groups(gb_bf16_products products)
{
    const gb_isa isa = gb_cpu_isa();
    const bool fast = isa == GB_ISA_AMX || gb_cpu_has_fast_dot_bf16();
    const bool has = isa == GB_ISA_AMX || gb_cpu_has_dot_bf16();
    const bool used = products == GB_BF16_PRODUCTS_DOT    ? has
                      : products == GB_BF16_PRODUCTS_AUTO ? fast
                                                          : false;
    return used ? vectors[isa].groups : 0;
}

static void machine_describe(void)
{
    const char *text = getenv("GB_CACHES");
    gb_isa isa = gb_cpu_isa();
    size_t caches[3];
    gb_machine_caches(caches);
    machine = (gb_machine){.lanes = vectors[isa].lanes,
            .multiply_adds = vectors[isa].multiply_adds,
            .byte_groups = vectors[isa].groups,
            .l1_bytes = caches[0] ? caches[0] : 32U << 10,
            .l2_bytes = caches[1] ? caches[1] : 512U << 10,
            .l3_bytes = caches[2],
            .bf16_groups = bf16_groups(GB_BF16_PRODUCTS_AUTO)};
    if (text && *text && !gb_machine_parse(text, &machine))
        gb_environment_complain(
                "GB_CACHES", text, strlen(text), "L1:L2:L3, bytes of at least 4096 for L1 and L2");
}

const gb_machine *gb_machine_get(void)
{
    pthread_once(&once, machine_describe);
    return replaced ? &replacement : &machine;
}

int gb_machine_replace(const char *text)
{
    pthread_once(&once, machine_describe);
    gb_machine read = machine;
    if (text && !gb_machine_parse(text, &read))
        return 0;
    replacement = read;
    replaced = text != NULL;
    replacement.bf16_groups = bf16_groups(bf16_products);
    return 1;
}

int gb_machine_choose_bf16(gb_bf16_products products)
{
    pthread_once(&once, machine_describe);
    if (products == GB_BF16_PRODUCTS_DOT && !bf16_groups(products))
        return 0;
    bf16_products = products;
    machine.bf16_groups = replacement.bf16_groups = bf16_groups(products);
    return 1;
}
