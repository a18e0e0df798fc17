/* Tensors as .npy files (version 1.0, little endian, C order, logical row-major): values for f32,
 * s32, s64, s8, u8 and boolean; the bits of bf16, f16 and f8; s4 and u4 flat, two elements per
 * byte. */
#ifndef GB_CLI_RUN_NPY_H
#define GB_CLI_RUN_NPY_H

#include <graphbench/graphbench.h>

/* DIR/PREFIX_<id>.<dtype>.npy; false when the text does not fit. */
int gb_cli_npy_path(char *path, size_t bytes, const char *dir, const char *prefix,
        const gb_logical_tensor *tensor);
/* Writes the elements of memory laid out as `tensor`. */
gb_status gb_cli_npy_save(const char *path, const gb_logical_tensor *tensor, const void *memory);
/* Fills memory laid out as `tensor`; element count and type must agree. The message of a failure is
 * put in `message`. */
gb_status gb_cli_npy_load(const char *path, const gb_logical_tensor *tensor, void *memory,
        char *message, size_t message_bytes);

#endif
