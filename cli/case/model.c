/* A model is what the bridge maps of it: the ops of all groups as one graph. */
#include "cli/case/model.h"

#include "cli/options/message.h"
#include "cli/options/text.h"

#include <graphbench_bridge.h>
#include <json-c/json.h>
#include <stdlib.h>
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
static void note_outside(gb_text *text, const char *description)
{
    json_object *root = json_tokener_parse(description), *list = NULL;
    if (root)
        json_object_object_get_ex(root, "outside", &list);
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        json_object *entry = json_object_array_get_idx(list, i);
        gb_cli_text_add(text, "  outside: %s (%s): %s\n", text_of(entry, "node"),
                text_of(entry, "target"), text_of(entry, "reason"));
    }
    json_object_put(root);
}

/* A line for each input that is not the model's own, and for each size that may be another. */
static void note_inputs(gb_text *text, const gb_bridge_graph *graph)
{
    gb_bridge_input input;
    gb_bridge_size size;
    for (size_t i = 0; gb_bridge_graph_get_input(graph, i, &input) == GB_SUCCESS; i++) {
        if (!input.is_user)
            continue;
        gb_cli_text_add(text, "  input: %s, tensor %zu, ", input.name, i);
        for (int d = 0; d < input.ndims; d++) {
            gb_cli_text_add(text, "%s%lld", d ? "x" : "", (long long)input.dims[d]);
            if (input.expressions[d])
                gb_cli_text_add(text, "(%s)", input.expressions[d]);
        }
        gb_cli_text_add(text, "\n");
    }
    for (size_t i = 0; gb_bridge_graph_get_size(graph, i, &size) == GB_SUCCESS; i++) {
        gb_cli_text_add(text, "  size: %s = %lld, at least %lld", size.name, (long long)size.value,
                (long long)size.min);
        if (size.max < INT64_MAX - 1) /* the exporter's word for no bound */
            gb_cli_text_add(text, " and at most %lld", (long long)size.max);
        gb_cli_text_add(text, "\n");
    }
}

/* ---- sizes of the command line ---- */

/* Sizes that were asked for, by the options that did. */
typedef struct wanted_sizes {
    gb_bridge_size *list; /* owned */
    size_t count;
} wanted_sizes;

static bool is_size(const gb_bridge_graph *graph, const char *expression)
{
    gb_bridge_size size;
    for (size_t i = 0; gb_bridge_graph_get_size(graph, i, &size) == GB_SUCCESS; i++)
        if (strcmp(size.name, expression) == 0)
            return true;
    return false;
}

static gb_status want(wanted_sizes *wanted, const char *name, int64_t value)
{
    for (size_t i = 0; i < wanted->count; i++)
        if (strcmp(wanted->list[i].name, name) == 0 && wanted->list[i].value != value)
            return gb_cli_fail(GB_INVALID_ARGUMENTS, "size %s is to be both %lld and %lld", name,
                    (long long)wanted->list[i].value, (long long)value);
    wanted->list = gb_cli_realloc(wanted->list, wanted->count + 1, sizeof *wanted->list);
    wanted->list[wanted->count++] = (gb_bridge_size){.name = name, .value = value};
    return GB_SUCCESS;
}

/* The minibatch is the first dim 0 of an input that may be another. */
static gb_status want_minibatch(const gb_bridge_graph *graph, int64_t number, wanted_sizes *wanted)
{
    gb_bridge_input input;
    for (size_t i = 0; gb_bridge_graph_get_input(graph, i, &input) == GB_SUCCESS; i++)
        if (input.is_user && input.ndims > 0 && input.expressions[0]) {
            if (!is_size(graph, input.expressions[0]))
                return gb_cli_fail(GB_INVALID_ARGUMENTS,
                        "--mb: dim 0 of input %s is %s, from which no size follows: --in-shapes "
                        "sets others",
                        input.name, input.expressions[0]);
            return want(wanted, input.expressions[0], number);
        }
    return gb_cli_fail(GB_INVALID_ARGUMENTS,
            "--mb: dim 0 of all inputs is fixed; torch.export makes it dynamic by dynamic_shapes");
}

