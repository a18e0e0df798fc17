/* The tensors of a reference run by id, and their way from and to memory. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/written.h"
#include "graph/ops/op_table.h"
#include "ref/bounds/walk.h"
#include "ref/slices/list.h"

#include <stdlib.h>
#include <string.h>

struct gb_ref_store {
    gb_ref_tensor *tensors; /* sorted by id */
    uint32_t count, capacity;
    const gb_ref_store *behind; /* has what this one has not; lent, may be NULL */
};

gb_status gb_ref_store_create(gb_ref_store **store)
{
    if (!store)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_ref_store_create: NULL argument");
    gb_ref_store *created = gb_calloc(1, sizeof *created);
    if (!created)
        return GB_OUT_OF_MEMORY;
    *store = created;
    return GB_SUCCESS;
}

gb_status gb_ref_store_create_before(gb_ref_store **store, const gb_ref_store *behind)
{
    GB_TRY(gb_ref_store_create(store));
    (*store)->behind = behind;
    return GB_SUCCESS;
}

void gb_ref_store_destroy(gb_ref_store *store)
{
    if (!store)
        return;
    for (uint32_t i = 0; i < store->count; i++)
        gb_ref_tensor_free(&store->tensors[i]);
    free(store->tensors);
    free(store);
}

/* Where the id stands, or would stand. */
static uint32_t store_find_slot(const gb_ref_store *store, size_t id)
{
    uint32_t low = 0, high = store->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (store->tensors[middle].tensor.id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool holds(const gb_ref_store *store, uint32_t slot, size_t id)
{
    return slot < store->count && store->tensors[slot].tensor.id == id;
}

gb_status gb_ref_store_put(gb_ref_store *store, gb_ref_tensor *tensor)
{
    if (!store || !tensor)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_ref_store_put: NULL argument");
    uint32_t slot = store_find_slot(store, tensor->tensor.id);
    if (holds(store, slot, tensor->tensor.id)) {
        gb_ref_tensor_free(&store->tensors[slot]);
    } else {
        if (!gb_reserve(
                    &store->tensors, &store->capacity, (size_t)store->count + 1, sizeof *tensor))
            return GB_OUT_OF_MEMORY;
        memmove(&store->tensors[slot + 1], &store->tensors[slot],
                (store->count - slot) * sizeof *tensor);
        store->count++;
    }
    store->tensors[slot] = *tensor;
    memset(tensor, 0, sizeof *tensor);
    return GB_SUCCESS;
}

const gb_ref_tensor *gb_ref_store_get(const gb_ref_store *store, size_t id)
{
    uint32_t slot = store_find_slot(store, id);
    if (holds(store, slot, id))
        return &store->tensors[slot];
    return store->behind ? gb_ref_store_get(store->behind, id) : NULL;
}

bool gb_ref_store_take(gb_ref_store *store, size_t id, gb_ref_tensor *tensor)
{
    uint32_t slot = store_find_slot(store, id);
    if (!holds(store, slot, id))
        return false;
    *tensor = store->tensors[slot];
    store->count--;
    memmove(&store->tensors[slot], &store->tensors[slot + 1],
            (store->count - slot) * sizeof store->tensors[slot]);
    return true;
}

void gb_ref_store_drop(gb_ref_store *store, size_t id)
{
    gb_ref_tensor tensor;
    if (gb_ref_store_take(store, id, &tensor))
        gb_ref_tensor_free(&tensor);
}

void gb_ref_tensor_free(gb_ref_tensor *tensor)
{
    free(tensor->value);
    free(tensor->bound);
    memset(tensor, 0, sizeof *tensor);
}

typedef struct transfer {
    gb_data_type type;
    const void *source;
    void *memory;
    double *read;
    const double *write;
} transfer;

static void read_row(void *context, const gb_ref_row *row)
{
    const transfer *t = context;
    gb_elements_get(
            t->type, t->source, row->offset[0], row->step[0], row->count, t->read + row->first);
}

static void write_row(void *context, const gb_ref_row *row)
{
    const transfer *t = context;
    gb_elements_set(
            t->type, t->memory, row->offset[0], row->step[0], row->count, t->write + row->first);
}

static void walk_layout(gb_ref_walk *walk, const gb_logical_tensor *layout)
{
    gb_ref_walk_init(walk, layout->ndims, layout->dims);
    gb_ref_walk_strided(walk, layout->strides);
}

static gb_status check_layout(const gb_logical_tensor *layout)
{
    bool known =
            layout->ndims >= 0 && layout->ndims <= GB_MAX_NDIMS && gb_dtype_get(layout->data_type);
    if (layout->ndims > 0)
        known = known && layout->layout_type == GB_LAYOUT_STRIDED;
    for (int d = 0; known && d < layout->ndims; d++)
        known = layout->dims[d] >= 0 && layout->strides[d] >= 0;
    if (known)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS,
            "tensor %zu: the reference reads strided tensors with known dims, not %s", layout->id,
            gb_tensor_label(layout));
}

gb_status gb_ref_tensor_read(
        gb_ref_tensor *tensor, const gb_logical_tensor *layout, const void *memory)
{
    if (!tensor || !layout)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_ref_tensor_read: NULL argument");
    GB_TRY(check_layout(layout));
    gb_ref_tensor made = {.tensor = *layout};
    if (!gb_dims_count(layout->ndims, layout->dims, &made.count))
        return gb_fail(GB_INVALID_ARGUMENTS, "tensor %zu is too large", layout->id);
    if (made.count > 0 && !memory)
        return gb_fail(GB_INVALID_ARGUMENTS, "tensor %zu has no memory", layout->id);
    made.value = gb_calloc((size_t)made.count, sizeof *made.value);
    if (!made.value)
        return GB_OUT_OF_MEMORY;
    transfer context = {.type = layout->data_type, .source = memory, .read = made.value};
    gb_ref_walk walk;
    walk_layout(&walk, layout);
    gb_ref_walk_run(&walk, read_row, &context);
    if (layout->data_type == GB_S64 && made.count > 0)
        memcpy(&made.whole, memory, sizeof made.whole);
    *tensor = made;
    return GB_SUCCESS;
}

void gb_ref_tensor_write(const gb_ref_tensor *tensor, const gb_logical_tensor *layout, void *memory)
{
    transfer context = {.type = layout->data_type, .memory = memory, .write = tensor->value};
    gb_ref_walk walk;
    walk_layout(&walk, layout);
    /* Two threads must not write the two halves of one byte, or two elements in one place. */
    if (gb_dtype_get(layout->data_type)->bits < 8 || gb_elements_overlap(layout))
        gb_ref_walk_serial(&walk, write_row, &context);
    else
        gb_ref_walk_run(&walk, write_row, &context);
}
