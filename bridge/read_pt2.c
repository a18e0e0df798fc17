/* Archives of torch.export.save: a zip file with model.json and, uncompressed, the contents of
 * parameters, buffers and constants. */
#include "read.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifdef GB_HAS_LIBZIP
#include <zip.h>

static const uint64_t MOST_JSON_BYTES = (uint64_t)1 << 30;
/* No deflated text is shorter by more. */
enum { MOST_RATIO = 1100 };

typedef struct contents {
    const void *data;
    size_t bytes;
} contents;

typedef struct archive {
    zip_t *zip;
    const char *path;
    uint64_t bytes; /* of the file */
    char *folder;   /* all members lie in it; ends in '/', or "" */
    gb_bridge_graph *graph;
    br_names names;     /* of members that tensors lie in */
    contents *contents; /* of each, read once: tensors may share a storage */
    uint32_t contents_capacity;
} archive;

/* NULL: none that ends so. */
static const char *find_member(zip_t *zip, const char *end)
{
    size_t length = strlen(end);
    for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0); i++) {
        const char *name = zip_get_name(zip, (zip_uint64_t)i, 0);
        size_t whole = name ? strlen(name) : 0;
        if (whole >= length && strcmp(name + whole - length, end) == 0 &&
                (whole == length || name[whole - length - 1] == '/'))
            return name;
    }
    return NULL;
}

/* Reads a member into memory of the graph. A size that the archive only claims is refused before
 * memory is asked for: what is stored is no larger than the file, and text is only so much larger. */
static gb_status read_member(
        const archive *a, const char *name, bool is_json, const void **data, size_t *bytes)
{
    zip_stat_t stat;
    if (zip_stat(a->zip, name, 0, &stat) != 0 || !(stat.valid & ZIP_STAT_SIZE) ||
            !(stat.valid & ZIP_STAT_COMP_METHOD) || !(stat.valid & ZIP_STAT_COMP_SIZE))
        return br_fail(GB_INVALID_ARGUMENTS, "%s: no member %.120s", a->path, name);
    bool is_stored = stat.comp_method == ZIP_CM_STORE && stat.size == stat.comp_size;
    bool is_claimed = stat.comp_size > a->bytes || stat.size / MOST_RATIO > stat.comp_size;
    if (is_json ? is_claimed || stat.size > MOST_JSON_BYTES : !is_stored || is_claimed)
        return br_fail(GB_INVALID_ARGUMENTS, "%s: %.120s is %s", a->path, name,
                is_json || is_stored ? "too large" : "compressed");
    char *memory = br_alloc(&a->graph->arena, 1, (size_t)stat.size + 1);
    if (!memory)
        return br_out_of_memory();
    zip_file_t *file = zip_fopen(a->zip, name, 0);
    zip_int64_t length = file ? zip_fread(file, memory, stat.size) : -1;
    char rest;
    /* At the end of a member its checksum is looked at. */
    bool is_whole =
            length >= 0 && (zip_uint64_t)length == stat.size && zip_fread(file, &rest, 1) == 0;
    if (file)
        zip_fclose(file);
    if (!is_whole)
        return br_fail(GB_INVALID_ARGUMENTS, "%s: %.120s cannot be read", a->path, name);
    *data = memory;
    *bytes = (size_t)stat.size;
    return GB_SUCCESS;
}

/* The contents of a member that tensors lie in. */
static gb_status read_storage(archive *a, const char *name, contents *found)
{
    br_arena *arena = &a->graph->arena;
    uint32_t index = br_names_find(&a->names, name);
    if (index != BR_NONE) {
        *found = a->contents[index];
        return GB_SUCCESS;
    }
    BR_TRY(read_member(a, name, false, &found->data, &found->bytes));
    index = br_names_add(arena, &a->names, name);
    if (index == BR_NONE ||
            !br_grow(arena, &a->contents, &a->contents_capacity, index, sizeof *a->contents))
        return br_out_of_memory();
    a->contents[index] = *found;
    return GB_SUCCESS;
}

static br_value *find_qualified(const gb_bridge_graph *graph, const char *name)
{
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        br_value *value = &graph->values[graph->inputs[i]];
        if (value->qualified_name && strcmp(value->qualified_name, name) == 0)
            return value;
    }
    return NULL;
}

static bool same_dims(const br_value *a, const br_value *b)
{
    if (a->ndims != b->ndims || a->dtype != b->dtype)
        return false;
    for (int d = 0; d < a->ndims; d++)
        if (a->dims[d].value != b->dims[d].value)
            return false;
    return true;
}

/* {"path_name": "weight_0", "use_pickle": false, "tensor_meta": {..}}. The member holds the whole
 * storage, of which the tensor may be a part. */
