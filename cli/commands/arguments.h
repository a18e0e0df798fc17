/* The arguments of subcommands: one table for each says what they take; reading, --help and the
 * completion of shells follow it. */
#ifndef GB_CLI_COMMANDS_ARGUMENTS_H
#define GB_CLI_COMMANDS_ARGUMENTS_H

#include "cli/commands/commands.h"

#include <stdbool.h>
#include <stddef.h>

enum { ARGUMENT_OPTION_LIMIT = 16 };

typedef struct gb_arguments {
    const char *values[ARGUMENT_OPTION_LIMIT]; /* by the option's row; NULL: neither given nor a
                                                  default; a switch that was given is "" */
    const char **words;                        /* what is no option; owned */
    size_t n_words;
    int next; /* of argv: behind what was read */
} gb_arguments;

/* Reads until the end, the word "--", or, with `stops`, in front of the first word that is no option
 * of the command. False, with a message, when an option is unknown or lacks its value. */
bool gb_cli_arguments_read(
        const gb_command *command, int argc, char **argv, bool stops, gb_arguments *arguments);
void gb_cli_arguments_free(gb_arguments *arguments);
/* The value as a number, or as a percentage with or without its sign (as a fraction). False, with a
 * message, when it is none or not above 0. */
bool gb_cli_argument_number(const char *option, const char *value, double *number);
bool gb_cli_argument_percent(const char *option, const char *value, double *fraction);

#endif
