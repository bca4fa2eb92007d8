/* SPDX-License-Identifier: MIT */
/* The program launcher: see launcher.h.
 *
 * A run is ready, then started, then ended, then forgotten; what is asked of it in the wrong state
 * is answered with how it stands, or changes nothing: commands may come twice or late. */
#include "pl/launcher.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "pl/inside.h"
#include "wire/gate.h"

/* ---- memory ---- */

static void carve(struct pl *p, const struct pl_config *c, struct arena *a) {
    *p = (struct pl){.config = *c, .lease_ns = c->lease_ns};
    p->runs = ARENA_TAKE(a, struct run, c->groups);
    p->processes = ARENA_TAKE(a, struct process, c->processes);
    p->setups = ARENA_TAKE(a, uint8_t, c->setup_bytes);
    p->petitioners = ARENA_TAKE(a, struct petitioner, c->petitioners);
}

size_t pl_bytes(const struct pl_config *c) {
    struct arena a;
    struct pl scratch;
    arena_init(&a, NULL, 0);
    ARENA_TAKE(&a, struct pl, 1);
    carve(&scratch, c, &a);
    return arena_used(&a);
}

/* Every message has a head of its own and the number of its link. */
enum { SEND_BYTES = 64 + ENDING_BYTES };

enum { SIGNALS_MAX = 64 }; /* of Linux */

uint32_t pl_effects_max(const struct pl_config *c) {
    /* A turn: each run held, let go or started. A new manager: each run, both streams and the input of each process, and the resend timer
     * moved for each stream; each petitioner begins anew; a handful besides. */
    return c->groups * 6 + c->processes * 5 + c->petitioners * 3 + 16;
}

size_t pl_effect_bytes_max(const struct pl_config *c) {
    return (size_t)c->setup_bytes + (size_t)pl_effects_max(c) * SEND_BYTES + HOST_NAME_BYTES;
}

uint32_t pl_runs(const struct pl *p) {
    return p->run_count;
}

/* ---- saying ---- */

void pl_send(struct pl *p, uint16_t type, const union message *m, struct bytes tail,
             struct effects *out) {
    if (p->link == 0)
        return;
    long len = message_encode(type, m, effects_tail(out));
    ASSERT(len >= 0);
    effects_send(out, p->link, 0, type, effects_take(out, (size_t)len), tail);
}

static void say_ending(struct pl *p, uint64_t run, const struct ending *e, struct effects *out) {
    uint8_t bytes[ENDING_BYTES];
    ending_store(bytes, e);
    union message m = {.ended = {.run = run, .ends = bytes_of(bytes, sizeof bytes)}};
    pl_send(p, MESSAGE_ENDED, &m, (struct bytes){0}, out);
}

static void say_ended(struct pl *p, const struct run *r, struct effects *out) {
    say_ending(p, r->run, &r->end, out);
}

/* It was never here, or could not be taken in. */
static void say_no(struct pl *p, uint64_t run, struct ending e, struct effects *out) {
    say_ending(p, run, &e, out);
}

static void say_hold(struct pl *p, const struct run *r, struct effects *out) {
    union message m = {.hold = {.run = r->run,
                                .started = r->state == RUN_STARTED || r->due,
                                .setup = bytes_of(p->setups + r->setup, r->setup_bytes)}};
    pl_send(p, MESSAGE_HOLD, &m, (struct bytes){0}, out);
}

static void refuse(struct pl *p, struct effects *out) {
    struct effect *e = effects_add(out, EFFECT_CLOSE);
    e->close.link = p->link;
    e->close.refusal = REFUSAL_BODY;
    p->link = 0;
}

/* ---- the way of a run ---- */

static struct effect_group *group_effect(struct pl *p, const struct run *r, enum effect_kind kind,
                                         struct effects *out) {
    struct effect *e = effects_add(out, kind);
    e->group.group = run_group(p, r);
    return &e->group;
}

