/* Models of PyTorch as cases: archives of torch.export. */
#ifndef GB_CLI_CASE_MODEL_H
#define GB_CLI_CASE_MODEL_H

#include "cli/case/case.h"

#include <stdbool.h>

/* Is the file one by its name (.pt2)? */
bool gb_cli_is_model(const char *path);
/* Reads the graph of what the bridge maps, with the contents of weights, and notes in
 * `test->outside` what it does not. */
gb_status gb_cli_model_load(gb_case *test);

#endif
