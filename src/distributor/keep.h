/* SPDX-License-Identifier: MIT */
/* The journal of a work distributor: a file of records, written in batches, made anew when it has grown.
 *
 * FOLDER/journal begins with a line that names the format; records follow as wodi/words.h has them. The first that is not
 * whole ends it: a server that was killed while it wrote left it so, and it is cut off.
 *
 * Records gather in memory and are written at the end of a turn with one call. Once written they survive the death of the
 * process. To survive that of the machine they must be synced: a thread does that while the next ones gather, so all that
 * came during one sync share the next. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "client/wodi_side.h"
#include "os/loop.h"
#include "wodi/desk.h"

struct keep {
    int folder, fd;
    bool sync;
    struct wodi_bytes gathered;
    uint64_t records, written, durable; /* of this life */
    uint64_t bytes, snapshot_bytes;
    uint64_t compact_bytes; /* a smaller one is not made anew */
    uint64_t writes, syncs; /* calls, for those who measure */
    /* The thread: `wanted` is handed to it, `synced` comes back. */
    pthread_t thread;
    int ask, answer; /* eventfds */
    bool busy, ending;
    uint64_t wanted;
    int sync_status; /* the thread's, until it has answered */
    int status;      /* -errno: nothing can be promised any more */
};

/* Opens FOLDER (a descriptor), replays what there is into the desk. -EBUSY: another server has it; -EUCLEAN: it is damaged. */
int keep_open(struct keep *k, int folder, bool sync, uint64_t compact_bytes, struct desk *desk);
void keep_close(struct keep *k);

void keep_add(struct keep *k, struct bytes record);
/* Writes what has gathered. 0 or -errno: nothing can be promised any more. */
int keep_flush(struct keep *k);
/* k->answer is readable: k->durable has grown, or k->status says why not. */
void keep_answered(struct keep *k);

/* It has grown to much more than is needed, and is at rest. */
bool keep_should_compact(const struct keep *k);
/* A new journal that says how things stand takes its place; everything is durable then. */
int keep_compact(struct keep *k, const struct desk *desk);
