/* Compiled partitions: what the caller asks for, matched to code, and what one can ask of them. */
#include "runtime/compiled.h"
#include "base/memory.h"
#include "base/verbose.h"
#include "graph/ir/written.h"
#include "graph/ops/op_rules.h"
#include "runtime/dump.h"
#include "runtime/dynamic.h"
#include "runtime/report.h"

#include <stdlib.h>

const gb_logical_tensor *gb_find_tensor(
        size_t n, const gb_logical_tensor *const *tensors, size_t id)
{
    for (size_t i = 0; i < n; i++)
        if (tensors[i] && tensors[i]->id == id)
            return tensors[i];
    return NULL;
}

/* `tensor` is what the caller gives for the port that the partition describes as `port`. */
static gb_status check_port(
        const gb_logical_tensor *tensor, const gb_logical_tensor *port, bool is_input)
{
    const char *side = is_input ? "input" : "output";
    if (!tensor)
        return gb_fail(GB_INVALID_ARGUMENTS, "compile: %s tensor %zu is missing", side, port->id);
    GB_TRY(gb_logical_tensor_check(tensor));
    if (!tensor->data_type || (port->data_type && tensor->data_type != port->data_type))
        return gb_fail(GB_INVALID_ARGUMENTS, "compile: %s tensor %zu has type %s, not %s", side,
                port->id, gb_data_type_name(tensor->data_type), gb_data_type_name(port->data_type));
    if (!is_input && tensor->property == GB_PROPERTY_HOST_SCALAR)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "compile: output tensor %zu is a host scalar, which nothing can read", port->id);
    bool strided = tensor->layout_type == GB_LAYOUT_STRIDED;
    bool layout = strided || tensor->layout_type == GB_LAYOUT_OPAQUE ||
                  (tensor->layout_type == GB_LAYOUT_ANY && !is_input);
    if (!layout)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "compile: %s tensor %zu must have a strided or opaque layout%s", side, port->id,
                is_input ? "" : ", or any");
    return GB_SUCCESS;
}

bool gb_is_open(const gb_logical_tensor *tensor)
{
    bool strided = tensor->layout_type == GB_LAYOUT_STRIDED;
    for (int d = 0; d < tensor->ndims; d++)
        if (tensor->dims[d] < 0 || (strided && tensor->strides[d] < 0))
            return true;
    return tensor->ndims < 0;
}

void gb_forget_layout(gb_logical_tensor *tensor)
{
    tensor->layout_type = GB_LAYOUT_STRIDED;
    for (int d = 0; d < GB_MAX_NDIMS; d++)
        tensor->strides[d] = GB_UNKNOWN_DIM;
}

void gb_forget_shape(gb_logical_tensor *tensor)
{
    gb_forget_layout(tensor);
    tensor->ndims = GB_UNKNOWN_NDIMS;
    for (int d = 0; d < GB_MAX_NDIMS; d++)
        tensor->dims[d] = GB_UNKNOWN_DIM;
}

void gb_forget_shapes(const gb_partition *partition, gb_graph *graph, size_t n_inputs,
        const gb_logical_tensor *const *inputs)
{
    bool same = true;
    for (uint32_t p = 0; p < partition->n_inputs && same; p++) {
        const gb_logical_tensor *given = gb_find_tensor(n_inputs, inputs, partition->inputs[p]);
        uint32_t value = gb_graph_find_value(graph, partition->inputs[p]);
        same = given && gb_dims_equal(given, &graph->values[value].tensor);
    }
    for (uint32_t v = 0; v < graph->n_values; v++) {
        gb_logical_tensor *tensor = &graph->values[v].tensor;
        if (!same || !gb_dims_known(tensor))
            gb_forget_shape(tensor);
        else if (!gb_graph_strides_count(graph, v) || tensor->layout_type != GB_LAYOUT_STRIDED)
            gb_forget_layout(tensor);
    }
}

/* Layout any of an output: strides that are to be inferred. */
static void set_strided(gb_logical_tensor *tensor)
{
    if (tensor->layout_type != GB_LAYOUT_ANY)
        return;
    tensor->layout_type = GB_LAYOUT_STRIDED;
    for (int d = 0; d < GB_MAX_NDIMS; d++)
        tensor->strides[d] = GB_UNKNOWN_DIM;
}

/* Layout any of an output whose readers prefer one carries the preferred layout; without, it is
 * dense. */
