/* Signals that end a run: SIGINT, SIGTERM and SIGHUP. The first one lets the case that runs come to
 * its end for a short while; then, or at the next signal, the run is reported as far as it came and
 * the program ends with 128 + the signal's number; at a third signal it ends at once. */
#ifndef GB_CLI_REPORT_INTERRUPT_H
#define GB_CLI_REPORT_INTERRUPT_H

#include <stdbool.h>

/* To be called before there are other threads. `finish` reports what was done; it runs on a thread
 * of its own while the case still runs. False: signals end the program as they always do. */
bool gb_cli_interrupt_start(void (*finish)(void *data, int signal), void *data);
/* To be called by `finish` when what is left to do may be lost: the program ends after a short while
 * then, even if nobody takes what it prints. */
void gb_cli_interrupt_saved(void);
/* The signal that came, or 0. */
int gb_cli_interrupt_signal(void);

#endif
