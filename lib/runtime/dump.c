/* Graphs written to files in the working directory, named by their content: equal graphs share a
 * file. A file that cannot be written is reported, and nothing else comes of it. */
#include "runtime/dump.h"

#include "base/environment.h"
#include "base/verbose.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { KNOWN_MODES = GB_DUMP_GRAPH | GB_DUMP_SUBGRAPH };

static const gb_named_flags words[] = {
        {"none", GB_DUMP_NONE},
        {"graph", GB_DUMP_GRAPH},
        {"subgraph", GB_DUMP_SUBGRAPH},
        {NULL, 0},
};

static atomic_int dump_mode = -1; /* the environment was not asked yet */

static bool is_asked(gb_dump_mode what)
{
    return (gb_environment_flags_once(&dump_mode, "GB_GRAPH_DUMP", words) & what) != 0;
}

gb_status gb_set_dump_mode(unsigned mode)
{
    if (mode & ~(unsigned)KNOWN_MODES)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_set_dump_mode: no modes %#x", mode);
    atomic_store(&dump_mode, (int)mode);
    return GB_SUCCESS;
}

/* Under another name first: a reader never sees half of a file, whoever else writes it. */
static gb_status write_file(const gb_graph *graph, const char *prefix, uint64_t hash)
{
    char path[64], draft[96];
    snprintf(path, sizeof path, "%s-%016" PRIx64 ".json", prefix, hash);
    snprintf(draft, sizeof draft, "%s.%ld.%zu", path, (long)getpid(), gb_next_id());
    GB_TRY(gb_graph_save_json(graph, draft));
    if (rename(draft, path) == 0)
        return GB_SUCCESS;
    gb_status status = gb_fail(GB_RUNTIME_ERROR, "cannot write %s: %s", path, strerror(errno));
    unlink(draft);
    return status;
}

void gb_dump_graph_file(const gb_graph *graph)
{
    if (!is_asked(GB_DUMP_GRAPH))
        return;
    gb_content content;
    gb_status status = gb_content_create(graph, &content);
    if (status == GB_SUCCESS) {
        status = write_file(graph, "graph", content.hash);
        gb_content_clear(&content);
    }
    if (status != GB_SUCCESS)
        gb_verbose_write_error("dump", status);
}

/* A tensor that leaves the partition and is read inside of it, too, is kept alive by an End. */
static gb_status add_end(gb_graph *graph, const gb_value *value)
{
    gb_op *end;
    GB_TRY(gb_op_create(&end, gb_graph_new_id(graph), GB_OP_END, ""));
    gb_status status = gb_op_add_input(end, &value->tensor);
    if (status == GB_SUCCESS)
        status = gb_graph_add_op(graph, end);
    gb_op_destroy(end);
    return status;
}

/* With the layouts of the outputs that compiling chose, once there is a compiled partition. */
static gb_status write_subgraph(
        const gb_request *request, const gb_compiled_partition *compiled, gb_graph *graph)
{
    for (uint32_t i = 0; compiled && i < compiled->n_outputs; i++) {
        uint32_t value = gb_graph_find_value(graph, compiled->outputs[i].id);
        if (value != GB_NONE)
            graph->values[value].tensor = compiled->outputs[i];
    }
    GB_TRY(gb_graph_infer(graph));
    for (uint32_t i = 0; i < request->n_outputs; i++) {
        size_t id = request->graph->values[request->outputs[i]].tensor.id;
        const gb_value *value = &graph->values[gb_graph_find_value(graph, id)];
        if (value->n_uses > 0)
            GB_TRY(add_end(graph, value));
    }
    return write_file(graph, "subgraph", request->content.hash);
}

static void dump_subgraph(const gb_request *request, const gb_compiled_partition *compiled)
{
    gb_graph *graph = NULL;
    gb_status status = gb_graph_clone(request->graph, NULL, 0, &graph);
    if (status == GB_SUCCESS)
        status = write_subgraph(request, compiled, graph);
    gb_graph_destroy(graph);
    if (status != GB_SUCCESS)
        gb_verbose_write_error("dump", status);
}

void gb_dump_subgraph(const gb_request *request)
{
    if (is_asked(GB_DUMP_SUBGRAPH))
        dump_subgraph(request, NULL);
}

void gb_dump_layouts(const gb_request *request, const gb_compiled_partition *compiled)
{
    bool chosen = false;
    if (!is_asked(GB_DUMP_SUBGRAPH))
        return;
    for (uint32_t i = 0; i < request->n_outputs && !chosen; i++)
        chosen = request->graph->values[request->outputs[i]].tensor.layout_type == GB_LAYOUT_ANY;
    if (chosen)
        dump_subgraph(request, compiled);
}
