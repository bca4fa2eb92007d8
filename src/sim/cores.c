/* SPDX-License-Identifier: MIT */
/* The run queue and the turns of processes: see cores.h.
 *
 * A turn is worked out at its beginning: everything in it happens to the machines at that time, and
 * its end follows from what it costs. What arrives meanwhile waits for the next turn. */
#include "sim/cores.h"

#include "sim/inside.h"

void cores_init(struct cores *c, uint64_t count) {
    c->idle = count;
    list_init(&c->ready);
}

static void wake_after(struct world *w, struct node *n, uint64_t ns) {
    clock_push(&w->clock, &n->wake, w->now + ns * node_slowness(w, n));
}

/* Gives processors to those who wait, who can go on after `delay` at the earliest. */
static void dispatch(struct world *w, uint64_t delay) {
    struct cores *c = &w->cores;
    while (c->idle > 0 && !list_empty(&c->ready)) {
        struct node *n = CONTAINER_OF(list_pop_front(&c->ready), struct node, ready);
        c->idle--;
        n->process = PROCESS_WAKING;
        wake_after(w, n, delay + w->config.link.cpu_wake_ns);
    }
}

static void enqueue(struct world *w, struct node *n) {
    if (list_empty(&n->inbox) || n->wake.index != 0)
        return;
    if (n->paused_until > w->now) {
        clock_push(&w->clock, &n->wake, n->paused_until);
        return;
    }
    n->process = PROCESS_READY;
    list_push_back(&w->cores.ready, &n->ready);
}

void cores_rouse(struct world *w, struct node *n) {
    if (n->process != PROCESS_ASLEEP)
        return;
    enqueue(w, n);
    dispatch(w, w->config.link.core_idle_ns);
}

static void give_back(struct world *w, struct node *n) {
    n->process = PROCESS_ASLEEP;
    w->cores.idle++;
    enqueue(w, n); /* behind those who wait already */
    dispatch(w, 0);
}

void cores_flush(struct world *w, struct node *n) {
    struct list *l;
    while ((l = list_first(&n->unsent)) != NULL)
        n->busy_until = link_flush(w, CONTAINER_OF(l, struct end, to_flush), n->busy_until);
}

static void take_turn(struct world *w, struct node *n) {
    uint32_t life = n->boots;
    struct list *place;
    n->turn++;
    n->process = PROCESS_BUSY;
    n->busy_until = w->now;
    while ((place = list_pop_front(&n->inbox)) != NULL) {
        event_process(w, CONTAINER_OF(place, struct event, place));
        if (!n->up || n->boots != life)
            return; /* whoever watches has cut it off */
    }
    cores_flush(w, n);
    clock_push(&w->clock, &n->wake, n->busy_until);
}

void cores_wake(struct world *w, struct node *n) {
    bool paused = n->paused_until > w->now;
    switch (n->process) {
    case PROCESS_ASLEEP:
        cores_rouse(w, n);
        break;
    case PROCESS_WAKING:
        if (paused)
            give_back(w, n);
        else
            take_turn(w, n);
        break;
    case PROCESS_BUSY:
        n->process = list_empty(&n->inbox) || paused ? PROCESS_SINKING : PROCESS_WAKING;
        wake_after(w, n,
                   n->process == PROCESS_WAKING ? w->config.link.cpu_poll_ns
                                                : w->config.link.cpu_sleep_ns);
        break;
    case PROCESS_SINKING:
        give_back(w, n);
        break;
    case PROCESS_READY:
        assert_failed("a process with a processor", __FILE__, __LINE__);
    }
}

void cores_quit(struct world *w, struct node *n) {
    enum process_state was = n->process;
    list_remove(&n->ready);
    n->process = PROCESS_ASLEEP;
    if (was == PROCESS_ASLEEP || was == PROCESS_READY)
        return;
    w->cores.idle++;
    dispatch(w, 0);
}
