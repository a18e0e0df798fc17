/* Smaller graphs that fail as a case does. Graphs are edited as JSON: an op that is left out leaves its
 * results behind as inputs. */
#include "cli/perform/reduce.h"

#include "cli/case/model.h"
#include "cli/case/rewrite.h"
#include "cli/options/message.h"
#include "cli/options/options.h"
#include "cli/perform/folder.h"
#include "cli/perform/repro.h"
#include "cli/perform/single.h"
#include "cli/report/interrupt.h"
#include "cli/report/report.h"

#include <dirent.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Ops that a reduction without data may leave before data is tried. */
enum { FEW_OPS = 3 };

typedef struct reduction {
    gb_isolation isolation;
    gb_settings settings; /* of candidates */
    char *failure;        /* that has to stay; owned */
    gb_case_status verdict;
    gb_status status;   /* that came with it */
    json_object *graph; /* the smallest so far; owned */
    gb_text folder;     /* for candidates and data */
    gb_text candidate, other, tensors;
    const char *data; /* a folder: inputs are loaded, those that ops had made, too; NULL: filled */
    size_t runs;
    gb_mismatch mismatch; /* of the last failure */
    bool has_mismatch;
} reduction;

/* ------------------------------------------------------------ documents */

static json_object *ops_of(json_object *graph)
{
    return json_object_object_get(graph, "graph");
}

static size_t count_ops(json_object *graph)
{
    return json_object_array_length(ops_of(graph));
}

/* A copy with the ops that `keep` says. */
static json_object *with_ops(json_object *graph, const bool *keep)
{
    json_object *copy = json_object_new_object(), *ops = json_object_new_array();
    json_object_object_foreach(graph, key, value)
    {
        bool listed = strcmp(key, "graph") == 0 || strcmp(key, "input_ports") == 0 ||
                      strcmp(key, "output_ports") == 0;
        if (!listed)
            json_object_object_add(copy, key, json_object_get(value));
    }
    for (size_t i = 0; i < count_ops(graph); i++)
        if (keep[i])
            json_object_array_add(
                    ops, json_object_get(json_object_array_get_idx(ops_of(graph), i)));
    json_object_object_add(copy, "graph", ops);
    return copy;
}

static json_object *list_of(json_object *op, const char *side)
{
    return json_object_object_get(op, side);
}

static size_t length_of(json_object *list)
{
    return list ? json_object_array_length(list) : 0;
}

static int64_t id_of(json_object *tensor)
{
    return json_object_get_int64(json_object_object_get(tensor, "id"));
}

/* The op that makes a tensor; the number of ops: none does. */
static size_t producer_of(json_object *graph, int64_t id)
{
    size_t n = count_ops(graph);
    for (size_t i = 0; i < n; i++) {
        json_object *outputs = list_of(json_object_array_get_idx(ops_of(graph), i), "outputs");
        for (size_t k = 0; k < length_of(outputs); k++)
            if (id_of(json_object_array_get_idx(outputs, k)) == id)
                return i;
    }
    return n;
}

/* ------------------------------------------------------------ candidates */

static gb_case case_of(const gb_settings *settings, const char *path)
{
    gb_case test = {.file = path, .path = path, .repro = "", .arguments = ""};
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        test.choice[axis] = &settings->axes[axis].items[0];
    return test;
}

static gb_status perform(
        reduction *r, const gb_settings *settings, const char *path, gb_case_result *result)
{
    gb_case test = case_of(settings, path);
    r->runs += gb_cli_interrupt_signal() == 0;
    return gb_cli_trial(&r->isolation, settings, &test, result);
}

/* Does the graph in the candidate's file fail as the case does? One that cannot be loaded is another
 * failure, whatever the verdict. */
static bool file_fails(reduction *r, const char *path)
{
    gb_case_result result = {.status = CASE_UNTESTED_FAILED};
    gb_status status = perform(r, &r->settings, path, &result);
    char *failure = gb_cli_failure_class(&result);
    bool same = result.loaded && status == r->status && strcmp(failure, r->failure) == 0;
    if (same && result.n_mismatches > 0)
        r->mismatch = result.mismatches[0];
    r->has_mismatch = same ? result.n_mismatches > 0 : r->has_mismatch;
    free(failure);
    gb_cli_result_free(&result);
    return same;
}

