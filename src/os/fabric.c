/* SPDX-License-Identifier: MIT */
/* Puts through a fabric: see fabric.h.
 *
 * A put has a place in a table of fixed size, and its address there is what the provider knows it by. So a put that
 * was given up keeps its place until the provider has given it back: a peer on shared memory that died never
 * does that, one on a network does when the connection is found broken.
 *
 * A callback may do anything but free the fabric: put, free peers. Nothing here holds on to a list across one. */
#include "os/fabric.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/fabric_inside.h"

#define PUTS_USUAL  64
#define STALL_USUAL (10 * NS_PER_S)
#define NAP_MIN     (20 * NS_PER_US)
#define NAP_MAX     NS_PER_MS
/* A put that comes bit by bit wakes us many times. A descriptor that does so more often than that is one that
 * the provider never resets: from then on we look by the clock. */
#define VAIN_MAX 10000

/* ---- when to look again ---- */

static uint64_t next_look(const struct fabric *f) {
    uint64_t now = f->config.loop->now;
    bool must_look = f->wait.fd < 0 && (f->posted > 0 || f->expecting);
    if (f->dead != 0)
        return 0;
    if (f->kicked)
        return 1;
    if (must_look || !list_empty(&f->waiting))
        return now + f->nap_ns;
    if (f->posted > 0 || f->counts.lost > 0)
        return now + f->config.stall_ns / 4;
    return 0;
}

/* After everything that was asked of the provider: it may have more to do, or have done it already, and
 * its descriptor does not tell of that. A timer that is set too early does no harm. */
static void arm(struct fabric *f) {
    struct fid *queue = &f->cq->fid;
    if (f->in_round)
        return;
    if (!f->kicked && f->wait.fd >= 0)
        f->kicked = fi_trywait(f->fabric, &queue, 1) == -FI_EAGAIN;
    uint64_t at = next_look(f);
    if (at == 0 || (f->timer_at != 0 && f->timer_at <= at))
        return;
    struct itimerspec t = {
        .it_value = {.tv_sec = (time_t)(at / NS_PER_S), .tv_nsec = (long)(at % NS_PER_S)}};
    int r = timerfd_settime(f->timer.fd, TFD_TIMER_ABSTIME, &t, NULL);
    ASSERT(r == 0);
    f->timer_at = at;
}

/* ---- peers ---- */

static void peer_settle(struct fabric_peer *p) {
    if (!p->freed || p->lost > 0)
        return;
    /* Not before: a provider may look its peer up when it gives a put back. On shared memory not at all: it would let go of
     * what the peer, if it puts to us too, is answered through, and fall over it. */
    if (strncmp(p->fabric->info->fabric_attr->prov_name, "shm", 3) != 0)
        fi_av_remove(p->fabric->av, &p->at, 1, 0);
    list_remove(&p->link);
    free(p);
}

static int peer_new(struct fabric *f, struct bytes address, struct fabric_peer **ret) {
    struct bytes raw;
    int r = fabric_raw(f, address, &raw);
    if (r < 0)
        return r;
    struct fabric_peer *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -ENOMEM;
    uint8_t copy[FABRIC_ADDRESS_BYTES_MAX] __attribute__((aligned(8)));
    memcpy(copy, raw.at, raw.len);
    p->fabric = f;
    if (fi_av_insert(f->av, copy, 1, &p->at, 0, NULL) != 1) {
        free(p);
        return -EADDRNOTAVAIL;
    }
    list_push_back(&f->peers, &p->link);
    *ret = p;
    return 0;
}

/* ---- the life of a put ---- */

static void put_unused(struct put *u) {
    struct fabric_peer *p = u->what.peer;
    u->state = PUT_FREE;
    list_push_back(&p->fabric->unused, &u->link);
}

static void put_waits(struct put *u) {
    struct fabric_peer *p = u->what.peer;
    ASSERT(u->state == PUT_FREE || u->state == PUT_POSTED);
    if (u->state == PUT_POSTED) { /* the next step of what is under way goes first */
        p->fabric->posted--;
        list_push_front(&p->fabric->waiting, &u->link);
    } else
        list_push_back(&p->fabric->waiting, &u->link);
    u->state = PUT_WAITING;
}

