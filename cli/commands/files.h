/* What subcommands that read and write reports have in common. */
#ifndef GB_CLI_COMMANDS_FILES_H
#define GB_CLI_COMMANDS_FILES_H

#include "cli/commands/commands.h"
#include "cli/options/exit_status.h"
#include "cli/report/results.h"

/* "FILE... -o FILE", in any order. */
typedef struct gb_command_files {
    const char **inputs; /* owned */
    size_t n_inputs;
    const char *output;
} gb_command_files;

/* False, with a message, when there are fewer inputs than `least`, more than `most`, or no output.
 */
bool gb_cli_command_files(const gb_command *command, int argc, char **argv, size_t least,
        size_t most, gb_command_files *files);
/* Writes the results in the form that the name of the file asks for; EXIT_GOOD, or the exit
 * status after a message. "-" is the standard output, as JSON. */
int gb_cli_command_write(const gb_results *results, const char *path);

#endif
