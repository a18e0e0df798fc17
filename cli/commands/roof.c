/* graph-bench roof: what the machine reaches at most. */
#include "cli/run/roof.h"

#include "cli/commands/arguments.h"
#include "cli/options/exit_status.h"

#include <stdio.h>

int gb_cli_command_roof(const gb_command *command, int argc, char **argv)
{
    gb_arguments arguments;
    bool read = gb_cli_arguments_read(command, argc, argv, false, &arguments);
    gb_cli_arguments_free(&arguments);
    if (!read)
        return EXIT_USAGE;
    gb_cli_roof_print();
    return fflush(stdout) != 0 || ferror(stdout) ? EXIT_UNWRITTEN : EXIT_GOOD;
}
