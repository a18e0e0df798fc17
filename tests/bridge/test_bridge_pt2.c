/* Archives: written here as torch.export.save lays them out, read, and broken. */
#include "bridge_case.h"

#include <unistd.h>
#include <zip.h>

static const char lines[] = "input x f32 1x4\nparam w f32 2x4\nlinear.default y:f32:1x2 input=@x "
                            "weight=@w\noutput y\n";
#define META                                                                                       \
    "\"tensor_meta\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 2}, {\"as_int\": 4}], \"strides\": " \
    "[{\"as_int\": 4}, {\"as_int\": 1}], \"storage_offset\": {\"as_int\": 1}}"
#define CONFIG                                                                                     \
    "{\"config\": {\"m.w\": {\"path_name\": \"weight_0\", \"is_param\": true, \"use_pickle\": "    \
    "false, " META "}}}"

typedef struct archive {
    const char *json, *config, *order;
    size_t weight_bytes;
    bool compressed;
} archive;

static void add(zip_t *zip, const char *name, const void *data, size_t bytes, bool compressed)
{
    zip_source_t *source = zip_source_buffer(zip, data, bytes, 0);
    zip_int64_t index = zip_file_add(zip, name, source, ZIP_FL_OVERWRITE);
    cr_assert_geq(index, 0);
    zip_set_file_compression(
            zip, (zip_uint64_t)index, compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
}

static void write_archive(const archive *a, char *path)
{
    static const float weights[32] = {-1, 1, 2, 3, 4, 5, 6, 7, 8};
    int error, file;
    strcpy(path, "/tmp/bridge_pt2_XXXXXX");
    file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &error);
    cr_assert(zip);
    if (a->json)
        add(zip, "model/models/model.json", a->json, strlen(a->json), false);
    if (a->order)
        add(zip, "model/byteorder", a->order, strlen(a->order), false);
    if (a->config) {
        add(zip, "model/data/weights/model_weights_config.json", a->config, strlen(a->config),
                false);
        add(zip, "model/data/weights/weight_0", weights, a->weight_bytes, a->compressed);
    }
    cr_assert_eq(zip_close(zip), 0, "%s", zip_strerror(zip));
}

static gb_status read_archive(const archive *a, gb_bridge_graph **graph)
{
    char path[64];
    write_archive(a, path);
    *graph = NULL;
    gb_status status = gb_bridge_graph_create_from_pt2(graph, path);
    unlink(path);
    return status;
}

static void expect_fault(const archive *a, const char *message)
{
    gb_bridge_graph *graph;
    cr_assert_neq(read_archive(a, &graph), GB_SUCCESS, "%s", message);
    cr_assert_null(graph);
    cr_assert(
            strstr(gb_bridge_last_error(), message), "%s, not %s", gb_bridge_last_error(), message);
}

Test(bridge_pt2, weights_come_with_the_graph)
{
    char *json = case_json(lines);
    const archive a = {.json = json, .config = CONFIG, .order = "little", .weight_bytes = 36};
    gb_bridge_graph *graph;
    gb_bridge_module *module;
    gb_bridge_tensor weight;
    gb_bridge_options options = {.size = sizeof options, .keep_single_ops = 1};
    cr_assert_eq(read_archive(&a, &graph), GB_SUCCESS, "%s", gb_bridge_last_error());
    cr_assert_eq(gb_bridge_graph_get_constant(graph, "w", &weight), GB_SUCCESS);
    cr_assert(weight.dtype == GB_F32 && weight.dims[1] == 4 && weight.size == 32);
    cr_assert_eq(((const float *)weight.data)[7], 8); /* behind the offset */
    cr_assert_neq(gb_bridge_graph_get_constant(graph, "x", &weight), GB_SUCCESS);
    cr_assert_eq(gb_bridge_module_create(&module, graph, &options), GB_SUCCESS);
    gb_bridge_graph_destroy(graph);
    /* Given without memory, a constant is the archive's. */
    float x[4] = {1, 0, 0, 1}, y[2] = {0};
    gb_bridge_tensor inputs[2] = {
            {.data = x, .dtype = GB_F32, .ndims = 2, .dims = {1, 4}, .strides = {4, 1}},
            {.dtype = GB_F32, .ndims = 2, .dims = {2, 4}, .strides = {4, 1}}};
    gb_bridge_tensor output = {.data = y};
    cr_assert_eq(gb_bridge_group_execute(module, 0, 2, inputs, 1, &output), GB_SUCCESS, "%s",
            gb_bridge_last_error());
    cr_assert(y[0] == 5 && y[1] == 13, "%g %g", (double)y[0], (double)y[1]);
    /* The mapped graph has them, too. */
    gb_graph *mapped;
    const void *data = NULL;
    size_t bytes = 0, n = 0;
    gb_logical_tensor ports[4];
    cr_assert_eq(gb_bridge_module_get_graph(module, SIZE_MAX, &mapped), GB_SUCCESS);
    cr_assert_eq(gb_graph_get_inputs(mapped, 4, ports, &n), GB_SUCCESS);
    for (size_t i = 0; i < n; i++)
        if (ports[i].property == GB_PROPERTY_CONSTANT)
            gb_graph_get_constant(mapped, ports[i].id, &data, &bytes);
    cr_assert(data && bytes == 32 && ((const float *)data)[0] == 1);
    gb_graph_destroy(mapped);
    gb_bridge_module_destroy(module);
    free(json);
}

