/* The op table as a document: docs/ops.md is what this writes. */
#include "graph/ops/op_rules.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const class_titles[] = {
        [GB_CLASS_OTHER] = "Others",
        [GB_CLASS_UNARY] = "Unary",
        [GB_CLASS_UNARY_BACKWARD] = "Gradients of unary ops",
        [GB_CLASS_BINARY] = "Binary",
        [GB_CLASS_COMPARE] = "Comparison",
        [GB_CLASS_SELECT] = "Select",
        [GB_CLASS_BIAS] = "Bias",
        [GB_CLASS_MATMUL] = "Matrix product",
        [GB_CLASS_CONVOLUTION] = "Convolutions",
        [GB_CLASS_POOL] = "Pools",
        [GB_CLASS_NORM] = "Normalisation",
        [GB_CLASS_SOFTMAX] = "Softmax",
        [GB_CLASS_REDUCTION] = "Reductions",
        [GB_CLASS_RESAMPLING] = "Resampling",
        [GB_CLASS_MOVEMENT] = "Data movement",
        [GB_CLASS_CONVERSION] = "Conversion and quantisation",
        [GB_CLASS_PRELU] = "PReLU",
};

enum { N_CLASSES = sizeof(class_titles) / sizeof(class_titles[0]) };

static void write_types(FILE *file, gb_type_set types)
{
    const gb_type_set floats = 1u << GB_F32 | 1u << GB_BF16 | 1u << GB_F16;
    if (types >> GB_S64 & 1 && types >> GB_F32 & 1) {
        fputs("any", file);
        return;
    }
    const char *separator = "";
    if ((types & floats) == floats) {
        fputs("F", file);
        separator = ", ";
        types &= ~floats;
    }
    for (int type = 0; type <= GB_S64; type++) {
        if (!(types >> type & 1))
            continue;
        fprintf(file, "%s%s", separator, gb_data_type_name((gb_data_type)type));
        separator = ", ";
    }
}

/* "fewest to most" of a side, or the counts that are legal. */
static void write_counts(FILE *file, uint32_t min, uint32_t max, uint32_t legal)
{
    const char *separator = "";
    if (!legal && max == UINT32_MAX)
        fprintf(file, "%u or more", min);
    else if (!legal && min == max)
        fprintf(file, "%u", min);
    else if (!legal)
        fprintf(file, "%u to %u", min, max);
    for (uint32_t count = 0; count < 32; count++) {
        if (!(legal >> count & 1))
            continue;
        fprintf(file, "%s%u", separator, count);
        separator = " or ";
    }
}

static void write_ports(FILE *file, const char *side, const gb_port_schema *ports, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        fprintf(file, "| %s %u%s | `%s` | ", side, i, ports[i].variadic ? ", ..." : "",
                ports[i].name);
        write_types(file, ports[i].types);
        if (ports[i].type_variable)
            fprintf(file, " (%c)", ports[i].type_variable);
        fprintf(file, " | %s |\n",
                ports[i].required   ? "required"
                : ports[i].variadic ? "any number"
                                    : "optional");
    }
}

static bool all_equal(const int64_t *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (values[i] != values[0])
            return false;
    return true;
}

static void write_list(FILE *file, const int64_t *values, size_t count)
{
    if (count == 0)
        fputs("empty", file);
    else if (count == GB_MAX_NDIMS && all_equal(values, count))
        fprintf(file, "all %lld", (long long)values[0]);
    else
        for (size_t i = 0; i < count; i++)
            fprintf(file, "%s%lld", i ? ", " : "", (long long)values[i]);
}

static void write_default(FILE *file, const gb_attr *attr)
{
    switch (gb_op_attr_type(attr->name)) {
    case GB_ATTR_TYPE_F32:
        fprintf(file, "%g", (double)attr->value.f32);
        break;
    case GB_ATTR_TYPE_S64:
        fprintf(file, "%lld", (long long)attr->value.s64);
        break;
    case GB_ATTR_TYPE_S64S:
        write_list(file, attr->value.s64s, attr->count);
        break;
    case GB_ATTR_TYPE_BOOL:
        fputs(attr->value.boolean ? "true" : "false", file);
        break;
    case GB_ATTR_TYPE_STRING:
        fprintf(file, "`%s`", attr->value.string);
        break;
    case GB_ATTR_TYPE_F32S:
    case GB_ATTR_TYPE_POINTER: /* of no attribute of the op set */
    case GB_ATTR_TYPE_NONE:
        break;
    }
}