static gb_status read_contents(archive *a, const char *folder, const char *name, json_object *entry)
{
    json_object *path, *pickled, *meta, *offset_object, *offset_int;
    br_value *value = find_qualified(a->graph, name);
    if (!value || value->kind != BR_TENSOR ||
            (json_object_object_get_ex(entry, "use_pickle", &pickled) &&
                    json_object_get_boolean(pickled)))
        return GB_SUCCESS; /* an object of Python, or what the graph does not read */
    if (!json_object_object_get_ex(entry, "path_name", &path) ||
            !json_object_is_type(path, json_type_string) ||
            !json_object_object_get_ex(entry, "tensor_meta", &meta) ||
            !json_object_is_type(meta, json_type_object))
        return br_fail(
                GB_INVALID_ARGUMENTS, "%s: no path or description of \"%.100s\"", a->path, name);
    br_value described;
    BR_TRY(br_read_tensor_meta(a->graph, name, meta, &described));
    size_t extent, offset = 0;
    if (!same_dims(value, &described) || !br_value_bytes(&described, &extent))
        return br_fail(
                GB_INVALID_ARGUMENTS, "%s: \"%.100s\" is described in two ways", a->path, name);
    if (json_object_object_get_ex(meta, "storage_offset", &offset_object) &&
            json_object_object_get_ex(offset_object, "as_int", &offset_int)) {
        int64_t elements = json_object_get_int64(offset_int);
        if (elements < 0 || elements > INT64_MAX / 16)
            return br_fail(GB_INVALID_ARGUMENTS, "%s: offset of \"%.100s\"", a->path, name);
        offset = (size_t)elements * described.dtype->bytes;
    }
    contents storage;
    const char *member =
            br_format(&a->graph->arena, "%s%s%s", a->folder, folder, json_object_get_string(path));
    if (!member)
        return br_out_of_memory();
    BR_TRY(read_storage(a, member, &storage));
    if (offset > storage.bytes || extent > storage.bytes - offset)
        return br_fail(GB_INVALID_ARGUMENTS,
                "%s: \"%.100s\" needs %zu bytes from %zu, there are %zu", a->path, name, extent,
                offset, storage.bytes);
    value->data = (const char *)storage.data + offset;
    value->bytes = extent;
    memcpy(value->strides, described.strides, sizeof value->strides);
    return GB_SUCCESS;
}

static gb_status read_config(archive *a, const char *folder, const char *file)
{
    const void *text;
    size_t length;
    json_object *root, *config, *inner;
    const char *name = br_format(&a->graph->arena, "%s%s%s", a->folder, folder, file);
    if (!name)
        return br_out_of_memory();
    if (zip_name_locate(a->zip, name, 0) < 0)
        return GB_SUCCESS; /* a model without */
    BR_TRY(read_member(a, name, true, &text, &length));
    BR_TRY(br_parse_json(text, length, &root));
    config = root;
    if (json_object_is_type(root, json_type_object) &&
            json_object_object_get_ex(root, "config", &inner))
        config = inner;
    gb_status status = GB_SUCCESS;
    if (!json_object_is_type(config, json_type_object)) {
        status = br_fail(GB_INVALID_ARGUMENTS, "%s: %.120s is no object", a->path, name);
    } else {
        json_object_iter entry;
        json_object_object_foreachC(config, entry)
        {
            status = read_contents(a, folder, entry.key, entry.val);
            if (status != GB_SUCCESS)
                break;
        }
    }
    json_object_put(root);
    return status;
}

static gb_status read_archive(archive *a)
{
    static const char model[] = "models/model.json";
    const char *name = find_member(a->zip, model);
    if (!name)
        return br_fail(GB_INVALID_ARGUMENTS, "%s: no models/model.json in it", a->path);
    a->folder = br_copy_text(&a->graph->arena, name, strlen(name) - (sizeof model - 1));
    if (!a->folder)
        return br_out_of_memory();
    const void *text;
    size_t length;
    const char *order = find_member(a->zip, "byteorder");
    if (order) {
        BR_TRY(read_member(a, order, true, &text, &length));
        if (length < 6 || memcmp(text, "little", 6) != 0)
            return br_fail(GB_INVALID_ARGUMENTS, "%s: contents are not little-endian", a->path);
    }
    BR_TRY(read_member(a, name, true, &text, &length));
    BR_TRY(br_graph_read(a->graph, text, length));
    BR_TRY(read_config(a, "data/weights/", "model_weights_config.json"));
    return read_config(a, "data/constants/", "model_constants_config.json");
}

gb_status gb_bridge_graph_create_from_pt2(gb_bridge_graph **graph, const char *path)
{
    if (!graph || !path)
        return br_fail(GB_INVALID_ARGUMENTS, "graph or path is NULL");
    int error;
    archive a = {.path = path, .zip = zip_open(path, ZIP_RDONLY, &error)};
    if (!a.zip) {
        zip_error_t reason;
        zip_error_init_with_code(&reason, error);
        br_note_failure("%.300s: %.160s", path, zip_error_strerror(&reason));
        zip_error_fini(&reason);
        return GB_INVALID_ARGUMENTS;
    }
    struct stat file;
    a.bytes = stat(path, &file) == 0 && file.st_size > 0 ? (uint64_t)file.st_size : 0;
    a.graph = br_graph_new();
    gb_status status = a.graph ? read_archive(&a) : br_out_of_memory();
    zip_discard(a.zip);
    if (status == GB_SUCCESS)
        *graph = a.graph;
    else
        br_graph_release(a.graph);
    return status;
}
#else
gb_status gb_bridge_graph_create_from_pt2(gb_bridge_graph **graph, const char *path)
{
    (void)graph;
    return br_fail(
            GB_UNIMPLEMENTED, "%.300s: the bridge was built without libzip", path ? path : "");
}
#endif
