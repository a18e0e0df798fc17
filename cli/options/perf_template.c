/* Reading --perf-template. */
#include "cli/options/perf_template.h"

#include "cli/options/message.h"

#include <string.h>

static const char *const names[] = {[PERF_LITERAL] = NULL,
        [PERF_BW] = "bw",
        [PERF_CTIME] = "ctime",
        [PERF_DESC] = "desc",
        [PERF_DRIVER] = "driver",
        [PERF_ENGINE] = "engine",
        [PERF_FLOPS] = "flops",
        [PERF_IDX] = "idx",
        [PERF_IMPL] = "impl",
        [PERF_IOBYTES] = "iobytes",
        [PERF_OPS] = "ops",
        [PERF_PRB] = "prb",
        [PERF_TIME] = "time"};
enum { TOKENS = sizeof names / sizeof names[0] };

const char *gb_cli_perf_template_text(const char *value)
{
    if (strcmp(value, "def") == 0)
        return "perf,%engine%,%prb%,%-time%,%0time%";
    if (strcmp(value, "csv") == 0)
        return "perf,%engine%,%desc%,%-time%,%0time%";
    return value;
}

gb_status gb_cli_perf_template_next(const char **at, gb_perf_part *part)
{
    *part = (gb_perf_part){.unit = 1, .text = *at};
    if (**at != '%') {
        part->length = strcspn(*at, "%");
        *at += part->length;
        return GB_SUCCESS;
    }
    const char *name = *at + 1, *end = strchr(name, '%');
    if (!end)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "\"%.40s\" lacks its second percent sign", *at);
    static const char units[] = "KMG";
    if (*name && strchr("-0+", *name))
        part->mode = *name++;
    const char *unit = *name ? strchr(units, *name) : NULL;
    for (const char *u = units; unit && u <= unit; u++)
        part->unit *= 1e3;
    name += unit != NULL;
    part->text = name;
    part->length = (size_t)(end - name);
    for (int token = 1; token < TOKENS; token++)
        if (strlen(names[token]) == part->length && strncmp(names[token], name, part->length) == 0)
            part->token = (gb_perf_token)token;
    if (part->token == PERF_LITERAL)
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "\"%.*s\" is none of bw, ctime, desc, driver, engine, flops, idx, impl, iobytes, "
                "ops, prb, time",
                (int)part->length, name);
    *at = end + 1;
    return GB_SUCCESS;
}
