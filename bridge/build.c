/* What functions of the table are made of: arguments, wires, ops. */
#include "map.h"

#include <math.h>
#include <string.h>

bool br_refuse(br_builder *b, const char *reason)
{
    if (!b->reason)
        b->reason = reason;
    return false;
}

int64_t br_size_value(const br_builder *b, const br_size *size)
{
    (void)b;
    return size->value;
}

/* ---- arguments ---- */

bool br_has_arg(const br_node *node, const char *name)
{
    return br_find_arg(node, name) != NULL;
}

static bool arg_sizes(br_builder *b, const br_node *node, const char *name, const br_arg **arg)
{
    *arg = br_find_arg(node, name);
    if (!*arg)
        return true;
    for (uint32_t i = 0; (*arg)->sizes && i < (*arg)->count; i++)
        if ((*arg)->sizes[i].unknown)
            return br_refuse(b, "a size in its arguments is not known");
    return true;
}

bool br_arg_int(br_builder *b, const br_node *node, const char *name, int64_t otherwise, int64_t *v)
{
    const br_arg *arg;
    if (!arg_sizes(b, node, name, &arg))
        return false;
    *v = otherwise;
    if (!arg)
        return true;
    if (arg->kind != BR_ARG_INT && arg->kind != BR_ARG_BOOL && arg->kind != BR_ARG_DTYPE &&
            !(arg->kind == BR_ARG_INTS && arg->count == 1))
        return br_refuse(b, "an argument is no integer");
    *v = br_size_value(b, &arg->sizes[0]);
    return true;
}

bool br_arg_float(br_builder *b, const br_node *node, const char *name, double otherwise, double *v)
{
    const br_arg *arg;
    if (!arg_sizes(b, node, name, &arg))
        return false;
    *v = otherwise;
    if (!arg)
        return true;
    if (arg->kind == BR_ARG_FLOAT)
        *v = arg->floats[0];
    else if (arg->kind == BR_ARG_INT || arg->kind == BR_ARG_BOOL)
        *v = (double)br_size_value(b, &arg->sizes[0]);
    else
        return br_refuse(b, "an argument is no number");
    return true;
}

bool br_arg_bool(br_builder *b, const br_node *node, const char *name, bool otherwise, bool *v)
{
    int64_t value;
    if (!br_arg_int(b, node, name, otherwise, &value))
        return false;
    *v = value != 0;
    return true;
}

bool br_arg_ints(br_builder *b, const br_node *node, const char *name, int *count, int64_t *v)
{
    const br_arg *arg;
    *count = 0;
    if (!arg_sizes(b, node, name, &arg))
        return false;
    if (!arg)
        return true;
    if ((arg->kind != BR_ARG_INT && arg->kind != BR_ARG_INTS && arg->kind != BR_ARG_BOOLS) ||
            arg->count > GB_MAX_NDIMS)
        return br_refuse(b, "an argument is no list of a few integers");
    for (uint32_t i = 0; i < arg->count; i++)
        v[i] = br_size_value(b, &arg->sizes[i]);
    *count = (int)arg->count;
    return true;
}

bool br_arg_window(br_builder *b, const br_node *node, const char *name, int count,
        int64_t otherwise, int64_t *v)
{
    int found;
    int64_t given[GB_MAX_NDIMS];
    if (!br_arg_ints(b, node, name, &found, given))
        return false;
    if (found > 1 && found != count)
        return br_refuse(b, "a list has other entries than there are spatial axes");
    for (int d = 0; d < count; d++)
        v[d] = found == 0 ? otherwise : given[found == 1 ? 0 : d];
    return true;
}

const br_value *br_arg_value(const br_builder *b, const br_node *node, const char *name)
{
    const br_arg *arg = br_find_arg(node, name);
    if (!arg || arg->kind != BR_ARG_TENSOR)
        return NULL;
    return &b->graph->values[arg->values[0]];
}

/* ---- values ---- */

const br_value *br_output(const br_builder *b, const br_node *node, uint32_t index)
{
    if (index >= node->n_outputs || node->outputs[index] == BR_NONE)
        return NULL;
    return &b->graph->values[node->outputs[index]];
}

bool br_output_is_read(const br_builder *b, const br_node *node, uint32_t index)
{
    const br_value *value = br_output(b, node, index);
    return value && b->last_uses[node->outputs[index]] != BR_NONE;
}

