/* Compiled partitions for dims that are not known yet: which shapes were asked for, the least
 * recently used go first. One thread compiles what several ask for at once; the others wait. */
#include "runtime/dynamic.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "runtime/compiled.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_VARIANTS = 64 };

/* What tells one execution's description of a port from another's. */
typedef struct shape {
    int64_t ndims, dims[GB_MAX_NDIMS], strides[GB_MAX_NDIMS];
} shape;

typedef struct variant {
    shape *key;                      /* of the open ports; owned; NULL: the slot is free */
    gb_compiled_partition *compiled; /* counted; NULL while it is being compiled */
    uint64_t last_used;
} variant;

struct gb_dynamic {
    gb_partition *partition; /* counted */
    gb_engine *engine;       /* counted */
    int n_threads;
    uint32_t n_inputs, n_outputs;
    const gb_logical_tensor *inputs, *outputs; /* lent */
    uint32_t n_open;                           /* ports of which something is unknown */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a variant was finished or given up */
    uint64_t clock;
    variant variants[MOST_VARIANTS];
};

gb_status gb_dynamic_create(gb_dynamic **dynamic, const gb_partition *partition,
        const gb_engine *engine, uint32_t n_inputs, const gb_logical_tensor *inputs,
        uint32_t n_outputs, const gb_logical_tensor *outputs)
{
    gb_dynamic *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    made->partition = gb_partition_retain(partition);
    made->engine = gb_engine_retain(engine);
    made->n_threads = gb_max_threads();
    made->n_inputs = n_inputs;
    made->n_outputs = n_outputs;
    made->inputs = inputs;
    made->outputs = outputs;
    for (uint32_t i = 0; i < n_inputs; i++)
        made->n_open += gb_is_open(&inputs[i]);
    for (uint32_t i = 0; i < n_outputs; i++)
        made->n_open += gb_is_open(&outputs[i]);
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    *dynamic = made;
    return GB_SUCCESS;
}

void gb_dynamic_free(gb_dynamic *dynamic)
{
    if (!dynamic)
        return;
    for (int i = 0; i < MOST_VARIANTS; i++) {
        gb_compiled_partition_destroy(dynamic->variants[i].compiled);
        free(dynamic->variants[i].key);
    }
    pthread_cond_destroy(&dynamic->changed);
    pthread_mutex_destroy(&dynamic->lock);
    gb_partition_destroy(dynamic->partition);
    gb_engine_release(dynamic->engine);
    free(dynamic);
}

const gb_partition *gb_dynamic_partition(const gb_dynamic *dynamic)
{
    return dynamic->partition;
}

const gb_engine *gb_dynamic_engine(const gb_dynamic *dynamic)
{
    return dynamic->engine;
}

/* Keys ----------------------------------------------------------------------------------------- */

static void add_to_key(
        shape **end, const gb_logical_tensor *compiled, const gb_logical_tensor *given)
{
    if (!gb_is_open(compiled))
        return;
    shape *s = (*end)++;
    s->ndims = given->ndims;
    for (int d = 0; d < given->ndims; d++) {
        s->dims[d] = given->dims[d];
        s->strides[d] = given->strides[d];
    }
}

/* The caller frees it; NULL when out of memory. */
static shape *make_key(const gb_dynamic *dynamic, const gb_logical_tensor *const *inputs,
        const gb_logical_tensor *const *outputs)
{
    shape *key = gb_calloc(dynamic->n_open, sizeof *key), *end = key;
    for (uint32_t i = 0; key && i < dynamic->n_inputs; i++)
        add_to_key(&end, &dynamic->inputs[i], inputs[i]);
    for (uint32_t i = 0; key && i < dynamic->n_outputs; i++)
        add_to_key(&end, &dynamic->outputs[i], outputs[i]);
    return key;
}

static bool same_key(const gb_dynamic *dynamic, const shape *a, const shape *b)
{
    return a && memcmp(a, b, dynamic->n_open * sizeof *a) == 0;
}

/* Compiling ------------------------------------------------------------------------------------ */

/* The compiled description with what it leaves open taken from the given one. */
static gb_logical_tensor complete(const gb_logical_tensor *compiled, const gb_logical_tensor *given)
{
    gb_logical_tensor tensor = *compiled;
    if (!gb_is_open(compiled))
        return tensor;
    tensor.ndims = given->ndims;
    memcpy(tensor.dims, given->dims, sizeof tensor.dims);
    memcpy(tensor.strides, given->strides, sizeof tensor.strides);
    return tensor;
}

