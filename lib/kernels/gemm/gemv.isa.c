/* Matrix times vector: bound by reading the matrix once. */
#include "kernels/isa/vec.h"

#include "kernels/isa/vec_float.h"

/* Matrix rows that run along y: several at a time, y is read and written once for all of them. */
enum { TOGETHER = 4 };

/* Lines of the matrix that will be read, row after row. The caches do not see that several rows read at a time follow
 * each other: without this a core waits for memory most of the time. */
typedef struct ahead {
    const char *row;
    size_t at, bytes, step; /* bytes of a row, and to the next one; bytes 0: nothing to do */
} ahead;

/* Bytes: how far ahead at least, of a line, and of rows of which so many at a time do not fit L2 beside what is read.
 * Where rows are longer than AHEAD, those of the next time are asked for. */
enum { AHEAD = 8192, LINE = 64, LONG_ROW = 65536 };

static ahead look_ahead(const gb_gemv *gemv, size_t bytes, size_t step)
{
    if (bytes == 0 || bytes >= LONG_ROW)
        return (ahead){.bytes = 0};
    const size_t rows = (AHEAD + bytes - 1) / bytes;
    return (ahead){
            (const char *)gemv->w + (rows < TOGETHER ? TOGETHER : rows) * step, 0, bytes, step};
}

GB_INLINE void fetch_lines(ahead *next, const int lines)
{
    if (!next->bytes)
        return;
#pragma GCC unroll 8
    for (int i = 0; i < lines; i++) {
        __builtin_prefetch(next->row + next->at, 0, 2); /* into the second-level cache */
        next->at += LINE;
        if (next->at >= next->bytes) {
            next->at = 0;
            next->row += next->step;
        }
    }
}

/* Some rows of the matrix and the elements of x they are multiplied by. */
typedef struct row_group {
    const char *w;
    size_t step; /* bytes to the next row */
    vf x[TOGETHER];
} row_group;

/* The products are summed before they join y: a quarter of the roundings, which all go the same way
 * where products are equal. */
GB_INLINE void add_vector(const row_group *group, const gb_data_type type, const int rows,
        const bool first, float *y, int64_t n, int64_t lanes)
{
    const char *w = group->w + (size_t)n * gb_float_size(type);
    vf sum = vf_mul(group->x[0], vf_load_float(type, w, lanes));
#pragma GCC unroll 4
    for (int i = 1; i < rows; i++)
        sum = vf_fma(group->x[i], vf_load_float(type, w + (size_t)i * group->step, lanes), sum);
    if (!first)
        sum = vf_add(vf_load_float(GB_F32, y + n, lanes), sum);
    vf_store_first(y + n, sum, lanes);
}

/* A core waits for memory here: the fewer instructions for a line, the more lines it asks for at
 * the same time. So what a store to y might change, as seen by the compiler, is read before. */
GB_INLINE void add_rows(const gb_gemv *gemv, const gb_data_type type, int64_t k, const int rows,
        const bool first, ahead *next)
{
    const int64_t line = LINE / (int64_t)gb_float_size(type), columns = gemv->n;
    const size_t size = gb_float_size(type);
    row_group group = {.w = (const char *)gemv->w + (size_t)(k * gemv->k_stride) * size,
            .step = (size_t)gemv->k_stride * size};
    for (int i = 0; i < rows; i++)
        group.x[i] = vf_set1(gemv->x[k + i]);
    float *y = gemv->y;
    ahead lines = *next;
    int64_t n = 0;
    for (; n + line <= columns; n += line) {
        fetch_lines(&lines, rows);
        for (int64_t i = 0; i < line; i += VLEN)
            add_vector(&group, type, rows, first, y, n + i, VLEN);
    }
    for (; n + VLEN <= columns; n += VLEN)
        add_vector(&group, type, rows, first, y, n, VLEN);
    if (n < columns)
        add_vector(&group, type, rows, first, y, n, columns - n);
    *next = lines;
}

GB_INLINE void along_n(const gb_gemv *gemv, const gb_data_type type)
{
    const size_t size = gb_float_size(type);
    ahead next = look_ahead(gemv, (size_t)gemv->n * size, (size_t)gemv->k_stride * size);
    int64_t k = gemv->k < TOGETHER ? 1 : TOGETHER;
    if (k == 1)
        add_rows(gemv, type, 0, 1, true, &next);
    else
        add_rows(gemv, type, 0, TOGETHER, true, &next);
    for (; k + TOGETHER <= gemv->k; k += TOGETHER)
        add_rows(gemv, type, k, TOGETHER, false, &next);
    for (; k < gemv->k; k++)
        add_rows(gemv, type, k, 1, false, &next);
}

/* `columns` dot products at once, each with a vector of partial sums. */
GB_INLINE void dots(
        const gb_gemv *gemv, const gb_data_type type, int64_t n, const int columns, ahead *next)
{
    const size_t size = gb_float_size(type), column = (size_t)gemv->n_stride * size;
    const char *w = (const char *)gemv->w + (size_t)n * column;
    vf sums[2][TOGETHER];
    for (int i = 0; i < columns; i++)
        sums[0][i] = sums[1][i] = vf_zero();
    int64_t k = 0;
    const int bytes = 2 * VLEN * (int)size;
    for (; k + 2 * VLEN <= gemv->k; k += 2 * VLEN) {
        if (k * (int64_t)size % LINE == 0)
            fetch_lines(next, bytes > LINE ? columns * (bytes / LINE) : columns);
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            vf x = vf_load(gemv->x + k + half * VLEN);
            const char *p = w + (size_t)(k + half * VLEN) * size;
#pragma GCC unroll 4
            for (int i = 0; i < columns; i++)
                sums[half][i] =
                        vf_fma(x, vf_load_float(type, p + (size_t)i * column, VLEN), sums[half][i]);
        }
    }
    for (; k < gemv->k; k += VLEN) {
        int64_t lanes = gemv->k - k < VLEN ? gemv->k - k : VLEN;
        vf x = vf_load_n(gemv->x + k, lanes);
        for (int i = 0; i < columns; i++)
            sums[0][i] =
                    vf_fma(x, vf_load_float(type, w + (size_t)i * column + (size_t)k * size, lanes),
                            sums[0][i]);
    }
    for (int i = 0; i < columns; i++)
        gemv->y[n + i] = vf_sum(vf_add(sums[0][i], sums[1][i]));
}

GB_INLINE void along_k(const gb_gemv *gemv, const gb_data_type type)
{
    const size_t size = gb_float_size(type);
    ahead next = look_ahead(gemv, (size_t)gemv->k * size, (size_t)gemv->n_stride * size);
    int64_t n = 0;
    for (; n + TOGETHER <= gemv->n; n += TOGETHER)
        dots(gemv, type, n, TOGETHER, &next);
    for (; n < gemv->n; n++)
        dots(gemv, type, n, 1, &next);
}

GB_INLINE void multiply(const gb_gemv *gemv, const gb_data_type type)
{
    if (gemv->k_stride != 1 || (gemv->n_stride == 1 && gemv->n > 1))
        along_n(gemv, type);
    else
        along_k(gemv, type);
}

void GB_ISA_NAME(gemv)(const gb_gemv *gemv)
{
    GB_FLOAT_SWITCH(gemv->type, multiply, gemv)
}
