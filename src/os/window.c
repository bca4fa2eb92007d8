/* SPDX-License-Identifier: MIT */
/* The kept part of a stream: see window.h. */
#include "os/window.h"

#include <sys/mman.h>

void window_init(struct window *w, size_t cap) {
    *w = (struct window){.cap = cap};
}

void window_fini(struct window *w) {
    if (w->at != NULL)
        munmap(w->at, w->cap);
    w->at = NULL;
    w->from = w->to;
}

static bool map(struct window *w) {
    void *at = mmap(NULL, w->cap, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return false;
    w->at = at;
    return true;
}

static size_t place(const struct window *w, uint64_t offset) {
    return (size_t)((offset - w->origin) % w->cap);
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

struct room window_room(struct window *w) {
    if (window_free(w) == 0 || (w->at == NULL && !map(w)))
        return room_of(NULL, 0);
    if (w->from == w->to)
        w->origin = w->to;
    size_t at = place(w, w->to);
    return room_of(w->at + at, smaller(window_free(w), w->cap - at));
}

void window_grow(struct window *w, size_t len) {
    ASSERT(len <= window_free(w));
    w->to += len;
}

struct bytes window_part(const struct window *w, uint64_t offset) {
    ASSERT(offset >= w->from && offset <= w->to);
    if (offset == w->to)
        return bytes_of(NULL, 0);
    size_t at = place(w, offset);
    return bytes_of(w->at + at, smaller((size_t)(w->to - offset), w->cap - at));
}

void window_drop(struct window *w, uint64_t before) {
    if (before > w->to)
        before = w->to;
    if (before > w->from)
        w->from = before;
}
