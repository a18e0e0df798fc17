/* Kernels: a group compiled for inputs of certain types, dims and strides. */
#include "module.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_KERNELS = 64 };

/* What one execution needs; kernels keep them between executions, one for each that ran at the same
 * time. */
typedef struct binding_set binding_set;
struct binding_set {
    binding_set *next;
    gb_stream *stream;
    gb_tensor **inputs, **outputs;
    const void **input_data;
    uint32_t constants_version;
};

struct gb_bridge_kernel {
    gb_bridge_module *module;
    const br_group *group;
    gb_compiled_partition *compiled;
    gb_logical_tensor *inputs, *outputs; /* of all ports */
    gb_bridge_tensor *key;               /* named inputs, as they were given, without memory */
    gb_bridge_tensor *results;           /* named outputs */
    pthread_mutex_t lock;
    binding_set *free_sets;
};

/* ---- threads ---- */

static int take_threads(const gb_bridge_module *module)
{
    int before = omp_get_max_threads();
    if (module->threads > 0 && module->threads != before)
        omp_set_num_threads(module->threads);
    return before;
}

static void give_threads(int before)
{
    if (omp_get_max_threads() != before)
        omp_set_num_threads(before);
}

gb_status gb_bridge_module_set_threads(gb_bridge_module *module, int threads)
{
    if (!module || threads < 0)
        return br_fail(GB_INVALID_ARGUMENTS, "module is NULL or threads are below 0");
    module->threads = threads;
    return GB_SUCCESS;
}

/* ---- descriptions ---- */

static bool same_input(const gb_bridge_tensor *a, const gb_bridge_tensor *b)
{
    size_t n = (size_t)a->ndims;
    return a->dtype == b->dtype && a->ndims == b->ndims && a->layout_id == b->layout_id &&
           memcmp(a->dims, b->dims, n * sizeof *a->dims) == 0 &&
           (a->layout_id || memcmp(a->strides, b->strides, n * sizeof *a->strides) == 0);
}

static gb_status check_input(
        const gb_bridge_module *module, const br_port *port, const gb_bridge_tensor *tensor)
{
    const br_value *value = &module->graph->values[port->value];
    if (tensor->dtype != (int32_t)value->dtype->type || tensor->ndims != value->ndims)
        return br_fail(GB_INVALID_ARGUMENTS,
                "input \"%.100s\" is of another type or rank than the graph's", value->name);
    for (int d = 0; d < value->ndims; d++)
        if (tensor->dims[d] != value->dims[d].value)
            return br_fail(value->dims[d].expr ? GB_UNIMPLEMENTED : GB_INVALID_SHAPE,
                    "input \"%.100s\": dim %d is %lld, the graph has %lld", value->name, d,
                    (long long)tensor->dims[d], (long long)value->dims[d].value);
    for (int d = 0; d < value->ndims && !tensor->layout_id; d++)
        if (tensor->strides[d] < 0)
            return br_fail(GB_UNIMPLEMENTED, "input \"%.100s\": stride %d is %lld", value->name, d,
                    (long long)tensor->strides[d]);
    return GB_SUCCESS;
}

static gb_status describe_input(const gb_bridge_module *module, const br_port *port,
        const gb_bridge_tensor *given, gb_logical_tensor *tensor)
{
    BR_TRY(br_describe_wire(&module->builder, port->wire, tensor));
    tensor->property = port->is_constant || port->value == BR_NONE ? GB_PROPERTY_CONSTANT
                                                                   : GB_PROPERTY_VARIABLE;
    if (port->value == BR_NONE)
        return GB_SUCCESS;
    if (given->layout_id) {
        tensor->layout_type = GB_LAYOUT_OPAQUE;
        tensor->layout_id = (size_t)given->layout_id - 1;
        return GB_SUCCESS;
    }
    memcpy(tensor->strides, given->strides, sizeof tensor->strides);
    return GB_SUCCESS;
}

