/* The best probes of a machine, in a file. */
#include "cli/run/known_machine.h"

#include "cli/options/text.h"
#include "cli/run/machine.h"
#include "cli/run/measure.h"
#include "cli/run/roof.h"

#include <json-c/json.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const double kept_seconds = 24 * 60 * 60;

/* The path, and the folders above it made; NULL: nothing is kept. The caller's. */
static char *find_file(void)
{
    const char *wanted = getenv("GB_MACHINE_CACHE"), *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    struct utsname system;
    gb_text path = {0};
    if (wanted && *wanted)
        return strcmp(wanted, "off") == 0 ? NULL : gb_cli_copy(wanted);
    if (uname(&system) != 0)
        return NULL;
    if (base && *base == '/')
        gb_cli_text_add(&path, "%s", base);
    else if (home && *home == '/')
        gb_cli_text_add(&path, "%s/.cache", home);
    else
        return NULL;
    gb_cli_text_add(&path, "/graph-bench/machine-%s.json", system.nodename);
    for (char *at = path.data + 1; *at; at++)
        if (*at == '/') {
            *at = '\0';
            mkdir(path.data, 0700);
            *at = '/';
        }
    return path.data;
}

/* Names this start of the machine; the caller's, NULL: not known. */
static char *boot_name(void)
{
    char name[64];
    bool read = gb_cli_first_line("/proc/sys/kernel/random/boot_id", name, sizeof name);
    return read && *name ? gb_cli_copy(name) : NULL;
}

/* Probes of other threads, or on other processors, are others. */
static char *entry_name(int threads)
{
    char *allowed = gb_cli_system_value("/proc/self/status", "Cpus_allowed_list");
    gb_text name = {0};
    gb_cli_text_add(&name, "%d on %s", threads, allowed ? allowed : "all");
    free(allowed);
    return name.data;
}

/* The document of this start of the machine; an empty one if the file has none. */
static json_object *read_document(const char *path, const char *boot)
{
    json_object *document = json_object_from_file(path), *held;
    if (json_object_is_type(document, json_type_object) &&
            json_object_object_get_ex(document, "boot", &held) &&
            json_object_is_type(held, json_type_string) &&
            strcmp(json_object_get_string(held), boot) == 0)
        return document;
    json_object_put(document);
    document = json_object_new_object();
    json_object_object_add(document, "boot", json_object_new_string(boot));
    return document;
}

static double number_of(json_object *entry, const char *key)
{
    double value = json_object_get_double(json_object_object_get(entry, key));
    return isfinite(value) && value > 0 ? value : 0;
}

/* All zero: none, or one that is too old. */
static gb_rates kept_rates(json_object *document, const char *name)
{
    json_object *entry = json_object_object_get(document, name);
    if (!json_object_is_type(entry, json_type_object))
        return (gb_rates){0};
    double age = (double)time(NULL) - number_of(entry, "time");
    if (age < 0 || age > kept_seconds)
        return (gb_rates){0};
    return (gb_rates){number_of(entry, "flops"), number_of(entry, "l1"),
            number_of(entry, "handshakes"), number_of(entry, "clock")};
}

static void keep(json_object *document, const char *name, gb_rates rates)
{
    json_object *entry = json_object_new_object();
    json_object_object_add(entry, "time", json_object_new_int64(time(NULL)));
    json_object_object_add(entry, "flops", json_object_new_double(rates.flops));
    json_object_object_add(entry, "l1", json_object_new_double(rates.l1));
    json_object_object_add(entry, "handshakes", json_object_new_double(rates.handshakes));
    json_object_object_add(entry, "clock", json_object_new_double(rates.clock));
    json_object_object_add(document, name, entry);
}

/* Another run never reads half a file. */
static void write_document(json_object *document, const char *path)
{
    gb_text other = {0};
    gb_cli_text_add(&other, "%s.%ld", path, (long)getpid());
    if (json_object_to_file_ext(other.data, document, JSON_C_TO_STRING_PRETTY) != 0 ||
            rename(other.data, path) != 0)
        unlink(other.data);
    gb_cli_text_free(&other);
}

static bool is_better(gb_rates a, gb_rates b)
{
    return a.flops > b.flops || a.l1 > b.l1 || a.handshakes > b.handshakes || a.clock > b.clock;
}

static void use_file(int threads, bool remember)
{
    char *path = find_file(), *boot = path ? boot_name() : NULL;
    if (boot) {
        char *name = entry_name(threads);
        json_object *document = read_document(path, boot);
        gb_rates kept = kept_rates(document, name), best = gb_cli_probe_best();
        if (!remember) {
            gb_cli_probe_note(kept);
        } else if (is_better(best, kept)) {
            keep(document, name, gb_cli_rates_max(best, kept));
            write_document(document, path);
        }
        json_object_put(document);
        free(name);
    }
    free(boot);
    free(path);
}

void gb_cli_known_machine_recall(int threads)
{
    use_file(threads, false);
}

void gb_cli_known_machine_remember(int threads)
{
    use_file(threads, true);
}
