/* compare and ab in a build without GSL. */
#include "cli/commands/commands.h"
#include "cli/options/exit_status.h"
#include "cli/options/message.h"

#include <stddef.h>

const gb_command_option gb_cli_compare_options[] = {{0}}, gb_cli_ab_options[] = {{0}};

static int refuse(const gb_command *command)
{
    gb_cli_print_error(
            command->name, "this build has no statistics: install libgsl-dev and configure again");
    return EXIT_USAGE;
}

int gb_cli_command_compare(const gb_command *command, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return refuse(command);
}

int gb_cli_command_ab(const gb_command *command, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return refuse(command);
}
