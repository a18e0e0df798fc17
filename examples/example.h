/* What the examples share: giving up with a message, and words for describing tensors and ops. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <graphbench/graphbench.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Every function returns a status; gb_last_error() says what went wrong. */
#define CHECK(call)                                                                                \
    do {                                                                                           \
        gb_status check_status = (call);                                                           \
        if (check_status != GB_SUCCESS) {                                                          \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, gb_status_name(check_status),   \
                    gb_last_error());                                                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Ends the example unless the results are what they must be. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* A dense tensor. */
static inline gb_logical_tensor dense(
        size_t id, gb_data_type type, int ndims, const int64_t *dims, gb_property property)
{
    gb_logical_tensor tensor;
    CHECK(gb_logical_tensor_init_with_dims(
            &tensor, id, type, ndims, dims, GB_LAYOUT_STRIDED, property));
    return tensor;
}

/* A tensor whose shape the library is to work out. */
static inline gb_logical_tensor inferred(size_t id, gb_data_type type, int ndims)
{
    gb_logical_tensor tensor;
    CHECK(gb_logical_tensor_init(
            &tensor, id, type, ndims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    return tensor;
}

/* An op with up to three inputs (NULL ends them) and one output. */
static inline gb_op *make_op(size_t id, gb_op_kind kind, const char *name,
        const gb_logical_tensor *a, const gb_logical_tensor *b, const gb_logical_tensor *c,
        const gb_logical_tensor *output)
{
    gb_op *op;
    CHECK(gb_op_create(&op, id, kind, name));
    const gb_logical_tensor *inputs[] = {a, b, c};
    for (int i = 0; i < 3 && inputs[i]; i++)
        CHECK(gb_op_add_input(op, inputs[i]));
    CHECK(gb_op_add_output(op, output));
    return op;
}

/* Moves the op into the graph. */
static inline void add_op(gb_graph *graph, gb_op *op)
{
    CHECK(gb_graph_add_op(graph, op));
    CHECK(gb_op_destroy(op));
}

/* Small pseudo-random numbers in -1 .. 1. */
static inline void fill_random(float *data, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525U + 1013904223U;
        data[i] = (float)(int)(seed >> 8) / 8388608.0F - 1.0F;
    }
}

#endif