/* Takes the graph over; it takes the place of the smallest one if it fails. */
static bool adopt(reduction *r, json_object *graph)
{
    bool fails = graph && count_ops(graph) > 0 && !gb_cli_interrupt_signal() &&
                 json_object_to_file_ext(r->candidate.data, graph, JSON_C_TO_STRING_SPACED) == 0 &&
                 file_fails(r, r->candidate.data);
    if (!fails) {
        json_object_put(graph);
        return false;
    }
    json_object_put(r->graph);
    r->graph = graph;
    return true;
}

/* The graph of a file as --save-graph writes it, rewritten by one alternative of an axis; NULL: it
 * cannot be. */
static json_object *rewritten(
        reduction *r, const char *path, const gb_settings *from, gb_axis axis, const char *text)
{
    gb_settings settings;
    gb_alternatives parsed;
    gb_cli_plain_settings(from, &settings);
    if (text && gb_cli_alternatives_parse(axis, text, &parsed) == GB_SUCCESS) {
        gb_cli_alternatives_free(axis, &settings.axes[axis]);
        settings.axes[axis] = parsed;
    }
    gb_cli_set_option(&settings, "mode", "L");
    gb_cli_set_option(&settings, "save-graph", r->other.data);
    gb_case_result result = {.status = CASE_UNTESTED_FAILED};
    unlink(r->other.data);
    perform(r, &settings, path, &result);
    json_object *graph = result.status == CASE_LISTED ? json_object_from_file(r->other.data) : NULL;
    gb_cli_result_free(&result);
    gb_cli_settings_free(&settings);
    if (graph && !json_object_is_type(ops_of(graph), json_type_array)) {
        json_object_put(graph);
        graph = NULL;
    }
    return graph;
}

/* ------------------------------------------------------------ ops */

/* The op that made the first wrong element and those in front of it, up to a distance: first few,
 * then more. */
static void cut_to_cone(reduction *r)
{
    size_t n = count_ops(r->graph), kept = 1, before = 0;
    size_t wrong = r->has_mismatch ? producer_of(r->graph, (int64_t)r->mismatch.tensor_id) : n;
    if (wrong == n)
        return;
    bool *keep = gb_cli_realloc(NULL, n, sizeof *keep);
    bool done = false;
    memset(keep, 0, n * sizeof *keep);
    keep[wrong] = true;
    while (!done && kept > before && kept < n) {
        done = adopt(r, with_ops(r->graph, keep));
        bool *next = gb_cli_realloc(NULL, n, sizeof *next);
        memcpy(next, keep, n * sizeof *keep);
        before = kept;
        for (size_t i = 0; !done && i < n; i++) {
            json_object *inputs = list_of(json_object_array_get_idx(ops_of(r->graph), i), "inputs");
            for (size_t k = 0; keep[i] && k < length_of(inputs); k++) {
                size_t maker = producer_of(r->graph, id_of(json_object_array_get_idx(inputs, k)));
                if (maker < n && !next[maker]) {
                    next[maker] = true;
                    kept++;
                }
            }
        }
        free(keep);
        keep = next;
    }
    free(keep);
}

/* Leaves out runs of ops, long ones first, from the end to the beginning. */
static void cut_ops(reduction *r)
{
    size_t n = count_ops(r->graph);
    bool *keep = gb_cli_realloc(NULL, n, sizeof *keep);
    for (size_t length = n / 2; length >= 1; length /= 2) {
        bool cut = true;
        while (cut) {
            cut = false;
            size_t end = count_ops(r->graph);
            while (end > 0) {
                size_t begin = end > length ? end - length : 0, count = count_ops(r->graph);
                for (size_t i = 0; i < count; i++)
                    keep[i] = i < begin || i >= end;
                cut = adopt(r, with_ops(r->graph, keep)) || cut;
                end = begin;
            }
            cut = cut && length == 1;
        }
    }
    free(keep);
}

