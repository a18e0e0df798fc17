/* A pointwise convolution and the depthwise one behind it: a work-item has some rows of results and GB_BLOCKS
 * blocks of GB_LANES channels. It makes the rows of the image between the two as they are needed and keeps the
 * last GB_RING of them. In lanes there are channels or, with GB_ALONG_X, positions. Behind tiles.cl; the writer
 * defines, beside GB_ARGUMENTS and the like:
 *   GB_WORK_ITEMS, GB_GROUPS, GB_BANDS   in all; those that share the channels, and the rows of an image
 *   GB_BAND_ROWS                 rows of results of one
 *   GB_CHANNELS, GB_TERMS        of the image between; of the source, a number in the text
 *   GB_HEIGHT, GB_WIDTH, GB_OUT_HEIGHT, GB_OUT_WIDTH   of the image, and of results
 *   GB_TAPS_Y, GB_STEP_Y, GB_DILATION_Y, GB_PAD_Y, and the same of X
 *   GB_LINE                      positions of a row that is kept, with padding
 *   GB_POSITIONS                 that are made at a time, at most as many as lanes and whole tiles
 *   GB_SOURCE(image, k, y, x, n)   n neighbours along x, or with GB_ALONG_TERMS, without GB_ALONG_X, along k
 *   GB_WEIGHT(k, c), GB_TAP(c, y, x), GB_BIAS(c)   elements; the bias may be absent
 *   GB_PACKED                    instead of GB_WEIGHT: in vectors of channels, in global memory
 *   GB_BETWEEN(image, c, y, x, n, t)   from t[0] to t[1], of n lanes; absent where there is nothing to be done
 *   GB_AFTER(image, c, y, x, n, v)   takes results */
#define GB_WIDE(n) (((n) + GB_LANES - 1) / GB_LANES * GB_LANES)
#define GB_TAPS (GB_TAPS_Y * GB_TAPS_X)
#ifdef GB_ALONG_TERMS
#define GB_SOURCE_ROW    GB_WIDE(GB_TERMS)
#define GB_SOURCE_FLOATS (GB_LANES * GB_SOURCE_ROW)
#else
#define GB_SOURCE_FLOATS (GB_LANES * GB_TERMS)
#endif
/* What is kept of a row: a line of each channel of a block, or a vector of each position. Lanes that are read
 * at once may begin near the end of a line. */
#ifdef GB_ALONG_X
#define GB_LINE_FLOATS (GB_LINE + 2 * GB_LANES)
#define GB_ROW_FLOATS  (GB_LANES * GB_LINE_FLOATS)
#else
#define GB_ROW_FLOATS (GB_LANES * GB_LINE)
#endif
#ifdef GB_PACKED
#define GB_WEIGHTS __global const float *
#ifdef GB_ALONG_X
GB_MULTIPLIER(gb_multiply_weights, __global, __private, __private)
#else
GB_MULTIPLIER(gb_multiply_weights, __private, __global, __private)
#endif
#else
#define GB_WEIGHTS const float *
#define gb_multiply_weights gb_multiply
#endif
/* Unrolled they would only take long to compile. */
#define GB_AS_IT_IS _Pragma("clang loop unroll(disable) vectorize(disable)")

/* n positions of the source, from x on, for tiles of them. */
static inline void gb_load_source(GB_PARAMETERS, long image, long y, long x, int n, float *source)
{
    GB_AS_IT_IS
#ifdef GB_ALONG_TERMS
    for (int i = 0; i < n; i++)
        for (int k = 0; k < GB_TERMS; k += GB_LANES)
            vstore16(GB_SOURCE(image, k, y, x + i, min(GB_LANES, GB_TERMS - k)), 0,
                    source + i * GB_SOURCE_ROW + k);
#else
    for (int k = 0; k < GB_TERMS; k++)
        vstore16(GB_SOURCE(image, k, y, x, n), k, source);
#endif
}

/* A tile has a vector for each of its channels, with n positions in lanes, or for each position, with channels. */
#ifdef GB_ALONG_X
#define GB_VECTORS       channels
#define GB_LANES_THERE   n
#define GB_CHANNEL_OF(i) (c + (i))
#define GB_POSITION_OF(i) x
#else
#define GB_VECTORS       n
#define GB_LANES_THERE   channels
#define GB_CHANNEL_OF(i) c
#define GB_POSITION_OF(i) (x + (i))
#endif

