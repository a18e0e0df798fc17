/* The roofs of an OpenCL device, by its own clock. */
#include "cli/run/roof.h"

#include <graphbench/graphbench_ocl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

extern const char gb_cli_cl_roof_opencl[];

enum { ROUNDS = 8, STEPS = 2048, CHAINS = 8, LANES_BYTES = 64 };
enum { STREAM_BYTES = 16 * 32 }; /* that a work-item takes of an array: BLOCK of roof_opencl.cl */

/* Ways to go over memory, the kernels of these names; the fastest counts. */
static const struct {
    const char *kernel;
    int arrays; /* that are moved */
} streams[] = {{"stream_update", 3}, {"stream_copy", 2}, {"stream_read", 1}};

typedef struct roof_device {
    gb_engine *engine;
    gb_stream *stream;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    size_t items;        /* that fill the device */
    size_t stream_bytes; /* of each array */
} roof_device;

static cl_ulong number_of(const roof_device *d, cl_device_info what)
{
    cl_ulong value = 0;
    clGetDeviceInfo(d->id, what, sizeof value, &value, NULL);
    return value;
}

static bool open_device(roof_device *d, size_t index)
{
    cl_int error = 0;
    cl_uint units = 1;
    cl_device_type type = 0;
    if (gb_ocl_engine_create(&d->engine, index, GB_OCL_MEMORY_BUFFER) != GB_SUCCESS ||
            gb_ocl_stream_create(&d->stream, d->engine, GB_OCL_STREAM_IN_ORDER) != GB_SUCCESS ||
            gb_ocl_engine_get_device(d->engine, &d->id) != GB_SUCCESS ||
            gb_ocl_engine_get_context(d->engine, &d->context) != GB_SUCCESS ||
            gb_ocl_stream_get_queue(d->stream, &d->queue) != GB_SUCCESS)
        return false;
    clGetDeviceInfo(d->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    clGetDeviceInfo(d->id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    d->items = (size_t)units * (type & CL_DEVICE_TYPE_CPU ? 64 : 2048);
    cl_ulong most = number_of(d, CL_DEVICE_MAX_MEM_ALLOC_SIZE), wanted = 192U << 20;
    most = most < number_of(d, CL_DEVICE_GLOBAL_MEM_SIZE) / 4
                   ? most
                   : number_of(d, CL_DEVICE_GLOBAL_MEM_SIZE) / 4;
    d->stream_bytes = (size_t)(most < wanted ? most : wanted) / 4096 * 4096;
    const char *text[] = {
            type & CL_DEVICE_TYPE_CPU ? "#define GB_CPU\n" : "", gb_cli_cl_roof_opencl};
    char version[64] = "";
    clGetDeviceInfo(d->id, CL_DEVICE_OPENCL_C_VERSION, sizeof version, version, NULL);
    d->program = clCreateProgramWithSource(d->context, 2, text, NULL, &error);
    return d->program &&
           clBuildProgram(d->program, 1, &d->id,
                   strncmp(version, "OpenCL C 3", 10) == 0 ? "-cl-std=CL3.0 -w" : "-w", NULL,
                   NULL) == CL_SUCCESS;
}

static void close_device(roof_device *d)
{
    if (d->program)
        clReleaseProgram(d->program);
    gb_stream_destroy(d->stream);
    gb_engine_destroy(d->engine);
}

/* Shortest time of some launches, in seconds; 0 when one fails. */
static double shortest(const roof_device *d, cl_kernel kernel, size_t items)
{
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        cl_event event;
        cl_ulong begin = 0, end = 0;
        if (clEnqueueNDRangeKernel(d->queue, kernel, 1, NULL, &items, NULL, 0, NULL, &event) !=
                CL_SUCCESS)
            return 0;
        clWaitForEvents(1, &event);
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, NULL);
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
        clReleaseEvent(event);
        double seconds = (double)(end - begin) * 1e-9;
        if (end > begin && (best <= 0 || seconds < best))
            best = seconds;
    }
    return best;
}

/* Operations per second of the kernels whose names begin with `prefix`, the best of them; 0 when the
 * device has none. */
static double peak(const roof_device *d, const char *prefix, size_t element, double operations)
{
    static const int widths[] = {1, 2, 4, 8, 16};
    double best = 0;
    cl_int error;
    cl_mem out = clCreateBuffer(d->context, 0, d->items * LANES_BYTES, NULL, &error);
    for (size_t w = 0; out && w < sizeof widths / sizeof *widths; w++) {
        char name[32];
        unsigned char zeros[LANES_BYTES] = {0};
        cl_int steps = STEPS;
        snprintf(name, sizeof name, "%s_%d", prefix, widths[w]);
        cl_kernel kernel = clCreateKernel(d->program, name, &error);
        if (!kernel)
            continue;
        size_t bytes = element * (size_t)widths[w];
        clSetKernelArg(kernel, 0, sizeof(cl_mem), &out);
        clSetKernelArg(kernel, 1, bytes, zeros);
        clSetKernelArg(kernel, 2, bytes, zeros);
        clSetKernelArg(kernel, 3, sizeof steps, &steps);
        double seconds = shortest(d, kernel, d->items);
        double work = operations * widths[w] * CHAINS * STEPS * (double)d->items;
        if (seconds > 0 && work / seconds > best)
            best = work / seconds;
        clReleaseKernel(kernel);
    }
    if (out)
        clReleaseMemObject(out);
    return best;
}

static double stream_rate(const roof_device *d)
{
    static const float one = 1;
    cl_int error;
    double rate = 0;
    cl_mem arrays[2];
    for (int i = 0; i < 2; i++) {
        arrays[i] = clCreateBuffer(d->context, 0, d->stream_bytes, NULL, &error);
        if (arrays[i])
            clEnqueueFillBuffer(
                    d->queue, arrays[i], &one, sizeof one, 0, d->stream_bytes, 0, NULL, NULL);
    }
    for (size_t s = 0; arrays[0] && arrays[1] && s < sizeof streams / sizeof *streams; s++) {
        cl_kernel kernel = clCreateKernel(d->program, streams[s].kernel, &error);
        if (!kernel)
            continue;
        clSetKernelArg(kernel, 0, sizeof(cl_mem), &arrays[0]);
        clSetKernelArg(kernel, 1, sizeof(cl_mem), &arrays[1]);
        double seconds = shortest(d, kernel, d->stream_bytes / STREAM_BYTES);
        double moved = streams[s].arrays * (double)d->stream_bytes;
        if (seconds > 0 && moved / seconds > rate)
            rate = moved / seconds;
        clReleaseKernel(kernel);
    }
    for (int i = 0; i < 2; i++)
        if (arrays[i])
            clReleaseMemObject(arrays[i]);
    return rate;
}

void gb_cli_roof_of_device(size_t index, gb_roof *roof)
{
    roof_device d = {0};
    *roof = (gb_roof){0};
    if (open_device(&d, index)) {
        roof->flops = peak(&d, "f32", 4, 2);
        roof->half_flops = peak(&d, "f16", 2, 2);
        roof->int8_operations = peak(&d, "int8", 4, 8);
        roof->bytes = stream_rate(&d);
    }
    close_device(&d);
}
