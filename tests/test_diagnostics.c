/* What the library tells about itself: lines (GB_VERBOSE) and graphs in files (GB_GRAPH_DUMP). */
#include "runtime/dump.h"
#include "runtime_case.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each test runs in a process and a directory of its own; the standard error goes to a file. */
static char directory[] = "/tmp/gb_diagnostics_XXXXXX";

static void start(void)
{
    cr_assert(mkdtemp(directory));
    cr_assert_eq(chdir(directory), 0);
    int file = open("lines", O_CREAT | O_WRONLY | O_APPEND, 0600);
    cr_assert(file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    close(file);
}

static void finish(void)
{
    DIR *all = opendir(".");
    for (struct dirent *entry; all && (entry = readdir(all));)
        if (*entry->d_name != '.')
            unlink(entry->d_name);
    closedir(all);
    rmdir(directory);
}

TestSuite(diagnostics, .init = start, .fini = finish);

/* 0 -> ReLU -> 1 x 2 -> 3 */
static gb_graph *chain(void)
{
    gb_graph *graph;
    gb_logical_tensor a = runtime_matrix(0, 8, 16, GB_PROPERTY_VARIABLE);
    gb_logical_tensor b = runtime_matrix(1, 8, 16, GB_PROPERTY_VARIABLE);
    gb_logical_tensor w = runtime_matrix(2, 16, 32, GB_PROPERTY_VARIABLE);
    gb_logical_tensor c = runtime_matrix(3, 8, 32, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_RELU, 1, (const gb_logical_tensor *[]){&a}, &b);
    runtime_op(graph, 1, GB_OP_MATMUL, 2, (const gb_logical_tensor *[]){&b, &w}, &c);
    return graph;
}

static void run(const runtime_case *c)
{
    static float memory[16 * 32];
    void *in[] = {memory, memory}, *out[] = {(float[8 * 32]){0}};
    runtime_ok(runtime_execute(c, in, out, NULL));
}

/* A product with constant weights, compiled and run once. */
static void compile_and_run(runtime_case *c)
{
    gb_op *op;
    memset(c, 0, sizeof *c);
    gb_logical_tensor a = runtime_matrix(0, 8, 16, GB_PROPERTY_VARIABLE);
    gb_logical_tensor b = runtime_matrix(1, 16, 32, GB_PROPERTY_CONSTANT);
    gb_logical_tensor dst = runtime_matrix(2, 8, 32, GB_PROPERTY_VARIABLE);
    gb_graph *graph;
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_ok(gb_op_create(&op, 0, GB_OP_MATMUL, "a, b\nc"));
    runtime_ok(gb_op_add_input(op, &a));
    runtime_ok(gb_op_add_input(op, &b));
    runtime_ok(gb_op_add_output(op, &dst));
    runtime_ok(gb_graph_add_op(graph, op));
    gb_op_destroy(op);
    runtime_compile(c, graph, NULL);
    run(c);
}

typedef struct line {
    int n_fields;
    char *fields[16];
} line;

/* Takes the lines read since the last call apart; each must be the library's. */
static int read_lines(line *lines, int most)
{
    static char text[1 << 20];
    static long begin;
    FILE *file = fopen("lines", "r");
    cr_assert_eq(fseek(file, begin, SEEK_SET), 0);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    begin += (long)length;
    text[length] = '\0';
    int n = 0;
    for (char *at = text; *at; n++) {
        char *end = strchr(at, '\n');
        cr_assert(end, "a line without end");
        *end = '\0';
        cr_assert_lt(n, most);
        lines[n].n_fields = 0;
        for (char *field = at; field; field = strchr(field, ',')) {
            if (field != at)
                *field++ = '\0';
            cr_assert_lt(lines[n].n_fields, 16);
            lines[n].fields[lines[n].n_fields++] = field;
        }
        cr_expect_str_eq(lines[n].fields[0], "graphbench");
        at = end + 1;
    }
    return n;
}

static void expect_milliseconds(const char *text)
{
    char *end;
    cr_expect_geq(strtod(text, &end), 0);
    cr_expect(end != text && !*end, "%s", text);
}

static void expect_run_line(const line *l, const char *event, const char *memory)
{
    cr_assert_eq(l->n_fields, 11, "%s", event);
    cr_expect_str_eq(l->fields[1], event);
    cr_expect_str_eq(l->fields[2], "cpu");
    cr_expect_gt(atol(l->fields[3]), 100000);
    cr_expect_str_eq(l->fields[5], "MatMul:a_ b_c");
    cr_expect_str_eq(l->fields[6], "in0_f32:0:strided:variable:8x16:16x1 "
                                   "in1_f32:1:strided:constant:16x32:32x1 "
                                   "out0_f32:2:strided:variable:8x32:32x1");
    cr_expect_str_eq(l->fields[7], "fpm:strict");
    cr_expect_eq(strncmp(l->fields[8], memory, strlen(memory)), 0, "%s", l->fields[8]);
    cr_expect(strstr(l->fields[9], "gem"), "%s", l->fields[9]);
    expect_milliseconds(l->fields[10]);
}

Test(diagnostics, lines_tell_what_is_compiled_and_executed)
{
    line lines[8];
    runtime_case c;
    runtime_ok(gb_set_verbose(GB_VERBOSE_ALL));
    compile_and_run(&c);
    cr_assert_eq(read_lines(lines, 8), 4);
    cr_expect_str_eq(lines[0].fields[1], "dispatch");
    cr_expect_eq(lines[0].n_fields, 7);
    cr_expect_str_eq(lines[0].fields[5], "MatMul:a_ b_c");
    cr_expect_str_eq(lines[0].fields[6], "supported");
    cr_expect_str_eq(lines[0].fields[3], lines[1].fields[3]); /* the partition's id */
    expect_run_line(&lines[1], "create:cache_miss", "scratchpad:");
    expect_run_line(&lines[2], "constants", "constants:");
    expect_run_line(&lines[3], "exec", "scratchpad:library:");
    run(&c);
    cr_assert_eq(read_lines(lines, 8), 1); /* the constants are known */
    expect_run_line(&lines[0], "exec", "scratchpad:library:");
    runtime_case again = c;
    const gb_logical_tensor *in[] = {&c.inputs[0], &c.inputs[1]}, *out[] = {&c.outputs[0]};
    runtime_ok(gb_partition_compile(c.partition, &again.compiled, 2, in, 1, out, c.engine));
    cr_assert_eq(read_lines(lines, 8), 1);
    expect_run_line(&lines[0], "create:cache_hit", "scratchpad:");
    gb_compiled_partition_destroy(again.compiled);
    runtime_ok(gb_set_verbose(GB_VERBOSE_NONE));
    run(&c);
    cr_expect_eq(read_lines(lines, 8), 0);
    runtime_close(&c);
}

/* One line for an execution with unknown dims: that of the shapes at hand. */
Test(diagnostics, lines_with_unknown_dims)
{
    line lines[8];
    runtime_case c;
    compile_and_run(&c);
    runtime_case any = c;
    any.inputs[0].dims[0] = any.inputs[0].strides[0] = GB_UNKNOWN_DIM;
    any.outputs[0].dims[0] = any.outputs[0].strides[0] = GB_UNKNOWN_DIM;
    const gb_logical_tensor *in[] = {&any.inputs[0], &any.inputs[1]}, *out[] = {&any.outputs[0]};
    runtime_ok(gb_set_compiled_partition_cache_capacity(0));
    runtime_ok(gb_set_verbose(GB_VERBOSE_ALL));
    runtime_ok(gb_partition_compile(c.partition, &any.compiled, 2, in, 1, out, c.engine));
    cr_expect_eq(read_lines(lines, 8), 0);
    any.inputs[0] = c.inputs[0];
    any.outputs[0] = c.outputs[0];
    for (int i = 0; i < 2; i++) {
        run(&any);
        cr_assert_eq(read_lines(lines, 8), i == 0 ? 2 : 1);
        if (i == 0)
            expect_run_line(&lines[0], "create:cache_miss", "scratchpad:");
        expect_run_line(&lines[1 - i], "exec", "scratchpad:library:");
    }
    gb_compiled_partition_destroy(any.compiled);
    runtime_close(&c);
}

Test(diagnostics, flags_choose_the_lines)
{
    const struct {
        unsigned flags;
        int n_lines;
    } cases[] = {{GB_VERBOSE_DISPATCH, 1}, {GB_VERBOSE_CREATE, 1}, {GB_VERBOSE_EXEC, 2},
            {GB_VERBOSE_ERROR, 0}, {GB_VERBOSE_TIMESTAMP, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        line lines[8];
        runtime_case c;
        runtime_ok(gb_set_verbose(cases[i].flags));
        compile_and_run(&c);
        runtime_close(&c);
        cr_expect_eq(read_lines(lines, 8), cases[i].n_lines, "flags %u", cases[i].flags);
    }
    cr_expect_eq(gb_set_verbose(32), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_set_verbose(~0U), GB_INVALID_ARGUMENTS);
}

Test(diagnostics, lines_may_begin_with_the_time)
{
    line lines[8];
    runtime_case c;
    runtime_ok(gb_set_verbose(GB_VERBOSE_ALL | GB_VERBOSE_TIMESTAMP));
    compile_and_run(&c);
    runtime_close(&c);
    int n = read_lines(lines, 8);
    cr_assert_eq(n, 4);
    for (int i = 0; i < n; i++) {
        expect_milliseconds(lines[i].fields[1]);
        cr_expect(
                i == 0 || strtod(lines[i].fields[1], NULL) >= strtod(lines[i - 1].fields[1], NULL));
    }
    cr_expect_str_eq(lines[3].fields[2], "exec");
}

Test(diagnostics, the_environment_is_asked_once)
{
    const struct {
        const char *words;
        int n_lines;
    } cases[] = {{"all", 4}, {"1", 2}, {"2", 4}, {"Create,DISPATCH", 2}, {"", 0}, {"none", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pid_t child = fork();
        if (child == 0) { /* the library of this process has not been called */
            setenv("GB_VERBOSE", cases[i].words, 1);
            runtime_case c;
            compile_and_run(&c);
            setenv("GB_VERBOSE", "all", 1);
            line lines[8];
            int n = read_lines(lines, 8);
            runtime_close(&c);
            _exit(n == cases[i].n_lines ? 0 : 1);
        }
        int status;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_expect_eq(status, 0, "GB_VERBOSE=%s", cases[i].words);
        cr_assert_eq(truncate("lines", 0), 0);
    }
}

/* What each variable takes is part of the line. */
static bool names_choices(const line *l)
{
    static const char *const choices[][2] = {
            {"GB_VERBOSE", "none | error | dispatch | create | exec | all | timestamp"},
            {"GB_GRAPH_DUMP", "none | graph | subgraph"},
            {"GB_CONSTANT_CACHE_CAPACITY", "cpu:MB;gpu:MB"},
            {"GB_COMPILED_PARTITION_CACHE_CAPACITY", "a whole number"},
            {"GB_DEFAULT_FPMATH_MODE", "strict | bf16 | f16 | any | tf32"},
            {"GB_MAX_ISA", "baseline | avx2 | avx512 | amx"},
            {"GB_PASSES", "print | check | program"}};
    bool named = false;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        named = named ||
                (strcmp(l->fields[2], choices[i][0]) == 0 && strstr(l->fields[4], choices[i][1]));
    return named;
}

Test(diagnostics, words_without_meaning_are_reported)
{
    line lines[10];
    runtime_case c;
    setenv("GB_VERBOSE", "exec,everything", 1);
    setenv("GB_GRAPH_DUMP", "pictures", 1);
    setenv("GB_CONSTANT_CACHE_CAPACITY", "cpu:12;disk:3", 1);
    setenv("GB_COMPILED_PARTITION_CACHE_CAPACITY", "-5", 1);
    setenv("GB_DEFAULT_FPMATH_MODE", "exact", 1);
    setenv("GB_MAX_ISA", "avx1024", 1);
    setenv("GB_PASSES", "passes,check", 1); /* asked for in several places, told once */
    compile_and_run(&c);
    runtime_close(&c);
    int n = read_lines(lines, 10), errors = 0;
    for (int i = 0; i < n; i++)
        errors += strcmp(lines[i].fields[1], "error") == 0 &&
                  strcmp(lines[i].fields[3], "invalid_arguments") == 0 && names_choices(&lines[i]);
    cr_expect_eq(errors, 7);
    cr_expect_eq(n, 9); /* exec is understood */
}

Test(diagnostics, settings_from_the_environment)
{
    int entries;
    size_t megabytes;
    gb_fpmath_mode mode;
    gb_graph *graph;
    setenv("GB_CONSTANT_CACHE_CAPACITY", "gpu:7;cpu:12", 1);
    setenv("GB_COMPILED_PARTITION_CACHE_CAPACITY", "5", 1);
    setenv("GB_DEFAULT_FPMATH_MODE", "bf16", 1);
    runtime_ok(gb_get_constant_cache_capacity(GB_ENGINE_CPU, &megabytes));
    cr_expect_eq(megabytes, 12);
    runtime_ok(gb_get_constant_cache_capacity(GB_ENGINE_GPU, &megabytes));
    cr_expect_eq(megabytes, 7);
    runtime_ok(gb_get_compiled_partition_cache_capacity(&entries));
    cr_expect_eq(entries, 5);
    runtime_ok(gb_get_default_fpmath_mode(&mode));
    cr_expect_eq(mode, GB_FPMATH_BF16);
    runtime_ok(gb_set_default_fpmath_mode(GB_FPMATH_TF32));
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_ok(gb_graph_get_fpmath_mode(graph, &mode, NULL));
    cr_expect_eq(mode, GB_FPMATH_TF32);
    gb_graph_destroy(graph);
}

Test(diagnostics, failures_are_told)
{
    line lines[4];
    runtime_case c;
    gb_op *op;
    gb_graph *graph;
    compile_and_run(&c);
    runtime_ok(gb_set_verbose(GB_VERBOSE_ERROR));
    cr_expect_eq(gb_compiled_partition_execute(c.compiled, c.stream, 0, NULL, 0, NULL, NULL),
            GB_INVALID_ARGUMENTS);
    gb_compiled_partition *none;
    cr_expect_eq(gb_partition_compile(c.partition, &none, 0, NULL, 0, NULL, c.engine),
            GB_INVALID_ARGUMENTS);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_ok(gb_op_create(&op, 0, GB_OP_RELU, ""));
    cr_expect_eq(gb_graph_add_op(graph, op), GB_INVALID_GRAPH_OP);
    gb_op_destroy(op);
    gb_graph_destroy(graph);
    cr_assert_eq(read_lines(lines, 4), 3);
    const char *where[] = {"execute", "compile", "add_op"};
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(lines[i].n_fields, 5);
        cr_expect_str_eq(lines[i].fields[1], "error");
        cr_expect_str_eq(lines[i].fields[2], where[i]);
        cr_expect_gt(strlen(lines[i].fields[4]), 0);
    }
    cr_expect_str_eq(lines[2].fields[3], "invalid_graph_op");
    runtime_close(&c);
}

static void *run_often(void *c)
{
    for (int i = 0; i < 50; i++)
        run(c);
    return NULL;
}

Test(diagnostics, lines_of_threads_do_not_mix)
{
    enum { THREADS = 8 };
    static line lines[50 * THREADS + 1];
    pthread_t threads[THREADS];
    runtime_case c;
    compile_and_run(&c);
    runtime_ok(gb_set_verbose(GB_VERBOSE_EXEC));
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run_often, &c), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(read_lines(lines, 50 * THREADS + 1), 50 * THREADS);
    for (int i = 0; i < 50 * THREADS; i++)
        expect_run_line(&lines[i], "exec", "scratchpad:library:");
    runtime_close(&c);
}

/* Files ---------------------------------------------------------------------------------------- */

/* The files whose names begin so; the name of the last one. */
static int count_files(const char *prefix, char *last)
{
    int n = 0;
    DIR *all = opendir(".");
    for (struct dirent *entry; (entry = readdir(all));)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) {
            n++;
            snprintf(last, 256, "%s", entry->d_name);
        }
    closedir(all);
    return n;
}

