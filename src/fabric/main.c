/* SPDX-License-Identifier: MIT */
/* storm-fab: libfabric for a mover of files.
 *
 *     storm-fab --serve FD [--provider NAME] [--source ADDRESS]
 *     storm-fab --providers
 *
 * A mover is forked from a static program and cannot hold libfabric (docs/decisions/0024). It shares the memory that
 * pieces lie in with this one, which registers it and does as it is told over a socket pair: os/ferry_wire.h. It ends
 * when the other side does.
 *
 * Memory that was granted to a peer may be written to until the provider has given up all that is on its way, and nobody
 * knows when that is. So when the mover takes a grant back, pages of nobody take the place of the shared ones here:
 * whatever comes late ends there. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/list.h"
#include "os/ferry_wire.h"
#include "os/enclosure.h"

enum { EXIT_USAGE = 2 };

/* For a provider to take down what it has put up, such as files in /dev/shm. */
enum { ENDING_S = 5 };

struct mapped {
    uint8_t *at; /* NULL: the place is free */
    uint64_t bytes;
    struct fabric_region *region;
};

struct server {
    struct loop loop;
    struct source line;
    struct fabric *fabric;
    struct mapped regions[FERRY_REGIONS_MAX];
    struct fabric_peer *peers[FERRY_PEERS_MAX];
    bool over;
};

/* ---- what is said ---- */

/* The mover reads while it waits for us, so this may wait for it. */
static void say(struct server *s, const struct ferry_word *w, size_t len) {
    if (send(s->line.fd, w, len, MSG_NOSIGNAL) < 0)
        s->over = true;
}

#define SAY(server, word, part) \
    say(server, word, offsetof(struct ferry_word, part) + sizeof(word)->part)

static uint64_t on_note(void *context, uint32_t note) {
    struct ferry_word w = {.kind = FERRY_NOTE, .note = note};
    SAY(context, &w, note);
    return 0;
}

static void tell_sent(struct server *s, uint64_t cookie, int error, const char *why) {
    struct ferry_word w = {.kind = FERRY_SENT, .error = error, .sent = {.cookie = cookie}};
    if (error == 0) {
        SAY(s, &w, sent.cookie);
        return;
    }
    snprintf(w.sent.why, sizeof w.sent.why, "%s", why);
    SAY(s, &w, sent);
}

static void on_sent(void *context, uint64_t cookie, int error, const char *why) {
    tell_sent(context, cookie, error, why);
}

static void answer(struct server *s, int error, struct bytes grant) {
    struct ferry_word w = {.kind = FERRY_ANSWER, .error = error};
    if (grant.len > 0)
        memcpy(w.answer.grant, grant.at, sizeof w.answer.grant);
    SAY(s, &w, answer);
}

/* ---- what is asked ---- */

static int map(struct mapped *m, int fd, uint64_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return -errno;
    *m = (struct mapped){.at = at, .bytes = bytes};
    return 0;
}

static void take_region(struct server *s, const struct ferry_order *o, int fd) {
    struct mapped *m = o->id < FERRY_REGIONS_MAX ? &s->regions[o->id] : NULL;
    if (m == NULL || m->at != NULL || fd < 0) {
        answer(s, -EINVAL, (struct bytes){0});
        return;
    }
    int r = map(m, fd, o->region.bytes);
    if (r == 0)
        r = fabric_ofi.region(s->fabric, room_of(m->at, m->bytes), &m->region);
    if (r < 0 && m->at != NULL) {
        munmap(m->at, m->bytes);
        *m = (struct mapped){0};
    }
    answer(s, r, r < 0 ? (struct bytes){0} : fabric_ofi.grant(m->region));
}

