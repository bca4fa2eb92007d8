/* SPDX-License-Identifier: MIT */
/* Gauges this machine: see gauge.h. */
#include "os/gauge.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/sort.h"
#include "base/units.h"

enum { REPEATS = 7, CALLS = 301, PINGS = 400, FANS = 40, SMALL = 64, LARGE = 4096 };

/* Values that are taken once in every repeat. */
enum value {
    SEND,
    RECEIVE,
    POLL,
    EMPTY,
    HOP,
    CROSS,
    FAN_ONE,
    FAN_ONE_4K,
    FAN_FEW,
    FAN_MANY,
    VALUES
};

struct samples {
    uint64_t at[VALUES][REPEATS];
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t middle(uint64_t *at, uint32_t count) {
    sort_u64(at, count);
    return at[count / 2];
}

/* ---- system calls, one by one ---- */

enum call { CALL_CLOCK, CALL_SEND, CALL_POLL, CALL_RECEIVE, CALL_EMPTY, CALL_KINDS };

struct calls {
    int pair[2];
    int epoll;
    uint8_t bytes[SMALL];
    uint64_t took[CALL_KINDS][CALLS];
    uint64_t ns[CALL_KINDS];
};

static bool call_all(struct calls *c, uint64_t at[CALL_KINDS + 1]) {
    struct epoll_event e;
    at[0] = now_ns();
    at[1] = now_ns(); /* what looking at the clock takes */
    bool ok = send(c->pair[0], c->bytes, SMALL, MSG_NOSIGNAL) == SMALL;
    at[2] = now_ns();
    ok = ok && epoll_wait(c->epoll, &e, 1, 0) == 1;
    at[3] = now_ns();
    ok = ok && recv(c->pair[1], c->bytes, SMALL, 0) == SMALL;
    at[4] = now_ns();
    ok = ok && epoll_wait(c->epoll, &e, 1, 0) == 0;
    at[5] = now_ns();
    return ok;
}

static int time_calls(struct calls *c) {
    uint64_t at[CALL_KINDS + 1];
    for (int i = 0; i < CALLS; i++) {
        if (!call_all(c, at))
            return -EIO;
        for (int k = 0; k < CALL_KINDS; k++)
            c->took[k][i] = at[k + 1] - at[k];
    }
    for (int k = 0; k < CALL_KINDS; k++)
        c->ns[k] = middle(c->took[k], CALLS);
    for (int k = CALL_SEND; k < CALL_KINDS; k++)
        c->ns[k] -= c->ns[k] < c->ns[CALL_CLOCK] ? c->ns[k] : c->ns[CALL_CLOCK];
    return 0;
}

static int gauge_calls(struct calls *c, struct samples *s, int repeat) {
    int r = time_calls(c);
    s->at[SEND][repeat] = c->ns[CALL_SEND];
    s->at[RECEIVE][repeat] = c->ns[CALL_RECEIVE];
    s->at[POLL][repeat] = c->ns[CALL_POLL];
    s->at[EMPTY][repeat] = c->ns[CALL_EMPTY];
    return r;
}

static int calls_open(struct calls *c, enum transport transport) {
    struct epoll_event e = {.events = EPOLLIN};
    int r = fanout_pair(transport, c->pair);
    if (r < 0)
        return r;
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (c->epoll < 0 || epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->pair[1], &e) < 0)
        return -errno;
    return 0;
}

static void calls_close(struct calls *c) {
    int fds[] = {c->pair[0], c->pair[1], c->epoll};
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* ---- processes ---- */

/* The first two processors that we may use, counted from 1; 0 where there is none. */
struct places {
    uint32_t first, second, count;
};

static int find_places(struct places *ret) {
    cpu_set_t set;
    *ret = (struct places){0};
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return -errno;
    for (uint32_t i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &set))
            continue;
        ret->count++;
        if (ret->count == 1)
            ret->first = i + 1;
        else if (ret->count == 2)
            ret->second = i + 1;
    }
    return 0;
}

static int fan(const struct fanout_config *config, uint64_t *ret_ns) {
    struct fanout_config c = *config;
    struct fanout_result result;
    c.rounds = c.nodes > 1 ? FANS : PINGS;
    int r = fanout_run(&c, &result);
    if (r == 0)
        *ret_ns = result.median_ns;
    return r;
}

static int gauge_processes(enum transport t, const struct places *p, struct samples *s,
                           int repeat) {
    struct fanout_config one = {
        .transport = t, .nodes = 1, .asker_cpu = p->first, .answerer_cpu = p->first};
    struct fanout_config two = one, all = {.transport = t, .nodes = GAUGE_FEW};
    int r = fan(&one, &s->at[HOP][repeat]);
    two.answerer_cpu = p->second;
    if (r == 0 && p->second > 0)
        r = fan(&two, &s->at[CROSS][repeat]);
    one.nodes = GAUGE_FAN_ONE;
    if (r == 0)
        r = fan(&one, &s->at[FAN_ONE][repeat]);
    one.message_bytes = LARGE;
    if (r == 0)
        r = fan(&one, &s->at[FAN_ONE_4K][repeat]);
    if (r == 0)
        r = fan(&all, &s->at[FAN_FEW][repeat]);
    all.nodes = GAUGE_MANY;
    return r < 0 ? r : fan(&all, &s->at[FAN_MANY][repeat]);
}

int gauge_take(enum transport transport, struct gauge *ret) {
    struct samples s = {0};
    struct places places;
    struct calls *c = calloc(1, sizeof *c);
    if (c == NULL)
        return -ENOMEM;
    c->pair[0] = c->pair[1] = c->epoll = -1;
    int r = find_places(&places);
    if (r == 0)
        r = calls_open(c, transport);
    for (int i = 0; i < REPEATS && r == 0; i++) {
        r = gauge_calls(c, &s, i);
        if (r == 0)
            r = gauge_processes(transport, &places, &s, i);
    }
    calls_close(c);
    free(c);
    if (r < 0)
        return r;
    uint64_t v[VALUES];
    for (int i = 0; i < VALUES; i++)
        v[i] = middle(s.at[i], REPEATS);
    *ret = (struct gauge){.transport = transport,
                          .cpus = places.count,
                          .send_ns = v[SEND],
                          .receive_ns = v[RECEIVE],
                          .poll_ns = v[POLL],
                          .empty_ns = v[EMPTY],
                          .hop_ns = v[HOP] / 2,
                          .cross_ns = v[CROSS] / 2,
                          .fan_one_ns = v[FAN_ONE],
                          .fan_one_4k_ns = v[FAN_ONE_4K],
                          .fan_few_ns = v[FAN_FEW],
                          .fan_many_ns = v[FAN_MANY]};
    return 0;
}
