/* Blocks of rows of a pointwise and a depthwise convolution that run as one kernel. */
#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv/conv_pair.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL, LINE = GB_CACHE_LINE / sizeof(float), BATCH = 0, Y = 1, X = 2 };

/* Rows of the image that a block of result rows reads. */
static int64_t rows_of_block(const gb_conv *conv, const gb_conv_producer *producer, int64_t block)
{
    const gb_conv_axis *y = &conv->axes[Y];
    return gb_min_i64(producer->height, (gb_conv_extent(y, block) - 1) * y->step + 1);
}

/* Rows that a block and the next one read: those of one part of the channels are kept. */
static int64_t shared_rows(const gb_conv *conv, const gb_conv_producer *producer)
{
    const gb_conv_axis *y = &conv->axes[Y];
    int64_t shared = (gb_conv_extent(y, y->block) - 1) * y->step + 1 - y->block * y->stride;
    bool any = producer->parts == 1 && y->blocks > 1 && y->input_dilation == 1 && shared > 0;
    return any ? gb_min_i64(shared, producer->rows) : 0;
}

/* The longest rows x width whose packed source stays in the second level next to what it makes. */
static void choose_rows(gb_conv *conv, gb_conv_producer *producer)
{
    gb_conv_axis *y = &conv->axes[Y];
    double budget = (double)(gb_machine_get()->l2_bytes / sizeof(float)) / 2;
    enum { TRIES = 64 }; /* one after another; then every so many, however many rows there are */
    for (int64_t j = 1; j <= y->out; j += 1 + j / TRIES) {
        y->block = gb_div_up(y->out, j);
        producer->rows = rows_of_block(conv, producer, y->block);
        double positions = (double)producer->rows * (double)producer->width;
        if (positions * (double)(producer->k + 2 * PANEL) <= budget)
            return;
    }
}

/* Channels of one copy, a power of two. */
static void conv_pair_choose_channels(gb_conv *conv)
{
    double most = (double)(gb_machine_get()->l1_bytes / sizeof(float)) / 2;
    conv->out_block = PANEL;
    while (gb_conv_lay_out(conv) > most && conv->wide && conv->out_block > 1)
        conv->out_block /= 2;
}

void gb_conv_pair_blocks(gb_conv *conv, gb_conv_producer *producer, int threads)
{
    gb_conv_axis *axes = conv->axes;
    for (int a = 0; a < conv->n_axes; a++)
        axes[a].block = a == BATCH ? 1 : axes[a].out;
    choose_rows(conv, producer);
    int64_t positions = producer->rows * producer->width;
    producer->row_stride = conv->wide ? (gb_div_up(positions, LINE) | 1) * LINE : PANEL;
    conv->src_channel_stride = conv->wide ? producer->row_stride : 1;
    axes[BATCH].src_stride = 0;
    axes[X].src_stride = conv->wide ? 1 : PANEL;
    axes[Y].src_stride = producer->width * axes[X].src_stride;
    conv_pair_choose_channels(conv);
    gb_conv_lay_out(conv);
    conv->row_axis = Y;
    conv->out_blocks = gb_div_up(conv->out_channels, conv->out_block);
    int64_t blocks = axes[BATCH].out * axes[Y].blocks;
    bool even = blocks % threads == 0 || blocks >= 8 * threads;
    producer->parts = even ? 1 : gb_min_i64(threads, gb_div_up(conv->out_channels, PANEL));
    conv->items = blocks * producer->parts;
    producer->shared_rows = shared_rows(conv, producer);
}

static double work(const gb_conv *conv, const gb_conv_producer *producer)
{
    return (double)conv->axes[BATCH].out * (double)conv->axes[Y].blocks *
           (double)gb_max_i64(1, producer->rows - producer->shared_rows) * (double)producer->width *
           (double)producer->k * (double)conv->out_channels;
}

gb_status gb_conv_pair_finish(
        gb_program *program, gb_step *step, gb_conv *conv, const gb_conv_producer *plan)
{
    size_t bytes;
    if (!gb_size_mul((size_t)plan->k, sizeof(int64_t), &bytes))
        return gb_fail(GB_OUT_OF_MEMORY, "too many channels");
    gb_conv_producer *producer = conv->producer = gb_step_alloc(step, 1, sizeof *producer + bytes);
    if (!producer)
        return GB_OUT_OF_MEMORY;
    *producer = *plan;
    for (int64_t i = 0; i < producer->k; i++)
        producer->offsets[i] = i * PANEL;
    int64_t positions = producer->rows * producer->width;
    int64_t image = (conv->wide ? PANEL : positions) * producer->row_stride + PANEL;
    int64_t kept =
            producer->shared_rows * producer->width * gb_div_up(conv->out_channels, PANEL) * PANEL;
    producer->packed =
            gb_scratch_add(step, gb_float_bytes(gb_div_up(positions, PANEL) * PANEL * producer->k));
    producer->block = gb_scratch_add(step, gb_float_bytes(image));
    producer->kept = gb_scratch_add(step, gb_float_bytes(kept));
    producer->bias_block = gb_scratch_add(step, gb_float_bytes(PANEL * PANEL));
    if (producer->has_post_ops)
        producer->registers = gb_scratch_add(step, gb_pointwise_scratch(&producer->post_ops));
    step->kernel = "conv pair";
    step->run = gb_conv_pair_run;
    step->work += work(conv, producer) / 4;
    GB_TRY(gb_packing_add(
            program, &producer->weights, producer->weights_buffer, &producer->weights_buffer));
    GB_TRY(gb_step_use_buffer(step, producer->weights_buffer, false, &producer->packed_weights));
    if (producer->has_bias)
        GB_TRY(gb_step_use_buffer(step, producer->bias_buffer, false, &producer->bias));
    return gb_step_use_buffer(step, producer->src_buffer, false, &producer->src);
}