static void set_layout(gb_logical_tensor *tensor, size_t preferred)
{
    if (preferred && tensor->layout_type == GB_LAYOUT_ANY)
        tensor->layout_id = preferred;
    else
        set_strided(tensor);
}

/* Values of the ports; each gets the caller's description. `preferred layouts`: NULL for inputs. */
static gb_status set_ports(gb_graph *graph, const size_t *ids, const size_t *preferred_layouts,
        uint32_t n_ports, size_t n, const gb_logical_tensor *const *tensors, uint32_t **values)
{
    *values = gb_calloc(n_ports, sizeof **values);
    if (!*values)
        return GB_OUT_OF_MEMORY;
    for (uint32_t p = 0; p < n_ports; p++) {
        uint32_t value = gb_graph_find_value(graph, ids[p]);
        gb_logical_tensor *port = &graph->values[value].tensor;
        size_t bytes;
        *port = *gb_find_tensor(n, tensors, ids[p]);
        gb_logical_tensor_normalize(port);
        GB_TRY(gb_logical_tensor_get_mem_size(port, &bytes));
        if (preferred_layouts)
            GB_TRY(gb_check_written(port));
        (*values)[p] = value;
        set_layout(port, preferred_layouts ? preferred_layouts[p] : 0);
    }
    return GB_SUCCESS;
}

/* The partition's graph with the caller's descriptions of its ports; what lies inside follows from
 * them. */
static gb_status make_request(gb_request *request, const gb_partition *partition, size_t n_inputs,
        const gb_logical_tensor *const *inputs, size_t n_outputs,
        const gb_logical_tensor *const *outputs)
{
    GB_TRY(gb_graph_clone(partition->graph, NULL, 0, &request->graph));
    gb_graph *graph = request->graph;
    request->n_inputs = partition->n_inputs;
    request->n_outputs = partition->n_outputs;
    gb_forget_shapes(partition, graph, n_inputs, inputs);
    GB_TRY(set_ports(graph, partition->inputs, NULL, partition->n_inputs, n_inputs, inputs,
            &request->inputs));
    GB_TRY(set_ports(graph, partition->outputs, partition->preferred_layouts, partition->n_outputs,
            n_outputs, outputs, &request->outputs));
    return gb_content_create(graph, &request->content);
}

/* What the caller's order has to do with the ports of the executable. */
typedef struct side {
    size_t n;
    const gb_logical_tensor *const *tensors; /* the caller's */
    uint32_t n_ports;
    const uint32_t *values; /* of the executable's ports, in the request's graph */
    const gb_port *ports;
} side;

/* Places of the ports in the caller's order, and descriptions in that order; tensors that are no
 * port get an empty one. `ids`: of the caller, per value of the executable's request. */
static gb_status bind_side(
        const side *s, const size_t *ids, gb_logical_tensor **list, uint32_t **places)
{
    *list = gb_calloc(s->n, sizeof **list);
    *places = gb_calloc(s->n_ports, sizeof **places);
    if (!*list || !*places)
        return GB_OUT_OF_MEMORY;
    for (size_t i = 0; i < s->n; i++)
        (*list)[i] = (gb_logical_tensor){.id = GB_NO_ID};
    for (uint32_t p = 0; p < s->n_ports; p++) {
        size_t id = ids[s->values[p]];
        uint32_t place = 0;
        while (s->tensors[place]->id != id)
            place++;
        (*list)[place] = s->ports[p].tensor;
        (*list)[place].id = id;
        (*places)[p] = place;
    }
    return GB_SUCCESS;
}

static gb_status bind_pairs(gb_compiled_partition *compiled)
{
    const gb_executable *executable = compiled->executable;
    compiled->inplace = gb_calloc(executable->n_pairs, sizeof *compiled->inplace);
    if (!compiled->inplace)
        return GB_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < executable->n_pairs; i++)
        compiled->inplace[i] = (gb_inplace_pair){
                compiled->inputs[compiled->input_ports[executable->pairs[i].input]].id,
                compiled->outputs[compiled->output_ports[executable->pairs[i].output]].id};
    return GB_SUCCESS;
}

/* Of an input, or an output behind them. */
static uint32_t compiled_port_of(const gb_request *request, uint32_t i)
{
    return i < request->n_inputs ? request->inputs[i] : request->outputs[i - request->n_inputs];
}

/* The caller's tensor id of each value of the executable's request; the caller owns the list.
 * `same`: the one of the executable's requests that has the caller's content. */
