/* SPDX-License-Identifier: MIT */
/* A program's connection to the server of a work distributor: found, made again, words out and words in. */
#pragma once

#include "client/wodi_side.h"
#include "os/address.h"

struct wodi_link {
    struct address to;
    uint64_t token[2];
    uint64_t patience_ns;
    int fd; /* -1: none */
    struct wodi_bytes in;
    size_t given; /* of `in`, by link_next */
};

/* `server`: "ADDRESS#TOKEN"; NULL: environment variable STORM_WODI. -EINVAL, -ENOENT: there is none. */
int wodi_link_init(struct wodi_link *l, const char *server, unsigned patience_s);
void wodi_link_fini(struct wodi_link *l);

/* Connects, again and again for as long as patience lasts. 0 or -errno. */
int wodi_link_connect(struct wodi_link *l);
void wodi_link_drop(struct wodi_link *l);

/* Sends what the socket takes and reads what it has; if neither is possible and `wait`, waits. False: the connection has
 * ended, and was dropped. */
bool wodi_link_exchange(struct wodi_link *l, struct wodi_bytes *out, bool wait);

/* Only sends what the socket takes; whether it has ended is seen when it is read from. */
void wodi_link_send(struct wodi_link *l, struct wodi_bytes *out);

/* The next word that is here; it is valid until the next call. 1, 0: none, -1: nonsense. */
int wodi_link_next(struct wodi_link *l, struct word *ret);

/* For what comes from options or the environment. */
const char *wodi_link_setting(const char *given, const char *variable, const char *usual);
/* A speed in units of 1/SPEED_ONE; anything that is none is 1. */
uint64_t wodi_link_speed(double speed);
