/* Reading the arguments of subcommands by their tables. */
#include "cli/commands/arguments.h"

#include "cli/options/message.h"
#include "cli/options/text.h"

#include <stdlib.h>
#include <string.h>

/* The row of "--name[=value]" or "-o"; *value is NULL without one. */
static const gb_command_option *find(
        const gb_command *command, const char *word, const char **value)
{
    bool is_long = strncmp(word, "--", 2) == 0;
    const char *name = word + (is_long ? 2 : 1);
    size_t length = strcspn(name, "=");
    const gb_command_option *option = command->options;
    *value = name[length] ? name + length + 1 : NULL;
    for (; option && option->name; option++)
        if (strlen(option->name) == length && strncmp(option->name, name, length) == 0 &&
                is_long == (length > 1))
            return option;
    return NULL;
}

/* "-o FILE" is two words, the others are one. */
static bool take(const gb_command *command, const gb_command_option *option, const char *value,
        int argc, char **argv, gb_arguments *arguments)
{
    bool is_short = strlen(option->name) == 1;
    if (is_short && !value && arguments->next < argc)
        value = argv[arguments->next++];
    if (option->argument && !value) {
        gb_cli_print_error(command->name, "%s%s needs a value: %s", is_short ? "-" : "--",
                option->name, option->argument);
        return false;
    }
    if (!option->argument && value) {
        gb_cli_print_error(command->name, "--%s takes no value", option->name);
        return false;
    }
    arguments->values[option - command->options] = value ? value : "";
    return true;
}

bool gb_cli_arguments_read(
        const gb_command *command, int argc, char **argv, bool stops, gb_arguments *arguments)
{
    *arguments = (gb_arguments){.words = gb_cli_realloc(NULL, (size_t)argc, sizeof(char *))};
    for (size_t i = 0; command->options && command->options[i].name; i++)
        arguments->values[i] = command->options[i].fallback;
    for (arguments->next = 1; arguments->next < argc;) {
        const char *word = argv[arguments->next], *value;
        if (strcmp(word, "--") == 0 && stops)
            return true;
        if (strcmp(word, "--") == 0) { /* what follows are words, whatever they look like */
            while (++arguments->next < argc)
                arguments->words[arguments->n_words++] = argv[arguments->next];
            break;
        }
        const gb_command_option *option =
                word[0] == '-' && word[1] ? find(command, word, &value) : NULL;
        if (!option && stops)
            return true;
        arguments->next++;
        if (!option && word[0] == '-' && word[1]) {
            gb_cli_print_error(command->name,
                    "\"%.80s\" is not understood; graph-bench %s --help tells more", word,
                    command->name);
            return false;
        }
        if (!option)
            arguments->words[arguments->n_words++] = word;
        else if (!take(command, option, value, argc, argv, arguments))
            return false;
    }
    return true;
}

void gb_cli_arguments_free(gb_arguments *arguments)
{
    free(arguments->words);
    *arguments = (gb_arguments){0};
}

bool gb_cli_argument_number(const char *option, const char *value, double *number)
{
    char *end;
    *number = strtod(value, &end);
    if (end != value && !*end && *number > 0 && *number < 1e9)
        return true;
    gb_cli_print_error(NULL, "--%s: \"%.80s\" is no number above 0", option, value);
    return false;
}

bool gb_cli_argument_percent(const char *option, const char *value, double *fraction)
{
    char *end;
    double percent = strtod(value, &end);
    *fraction = percent / 100;
    if (end != value && (!*end || strcmp(end, "%") == 0) && percent > 0 && percent < 100)
        return true;
    gb_cli_print_error(NULL, "--%s: \"%.80s\" is no percentage, such as 3%%", option, value);
    return false;
}
