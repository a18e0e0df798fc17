/* Digests of memory: 128 bits that stand for the contents of a constant tensor. */
#ifndef GB_RUNTIME_DIGEST_H
#define GB_RUNTIME_DIGEST_H

#include <graphbench/graphbench.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct gb_digest {
    uint64_t words[2];
} gb_digest;

/* Threads of the caller's; without parallel_for, the backend's own. */
typedef struct gb_thread_pool {
    gb_parallel_for_fn parallel_for;
    void *pool;
    int concurrency;
} gb_thread_pool;

/* A digest kept beside the memory that it was taken of. */
typedef struct gb_kept_digest {
    pthread_mutex_t lock;        /* held while it is taken */
    atomic_uint_least64_t epoch; /* in which it was taken; 0: it was not */
    atomic_uint_least64_t words[2];
} gb_kept_digest;

bool gb_digest_equal(gb_digest a, gb_digest b);
/* A digest of the two, in this order. */
gb_digest gb_digest_join(gb_digest a, gb_digest b);
/* Of memory, on this thread. */
gb_digest gb_digest_memory(const void *memory, size_t bytes);

/* The same in parts, for threads: sums of the digests of the chunks first .. end - 1 of memory, in
 * any order and division, are added up word by word and finished. */
size_t gb_digest_chunks(size_t bytes);
gb_digest gb_digest_sum(const void *memory, size_t bytes, size_t first, size_t end);
gb_digest gb_digest_finish(gb_digest sum, size_t bytes);

void gb_kept_digest_init(gb_kept_digest *kept);
void gb_kept_digest_clear(gb_kept_digest *kept);
/* The memory has other contents now. Not while another thread asks. */
void gb_kept_digest_forget(gb_kept_digest *kept);
/* Is it known? Then it is in *digest. */
bool gb_kept_digest_find(gb_kept_digest *kept, gb_digest *digest);
/* The digest that `take` gives, when it is not known. Any number of threads may ask at once. */
gb_status gb_kept_digest_get(gb_kept_digest *kept,
        gb_status (*take)(const void *context, gb_digest *digest), const void *context,
        gb_digest *digest);
/* Starts a new epoch: every kept digest is taken anew. */
void gb_kept_digests_expire(void);

#endif
