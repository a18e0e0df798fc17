/* A case that the arguments of a subcommand name. */
#ifndef GB_CLI_PERFORM_SINGLE_H
#define GB_CLI_PERFORM_SINGLE_H

#include "cli/perform/parcel.h"

/* Reads options and one --case, as graph-bench itself does; each list has one alternative. A failure
 * has a message. The errand is to be freed in either case, and stays where it is. */
gb_status gb_cli_single_read(size_t n_words, char *const *words, gb_errand *errand);

/* By the option's name: its value as text; NULL: as if it had not been given, for options without a
 * default. The value is legal. */
void gb_cli_set_option(gb_settings *settings, const char *name, const char *value);
/* Settings for graphs that stand for themselves: those of `from` without what changes graphs, and
 * without all that is shown or stored; any number of partitions is right. To be freed. */
void gb_cli_plain_settings(const gb_settings *from, gb_settings *to);
/* The part of a failure that has to stay the same for it to be the same: the status and, of a crash,
 * the signal; of a case that could not be run, the stage: "UNTESTED_FAILED (Cannot load graph)". To be
 * freed. */
char *gb_cli_failure_class(const gb_case_result *result);

#endif
