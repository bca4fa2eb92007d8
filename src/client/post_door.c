/* SPDX-License-Identifier: MIT */
/* Messages between the processes of a program: the door that others come in by, and what happens when descriptors are ready. */
#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "client/post.h"
#include "os/address.h"

enum {
    EVENTS_MAX = 32,
    GUESTS_MAX = 32,
    ROUNDS_MAX = 16,
    SPINS_MIN = 16,
    SPINS_MAX = 8192,
    PAUSE_EACH = 256
};

static void pause_processor(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- where ---- */

/* IPv4 is the end of an IPv6 address that begins so. */
static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static void name_door(uint64_t door, struct address *ret) {
    char name[32];
    int len = snprintf(name, sizeof name, "storm-carmi-%016llx", (unsigned long long)door);
    *ret = (struct address){
        .len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)};
    ret->local.sun_family = AF_UNIX;
    memcpy(ret->local.sun_path + 1, name, (size_t)len); /* no file: it begins with a NUL */
}

void post_address(bool near, const struct message_reach *r, struct address *ret) {
    uint8_t ip[16];
    if (near) {
        name_door(r->door, ret);
        return;
    }
    store_le64(ip, r->ip[0]);
    store_le64(ip + 8, r->ip[1]);
    if (memcmp(ip, mapped, sizeof mapped) == 0) {
        *ret = (struct address){.len = sizeof ret->in};
        ret->in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(r->port)};
        memcpy(&ret->in.sin_addr, ip + sizeof mapped, 4);
    } else {
        *ret = (struct address){.len = sizeof ret->in6};
        ret->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(r->port)};
        memcpy(&ret->in6.sin6_addr, ip, sizeof ip);
    }
}

/* The launcher says how others reach this node; if it does not, all are on this machine. */
static void set_ip(struct message_reach *r) {
    const char *told = getenv("STORM_ADDRESS");
    uint8_t ip[16];
    memcpy(ip, mapped, sizeof mapped);
    if (told == NULL ||
        (inet_pton(AF_INET, told, ip + sizeof mapped) != 1 && inet_pton(AF_INET6, told, ip) != 1))
        memcpy(ip + sizeof mapped, (const uint8_t[]){127, 0, 0, 1}, 4);
    r->ip[0] = load_le64(ip);
    r->ip[1] = load_le64(ip + 8);
}

/* ---- life ---- */

static int watch(struct post *p, int fd, void *as) {
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = as};
    return fd < 0 ? fd : epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static int open_all(struct post *p) {
    struct address at;
    uint64_t drawn[3];
    if (getrandom(drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
        return -errno;
    p->reach = (struct message_reach){.token = {drawn[0], drawn[1]}, .door = drawn[2]};
    set_ip(&p->reach);
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    p->spare = address_spare();
    p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (p->epoll < 0 || p->timer < 0)
        return -errno;
    post_address(true, &p->reach, &at);
    p->near = address_listen(&at);
    post_address(false, &p->reach, &at);
    p->far = address_listen(&at);
    if (p->far >= 0)
        p->reach.port = address_port(p->far);
    int r = watch(p, p->timer, &p->timer);
    if (r == 0)
        r = watch(p, p->near, &p->near);
    if (r == 0 && p->far >= 0) /* without a network there is the node */
        r = watch(p, p->far, &p->far);
    return r;
}

int post_open(struct post *p, struct steward *s, carmi_process self) {
    *p = (struct post){.open = true,
                       .steward = s,
                       .self = self,
                       .epoll = -1,
                       .timer = -1,
                       .near = -1,
                       .far = -1,
                       .spare = -1};
    p->processors = sysconf(_SC_NPROCESSORS_ONLN);
    p->spins = SPINS_MAX;
    list_init(&p->peers);
    list_init(&p->links);
    list_init(&p->pendings);
    int r = open_all(p);
    if (r < 0)
        post_close(p);
    else
        steward_listens(s, &p->reach, &post_ear, p);
    return r;
}

void post_close(struct post *p) {
    if (!p->open)
        return;
    post_idle(p); /* what has come is acknowledged */
    post_forget(p);
    const int all[] = {p->epoll, p->timer, p->near, p->far, p->spare};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] >= 0)
            close(all[i]);
    p->open = false;
}

/* ---- what happens ---- */

