/* Where the case is that this process runs. */
#include "cli/run/stage.h"

#include <stdio.h>

static gb_stage *shared;

void gb_cli_stage_share(gb_stage *stage)
{
    shared = stage;
}

void gb_cli_stage_begin(void)
{
    if (shared)
        shared->begun = true;
}

void gb_cli_stage_enter(gb_phase phase, const char *what)
{
    if (!shared)
        return;
    shared->phase = (int)phase;
    snprintf(shared->what, sizeof shared->what, "%s", what ? what : "");
}

void gb_cli_stage_set_seed(int64_t seed)
{
    if (shared)
        shared->seed = seed;
}

const char *gb_cli_phase_name(gb_phase phase)
{
    static const char *const names[PHASE_COUNT] = {
            "load", "partition", "compile", "fill", "reference", "execute", "compare", "measure"};
    return names[phase];
}
