/* What subcommands that read and write reports have in common. */
#include "cli/commands/files.h"

#include "cli/commands/arguments.h"
#include "cli/options/message.h"
#include "cli/report/render.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool gb_cli_command_files(const gb_command *command, int argc, char **argv, size_t least,
        size_t most, gb_command_files *files)
{
    gb_arguments arguments;
    bool good = gb_cli_arguments_read(command, argc, argv, false, &arguments);
    *files = (gb_command_files){arguments.words, arguments.n_words, arguments.values[0]};
    if (good && !files->output) {
        gb_cli_print_error(command->name, "-o FILE is missing");
        good = false;
    } else if (good && (files->n_inputs < least || files->n_inputs > most)) {
        gb_cli_print_error(
                command->name, "%s report is needed", most == 1 ? "one" : "at least one");
        good = false;
    }
    return good;
}

static const struct {
    const char *extension;
    bool (*write)(const gb_results *results, FILE *file);
} forms[] = {
        {".html", gb_cli_write_html},
        {".xml", gb_cli_write_junit},
        {".csv", gb_cli_write_csv},
        {".json", gb_cli_results_write_json},
};

int gb_cli_command_write(const gb_results *results, const char *path)
{
    const char *extension = strcmp(path, "-") == 0 ? ".json" : strrchr(path, '.');
    size_t form = 0, n = sizeof forms / sizeof forms[0];
    while (form < n && (!extension || strcmp(forms[form].extension, extension) != 0))
        form++;
    if (form == n) {
        gb_cli_print_error(NULL, "%s: the name must end in .html, .xml, .csv or .json", path);
        return EXIT_USAGE;
    }
    errno = 0;
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    bool good = file && forms[form].write(results, file);
    if (file)
        good = (file == stdout ? fflush(file) : fclose(file)) == 0 && good;
    if (good)
        return EXIT_GOOD;
    gb_cli_print_error(NULL, "%s: cannot be written: %s", path, strerror(errno));
    return EXIT_UNWRITTEN;
}

int gb_cli_command_report(const gb_command *command, int argc, char **argv)
{
    gb_command_files files;
    gb_results *results = NULL;
    int status = EXIT_USAGE;
    if (gb_cli_command_files(command, argc, argv, 1, 1, &files)) {
        if (gb_cli_results_read(files.inputs[0], &results) == GB_SUCCESS)
            status = gb_cli_command_write(results, files.output);
        else
            gb_cli_print_error(NULL, "%s", gb_cli_failure());
    }
    gb_cli_results_free(results);
    free(files.inputs);
    return status;
}
