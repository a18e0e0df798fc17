/* The passes, one file each. */
#ifndef GB_FUSION_PASSES_PASSES_H
#define GB_FUSION_PASSES_PASSES_H

#include "fusion/fusion.h"

#include <stdio.h>

/* All but the first need known dims. */

/* Element-wise ops between ports of one format work on its blocks as further axes. */
gb_status gb_pass_blocks(gb_graph *graph, gb_pass_context *context);
/* What lies inside is strided: Reorder ops come between it and ports in formats of blocks. */
gb_status gb_pass_ports(gb_graph *graph, gb_pass_context *context);
/* Movement of elements between a Dequantize and a Quantize of equal parameters stays in the integer
 * type. */
gb_status gb_pass_fold_qdq(gb_graph *graph, gb_pass_context *context);
/* Element-wise ops behind a movement that alone reads them come in front of it, so that they run
 * with what makes the elements. */
gb_status gb_pass_hoist_elementwise(gb_graph *graph, gb_pass_context *context);
/* Products whose columns are split and moved become batched products. */
gb_status gb_pass_split_heads(gb_graph *graph, gb_pass_context *context);
/* Attention whose heads are columns of one product with their common keys becomes batched. */
gb_status gb_pass_batch_shared_kv(gb_graph *graph, gb_pass_context *context);
/* Movements become strides (gb_value.view_of) where one side lies inside of the partition. */
gb_status gb_pass_views(gb_graph *graph, gb_pass_context *context);
/* Divides the ops into groups that run as one kernel each: context->groups. End ops and views
 * belong to none. */
gb_status gb_pass_group(gb_graph *graph, gb_pass_context *context);
/* Values between kernels get the formats that all of their kernels take, where that gains; Reorder
 * ops go whose readers or producers take the format. */
gb_status gb_pass_layouts(gb_graph *graph, gb_pass_context *context);

/* StaticTranspose, StaticReshape or Reorder between strided layouts. */
bool gb_is_movement(const gb_op *op);
/* Adds a StaticReshape of `value` to the dims of `dims`, or a StaticTranspose; *moved is its
 * result, dense. Ops keep their places: gb_graph_connect() sorts them. */
gb_status gb_add_reshape(
        gb_graph *graph, uint32_t value, const gb_logical_tensor *dims, uint32_t *moved);
gb_status gb_add_transpose(gb_graph *graph, uint32_t value, const int64_t *order, uint32_t *moved);
/* The axis of the input that each dim of a StaticTranspose's output is; false when the list is
 * malformed. */
bool gb_transpose_order(const gb_op *transpose, int64_t *order);
/* Gives the tensor the dims of another, dense. */
void gb_set_dense_dims(gb_logical_tensor *tensor, const gb_logical_tensor *dims);
/* Puts a Reorder between a port and the ops inside, which have a new tensor, `twin`, instead;
 * *inside is its value. */
gb_status gb_reorder_port(
        gb_graph *graph, uint32_t port, const gb_logical_tensor *twin, uint32_t *inside);
/* Is the op a post-op whose result has its elements where the operands of its size have them, in
 * whatever order? */
bool gb_follows_elements(const gb_pass_context *context, const gb_op *op);
/* Is the op a post-op with one input that treats all elements alike, wherever they lie? */
bool gb_is_uniform(const gb_pass_context *context, const gb_op *op);
/* Gives `to`, of as many elements, the strides under which it lies where `from` does; false when
 * there are none. */
bool gb_reshape_view(const gb_logical_tensor *from, gb_logical_tensor *to);

/* Invariants of the graph, and of the groups once there are any; `pass` is named in messages.
 * GB_RUNTIME_ERROR: a pass is at fault. */
gb_status gb_check_graph(const gb_graph *graph, const gb_pass_context *context, const char *pass);
/* The graph after the pass `title` in the text form of graphs, and the groups unless NULL, as
 * comments. */
void gb_dump_graph(const gb_graph *graph, const gb_groups *groups, const char *title, FILE *file);

/* Must a group of post-ops begin with the op? Parameters by groups split dims of the space, and
 * 4-bit elements lie at no whole byte. */
bool gb_begins_group(const gb_op *op);
/* For every op: do all readers of its result take it over (prologue.c)? Ops of regions neither are
 * nor take. */
void gb_find_fused_producers(const gb_graph *graph, const gb_pass_context *context,
        const uint32_t *region_of, bool *is_fused);

#endif
