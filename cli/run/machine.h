/* What the system says of the machine while a program runs on it. */
#ifndef GB_CLI_RUN_MACHINE_H
#define GB_CLI_RUN_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ticks of all processors since the system started; all 0 when the system does not say. */
typedef struct gb_cpu_times {
    int64_t all, idle, stolen;
} gb_cpu_times;

/* Instruction sets that loops of the tool are built for (CMakeLists.txt, gb_add_loops), in this order. */
typedef enum gb_loop_level { GB_LOOPS_BASELINE, GB_LOOPS_AVX2, GB_LOOPS_AVX512 } gb_loop_level;

/* The last one that the processor has. */
gb_loop_level gb_cli_loop_level(void);

/* How often a thread of this program lost its processor before it had to wait. */
int64_t gb_cli_involuntary_switches(void);
gb_cpu_times gb_cli_cpu_times(void);
/* Share of all processors' time that the hypervisor took since then; 0 when that is not known. */
double gb_cli_steal_since(const gb_cpu_times *before);
/* Share of all processors' time that nobody used since then; negative when that is not known. */
double gb_cli_idle_since(const gb_cpu_times *before);
/* Steps a second of a chain of dependent multiplications of integers, `steps` of them: a few cycles each,
 * whatever else the core does, so that its change tells that of the clock frequency. */
double gb_cli_chain_rate(long steps);
/* Time of a step, in nanoseconds, at best. Takes some milliseconds. */
double gb_cli_chain_ns(void);
/* The first line of a file of the system, without its end; false: there is none. */
bool gb_cli_first_line(const char *path, char *line, size_t size);
/* The value of the first line "key : value" of a file of the system, the caller's; NULL when there is none. */
char *gb_cli_system_value(const char *path, const char *key);

#endif
