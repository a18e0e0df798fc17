/* The plan of a program: buffers that live together do not overlap; which steps are constant. */
#include "kernels/cpu/step_call.h"
#include "runtime/compiled.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

extern const gb_backend gb_cpu_backend;

enum { MOST_BUFFERS = 60, MOST_STEPS = 30 };

static uint64_t state = 1;

static uint32_t random_below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 33) % n);
}

static void ok(gb_status status)
{
    cr_assert_eq(status, GB_SUCCESS, "%s", gb_last_error());
}

static uint32_t temporary(gb_program *program, size_t bytes)
{
    uint32_t buffer;
    ok(gb_program_temporary(program, bytes, &buffer));
    return buffer;
}

static uint32_t constant_input(gb_program *program)
{
    uint32_t buffer = temporary(program, 64);
    program->buffers[buffer].placement = GB_PLACEMENT_INPUT;
    program->buffers[buffer].constant = true;
    return buffer;
}

static void add_step(gb_program *program, uint32_t read, uint32_t written)
{
    gb_step *step;
    uint32_t slot;
    ok(gb_program_begin(program, "test", &step));
    if (read != GB_NONE)
        ok(gb_step_use_buffer(step, read, false, &slot));
    if (written != GB_NONE)
        ok(gb_step_use_buffer(step, written, true, &slot));
    ok(gb_program_add(program, step));
}

Test(plan, live_buffers_never_overlap)
{
    for (int round = 0; round < 2000; round++) {
        gb_program program = {.compile_key = 2};
        uint32_t n = 1 + random_below(MOST_BUFFERS), first[MOST_BUFFERS], last[MOST_BUFFERS];
        uint32_t n_steps = 1 + random_below(MOST_STEPS);
        for (uint32_t i = 0; i < n; i++) {
            temporary(&program, random_below(4) ? random_below(5000) : random_below(3));
            first[i] = random_below(n_steps);
            last[i] = first[i] + random_below(n_steps - first[i]);
        }
        for (uint32_t s = 0; s < n_steps; s++) {
            gb_step *step;
            uint32_t slot;
            ok(gb_program_begin(&program, "test", &step));
            step->thread_scratch = random_below(300);
            for (uint32_t i = 0; i < n; i++) {
                if (first[i] == s)
                    ok(gb_step_use_buffer(step, i, true, &slot));
                if (last[i] == s)
                    ok(gb_step_use_buffer(step, i, false, &slot));
            }
            ok(gb_program_add(&program, step));
        }
        ok(gb_program_plan(&program));
        for (uint32_t i = 0; i < n; i++) {
            const gb_buffer *a = &program.buffers[i];
            cr_assert_eq(a->offset % 64, 0);
            cr_assert_leq(a->offset + a->bytes, program.arena_bytes);
            for (uint32_t k = 0; k < i; k++) {
                const gb_buffer *b = &program.buffers[k];
                bool apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
                bool together = first[i] <= last[k] && first[k] <= last[i];
                cr_assert(apart || !together || a->bytes == 0 || b->bytes == 0,
                        "round %d: buffers %u and %u overlap", round, i, k);
            }
        }
        ok(gb_cpu_backend.finish(&program, NULL));
        cr_assert_leq(
                gb_cpu_backend.scratch_bytes(&program, NULL), 2 * (320 + sizeof(gb_item_share)));
        gb_cpu_backend.program_fini(&program);
        gb_program_clear(&program);
    }
}

Test(plan, steps_on_constants_run_once)
{
    gb_program program = {.compile_key = 1};
    uint32_t weights = constant_input(&program), packed = temporary(&program, 100);
    uint32_t twice = temporary(&program, 100), input = temporary(&program, 64);
    program.buffers[input].placement = GB_PLACEMENT_INPUT;
    uint32_t mixed = temporary(&program, 100), dst = temporary(&program, 64);
    program.buffers[dst].placement = GB_PLACEMENT_OUTPUT;
    add_step(&program, weights, packed); /* constant */
    add_step(&program, packed, twice);   /* constant, too */
    add_step(&program, input, mixed);
    add_step(&program, weights, dst); /* results are written every time */
    ok(gb_program_plan(&program));
    cr_expect(program.step_is_constant[0] && program.step_is_constant[1]);
    cr_expect(!program.step_is_constant[2] && !program.step_is_constant[3]);
    cr_expect_eq(program.buffers[packed].placement, GB_PLACEMENT_CONSTANTS);
    cr_expect_eq(program.buffers[twice].placement, GB_PLACEMENT_CONSTANTS);
    cr_expect_neq(program.buffers[packed].offset, program.buffers[twice].offset);
    cr_expect_eq(program.constant_bytes, 256);
    cr_expect_eq(program.arena_bytes, 128);
    gb_program_clear(&program);
}

