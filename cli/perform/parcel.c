/* Cases and results as bytes. */
#include "cli/perform/parcel.h"

#include "cli/options/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void put(gb_parcel *parcel, const void *bytes, size_t count)
{
    gb_cli_text_add_part(&parcel->bytes, bytes, count);
}

static bool take(gb_parcel *parcel, void *bytes, size_t count)
{
    parcel->broken = parcel->broken || parcel->bytes.length - parcel->at < count;
    if (parcel->broken || count == 0)
        return !parcel->broken;
    memcpy(bytes, parcel->bytes.data + parcel->at, count);
    parcel->at += count;
    return true;
}

static void put_size(gb_parcel *parcel, size_t value)
{
    put(parcel, &value, sizeof value);
}

/* Of elements that follow: never more than there are bytes. */
static size_t take_size(gb_parcel *parcel)
{
    size_t value = 0;
    take(parcel, &value, sizeof value);
    if (value > parcel->bytes.length)
        parcel->broken = true;
    return parcel->broken ? 0 : value;
}

/* NULL has no length. */
static void put_text(gb_parcel *parcel, const char *text)
{
    put_size(parcel, text ? strlen(text) + 1 : 0);
    if (text)
        put(parcel, text, strlen(text) + 1);
}

static char *take_text(gb_parcel *parcel)
{
    size_t length = take_size(parcel);
    if (length == 0)
        return NULL;
    char *text = gb_cli_realloc(NULL, length, 1);
    text[0] = '\0';
    take(parcel, text, length);
    text[length - 1] = '\0';
    return text;
}

/* Words that are static where they come from: each is kept once, as long as the program lives. */
static const char *take_word(gb_parcel *parcel)
{
    static char **words;
    static size_t n_words;
    char *word = take_text(parcel);
    for (size_t i = 0; word && i < n_words; i++)
        if (strcmp(words[i], word) == 0) {
            free(word);
            return words[i];
        }
    if (!word)
        return NULL;
    words = gb_cli_realloc(words, n_words + 1, sizeof *words);
    words[n_words++] = word;
    return word;
}

/* `element` bytes each, in memory of their own. */
static void *take_array(gb_parcel *parcel, size_t count, size_t element)
{
    if (parcel->broken || count > parcel->bytes.length / element)
        count = 0;
    void *array = gb_cli_realloc(NULL, count, element);
    take(parcel, array, count * element);
    return array;
}

void gb_cli_parcel_free(gb_parcel *parcel)
{
    gb_cli_text_free(&parcel->bytes);
    *parcel = (gb_parcel){0};
}

/* ------------------------------------------------------------ cases */

/* Which options a case has, as their canonical texts; where its file is, is known already. */
static void put_settings(gb_parcel *parcel, const gb_settings *settings,
        const gb_alternative *const choice[AXIS_COUNT])
{
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        const gb_option *option = &gb_cli_options[i];
        bool sent = option->take && !option->of_case && !option->repeats;
        put_text(parcel, sent ? settings->text[i] : NULL);
    }
    put_size(parcel, settings->in_batch);
    put_size(parcel, settings->n_filters);
    for (size_t i = 0; i < settings->n_filters; i++)
        put_text(parcel, settings->filters[i]);
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        put_text(parcel, choice[axis]->text);
}

static void take_settings(gb_parcel *parcel, gb_settings *settings)
{
    gb_cli_settings_init(settings);
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        char *text = take_text(parcel);
        if (text && gb_cli_option_set(settings, &gb_cli_options[i], text) != GB_SUCCESS)
            parcel->broken = true;
        free(text);
    }
    settings->in_batch = take_size(parcel) != 0;
    size_t n_filters = take_size(parcel);
    for (size_t i = 0; i < n_filters && i < FILTER_LIMIT; i++) {
        char *filter = take_text(parcel);
        if (filter)
            settings->filters[settings->n_filters++] = filter;
    }
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        char *text = take_text(parcel);
        gb_alternatives parsed;
        if (text && strcmp(text, settings->axes[axis].items[0].text) != 0 &&
                gb_cli_alternatives_parse((gb_axis)axis, text, &parsed) == GB_SUCCESS) {
            gb_cli_alternatives_free((gb_axis)axis, &settings->axes[axis]);
            settings->axes[axis] = parsed;
        }
        free(text);
    }
}

void gb_cli_put_errand(gb_parcel *parcel, const gb_errand *errand, const gb_settings *settings,
        const gb_case *test)
{
    put_settings(parcel, settings, test->choice);
    const char *const texts[] = {test->file, test->path, test->repro, test->arguments};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        put_text(parcel, texts[i]);
    put(parcel, &test->index, sizeof test->index);
    put_text(parcel, errand->refusal);
    put(parcel, &errand->visit, sizeof errand->visit);
    put(parcel, &errand->blamed, sizeof errand->blamed);
    put(parcel, &errand->best_probe, sizeof errand->best_probe);
}

bool gb_cli_take_errand(gb_parcel *parcel, gb_errand *errand)
{
    *errand = (gb_errand){.visit = false};
    take_settings(parcel, &errand->settings);
    for (size_t i = 0; i < sizeof errand->texts / sizeof *errand->texts; i++) {
        errand->texts[i] = take_text(parcel);
        parcel->broken = parcel->broken || !errand->texts[i];
    }
    errand->test = (gb_case){.file = errand->texts[0],
            .path = errand->texts[1],
            .repro = errand->texts[2],
            .arguments = errand->texts[3]};
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        errand->test.choice[axis] = &errand->settings.axes[axis].items[0];
    take(parcel, &errand->test.index, sizeof errand->test.index);
    errand->refusal = take_text(parcel);
    take(parcel, &errand->visit, sizeof errand->visit);
    take(parcel, &errand->blamed, sizeof errand->blamed);
    return take(parcel, &errand->best_probe, sizeof errand->best_probe);
}

