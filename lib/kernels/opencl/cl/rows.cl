/* Reductions, softmax and norms: a work-item walks one row, which is what the reduced dims span at
 * one position of the others. The writer of the kernel defines, beside GB_ARGUMENTS and the like:
 *
 *   GB_COUNT            rows
 *   GB_POSITION         declares the position in the kept dims from `rest`
 *   GB_OUTER, GB_INNER  elements of a row: the last reduced dim, and all others together
 *   GB_OUTER_POSITION, GB_INNER_POSITION   declare the position in the reduced dims from `outer`
 *                       and `inner`
 *   GB_LOAD             the element there
 *   GB_POST(value)      hands a result on: at the element, or at the row of a reduction
 *
 * and what is computed: GB_REDUCE, GB_SOFTMAX, GB_SLOPE (of a softmax, whose result is GB_SECOND), or
 * else a norm. */
#define GB_EACH_BEGIN                                                                              \
    for (long outer = 0; outer < GB_OUTER; outer++) {                                              \
        GB_OUTER_POSITION                                                                          \
        for (long inner = 0; inner < GB_INNER; inner++) {                                          \
            GB_INNER_POSITION
#define GB_EACH_END                                                                                \
    }                                                                                              \
    }

__kernel void gb_run(GB_ARGUMENTS)
{
    GB_BEGIN
    long row = get_global_id(0), rest = row;
    if (rest >= GB_COUNT)
        return;
    GB_POSITION
#if defined(GB_REDUCE)
    float sum = GB_START;
    GB_EACH_BEGIN
    float x = GB_LOAD;
    sum = GB_REDUCE(sum, x);
    GB_EACH_END
    GB_POST(GB_FINISH(sum));
#elif defined(GB_SOFTMAX)
    /* e^(x - max) and below; results too small for normal numbers are 0. */
    float top = GB_START, sum = 0.0f;
    GB_EACH_BEGIN
    top = gb_max(GB_LOAD, top);
    GB_EACH_END
    GB_EACH_BEGIN
    sum += gb_exp(GB_LOAD - top);
    GB_EACH_END
    bool zero = GB_INF_AS_ZERO && sum == 0.0f;
    float log_sum = gb_log(sum), factor = gb_div(1.0f, zero ? 1.0f : sum);
#ifdef GB_STATS
    GB_STATS(zero ? 0.0f : top + log_sum);
#endif
    GB_EACH_BEGIN
    float x = GB_LOAD - top;
    GB_POST(GB_SOFTMAX(x));
    GB_EACH_END
#elif defined(GB_SLOPE)
    float sum = 0.0f;
    GB_EACH_BEGIN
    float g = GB_LOAD, y = GB_SECOND;
    sum += GB_TERM(g, y);
    GB_EACH_END
    GB_EACH_BEGIN
    float g = GB_LOAD, y = GB_SECOND;
    GB_POST(GB_SLOPE(g, y));
    GB_EACH_END
#else
    float mean = 0.0f, square = 0.0f, n = (float)(GB_OUTER * GB_INNER);
#ifdef GB_CENTERED
    GB_EACH_BEGIN
    mean += GB_LOAD;
    GB_EACH_END
    mean = gb_div(mean, n);
#endif
    GB_EACH_BEGIN
    float x = GB_LOAD - mean;
    square += x * x;
    GB_EACH_END
    float variance = gb_div(square, n);
#ifdef GB_STATS
    GB_STATS(mean, variance);
#endif
    float scale = gb_div(1.0f, gb_sqrt(variance + GB_EPSILON));
    GB_EACH_BEGIN
    float y = (GB_LOAD - mean) * scale;
#ifdef GB_GAMMA
    y *= GB_GAMMA(GB_CHANNEL);
#endif
#ifdef GB_BETA
    y += GB_BETA(GB_CHANNEL);
#endif
    GB_POST(y);
    GB_EACH_END
#endif
}
