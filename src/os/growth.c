/* SPDX-License-Identifier: MIT */
/* A file that is looked over beside: see growth.h. */
#include "os/growth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/feed.h"
#include "os/home.h"
#include "os/thread.h"

struct growth {
    int fd, wake;
    uint64_t bytes;
    uint32_t at_a_time;
    pthread_t thread;
    _Atomic bool stopped, even;
    /* The thread's: */
    struct pieces found;
    /* Of both: */
    pthread_mutex_t mutex;
    struct pieces told;
    bool over;
    int status;
    /* Whoever takes: */
    uint32_t taken;
};

static void wake(const struct growth *g) {
    const uint64_t one = 1;
    ssize_t n = write(g->wake, &one, sizeof one);
    ASSERT(n == sizeof one); /* to a counter that is read before it is full */
}

/* What was found since the last time. Under the lock. */
static int add_told(struct growth *g) {
    return pieces_append(&g->told, &g->found, g->told.count);
}

static int tell(struct growth *g) {
    pthread_mutex_lock(&g->mutex);
    int r = add_told(g);
    pthread_mutex_unlock(&g->mutex);
    wake(g);
    return r;
}

static int look(struct growth *g) {
    struct feed feed = {.fd = g->fd, .size = g->bytes};
    long n = 0;
    int r = 0;
    for (uint64_t at = 0; at < g->bytes && n >= 0 && r == 0 && !g->stopped;) {
        if (g->even)
            pieces_even(&g->found);
        n = feed_some(&feed, at, g->bytes, &g->found, NULL);
        at += n < 0 ? 0 : (uint64_t)n;
        if (g->found.count >= g->told.count + g->at_a_time)
            r = tell(g);
    }
    feed_end(&feed);
    r = n < 0 ? (int)n : g->stopped ? -ECANCELED : r;
    return r < 0 ? r : pieces_end(&g->found);
}

static void *work(void *context) {
    struct growth *g = context;
    int r = look(g);
    pthread_mutex_lock(&g->mutex);
    g->status = r < 0 ? r : add_told(g);
    g->over = true;
    pthread_mutex_unlock(&g->mutex);
    wake(g);
    return NULL;
}

/* All but the thread. */
static void forget(struct growth *g) {
    g->found.had = 0; /* it may have been stopped amid a piece */
    pieces_fini(&g->found);
    pieces_fini(&g->told);
    if (g->wake >= 0)
        close(g->wake);
    close(g->fd);
    free(g);
}

int growth_begin(int fd, uint64_t bytes, uint32_t usual, uint32_t at_a_time, struct growth **ret) {
    struct growth *g = calloc(1, sizeof *g);
    if (g == NULL) {
        close(fd);
        return -ENOMEM;
    }
    *g = (struct growth){.fd = fd,
                         .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                         .bytes = bytes,
                         .at_a_time = at_a_time,
                         .mutex = PTHREAD_MUTEX_INITIALIZER};
    pieces_init(&g->found, DIGEST_XXH3, usual);
    pieces_init(&g->told, DIGEST_XXH3, usual);
    int r = g->wake < 0 ? -errno : thread_start(&g->thread, work, g);
    if (r < 0) {
        forget(g);
        return r;
    }
    home_apart(g->thread);
    *ret = g;
    return 0;
}

int growth_fd(const struct growth *g) {
    return g->wake;
}

int growth_file(const struct growth *g) {
    return g->fd;
}

int growth_take(struct growth *g, struct pieces *to) {
    uint64_t count;
    ssize_t n = read(g->wake, &count,
                     sizeof count); /* first: what is told after we have looked wakes us again */
    (void)n;
    pthread_mutex_lock(&g->mutex);
    int r = pieces_append(to, &g->told, g->taken);
    g->taken = g->told.count;
    bool over = g->over;
    r = r < 0 ? r : over ? g->status : 0;
    pthread_mutex_unlock(&g->mutex);
    return r < 0 ? r : over;
}

void growth_even(struct growth *g) {
    g->even = true;
}

void growth_free(struct growth *g) {
    if (g == NULL)
        return;
    g->stopped = true;
    pthread_join(g->thread, NULL);
    forget(g);
}
