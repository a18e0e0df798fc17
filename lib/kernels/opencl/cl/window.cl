/* Windows over an image: pools, convolutions of few channels a group, and the gradients of both. A result
 * gathers what its taps find along three axes, each with the numbers below: tap k at position o meets the
 * cell o * STEP + k * DILATION - PAD, divided by ZEROS where that leaves no rest, if it is one of SIZE.
 *
 * Without lanes a work-item computes one result. In lanes, it computes neighbouring ones: positions along
 * the last axis, the line (GB_ALONG_LINE), or channels. What the taps of all axes but the line find is the
 * same for all results of a row: it is listed once. Of the line, lanes that meet cells of the image only
 * are read at once, others are read, if that does not lead out of the tensor, and left out.
 *
 * The writer of the kernel defines, beside GB_ARGUMENTS and the like:
 *   GB_AXES                the numbers of the axes; of the line those of one cell
 *   GB_LINE                the numbers of the line
 *   GB_LINE_TAPS           its taps: a number in the text where they are few
 *   GB_MOST_LINE_TAPS      a number that is not less
 *   GB_LINE_FORM           how neighbours along the line are read, as below
 *   GB_MOST_TAPS           in lanes, of a row
 *   GB_CHANNELS, GB_CHANNEL_SOURCE, GB_CHANNEL_OTHER   channels of the source that are summed up
 *   GB_START               what a sum begins with
 *   GB_TAKE                takes the cell x: of what it may use, `sum` and `place` are kept
 *   GB_LOAD(i), GB_READ(i), GB_GATHER(i, stride)   an element of the source, and lanes of them
 *   GB_MOST                where its last element lies
 *   GB_PLACES              only where GB_TAKE compares `found`: GB_LOAD_PLACE(i), GB_READ_PLACES(i),
 *                          GB_GATHER_PLACES(i, stride) and GB_MOST_PLACE of a second source, of integers
 *   GB_PLACE               where `place` is what is returned
 *   GB_COUNTS              numbers of the axes by which gb_count() counts
 *   GB_SHARES              where GB_TAKE uses `share`, one by the cells that a window counts */
enum {
    GB_SIZE,
    GB_KERNEL,
    GB_STEP,
    GB_DILATION,
    GB_PAD,
    GB_ZEROS,
    GB_SOURCE,   /* elements of the source from cell to cell */
    GB_BY_TAP,   /* what `other` grows by from tap to tap, */
    GB_BY_CELL,  /* and from cell to cell */
    GB_AXIS
};
/* Unrolled they would only take long to compile. */
#define GB_AS_IT_IS _Pragma("clang loop unroll(disable) vectorize(disable)")

static inline long gb_cell(__global const long *axis, long position, long tap)
{
    long q = position * axis[GB_STEP] + tap * axis[GB_DILATION] - axis[GB_PAD];
    if (axis[GB_ZEROS] > 1) {
        if (q < 0 || q % axis[GB_ZEROS] != 0)
            return -1;
        q /= axis[GB_ZEROS];
    }
    return q < axis[GB_SIZE] ? q : -1;
}

#ifdef GB_COUNTS
/* Cells of a window that a mean counts. */
enum { GB_COUNT_STEP, GB_COUNT_PAD, GB_COUNT_KERNEL, GB_COUNT_LOW, GB_COUNT_HIGH, GB_COUNT };
GB_INLINE float gb_count(__global const long *count, long window)
{
    long start = window * count[GB_COUNT_STEP] - count[GB_COUNT_PAD];
    long end = min(start + count[GB_COUNT_KERNEL], count[GB_COUNT_HIGH]);
    return (float)max(0L, end - max(start, count[GB_COUNT_LOW]));
}
#ifdef GB_IN_LANES
GB_INLINE GB_FLOATS gb_count(__global const long *count, GB_INTS window)
{
    GB_INTS start = window * (int)count[GB_COUNT_STEP] - (int)count[GB_COUNT_PAD];
    GB_INTS end = min(start + (int)count[GB_COUNT_KERNEL], (int)count[GB_COUNT_HIGH]);
    return GB_TO_F(max(end - max(start, (int)count[GB_COUNT_LOW]), 0));
}
#endif
#define gb_count_but_line(o0, o1)                                                                  \
    (gb_count(p + GB_COUNTS, o0) * gb_count(p + GB_COUNTS + GB_COUNT, o1))
