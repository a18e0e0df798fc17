/* Properties of random graphs: what edits leave, contents, visits, round trips through files, and
 * work. */
#include "graph/ir/content.h"
#include "random_graph.h"

#include <graphbench/graphbench_tools.h>
#include <unistd.h>

enum { GRAPHS = 600, EDITS = 12 };

/* ---- the same graph, otherwise ---- */

static size_t other_id(size_t id)
{
    return id * 3 + 17;
}

static gb_op *renamed(const gb_op *op)
{
    gb_op *copy;
    fusion_ok(gb_op_create(&copy, other_id(op->id), op->kind, "renamed"));
    for (uint32_t i = op->n_attrs; i-- > 0;)
        fusion_ok(gb_op_put_attr(copy, &op->attrs[i]));
    for (uint32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
        gb_logical_tensor tensor = *gb_op_tensor(op, i);
        tensor.id = other_id(tensor.id);
        fusion_ok((i < op->n_inputs ? gb_op_add_input : gb_op_add_output)(copy, &tensor));
    }
    return copy;
}

/* With other ids, and added in another order. */
static gb_graph *shuffled(const gb_graph *graph)
{
    gb_graph *other;
    uint32_t order[MOST_OPS];
    fusion_ok(gb_graph_create(&other, graph->engine_kind));
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        uint32_t j = random_below(i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        gb_op *op = renamed(graph->ops[order[i]]);
        fusion_ok(gb_graph_add_op(other, op));
        gb_op_destroy(op);
    }
    return other;
}

static bool are_equal(const gb_graph *a, const gb_graph *b)
{
    uint8_t equal;
    uint64_t hashes[2];
    fusion_ok(gb_graph_is_equal(a, b, &equal));
    fusion_ok(gb_graph_get_hash(a, &hashes[0]));
    fusion_ok(gb_graph_get_hash(b, &hashes[1]));
    cr_assert_eq(equal, hashes[0] == hashes[1]);
    return equal;
}

Test(graph_property, content_is_what_ids_and_order_do_not_change)
{
    gb_graph *before = NULL;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        fusion_case c;
        random_graph(&c, seed);
        gb_graph *other = shuffled(c.graph);
        cr_assert(are_equal(c.graph, other), "seed %llu", (unsigned long long)seed);
        if (before && before->n_ops != other->n_ops)
            cr_assert_not(are_equal(before, c.graph), "seed %llu", (unsigned long long)seed);
        gb_graph_destroy(before);
        before = other;
        gb_graph_destroy(c.graph);
    }
    gb_graph_destroy(before);
}

Test(graph_property, scratch_attributes_do_not_count)
{
    gb_op_attr note, list;
    fusion_ok(gb_op_attr_define("temp.note", GB_ATTR_TYPE_S64, &note));
    fusion_ok(gb_op_attr_define("temp.list", GB_ATTR_TYPE_F32S, &list));
    for (uint64_t seed = 1; seed <= GRAPHS / 10; seed++) {
        fusion_case c;
        random_graph(&c, seed);
        gb_graph *other = shuffled(c.graph);
        for (uint32_t i = 0; i < c.graph->n_ops; i++) {
            fusion_ok(gb_op_set_attr_s64(c.graph->ops[i], note, 1, &(int64_t){i}));
            fusion_ok(gb_op_set_attr_f32(c.graph->ops[i], list, 2, (const float[]){1, 2}));
        }
        fusion_ok(gb_graph_verify(c.graph));
        cr_assert(are_equal(c.graph, other));
        gb_graph_destroy(other);
        gb_graph_destroy(c.graph);
    }
}

/* ---- edits ---- */

/* A TypeCast, Abs or Wildcard on a random tensor, in front of one of its readers or all. */
static void insert_somewhere(gb_graph *graph)
{
    const gb_value *value = &graph->values[random_below(graph->n_values)];
    size_t id = value->tensor.id, reader = GB_NO_ID;
    gb_op *op;
    if (value->n_uses == 0)
        return;
    if (random_below(2))
        reader = graph->ops[value->uses[random_below(value->n_uses)].op]->id;
    bool is_float = value->tensor.data_type == GB_F32 || value->tensor.data_type == GB_BF16;
    fusion_ok(gb_graph_make_op(
            &op, graph, is_float ? "Abs" : "Wildcard", 1, &id, 1, &value->tensor.data_type));
    uint32_t n_ops = graph->n_ops;
    fusion_ok(gb_graph_insert_op(graph, id, reader, op));
    cr_assert_eq(graph->n_ops, n_ops + 1);
    uint32_t made = gb_graph_find_value(graph, gb_op_output(op, 0)->id);
    cr_assert_neq(graph->values[made].n_uses, 0);
    gb_op_destroy(op);
}

