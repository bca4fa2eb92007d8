/* SPDX-License-Identifier: MIT */
/* A thread that writes to files, so that whoever has the bytes can see to the next meanwhile.
 *
 * It comes with the first that is to be written. What was written is taken back in the order in which it was given; until then
 * the bytes must stay where they are. */
#pragma once

#include <pthread.h>

#include "base/bytes.h"
#include "os/loop.h"

enum { WRITER_MAX = 64 };

struct writing {
    int fd; /* the writer's: it closes it */
    uint64_t offset;
    struct bytes bytes;
    uint64_t tag;
    int status; /* when it was written: 0 or -errno */
};

struct writer {
    struct loop *loop;
    struct source source; /* ready when something was written; -1: there is no thread */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t given, written;
    bool ends;
    uint64_t in, done, out; /* given, written, taken back: how many */
    struct writing ring[WRITER_MAX];
};

/* `ready` is called when there is something to be taken back. */
void writer_init(struct writer *w, struct loop *loop, void (*ready)(struct source *s, uint32_t e));
void writer_fini(struct writer *w);

/* False: it cannot take it now. */
bool writer_give(struct writer *w, const struct writing *writing);
/* What was written next; false: nothing was. */
bool writer_take(struct writer *w, struct writing *ret);
/* Until all is written. */
void writer_wait(struct writer *w);