static bool value_is_usable(br_builder *b, const br_value *value)
{
    if (value->kind != BR_TENSOR)
        return br_refuse(b, "not a tensor");
    if (!value->is_cpu)
        return br_refuse(b, "a tensor is on another device");
    if (!value->is_strided)
        return br_refuse(b, "a tensor is not strided");
    if (value->ndims < 0)
        return br_refuse(b, "a tensor has more than 12 dims");
    if (value->dtype->type == GB_UNDEF)
        return br_refuse(b, br_format(b->arena, "data type %s", value->dtype->name));
    for (int d = 0; d < value->ndims; d++) {
        if (value->dims[d].unknown)
            return br_refuse(b, "a size is not known");
        if (br_size_value(b, &value->dims[d]) <= 0)
            return br_refuse(b, "a tensor is empty");
    }
    return true;
}

static void value_dims(const br_builder *b, const br_value *value, int64_t *dims)
{
    for (int d = 0; d < value->ndims; d++)
        dims[d] = br_size_value(b, &value->dims[d]);
}

/* ---- wires and ops ---- */

uint32_t br_wire_new(br_builder *b, gb_data_type type, int ndims, const int64_t *dims)
{
    if (!br_grow(b->arena, &b->wires, &b->wires_capacity, b->n_wires, sizeof *b->wires))
        return 0;
    br_wire *wire = &b->wires[b->n_wires];
    *wire = (br_wire){.type = type,
            .ndims = ndims,
            .value = BR_NONE,
            .producer = BR_NONE,
            .storage = BR_NONE};
    if (ndims > 0)
        memcpy(wire->dims, dims, (size_t)ndims * sizeof *dims);
    return b->n_wires++;
}

const br_wire *br_wire_of(const br_builder *b, uint32_t wire)
{
    return &b->wires[wire];
}

uint32_t br_wire_like(br_builder *b, uint32_t wire, gb_data_type type)
{
    br_wire like = b->wires[wire];
    return br_wire_new(b, type, like.ndims, like.dims);
}

uint32_t br_scalar(br_builder *b, double value)
{
    const int64_t dims[] = {1};
    float *data = br_alloc(b->arena, 1, sizeof *data);
    uint32_t wire = br_wire_new(b, GB_F32, 1, dims);
    if (b->arena->failed)
        return 0;
    *data = (float)value;
    b->wires[wire].data = data;
    b->wires[wire].bytes = sizeof *data;
    return wire;
}

br_op *br_emit(br_builder *b, gb_op_kind kind, uint32_t n_inputs, const uint32_t *inputs,
        uint32_t n_outputs, const uint32_t *outputs)
{
    static br_op nowhere; /* memory has run out: the whole mapping fails at its end */
    uint32_t *copies = br_alloc(b->arena, (size_t)n_inputs + n_outputs, sizeof *copies);
    if (!copies || !br_grow(b->arena, &b->ops, &b->ops_capacity, b->n_ops, sizeof *b->ops)) {
        nowhere = (br_op){.n_attrs = BR_MOST_ATTRS};
        return &nowhere;
    }
    br_op *op = &b->ops[b->n_ops];
    *op = (br_op){.kind = kind,
            .node = b->node,
            .n_inputs = n_inputs,
            .n_outputs = n_outputs,
            .inputs = copies,
            .outputs = copies + n_inputs};
    if (n_inputs)
        memcpy(op->inputs, inputs, n_inputs * sizeof *inputs);
    if (n_outputs)
        memcpy(op->outputs, outputs, n_outputs * sizeof *outputs);
    for (uint32_t i = 0; i < n_outputs; i++)
        b->wires[outputs[i]].producer = b->n_ops;
    b->n_ops++;
    return op;
}

static br_attr *add_attr(br_op *op, gb_op_attr attr, gb_attr_type type)
{
    static br_attr nowhere;
    br_attr *made = op->n_attrs < BR_MOST_ATTRS ? &op->attrs[op->n_attrs++] : &nowhere;
    *made = (br_attr){.attr = attr, .type = type};
    return made;
}

void br_set_s64(br_builder *b, br_op *op, gb_op_attr attr, size_t count, const int64_t *values)
{
    br_attr *made = add_attr(op, attr, GB_ATTR_TYPE_S64S);
    made->s64 = br_alloc(b->arena, count, sizeof *values);
    if (!made->s64)
        return;
    if (count)
        memcpy(made->s64, values, count * sizeof *values);
    made->count = count;
}