/* Sums of n positions of `channels` channels of the image. */
static inline void gb_multiply_tile(
        int n, int channels, GB_WEIGHTS weights, const float *source, float *tile)
{
    GB_AS_IT_IS
    for (int i = 0; i < GB_VECTORS; i += GB_TILE_ROWS)
#ifdef GB_ALONG_X
        gb_multiply_weights(weights + i, 1, GB_LANES, source, GB_TERMS, tile + i * GB_LANES, GB_LANES, false);
#elif defined(GB_ALONG_TERMS)
        gb_multiply_weights(source + i * GB_SOURCE_ROW, GB_SOURCE_ROW, 1, weights, GB_TERMS,
                tile + i * GB_LANES, GB_LANES, false);
#else
        gb_multiply_weights(source + i, 1, GB_LANES, weights, GB_TERMS, tile + i * GB_LANES, GB_LANES, false);
#endif
}

/* Makes n positions of `channels` channels of the image, from c on; `to`: where position 0 of the first one is
 * kept. */
static inline void gb_make_tile(GB_PARAMETERS, long image, long c, int channels, long y, long x, int n,
        GB_WEIGHTS weights, const float *bias, const float *source, float *to)
{
    float tile[GB_LANES * GB_LANES];
    gb_multiply_tile(n, channels, weights, source, tile);
    GB_AS_IT_IS
    for (int i = 0; i < GB_VECTORS; i++) {
#ifdef GB_ALONG_X
        float16 made = vload16(i, tile) + bias[i];
#else
        float16 made = vload16(i, tile) + vload16(0, bias);
#endif
#ifdef GB_BETWEEN
        float16 t[2] = {made, (float16)(0.0f)};
        GB_BETWEEN(image, GB_CHANNEL_OF(i), y, GB_POSITION_OF(i), GB_LANES_THERE, t);
        made = t[1];
#endif
#ifdef GB_ALONG_X
        vstore16(GB_LANE_NUMBERS < n ? made : (float16)(0.0f), 0, to + i * GB_LINE_FLOATS + x);
#else
        vstore16(made, x + i, to);
#endif
    }
}

#ifdef GB_ALONG_X
/* Neighbouring results find what lies GB_STEP_X apart. */
static inline float16 gb_line_lanes(const float *from)
{
#if GB_STEP_X == 1
    return vload16(0, from);
#elif GB_STEP_X == 2
    return (float16)(vload16(0, from).even, vload16(1, from).even);
#else
    float part[GB_LANES];
    for (int l = 0; l < GB_LANES; l++)
        part[l] = from[min(l * GB_STEP_X, GB_LINE - 1)];
    return vload16(0, part);
#endif
}
#endif

/* What a row that is kept adds to vector i of results, from position x on: `taps` are those of the row. */
static inline float16 gb_add_taps(const float *row, long x, int i, const float *taps, float16 sum)
{
    for (int k = 0; k < GB_TAPS_X; k++)
#ifdef GB_ALONG_X
        sum = GB_ADD_PRODUCT((float16)(taps[k * GB_LANES + i]),
                gb_line_lanes(row + i * GB_LINE_FLOATS + x * GB_STEP_X + k * GB_DILATION_X), sum);
#else
        sum = GB_ADD_PRODUCT(vload16((x + i) * GB_STEP_X + k * GB_DILATION_X, row), vload16(k, taps), sum);
#endif
    return sum;
}

/* Takes n results of `channels` channels, from c on. */
static inline void gb_take_tile(GB_PARAMETERS, long image, long c, int channels, long y, long x, int n,
        const float *taps, const float *rows)
{
    GB_AS_IT_IS
    for (int i = 0; i < GB_VECTORS; i++) {
        float16 sum = (float16)(0.0f);
        GB_AS_IT_IS
        for (int k = 0; k < GB_TAPS_Y; k++) {
            long q = y * GB_STEP_Y - GB_PAD_Y + k * GB_DILATION_Y;
            if (q >= 0 && q < GB_HEIGHT)
                sum = gb_add_taps(rows + q % GB_RING * GB_ROW_FLOATS, x, i,
                        taps + k * GB_TAPS_X * GB_LANES, sum);
        }
        GB_AFTER(image, GB_CHANNEL_OF(i), y, GB_POSITION_OF(i), GB_LANES_THERE, sum);
    }
}

