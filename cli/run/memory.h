/* Tensor memory that notices stray writes: guard zones around it, and poison wherever no element
 * lies. */
#ifndef GB_CLI_RUN_MEMORY_H
#define GB_CLI_RUN_MEMORY_H

#include <graphbench/graphbench.h>
#include <stdbool.h>

typedef struct gb_memory {
    gb_logical_tensor tensor; /* strided or opaque, dims known; or a host scalar */
    char *block;              /* owned: guard, data, guard */
    void *data;               /* inside block, cache-line aligned */
    size_t bytes;
    gb_tensor *handle; /* owned */
    bool is_copy;      /* the engine has memory of its own, and `data` is a copy of its contents */
    unsigned char poison; /* what guards, gaps, and elements hold that nobody has written */
} gb_memory;

/* Everything is poisoned first with one, and before it is written again with another: a byte that is left
 * as it was, or happens to be written with the poison, shows. 0xFF is a NaN in floats. */
enum { GB_POISON = 0xFF, GB_OTHER_POISON = 0x5A };

/* A block for free(), aligned to a page; a large one asks for huge pages, as the library's own do.
 * NULL: out of memory. */
void *gb_cli_memory_allocate(size_t bytes);
gb_status gb_cli_memory_create(
        gb_memory *memory, const gb_logical_tensor *tensor, const gb_engine *engine);
void gb_cli_memory_free(gb_memory *memory);
/* Makes the library's handle again after the data of a host scalar has changed. */
gb_status gb_cli_memory_attach(gb_memory *memory, const gb_engine *engine);
/* Where the engine has memory of its own: gives it what `data` holds, or takes it from there, once
 * all that was executed on the stream is complete. */
gb_status gb_cli_memory_upload(const gb_memory *memory, gb_stream *stream);
gb_status gb_cli_memory_download(const gb_memory *memory, gb_stream *stream);
/* Poisons all bytes, guards included. */
void gb_cli_memory_poison(gb_memory *memory, unsigned char poison);
/* NULL when guards and gaps between the elements are untouched, the padding of blocks is 0 and booleans
 * are 0 or 1, else what is wrong (static text). */
const char *gb_cli_memory_check(const gb_memory *memory, gb_stream *stream);
/* Depends on every byte of the data, but that all NaNs are alike. */
uint64_t gb_cli_memory_hash(const gb_memory *memory);

/* The elements where strides say where they lie: *plain is the memory itself unless it is opaque;
 * then the library brings them into *copy, row by row. The caller frees *copy (gb_cli_memory_free),
 * in either case and after a failure, too. */
gb_status gb_cli_memory_plain(
        const gb_memory *memory, gb_stream *stream, gb_memory *copy, const gb_memory **plain);
/* The hash of the elements in their logical order, whatever the layout. */
gb_status gb_cli_memory_digest(const gb_memory *memory, gb_stream *stream, uint64_t *digest);
/* A row-major description of the same elements. */
gb_status gb_cli_describe_dense(const gb_logical_tensor *tensor, gb_logical_tensor *dense);
/* Copies elements between memory that lies by strides and dense rows. */
void gb_cli_copy_elements(
        const gb_logical_tensor *tensor, char *dense, char *strided, bool to_dense);

/* Number of elements. */
int64_t gb_cli_count(const gb_logical_tensor *tensor);
/* Calls visit(context, logical index, physical offset in elements) for every element in row-major
 * order; of a strided tensor. */
void gb_cli_visit(const gb_logical_tensor *tensor,
        void (*visit)(void *context, int64_t index, int64_t offset), void *context);
/* Row-major dense, without gaps? */
bool gb_cli_is_dense(const gb_logical_tensor *tensor);

#endif
