/* Batch files: their words are interpreted where they are named. */
#include "cli/app/interpreter.h"

#include "cli/options/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* More is a loop of batch files. */
enum { BATCH_DEPTH_LIMIT = 32, BATCH_FILE_LIMIT = 10000 };

static void set_file(gb_interpreter *app, const char *file)
{
    app->file = file;
    app->settings.in_batch = file != NULL;
}

static void set_place(gb_interpreter *app, const char *file, size_t line)
{
    set_file(app, file);
    gb_cli_text_clear(&app->place);
    if (file)
        gb_cli_text_add(&app->place, "%s:%zu", file, line);
}

static void interpret_words(gb_interpreter *app, const char *path, const gb_words *words)
{
    const char *outer_file = app->file;
    gb_text outer_place = app->place;
    size_t outer_line = app->line;
    app->place = (gb_text){0};
    app->depth++;
    for (size_t i = 0; i < words->count && !app->ended && !app->stopped; i++) {
        if (i == 0 || words->items[i].line != words->items[i - 1].line)
            app->line = ++app->n_lines;
        set_place(app, path, words->items[i].line);
        gb_cli_interpret(app, words->items[i].text);
    }
    app->depth--;
    gb_cli_text_free(&app->place);
    app->place = outer_place;
    app->line = outer_line;
    set_file(app, outer_file);
}

/* Only a file can be read once more: cases of a pipe are not counted in advance. */
static gb_status read_words(const gb_interpreter *app, const char *path, gb_words *words)
{
    struct stat info;
    if (app->counting && (stat(path, &info) != 0 || !S_ISREG(info.st_mode)))
        return GB_SUCCESS;
    return gb_cli_words_read(path, words);
}

void gb_cli_read_batch(gb_interpreter *app, const char *name)
{
    app->n_batches++;
    if (app->checking && !app->counting)
        return;
    if (app->n_batches > BATCH_FILE_LIMIT) {
        gb_cli_stop_run(app, "batch files", BATCH_FILE_LIMIT);
        return;
    }
    char *path = gb_cli_search(&app->search, &app->settings, name);
    if (app->settings.verbose >= 50 && !app->counting)
        printf("batch file: %s\n", path);
    gb_words words = {0};
    gb_status status = GB_SUCCESS;
    if (app->depth == BATCH_DEPTH_LIMIT)
        status = gb_cli_fail(
                GB_INVALID_ARGUMENTS, "batch files are nested deeper than %d", BATCH_DEPTH_LIMIT);
    else
        status = read_words(app, path, &words);
    if (status != GB_SUCCESS && !app->counting) {
        bool said = app->depth == BATCH_DEPTH_LIMIT && app->too_deep;
        if (!said)
            gb_cli_print_error(gb_cli_text_get(&app->place), "--batch: %s", gb_cli_failure());
        app->too_deep = app->too_deep || app->depth == BATCH_DEPTH_LIMIT;
        app->report.n_option_errors++;
    }
    interpret_words(app, path, &words);
    gb_cli_words_free(&words);
    free(path);
}
