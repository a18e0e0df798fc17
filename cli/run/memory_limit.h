/* How much memory the process may take. */
#ifndef GB_CLI_MEMORY_LIMIT_H
#define GB_CLI_MEMORY_LIMIT_H

/* The least, in bytes, of the machine's memory, the limits of the process' control group and of
 * those above it (version 1 and 2), and the limits of its address space and data. */
double gb_cli_memory_limit(void);
/* That of the control groups alone, INFINITY without any. `root` stands before /proc/self/cgroup
 * and /sys/fs/cgroup ("": the system's own). */
double gb_cli_cgroup_limit(const char *root);

#endif
