/* OpenCL devices of all platforms: those of a graphics processor first, then accelerators, then
 * CPUs, each in the order of platforms. */
#ifndef GB_KERNELS_OPENCL_DEVICE_H
#define GB_KERNELS_OPENCL_DEVICE_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <graphbench/graphbench.h>
#include <stdbool.h>

/* What kernels are shaped by. */
typedef struct gb_cl_device {
    cl_platform_id platform;
    cl_device_id id;
    cl_device_type type;
    char name[96], driver[160], platform_name[96];
    unsigned units;         /* compute units */
    size_t group_size;      /* most work-items of a group */
    size_t parameter_bytes; /* of the arguments of a kernel */
    size_t local_bytes;     /* of local memory */
    bool exact_division, fma, unified_shared_memory, has_local_memory; /* of its own */
    cl_device_svm_capabilities svm;                                    /* 0: none */
    size_t alignment;                                                  /* bytes */
} gb_cl_device;

/* "what: NAME_OF_ERROR (number)" as a status of the library. */
gb_status gb_cl_fail(cl_int error, const char *what);
#define GB_CL_TRY(call, what)                                                                      \
    do {                                                                                           \
        cl_int gb_cl_try_error_ = (call);                                                          \
        if (gb_cl_try_error_ != CL_SUCCESS)                                                        \
            return gb_cl_fail(gb_cl_try_error_, what);                                             \
    } while (0)

/* Devices are looked for once. GB_OPENCL_DEVICE, an index or a part of a name, leaves only those
 * that it names. */
size_t gb_cl_device_count(void);
/* NULL: there is no such device. Static. */
const gb_cl_device *gb_cl_device_at(size_t index);
/* Describes a device of the application's. */
gb_status gb_cl_device_read(cl_device_id id, gb_cl_device *device);
void gb_cl_device_describe(const gb_cl_device *device, char *text, size_t bytes);

#endif