/* A copy in which the readers of an op's result read one of its inputs; NULL: they are not alike. */
static json_object *without_op(json_object *graph, size_t index, size_t input)
{
    json_object *op = json_object_array_get_idx(ops_of(graph), index), *copy = NULL;
    json_object *from = json_object_array_get_idx(list_of(op, "inputs"), input);
    json_object *to = json_object_array_get_idx(list_of(op, "outputs"), 0);
    static const char *const keys[] = {"dtype", "shape"};
    for (size_t i = 0; i < 2; i++)
        if (!json_object_equal(
                    json_object_object_get(from, keys[i]), json_object_object_get(to, keys[i])))
            return NULL;
    size_t n = count_ops(graph);
    bool *keep = gb_cli_realloc(NULL, n, sizeof *keep);
    for (size_t i = 0; i < n; i++)
        keep[i] = i != index;
    json_object *others = with_ops(graph, keep);
    free(keep);
    json_object_deep_copy(others, &copy, NULL);
    json_object_put(others);
    for (size_t i = 0; i + 1 < n; i++) {
        json_object *inputs = list_of(json_object_array_get_idx(ops_of(copy), i), "inputs");
        for (size_t k = 0; k < length_of(inputs); k++)
            if (id_of(json_object_array_get_idx(inputs, k)) == id_of(to))
                json_object_array_put_idx(inputs, k, json_object_get(from));
    }
    return copy;
}

/* Ops in the middle: what reads their results reads what they read. */
static void bypass_ops(reduction *r)
{
    for (size_t i = count_ops(r->graph);
            i-- > 0 && count_ops(r->graph) > 1 && !gb_cli_interrupt_signal();) {
        json_object *op = json_object_array_get_idx(ops_of(r->graph), i);
        size_t n_inputs = length_of(list_of(op, "inputs"));
        bool adopted = length_of(list_of(op, "outputs")) != 1;
        for (size_t k = 0; !adopted && k < n_inputs; k++)
            adopted = adopt(r, without_op(r->graph, i, k));
    }
}

static void reduce_ops(reduction *r)
{
    cut_to_cone(r);
    if (count_ops(r->graph) > 1)
        cut_ops(r);
    if (count_ops(r->graph) > 1)
        bypass_ops(r);
}

/* ------------------------------------------------------------ shapes, types, attributes */

/* The dims and strides of a tensor in the file; false: it has others. */
static bool read_strides(json_object *tensor, gb_logical_tensor *strided)
{
    json_object *shape = json_object_object_get(tensor, "shape");
    json_object *strides = json_object_object_get(tensor, "stride");
    *strided = (gb_logical_tensor){.layout_type = GB_LAYOUT_STRIDED};
    strided->ndims = (int32_t)length_of(shape);
    if (length_of(shape) > GB_MAX_NDIMS || length_of(strides) != length_of(shape))
        return false;
    for (int d = 0; d < strided->ndims; d++) {
        strided->dims[d] = json_object_get_int64(json_object_array_get_idx(shape, (size_t)d));
        strided->strides[d] = json_object_get_int64(json_object_array_get_idx(strides, (size_t)d));
    }
    return true;
}

static bool is_row_major(const gb_logical_tensor *tensor)
{
    int64_t dense = 1;
    bool row_major = true;
    for (int d = tensor->ndims - 1; d >= 0; d--) {
        row_major = row_major && (tensor->dims[d] < 2 || tensor->strides[d] == dense);
        dense *= tensor->dims[d] > 1 ? tensor->dims[d] : 1;
    }
    return row_major;
}

/* How an input lies in memory, as --in-shapes has it, unless that is row after row: a format with
 * blocks, an order of axes, or, where there are gaps, strides, which fit smaller dims as well. */
static void add_layout(json_object *tensor, gb_text *text)
{
    const char *format = json_object_get_string(json_object_object_get(tensor, "layout"));
    gb_logical_tensor strided;
    int order[GB_MAX_NDIMS];
    if (format)
        gb_cli_text_add(text, "*%s", format);
    if (format || !read_strides(tensor, &strided) || is_row_major(&strided))
        return;
    bool dense = gb_cli_axis_order(&strided, order);
    gb_cli_text_add(text, "*");
    for (int d = 0; d < strided.ndims; d++) {
        if (dense)
            gb_cli_text_add(text, "%c", 'a' + order[d]);
        else
            gb_cli_text_add(text, "%s%lld", d ? "x" : "", (long long)strided.strides[d]);
    }
}

/* --in-shapes for all inputs that have a dim, with another one in its place; "" when none has. They
 * lie row after row then, or with `laid_out` as before. */
