/* Arithmetic that planners of convolutions and of their weight gradients share. */
#ifndef GB_KERNELS_CONV_CONV_NUMBERS_H
#define GB_KERNELS_CONV_CONV_NUMBERS_H

#include "base/memory.h"

static inline int64_t gb_greatest_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Room for `count` floats that is an odd number of cache lines: neighbours at this distance spread
 * over all cache sets. */
static inline int64_t gb_odd_lines(int64_t count)
{
    const int64_t line = GB_CACHE_LINE / sizeof(float);
    return (gb_div_up(count, line) | 1) * line;
}

/* Part of the lanes at work when `count` come in groups of `item`. */
static inline double gb_filled(int64_t count, int64_t item)
{
    return (double)count / (double)(gb_div_up(count, item) * item);
}

#endif
