/* SPDX-License-Identifier: MIT */
/* A growing array of events: see journal.h. There are some hundreds of them, so they are searched. */
#include "sim/journal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void journal_fini(struct journal *j) {
    for (uint32_t i = 0; i < j->count; i++)
        free(j->events[i].at);
    free(j->events);
    *j = (struct journal){0};
}

void journal_append(struct journal *j, uint64_t key, bool closes, struct bytes body) {
    if (j->count == j->cap) {
        j->cap = j->cap ? 2 * j->cap : 64;
        j->events = realloc(j->events, j->cap * sizeof *j->events);
        ASSERT(j->events != NULL);
    }
    uint8_t *copy = malloc(body.len);
    ASSERT(copy != NULL);
    memcpy(copy, body.at, body.len);
    j->events[j->count++] =
        (struct journal_event){.key = key, .closes = closes, .len = (uint32_t)body.len, .at = copy};
    if (closes && key > j->highest)
        j->highest = key;
}

struct bytes journal_first(const struct journal *j, uint64_t key) {
    for (uint32_t i = 0; i < j->count; i++)
        if (j->events[i].key == key)
            return bytes_of(j->events[i].at, j->events[i].len);
    return (struct bytes){0};
}

/* Was it closed, and so long ago that nobody will ask for it? */
static bool is_old(const struct journal *j, uint64_t key) {
    uint32_t since = 0; /* keys that were closed after it */
    for (uint32_t i = j->count; i-- > 0;) {
        if (!j->events[i].closes)
            continue;
        if (j->events[i].key == key)
            return since >= LOG_OVER_KEPT;
        since++;
    }
    return false;
}

bool journal_next(const struct journal *j, uint32_t *at, struct input_replay *ret) {
    while (*at < j->count) {
        const struct journal_event *e = &j->events[(*at)++];
        bool old = is_old(j, e->key);
        if (old && (e->key != j->highest || journal_first(j, e->key).at != e->at))
            continue;
        *ret = (struct input_replay){.key = e->key, .over = old, .body = bytes_of(e->at, e->len)};
        return true;
    }
    return false;
}