/* One that a put still reads from stays registered: there is nothing of anybody's behind it any more. */
static void free_region(struct server *s, const struct ferry_order *o) {
    struct mapped *m = o->id < FERRY_REGIONS_MAX ? &s->regions[o->id] : NULL;
    if (m == NULL || m->at == NULL) {
        answer(s, -EINVAL, (struct bytes){0});
        return;
    }
    fabric_ofi.region_free(m->region);
    const void *at = mmap(m->at, m->bytes, PROT_READ | PROT_WRITE,
                          MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int r = at == MAP_FAILED ? -errno : 0;
    *m = (struct mapped){0};
    answer(s, r, (struct bytes){0});
}

static void take_peer(struct server *s, const struct ferry_order *o) {
    int r = -EINVAL;
    if (o->id < FERRY_PEERS_MAX && s->peers[o->id] == NULL && o->peer.len <= sizeof o->peer.address)
        r = fabric_ofi.peer(s->fabric, bytes_of(o->peer.address, o->peer.len), &s->peers[o->id]);
    answer(s, r, (struct bytes){0});
}

static void free_peer(struct server *s, const struct ferry_order *o) {
    if (o->id >= FERRY_PEERS_MAX)
        return;
    fabric_ofi.peer_free(s->peers[o->id]);
    s->peers[o->id] = NULL;
}

static void take_put(struct server *s, const struct ferry_order *o) {
    const struct mapped *m = o->id < FERRY_REGIONS_MAX ? &s->regions[o->id] : NULL;
    struct fabric_peer *peer = o->put.peer < FERRY_PEERS_MAX ? s->peers[o->put.peer] : NULL;
    if (m == NULL || m->at == NULL || peer == NULL || o->put.len == 0 || o->put.len > m->bytes ||
        o->put.offset > m->bytes - o->put.len) {
        tell_sent(s, o->put.cookie, -EINVAL, "a put that makes no sense");
        return;
    }
    struct fabric_put put = {.peer = peer,
                             .region = m->region,
                             .from = m->at + o->put.offset,
                             .len = o->put.len,
                             .into = o->put.into,
                             .offset = o->put.into_offset,
                             .note = o->put.note,
                             .cookie = o->put.cookie};
    int r = fabric_ofi.put(s->fabric, &put);
    if (r < 0)
        tell_sent(s, o->put.cookie, r, strerror(-r));
}

static void do_order(struct server *s, const struct ferry_order *o, int fd) {
    switch (o->kind) {
    case FERRY_REGION:
        take_region(s, o, fd);
        break;
    case FERRY_REGION_FREE:
        free_region(s, o);
        break;
    case FERRY_PEER:
        take_peer(s, o);
        break;
    case FERRY_PEER_FREE:
        free_peer(s, o);
        break;
    case FERRY_PUT:
        take_put(s, o);
        break;
    case FERRY_EXPECT:
        fabric_ofi.expect(s->fabric, o->expect != 0);
        break;
    default:
        s->over = true;
    }
}

/* An order, and the descriptor that came with it or -1. False: there is none now. */
static bool next_order(struct server *s, struct ferry_order *o, int *ret_fd) {
    memset(o, 0, sizeof *o);
    ssize_t n = enclosure_receive(s->line.fd, o, sizeof *o, ret_fd);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        s->over = true;
        return false;
    }
    return true;
}

static void on_line(struct source *source, uint32_t events) {
    struct server *s = CONTAINER_OF(source, struct server, line);
    enum { ORDERS = 64 }; /* then others have their turn */
    struct ferry_order o;
    int fd;
    (void)events;
    for (int i = 0; i < ORDERS && !s->over && next_order(s, &o, &fd); i++) {
        do_order(s, &o, fd);
        if (fd >= 0)
            close(fd);
    }
}

/* ---- its life ---- */

static void introduce(struct server *s, int error, const char *why) {
    struct ferry_word w = {.kind = error == 0 ? FERRY_READY : FERRY_FAILED, .error = error};
    if (error < 0) {
        snprintf(w.why, sizeof w.why, "%s", why);
        SAY(s, &w, why);
        return;
    }
    struct bytes address = fabric_ofi.address(s->fabric);
    w.ready.order_bytes = sizeof(struct ferry_order);
    w.ready.address_len = (uint32_t)address.len;
    memcpy(w.ready.address, address.at, address.len);
    snprintf(w.ready.provider, sizeof w.ready.provider, "%s", fabric_ofi.provider(s->fabric));
    SAY(s, &w, ready);
}

static int serve(int fd, const char *provider, const char *source) {
    static struct server s;
    char why[FABRIC_WHY_BYTES] = "";
    struct fabric_config config = {.loop = &s.loop,
                                   .provider = provider,
                                   .source = source,
                                   .puts_max = FERRY_PUTS_MAX,
                                   .sent = on_sent,
                                   .arrived = on_note,
                                   .context = &s};
    s.line = (struct source){.fd = fd, .ready = on_line};
    int r = loop_init(&s.loop);
    if (r == 0)
        r = fabric_ofi.create(&config, &s.fabric, why);
    if (r == 0)
        r = loop_add(&s.loop, &s.line, EPOLLIN);
    introduce(&s, r, why[0] != '\0' ? why : strerror(-r));
    while (r == 0 && !s.over)
        loop_turn(&s.loop, -1);
    close(fd);
    alarm(ENDING_S);
    fabric_ofi.free(s.fabric);
    loop_fini(&s.loop);
    return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Providers make threads, and those must not be the ones to hear of a Ctrl-C; we end with our mover. */
static void block_signals(void) {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGABRT);
    sigdelset(&all, SIGALRM);
    sigprocmask(SIG_SETMASK, &all, NULL);
}

static void show_provider(void *context, const char *name, const char *domain) {
    (void)context;
    printf("%s %s\n", name, domain);
}

int main(int argc, char **argv) {
    static const struct option options[] = {{"serve", required_argument, NULL, 'f'},
                                            {"provider", required_argument, NULL, 'p'},
                                            {"source", required_argument, NULL, 's'},
                                            {"providers", no_argument, NULL, 'l'},
                                            {0}};
    const char *provider = NULL, *source = NULL;
    int fd = -1, o;
    bool list = false;
    while ((o = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (o == 'f')
            fd = (int)strtol(optarg, NULL, 10);
        else if (o == 'p')
            provider = optarg;
        else if (o == 's')
            source = optarg;
        else
            list = o == 'l';
    }
    if (list)
        return fabric_ofi_providers(show_provider, NULL) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    if (fd < 3 || optind != argc) {
        fprintf(stderr, "storm-fab: started by movers of files; try: storm cp --fabric ofi\n");
        return EXIT_USAGE;
    }
    block_signals();
    return serve(fd, provider, source);
}
