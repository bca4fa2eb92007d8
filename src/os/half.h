/* SPDX-License-Identifier: MIT */
/* The second half of a file that is looked over by two threads.
 *
 * A cut depends on the one before, so the other thread cannot know where to begin. It begins anywhere. From the first place
 * on where both would cut, a few pieces behind the middle, all of its cuts are those that one thread alone
 * would have made; up to there the first half goes on. So the pieces are the same, whoever made them. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "os/digest.h"
#include "os/pieces.h"

struct half {
    int fd;
    uint64_t from, to;
    struct pieces pieces;
    struct sum *sum;
    _Atomic uint64_t at;
    _Atomic bool stopped;
    int status;
    pthread_t thread;
    bool over; /* and joined */
};

/* Where to begin with the second half of these bytes of a file; 0: they are too few, or summed otherwise. */
uint64_t half_middle(uint64_t from, uint64_t to, enum digest_kind digest);
/* Begins with these bytes, in pieces as these are. 0 or -errno. */
int half_start(struct half *h, int fd, uint64_t from, uint64_t to, const struct pieces *like);
/* How many bytes of it were looked at. */
uint64_t half_done(const struct half *h);
/* Waits a little: is it over? */
bool half_await(struct half *h);
/* The first half has come to its end, or (status) to none: waits for the second, or stops it. The bytes of both
 * are then in `pieces`, those of the second in `sum`, too. Returns `status`, or what went wrong. Must be called once for
 * each start. */
int half_end(struct half *h, int status, struct pieces *pieces, struct sum *sum);
