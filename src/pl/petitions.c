/* SPDX-License-Identifier: MIT */
/* Programs of runs that talk to the machine manager: a conversation each, carried up and down.
 *
 * What a program says is a client's message; here it only gets a number. Mail may be lost, and whoever is on its way may
 * die: then the counts of the two ends do not fit, the conversation is over, and the program is told to begin anew, which
 * it does with a frame of type NONE. What it had said and got no answer to it says again: the manager knows
 * repeated requests.
 *
 * Nothing is kept: a frame is read when there is room for it on the way up; what a program does not take is lost,
 * and it begins anew when it has read what was there. */
#include "base/assert.h"
#include "base/units.h"
#include "pl/inside.h"

#define CHECK_FIRST_NS (1 * NS_PER_S)
#define CHECK_MAX_NS   (32 * NS_PER_S)

/* So many may have come down before we say so, without anything else to say. */
enum { HEARD_MOST = 32 };

#define PETITIONERS_EACH(t, p)                                                                     \
    for (struct petitioner *t = (p)->petitioners; t < (p)->petitioners + (p)->petitioner_end; t++) \
        if (t->state != TALK_NONE)

static void set_timer(struct pl *p, uint64_t at, struct effects *out) {
    if (p->petition_at != 0 && p->petition_at <= at)
        return; /* it looks again when it fires */
    p->petition_at = at;
    effects_timer(out, TIMER_PETITION, at);
}

/* Something was said: whether the other end has heard it is asked a while after the last. */
static void stir(struct pl *p, struct petitioner *t, uint64_t now, struct effects *out) {
    t->pause_ns = CHECK_FIRST_NS;
    t->check_at = now + t->pause_ns;
    set_timer(p, t->check_at, out);
}

static struct effect_petition *effect(struct pl *p, const struct petitioner *t,
                                      enum effect_kind kind, struct effects *out) {
    struct effect *e = effects_add(out, kind);
    e->petition = (struct effect_petition){.place = (uint32_t)(t - p->petitioners)};
    return &e->petition;
}

static void say(struct pl *p, struct petitioner *t, uint16_t type, struct bytes body, bool over,
                struct effects *out) {
    union message m = {.petition = {.run = t->run,
                                    .rank = t->rank,
                                    .number = t->number,
                                    .sequence = t->said,
                                    .heard = t->heard,
                                    .over = over,
                                    .type = type}};
    t->told = t->heard;
    pl_send(p, MESSAGE_PETITION, &m, body, out);
}

static void say_over(struct pl *p, struct petitioner *t, struct effects *out) {
    if (t->number != 0)
        say(p, t, MESSAGE_NONE, (struct bytes){0}, true, out);
    t->number = 0;
}

/* The next frame is read if there is room for it on its way. One that is to begin anew is listened to: the rest of what it
 * had to say before is passed over. */
static void listen(struct pl *p, struct petitioner *t, struct effects *out) {
    bool room =
        p->link != 0 && t->said - t->acked < PETITION_WINDOW && t->under_way < PETITION_BYTES_MAX;
    if (t->reading || t->state == TALK_STUCK || (t->state == TALK_OPEN && !room))
        return;
    t->reading = true;
    effect(p, t, EFFECT_PETITION_READ, out);
}

static void begin(struct pl *p, struct petitioner *t) {
    t->state = TALK_OPEN;
    t->number = ++p->conversations;
    t->said = t->acked = t->heard = t->told = t->under_way = 0;
    t->check_at = 0;
}

static void begin_anew(struct pl *p, struct petitioner *t, struct effects *out) {
    say_over(p, t, out);
    if (t->state == TALK_STUCK)
        return;
    if (t->state == TALK_OPEN)
        effect(p, t, EFFECT_PETITION_SEND, out)->type = MESSAGE_NONE;
    t->state = TALK_ANEW;
    t->check_at = 0;
    listen(p, t, out);
}

static void opened(struct pl *p, const struct input_petition *in, struct effects *out) {
    struct petitioner *t = &p->petitioners[in->place];
    const struct run *r = runs_of_group(p, in->group);
    *t = (struct petitioner){.state = TALK_NONE, .rank = in->rank};
    if (r == NULL || r->state != RUN_STARTED || r->empty) {
        effect(p, t, EFFECT_PETITION_CLOSE, out);
        return;
    }
    if (p->petitioner_end <= in->place)
        p->petitioner_end = in->place + 1;
    t->run = r->run;
    begin(p, t);
    listen(p, t, out);
}

static void pass_up(struct pl *p, struct petitioner *t, const struct input *in,
                    struct effects *out) {
    uint32_t len = (uint32_t)in->petition.body.len;
    t->sizes[t->said++ % PETITION_WINDOW] = len;
    t->under_way += len;
    say(p, t, in->petition.type, in->petition.body, false, out);
    stir(p, t, in->now, out);
}