static gb_status want_shape(const gb_bridge_graph *graph, size_t id, const gb_shape_override *shape,
        wanted_sizes *wanted)
{
    gb_bridge_input input;
    if (!shape->has_dims || gb_bridge_graph_get_input(graph, id, &input) != GB_SUCCESS)
        return GB_SUCCESS; /* of a tensor that is no input: the graph's rules see to it */
    if (shape->ndims != input.ndims)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "--in-shapes: input %s (tensor %zu) has %d dims",
                input.name, id, (int)input.ndims);
    for (int d = 0; d < input.ndims; d++) {
        if (input.expressions[d] && is_size(graph, input.expressions[d]))
            CLI_TRY(want(wanted, input.expressions[d], shape->dims[d]));
        else if (!input.expressions[d] && shape->dims[d] != input.dims[d])
            return gb_cli_fail(GB_INVALID_ARGUMENTS,
                    "--in-shapes: dim %d of input %s (tensor %zu) is fixed at %lld", d, input.name,
                    id, (long long)input.dims[d]);
    }
    return GB_SUCCESS;
}

/* Dims that are expressions are as the shape says only when the sizes make them so. */
static gb_status check_shape(
        const gb_bridge_graph *graph, size_t id, const gb_shape_override *shape)
{
    gb_bridge_input input;
    if (!shape->has_dims || gb_bridge_graph_get_input(graph, id, &input) != GB_SUCCESS)
        return GB_SUCCESS;
    for (int d = 0; d < input.ndims; d++)
        if (shape->dims[d] != input.dims[d])
            return gb_cli_fail(GB_INVALID_ARGUMENTS,
                    "--in-shapes: dim %d of input %s (tensor %zu) is %s, which is %lld then", d,
                    input.name, id, input.expressions[d], (long long)input.dims[d]);
    return GB_SUCCESS;
}

static gb_status set_sizes(const gb_case *test, gb_bridge_graph *graph)
{
    const gb_alternative *shapes = test->choice[AXIS_IN_SHAPES];
    int64_t minibatch = test->choice[AXIS_MB]->number;
    wanted_sizes wanted = {0};
    gb_status status = GB_SUCCESS;
    if (minibatch > 0)
        status = want_minibatch(graph, minibatch, &wanted);
    for (size_t i = 0; i < shapes->n_overrides && status == GB_SUCCESS; i++)
        status = want_shape(
                graph, shapes->overrides[i].id, &shapes->overrides[i].value.shape, &wanted);
    if (status == GB_SUCCESS && wanted.count > 0) {
        status = gb_bridge_graph_set_sizes(graph, wanted.count, wanted.list);
        if (status != GB_SUCCESS)
            fail_bridge(test, status);
    }
    for (size_t i = 0; i < shapes->n_overrides && status == GB_SUCCESS; i++)
        status = check_shape(graph, shapes->overrides[i].id, &shapes->overrides[i].value.shape);
    free(wanted.list);
    return status;
}

static gb_status map_model(gb_case *test, const gb_bridge_graph *graph)
{
    gb_bridge_options options = {.size = sizeof options, .keep_single_ops = 1};
    gb_bridge_module *module = NULL;
    gb_text text = {0};
    gb_status status = gb_bridge_module_create(&module, graph, &options);
    if (status == GB_SUCCESS)
        status = gb_bridge_module_get_graph(module, SIZE_MAX, &test->graph);
    if (status == GB_SUCCESS) {
        note_inputs(&text, graph);
        note_outside(&text, gb_bridge_module_describe(module));
        test->outside = text.data;
        test->n_model_inputs = gb_bridge_graph_get_input_num(graph);
    } else {
        fail_bridge(test, status);
    }
    gb_bridge_module_destroy(module);
    return status;
}

gb_status gb_cli_model_load(gb_case *test)
{
    gb_bridge_graph *graph = NULL;
    gb_status status = gb_bridge_graph_create_from_pt2(&graph, test->path);
    if (status != GB_SUCCESS)
        return fail_bridge(test, status);
    status = set_sizes(test, graph);
    if (status == GB_SUCCESS)
        status = map_model(test, graph);
    gb_bridge_graph_destroy(graph);
    return status;
}
