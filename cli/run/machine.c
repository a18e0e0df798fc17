/* What the system says of the machine while a program runs on it. */
#include "cli/run/machine.h"

#include "cli/run/measure.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

int64_t gb_cli_involuntary_switches(void)
{
    struct rusage usage;
    /* Of all threads: the kernels' workers count as much as the one that waits for them. */
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

gb_cpu_times gb_cli_cpu_times(void)
{
    gb_cpu_times times = {0};
    int64_t t[8];
    FILE *file = fopen("/proc/stat", "r");
    if (!file)
        return times;
    int n = fscanf(file,
            "cpu %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
            " %" SCNd64,
            &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]);
    fclose(file);
    if (n != 8)
        return times;
    for (int i = 0; i < 8; i++)
        times.all += t[i];
    times.idle = t[3] + t[4];
    times.stolen = t[7];
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
