/* One-op graphs run through the reference, for the tests of it. */
#ifndef GB_TESTS_REF_CASE_H
#define GB_TESTS_REF_CASE_H

#include "ref/ref.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REF_CASE_TENSORS = 8 };

typedef struct ref_case {
    gb_op *op;
    gb_graph *graph;
    gb_ref_store *store;
    gb_fpmath_mode fpmath;
    size_t n_inputs, n_outputs; /* inputs have the ids 0, 1, ..., outputs 100, 101, ... */
} ref_case;

/* int64_t lists as arguments: LIST(1, 2, 3) gives count and values. */
#define LIST(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static inline ref_case ref_case_begin(gb_op_kind kind)
{
    ref_case c = {0};
    cr_assert_eq(gb_op_create(&c.op, 1, kind, "op"), GB_SUCCESS);
    cr_assert_eq(gb_ref_store_create(&c.store), GB_SUCCESS);
    return c;
}

static inline void ref_case_ints(ref_case *c, gb_op_attr attr, int count, const int64_t *values)
{
    cr_assert_eq(gb_op_set_attr_s64(c->op, attr, (size_t)count, values), GB_SUCCESS);
}

static inline void ref_case_int(ref_case *c, gb_op_attr attr, int64_t value)
{
    cr_assert_eq(gb_op_set_attr_s64(c->op, attr, 1, &value), GB_SUCCESS);
}

static inline void ref_case_flag(ref_case *c, gb_op_attr attr, int value)
{
    uint8_t byte = (uint8_t)value;
    cr_assert_eq(gb_op_set_attr_bool(c->op, attr, 1, &byte), GB_SUCCESS);
}

static inline void ref_case_text(ref_case *c, gb_op_attr attr, const char *text)
{
    cr_assert_eq(gb_op_set_attr_str(c->op, attr, text, strlen(text)), GB_SUCCESS);
}

static inline int64_t ref_case_count(int ndims, const int64_t *dims)
{
    int64_t count = 1;
    for (int d = 0; d < ndims; d++)
        count *= dims[d];
    return count;
}

/* Values must be representable in the type. `bound` may be NULL: exact. */
static inline void ref_case_input_bounded(ref_case *c, gb_data_type type, int ndims,
        const int64_t *dims, const double *value, const double *bound)
{
    gb_ref_tensor tensor = {0};
    size_t id = c->n_inputs++;
    cr_assert_eq(gb_logical_tensor_init_with_dims(&tensor.tensor, id, type, ndims, dims,
                         GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE),
            GB_SUCCESS);
    cr_assert_eq(gb_op_add_input(c->op, &tensor.tensor), GB_SUCCESS);
    tensor.count = ref_case_count(ndims, dims);
    size_t bytes = (size_t)tensor.count * sizeof(double);
    tensor.value = malloc(bytes + 1);
    memcpy(tensor.value, value, bytes);
    if (bound) {
        tensor.bound = malloc(bytes + 1);
        memcpy(tensor.bound, bound, bytes);
    }
    cr_assert_eq(gb_ref_store_put(c->store, &tensor), GB_SUCCESS);
}

static inline void ref_case_input(
        ref_case *c, gb_data_type type, int ndims, const int64_t *dims, const double *value)
{
    ref_case_input_bounded(c, type, ndims, dims, value, NULL);
}

static inline void ref_case_output(ref_case *c, gb_data_type type, int ndims, const int64_t *dims)
{
    gb_logical_tensor tensor;
    size_t id = 100 + c->n_outputs++;
    cr_assert_eq(gb_logical_tensor_init_with_dims(
                         &tensor, id, type, ndims, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE),
            GB_SUCCESS);
    cr_assert_eq(gb_op_add_output(c->op, &tensor), GB_SUCCESS);
}

static inline gb_status ref_case_try(ref_case *c)
{
    size_t id = 1;
    cr_assert_eq(gb_graph_create(&c->graph, GB_ENGINE_CPU), GB_SUCCESS);
    cr_assert_eq(gb_graph_set_fpmath_mode(c->graph, c->fpmath, 0), GB_SUCCESS);
    cr_assert_eq(gb_graph_add_op(c->graph, c->op), GB_SUCCESS, "%s", gb_last_error());
    cr_assert_eq(gb_graph_finalize(c->graph), GB_SUCCESS, "%s", gb_last_error());
    return gb_ref_execute(c->graph, 1, &id, c->store);
}

/* The first output. */
static inline const gb_ref_tensor *ref_case_run(ref_case *c)
{
    cr_assert_eq(ref_case_try(c), GB_SUCCESS, "%s", gb_last_error());
    return gb_ref_store_get(c->store, 100);
}

static inline void ref_case_end(ref_case *c)
{
    gb_op_destroy(c->op);
    gb_graph_destroy(c->graph);
    gb_ref_store_destroy(c->store);
}

static inline double ref_case_bound(const gb_ref_tensor *tensor, int64_t i)
{
    return tensor->bound ? tensor->bound[i] : 0;
}

/* All values equal the expected ones within `tolerance`, and within their bounds plus that. */
static inline void ref_case_expect(
        const gb_ref_tensor *got, int64_t count, const double *expected, double tolerance)
{
    cr_assert_eq(got->count, count);
    for (int64_t i = 0; i < count; i++) {
        int same_nan = isnan(expected[i]) && isnan(got->value[i]);
        cr_expect(same_nan || got->value[i] == expected[i] ||
                          fabs(got->value[i] - expected[i]) <= tolerance,
                "element %lld is %.17g, expected %.17g", (long long)i, got->value[i], expected[i]);
    }
}

/* No element has a bound: the reference claims that any implementation gives exactly this. */
static inline void ref_case_expect_exact(const gb_ref_tensor *got)
{
    for (int64_t i = 0; i < got->count; i++)
        cr_expect_eq(ref_case_bound(got, i), 0.0, "element %lld has the bound %g", (long long)i,
                ref_case_bound(got, i));
}

/* Elements that another evaluation got wrong: outside the bound. */
static inline int64_t ref_case_outside(const gb_ref_tensor *reference, const double *got)
{
    int64_t outside = 0;
    for (int64_t i = 0; i < reference->count; i++)
        outside += !(fabs(got[i] - reference->value[i]) <= ref_case_bound(reference, i));
    return outside;
}

/* Reproducible numbers in (-1, 1) that f32 (and with few bits, bf16) can hold. */
static inline double ref_case_random(uint64_t *state, int bits)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    double unit = (double)(*state >> 40) * 0x1p-23 - 1;
    double scale = ldexp(1, bits - 1);
    return round(unit * scale) / scale;
}

static inline double *ref_case_randoms(uint64_t seed, int64_t count, int bits)
{
    double *values = malloc((size_t)count * sizeof(*values) + 1);
    uint64_t state = seed * 2654435761u + 12345;
    for (int64_t i = 0; i < count; i++)
        values[i] = ref_case_random(&state, bits);
    return values;
}

#endif
