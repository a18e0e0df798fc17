/* Binaries of kernels on disk. A file is written under a name of its own and then renamed, so that
 * whoever reads finds the whole or nothing; its digest is checked all the same.
 *
 * GB_OPENCL_CACHE is the folder, or "off"; GB_OPENCL_CACHE_MB the most that it holds (256): the
 * files that were not used for longest go first. */
#include "base/environment.h"
#include "base/memory.h"
#include "kernels/opencl/program.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, DEFAULT_MB = 256 };

static const char suffix[] = ".clbin";

typedef struct file_head {
    char magic[8];
    uint64_t bytes;
    gb_digest contents;
} file_head;

static const char magic[8] = "gb-cl-1";

/* Makes the folder and those above it; false when there is to be no cache. */
static bool find_folder(char *folder)
{
    const char *wanted = getenv("GB_OPENCL_CACHE"), *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int n = -1;
    if (wanted && strcmp(wanted, "off") == 0)
        return false;
    if (wanted && *wanted)
        n = snprintf(folder, PATH_BYTES, "%s", wanted);
    else if (base && *base == '/')
        n = snprintf(folder, PATH_BYTES, "%s/graph-bench/opencl", base);
    else if (home && *home == '/')
        n = snprintf(folder, PATH_BYTES, "%s/.cache/graph-bench/opencl", home);
    if (n <= 0 || n >= PATH_BYTES - 128)
        return false;
    for (char *at = folder + 1; *at; at++)
        if (*at == '/') {
            *at = '\0';
            mkdir(folder, 0700);
            *at = '/';
        }
    return mkdir(folder, 0700) == 0 || errno == EEXIST;
}

bool gb_cl_cache_is_on(void)
{
    char folder[PATH_BYTES];
    return find_folder(folder);
}

static bool find_path(const gb_digest *key, char *path)
{
    if (!find_folder(path))
        return false;
    size_t n = strlen(path);
    snprintf(path + n, PATH_BYTES - n, "/%016llx%016llx%s", (unsigned long long)key->words[0],
            (unsigned long long)key->words[1], suffix);
    return true;
}

static void *read_file(FILE *file, size_t *bytes)
{
    file_head head;
    struct stat state;
    if (fread(&head, sizeof head, 1, file) != 1 || memcmp(head.magic, magic, sizeof magic) != 0 ||
            fstat(fileno(file), &state) != 0 ||
            (uint64_t)state.st_size != head.bytes + sizeof head || head.bytes == 0)
        return NULL;
    char *data = gb_calloc(1, head.bytes);
    if (data && fread(data, head.bytes, 1, file) == 1 &&
            gb_digest_equal(gb_digest_memory(data, head.bytes), head.contents)) {
        *bytes = head.bytes;
        return data;
    }
    free(data);
    return NULL;
}

void *gb_cl_cache_load(const gb_digest *key, size_t *bytes)
{
    char path[PATH_BYTES];
    if (!find_path(key, path))
        return NULL;
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    void *data = read_file(file, bytes);
    if (data)
        futimens(fileno(file), NULL); /* it was used now */
    fclose(file);
    return data;
}

void gb_cl_cache_drop(const gb_digest *key)
{
    char path[PATH_BYTES];
    if (find_path(key, path))
        unlink(path);
}

static bool is_ours(const char *name)
{
    size_t n = strlen(name);
    return n > sizeof suffix && strstr(name, suffix);
}

/* One file at a time, the one that was not used for longest, until the rest fits. */
static void trim(const char *folder)
{
    size_t most = DEFAULT_MB;
    const char *wanted = getenv("GB_OPENCL_CACHE_MB");
    if (wanted && *wanted &&
            !gb_environment_number("GB_OPENCL_CACHE_MB", wanted, strlen(wanted), &most))
        most = DEFAULT_MB;
    for (;;) {
        char path[PATH_BYTES], oldest[PATH_BYTES] = "";
        time_t age = 0;
        uint64_t bytes = 0;
        DIR *list = opendir(folder);
        if (!list)
            return;
        for (struct dirent *entry; (entry = readdir(list));) {
            struct stat state;
            int n = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            if (n <= 0 || n >= PATH_BYTES || !is_ours(entry->d_name) || stat(path, &state) != 0)
                continue;
            bytes += (uint64_t)state.st_size;
            if (!*oldest || state.st_mtime < age) {
                age = state.st_mtime;
                memcpy(oldest, path, sizeof oldest);
            }
        }
        closedir(list);
        if (bytes <= (uint64_t)most << 20 || !*oldest || unlink(oldest) != 0)
            return;
    }
}

void gb_cl_cache_store(const gb_digest *key, const void *data, size_t bytes)
{
    char path[PATH_BYTES], folder[PATH_BYTES], own[PATH_BYTES];
    file_head head = {.bytes = bytes, .contents = gb_digest_memory(data, bytes)};
    memcpy(head.magic, magic, sizeof magic);
    if (!find_folder(folder) || !find_path(key, path))
        return;
    int n = snprintf(own, sizeof own, "%s.XXXXXX", path);
    int file = n > 0 && n < PATH_BYTES ? mkstemp(own) : -1;
    if (file < 0)
        return;
    bool whole = write(file, &head, sizeof head) == (ssize_t)sizeof head &&
                 write(file, data, bytes) == (ssize_t)bytes;
    whole = close(file) == 0 && whole;
    if (!whole || rename(own, path) != 0)
        unlink(own);
    trim(folder);
}
