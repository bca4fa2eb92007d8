/* SPDX-License-Identifier: MIT */
/* Status of the nodes: small records gathered at the root, and the newest of each kept.
 *
 * Every node publishes its record; nothing is sent until somebody asks. The root's daemon embeds a
 * `struct gather` for each channel, starts it for a set of nodes and passes it the inputs it gets. It asks
 * for the records, asks those who are missing again, a bounded number of times, and tells when all
 * have answered or the time is over. One gather after the other; what is known stays known until
 * the node answers anew or is down. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "machine/limits.h"
#include "machine/machine.h"

struct gather_config {
    struct limits limits;
    uint32_t channel; /* below limits.record_channels */
    uint32_t tries;   /* requests for one gather, at least 1 */
    uint32_t timer;   /* in the daemon nobody else uses this timer ... */
    uint64_t tag;     /* ... nor this tag of requests */
};

enum gather_news {
    GATHER_NOTHING,
    GATHER_COMPLETE, /* all have answered */
    GATHER_ENDED,    /* out of time or of tries: some are missing */
};

/* What a node has last answered. */
struct gather_record {
    struct bytes bytes;
    uint64_t at; /* when that came */
};

struct gather;

size_t gather_bytes(const struct gather_config *c);
struct gather *gather_new(const struct gather_config *c, struct arena *a);

/* Begins to ask; false if a gather is still under way, or nobody is to be asked. */
bool gather_start(struct gather *g, const struct nodeset *set, uint64_t timeout_ns, uint64_t now,
                  struct effects *out);

/* All inputs of the daemon may be passed. */
enum gather_news gather_input(struct gather *g, const struct input *in, struct effects *out);

bool gather_busy(const struct gather *g);

/* Who of the newest gather has not answered (yet). */
const struct nodeset *gather_missing(const struct gather *g);

/* The newest record of a node; false if none is known. It is good until the next input. */
bool gather_get(const struct gather *g, uint32_t node, struct gather_record *ret);

/* On every node: what it answers from now on. A new incarnation (INPUT_JOINED) has to say it again;
 * an empty record is none. */
void gather_publish(uint32_t channel, struct bytes record, struct effects *out);