void br_set_bool(br_builder *b, br_op *op, gb_op_attr attr, bool value)
{
    int64_t truth = value;
    br_set_s64(b, op, attr, 1, &truth);
    if (op->n_attrs && op->n_attrs <= BR_MOST_ATTRS && op->attrs[op->n_attrs - 1].attr == attr)
        op->attrs[op->n_attrs - 1].type = GB_ATTR_TYPE_BOOL;
}

void br_set_f32(br_op *op, gb_op_attr attr, double value)
{
    add_attr(op, attr, GB_ATTR_TYPE_F32)->f32 = (float)value;
}

void br_set_text(br_op *op, gb_op_attr attr, const char *text)
{
    add_attr(op, attr, GB_ATTR_TYPE_STRING)->text = text;
}

uint32_t br_unary(br_builder *b, gb_op_kind kind, uint32_t a, uint32_t out)
{
    br_emit(b, kind, 1, &a, 1, &out);
    return out;
}

uint32_t br_binary(br_builder *b, gb_op_kind kind, uint32_t a, uint32_t c, uint32_t out)
{
    const uint32_t inputs[] = {a, c};
    br_emit(b, kind, 2, inputs, 1, &out);
    return out;
}

uint32_t br_cast(br_builder *b, uint32_t wire, gb_data_type type)
{
    gb_data_type from = b->wires[wire].type;
    if (from == type)
        return wire;
    if (from != GB_F32 && type != GB_F32)
        wire = br_cast(b, wire, GB_F32);
    return br_unary(b, GB_OP_TYPE_CAST, wire, br_wire_like(b, wire, type));
}

uint32_t br_reshape(br_builder *b, uint32_t wire, int ndims, const int64_t *dims, uint32_t out)
{
    if (out == BR_NONE)
        out = br_wire_new(b, b->wires[wire].type, ndims, dims);
    br_op *op = br_emit(b, GB_OP_STATIC_RESHAPE, 1, &wire, 1, &out);
    br_set_s64(b, op, GB_ATTR_SHAPE, (size_t)ndims, dims);
    br_set_bool(b, op, GB_ATTR_SPECIAL_ZERO, false);
    return out;
}

bool br_axis(br_builder *b, int64_t axis, int ndims, int64_t *from_begin)
{
    *from_begin = axis < 0 ? axis + ndims : axis;
    if (*from_begin < 0 || *from_begin >= ndims)
        return br_refuse(b, "an axis is out of range");
    return true;
}

/* ---- reading values ---- */

/* The tensor that the framework's own node makes: a Wildcard stands for it. */
static uint32_t framework_view(br_builder *b, uint32_t base, const br_view *view)
{
    uint32_t known = b->view_wires[view->value];
    if (known < b->n_wires && b->wires[known].value == view->value)
        return known;
    uint32_t out = br_wire_new(b, b->wires[base].type, view->ndims, view->dims);
    br_op *op = br_emit(b, GB_OP_WILDCARD, 1, &base, 1, &out);
    op->node = view->node;
    op->is_view = true;
    if (b->arena->failed)
        return 0;
    b->wires[out].value = view->value;
    b->wires[out].storage = b->wires[base].storage;
    b->view_wires[view->value] = out;
    return out;
}

/* Is the tensor better repeated here than by the framework, whose view of it costs nothing but that
 * no group reaches across it? */
static bool is_repeated_here(const br_builder *b, uint32_t base)
{
    uint32_t producer = b->wires[base].producer;
    return !b->has_writes && producer != BR_NONE && b->ops[producer].kind != GB_OP_WILDCARD;
}

/* The product with ones repeats a tensor along the axes where it has one entry. */
static br_op *repeat(br_builder *b, uint32_t in, const br_view *view, uint32_t out)
{
    br_wire have = *br_wire_of(b, in);
    int64_t dims[GB_MAX_NDIMS], count = 1;
    for (int d = 0; d < view->ndims; d++) {
        int own = d - (view->ndims - have.ndims);
        dims[d] = own < 0 || have.dims[own] == 1 ? view->dims[d] : 1;
        count *= dims[d];
    }
    float *ones = br_alloc(b->arena, (size_t)count, sizeof *ones);
    uint32_t factor = br_wire_new(b, GB_F32, view->ndims, dims);
    if (b->arena->failed)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        ones[i] = 1;
    b->wires[factor].data = ones;
    b->wires[factor].bytes = (size_t)count * sizeof *ones;
    br_binary(b, GB_OP_MULTIPLY, in, factor, out);
    return &b->ops[b->n_ops - 1];
}

