/* Built kernels of an engine in one piece of memory, which an application may keep. */
#ifndef GB_KERNELS_OPENCL_BLOB_H
#define GB_KERNELS_OPENCL_BLOB_H

#include "runtime/digest.h"

#include <graphbench/graphbench.h>

/* A blob that was checked and copied. */
typedef struct gb_cl_blob gb_cl_blob;

/* GB_INVALID_ARGUMENTS: it is damaged, or of another device or driver; `device` is gb_cl_device_digest(). */
gb_status gb_cl_blob_read(gb_cl_blob **blob, gb_digest device, size_t bytes, const void *data);
/* What is kept under a key, owned by the blob; NULL: nothing, or there is no blob. */
const void *gb_cl_blob_find(const gb_cl_blob *blob, const gb_digest *key, size_t *bytes);
void gb_cl_blob_free(gb_cl_blob *blob);

/* All zero begins a blob; `data` is the caller's to free. */
typedef struct gb_cl_blob_writer {
    unsigned char *data;
    size_t bytes, capacity;
} gb_cl_blob_writer;

gb_status gb_cl_blob_add(
        gb_cl_blob_writer *writer, const gb_digest *key, const void *data, size_t bytes);
/* Last. */
gb_status gb_cl_blob_finish(gb_cl_blob_writer *writer, gb_digest device);

#endif
