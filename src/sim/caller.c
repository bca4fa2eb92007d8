/* SPDX-License-Identifier: MIT */
/* A process of a simulated run that talks to the machine manager: see caller.h. */
#include "sim/caller.h"

#include "base/assert.h"
#include "base/units.h"
#include "wire/message.h"
#include "wire/row.h"

#define PAUSE_NS (700 * NS_PER_MS)

void caller_begin(struct caller *c, uint64_t run, uint64_t now) {
    *c = (struct caller){.run = run, .next_at = now};
}

void caller_end(struct caller *c) {
    c->gone = true;
}

/* It has said where it is reached before it has asked who is. */
static void hear_peers(const struct caller *c, const struct message_rows *r) {
    struct peer_row row;
    bool found = false;
    for (size_t at = 0; peer_row_next(r->rows, &at, &row) > 0;) {
        ASSERT(run_job(row.reach.token[0]) == row.job && row.reach.token[1] == ~row.reach.token[0]);
        found = found || row.reach.token[0] == c->run;
    }
    ASSERT(found || !r->last || r->wrong.len > 0);
}

static void hear_rows(struct caller *c, struct bytes body, uint64_t now) {
    union message m;
    struct job_row row;
    size_t at = 0;
    int good = message_decode(MESSAGE_ROWS, body, NULL, &m);
    ASSERT(good == 0 && m.rows.request[0] == c->run && m.rows.request[1] == c->asked);
    ASSERT(c->asked == c->answered + 1);
    if (m.rows.subject == SUBJECT_PEERS)
        hear_peers(c, &m.rows);
    else if (job_row_next(m.rows.rows, &at, &row) > 0)
        ASSERT(row.job == run_job(c->run));
    c->answered++;
    c->next_at = now + PAUSE_NS;
}

static void hear(struct caller *c, const struct effect_petition *e, uint64_t now) {
    ASSERT(c->open);
    if (e->type == MESSAGE_ROWS)
        hear_rows(c, e->body, now);
    if (e->type != MESSAGE_NONE)
        return;
    c->anew = true;
    c->unsaid = c->asked > c->answered;
}

void caller_carry(struct caller *c, const struct effect *e, uint64_t now) {
    if (c->run == 0 || !c->open)
        return;
    if (e->kind == EFFECT_PETITION_READ)
        c->wanted = true;
    else if (e->kind == EFFECT_PETITION_SEND)
        hear(c, &e->petition, now);
    else
        c->open = false;
}

static bool has_question(const struct caller *c, uint64_t now) {
    return c->unsaid || (c->asked == c->answered && c->next_at <= now);
}

bool caller_due(const struct caller *c, uint64_t now) {
    if (c->run == 0 || (c->opened && !c->open))
        return false;
    return !c->opened || c->gone || (c->wanted && (c->anew || has_question(c, now)));
}

uint64_t caller_wakes(const struct caller *c, uint64_t now) {
    bool waits = c->run != 0 && c->open && c->wanted && c->asked == c->answered;
    return waits && c->next_at > now ? c->next_at : UINT64_MAX;
}

static struct bytes frame(struct caller *c, uint16_t type, const union message *m) {
    long len = message_encode(type, m, room_of(c->frame, sizeof c->frame));
    ASSERT(len > 0);
    return bytes_of(c->frame, (size_t)len);
}

/* Of its job and of its family, by turns. */
static struct bytes question(struct caller *c) {
    bool peers = c->asked % 2 == 0;
    union message m = {.ask = {.request = {c->run, c->asked},
                               .subject = peers ? SUBJECT_PEERS : SUBJECT_JOB,
                               .job = peers ? 0 : run_job(c->run)}};
    return frame(c, MESSAGE_ASK, &m);
}

static void speak(struct caller *c, struct input_petition *p) {
    p->event = PETITION_SAID;
    c->wanted = false;
    if (c->anew) {
        c->anew = c->reached = false;
        return;
    }
    if (!c->reached) {
        union message m = {.reach = {.token = {c->run, ~c->run}}};
        c->reached = true;
        p->type = MESSAGE_REACH;
        p->body = frame(c, MESSAGE_REACH, &m);
        return;
    }
    c->asked += c->asked == c->answered;
    c->unsaid = false;
    p->type = MESSAGE_ASK;
    p->body = question(c);
}

bool caller_tell(struct caller *c, uint32_t group, uint64_t now, struct input *ret) {
    if (!caller_due(c, now))
        return false;
    ret->kind = INPUT_PETITION;
    ret->petition = (struct input_petition){.place = group, .group = group};
    if (!c->opened) {
        c->opened = c->open = true;
        ret->petition.event = PETITION_OPENED;
    } else if (c->gone) {
        c->open = false;
        ret->petition.event = PETITION_CLOSED;
    } else {
        speak(c, &ret->petition);
    }
    return true;
}
