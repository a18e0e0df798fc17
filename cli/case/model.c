/* A model is what the bridge maps of it: the ops of all groups as one graph. */
#include "cli/case/model.h"

#include "cli/options/message.h"
#include "cli/options/text.h"

#include <graphbench_bridge.h>
#include <json-c/json.h>
#include <string.h>

bool gb_cli_is_model(const char *path)
{
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".pt2") == 0;
}

static gb_status fail_bridge(const gb_case *test, gb_status status)
{
    return gb_cli_fail(status, "%s: %s", test->file, gb_bridge_last_error());
}

static const char *text_of(json_object *object, const char *key)
{
    json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    return json_object_get_string(value);
}

/* A line for each node that is not in the graph. */
static void note_outside(gb_case *test, const char *description)
{
    json_object *root = json_tokener_parse(description), *list = NULL;
    gb_text text = {0};
    if (root)
        json_object_object_get_ex(root, "outside", &list);
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        json_object *entry = json_object_array_get_idx(list, i);
        gb_cli_text_add(&text, "  outside: %s (%s): %s\n", text_of(entry, "node"),
                text_of(entry, "target"), text_of(entry, "reason"));
    }
    test->outside = text.data;
    json_object_put(root);
}

gb_status gb_cli_model_load(gb_case *test)
{
    gb_bridge_options options = {.size = sizeof options, .keep_single_ops = 1};
    gb_bridge_graph *graph = NULL;
    gb_bridge_module *module = NULL;
    gb_status status = gb_bridge_graph_create_from_pt2(&graph, test->path);
    if (status == GB_SUCCESS)
        status = gb_bridge_module_create(&module, graph, &options);
    if (status == GB_SUCCESS)
        status = gb_bridge_module_get_graph(module, SIZE_MAX, &test->graph);
    if (status == GB_SUCCESS)
        note_outside(test, gb_bridge_module_describe(module));
    else
        fail_bridge(test, status);
    gb_bridge_module_destroy(module);
    gb_bridge_graph_destroy(graph);
    return status;
}