/* May the steps be ops of the library? */
static bool are_ops(const br_builder *b, uint32_t base, const br_view *view)
{
    enum { MOST = 1 << 16 };
    gb_data_type type = b->wires[base].type;
    if (type != GB_F32 && type != GB_BF16 && type != GB_F16)
        return false; /* the library moves floats only */
    for (const br_view *step = view; step; step = step->before) {
        const int64_t *before = step->before ? step->before->dims : b->wires[base].dims;
        int missing = step->ndims - (step->before ? step->before->ndims : b->wires[base].ndims);
        int64_t times = 1;
        for (int d = 0; step->kind == BR_EXPAND && d < step->ndims; d++)
            if ((d < missing || before[d - missing] != step->dims[d]) &&
                    __builtin_mul_overflow(times, step->dims[d], &times))
                return false;
        if (b->views_outside || b->is_view_outside[step->value] || times > MOST ||
                (times > 1 && !is_repeated_here(b, base)))
            return false;
    }
    return true;
}

static uint32_t follow(br_builder *b, uint32_t base, const br_view *view)
{
    if (!view)
        return base;
    if (!are_ops(b, base, view))
        return framework_view(b, base, view);
    const br_view *before = view->before;
    while (view->kind == BR_RESHAPE && before && before->kind == BR_RESHAPE)
        before = before->before;
    uint32_t in = follow(b, base, before);
    uint32_t out = br_wire_new(b, b->wires[in].type, view->ndims, view->dims);
    if (b->arena->failed)
        return 0;
    b->wires[out].value = view->value;
    b->wires[out].storage = b->wires[base].storage;
    br_op *op;
    if (view->kind == BR_RESHAPE) {
        br_reshape(b, in, view->ndims, view->dims, out);
        op = &b->ops[b->n_ops - 1];
    } else if (view->kind == BR_EXPAND) {
        op = repeat(b, in, view, out);
    } else {
        op = br_emit(b, GB_OP_STATIC_TRANSPOSE, 1, &in, 1, &out);
        br_set_s64(b, op, GB_ATTR_ORDER, (size_t)view->ndims, view->order);
    }
    if (b->arena->failed)
        return 0;
    op->node = view->node;
    op->is_view = true;
    return out;
}

static bool is_last_two_swap(const br_view *view)
{
    if (view->kind != BR_TRANSPOSE || view->ndims < 2)
        return false;
    int n = view->ndims;
    for (int d = 0; d < n - 2; d++)
        if (view->order[d] != d)
            return false;
    return view->order[n - 2] == n - 1 && view->order[n - 1] == n - 2;
}

static bool read_value(
        br_builder *b, uint32_t value, bool is_operand, bool *transposed, uint32_t *wire)
{
    const br_value *v = &b->graph->values[value];
    if (!value_is_usable(b, v))
        return false;
    const br_binding *binding = &b->bindings[value];
    if (binding->wire == BR_NONE)
        return br_refuse(b, "reads a value that is not there");
    const br_view *view = binding->view;
    while (is_operand && view && view->kind == BR_EXPAND)
        view = view->before;
    if (transposed) {
        *transposed = view && is_last_two_swap(view);
        if (*transposed)
            view = view->before;
    }
    *wire = follow(b, binding->wire, view);
    return true;
}

static bool arg_wire(br_builder *b, const br_node *node, const char *name, bool is_optional,
        bool is_operand, bool *transposed, uint32_t *wire)
{
    const br_arg *arg = br_find_arg(node, name);
    *wire = BR_NONE;
    if (!arg)
        return is_optional || br_refuse(b, "a tensor argument is missing");
    if (arg->kind != BR_ARG_TENSOR)
        return br_refuse(b, "an argument is no tensor");
    return read_value(b, arg->values[0], is_operand, transposed, wire);
}

bool br_arg_wire(br_builder *b, const br_node *node, const char *name, uint32_t *wire)
{
    return arg_wire(b, node, name, false, false, NULL, wire);
}

bool br_arg_optional_wire(br_builder *b, const br_node *node, const char *name, uint32_t *wire)
{
    return arg_wire(b, node, name, true, false, NULL, wire);
}