/* Reads a file back; the graph is sound, and complete. */
static gb_graph *read_back(const char *path)
{
    gb_graph *graph;
    runtime_ok(gb_graph_load_json(&graph, path, NULL, NULL));
    runtime_ok(gb_graph_infer_shapes(graph));
    runtime_ok(gb_graph_finalize(graph));
    return graph;
}

Test(diagnostics, graphs_are_written_and_read_back)
{
    char path[256];
    runtime_case c;
    gb_logical_tensor tensor;
    runtime_ok(gb_set_dump_mode(GB_DUMP_GRAPH | GB_DUMP_SUBGRAPH));
    compile_and_run(&c);
    cr_assert_eq(count_files("graph-", path), 1);
    cr_expect_eq(strlen(path), strlen("graph-0123456789abcdef.json"));
    gb_graph_destroy(read_back(path));
    cr_assert_eq(count_files("subgraph-", path), 1);
    gb_graph *graph = read_back(path);
    cr_expect_eq(gb_graph_get_op_num(graph), 1);
    runtime_ok(gb_graph_find_tensor(graph, 1, &tensor));
    cr_expect_eq(tensor.property, GB_PROPERTY_CONSTANT);
    cr_expect_eq(tensor.dims[1], 32);
    gb_graph_destroy(graph);
    runtime_close(&c);
    compile_and_run(&c); /* equal content, equal names */
    runtime_close(&c);
    cr_expect_eq(count_files("graph-", path), 1);
    cr_expect_eq(count_files("subgraph-", path), 1);
    cr_expect_eq(gb_set_dump_mode(4), GB_INVALID_ARGUMENTS);
    runtime_ok(gb_set_dump_mode(GB_DUMP_NONE));
}