static void said(struct pl *p, struct petitioner *t, const struct input *in, struct effects *out) {
    t->reading = false;
    if (t->state == TALK_STUCK)
        return;
    if (in->petition.type == MESSAGE_NONE) {
        say_over(p, t, out);
        begin(p, t);
    } else if (t->state == TALK_OPEN) {
        pass_up(p, t, in, out);
    }
    listen(p, t, out);
}

static void closed(struct pl *p, struct petitioner *t, struct effects *out) {
    say_over(p, t, out);
    t->state = TALK_NONE;
    while (p->petitioner_end > 0 && p->petitioners[p->petitioner_end - 1].state == TALK_NONE)
        p->petitioner_end--;
}

void petitions_input(struct pl *p, const struct input *in, struct effects *out) {
    ASSERT(in->petition.place < p->config.petitioners);
    struct petitioner *t = &p->petitioners[in->petition.place];
    if (in->petition.event == PETITION_OPENED) {
        opened(p, &in->petition, out);
        return;
    }
    if (t->state == TALK_NONE)
        return;
    if (in->petition.event == PETITION_SAID) {
        said(p, t, in, out);
    } else if (in->petition.event == PETITION_STUCK) {
        say_over(p, t, out);
        t->state = TALK_STUCK;
    } else if (in->petition.event == PETITION_FREE && t->state == TALK_STUCK) {
        t->state = TALK_OPEN;
        begin_anew(p, t, out);
    } else if (in->petition.event == PETITION_CLOSED) {
        closed(p, t, out);
    }
}

void petitions_all_anew(struct pl *p, struct effects *out) {
    PETITIONERS_EACH(t, p)
    begin_anew(p, t, out);
}

void petitions_run_over(struct pl *p, const struct run *r, struct effects *out) {
    PETITIONERS_EACH(t, p) {
        if (t->run != r->run)
            continue;
        effect(p, t, EFFECT_PETITION_CLOSE, out);
        closed(p, t, out);
    }
}

static struct petitioner *find(struct pl *p, const struct message_reply *m) {
    PETITIONERS_EACH(t, p)
    if (t->number == m->number && t->run == m->run && t->number != 0)
        return t;
    return NULL;
}

static void disown(struct pl *p, const struct message_reply *m, struct effects *out) {
    union message over = {.petition = {.run = m->run, .number = m->number, .over = true}};
    if (!m->reset)
        pl_send(p, MESSAGE_PETITION, &over, (struct bytes){0}, out);
}

static void take_ack(struct petitioner *t, uint32_t heard) {
    if (heard - t->acked > t->said - t->acked)
        return; /* older than what we know, or nonsense */
    while (t->acked != heard)
        t->under_way -= t->sizes[t->acked++ % PETITION_WINDOW];
}

void petitions_reply(struct pl *p, const struct message_reply *m, uint64_t now,
                     struct effects *out) {
    if (m->run == 0) {
        petitions_all_anew(p, out);
        return;
    }
    struct petitioner *t = find(p, m);
    if (t == NULL) {
        disown(p, m, out);
        return;
    }
    bool frame = m->type != MESSAGE_NONE;
    uint32_t ahead = m->sequence - t->heard;
    if (!m->reset && (ahead > INT32_MAX || (frame && ahead == 0)))
        return;                      /* it has come late, by another way */
    if (m->reset || ahead > frame) { /* who resets has forgotten all counts */
        begin_anew(p, t, out);
        return;
    }
    take_ack(t, m->heard);
    t->heard = m->sequence;
    if (frame) {
        struct effect_petition *e = effect(p, t, EFFECT_PETITION_SEND, out);
        e->type = m->type;
        e->body = m->body;
        stir(p, t, now, out);
    }
    if (t->heard - t->told >= HEARD_MOST)
        say(p, t, MESSAGE_NONE, (struct bytes){0}, false, out);
    listen(p, t, out);
}

void petitions_timer(struct pl *p, uint64_t now, struct effects *out) {
    uint64_t next = 0;
    p->petition_at = 0;
    PETITIONERS_EACH(t, p) {
        if (t->check_at != 0 && t->check_at <= now) {
            t->pause_ns = t->pause_ns < CHECK_MAX_NS / 2 ? t->pause_ns * 2 : CHECK_MAX_NS;
            t->check_at = now + t->pause_ns;
            say(p, t, MESSAGE_NONE, (struct bytes){0}, false, out);
        }
        if (t->check_at != 0 && (next == 0 || t->check_at < next))
            next = t->check_at;
    }
    if (next != 0)
        set_timer(p, next, out);
}
