/* Files in the making: beside their place, and renamed. */
#include "cli/report/new_file.h"

#include "cli/options/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What names of the standard output lead to. */
static int standard_output = STDOUT_FILENO;

/* The descriptor that a name stands for, or -1. */
static int named_descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t length = strlen(folders[i]);
        char *end;
        if (strncmp(path, folders[i], length) != 0)
            continue;
        long number = strtol(path + length, &end, 10);
        return end > path + length && !*end && number <= INT_MAX ? (int)number : -1;
    }
    return -1;
}

/* The same, where links lead to such a name. */
static int descriptor_of(const char *path)
{
    enum { MOST_LINKS = 40 };
    char at[PATH_MAX], next[PATH_MAX];
    snprintf(at, sizeof at, "%s", path);
    for (int i = 0; i < MOST_LINKS; i++) {
        int descriptor = named_descriptor(at);
        ssize_t length = descriptor < 0 ? readlink(at, next, sizeof next - 1) : -1;
        if (length <= 0)
            return descriptor;
        next[length] = '\0';
        snprintf(at, sizeof at, "%s", next);
    }
    return -1;
}

bool gb_cli_new_file_is_special(const char *path)
{
    struct stat info;
    return descriptor_of(path) >= 0 ||
           (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode));
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool fail(int error)
{
    errno = error;
    return false;
}

static FILE *open_descriptor(int descriptor)
{
    if (descriptor == STDOUT_FILENO)
        fflush(stdout);
    int copy = dup(descriptor == STDOUT_FILENO ? standard_output : descriptor);
    FILE *stream = copy >= 0 ? fdopen(copy, "w") : NULL;
    if (!stream && copy >= 0)
        close(copy);
    return stream;
}

bool gb_cli_new_file_is_stdout(const char *path)
{
    return descriptor_of(path) == STDOUT_FILENO;
}

/* Who closed the standard error wants none of it. */
static int open_other_output(void)
{
    int flags = fcntl(STDERR_FILENO, F_GETFL);
    bool writable = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
    return writable ? dup(STDERR_FILENO) : open("/dev/null", O_WRONLY);
}

void gb_cli_new_file_take_stdout(void)
{
    if (standard_output != STDOUT_FILENO)
        return;
    fflush(stdout);
    int kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int other = open_other_output();
    if (kept >= 0 && other >= 0 && dup2(other, STDOUT_FILENO) >= 0)
        standard_output = kept;
    else if (kept >= 0)
        close(kept);
    if (other >= 0)
        close(other);
}

bool gb_cli_new_file_open(const char *path, gb_new_file *file)
{
    int descriptor = descriptor_of(path);
    *file = (gb_new_file){0};
    errno = 0;
    if (descriptor < 0 && is_folder(path)) /* what is written beside it could not take its place */
        return fail(EISDIR);
    if (descriptor >= 0) {
        file->stream = open_descriptor(descriptor);
    } else if (gb_cli_new_file_is_special(path)) {
        file->stream = fopen(path, "w");
    } else {
        gb_text part = {0};
        char *resolved = realpath(path, NULL); /* NULL: a new file */
        file->target = resolved ? resolved : gb_cli_copy(path);
        gb_cli_text_add(&part, "%s.part", file->target);
        file->part = part.data;
        errno = 0;
        file->stream = fopen(file->part, "w");
    }
    if (file->stream)
        return true;
    int error = errno;
    free(file->part);
    free(file->target);
    *file = (gb_new_file){0};
    return fail(error);
}

bool gb_cli_new_file_close(gb_new_file *file, bool good)
{
    good = good && !ferror(file->stream);
    good = fclose(file->stream) == 0 && good;
    good = good && (!file->part || rename(file->part, file->target) == 0);
    int error = errno;
    if (!good && file->part)
        unlink(file->part);
    free(file->part);
    free(file->target);
    *file = (gb_new_file){0};
    errno = error;
    return good;
}

bool gb_cli_new_file_can_be_made(const char *path)
{
    gb_new_file file;
    if (gb_cli_new_file_is_special(path))
        return true;
    if (!gb_cli_new_file_open(path, &file))
        return false;
    gb_cli_new_file_close(&file, false);
    return true;
}

/* It may be a link to nowhere: what was made is taken away, and not the link. */
static bool can_be_made(const char *path)
{
    FILE *file = fopen(path, "a");
    if (!file)
        return false;
    fclose(file);
    char *resolved = realpath(path, NULL);
    if (resolved)
        unlink(resolved);
    free(resolved);
    return true;
}

bool gb_cli_can_be_written(const char *path)
{
    if (gb_cli_new_file_is_special(path))
        return true;
    if (is_folder(path))
        return fail(EISDIR);
    return access(path, F_OK) == 0 ? access(path, W_OK) == 0 : can_be_made(path);
}

bool gb_cli_folder_can_be_written(const char *path)
{
    if (mkdir(path, 0777) == 0)
        return rmdir(path) == 0;
    if (errno != EEXIST)
        return false;
    return is_folder(path) ? access(path, W_OK | X_OK) == 0 : fail(ENOTDIR);
}
