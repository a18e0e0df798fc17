/* Sweeps over memory, built once per instruction set. */
#include "cli/run/roof_loop.h"

#include <stdbool.h>
#include <stdint.h>
#if defined(__SSE__)
#include <immintrin.h>
#endif

#define CONCAT_(a, b) a##b
#define CONCAT(a, b)  CONCAT_(a, b)

typedef float vec __attribute__((vector_size(GB_ROOF_VECTOR), may_alias));
enum { LANES = GB_ROOF_VECTOR / 4, SUMS = 8, AHEAD = 2048 / sizeof(float) };

static inline void stream(float *p, vec v)
{
#if GB_ROOF_VECTOR == 64
    _mm512_stream_ps(p, (__m512)v);
#elif GB_ROOF_VECTOR == 32
    _mm256_stream_ps(p, (__m256)v);
#elif defined(__SSE__)
    _mm_stream_ps(p, (__m128)v);
#else
    *(vec *)p = v;
#endif
}

/* Reads as `streams` streams, side by side; SUMS vectors of them in a step. */
static inline __attribute__((always_inline)) vec read_streams(
        const float *a, size_t floats, const int streams, const bool ahead)
{
    const size_t part = floats / (size_t)streams, step = (size_t)SUMS / (size_t)streams * LANES;
    vec sums[SUMS] = {{0}};
    for (size_t i = 0; i + step <= part; i += step) {
#pragma GCC unroll 4
        for (int s = 0; s < streams; s++) {
            const float *p = a + (size_t)s * part + i;
#pragma GCC unroll 8
            for (int v = 0; v < SUMS / streams; v++) {
                if (ahead && v * LANES % 16 == 0)
                    __builtin_prefetch(p + v * LANES + AHEAD);
                sums[s * (SUMS / streams) + v] += *(const vec *)(p + v * LANES);
            }
        }
    }
    for (int v = 1; v < SUMS; v++)
        sums[0] += sums[v];
    return sums[0];
}

static void copy(float *a, const float *b, size_t floats)
{
    for (size_t i = 0; i + 4 * LANES <= floats; i += 4 * LANES)
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++)
            *(vec *)(a + i + v * LANES) = *(const vec *)(b + i + v * LANES);
}

static void copy_streamed(float *a, const float *b, size_t floats)
{
    for (size_t i = 0; i + 4 * LANES <= floats; i += 4 * LANES)
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++)
            stream(a + i + v * LANES, *(const vec *)(b + i + v * LANES));
}

static void update(float *a, const float *b, size_t floats)
{
    for (size_t i = 0; i + 4 * LANES <= floats; i += 4 * LANES)
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++)
            *(vec *)(a + i + v * LANES) += *(const vec *)(b + i + v * LANES);
}

float CONCAT(gb_cli_roof_sweep_, GB_ISA)(gb_roof_pattern pattern, float *a, float *b, size_t floats)
{
    vec sum = {0};
    switch (pattern) {
    case GB_ROOF_READ_1:
        sum = read_streams(a, floats, 1, false);
        break;
    case GB_ROOF_READ_2:
        sum = read_streams(a, floats, 2, true);
        break;
    case GB_ROOF_READ_4:
        sum = read_streams(a, floats, 4, true);
        break;
    case GB_ROOF_COPY:
        copy(a, b, floats);
        break;
    case GB_ROOF_COPY_STREAMED:
        copy_streamed(a, b, floats);
        break;
    default:
        update(a, b, floats);
    }
    return sum[0];
}