static void forget(struct pl *p, struct run *r, struct effects *out) {
    if (!r->closed)
        group_effect(p, r, EFFECT_GROUP_CLOSE, out);
    runs_remove(p, r);
}

/* How it ended is kept until the manager has heard it, and that may be said for many runs at once. Its
 * pipes are not kept so long: nobody will ask for anything that is in them. */
static void close_if_done(struct pl *p, struct run *r, struct effects *out) {
    if (r->state != RUN_ENDED || r->closed || !streams_done(p, r))
        return;
    for (uint32_t i = 0; i < r->count; i++) /* those that never began among them */
        run_process(p, r, i)->drained = UINT64_MAX;
    group_effect(p, r, EFFECT_GROUP_CLOSE, out);
    r->closed = true;
}

/* Nothing of it runs any more. */
static void end(struct pl *p, struct run *r, struct effects *out) {
    if (r->dropped) {
        forget(p, r, out);
        return;
    }
    run_close(p, r);
    say_ended(p, r, out);
    close_if_done(p, r, out);
}

static void kill_group(struct pl *p, struct run *r, struct effects *out) {
    r->killing = true;
    group_effect(p, r, EFFECT_GROUP_KILL, out);
}

/* A run that never began is over at once; all that can be said of it is that we did it. So is one of
 * which only output is left. */
static void stop(struct pl *p, struct run *r, struct effects *out) {
    if (r->state == RUN_READY || r->empty)
        end(p, r, out);
    else if (r->state == RUN_STARTED)
        kill_group(p, r, out);
}

static void freeze(struct pl *p, struct run *r, bool suspended, struct effects *out) {
    if (r->suspended == suspended || r->state == RUN_ENDED)
        return;
    r->suspended = suspended;
    gang_settle(p, out);
}

static void start(struct pl *p, struct run *r, struct effects *out) {
    if (r->state != RUN_READY)
        return;
    r->due = true;
    gang_settle(p, out);
}

static void signal_group(struct pl *p, struct run *r, uint32_t number, struct effects *out) {
    if (r->state == RUN_STARTED && number > 0 && number <= SIGNALS_MAX)
        group_effect(p, r, EFFECT_GROUP_SIGNAL, out)->value = number;
}

/* The processes themselves: what they have begun is their affair. */
static void signal_ranks(struct pl *p, struct run *r, const struct message_command *m,
                         struct effects *out) {
    if (r->state != RUN_STARTED || m->value == 0 || m->value > SIGNALS_MAX)
        return;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct process *process = run_process(p, r, i);
        if (process->event != CHILD_STARTED || !ranks_has(m->ranks, process->rank))
            continue;
        struct effect_group *e = group_effect(p, r, EFFECT_GROUP_SIGNAL, out);
        e->value = m->value;
        e->one = i + 1;
    }
}

enum { PIDS_ROWS_MAX = 1024 };

/* Those that run: who asks before all do asks again. The number of one that has ended may be another's by now: it is told
 * without one, so that nobody waits for it. */
static void say_pids(struct pl *p, struct run *r, uint32_t asker, struct effects *out) {
    struct setup setup;
    int good = setup_decode(bytes_of(p->setups + r->setup, r->setup_bytes), &setup);
    ASSERT(good == 0);
    for (uint32_t i = 0; i < r->count;) {
        uint8_t rows[PIDS_ROWS_MAX * PIDS_ROW_BYTES];
        size_t len = 0;
        for (; i < r->count && len < sizeof rows; i++) {
            const struct process *process = run_process(p, r, i);
            bool runs = process->event == CHILD_STARTED;
            if (runs && process->pid == 0)
                continue;
            store_le32(rows + len, process->rank);
            store_le32(rows + len + 4, runs ? process->pid : 0);
            len += PIDS_ROW_BYTES;
        }
        union message m = {.pids = {.run = r->run,
                                    .asker = asker,
                                    .node = setup.node_name,
                                    .host = p->config.host,
                                    .rows = bytes_of(rows, len)}};
        if (len > 0)
            pl_send(p, MESSAGE_PIDS, &m, (struct bytes){0}, out);
    }
}

