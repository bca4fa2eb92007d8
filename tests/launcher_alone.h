/* SPDX-License-Identifier: MIT */
/* A launcher alone: what its manager and the world would say is fed, and what it does is told in words by the test. */
#pragma once

#include <stdarg.h>
#include <stdlib.h>

#include "base/units.h"
#include "pl/inside.h"
#include "tap.h"

enum { LINK = 7, TEXT = 4096 };

struct bench {
    struct pl *pl;
    struct machine machine;
    void *memory;
    struct effects out;
    struct effect *list;
    uint64_t *bytes;
    uint64_t now;
    uint64_t number; /* of the last strobe */
    bool loose;      /* memory of what starts next is not limited */
    char text[TEXT]; /* the effects of the last input that the test tells of */
};

/* The test's: says what is to be known of an effect. */
static void tell(struct bench *b, const struct effect *e);

__attribute__((format(printf, 2, 3))) static inline void say(struct bench *b, const char *format,
                                                             ...) {
    size_t used = strlen(b->text);
    va_list args;
    va_start(args, format);
    if (used > 0 && used + 2 < TEXT)
        memcpy(b->text + used, "; ", 3), used += 2;
    vsnprintf(b->text + used, TEXT - used, format, args);
    va_end(args);
}

static inline const char *feed(struct bench *b, struct input in) {
    effects_clear(&b->out);
    in.now = b->now;
    b->machine.step(b->machine.self, &in, &b->out);
    b->text[0] = '\0';
    for (uint32_t i = 0; i < b->out.count; i++)
        tell(b, &b->list[i]);
    return b->text;
}

static inline const char *link_up(struct bench *b, uint32_t link) {
    return feed(b,
                (struct input){.kind = INPUT_LINK_UP, .link = {.link = link, .role = ROLE_KEEPER}});
}

static inline const char *message(struct bench *b, uint16_t type, const union message *m) {
    uint8_t body[2048];
    long len = message_encode(type, m, room_of(body, sizeof body));
    CHECK(len >= 0);
    return feed(b,
                (struct input){
                    .kind = INPUT_MESSAGE,
                    .message = {.link = LINK, .type = type, .body = bytes_of(body, (size_t)len)}});
}

static inline const char *setup_of(struct bench *b, const struct setup *s, uint64_t slots) {
    uint8_t bytes[128];
    long len = setup_encode(s, room_of(bytes, sizeof bytes));
    CHECK(len >= 0);
    union message m = {
        .setup = {.run = s->run, .slots = slots, .setup = bytes_of(bytes, (size_t)len)}};
    return message(b, MESSAGE_SETUP, &m);
}

/* Its memory is not zero at first: it must not depend on that. */
static inline void launcher_begin(struct bench *b, const struct pl_config *c) {
    size_t bytes = pl_bytes(c);
    struct arena a;
    *b = (struct bench){.now = 100 * NS_PER_S, .memory = malloc(bytes)};
    memset(b->memory, 0xEE, bytes);
    arena_init(&a, b->memory, bytes);
    b->pl = pl_new(c, &a);
    CHECK_EQ(arena_used(&a), bytes);
    b->machine = pl_machine(b->pl);
    b->list = calloc(pl_effects_max(c), sizeof *b->list);
    b->bytes = calloc(1, pl_effect_bytes_max(c));
    effects_init(&b->out, b->list, pl_effects_max(c), (uint8_t *)b->bytes, pl_effect_bytes_max(c));
}

static inline void launcher_end(struct bench *b) {
    free(b->memory);
    free(b->list);
    free(b->bytes);
}
