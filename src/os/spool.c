/* SPDX-License-Identifier: MIT */
/* A queue of bytes: see spool.h. */
#include "os/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SMALLEST = 4096, KEPT = 256 * 1024 };

void spool_fini(struct spool *s) {
    free(s->at);
    *s = (struct spool){.at = NULL};
}

/* Room for so many bytes behind those that are there. */
static int make_room(struct spool *s, size_t len) {
    size_t held = s->to - s->from;
    if (s->cap - s->to >= len)
        return 0;
    if (s->from > 0) {
        memmove(s->at, s->at + s->from, held);
        s->from = 0;
        s->to = held;
    }
    size_t cap = s->cap == 0 ? SMALLEST : s->cap;
    while (cap - held < len)
        cap *= 2;
    if (cap == s->cap)
        return 0;
    uint8_t *at = realloc(s->at, cap);
    if (at == NULL)
        return -ENOMEM;
    s->at = at;
    s->cap = cap;
    return 0;
}

int spool_add(struct spool *s, struct bytes bytes) {
    if (bytes.len == 0)
        return 0;
    int r = make_room(s, bytes.len);
    if (r < 0)
        return r;
    memcpy(s->at + s->to, bytes.at, bytes.len);
    s->to += bytes.len;
    return 0;
}

void spool_drop(struct spool *s, size_t len) {
    s->from += len;
    if (s->from != s->to)
        return;
    s->from = s->to = 0;
    if (s->cap > KEPT) /* it was needed once */
        spool_fini(s);
}

int spool_write(struct spool *s, int fd) {
    while (s->to > s->from) {
        ssize_t n = write(fd, s->at + s->from, s->to - s->from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        spool_drop(s, (size_t)n);
    }
    return 0;
}

long spool_read(struct spool *s, int fd, size_t most) {
    int r = make_room(s, most);
    if (r < 0)
        return r;
    ssize_t n;
    do
        n = read(fd, s->at + s->to, most);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        s->to += (size_t)n;
    return n < 0 ? -errno : n;
}
