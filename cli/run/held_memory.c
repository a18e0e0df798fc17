/* An allocator that lists what it gave out. */
#include "cli/run/held_memory.h"

#include "cli/options/text.h"
#include "cli/run/memory.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct held_block {
    void *data;
    size_t bytes;
    size_t serial; /* in the order given out */
} held_block;

struct gb_held_memory {
    pthread_mutex_t lock;
    size_t n, capacity, next;
    held_block *blocks; /* owned; what they point to is the engine's */
};

static void *allocate(size_t bytes, size_t alignment, void *context)
{
    (void)alignment; /* blocks begin at pages */
    gb_held_memory *held = context;
    void *data = gb_cli_memory_allocate(bytes);
    if (!data)
        return NULL;
    pthread_mutex_lock(&held->lock);
    if (held->n == held->capacity) {
        held->capacity = held->capacity ? 2 * held->capacity : 64;
        held->blocks = gb_cli_realloc(held->blocks, held->capacity, sizeof *held->blocks);
    }
    held->blocks[held->n++] = (held_block){data, bytes, held->next++};
    pthread_mutex_unlock(&held->lock);
    return data;
}

static void release(void *memory, void *context)
{
    gb_held_memory *held = context;
    pthread_mutex_lock(&held->lock);
    for (size_t i = 0; i < held->n; i++)
        if (held->blocks[i].data == memory) {
            held->blocks[i] = held->blocks[--held->n];
            break;
        }
    pthread_mutex_unlock(&held->lock);
    free(memory);
}

gb_status gb_cli_held_engine_create(gb_engine **engine, gb_held_memory **held)
{
    gb_held_memory *made = gb_cli_realloc(NULL, 1, sizeof *made);
    *made = (gb_held_memory){.n = 0};
    pthread_mutex_init(&made->lock, NULL);
    gb_allocator *allocator = NULL;
    gb_status status = gb_allocator_create_with_context(&allocator, allocate, release, made);
    if (status == GB_SUCCESS)
        status = gb_engine_create_with_allocator(engine, GB_ENGINE_CPU, 0, allocator);
    gb_allocator_destroy(allocator);
    *held = made;
    return status;
}

void gb_cli_held_free(gb_held_memory *held)
{
    if (!held)
        return;
    pthread_mutex_destroy(&held->lock);
    free(held->blocks);
    free(held);
}

size_t gb_cli_held_next(gb_held_memory *held)
{
    pthread_mutex_lock(&held->lock);
    size_t next = held->next;
    pthread_mutex_unlock(&held->lock);
    return next;
}

void gb_cli_held_visit(gb_held_memory *held, size_t first, size_t end,
        void (*visit)(void *context, const void *data, size_t bytes), void *context)
{
    pthread_mutex_lock(&held->lock);
    for (size_t i = 0; i < held->n; i++)
        if (held->blocks[i].serial >= first && held->blocks[i].serial < end)
            visit(context, held->blocks[i].data, held->blocks[i].bytes);
    pthread_mutex_unlock(&held->lock);
}