static gb_status describe_output(
        const gb_bridge_module *module, const br_port *port, gb_logical_tensor *tensor)
{
    BR_TRY(br_describe_wire(&module->builder, port->wire, tensor));
    if (port->value == BR_NONE)
        return GB_SUCCESS;
    if (port->is_opaque) {
        tensor->layout_type = GB_LAYOUT_ANY;
        return GB_SUCCESS;
    }
    br_take_strides(&module->graph->values[port->value], tensor);
    return GB_SUCCESS;
}

static gb_status tell_output(const gb_logical_tensor *tensor, gb_bridge_tensor *result)
{
    size_t bytes;
    gb_status status = gb_logical_tensor_get_mem_size(tensor, &bytes);
    if (status != GB_SUCCESS)
        return br_fail_library(status, "size of an output");
    *result = (gb_bridge_tensor){
            .dtype = (int32_t)tensor->data_type, .ndims = tensor->ndims, .size = bytes};
    memcpy(result->dims, tensor->dims, sizeof result->dims);
    if (tensor->layout_type == GB_LAYOUT_OPAQUE)
        result->layout_id = (uint64_t)tensor->layout_id + 1;
    else
        memcpy(result->strides, tensor->strides, sizeof result->strides);
    return GB_SUCCESS;
}

/* ---- compiling ---- */

static void destroy_set(const gb_bridge_kernel *kernel, binding_set *set)
{
    for (uint32_t i = 0; set->inputs && i < kernel->group->n_all_inputs; i++)
        gb_tensor_destroy(set->inputs[i]);
    for (uint32_t i = 0; set->outputs && i < kernel->group->n_all_outputs; i++)
        gb_tensor_destroy(set->outputs[i]);
    gb_stream_destroy(set->stream);
    free((void *)set->inputs);
    free((void *)set->outputs);
    free((void *)set->input_data);
    free(set);
}

void br_kernel_destroy(gb_bridge_kernel *kernel)
{
    if (!kernel)
        return;
    for (binding_set *set = kernel->free_sets, *next; set; set = next) {
        next = set->next;
        destroy_set(kernel, set);
    }
    gb_compiled_partition_destroy(kernel->compiled);
    free(kernel->inputs);
    free(kernel->outputs);
    free(kernel->key);
    free(kernel->results);
    pthread_mutex_destroy(&kernel->lock);
    free(kernel);
}

static gb_status compile(gb_bridge_kernel *kernel, const gb_bridge_tensor *given)
{
    const gb_bridge_module *module = kernel->module;
    const br_group *group = kernel->group;
    const gb_logical_tensor **lists = calloc(
            (size_t)group->n_all_inputs + group->n_all_outputs + 1, sizeof(gb_logical_tensor *));
    if (!lists)
        return br_out_of_memory();
    gb_status status = GB_SUCCESS;
    for (uint32_t i = 0; i < group->n_all_inputs && status == GB_SUCCESS; i++) {
        status = describe_input(module, &group->inputs[i], i < group->n_inputs ? &given[i] : NULL,
                &kernel->inputs[i]);
        lists[i] = &kernel->inputs[i];
    }
    for (uint32_t i = 0; i < group->n_all_outputs && status == GB_SUCCESS; i++) {
        status = describe_output(module, &group->outputs[i], &kernel->outputs[i]);
        lists[group->n_all_inputs + i] = &kernel->outputs[i];
    }
    if (status == GB_SUCCESS) {
        int threads = take_threads(module);
        status = gb_partition_compile(group->partition, &kernel->compiled, group->n_all_inputs,
                lists, group->n_all_outputs, lists + group->n_all_inputs, module->engine);
        give_threads(threads);
        if (status != GB_SUCCESS)
            status = br_fail_library(
                    status == GB_OUT_OF_MEMORY ? status : GB_UNIMPLEMENTED, "group");
    }
    for (uint32_t i = 0; i < group->n_all_outputs && status == GB_SUCCESS; i++) {
        status = gb_compiled_partition_query_logical_tensor(
                kernel->compiled, group->outputs[i].wire, &kernel->outputs[i]);
        if (status != GB_SUCCESS)
            status = br_fail_library(status, "output");
        else if (i < group->n_outputs)
            status = tell_output(&kernel->outputs[i], &kernel->results[i]);
    }
    free((void *)lists);
    return status;
}

