/* What kernels of an OpenCL device are shaped by: rules, the table, the file that a search leaves, and
 * the environment. Devices are made up, but for the last test. */
#include "kernels/opencl/shape.h"
#include "runtime_case.h"

#include <dirent.h>
#include <graphbench/graphbench_ocl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/gb-shapes-XXXXXX";

static void open_folder(void)
{
    cr_assert(mkdtemp(folder));
    setenv("GB_OPENCL_CACHE", folder, 1);
    unsetenv("GB_OPENCL_TUNE");
    unsetenv("GB_OPENCL_SHAPE");
}

/* The one file in the folder, or none. */
static bool find_file(char *path, size_t bytes)
{
    bool found = false;
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (entry->d_name[0] != '.') {
            snprintf(path, bytes, "%s/%s", folder, entry->d_name);
            found = true;
        }
    closedir(list);
    return found;
}

static void remove_folder(void)
{
    char path[512];
    while (find_file(path, sizeof path))
        cr_assert_eq(unlink(path), 0);
    rmdir(folder);
}

TestSuite(opencl_shapes, .init = open_folder, .fini = remove_folder);

static gb_cl_device make_device(cl_device_type type)
{
    return (gb_cl_device){.type = type,
            .name = "a device",
            .driver = "1.0",
            .platform_name = "a platform",
            .units = 8,
            .group_size = 1024,
            .local_bytes = 32768,
            .has_local_memory = type == CL_DEVICE_TYPE_GPU};
}

static void expect_equal(const gb_cl_shape *a, const gb_cl_shape *b)
{
    char texts[2][GB_CL_SHAPE_TEXT];
    gb_cl_shape_print(a, texts[0], sizeof texts[0]);
    gb_cl_shape_print(b, texts[1], sizeof texts[1]);
    cr_assert_str_eq(texts[0], texts[1]);
}

static bool reads(gb_cl_shape *shape, const gb_cl_device *device, const char *text)
{
    return gb_cl_shape_read(shape, device, text, strlen(text));
}

Test(opencl_shapes, rules_follow_the_description)
{
    gb_cl_device cpu = make_device(CL_DEVICE_TYPE_CPU), gpu = make_device(CL_DEVICE_TYPE_GPU);
    gb_cl_shape shape = gb_cl_shape_choose(&cpu);
    cr_assert(shape.is_cpu && !shape.local_memory && shape.lanes == 16 && shape.units == 8);
    shape = gb_cl_shape_choose(&gpu);
    cr_assert(!shape.is_cpu && shape.local_memory && shape.lanes == 4);
    gpu.has_local_memory = false;
    cr_assert(!gb_cl_shape_choose(&gpu).local_memory);
    gpu.group_size = 3;
    shape = gb_cl_shape_choose(&gpu);
    cr_assert(shape.local_size <= 3 && shape.row_tiles * shape.column_tiles <= 3);
}

Test(opencl_shapes, keys_and_texts_hold_all_fields)
{
    cl_device_type types[] = {CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR};
    for (int i = 0; i < 3; i++) {
        gb_cl_device device = make_device(types[i]);
        char text[GB_CL_SHAPE_TEXT];
        gb_cl_shape shape = gb_cl_shape_choose(&device), read = {0};
        gb_cl_shape of_key = gb_cl_shape_of_key(gb_cl_shape_key(&shape));
        gb_cl_shape_print(&shape, text, sizeof text);
        cr_assert(reads(&read, &device, text), "%s", text);
        expect_equal(&shape, &of_key);
        expect_equal(&shape, &read);
    }
}

Test(opencl_shapes, texts_that_are_no_shape_change_nothing)
{
    static const char *const bad[] = {"rows=4", "tile_rows", "tile_rows=", "tile_rows=x",
            "tile_rows=4;", "tile_rows=4,,", "tile_rows=0", "tile_rows=9", "lanes=5", "lanes=32",
            "depth=12", "depth=2048", "depth=999999999", "attention_keys=24", "local_memory=1",
            "attention_tile=6,attention_rows=32", "local_size=512", "is_cpu=2", "=4", ","};
    gb_cl_device device = make_device(CL_DEVICE_TYPE_CPU);
    gb_cl_shape shape = gb_cl_shape_choose(&device), before = shape;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert(!reads(&shape, &device, bad[i]), "%s", bad[i]);
        expect_equal(&shape, &before);
    }
    cr_assert(reads(&shape, &device, "") && reads(&shape, &device, "tile_rows=4,depth=128"));
    cr_assert(shape.tile_rows == 4 && shape.depth == 128 && shape.lanes == before.lanes);
    /* Local memory and groups of the device. */
    device = make_device(CL_DEVICE_TYPE_GPU);
    shape = gb_cl_shape_choose(&device);
    cr_assert(!reads(&shape, &device, "depth=512"));
    cr_assert(!reads(&shape, &device, "local_memory=0,row_tiles=31,column_tiles=31,depth=8") ||
              device.group_size >= 31 * 31);
}

Test(opencl_shapes, what_was_found_serves_its_device_and_driver_alone)
{
    gb_cl_device device = make_device(CL_DEVICE_TYPE_CPU), other = device;
    gb_cl_shape rule = gb_cl_shape_choose(&device), best = rule;
    snprintf(other.driver, sizeof other.driver, "1.1");
    cr_assert(!gb_cl_shape_load(&device, &best));
    cr_assert(reads(&best, &device, "row_tiles=16,depth=128"));
    gb_cl_shape_store(&device, &best);
    gb_cl_shape found = gb_cl_shape_choose(&device), unknown = gb_cl_shape_choose(&other);
    expect_equal(&found, &best);
    expect_equal(&unknown, &rule);
    device.units = 2; /* a fact of today, no matter what the file says */
    cr_assert_eq(gb_cl_shape_choose(&device).units, 2);
    setenv("GB_OPENCL_SHAPE", "depth=64", 1);
    found = gb_cl_shape_choose(&device);
    cr_assert(found.depth == 64 && found.row_tiles == 16);
    setenv("GB_OPENCL_SHAPE", "depth=63", 1);
    cr_assert_eq(gb_cl_shape_choose(&device).depth, 128);
    setenv("GB_OPENCL_SHAPE", "depth=24", 1); /* 16 lanes would begin in the middle of a group */
    cr_assert_eq(gb_cl_shape_choose(&device).depth, 128);
}

