/* The graph of a case in short, for -v7: one line per op and list of tensors. */
#include "cli/case/case.h"

#include <stdio.h>

static void print_shape(const gb_logical_tensor *tensor)
{
    if (tensor->ndims <= 0)
        printf(tensor->ndims < 0 ? "?" : "-");
    for (int i = 0; i < tensor->ndims; i++) {
        if (i)
            putchar('x');
        if (tensor->dims[i] == GB_UNKNOWN_DIM)
            putchar('?');
        else
            printf("%lld", (long long)tensor->dims[i]);
    }
    if (tensor->layout_type == GB_LAYOUT_ANY || tensor->layout_type == GB_LAYOUT_OPAQUE) {
        printf("*%s", gb_logical_tensor_get_layout(tensor));
        return;
    }
    int64_t dense = 1;
    bool row_major = true;
    for (int i = tensor->ndims - 1; i >= 0; i--) {
        row_major = row_major && (tensor->strides[i] == dense || tensor->dims[i] == 1);
        if (__builtin_mul_overflow(dense, tensor->dims[i] > 1 ? tensor->dims[i] : 1, &dense))
            break;
    }
    for (int i = 0; i < tensor->ndims && !row_major; i++)
        printf("%c%lld", i ? 'x' : '*', (long long)tensor->strides[i]);
}

static void print_tensors(const char *label, const gb_op *op, size_t count,
        gb_status (*get)(const gb_op *, size_t, gb_logical_tensor *))
{
    printf("    %s: {", label);
    for (size_t i = 0; i < count; i++) {
        gb_logical_tensor tensor;
        if (get(op, i, &tensor) != GB_SUCCESS)
            continue;
        printf("%s(%zu):%s:", i ? ", " : " ", tensor.id, gb_data_type_name(tensor.data_type));
        print_shape(&tensor);
        if (tensor.property != GB_PROPERTY_UNDEF)
            printf(":%s", gb_property_name(tensor.property));
    }
    puts(" }");
}

static void print_element(gb_attr_type type, const void *values, size_t i)
{
    switch (type) {
    case GB_ATTR_TYPE_F32:
    case GB_ATTR_TYPE_F32S:
        printf("%.9g", (double)((const float *)values)[i]);
        break;
    case GB_ATTR_TYPE_S64:
    case GB_ATTR_TYPE_S64S:
        printf("%lld", (long long)((const int64_t *)values)[i]);
        break;
    default:
        printf("%d", ((const uint8_t *)values)[i]);
        break;
    }
}

static void print_attr(const gb_op *op, gb_op_attr attr)
{
    const void *values;
    size_t count;
    if (gb_op_get_attr(op, attr, &count, &values) != GB_SUCCESS)
        return;
    gb_attr_type type = gb_op_attr_type(attr);
    printf(" %s:", gb_op_attr_name(attr));
    if (type == GB_ATTR_TYPE_STRING) {
        printf("%.*s", (int)count, (const char *)values);
        return;
    }
    for (size_t i = 0; i < count && i < 16; i++) {
        if (i)
            putchar('x');
        print_element(type, values, i);
    }
    if (count > 16)
        printf("x...(%zu)", count);
}

static void print_attrs(const gb_op *op)
{
    gb_op_attr attrs[64];
    size_t count;
    if (gb_op_get_attrs(op, 0, NULL, &count) != GB_SUCCESS || count == 0 || count > 64)
        return;
    if (gb_op_get_attrs(op, count, attrs, NULL) != GB_SUCCESS)
        return;
    printf("    Attrs: {");
    for (size_t i = 0; i < count; i++)
        print_attr(op, attrs[i]);
    puts(" }");
}

void gb_cli_print_graph(const gb_graph *graph)
{
    for (size_t i = 0; i < gb_graph_get_op_num(graph); i++) {
        const gb_op *op;
        gb_op_kind kind;
        size_t id;
        if (gb_graph_get_op(graph, i, &op) != GB_SUCCESS)
            return;
        if (gb_op_get_kind(op, &kind) != GB_SUCCESS || gb_op_get_id(op, &id) != GB_SUCCESS)
            return;
        printf("{(%zu) %s}\n", id, gb_op_kind_name(kind));
        print_tensors("In", op, gb_op_get_input_num(op), gb_op_get_input);
        print_tensors("Out", op, gb_op_get_output_num(op), gb_op_get_output);
        print_attrs(op);
    }
    fflush(stdout);
}
