/* Resampling: weighted sums of rows, and of elements of a line. */
#include "kernels/isa/vec.h"

#include "kernels/isa/vec_codes.h"
#include "kernels/isa/vec_partial.h"

#include <string.h>

enum { JOINED_MOST = 4 /* vectors of a position at once */ };

GB_INLINE void sum_vector(const gb_resample_rows *rows, const gb_data_type type,
        const int64_t stride, int64_t i, int64_t n, float *dst)
{
    vf sum = !rows->add ? vf_zero() : n == VLEN ? vf_load(dst + i) : vf_load_n(dst + i, n);
    for (int k = 0; k < rows->n; k++)
        sum = vf_fma(vf_set1(rows->weight[k]),
                vf_load_codes(type, rows->src[k], i * stride, stride, n), sum);
    vf_store_first(dst + i, sum, n);
}

GB_INLINE void sum_strided(const gb_resample_rows *rows, const gb_data_type type,
        const int64_t stride, int64_t length, float *dst)
{
    int64_t i = 0;
    for (; i + VLEN <= length; i += VLEN)
        sum_vector(rows, type, stride, i, VLEN, dst);
    if (i < length)
        sum_vector(rows, type, stride, i, length - i, dst);
}

GB_INLINE void sum_typed(
        const gb_resample_rows *rows, const gb_data_type type, int64_t length, float *dst)
{
    if (rows->stride == 1)
        sum_strided(rows, type, 1, length, dst);
    else
        sum_strided(rows, type, rows->stride, length, dst);
}

static void resample_sum_rows(const gb_resample_rows *rows, int64_t length, float *dst)
{
    if (rows->type == GB_BF16)
        sum_typed(rows, GB_BF16, length, dst);
    else if (rows->type == GB_F16)
        sum_typed(rows, GB_F16, length, dst);
    else if (rows->type == GB_S8)
        sum_typed(rows, GB_S8, length, dst);
    else if (rows->type == GB_U8)
        sum_typed(rows, GB_U8, length, dst);
    else
        sum_typed(rows, GB_F32, length, dst);
}

void GB_ISA_NAME(resample_rows)(const gb_resample_rows *rows, int64_t length, float *dst)
{
    resample_sum_rows(rows, length, dst);
}

static void sum_position(const gb_resample_rows *rows, const gb_resample_taps *taps, int64_t i,
        int64_t step, int64_t length, float *dst)
{
    gb_resample_rows sum = {.type = rows->type, .stride = rows->stride, .add = rows->add};
    const int64_t size = gb_code_bytes(rows->type);
    for (int64_t t = 0; t < taps->taps; t++) {
        float weight = taps->weight[t * taps->pitch + i];
        int64_t offset = taps->index[t * taps->pitch + i] * step * size;
        for (int k = 0; k < rows->n && weight != 0; k++) {
            sum.src[sum.n] = rows->src[k] + offset;
            sum.weight[sum.n++] = rows->weight[k] * weight;
            if (sum.n < GB_RESAMPLE_ROWS)
                continue;
            resample_sum_rows(&sum, length, dst);
            sum.add = true;
            sum.n = 0;
        }
    }
    if (sum.n || !sum.add)
        resample_sum_rows(&sum, length, dst);
}

void GB_ISA_NAME(resample_positions)(const gb_resample_rows *rows, const gb_resample_taps *taps,
        int64_t step, int64_t length, float *dst)
{
    for (int64_t i = 0; i < taps->count; i++)
        sum_position(rows, taps, i, step, length, dst + i * length);
}

/* Columns c .. c + vectors * VLEN - 1 of every position; what lies behind those of the position is made again by
 * the next one. Past the caches: positions are whole vectors. */
GB_INLINE void joined_columns(const gb_resample_taps *taps, const int64_t n_taps, const float *line,
        int64_t length, int64_t c, const int vectors, float *dst, const bool streamed)
{
    const gb_resample_taps t = *taps;                           /* stores may alias *taps */
    int64_t left = t.count * length - c - (vectors - 1) * VLEN; /* from the last vector on */
    line += c;
    dst += c;
    for (int64_t i = 0; i < t.count; i++, dst += length, left -= length) {
        vf sum[JOINED_MOST];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sum[v] = vf_zero();
        for (int64_t k = 0, at = i; k < n_taps; k++, at += t.pitch) {
            const float *from = line + t.index[at] * length;
            if (t.weight[at] == 0)
                continue;
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sum[v] = vf_fma(vf_set1(t.weight[at]), vf_load(from + v * VLEN), sum[v]);
        }
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            if (streamed)
                vf_stream(dst + v * VLEN, sum[v]);
            else
                vf_store_first(
                        dst + v * VLEN, sum[v], v + 1 == vectors && left < VLEN ? left : VLEN);
    }
}

