/* How far a long batch is. */
#include "cli/report/progress.h"

#include "cli/run/measure.h"

#include <stdio.h>

static long long minutes_of(double seconds)
{
    return (long long)seconds / 60;
}

static long long seconds_of(double seconds)
{
    return (long long)seconds % 60;
}

void gb_cli_progress_show(const gb_progress *progress, size_t index, const char *file)
{
    if (!progress->total)
        return;
    double elapsed = (double)(gb_cli_now_ns() - progress->begin_ns) * 1e-9;
    double left = index ? elapsed / (double)index * (double)(progress->total - index) : 0;
    fprintf(stderr, "\r\033[K[%zu/%zu] %lld:%02lld", index + 1, progress->total,
            minutes_of(elapsed), seconds_of(elapsed));
    if (index)
        fprintf(stderr, ", about %lld:%02lld left", minutes_of(left), seconds_of(left));
    fprintf(stderr, ": %.60s", file);
    fflush(stderr);
}

void gb_cli_progress_hide(const gb_progress *progress)
{
    if (!progress->total)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
}
