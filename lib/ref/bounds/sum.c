/* The survey of a tensor's values that tells whether sums of them are exact. */
#include "ref/bounds/sum.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include <float.h>
#include <stdlib.h>
#include <string.h>

/* FLT_MAX plus half an ulp: what rounds to infinity. */
const gb_ref_accumulator gb_ref_f32_sums = {GB_REF_U, GB_REF_ETA, 0x1.ffffffp127};

int gb_ref_grid(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & (((uint64_t)1 << 52) - 1);
    if (exponent == 0 && mantissa == 0)
        return GB_REF_GRID_OF_ZERO;
    if (exponent == 0)
        exponent = 1;
    else
        mantissa |= (uint64_t)1 << 52;
    return exponent - 1023 - 52 + __builtin_ctzll(mantissa);
}

bool gb_ref_sums_are_exact(const gb_ref_accumulator *accumulator, double total, int grid)
{
    return total <= ldexp(1 / accumulator->unit, grid) && total < accumulator->limit &&
           ldexp(1, grid) >= accumulator->tiny;
}

static const gb_ref_survey blank = {0, GB_REF_GRID_OF_ZERO, true, true, true};

static void survey_merge(gb_ref_survey *into, const gb_ref_survey *part)
{
    into->max = fmax(into->max, part->max);
    if (part->grid < into->grid)
        into->grid = part->grid;
    into->finite &= part->finite;
    into->exact &= part->exact;
    into->bounded &= part->bounded;
}

typedef struct survey_job {
    const double *value, *bound;
    int64_t count;
    gb_ref_survey *parts; /* one per thread */
} survey_job;

static void survey_part(void *context, int thread, int n_threads)
{
    const survey_job *job = context;
    gb_ref_survey survey = blank;
    int64_t begin, end;
    gb_split(job->count, thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        double magnitude = fabs(job->value[i]);
        if (!isfinite(magnitude)) {
            survey.finite = false;
            continue;
        }
        if (magnitude > survey.max)
            survey.max = magnitude;
        int grid = gb_ref_grid(magnitude);
        if (grid < survey.grid)
            survey.grid = grid;
    }
    for (int64_t i = begin; job->bound && i < end; i++) {
        if (job->bound[i] != 0)
            survey.exact = false;
        if (!isfinite(job->bound[i]))
            survey.bounded = false;
    }
    job->parts[thread] = survey;
}

gb_status gb_ref_survey_values(
        const double *value, const double *bound, int64_t count, gb_ref_survey *survey)
{
    int n_threads = gb_threads_for((double)count);
    survey_job job = {value, bound, count, gb_calloc((size_t)n_threads, sizeof(gb_ref_survey))};
    if (!job.parts)
        return GB_OUT_OF_MEMORY;
    for (int t = 0; t < n_threads; t++)
        job.parts[t] = blank;
    gb_parallel(n_threads, survey_part, &job);
    *survey = blank;
    for (int t = 0; t < n_threads; t++)
        survey_merge(survey, &job.parts[t]);
    free(job.parts);
    return GB_SUCCESS;
}