static void replace_somewhere(gb_graph *graph)
{
    gb_op *old = graph->ops[random_below(graph->n_ops)], *op;
    fusion_ok(gb_op_create(&op, random_below(2) ? old->id : 100000 + graph->n_ops, GB_OP_WILDCARD,
            "in its place"));
    for (uint32_t i = 0; i < old->n_inputs; i++)
        fusion_ok(gb_op_add_input(op, gb_op_input(old, i)));
    for (uint32_t i = 0; i < old->n_outputs; i++)
        if (i == 0 || graph->values[old->outputs[i]].n_uses > 0)
            fusion_ok(gb_op_add_output(op, gb_op_output(old, i)));
    gb_status status = gb_graph_replace_op(graph, old->id, op);
    /* an id of 100000 or more may be there already */
    cr_assert(status == GB_SUCCESS || status == GB_INVALID_GRAPH_OP, "%s", gb_last_error());
    gb_op_destroy(op);
}

static void remove_somewhere(gb_graph *graph)
{
    uint32_t n_ops = graph->n_ops;
    size_t id = graph->ops[random_below(n_ops)]->id;
    fusion_ok(gb_graph_remove_op(graph, id));
    cr_assert_eq(graph->n_ops, n_ops - 1);
    cr_assert_eq(gb_graph_find_op_index(graph, id), GB_NONE);
}

Test(graph_property, edits_keep_graphs_sound)
{
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        fusion_case c;
        random_graph(&c, seed);
        for (int i = 0; i < EDITS && c.graph->n_ops > 1; i++) {
            void (*const edits[])(gb_graph *) = {
                    insert_somewhere, replace_somewhere, remove_somewhere};
            gb_op *kept = c.graph->ops[random_below(c.graph->n_ops)];
            const gb_op *found;
            size_t id = kept->id;
            edits[random_below(3)](c.graph);
            fusion_ok(gb_graph_check_structure(c.graph, true));
            if (gb_graph_find_op_index(c.graph, id) != GB_NONE) {
                fusion_ok(gb_graph_find_op(c.graph, id, &found));
                cr_assert_eq(found, kept, "ops that are lent stay where they are");
            }
            for (uint32_t v = 0; v < c.graph->n_values; v++)
                cr_assert(gb_graph_is_input(c.graph, v) || c.graph->values[v].producer != GB_NONE);
        }
        fusion_ok(gb_graph_verify(c.graph));
        fusion_ok(gb_graph_finalize(c.graph));
        gb_graph_destroy(c.graph);
    }
}

Test(graph_property, what_is_inserted_can_be_taken_out_again)
{
    for (uint64_t seed = 1; seed <= GRAPHS / 2; seed++) {
        fusion_case c;
        gb_graph *copy;
        random_graph(&c, seed);
        fusion_ok(gb_graph_clone(c.graph, NULL, 0, &copy));
        uint32_t n_ops = copy->n_ops;
        insert_somewhere(c.graph);
        if (c.graph->n_ops > n_ops) {
            cr_assert_not(are_equal(c.graph, copy));
            fusion_ok(gb_graph_bypass_op(c.graph, n_ops, 0));
        }
        cr_assert(are_equal(c.graph, copy), "seed %llu", (unsigned long long)seed);
        gb_graph_destroy(copy);
        gb_graph_destroy(c.graph);
    }
}

/* ---- visits ---- */

typedef struct visit {
    uint32_t n, places[MOST_OPS]; /* by index of the op */
    const gb_op *ops[MOST_OPS];
} visit;

static gb_status note_visit(void *context, const gb_op *op)
{
    visit *v = context;
    v->places[op->index] = v->n;
    v->ops[v->n++] = op;
    return GB_SUCCESS;
}

static void check_visit(const gb_graph *graph, const visit *v, bool reverse)
{
    cr_assert_eq(v->n, graph->n_ops);
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        cr_assert_eq(v->ops[v->places[i]], graph->ops[i]);
        const gb_op *op = graph->ops[i];
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t producer = graph->values[op->inputs[k]].producer;
            cr_assert(producer == GB_NONE || (v->places[producer] < v->places[i]) != reverse);
        }
    }
}