static void write_shapes(
        json_object *graph, int64_t dim, int64_t other, bool laid_out, gb_text *text)
{
    gb_cli_text_clear(text);
    gb_text seen = {0};
    for (size_t i = 0; i < count_ops(graph); i++) {
        json_object *inputs = list_of(json_object_array_get_idx(ops_of(graph), i), "inputs");
        for (size_t k = 0; k < length_of(inputs); k++) {
            json_object *tensor = json_object_array_get_idx(inputs, k);
            json_object *shape = json_object_object_get(tensor, "shape");
            char mark[32];
            snprintf(mark, sizeof mark, " %lld ", (long long)id_of(tensor));
            bool known = strstr(gb_cli_text_get(&seen), mark) != NULL, has_dim = false;
            for (size_t d = 0; d < length_of(shape); d++)
                has_dim = has_dim ||
                          json_object_get_int64(json_object_array_get_idx(shape, d)) == dim;
            if (known || !has_dim || producer_of(graph, id_of(tensor)) < count_ops(graph))
                continue;
            gb_cli_text_add(&seen, "%s", mark);
            gb_cli_text_add(text, "%s%lld:", text->length ? "+" : "", (long long)id_of(tensor));
            for (size_t d = 0; d < length_of(shape); d++) {
                int64_t own = json_object_get_int64(json_object_array_get_idx(shape, d));
                gb_cli_text_add(
                        text, "%s%lld", d ? "x" : "", (long long)(own == dim ? other : own));
            }
            if (laid_out)
                add_layout(tensor, text);
        }
    }
    gb_cli_text_free(&seen);
}

/* The largest dim of an input below a limit; 0: none. */
static int64_t largest_dim(json_object *graph, int64_t below)
{
    int64_t largest = 0;
    for (size_t i = 0; i < count_ops(graph); i++) {
        json_object *inputs = list_of(json_object_array_get_idx(ops_of(graph), i), "inputs");
        for (size_t k = 0; k < length_of(inputs); k++) {
            json_object *tensor = json_object_array_get_idx(inputs, k);
            json_object *shape = json_object_object_get(tensor, "shape");
            bool is_input = producer_of(graph, id_of(tensor)) == count_ops(graph);
            for (size_t d = 0; is_input && d < length_of(shape); d++) {
                int64_t dim = json_object_get_int64(json_object_array_get_idx(shape, d));
                largest = dim < below && dim > largest ? dim : largest;
            }
        }
    }
    return largest;
}

static bool rewrite_and_adopt(reduction *r, gb_axis axis, const char *text)
{
    return json_object_to_file_ext(r->candidate.data, r->graph, JSON_C_TO_STRING_SPACED) == 0 &&
           adopt(r, rewritten(r, r->candidate.data, &r->settings, axis, text));
}

static bool replace_dim(reduction *r, int64_t dim, int64_t other)
{
    gb_text plain = {0}, laid_out = {0};
    write_shapes(r->graph, dim, other, false, &plain);
    write_shapes(r->graph, dim, other, true, &laid_out);
    bool differ = strcmp(gb_cli_text_get(&plain), gb_cli_text_get(&laid_out)) != 0;
    bool done = rewrite_and_adopt(r, AXIS_IN_SHAPES, plain.data) ||
                (differ && rewrite_and_adopt(r, AXIS_IN_SHAPES, laid_out.data));
    gb_cli_text_free(&plain);
    gb_cli_text_free(&laid_out);
    return done;
}

/* Every size, the largest first, becomes as small as it can. */
static void reduce_shapes(reduction *r)
{
    int64_t dim = INT64_MAX;
    while ((dim = largest_dim(r->graph, dim)) > 1) {
        const int64_t others[] = {1, 2, 3, dim / 16, dim / 4, dim / 2};
        bool smaller = false;
        for (size_t i = 0; !smaller && i < sizeof others / sizeof *others; i++) {
            if (others[i] >= 1 && others[i] < dim)
                smaller = replace_dim(r, dim, others[i]);
        }
    }
}

static void reduce_types(reduction *r)
{
    const char *text = json_object_to_json_string(r->graph);
    if (strstr(text, "bf16") || strstr(text, "\"f16\""))
        rewrite_and_adopt(r, AXIS_DT, "f32");
}

