/* Text that grows: the source of a kernel. */
#ifndef GB_KERNELS_OPENCL_TEXT_H
#define GB_KERNELS_OPENCL_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* All zero is an empty text. `data` is owned, and NULL while nothing was added. */
typedef struct gb_cl_text {
    char *data;
    uint32_t n, capacity;
    bool failed; /* out of memory: nothing more is added */
} gb_cl_text;

void gb_cl_print(gb_cl_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void gb_cl_text_free(gb_cl_text *text);

#endif
