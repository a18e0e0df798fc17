/* The option table: one row per option drives parsing, --help, the reproducer line and the check of
 * the manual page. */
#ifndef GB_CLI_OPTIONS_OPTIONS_H
#define GB_CLI_OPTIONS_OPTIONS_H

#include "cli/options/settings.h"

typedef enum gb_option_group {
    GROUP_CASES,
    GROUP_REWRITING,
    GROUP_RUNNING,
    GROUP_MEASURING,
    GROUP_OUTPUT,
    GROUP_IGNORED,
    GROUP_COUNT
} gb_option_group;

/* What the interpreter of the arguments does besides keeping a value. */
typedef enum gb_option_action {
    ACTION_NONE,
    ACTION_CASE,
    ACTION_BATCH,
    ACTION_RESET,
    ACTION_HELP,
    ACTION_VERSION,
    ACTION_LIST_OPS,
    ACTION_LIST_DEVICES,
    ACTION_IGNORE
} gb_option_action;

/* What is written where the value says: a file that takes the place of an old one, one that is written
 * in place, or a folder. */
typedef enum gb_option_output {
    WRITES_NOTHING,
    WRITES_REPORT,
    WRITES_FILE,
    WRITES_FOLDER
} gb_option_output;

typedef struct gb_option gb_option;

/* Takes the value into the settings; may replace *canonical (owned text), the value as the
 * reproducer line shows it. */
typedef gb_status (*gb_option_parser)(
        gb_settings *settings, const gb_option *option, const char *value, char **canonical);

struct gb_option {
    const char *name;     /* without the dashes */
    const char *argument; /* what --help calls the value; NULL = none */
    const char *fallback; /* the default as text, NULL = none */
    const char *help;     /* one line */
    const char *words;    /* values that are words, with blanks between; NULL: none */
    gb_option_group group;
    gb_option_action action;
    gb_option_parser take;
    gb_option_output writes;
    size_t offset;       /* into gb_settings, for the generic parsers and of what is written */
    double low, high;    /* legal range of a number */
    bool in_repro;       /* changes what a case does */
    bool of_case;        /* restored by --reset */
    bool of_run;         /* on the command line it counts from the start, wherever it stands */
    bool value_optional; /* --name alone stands for --name=1 */
    bool repeats;        /* every use adds */
    bool once;           /* names a file that is read at once; another one later on is refused */
    bool is_limit;       /* of a case in a worker */
};

/* The rows; the globals of the reproducer line stand in its order. */
extern const gb_option gb_cli_options[];
size_t gb_cli_option_count(void);

/* Splits "--name[=value]" or "-vN": *option is the row, *value its text (NULL = none was given). A
 * token that is no option: GB_INVALID_ARGUMENTS with a message that names similar options, and *option
 * is NULL. An option that needs a value, or takes none, fails with its row. */
gb_status gb_cli_option_find(const char *token, const gb_option **option, const char **value);
/* Takes the value of an option without action. Failures name the option and the position of the
 * fault. */
gb_status gb_cli_option_set(gb_settings *settings, const gb_option *option, const char *value);

void gb_cli_print_help(void);
void gb_cli_print_version(void);

/* Arguments that reproduce a case: everything, and only what belongs to the case. With --canonical
 * also the defaults. */
void gb_cli_write_repro(const gb_settings *settings, const gb_alternative *const choice[AXIS_COUNT],
        const char *file, gb_text *repro);
void gb_cli_write_arguments(const gb_settings *settings,
        const gb_alternative *const choice[AXIS_COUNT], const char *file, gb_text *arguments);

#endif
