/* Attention of quantized values of 8 bits whose weights are quantized, too: both products are those
 * of integers, exact, and scales and zero points follow them. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_BYTES_H
#define GB_KERNELS_ATTENTION_ATTENTION_BYTES_H

#include "kernels/attention/attention_item.h"

bool gb_attention_bytes_fits(const gb_attention_problem *problem);
/* Scratch for the sums of rows, and for what products need of each column. */
gb_scratch gb_attention_bytes_add_scratch(gb_step *step, const gb_attention_plan *plan);

/* What gb_attention_load_queries(), gb_attention_pack() and the two products do. */
void gb_attention_bytes_load_queries(gb_attention_item *u);
void gb_attention_bytes_pack_keys(const gb_attention_item *u, int64_t key, int64_t keys);
void gb_attention_bytes_pack_values(const gb_attention_item *u, int64_t key, int64_t keys);
bool gb_attention_bytes_multiply_queries(gb_attention_item *u, const gb_attention_block *b);
void gb_attention_bytes_multiply_weights(const gb_attention_item *u, const gb_attention_block *b);

#endif