#define gb_count_of_line(o2) gb_count(p + GB_COUNTS + 2 * GB_COUNT, o2)
#ifdef GB_ALONG_LINE
#define gb_divisor(o0, o1, o2)                                                                     \
    (gb_count_but_line(o0, o1) * gb_count_of_line((int)(o2) + GB_LANE_NUMBERS))
#else
#define gb_divisor(o0, o1, o2) (gb_count_but_line(o0, o1) * gb_count_of_line(o2))
#endif
#endif
#ifndef GB_SHARES
#define gb_share(o0, o1, o2) 1.0f
#elif defined(GB_ALONG_LINE)
#define gb_share(o0, o1, o2) gb_div(1.0f, gb_count_but_line(o0, o1))
#else
#define gb_share(o0, o1, o2) gb_div(1.0f, gb_divisor(o0, o1, o2))
#endif
#ifdef GB_FMA
#define GB_ADD_PRODUCT(a, b, c) fma(a, b, c)
#else
#define GB_ADD_PRODUCT(a, b, c) ((a) * (b) + (c))
#endif

#define GB_EACH_ALONG(axis, k, q, o)                                                               \
    GB_AS_IT_IS                                                                                    \
    for (long k = 0, q; k < (axis)[GB_KERNEL]; k++)                                                \
        if ((q = gb_cell(axis, o, k)) >= 0)
#define GB_EACH_TAP(o0, o1, o2)                                                                    \
    GB_EACH_ALONG(a0, k0, q0, o0)                                                                  \
        GB_EACH_ALONG(a1, k1, q1, o1)                                                              \
            GB_EACH_ALONG(a2, k2, q2, o2)
#define GB_SUM_OVER(number) (q0 * a0[number] + q1 * a1[number] + q2 * a2[number])
#define GB_TAP_AT           GB_SUM_OVER(GB_SOURCE)
#define GB_TAP_OTHER                                                                               \
    (GB_SUM_OVER(GB_BY_CELL) + k0 * a0[GB_BY_TAP] + k1 * a1[GB_BY_TAP] + k2 * a2[GB_BY_TAP])

#ifdef GB_PLACE
#define GB_FOUND       place
#define GB_FOUND_TYPE  GB_INTS
#else
#define GB_FOUND       sum
#define GB_FOUND_TYPE  GB_FLOATS
#endif
#define GB_EACH_CHANNEL                                                                            \
    GB_AS_IT_IS                                                                                    \
    for (long c = 0; c < GB_CHANNELS;                                                              \
            c++, first += GB_CHANNEL_SOURCE, others += GB_CHANNEL_OTHER)

#ifndef GB_OF_WEIGHTS
#ifndef GB_IN_LANES
static GB_FOUND_TYPE gb_window(GB_PARAMETERS, long first, long others, int own, long o0, long o1, long o2)
{
    __global const long *a0 = p + GB_AXES, *a1 = a0 + GB_AXIS, *a2 = a1 + GB_AXIS;
    float sum = GB_START;
    int place = -1;
    GB_EACH_CHANNEL
    GB_EACH_TAP(o0, o1, o2) {
        long other = others + GB_TAP_OTHER;
        float share = gb_share(q0, q1, q2), x = GB_LOAD(first + GB_TAP_AT);
#ifdef GB_PLACES
        int found = GB_LOAD_PLACE(other);
#endif
        int cell_place = (int)other;
        GB_TAKE
    }
    return GB_FOUND;
}
#else
typedef struct gb_tap {
    long at, other;
    float share;
} gb_tap;
typedef struct gb_taps {
    int n;
    gb_tap list[GB_MOST_TAPS];
} gb_taps;

