/* SPDX-License-Identifier: MIT */
/* A node manager alone: what the root and its launcher would say is fed, what it says to them is read. */
#pragma once

#include <stdlib.h>

#include "nm/inside.h"
#include "tap.h"

enum { SELF = 1, LINK = 5, EFFECTS = 64, BYTES = 64 * 1024 };

static const struct roster roster = {.prefix = "n", .capacity = 4, .count = 4};
static const struct nm_config config = {.limits = {.nodes = 4, .roots = 1, .body_bytes = 1024},
                                        .self = SELF,
                                        .runs = 8,
                                        .roster = &roster,
                                        .lease_ns = 1000000};

struct bench {
    void *memory;
    struct nm *nm;
    struct effects out;
    struct effect list[EFFECTS];
    uint64_t bytes[BYTES / 8];
};

static inline void feed(struct bench *b, struct input in) {
    struct machine m = nm_machine(b->nm);
    effects_clear(&b->out);
    in.now = 1000;
    m.step(m.self, &in, &b->out);
}

static inline void begin(struct bench *b) {
    struct arena a;
    size_t bytes = nm_bytes(&config);
    b->memory = calloc(1, bytes);
    arena_init(&a, b->memory, bytes);
    b->nm = nm_new(&config, &a);
    effects_init(&b->out, b->list, EFFECTS, (uint8_t *)b->bytes, BYTES);
}

static inline void link_up(struct bench *b) {
    feed(b, (struct input){.kind = INPUT_LINK_UP,
                           .link = {.link = LINK, .role = ROLE_LAUNCHER, .life = 9}});
}

/* A message of this type to a link, or to the root, in the last step; NULL: none. */
static inline const struct effect *spoken(const struct bench *b, enum effect_kind kind,
                                          uint16_t type) {
    for (uint32_t i = 0; i < b->out.count; i++) {
        const struct effect *e = &b->out.list[i];
        if (e->kind == kind && (kind == EFFECT_SEND ? e->send.type : e->request.type) == type)
            return e;
    }
    return NULL;
}
