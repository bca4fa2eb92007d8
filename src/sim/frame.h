/* SPDX-License-Identifier: MIT */
/* A frame on its way: a real encoded header and a body that many frames may share.
 *
 * A frame belongs to the direction of its link (its flight) until it reaches the receiving node's
 * memory; then to the event queue or inbox it is in. It keeps its link alive. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "sim/event.h"
#include "wire/header.h"

struct end;

struct body {
    uint32_t refs;
    uint32_t len;
    uint8_t bytes[];
};

struct frame {
    struct event event;
    struct list flight;
    struct end *to;
    struct body *body;
    uint64_t sent_at;    /* when its last byte has left the sender */
    uint64_t wire_at;    /* when it is off the wire */
    uint32_t extra;      /* bytes that it is charged for beyond those it has */
    struct notice *sent; /* of a put that has not left: its sender wants to hear when it has */
    uint8_t lane;
    bool lost;          /* it will vanish instead of arriving */
    bool counted;       /* among what was sent to its end */
    uint8_t header_len; /* less than HEADER_BYTES: the bytes ended early */
    uint8_t header[HEADER_BYTES];
};

/* With one reference, the caller's; bytes to be filled in. */
struct body *body_new(struct world *w, size_t len);
void body_free(struct world *w, struct body *b); /* gives one reference back; NULL is fine */

/* A frame with a reference of its own to the body (which may be NULL: no bytes), not in flight. */
struct frame *frame_new(struct world *w, struct end *to, struct body *body);
void frame_free(struct world *w, struct frame *f);

/* The same frame once more. */
struct frame *frame_copy(struct world *w, const struct frame *f);

static inline struct bytes frame_body(const struct frame *f) {
    return f->body ? bytes_of(f->body->bytes, f->body->len) : (struct bytes){0};
}

static inline uint64_t frame_bytes(const struct frame *f) {
    return HEADER_BYTES + (uint64_t)f->extra + (f->body ? f->body->len : 0);
}
