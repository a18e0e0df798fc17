/* An OpenCL device is given no more kernels for a graph than the CPU has phases in its steps (all
 * threads meet between phases, which takes a kernel each on a device). What runs once for a set of
 * constants does not count.
 * Nothing is built: the functions of OpenCL that make programs and kernels are here. */
#include "runtime/compiled.h"

#include <CL/cl.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <graphbench/graphbench.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PORTS = 64, MOST_PARTITIONS = 256 };

static long made; /* what programs and kernels point to */

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithSource(
        cl_context context, cl_uint n, const char **text, const size_t *lengths, cl_int *error)
{
    (void)context, (void)n, (void)text, (void)lengths;
    *error = CL_SUCCESS;
    return (cl_program)(void *)&made;
}

CL_API_ENTRY cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint n,
        const cl_device_id *devices, const char *options,
        void(CL_CALLBACK *notify)(cl_program, void *), void *context)
{
    (void)program, (void)n, (void)devices, (void)options, (void)notify, (void)context;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetProgramInfo(
        cl_program program, cl_program_info what, size_t bytes, void *value, size_t *needed)
{
    (void)program, (void)what, (void)bytes, (void)value, (void)needed;
    return CL_INVALID_PROGRAM;
}

CL_API_ENTRY cl_kernel CL_API_CALL clCreateKernel(
        cl_program program, const char *name, cl_int *error)
{
    (void)program, (void)name;
    *error = CL_SUCCESS;
    return (cl_kernel)(void *)&made;
}

CL_API_ENTRY cl_int CL_API_CALL clRetainProgram(cl_program program)
{
    (void)program;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseProgram(cl_program program)
{
    (void)program;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseKernel(cl_kernel kernel)
{
    (void)kernel;
    return CL_SUCCESS;
}

static gb_compiled_partition *compile(gb_partition *partition, gb_engine *engine)
{
    gb_logical_tensor in[MOST_PORTS], out[MOST_PORTS];
    const gb_logical_tensor *inputs[MOST_PORTS], *outputs[MOST_PORTS];
    gb_compiled_partition *compiled = NULL;
    size_t n_in = 0, n_out = 0;
    gb_partition_get_input_ports(partition, MOST_PORTS, in, &n_in);
    gb_partition_get_output_ports(partition, MOST_PORTS, out, &n_out);
    cr_assert(n_in <= MOST_PORTS && n_out <= MOST_PORTS);
    for (size_t i = 0; i < n_in; i++)
        inputs[i] = &in[i];
    for (size_t i = 0; i < n_out; i++)
        outputs[i] = &out[i];
    cr_assert_eq(gb_partition_compile(partition, &compiled, n_in, inputs, n_out, outputs, engine),
            GB_SUCCESS, "%s", gb_last_error());
    return compiled;
}

static size_t read_partitions(const char *path, gb_engine_kind kind, gb_partition **partitions)
{
    gb_graph *graph;
    size_t n = 0;
    cr_assert_eq(gb_graph_load(&graph, path, NULL, NULL), GB_SUCCESS, "%s", gb_last_error());
    gb_graph_set_engine_kind(graph, kind);
    gb_graph_infer_shapes(graph);
    gb_graph_finalize(graph);
    gb_graph_filter(graph, GB_POLICY_FUSION);
    gb_graph_get_partitions(graph, MOST_PARTITIONS, partitions, &n);
    cr_assert(n > 0 && n <= MOST_PARTITIONS, "%s: %zu partitions", path, n);
    gb_graph_destroy(graph);
    return n;
}

/* Compares a partition for the CPU with the same one for the device; false: neither runs it. */
static bool compare(const char *path, gb_partition *const *partitions, gb_engine *const *engines)
{
    gb_compiled_partition *compiled[2];
    uint8_t supported[2];
    int most = 0;
    for (int k = 0; k < 2; k++)
        gb_partition_is_supported(partitions[k], &supported[k]);
    cr_assert_eq(supported[0], supported[1], "%s", path);
    if (!supported[0])
        return false;
    for (int k = 0; k < 2; k++)
        compiled[k] = compile(partitions[k], engines[k]);
    const gb_program *cpu = &compiled[0]->executable->program;
    const gb_program *device = &compiled[1]->executable->program;
    int kernels = 0;
    for (uint32_t i = 0; i < cpu->n_steps; i++)
        most += cpu->step_is_constant[i]     ? 0
                : cpu->steps[i].n_phases > 1 ? cpu->steps[i].n_phases
                                             : 1;
    for (uint32_t i = 0; i < device->n_steps; i++)
        kernels += !device->step_is_constant[i];
    cr_expect_leq(kernels, most, "%s: %d kernels, %s; %d for those of the CPU, %s", path, kernels,
            gb_compiled_partition_get_kernels(compiled[1]), most,
            gb_compiled_partition_get_kernels(compiled[0]));
    for (int k = 0; k < 2; k++)
        gb_compiled_partition_destroy(compiled[k]);
    return true;
}

/* Returns how many partitions were compared. */
static size_t compare_all(const char *path, gb_engine *const *engines)
{
    static gb_partition *partitions[2][MOST_PARTITIONS];
    size_t n = read_partitions(path, GB_ENGINE_CPU, partitions[0]), compared = 0;
    cr_assert_eq(read_partitions(path, GB_ENGINE_GPU, partitions[1]), n, "%s", path);
    for (size_t i = 0; i < n; i++) {
        gb_partition *both[] = {partitions[0][i], partitions[1][i]};
        compared += compare(path, both, engines);
        for (int k = 0; k < 2; k++)
            gb_partition_destroy(both[k]);
    }
    return compared;
}

static void check(const char *name)
{
    char directory[400], path[700];
    gb_engine *engines[2];
    size_t count = 0, compared = 0;
    setenv("GB_OPENCL_CACHE", "off", 1);
    gb_engine_get_count(GB_ENGINE_GPU, &count);
    if (count == 0)
        cr_skip_test("no OpenCL device");
    cr_assert_eq(gb_engine_create(&engines[0], GB_ENGINE_CPU, 0), GB_SUCCESS);
    cr_assert_eq(gb_engine_create(&engines[1], GB_ENGINE_GPU, 0), GB_SUCCESS);
    snprintf(directory, sizeof directory, "%s/../inputs/graph/%s", GB_TEST_DATA, name);
    DIR *entries = opendir(directory);
    cr_assert(entries, "%s", directory);
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (!strstr(entry->d_name, ".json") && !strstr(entry->d_name, ".gbt"))
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        compared += compare_all(path, engines);
    }
    closedir(entries);
    for (int k = 0; k < 2; k++)
        gb_engine_destroy(engines[k]);
    cr_expect_gt(compared, 10, "of %s only %zu partitions were compared", name, compared);
}

Test(opencl_steps, operations)
{
    check("op");
}
Test(opencl_steps, patterns)
{
    check("pattern");
}
Test(opencl_steps, complex_fusions)
{
    check("complex_fusion");
}
Test(opencl_steps, models)
{
    check("model");
}
