/* The list of backends. */
#include "runtime/backend.h"

extern const gb_backend gb_cpu_backend;

const gb_backend *const gb_backends[] = {&gb_cpu_backend, NULL};
