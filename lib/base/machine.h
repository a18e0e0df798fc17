/* The machine that plans are made for, described once. */
#ifndef GB_BASE_MACHINE_H
#define GB_BASE_MACHINE_H

#include <graphbench/graphbench_tools.h>
#include <stddef.h>

/* Bytes of cache that one core can count on, with conservative defaults where the system does not
 * tell, and what kernels of the instruction set in use (gb_cpu_isa) have to work with. The
 * environment variable GB_CACHES="L1:L2:L3" (bytes; an empty or missing part is the system's)
 * takes the place of the caches, so that plans for other machines can be made and tested on one. */
typedef struct gb_machine {
    size_t l1_bytes;   /* data, of a core */
    size_t l2_bytes;   /* of a core */
    size_t l3_bytes;   /* of the cores that share one; 0: none, or not told */
    int lanes;         /* f32 of a vector */
    int multiply_adds; /* of f32, in a cycle of a core, at best */
    int byte_groups;   /* the same of VNNI groups: of four bytes or two halves, ... */
    int bf16_groups;   /* ... and of two bf16; 0: they are better multiplied as f32 */
} gb_machine;

/* Asked for on the first call; the same for the life of the process, unless it is replaced. Any
 * thread may call it. */
const gb_machine *gb_machine_get(void);

/* From now on the machine is as described (as in GB_CACHES), or what it is (NULL). 0: the text
 * cannot be understood, and nothing is changed. Not while another thread compiles or executes. */
int gb_machine_replace(const char *text);

/* From now on bf16_groups is as this says. 0: the processor has no dot instructions, and nothing is changed. Not while
 * another thread compiles or executes. */
int gb_machine_choose_bf16(gb_bf16_products products);

/* Bytes of L1 (data), L2 and L3 that the first core reaches, as the system tells, without regard to
 * what takes their place; 0: none, or not told. Any thread may call it. */
void gb_machine_caches(size_t bytes[3]);

/* Reads a description as in GB_CACHES over what `machine` holds; 0 when it cannot be understood,
 * and nothing is changed then. */
int gb_machine_parse(const char *text, gb_machine *machine);

#endif
