/* Random graphs of sample ops. Each op is tried on what is there already: dims that it shares with
 * the value in the place of its input become those of the value. What the op's own rules refuse is
 * left out. */
#include "cli/perform/random_graph.h"

#include "cli/options/message.h"

#include <graphbench/graphbench_tools.h>
#include <stdbool.h>

enum { MOST_OPS = 10, MOST_LARGE_OPS = 4, MOST_VALUES = 64, MOST_PORTS = 16, MOST_ATTRS = 32 };

typedef struct growth {
    gb_chance *chance;
    gb_graph *graph;
    int64_t most_elements; /* of a tensor */
    bool in_turn;          /* the first op is a sample in their order, ... */
    uint64_t turn;         /* ... this one, unless it is refused again and again */
    int tries;             /* ops so far, those that were refused included */
    size_t next_id;
    gb_logical_tensor values[MOST_VALUES];
    size_t n_values;
} growth;

/* Dims of a sample's input and what stands for them. */
typedef struct dim_map {
    int64_t from[GB_MAX_NDIMS], to[GB_MAX_NDIMS];
    int n;
} dim_map;

/* One draw of splitmix64. */
static uint64_t draw(uint64_t *state)
{
    *state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t x = *state;
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* States that lie near each other would share their stream, shifted by a draw or two. */
gb_chance gb_cli_chance(uint64_t seed, uint64_t number)
{
    uint64_t mixed = draw(&seed) + number;
    return (gb_chance){draw(&mixed)};
}

uint32_t gb_cli_chance_below(gb_chance *chance, uint32_t n)
{
    return (uint32_t)((draw(&chance->state) >> 33) % n);
}

static bool happens(growth *g, uint32_t one_in)
{
    return gb_cli_chance_below(g->chance, one_in) == 0;
}

static gb_status pick_in_turn(uint64_t turn, gb_op **sample)
{
    uint64_t all = 0;
    for (int kind = 0; kind < GB_OP_LAST; kind++)
        all += gb_op_sample_num((gb_op_kind)kind);
    int kind = 0;
    for (turn %= all; turn >= gb_op_sample_num((gb_op_kind)kind); kind++)
        turn -= gb_op_sample_num((gb_op_kind)kind);
    return gb_op_sample_create(sample, (gb_op_kind)kind, (size_t)turn);
}

/* Kinds that fuse come as often as all others. */
static gb_status pick_sample(growth *g, gb_op **sample)
{
    if (g->in_turn && g->tries < MOST_OPS && gb_graph_get_op_num(g->graph) == 0)
        return pick_in_turn(g->turn, sample);
    bool chains = happens(g, 2);
    for (;;) {
        gb_op_kind kind = (gb_op_kind)gb_cli_chance_below(g->chance, GB_OP_LAST);
        size_t n = gb_op_sample_num(kind);
        if (n == 0 || (chains && !(gb_op_kind_get_traits(kind) & GB_TRAIT_CHAINS)))
            continue;
        return gb_op_sample_create(sample, kind, gb_cli_chance_below(g->chance, (uint32_t)n));
    }
}

gb_status gb_cli_copy_attrs(const gb_op *from, gb_op *to)
{
    gb_op_attr attrs[MOST_ATTRS];
    size_t n;
    LIB_TRY(gb_op_get_attrs(from, 0, NULL, &n));
    LIB_TRY(gb_op_get_attrs(from, n < MOST_ATTRS ? n : MOST_ATTRS, attrs, NULL));
    for (size_t i = 0; i < n && i < MOST_ATTRS; i++) {
        size_t count;
        const void *values;
        LIB_TRY(gb_op_get_attr(from, attrs[i], &count, &values));
        switch (gb_op_attr_type(attrs[i])) {
        case GB_ATTR_TYPE_F32:
        case GB_ATTR_TYPE_F32S:
            LIB_TRY(gb_op_set_attr_f32(to, attrs[i], count, values));
            break;
        case GB_ATTR_TYPE_S64:
        case GB_ATTR_TYPE_S64S:
            LIB_TRY(gb_op_set_attr_s64(to, attrs[i], count, values));
            break;
        case GB_ATTR_TYPE_BOOL:
            LIB_TRY(gb_op_set_attr_bool(to, attrs[i], count, values));
            break;
        case GB_ATTR_TYPE_STRING:
            LIB_TRY(gb_op_set_attr_str(to, attrs[i], values, count));
            break;
        default:
            break;
        }
    }
    return GB_SUCCESS;
}

/* May what another op made be read there? Scales, axes and the like have values of their own. */
static bool takes_values(gb_op_kind kind, size_t input)
{
    gb_value_range range = gb_op_kind_get_input_range(kind, input);
    return range == GB_RANGE_ANY || range == GB_RANGE_WEIGHTS || range == GB_RANGE_POSITIVE ||
           range == GB_RANGE_DIVISOR || range == GB_RANGE_FACTOR;
}

/* A value of the same type that the input can be, most often a late one; NULL: none was met. */
static const gb_logical_tensor *pick_value(growth *g, const gb_logical_tensor *input, bool any_rank)
{
    for (int tries = 0; tries < 4 && g->n_values > 0; tries++) {
        uint32_t last = happens(g, 3) ? (uint32_t)g->n_values : 2;
        if (last > g->n_values)
            last = (uint32_t)g->n_values;
        const gb_logical_tensor *value =
                &g->values[g->n_values - 1 - gb_cli_chance_below(g->chance, last)];
        if (value->data_type == input->data_type && (any_rank || value->ndims == input->ndims))
            return value;
    }
    return NULL;
}

static int64_t mapped(const dim_map *map, int64_t dim)
{
    for (int i = 0; i < map->n; i++)
        if (map->from[i] == dim)
            return map->to[i];
    return dim;
}

/* Gives a dim of the sample's input another length, of any magnitude, and rather of a large one. */
static void stretch(growth *g, const gb_logical_tensor *input, dim_map *map)
{
    int64_t room = g->most_elements, magnitudes = 1;
    if (input->ndims < 1 || happens(g, 4))
        return;
    int longest = (int)gb_cli_chance_below(g->chance, (uint32_t)input->ndims);
    for (int d = 0; d < input->ndims; d++)
        if (d != longest && input->dims[d] > 1)
            room /= input->dims[d];
    while (room >> magnitudes > 0)
        magnitudes++;
    uint32_t one = gb_cli_chance_below(g->chance, (uint32_t)magnitudes);
    uint32_t other = gb_cli_chance_below(g->chance, (uint32_t)magnitudes);
    int64_t most = INT64_C(2) << (one > other ? one : other);
    map->from[0] = input->dims[longest];
    map->to[0] = gb_cli_chance_below(g->chance, (uint32_t)(most < room ? most : room + 1));
    map->n = 1;
}

/* A new input of the graph, like the sample's; sometimes with its axes in another order in memory.
 */
static gb_status make_input(growth *g, const gb_logical_tensor *sample, const dim_map *map,
        const gb_logical_tensor *like, gb_logical_tensor *tensor)
{
    int64_t dims[GB_MAX_NDIMS], strides[GB_MAX_NDIMS], stride = 1;
    int ndims = like ? like->ndims : sample->ndims;
    for (int d = 0; d < ndims; d++)
        dims[d] = like ? like->dims[d] : mapped(map, sample->dims[d]);
    bool plain = ndims < 2 || sample->property == GB_PROPERTY_HOST_SCALAR ||
                 gb_data_type_bytes(sample->data_type, 2) < 2 || !happens(g, 6);
    size_t id = g->next_id++;
    if (plain) {
        LIB_TRY(gb_logical_tensor_init_with_dims(
                tensor, id, sample->data_type, ndims, dims, GB_LAYOUT_STRIDED, sample->property));
        return GB_SUCCESS;
    }
    int first = (int)gb_cli_chance_below(g->chance, (uint32_t)ndims);
    for (int i = ndims; i-- > 0;) {
        int d = (first + i) % ndims;
        strides[d] = stride;
        stride *= dims[d] > 1 ? dims[d] : 1;
    }
    LIB_TRY(gb_logical_tensor_init_with_strides(
            tensor, id, sample->data_type, ndims, dims, strides, sample->property));
    return GB_SUCCESS;
}

static gb_status wire_inputs(growth *g, const gb_op *sample, gb_op_kind kind, gb_op *op)
{
    bool chains = (gb_op_kind_get_traits(kind) & GB_TRAIT_CHAINS) != 0;
    const gb_logical_tensor *like = NULL;
    dim_map map = {.n = 0};
    for (size_t i = 0; i < gb_op_get_input_num(sample); i++) {
        gb_logical_tensor input, tensor;
        LIB_TRY(gb_op_get_input(sample, i, &input));
        bool wired = takes_values(kind, i) && input.property != GB_PROPERTY_HOST_SCALAR &&
                     (i == 0 || happens(g, 2));
        const gb_logical_tensor *value =
                wired ? pick_value(g, &input, chains && (i == 0 || like)) : NULL;
        if (value && chains && i == 0 && value->ndims != input.ndims)
            like = value;
        if (!value && i == 0 && g->most_elements > GB_CLI_FEW_ELEMENTS)
            stretch(g, &input, &map);
        if (value && map.n == 0 && !like) {
            for (int d = 0; d < input.ndims; d++) {
                map.from[d] = input.dims[d];
                map.to[d] = value->dims[d];
            }
            map.n = input.ndims;
        }
        if (value)
            tensor = *value;
        else
            CLI_TRY(make_input(g, &input, &map, like, &tensor));
        LIB_TRY(gb_op_add_input(op, &tensor));
    }
    return GB_SUCCESS;
}

/* Of known dims, and no larger than tensors may be. */
static bool is_small(const growth *g, const gb_logical_tensor *tensor)
{
    double elements = 1;
    for (int d = 0; d < tensor->ndims; d++)
        elements *= tensor->dims[d] > 0 ? (double)tensor->dims[d] : 1;
    return tensor->ndims >= 0 && elements <= (double)g->most_elements;
}

static bool has_small_inputs(const growth *g, const gb_op *op)
{
    gb_logical_tensor tensor;
    for (size_t i = 0; i < gb_op_get_input_num(op); i++)
        if (gb_op_get_input(op, i, &tensor) != GB_SUCCESS || !is_small(g, &tensor))
            return false;
    return true;
}

/* Values of the op that others may read. */
static bool keep_outputs(growth *g, size_t first_id, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        gb_logical_tensor tensor;
        if (gb_graph_find_tensor(g->graph, first_id + i, &tensor) != GB_SUCCESS ||
                !is_small(g, &tensor))
            return false;
        if (g->n_values < MOST_VALUES)
            g->values[g->n_values++] = tensor;
    }
    return true;
}

