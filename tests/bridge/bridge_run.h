/* Runs a module as a framework would: groups by the bridge, nodes outside by a small interpreter of
 * tensors with strides that share memory. */
#ifndef BRIDGE_RUN_H
#define BRIDGE_RUN_H

#include "bridge_case.h"

#include <math.h>

enum { MOST_VALUES = 256, MOST_ELEMENTS = 4096 };

typedef struct run_tensor {
    char name[32];
    gb_bridge_tensor t; /* data points into a block */
    void *block;        /* malloc'ed here; NULL: a view */
} run_tensor;

typedef struct run_env {
    run_tensor values[MOST_VALUES];
    int count;
} run_env;

static inline run_tensor *run_find(run_env *env, const char *name)
{
    for (int i = 0; i < env->count; i++)
        if (strcmp(env->values[i].name, name) == 0)
            return &env->values[i];
    return NULL;
}

static inline run_tensor *run_add(run_env *env, const char *name)
{
    cr_assert_lt(env->count, MOST_VALUES);
    run_tensor *made = run_find(env, name);
    cr_assert_null(made, "%s is made twice", name);
    made = &env->values[env->count++];
    memset(made, 0, sizeof *made);
    snprintf(made->name, sizeof made->name, "%s", name);
    return made;
}

static inline void run_release(run_env *env)
{
    for (int i = 0; i < env->count; i++)
        free(env->values[i].block);
    env->count = 0;
}

/* A dense f32 tensor with memory. */
static inline run_tensor *run_dense(run_env *env, const char *name, int ndims, const int64_t *dims)
{
    run_tensor *made = run_add(env, name);
    int64_t count = 1;
    made->t.dtype = GB_F32;
    made->t.ndims = ndims;
    for (int d = ndims - 1; d >= 0; d--) {
        made->t.dims[d] = dims[d];
        made->t.strides[d] = count;
        count *= dims[d];
    }
    made->block = calloc((size_t)count, sizeof(float));
    made->t.data = made->block;
    return made;
}

static inline int64_t run_count(const gb_bridge_tensor *t)
{
    int64_t count = 1;
    for (int d = 0; d < t->ndims; d++)
        count *= t->dims[d];
    return count;
}

/* The element of a place in row-major order, broadcast to `over`. */
static inline float *run_at(const gb_bridge_tensor *t, const gb_bridge_tensor *over, int64_t place)
{
    int64_t offset = 0;
    for (int d = over->ndims - 1; d >= 0; d--) {
        int64_t index = place % over->dims[d];
        int own = d - (over->ndims - t->ndims);
        place /= over->dims[d];
        if (own >= 0 && t->dims[own] != 1)
            offset += index * t->strides[own];
    }
    return (float *)t->data + offset;
}

static inline void run_group(gb_bridge_module *module, run_env *env, json_object *group)
{
    json_object *id, *inputs, *outputs, *name;
    gb_bridge_tensor in[64], out[64];
    json_object_object_get_ex(group, "id", &id);
    json_object_object_get_ex(group, "inputs", &inputs);
    json_object_object_get_ex(group, "outputs", &outputs);
    size_t n = json_object_array_length(inputs), m = json_object_array_length(outputs);
    cr_assert(n <= 64 && m <= 64);
    for (size_t i = 0; i < n; i++) {
        json_object_object_get_ex(json_object_array_get_idx(inputs, i), "name", &name);
        run_tensor *value = run_find(env, json_object_get_string(name));
        cr_assert(value, "%s is not there", json_object_get_string(name));
        in[i] = value->t;
    }
    size_t index = (size_t)json_object_get_int64(id);
    cr_assert_eq(gb_bridge_group_prepare(module, index, n, in, m, out, NULL), GB_SUCCESS, "%s",
            gb_bridge_last_error());
    for (size_t i = 0; i < m; i++) {
        json_object_object_get_ex(json_object_array_get_idx(outputs, i), "name", &name);
        run_tensor *made = run_add(env, json_object_get_string(name));
        made->t = out[i];
        made->block = made->t.data = out[i].data = malloc(out[i].size + 1);
        memset(made->block, 0xFF, out[i].size); /* NaN where nothing is written */
    }
    cr_assert_eq(gb_bridge_group_execute(module, index, n, in, m, out), GB_SUCCESS, "%s",
            gb_bridge_last_error());
}

/* Runs a node that is outside: given by the test. */
typedef void (*run_node_fn)(void *context, run_env *env, const char *node);

static inline void run_module(
        gb_bridge_module *module, run_env *env, run_node_fn run_node, void *context)
{
    json_object *root = json_tokener_parse(gb_bridge_module_describe(module)), *order, *groups,
                *item;
    cr_assert(root && json_object_object_get_ex(root, "order", &order));
    json_object_object_get_ex(root, "groups", &groups);
    for (size_t i = 0; i < json_object_array_length(order); i++) {
        json_object *step = json_object_array_get_idx(order, i);
        if (json_object_object_get_ex(step, "group", &item))
            run_group(module, env,
                    json_object_array_get_idx(groups, (size_t)json_object_get_int64(item)));
        else if (json_object_object_get_ex(step, "node", &item))
            run_node(context, env, json_object_get_string(item));
    }
    json_object_put(root);
}

#endif