/* Fields of what is told have no commas: the separator is a word. */
Test(opencl_shapes, a_wrong_shape_is_told_with_its_separator)
{
    gb_cl_device device = make_device(CL_DEVICE_TYPE_CPU);
    char told[1024] = "";
    int ends[2], own = dup(STDERR_FILENO);
    cr_assert_eq(pipe(ends), 0);
    fflush(stderr);
    dup2(ends[1], STDERR_FILENO);
    setenv("GB_OPENCL_SHAPE", "row_tiles=16;depth=64", 1);
    gb_cl_shape_choose(&device);
    fflush(stderr);
    dup2(own, STDERR_FILENO);
    ssize_t n = read(ends[0], told, sizeof told - 1);
    cr_expect(n > 0 && strstr(told, "NAME=NUMBER with commas between"), "%s", told);
    close(ends[0]);
    close(ends[1]);
    close(own);
}

Test(opencl_shapes, damaged_files_are_not_used)
{
    gb_cl_device device = make_device(CL_DEVICE_TYPE_CPU);
    gb_cl_shape rule = gb_cl_shape_choose(&device), best = rule;
    char path[512], bytes[1024];
    cr_assert(reads(&best, &device, "row_tiles=16"));
    gb_cl_shape_store(&device, &best);
    cr_assert(find_file(path, sizeof path));
    FILE *file = fopen(path, "rb");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t at = 0; at <= n; at++) { /* one byte is another; at last the end is missing */
        file = fopen(path, "wb");
        bytes[at] ^= at < n ? 1 : 0;
        fwrite(bytes, 1, at < n ? n : n - 1, file);
        bytes[at] ^= at < n ? 1 : 0;
        fclose(file);
        gb_cl_shape shape = gb_cl_shape_choose(&device);
        expect_equal(&shape, &rule);
    }
    /* Whole, but of a shape that there are no kernels of. */
    best.tile_rows = 15;
    gb_cl_shape_store(&device, &best);
    gb_cl_shape shape = gb_cl_shape_choose(&device);
    expect_equal(&shape, &rule);
}

/* Processes that store one of two shapes each, and read: whole ones, of either. */
Test(opencl_shapes, processes_share_the_file)
{
    enum { PROCESSES = 6, ROUNDS = 200 };
    gb_cl_device device = make_device(CL_DEVICE_TYPE_CPU);
    gb_cl_shape rule = gb_cl_shape_choose(&device), shapes[2] = {rule, rule};
    cr_assert(reads(&shapes[0], &device, "row_tiles=16,depth=128"));
    cr_assert(reads(&shapes[1], &device, "row_tiles=4,depth=384"));
    gb_cl_shape_store(&device, &shapes[0]);
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            bool all = true;
            for (int round = 0; round < ROUNDS; round++) {
                gb_cl_shape read = rule;
                gb_cl_shape_store(&device, &shapes[(i + round) % 2]);
                all = all && gb_cl_shape_load(&device, &read);
                uint64_t key = gb_cl_shape_key(&read);
                all = all &&
                      (key == gb_cl_shape_key(&shapes[0]) || key == gb_cl_shape_key(&shapes[1]));
            }
            _exit(all ? 0 : 1);
        }
    for (int i = 0; i < PROCESSES; i++) {
        int state = 0;
        wait(&state);
        cr_expect(WIFEXITED(state) && WEXITSTATUS(state) == 0);
    }
}

/* Rows of the table are shapes: all of them hold what the rules do not say. */
Test(opencl_shapes, measured_devices_have_rows)
{
    static const char *const platforms[] = {"Intel(R) OpenCL", "Portable Computing Language"};
    gb_cl_device device = make_device(CL_DEVICE_TYPE_CPU);
    gb_cl_shape rule = gb_cl_shape_choose(&device);
    for (int i = 0; i < 2; i++) {
        snprintf(device.platform_name, sizeof device.platform_name, "%s", platforms[i]);
        gb_cl_shape shape = gb_cl_shape_choose(&device);
        cr_expect_neq(gb_cl_shape_key(&shape), gb_cl_shape_key(&rule), "%s", platforms[i]);
    }
}

Test(opencl_shapes, a_search_leaves_a_shape_of_the_device)
{
    size_t count = 0;
    gb_engine *engine;
    cl_device_id id;
    gb_cl_device device;
    runtime_ok(gb_engine_get_count(GB_ENGINE_GPU, &count));
    if (count == 0)
        cr_skip_test("no OpenCL device");
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_GPU, 0));
    runtime_ok(gb_ocl_engine_get_device(engine, &id));
    runtime_ok(gb_cl_device_read(id, &device));
    gb_cl_shape shape = gb_cl_shape_choose(&device), read = shape;
    char text[GB_CL_SHAPE_TEXT];
    gb_cl_shape_search(&device, &shape, 1);
    gb_cl_shape_print(&shape, text, sizeof text);
    cr_assert(reads(&read, &device, text), "%s", text);
    runtime_ok(gb_engine_destroy(engine));
}
