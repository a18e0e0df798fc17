/* All partitions of a case back to back. */
#include "cli/run/end_to_end.h"

#include "cli/options/message.h"

#include <stdlib.h>
#include <string.h>

/* Does no later partition read it? */
static bool reads_last(const gb_workload *work, size_t part, size_t memory)
{
    for (size_t p = part + 1; p < work->n_parts; p++)
        for (size_t i = 0; i < work->parts[p].n_inputs; i++)
            if (work->parts[p].inputs[i] == memory)
                return false;
    return true;
}

/* Results of the graph stay where they are. Inputs may be overwritten, as in a program that fills
 * them before each run. */
static gb_status may_be_overwritten(
        const gb_workload *work, size_t part, size_t memory, bool *overwritten)
{
    *overwritten = reads_last(work, part, memory);
    if (!*overwritten || work->is_given[memory])
        return GB_SUCCESS;
    return gb_cli_lies_between(work, work->memories[memory].tensor.id, overwritten);
}

/* In-place pairs, from the last partition to the first: where an output lies is known when its input asks. */
static gb_status join_pairs(gb_end_to_end *whole)
{
    const gb_workload *work = whole->work;
    for (size_t m = 0; m < work->n_memories; m++)
        whole->places[m] = m;
    for (size_t p = work->n_parts; p-- > 0;) {
        const gb_work_part *part = &work->parts[p];
        for (size_t s = 0; s < part->n_shared; s++) {
            bool overwritten;
            size_t input = part->shared[s].input;
            CLI_TRY(may_be_overwritten(work, p, input, &overwritten));
            if (overwritten)
                whole->places[input] = whole->places[part->shared[s].output];
        }
    }
    return GB_SUCCESS;
}

/* What lies in one place, a tensor or a chain of in-place pairs, from the partition that writes it first to the last
 * one that uses it. */
typedef struct lifetime {
    size_t first, last; /* partitions; first: their number where none writes it */
    bool stays;         /* holds an input or a result of the graph */
} lifetime;

static gb_status find_lifetimes(const gb_end_to_end *whole, lifetime *lives)
{
    const gb_workload *work = whole->work;
    for (size_t m = 0; m < work->n_memories; m++)
        lives[m] = (lifetime){.first = work->n_parts};
    for (size_t m = 0; m < work->n_memories; m++) {
        bool between;
        CLI_TRY(gb_cli_lies_between(work, work->memories[m].tensor.id, &between));
        if (work->is_given[m] || !between)
            lives[whole->places[m]].stays = true;
    }
    for (size_t p = 0; p < work->n_parts; p++) {
        const gb_work_part *part = &work->parts[p];
        for (size_t i = 0; i < part->n_inputs; i++)
            lives[whole->places[part->inputs[i]]].last = p;
        for (size_t i = 0; i < part->n_outputs; i++) {
            lifetime *life = &lives[whole->places[part->outputs[i]]];
            life->first = life->first < p ? life->first : p;
            life->last = p;
        }
    }
    return GB_SUCCESS;
}

/* The smallest free memory that is large enough, and of those the one freed last, which is the warmest; `own`
 * where there is none. */
static size_t take_free(const gb_workload *work, size_t own, size_t *free_ones, size_t *n_free)
{
    const gb_memory *memories = work->memories;
    size_t best = *n_free;
    for (size_t i = 0; i < *n_free; i++) {
        const size_t bytes = memories[free_ones[i]].bytes;
        if (bytes >= memories[own].bytes &&
                (best == *n_free || bytes <= memories[free_ones[best]].bytes))
            best = i;
    }
    if (best == *n_free)
        return own;
    const size_t taken = free_ones[best];
    memmove(free_ones + best, free_ones + best + 1, (--*n_free - best) * sizeof *free_ones);
    return taken;
}

/* Tensors between partitions take memory whose tensor nobody reads any more, as a program's planner of memory has
 * it: what was just read is still in the caches. `bases` and `free_ones` have room for an entry per memory. */
static void reuse_memory(
        gb_end_to_end *whole, const lifetime *lives, size_t *bases, size_t *free_ones)
{
    const gb_workload *work = whole->work;
    size_t n_free = 0;
    for (size_t m = 0; m < work->n_memories; m++)
        bases[m] = m;
    for (size_t p = 0; p < work->n_parts; p++) {
        const gb_work_part *part = &work->parts[p];
        for (size_t i = 0; i < part->n_outputs; i++) {
            const size_t place = whole->places[part->outputs[i]];
            if (lives[place].first != p || lives[place].stays)
                continue;
            bases[place] = take_free(work, place, free_ones, &n_free);
            whole->is_reused[bases[place]] |= bases[place] != place;
        }
        for (size_t m = 0; m < work->n_memories; m++)
            if (!lives[m].stays && lives[m].first <= p && lives[m].last == p)
                free_ones[n_free++] = bases[m];
    }
    for (size_t m = 0; m < work->n_memories; m++)
        whole->places[m] = bases[whole->places[m]];
}

static gb_status choose_places(gb_end_to_end *whole)
{
    const size_t n = whole->work->n_memories;
    lifetime *lives = gb_cli_realloc(NULL, n, sizeof *lives);
    size_t *bases = gb_cli_realloc(NULL, n, 2 * sizeof *bases);
    gb_status status = join_pairs(whole);
    if (status == GB_SUCCESS)
        status = find_lifetimes(whole, lives);
    if (status == GB_SUCCESS)
        reuse_memory(whole, lives, bases, bases + n);
    free(lives);
    free(bases);
    return status;
}