/* So many may be here without having said who they are: then the oldest goes. */
static void make_room(struct post *p) {
    uint32_t guests = 0;
    struct link *oldest = NULL;
    LIST_EACH (l, &p->links) {
        struct link *link = CONTAINER_OF(l, struct link, at);
        if (link->peer != NULL || link->lost)
            continue;
        oldest = oldest == NULL ? link : oldest;
        guests++;
    }
    if (guests >= GUESTS_MAX)
        oldest->lost = true;
}

static void let_in(struct post *p, int listener) {
    int fd;
    while ((fd = address_accept_or_dismiss(listener, &p->spare)) >= 0 || fd == -ECONNABORTED) {
        if (fd < 0)
            continue;
        make_room(p);
        address_be_patient(fd);
        link_new(p, fd, false, NULL);
    }
}

static void sweep(struct post *p) {
    LIST_EACH_SAFE (l, &p->links) {
        struct link *link = CONTAINER_OF(l, struct link, at);
        if (link->lost)
            post_over(link);
    }
}

static void on_event(struct post *p, const struct epoll_event *e) {
    uint64_t count;
    if (e->data.ptr == &p->near)
        let_in(p, p->near);
    else if (e->data.ptr == &p->far)
        let_in(p, p->far);
    else if (e->data.ptr != &p->timer)
        link_event(e->data.ptr, e->events);
    else if (read(p->timer, &count, sizeof count) > 0)
        post_timer(p);
}

static void resume(struct post *p) {
    if (!p->stalled || p->inbox >= POST_INBOX_MAX)
        return;
    p->stalled = false;
    LIST_EACH (l, &p->links)
        link_read(CONTAINER_OF(l, struct link, at));
}

void post_pump(struct post *p) {
    struct epoll_event events[EVENTS_MAX];
    if (!p->open)
        return;
    resume(p);
    post_glance(p);
    int n = EVENTS_MAX;
    for (int round = 0; n == EVENTS_MAX && round < ROUNDS_MAX; round++) {
        n = epoll_wait(p->epoll, events, EVENTS_MAX, 0);
        for (int i = 0; i < n; i++)
            on_event(p, &events[i]);
        sweep(p);
    }
    post_sweep(p);
}

/* ---- rings ---- */

#define RINGED_EACH(link, p)                                                                     \
    for (struct list *l_ = (p)->links.next; (p)->ringed > 0 && l_ != &(p)->links; l_ = l_->next) \
        for (struct link *link = CONTAINER_OF(l_, struct link, at);                              \
             link != NULL && link->ringed && !link->lost; link = NULL)

void post_wake(struct post *p) {
    if (!p->open || p->awake)
        return;
    p->awake = true;
    RINGED_EACH(link, p)
    rings_go_on(&link->rings);
}

static bool has_more(const struct link *l) {
    return l->out_to > 0 || l->going != NULL;
}

bool post_sleep(struct post *p) {
    bool some = false;
    p->awake = false;
    RINGED_EACH(link, p) {
        bool reads = p->inbox < POST_INBOX_MAX && rings_wait_in(&link->rings);
        bool writes = has_more(link) && rings_wait_out(&link->rings);
        some = some || reads || writes || (link->ended && p->inbox < POST_INBOX_MAX);
    }
    return some;
}

bool post_spin(struct post *p) {
    uint32_t most = p->ringed == 0 || p->processors < 2 ? 0 : p->spins;
    for (uint32_t i = 0; i < most; i++) {
        RINGED_EACH(link, p)
        if (rings_ready(&link->rings) || (has_more(link) && rings_roomy(&link->rings))) {
            p->spins = p->spins < SPINS_MAX ? 2 * p->spins : SPINS_MAX;
            return true;
        }
        if (i % PAUSE_EACH == 0)
            pause_processor(); /* on a virtual machine it may take microseconds */
    }
    p->spins = p->spins > SPINS_MIN ? p->spins / 2 : SPINS_MIN;
    return false;
}

void post_glance(struct post *p) {
    if (p->ringed == 0)
        return;
    RINGED_EACH(link, p)
    link_look(link);
    sweep(p);
}

void post_idle(struct post *p) {
    if (!p->open || p->untold == 0)
        return;
    LIST_EACH (l, &p->links) {
        struct link *link = CONTAINER_OF(l, struct link, at);
        if (link->told != link->received && !link->lost)
            link_write(link);
    }
    sweep(p);
}

void post_read(struct post *p, size_t bytes) {
    if (p->open)
        p->inbox -= bytes + POST_OVERHEAD;
}
