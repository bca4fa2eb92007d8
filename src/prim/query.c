/* SPDX-License-Identifier: MIT */
/* Gathering small records: one query down the tree, combined replies up.
 *
 * Every node keeps a record for each channel. The root's daemon asks for those of a set; an inner
 * node sends on one message with the replies of everyone it cast to below, or several when they do
 * not fit into one. As an ACK does, such a message says whom it covers: a node may forget what it
 * has combined at any time, a repeated query or reply does no harm, and the root, which strikes off
 * whoever has answered, asks the others again. Gathers are outside the total order: a record is what
 * its node had stored when the query came by. */
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "prim/internal.h"

/* ---- construction ---- */

/* Never more than all nodes have to say, and with any set it fits into a message. */
static size_t room_for_replies(const struct prim *p) {
    size_t all = (size_t)p->universe * (REPLY_HEAD_BYTES + p->config.limits.record_bytes);
    size_t most = message_rule(MESSAGE_RECORDS)->max_bytes - 144 - (size_t)p->universe / 8;
    return all < most ? all : most;
}

static void init_relays(struct prim *p, struct arena *a) {
    size_t words = nodeset_bytes(p->universe) / 8;
    struct relay *relays = ARENA_TAKE(a, struct relay, PRIM_GATHERS_MAX);
    uint64_t *sets = ARENA_TAKE(a, uint64_t, 2 * words * PRIM_GATHERS_MAX);
    uint8_t *replies = ARENA_TAKE(a, uint8_t, p->queries.room * PRIM_GATHERS_MAX);
    if (arena_measuring(a))
        return;
    p->queries.relays = relays;
    for (size_t i = 0; i < PRIM_GATHERS_MAX; i++) {
        relays[i] = (struct relay){.replies = replies + i * p->queries.room};
        nodeset_init(&relays[i].want, p->universe, sets + 2 * i * words);
        nodeset_init(&relays[i].have, p->universe, sets + (2 * i + 1) * words);
    }
}

static void init_queries(struct prim *p, struct arena *a) {
    struct query *queries = ARENA_TAKE(a, struct query, PRIM_GATHERS_MAX);
    struct query scratch;
    for (uint32_t i = 0; i < PRIM_GATHERS_MAX; i++) {
        struct query *q = arena_measuring(a) ? &scratch : &queries[i];
        *q = (struct query){0};
        prim_set_init(p, &q->pending, a);
        prim_set_init(p, &q->lost, a);
        prim_set_init(p, &q->have, a);
        q->lengths = ARENA_TAKE(a, uint16_t, p->universe);
        q->records = ARENA_TAKE(a, uint8_t, (size_t)p->universe * p->config.limits.record_bytes);
    }
    p->queries.queries = queries;
}

void query_init(struct prim *p, struct arena *a) {
    const struct limits *l = &p->config.limits;
    if (l->record_channels == 0)
        return;
    p->queries.room = room_for_replies(p);
    p->queries.own_lengths = ARENA_TAKE(a, uint16_t, l->record_channels);
    p->queries.own = ARENA_TAKE(a, uint8_t, (size_t)l->record_channels * l->record_bytes);
    init_relays(p, a);
    if (p->seat)
        init_queries(p, a);
}

static uint32_t relay_count(const struct prim *p) {
    return p->config.limits.record_channels > 0 ? PRIM_GATHERS_MAX : 0;
}

void query_forget(struct prim *p) {
    for (uint32_t i = 0; i < relay_count(p); i++)
        p->queries.relays[i].open = false;
}

void query_reset(struct prim *p) {
    query_forget(p);
    for (uint32_t i = 0; i < p->config.limits.record_channels; i++)
        p->queries.own_lengths[i] = 0;
}

/* ---- this node's own records ---- */

void query_record(struct prim *p, uint32_t channel, struct bytes record) {
    const struct limits *l = &p->config.limits;
    if (channel >= l->record_channels || record.len > l->record_bytes)
        return;
    p->queries.own_lengths[channel] = (uint16_t)record.len;
    if (record.len > 0)
        memcpy(p->queries.own + (size_t)channel * l->record_bytes, record.at, record.len);
}

static struct bytes own_record(const struct prim *p, uint32_t channel) {
    const struct limits *l = &p->config.limits;
    if (channel >= l->record_channels)
        return (struct bytes){0};
    return bytes_of(p->queries.own + (size_t)channel * l->record_bytes,
                    p->queries.own_lengths[channel]);
}

/* Our reply as bytes: none if there is nothing to say but that we are here. */
static struct bytes own_reply(struct prim *p, uint32_t channel) {
    struct reply mine = {.node = p->self, .record = own_record(p, channel)};
    if (mine.record.len == 0)
        return (struct bytes){0};
    size_t len = REPLY_HEAD_BYTES + mine.record.len;
    uint8_t *room = effects_room(p->out, len);
    reply_store(room_of(room, len), &mine);
    return bytes_of(room, len);
}

/* ---- combining ---- */

static void send_up(struct prim *p, uint64_t number, const struct nodeset *set,
                    struct bytes replies) {
    union message m = {
        .records = {.number = number, .set = (struct nodeset *)set, .records = replies}};
    uplink_send(p, MESSAGE_RECORDS, &m);
}