Test(plan, a_buffer_with_a_variable_writer_is_no_constant)
{
    gb_program program = {.compile_key = 1};
    uint32_t weights = constant_input(&program), joined = temporary(&program, 128);
    uint32_t input = temporary(&program, 64);
    program.buffers[input].placement = GB_PLACEMENT_INPUT;
    add_step(&program, weights, joined);
    add_step(&program, input, joined);
    ok(gb_program_plan(&program));
    cr_expect(!program.step_is_constant[0] && !program.step_is_constant[1]);
    cr_expect_eq(program.buffers[joined].placement, GB_PLACEMENT_ARENA);
    gb_program_clear(&program);
}

Test(plan, sums_that_do_not_fit_are_refused)
{
    for (int which = 0; which < 3; which++) {
        gb_program program = {.compile_key = 64};
        gb_step *step;
        ok(gb_program_begin(&program, "test", &step));
        uint32_t a = temporary(&program, which == 0 ? SIZE_MAX - 10 : SIZE_MAX / 3);
        uint32_t b = temporary(&program, which == 1 ? SIZE_MAX / 3 : 64), slot;
        ok(gb_step_use_buffer(step, a, true, &slot));
        ok(gb_step_use_buffer(step, b, true, &slot));
        step->thread_scratch = which == 2 ? SIZE_MAX / 64 : 0;
        ok(gb_program_add(&program, step));
        gb_status status = gb_program_plan(&program);
        if (which == 2)
            status = gb_cpu_backend.finish(&program, NULL);
        cr_expect_eq(status, GB_OUT_OF_MEMORY);
        gb_program_clear(&program);
    }
}

/* What a failed lowering leaves behind goes with the program; finished steps keep their order. */
Test(plan, unfinished_steps_are_the_programs)
{
    gb_program program = {.compile_key = 1};
    gb_step *first, *second, *left;
    ok(gb_program_begin(&program, "first", &first));
    ok(gb_program_begin(&program, "left", &left));
    ok(gb_program_begin(&program, "second", &second));
    left->params = gb_step_alloc(left, 3, 100);
    cr_assert_not_null(left->params);
    ok(gb_program_add(&program, second));
    ok(gb_program_add(&program, first));
    cr_assert_eq(program.n_steps, 2);
    cr_expect_str_eq(program.steps[0].kernel, "second");
    cr_expect_str_eq(program.steps[1].kernel, "first");
    cr_expect_eq(&program.unfinished->step, left);
    gb_program_clear(&program);
}

Test(plan, memory_of_a_step_grows_and_shrinks)
{
    gb_step step = {0};
    int *numbers = gb_step_alloc(&step, 2, sizeof *numbers), *other;
    cr_assert_not_null(numbers);
    cr_expect(numbers[0] == 0 && numbers[1] == 0);
    numbers[0] = 1, numbers[1] = 2;
    other = gb_step_alloc(&step, 1, sizeof *other);
    *other = 3;
    numbers = gb_step_resize(&step, numbers, 1000, sizeof *numbers);
    cr_assert_not_null(numbers);
    cr_expect(numbers[0] == 1 && numbers[1] == 2 && *other == 3);
    for (int i = 2; i < 1000; i++)
        cr_expect_eq(numbers[i], 0);
    cr_expect_eq(gb_step_bytes(&step), 1001 * sizeof(int));
    numbers = gb_step_resize(&step, numbers, 1, sizeof *numbers);
    cr_expect_eq(numbers[0], 1);
    cr_expect_eq(gb_step_bytes(&step), 2 * sizeof(int));
    cr_expect_null(gb_step_alloc(&step, SIZE_MAX / 2, 3));
    cr_expect_eq(gb_step_bytes(&step), 2 * sizeof(int));
    gb_step_clear(&step);
}
