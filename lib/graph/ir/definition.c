/* Kinds of ops that the program defined. Inside, such an op is a Wildcard with a definition. */
#include "base/status.h"
#include "graph/ir/graph.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Entries are added with the lock held and never change; the count tells readers without the lock
 * which are complete. */
enum { MOST_DEFINITIONS = GB_OP_DEFINED_END - GB_OP_DEFINED + 1, NAME_BYTES = 64 };
static struct {
    pthread_mutex_t lock;
    atomic_size_t count;
    struct {
        char name[NAME_BYTES];
        gb_op_definition definition;
    } entries[MOST_DEFINITIONS];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

const gb_op_definition *gb_definition_find(gb_op_kind kind)
{
    size_t place = (size_t)kind - GB_OP_DEFINED;
    return kind >= GB_OP_DEFINED && place < atomic_load(&table.count)
                   ? &table.entries[place].definition
                   : NULL;
}

const gb_op_definition *gb_definition_parse(const char *name, gb_op_kind *kind)
{
    size_t count = atomic_load(&table.count), place = 0;
    while (place < count && strcmp(table.entries[place].name, name) != 0)
        place++;
    if (place == count)
        return NULL;
    *kind = (gb_op_kind)(GB_OP_DEFINED + (int)place);
    return &table.entries[place].definition;
}

gb_op_kind gb_op_public_kind(const gb_op *op)
{
    gb_op_kind kind = op->kind;
    if (op->definition)
        gb_definition_parse(op->definition->name, &kind);
    return kind;
}

static bool is_same(const gb_op_definition *a, const gb_op_definition *b)
{
    return a->min_inputs == b->min_inputs && a->max_inputs == b->max_inputs &&
           a->min_outputs == b->min_outputs && a->max_outputs == b->max_outputs &&
           a->infer == b->infer && a->run == b->run && a->layout == b->layout &&
           a->context == b->context;
}

static gb_status definition_add(const gb_op_definition *definition, gb_op_kind *kind)
{
    const gb_op_definition *known = gb_definition_parse(definition->name, kind);
    if (known)
        return is_same(known, definition)
                       ? GB_SUCCESS
                       : gb_fail(GB_INVALID_ARGUMENTS, "op kind \"%s\" is defined in another way",
                                 definition->name);
    size_t place = atomic_load(&table.count);
    if (place == MOST_DEFINITIONS)
        return gb_fail(GB_OUT_OF_MEMORY, "more than %d kinds of ops defined", MOST_DEFINITIONS);
    strcpy(table.entries[place].name, definition->name);
    table.entries[place].definition = *definition;
    table.entries[place].definition.name = table.entries[place].name;
    atomic_store(&table.count, place + 1);
    *kind = (gb_op_kind)(GB_OP_DEFINED + (int)place);
    return GB_SUCCESS;
}

static gb_status definition_check(const gb_op_definition *definition)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    if (definition->size != sizeof *definition || !definition->name)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "gb_op_kind_define: a definition of %zu bytes, not %zu, or without name",
                definition->size, sizeof *definition);
    size_t length = strlen(definition->name);
    bool starts = length > 0 && !(*definition->name >= '0' && *definition->name <= '9');
    if (!starts || length >= NAME_BYTES || strspn(definition->name, letters) != length)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "\"%.80s\" is no name of an op kind: at most %d letters, digits and '_'",
                definition->name, NAME_BYTES - 1);
    for (int kind = 0; kind < GB_OP_LAST; kind++)
        if (strcmp(gb_op_kind_name((gb_op_kind)kind), definition->name) == 0)
            return gb_fail(GB_INVALID_ARGUMENTS, "\"%s\" is an op of the op set", definition->name);
    if (definition->min_inputs > definition->max_inputs ||
            definition->min_outputs > definition->max_outputs)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "\"%s\": the least number of tensors is above the most", definition->name);
    return GB_SUCCESS;
}

gb_status gb_op_kind_define(const gb_op_definition *definition, gb_op_kind *kind)
{
    if (!definition || !kind)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_kind_define: NULL argument");
    GB_TRY(definition_check(definition));
    pthread_mutex_lock(&table.lock);
    gb_status status = definition_add(definition, kind);
    pthread_mutex_unlock(&table.lock);
    return status;
}
