/* The table of the program's own attributes, which grows while it runs. */
#include "graph/ir/attr_scratch.h"

#include "base/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Entries are added with the lock held and never change; the count tells
 * readers without the lock which are complete. */
enum { SCRATCH_COUNT = GB_ATTR_DEFINED_END - GB_ATTR_DEFINED + 1, SCRATCH_NAME = 64 };
static const char note_prefix[] = "temp.";
static struct {
    pthread_mutex_t lock;
    atomic_size_t count;
    struct {
        char name[SCRATCH_NAME];
        gb_attr_type type;
    } entries[SCRATCH_COUNT];
} scratch = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The place of a name among the first `count`, or the count. */
static size_t attr_scratch_find(const char *name, size_t count)
{
    size_t i = 0;
    while (i < count && strcmp(scratch.entries[i].name, name) != 0)
        i++;
    return i;
}

static gb_status attr_scratch_add(const char *name, gb_attr_type type, size_t *place)
{
    size_t count = atomic_load(&scratch.count);
    *place = attr_scratch_find(name, count);
    if (*place < count) {
        gb_attr_type known = scratch.entries[*place].type;
        return known == type
                       ? GB_SUCCESS
                       : gb_fail(GB_INVALID_ARGUMENTS, "attribute \"%s\" is of type %s, not %s",
                                 name, gb_attr_type_name(known), gb_attr_type_name(type));
    }
    if (*place == SCRATCH_COUNT)
        return gb_fail(GB_OUT_OF_MEMORY, "more than %d attributes of the program", SCRATCH_COUNT);
    strcpy(scratch.entries[*place].name, name);
    scratch.entries[*place].type = type;
    atomic_store(&scratch.count, *place + 1);
    return GB_SUCCESS;
}

static bool is_name(const char *name)
{
    size_t length =
            strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
    return length > 0 && !name[length] && length < SCRATCH_NAME && !(*name >= '0' && *name <= '9');
}

gb_status gb_op_attr_define(const char *name, gb_attr_type type, gb_op_attr *attr)
{
    size_t place;
    if (!name || !attr)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_attr_define: NULL argument");
    if (!is_name(name))
        return gb_fail(GB_INVALID_ARGUMENTS,
                "\"%.80s\" is no name of an attribute: at most %d letters, digits, '_' and '.'",
                name, SCRATCH_NAME - 1);
    for (int known = 0; known < GB_ATTR_END; known++)
        if (strcmp(gb_op_attr_name((gb_op_attr)known), name) == 0)
            return gb_fail(GB_INVALID_ARGUMENTS, "\"%s\" is an attribute of the op set", name);
    if (type <= GB_ATTR_TYPE_NONE || type > GB_ATTR_TYPE_POINTER)
        return gb_fail(GB_INVALID_ARGUMENTS, "no type of attributes %d", (int)type);
    pthread_mutex_lock(&scratch.lock);
    gb_status status = attr_scratch_add(name, type, &place);
    pthread_mutex_unlock(&scratch.lock);
    if (status == GB_SUCCESS)
        *attr = (gb_op_attr)(GB_ATTR_DEFINED + (int)place);
    return status;
}

bool gb_attr_is_note(gb_op_attr name)
{
    const char *text = gb_attr_is_defined(name) ? gb_scratch_name(name) : NULL;
    return text && (strncmp(text, note_prefix, strlen(note_prefix)) == 0 ||
                           gb_scratch_type(name) == GB_ATTR_TYPE_POINTER);
}

const char *gb_scratch_name(gb_op_attr attr)
{
    size_t place = (size_t)attr - GB_ATTR_DEFINED;
    return place < atomic_load(&scratch.count) ? scratch.entries[place].name : NULL;
}

gb_attr_type gb_scratch_type(gb_op_attr attr)
{
    return scratch.entries[attr - GB_ATTR_DEFINED].type;
}

bool gb_scratch_find(const char *name, gb_op_attr *attr)
{
    size_t count = atomic_load(&scratch.count), place = attr_scratch_find(name, count);
    if (place == count)
        return false;
    *attr = (gb_op_attr)(GB_ATTR_DEFINED + (int)place);
    return true;
}