static size_t *ids_by_value(const gb_executable *executable, const gb_request *same,
        const gb_graph *graph, const gb_content *content)
{
    const gb_request *request = &executable->request;
    size_t *ids = gb_calloc(request->graph->n_values, sizeof *ids);
    for (uint32_t i = 0; ids && i < request->n_inputs + request->n_outputs; i++) {
        uint32_t number = gb_content_number(&same->content, compiled_port_of(same, i));
        ids[compiled_port_of(request, i)] = graph->values[content->values[number]].tensor.id;
    }
    return ids;
}

static gb_status compiled_bind(gb_compiled_partition *compiled, const gb_request *same,
        const gb_graph *graph, const gb_content *content, const gb_logical_tensor *const *inputs,
        const gb_logical_tensor *const *outputs)
{
    const gb_executable *executable = compiled->executable;
    const gb_request *request = &executable->request;
    const side in = {
            compiled->n_inputs, inputs, request->n_inputs, request->inputs, executable->inputs};
    const side out = {compiled->n_outputs, outputs, request->n_outputs, request->outputs,
            executable->outputs};
    size_t *ids = ids_by_value(executable, same, graph, content);
    if (!ids)
        return GB_OUT_OF_MEMORY;
    gb_status status = bind_side(&in, ids, &compiled->inputs, &compiled->input_ports);
    if (status == GB_SUCCESS)
        status = bind_side(&out, ids, &compiled->outputs, &compiled->output_ports);
    free(ids);
    return status == GB_SUCCESS ? bind_pairs(compiled) : status;
}

static gb_status compile_into(gb_compiled_partition *compiled, const gb_partition *partition,
        uint64_t compile_key, const gb_logical_tensor *const *inputs,
        const gb_logical_tensor *const *outputs, const gb_engine *engine)
{
    int64_t start = gb_verbose_on(GB_VERBOSE_CREATE) ? gb_nanoseconds() : 0;
    gb_request request = {.engine = engine, .compile_key = compile_key};
    const gb_request *same = NULL;
    gb_status status = make_request(
            &request, partition, compiled->n_inputs, inputs, compiled->n_outputs, outputs);
    if (status == GB_SUCCESS)
        gb_dump_subgraph(&request);
    if (status == GB_SUCCESS)
        status = gb_executable_get(&request, partition->backend, &compiled->executable, &same);
    if (status == GB_SUCCESS) {
        /* The request went into the executable unless the cache had one. */
        const gb_request *asked = request.graph ? &request : &compiled->executable->request;
        status = compiled_bind(compiled, same, asked->graph, &asked->content, inputs, outputs);
        if (status == GB_SUCCESS)
            gb_dump_layouts(asked, compiled);
    }
    if (status == GB_SUCCESS && start)
        gb_report_compilation(compiled, request.graph != NULL, gb_nanoseconds() - start);
    gb_request_clear(&request);
    return status;
}

static gb_compiled_partition *create(
        const gb_partition *partition, size_t n_inputs, size_t n_outputs)
{
    gb_compiled_partition *made = gb_calloc(1, sizeof *made);
    char *ops = gb_ops_text(partition->graph);
    if (!made || !ops) {
        free(made);
        free(ops);
        return NULL;
    }
    made->references = 1;
    made->partition = gb_partition_retain(partition);
    made->ops = ops;
    pthread_mutex_init(&made->lock, NULL);
    made->n_inputs = (uint32_t)n_inputs;
    made->n_outputs = (uint32_t)n_outputs;
    return made;
}

/* Hands the compiled partition out when it is whole. */
static gb_status deliver(
        gb_status status, gb_compiled_partition *made, gb_compiled_partition **compiled)
{
    if (status == GB_SUCCESS)
        *compiled = made;
    else
        gb_compiled_partition_destroy(made);
    return status;
}

gb_status gb_compile_for_shapes(gb_compiled_partition **compiled, const gb_partition *partition,
        uint64_t compile_key, size_t n_inputs, const gb_logical_tensor *const *inputs,
        size_t n_outputs, const gb_logical_tensor *const *outputs, const gb_engine *engine)
{
    gb_compiled_partition *made = create(partition, n_inputs, n_outputs);
    if (!made)
        return GB_OUT_OF_MEMORY;
    gb_status status = compile_into(made, partition, compile_key, inputs, outputs, engine);
    return deliver(status, made, compiled);
}

