/* SPDX-License-Identifier: MIT */
/* Stand-in for the journal: see standin.h. */
#include "manager/standin.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct entry {
    struct entry *next;
    uint64_t key;
    size_t len;
    uint8_t body[];
};

struct standin {
    struct source bell;
    struct entry *entries;
    uint64_t logged;
    uint64_t fetch_ticket[64], fetch_key[64];
    uint32_t fetches;
    void (*on_logged)(void *context, uint64_t ticket, int error);
    void (*on_fetched)(void *context, uint64_t ticket, struct bytes body);
    void *context;
};

static void ring(struct standin *s) {
    uint64_t one = 1;
    ssize_t r = write(s->bell.fd, &one, sizeof one);
    (void)r;
}

static const struct entry *find(const struct standin *s, uint64_t key) {
    for (const struct entry *e = s->entries; e != NULL; e = e->next)
        if (e->key == key)
            return e;
    return NULL;
}

static void on_bell(struct source *source, uint32_t events) {
    struct standin *s = (struct standin *)(void *)source;
    uint64_t count;
    (void)events;
    ssize_t r = read(source->fd, &count, sizeof count);
    (void)r;
    if (s->logged > 0)
        s->on_logged(s->context, s->logged, 0);
    uint32_t n = s->fetches;
    s->fetches = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct entry *e = find(s, s->fetch_key[i]);
        s->on_fetched(s->context, s->fetch_ticket[i],
                      e == NULL ? (struct bytes){0} : bytes_of(e->body, e->len));
    }
}

static int attach(void *self, struct loop *loop,
                  void (*logged)(void *context, uint64_t ticket, int error),
                  void (*fetched)(void *context, uint64_t ticket, struct bytes body),
                  void *context) {
    struct standin *s = self;
    s->bell = (struct source){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = on_bell};
    s->on_logged = logged;
    s->on_fetched = fetched;
    s->context = context;
    return loop_add(loop, &s->bell, EPOLLIN);
}

static int replay(void *self, void (*event)(void *context, uint64_t key, struct bytes body),
                  void *context) {
    (void)self;
    (void)event;
    (void)context;
    return 0;
}

static void append(void *self, const struct effect_log *event) {
    struct standin *s = self;
    if (find(s, event->key) == NULL) {
        struct entry *e = malloc(sizeof *e + event->body.len);
        *e = (struct entry){.next = s->entries, .key = event->key, .len = event->body.len};
        memcpy(e->body, event->body.at, e->len);
        s->entries = e;
    }
    s->logged = event->ticket;
    ring(s);
}

static void fetch(void *self, uint64_t ticket, uint64_t key) {
    struct standin *s = self;
    if (s->fetches == 64)
        return;
    s->fetch_ticket[s->fetches] = ticket;
    s->fetch_key[s->fetches++] = key;
    ring(s);
}

static void commit(void *self) {
    (void)self;
}

const struct life_log *standin_log(void) {
    struct life_log *l = calloc(1, sizeof *l);
    *l = (struct life_log){.self = calloc(1, sizeof(struct standin)),
                           .attach = attach,
                           .replay = replay,
                           .append = append,
                           .fetch = fetch,
                           .commit = commit};
    return l;
}
