/* SPDX-License-Identifier: MIT */
/* The part of a stream that is kept: bytes `from` to `to`, numbered from the stream's beginning.
 *
 * They lie in a ring whose memory is asked for when the first byte comes, and whose pages are touched
 * only as far as bytes have lain there: while it is empty it starts again at its first page, so a
 * stream of little lines costs one page, a silent one nothing. */
#pragma once

#include "base/bytes.h"

struct window {
    uint8_t *at; /* NULL until used */
    size_t cap;
    uint64_t
        origin; /* the offset that lies at the ring's beginning, or a whole number of turns ago */
    uint64_t from, to;
};

void window_init(struct window *w, size_t cap);
/* Gives the memory back; what was kept is forgotten. */
void window_fini(struct window *w);

static inline size_t window_free(const struct window *w) {
    return w->cap - (size_t)(w->to - w->from);
}

/* Where the next bytes go, in one piece; empty if there is no room, or no memory. */
struct room window_room(struct window *w);
void window_grow(struct window *w, size_t len);

/* What is kept from this offset on, as far as it lies in one piece. */
struct bytes window_part(const struct window *w, uint64_t offset);
void window_drop(struct window *w, uint64_t before);
