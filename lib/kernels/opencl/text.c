/* Text that grows. */
#include "kernels/opencl/text.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void gb_cl_print(gb_cl_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    size_t needed = (size_t)text->n + (size_t)n + 1;
    if (text->failed || n < 0 || needed > UINT32_MAX ||
            !gb_reserve(&text->data, &text->capacity, needed, 1)) {
        text->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(text->data + text->n, (size_t)n + 1, format, args);
    va_end(args);
    text->n += (uint32_t)n;
}

void gb_cl_text_free(gb_cl_text *text)
{
    free(text->data);
    *text = (gb_cl_text){0};
}