/* A copy in which an op lacks the attribute of a place in its list; NULL: there is none. */
static json_object *without_attribute(json_object *graph, size_t index, size_t place)
{
    json_object *copy = NULL;
    json_object_deep_copy(graph, &copy, NULL);
    json_object *attrs =
            json_object_object_get(json_object_array_get_idx(ops_of(copy), index), "attrs");
    char *name = NULL;
    size_t at = 0;
    if (attrs) {
        json_object_object_foreach(attrs, key, value)
        {
            (void)value;
            if (at++ == place)
                name = gb_cli_copy(key);
        }
    }
    if (name) {
        json_object_object_del(attrs, name);
        free(name);
        return copy;
    }
    json_object_put(copy);
    return NULL;
}

static void reduce_attributes(reduction *r)
{
    for (size_t i = 0; i < count_ops(r->graph) && !gb_cli_interrupt_signal(); i++) {
        json_object *candidate;
        size_t place = 0;
        while ((candidate = without_attribute(r->graph, i, place)) != NULL)
            place += !adopt(r, candidate);
    }
}

/* ------------------------------------------------------------ data */

/* What is loaded from now on; NULL: nothing. */
static void set_data(reduction *r, const char *folder)
{
    r->data = folder;
    gb_cli_set_option(&r->settings, "load-tensors", folder);
}

/* What all ops make, one partition each, becomes data for inputs. */
static bool capture(reduction *r, gb_settings *settings, const char *path)
{
    gb_cli_set_option(settings, "mode", "R");
    gb_cli_set_option(settings, "policy", "debug");
    gb_cli_set_option(settings, "save-tensors", r->tensors.data);
    gb_case_result result = {.status = CASE_UNTESTED_FAILED};
    perform(r, settings, path, &result);
    bool good = result.status == CASE_EXECUTED;
    gb_cli_result_free(&result);
    DIR *folder = good ? opendir(r->tensors.data) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        gb_text from = {0}, to = {0};
        gb_cli_text_add(&from, "%s/%s", r->tensors.data, entry->d_name);
        if (strncmp(entry->d_name, "out_", 4) == 0) {
            gb_cli_text_add(&to, "%s/in_%s", r->tensors.data, entry->d_name + 4);
            good = rename(from.data, to.data) == 0 && good;
        }
        gb_cli_text_free(&from);
        gb_cli_text_free(&to);
    }
    if (folder)
        closedir(folder);
    return good;
}

/* The case has data of its own, which its failure may need: that of --load-tensors, or of a model. */
static bool take_own_data(reduction *r, const gb_errand *errand)
{
    static const char *const others[][2] = {
            {"blame", "false"}, {"save-graph", NULL}, {"golden", NULL}, {"seeds", "1"}};
    char seed[32];
    const char *folder = errand->settings.load_tensors_dir;
    gb_settings settings;
    if (!folder && !gb_cli_is_model(errand->test.path))
        return false;
    gb_cli_settings_copy(&errand->settings, errand->test.choice, &settings);
    snprintf(seed, sizeof seed, "%lld", (long long)r->settings.seed);
    gb_cli_set_option(&settings, "seed", seed);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        gb_cli_set_option(&settings, others[i][0], others[i][1]);
    /* Where the ops do not run one by one, only those can go whose results nobody else reads. */
    set_data(r, capture(r, &settings, errand->test.path) ? r->tensors.data : folder);
    gb_cli_settings_free(&settings);
    return r->data != NULL;
}

/* Once more, with the data that the ops left out had made; the smaller result stays. */
static void reduce_with_data(reduction *r, json_object *whole)
{
    gb_settings settings;
    json_object *plain = json_object_get(r->graph);
    gb_cli_plain_settings(&r->settings, &settings);
    bool good = json_object_to_file_ext(r->candidate.data, whole, JSON_C_TO_STRING_SPACED) == 0 &&
                capture(r, &settings, r->candidate.data);
    gb_cli_settings_free(&settings);
    if (good) {
        set_data(r, r->tensors.data);
        if (adopt(r, json_object_get(whole)))
            reduce_ops(r);
    }
    if (good && count_ops(r->graph) >= count_ops(plain)) {
        json_object_put(r->graph);
        r->graph = json_object_get(plain);
        set_data(r, NULL);
    }
    json_object_put(plain);
}

