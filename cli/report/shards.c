/* Shards by hash, and by the costs of an earlier report. */
#include "cli/report/shards.h"

#include "cli/options/case_name.h"
#include "cli/options/message.h"
#include "cli/options/text.h"
#include "cli/report/cases.h"
#include "cli/report/results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t hash_begin = 2166136261u; /* FNV-1a */

static uint32_t hash_text(uint32_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

/* ------------------------------------------------------------ division by costs */

struct gb_shard_case {
    char *repro; /* owned */
    double ns;
};

/* The longest first; those that took as long in an order that all shards see. */
static int by_cost(const void *left, const void *right)
{
    const gb_shard_case *a = left, *b = right;
    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    return strcmp(a->repro, b->repro);
}

typedef struct shard_load {
    double ns;
    uint32_t number;
} shard_load;

static bool is_lighter(const shard_load *a, const shard_load *b)
{
    return a->ns < b->ns || (a->ns == b->ns && a->number < b->number);
}

/* Adds to the lightest shard, the root of the heap, and moves it down to its place. */
static uint32_t add_to_lightest(shard_load *heap, size_t n, double ns)
{
    shard_load grown = heap[0];
    grown.ns += ns;
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_lighter(&heap[child + 1], &heap[child]))
            child++;
        if (!is_lighter(&heap[child], &grown))
            break;
        heap[at] = heap[child];
    }
    heap[at] = grown;
    return grown.number;
}

static void divide(gb_shards *shards, uint32_t n_shards)
{
    shard_load *heap = gb_cli_realloc(NULL, n_shards, sizeof *heap);
    for (uint32_t i = 0; i < n_shards; i++)
        heap[i] = (shard_load){0, i};
    shards->numbers = json_object_new_object();
    for (size_t i = 0; i < shards->n_cases; i++) {
        const gb_shard_case *test = &shards->cases[i];
        uint32_t number = add_to_lightest(heap, n_shards, test->ns);
        gb_cli_cases_add(shards->numbers, test->repro, json_object_new_int64(number));
    }
    free(heap);
}

/* ------------------------------------------------------------ all of it */

gb_status gb_cli_shards_read(const gb_settings *settings, gb_shards *shards)
{
    if (!settings->shard_costs_file || shards->cases)
        return GB_SUCCESS;
    gb_results *results;
    CLI_TRY(gb_cli_results_read(settings->shard_costs_file, &results));
    shards->cases = gb_cli_realloc(NULL, gb_cli_results_count(results) + 1, sizeof *shards->cases);
    long cursor = 0;
    for (json_object *record; (record = gb_cli_results_next(results, &cursor));) {
        double ns = json_object_get_double(json_object_object_get(record, "elapsed_ns"));
        shards->cases[shards->n_cases++] =
                (gb_shard_case){gb_cli_copy(gb_cli_record_text(record, "repro")), ns > 0 ? ns : 0};
        json_object_put(record);
    }
    gb_status status = gb_cli_results_check(results);
    gb_cli_results_free(results);
    qsort(shards->cases, shards->n_cases, sizeof *shards->cases, by_cost);
    shards->division = hash_begin;
    for (size_t i = 0; i < shards->n_cases; i++) {
        char ns[32];
        snprintf(ns, sizeof ns, " %.0f ", shards->cases[i].ns);
        shards->division = hash_text(hash_text(shards->division, shards->cases[i].repro), ns);
    }
    return status;
}

void gb_cli_shards_free(gb_shards *shards)
{
    for (size_t i = 0; i < shards->n_cases; i++)
        free(shards->cases[i].repro);
    free(shards->cases);
    json_object_put(shards->numbers);
    *shards = (gb_shards){0};
}

bool gb_cli_shards_fit(const gb_settings *settings, gb_shards *shards, const gb_case *test)
{
    json_object *number;
    if (settings->n_shards == 0)
        return true;
    if (shards->cases && !shards->numbers)
        divide(shards, settings->n_shards);
    if (shards->numbers && gb_cli_cases_find(shards->numbers, test->repro, &number))
        return json_object_get_int64(number) == settings->shard - 1;
    char *name = gb_cli_case_name(test->repro);
    uint32_t hash = hash_text(hash_begin, name);
    free(name);
    return hash % settings->n_shards == settings->shard - 1;
}

uint32_t gb_cli_shards_hash(uint32_t hash, const gb_case *test)
{
    char *name = gb_cli_case_name(test->repro);
    hash = hash_text(hash_text(hash ? hash : hash_begin, name), "\n");
    free(name);
    return hash;
}