GB_INLINE void joined_blocks(const gb_resample_taps *taps, const int64_t n_taps, const float *line,
        int64_t length, float *dst, const bool streamed)
{
    /* From the back, so that no column made before is written over. */
    int64_t vectors = (length + VLEN - 1) / VLEN, rest = vectors % JOINED_MOST;
    int64_t c = (vectors - rest) * VLEN;
#define LAST_COLUMNS(n) joined_columns(taps, n_taps, line, length, c, n, dst, streamed)
    GB_CONSTANT_TO_4(rest, LAST_COLUMNS)
#undef LAST_COLUMNS
    while ((c -= JOINED_MOST * VLEN) >= 0)
        joined_columns(taps, n_taps, line, length, c, JOINED_MOST, dst, streamed);
}

/* Positions of at most `lanes` elements: stores of whole vectors would cross lines of the cache. */
#define JOINED_NARROW(lanes)                                                                       \
    typedef float narrow_##lanes __attribute__((vector_size((lanes) * sizeof(float))));            \
    GB_INLINE void joined_##lanes(const gb_resample_taps *taps, const int64_t n_taps,              \
            const float *line, int64_t length, float *dst)                                         \
    {                                                                                              \
        const gb_resample_taps t = *taps;                                                          \
        for (int64_t i = 0, left = t.count * length; left > 0; i++, left -= length) {              \
            narrow_##lanes sum = {0}, x;                                                           \
            for (int64_t k = 0, at = i; k < n_taps; k++, at += t.pitch) {                          \
                memcpy(&x, line + t.index[at] * length, sizeof x);                                 \
                if (t.weight[at] != 0)                                                             \
                    sum += t.weight[at] * x;                                                       \
            }                                                                                      \
            if (left >= (lanes))                                                                   \
                memcpy(dst + i * length, &sum, sizeof sum);                                        \
            for (int k = 0; left < (lanes) && k < left; k++)                                       \
                dst[i * length + k] = sum[k];                                                      \
        }                                                                                          \
    }
JOINED_NARROW(4)
JOINED_NARROW(8)

GB_INLINE void joined_positions(const gb_resample_taps *taps, const int64_t n_taps,
        const float *line, int64_t length, float *dst, bool streamed)
{
    if (length <= 4 && VLEN > 4)
        joined_4(taps, n_taps, line, length, dst);
    else if (length <= 8 && VLEN > 8)
        joined_8(taps, n_taps, line, length, dst);
    else if (streamed && (uintptr_t)dst % GB_CACHE_LINE == 0)
        joined_blocks(taps, n_taps, line, length, dst, true);
    else
        joined_blocks(taps, n_taps, line, length, dst, false);
}

void GB_ISA_NAME(resample_joined)(
        const gb_resample_taps *taps, const float *line, int64_t length, float *dst, bool streamed)
{
    if (taps->taps == 1)
        joined_positions(taps, 1, line, length, dst, streamed);
    else if (taps->taps == 2)
        joined_positions(taps, 2, line, length, dst, streamed);
    else
        joined_positions(taps, taps->taps, line, length, dst, streamed);
}

GB_INLINE void put_whole(char *dst, const char *src, const bool streamed)
{
    vf v = vf_load((const float *)(const void *)src);
    if (streamed)
        vf_stream((float *)(void *)dst, v);
    else
        vf_store((float *)(void *)dst, v);
}

/* Positions that are copied as they are: resample_copies. */
typedef struct copied_lines {
    const int32_t *index;
    int64_t count, src_step, dst_step, bytes;
} copied_lines;

/* Positions of `piece` to 2 x `piece` bytes: two pieces, which may overlap. */
GB_INLINE void copy_pieces(
        const copied_lines *lines, const char *src, char *dst, const int64_t piece)
{
    const copied_lines t = *lines; /* stores may alias *lines */
    for (int64_t i = 0; i < t.count; i++, dst += t.dst_step) {
        const char *from = src + t.index[i] * t.src_step;
        memcpy(dst, from, (size_t)piece);
        memcpy(dst + t.bytes - piece, from + t.bytes - piece, (size_t)piece);
    }
}

