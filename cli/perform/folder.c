/* Files and folders of cases. */
#include "cli/perform/folder.h"

#include "cli/report/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool gb_cli_copy_file(const char *from, const char *to, size_t most)
{
    struct stat info, there;
    char buffer[1 << 14];
    if (stat(from, &info) != 0 || (size_t)info.st_size > most)
        return false;
    if (stat(to, &there) == 0 && there.st_dev == info.st_dev && there.st_ino == info.st_ino)
        return true; /* to write it would empty it */
    FILE *source = fopen(from, "rb"), *copy = source ? fopen(to, "wb") : NULL;
    bool good = copy != NULL;
    for (size_t n; good && (n = fread(buffer, 1, sizeof buffer, source)) > 0;)
        good = fwrite(buffer, 1, n, copy) == n;
    good = good && !ferror(source);
    if (copy)
        good = fclose(copy) == 0 && good;
    if (source)
        fclose(source);
    return good;
}

bool gb_cli_write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    bool good = file && fputs(text, file) >= 0;
    if (file)
        good = fclose(file) == 0 && good;
    return good;
}

/* Calls `visit` with the path of each entry. */
static void for_entries(const char *path, void (*visit)(const char *entry, void *data), void *data)
{
    DIR *folder = *path ? opendir(path) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        gb_text name = {0};
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        gb_cli_text_add(&name, "%s/%s", path, entry->d_name);
        visit(name.data, data);
        gb_cli_text_free(&name);
    }
    if (folder)
        closedir(folder);
}

static void add_bytes(const char *entry, void *data)
{
    struct stat info;
    size_t *bytes = data;
    if (stat(entry, &info) == 0 && S_ISREG(info.st_mode))
        *bytes += (size_t)info.st_size;
}

size_t gb_cli_folder_bytes(const char *path)
{
    size_t bytes = 0;
    for_entries(path, add_bytes, &bytes);
    return bytes;
}

gb_status gb_cli_make_temporary(gb_text *path)
{
    gb_cli_text_clear(path);
    gb_cli_text_add(path, "%s/graph-bench-XXXXXX", gb_cli_temporary_folder());
    if (mkdtemp(path->data))
        return GB_SUCCESS;
    gb_cli_fail(GB_RUNTIME_ERROR, "%s cannot be made: %s", path->data, strerror(errno));
    gb_cli_text_clear(path); /* there is nothing to remove */
    return GB_RUNTIME_ERROR;
}

static void remove_file(const char *entry, void *data)
{
    (void)data;
    unlink(entry);
}

void gb_cli_remove_folder(const char *path)
{
    for_entries(path, remove_file, NULL);
    if (*path)
        rmdir(path);
}
