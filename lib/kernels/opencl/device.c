/* Finding and describing OpenCL devices. */
#include "kernels/opencl/device.h"

#include "base/environment.h"
#include "base/memory.h"
#include "base/status.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 64, MOST_PLATFORMS = 32 };

static struct {
    pthread_once_t once;
    size_t n;
    gb_cl_device list[MOST_DEVICES];
} devices = {.once = PTHREAD_ONCE_INIT};

gb_status gb_cl_fail(cl_int error, const char *what)
{
    static const struct {
        cl_int error;
        const char *name;
    } names[] = {
            {CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND"},
            {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
            {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
            {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
            {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
            {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
            {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
                    "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
            {CL_INVALID_VALUE, "CL_INVALID_VALUE"},
            {CL_INVALID_CONTEXT, "CL_INVALID_CONTEXT"},
            {CL_INVALID_MEM_OBJECT, "CL_INVALID_MEM_OBJECT"},
            {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
            {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
            {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
    };
    const char *name = "error";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].error == error)
            name = names[i].name;
    bool memory = error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_HOST_MEMORY ||
                  error == CL_INVALID_BUFFER_SIZE;
    return gb_fail(
            memory ? GB_OUT_OF_MEMORY : GB_RUNTIME_ERROR, "OpenCL, %s: %s (%d)", what, name, error);
}

static void read_text(cl_device_id id, cl_device_info what, char *text, size_t bytes)
{
    char read[1024] = "";
    if (clGetDeviceInfo(id, what, sizeof read - 1, read, NULL) != CL_SUCCESS)
        read[0] = '\0';
    snprintf(text, bytes, "%s", read);
}

/* A property of up to 8 bytes; 0 where the device does not know it. */
static cl_ulong read_number(cl_device_id id, cl_device_info what, size_t bytes)
{
    cl_uint narrow = 0;
    cl_ulong wide = 0;
    void *place = bytes == sizeof narrow ? (void *)&narrow : (void *)&wide;
    if (clGetDeviceInfo(id, what, bytes, place, NULL) != CL_SUCCESS)
        return 0;
    return bytes == sizeof narrow ? narrow : wide;
}

gb_status gb_cl_device_read(cl_device_id id, gb_cl_device *device)
{
    char version[64], extensions[8192] = "";
    *device = (gb_cl_device){.id = id};
    GB_CL_TRY(clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof device->type, &device->type, NULL),
            "a device's type");
    GB_CL_TRY(clGetDeviceInfo(
                      id, CL_DEVICE_PLATFORM, sizeof device->platform, &device->platform, NULL),
            "a device's platform");
    read_text(id, CL_DEVICE_NAME, device->name, sizeof device->name);
    if (clGetPlatformInfo(device->platform, CL_PLATFORM_NAME, sizeof device->platform_name - 1,
                device->platform_name, NULL) != CL_SUCCESS)
        device->platform_name[0] = '\0';
    read_text(id, CL_DEVICE_VERSION, version, sizeof version);
    read_text(id, CL_DRIVER_VERSION, device->driver, sizeof device->driver - sizeof version - 2);
    size_t length = strlen(device->driver);
    snprintf(device->driver + length, sizeof device->driver - length, ", %s", version);
    clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, sizeof extensions - 1, extensions, NULL);
    cl_ulong floats = read_number(id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof(cl_device_fp_config));
    device->exact_division = floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    device->fma = floats & CL_FP_FMA;
    device->unified_shared_memory = strstr(extensions, "cl_intel_unified_shared_memory");
    device->svm = read_number(id, CL_DEVICE_SVM_CAPABILITIES, sizeof(cl_device_svm_capabilities));
    device->alignment = (size_t)read_number(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(cl_uint)) / 8;
    device->parameter_bytes = (size_t)read_number(id, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof(size_t));
    device->units = (unsigned)read_number(id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(cl_uint));
    device->group_size = (size_t)read_number(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
    device->has_local_memory =
            read_number(id, CL_DEVICE_LOCAL_MEM_TYPE, sizeof(cl_device_local_mem_type)) == CL_LOCAL;
    device->local_bytes = (size_t)read_number(id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(cl_ulong));
    return device->parameter_bytes && device->units && device->group_size
                   ? GB_SUCCESS
                   : gb_fail(GB_RUNTIME_ERROR, "OpenCL, a device does not say how large it is");
}

static int rank(const gb_cl_device *device)
{
    if (device->type & CL_DEVICE_TYPE_GPU)
        return 0;
    return device->type & CL_DEVICE_TYPE_CPU ? 2 : 1;
}

static bool is_usable(cl_device_id id)
{
    return read_number(id, CL_DEVICE_AVAILABLE, sizeof(cl_bool)) &&
           read_number(id, CL_DEVICE_COMPILER_AVAILABLE, sizeof(cl_bool)) &&
           read_number(id, CL_DEVICE_ENDIAN_LITTLE, sizeof(cl_bool));
}

static void add_platform(cl_platform_id platform)
{
    cl_device_id ids[MOST_DEVICES];
    cl_uint n = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MOST_DEVICES, ids, &n) != CL_SUCCESS)
        return;
    for (cl_uint i = 0; i < n && i < MOST_DEVICES && devices.n < MOST_DEVICES; i++) {
        gb_cl_device device;
        if (!is_usable(ids[i]) || gb_cl_device_read(ids[i], &device) != GB_SUCCESS)
            continue;
        size_t at = devices.n++;
        for (; at > 0 && rank(&devices.list[at - 1]) > rank(&device); at--)
            devices.list[at] = devices.list[at - 1];
        devices.list[at] = device;
    }
}

/* Leaves what GB_OPENCL_DEVICE names. */
static void choose(const char *wanted)
{
    size_t index, kept = 0, length = strlen(wanted);
    bool digits = strspn(wanted, "0123456789") == length;
    if (digits && !gb_environment_number("GB_OPENCL_DEVICE", wanted, length, &index))
        return;
    for (size_t i = 0; i < devices.n; i++)
        if (digits ? i == index : strstr(devices.list[i].name, wanted) != NULL)
            devices.list[kept++] = devices.list[i];
    if (kept == 0)
        gb_environment_complain(
                "GB_OPENCL_DEVICE", wanted, length, "an index or a part of the name of a device");
    devices.n = kept;
}

static void find(void)
{
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_uint n = 0;
    if (clGetPlatformIDs(MOST_PLATFORMS, platforms, &n) != CL_SUCCESS)
        return;
    for (cl_uint i = 0; i < n && i < MOST_PLATFORMS; i++)
        add_platform(platforms[i]);
    const char *wanted = getenv("GB_OPENCL_DEVICE");
    if (wanted && *wanted)
        choose(wanted);
}

size_t gb_cl_device_count(void)
{
    pthread_once(&devices.once, find);
    return devices.n;
}

const gb_cl_device *gb_cl_device_at(size_t index)
{
    return index < gb_cl_device_count() ? &devices.list[index] : NULL;
}

void gb_cl_device_describe(const gb_cl_device *device, char *text, size_t bytes)
{
    snprintf(text, bytes, "opencl, %s, driver %s", device->name, device->driver);
}