/* It is not under way any more; the provider may still have it. */
static void put_leaves(struct put *u, bool given_back) {
    struct fabric_peer *p = u->what.peer;
    struct fabric *f = p->fabric;
    p->puts--;
    if (u->state == PUT_WAITING)
        list_remove(&u->link);
    else
        f->posted--;
    if (u->state == PUT_WAITING || given_back) {
        put_unused(u);
        return;
    }
    u->state = PUT_LOST;
    p->lost++;
    f->counts.lost++;
}

static void put_ends(struct put *u, int error, const char *why) {
    struct fabric *f = u->what.peer->fabric;
    uint64_t cookie = u->what.cookie;
    if (error == 0) {
        f->counts.puts++;
        f->counts.bytes_put += u->what.len;
    } else
        f->counts.errors++;
    put_leaves(u, true);
    f->config.sent(f->config.context, cookie, error, why);
}

static void put_found(struct put *u) {
    struct fabric_peer *p = u->what.peer;
    p->fabric->counts.lost--;
    p->lost--;
    put_unused(u);
    peer_settle(p);
}

static struct put *put_of(const struct fabric *f, const struct fabric_peer *p) {
    for (uint32_t i = 0; i < f->config.puts_max; i++) {
        struct put *u = &f->puts[i];
        if (u->what.peer == p && (u->state == PUT_WAITING || u->state == PUT_POSTED))
            return u;
    }
    return NULL;
}

static void peer_free(struct fabric_peer *p) {
    if (p == NULL)
        return;
    struct fabric *f = p->fabric;
    for (struct put *u; (u = put_of(f, p)) != NULL;)
        put_leaves(u, false);
    p->freed = true;
    peer_settle(p);
    arm(f);
}

static void give_up(struct fabric_peer *p, int error, const char *why) {
    struct fabric *f = p->fabric;
    p->given_up = true;
    p->lost++; /* so that it stays while callbacks are made */
    for (struct put *u; (u = put_of(f, p)) != NULL;) {
        uint64_t cookie = u->what.cookie;
        put_leaves(u, false);
        f->counts.errors++;
        f->config.sent(f->config.context, cookie, error, why);
    }
    p->lost--;
    peer_settle(p);
}

/* ---- asking the provider ---- */

/* All parts but the last must be there before the last is written, as the note must come after all of
 * them and not every provider keeps them in order: delivery complete. */