/* Depth first: an op whose only reader has no other input that is made stands right in front of it.
 */
static void check_chains(const gb_graph *graph, const visit *v)
{
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        const gb_op *op = graph->ops[i];
        uint32_t only = GB_NONE;
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t producer = graph->values[op->inputs[k]].producer;
            if (producer == GB_NONE)
                continue;
            if (only != GB_NONE && only != producer)
                goto next;
            only = producer;
        }
        if (only == GB_NONE)
            continue;
        for (uint32_t k = 0; k < graph->ops[only]->n_outputs; k++) {
            const gb_value *value = &graph->values[graph->ops[only]->outputs[k]];
            for (uint32_t u = 0; u < value->n_uses; u++)
                if (value->uses[u].op != i)
                    goto next;
        }
        cr_assert_eq(v->places[i], v->places[only] + 1);
    next:;
    }
}

Test(graph_property, visits_go_along_the_edges)
{
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        fusion_case c;
        random_graph(&c, seed);
        for (int finalized = 0; finalized < 2; finalized++) {
            visit topological = {0}, reverse = {0}, deep = {0};
            fusion_ok(gb_graph_visit(c.graph, GB_VISIT_TOPOLOGICAL, note_visit, &topological));
            fusion_ok(gb_graph_visit(c.graph, GB_VISIT_REVERSE, note_visit, &reverse));
            fusion_ok(gb_graph_visit(c.graph, GB_VISIT_DEPTH_FIRST, note_visit, &deep));
            check_visit(c.graph, &topological, false);
            check_visit(c.graph, &reverse, true);
            check_visit(c.graph, &deep, false);
            check_chains(c.graph, &deep);
            for (uint32_t i = 0; i < c.graph->n_ops; i++)
                cr_assert_eq(reverse.ops[i], topological.ops[c.graph->n_ops - 1 - i]);
            fusion_ok(gb_graph_finalize(c.graph));
        }
        gb_graph_destroy(c.graph);
    }
}

/* ---- files ---- */

