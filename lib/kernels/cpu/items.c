/* Items of a phase, shared by threads.
 *
 * Each share is one word: the phase it belongs to, and where its rest begins and ends. A word of an
 * earlier phase stands for a share that nobody has touched. */
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/cpu/step_call.h"

enum { COUNT_BITS = 20 };
static const uint64_t most_items = (UINT64_C(1) << COUNT_BITS) - 1;

static uint64_t share_word(uint32_t turn, int64_t begin, int64_t end)
{
    return (uint64_t)turn << 2 * COUNT_BITS | (uint64_t)begin << COUNT_BITS | (uint64_t)end;
}

/* A quarter of what is left: few turns as long as there is much, single items at the end. */
static bool take(const gb_step_call *call, int owner, int64_t n, int64_t *begin, int64_t *end)
{
    atomic_uint_least64_t *rest = &call->shares[owner].rest;
    uint64_t seen = atomic_load_explicit(rest, memory_order_relaxed), left;
    do {
        if (seen >> 2 * COUNT_BITS == call->turn) {
            *begin = (int64_t)(seen >> COUNT_BITS & most_items);
            *end = (int64_t)(seen & most_items);
        } else {
            gb_split(n, owner, call->n_threads, begin, end);
        }
        if (*begin >= *end)
            return false;
        int64_t count = call->n_threads > 1 ? gb_div_up(*end - *begin, 4) : *end - *begin;
        if (owner == call->thread) {
            left = share_word(call->turn, *begin + count, *end);
            *end = *begin + count;
        } else {
            left = share_word(call->turn, *begin, *end - count);
            *begin = *end - count;
        }
    } while (!atomic_compare_exchange_weak_explicit(
            rest, &seen, left, memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool gb_take_items(const gb_step_call *call, int64_t n, int64_t *begin, int64_t *end)
{
    if (n <= 0)
        return false;
    const int64_t together = gb_div_up(n, (int64_t)most_items);
    for (int i = 0; i < call->n_threads; i++) {
        int owner = (call->thread + i) % call->n_threads;
        if (take(call, owner, gb_div_up(n, together), begin, end)) {
            *begin *= together;
            *end = gb_min_i64(*end * together, n);
            return true;
        }
    }
    return false;
}