/* What is stopped would not see the signal. */
static void end_gently(struct pl *p, struct run *r, struct effects *out) {
    if (r->state == RUN_READY || r->empty) {
        end(p, r, out);
        return;
    }
    freeze(p, r, false, out);
    r->ending = true;
    signal_group(p, r, SIGTERM, out);
}

static void drop(struct pl *p, struct run *r, struct effects *out) {
    if (r->state == RUN_STARTED && !r->empty) {
        r->dropped = true;
        kill_group(p, r, out);
    } else {
        forget(p, r, out);
    }
}

/* ---- the lease ---- */

static void renew(struct pl *p, uint64_t now, struct effects *out) {
    p->lease_at = p->lease_ns > 0 && p->run_count > 0 ? units_after(now, p->lease_ns) : 0;
    effects_timer(out, TIMER_LEASE, p->lease_at);
}

static void on_lease(struct pl *p, struct effects *out) {
    p->lease_at = 0;
    RUNS_EACH (r, p) {
        if (r->state == RUN_ENDED)
            continue;
        r->lost = true;
        stop(p, r, out);
    }
}

/* ---- messages ---- */

static void on_setup(struct pl *p, const struct message_setup *m, uint64_t now,
                     struct effects *out) {
    struct setup setup;
    if (setup_decode(m->setup, &setup) < 0 || setup.run != m->run) {
        refuse(p, out);
        return;
    }
    if (runs_find(p, m->run) != NULL)
        return;
    struct run *r = runs_add(p, &setup, m->setup);
    if (r != NULL) {
        r->slots = m->slots;
        r->version = m->version;
    } else {
        say_no(p, m->run,
               (struct ending){.cause = CAUSE_FAILED,
                               .step = SPAWN_FORK,
                               .rank = setup.first,
                               .value = EAGAIN,
                               .bad = setup.count},
               out);
        return;
    }
    group_effect(p, r, EFFECT_GROUP_OPEN, out)->setup = m->setup;
    renew(p, now, out); /* what is left of former runs may have kept an old one */
}

/* Commands to a run that is over are answered with its end, if they wanted to change it. */
static void on_command_ended(struct pl *p, struct run *r, const struct message_command *m,
                             uint64_t now, struct effects *out) {
    switch ((enum verb)m->verb) {
    case VERB_START:
    case VERB_END:
    case VERB_KILL:
    case VERB_CHECK:
        say_ended(p, r, out);
        break;
    case VERB_RESEND:
        streams_again(p, r, now, out);
        break;
    case VERB_DROP:
        drop(p, r, out);
        break;
    default:
        break;
    }
}

static void on_command_run(struct pl *p, struct run *r, const struct message_command *m,
                           uint64_t now, struct effects *out) {
    switch ((enum verb)m->verb) {
    case VERB_START:
        start(p, r, out);
        break;
    case VERB_SIGNAL:
        if (m->ranks.len > 0)
            signal_ranks(p, r, m, out);
        else
            signal_group(p, r, m->value, out);
        break;
    case VERB_PIDS:
        say_pids(p, r, m->value, out);
        break;
    case VERB_SUSPEND:
    case VERB_RESUME:
        freeze(p, r, m->verb == VERB_SUSPEND, out);
        break;
    case VERB_END:
        end_gently(p, r, out);
        break;
    case VERB_KILL:
        stop(p, r, out);
        break;
    case VERB_RESEND:
        streams_again(p, r, now, out);
        break;
    case VERB_SIZE: {
        struct effect_group *e = group_effect(p, r, EFFECT_GROUP_SIZE, out);
        e->value = m->value;
        e->rows = m->more;
        break;
    }
    case VERB_DROP:
        drop(p, r, out);
        break;
    default:
        break; /* CHECK: the manager was told HOLD, and ENDED will follow */
    }
}

static void measure_all(struct pl *p, struct effects *out) {
    RUNS_EACH (r, p) {
        if (r->state == RUN_STARTED && !r->empty && !r->dropped)
            group_effect(p, r, EFFECT_GROUP_MEASURE, out);
    }
}

