#include "common.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 16, ALIGNMENT = 16 };

struct br_block {
    br_block *next;
    size_t used, size;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

static _Thread_local char last_error[512];

const char *gb_bridge_last_error(void)
{
    return last_error;
}

void br_note_failure(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(last_error, sizeof last_error, format, list);
    va_end(list);
}

gb_status br_out_of_memory(void)
{
    return br_fail(GB_OUT_OF_MEMORY, "out of memory");
}

gb_status br_fail_library(gb_status status, const char *what)
{
    return br_fail(status, "%.100s: %.380s", what, gb_last_error());
}

static int log_level;
static pthread_once_t log_once = PTHREAD_ONCE_INIT;

static void read_log_level(void)
{
    const char *text = getenv("GB_BRIDGE_LOG");
    log_level = text && *text >= '0' && *text <= '3' && !text[1] ? *text - '0' : 0;
}

int br_log_level(void)
{
    pthread_once(&log_once, read_log_level);
    return log_level;
}

void br_log(int level, const char *format, ...)
{
    if (br_log_level() < level)
        return;
    char line[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    fprintf(stderr, "graphbench_bridge: %s\n", line);
}

void *br_alloc(br_arena *arena, size_t count, size_t size)
{
    if (arena->failed || (size && count > (SIZE_MAX / 4) / size)) {
        arena->failed = true;
        return NULL;
    }
    size_t bytes = (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (bytes == 0)
        bytes = ALIGNMENT;
    br_block *block = arena->blocks;
    if (!block || block->size - block->used < bytes) {
        size_t room = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block = calloc(1, sizeof *block + room);
        if (!block) {
            arena->failed = true;
            return NULL;
        }
        *block = (br_block){.next = arena->blocks, .size = room};
        arena->blocks = block;
    }
    void *memory = block->bytes + block->used;
    block->used += bytes;
    return memory;
}

char *br_copy_text(br_arena *arena, const char *text, size_t length)
{
    char *copy = br_alloc(arena, length + 1, 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

char *br_format(br_arena *arena, const char *format, ...)
{
    char line[512];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (length < 0)
        return NULL;
    return br_copy_text(
            arena, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

void br_release(br_arena *arena)
{
    for (br_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *arena = (br_arena){0};
}

bool br_grow(br_arena *arena, void *array, uint32_t *capacity, uint32_t count, size_t size)
{
    if (count < *capacity)
        return true;
    uint32_t more = *capacity ? *capacity * 2 : 8;
    void *memory = br_alloc(arena, more, size), *old;
    if (!memory)
        return false;
    memcpy(&old, array, sizeof old);
    if (old)
        memcpy(memory, old, count * size);
    memcpy(array, &memory, sizeof memory);
    *capacity = more;
    return true;
}

void br_print(br_text *text, const char *format, ...)
{
    if (text->failed)
        return;
    va_list list;
    va_start(list, format);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    size_t needed = text->length + (size_t)(length < 0 ? 0 : length) + 1;
    if (needed > text->capacity) {
        size_t capacity = needed * 2 + 256;
        char *memory = realloc(text->text, capacity);
        if (!memory) {
            text->failed = true;
            return;
        }
        text->text = memory;
        text->capacity = capacity;
    }
    va_start(list, format);
    vsnprintf(text->text + text->length, text->capacity - text->length, format, list);
    va_end(list);
    text->length = needed - 1;
}

void br_print_quoted(br_text *text, const char *string)
{
    br_print(text, "\"");
    for (const char *c = string; *c; c++)
        if ((unsigned char)*c < 32)
            br_print(text, "\\u%04x", (unsigned)*c);
        else
            br_print(text, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    br_print(text, "\"");
}

static uint32_t hash_text(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

/* The slot that holds the name, or the free one where it belongs. */
static uint32_t find_slot(const br_names *names, const char *name)
{
    uint32_t slot = hash_text(name) & (names->capacity - 1);
    while (names->slots[slot] && strcmp(names->names[names->slots[slot] - 1], name) != 0)
        slot = (slot + 1) & (names->capacity - 1);
    return slot;
}

uint32_t br_names_find(const br_names *names, const char *name)
{
    if (!names->capacity)
        return BR_NONE;
    uint32_t slot = names->slots[find_slot(names, name)];
    return slot ? slot - 1 : BR_NONE;
}

uint32_t br_names_add(br_arena *arena, br_names *names, const char *name)
{
    uint32_t found = br_names_find(names, name);
    if (found != BR_NONE)
        return found;
    if (!br_grow(arena, &names->names, &names->names_capacity, names->count, sizeof *names->names))
        return BR_NONE;
    if (names->count * 2 >= names->capacity) {
        uint32_t capacity = names->capacity ? names->capacity * 2 : 64;
        uint32_t *slots = br_alloc(arena, capacity, sizeof *slots);
        if (!slots)
            return BR_NONE;
        names->slots = slots;
        names->capacity = capacity;
        for (uint32_t i = 0; i < names->count; i++)
            slots[find_slot(names, names->names[i])] = i + 1;
    }
    uint32_t slot = find_slot(names, name), index = names->count++;
    names->names[index] = name;
    names->slots[slot] = index + 1;
    return index;
}