bool br_arg_operand(br_builder *b, const br_node *node, const char *name, uint32_t *wire)
{
    return arg_wire(b, node, name, false, true, NULL, wire);
}

bool br_arg_factor(
        br_builder *b, const br_node *node, const char *name, uint32_t *wire, bool *transposed)
{
    return arg_wire(b, node, name, false, false, transposed, wire);
}

bool br_read_value(br_builder *b, uint32_t value, uint32_t *wire)
{
    return read_value(b, value, false, NULL, wire);
}

uint32_t br_output_wire(br_builder *b, const br_node *node, uint32_t index)
{
    const br_value *value = br_output(b, node, index);
    int64_t dims[GB_MAX_NDIMS];
    if (!value || !value_is_usable(b, value)) {
        br_refuse(b, "an output is missing");
        dims[0] = 1;
        return br_wire_new(b, GB_F32, 1, dims);
    }
    value_dims(b, value, dims);
    uint32_t wire = br_wire_new(b, value->dtype->type, value->ndims, dims);
    if (!b->arena->failed) {
        b->wires[wire].value = node->outputs[index];
        br_bind(b, node, index, wire);
    }
    return wire;
}

void br_bind(br_builder *b, const br_node *node, uint32_t index, uint32_t wire)
{
    uint32_t value = node->outputs[index];
    b->bindings[value] = (br_binding){.wire = wire, .storage = value};
    if (b->wires[wire].value == BR_NONE)
        b->wires[wire].value = value;
    if (b->wires[wire].storage == BR_NONE)
        b->wires[wire].storage = value;
}

/* ---- views ---- */

/* Binds output 0 to a view of the first argument. */
static bool bind_view(br_builder *b, const br_node *node, const br_row *row, br_view step)
{
    uint32_t base =
            node->n_args && node->args[0].kind == BR_ARG_TENSOR ? node->args[0].values[0] : BR_NONE;
    const br_value *out = br_output(b, node, 0);
    if (base == BR_NONE || !out || !value_is_usable(b, out) ||
            !value_is_usable(b, &b->graph->values[base]))
        return br_refuse(b, "no tensor to view");
    if (b->bindings[base].wire == BR_NONE)
        return br_refuse(b, "reads a value that is not there");
    if (out->dtype != b->graph->values[base].dtype)
        return br_refuse(b, "a view of another data type");
    /* A copy is a moment of its input: what is written to later would be read too late. */
    if (!row->is_view && b->has_writes) {
        uint32_t in, made;
        if (!read_value(b, base, false, NULL, &in))
            return false;
        made = br_output_wire(b, node, 0);
        br_unary(b, GB_OP_REORDER, in, made);
        return true;
    }
    br_view *view = br_alloc(b->arena, 1, sizeof *view);
    if (!view)
        return false;
    *view = step;
    view->before = b->bindings[base].view;
    view->node = b->node;
    view->value = node->outputs[0];
    view->ndims = out->ndims;
    value_dims(b, out, view->dims);
    uint32_t storage = row->is_view ? b->bindings[base].storage : node->outputs[0];
    b->bindings[node->outputs[0]] = (br_binding){b->bindings[base].wire, view, storage};
    b->is_view_node[b->node] = true;
    return true;
}

static int64_t count_of(const br_builder *b, const br_value *value)
{
    int64_t count = 1;
    for (int d = 0; d < value->ndims; d++)
        count *= br_size_value(b, &value->dims[d]);
    return count;
}

bool br_map_reshape(br_builder *b, const br_node *node, const br_row *row)
{
    const br_value *in = node->n_args && node->args[0].kind == BR_ARG_TENSOR
                                 ? &b->graph->values[node->args[0].values[0]]
                                 : NULL;
    const br_value *out = br_output(b, node, 0);
    if (!in || !out || !value_is_usable(b, in) || !value_is_usable(b, out))
        return br_refuse(b, "no tensor to view");
    if (count_of(b, in) != count_of(b, out))
        return br_refuse(b, "a view of other elements");
    return bind_view(b, node, row, (br_view){.kind = BR_RESHAPE});
}

