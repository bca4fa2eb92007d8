/* SPDX-License-Identifier: MIT */
/* The event loop: one wait, one look at the clock a turn.
 *
 * Everything that happens in a turn happens at the same time, `now`, so logic sees a clock that
 * stands still while it thinks. A source is embedded in whatever owns the descriptor. One that is
 * taken out while a turn is under way is not called any more in that turn. */
#pragma once

#include <stdint.h>
#include <sys/epoll.h>

struct source {
    int fd; /* -1: in no loop */
    void (*ready)(struct source *s, uint32_t events);
};

enum { LOOP_BATCH = 64 };

struct loop {
    int epoll;
    uint64_t now; /* monotonic nanoseconds */
    struct source timer;
    uint64_t timer_at; /* what the kernel's timer is set to, 0 if to nothing */
    uint64_t wake_at;  /* the earliest that was asked for since the last turn, 0 if nothing was */
    struct epoll_event batch[LOOP_BATCH];
    int batch_count; /* of the turn under way */
};

int loop_init(struct loop *l);
void loop_fini(struct loop *l);

/* `events` as epoll has them, level-triggered unless they say otherwise. */
int loop_add(struct loop *l, struct source *s, uint32_t events);
void loop_change(struct loop *l, struct source *s, uint32_t events);
void loop_remove(struct loop *l, struct source *s);
/* The same without a call, for a descriptor that is closed next and of which nobody has a copy. */
void loop_forget(struct loop *l, const struct source *s);

/* Takes a descriptor over, into the loop; if that cannot be, it is closed. 0 or -errno. */
int loop_adopt(struct loop *l, struct source *s, int fd,
               void (*ready)(struct source *s, uint32_t events), uint32_t events);
/* Out of the loop, and closed; nothing happens if it is already. */
void loop_close(struct loop *l, struct source *s);

/* Sees to it that the next turn begins at this time, if not earlier. Whoever still waits after that
 * turn asks again: so a time that was moved on wakes nobody. */
void loop_wake_at(struct loop *l, uint64_t at);

/* Waits until something happens (at most `timeout_ms`; -1: for ever), then calls what is ready. */
void loop_turn(struct loop *l, int timeout_ms);

uint64_t clock_ns(void);
void clock_sleep_until(uint64_t at);