/* A graph with its archive's weights; single ops stay groups. The caller's. */
static gb_bridge_module *open_module(const char *json)
{
    const archive a = {.json = json, .config = CONFIG, .weight_bytes = 36};
    gb_bridge_graph *graph;
    gb_bridge_module *module;
    gb_bridge_options options = {.size = sizeof options, .keep_single_ops = 1};
    cr_assert_eq(read_archive(&a, &graph), GB_SUCCESS, "%s", gb_bridge_last_error());
    cr_assert_eq(gb_bridge_module_create(&module, graph, &options), GB_SUCCESS);
    gb_bridge_graph_destroy(graph);
    return module;
}

/* What the archive holds lies as it lies: no other strides fit it. */
Test(bridge_pt2, contents_with_other_strides)
{
    char *json = case_json(lines);
    gb_bridge_module *module = open_module(json);
    float x[4] = {1, 0, 0, 1}, y[2] = {0}, w[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    gb_bridge_tensor inputs[2] = {
            {.data = x, .dtype = GB_F32, .ndims = 2, .dims = {1, 4}, .strides = {4, 1}},
            {.dtype = GB_F32, .ndims = 2, .dims = {2, 4}, .strides = {1, 2}}};
    gb_bridge_tensor output = {.data = y};
    cr_assert_eq(gb_bridge_group_execute(module, 0, 2, inputs, 1, &output), GB_INVALID_ARGUMENTS);
    cr_assert(strstr(gb_bridge_last_error(), "no contents with these strides"));
    inputs[1].data = w;
    cr_assert_eq(gb_bridge_group_execute(module, 0, 2, inputs, 1, &output), GB_SUCCESS);
    cr_assert(y[0] == 8 && y[1] == 10, "%g %g", (double)y[0], (double)y[1]);
    gb_bridge_module_destroy(module);
    free(json);
}

/* Nor are they what the graph has written since. */
Test(bridge_pt2, contents_that_the_graph_writes_to)
{
    char *json = case_json("input x f32 1x4\nparam w f32 2x4\nadd_.Tensor u:f32:2x4 self=@w "
                           "other=1\nlinear.default y:f32:1x2 input=@x weight=@w\noutput y\n");
    gb_bridge_module *module = open_module(json);
    cr_assert(!is_constant_input(module, "w"));
    float x[4] = {1, 1, 1, 1}, y[2] = {0}, w[8];
    gb_bridge_tensor inputs[2] = {
            {.data = x, .dtype = GB_F32, .ndims = 2, .dims = {1, 4}, .strides = {4, 1}},
            {.dtype = GB_F32, .ndims = 2, .dims = {2, 4}, .strides = {4, 1}}};
    gb_bridge_tensor output = {.data = y};
    cr_assert_eq(gb_bridge_group_execute(module, 0, 2, inputs, 1, &output), GB_INVALID_ARGUMENTS);
    inputs[1].data = w;
    for (int run = 2; run < 5; run++) {
        for (int i = 0; i < 8; i++)
            w[i] = (float)run; /* the framework's node */
        cr_assert_eq(gb_bridge_group_execute(module, 0, 2, inputs, 1, &output), GB_SUCCESS);
        cr_assert(y[0] == (float)(4 * run), "%g in run %d", (double)y[0], run);
    }
    /* Neither has the mapped graph constants. */
    gb_graph *mapped;
    gb_logical_tensor ports[4];
    size_t n = 0;
    cr_assert_eq(gb_bridge_module_get_graph(module, SIZE_MAX, &mapped), GB_SUCCESS);
    cr_assert_eq(gb_graph_get_inputs(mapped, 4, ports, &n), GB_SUCCESS);
    for (size_t i = 0; i < n; i++)
        cr_assert_neq(ports[i].property, GB_PROPERTY_CONSTANT);
    gb_graph_destroy(mapped);
    gb_bridge_module_destroy(module);
    free(json);
}

/* Weights that are one tensor, under two names. */
Test(bridge_pt2, tied_weights_are_read_once)
{
    char *json = case_json("input x f32 1x4\nparam w f32 2x4\nparam v f32 2x4\n"
                           "linear.default y:f32:1x2 input=@x weight=@w\n"
                           "linear.default z:f32:1x2 input=@x weight=@v\noutput y\noutput z\n");
    const archive a = {.json = json,
            .config = "{\"m.w\": {\"path_name\": \"weight_0\", " META
                      "}, \"m.v\": {\"path_name\": \"weight_0\", " META "}}",
            .weight_bytes = 36};
    gb_bridge_graph *graph;
    gb_bridge_tensor w, v;
    cr_assert_eq(read_archive(&a, &graph), GB_SUCCESS, "%s", gb_bridge_last_error());
    cr_assert_eq(gb_bridge_graph_get_constant(graph, "w", &w), GB_SUCCESS);
    cr_assert_eq(gb_bridge_graph_get_constant(graph, "v", &v), GB_SUCCESS);
    cr_assert_eq(w.data, v.data);
    cr_assert_eq(((const float *)v.data)[7], 8);
    gb_bridge_graph_destroy(graph);
    free(json);
}

/* Sizes in the directory that no file of this length can hold, in all places where they stand. */
Test(bridge_pt2, sizes_that_are_not_true)
{
    char *json = case_json(lines), path[64];
    const archive a = {.json = json, .config = CONFIG, .weight_bytes = 36};
    write_archive(&a, path);
    static unsigned char bytes[1 << 16];
    FILE *file = fopen(path, "r+b");
    cr_assert(file);
    size_t length = fread(bytes, 1, sizeof bytes, file), found = 0;
    for (size_t at = 0; at + 8 <= length; at++) {
        const unsigned char size[] = {36, 0, 0, 0, 36, 0, 0, 0};
        if (memcmp(bytes + at, size, sizeof size) != 0)
            continue;
        bytes[at + 3] = bytes[at + 7] = 0x7F;
        found++;
    }
    cr_assert_geq(found, 1);
    rewind(file);
    cr_assert_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
    gb_bridge_graph *graph = NULL;
    cr_assert_neq(gb_bridge_graph_create_from_pt2(&graph, path), GB_SUCCESS);
    cr_assert_null(graph);
    unlink(path);
    free(json);
}

Test(bridge_pt2, faults)
{
    char *json = case_json(lines);
    expect_fault(&(archive){.config = CONFIG, .weight_bytes = 36}, "no models/model.json");
    expect_fault(&(archive){.json = "{", .weight_bytes = 36}, "not JSON");
    expect_fault(&(archive){.json = json, .config = CONFIG, .weight_bytes = 32},
            "needs 32 bytes from 4");
    expect_fault(&(archive){.json = json, .config = "[]", .weight_bytes = 36}, "is no object");
    expect_fault(&(archive){.json = json, .config = CONFIG, .order = "big", .weight_bytes = 36},
            "not little-endian");
    expect_fault(
            &(archive){.json = json, .config = CONFIG, .weight_bytes = 128, .compressed = true},
            "compressed");
    expect_fault(&(archive){.json = json,
                         .config = "{\"m.w\": {\"path_name\": \"weight_1\", " META "}}",
                         .weight_bytes = 36},
            "no member");
    free(json);
}

Test(bridge_pt2, cut_off_and_changed)
{
    char *json = case_json(lines), path[64];
    const archive a = {.json = json, .config = CONFIG, .order = "little", .weight_bytes = 36};
    write_archive(&a, path);
    FILE *file = fopen(path, "r+b");
    cr_assert(file);
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    char *whole = malloc((size_t)length);
    rewind(file);
    cr_assert_eq(fread(whole, 1, (size_t)length, file), (size_t)length);
    fclose(file);
    for (long end = 0; end < length; end += 7)
        for (int flip = 0; flip < 2; flip++) {
            gb_bridge_graph *graph = NULL;
            file = fopen(path, "wb");
            if (flip)
                whole[end] ^= 0x55;
            fwrite(whole, 1, (size_t)(flip ? length : end), file);
            if (flip)
                whole[end] ^= 0x55;
            fclose(file);
            gb_status status = gb_bridge_graph_create_from_pt2(&graph, path);
            cr_assert((status == GB_SUCCESS) == (graph != NULL));
            cr_assert(flip || status != GB_SUCCESS, "%ld", end);
            gb_bridge_graph_destroy(graph);
        }
    unlink(path);
    free(whole);
    free(json);
}
