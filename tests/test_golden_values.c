/* Every op kind on small inputs whose results scripts/make_golden_values.py computed without any of
 * this code: both the reference and the library must agree with golden_values.txt. */
#include "base/dtype.h"
#include "ref/ref.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORTS = 12, MOST = 512, LINE = 16384 };

/* Errors allowed, relative to 1 + |value|: results are differences in double precision, inputs that
 * are results themselves (statistics, dst) are rounded to f32, and the library computes in f32. */
static const double reference_tolerance = 1e-6, library_tolerance = 4e-6;

typedef struct golden_tensor {
    gb_logical_tensor tensor;
    int64_t count;
    double value[MOST];
} golden_tensor;

typedef struct golden_block {
    int line; /* of "op" */
    gb_op_kind kind;
    gb_op *op;
    size_t n_inputs, n_outputs;
    golden_tensor tensors[PORTS]; /* inputs, then outputs; id = index */
} golden_block;

static void ok(gb_status status, int line)
{
    cr_assert_eq(
            status, GB_SUCCESS, "line %d: %s: %s", line, gb_status_name(status), gb_last_error());
}

/* Reading ------------------------------------------------------------------------------------- */

static void read_attr(golden_block *b, gb_op_attr attr, char *words, int line)
{
    float reals[MOST];
    int64_t integers[MOST];
    size_t n = 0;
    gb_attr_type type = gb_op_attr_type(attr);
    char *save, *word = strtok_r(words, " \n", &save);
    if (type == GB_ATTR_TYPE_STRING) {
        ok(gb_op_set_attr_str(b->op, attr, word, strlen(word)), line);
        return;
    }
    for (; word && n < MOST; word = strtok_r(NULL, " \n", &save), n++) {
        reals[n] = strtof(word, NULL);
        integers[n] = strtoll(word, NULL, 10);
    }
    uint8_t flag = integers[0] != 0;
    if (type == GB_ATTR_TYPE_BOOL)
        ok(gb_op_set_attr_bool(b->op, attr, 1, &flag), line);
    else if (type == GB_ATTR_TYPE_F32 || type == GB_ATTR_TYPE_F32S)
        ok(gb_op_set_attr_f32(b->op, attr, n, reals), line);
    else
        ok(gb_op_set_attr_s64(b->op, attr, n, integers), line);
}

static void read_tensor(golden_block *b, bool is_input, char *words, int line)
{
    size_t id = b->n_inputs + b->n_outputs;
    cr_assert_lt(id, PORTS, "line %d: too many tensors", line);
    golden_tensor *t = &b->tensors[id];
    gb_data_type type;
    int64_t dims[GB_MAX_NDIMS];
    int ndims = 0;
    char *save, *word = strtok_r(words, " ", &save);
    ok(gb_data_type_parse(word, &type), line);
    for (char *dim = strtok_r(NULL, " ", &save); *dim && *dim != '-'; dim += *dim == 'x')
        dims[ndims++] = strtoll(dim, &dim, 10);
    ok(gb_logical_tensor_init_with_dims(
               &t->tensor, id, type, ndims, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE),
            line);
    strtok_r(NULL, " ", &save); /* "=" */
    while ((word = strtok_r(NULL, " \n", &save)) != NULL && t->count < MOST)
        t->value[t->count++] = strtod(word, NULL);
    ok(is_input ? gb_op_add_input(b->op, &t->tensor) : gb_op_add_output(b->op, &t->tensor), line);
    b->n_inputs += is_input;
    b->n_outputs += !is_input;
}

/* Lines up to an empty one; false at the end of the file. */
static bool read_block(FILE *file, int *line, golden_block *b)
{
    static char text[LINE];
    *b = (golden_block){0};
    while (fgets(text, sizeof text, file)) {
        ++*line;
        char *space = strchr(text, ' ');
        if (*text == '#' || (*text == '\n' && !b->op))
            continue;
        if (*text == '\n')
            return true;
        cr_assert_not_null(space, "line %d", *line);
        *space = '\0';
        gb_op_attr attr;
        if (!strcmp(text, "op")) {
            space[strcspn(space + 1, "\n") + 1] = '\0';
            b->line = *line;
            ok(gb_op_kind_parse(space + 1, &b->kind), *line);
            ok(gb_op_create(&b->op, 0, b->kind, "golden"), *line);
        } else if (!strcmp(text, "in") || !strcmp(text, "out")) {
            read_tensor(b, *text == 'i', space + 1, *line);
        } else {
            ok(gb_op_attr_parse(text, &attr), *line);
            read_attr(b, attr, space + 1, *line);
        }
    }
    return b->op != NULL;
}

/* Checking ------------------------------------------------------------------------------------ */

