/* SPDX-License-Identifier: MIT */
/* Reads files that are to be sent: see scan.h. */
#include "os/scan.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "os/digest.h"
#include "os/feed.h"
#include "os/half.h"
#include "os/thread.h"

#define TELL_BYTES   (1 * MIB)   /* progress is told so often */
#define SECOND_BYTES (2 * MIB)   /* from here on a second thread is worth its start */
#define BLOCK_BYTES  (256 * KIB) /* that it reads at once */
#define LEAD_BYTES \
    (64 * MIB) /* that one thread may be ahead: what is read once stays cached so long */
#define PATIENCE_NS (100 * NS_PER_MS)

/* ---- Progress ---------------------------------------------------------------------------------- */

/* `at`: bytes of this file. */
static int tell(struct scan *s, uint64_t at, bool now) {
    uint64_t done = s->done + at;
    if (s->config->progress == NULL || (!now && done - s->told < TELL_BYTES))
        return 0;
    s->told = done;
    return s->config->progress(s->config->context, done, s->all) ? 0 : -ECANCELED;
}

int scan_skip(struct scan *s, uint64_t bytes) {
    s->done += bytes;
    return tell(s, 0, false);
}

/* ---- What a file consists of ------------------------------------------------------------------- */

struct stretch {
    uint64_t from, to;
    bool hole;
};

/* The stretch of the file that begins at `from`: bytes up to the next hole that is worth it, or such a hole.
 * Where the file system does not tell, all is bytes. */
static struct stretch next_stretch(int fd, const struct found *f, uint64_t from, uint64_t worth) {
    struct stretch all = {.from = from, .to = f->e.bytes};
    if (f->disk_bytes >= f->e.bytes)
        return all;
    uint64_t at = from;
    while (at < f->e.bytes) {
        off_t hole = lseek(fd, (off_t)at, SEEK_HOLE);
        if (hole < 0 || (uint64_t)hole >= f->e.bytes)
            return all;
        off_t data = lseek(fd, hole, SEEK_DATA);
        if (data < 0 && errno != ENXIO)
            return all;
        uint64_t end = data < 0 || (uint64_t)data > f->e.bytes ? f->e.bytes : (uint64_t)data;
        if (end - (uint64_t)hole >= worth && (uint64_t)hole == from)
            return (struct stretch){.from = from, .to = end, .hole = true};
        if (end - (uint64_t)hole >= worth)
            return (struct stretch){.from = from, .to = (uint64_t)hole};
        at = end;
    }
    return all;
}

/* At least a byte; -ESTALE at the end of the file, which is not where it was. */
static long read_some(int fd, struct room out, uint64_t at) {
    ssize_t n;
    do
        n = pread(fd, out.at, out.len, (off_t)at);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n == 0 ? -ESTALE : n;
}

/* ---- Two threads, side by side ----------------------------------------------------------------- */

enum { CUTTER, SUMMER };

struct pair {
    const struct found *f;
    int fd;
    uint64_t worth;
    uint8_t *block;
    struct sum *sum;
    int status; /* of the summer, when it is over */
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    uint64_t at[2];
    bool over[2];
};

/* The cutter waits at the end of the file: it has to tell how far the other is. */
static bool may_go_on(const struct pair *p, int who) {
    bool at_end = who == CUTTER && p->at[who] == p->f->e.bytes;
    return p->over[!who] || (!at_end && p->at[who] <= p->at[!who] + LEAD_BYTES);
}

static struct timespec patience_ends(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t ns = (uint64_t)t.tv_nsec + PATIENCE_NS;
    t.tv_sec += (time_t)(ns / NS_PER_S);
    t.tv_nsec = (long)(ns % NS_PER_S);
    return t;
}

