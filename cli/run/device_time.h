/* What an OpenCL device says of itself, for builds with OpenCL and cases on such an engine. */
#ifndef GB_CLI_RUN_DEVICE_TIME_H
#define GB_CLI_RUN_DEVICE_TIME_H

#include "cli/run/workload.h"

/* Executes the partition some times more, for about `budget_ns`, and keeps in its result the shortest
 * time between the start of its first kernel and the end of its last by the device's clock. */
gb_status gb_cli_device_measure(const gb_workload *work, gb_work_part *part, int64_t budget_ns);

/* Static: "usm", "svm" or "buffer". */
const char *gb_cli_device_memory_kind(const gb_session *session);

#endif
