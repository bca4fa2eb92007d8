/* SPDX-License-Identifier: MIT */
/* The node's launcher: reaching it, handing it runs, hearing of their ends.
 *
 * After a link to it has come up the launcher tells what it has (HOLD, ENDED). We then CHECK run 0, which
 * nobody has; the answer to that says that we have heard all. Every run that we thought it had is
 * checked too: a launcher that does not know it is another one, and the processes are gone. */
#include "base/assert.h"
#include "base/units.h"
#include "nm/inside.h"
#include "rm/say.h"
#include "wire/gate.h"
#include "wire/setup.h"

#define RETRY_NS (20 * NS_PER_MS)
#define LATER_NS (1 * NS_PER_S)

static void open_link(struct nm *n) {
    struct effect *e = effects_add(n->out, EFFECT_OPEN);
    e->open = (struct effect_open){
        .node = n->config.self, .purpose = PURPOSE_LAUNCHER, .cookie = COOKIE_LAUNCHER};
}

void keeper_boot(struct nm *n) {
    open_link(n);
}

void keeper_pass(struct nm *n, const struct message_command *m) {
    if (n->launcher != 0)
        say_link(n->out, n->launcher, MESSAGE_COMMAND, &(union message){.command = *m},
                 (struct bytes){0});
}

void keeper_command(struct nm *n, uint64_t run, enum verb verb, uint32_t value, uint32_t more) {
    keeper_pass(n, &(struct message_command){
                       .run = run, .verb = (uint8_t)verb, .value = value, .more = more});
}

/* Not before it has told what it has: what it says of a run that it has forgotten since would bring that back. */
static void tell_drops(struct nm *n) {
    for (uint32_t i = 0; n->ready && i < n->drop_count; i++)
        keeper_command(n, n->drops[i], VERB_DROP, 0, 0);
    if (n->ready)
        n->drop_count = 0;
}

static bool to_be_dropped(const struct nm *n, uint64_t run) {
    for (uint32_t i = 0; i < n->drop_count; i++)
        if (n->drops[i] == run)
            return true;
    return false;
}

static void renew(struct nm *n) {
    bool any = false;
    RUNS_EACH (r, n)
        any = any || (r->handed && !r->over);
    if (any && n->attached)
        keeper_command(n, 0, VERB_RENEW, (uint32_t)(n->config.lease_ns / NS_PER_MS), 0);
    n->renewing = any && n->attached && n->launcher != 0;
    effects_timer(n->out, TIMER_RENEW, any ? n->now + n->config.lease_ns / 4 : 0);
}

void keeper_later(struct nm *n) {
    if (!n->later)
        effects_timer(n->out, TIMER_LATER, n->now + LATER_NS);
    n->later = true;
}

void keeper_drop(struct nm *n, uint64_t run) {
    if (n->drop_count == DROPS_MAX)
        tell_drops(n);
    if (n->drop_count == DROPS_MAX) /* there is none to tell: one that comes will tell us */
        return;
    n->drops[n->drop_count++] = run;
    keeper_later(n);
}

/* What nobody has decided is the launcher's affair from now on: if that stays so it ends it. */
static void on_later(struct nm *n) {
    n->later = false;
    tell_drops(n);
    RUNS_EACH (r, n) {
        if (!r->decided && !r->over && !r->handed)
            keeper_hand(n, r);
    }
    if (n->drop_count > 0)
        keeper_later(n);
}

/* Tells the launcher what it does not know yet of this run. */
void keeper_hand(struct nm *n, struct run *r) {
    if (n->launcher == 0 || r->unsure)
        return; /* when it is there, or has told */
    tell_drops(n);
    if (!r->handed) {
        union message m = {.setup = {.run = r->run,
                                     .slots = r->slots,
                                     .version = r->version,
                                     .setup = bytes_of(r->setup, r->setup_len)}};
        say_link(n->out, n->launcher, MESSAGE_SETUP, &m, (struct bytes){0});
        r->handed = true;
        r->handed_to = n->launcher_life;
        if (r->run == n->stow.run)
            n->stow.handed_at = n->now;
    }
    if (!r->decided)
        return;
    keeper_command(n, r->run, VERB_START, 0, 0);
    if (!n->renewing) /* a set-up renews what the launcher has been told before */
        renew(n);
}

void keeper_link_up(struct nm *n, const struct input_link *in) {
    if (in->role != ROLE_LAUNCHER)
        return;
    n->launcher = in->link;
    n->launcher_life = in->life;
    n->renewing = false; /* this one does not know how long */
    RUNS_EACH (r, n) {
        if (r->unsure)
            keeper_command(n, r->run, VERB_CHECK, 0, 0);
    }
    keeper_command(n, 0, VERB_CHECK, 0, 0);
}

void keeper_link_down(struct nm *n, const struct input_link *in) {
    if (in->link != n->launcher && in->cookie != COOKIE_LAUNCHER)
        return;
    n->launcher = 0;
    n->ready = false;
    n->announced = false; /* what was for it is lost: the root hears of it */
    RUNS_EACH (r, n)
        r->unsure = r->handed && !r->over;
    effects_timer(n->out, TIMER_LAUNCHER, n->now + RETRY_NS);
}

static uint64_t as_listed(const struct run *r) {
    return r->run | (r->decided || r->over ? 0 : HAVE_READY);
}

