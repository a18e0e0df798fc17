/* The list of backends. */
#include "runtime/backend.h"

extern const gb_backend gb_cpu_backend;
#ifdef GB_HAS_OPENCL
extern const gb_backend gb_opencl_backend;
#endif

const gb_backend *const gb_backends[] = {&gb_cpu_backend,
#ifdef GB_HAS_OPENCL
        &gb_opencl_backend,
#endif
        NULL};