static bool read_order(br_builder *b, const br_node *node, int n, int64_t *order)
{
    int count;
    int64_t axes[2];
    const char *op = node->op + strlen("aten.");
    for (int d = 0; d < n; d++)
        order[d] = d;
    if (strncmp(op, "permute.", 8) == 0) {
        if (!br_arg_ints(b, node, "dims", &count, order))
            return false;
        if (count != n)
            return br_refuse(b, "an order of other dims");
        for (int d = 0; d < n; d++)
            if (!br_axis(b, order[d], n, &order[d]))
                return false;
        return true;
    }
    axes[0] = 0;
    axes[1] = 1;
    if (strncmp(op, "t.", 2) == 0 || strncmp(op, "numpy_T.", 8) == 0) {
        if (n > 2)
            return br_refuse(b, "more than two dims");
    } else if (!br_arg_int(b, node, "dim0", 0, &axes[0]) ||
               !br_arg_int(b, node, "dim1", 1, &axes[1]) || !br_axis(b, axes[0], n, &axes[0]) ||
               !br_axis(b, axes[1], n, &axes[1])) {
        return false;
    }
    if (n >= 2) {
        order[axes[0]] = axes[1];
        order[axes[1]] = axes[0];
    }
    return true;
}

bool br_map_transpose(br_builder *b, const br_node *node, const br_row *row)
{
    br_view step = {.kind = BR_TRANSPOSE};
    const br_value *in = br_arg_value(b, node, "self"), *out = br_output(b, node, 0);
    if (!in || !out || in->ndims < 0 || in->ndims != out->ndims)
        return br_refuse(b, "no tensor to view");
    if (!read_order(b, node, in->ndims, step.order))
        return false;
    unsigned seen = 0;
    for (int d = 0; d < in->ndims; d++) {
        seen |= 1u << step.order[d];
        if (br_size_value(b, &in->dims[step.order[d]]) != br_size_value(b, &out->dims[d]))
            return br_refuse(b, "the result has other dims");
    }
    if (seen != (1u << in->ndims) - 1)
        return br_refuse(b, "the order names an axis twice");
    return bind_view(b, node, row, step);
}

bool br_map_expand(br_builder *b, const br_node *node, const br_row *row)
{
    const br_value *in = br_arg_value(b, node, "self"), *out = br_output(b, node, 0);
    if (!in || !out || in->ndims < 0 || in->ndims > out->ndims)
        return br_refuse(b, "no tensor to view");
    bool is_same = true;
    for (int d = 1; d <= in->ndims; d++) {
        int64_t from = br_size_value(b, &in->dims[in->ndims - d]);
        int64_t to = br_size_value(b, &out->dims[out->ndims - d]);
        if (from != to && from != 1)
            return br_refuse(b, "the result has other dims");
        is_same = is_same && from == to;
    }
    if (is_same && in->ndims == out->ndims)
        return bind_view(b, node, row, (br_view){.kind = BR_RESHAPE});
    return bind_view(b, node, row, (br_view){.kind = BR_EXPAND});
}

/* What gives its input: copies and, where nothing changes, conversions. As a view with equal dims. */
bool br_map_identity(br_builder *b, const br_node *node, const br_row *row)
{
    return br_map_reshape(b, node, row);
}

bool br_map_dropout(br_builder *b, const br_node *node, const br_row *row)
{
    bool train;
    double p;
    if (!br_arg_bool(b, node, "train", false, &train) || !br_arg_float(b, node, "p", 0.5, &p))
        return false;
    if (train && p != 0)
        return br_refuse(b, "random numbers are the framework's");
    return br_map_reshape(b, node, row);
}

bool br_map_cast(br_builder *b, const br_node *node, const br_row *row)
{
    const br_arg *first = node->n_args ? &node->args[0] : NULL;
    const br_value *out = br_output(b, node, 0);
    uint32_t in;
    if (!first || first->kind != BR_ARG_TENSOR || !out)
        return br_refuse(b, "no tensor to convert");
    const br_value *from = &b->graph->values[first->values[0]];
    if (from->dtype == out->dtype)
        return br_map_reshape(b, node, row);
    if (!from->dtype->is_float || !out->dtype->is_float)
        return br_refuse(b, "a conversion from or to integers");
    if (!br_read_value(b, first->values[0], &in))
        return false;
    if (!value_is_usable(b, out))
        return false;
    if (from->dtype->type != GB_F32 && out->dtype->type != GB_F32)
        in = br_cast(b, in, GB_F32);
    br_unary(b, GB_OP_TYPE_CAST, in, br_output_wire(b, node, 0));
    return true;
}
