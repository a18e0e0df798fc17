/* Shapes as a number and as text. */
#include "kernels/opencl/shape.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct field {
    const char *name;
    size_t offset;
    int bits, unit;
} field;

static const field fields[] = {
#define GB_CL_DESCRIBE(name, bits, unit) {#name, offsetof(gb_cl_shape, name), bits, unit},
        GB_CL_SHAPE_FIELDS(GB_CL_DESCRIBE)
#undef GB_CL_DESCRIBE
};
enum { FIELDS = sizeof fields / sizeof *fields };

#define GB_CL_ADD_BITS(name, bits, unit) +(bits)
_Static_assert(0 GB_CL_SHAPE_FIELDS(GB_CL_ADD_BITS) <= 64, "a shape is a key");
#undef GB_CL_ADD_BITS

static int *at(gb_cl_shape *shape, const field *f)
{
    return (int *)((char *)shape + f->offset);
}

uint64_t gb_cl_shape_key(const gb_cl_shape *shape)
{
    gb_cl_shape copy = *shape;
    uint64_t key = 0;
    for (int i = 0, shift = 0; i < FIELDS; shift += fields[i++].bits)
        key |= (uint64_t)(*at(&copy, &fields[i]) / fields[i].unit) << shift;
    return key;
}

gb_cl_shape gb_cl_shape_of_key(uint64_t key)
{
    gb_cl_shape shape;
    for (int i = 0; i < FIELDS; key >>= fields[i++].bits)
        *at(&shape, &fields[i]) =
                (int)(key & (((uint64_t)1 << fields[i].bits) - 1)) * fields[i].unit;
    return shape;
}

void gb_cl_shape_print(const gb_cl_shape *shape, char *text, size_t bytes)
{
    gb_cl_shape copy = *shape;
    size_t n = 0;
    for (int i = 0; i < FIELDS && n < bytes; i++)
        n += (size_t)snprintf(text + n, bytes - n, "%s%s=%d", i ? "," : "", fields[i].name,
                *at(&copy, &fields[i]));
}

/* Of both operands, for one step of a group. */
static size_t local_floats(const gb_cl_shape *s)
{
    return (size_t)s->depth *
           ((size_t)(s->row_tiles * s->tile_rows) + (size_t)(s->column_tiles * s->lanes));
}

/* Are there kernels of such a shape? */
static bool is_valid(const gb_cl_shape *s, const gb_cl_device *device)
{
    enum { MOST_TILE_ROWS = 8, MOST_ATTENTION_ROWS = 60 };
    gb_cl_shape copy = *s;
    for (int i = 0; i < FIELDS; i++) {
        int number = *at(&copy, &fields[i]);
        if (number < (fields[i].unit == 1 && fields[i].bits == 1 ? 0 : 1) ||
                number % fields[i].unit != 0 || number / fields[i].unit >> fields[i].bits != 0)
            return false;
    }
    bool lanes = s->lanes == 4 || s->lanes == 8 || s->lanes == 16;
    bool rows = (s->attention_tile == 4 || s->attention_tile == 6) &&
                s->attention_rows % s->attention_tile == 0;
    size_t items = (size_t)s->row_tiles * (size_t)s->column_tiles;
    size_t local = local_floats(s) * sizeof(float);
    return lanes && s->depth % s->lanes == 0 && rows && s->tile_rows <= MOST_TILE_ROWS &&
           s->attention_rows <= MOST_ATTENTION_ROWS && !(s->is_cpu && s->local_memory) &&
           (size_t)s->local_size <= device->group_size &&
           (s->is_cpu || items <= device->group_size) &&
           (!s->local_memory || local <= device->local_bytes);
}

static const field *find(const char *name, size_t n)
{
    for (int i = 0; i < FIELDS; i++)
        if (strlen(fields[i].name) == n && memcmp(fields[i].name, name, n) == 0)
            return &fields[i];
    return NULL;
}

bool gb_cl_shape_read(gb_cl_shape *shape, const gb_cl_device *device, const char *text, size_t n)
{
    gb_cl_shape read = *shape;
    const char *end = text + n;
    while (text < end) {
        const char *equals = memchr(text, '=', (size_t)(end - text));
        const field *f = equals ? find(text, (size_t)(equals - text)) : NULL;
        int number = 0, digits = 0;
        if (!f)
            return false;
        for (text = equals + 1; text < end && *text >= '0' && *text <= '9' && digits < 5; digits++)
            number = number * 10 + (*text++ - '0');
        if (digits == 0 || (text < end && *text++ != ','))
            return false;
        *at(&read, f) = number;
    }
    if (!is_valid(&read, device))
        return false;
    *shape = read;
    return true;
}
