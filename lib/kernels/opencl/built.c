/* From source to programs of a device, each built once for an engine. */
#include "base/memory.h"
#include "base/status.h"
#include "base/verbose.h"
#include "kernels/opencl/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Programs that an engine keeps beside those in use. */
enum { MOST_BUILT = 1024 };

/* Most pieces of a source. */
enum { PIECES = 10 };

struct gb_cl_built {
    gb_cl_built *next;
    gb_digest digest;   /* of the source */
    cl_program program; /* held */
};

static void write_options(const gb_cl_device *device, char *options, size_t bytes)
{
    snprintf(options, bytes, "-w -cl-std=CL1.2%s%s",
            device->exact_division ? " -DGB_EXACT_DIVISION -cl-fp32-correctly-rounded-divide-sqrt"
                                   : "",
            device->fma ? " -DGB_FMA" : "");
}

static gb_digest key_of(const gb_cl_device *device, const char *options, gb_digest source)
{
    char text[512];
    int n = snprintf(text, sizeof text, "%s|%s|%s", device->name, device->driver, options);
    return gb_digest_join(gb_digest_memory(text, (size_t)n), source);
}

static gb_status fail_build(const gb_cl_engine *e, cl_program program, cl_int error)
{
    char log[600] = "";
    size_t bytes = 0;
    clGetProgramBuildInfo(program, e->device.id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    char *whole = bytes ? gb_calloc(bytes + 1, 1) : NULL;
    if (whole) {
        clGetProgramBuildInfo(program, e->device.id, CL_PROGRAM_BUILD_LOG, bytes, whole, NULL);
        const char *fault = strstr(whole, "error");
        snprintf(log, sizeof log, "%s", fault ? fault : whole);
        free(whole);
    }
    return gb_fail(GB_RUNTIME_ERROR, "OpenCL, building a kernel (%d): %s", error, log);
}

static cl_program from_binary(
        const gb_cl_engine *e, const char *options, const void *binary, size_t bytes)
{
    cl_int error;
    const unsigned char *list[] = {binary};
    cl_program program =
            clCreateProgramWithBinary(e->context, 1, &e->device.id, &bytes, list, NULL, &error);
    if (program && clBuildProgram(program, 1, &e->device.id, options, NULL, NULL) == CL_SUCCESS)
        return program;
    if (program)
        clReleaseProgram(program);
    return NULL;
}

/* What the application brought along, else what is on disk. */
static cl_program load(const gb_cl_engine *e, const gb_digest *key, const char *options)
{
    size_t bytes;
    const void *given = gb_cl_blob_find(e->blob, key, &bytes);
    cl_program program = given ? from_binary(e, options, given, bytes) : NULL;
    if (program)
        return program;
    void *binary = gb_cl_cache_load(key, &bytes);
    if (!binary)
        return NULL;
    program = from_binary(e, options, binary, bytes);
    free(binary);
    if (!program)
        gb_cl_cache_drop(key); /* of another build of the driver, or damaged */
    return program;
}

/* The binary of the engine's device among those of all devices of the program; to be freed. NULL
 * when there is none. */
static void *binary_of(const gb_cl_engine *e, cl_program program, size_t *bytes)
{
    enum { DEVICES = 64 };
    cl_device_id ids[DEVICES];
    size_t sizes[DEVICES];
    unsigned char *binaries[DEVICES] = {NULL}; /* NULL: not asked for */
    cl_uint n = 0, at = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof n, &n, NULL) != CL_SUCCESS ||
            n > DEVICES ||
            clGetProgramInfo(program, CL_PROGRAM_DEVICES, n * sizeof *ids, ids, NULL) !=
                    CL_SUCCESS ||
            clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, n * sizeof *sizes, sizes, NULL) !=
                    CL_SUCCESS)
        return NULL;
    while (at < n && ids[at] != e->device.id)
        at++;
    if (at == n || sizes[at] == 0)
        return NULL;
    binaries[at] = gb_calloc(sizes[at], 1);
    if (binaries[at] && clGetProgramInfo(program, CL_PROGRAM_BINARIES, n * sizeof *binaries,
                                binaries, NULL) == CL_SUCCESS) {
        *bytes = sizes[at];
        return binaries[at];
    }
    free(binaries[at]);
    return NULL;
}

/* Drivers may have to compile what they are asked for: PoCL makes kernels for groups of any size, which
 * it never runs. So nobody asks in vain. */
static void store(const gb_cl_engine *e, const gb_digest *key, cl_program program)
{
    size_t bytes;
    if (!gb_cl_cache_is_on())
        return;
    void *binary = binary_of(e, program, &bytes);
    if (binary)
        gb_cl_cache_store(key, binary, bytes);
    free(binary);
}

/* How wide vectors are; what they have beside numbers bears the same names. */
#define LANES(n)                                                                                   \
    "#define GB_LANES " #n "\n"                                                                    \
    "#define GB_INLINE static inline __attribute__((overloadable))\n"
static const char *lanes_of(const gb_cl_step *step)
{
    switch (step->lanes) {
    case 2:
        return LANES(2);
    case 4:
        return LANES(4);
    case 8:
        return LANES(8);
    default:
        return LANES(16);
    }
}