static struct relay *find(struct prim *p, uint64_t number) {
    for (uint32_t i = 0; i < relay_count(p); i++)
        if (p->queries.relays[i].open && p->queries.relays[i].number == number)
            return &p->queries.relays[i];
    return NULL;
}

static void pass_on(struct prim *p, struct relay *r) {
    if (nodeset_empty(&r->have))
        return;
    send_up(p, r->number, &r->have, bytes_of(r->replies, r->used));
    nodeset_subtract(&r->want, &r->have);
    nodeset_clear(&r->have);
    r->used = 0;
}

static void settle(struct prim *p, struct relay *r) {
    if (!nodeset_covers(&r->have, &r->want))
        return;
    pass_on(p, r);
    r->open = false;
}

/* One that is free; or the oldest, of which the root may still want the rest, one by one. */
static struct relay *open_relay(struct prim *p, uint64_t number) {
    struct relay *r = NULL;
    for (uint32_t i = 0; i < relay_count(p); i++) {
        struct relay *other = &p->queries.relays[i];
        if (r == NULL || (r->open && (!other->open || other->number < r->number)))
            r = other;
    }
    if (r == NULL)
        return NULL;
    if (r->open)
        pass_on(p, r);
    r->open = true;
    r->number = number;
    r->used = 0;
    nodeset_clear(&r->have);
    return r;
}

/* Answers of `set`; replies of others among them do not count. */
static void take(struct prim *p, struct relay *r, const struct nodeset *set, struct bytes replies) {
    if (replies.len > p->queries.room - r->used)
        pass_on(p, r);
    struct reply reply;
    for (size_t at = 0; reply_next(replies, &at, &reply);)
        if (nodeset_has(set, reply.node))
            r->used +=
                reply_store(room_of(r->replies + r->used, p->queries.room - r->used), &reply);
    nodeset_unite(&r->have, set);
    settle(p, r);
}

/* A query that is repeated, for some of its nodes, is not combined any more. */
void query_asked(struct prim *p, const struct message_query *m) {
    bool self = nodeset_has(m->set, p->self) && p->member.joined;
    struct relay *r = find(p, m->number);
    bool apart = r != NULL || m->apart;
    if (r != NULL) {
        pass_on(p, r);
        r->open = false;
    }
    r = apart || nodeset_empty(&p->aim) ? NULL : open_relay(p, m->number);
    if (r != NULL) {
        nodeset_copy(&r->want, &p->aim);
        if (self)
            take(p, r, &p->own, own_reply(p, m->channel));
    } else if (self) {
        send_up(p, m->number, &p->own, own_reply(p, m->channel));
    }
}

void query_without(struct prim *p, const struct nodeset *gone) {
    for (uint32_t i = 0; i < relay_count(p); i++) {
        struct relay *r = &p->queries.relays[i];
        if (!r->open || !nodeset_intersects(&r->want, gone))
            continue;
        nodeset_subtract(&r->want, gone);
        settle(p, r);
    }
}

/* ---- the root's gathers ---- */

static uint64_t half_time(const struct query *q) {
    return q->asked_at + (q->deadline - q->asked_at) / 2;
}

static void arm_timer(struct prim *p) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < PRIM_GATHERS_MAX; i++) {
        const struct query *q = &p->queries.queries[i];
        uint64_t due = q->hurried ? q->deadline : half_time(q);
        if (q->used && (at == 0 || due < at))
            at = due;
    }
    effects_timer(p->out, TIMER_QUERY, at);
}

static struct bytes records_of(struct prim *p, const struct query *q) {
    size_t each = p->config.limits.record_bytes;
    size_t len = nodeset_count(&q->have) * (REPLY_HEAD_BYTES + each);
    uint8_t *room = effects_room(p->out, len);
    size_t used = 0;
    NODESET_EACH (node, &q->have) {
        struct reply r = {node, bytes_of(q->records + node * each, q->lengths[node])};
        used += reply_store(room_of(room + used, len - used), &r);
    }
    return bytes_of(room, used);
}

static void finish(struct prim *p, struct query *q) {
    q->used = false;
    nodeset_unite(&q->lost, &q->pending);
    struct input *up = effects_raise(p->out, INPUT_GATHERED, p->now);
    up->gathered = (struct input_gathered){.tag = q->tag,
                                           .channel = q->channel,
                                           .records = records_of(p, q),
                                           .missing = effects_copy_set(p->out, &q->lost)};
    arm_timer(p);
}

static void keep(struct prim *p, struct query *q, const struct reply *r) {
    q->lengths[r->node] = (uint16_t)r->record.len;
    memcpy(q->records + (size_t)r->node * p->config.limits.record_bytes, r->record.at,
           r->record.len);
    nodeset_add(&q->have, r->node);
}