static gb_status add_wired(growth *g, const gb_op *sample, gb_op_kind kind, gb_op *op)
{
    size_t n_outputs = gb_op_get_output_num(sample), before = g->n_values, id;
    CLI_TRY(wire_inputs(g, sample, kind, op));
    size_t first_id = g->next_id;
    for (size_t i = 0; i < n_outputs; i++) {
        gb_logical_tensor output, tensor;
        LIB_TRY(gb_op_get_output(sample, i, &output));
        LIB_TRY(gb_logical_tensor_init(&tensor, g->next_id++, output.data_type, GB_UNKNOWN_NDIMS,
                GB_LAYOUT_STRIDED, output.property));
        LIB_TRY(gb_op_add_output(op, &tensor));
    }
    CLI_TRY(gb_cli_copy_attrs(sample, op));
    if (!has_small_inputs(g, op) || gb_graph_add_op(g->graph, op) != GB_SUCCESS)
        return GB_SUCCESS;
    LIB_TRY(gb_op_get_id(op, &id));
    if (gb_graph_infer_shapes(g->graph) == GB_SUCCESS && keep_outputs(g, first_id, n_outputs))
        return GB_SUCCESS;
    g->n_values = before;
    LIB_TRY(gb_graph_remove_op(g->graph, id));
    return GB_SUCCESS;
}