static gb_status make_kernel(gb_bridge_module *module, const br_group *group,
        const gb_bridge_tensor *given, gb_bridge_kernel **made)
{
    gb_bridge_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return br_out_of_memory();
    kernel->module = module;
    kernel->group = group;
    pthread_mutex_init(&kernel->lock, NULL);
    kernel->inputs = calloc((size_t)group->n_all_inputs + 1, sizeof *kernel->inputs);
    kernel->outputs = calloc((size_t)group->n_all_outputs + 1, sizeof *kernel->outputs);
    kernel->key = calloc((size_t)group->n_inputs + 1, sizeof *kernel->key);
    kernel->results = calloc((size_t)group->n_outputs + 1, sizeof *kernel->results);
    gb_status status = kernel->inputs && kernel->outputs && kernel->key && kernel->results
                               ? compile(kernel, given)
                               : br_out_of_memory();
    if (status != GB_SUCCESS) {
        br_kernel_destroy(kernel);
        return status;
    }
    if (group->n_inputs)
        memcpy(kernel->key, given, group->n_inputs * sizeof *given);
    br_log(2, "group %u compiled: %s", (unsigned)(group - module->groups),
            gb_compiled_partition_get_kernels(kernel->compiled));
    *made = kernel;
    return GB_SUCCESS;
}

/* Under the group's lock, so that what several threads ask for is compiled once. */
static gb_status find_kernel(gb_bridge_module *module, br_group *group,
        const gb_bridge_tensor *given, gb_bridge_kernel **kernel)
{
    for (uint32_t k = 0; k < group->n_kernels; k++) {
        bool same = true;
        for (uint32_t i = 0; i < group->n_inputs && same; i++)
            same = same_input(&group->kernels[k]->key[i], &given[i]);
        if (same) {
            *kernel = group->kernels[k];
            return GB_SUCCESS;
        }
    }
    uint32_t most =
            module->options.kernels_per_group ? module->options.kernels_per_group : DEFAULT_KERNELS;
    if (group->n_kernels >= most)
        return br_fail(GB_UNIMPLEMENTED, "group %u keeps %u kernels, and no more",
                (unsigned)(group - module->groups), most);
    for (uint32_t i = 0; i < group->n_inputs; i++)
        BR_TRY(check_input(module, &group->inputs[i], &given[i]));
    if (group->n_kernels == group->kernels_capacity) {
        uint32_t capacity = group->kernels_capacity ? group->kernels_capacity * 2 : 4;
        gb_bridge_kernel **more =
                realloc((void *)group->kernels, capacity * sizeof(gb_bridge_kernel *));
        if (!more)
            return br_out_of_memory();
        group->kernels = more;
        group->kernels_capacity = capacity;
    }
    BR_TRY(make_kernel(module, group, given, kernel));
    group->kernels[group->n_kernels++] = *kernel;
    return GB_SUCCESS;
}

gb_status gb_bridge_group_prepare(gb_bridge_module *module, size_t index, size_t n_inputs,
        const gb_bridge_tensor *inputs, size_t n_outputs, gb_bridge_tensor *outputs,
        const gb_bridge_kernel **kernel)
{
    if (!module || index >= module->n_groups)
        return br_fail(GB_INVALID_ARGUMENTS, "no such group");
    br_group *group = &module->groups[index];
    if (n_inputs != group->n_inputs || (n_inputs && !inputs) ||
            (outputs && n_outputs != group->n_outputs))
        return br_fail(GB_INVALID_ARGUMENTS, "group %zu has %u inputs and %u outputs", index,
                group->n_inputs, group->n_outputs);
    for (size_t i = 0; i < n_inputs; i++)
        if (inputs[i].ndims < 0 || inputs[i].ndims > GB_MAX_NDIMS)
            return br_fail(GB_INVALID_ARGUMENTS, "input %zu: rank %d", i, inputs[i].ndims);
    gb_bridge_kernel *found = NULL;
    pthread_mutex_lock(&group->lock);
    gb_status status = find_kernel(module, group, inputs, &found);
    pthread_mutex_unlock(&group->lock);
    if (status != GB_SUCCESS)
        return status;
    if (outputs && n_outputs)
        memcpy(outputs, found->results, n_outputs * sizeof *outputs);
    if (kernel)
        *kernel = found;
    return GB_SUCCESS;
}