void gb_cli_errand_free(gb_errand *errand)
{
    gb_cli_case_unload(&errand->test);
    gb_cli_settings_free(&errand->settings);
    for (size_t i = 0; i < sizeof errand->texts / sizeof *errand->texts; i++)
        free(errand->texts[i]);
    free(errand->refusal);
    *errand = (gb_errand){.visit = false};
}

/* ------------------------------------------------------------ results */

/* What the structs of a measurement, which are there already, point to. */
static void put_times(gb_parcel *parcel, const gb_measurement *m, const gb_summary *times)
{
    put_text(parcel, times->stopped_by);
    put(parcel, m->samples, m->n_samples * sizeof *m->samples);
    put(parcel, m->visits, m->n_visits * sizeof *m->visits);
}

static void take_times(gb_parcel *parcel, gb_measurement *m, gb_summary *times)
{
    times->stopped_by = take_word(parcel);
    m->samples = take_array(parcel, m->n_samples, sizeof *m->samples);
    m->sample_capacity = m->n_samples;
    m->visits = take_array(parcel, m->n_visits, sizeof *m->visits);
}

static void put_partition(gb_parcel *parcel, const gb_partition_result *p)
{
    put(parcel, p, sizeof *p);
    put_text(parcel, p->ops);
    put_text(parcel, p->pattern);
    put_text(parcel, p->kernels);
    put_text(parcel, p->reason);
    put_times(parcel, &p->measured, &p->times);
}

static void take_partition(gb_parcel *parcel, gb_partition_result *p)
{
    if (!take(parcel, p, sizeof *p))
        *p = (gb_partition_result){.id = 0};
    p->ops = take_text(parcel);
    p->pattern = take_text(parcel);
    p->kernels = take_text(parcel);
    p->reason = take_text(parcel);
    take_times(parcel, &p->measured, &p->times);
}

static void put_result(gb_parcel *parcel, const gb_case_result *result)
{
    put(parcel, result, sizeof *result);
    put_text(parcel, result->reason);
    put_text(parcel, result->memory_kind);
    for (size_t i = 0; i < result->n_mismatches; i++)
        put_text(parcel, result->mismatches[i].comparison);
    put(parcel, result->chosen, result->n_chosen * sizeof *result->chosen);
    put_times(parcel, &result->whole.measured, &result->whole.times);
    for (size_t i = 0; i < result->n_partitions; i++)
        put_partition(parcel, &result->partitions[i]);
}

static void take_result(gb_parcel *parcel, gb_case_result *result)
{
    if (!take(parcel, result, sizeof *result))
        *result = (gb_case_result){.status = CASE_UNTESTED_FAILED};
    result->reason = take_text(parcel);
    result->memory_kind = take_word(parcel);
    for (size_t i = 0; i < result->n_mismatches; i++)
        result->mismatches[i].comparison = take_word(parcel);
    result->chosen = take_array(parcel, result->n_chosen, sizeof *result->chosen);
    take_times(parcel, &result->whole.measured, &result->whole.times);
    result->partitions = gb_cli_realloc(NULL, result->n_partitions, sizeof *result->partitions);
    for (size_t i = 0; i < result->n_partitions; i++)
        take_partition(parcel, &result->partitions[i]);
}

void gb_cli_put_outcome(gb_parcel *parcel, const gb_outcome *outcome, const gb_case_result *result)
{
    put(parcel, outcome, sizeof *outcome);
    put_text(parcel, outcome->failure);
    put_text(parcel, outcome->messages);
    put_text(parcel, outcome->engine);
    put_result(parcel, result);
}

bool gb_cli_take_outcome(gb_parcel *parcel, gb_outcome *outcome, gb_case_result *result)
{
    if (!take(parcel, outcome, sizeof *outcome))
        *outcome = (gb_outcome){.status = GB_RUNTIME_ERROR};
    outcome->failure = take_text(parcel);
    outcome->messages = take_text(parcel);
    outcome->engine = take_text(parcel);
    take_result(parcel, result);
    return !parcel->broken;
}

void gb_cli_outcome_free(gb_outcome *outcome)
{
    free(outcome->failure);
    free(outcome->messages);
    free(outcome->engine);
    *outcome = (gb_outcome){.status = GB_SUCCESS};
}

/* ------------------------------------------------------------ descriptors */

static bool send_all(int descriptor, const void *bytes, size_t count)
{
    const char *at = bytes;
    while (count > 0) {
        ssize_t sent = send(descriptor, at, count, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        count -= (size_t)sent;
    }
    return true;
}

static bool receive_all(int descriptor, void *bytes, size_t count)
{
    char *at = bytes;
    while (count > 0) {
        ssize_t received = recv(descriptor, at, count, 0);
        if (received < 0 && errno == EINTR)
            continue;
        if (received <= 0)
            return false;
        at += received;
        count -= (size_t)received;
    }
    return true;
}

bool gb_cli_parcel_send(const gb_parcel *parcel, int descriptor)
{
    return send_all(descriptor, &parcel->bytes.length, sizeof parcel->bytes.length) &&
           send_all(descriptor, parcel->bytes.data, parcel->bytes.length);
}

bool gb_cli_parcel_receive(gb_parcel *parcel, int descriptor)
{
    size_t length;
    gb_cli_parcel_free(parcel);
    if (!receive_all(descriptor, &length, sizeof length))
        return false;
    parcel->bytes.data = gb_cli_realloc(NULL, length + 1, 1);
    parcel->bytes.length = length;
    parcel->bytes.capacity = length + 1;
    parcel->bytes.data[length] = '\0';
    return receive_all(descriptor, parcel->bytes.data, length);
}
