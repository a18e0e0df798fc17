/* Reports in the form that a name asks for. */
#ifndef GB_CLI_COMMANDS_FILES_H
#define GB_CLI_COMMANDS_FILES_H

#include "cli/commands/commands.h"
#include "cli/options/exit_status.h"
#include "cli/report/results.h"

/* The exit status of a command that failed so: EXIT_UNWRITTEN where there was no room, or no device that
 * works, else EXIT_USAGE. */
int gb_cli_command_failure(gb_status status);
/* Writes the results in the form that the name of the file asks for; EXIT_GOOD, or the exit
 * status after a message. "-" is the standard output, as JSON. */
int gb_cli_command_write(const gb_results *results, const char *path);

#endif
