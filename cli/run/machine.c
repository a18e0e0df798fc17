/* What the system says of the machine while a program runs on it. */
#include "cli/run/machine.h"

#include "cli/run/measure.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

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

double gb_cli_chain_ns(void)
{
    enum { STEPS = 1 << 18, ROUNDS = 5 };
    double best = 0;
    volatile uint64_t sink = 1;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t x = sink;
        int64_t start = gb_cli_now_ns();
        for (int i = 0; i < STEPS; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
        double ns = (double)(gb_cli_now_ns() - start) / STEPS;
        sink = x;
        if (best <= 0 || ns < best)
            best = ns;
    }
    return best;
}
