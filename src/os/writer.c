/* SPDX-License-Identifier: MIT */
/* A thread that writes to files: see writer.h. */
#include "os/writer.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/files.h"
#include "os/home.h"
#include "os/thread.h"

void writer_init(struct writer *w, struct loop *loop, void (*ready)(struct source *s, uint32_t e)) {
    *w = (struct writer){.loop = loop,
                         .source = {.fd = -1, .ready = ready},
                         .mutex = PTHREAD_MUTEX_INITIALIZER,
                         .given = PTHREAD_COND_INITIALIZER,
                         .written = PTHREAD_COND_INITIALIZER};
}

/* ---- the thread ---- */

static bool next(struct writer *w, struct writing *ret) {
    pthread_mutex_lock(&w->mutex);
    while (w->done == w->in && !w->ends)
        pthread_cond_wait(&w->given, &w->mutex);
    bool more = w->done < w->in;
    *ret = w->ring[w->done % WRITER_MAX];
    pthread_mutex_unlock(&w->mutex);
    return more;
}

static void *work(void *context) {
    struct writer *w = context;
    const uint64_t one = 1;
    for (struct writing job; next(w, &job);) {
        int r = files_write(job.fd, job.bytes, job.offset);
        close(job.fd);
        pthread_mutex_lock(&w->mutex);
        w->ring[w->done % WRITER_MAX].status = r;
        bool first = w->done++ ==
                     w->out; /* otherwise the other has not seen the last yet, and will see this */
        pthread_cond_signal(&w->written);
        pthread_mutex_unlock(&w->mutex);
        if (first && write(w->source.fd, &one, sizeof one) < 0)
            ASSERT(false); /* of a counter that is read before it is full */
    }
    return NULL;
}

/* ---- whoever has it ---- */

static bool begin(struct writer *w) {
    w->source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->source.fd < 0)
        return false;
    if (loop_add(w->loop, &w->source, EPOLLIN) == 0) {
        if (thread_start(&w->thread, work, w) == 0) {
            home_apart(w->thread);
            return true;
        }
        loop_remove(w->loop, &w->source);
    }
    close(w->source.fd);
    w->source.fd = -1;
    return false;
}

bool writer_give(struct writer *w, const struct writing *writing) {
    if (w->source.fd < 0 && !begin(w))
        return false;
    pthread_mutex_lock(&w->mutex);
    bool room = w->in - w->out < WRITER_MAX;
    if (room)
        w->ring[w->in++ % WRITER_MAX] = *writing;
    pthread_cond_signal(&w->given);
    pthread_mutex_unlock(&w->mutex);
    return room;
}

bool writer_take(struct writer *w, struct writing *ret) {
    uint64_t count;
    if (w->source.fd < 0)
        return false;
    /* First: what is written after we have looked is told anew. */
    ssize_t told = read(w->source.fd, &count, sizeof count);
    (void)told;
    pthread_mutex_lock(&w->mutex);
    bool some = w->out < w->done;
    if (some)
        *ret = w->ring[w->out++ % WRITER_MAX];
    pthread_mutex_unlock(&w->mutex);
    return some;
}

void writer_wait(struct writer *w) {
    if (w->source.fd < 0)
        return;
    pthread_mutex_lock(&w->mutex);
    while (w->done < w->in)
        pthread_cond_wait(&w->written, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
}

void writer_fini(struct writer *w) {
    if (w->source.fd < 0)
        return;
    pthread_mutex_lock(&w->mutex);
    w->ends = true;
    pthread_cond_signal(&w->given);
    pthread_mutex_unlock(&w->mutex);
    pthread_join(w->thread, NULL);
    loop_remove(w->loop, &w->source);
    close(w->source.fd);
    w->source.fd = -1;
}
