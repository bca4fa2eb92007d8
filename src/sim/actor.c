/* SPDX-License-Identifier: MIT */
/* What a process of the model kernel does: see kernel_inside.h. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "sim/kernel_inside.h"

enum { PIECE = 4096 };

/* ---- its end, and signals ---- */

static void die(struct actor *a, enum child_event event, uint32_t value) {
    struct member *m = a->member;
    a->alive = false;
    kernel_life(a, false);
    if (!a->own)
        return;
    kernel_watch(m, event, value, false);
    m->end = (struct input_child){
        .group = m->group->id, .index = m->index, .event = event, .value = value};
    m->end_due = true;
    m->in_due = m->in_due || m->in.to > 0;
}

bool actor_held(const struct actor *a) {
    return a->stopped || a->member->group->frozen;
}

void actor_hold(struct actor *a, uint64_t now) {
    a->left = a->doing == DOING_RUN && a->until > now ? a->until - now : 0;
}

void actor_go_on(struct actor *a, uint64_t now) {
    a->until = units_after(now, a->left);
    uint64_t pending = a->pending;
    a->pending = 0;
    for (uint32_t number = 1; pending != 0 && number < 64; number++)
        if (pending >> number & 1)
            actor_signal(a, number, now);
}

static bool stops(uint32_t number) {
    return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

static void change_stopped(struct actor *a, bool stopped, uint64_t now) {
    bool before = actor_held(a);
    a->stopped = stopped;
    if (!before && actor_held(a))
        actor_hold(a, now);
    else if (before && !actor_held(a))
        actor_go_on(a, now);
}

static bool ignores(const struct actor *a, uint32_t number) {
    return number == SIGCHLD || number == SIGURG || number == SIGWINCH ||
           (number == SIGTERM && a->ignores_term);
}

/* What ends a process without its help ends it even if it is frozen, but not if it is stopped. */
void actor_signal(struct actor *a, uint32_t number, uint64_t now) {
    bool catches = number == SIGTERM && a->catches_term;
    if (!a->alive || ignores(a, number))
        return;
    if (number == SIGKILL)
        die(a, CHILD_KILLED, number);
    else if (number == SIGCONT)
        change_stopped(a, false, now);
    else if (stops(number) && !actor_held(a))
        change_stopped(a, true, now);
    else if (a->stopped || (actor_held(a) && (catches || stops(number))))
        a->pending |= UINT64_C(1) << (number & 63);
    else if (catches)
        die(a, CHILD_EXITED, a->term_status);
    else
        die(a, CHILD_KILLED, number);
}

/* ---- what it does ---- */

static struct actor *offspring(struct actor *a) {
    struct member *m = a->member;
    struct actor *child = calloc(1, sizeof *child);
    ASSERT(child != NULL);
    *child = *a;
    child->own = false;
    child->pending = 0;
    child->next = m->offspring;
    m->offspring = child;
    kernel_life(child, true);
    return child;
}

/* True if it is done. */
static bool write_some(struct actor *a) {
    struct flow *f = &a->member->out[a->member->group->spec.merged ? 0 : a->stream - 1];
    uint8_t piece[PIECE];
    while (a->count > 0 && flow_room(f) > 0) {
        uint64_t n = a->count < PIECE ? a->count : PIECE;
        if (n > flow_room(f))
            n = flow_room(f);
        for (uint64_t i = 0; i < n; i++)
            piece[i] = act_byte(f->to + i);
        flow_write(f, bytes_of(piece, (size_t)n));
        a->count -= n;
    }
    return a->count == 0;
}

static void consume(struct member *m, uint64_t count) {
    flow_drop(&m->in, m->in.from + count);
    m->in_due = true;
}

/* Who is not given the standard input reads from where nothing ever is. */
static bool input_over(const struct member *m) {
    return !m->listens || (m->in_end && m->in.from == m->in.to);
}

static bool read_some(struct actor *a) {
    struct member *m = a->member;
    uint64_t n = m->in.to - m->in.from;
    if (n > a->count)
        n = a->count;
    if (n > 0)
        consume(m, n);
    a->count -= n;
    return a->count == 0 || input_over(m);
}

static bool copy_some(struct actor *a) {
    struct member *m = a->member;
    struct flow *f = &m->out[0];
    uint64_t n = m->in.to - m->in.from;
    if (n > flow_room(f))
        n = flow_room(f);
    if (n > 0) {
        flow_write(f, flow_part(&m->in, m->in.from, m->in.from + n));
        consume(m, n);
    }
    return input_over(m);
}

static void begin_run(struct actor *a, const struct act *act, uint64_t now) {
    struct random *r = &a->member->group->kernel->random;
    uint64_t ns = act->high > act->low ? random_between(r, act->low, act->high) : act->low;
    a->doing = DOING_RUN;
    a->until = units_after(now, ns);
}

static void begin_count(struct actor *a, enum doing doing, uint64_t count, uint8_t stream) {
    a->doing = doing;
    a->count = count;
    a->stream = stream;
}

static void begin_act(struct actor *a, const struct act *act, uint64_t now) {
    switch (act->kind) {
    case ACT_RUN:
        begin_run(a, act, now);
        break;
    case ACT_HANG:
        a->doing = DOING_HANG;
        break;
    case ACT_WRITE:
        begin_count(a, DOING_WRITE, act->number, 1);
        break;
    case ACT_ERROR:
        begin_count(a, DOING_WRITE, act->number, 2);
        break;
    case ACT_READ:
        begin_count(a, DOING_READ, act->number, 0);
        break;
    case ACT_CAT:
        a->doing = DOING_CAT;
        break;
    case ACT_EXIT:
        die(a, CHILD_EXITED, (uint32_t)act->number & 0xFF);
        break;
    case ACT_SIGNAL:
        die(a, CHILD_KILLED, (uint32_t)act->number);
        break;
    case ACT_IGNORE_TERM:
        a->ignores_term = true;
        break;
    case ACT_CATCH_TERM:
        a->catches_term = true;
        a->term_status = (uint32_t)act->number;
        break;
    case ACT_RANK:
        a->skips = act->number != setup_rank(&a->member->group->setup, a->member->index);
        break;
    case ACT_FORK:
        offspring(a)->doing = DOING_HANG;
        break;
    case ACT_FORK_AWAY:
        offspring(a);
        die(a, CHILD_EXITED, 0);
        break;
    case ACT_KINDS:
        break;
    }
}

/* Is it ready for the next? */
static bool done(struct actor *a, uint64_t now) {
    switch (a->doing) {
    case DOING_NEXT:
        return true;
    case DOING_RUN:
        return a->until <= now;
    case DOING_HANG:
        return false;
    case DOING_WRITE:
        return write_some(a);
    case DOING_READ:
        return read_some(a);
    case DOING_CAT:
        return copy_some(a);
    }
    return false;
}

static struct bytes arguments_of(const struct member *m) {
    struct spec_program p;
    bool found = spec_program_of(&m->group->spec, setup_rank(&m->group->setup, m->index), &p);
    ASSERT(found); /* it was when it was to begin */
    return p.arguments;
}

/* What it does not understand ends it like a wrong use does. */
void actor_advance(struct actor *a, uint64_t now) {
    while (a->alive && !actor_held(a) && done(a, now)) {
        struct act act;
        int r = act_next(arguments_of(a->member), &a->at, &act);
        a->doing = DOING_NEXT;
        if (r > 0 && a->skips)
            a->skips = false;
        else if (r > 0)
            begin_act(a, &act, now);
        else
            die(a, CHILD_EXITED, r < 0 ? 2 : 0);
    }
}

void actor_begin(struct member *m, uint64_t now) {
    struct sim_kernel *k = m->group->kernel;
    struct actor *a = &m->self;
    *a = (struct actor){.member = m, .alive = true, .own = true, .doing = DOING_RUN};
    kernel_life(a, true);
    strings_next(arguments_of(m), &a->at); /* its name */
    a->until =
        units_after(now, random_between(&k->random, k->config.spawn_ns / 2, k->config.spawn_ns));
}