/* The data of the inputs of the small graph, into a folder beside it. */
static gb_status keep_data(reduction *r, const char *folder)
{
    if (mkdir(folder, 0777) != 0 && access(folder, W_OK) != 0)
        return gb_cli_fail(GB_RUNTIME_ERROR, "%s cannot be made", folder);
    for (size_t i = 0; i < count_ops(r->graph); i++) {
        json_object *inputs = list_of(json_object_array_get_idx(ops_of(r->graph), i), "inputs");
        for (size_t k = 0; k < length_of(inputs); k++) {
            json_object *tensor = json_object_array_get_idx(inputs, k);
            gb_text from = {0}, to = {0};
            const char *type = json_object_get_string(json_object_object_get(tensor, "dtype"));
            gb_cli_text_add(&from, "%s/in_%lld.%s.npy", r->data, (long long)id_of(tensor), type);
            gb_cli_text_add(&to, "%s/in_%lld.%s.npy", folder, (long long)id_of(tensor), type);
            bool good = producer_of(r->graph, id_of(tensor)) < count_ops(r->graph) ||
                        access(from.data, R_OK) != 0 ||
                        gb_cli_copy_file(from.data, to.data, SIZE_MAX);
            gb_cli_text_free(&from);
            gb_cli_text_free(&to);
            if (!good)
                return gb_cli_fail(GB_RUNTIME_ERROR, "%s cannot be written", folder);
        }
    }
    return GB_SUCCESS;
}

/* ------------------------------------------------------------ the whole */

static void reduce_graph(reduction *r)
{
    json_object *whole = json_object_get(r->graph);
    reduce_ops(r);
    if (!r->data && count_ops(r->graph) > FEW_OPS)
        reduce_with_data(r, whole);
    json_object_put(whole);
    if (!r->data) {
        reduce_types(r);
        reduce_shapes(r);
    }
    reduce_attributes(r);
    if (count_ops(r->graph) > 1) {
        cut_ops(r);
        bypass_ops(r);
    }
}

static gb_status open_reduction(reduction *r, const gb_settings *settings)
{
    gb_alternatives any;
    *r = (reduction){.isolation = {.output = OUTPUT_QUIET}};
    gb_cli_plain_settings(settings, &r->settings);
    if (gb_cli_alternatives_parse(AXIS_EXPECTED_N_PARTITIONS, "0", &any) == GB_SUCCESS) {
        gb_cli_alternatives_free(
                AXIS_EXPECTED_N_PARTITIONS, &r->settings.axes[AXIS_EXPECTED_N_PARTITIONS]);
        r->settings.axes[AXIS_EXPECTED_N_PARTITIONS] = any;
    }
    CLI_TRY(gb_cli_make_temporary(&r->folder));
    gb_cli_text_add(&r->candidate, "%s/candidate.json", r->folder.data);
    gb_cli_text_add(&r->other, "%s/other.json", r->folder.data);
    gb_cli_text_add(&r->tensors, "%s/tensors", r->folder.data);
    return GB_SUCCESS;
}

static void close_reduction(reduction *r)
{
    gb_cli_isolation_free(&r->isolation);
    gb_cli_settings_free(&r->settings);
    json_object_put(r->graph);
    gb_cli_remove_folder(gb_cli_text_get(&r->tensors));
    gb_cli_remove_folder(gb_cli_text_get(&r->folder));
    gb_cli_text_free(&r->folder);
    gb_cli_text_free(&r->candidate);
    gb_cli_text_free(&r->other);
    gb_cli_text_free(&r->tensors);
    free(r->failure);
}

/* The case itself, as it is told to run. */
static gb_status run_whole(reduction *r, gb_errand *errand, gb_reduced *reduced)
{
    gb_case_result result = {.status = CASE_UNTESTED_FAILED};
    gb_status status = gb_cli_trial(&r->isolation, &errand->settings, &errand->test, &result);
    reduced->failure = gb_cli_failure_class(&result);
    reduced->fails = gb_cli_case_status_is_failure(result.status);
    r->verdict = result.status;
    r->status = status;
    bool loads = result.loaded;
    gb_cli_set_option(&r->settings, "seeds", "1");
    char seed[32];
    snprintf(seed, sizeof seed, "%lld", (long long)result.seed);
    gb_cli_set_option(&r->settings, "seed", seed);
    gb_cli_result_free(&result);
    if (!reduced->fails)
        return GB_SUCCESS;
    if (!loads)
        return status != GB_SUCCESS ? status
                                    : gb_cli_fail(GB_RUNTIME_ERROR, "the graph cannot be loaded");
    r->failure = gb_cli_copy(reduced->failure);
    return GB_SUCCESS;
}