static void on_measured(struct pl *p, const struct input_measured *in, struct effects *out) {
    const struct run *r = runs_of_group(p, in->group);
    if (r == NULL || r->state != RUN_STARTED)
        return;
    union message m = {.measured = {.run = r->run, .usage = in->usage}};
    pl_send(p, MESSAGE_MEASURED, &m, (struct bytes){0}, out);
}

static void on_command(struct pl *p, const struct message_command *m, uint64_t now,
                       struct effects *out) {
    if (m->verb == VERB_RENEW) {
        p->lease_ns = m->value * NS_PER_MS;
        renew(p, now, out);
        return;
    }
    if (m->verb == VERB_MEASURE) {
        measure_all(p, out);
        return;
    }
    struct run *r = runs_find(p, m->run);
    if (r != NULL && r->state == RUN_ENDED)
        on_command_ended(p, r, m, now, out);
    else if (r != NULL)
        on_command_run(p, r, m, now, out);
    else if (m->verb != VERB_DROP)
        say_no(p, m->run, (struct ending){.cause = CAUSE_UNKNOWN}, out);
}

static void on_message(struct pl *p, const struct input *in, struct effects *out) {
    union message m;
    if (p->link == 0 || in->message.link != p->link)
        return; /* of a manager that has been replaced */
    if (message_decode(in->message.type, in->message.body, NULL, &m) < 0) {
        refuse(p, out);
        return;
    }
    struct run *r;
    switch (in->message.type) {
    case MESSAGE_SETUP:
        on_setup(p, &m.setup, in->now, out);
        break;
    case MESSAGE_COMMAND:
        on_command(p, &m.command, in->now, out);
        break;
    case MESSAGE_TAKEN:
        if ((r = runs_find(p, m.taken.run)) != NULL) {
            streams_taken(p, r, &m.taken, in->now, out);
            close_if_done(p, r, out);
        }
        break;
    case MESSAGE_TURN:
        gang_turn(p, &m.turn, in->now, in->now, out);
        break;
    case MESSAGE_SLOTS:
        gang_slots(p, &m.slots, out);
        break;
    case MESSAGE_TYPED:
        if ((r = runs_find(p, m.typed.run)) != NULL)
            streams_typed(p, r, &m.typed, out);
        break;
    case MESSAGE_REPLY:
        petitions_reply(p, &m.reply, in->now, out);
        break;
    default:
        break;
    }
}

/* ---- links, processes, timers ---- */

static void on_link_up(struct pl *p, const struct input *in, struct effects *out) {
    if (in->link.role != ROLE_KEEPER)
        return;
    if (p->link != 0)
        effects_add(out, EFFECT_CLOSE)->close.link = p->link;
    p->link = in->link.link;
    RUNS_EACH (r, p) {
        if (r->dropped)
            continue;
        if (r->state == RUN_ENDED)
            say_ended(p, r, out);
        else
            say_hold(p, r, out);
        if (r->state == RUN_STARTED && r->end.more)
            say_ended(p, r, out);
        streams_again(p, r, in->now, out);
    }
    petitions_all_anew(p, out);
}

static void on_child(struct pl *p, const struct input *in, struct effects *out) {
    struct run *r = runs_of_group(p, in->child.group);
    if (r == NULL || r->state != RUN_STARTED)
        return;
    run_child(p, r, &in->child);
    if (in->child.event == CHILD_STARTED && run_loose(p, r))
        say_ended(p, r, out); /* whoever waits for it is to know that while it runs */
    if (in->child.event != CHILD_STARTED)
        streams_drained(p, r, in->child.index, UINT64_MAX, out);
    if (in->child.event == CHILD_FAILED && !r->failed) {
        r->failed = true;
        kill_group(p, r, out);
    }
    if (in->child.event != CHILD_STARTED && run_worse(p, r, in->child.index))
        say_ended(p, r, out);
    if (r->left == 0 && !r->sweep) {
        r->sweep = true;
        effects_timer(out, TIMER_SWEEP, in->now);
        gang_left(p, r, out);
    }
}

