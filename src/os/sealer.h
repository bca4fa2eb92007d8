/* SPDX-License-Identifier: MIT */
/* How connections are made private, as a table of functions.
 *
 * conn.c and links.c know only this table. A program that talks to no other machine gives none, and the library
 * that does the work (seal.c) is not part of it: launchers, of which every node has one, stay small. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "wire/identity.h"

struct seal;  /* one session */
struct seals; /* what all sessions of a process share */

/* What a handshake waits for. */
enum seal_wait { SEAL_DONE, SEAL_HEAR, SEAL_SEND };

struct sealer {
    struct seals *seals;
    /* A session over a socket that is connected, or will be before anything is said. NULL: no memory, or there is no
     * key for this node. The socket stays the caller's. */
    struct seal *(*connect)(struct seals *all, int fd, uint32_t to);
    struct seal *(*accept)(struct seals *all, int fd);
    void (*free)(struct seal *s);
    /* The socket has something: once, and no more, may it be taken from. */
    void (*heard)(struct seal *s);
    /* Goes on with the handshake: enum seal_wait, or -errno (-ESTALE: a key of a former epoch; -ECONNRESET: the peer has
     * gone; others: it is none that we know). */
    int (*shake)(struct seal *s);
    /* Bytes, 0: the peer has said that this is the end; -EAGAIN; -ECONNRESET: it has gone without a word; -errno. What was
     * taken from the socket is all handed out before -EAGAIN, so that whoever waits for the socket misses nothing. */
    ssize_t (*read)(struct seal *s, void *at, size_t len);
    /* How many were taken, at least one; -EAGAIN: then the same bytes must come first when it is tried again; -errno. */
    ssize_t (*write)(struct seal *s, const void *at, size_t len);
    /* Says that nothing more comes: 0, -EAGAIN or -errno. */
    int (*finish)(struct seal *s);
    /* Who it is with: by the identity whose key both have. Only after the handshake. */
    const struct identity *(*who)(const struct seal *s);
    /* For people, after anything has failed. */
    const char *(*reason)(const struct seal *s);
};