/* The descriptions of ports in the caller's order, which stand for any shape that fits them. */
static gb_logical_tensor *describe_open(
        const size_t *ids, uint32_t n_ports, size_t n, const gb_logical_tensor *const *tensors)
{
    gb_logical_tensor *list = gb_calloc(n, sizeof *list);
    for (size_t i = 0; list && i < n; i++)
        list[i] = (gb_logical_tensor){.id = GB_NO_ID};
    for (uint32_t p = 0; list && p < n_ports; p++) {
        size_t place = 0;
        while (tensors[place]->id != ids[p])
            place++;
        list[place] = *tensors[place];
        gb_logical_tensor_normalize(&list[place]);
        set_strided(&list[place]);
        if (list[place].ndims < 0 && list[place].layout_type != GB_LAYOUT_OPAQUE)
            gb_forget_shape(&list[place]);
    }
    return list;
}

static gb_status compile_open(gb_compiled_partition **compiled, const gb_partition *partition,
        size_t n_inputs, const gb_logical_tensor *const *inputs, size_t n_outputs,
        const gb_logical_tensor *const *outputs, const gb_engine *engine)
{
    gb_compiled_partition *made = create(partition, n_inputs, n_outputs);
    if (!made)
        return GB_OUT_OF_MEMORY;
    made->inputs = describe_open(partition->inputs, partition->n_inputs, n_inputs, inputs);
    made->outputs = describe_open(partition->outputs, partition->n_outputs, n_outputs, outputs);
    gb_status status = made->inputs && made->outputs ? GB_SUCCESS : GB_OUT_OF_MEMORY;
    if (status == GB_SUCCESS)
        status = gb_dynamic_create(&made->dynamic, partition, engine, made->n_inputs, made->inputs,
                made->n_outputs, made->outputs);
    return deliver(status, made, compiled);
}

static gb_status check_ports(const gb_partition *partition, size_t n,
        const gb_logical_tensor *const *tensors, bool is_input)
{
    uint32_t n_ports = is_input ? partition->n_inputs : partition->n_outputs;
    const size_t *ids = is_input ? partition->inputs : partition->outputs;
    for (uint32_t p = 0; p < n_ports; p++) {
        uint32_t value = gb_graph_find_value(partition->graph, ids[p]);
        GB_TRY(check_port(gb_find_tensor(n, tensors, ids[p]),
                &partition->graph->values[value].tensor, is_input));
    }
    return GB_SUCCESS;
}

static bool has_open_input(
        const gb_partition *partition, size_t n, const gb_logical_tensor *const *inputs)
{
    for (uint32_t p = 0; p < partition->n_inputs; p++)
        if (gb_is_open(gb_find_tensor(n, inputs, partition->inputs[p])))
            return true;
    return false;
}

static gb_status compiled_compile(const gb_partition *partition, gb_compiled_partition **compiled,
        size_t n_inputs, const gb_logical_tensor *const *inputs, size_t n_outputs,
        const gb_logical_tensor *const *outputs, const gb_engine *engine)
{
    if (!partition || !compiled || !engine || (n_inputs && !inputs) || (n_outputs && !outputs))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_partition_compile: NULL argument");
    for (size_t i = 0; i < n_inputs + n_outputs; i++)
        if (!(i < n_inputs ? inputs[i] : outputs[i - n_inputs]))
            return gb_fail(GB_INVALID_ARGUMENTS, "gb_partition_compile: NULL tensor");
    if (partition->unsupported)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s is not supported: %s",
                gb_op_label(partition->graph->ops[0]), partition->unsupported);
    if (engine->backend != partition->backend)
        return gb_fail(GB_INVALID_ARGUMENTS, "the partition was made for another kind of engine");
    GB_TRY(check_ports(partition, n_inputs, inputs, true));
    GB_TRY(check_ports(partition, n_outputs, outputs, false));
    if (has_open_input(partition, n_inputs, inputs))
        return compile_open(compiled, partition, n_inputs, inputs, n_outputs, outputs, engine);
    return gb_compile_for_shapes(compiled, partition, engine->backend->compile_key(engine),
            n_inputs, inputs, n_outputs, outputs, engine);
}

gb_status gb_partition_compile(const gb_partition *partition, gb_compiled_partition **compiled,
        size_t n_inputs, const gb_logical_tensor *const *inputs, size_t n_outputs,
        const gb_logical_tensor *const *outputs, const gb_engine *engine)
{
    return gb_verbose_result("compile",
            compiled_compile(partition, compiled, n_inputs, inputs, n_outputs, outputs, engine));
}

