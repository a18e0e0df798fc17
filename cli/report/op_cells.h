/* The table of --list-ops: which data types each op runs with, found by running them. */
#ifndef GB_CLI_REPORT_OP_CELLS_H
#define GB_CLI_REPORT_OP_CELLS_H

#include "cli/run/run.h"

#include <graphbench/graphbench_tools.h>

/* Runs every sample op (gb_op_sample_create()) on the engine of the settings, compares it with the
 * reference and writes the result to stdout in Markdown. *all_ran: there was no cell that does not
 * run. */
gb_status gb_cli_write_op_cells(gb_session *session, const gb_settings *settings, bool *all_ran);

#endif