/* Positions of a vector or more; the last vector may overlap the one before it. */
GB_INLINE void copy_vectors(
        const copied_lines *lines, const char *src, char *dst, const bool streamed)
{
    const copied_lines t = *lines;
    const int64_t whole = sizeof(vf), last = t.bytes - whole;
    for (int64_t i = 0; i < t.count; i++, dst += t.dst_step) {
        const char *from = src + t.index[i] * t.src_step;
        int64_t b = 0;
        for (; b + JOINED_MOST * whole <= t.bytes; b += JOINED_MOST * whole)
#pragma GCC unroll 4
            for (int v = 0; v < JOINED_MOST; v++)
                put_whole(dst + b + v * whole, from + b + v * whole, streamed);
        for (; b < last; b += whole)
            put_whole(dst + b, from + b, streamed);
        if (b < t.bytes)
            put_whole(dst + last, from + last, streamed);
    }
}

void GB_ISA_NAME(resample_copies)(const int32_t *index, int64_t count, const char *src,
        int64_t src_step, char *dst, int64_t dst_step, int64_t bytes, bool streamed)
{
    const copied_lines lines = {index, count, src_step, dst_step, bytes};
    const int64_t whole = sizeof(vf);
    if (streamed && ((int64_t)(uintptr_t)dst | dst_step | bytes) % whole == 0)
        copy_vectors(&lines, src, dst, true);
    else if (bytes >= whole)
        copy_vectors(&lines, src, dst, false);
    else if (bytes >= 32)
        copy_pieces(&lines, src, dst, 32);
    else if (bytes >= 16)
        copy_pieces(&lines, src, dst, 16);
    else if (bytes >= 8)
        copy_pieces(&lines, src, dst, 8);
    else if (bytes >= 4)
        copy_pieces(&lines, src, dst, 4);
    else if (bytes >= 2)
        copy_pieces(&lines, src, dst, 2);
    else
        copy_pieces(&lines, src, dst, 1);
}

/* Elements that are picked as they are: resample_picks. */
#define DEFINE_PICKS(type)                                                                         \
    static void pick_##type(const int32_t *index, int64_t count, const type *src, type *dst)       \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            dst[i] = src[index[i]];                                                                \
    }                                                                                              \
    static void twice_##type(int64_t count, const type *src, type *dst)                            \
    {                                                                                              \
        for (int64_t i = 0; i < count / 2; i++)                                                    \
            dst[2 * i] = dst[2 * i + 1] = src[i];                                                  \
    }                                                                                              \
    static void picks_##type(                                                                      \
            const int32_t *index, int64_t count, bool doubled, const void *src, void *dst)         \
    {                                                                                              \
        if (doubled)                                                                               \
            twice_##type(count, (const type *)src + index[0], dst);                                \
        else                                                                                       \
            pick_##type(index, count, src, dst);                                                   \
    }
DEFINE_PICKS(uint8_t)
DEFINE_PICKS(uint16_t)
DEFINE_PICKS(uint32_t)

/* Vectors of elements of 4 bytes are looked up. Returns how many elements. */
static int64_t look_up(const int32_t *index, int64_t count, const void *src, void *dst)
{
    int64_t i = 0;
    for (; i + VLEN <= count; i += VLEN)
        vf_store((float *)dst + i, vf_lookup(src, vi_load(index + i)));
    return i;
}

void GB_ISA_NAME(resample_picks)(
        const int32_t *index, int64_t count, bool doubled, const void *src, void *dst, int bytes)
{
    const int64_t done = bytes == 4 && !doubled ? look_up(index, count, src, dst) : 0;
    if (bytes == 1)
        picks_uint8_t(index, count, doubled, src, dst);
    else if (bytes == 2)
        picks_uint16_t(index, count, doubled, src, dst);
    else
        picks_uint32_t(index + done, count - done, doubled, src, (uint32_t *)dst + done);
}

GB_INLINE void line_vector(
        const gb_resample_taps *taps, const float *line, int64_t i, int64_t n, float *dst)
{
    vf sum = vf_zero();
    for (int64_t t = 0; t < taps->taps; t++) {
        const int32_t *index = taps->index + t * taps->pitch + i;
        const float *weights = taps->weight + t * taps->pitch + i;
        vf weight = n == VLEN ? vf_load(weights) : vf_load_n(weights, n);
        vf x = vf_lookup(line, n == VLEN ? vi_load(index) : vi_load_n(index, n));
        /* 0 times infinity is no term */
        sum = vf_select(vf_ne(weight, vf_zero()), vf_fma(weight, x, sum), sum);
    }
    vf_store_first(dst + i, sum, n);
}

/* What stands for no tap looks up element 0. */
void GB_ISA_NAME(resample_line)(const gb_resample_taps *taps, const float *line, float *dst)
{
    int64_t i = 0;
    for (; i + VLEN <= taps->count; i += VLEN)
        line_vector(taps, line, i, VLEN, dst);
    if (i < taps->count)
        line_vector(taps, line, i, taps->count - i, dst);
}