/* The summer is there; it waits for the other if that is far behind. */
static int pace_summer(struct pair *p, uint64_t at) {
    pthread_mutex_lock(&p->mutex);
    p->at[SUMMER] = at;
    pthread_cond_broadcast(&p->moved);
    while (!may_go_on(p, SUMMER))
        pthread_cond_wait(&p->moved, &p->mutex);
    bool stopped = p->over[CUTTER] && p->at[CUTTER] < p->f->e.bytes;
    pthread_mutex_unlock(&p->mutex);
    return stopped ? -ECANCELED : 0;
}

/* The cutter, the same; it also tells how far both are, and while it waits every now and then, as it is
 * whom somebody may want to stop. */
static int pace_cutter(struct pair *p, uint64_t at, struct scan *s) {
    int r = 0;
    pthread_mutex_lock(&p->mutex);
    p->at[CUTTER] = at;
    pthread_cond_broadcast(&p->moved);
    while (r == 0 && !may_go_on(p, CUTTER)) {
        struct timespec until = patience_ends();
        bool late = pthread_cond_timedwait(&p->moved, &p->mutex, &until) == ETIMEDOUT;
        uint64_t both = p->at[SUMMER];
        pthread_mutex_unlock(&p->mutex);
        r = tell(s, both, late);
        pthread_mutex_lock(&p->mutex);
    }
    uint64_t both = at < p->at[SUMMER] ? at : p->at[SUMMER];
    pthread_mutex_unlock(&p->mutex);
    return r < 0 ? r : tell(s, both, false);
}

static void pace_over(struct pair *p, int who) {
    pthread_mutex_lock(&p->mutex);
    p->over[who] = true;
    pthread_cond_broadcast(&p->moved);
    pthread_mutex_unlock(&p->mutex);
}

/* ---- Sums -------------------------------------------------------------------------------------- */

static void sum_zeros(struct sum *sum, uint64_t count) {
    static const uint8_t zeros[4096];
    for (uint64_t n; count > 0; count -= n) {
        n = count < sizeof zeros ? count : sizeof zeros;
        sum_add(sum, bytes_of(zeros, n));
    }
}

static int sum_stretch(struct pair *p, struct stretch t) {
    int r = 0;
    for (uint64_t at = t.from; at < t.to && r == 0;) {
        uint64_t n = t.to - at < BLOCK_BYTES ? t.to - at : BLOCK_BYTES;
        if (t.hole) {
            sum_zeros(p->sum, n);
        } else {
            long got = read_some(p->fd, room_of(p->block, n), at);
            if (got < 0)
                return (int)got;
            n = (uint64_t)got;
            sum_add(p->sum, bytes_of(p->block, n));
        }
        at += n;
        r = pace_summer(p, at);
    }
    return r;
}

static int sum_all(struct pair *p) {
    int r = 0;
    for (uint64_t at = 0; at < p->f->e.bytes && r == 0;) {
        struct stretch t = next_stretch(p->fd, p->f, at, p->worth);
        r = sum_stretch(p, t);
        at = t.to;
    }
    return r;
}

static void *sum_thread(void *context) {
    struct pair *p = context;
    p->status = sum_all(p);
    pace_over(p, SUMMER);
    return NULL;
}

/* ---- Pieces ------------------------------------------------------------------------------------ */

/* Bytes of a file go to the pieces; to `sum`, too, if there is no other thread (`p`) for that. Another may be busy with
 * the second half of them. */
static int add_bytes(struct scan *s, struct feed *feed, struct stretch t, struct sum *sum,
                     struct pair *p, const struct half *half) {
    int r = 0;
    for (uint64_t at = t.from; at < t.to && r == 0;) {
        long n = feed_some(feed, at, t.to, s->pieces, sum);
        if (n < 0)
            return (int)n;
        at += (uint64_t)n;
        s->read += (uint64_t)n;
        uint64_t beside = half != NULL ? half_done(half) : 0;
        r = p != NULL ? pace_cutter(p, at, s) : tell(s, at + beside, false);
    }
    return r;
}

