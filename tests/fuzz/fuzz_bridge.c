/* Graphs of PyTorch: any bytes, JSON or an archive, are refused with a message or make a module. One
 * byte before them chooses its options. */
#define _GNU_SOURCE /* memfd_create */
#include "fuzz.h"

#include "graphbench_bridge.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool succeeded(gb_status status, const char *what)
{
    fuzz_check(status >= GB_SUCCESS && strcmp(gb_status_name(status), "unknown") != 0,
            "%s: status %d", what, (int)status);
    fuzz_check(status == GB_SUCCESS || gb_bridge_last_error()[0] != '\0', "%s: %s has no message",
            what, gb_status_name(status));
    return status == GB_SUCCESS;
}

static gb_status read_archive(gb_bridge_graph **graph, const uint8_t *data, size_t size)
{
    char path[64];
    int file = memfd_create("archive", 0);
    fuzz_check(file >= 0 && write(file, data, size) == (ssize_t)size, "no file in memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    gb_status status = gb_bridge_graph_create_from_pt2(graph, path);
    close(file);
    return status;
}

/* What the module lends must fit itself. */
static void look_at(const gb_bridge_module *module)
{
    gb_graph *graph = NULL;
    fuzz_check(gb_bridge_module_describe(module)[0] == '{', "no description");
    gb_status status = gb_bridge_module_get_graph(module, SIZE_MAX, &graph);
    fuzz_check(succeeded(status, "gb_bridge_module_get_graph"), "groups make no graph: %s",
            gb_bridge_last_error());
    gb_graph_destroy(graph);
}

/* Other values of all sizes: taken, or refused with a message. */
static void set_sizes(gb_bridge_graph *graph, int64_t step)
{
    gb_bridge_size size;
    for (size_t i = 0; i < gb_bridge_graph_get_size_num(graph); i++) {
        fuzz_check(gb_bridge_graph_get_size(graph, i, &size) == GB_SUCCESS, "size %zu", i);
        size.value += step;
        succeeded(gb_bridge_graph_set_sizes(graph, 1, &size), "gb_bridge_graph_set_sizes");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    gb_bridge_graph *graph = NULL;
    gb_bridge_module *module = NULL;
    const gb_bridge_options options = {.size = sizeof options,
            .policy = data[0] & 1 ? GB_POLICY_MAX : GB_POLICY_FUSION,
            .keep_single_ops = (data[0] & 2) != 0,
            .constant_parameters = (data[0] & 4) != 0,
            .opaque_outputs = (data[0] & 8) != 0};
    gb_status status = memcmp(data + 1, "PK", 2) == 0 ? read_archive(&graph, data + 1, size - 1)
                                                      : gb_bridge_graph_create_from_json(&graph,
                                                                (const char *)data + 1, size - 1);
    if (!succeeded(status, "reading the graph")) {
        fuzz_check(!graph, "a graph came with a failure");
        return 0;
    }
    if (data[0] & 16)
        set_sizes(graph, data[0] >> 5);
    status = gb_bridge_module_create(&module, graph, &options);
    fuzz_check(succeeded(status, "gb_bridge_module_create"), "a graph that was read is refused: %s",
            gb_bridge_last_error());
    look_at(module);
    gb_bridge_module_destroy(module);
    gb_bridge_graph_destroy(graph);
    return 0;
}
