/* Stores past the caches. */
#include "kernels/isa/vec.h"

#include "base/memory.h"

#include <string.h>

enum { LINE_VECTORS = GB_CACHE_LINE / (int)sizeof(vf) };

void GB_ISA_NAME(stream)(const void *src, void *dst, size_t bytes)
{
    const char *from = src;
    char *to = dst;
    size_t head = (size_t)(-(uintptr_t)to % GB_CACHE_LINE);
    if (bytes < head + GB_CACHE_LINE) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, head);
    from += head;
    to += head;
    size_t lines = (bytes - head) / GB_CACHE_LINE, rest = (bytes - head) % GB_CACHE_LINE;
    for (size_t i = 0; i < lines; i++, from += GB_CACHE_LINE, to += GB_CACHE_LINE)
        for (int v = 0; v < LINE_VECTORS; v++)
            vf_stream((float *)(void *)to + v * VLEN,
                    vf_load((const float *)(const void *)from + v * VLEN));
    memcpy(to, from, rest);
}