static gb_status compile(const gb_dynamic *dynamic, const gb_logical_tensor *const *inputs,
        const gb_logical_tensor *const *outputs, gb_compiled_partition **compiled)
{
    uint32_t n_inputs = dynamic->n_inputs, n_outputs = dynamic->n_outputs, n = n_inputs + n_outputs;
    gb_logical_tensor *tensors = gb_calloc(n, sizeof *tensors);
    const gb_logical_tensor **list = gb_calloc(n, sizeof *list);
    gb_status status = tensors && list ? GB_SUCCESS : GB_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < n && status == GB_SUCCESS; i++) {
        tensors[i] = i < n_inputs
                             ? complete(&dynamic->inputs[i], inputs[i])
                             : complete(&dynamic->outputs[i - n_inputs], outputs[i - n_inputs]);
        list[i] = &tensors[i];
    }
    if (status == GB_SUCCESS)
        status = gb_compile_for_shapes(compiled, dynamic->partition, dynamic->n_threads, n_inputs,
                list, n_outputs, list + n_inputs, dynamic->engine);
    free(tensors);
    free(list);
    return status;
}

/* The cache; with the lock held ---------------------------------------------------------------- */

static variant *find(gb_dynamic *dynamic, const shape *key)
{
    for (int i = 0; i < MOST_VARIANTS; i++)
        if (same_key(dynamic, dynamic->variants[i].key, key))
            return &dynamic->variants[i];
    return NULL;
}

/* A slot that is free or holds what was not used for longest; NULL when all are in the making. */
static variant *find_slot(gb_dynamic *dynamic)
{
    variant *best = NULL;
    for (int i = 0; i < MOST_VARIANTS; i++) {
        variant *v = &dynamic->variants[i];
        if (!v->key)
            return v;
        if (v->compiled && (!best || v->last_used < best->last_used))
            best = v;
    }
    return best;
}

/* The finished variant, waited for while another thread makes it; NULL when this thread is to make
 * it, in *slot if that is not NULL. The key is taken over then, and *evicted is to be destroyed. */
static gb_compiled_partition *look_up(
        gb_dynamic *dynamic, shape **key, variant **slot, gb_compiled_partition **evicted)
{
    variant *found = find(dynamic, *key);
    while (found && !found->compiled) {
        pthread_cond_wait(&dynamic->changed, &dynamic->lock);
        found = find(dynamic, *key);
    }
    if (found) {
        found->last_used = ++dynamic->clock;
        return gb_compiled_partition_retain(found->compiled);
    }
    *slot = find_slot(dynamic);
    if (!*slot)
        return NULL;
    *evicted = (*slot)->compiled;
    free((*slot)->key);
    **slot = (variant){.key = *key, .last_used = ++dynamic->clock};
    *key = NULL;
    return NULL;
}

static void finish(gb_dynamic *dynamic, variant *slot, gb_compiled_partition *compiled)
{
    pthread_mutex_lock(&dynamic->lock);
    if (compiled) {
        slot->compiled = gb_compiled_partition_retain(compiled);
    } else {
        free(slot->key);
        *slot = (variant){0};
    }
    pthread_cond_broadcast(&dynamic->changed);
    pthread_mutex_unlock(&dynamic->lock);
}

gb_status gb_dynamic_get(gb_dynamic *dynamic, const gb_logical_tensor *const *inputs,
        const gb_logical_tensor *const *outputs, gb_compiled_partition **specialized)
{
    variant *slot = NULL;
    gb_compiled_partition *evicted = NULL, *made = NULL;
    shape *key = make_key(dynamic, inputs, outputs);
    if (!key)
        return GB_OUT_OF_MEMORY;
    pthread_mutex_lock(&dynamic->lock);
    gb_compiled_partition *found = look_up(dynamic, &key, &slot, &evicted);
    pthread_mutex_unlock(&dynamic->lock);
    free(key);
    gb_compiled_partition_destroy(evicted);
    gb_status status = found ? GB_SUCCESS : compile(dynamic, inputs, outputs, &made);
    if (slot)
        finish(dynamic, slot, made);
    if (status == GB_SUCCESS)
        *specialized = found ? found : made;
    return status;
}