/* In the memory of the caller. */
static char *saved(const gb_graph *graph, gb_status (*save)(const gb_graph *, const char *))
{
    char path[] = "/tmp/graph_property_XXXXXX";
    int descriptor = mkstemp(path);
    cr_assert_geq(descriptor, 0);
    fusion_ok(save(graph, path));
    FILE *file = fdopen(descriptor, "rb");
    cr_assert_eq(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    rewind(file);
    char *text = calloc((size_t)size + 1, 1);
    cr_assert_eq(fread(text, 1, (size_t)size, file), (size_t)size);
    fclose(file);
    unlink(path);
    return text;
}

/* Layouts, strides, properties and names that random graphs do not have by themselves. */
static void vary(gb_graph *graph)
{
    for (uint32_t v = 0; v < graph->n_values; v++) {
        gb_logical_tensor tensor = graph->values[v].tensor;
        int64_t dims[3], strides[3];
        int ndims = (int)random_below(5) - 1;
        for (int d = 0; d < 3; d++) {
            dims[d] = random_below(4) ? random_below(9) : GB_UNKNOWN_DIM;
            strides[d] = random_below(4) ? random_below(99) : GB_UNKNOWN_DIM;
        }
        gb_layout_type layout = random_below(2) ? GB_LAYOUT_STRIDED : GB_LAYOUT_ANY;
        gb_property property = (gb_property)random_below(3);
        if (ndims < 0)
            fusion_ok(gb_logical_tensor_init(
                    &tensor, tensor.id, tensor.data_type, GB_UNKNOWN_NDIMS, layout, property));
        else if (random_below(2))
            fusion_ok(gb_logical_tensor_init_with_strides(
                    &tensor, tensor.id, tensor.data_type, ndims, dims, strides, property));
        else
            fusion_ok(gb_logical_tensor_init_with_dims(
                    &tensor, tensor.id, tensor.data_type, ndims, dims, layout, property));
        gb_logical_tensor before = graph->values[v].tensor;
        fusion_ok(gb_graph_set_tensor(graph, &tensor));
        if (gb_graph_verify(graph) != GB_SUCCESS)
            fusion_ok(gb_graph_set_tensor(graph, &before));
    }
    if (random_below(2))
        fusion_ok(gb_graph_set_fpmath_mode(graph, GB_FPMATH_BF16, (uint8_t)random_below(2)));
}

/* Ids, names, the order of ops and all descriptions, not just the content. */
static void expect_identical(const gb_graph *a, const gb_graph *b)
{
    cr_assert_eq(a->n_ops, b->n_ops);
    cr_assert_eq(a->n_values, b->n_values);
    for (uint32_t i = 0; i < a->n_ops; i++) {
        cr_assert_eq(a->ops[i]->id, b->ops[i]->id);
        cr_assert_str_eq(a->ops[i]->name, b->ops[i]->name);
        cr_assert(gb_op_same(a->ops[i], b->ops[i]));
        for (uint32_t k = 0; k < a->ops[i]->n_inputs + a->ops[i]->n_outputs; k++) {
            const gb_logical_tensor *x = gb_op_tensor(a->ops[i], k),
                                    *y = gb_op_tensor(b->ops[i], k);
            cr_assert_eq(x->id, y->id);
            cr_assert(gb_tensor_same(x, y), "tensor %zu", x->id);
        }
    }
    cr_assert(are_equal(a, b));
}

Test(graph_property, text_and_json_read_back_what_was_written)
{
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        fusion_case c;
        gb_graph *read, *from_json;
        random_graph(&c, seed);
        vary(c.graph);
        char *text = saved(c.graph, gb_graph_save_text);
        fusion_ok(gb_graph_parse_text(&read, text, strlen(text), "text"));
        expect_identical(c.graph, read);
        char *again = saved(read, gb_graph_save_text);
        cr_assert_str_eq(text, again);
        gb_graph_destroy(read);
        free(again);
        free(text);

        /* what JSON holds, the text form holds, too */
        char *json = saved(c.graph, gb_graph_save_json);
        fusion_ok(gb_graph_parse_json(&from_json, json, strlen(json), "json", NULL, NULL));
        text = saved(from_json, gb_graph_save_text);
        fusion_ok(gb_graph_parse_text(&read, text, strlen(text), "text"));
        again = saved(read, gb_graph_save_json);
        cr_assert_str_eq(json, again);
        expect_identical(from_json, read);
        gb_graph_destroy(from_json);
        gb_graph_destroy(read);
        gb_graph_destroy(c.graph);
        free(json);
        free(text);
        free(again);
    }
}

/* Bytes changed, taken out, doubled or cut off: a graph or a fault with its place, nothing else. */
Test(graph_property, damaged_text_is_refused_or_read)
{
    size_t n_read = 0, n_refused = 0;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        fusion_case c;
        random_graph(&c, seed);
        vary(c.graph);
        char *text = saved(c.graph, gb_graph_save_text);
        size_t length = strlen(text);
        char *damaged = calloc(2 * length + 1, 1);
        for (int round = 0; round < 20; round++) {
            size_t n = length, from = random_below((uint32_t)length), run = 1 + random_below(6);
            memcpy(damaged, text, length);
            run = run < n - from ? run : n - from;
            switch (random_below(4)) {
            case 0:
                damaged[from] = (char)random_below(256);
                break;
            case 1:
                memmove(damaged + from, damaged + from + run, n - from - run);
                n -= run;
                break;
            case 2:
                memmove(damaged + from + run, damaged + from, n - from);
                n += run;
                break;
            default:
                n = from;
            }
            char *exact = malloc(n ? n : 1); /* so that a sanitizer sees what is read behind */
            memcpy(exact, damaged, n);
            gb_graph *read = NULL;
            gb_status status = gb_graph_parse_text(&read, exact, n, "damaged.gbt");
            if (status == GB_SUCCESS) {
                fusion_ok(gb_graph_check_structure(read, false));
                n_read++;
            } else {
                cr_assert_eq(strncmp(gb_last_error(), "damaged.gbt", 11), 0, "%s", gb_last_error());
                n_refused++;
            }
            gb_graph_destroy(read);
            free(exact);
        }
        free(damaged);
        free(text);
        gb_graph_destroy(c.graph);
    }
    cr_expect_gt(n_read, GRAPHS / 10, "%zu read", n_read);
    cr_expect_gt(n_refused, GRAPHS, "%zu refused", n_refused);
}
