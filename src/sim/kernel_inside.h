/* SPDX-License-Identifier: MIT */
/* What the model kernel's files share: actors, members, groups.
 *
 * A *member* is one of the processes that a launcher started: what is told of it, its streams. An
 * *actor* is whoever does something: the member's own process, and what it leaves behind. */
#pragma once

#include "base/random.h"
#include "sim/act.h"
#include "sim/caller.h"
#include "sim/flow.h"
#include "sim/kernel.h"
#include "wire/setup.h"
#include "wire/spec.h"

enum doing { DOING_NEXT, DOING_RUN, DOING_HANG, DOING_WRITE, DOING_READ, DOING_CAT };

struct actor {
    struct member *member;
    struct actor *next; /* of the member's offspring */
    bool alive;
    bool own; /* the member's own process: its end is told */
    bool stopped;
    bool ignores_term, catches_term;
    uint32_t term_status;
    uint64_t pending; /* signals that wait until it goes on, as bits */
    size_t at;        /* in the words */
    bool skips;       /* the next of them is for another rank */
    enum doing doing;
    uint64_t until; /* RUN: if it is not held */
    uint64_t left;  /* RUN: if it is */
    uint64_t count; /* WRITE, READ: bytes still to come */
    uint8_t stream; /* WRITE */
};

struct member {
    struct sim_group *group;
    uint32_t index;
    struct actor self;
    struct actor *offspring;
    struct flow out[2];
    uint64_t told[2];
    bool end_told[2];
    struct flow in; /* `from`: what was read */
    bool listens;
    bool in_end; /* nothing comes after what is in `in` */
    bool in_due; /* how far it is, is to be told */
    bool start_due, end_due;
    struct input_child start, end;
};

struct sim_group {
    struct sim_kernel *kernel;
    uint32_t id;
    uint64_t run;
    struct setup setup;
    struct spec spec;
    uint8_t *bytes; /* of the setup */
    int error;      /* why nothing of it can be started */
    bool started, frozen, killed;
    uint64_t frozen_at;
    bool empty, empty_told;
    bool measure_due;
    struct caller caller;
    uint32_t count;
    struct member members[];
};

struct sim_kernel {
    struct sim_kernel_config config;
    struct random random;
    uint64_t now; /* the latest that we were told */
    uint32_t pid; /* the last */
    uint32_t open;
    struct sim_group **groups;
};

/* Tells whoever watches. */
void kernel_watch(const struct member *m, enum child_event event, uint32_t value, bool crash);
void kernel_life(const struct actor *a, bool begins);

/* ---- actor.c: what a process does ---- */

/* The member's own process begins. */
void actor_begin(struct member *m, uint64_t now);
void actor_signal(struct actor *a, uint32_t number, uint64_t now);

/* Its group is to be frozen or thawed, or it is stopped or goes on: its time stands still meanwhile. */
void actor_hold(struct actor *a, uint64_t now);
void actor_go_on(struct actor *a, uint64_t now);
bool actor_held(const struct actor *a);

/* Does whatever it can do now. */
void actor_advance(struct actor *a, uint64_t now);

/* All actors of a member. */
#define ACTORS_EACH(a, m) for (struct actor *a = &(m)->self; a != NULL; a = actor_after(m, a))

static inline struct actor *actor_after(struct member *m, const struct actor *a) {
    return a == &m->self ? m->offspring : a->next;
}
