/* SPDX-License-Identifier: MIT */
/* What a node's daemon has logged and the disk has taken: EFFECT_LOG of the simulated world.
 *
 * Events in the order in which they became durable. Those of keys that are over are kept, but only the
 * keys that were over last are told to a new life. */
#pragma once

#include "machine/machine.h"

struct journal_event {
    uint64_t key;
    bool closes;
    uint32_t len;
    uint8_t *at;
};

struct journal {
    struct journal_event *events;
    uint32_t count, cap;
    uint64_t highest; /* key that is over */
};

void journal_fini(struct journal *j); /* a zeroed one is fine */

void journal_append(struct journal *j, uint64_t key, bool closes, struct bytes body);

/* The first event of a key; empty if there is none. */
struct bytes journal_first(const struct journal *j, uint64_t key);

/* The next event that a new life is told, from *at on, which moves; false at the end. */
bool journal_next(const struct journal *j, uint32_t *at, struct input_replay *ret);
