/* The engine and the stream that cases run on. */
#ifndef GB_CLI_RUN_SESSION_H
#define GB_CLI_RUN_SESSION_H

#include "cli/run/run.h"

/* Opens what the settings ask for, unless it is open. Without such a device, or with one that lacks
 * what was asked for, the case is SKIPPED with the reason, and *go_on false. */
gb_status gb_cli_session_open(
        gb_session *session, const gb_settings *settings, gb_case_result *result, bool *go_on);
/* Capacities of the library's caches and checks of its memory that fit the settings; `none`: nothing is kept. */
gb_status gb_cli_session_set_mode(const gb_settings *settings, bool none);
/* Prints all devices, or how to get one. */
void gb_cli_list_devices(void);

/* What the session's engine has spent so far on building kernels, or on loading them; -1: it builds
 * none. */
int64_t gb_cli_session_build_ns(const gb_session *session);

/* Threads of a case without --threads: as OpenMP had it at the first call. */
int gb_cli_default_threads(void);

#endif