void keeper_have(struct nm *n, const struct run *r) {
    uint8_t run[8];
    store_le64(run, as_listed(r));
    say_root(n->out, MESSAGE_HAVE, &(union message){.have = {.runs = bytes_of(run, 8)}},
             (struct bytes){0});
}

/* Whoever knows how its launch was decided says START, or KILL; that may be lost. */
static void ask_again(struct nm *n) {
    RUNS_EACH (r, n) {
        if (n->settled != 0 && run_adopted(r))
            keeper_have(n, r);
    }
}

void keeper_timer(struct nm *n, uint32_t id) {
    if (id == TIMER_LAUNCHER && n->launcher == 0)
        open_link(n);
    if (id == TIMER_LATER)
        on_later(n);
    if (id != TIMER_RENEW)
        return;
    renew(n);
    ask_again(n);
}

void keeper_announce(struct nm *n) {
    if (!n->joined || n->settled == 0 || !n->ready || n->announced)
        return;
    n->announced = true;
    uint8_t *runs = effects_room(n->out, 8 * (size_t)n->config.runs);
    size_t len = 0;
    RUNS_EACH (r, n) {
        store_le64(runs + len, as_listed(r));
        len += 8;
    }
    union message m = {
        .have = {.all = true, .runs = bytes_of(runs, len), .report = n->config.report}};
    say_root(n->out, MESSAGE_HAVE, &m, (struct bytes){0});
    RUNS_EACH (r, n)
        ends_early(n, r);
}

void keeper_talks_anew(struct nm *n) {
    union message m = {.reply = {.reset = true}};
    if (n->launcher != 0 && n->talks)
        say_link(n->out, n->launcher, MESSAGE_REPLY, &m, (struct bytes){0});
    n->talks = false;
}

/* The launcher has told all it has. */
static void on_ready(struct nm *n) {
    n->ready = true;
    tell_drops(n);
    if (stow_adopt(n))
        renew(n);
    RUNS_EACH (r, n) {
        if (!r->over)
            keeper_hand(n, r);
    }
    keeper_announce(n);
}

/* It does not know the run: it is another launcher, or this one has never been told. */
static void on_unknown(struct nm *n, struct run *r, const struct ending *e) {
    if (r->over)
        return;           /* all its output was taken: there is nothing to send again */
    if (run_adopted(r)) { /* and the launcher that had it is gone as well */
        ends_unknown(n, r->run);
        r->run = 0;
        return;
    }
    if (!r->unsure)
        return;
    r->unsure = false;
    if (!r->decided || r->handed_to == n->launcher_life) { /* it will be told */
        r->handed = false;
        return;
    }
    struct ending lost = *e;
    lost.cause = CAUSE_LOST;
    run_over(n, r, &lost);
}

static void on_ended(struct nm *n, const struct message_ended *m) {
    struct ending e;
    if (!ending_load(&e, m->ends, 0))
        return;
    if (m->run == 0) {
        on_ready(n);
        return;
    }
    struct run *r = run_find(n, m->run);
    if (r == NULL && (e.cause == CAUSE_UNKNOWN || to_be_dropped(n, m->run)))
        return;
    if (r == NULL)
        r = run_add(n, m->run);
    if (r == NULL)
        return; /* no place: the launcher keeps it, and tells again */
    if (e.cause == CAUSE_UNKNOWN) {
        on_unknown(n, r, &e);
        return;
    }
    r->handed = true;
    r->unsure = false;
    if (e.more) {
        r->ending = e;
        r->ending.node = n->config.self;
        r->decided = true;
        ends_early(n, r);
        return;
    }
    run_over(n, r, &e);
}

/* A run that the launcher has, and we perhaps do not: one that a former life of ours has handed out. */
static void on_hold(struct nm *n, const struct message_hold *m) {
    struct run *r = run_find(n, m->run);
    if (r == NULL && to_be_dropped(n, m->run))
        return;
    if (r == NULL)
        r = run_add(n, m->run);
    if (r == NULL)
        return;
    r->handed = true;
    r->handed_to = n->launcher_life;
    r->unsure = false;
    r->decided = r->decided || m->started;
    renew(n);
}

void keeper_message(struct nm *n, const struct input_message *in) {
    union message m;
    if (in->link != n->launcher)
        return;
    if (in->type == MESSAGE_OUTPUT || in->type == MESSAGE_DRAINED || in->type == MESSAGE_PIDS ||
        in->type == MESSAGE_PETITION) {
        n->talks = n->talks || in->type == MESSAGE_PETITION;
        struct effect *e = effects_add(n->out, EFFECT_REQUEST);
        e->request = (struct primitive){
            .kind = PRIMITIVE_MAIL, .way = MAIL_ROOT, .type = in->type, .body = in->body};
        return;
    }
    if (message_decode(in->type, in->body, n->scratch, &m) < 0) {
        struct effect *e = effects_add(n->out, EFFECT_CLOSE);
        e->close.link = in->link;
        e->close.refusal = REFUSAL_BODY;
        return;
    }
    if (in->type == MESSAGE_ENDED)
        on_ended(n, &m.ended);
    else if (in->type == MESSAGE_HOLD)
        on_hold(n, &m.hold);
    else if (in->type == MESSAGE_MEASURED)
        health_measured(n, &m.measured);
    else if (in->type == MESSAGE_TURNED)
        turns_told(n, &m.turned);
}