static void gb_list_taps(GB_PARAMETERS, gb_taps *taps, long o0, long o1, long o2)
{
    __global const long *a0 = p + GB_AXES, *a1 = a0 + GB_AXIS, *a2 = a1 + GB_AXIS;
    int n = 0;
    GB_EACH_TAP(o0, o1, o2) {
        gb_tap *tap = &taps->list[n++];
        tap->at = GB_TAP_AT;
        tap->other = GB_TAP_OTHER;
        tap->share = gb_share(q0, q1, q2);
    }
    taps->n = n;
}
#define GB_EACH_LISTED                                                                             \
    GB_AS_IT_IS                                                                                    \
    for (int t = 0; t < taps->n; t++)

#ifndef GB_ALONG_LINE
GB_INLINE GB_FOUND_TYPE gb_window(
        GB_PARAMETERS, const gb_taps *taps, long first, long others, int own, int lanes)
{
    GB_FLOATS sum = GB_START;
    GB_INTS place = -1;
    GB_EACH_CHANNEL
    GB_EACH_LISTED {
        long other = others + taps->list[t].other;
        float share = taps->list[t].share;
        GB_FLOATS x = GB_READ(first + taps->list[t].at);
#ifdef GB_PLACES
        GB_INTS found = GB_READ_PLACES(other);
#endif
        int cell_place = (int)other;
        GB_TAKE
    }
    return GB_FOUND;
}
#endif
#endif
#endif

#ifdef GB_ALONG_LINE
/* Forms of lines: neighbours; every second one; each one twice, with or without a cell in between;
 * at any distance; cells that are found one by one. */
#if GB_LINE_FORM == 1
#define GB_LINE_STEP            1
#define GB_LINE_ZEROS           1
#define GB_LINE_SPAN            (GB_LANES - 1)
#define GB_LINE_OF(read, gather, i) read(i)
#elif GB_LINE_FORM == 2
#define GB_LINE_STEP            2
#define GB_LINE_ZEROS           1
#define GB_LINE_SPAN            (2 * GB_LANES - 2)
#define GB_LINE_OF(read, gather, i) (GB_FLOATS)((read(i)).even, (read(i + GB_LANES - 1)).odd)
#elif GB_LINE_FORM == 3
#define GB_LINE_STEP            1
#define GB_LINE_ZEROS           2
#define GB_LINE_SPAN            (GB_LANES - 1)
#if GB_LANES == 16
#define GB_LINE_OF(read, gather, i) (read(i)).s0011223344556677
#elif GB_LANES == 8
#define GB_LINE_OF(read, gather, i) (read(i)).s00112233
#elif GB_LANES == 4
#define GB_LINE_OF(read, gather, i) (read(i)).s0011
#else
#define GB_LINE_OF(read, gather, i) (read(i)).s00
#endif
#elif GB_LINE_FORM == 4
#define GB_LINE_STEP            ((int)line[GB_STEP])
#define GB_LINE_ZEROS           1
#define GB_LINE_SPAN            ((GB_LANES - 1) * line[GB_STEP] * stride)
#define GB_LINE_OF(read, gather, i) gather(i, line[GB_STEP] * stride)
#else
#define GB_LINE_STEP            ((int)line[GB_STEP])
#define GB_LINE_ZEROS           ((int)line[GB_ZEROS])
#endif

/* The tap k at the lanes from q on, the first one's place before it is divided by GB_ZEROS, of a line that
 * begins at `from`. */
#define GB_AT_TAP      (q + k * line[GB_DILATION])
#define GB_CELLS_OF_TAP ((int)GB_AT_TAP + GB_LANE_NUMBERS * GB_LINE_STEP)
#ifdef GB_LINE_OF
#define GB_READ_AT(from, stride, q) (from + ((q + GB_LINE_ZEROS - 1) >> (GB_LINE_ZEROS - 1)) * stride)
#endif

