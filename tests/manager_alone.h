/* SPDX-License-Identifier: MIT */
/* A manager alone: what nodes and clients would say is fed, what it says to them is read. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "mm/inside.h"
#include "tap.h"

enum { NODES = 6, PES = 2, LINK = 9, EFFECTS = 4096, BYTES = 1 << 20, BODY = 4096 };

struct bench {
    void *memory;
    struct mm *mm;
    struct roster roster;
    struct effects out;
    struct effect *list;
    uint8_t *bytes;
    uint64_t now;
    uint64_t storage[4][16];
    struct nodeset set, none, sets[2];
    uint64_t requests;
};

static inline void feed(struct bench *b, struct input in) {
    struct machine m = mm_machine(b->mm);
    effects_clear(&b->out);
    in.now = b->now;
    m.step(m.self, &in, &b->out);
}

static inline void setup(struct bench *b) {
    memset(b, 0, sizeof *b);
    b->roster = roster_plain("n", NODES);
    b->list = malloc(EFFECTS * sizeof *b->list);
    b->bytes = malloc(BYTES);
    b->now = NS_PER_S;
    effects_init(&b->out, b->list, EFFECTS, b->bytes, BYTES);
    nodeset_init(&b->set, NODES + 1, b->storage[0]);
    nodeset_init(&b->none, NODES + 1, b->storage[1]);
    nodeset_init(&b->sets[0], NODES + 1, b->storage[2]);
    nodeset_init(&b->sets[1], NODES + 1, b->storage[3]);
    struct mm_config c = {.limits = {.nodes = NODES,
                                     .roots = 1,
                                     .body_bytes = BODY,
                                     .outstanding = 16,
                                     .record_channels = 1,
                                     .record_bytes = 64},
                          .pes = PES,
                          .jobs_max = 64,
                          .clients_max = 4,
                          .roster = &b->roster};
    struct arena a;
    mm_config_times(&c);
    size_t bytes = mm_bytes(&c);
    b->memory = calloc(1, bytes);
    arena_init(&a, b->memory, bytes);
    b->mm = mm_new(&c, &a);
    feed(b, (struct input){.kind = INPUT_BOOT,
                           .boot = {.node = NODES, .root = true, .epoch = 1, .boots = 1}});
}

static inline void teardown(struct bench *b) {
    CHECK(mm_over_limit(b->mm) == NULL);
    free(b->memory);
    free(b->list);
    free(b->bytes);
}

static inline void begin(struct bench *b) {
    setup(b);
    feed(b, (struct input){.kind = INPUT_REPLAY}); /* there was nothing */
}

static inline void say(struct bench *b, uint32_t link, uint32_t peer, uint16_t type,
                       const union message *m) {
    uint8_t body[BODY];
    long len = message_encode(type, m, room_of(body, sizeof body));
    CHECK(len >= 0);
    feed(b, (struct input){.kind = INPUT_MESSAGE,
                           .message = {.link = link,
                                       .peer = peer,
                                       .type = type,
                                       .body = bytes_of(body, (size_t)len)}});
}

/* A node joins, and tells that it has nothing. */
static inline void join(struct bench *b, uint32_t node) {
    union message have = {.have = {.all = true}};
    nodeset_clear(&b->set);
    nodeset_add(&b->set, node);
    feed(b, (struct input){.kind = INPUT_NODES, .nodes = {.nodes = &b->set, .up = true}});
    say(b, 0, node, MESSAGE_HAVE, &have);
}