/* Only who is still asked can answer: what a former life of a node has sent comes too late. */
static void collect(struct prim *p, struct query *q, struct nodeset *set, struct bytes replies) {
    nodeset_intersect(set, &q->pending);
    struct reply r;
    for (size_t at = 0; reply_next(replies, &at, &r);)
        if (r.record.len > 0 && nodeset_has(set, r.node))
            keep(p, q, &r);
    nodeset_subtract(&q->pending, set);
    if (nodeset_empty(&q->pending))
        finish(p, q);
}

static void cast(struct prim *p, const struct query *q, struct nodeset *set) {
    union message m = {
        .query = {.number = q->number, .channel = q->channel, .apart = q->hurried, .set = set}};
    if (!nodeset_empty(set))
        route_cast(p, MESSAGE_QUERY, set, prim_encode(p, MESSAGE_QUERY, &m));
}

static struct query *find_free(struct prim *p) {
    for (uint32_t i = 0; i < PRIM_GATHERS_MAX; i++)
        if (!p->queries.queries[i].used)
            return &p->queries.queries[i];
    return NULL;
}

static bool valid(const struct prim *p, const struct primitive *r) {
    uint32_t channels = p->config.limits.record_channels;
    return p->root && p->view->stage == STAGE_OPEN && channels > 0 &&
           (r->channel < channels || r->channel == NO_CHANNEL) && r->set != NULL &&
           r->set->universe == p->universe && !nodeset_empty(r->set);
}

void query_make(struct prim *p, const struct primitive *r) {
    struct query *q = valid(p, r) ? find_free(p) : NULL;
    if (q == NULL) {
        struct input *up = effects_raise(p->out, INPUT_COMPLETION, p->now);
        up->completion =
            (struct completion){.tag = r->tag, .outcome = OUTCOME_REFUSED, .culprit = NO_NODE};
        return;
    }
    q->used = true;
    q->hurried = false;
    q->number = ((uint64_t)p->epoch << 40) + ++p->queries.next;
    q->tag = r->tag;
    q->channel = r->channel;
    q->asked_at = p->now;
    q->deadline = units_after(p->now, r->timeout_ns);
    nodeset_clear(&q->have);
    nodeset_copy(&q->lost, r->set);
    nodeset_subtract(&q->lost, &p->member.members);
    nodeset_copy(&q->pending, r->set);
    nodeset_intersect(&q->pending, &p->member.members);
    nodeset_copy(&p->part2, &q->pending);
    nodeset_remove(&p->part2, p->self);
    cast(p, q, &p->part2);
    nodeset_and(&p->part, &q->pending, &p->own);
    collect(p, q, &p->part, own_reply(p, q->channel));
    if (q->used)
        arm_timer(p);
}

/* Nodes that have found a new way to us may have been passed over. */
void query_resend(struct prim *p, const struct nodeset *set) {
    for (uint32_t i = 0; i < relay_count(p); i++) {
        struct query *q = &p->queries.queries[i];
        if (!q->used)
            continue;
        nodeset_and(&p->part2, &q->pending, set);
        cast(p, q, &p->part2);
    }
}

/* These nodes are members no more: nobody waits for them. */
void query_drop(struct prim *p, const struct nodeset *gone) {
    for (uint32_t i = 0; i < relay_count(p); i++) {
        struct query *q = &p->queries.queries[i];
        if (!q->used || !nodeset_intersects(&q->pending, gone))
            continue;
        nodeset_and(&p->part, &q->pending, gone);
        nodeset_unite(&q->lost, &p->part);
        nodeset_subtract(&q->pending, gone);
        if (nodeset_empty(&q->pending))
            finish(p, q);
    }
}

/* At half time those who have not answered are asked again, as order.c does; from then on nobody
 * waits for another, so that in the end exactly those are missing who did not answer. */
void query_timer(struct prim *p) {
    for (uint32_t i = 0; i < PRIM_GATHERS_MAX; i++) {
        struct query *q = &p->queries.queries[i];
        if (!q->used)
            continue;
        if (q->deadline <= p->now) {
            finish(p, q);
        } else if (!q->hurried && half_time(q) <= p->now) {
            q->hurried = true;
            nodeset_copy(&p->part2, &q->pending);
            cast(p, q, &p->part2);
        }
    }
    arm_timer(p);
}

/* ---- replies from below ---- */

static bool fits(const struct prim *p, struct bytes replies) {
    struct reply r;
    if (replies.len > p->queries.room)
        return false;
    for (size_t at = 0; reply_next(replies, &at, &r);)
        if (r.record.len > p->config.limits.record_bytes)
            return false;
    return true;
}

bool query_replied(struct prim *p, struct child *c, const struct message_records *m) {
    if (!fits(p, m->records))
        return false;
    nodeset_intersect(m->set, &c->below); /* a child speaks for those below it, for nobody else */
    if (nodeset_empty(m->set))
        return true;
    struct relay *r = p->root ? NULL : find(p, m->number);
    if (r != NULL)
        take(p, r, m->set, m->records);
    else if (!p->root)
        send_up(p, m->number, m->set, m->records);
    for (uint32_t i = 0; p->root && i < relay_count(p); i++) {
        struct query *q = &p->queries.queries[i];
        if (q->used && q->number == m->number) {
            collect(p, q, m->set, m->records);
            break;
        }
    }
    return true;
}
