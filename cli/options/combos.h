/* Every combination of the alternatives of the list options, outermost axis slowest. */
#ifndef GB_CLI_OPTIONS_COMBOS_H
#define GB_CLI_OPTIONS_COMBOS_H

#include "cli/options/settings.h"

typedef struct gb_combo {
    size_t digits[AXIS_COUNT]; /* all zero: the first combination */
} gb_combo;

/* The alternatives of a combination, lent by the settings. Where a batch file does not say how many
 * partitions a case must have, that is one. */
void gb_cli_combo_get(const gb_settings *settings, const gb_combo *combo,
        const gb_alternative *choice[AXIS_COUNT]);
/* Steps to the next combination; false when there is none. */
bool gb_cli_combo_next(const gb_settings *settings, gb_combo *combo);

#endif