static cl_uint list_pieces(const gb_cl_step *step, const char **pieces)
{
    cl_uint n = 0;
    if (step->lanes)
        pieces[n++] = lanes_of(step);
    pieces[n++] = gb_cl_numbers;
    if (step->uses_math)
        pieces[n++] = gb_cl_math;
    pieces[n++] = gb_cl_memory;
    if (step->lanes) {
        pieces[n++] = "#define GB_IN_LANES\n";
        pieces[n++] = gb_cl_numbers;
        if (step->uses_math)
            pieces[n++] = gb_cl_math;
        pieces[n++] = gb_cl_vectors;
    }
    pieces[n++] = step->source;
    if (step->family)
        pieces[n++] = step->family;
    return n;
}

static gb_status compile(
        const gb_cl_engine *e, const gb_cl_step *step, const char *options, cl_program *built)
{
    cl_int error;
    const char *pieces[PIECES];
    cl_uint n = list_pieces(step, pieces);
    cl_program program = clCreateProgramWithSource(e->context, n, pieces, NULL, &error);
    if (!program)
        return gb_cl_fail(error, "creating a program");
    error = clBuildProgram(program, 1, &e->device.id, options, NULL, NULL);
    if (error == CL_SUCCESS) {
        *built = program;
        return GB_SUCCESS;
    }
    gb_status status = fail_build(e, program, error);
    clReleaseProgram(program);
    return status;
}

static gb_status load_or_compile(
        const gb_cl_engine *e, const gb_cl_step *step, gb_digest digest, cl_program *built)
{
    char options[256];
    write_options(&e->device, options, sizeof options);
    gb_digest key = key_of(&e->device, options, digest);
    *built = load(e, &key, options);
    if (*built)
        return GB_SUCCESS;
    GB_TRY(compile(e, step, options, built));
    store(e, &key, *built);
    return GB_SUCCESS;
}

static cl_program find(gb_cl_engine *e, gb_digest digest)
{
    pthread_mutex_lock(&e->lock);
    const gb_cl_built *at = e->programs;
    while (at && !gb_digest_equal(at->digest, digest))
        at = at->next;
    cl_program found = at ? at->program : NULL;
    if (found && clRetainProgram(found) != CL_SUCCESS)
        found = NULL;
    pthread_mutex_unlock(&e->lock);
    return found;
}

/* Drops the oldest beyond the limit. */
static void keep(gb_cl_engine *e, gb_cl_built *made)
{
    int n = 0;
    pthread_mutex_lock(&e->lock);
    made->next = e->programs;
    e->programs = made;
    for (gb_cl_built **at = &e->programs; *at;) {
        gb_cl_built *one = *at;
        if (n++ < MOST_BUILT) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        clReleaseProgram(one->program);
        free(one);
    }
    pthread_mutex_unlock(&e->lock);
}

static gb_digest digest_pieces(const gb_cl_step *step)
{
    const char *pieces[PIECES];
    cl_uint n = list_pieces(step, pieces);
    gb_digest digest = {{0, 0}};
    for (cl_uint i = 0; i < n; i++)
        digest = gb_digest_join(digest, gb_digest_memory(pieces[i], strlen(pieces[i])));
    return digest;
}

gb_digest gb_cl_device_digest(const gb_cl_device *device)
{
    char options[256];
    write_options(device, options, sizeof options);
    return key_of(device, options, (gb_digest){{0, 0}});
}

gb_status gb_cl_built_collect(gb_cl_engine *e, gb_cl_blob_writer *writer)
{
    char options[256];
    gb_status status = GB_SUCCESS;
    write_options(&e->device, options, sizeof options);
    pthread_mutex_lock(&e->lock);
    for (const gb_cl_built *at = e->programs; at && status == GB_SUCCESS; at = at->next) {
        size_t bytes;
        gb_digest key = key_of(&e->device, options, at->digest);
        void *binary = binary_of(e, at->program, &bytes);
        status = binary ? gb_cl_blob_add(writer, &key, binary, bytes)
                        : gb_fail(GB_RUNTIME_ERROR, "%s gives no binaries of its kernels",
                                  e->device.name);
        free(binary);
    }
    pthread_mutex_unlock(&e->lock);
    return status;
}

gb_status gb_cl_build(gb_cl_engine *e, const gb_cl_step *step, cl_program *built)
{
    gb_digest digest = digest_pieces(step);
    *built = find(e, digest);
    if (*built)
        return GB_SUCCESS;
    gb_cl_built *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    int64_t begin = gb_nanoseconds();
    gb_status status = load_or_compile(e, step, digest, built);
    pthread_mutex_lock(&e->lock);
    e->build_ns += (uint64_t)(gb_nanoseconds() - begin);
    pthread_mutex_unlock(&e->lock);
    if (status != GB_SUCCESS || clRetainProgram(*built) != CL_SUCCESS) {
        free(made); /* what cannot be kept serves this step alone */
        return status;
    }
    made->digest = digest;
    made->program = *built;
    keep(e, made);
    return GB_SUCCESS;
}

void gb_cl_built_free_all(gb_cl_engine *e)
{
    while (e->programs) {
        gb_cl_built *one = e->programs;
        e->programs = one->next;
        clReleaseProgram(one->program);
        free(one);
    }
}
