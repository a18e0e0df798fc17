/* Checked memory: what a step leaves behind its scratch and its temporaries is found. */
#include "base/guard.h"
#include "kernels/cpu/checked.h"
#include "kernels/cpu/scratch.h"
#include "runtime/compiled.h"

#include <criterion/criterion.h>
#include <graphbench/graphbench_tools.h>
#include <math.h>
#include <string.h>

enum { THREADS = 2, SHARED = 40, BYTES = 100, ROOM = 4096 };

/* One step with two parts of scratch, shared scratch, a temporary and a tensor of the caller. */
typedef struct checked_case {
    gb_program program;
    gb_step step;
    gb_step_use uses[2];
    gb_buffer buffers[2];
    gb_scratch first, second;
    gb_checked_scratch scratch;
    void *slots[2];
    _Alignas(GB_CACHE_LINE) char memory[ROOM], temporary[ROOM], output[ROOM];
} checked_case;

static void open_case(checked_case *c)
{
    memset(c, 0, sizeof *c);
    gb_set_memory_checks(1);
    c->first = gb_scratch_add(&c->step, 12);
    c->second = gb_scratch_add(&c->step, 20);
    c->step.shared_scratch = SHARED;
    c->uses[0] = (gb_step_use){.buffer = 0, .written = true};
    c->uses[1] = (gb_step_use){.buffer = 1, .written = true};
    c->buffers[0] = (gb_buffer){.placement = GB_PLACEMENT_ARENA, .bytes = BYTES};
    c->buffers[1] = (gb_buffer){.placement = GB_PLACEMENT_OUTPUT, .bytes = BYTES};
    c->step.uses = c->uses;
    c->step.n_uses = 2;
    c->program = (gb_program){.n_steps = 1,
            .steps = &c->step,
            .buffers = c->buffers,
            .n_buffers = 2,
            .guard_bytes = gb_guard_bytes()};
    c->slots[0] = c->temporary;
    c->slots[1] = c->output;
    c->scratch = (gb_checked_scratch){.shared = c->memory,
            .threads = c->memory + 1024,
            .shared_bytes = gb_align_up(SHARED + gb_guard_bytes(), GB_CACHE_LINE),
            .thread_bytes = gb_align_up(c->step.thread_scratch, GB_CACHE_LINE),
            .n_threads = THREADS};
    cr_assert_leq(c->scratch.thread_bytes * THREADS, ROOM - 1024);
    gb_checked_begin(&c->program, 0, c->slots, &c->scratch);
}

static void close_case(checked_case *c)
{
    c->step.uses = NULL;
    gb_step_clear(&c->step);
    gb_set_memory_checks(0);
}

static bool is_intact(checked_case *c, const char *expected)
{
    const char *what = NULL;
    bool intact = gb_checked_end(&c->program, 0, c->slots, &c->scratch, &what);
    if (!intact)
        cr_assert_str_eq(what, expected);
    return intact;
}

static char *scratch_of(checked_case *c, int thread, gb_scratch part)
{
    return c->scratch.threads + c->scratch.thread_bytes * (size_t)thread + part.offset;
}

Test(checked_memory, everything_that_belongs_to_a_step_may_be_written)
{
    checked_case c;
    open_case(&c);
    for (int t = 0; t < THREADS; t++) {
        memset(scratch_of(&c, t, c.first), 0, 12);
        memset(scratch_of(&c, t, c.second), 0, 20);
    }
    memset(c.scratch.shared, 0, SHARED);
    memset(c.temporary, 0, BYTES);
    cr_assert(is_intact(&c, ""));
    close_case(&c);
}

Test(checked_memory, what_was_not_written_is_nan)
{
    checked_case c;
    open_case(&c);
    float value;
    memcpy(&value, scratch_of(&c, 1, c.second), sizeof value);
    cr_assert(isnan(value));
    memcpy(&value, c.temporary, sizeof value);
    cr_assert(isnan(value));
    cr_assert_eq(c.output[0], 0); /* the caller's, whose old contents an op in place may read */
    close_case(&c);
}

Test(checked_memory, one_byte_behind_a_part_is_found)
{
    checked_case c;
    open_case(&c);
    struct {
        char *end;
        const char *what;
    } rows[] = {{scratch_of(&c, 0, c.first) + 12, "the scratch of a thread"},
            {scratch_of(&c, 1, c.first) + 12, "the scratch of a thread"},
            {scratch_of(&c, 0, c.second) + 20, "the scratch of a thread"},
            {scratch_of(&c, 1, c.second) + 20, "the scratch of a thread"},
            {c.scratch.shared + SHARED, "the scratch that threads share"},
            {c.temporary + BYTES, "a temporary or prepared constants"}};
    size_t places[] = {0, gb_guard_bytes() - 1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < 2; k++) {
            gb_checked_begin(&c.program, 0, c.slots, &c.scratch);
            cr_assert(is_intact(&c, ""));
            rows[i].end[places[k]] = 0;
            cr_assert_not(is_intact(&c, rows[i].what), "row %zu, byte %zu", i, places[k]);
        }
    close_case(&c);
}

/* A temporary keeps what an earlier step wrote, and is not poisoned by the one that adds to it. */
Test(checked_memory, later_steps_find_what_was_written)
{
    checked_case c;
    open_case(&c);
    c.buffers[0].first_step = 7;
    c.temporary[0] = 1;
    gb_checked_begin(&c.program, 0, c.slots, &c.scratch);
    cr_assert_eq(c.temporary[0], 1);
    close_case(&c);
}

Test(checked_memory, without_checks_nothing_is_added)
{
    gb_step step = {0};
    gb_set_memory_checks(0);
    gb_scratch_add(&step, 12);
    gb_scratch_add(&step, 20);
    cr_assert_eq(step.thread_scratch, GB_CACHE_LINE + 20);
    cr_assert_eq(step.n_guards, 0);
}