/* A tensor that leaves a partition and is read inside of it stays an output of the file. */
Test(diagnostics, subgraphs_keep_their_outputs)
{
    char path[256];
    const gb_op *op;
    gb_op_kind kind;
    size_t n;
    uint32_t outputs[2];
    gb_graph *graph = chain();
    runtime_ok(gb_graph_finalize(graph));
    outputs[0] = gb_graph_find_value(graph, 1);
    outputs[1] = gb_graph_find_value(graph, 3);
    gb_request request = {.graph = graph, .n_outputs = 2, .outputs = outputs};
    runtime_ok(gb_content_create(graph, &request.content));
    runtime_ok(gb_set_dump_mode(GB_DUMP_SUBGRAPH));
    gb_dump_subgraph(&request);
    gb_content_clear(&request.content);
    gb_graph_destroy(graph);
    cr_assert_eq(count_files("subgraph-", path), 1);
    graph = read_back(path);
    cr_expect_eq(gb_graph_get_op_num(graph), 3);
    runtime_ok(gb_graph_get_consumers(graph, 1, 0, NULL, &n));
    cr_expect_eq(n, 2);
    runtime_ok(gb_graph_get_op(graph, 2, &op));
    runtime_ok(gb_op_get_kind(op, &kind));
    cr_expect_eq(kind, GB_OP_END);
    gb_graph_destroy(graph);
}

Test(diagnostics, a_directory_that_cannot_be_written_to)
{
    line lines[4];
    runtime_case c;
    setenv("GB_GRAPH_DUMP", "Graph,SUBGRAPH", 1);
    cr_assert_eq(mkdir("gone", 0700), 0);
    cr_assert_eq(chdir("gone"), 0);
    cr_assert_eq(rmdir("../gone"), 0);
    compile_and_run(&c); /* works all the same */
    runtime_close(&c);
    cr_assert_eq(chdir(directory), 0);
    cr_assert_eq(read_lines(lines, 4), 2);
    for (int i = 0; i < 2; i++) {
        cr_expect_str_eq(lines[i].fields[1], "error");
        cr_expect_str_eq(lines[i].fields[2], "dump");
    }
}
