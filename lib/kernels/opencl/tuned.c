/* The shape of a device's kernels. docs/opencl.md tells how a row of the table comes about. */
#include "base/environment.h"
#include "base/memory.h"
#include "base/verbose.h"
#include "kernels/opencl/program.h"
#include "kernels/opencl/shape.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Version of what is kept on disk: what other sources or another search found is not used. */
static const char version[] = "shape 1";

/* Devices that were measured: what differs from the rules. Of several rows for a device the first one
 * counts. */
static const struct {
    cl_device_type type;
    const char *platform, *name; /* parts of them; "": any */
    const char *shape;
} table[] = {
        {CL_DEVICE_TYPE_CPU, "Intel(R) OpenCL", "", "attention_rows=48,attention_keys=128"},
        {CL_DEVICE_TYPE_CPU, "Portable Computing Language", "", "attention_keys=128"},
};

/* CPUs run a group as a loop, and like tiles of a product as wide as their vectors, with operands in
 * memory that is cached; graphics processors hide latency by many small work-items, which share blocks
 * of the operands in local memory where that is memory of its own. */
static gb_cl_shape shape_by_rule(const gb_cl_device *device)
{
    enum { MOST_UNITS = 4095, GROUP = 256, SMALL_GROUP = 4, LOCAL_BYTES = 16384 };
    int units = device->units < MOST_UNITS ? (int)device->units : MOST_UNITS;
    gb_cl_shape shape = {.is_cpu = (device->type & CL_DEVICE_TYPE_CPU) != 0, .units = units};
    shape.local_size = shape.is_cpu ? 64 : GROUP;
    while (shape.local_size > 1 && (size_t)shape.local_size > device->group_size)
        shape.local_size /= 2;
    shape.attention_tile = 4;
    if (shape.is_cpu) {
        shape.tile_rows = 6;
        shape.lanes = 16;
        shape.row_tiles = 16;
        shape.column_tiles = 8;
        shape.depth = 256;
        shape.items = 4;
        shape.attention_rows = 32;
        shape.attention_keys = 64;
        return shape;
    }
    bool large = device->group_size >= GROUP;
    shape.local_memory = large && device->has_local_memory && device->local_bytes >= LOCAL_BYTES;
    shape.tile_rows = shape.lanes = shape.attention_rows = 4;
    shape.row_tiles = shape.column_tiles = large ? 16 : device->group_size >= SMALL_GROUP ? 2 : 1;
    shape.depth = 16;
    shape.items = 1;
    shape.attention_keys = 16;
    return shape;
}

static void apply_table(const gb_cl_device *device, gb_cl_shape *shape)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if ((device->type & table[i].type) && strstr(device->platform_name, table[i].platform) &&
                strstr(device->name, table[i].name)) {
            gb_cl_shape_read(shape, device, table[i].shape, strlen(table[i].shape));
            return;
        }
}

static gb_digest key_of(const gb_cl_device *device)
{
    return gb_digest_join(gb_cl_device_digest(device), gb_digest_memory(version, sizeof version));
}

bool gb_cl_shape_load(const gb_cl_device *device, gb_cl_shape *shape)
{
    gb_digest key = key_of(device);
    size_t bytes;
    char *text = gb_cl_cache_load(&key, &bytes);
    int units = shape->units; /* may have been others then */
    bool usable = text && gb_cl_shape_read(shape, device, text, bytes);
    shape->units = units;
    free(text);
    return usable;
}

void gb_cl_shape_store(const gb_cl_device *device, const gb_cl_shape *shape)
{
    char text[GB_CL_SHAPE_TEXT];
    gb_digest key = key_of(device);
    gb_cl_shape_print(shape, text, sizeof text);
    gb_cl_cache_store(&key, text, strlen(text));
}

/* For tables in the making, and tests. */
static void apply_environment(const gb_cl_device *device, gb_cl_shape *shape)
{
    const char *wanted = getenv("GB_OPENCL_SHAPE");
    if (wanted && !gb_cl_shape_read(shape, device, wanted, strlen(wanted)))
        gb_environment_complain("GB_OPENCL_SHAPE", wanted, strlen(wanted),
                "pairs NAME=NUMBER with commas between; docs/opencl.md lists them");
}

static bool is_to_tune(void)
{
    const char *wanted = getenv("GB_OPENCL_TUNE");
    if (!wanted || !*wanted || strcmp(wanted, "0") == 0)
        return false;
    if (strcmp(wanted, "1") == 0)
        return true;
    gb_environment_complain("GB_OPENCL_TUNE", wanted, strlen(wanted), "0 or 1");
    return false;
}

/* Devices that this process has searched for, and for how long. */
enum { MOST_TUNED = 64, MOST_SECONDS = 180 };
static struct {
    pthread_mutex_t lock;
    size_t n;
    struct {
        gb_digest key;
        gb_cl_shape shape;
    } list[MOST_TUNED];
} tuned = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The search makes an engine itself, on the same thread, whose shapes it chooses. */
static _Thread_local bool is_searching;

/* Once for a device; who asks meanwhile waits. */
static void tune(const gb_cl_device *device, gb_cl_shape *shape)
{
    gb_digest key = key_of(device);
    size_t i = 0;
    pthread_mutex_lock(&tuned.lock);
    while (i < tuned.n && !gb_digest_equal(tuned.list[i].key, key))
        i++;
    if (i < tuned.n) {
        *shape = tuned.list[i].shape;
    } else if (i < MOST_TUNED) {
        is_searching = true;
        gb_cl_shape_search(device, shape, MOST_SECONDS);
        is_searching = false;
        gb_cl_shape_store(device, shape);
        tuned.list[i].key = key;
        tuned.list[i].shape = *shape;
        tuned.n++;
    }
    pthread_mutex_unlock(&tuned.lock);
}

gb_cl_shape gb_cl_shape_choose(const gb_cl_device *device)
{
    gb_cl_shape shape = shape_by_rule(device);
    apply_table(device, &shape);
    if (is_searching)
        return shape;
    if (is_to_tune())
        tune(device, &shape);
    else
        gb_cl_shape_load(device, &shape);
    apply_environment(device, &shape);
    return shape;
}