/* How much it has written is known when all that was in the pipes is read. Who was killed is not
 * waited for: perhaps nobody takes anything any more. */
static void end_if_read(struct pl *p, struct run *r, struct effects *out) {
    if (r->state == RUN_STARTED && r->empty && (r->killing || r->rests == 0))
        end(p, r, out);
}

static void on_empty(struct pl *p, const struct input *in, struct effects *out) {
    struct run *r = runs_of_group(p, in->empty.group);
    if (r == NULL || r->state != RUN_STARTED || r->empty)
        return;
    r->empty = true;
    r->sweep = false;
    r->usage = in->empty.usage;
    streams_sealed(p, r);
    petitions_run_over(p, r, out);
    end_if_read(p, r, out);
}

static void on_stream(struct pl *p, const struct input *in, struct effects *out) {
    struct run *r = runs_of_group(p, in->stream.group);
    if (r == NULL)
        return;
    streams_written(p, r, in, out);
    end_if_read(p, r, out);
    close_if_done(p, r, out);
}

/* All processes of these have ended and yet something is left that they have begun. */
static void on_sweep(struct pl *p, struct effects *out) {
    RUNS_EACH (r, p) {
        if (!r->sweep)
            continue;
        r->sweep = false;
        group_effect(p, r, EFFECT_GROUP_KILL, out);
    }
}

static void on_timer(struct pl *p, const struct input *in, struct effects *out) {
    if (in->timer.id == TIMER_SWEEP)
        on_sweep(p, out);
    else if (in->timer.id == TIMER_RESEND)
        streams_timer(p, in->now, out);
    else if (in->timer.id == TIMER_LEASE)
        on_lease(p, out);
    else if (in->timer.id == TIMER_TURNED)
        gang_told(p, in->now, out);
    else if (in->timer.id == TIMER_SLICE)
        gang_slice(p, in->now, out);
    else if (in->timer.id == TIMER_PETITION)
        petitions_timer(p, in->now, out);
}

static void pl_step(void *self, const struct input *in, struct effects *out) {
    struct pl *p = self;
    struct run *r;
    switch (in->kind) {
    case INPUT_LINK_UP:
        on_link_up(p, in, out);
        break;
    case INPUT_LINK_DOWN:
        if (in->link.link == p->link)
            p->link = 0;
        break;
    case INPUT_MESSAGE:
        on_message(p, in, out);
        break;
    case INPUT_CHILD:
        on_child(p, in, out);
        break;
    case INPUT_EMPTY:
        on_empty(p, in, out);
        break;
    case INPUT_MEASURED:
        on_measured(p, &in->measured, out);
        break;
    case INPUT_STREAM:
        on_stream(p, in, out);
        break;
    case INPUT_DRAINED:
        if ((r = runs_of_group(p, in->drained.group)) != NULL)
            streams_drained(p, r, in->drained.index, in->drained.offset, out);
        break;
    case INPUT_PETITION:
        petitions_input(p, in, out);
        break;
    case INPUT_STROBE:
        gang_strobe(p, &in->strobe, in->now, out);
        break;
    case INPUT_TIMER:
        on_timer(p, in, out);
        break;
    default:
        break;
    }
}

struct pl *pl_new(const struct pl_config *c, struct arena *a) {
    ASSERT(c->groups > 0 && c->resend_ns > 0 && c->resend_max_ns >= c->resend_ns);
    struct pl *p = ARENA_TAKE(a, struct pl, 1);
    carve(p, c, a);
    for (uint32_t i = 0; i < c->groups; i++)
        p->runs[i].state = RUN_FREE;
    for (uint32_t i = 0; i < c->petitioners; i++)
        p->petitioners[i].state = TALK_NONE;
    return p;
}

struct machine pl_machine(struct pl *p) {
    return (struct machine){.self = p, .step = pl_step};
}