/* Lanes that are found one by one. */
#define GB_CELLS(name, type, result, load)                                                         \
    static result name(GB_PARAMETERS, long from, long stride, long q, GB_INTS inside)              \
    {                                                                                              \
        __global const long *line = p + GB_LINE;                                                   \
        int there[GB_LANES];                                                                       \
        type part[GB_LANES];                                                                       \
        GB_STORE_WORDS(inside, 0, there);                                                          \
        GB_AS_IT_IS                                                                                \
        for (int l = 0; l < GB_LANES; l++)                                                         \
            part[l] = there[l] ? load(from + (q + l * GB_LINE_STEP) / GB_LINE_ZEROS * stride) : 0; \
        return GB_LOAD_WORDS(0, part);                                                             \
    }
GB_CELLS(gb_cells, float, GB_FLOATS, GB_LOAD)
#ifdef GB_PLACES
GB_CELLS(gb_places, int, GB_INTS, GB_LOAD_PLACE)
#endif

#ifndef GB_OF_WEIGHTS
#ifdef GB_SHARES
#define GB_LINE_SHARE GB_FLOATS share = taps->list[t].share * shares[k];
#else
#define GB_LINE_SHARE
#endif
#define GB_TAKE_CELLS                                                                       \
    GB_INTS cells = GB_CELLS_OF_TAP / GB_LINE_ZEROS;                                               \
    GB_LINE_SHARE                                                                                  \
    GB_INTS cell_place = (int)other + cells * (int)line[GB_BY_CELL];                               \
    GB_TAKE
#define GB_TAKE_INSIDE                                                                             \
    GB_FLOATS sum_before = sum;                                                                    \
    GB_INTS place_before = place;                                                                  \
    GB_TAKE_CELLS                                                                                \
    sum = inside[k] ? sum : sum_before;                                                            \
    place = inside[k] ? place : place_before;
#define GB_EACH_ROW_OF_CELLS                                                                       \
    GB_EACH_CHANNEL                                                                                \
    GB_EACH_LISTED
#define GB_OTHER_OF_TAP (others + taps->list[t].other + k * line[GB_BY_TAP])

GB_INLINE GB_FOUND_TYPE gb_window(GB_PARAMETERS, const gb_taps *taps, long first, long others,
        GB_INTS own, long position, int lanes)
{
    __global const long *line = p + GB_LINE;
    long stride = line[GB_SOURCE], q = position * GB_LINE_STEP - line[GB_PAD];
    long last = q + (GB_LINE_TAPS - 1) * line[GB_DILATION];
    GB_FLOATS sum = GB_START;
    GB_INTS place = -1;
#ifdef GB_SHARES
    GB_FLOATS shares[GB_MOST_LINE_TAPS];
    GB_LINE_LOOP
    for (int k = 0; k < GB_LINE_TAPS; k++)
        shares[k] = gb_div(1.0f, gb_count_of_line(GB_CELLS_OF_TAP / GB_LINE_ZEROS));
#endif
#if defined(GB_LINE_OF) && GB_LINE_FORM != 3
    if (q >= 0 && last + (GB_LANES - 1) * GB_LINE_STEP < line[GB_SIZE]) {
        GB_EACH_ROW_OF_CELLS {
            long from = first + taps->list[t].at;
            GB_LINE_LOOP
            for (int k = 0; k < GB_LINE_TAPS; k++) {
                long other = GB_OTHER_OF_TAP;
                GB_FLOATS x = GB_LINE_OF(GB_READ, GB_GATHER, from + GB_AT_TAP * stride);
#ifdef GB_PLACES
                GB_INTS found = GB_LINE_OF(
                        GB_READ_PLACES, GB_GATHER_PLACES, other + GB_AT_TAP * line[GB_BY_CELL]);
#endif
                GB_TAKE_CELLS
            }
        }
        return GB_FOUND;
    }
#endif
    GB_INTS inside[GB_MOST_LINE_TAPS];
    GB_LINE_LOOP
    for (int k = 0; k < GB_LINE_TAPS; k++) {
        GB_INTS cells = GB_CELLS_OF_TAP;
        inside[k] = cells >= 0 && cells <= ((int)line[GB_SIZE] - 1) * GB_LINE_ZEROS &&
                    cells % GB_LINE_ZEROS == 0;
    }
    GB_EACH_ROW_OF_CELLS {
        long from = first + taps->list[t].at;
#ifdef GB_LINE_OF
        bool readable = GB_READ_AT(from, stride, q) >= 0 &&
                        GB_READ_AT(from, stride, last) + GB_LINE_SPAN <= GB_MOST;
#ifdef GB_PLACES
        long place_at = others + taps->list[t].other, by = line[GB_BY_CELL];
        readable = readable && GB_READ_AT(place_at, by, q) >= 0 &&
                   GB_READ_AT(place_at, by, last) + GB_LINE_SPAN <= GB_MOST_PLACE;
#endif
        if (readable) {
            GB_LINE_LOOP
            for (int k = 0; k < GB_LINE_TAPS; k++) {
                long other = GB_OTHER_OF_TAP;
                GB_FLOATS x =
                        GB_LINE_OF(GB_READ, GB_GATHER, GB_READ_AT(from, stride, GB_AT_TAP));
#ifdef GB_PLACES
                GB_INTS found = GB_LINE_OF(
                        GB_READ_PLACES, GB_GATHER_PLACES, GB_READ_AT(place_at, by, GB_AT_TAP));
#endif
                GB_TAKE_INSIDE
            }
            continue;
        }
#endif
        GB_AS_IT_IS
        for (int k = 0; k < GB_LINE_TAPS; k++) {
            long other = GB_OTHER_OF_TAP;
            GB_FLOATS x = gb_cells(GB_PASSED, from, stride, GB_AT_TAP, inside[k]);
#ifdef GB_PLACES
            GB_INTS found = gb_places(GB_PASSED, other, line[GB_BY_CELL], GB_AT_TAP, inside[k]);
#endif
            GB_TAKE_INSIDE
        }
    }
    return GB_FOUND;
}
#endif
#endif

