/* From ids to indices: open addressing, linear probing. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/graph.h"

#include <stdlib.h>
#include <string.h>

/* The slot that holds `id`, or the free one where it belongs. Ids are often multiples of a power of
 * two or consecutive, so all their bits are mixed (the finalizer of splitmix64). */
static gb_id_slot *id_map_find_slot(const gb_id_map *map, size_t id)
{
    uint64_t hash = id;
    hash = (hash ^ hash >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94D049BB133111EB);
    uint32_t slot = (uint32_t)(hash ^ hash >> 31) & (map->capacity - 1);
    while (map->slots[slot].index != 0 && map->slots[slot].id != id) {
        slot = (slot + 1) & (map->capacity - 1);
    }
    return &map->slots[slot];
}

uint32_t gb_id_map_find(const gb_id_map *map, size_t id)
{
    if (map->count == 0)
        return GB_NONE;
    return id_map_find_slot(map, id)->index - 1; /* a free slot's 0 becomes GB_NONE */
}

void gb_id_map_insert(gb_id_map *map, size_t id, uint32_t index)
{
    gb_id_slot *slot = id_map_find_slot(map, id);
    if (slot->index != 0)
        return;
    *slot = (gb_id_slot){id, index + 1};
    map->count++;
}

gb_status gb_id_map_reserve(gb_id_map *map, uint32_t count)
{
    if (count <= map->capacity / 2)
        return GB_SUCCESS;
    if (count > UINT32_MAX / 4)
        return gb_fail(GB_OUT_OF_MEMORY, "out of memory: %u ids", count);
    gb_id_map grown = {.capacity = 16};
    while (count > grown.capacity / 2)
        grown.capacity *= 2;
    grown.slots = gb_calloc(grown.capacity, sizeof *grown.slots);
    if (!grown.slots)
        return GB_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].index != 0)
            gb_id_map_insert(&grown, map->slots[i].id, map->slots[i].index - 1);
    }
    free(map->slots);
    *map = grown;
    return GB_SUCCESS;
}

void gb_id_map_clear(gb_id_map *map)
{
    if (map->slots)
        memset(map->slots, 0, map->capacity * sizeof *map->slots);
    map->count = 0;
}

void gb_id_map_free(gb_id_map *map)
{
    free(map->slots);
    *map = (gb_id_map){0};
}
