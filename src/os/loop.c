/* SPDX-License-Identifier: MIT */
/* The event loop: see loop.h. */
#include "os/loop.h"

#include <errno.h>
#include <stddef.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/units.h"
#include "os/calls.h"

uint64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

void clock_sleep_until(uint64_t at) {
    struct timespec t = {.tv_sec = (time_t)(at / NS_PER_S), .tv_nsec = (long)(at % NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

/* Edge-triggered: setting the timer anew is all it takes, it need not be read. */
static void timer_ready(struct source *s, uint32_t events) {
    (void)events;
    CONTAINER_OF(s, struct loop, timer)->timer_at = 0;
}

int loop_init(struct loop *l) {
    *l = (struct loop){.timer = {.fd = -1, .ready = timer_ready}, .now = clock_ns()};
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll < 0)
        return -errno;
    l->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    int r = l->timer.fd < 0 ? -errno : loop_add(l, &l->timer, EPOLLIN | EPOLLET);
    if (r < 0)
        loop_fini(l);
    return r;
}

void loop_fini(struct loop *l) {
    if (l->timer.fd >= 0)
        close(l->timer.fd);
    if (l->epoll >= 0)
        close(l->epoll);
    l->timer.fd = l->epoll = -1;
}

static int control(struct loop *l, int what, struct source *s, uint32_t events) {
    struct epoll_event e = {.events = events, .data.ptr = s};
    return epoll_ctl(l->epoll, what, s->fd, &e) < 0 ? -errno : 0;
}

int loop_add(struct loop *l, struct source *s, uint32_t events) {
    return control(l, EPOLL_CTL_ADD, s, events);
}

void loop_change(struct loop *l, struct source *s, uint32_t events) {
    int r = control(l, EPOLL_CTL_MOD, s, events);
    ASSERT(r == 0);
}

void loop_forget(struct loop *l, const struct source *s) {
    for (int i = 0; i < l->batch_count; i++)
        if (l->batch[i].data.ptr == s)
            l->batch[i].data.ptr = NULL;
}

void loop_remove(struct loop *l, struct source *s) {
    int r = control(l, EPOLL_CTL_DEL, s, 0);
    ASSERT(r == 0);
    loop_forget(l, s);
}

int loop_adopt(struct loop *l, struct source *s, int fd,
               void (*ready)(struct source *s, uint32_t events), uint32_t events) {
    *s = (struct source){.fd = fd, .ready = ready};
    int r = loop_add(l, s, events);
    if (r < 0) {
        close(fd);
        s->fd = -1;
    }
    return r;
}

void loop_close(struct loop *l, struct source *s) {
    if (s->fd < 0)
        return;
    loop_remove(l, s);
    close(s->fd);
    s->fd = -1;
}

void loop_wake_at(struct loop *l, uint64_t at) {
    at = at == 0 ? 1 : at; /* zero would mean never */
    if (l->wake_at == 0 || at < l->wake_at)
        l->wake_at = at;
}

/* One that rings too early does no harm, it is set anew then: most are moved away again and again,
 * and hardly ever ring. */
static void set_timer(struct loop *l) {
    uint64_t at = l->wake_at;
    l->wake_at = 0;
    if (at == 0 || (l->timer_at != 0 && at >= l->timer_at))
        return;
    struct itimerspec t = {
        .it_value = {.tv_sec = (time_t)(at / NS_PER_S), .tv_nsec = (long)(at % NS_PER_S)}};
    int r = timerfd_settime(l->timer.fd, TFD_TIMER_ABSTIME, &t, NULL);
    ASSERT(r == 0);
    l->timer_at = at;
}

void loop_turn(struct loop *l, int timeout_ms) {
    set_timer(l);
    int count = call_epoll_wait(l->epoll, l->batch, LOOP_BATCH, timeout_ms);
    ASSERT(count >= 0 || errno == EINTR);
    l->now = clock_ns();
    l->batch_count = count < 0 ? 0 : count;
    for (int i = 0; i < l->batch_count; i++) {
        struct source *s = l->batch[i].data.ptr;
        if (s != NULL)
            s->ready(s, l->batch[i].events);
    }
    l->batch_count = 0;
}