/* Where position 0 of a row is kept, behind the padding. */
#ifdef GB_ALONG_X
#define GB_KEPT_ROW(y) (ring + (y) % GB_RING * GB_ROW_FLOATS + GB_PAD_X)
#else
#define GB_KEPT_ROW(y) (ring + (y) % GB_RING * GB_ROW_FLOATS + GB_PAD_X * GB_LANES)
#endif

__kernel GB_ITEMS void gb_run(GB_ARGUMENTS)
{
    GB_BEGIN
    long item = get_global_id(0);
    if (item >= GB_WORK_ITEMS)
        return;
    long band = item % GB_BANDS, rest = item / GB_BANDS;
    long c = rest % GB_GROUPS * (GB_BLOCKS * GB_LANES), image = rest / GB_GROUPS;
    int channels = (int)min((long)(GB_BLOCKS * GB_LANES), GB_CHANNELS - c);
    float taps[GB_BLOCKS * GB_TAPS * GB_LANES];
#ifdef GB_PACKED
    GB_WEIGHTS weights = GB_PACKED + c * GB_TERMS;
#else
    float weights[GB_BLOCKS * GB_TERMS * GB_LANES];
#endif
    float bias[GB_BLOCKS * GB_LANES], source[GB_SOURCE_FLOATS];
    float ring[GB_BLOCKS * GB_RING * GB_ROW_FLOATS];
    for (int i = 0; i < GB_BLOCKS * GB_RING * GB_ROW_FLOATS; i += GB_LANES)
        vstore16((float16)(0.0f), 0, ring + i);
    for (int i = 0; i < GB_SOURCE_FLOATS; i += GB_LANES)
        vstore16((float16)(0.0f), 0, source + i);
    for (int l = 0; l < GB_BLOCKS * GB_LANES; l++) {
        int block = l / GB_LANES, lane = l % GB_LANES;
        bool there = l < channels;
        bias[l] = 0.0f;
#ifdef GB_BIAS
        if (there)
            bias[l] = GB_BIAS(c + l);
#endif
#ifndef GB_PACKED
        GB_AS_IT_IS
        for (int k = 0; k < GB_TERMS; k++)
            weights[(block * GB_TERMS + k) * GB_LANES + lane] = there ? GB_WEIGHT(k, c + l) : 0.0f;
#endif
        GB_AS_IT_IS
        for (int t = 0; t < GB_TAPS; t++)
            taps[(block * GB_TAPS + t) * GB_LANES + lane] =
                    there ? GB_TAP(c + l, t / GB_TAPS_X, t % GB_TAPS_X) : 0.0f;
    }
    long made = 0, end = min((band + 1) * GB_BAND_ROWS, GB_OUT_HEIGHT);
    GB_AS_IT_IS
    for (long y = band * GB_BAND_ROWS; y < end; y++) {
        long top = y * GB_STEP_Y - GB_PAD_Y;
        long bottom = min(top + (GB_TAPS_Y - 1) * GB_DILATION_Y + 1, GB_HEIGHT);
        GB_AS_IT_IS
        for (made = max(made, top); made < bottom; made++)
            for (long x = 0; x < GB_WIDTH; x += GB_POSITIONS) {
                int loaded = (int)min((long)GB_LANES, GB_WIDTH - x), n = min(GB_POSITIONS, loaded);
                gb_load_source(GB_PASSED, image, made, x, loaded, source);
                for (int b = 0; b * GB_LANES < channels; b++)
                    gb_make_tile(GB_PASSED, image, c + b * GB_LANES,
                            min(GB_LANES, channels - b * GB_LANES), made, x, n,
                            weights + b * GB_TERMS * GB_LANES, bias + b * GB_LANES, source,
                            GB_KEPT_ROW(made) + b * GB_RING * GB_ROW_FLOATS);
            }
        GB_AS_IT_IS
        for (int b = 0; b * GB_LANES < channels; b++)
            for (long x = 0; x < GB_OUT_WIDTH; x += GB_LANES)
                gb_take_tile(GB_PASSED, image, c + b * GB_LANES, min(GB_LANES, channels - b * GB_LANES),
                        y, x, (int)min((long)GB_LANES, GB_OUT_WIDTH - x),
                        taps + b * GB_TAPS * GB_LANES, ring + b * GB_RING * GB_ROW_FLOATS);
    }
}