gb_compiled_partition *gb_compiled_partition_retain(const gb_compiled_partition *compiled)
{
    gb_compiled_partition *shared =
            (gb_compiled_partition *)(uintptr_t)compiled; /* only the count changes */
    atomic_fetch_add(&shared->references, 1);
    return shared;
}

gb_status gb_compiled_partition_destroy(gb_compiled_partition *compiled)
{
    if (!compiled || atomic_fetch_sub(&compiled->references, 1) != 1)
        return GB_SUCCESS;
    if (compiled->constants)
        gb_constants_release(compiled->constants, true);
    pthread_mutex_destroy(&compiled->lock);
    gb_executable_release(compiled->executable);
    gb_dynamic_free(compiled->dynamic);
    free(compiled->inputs);
    free(compiled->outputs);
    free(compiled->input_ports);
    free(compiled->output_ports);
    free(compiled->inplace);
    free(compiled->ops);
    gb_partition_destroy(compiled->partition);
    free(compiled);
    return GB_SUCCESS;
}

gb_status gb_compiled_partition_get_partition(
        const gb_compiled_partition *compiled, const gb_partition **partition)
{
    if (!compiled || !partition)
        return gb_fail(GB_INVALID_ARGUMENTS, "get_partition: NULL argument");
    *partition = compiled->partition;
    return GB_SUCCESS;
}

gb_status gb_compiled_partition_query_logical_tensor(
        const gb_compiled_partition *compiled, size_t tensor_id, gb_logical_tensor *tensor)
{
    if (!compiled || !tensor)
        return gb_fail(GB_INVALID_ARGUMENTS, "query_logical_tensor: NULL argument");
    for (uint32_t i = 0; i < compiled->n_inputs + compiled->n_outputs; i++) {
        const gb_logical_tensor *port = i < compiled->n_inputs
                                                ? &compiled->inputs[i]
                                                : &compiled->outputs[i - compiled->n_inputs];
        if (port->id != tensor_id)
            continue;
        *tensor = *port;
        return GB_SUCCESS;
    }
    return gb_fail(
            GB_INVALID_ARGUMENTS, "the compiled partition has no port with tensor %zu", tensor_id);
}

gb_status gb_compiled_partition_get_inplace_ports(
        const gb_compiled_partition *compiled, size_t *count, const gb_inplace_pair **pairs)
{
    if (!compiled || !count || !pairs)
        return gb_fail(GB_INVALID_ARGUMENTS, "get_inplace_ports: NULL argument");
    *count = compiled->executable ? compiled->executable->n_pairs : 0;
    *pairs = compiled->inplace;
    return GB_SUCCESS;
}

gb_status gb_compiled_partition_get_scratchpad(
        const gb_compiled_partition *compiled, gb_logical_tensor *scratchpad)
{
    if (!compiled || !scratchpad)
        return gb_fail(GB_INVALID_ARGUMENTS, "get_scratchpad: NULL argument");
    int64_t bytes = GB_UNKNOWN_DIM;
    if (compiled->executable)
        bytes = (int64_t)gb_code_scratch(compiled->executable, NULL);
    return gb_logical_tensor_init_with_dims(
            scratchpad, GB_NO_ID, GB_U8, 1, &bytes, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE);
}

const char *gb_compiled_partition_get_kernels(const gb_compiled_partition *compiled)
{
    if (!compiled)
        return "";
    return compiled->executable ? compiled->executable->kernels : "dynamic";
}

gb_status gb_compiled_partition_get_work(
        const gb_compiled_partition *compiled, double *flops, double *bytes)
{
    if (!compiled || !flops || !bytes)
        return gb_fail(GB_INVALID_ARGUMENTS, "get_work: NULL argument");
    GB_TRY(gb_check_specialized(compiled, "work"));
    *flops = compiled->executable->flops;
    *bytes = compiled->executable->bytes;
    return GB_SUCCESS;
}

gb_status gb_compiled_partition_get_executed_flops(
        const gb_compiled_partition *compiled, double *flops)
{
    if (!compiled || !flops)
        return gb_fail(GB_INVALID_ARGUMENTS, "get_executed_flops: NULL argument");
    GB_TRY(gb_check_specialized(compiled, "work"));
    *flops = compiled->executable->flops - compiled->executable->program.spared;
    return GB_SUCCESS;
}