/* Gradients of weights, in lanes: a work-item sums the products of both sides over all positions, for all
 * taps of the line at one of the other axes; GB_LOAD() and so on are the image's. The writer defines
 *   GB_BATCH, GB_BATCH_SOURCE, GB_BATCH_PLAIN   images, and elements from one to the next
 *   GB_PLAIN             numbers: positions along each axis, and elements of the other side from one to
 *                        the next
 *   GB_READ_PLAIN(i, lanes)   lanes of that side
 *   GB_RESULT_POSITION   declares the position of results, the taps k0 and k1, and where both sides begin,
 *                        `source` and `plain`; along channels `lanes`
 *   GB_POST(k, sum)      takes the sum of tap k: a number with positions in lanes, else lanes */
#ifdef GB_OF_WEIGHTS
enum { GB_OUT, GB_PLAIN_STRIDE, GB_SIDE };
#define GB_EACH_LINE_TAP                                                                           \
    _Pragma("unroll")                                                                              \
    for (int k = 0; k < GB_LINE_TAPS; k++)

#ifdef GB_ALONG_LINE
/* The products of a line: it begins at `from` in the image, at `at` on the other side. */
static inline void gb_add_line(GB_PARAMETERS, long from, long at, GB_FLOATS *sums)
{
    __global const long *line = p + GB_LINE, *side = p + GB_PLAIN + 2 * GB_SIDE;
    long stride = line[GB_SOURCE];
    GB_AS_IT_IS
    for (long x = 0; x < side[GB_OUT]; x += GB_LANES) {
        int lanes = (int)min((long)GB_LANES, side[GB_OUT] - x);
        long q = x * GB_LINE_STEP - line[GB_PAD];
        long last = q + (GB_LINE_TAPS - 1) * line[GB_DILATION];
        GB_FLOATS given = GB_READ_PLAIN(at + x * side[GB_PLAIN_STRIDE], lanes);
        if (lanes == GB_LANES && q >= 0 &&
                last + (GB_LANES - 1) * GB_LINE_STEP < line[GB_SIZE]) {
            GB_EACH_LINE_TAP
                sums[k] = GB_ADD_PRODUCT(
                        given, GB_LINE_OF(GB_READ, GB_GATHER, from + GB_AT_TAP * stride), sums[k]);
            continue;
        }
        bool readable = GB_READ_AT(from, stride, q) >= 0 &&
                        GB_READ_AT(from, stride, last) + GB_LINE_SPAN <= GB_MOST;
        GB_EACH_LINE_TAP {
            GB_INTS cells = GB_CELLS_OF_TAP;
            GB_INTS inside =
                    cells >= 0 && cells < (int)line[GB_SIZE] && GB_LANE_NUMBERS < lanes;
            GB_FLOATS found;
            if (readable)
                found = GB_LINE_OF(GB_READ, GB_GATHER, GB_READ_AT(from, stride, GB_AT_TAP));
            else
                found = gb_cells(GB_PASSED, from, stride, GB_AT_TAP, inside);
            sums[k] = inside ? GB_ADD_PRODUCT(given, found, sums[k]) : sums[k];
        }
    }
}
#define GB_ADD_LINE(from, at) gb_add_line(GB_PASSED, from, at, sums);
#define GB_TAKE_SUM(k)                                                                             \
    float part[GB_LANES], sum = 0.0f;                                                              \
    GB_STORE_WORDS(totals[k], 0, part);                                                            \
    for (int l = 0; l < GB_LANES; l++)                                                             \
        sum += part[l];                                                                            \
    GB_POST(k, sum);