/* The same; where there are many, in two threads. */
static int add_many(struct scan *s, struct feed *feed, struct stretch t, struct sum *sum,
                    struct pair *p) {
    struct half half;
    uint64_t middle = half_middle(t.from, t.to, s->pieces->digest);
    if (middle == 0 || half_start(&half, feed->fd, middle, t.to, s->pieces) < 0)
        return add_bytes(s, feed, t, sum, p, NULL);
    int r = add_bytes(s, feed, (struct stretch){.from = t.from, .to = middle}, sum, p, &half);
    while (r == 0 && !half_await(&half))
        r = tell(s, middle + half_done(&half), true);
    s->read += half_done(&half);
    return half_end(&half, r, s->pieces, sum);
}

/* All zeros, which nobody has to read, but somebody has to sum. */
static int add_hole(struct scan *s, struct stretch t, struct sum *sum, struct pair *p) {
    int r = pieces_add_hole(s->pieces, t.to - t.from);
    for (uint64_t at = t.from; at < t.to && r == 0 && sum != NULL;) {
        uint64_t n = t.to - at < TELL_BYTES ? t.to - at : TELL_BYTES;
        sum_zeros(sum, n);
        at += n;
        r = tell(s, at, false);
    }
    return r == 0 && p != NULL ? pace_cutter(p, t.to, s) : r;
}

static int add_all(struct scan *s, int fd, const struct found *f, struct sum *sum, struct pair *p) {
    struct feed feed = {.fd = fd, .size = f->e.bytes};
    int r = 0;
    for (uint64_t at = 0; at < f->e.bytes && r == 0;) {
        struct stretch t = next_stretch(fd, f, at, s->pieces->usual);
        if (t.hole) {
            r = add_hole(s, t, sum, p);
        } else {
            r = add_many(s, &feed, t, sum, p);
            int ended = pieces_end(s->pieces);
            r = r < 0 ? r : ended;
        }
        at = t.to;
    }
    feed_end(&feed);
    return r;
}

/* 1: it cannot be done in two threads so, or is not worth it: XXH3 is faster than reading. */
static int in_two_threads(struct scan *s, int fd, const struct found *f, struct sum *sum) {
    if (f->e.bytes < SECOND_BYTES || s->pieces->digest != DIGEST_SHA256)
        return 1;
    if (s->block == NULL)
        s->block = malloc(BLOCK_BYTES);
    if (s->block == NULL)
        return 1;
    struct pair p = {.f = f,
                     .fd = fd,
                     .worth = s->pieces->usual,
                     .block = s->block,
                     .sum = sum,
                     .mutex = PTHREAD_MUTEX_INITIALIZER,
                     .moved = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    if (thread_start(&thread, sum_thread, &p) < 0)
        return 1;
    int r = add_all(s, fd, f, NULL, &p);
    pace_over(&p, CUTTER);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&p.moved);
    pthread_mutex_destroy(&p.mutex);
    return r < 0 ? r : p.status;
}

/* ---- Files ------------------------------------------------------------------------------------- */

static int finish(struct scan *s, struct found *f, struct sum *sum, int status) {
    sum_end(sum, status == 0 ? f->e.sum : NULL);
    s->done += f->e.bytes;
    return status < 0 ? status : tell(s, 0, false);
}

int scan_small(struct scan *s, int fd, struct found *f) {
    struct sum *sum = sum_new(s->pieces->digest);
    if (sum == NULL)
        return -ENOMEM;
    struct feed feed = {.fd = fd}; /* the beginning of its first piece may be of another */
    struct stretch all = {.to = f->e.bytes};
    return finish(s, f, sum, add_bytes(s, &feed, all, sum, NULL, NULL));
}

int scan_large(struct scan *s, int fd, struct found *f) {
    struct sum *sum = sum_new(s->pieces->digest);
    if (sum == NULL)
        return -ENOMEM;
    int r = in_two_threads(s, fd, f, sum);
    if (r == 1)
        r = add_all(s, fd, f, sum, NULL);
    return finish(s, f, sum, r);
}

void scan_fini(struct scan *s) {
    free(s->block);
    s->block = NULL;
}
