/* Compiled partitions for dims that are not known yet: which shapes were asked for, the least
 * recently used go first. One thread compiles what several ask for at once; the others wait. */
#include "runtime/dynamic.h"

#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/content.h"
#include "runtime/compiled.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_VARIANTS = 64, FEW_WORDS = 64 };

/* What tells the shapes of one execution from those of another: rank, dims and strides of each open
 * port. */
typedef struct shapes {
    uint64_t hash;
    size_t n;
    int64_t *words;
    int64_t few[FEW_WORDS]; /* where the words are, unless there are too many */
} shapes;

typedef struct variant {
    uint64_t hash;
    size_t n_words;
    int64_t *words;                  /* owned; NULL: the slot is free */
    gb_compiled_partition *compiled; /* counted; NULL while it is being compiled */
    uint64_t last_used;
} variant;

struct gb_dynamic {
    gb_partition *partition; /* counted */
    gb_engine *engine;       /* counted */
    uint64_t compile_key;
    uint32_t n_inputs, n_outputs;
    const gb_logical_tensor *inputs, *outputs; /* lent */
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
    made->compile_key = engine->backend->compile_key(engine);
    made->n_inputs = n_inputs;
    made->n_outputs = n_outputs;
    made->inputs = inputs;
    made->outputs = outputs;
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
        free(dynamic->variants[i].words);
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

static size_t count_words(
        const gb_logical_tensor *compiled, const gb_logical_tensor *const *given, uint32_t n)
{
    size_t words = 0;
    for (uint32_t i = 0; i < n; i++)
        if (gb_is_open(&compiled[i]))
            words += 1 + 2 * (size_t)(given[i]->ndims > 0 ? given[i]->ndims : 0);
    return words;
}

static void add_words(shapes *key, const gb_logical_tensor *compiled,
        const gb_logical_tensor *const *given, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!gb_is_open(&compiled[i]))
            continue;
        key->words[key->n++] = given[i]->ndims;
        for (int d = 0; d < given[i]->ndims; d++) {
            key->words[key->n++] = given[i]->dims[d];
            key->words[key->n++] = given[i]->strides[d];
        }
    }
}

/* False when out of memory. */
static bool shapes_init(shapes *key, const gb_dynamic *dynamic,
        const gb_logical_tensor *const *inputs, const gb_logical_tensor *const *outputs)
{
    size_t n = count_words(dynamic->inputs, inputs, dynamic->n_inputs) +
               count_words(dynamic->outputs, outputs, dynamic->n_outputs);
    key->n = 0;
    key->hash = n;
    key->words = n <= FEW_WORDS ? key->few : gb_calloc(n, sizeof *key->words);
    if (!key->words)
        return false;
    add_words(key, dynamic->inputs, inputs, dynamic->n_inputs);
    add_words(key, dynamic->outputs, outputs, dynamic->n_outputs);
    for (size_t i = 0; i < key->n; i++)
        key->hash = gb_hash_mix(key->hash, (uint64_t)key->words[i]);
    return true;
}

static void shapes_clear(shapes *key)
{
    if (key->words != key->few)
        free(key->words);
}

static bool is_of(const variant *v, const shapes *key)
{
    return v->hash == key->hash && v->words && v->n_words == key->n &&
           memcmp(v->words, key->words, key->n * sizeof *key->words) == 0;
}

/* Compiling ------------------------------------------------------------------------------------ */

/* The compiled description with what it leaves open taken from the given one. */
static gb_logical_tensor complete(const gb_logical_tensor *compiled, const gb_logical_tensor *given)
{
    gb_logical_tensor tensor = *compiled;
    if (!gb_is_open(compiled))
        return tensor;
    bool has_rank = compiled->ndims >= 0;
    tensor.ndims = given->ndims;
    for (int d = 0; d < given->ndims; d++) {
        if (!has_rank || compiled->dims[d] < 0)
            tensor.dims[d] = given->dims[d];
        if (!has_rank || compiled->strides[d] < 0)
            tensor.strides[d] = given->strides[d];
    }
    return tensor;
}

static gb_status dynamic_compile(const gb_dynamic *dynamic, const gb_logical_tensor *const *inputs,
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
        status = gb_compile_for_shapes(compiled, dynamic->partition, dynamic->compile_key, n_inputs,
                list, n_outputs, list + n_inputs, dynamic->engine);
    free(tensors);
    free(list);
    return status;
}

/* The cache; with the lock held ---------------------------------------------------------------- */

static variant *dynamic_find(gb_dynamic *dynamic, const shapes *key)
{
    for (int i = 0; i < MOST_VARIANTS; i++)
        if (is_of(&dynamic->variants[i], key))
            return &dynamic->variants[i];
    return NULL;
}

/* A slot that is free or holds what was not used for longest; NULL when all are in the making. */
static variant *dynamic_find_slot(gb_dynamic *dynamic)
{
    variant *best = NULL;
    for (int i = 0; i < MOST_VARIANTS; i++) {
        variant *v = &dynamic->variants[i];
        if (!v->words)
            return v;
        if (v->compiled && (!best || v->last_used < best->last_used))
            best = v;
    }
    return best;
}

/* The finished variant, waited for while another thread makes it; NULL when this thread is to make
 * it, in *slot if that is not NULL. *evicted is to be destroyed. */
static gb_compiled_partition *look_up(
        gb_dynamic *dynamic, const shapes *key, variant **slot, gb_compiled_partition **evicted)
{
    variant *found = dynamic_find(dynamic, key);
    while (found && !found->compiled) {
        pthread_cond_wait(&dynamic->changed, &dynamic->lock);
        found = dynamic_find(dynamic, key);
    }
    if (found) {
        found->last_used = ++dynamic->clock;
        return gb_compiled_partition_retain(found->compiled);
    }
    variant *free_slot = dynamic_find_slot(dynamic);
    int64_t *words = free_slot ? gb_calloc(key->n, sizeof *words) : NULL;
    if (!words)
        return NULL;
    memcpy(words, key->words, key->n * sizeof *words);
    *slot = free_slot;
    *evicted = free_slot->compiled;
    free(free_slot->words);
    *free_slot = (variant){key->hash, key->n, words, NULL, ++dynamic->clock};
    return NULL;
}

static void dynamic_finish(gb_dynamic *dynamic, variant *slot, gb_compiled_partition *compiled)
{
    pthread_mutex_lock(&dynamic->lock);
    if (compiled) {
        slot->compiled = gb_compiled_partition_retain(compiled);
    } else {
        free(slot->words);
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
    shapes key;
    if (!shapes_init(&key, dynamic, inputs, outputs))
        return GB_OUT_OF_MEMORY;
    pthread_mutex_lock(&dynamic->lock);
    gb_compiled_partition *found = look_up(dynamic, &key, &slot, &evicted);
    pthread_mutex_unlock(&dynamic->lock);
    shapes_clear(&key);
    gb_compiled_partition_destroy(evicted);
    gb_status status = found ? GB_SUCCESS : dynamic_compile(dynamic, inputs, outputs, &made);
    if (slot)
        dynamic_finish(dynamic, slot, made);
    if (status == GB_SUCCESS)
        *specialized = found ? found : made;
    return status;
}
