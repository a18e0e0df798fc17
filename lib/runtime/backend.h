/* What an engine is made of: one struct of functions behind which CPU and OpenCL differ. */
#ifndef GB_RUNTIME_BACKEND_H
#define GB_RUNTIME_BACKEND_H

#include "runtime/program.h"

typedef struct gb_backend {
    const char *name;
    gb_engine_kind kind;
    size_t (*device_count)(void);
    /* Writes what the device is, for reports. */
    void (*describe)(size_t index, char *text, size_t bytes);
    /* What its kernels are built for ("avx512"); static. */
    const char *(*variant)(void);
    gb_capability capability;
    /* Adds the steps of one group to the program. GB_UNIMPLEMENTED with the op named when there is
     * no kernel. */
    gb_status (*lower)(gb_program *program, const gb_group *group);
} gb_backend;

/* All backends, ended by NULL (lib/backends.c). */
extern const gb_backend *const gb_backends[];

#endif