static const char *attr_type_text(gb_op_attr attr)
{
    static const char *const names[] = {
            [GB_ATTR_TYPE_NONE] = "none",
            [GB_ATTR_TYPE_F32] = "f32",
            [GB_ATTR_TYPE_F32S] = "f32 list",
            [GB_ATTR_TYPE_S64] = "s64",
            [GB_ATTR_TYPE_S64S] = "s64 list",
            [GB_ATTR_TYPE_BOOL] = "bool",
            [GB_ATTR_TYPE_STRING] = "string",
    };
    return names[gb_op_attr_type(attr)];
}

static void write_attr(FILE *file, const gb_attr_schema *attr)
{
    fprintf(file, "| attribute | `%s` | %s", gb_op_attr_name(attr->name),
            attr_type_text(attr->name));
    for (const char *const *value = attr->values; value && *value; value++)
        fprintf(file, "%s`%s`", value == attr->values ? ": " : ", ", *value);
    fputs(attr->required ? " | required" : " | optional", file);
    if (attr->has_default) {
        fputs(", default ", file);
        write_default(file, &attr->default_value);
    }
    fputs(" |\n", file);
}

static void write_flags(FILE *file, unsigned flags)
{
    if (flags & GB_OP_FLAG_CHAIN_UNARY)
        fputs(" Joins unary chains.", file);
    if (flags & GB_OP_FLAG_CHAIN_BINARY)
        fputs(" Joins binary chains.", file);
}

static void op_doc_write_op(FILE *file, const gb_op_schema *schema)
{
    fprintf(file, "\n### %s\n\n%s (kind %d).", schema->name, schema->summary, (int)schema->kind);
    write_flags(file, schema->flags);
    fputs(" Inputs: ", file);
    write_counts(file, schema->min_inputs, schema->max_inputs, schema->input_counts);
    fputs("; outputs: ", file);
    write_counts(file, schema->min_outputs, schema->max_outputs, schema->output_counts);
    fputs(".", file);
    if (schema->work)
        fprintf(file, " Work: %g per %s.", schema->flops, gb_work_phrase(schema->work));
    fputs("\n\n| | name | type | |\n|:--|:--|:--|:--|\n", file);
    write_ports(file, "input", schema->inputs, schema->n_inputs);
    write_ports(file, "output", schema->outputs, schema->n_outputs);
    for (uint32_t i = 0; i < schema->n_attrs; i++)
        write_attr(file, &schema->attrs[i]);
}

static void write_class(FILE *file, gb_op_class op_class)
{
    fprintf(file, "\n## %s\n", class_titles[op_class]);
    for (int kind = 0; kind < GB_OP_LAST; kind++) {
        const gb_op_schema *schema = gb_op_schema_get((gb_op_kind)kind);
        if (schema->op_class == op_class)
            op_doc_write_op(file, schema);
    }
}

static void write_document(FILE *file)
{
    fprintf(file,
            "# The op set\n\nWritten by `graph-bench --list-ops` from the op table "
            "(`lib/graph/ops/ops.def`) and by "
            "running the ops; do not edit.\n\n"
            "%d op kinds. F stands for f32, bf16 and f16. Tensors of an op that carry the same "
            "letter "
            "in brackets have the same\ntype. \"all 0\" and \"all 1\" stand for one value per "
            "axis. \"Work\" are\nfloating-point operations: a product and a sum are two, a "
            "function such as exp is one; a bias that a "
            "MatMul or\nconvolution adds is not counted.\n",
            GB_OP_LAST);
    for (int op_class = GB_CLASS_OTHER + 1; op_class < N_CLASSES; op_class++)
        write_class(file, (gb_op_class)op_class);
    write_class(file, GB_CLASS_OTHER);
}

gb_status gb_op_table_write(const char *path)
{
    if (!path)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_table_write: path is NULL");
    bool to_stdout = !strcmp(path, "-");
    FILE *file = to_stdout ? stdout : fopen(path, "w");
    if (!file)
        return gb_fail(GB_RUNTIME_ERROR, "%s: %s", path, strerror(errno));
    write_document(file);
    bool failed = ferror(file) | fflush(file);
    if (!to_stdout)
        failed |= fclose(file) != 0;
    return failed ? gb_fail(GB_RUNTIME_ERROR, "%s: %s", path, strerror(errno)) : GB_SUCCESS;
}
