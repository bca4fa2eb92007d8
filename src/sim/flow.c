/* SPDX-License-Identifier: MIT */
/* A stream of bytes through a pipe and a window: see flow.h. */
#include "sim/flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void flow_fini(struct flow *f) {
    free(f->at);
    *f = (struct flow){0};
}

uint64_t flow_room(const struct flow *f) {
    return f->from + f->window + PIPE_BYTES - f->to;
}

uint64_t flow_read(const struct flow *f) {
    return f->to < f->from + f->window ? f->to : f->from + f->window;
}

void flow_write(struct flow *f, struct bytes bytes) {
    size_t used = (size_t)(f->to - f->from);
    ASSERT(bytes.len <= flow_room(f));
    if (bytes.len == 0)
        return;
    if (used + bytes.len > f->cap) {
        f->cap = 2 * (used + bytes.len);
        f->at = realloc(f->at, f->cap);
        ASSERT(f->at != NULL);
    }
    memcpy(f->at + used, bytes.at, bytes.len);
    f->to += bytes.len;
}

void flow_drop(struct flow *f, uint64_t before) {
    if (before <= f->from)
        return;
    ASSERT(before <= f->to);
    memmove(f->at, f->at + (before - f->from), (size_t)(f->to - before));
    f->from = before;
}

struct bytes flow_part(const struct flow *f, uint64_t from, uint64_t to) {
    ASSERT(f->from <= from && from <= to && to <= f->to);
    return to == from ? (struct bytes){0} : bytes_of(f->at + (from - f->from), (size_t)(to - from));
}
