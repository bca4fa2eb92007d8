/* SPDX-License-Identifier: MIT */
/* The second half of a file: see half.h. */
#include "os/half.h"

#include <errno.h>
#include <time.h>

#include "base/units.h"
#include "os/feed.h"
#include "os/files.h"
#include "os/home.h"
#include "os/thread.h"

/* From here on the other thread is worth its start. */
#define WORTH_BYTES (4 * MIB)
#define PATIENCE_NS (100 * NS_PER_MS)

uint64_t half_middle(uint64_t from, uint64_t to, enum digest_kind digest) {
    if (digest != DIGEST_XXH3 || to - from < WORTH_BYTES)
        return 0;
    return (from + (to - from) / 2) / SUM_BLOCK_BYTES * SUM_BLOCK_BYTES;
}

/* Bytes of the file to where pieces are cut; none: -errno. */
static struct bytes read_more(int fd, uint64_t at, uint64_t to, struct pieces *p, int *ret) {
    struct room room = pieces_room(p);
    size_t most = room.len < to - at ? room.len : (size_t)(to - at);
    long n = room.len == 0 ? -ENOMEM : files_read(fd, room_of(room.at, most), at);
    *ret = n == 0 ? -ESTALE : n < 0 ? (int)n : 0; /* it may be shorter than it was */
    return bytes_of(room.at, n < 0 ? 0 : (size_t)n);
}

static int look(struct half *h) {
    struct feed feed = {.fd = h->fd, .size = h->to};
    long n = 0;
    for (uint64_t at = h->from; at < h->to && n >= 0 && !h->stopped; h->at = at) {
        n = feed_some(&feed, at, h->to, &h->pieces, h->sum);
        at += n < 0 ? 0 : (uint64_t)n;
    }
    feed_end(&feed);
    return n < 0 ? (int)n : h->stopped ? -ECANCELED : pieces_end(&h->pieces);
}

static void *work(void *context) {
    struct half *h = context;
    h->status = look(h);
    return NULL;
}

static void forget(struct half *h) {
    pieces_fini(&h->pieces);
    sum_end(h->sum, NULL);
}

int half_start(struct half *h, int fd, uint64_t from, uint64_t to, const struct pieces *like) {
    *h = (struct half){.fd = fd, .from = from, .to = to, .at = from, .sum = sum_part(to - from)};
    if (h->sum == NULL)
        return -ENOMEM;
    pieces_init(&h->pieces, like->digest, like->usual);
    int r = thread_start(&h->thread, work, h);
    if (r < 0)
        forget(h);
    else
        home_apart(h->thread);
    return r;
}

uint64_t half_done(const struct half *h) {
    return h->at - h->from;
}

/* Cuts behind the middle until that is where the other has cut, too. */
static int stitch(const struct half *h, struct pieces *p) {
    uint64_t at = h->from,
             begins = h->from; /* here we are; there piece `row` of the other begins */
    uint32_t row = 0;
    int r = 0;
    while (r == 0 && !(p->had == 0 && begins == at)) {
        uint64_t most = at + p->cut.most - p->had + 1; /* where a piece of `most` is seen to end */
        struct bytes bytes = read_more(h->fd, at, most < h->to ? most : h->to, p, &r);
        long n = r < 0 ? r : pieces_add_one(p, bytes.len);
        r = n < 0 ? (int)n : 0;
        at += n < 0 ? 0 : (uint64_t)n;
        if (r == 0 && at == h->to)
            r = pieces_end(p);
        while (begins < at)
            begins += pieces_bytes_of(&h->pieces, row++);
    }
    return r < 0 ? r : pieces_append(p, &h->pieces, row);
}

bool half_await(struct half *h) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + PATIENCE_NS;
    until.tv_sec += (time_t)(ns / NS_PER_S);
    until.tv_nsec = (long)(ns % NS_PER_S);
    h->over = h->over || pthread_timedjoin_np(h->thread, NULL, &until) == 0;
    return h->over;
}

int half_end(struct half *h, int status, struct pieces *pieces, struct sum *sum) {
    h->stopped = status < 0;
    if (!h->over)
        pthread_join(h->thread, NULL);
    int r = status < 0 ? status : h->status;
    if (r == 0)
        r = stitch(h, pieces);
    if (r == 0)
        sum_join(sum, h->sum);
    forget(h);
    return r;
}
