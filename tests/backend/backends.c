/* The list of backends of test programs, in place of lib/backends.c. */
#include "backend/test_device.h"

extern const gb_backend gb_cpu_backend;

const gb_backend *const gb_backends[] = {&gb_cpu_backend, &gb_test_backend, NULL};
