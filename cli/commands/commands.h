/* Subcommands: what graph-bench does beside running cases. */
#ifndef GB_CLI_COMMANDS_COMMANDS_H
#define GB_CLI_COMMANDS_COMMANDS_H

typedef struct gb_command {
    const char *name, *arguments, *help; /* help: one line */
    /* argv[0] is the name. The result is the exit status of the program. */
    int (*run)(int argc, char **argv);
} gb_command;

/* The row of a name; NULL: it is none. "run" is no row: it is what graph-bench does without a
 * subcommand. */
const gb_command *gb_cli_command_find(const char *name);
/* The rows, for --help; NULL behind the last. */
const gb_command *gb_cli_command_at(unsigned index);

#endif