const char *gb_bridge_kernel_get_name(const gb_bridge_kernel *kernel)
{
    return kernel ? gb_compiled_partition_get_kernels(kernel->compiled) : "";
}

size_t gb_bridge_kernel_get_inplace_input(const gb_bridge_kernel *kernel, size_t output)
{
    size_t count;
    const gb_inplace_pair *pairs;
    if (!kernel || output >= kernel->group->n_outputs ||
            gb_compiled_partition_get_inplace_ports(kernel->compiled, &count, &pairs) != GB_SUCCESS)
        return SIZE_MAX;
    for (size_t p = 0; p < count; p++)
        for (size_t i = 0; i < kernel->group->n_inputs; i++)
            if (pairs[p].output_id == kernel->group->outputs[output].wire &&
                    pairs[p].input_id == kernel->group->inputs[i].wire &&
                    !kernel->group->inputs[i].is_constant)
                return i;
    return SIZE_MAX;
}

/* ---- executing ---- */

/* What stands in for an input that is given without memory: the archive's contents of a constant,
 * where the kernel reads them as they lie. */
static const void *stand_in_of(const gb_bridge_kernel *kernel, uint32_t input)
{
    const br_port *port = &kernel->group->inputs[input];
    const br_value *value = &kernel->module->graph->values[port->value];
    const gb_bridge_tensor *key = &kernel->key[input];
    bool is_same = port->is_constant && !key->layout_id;
    for (int d = 0; d < value->ndims; d++)
        is_same = is_same && (key->dims[d] == 1 || key->strides[d] == value->strides[d].value);
    return is_same ? value->data : NULL;
}

static gb_status make_set(const gb_bridge_kernel *kernel, binding_set **made)
{
    const br_group *group = kernel->group;
    binding_set *set = calloc(1, sizeof *set);
    if (!set)
        return br_out_of_memory();
    set->inputs = calloc((size_t)group->n_all_inputs + 1, sizeof(gb_tensor *));
    set->outputs = calloc((size_t)group->n_all_outputs + 1, sizeof(gb_tensor *));
    set->input_data = calloc((size_t)group->n_all_inputs + 1, sizeof(void *));
    gb_status status =
            set->inputs && set->outputs && set->input_data ? GB_SUCCESS : GB_OUT_OF_MEMORY;
    if (status == GB_SUCCESS)
        status = gb_stream_create(&set->stream, kernel->module->engine);
    for (uint32_t i = 0; i < group->n_all_inputs && status == GB_SUCCESS; i++) {
        if (i >= group->n_inputs) /* a literal */
            set->input_data[i] = kernel->module->builder.wires[group->inputs[i].wire].data;
        status = gb_tensor_create(&set->inputs[i], &kernel->inputs[i], kernel->module->engine,
                (void *)(uintptr_t)set->input_data[i]);
    }
    for (uint32_t i = 0; i < group->n_all_outputs && status == GB_SUCCESS; i++)
        status = gb_tensor_create(&set->outputs[i], &kernel->outputs[i], kernel->module->engine,
                i < group->n_outputs ? GB_MEMORY_NONE : GB_MEMORY_ALLOCATE);
    if (status != GB_SUCCESS) {
        destroy_set(kernel, set);
        return br_fail_library(status, "tensors");
    }
    set->constants_version = kernel->module->constants_version;
    *made = set;
    return GB_SUCCESS;
}

