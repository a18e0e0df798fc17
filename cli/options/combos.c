/* Every combination of the alternatives of the list options: an odometer. */
#include "cli/options/combos.h"

/* What cases of batch files must have unless it is said otherwise: they were written for it. */
static char one[] = "1";
static const gb_alternative one_partition = {.text = one, .number = 1};

void gb_cli_combo_get(const gb_settings *settings, const gb_combo *combo,
        const gb_alternative *choice[AXIS_COUNT])
{
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        choice[axis] = &settings->axes[axis].items[combo->digits[axis]];
    if (settings->in_batch && choice[AXIS_EXPECTED_N_PARTITIONS]->number < 0)
        choice[AXIS_EXPECTED_N_PARTITIONS] = &one_partition;
}

bool gb_cli_combo_next(const gb_settings *settings, gb_combo *combo)
{
    for (int axis = AXIS_COUNT - 1; axis >= 0; axis--) {
        if (++combo->digits[axis] < settings->axes[axis].count)
            return true;
        combo->digits[axis] = 0;
    }
    return false;
}
