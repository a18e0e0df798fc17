/* Digests of memory, at the speed at which memory is read. */
#include "runtime/digest.h"

#include "base/memory.h"
#include "graph/ir/content.h"

#include <string.h>

enum { LANES = 4, BLOCK = LANES * 8, CHUNK = 1 << 16 };

/* Two independent 64-bit states. For a given word each step is a bijection of the state, and for a
 * given state one of the word: contents that differ in one word of a lane never meet. */
typedef struct lane {
    uint64_t a, b;
} lane;

static void fuse_producer(lane *lanes, const unsigned char *block)
{
    for (int i = 0; i < LANES; i++) {
        uint64_t word;
        memcpy(&word, block + 8 * i, sizeof word);
        lanes[i].a = (lanes[i].a ^ word) * UINT64_C(0xBF58476D1CE4E5B9);
        lanes[i].a ^= lanes[i].a >> 32;
        lanes[i].b = (lanes[i].b + word) * UINT64_C(0x94D049BB133111EB);
        lanes[i].b ^= lanes[i].b >> 29;
    }
}

/* Depends on the place of the chunk, too, so that digests of chunks may be summed up. */
static gb_digest digest_chunk(const unsigned char *data, size_t bytes, uint64_t place)
{
    lane lanes[LANES];
    for (int i = 0; i < LANES; i++)
        lanes[i] = (lane){gb_hash_mix(place, (uint64_t)i), gb_hash_mix(~place, (uint64_t)i)};
    size_t done = 0;
    for (; done + BLOCK <= bytes; done += BLOCK)
        fuse_producer(lanes, data + done);
    unsigned char rest[BLOCK] = {0};
    memcpy(rest, data + done, bytes - done);
    fuse_producer(lanes, rest);
    gb_digest digest = {{bytes, ~(uint64_t)bytes}};
    for (int i = 0; i < LANES; i++) {
        digest.words[0] = gb_hash_mix(digest.words[0], lanes[i].a);
        digest.words[1] = gb_hash_mix(digest.words[1], lanes[i].b);
    }
    return digest;
}

size_t gb_digest_chunks(size_t bytes)
{
    return bytes / CHUNK + (bytes % CHUNK != 0);
}

gb_digest gb_digest_sum(const void *memory, size_t bytes, size_t first, size_t end)
{
    const unsigned char *data = memory;
    gb_digest sum = {{0, 0}};
    for (size_t i = first; i < end; i++) {
        size_t begin = i * CHUNK, rest = bytes - begin;
        gb_digest chunk = digest_chunk(data + begin, rest < CHUNK ? rest : CHUNK, i);
        sum.words[0] += chunk.words[0];
        sum.words[1] += chunk.words[1];
    }
    return sum;
}

gb_digest gb_digest_finish(gb_digest sum, size_t bytes)
{
    return (gb_digest){{gb_hash_mix(bytes, sum.words[0]), gb_hash_mix(bytes, sum.words[1])}};
}

gb_digest gb_digest_memory(const void *memory, size_t bytes)
{
    return gb_digest_finish(gb_digest_sum(memory, bytes, 0, gb_digest_chunks(bytes)), bytes);
}

bool gb_digest_equal(gb_digest a, gb_digest b)
{
    return a.words[0] == b.words[0] && a.words[1] == b.words[1];
}

gb_digest gb_digest_join(gb_digest a, gb_digest b)
{
    return (gb_digest){{gb_hash_mix(gb_hash_mix(0, a.words[0]), b.words[0]),
            gb_hash_mix(gb_hash_mix(1, a.words[1]), b.words[1])}};
}

/* Kept digests --------------------------------------------------------------------------------- */

static atomic_uint_least64_t epoch = 1;

void gb_kept_digest_init(gb_kept_digest *kept)
{
    pthread_mutex_init(&kept->lock, NULL);
    atomic_init(&kept->epoch, 0);
}

void gb_kept_digest_clear(gb_kept_digest *kept)
{
    pthread_mutex_destroy(&kept->lock);
}

void gb_kept_digest_forget(gb_kept_digest *kept)
{
    if (atomic_load(&kept->epoch) != 0)
        atomic_store(&kept->epoch, 0);
}

void gb_kept_digests_expire(void)
{
    atomic_fetch_add(&epoch, 1);
}

static gb_digest read_kept(gb_kept_digest *kept)
{
    return (gb_digest){{atomic_load_explicit(&kept->words[0], memory_order_relaxed),
            atomic_load_explicit(&kept->words[1], memory_order_relaxed)}};
}

bool gb_kept_digest_find(gb_kept_digest *kept, gb_digest *digest)
{
    bool known = atomic_load(&kept->epoch) == atomic_load(&epoch);
    if (known)
        *digest = read_kept(kept);
    return known;
}

gb_status gb_kept_digest_get(gb_kept_digest *kept,
        gb_status (*take)(const void *context, gb_digest *digest), const void *context,
        gb_digest *digest)
{
    gb_status status = GB_SUCCESS;
    pthread_mutex_lock(&kept->lock);
    uint64_t now = atomic_load(&epoch);
    if (!gb_kept_digest_find(kept, digest))
        status = take(context, digest);
    if (status == GB_SUCCESS) {
        atomic_store(&kept->words[0], digest->words[0]);
        atomic_store(&kept->words[1], digest->words[1]);
        atomic_store(&kept->epoch, now);
    }
    pthread_mutex_unlock(&kept->lock);
    return status;
}
