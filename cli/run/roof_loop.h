/* A loop of independent f32 multiply-adds, built once per instruction set. */
#ifndef GB_CLI_RUN_ROOF_LOOP_H
#define GB_CLI_RUN_ROOF_LOOP_H

/* Chains that run beside each other: enough to fill the multiply-add units of the widest vectors.
 */
enum { GB_ROOF_LANES = 256 };

/* Does `steps` multiply-adds on each of GB_ROOF_LANES chains; the result keeps the compiler honest.
 */
typedef float gb_roof_loop(long steps);

gb_roof_loop gb_cli_roof_loop_baseline, gb_cli_roof_loop_avx2, gb_cli_roof_loop_avx512;

#endif
