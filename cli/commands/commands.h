/* Subcommands: what graph-bench does beside running cases. */
#ifndef GB_CLI_COMMANDS_COMMANDS_H
#define GB_CLI_COMMANDS_COMMANDS_H

#include <stdbool.h>

/* "--name[=argument]", or "-n argument" where the name is one letter. An argument in small letters with
 * "|" between is the words that it may be. */
typedef struct gb_command_option {
    const char *name, *argument, *fallback, *help; /* argument NULL: a switch; help: one line */
} gb_command_option;

/* What the words are that are no options, behind those that the usage says literally. */
typedef enum gb_operands { OPERANDS_NONE, OPERANDS_FILES, OPERANDS_FOLDERS } gb_operands;

typedef struct gb_command gb_command;

struct gb_command {
    const char *name, *arguments, *help; /* help: one line */
    const gb_command_option *options;    /* up to a row without a name; NULL: none */
    /* argv[0] is the name. The result is the exit status of the program. */
    int (*run)(const gb_command *command, int argc, char **argv);
    gb_operands operands;
    bool takes_cases; /* and the options of graph-bench that say which, and how they run */
};

/* The row of a name; one that says what was meant when the name is misspelt; NULL: it is none. "run"
 * is no row: it is what graph-bench does without a subcommand. */
const gb_command *gb_cli_command_find(const char *name);
/* The rows, for --help; NULL behind the last. */
const gb_command *gb_cli_command_at(unsigned index);
/* Runs the command, or prints its help if that is asked for. */
int gb_cli_command_run(const gb_command *command, int argc, char **argv);

/* The options and functions of the rows. */
extern const gb_command_option gb_cli_report_options[];
extern const gb_command_option gb_cli_merge_options[], gb_cli_compare_options[],
        gb_cli_ab_options[], gb_cli_history_options[], gb_cli_env_options[], gb_cli_roof_options[],
        gb_cli_reduce_options[], gb_cli_fuzz_options[];
int gb_cli_command_report(const gb_command *command, int argc, char **argv);
int gb_cli_command_merge(const gb_command *command, int argc, char **argv);
int gb_cli_command_compare(const gb_command *command, int argc, char **argv);
int gb_cli_command_ab(const gb_command *command, int argc, char **argv);
int gb_cli_command_env(const gb_command *command, int argc, char **argv);
int gb_cli_command_roof(const gb_command *command, int argc, char **argv);
int gb_cli_command_list(const gb_command *command, int argc, char **argv);
int gb_cli_command_completion(const gb_command *command, int argc, char **argv);
int gb_cli_command_fuzz(const gb_command *command, int argc, char **argv);
int gb_cli_command_repro(const gb_command *command, int argc, char **argv);
int gb_cli_command_reduce(const gb_command *command, int argc, char **argv);
int gb_cli_command_worker(const gb_command *command, int argc, char **argv);
int gb_cli_command_history(const gb_command *command, int argc, char **argv);

#endif
