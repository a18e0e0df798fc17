/* How far a long batch is: one line on the terminal, rewritten for every case. */
#ifndef GB_CLI_REPORT_PROGRESS_H
#define GB_CLI_REPORT_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

typedef struct gb_progress {
    size_t total; /* cases to come in all; 0 = show nothing */
    int64_t begin_ns;
} gb_progress;

/* Shows case `index` (from 0) of the total, the time so far and an estimate of the rest. */
void gb_cli_progress_show(const gb_progress *progress, size_t index, const char *file);
/* Clears the line again. */
void gb_cli_progress_hide(const gb_progress *progress);

#endif