static ssize_t post_part(struct fabric *f, struct put *u) {
    const struct fabric_put *w = &u->what;
    uint64_t rest = w->len - u->done;
    u->part = rest < f->part_bytes_max ? rest : f->part_bytes_max;
    u->noted = u->part == rest && !f->notes_by_message;
    uint8_t *from = (uint8_t *)(uintptr_t)w->from + u->done;
    void *desc = fi_mr_desc(w->region->mr);
    uint64_t at = w->into.base + w->offset + u->done;
    if (u->noted) {
        ssize_t r = fi_writedata(f->ep, from, u->part, desc, w->note, w->peer->at, at, w->into.key,
                                 &u->provider);
        if (r != -FI_ENOSYS && r != -FI_EOPNOTSUPP)
            return r;
        f->notes_by_message = true;
        u->noted = false;
    }
    struct iovec iov = {.iov_base = from, .iov_len = u->part};
    struct fi_rma_iov into = {.addr = at, .len = u->part, .key = w->into.key};
    struct fi_msg_rma message = {.msg_iov = &iov,
                                 .desc = &desc,
                                 .iov_count = 1,
                                 .addr = w->peer->at,
                                 .rma_iov = &into,
                                 .rma_iov_count = 1,
                                 .context = &u->provider};
    return fi_writemsg(f->ep, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

/* Copied at once, as the place of a put is not registered memory; told when it has left, as some providers
 * send nothing while nobody looks. */
static ssize_t post_note(struct fabric *f, struct put *u) {
    uint8_t note[NOTE_BYTES];
    struct iovec iov = {.iov_base = note, .iov_len = sizeof note};
    struct fi_msg message = {
        .msg_iov = &iov, .iov_count = 1, .addr = u->what.peer->at, .context = &u->provider};
    store_le32(note, u->what.note);
    u->part = 0;
    u->noted = true;
    return fi_sendmsg(f->ep, &message, FI_INJECT | FI_COMPLETION);
}

/* Of a put that waits. */
static void post_next(struct fabric *f, struct put *u) {
    struct fabric_peer *p = u->what.peer;
    ssize_t r = u->done == u->what.len ? post_note(f, u) : post_part(f, u);
    if (r == -FI_EAGAIN) {
        p->tried = f->rounds;
        return;
    }
    f->moved = true;
    if (r != 0) {
        put_ends(u, fabric_error(r), fi_strerror((int)-r));
        return;
    }
    list_remove(&u->link);
    u->state = PUT_POSTED;
    f->posted++;
}

static struct put *next_waiting(const struct fabric *f) {
    LIST_EACH (l, &f->waiting) {
        struct put *u = CONTAINER_OF(l, struct put, link);
        if (u->what.peer->tried != f->rounds)
            return u;
    }
    return NULL;
}

/* In order for each peer; one that can take nothing now does not keep others waiting. */
static void post_waiting(struct fabric *f) {
    f->rounds++;
    for (uint32_t i = 0; i < f->config.puts_max;
         i++) { /* what fails may be tried again: not for ever */
        struct put *next = next_waiting(f);
        if (next == NULL)
            return;
        post_next(f, next);
    }
}

/* ---- what the provider says ---- */

static void part_done(struct fabric *f, struct put *u) {
    if (u->state == PUT_LOST) {
        put_found(u);
        return;
    }
    ASSERT(u->state == PUT_POSTED);
    u->what.peer->moved_at = f->config.loop->now;
    u->done += u->part;
    f->counts.writes += u->part > 0;
    if (u->noted)
        put_ends(u, 0, "");
    else
        put_waits(u);
}

static void part_failed(struct put *u, int error, const char *why) {
    if (u->state == PUT_LOST)
        put_found(u);
    else
        put_ends(u, error, why);
}

static void note_came(struct fabric *f, uint64_t note) {
    f->counts.notes++;
    f->counts.bytes_arrived += f->config.arrived(f->config.context, (uint32_t)note);
}

/* What the address that the provider gives back is of. Whatever a peer makes it say is of neither. */
static struct put *put_at(const struct fabric *f, const void *at) {
    uintptr_t from = (uintptr_t)at - (uintptr_t)f->puts;
    return from / sizeof *f->puts < f->config.puts_max && from % sizeof *f->puts == 0
               ? &f->puts[from / sizeof *f->puts]
               : NULL;
}

static struct receive *receive_at(const struct fabric *f, const void *at) {
    uintptr_t from = (uintptr_t)at - (uintptr_t)f->receives;
    return from / sizeof *f->receives < f->receive_count && from % sizeof *f->receives == 0
               ? &f->receives[from / sizeof *f->receives]
               : NULL;
}

static void receive_again(struct fabric *f, struct receive *r) {
    if (fabric_receive(f, r) < 0)
        f->counts.errors++;
}

static void completed(struct fabric *f, const struct fi_cq_data_entry *e) {
    struct put *u = put_at(f, e->op_context);
    struct receive *r = receive_at(f, e->op_context);
    bool with_put = (e->flags & FI_REMOTE_CQ_DATA) != 0;
    if (u != NULL) {
        part_done(f, u);
        return;
    }
    uint32_t said = r == NULL ? 0 : load_le32(r->bytes);
    if (r != NULL)
        receive_again(f, r);
    if (with_put)
        note_came(f, e->data);
    else if (r != NULL && e->len == NOTE_BYTES)
        note_came(f, said);
}

static void read_error(struct fabric *f) {
    char detail[128] = "", why[FABRIC_WHY_BYTES];
    struct fi_cq_err_entry e = {0};
    if (fi_cq_readerr(f->cq, &e, 0) != 1)
        return;
    struct put *u = put_at(f, e.op_context);
    struct receive *r = receive_at(f, e.op_context);
    fi_cq_strerror(f->cq, e.prov_errno, e.err_data, detail, sizeof detail);
    const char *words = fi_strerror(e.err);
    snprintf(why, sizeof why, detail[0] == '\0' ? "%s" : "%s (%s)", words, detail);
    if (u != NULL) {
        part_failed(u, fabric_error(e.err), why);
        return;
    }
    f->counts.errors++;
    if (r != NULL && e.err != FI_ECANCELED)
        receive_again(f, r);
}

static void stop_waiting(struct fabric *f) {
    if (f->wait.fd >= 0)
        loop_remove(f->config.loop, &f->wait);
    f->wait.fd = -1;
}

/* Nothing can be known any more. */
static void dies(struct fabric *f, ssize_t error) {
    char why[FABRIC_WHY_BYTES];
    snprintf(why, sizeof why, "the completion queue: %s", fi_strerror((int)-error));
    f->dead = fabric_error(error);
    stop_waiting(f);
    for (uint32_t i = 0; i < f->config.puts_max; i++)
        if (f->puts[i].state == PUT_WAITING || f->puts[i].state == PUT_POSTED)
            give_up(f->puts[i].what.peer, f->dead, why);
}

static void reap(struct fabric *f) {
    struct fi_cq_data_entry batch[16];
    enum { BATCHES = 16 }; /* then others have their turn */
    for (int i = 0; i < BATCHES && f->dead == 0; i++) {
        ssize_t n = fi_cq_read(f->cq, batch, sizeof batch / sizeof batch[0]);
        if (n == -FI_EAGAIN || n == 0)
            return;
        f->moved = true;
        if (n == -FI_EAVAIL)
            read_error(f);
        else if (n < 0)
            dies(f, n);
        for (ssize_t j = 0; j < n; j++)
            completed(f, &batch[j]);
    }
}

static void give_up_stalled(struct fabric *f) {
    struct fabric_peer *stalled;
    do {
        stalled = NULL;
        LIST_EACH (l, &f->peers) {
            struct fabric_peer *p = CONTAINER_OF(l, struct fabric_peer, link);
            if (p->puts > 0 && f->config.loop->now - p->moved_at >= f->config.stall_ns)
                stalled = p;
        }
        if (stalled != NULL)
            give_up(stalled, -ETIMEDOUT, "the peer takes nothing");
    } while (stalled != NULL);
}

/* If we have not looked for long, nobody could take anything: time that we were stopped for is not the peers'. */
static void excuse_peers(struct fabric *f) {
    uint64_t now = f->config.loop->now, pause = now - f->looked_at;
    f->looked_at = now;
    if (pause <= f->config.stall_ns / 2)
        return;
    LIST_EACH (l, &f->peers)
        CONTAINER_OF(l, struct fabric_peer, link)->moved_at = now;
}

static void look(struct fabric *f) {
    f->counts.looks++;
    excuse_peers(f);
    f->kicked = f->moved = false;
    f->in_round = true;
    reap(f);
    post_waiting(f);
    give_up_stalled(f);
    f->in_round = false;
    uint64_t longer = 2 * f->nap_ns;
    f->nap_ns = f->moved ? NAP_MIN : longer < NAP_MAX ? longer : NAP_MAX;
    f->vain = f->moved ? 0 : f->vain + 1;
    if (f->vain > VAIN_MAX)
        stop_waiting(f);
    arm(f);
}

static void wait_ready(struct source *s, uint32_t events) {
    (void)events;
    look(CONTAINER_OF(s, struct fabric, wait));
}

static void timer_ready(struct source *s, uint32_t events) {
    (void)events;
    struct fabric *f = CONTAINER_OF(s, struct fabric, timer);
    f->timer_at = 0;
    look(f);
}

/* ---- the interface ---- */

static int put(struct fabric *f, const struct fabric_put *what) {
    struct fabric_peer *p = what->peer;
    const struct room *memory = &what->region->memory;
    const uint8_t *from = what->from;
    ASSERT(what->len > 0 && from >= memory->at && what->len <= memory->len &&
           (size_t)(from - memory->at) <= memory->len - what->len);
    if (what->len > what->into.bytes || what->offset > what->into.bytes - what->len)
        return -ERANGE;
    if (f->dead != 0)
        return f->dead;
    if (p->given_up)
        return -EPIPE;
    if (list_empty(&f->unused))
        return -EAGAIN;
    struct put *u = CONTAINER_OF(list_pop_front(&f->unused), struct put, link);
    u->what = *what;
    u->done = u->part = 0;
    if (p->puts++ == 0)
        p->moved_at = f->config.loop->now;
    put_waits(u);
    f->kicked = f->kicked || !f->in_round; /* a round posts what waits */
    arm(f);
    return 0;
}

static void expect(struct fabric *f, bool notes) {
    bool begins = notes && !f->expecting;
    f->expecting = notes;
    if (!begins)
        return;
    f->nap_ns = NAP_MIN;
    arm(f);
}

static int region_new(struct fabric *f, struct room memory, struct fabric_region **ret) {
    struct fabric_region *r = calloc(1, sizeof *r);
    if (r == NULL)
        return -ENOMEM;
    int error = fabric_register(f, memory, FI_WRITE | FI_REMOTE_WRITE, &r->mr);
    if (error < 0) {
        free(r);
        return error;
    }
    bool by_address = (f->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    r->fabric = f;
    r->memory = memory;
    store_le64(r->grant, by_address ? (uintptr_t)memory.at : 0);
    store_le64(r->grant + 8, fi_mr_key(r->mr));
    store_le64(r->grant + 16, memory.len);
    list_push_back(&f->regions, &r->link);
    *ret = r;
    return 0;
}

static struct bytes region_grant(const struct fabric_region *r) {
    return bytes_of(r->grant, sizeof r->grant);
}

static int region_free(struct fabric_region *r) {
    if (r == NULL)
        return 0;
    const struct fabric *f = r->fabric;
    for (uint32_t i = 0; i < f->config.puts_max; i++)
        if (f->puts[i].state != PUT_FREE && f->puts[i].what.region == r)
            return -EBUSY;
    int error = fabric_error(fi_close(&r->mr->fid));
    if (error < 0)
        return error;
    list_remove(&r->link);
    free(r);
    return 0;
}

static void fabric_free(struct fabric *f) {
    if (f == NULL)
        return;
    ASSERT(!f->in_round);
    /* Memory first, the endpoint after it: an endpoint that memory is bound to cannot be closed. */
    for (struct list *l; (l = list_pop_front(&f->regions)) != NULL;) {
        struct fabric_region *r = CONTAINER_OF(l, struct fabric_region, link);
        fi_close(&r->mr->fid);
        free(r);
    }
    fabric_close(f);
    for (struct list *l; (l = list_pop_front(&f->peers)) != NULL;)
        free(CONTAINER_OF(l, struct fabric_peer, link));
    free(f->puts);
    free(f);
}

static int fabric_new(const struct fabric_config *config, struct fabric **ret,
                      char why[FABRIC_WHY_BYTES]) {
    uint32_t puts_max = config->puts_max != 0 ? config->puts_max : PUTS_USUAL;
    struct fabric *f = calloc(1, sizeof *f);
    struct put *puts = calloc(puts_max, sizeof *puts);
    snprintf(why, FABRIC_WHY_BYTES, "%s", strerror(ENOMEM));
    if (f == NULL || puts == NULL) {
        free(f);
        free(puts);
        return -ENOMEM;
    }
    f->config = *config;
    f->config.puts_max = puts_max;
    f->config.stall_ns = config->stall_ns != 0 ? config->stall_ns : STALL_USUAL;
    f->puts = puts;
    f->nap_ns = NAP_MIN;
    f->wait = (struct source){.fd = -1, .ready = wait_ready};
    f->timer = (struct source){.fd = -1, .ready = timer_ready};
    struct list *lists[] = {&f->regions, &f->peers, &f->waiting, &f->unused};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        list_init(lists[i]);
    for (uint32_t i = 0; i < puts_max; i++)
        list_push_back(&f->unused, &puts[i].link);
    int r = fabric_open(f, why);
    if (r < 0) {
        fabric_free(f);
        return r;
    }
    arm(f);
    *ret = f;
    return 0;
}

static const char *fabric_provider(const struct fabric *f) {
    return f->info->fabric_attr->prov_name;
}

static struct bytes fabric_address(const struct fabric *f) {
    return bytes_of(f->address, f->address_len);
}

static const struct fabric_counts *fabric_count(const struct fabric *f) {
    return &f->counts;
}

const struct fabric_calls fabric_ofi = {
    .create = fabric_new,
    .free = fabric_free,
    .provider = fabric_provider,
    .address = fabric_address,
    .region = region_new,
    .grant = region_grant,
    .region_free = region_free,
    .peer = peer_new,
    .peer_free = peer_free,
    .put = put,
    .expect = expect,
    .counts = fabric_count,
};
