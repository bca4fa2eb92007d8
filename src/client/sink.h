/* SPDX-License-Identifier: MIT */
/* Where output goes on the client's side: a terminal, a pipe, a file.
 *
 * Writing never blocks the command: what a pipe does not take waits here, and whoever produces it sees
 * that the sink is not empty and asks for no more. Standard output is shared with others, so its mode is not
 * changed; the sink opens it once more for itself. */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "os/loop.h"

struct sink {
    struct source source; /* its fd: what we write to */
    struct loop *loop;
    bool own;     /* the descriptor is ours to close */
    bool careful; /* it may block: write little, and only when it is ready */
    bool prepared;
    bool waiting; /* in the loop */
    int error;    /* 0, or -errno: nothing is written any more */
    uint8_t *out;
    size_t at, len, cap;
};

/* Takes over the descriptor if `own`. */
void sink_init(struct sink *s, struct loop *loop, int fd, bool own);
void sink_fini(struct sink *s);

/* These bytes, now or later; once it has failed they are dropped. -ENOMEM. */
int sink_write(struct sink *s, struct bytes bytes);

/* Writes what waits, as far as it goes without blocking. At the end of every turn. */
void sink_settle(struct sink *s);

static inline size_t sink_waiting(const struct sink *s) {
    return s->len - s->at;
}
