/* How threads share the items of a phase. */
#include "base/parallel.h"
#include "kernels/cpu/step_call.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { THREADS = 4 };

typedef struct phase {
    gb_item_share *shares;
    uint32_t turn;
    int64_t n;
    int late;        /* these threads take nothing until the others are done */
    atomic_int done; /* threads */
    atomic_uchar *taken;
} phase;

static gb_step_call call_of(const phase *p, int thread, int n_threads)
{
    return (gb_step_call){
            .thread = thread, .n_threads = n_threads, .shares = p->shares, .turn = p->turn};
}

static void take_all(void *context, int thread, int n_threads)
{
    phase *p = context;
    gb_step_call call = call_of(p, thread, n_threads);
    int64_t begin, end;
    while (thread < p->late && atomic_load(&p->done) < n_threads - p->late)
        continue;
    while (gb_take_items(&call, p->n, &begin, &end)) {
        cr_assert(0 <= begin && begin < end && end <= p->n, "%td..%td of %td", (ptrdiff_t)begin,
                (ptrdiff_t)end, (ptrdiff_t)p->n);
        for (int64_t i = begin; i < end; i++)
            atomic_fetch_add(&p->taken[i], 1);
    }
    atomic_fetch_add(&p->done, 1);
}

/* One phase after the other in the same shares, as in a run. */
static void check(phase *p, int n_threads)
{
    p->taken = calloc((size_t)p->n + 1, sizeof *p->taken);
    cr_assert(p->taken);
    p->turn++;
    atomic_init(&p->done, 0);
    gb_parallel(n_threads, take_all, p);
    for (int64_t i = 0; i < p->n; i++)
        cr_assert_eq(p->taken[i], 1, "item %td of %td was taken %d times by %d threads",
                (ptrdiff_t)i, (ptrdiff_t)p->n, p->taken[i], n_threads);
    free(p->taken);
}

Test(items, each_is_taken_once)
{
    static const int64_t counts[] = {0, 1, 2, 3, 5, 64, 1000, (1 << 20) - 1, 1 << 20, 4500001};
    gb_item_share shares[THREADS] = {0};
    for (int n_threads = 1; n_threads <= THREADS; n_threads++) {
        phase p = {.shares = shares};
        for (int t = 0; t < THREADS; t++)
            atomic_init(&shares[t].rest, 0);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            p.n = counts[i];
            check(&p, n_threads);
        }
        for (p.n = 0; p.n < 100; p.n++)
            check(&p, n_threads);
    }
}

Test(items, others_do_the_share_of_a_thread_that_is_late)
{
    gb_item_share shares[THREADS] = {0};
    phase p = {.shares = shares, .late = THREADS - 1};
    for (p.n = 1; p.n < 200; p.n++)
        check(&p, THREADS);
}

/* Alone, a thread has its own share in order first, and then what is left of the others'. */
Test(items, a_thread_begins_with_its_share)
{
    gb_item_share shares[2] = {0};
    phase p = {.shares = shares, .turn = 1};
    gb_step_call call = call_of(&p, 1, 2);
    int64_t begin, end, next = 50;
    while (next < 100) {
        cr_assert(gb_take_items(&call, 100, &begin, &end));
        cr_assert_eq(begin, next);
        next = end;
    }
    cr_expect_eq(next, 100);
    for (next = 50; next > 0; next = begin) {
        cr_assert(gb_take_items(&call, 100, &begin, &end));
        cr_assert_eq(end, next);
    }
    cr_expect_not(gb_take_items(&call, 100, &begin, &end));
}
