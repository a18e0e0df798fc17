/* --dt in both forms and --tensor-property. */
#include "cli/case/rewrite.h"

#include "cli/options/message.h"

#include <graphbench/graphbench_tools.h>
#include <stdlib.h>
#include <string.h>

static bool is_float(gb_data_type type)
{
    return type == GB_F32 || type == GB_BF16 || type == GB_F16;
}

/* Ports that follow --dt (bits); those of other ops all do. The rest are statistics and parameters
 * that the op wants in their own type. */
static const struct {
    gb_op_kind kind;
    unsigned inputs, outputs;
} data_ports[] = {
        {GB_OP_BATCH_NORM_INFERENCE, 1, 1},
        {GB_OP_BATCH_NORM_FORWARD_TRAINING, 1, 1},
        {GB_OP_BATCH_NORM_BACKWARD, 3, 1},
        {GB_OP_LAYER_NORM, 1, 1},
        {GB_OP_LAYER_NORM_BACKWARD, 3, 1},
        {GB_OP_GROUP_NORM, 1, 1},
        {GB_OP_SOFTMAX, ~0u, 1},
        {GB_OP_DROPOUT, 1, 1},
};

static bool has_fixed_types(gb_op_kind kind)
{
    return kind == GB_OP_TYPE_CAST || kind == GB_OP_QUANTIZE || kind == GB_OP_DEQUANTIZE ||
           kind == GB_OP_DYNAMIC_QUANTIZE || kind == GB_OP_DYNAMIC_DEQUANTIZE;
}

static unsigned ports_of(gb_op_kind kind, bool outputs)
{
    for (size_t i = 0; i < sizeof(data_ports) / sizeof(data_ports[0]); i++)
        if (data_ports[i].kind == kind)
            return outputs ? data_ports[i].outputs : data_ports[i].inputs;
    return ~0u;
}

/* Tensors that keep their type. */
typedef struct id_list {
    size_t count;
    size_t *ids; /* owned */
} id_list;

static gb_status keep_ports(const gb_op *op, bool outputs, unsigned ports, id_list *kept)
{
    size_t count = outputs ? gb_op_get_output_num(op) : gb_op_get_input_num(op);
    for (size_t i = 0; i < count; i++) {
        gb_logical_tensor tensor;
        if (i >= 32 || ports >> i & 1)
            continue;
        LIB_TRY(outputs ? gb_op_get_output(op, i, &tensor) : gb_op_get_input(op, i, &tensor));
        kept->ids = gb_cli_realloc(kept->ids, kept->count + 1, sizeof(*kept->ids));
        kept->ids[kept->count++] = tensor.id;
    }
    return GB_SUCCESS;
}

static gb_status list_kept(const gb_graph *graph, id_list *kept)
{
    for (size_t i = 0; i < gb_graph_get_op_num(graph); i++) {
        const gb_op *op;
        gb_op_kind kind;
        size_t id;
        LIB_TRY(gb_graph_get_op(graph, i, &op));
        LIB_TRY(gb_op_get_kind(op, &kind));
        LIB_TRY(gb_op_get_id(op, &id));
        if (has_fixed_types(kind))
            return gb_cli_fail(GB_INVALID_ARGUMENTS,
                    "--dt: op %zu (%s) fixes the data types of the graph; use --dt=ID:TYPE", id,
                    gb_op_kind_name(kind));
        unsigned inputs = ports_of(kind, false);
        if (inputs != ~0u)
            CLI_TRY(keep_ports(op, false, inputs, kept));
        unsigned outputs = ports_of(kind, true);
        if (outputs != ~0u)
            CLI_TRY(keep_ports(op, true, outputs, kept));
    }
    if (kept->count > 1)
        qsort(kept->ids, kept->count, sizeof(*kept->ids), gb_cli_compare_ids);
    return GB_SUCCESS;
}

/* Integers, booleans and what is kept stay. */
static gb_status set_types(gb_graph *graph, gb_data_type type, const id_list *kept)
{
    for (size_t i = 0; i < gb_graph_get_tensor_num(graph); i++) {
        gb_logical_tensor tensor;
        LIB_TRY(gb_graph_get_tensor(graph, i, &tensor));
        bool fixed = tensor.property == GB_PROPERTY_HOST_SCALAR; /* f32 at best */
        if (fixed || !is_float(tensor.data_type))
            continue;
        if (kept->count &&
                bsearch(&tensor.id, kept->ids, kept->count, sizeof(*kept->ids), gb_cli_compare_ids))
            continue;
        tensor.data_type = type;
        LIB_TRY(gb_graph_set_tensor(graph, &tensor));
    }
    return GB_SUCCESS;
}

static gb_status set_graph_type(const gb_rewrite *rewrite)
{
    gb_data_type type = rewrite->test->choice[AXIS_DT]->type;
    if (type == GB_UNDEF)
        return GB_SUCCESS;
    if (!is_float(type))
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "--dt: %s is none of f32, bf16 and f16, which a whole graph may have",
                gb_data_type_name(type));
    id_list kept = {0};
    gb_status status = list_kept(rewrite->graph, &kept);
    if (status == GB_SUCCESS)
        status = set_types(rewrite->graph, type, &kept);
    free(kept.ids);
    return status;
}

static gb_status find_tensor(
        const gb_graph *graph, const char *option, size_t id, gb_logical_tensor *tensor)
{
    if (gb_graph_find_tensor(graph, id, tensor) == GB_SUCCESS)
        return GB_SUCCESS;
    return gb_cli_fail(GB_INVALID_ARGUMENTS, "--%s: the graph has no tensor %zu", option, id);
}

static gb_status set_types_by_id(const gb_rewrite *rewrite)
{
    const gb_alternative *choice = rewrite->test->choice[AXIS_DT_IDS];
    for (size_t i = 0; i < choice->n_overrides; i++) {
        gb_logical_tensor tensor;
        CLI_TRY(find_tensor(rewrite->graph, "dt", choice->overrides[i].id, &tensor));
        tensor.data_type = choice->overrides[i].value.type;
        LIB_TRY(gb_graph_set_tensor(rewrite->graph, &tensor));
    }
    return GB_SUCCESS;
}

/* A host scalar may be written as a tensor of one element; the library wants rank 0. */
static void make_scalar(gb_logical_tensor *tensor)
{
    for (int i = 0; i < tensor->ndims; i++)
        if (tensor->dims[i] != 1)
            return;
    if (tensor->ndims > 0)
        tensor->ndims = 0;
}

static gb_status set_properties(const gb_rewrite *rewrite)
{
    const gb_alternative *choice = rewrite->test->choice[AXIS_TENSOR_PROPERTY];
    for (size_t i = 0; i < choice->n_overrides; i++) {
        gb_logical_tensor tensor;
        CLI_TRY(find_tensor(rewrite->graph, "tensor-property", choice->overrides[i].id, &tensor));
        tensor.property = choice->overrides[i].value.property;
        if (tensor.property == GB_PROPERTY_HOST_SCALAR)
            make_scalar(&tensor);
        LIB_TRY(gb_graph_set_tensor(rewrite->graph, &tensor));
    }
    return GB_SUCCESS;
}

gb_status gb_cli_rewrite_types(const gb_rewrite *rewrite)
{
    CLI_TRY(set_graph_type(rewrite));
    CLI_TRY(set_types_by_id(rewrite));
    return set_properties(rewrite);
}