/* Tries one op; it is there afterwards, or nothing has changed. */
static gb_status try_op(growth *g)
{
    gb_op *sample, *op;
    gb_op_kind kind;
    LIB_TRY(pick_sample(g, &sample));
    gb_status status = gb_op_get_kind(sample, &kind);
    if (status == GB_SUCCESS)
        status = gb_op_create(&op, g->next_id++, kind, gb_op_kind_name(kind));
    if (status == GB_SUCCESS) {
        status = add_wired(g, sample, kind, op);
        gb_op_destroy(op);
    }
    gb_op_destroy(sample);
    return status;
}

gb_status gb_cli_random_graph(gb_chance *chance, gb_engine_kind engine, int64_t most_elements,
        uint64_t number, gb_graph **graph)
{
    const bool large = most_elements > GB_CLI_FEW_ELEMENTS;
    growth g = {.chance = chance,
            .most_elements = most_elements,
            .in_turn = large && number % 2 == 0,
            .turn = number / 2};
    LIB_TRY(gb_graph_create(&g.graph, engine));
    size_t wanted = 1 + gb_cli_chance_below(chance, large ? MOST_LARGE_OPS : MOST_OPS);
    gb_status status = GB_SUCCESS;
    for (; status == GB_SUCCESS && gb_graph_get_op_num(g.graph) < wanted &&
            (g.tries < 2 * MOST_OPS || gb_graph_get_op_num(g.graph) == 0);
            g.tries++)
        status = try_op(&g);
    if (status != GB_SUCCESS) {
        gb_graph_destroy(g.graph);
        return status;
    }
    *graph = g.graph;
    return GB_SUCCESS;
}