static gb_status make_tensors(gb_end_to_end *whole)
{
    const gb_workload *work = whole->work;
    for (size_t m = 0; m < work->n_memories; m++) {
        void *place = NULL;
        if (whole->places[m] == m)
            continue;
        LIB_TRY(gb_tensor_get_data_handle(work->memories[whole->places[m]].handle, &place));
        LIB_TRY(gb_tensor_create(
                &whole->tensors[m], &work->memories[m].tensor, work->session->engine, place));
    }
    return GB_SUCCESS;
}

static gb_tensor *handle_of(const gb_end_to_end *whole, size_t memory)
{
    return whole->tensors[memory] ? whole->tensors[memory] : whole->work->memories[memory].handle;
}

static void list_handles(gb_end_to_end *whole)
{
    const gb_workload *work = whole->work;
    for (size_t p = 0; p < work->n_parts; p++) {
        const gb_work_part *part = &work->parts[p];
        gb_tensor **list =
                gb_cli_realloc(NULL, part->n_inputs + part->n_outputs, sizeof(gb_tensor *));
        for (size_t i = 0; i < part->n_inputs; i++)
            list[i] = handle_of(whole, part->inputs[i]);
        for (size_t i = 0; i < part->n_outputs; i++)
            list[part->n_inputs + i] = handle_of(whole, part->outputs[i]);
        whole->handles[p] = list;
    }
}

gb_status gb_cli_end_to_end_open(gb_workload *work, gb_end_to_end *whole)
{
    size_t n = work->n_memories;
    *whole = (gb_end_to_end){.work = work,
            .places = gb_cli_realloc(NULL, n, sizeof *whole->places),
            .is_reused = gb_cli_realloc(NULL, n, sizeof *whole->is_reused),
            .tensors = gb_cli_realloc(NULL, n, sizeof(gb_tensor *)),
            .handles = gb_cli_realloc(NULL, work->n_parts, sizeof(gb_tensor **)),
            .hashes = gb_cli_realloc(NULL, n, sizeof *whole->hashes)};
    memset(whole->is_reused, 0, n * sizeof *whole->is_reused);
    memset(whole->tensors, 0, n * sizeof(gb_tensor *));
    memset(whole->handles, 0, work->n_parts * sizeof(gb_tensor **));
    for (size_t m = 0; m < n; m++)
        whole->hashes[m] = gb_cli_memory_hash(&work->memories[m]);
    CLI_TRY(choose_places(whole));
    CLI_TRY(make_tensors(whole));
    list_handles(whole);
    return GB_SUCCESS;
}

gb_status gb_cli_end_to_end_execute(const gb_end_to_end *whole)
{
    const gb_workload *work = whole->work;
    gb_status status = GB_SUCCESS;
    for (size_t p = 0; status == GB_SUCCESS && p < work->n_parts; p++)
        status = gb_cli_work_part_submit(work, &work->parts[p], whole->handles[p]);
    gb_status waited = gb_stream_wait(work->session->stream);
    return status == GB_SUCCESS ? waited : status;
}

static gb_status refill(const gb_end_to_end *whole, bool *refilled)
{
    const gb_workload *work = whole->work;
    *refilled = false;
    for (size_t m = 0; m < work->n_memories; m++) {
        const gb_memory *from = &work->memories[m], *to = &work->memories[whole->places[m]];
        if (!work->is_given[m] || to == from)
            continue;
        *refilled = true;
        memcpy(to->data, from->data, from->bytes); /* pairs are of one size */
        LIB_TRY(gb_cli_memory_upload(to, work->session->stream));
    }
    return GB_SUCCESS;
}

gb_status gb_cli_end_to_end_prepare(const gb_end_to_end *whole)
{
    const gb_workload *work = whole->work;
    bool refilled;
    for (size_t m = 0; m < work->n_memories; m++) {
        if (work->is_given[m])
            continue;
        gb_cli_memory_poison(&work->memories[m], GB_POISON);
        LIB_TRY(gb_cli_memory_upload(&work->memories[m], work->session->stream));
    }
    return refill(whole, &refilled);
}

gb_status gb_cli_end_to_end_check(const gb_end_to_end *whole, gb_verdict *verdict)
{
    const gb_workload *work = whole->work;
    bool refilled;
    CLI_TRY(refill(whole, &refilled));
    if (refilled)
        LIB_TRY(gb_cli_end_to_end_execute(whole));
    for (size_t m = 0; m < work->n_memories; m++) {
        const gb_memory *memory = &work->memories[m];
        if (work->is_given[m] || whole->places[m] != m || whole->is_reused[m])
            continue;
        LIB_TRY(gb_cli_memory_download(memory, work->session->stream));
        if (gb_cli_memory_hash(memory) == whole->hashes[m])
            continue;
        gb_cli_print_error(work->test->file,
                "end to end: tensor %zu has other bits than the partitions made alone",
                memory->tensor.id);
        verdict->failed = true;
    }
    return GB_SUCCESS;
}

void gb_cli_end_to_end_close(gb_end_to_end *whole)
{
    for (size_t m = 0; whole->tensors && m < whole->work->n_memories; m++)
        gb_tensor_destroy(whole->tensors[m]);
    for (size_t p = 0; whole->handles && p < whole->work->n_parts; p++)
        free(whole->handles[p]);
    free(whole->places);
    free(whole->is_reused);
    free(whole->tensors);
    free(whole->handles);
    free(whole->hashes);
    *whole = (gb_end_to_end){0};
}