#else
static inline void gb_add_line(GB_PARAMETERS, long from, long at, int lanes, GB_FLOATS *sums)
{
    __global const long *line = p + GB_LINE, *side = p + GB_PLAIN + 2 * GB_SIDE;
    GB_AS_IT_IS
    for (long x = 0; x < side[GB_OUT]; x++) {
        GB_FLOATS given = GB_READ_PLAIN(at + x * side[GB_PLAIN_STRIDE], lanes);
        GB_EACH_LINE_TAP {
            long q = gb_cell(line, x, k);
            if (q >= 0)
                sums[k] = GB_ADD_PRODUCT(given, GB_READ(from + q * line[GB_SOURCE]), sums[k]);
        }
    }
}
#define GB_ADD_LINE(from, at) gb_add_line(GB_PASSED, from, at, lanes, sums);
#define GB_TAKE_SUM(k) GB_POST(k, totals[k]);
#endif

__kernel GB_ITEMS void gb_run(GB_ARGUMENTS)
{
    GB_BEGIN
    __global const long *a0 = p + GB_AXES, *a1 = a0 + GB_AXIS;
    __global const long *side0 = p + GB_PLAIN, *side1 = side0 + GB_SIDE;
    GB_FLOATS totals[GB_LINE_TAPS];
    GB_RESULT_POSITION
    GB_EACH_LINE_TAP
        totals[k] = 0.0f;
    GB_AS_IT_IS
    for (long n = 0; n < GB_BATCH; n++) {
        GB_FLOATS sums[GB_LINE_TAPS]; /* of an image, so that numbers of one size are added */
        GB_EACH_LINE_TAP
            sums[k] = 0.0f;
        GB_AS_IT_IS
        for (long o0 = 0; o0 < side0[GB_OUT]; o0++) {
            long q0 = gb_cell(a0, o0, k0);
            if (q0 < 0)
                continue;
            GB_AS_IT_IS
            for (long o1 = 0; o1 < side1[GB_OUT]; o1++) {
                long q1 = gb_cell(a1, o1, k1);
                if (q1 < 0)
                    continue;
                GB_ADD_LINE(source + n * GB_BATCH_SOURCE + q0 * a0[GB_SOURCE] + q1 * a1[GB_SOURCE],
                        plain + n * GB_BATCH_PLAIN + o0 * side0[GB_PLAIN_STRIDE] +
                                o1 * side1[GB_PLAIN_STRIDE])
            }
        }
        GB_EACH_LINE_TAP
            totals[k] += sums[k];
    }
    GB_EACH_LINE_TAP {
        GB_TAKE_SUM(k)
    }
}
#endif
