/* What the system says of the machine while a program runs on it. */
#include "cli/run/machine.h"

#include "cli/options/text.h"
#include "cli/run/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

gb_loop_level gb_cli_loop_level(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512dq"))
        return GB_LOOPS_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return GB_LOOPS_AVX2;
#endif
    return GB_LOOPS_BASELINE;
}

int64_t gb_cli_involuntary_switches(void)
{
    struct rusage usage;
    /* Of all threads: the kernels' workers count as much as the one that waits for them. */
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

gb_cpu_times gb_cli_cpu_times(void)
{
    enum { IDLE = 3, WAITING = 4, STOLEN = 7, COLUMNS = 8 };
    gb_cpu_times times = {0};
    char line[512];
    FILE *file = fopen("/proc/stat", "r");
    bool read = file && fgets(line, sizeof line, file) && strncmp(line, "cpu ", 4) == 0;
    if (file)
        fclose(file);
    char *at = line + 4;
    for (int column = 0; read && column < COLUMNS; column++) {
        int64_t ticks = strtoll(at, &at, 10);
        times.all += ticks;
        times.idle += column == IDLE || column == WAITING ? ticks : 0;
        times.stolen += column == STOLEN ? ticks : 0;
    }
    return times;
}

double gb_cli_steal_since(const gb_cpu_times *before)
{
    gb_cpu_times now = gb_cli_cpu_times();
    int64_t all = now.all - before->all;
    return all > 0 ? (double)(now.stolen - before->stolen) / (double)all : 0;
}

double gb_cli_idle_since(const gb_cpu_times *before)
{
    gb_cpu_times now = gb_cli_cpu_times();
    int64_t all = now.all - before->all;
    return all > 0 ? (double)(now.idle - before->idle) / (double)all : -1;
}

double gb_cli_chain_rate(long steps)
{
    volatile uint64_t sink = 1;
    uint64_t x = sink;
    int64_t start = gb_cli_now_ns();
    for (long i = 0; i < steps; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    sink = x;
    int64_t ns = gb_cli_now_ns() - start;
    return (double)steps * 1e9 / (double)(ns > 0 ? ns : 1);
}

double gb_cli_chain_ns(void)
{
    enum { STEPS = 1 << 18, ROUNDS = 5 };
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double rate = gb_cli_chain_rate(STEPS);
        best = rate > best ? rate : best;
    }
    return 1e9 / best;
}

bool gb_cli_first_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "r");
    bool read = file && fgets(line, (int)size, file);
    if (file)
        fclose(file);
    if (read)
        line[strcspn(line, "\n")] = '\0';
    return read;
}

char *gb_cli_system_value(const char *path, const char *key)
{
    FILE *file = fopen(path, "r");
    char *line = NULL, *found = NULL;
    size_t capacity = 0;
    while (file && !found && getline(&line, &capacity, file) > 0) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0)
            continue;
        char *value = colon + 1 + strspn(colon + 1, " \t");
        value[strcspn(value, "\n")] = '\0';
        found = gb_cli_copy(value);
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}
