/* Finds case and batch files: beside the files named before, and in the input directories. */
#include "cli/case/batch.h"

#include "cli/options/message.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

static void remember(gb_search *search, const char *dir, size_t length)
{
    for (size_t i = 0; i < search->count; i++)
        if (strncmp(search->dirs[i], dir, length) == 0 && search->dirs[i][length] == '\0')
            return;
    if (search->count < SEARCH_LIMIT) {
        search->dirs[search->count++] = gb_cli_copy_part(dir, length);
    } else if (!search->full) {
        search->full = true;
        gb_cli_print_warning(NULL, "only the first %d directories are searched", SEARCH_LIMIT);
    }
}

/* The directory part of a name; "." when it has none. */
static void remember_dir_of(gb_search *search, const char *name)
{
    const char *slash = strrchr(name, '/');
    if (!slash)
        remember(search, ".", 1);
    else
        remember(search, name, slash == name ? 1 : (size_t)(slash - name));
}

/* "dir/name" when that is a file, else NULL. */
static char *try_dir(const char *dir, const char *name)
{
    gb_text path = {0};
    gb_cli_text_add(&path, "%s/%s", dir, name);
    if (is_file(path.data))
        return path.data;
    gb_cli_text_free(&path);
    return NULL;
}

/* In the directories above `dir`: batch files name their cases relative to a common root. */
static char *try_parents(const char *dir, const char *name)
{
    static const char *const parents[] = {"..", "../..", "../../.."};
    char *found = NULL;
    for (size_t i = 0; !found && i < sizeof(parents) / sizeof(parents[0]); i++) {
        gb_text parent = {0};
        gb_cli_text_add(&parent, "%s/%s", dir, parents[i]);
        found = try_dir(parent.data, name);
        gb_cli_text_free(&parent);
    }
    return found;
}

/* The project's graphs, from a build folder or where they were installed. */
static char *try_program_dir(const char *name)
{
    static const char *const folders[] = {"inputs/graph", "../inputs/graph", "../../inputs/graph",
            "../share/graph-bench/inputs/graph"};
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length <= 0)
        return NULL;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash)
        return NULL;
    *slash = '\0';
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        gb_text dir = {0};
        gb_cli_text_add(&dir, "%s/%s", program, folders[i]);
        char *found = try_dir(dir.data, name);
        gb_cli_text_free(&dir);
        if (found)
            return found;
    }
    return NULL;
}

char *gb_cli_search(gb_search *search, const gb_settings *settings, const char *name)
{
    char *found = NULL;
    if (is_file(name))
        found = gb_cli_copy(name);
    remember_dir_of(search, name);
    if (name[0] != '/') {
        for (size_t i = 0; !found && i < search->count; i++)
            found = try_dir(search->dirs[i], name);
        for (size_t i = 0; !found && i < settings->n_input_dirs; i++)
            found = try_dir(settings->input_dirs[i], name);
        const char *variable = getenv("GRAPHBENCH_INPUT_DIR");
        if (!found && variable && *variable)
            found = try_dir(variable, name);
        for (size_t i = 0; !found && i < search->count; i++)
            found = try_parents(search->dirs[i], name);
        if (!found)
            found = try_program_dir(name);
    }
    return found ? found : gb_cli_copy(name);
}

void gb_cli_search_free(gb_search *search)
{
    for (size_t i = 0; i < search->count; i++)
        free(search->dirs[i]);
    *search = (gb_search){0};
}
