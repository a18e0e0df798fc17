/* graph-bench repro: runs the case of a folder of --repro-dir again. */
#include "cli/perform/repro.h"

#include "cli/commands/arguments.h"
#include "cli/options/exit_status.h"
#include "cli/options/message.h"

#include <stdio.h>

int gb_cli_command_repro(const gb_command *command, int argc, char **argv)
{
    (void)command;
    bool fails = false;
    gb_status status = argc == 2 ? gb_cli_repro_run(argv[1], &fails)
                                 : gb_cli_fail(GB_INVALID_ARGUMENTS, "one folder, please");
    if (status != GB_SUCCESS) {
        gb_cli_print_error(NULL, "repro: %s", gb_cli_failure());
        return EXIT_USAGE;
    }
    if (fflush(stdout) != 0)
        return EXIT_UNWRITTEN;
    return fails ? EXIT_CASE_FAILED : EXIT_GOOD;
}
