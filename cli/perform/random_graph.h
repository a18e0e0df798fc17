/* Random graphs whose ops, types and attributes are the samples of the op table
 * (gb_op_sample_create()): chains, diamonds, and several readers of one value. */
#ifndef GB_CLI_PERFORM_RANDOM_GRAPH_H
#define GB_CLI_PERFORM_RANDOM_GRAPH_H

#include <graphbench/graphbench.h>
#include <stdint.h>

/* Numbers that follow from their seed alone. */
typedef struct gb_chance {
    uint64_t state;
} gb_chance;

gb_chance gb_cli_chance(uint64_t seed, uint64_t number);
/* 0 .. n - 1. */
uint32_t gb_cli_chance_below(gb_chance *chance, uint32_t n);

/* All attributes that are set. Failures are the library's. */
gb_status gb_cli_copy_attrs(const gb_op *from, gb_op *to);

enum { GB_CLI_FEW_ELEMENTS = 1 << 14 };

/* A legal graph of at least one op, with all shapes known; the caller's. Tensors have at most so many
 * elements: with more than GB_CLI_FEW_ELEMENTS one dim of most inputs takes any length that leaves
 * room, or is 0, and graphs whose `number` is even begin with the samples in their order. Failures
 * are the library's. */
gb_status gb_cli_random_graph(gb_chance *chance, gb_engine_kind engine, int64_t most_elements,
        uint64_t number, gb_graph **graph);

#endif
