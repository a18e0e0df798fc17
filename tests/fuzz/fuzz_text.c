/* The reader of the text form: any bytes are refused with a message, or make a graph that can be
 * saved and read again. */
#include "fuzz.h"

static gb_status parse(gb_graph **graph, const char *text, size_t length)
{
    return gb_graph_parse_text(graph, text, length, "fuzz.gbt");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gb_graph *graph = NULL;
    if (!fuzz_succeeded(parse(&graph, (const char *)data, size), "gb_graph_parse_text")) {
        fuzz_check(!graph, "a graph came with a failure");
        return 0;
    }
    fuzz_check_round_trip(graph, gb_graph_save_text, parse);
    gb_graph_destroy(graph);
    return 0;
}
