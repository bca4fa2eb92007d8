/* SPDX-License-Identifier: MIT */
/* Bytes on their way into a descriptor, or out of one: a queue in memory that grows as it must. */
#pragma once

#include "base/bytes.h"

struct spool {
    uint8_t *at;
    size_t from, to, cap;
};

void spool_fini(struct spool *s);

static inline struct bytes spool_bytes(const struct spool *s) {
    return bytes_of(s->at + s->from, s->to - s->from);
}

/* -ENOMEM: nothing was added. */
int spool_add(struct spool *s, struct bytes bytes);
void spool_drop(struct spool *s, size_t len);

/* Writes as much as the descriptor takes now. 0 or -errno; that it takes nothing now is no error. */
int spool_write(struct spool *s, int fd);

/* Reads once, at most so much: how many bytes came; 0: the end; -EAGAIN, or -errno. */
long spool_read(struct spool *s, int fd, size_t most);
