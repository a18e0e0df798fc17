/* Calls a fuzz target with the files named and those of the folders named, without libFuzzer.
 * Usage: fuzz_TARGET FILE|FOLDER... */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t n_files;

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "error: cannot open %s: %s\n", path, strerror(errno));
        return 1;
    }
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    /* Of exactly this size, so that reading beyond the end is seen by a sanitizer. */
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    bool whole = data && size >= 0 && fread(data, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    if (whole) {
        /* Before the call: what ends the process is to be known. */
        printf("%s\n", path);
        fflush(stdout);
        LLVMFuzzerTestOneInput(data, (size_t)size);
        n_files++;
    }
    free(data);
    return whole ? 0 : 1;
}

static int replay_folder(DIR *folder, const char *name)
{
    int failures = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", name, entry->d_name);
        failures += replay_file(path);
    }
    return failures;
}

int main(int argc, char **argv)
{
    int failures = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        failures += folder ? replay_folder(folder, argv[i]) : replay_file(argv[i]);
        if (folder)
            closedir(folder);
    }
    printf("%zu inputs\n", n_files);
    return failures || n_files == 0;
}