/* The graph after all options that change it. */
static gb_status load_whole(reduction *r, const gb_errand *errand)
{
    gb_settings settings;
    gb_cli_settings_copy(&errand->settings, errand->test.choice, &settings);
    gb_cli_set_option(&settings, "mode", "L");
    gb_cli_set_option(&settings, "save-graph", r->candidate.data);
    gb_case_result result = {.status = CASE_UNTESTED_FAILED};
    gb_status status = perform(r, &settings, errand->test.path, &result);
    if (result.status == CASE_LISTED)
        r->graph = json_object_from_file(r->candidate.data);
    gb_cli_result_free(&result);
    gb_cli_settings_free(&settings);
    if (status == GB_SUCCESS &&
            (!r->graph || !json_object_is_type(ops_of(r->graph), json_type_array)))
        return gb_cli_fail(GB_RUNTIME_ERROR, "the graph cannot be rewritten");
    return status;
}

/* Writes what was found, and says how to run it. */
static gb_status finish(reduction *r, const char *path, gb_reduced *reduced)
{
    gb_text arguments = {0};
    gb_case_result result = {.status = CASE_UNTESTED_FAILED};
    gb_settings settings;
    gb_status status = GB_SUCCESS;
    if (r->data) {
        gb_text tensors = {0};
        gb_cli_text_add(&tensors, "%s.tensors", path);
        reduced->tensors = tensors.data;
        status = keep_data(r, reduced->tensors);
        set_data(r, reduced->tensors);
    }
    gb_cli_plain_settings(&r->settings, &settings);
    gb_cli_set_option(&settings, "mode", "L");
    gb_cli_set_option(&settings, "save-graph", path);
    gb_case test = case_of(&settings, r->candidate.data);
    /* No trial: it is written after a signal, too. */
    if (json_object_to_file_ext(r->candidate.data, r->graph, JSON_C_TO_STRING_SPACED) == 0)
        gb_cli_isolated_perform(&r->isolation, &settings, &test, NULL, false, &result);
    if (status == GB_SUCCESS && result.status != CASE_LISTED)
        status = gb_cli_fail(GB_RUNTIME_ERROR, "%s cannot be written", path);
    gb_cli_result_free(&result);
    gb_cli_settings_free(&settings);
    const gb_alternative *choice[AXIS_COUNT];
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        choice[axis] = &r->settings.axes[axis].items[0];
    gb_cli_write_limits(&r->settings, r->verdict, &arguments);
    gb_cli_write_repro(&r->settings, choice, path, &arguments);
    reduced->arguments = arguments.data;
    reduced->ops = count_ops(r->graph);
    reduced->runs = r->runs;
    return status;
}

void gb_cli_reduced_free(gb_reduced *reduced)
{
    free(reduced->failure);
    free(reduced->arguments);
    free(reduced->tensors);
    *reduced = (gb_reduced){.fails = false};
}

gb_status gb_cli_reduce(gb_errand *errand, const char *path, gb_reduced *reduced)
{
    reduction r;
    *reduced = (gb_reduced){.fault = REDUCE_UNWRITTEN};
    gb_status status = open_reduction(&r, &errand->settings);
    if (status == GB_SUCCESS) {
        reduced->fault = REDUCE_UNREAD;
        status = run_whole(&r, errand, reduced);
    }
    if (status == GB_SUCCESS && reduced->fails)
        status = load_whole(&r, errand);
    if (status == GB_SUCCESS && reduced->fails) {
        reduced->fault = REDUCE_NO_FAILURE;
        reduced->ops_before = count_ops(r.graph);
        bool fails = file_fails(&r, r.candidate.data) ||
                     (take_own_data(&r, errand) && file_fails(&r, r.candidate.data));
        if (fails) {
            reduce_graph(&r);
            reduced->fault = REDUCE_UNWRITTEN;
            status = finish(&r, path, reduced);
        } else if (gb_cli_interrupt_signal()) {
            status = gb_cli_fail(GB_RUNTIME_ERROR, "a signal ended the run");
        } else {
            status = gb_cli_fail(GB_RUNTIME_ERROR,
                    "%s comes of the options, not of the rewritten graph", reduced->failure);
        }
    }
    close_reduction(&r);
    return status;
}
