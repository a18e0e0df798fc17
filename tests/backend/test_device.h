/* A backend without a device, which holds the runtime to its boundary as a device would: memory
 * that no host pointer reaches unless it is mapped, and a queue that runs later, in another order,
 * on another thread. Its kernels are the CPU's. */
#ifndef GB_TESTS_BACKEND_TEST_DEVICE_H
#define GB_TESTS_BACKEND_TEST_DEVICE_H

#include "runtime/runtime.h"

extern const gb_backend gb_test_backend;

/* Nothing that is executed starts until it is let go again. */
void gb_test_device_hold(gb_engine *engine, bool hold);
/* But for so many runs. */
void gb_test_device_let(gb_engine *engine, int count);
/* The next `count` runs that start fail. */
void gb_test_device_fail(gb_engine *engine, int count);
/* The next call of execute() is refused. */
void gb_test_device_refuse(gb_engine *engine);
/* Memory objects that somebody holds. */
size_t gb_test_device_objects(gb_engine *engine);
/* Programs that were finished since the start of the process. */
size_t gb_test_device_finished(void);

#endif
