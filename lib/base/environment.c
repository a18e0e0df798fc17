/* Settings from environment variables. */
#include "base/environment.h"

#include "base/verbose.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void gb_environment_complain(
        const char *variable, const char *text, size_t length, const char *wanted)
{
    int shown = length > 64 ? 64 : (int)length;
    gb_set_error("\"%.*s\" means nothing here; expected: %s", shown, text, wanted);
    gb_verbose_write_error(variable, GB_INVALID_ARGUMENTS);
}

static void complain_of_word(
        const char *variable, const char *word, size_t length, const gb_named_flags *table)
{
    char words[256] = "";
    for (size_t used = 0; table->name && used < sizeof words; table++)
        used += (size_t)snprintf(
                words + used, sizeof words - used, used ? " | %s" : "%s", table->name);
    gb_environment_complain(variable, word, length, words);
}

unsigned gb_environment_flags(const char *variable, const gb_named_flags *table)
{
    unsigned flags = 0;
    const char *list = getenv(variable);
    for (const char *at = list; at && *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        const gb_named_flags *entry = table;
        while (entry->name &&
                (strlen(entry->name) != length || strncasecmp(entry->name, at, length) != 0))
            entry++;
        if (entry->name)
            flags |= entry->flags;
        else if (length > 0)
            complain_of_word(variable, at, length, table);
        at += length;
    }
    return flags;
}

unsigned gb_environment_flags_once(
        atomic_int *flags, const char *variable, const gb_named_flags *table)
{
    /* One thread reads, so that words without meaning are told once. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int asked = atomic_load_explicit(flags, memory_order_relaxed);
    if (asked >= 0)
        return (unsigned)asked;
    pthread_mutex_lock(&lock);
    asked = atomic_load(flags);
    if (asked < 0) {
        int unread = -1;
        asked = (int)gb_environment_flags(variable, table);
        if (!atomic_compare_exchange_strong(flags, &unread, asked))
            asked = unread; /* set by a call in the meantime */
    }
    pthread_mutex_unlock(&lock);
    return (unsigned)asked;
}

bool gb_environment_number(const char *variable, const char *text, size_t length, size_t *number)
{
    size_t value = 0;
    bool good = length > 0;
    for (size_t i = 0; i < length && good; i++) {
        size_t digit = (size_t)(text[i] - '0');
        good = text[i] >= '0' && text[i] <= '9' && value <= (SIZE_MAX - digit) / 10;
        value = value * 10 + digit;
    }
    if (good)
        *number = value;
    else
        gb_environment_complain(variable, text, length, "a whole number");
    return good;
}
