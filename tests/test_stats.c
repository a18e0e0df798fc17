/* The statistics of compare, ab and history on values whose answer is known. */
#include "cli/stats/effect.h"
#include "cli/stats/steps.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

/* Between -1 and 1, without order. */
static double ripple(size_t i)
{
    uint32_t x = (uint32_t)(i + 1) * 2654435761u;
    x = (x ^ x >> 15) * 2246822519u;
    return (double)((x ^ x >> 13) % 201) / 100 - 1;
}

Test(effect, a_change_is_found_with_its_sign)
{
    double a[6], b[6];
    gb_effect effect;
    for (size_t i = 0; i < 6; i++) {
        a[i] = 1000 * (1 + 0.005 * ripple(i));
        b[i] = 1100 * (1 + 0.005 * ripple(i + 6));
    }
    gb_stats_unpaired(a, 6, b, 6, 0.99, &effect);
    cr_assert(fabs(effect.change - 0.1) < 0.01);
    cr_assert(effect.low > 0.08 && effect.high < 0.12);
    cr_assert_eq(gb_stats_judge(&effect, 0.03, 0), CHANGE_SLOWER);
    gb_stats_unpaired(b, 6, a, 6, 0.99, &effect);
    cr_assert_eq(gb_stats_judge(&effect, 0.03, 0), CHANGE_FASTER);
    gb_stats_unpaired(a, 6, a, 6, 0.99, &effect);
    cr_assert_eq(effect.change, 0);
    cr_assert_eq(gb_stats_judge(&effect, 0.03, 0), CHANGE_SAME);
}

Test(effect, few_or_scattered_values_are_unsure)
{
    double a[] = {1000, 1001, 1002, 1003}, b[] = {1200, 1201, 1202, 1203, 1204, 1205};
    gb_effect effect;
    gb_stats_unpaired(a, 4, b, 6, 0.99, &effect);
    cr_assert_eq(gb_stats_judge(&effect, 0.03, 0), CHANGE_UNSURE);
    double c[] = {1000, 1500, 900, 2000, 1100, 950}, d[] = {1200, 1000, 1700, 1050, 900, 1800};
    gb_stats_unpaired(c, 6, d, 6, 0.99, &effect);
    cr_assert_eq(gb_stats_judge(&effect, 0.03, 0), CHANGE_UNSURE);
}

/* As of a machine that takes 40 % longer for minutes: most visits of one report fell into them. */
Test(effect, two_states_of_the_machine_are_unsure)
{
    double a[] = {1000, 1001, 1002, 1003, 1004, 1005, 1006};
    double b[] = {1020, 1022, 1024, 1400, 1402, 1404, 1406};
    gb_effect effect;
    gb_stats_unpaired(a, 7, b, 7, 0.99, &effect);
    cr_assert(effect.change > 0.35 && effect.low > 0 && effect.low < 0.03);
    cr_assert_eq(gb_stats_judge(&effect, 0.05, 0), CHANGE_UNSURE);
    gb_stats_unpaired(b, 7, a, 7, 0.99, &effect);
    cr_assert_eq(gb_stats_judge(&effect, 0.05, 0), CHANGE_UNSURE);
}

Test(effect, one_bad_visit_does_not_decide)
{
    double a[] = {1000, 1001, 1002, 1003, 1004, 1005}, b[] = {1000, 1001, 2400, 1003, 1004, 1005};
    gb_effect effect;
    gb_stats_unpaired(a, 6, b, 6, 0.99, &effect);
    cr_assert(fabs(effect.change) < 0.01);
    cr_assert_eq(gb_stats_judge(&effect, 0.03, 0) == CHANGE_SLOWER, false);
}

Test(effect, pairs_cancel_what_both_have)
{
    double logs[20];
    gb_effect effect;
    for (size_t i = 0; i < 20; i++)
        logs[i] = log(1.03) + 0.01 * ripple(i);
    gb_stats_paired(logs, 20, 0.99, &effect);
    cr_assert(fabs(effect.change - 0.03) < 0.01);
    cr_assert_eq(gb_stats_judge(&effect, 0.01, 0), CHANGE_SLOWER);
    for (size_t i = 0; i < 20; i++)
        logs[i] -= log(1.03);
    gb_stats_paired(logs, 20, 0.99, &effect);
    cr_assert_eq(gb_stats_judge(&effect, 0.01, 0), CHANGE_SAME);
}

Test(effect, within_the_floor_is_no_change)
{
    gb_effect effect = {.change = 0.02, .low = 0.015, .high = 0.025};
    cr_assert_eq(gb_stats_judge(&effect, 0.03, 0), CHANGE_SAME);
    cr_assert_eq(gb_stats_judge(&effect, 0.01, 0), CHANGE_SLOWER);
    cr_assert_eq(gb_stats_judge(&effect, 0.01, 0.05), CHANGE_UNSURE);
    effect.high = 0.1;
    cr_assert_eq(gb_stats_judge(&effect, 0.03, 0), CHANGE_UNSURE);
}

Test(steps, are_found_where_they_are)
{
    double values[40];
    gb_step steps[4];
    for (size_t i = 0; i < 40; i++)
        values[i] = (i < 15 ? 1000 : i < 30 ? 1050 : 900) * (1 + 0.01 * ripple(i));
    cr_assert_eq(gb_stats_steps(values, 40, 0.02, steps, 4), 2);
    cr_assert_eq(steps[0].at, 15);
    cr_assert_eq(steps[1].at, 30);
    cr_assert(fabs(steps[0].change - 0.05) < 0.015);
    cr_assert(fabs(steps[1].change + 0.143) < 0.015);
}

Test(steps, noise_and_a_single_outlier_are_none)
{
    double values[40];
    gb_step steps[4];
    for (size_t i = 0; i < 40; i++)
        values[i] = 1000 * (1 + 0.01 * ripple(i));
    cr_assert_eq(gb_stats_steps(values, 40, 0.02, steps, 4), 0);
    values[20] = 3000;
    cr_assert_eq(gb_stats_steps(values, 40, 0.02, steps, 4), 0);
    cr_assert_eq(gb_stats_steps(values, 4, 0.02, steps, 4), 0);
}

Test(steps, noise_is_that_between_steps)
{
    double values[40];
    for (size_t i = 0; i < 40; i++)
        values[i] = (i < 20 ? 1000 : 1300) * (1 + 0.01 * ripple(i));
    double noise = gb_stats_noise(values, 40);
    cr_assert(noise > 0.002 && noise < 0.02);
    cr_assert_eq(gb_stats_noise(values, 3), 0);
}
