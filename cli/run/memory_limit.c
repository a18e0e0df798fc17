/* How much memory the process may take. */
#include "cli/run/memory_limit.h"

#include "cli/options/text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number in a file; INFINITY without the file, or when it holds a word ("max"). */
static double read_limit(const char *path)
{
    char text[64], *end;
    FILE *file = fopen(path, "r");
    if (!file)
        return INFINITY;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    double limit = strtod(text, &end);
    return end == text || limit < 0 ? (double)INFINITY : limit;
}

/* The least limit of a group and those above it: `group` is cut one folder after the other. */
static double least_above(const char *mount, char *group, const char *file)
{
    double least = INFINITY;
    for (;;) {
        gb_text path = {0};
        gb_cli_text_add(&path, "%s%s/%s", mount, group, file);
        least = fmin(least, read_limit(path.data));
        gb_cli_text_free(&path);
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

/* A line HIERARCHY:CONTROLLERS:GROUP; version 2 has the hierarchy 0 and no controllers. */
static double limit_of_line(const char *root, char *line)
{
    char *controllers = strchr(line, ':'),
         *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return INFINITY;
    *controllers++ = *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    bool unified = !*controllers, of_memory = false;
    for (char *at = strtok(controllers, ","); at; at = strtok(NULL, ","))
        of_memory = of_memory || strcmp(at, "memory") == 0;
    if (!unified && !of_memory)
        return INFINITY;
    gb_text mount = {0};
    gb_cli_text_add(&mount, "%s/sys/fs/cgroup%s", root, unified ? "" : "/memory");
    double limit = least_above(mount.data, group, unified ? "memory.max" : "memory.limit_in_bytes");
    gb_cli_text_free(&mount);
    return limit;
}

double gb_cli_cgroup_limit(const char *root)
{
    double least = INFINITY;
    char line[4096];
    gb_text path = {0};
    gb_cli_text_add(&path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path.data, "r");
    gb_cli_text_free(&path);
    while (file && fgets(line, sizeof line, file))
        least = fmin(least, limit_of_line(root, line));
    if (file)
        fclose(file);
    return least;
}

double gb_cli_memory_limit(void)
{
    double least = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    least = fmin(least, gb_cli_cgroup_limit(""));
    const int resources[] = {RLIMIT_AS, RLIMIT_DATA};
    for (int i = 0; i < 2; i++) {
        struct rlimit limit;
        if (getrlimit(resources[i], &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
            least = fmin(least, (double)limit.rlim_cur);
    }
    return least;
}