static void compare(const golden_block *b, const golden_tensor *golden, const char *who,
        double tolerance, const double *got)
{
    for (int64_t i = 0; i < golden->count; i++) {
        double expected = golden->value[i], allowed = tolerance * (1 + fabs(expected));
        cr_expect(got[i] == expected || fabs(got[i] - expected) <= allowed,
                "golden_values.txt:%d (%s): %s: output %zu, element %lld is %.9g, expected %.9g",
                b->line, gb_op_kind_name(b->kind), who, golden->tensor.id - b->n_inputs,
                (long long)i, got[i], expected);
    }
}

static void check_reference(const golden_block *b, const gb_graph *graph)
{
    gb_ref_store *store;
    ok(gb_ref_store_create(&store), b->line);
    for (size_t i = 0; i < b->n_inputs; i++) {
        const golden_tensor *t = &b->tensors[i];
        gb_ref_tensor input = {.tensor = t->tensor, .count = t->count};
        input.value = malloc((size_t)t->count * sizeof(double));
        memcpy(input.value, t->value, (size_t)t->count * sizeof(double));
        ok(gb_ref_store_put(store, &input), b->line);
    }
    ok(gb_ref_execute(graph, 1, &(size_t){0}, store), b->line);
    for (size_t i = b->n_inputs; i < b->n_inputs + b->n_outputs; i++) {
        const gb_ref_tensor *got = gb_ref_store_get(store, i);
        cr_assert_eq(got->count, b->tensors[i].count, "line %d", b->line);
        double slack = got->tensor.data_type == GB_F32 ? reference_tolerance : 1e-2;
        compare(b, &b->tensors[i], "reference", slack, got->value);
    }
    gb_ref_store_destroy(store);
}

static void execute(const golden_block *b, char memory[PORTS][MOST * sizeof(int64_t)])
{
    gb_engine *engine;
    gb_stream *stream;
    gb_partition *partition;
    gb_compiled_partition *compiled;
    gb_tensor *handles[PORTS];
    const gb_logical_tensor *ports[PORTS];
    size_t n = b->n_inputs + b->n_outputs;
    ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0), b->line);
    ok(gb_stream_create(&stream, engine), b->line);
    ok(gb_partition_create_with_op(&partition, b->op, GB_ENGINE_CPU), b->line);
    for (size_t i = 0; i < n; i++) {
        ports[i] = &b->tensors[i].tensor;
        ok(gb_tensor_create(&handles[i], ports[i], engine, memory[i]), b->line);
    }
    ok(gb_partition_compile(
               partition, &compiled, b->n_inputs, ports, b->n_outputs, ports + b->n_inputs, engine),
            b->line);
    const gb_tensor *const *tensors = (const gb_tensor *const *)handles;
    ok(gb_compiled_partition_execute(
               compiled, stream, b->n_inputs, tensors, b->n_outputs, handles + b->n_inputs, NULL),
            b->line);
    for (size_t i = 0; i < n; i++)
        gb_tensor_destroy(handles[i]);
    gb_compiled_partition_destroy(compiled);
    gb_partition_destroy(partition);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
}

static void check_library(const golden_block *b)
{
    static char memory[PORTS][MOST * sizeof(int64_t)];
    double got[MOST];
    memset(memory, 0xff, sizeof memory);
    for (size_t i = 0; i < b->n_inputs; i++)
        for (int64_t e = 0; e < b->tensors[i].count; e++)
            gb_element_set(b->tensors[i].tensor.data_type, memory[i], e, b->tensors[i].value[e]);
    execute(b, memory);
    for (size_t i = b->n_inputs; i < b->n_inputs + b->n_outputs; i++) {
        for (int64_t e = 0; e < b->tensors[i].count; e++)
            got[e] = gb_element_get(b->tensors[i].tensor.data_type, memory[i], e);
        compare(b, &b->tensors[i], "library", library_tolerance, got);
    }
}

static void check_block(const golden_block *b)
{
    gb_graph *graph;
    ok(gb_graph_create(&graph, GB_ENGINE_CPU), b->line);
    ok(gb_graph_add_op(graph, b->op), b->line);
    ok(gb_graph_infer_shapes(graph), b->line);
    ok(gb_graph_finalize(graph), b->line);
    check_reference(b, graph);
    gb_graph_destroy(graph);
    check_library(b);
}

static void check_all(void)
{
    static golden_block block;
    bool seen[GB_OP_LAST] = {false};
    int line = 0;
    FILE *file = fopen(GB_TEST_DATA "/golden_values.txt", "r");
    cr_assert_not_null(file);
    while (read_block(file, &line, &block)) {
        check_block(&block);
        seen[block.kind] = true;
        gb_op_destroy(block.op);
    }
    fclose(file);
    for (int kind = 0; kind < GB_OP_LAST; kind++)
        cr_expect(seen[kind] || kind == GB_OP_WILDCARD || kind == GB_OP_END,
                "no golden values of %s", gb_op_kind_name((gb_op_kind)kind));
}

static void baseline(void)
{
    setenv("GB_MAX_ISA", "baseline", 1);
}

Test(golden_values, of_every_kind)
{
    check_all();
}

Test(golden_values, of_every_kind_at_the_lowest_instruction_set, .init = baseline)
{
    check_all();
}
