/* SPDX-License-Identifier: MIT */
/* Folders that runs have on this node.
 *
 * One begins with files that come for a run, or with its launch, and goes when the run is forgotten. The mover removes
 * it: it may be large, and the mover is who writes there. What says that a run is over can be lost, and so can
 * we: of a folder whose run is not here, whether it is not launched yet or is of a former life, we tell the root that we
 * have it, until that says to kill it. */
#include "base/units.h"
#include "nm/inside.h"
#include "rm/say.h"

/* Those that wait for something are looked at so often. */
#define LOOK_NS (1 * NS_PER_S)
/* The root is asked so long after it has last told of it, or was asked. */
#define ASK_NS (5 * NS_PER_S)

#define FOLDERS_EACH(f, n)                                                     \
    for (struct folder *f = (n)->folders; f < (n)->folders + FOLDERS_MAX; f++) \
        if (f->run != 0)

static struct folder *find(struct nm *n, uint64_t run) {
    FOLDERS_EACH (f, n)
        if (f->run == run)
            return f;
    return NULL;
}

static void set_timer(struct nm *n) {
    effects_timer(n->out, TIMER_FOLDERS, n->now + LOOK_NS);
}

bool folders_add(struct nm *n, uint64_t run) {
    struct folder *f = find(n, run);
    for (struct folder *free = n->folders; f == NULL && free < n->folders + FOLDERS_MAX; free++)
        if (free->run == 0)
            f = free;
    if (f == NULL)
        return false;
    *f = (struct folder){.run = run, .asked_at = n->now};
    set_timer(n);
    return true;
}

void folders_boot(struct nm *n, struct bytes runs) {
    for (size_t at = 0; at + 8 <= runs.len; at += 8)
        folders_add(n, load_le64(runs.at + at));
    FOLDERS_EACH (f, n)
        f->asked_at = 0;
}

static void clear(struct nm *n) {
    uint8_t runs[8 * FOLDERS_MAX];
    size_t len = 0;
    FOLDERS_EACH (f, n)
        if (f->unwanted) {
            store_le64(runs + len, f->run);
            len += 8;
        }
    if (len == 0)
        return;
    orders_reach(n);
    if (n->mover == 0)
        return;
    union message m = {.clear = {.runs = bytes_of(runs, len)}};
    say_link(n->out, n->mover, MESSAGE_CLEAR, &m, (struct bytes){0});
}

void folders_drop(struct nm *n, uint64_t run) {
    struct folder *f = find(n, run);
    if (f == NULL || f->unwanted)
        return;
    f->unwanted = true;
    set_timer(n);
    clear(n);
}

void folders_up(struct nm *n) {
    clear(n);
}

void folders_gone(struct nm *n, const struct message_clear *m) {
    for (size_t at = 0; at < m->runs.len; at += 8) {
        struct folder *f = find(n, load_le64(m->runs.at + at));
        if (f != NULL && f->unwanted)
            f->run = 0;
    }
}

static void ask(struct nm *n, struct folder *f) {
    uint8_t run[8];
    if (n->settled == 0 || !n->ready || f->unwanted || run_find(n, f->run) != NULL ||
        (f->asked_at != 0 && n->now - f->asked_at < ASK_NS))
        return;
    f->asked_at = n->now;
    store_le64(run, f->run);
    say_root(n->out, MESSAGE_HAVE, &(union message){.have = {.runs = bytes_of(run, 8)}},
             (struct bytes){0});
}

void folders_timer(struct nm *n) {
    bool any = false;
    FOLDERS_EACH (f, n) {
        any = true;
        ask(n, f);
    }
    if (any)
        set_timer(n);
    clear(n); /* what could not be removed is tried again */
}