static gb_status bind(const gb_bridge_kernel *kernel, binding_set *set, const void *const *inputs,
        void *const *outputs)
{
    const br_group *group = kernel->group;
    bool is_new = set->constants_version != kernel->module->constants_version;
    for (uint32_t i = 0; i < group->n_inputs; i++) {
        const void *data = inputs[i] ? inputs[i] : stand_in_of(kernel, i);
        if (!data)
            return br_fail(GB_INVALID_ARGUMENTS,
                    "input %u has no memory, and no contents with these strides are known", i);
        if (data == set->input_data[i] && !(is_new && group->inputs[i].is_constant))
            continue;
        gb_status status = gb_tensor_set_data_handle(set->inputs[i], (void *)(uintptr_t)data);
        if (status != GB_SUCCESS)
            return br_fail_library(status, "input");
        set->input_data[i] = data;
    }
    set->constants_version = kernel->module->constants_version;
    for (uint32_t i = 0; i < group->n_outputs; i++) {
        if (!outputs[i])
            return br_fail(GB_INVALID_ARGUMENTS, "output %u has no memory", i);
        gb_status status = gb_tensor_set_data_handle(set->outputs[i], outputs[i]);
        if (status != GB_SUCCESS)
            return br_fail_library(status, "output");
    }
    return GB_SUCCESS;
}

gb_status gb_bridge_kernel_execute(const gb_bridge_kernel *given, size_t n_inputs,
        const void *const *inputs, size_t n_outputs, void *const *outputs)
{
    if (!given || n_inputs != given->group->n_inputs || n_outputs != given->group->n_outputs ||
            (n_inputs && !inputs) || (n_outputs && !outputs))
        return br_fail(GB_INVALID_ARGUMENTS, "no kernel, or other counts than the group's");
    gb_bridge_kernel *kernel = (gb_bridge_kernel *)(uintptr_t)given;
    pthread_mutex_lock(&kernel->lock);
    binding_set *set = kernel->free_sets;
    if (set)
        kernel->free_sets = set->next;
    pthread_mutex_unlock(&kernel->lock);
    if (!set)
        BR_TRY(make_set(kernel, &set));
    gb_status status = bind(kernel, set, inputs, outputs);
    if (status == GB_SUCCESS) {
        int threads = take_threads(kernel->module);
        status = gb_compiled_partition_execute(kernel->compiled, set->stream,
                kernel->group->n_all_inputs, (const gb_tensor *const *)set->inputs,
                kernel->group->n_all_outputs, set->outputs, NULL);
        give_threads(threads);
        if (status != GB_SUCCESS)
            br_fail_library(status, "execution");
    }
    pthread_mutex_lock(&kernel->lock);
    set->next = kernel->free_sets;
    kernel->free_sets = set;
    pthread_mutex_unlock(&kernel->lock);
    return status;
}

gb_status gb_bridge_group_execute(gb_bridge_module *module, size_t group, size_t n_inputs,
        const gb_bridge_tensor *inputs, size_t n_outputs, const gb_bridge_tensor *outputs)
{
    const gb_bridge_kernel *kernel;
    BR_TRY(gb_bridge_group_prepare(module, group, n_inputs, inputs, 0, NULL, &kernel));
    if (n_outputs != kernel->group->n_outputs || (n_outputs && !outputs))
        return br_fail(
                GB_INVALID_ARGUMENTS, "group %zu has %u outputs", group, kernel->group->n_outputs);
    const void **in = calloc(n_inputs + n_outputs + 1, sizeof(void *));
    if (!in)
        return br_out_of_memory();
    void **out = (void **)(uintptr_t)(in + n_inputs);
    for (size_t i = 0; i < n_inputs; i++)
        in[i] = inputs[i].data;
    for (size_t i = 0; i < n_outputs; i++)
        out[i] = outputs[i].data;
    gb_status status = gb_bridge_kernel_execute(kernel, n_inputs, in, n_outputs, out);
    free((void *)in);
    return status;
}

gb_status gb_bridge_module_renew_constants(gb_bridge_module *module)
{
    if (!module)
        return br_fail(GB_INVALID_ARGUMENTS, "module is NULL");
    module->constants_version++;
    return GB_SUCCESS;
}
