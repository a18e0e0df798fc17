/* Lines on partitions, compilations and executions, for who asks (GB_VERBOSE). */
#ifndef GB_RUNTIME_REPORT_H
#define GB_RUNTIME_REPORT_H

#include "runtime/compiled.h"

/* "Kind:name;Kind;...", without the names that ops do not have; the caller's. NULL: no memory. */
char *gb_ops_text(const gb_graph *graph);

void gb_report_partition(const gb_partition *partition);
/* Times are in nanoseconds. */
void gb_report_compilation(const gb_compiled_partition *compiled, bool was_cached, int64_t time);
void gb_report_constants(const gb_compiled_partition *compiled, int64_t time);
void gb_report_execution(
        const gb_compiled_partition *compiled, const gb_tensor *scratchpad, int64_t time);

#endif
