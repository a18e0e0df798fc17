/* What probes reached in earlier runs on this machine. A run that never saw the fast state would not know that it
 * was slow all the time. Kept for a day, until the machine starts anew, in
 * $XDG_CACHE_HOME/graph-bench/machine-HOST.json (~/.cache/...); GB_MACHINE_CACHE names another file, or is "off".
 * A file that cannot be read or written is none. */
#ifndef GB_CLI_RUN_KNOWN_MACHINE_H
#define GB_CLI_RUN_KNOWN_MACHINE_H

/* Makes known what so many threads reached, as gb_cli_probe_note() does. */
void gb_cli_known_machine_recall(int threads);
/* Keeps the best probes of this run where they are better, or nothing is kept. */
void gb_cli_known_machine_remember(int threads);

#endif
