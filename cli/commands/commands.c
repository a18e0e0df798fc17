/* The table of subcommands. */
#include "cli/commands/commands.h"

#include "cli/commands/files.h"

#include <stddef.h>
#include <string.h>

static const gb_command commands[] = {
        {"report", "REPORT -o FILE",
                "write a report of --json in another form: FILE ends in .html, .xml (JUnit), .csv "
                "or "
                ".json",
                gb_cli_command_report},
        {"merge", "REPORT... -o FILE",
                "join the reports of shards, or of several runs, and say what is missing or "
                "contradictory",
                gb_cli_command_merge},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

const gb_command *gb_cli_command_at(unsigned index)
{
    return index < COMMANDS ? &commands[index] : NULL;
}

const gb_command *gb_cli_command_find(const char *name)
{
    for (unsigned i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}
