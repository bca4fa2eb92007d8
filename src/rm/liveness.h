/* SPDX-License-Identifier: MIT */
/* Who is there: the heartbeat of the STORM paper (Algorithms 4 and 5), and what follows from it.
 *
 * The primitives send one tick a period down the tree and combine the answers, so an ordinary wave
 * tells one thing: all are there. When it comes back incomplete, or counts fewer nodes than are up, a
 * gather without a channel finds out who is missing, down to the node; while nobody is silent
 * nothing but the wave is sent. The root's daemon embeds a `struct liveness` and passes it the
 * inputs it gets. A node is *silent* from the first heartbeat it has missed until it answers again
 * or the primitives give it up; then it is *down*. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "machine/limits.h"
#include "machine/machine.h"

struct liveness_config {
    struct limits limits; /* with at least one channel for records: without, there are no gathers */
    uint64_t period_ns;   /* of the heartbeat, as the primitives have it */
    uint64_t tag;         /* of our requests: nobody else in the daemon uses it */
};

enum liveness_state { LIVENESS_DOWN, LIVENESS_UP, LIVENESS_SILENT, LIVENESS_STATES };

struct liveness_node {
    enum liveness_state state;
    uint64_t since_ns; /* 0 if it has never been up */
    uint64_t missed;   /* heartbeats in a row, while it is silent */
};

/* Nodes whose state has changed. */
struct liveness_news {
    struct nodeset up;     /* have become members */
    struct nodeset silent; /* have missed a heartbeat */
    struct nodeset back;   /* were silent and have answered */
    struct nodeset down;   /* are members no more */
};

struct liveness;

size_t liveness_bytes(const struct liveness_config *c);
struct liveness *liveness_new(const struct liveness_config *c, struct arena *a);

/* All inputs of the daemon may be passed. What has changed, good until the next input; NULL if
 * nothing has. */
const struct liveness_news *liveness_input(struct liveness *l, const struct input *in,
                                           struct effects *out);

struct liveness_node liveness_node(const struct liveness *l, uint32_t node);

/* Members that answer, and those that do not. */
const struct nodeset *liveness_up(const struct liveness *l);
const struct nodeset *liveness_silent(const struct liveness *l);

/* How long the newest wave that came back whole has taken; 0 before the first. */
uint64_t liveness_wave_ns(const struct liveness *l);
