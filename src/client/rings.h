/* SPDX-License-Identifier: MIT */
/* Two rings of bytes in memory that two processes share, one each way.
 *
 * Whoever calls makes the memory, sealed so that nobody can take it away again; the other gets it by its socket. Each side counts
 * what it has written and what it has read; both counts only grow. Before a side waits for its socket it says what for, and looks
 * once more; the other then wakes it by one byte. What the other says is not trusted: counts that cannot be are an error. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RINGS_BYTES = 256 << 10
}; /* of each; a power of two. Many processes of a node may all know each other */

/* One way. What the two sides write lies apart, each in a line of the cache. */
struct ring {
    _Alignas(64) _Atomic uint64_t written;
    _Atomic uint32_t writer_waits; /* for room */
    _Alignas(64) _Atomic uint64_t read;
    _Atomic uint32_t reader_waits; /* for bytes */
};

struct rings {
    struct ring *out, *in; /* NULL: there are none */
    uint8_t *out_bytes, *in_bytes;
    uint64_t written, read; /* our own counts */
    void *memory;
};

/* A descriptor to be passed on, or -errno. */
int rings_make(struct rings *r);
/* 0, or -errno: -EBADMSG: it is no such memory. The descriptor stays the caller's. */
int rings_take(struct rings *r, int fd);
void rings_free(struct rings *r);

/* Bytes that were taken, 0: there is no room, or nothing. -EBADMSG: the other side is mad. */
long rings_write(struct rings *r, const void *from, size_t len);
long rings_read(struct rings *r, void *to, size_t len);

/* Says that we are about to wait. True: there is something already. */
bool rings_wait_in(struct rings *r);
bool rings_wait_out(struct rings *r);
void rings_go_on(struct rings *r);
/* Is there something to read; is there room for half of what can be written? */
bool rings_ready(const struct rings *r);
bool rings_roomy(const struct rings *r);
/* Is the other to be woken, because of what we have written or read? It is asked once. */
bool rings_wake(struct rings *r);
