/* SPDX-License-Identifier: MIT */
/* What this node's own daemon has asked for.
 *
 * Requests are numbered; each stays in the table until the root's result is here and is sent again
 * now and then, since any hop may have lost it. The root admits each number once. When the deadline
 * is over and the root still cannot be asked, the daemon hears "unknown"; the final outcome follows
 * when there is a root again. A bulk transfer is two ordered operations under one tag: announce
 * (everyone makes room) and, when the bytes are everywhere, publish (make them visible). */
#include <string.h>

#include "base/units.h"

#include "base/assert.h"
#include "prim/internal.h"

void request_init(struct prim *p, struct arena *a) {
    uint32_t n = p->config.limits.outstanding;
    struct requests *q = &p->requests;
    q->asks = ARENA_TAKE(a, struct ask, n);
    uint8_t *bodies = ARENA_TAKE(a, uint8_t, (size_t)n * p->config.limits.body_bytes);
    uint64_t *sets = ARENA_TAKE(a, uint64_t, n * nodeset_bytes(p->universe) / 8);
    if (arena_measuring(a))
        return;
    for (uint32_t i = 0; i < n; i++) {
        q->asks[i].body = bodies + (size_t)i * p->config.limits.body_bytes;
        nodeset_init(&q->asks[i].set, p->universe, sets + i * (nodeset_bytes(p->universe) / 8));
    }
}

uint32_t request_count(const struct prim *p) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->requests.end; i++)
        count += p->requests.asks[i].state != ASK_FREE;
    return count;
}

/* Requests are numbered in the order in which they are made: generation x outstanding + slot. */
static uint64_t generation(const struct prim *p, uint64_t number) {
    return number / p->config.limits.outstanding;
}

static struct ask *find(struct prim *p, uint64_t number) {
    struct ask *a = &p->requests.asks[number % p->config.limits.outstanding];
    return a->state == ASK_WAITING && a->number == number ? a : NULL;
}

static void raise_outcome(struct prim *p, const struct ask *a, enum outcome outcome,
                          uint32_t culprit, uint64_t order) {
    struct input *up = effects_raise(p->out, INPUT_COMPLETION, p->now);
    up->completion =
        (struct completion){.tag = a->tag, .outcome = outcome, .culprit = culprit, .order = order};
}

/* The latest earlier request that is not answered: the root must have it before this one, or the order
 * of our requests would not be the order in which we made them. */
static uint64_t number_before(const struct prim *p, uint64_t number) {
    uint64_t before = 0;
    for (uint32_t i = 0; i < p->requests.end; i++) {
        const struct ask *a = &p->requests.asks[i];
        if (a->state == ASK_WAITING && generation(p, a->number) < generation(p, number) &&
            generation(p, a->number) >= generation(p, before))
            before = a->number;
    }
    return before;
}

static void submit(struct prim *p, struct ask *a) {
    if (!p->root && p->uplink.state != UPLINK_ATTACHED)
        return;
    if (a->epoch == 0)
        a->epoch = p->epoch;
    union message m = {.request = {
                           .id = {p->self, a->number, p->incarnation},
                           .epoch = a->epoch,
                           .after = number_before(p, a->number),
                           .timeout_ns = a->timeout_ns,
                           .set = &a->set,
                           .operation = a->operation,
                       }};
    m.request.operation.body = bytes_of(a->body, a->operation.body.len);
    if (p->root)
        order_admit(p, &m.request);
    else
        uplink_send(p, MESSAGE_REQUEST, &m);
}

static void arm_timer(struct prim *p) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < p->requests.end; i++) {
        const struct ask *a = &p->requests.asks[i];
        if (a->state == ASK_FREE)
            continue;
        uint64_t due = p->requests.resend_at;
        if ((!a->unknown_told || a->state == ASK_STREAMING) && a->deadline < due)
            due = a->deadline;
        if (at == 0 || due < at)
            at = due;
    }
    effects_timer(p->out, TIMER_REQUEST, at);
}

/* Numbers ascend in each slot of the table, so the root needs to remember one for each. */
static void number_ask(struct prim *p, struct ask *a) {
    uint64_t slot = (uint64_t)(a - p->requests.asks);
    a->number = ++p->requests.generation * p->config.limits.outstanding + slot;
}

static void ask_root(struct prim *p, struct ask *a) {
    if (p->requests.resend_at <= p->now)
        p->requests.resend_at = p->now + RESEND_PERIODS * p->config.period_ns;
    a->state = ASK_WAITING;
    a->epoch = 0;
    submit(p, a);
    arm_timer(p);
}

static bool valid(struct prim *p, const struct primitive *r, const struct operation *o) {
    if (r->set == NULL || r->set->universe != p->universe || nodeset_empty(r->set))
        return false;
    if (r->local_event != NO_EVENT && r->local_event >= p->config.limits.events)
        return false;
    bool compares = o->kind == OPERATION_COMPARE || o->kind == OPERATION_STANDING;
    return (!compares || r->relation < RELATIONS) && member_fits(p, o);
}

/* A bulk transfer of nothing is a transfer of nothing. */
static uint8_t operation_kind(const struct primitive *r) {
    if (r->kind == PRIMITIVE_BULK && r->buffer_bytes == 0)
        return OPERATION_XFER;
    static const uint8_t kinds[PRIMITIVE_KINDS] = {
        [PRIMITIVE_XFER] = OPERATION_XFER,         [PRIMITIVE_COMPARE] = OPERATION_COMPARE,
        [PRIMITIVE_STANDING] = OPERATION_STANDING, [PRIMITIVE_BULK] = OPERATION_ANNOUNCE,
        [PRIMITIVE_STROBE] = OPERATION_STROBE,
    };
    return kinds[r->kind];
}

static void describe(const struct primitive *r, struct operation *o) {
    bool compares = r->kind == PRIMITIVE_COMPARE || r->kind == PRIMITIVE_STANDING;
    bool carries = r->kind == PRIMITIVE_XFER || r->kind == PRIMITIVE_STROBE;
    *o = (struct operation){.kind = operation_kind(r),
                            .event = NO_EVENT,
                            .variable = r->variable,
                            .write_variable = NO_VARIABLE,
                            .relation = compares ? (uint8_t)r->relation : 0};
    if (compares) {
        o->value = r->value;
        o->write_variable = r->write_variable;
        o->write_value = r->write_value;
    } else {
        o->variable = NO_VARIABLE;
        o->event = r->kind == PRIMITIVE_STROBE ? r->channel : r->remote_event;
        o->heap_offset = r->heap_offset;
        o->hint = r->kind == PRIMITIVE_XFER && r->hint;
        o->ask = o->hint && r->ask;
        o->len = r->kind == PRIMITIVE_BULK ? r->buffer_bytes : 0;
    }
    if (carries)
        o->body = r->body;
}

static struct ask *find_free(struct prim *p) {
    struct requests *q = &p->requests;
    for (uint32_t i = 0; i < p->config.limits.outstanding; i++) {
        if (q->asks[i].state != ASK_FREE)
            continue;
        if (q->end <= i)
            q->end = i + 1;
        return &q->asks[i];
    }
    return NULL;
}

static void free_ask(struct prim *p, struct ask *a) {
    struct requests *q = &p->requests;
    a->state = ASK_FREE;
    while (q->end > 0 && q->asks[q->end - 1].state == ASK_FREE)
        q->end--;
}

/* Strobes are not kept: what is lost is replaced by the next. */
static void send_strobe(struct prim *p, const struct primitive *r, const struct operation *o) {
    union message m = {.request = {.id = {p->self, 0, p->incarnation},
                                   .set = (struct nodeset *)r->set,
                                   .operation = *o}};
    if (p->root)
        order_admit(p, &m.request);
    else if (p->uplink.state == UPLINK_ATTACHED)
        uplink_send(p, MESSAGE_REQUEST, &m);
}

static void complete(struct prim *p, struct ask *a, enum outcome outcome, uint32_t culprit,
                     uint64_t order) {
    free_ask(p, a);
    if (outcome == OUTCOME_DONE && a->local_event < p->config.limits.events)
        p->member.events[a->local_event]++;
    raise_outcome(p, a, outcome, culprit, order);
    arm_timer(p);
}

/* The announcement tells everyone the set, from which they work out the tree of the transfer. */
static bool announce(struct prim *p, struct ask *a) {
    struct codec c = {.encoding = true, .out = a->body, .len = p->config.limits.body_bytes};
    codec_set(&c, &a->set);
    a->operation.body.len = c.at;
    a->operation.value = a->timeout_ns;
    a->operation.transfer = a->number;
    a->transfer = (struct op_id){p->self, a->number, p->incarnation};
    return !c.failed && slot_source(p, a);
}

void request_make(struct prim *p, const struct primitive *r) {
    if (r->kind == PRIMITIVE_SET) {
        member_set(p, r->variable, r->value);
        return;
    }
    if (r->kind == PRIMITIVE_VOTE) {
        member_vote(p, r->order, r->value != 0);
        return;
    }
    if (r->kind == PRIMITIVE_RECORD) {
        query_record(p, r->channel, r->body);
        return;
    }
    if (r->kind == PRIMITIVE_GATHER) {
        query_make(p, r);
        return;
    }
    struct operation o;
    describe(r, &o);
    bool ok = valid(p, r, &o);
    if (r->kind == PRIMITIVE_STROBE) {
        if (ok)
            send_strobe(p, r, &o);
        return;
    }
    struct ask *a = ok ? find_free(p) : NULL;
    if (a == NULL) {
        struct ask refused = {.tag = r->tag};
        raise_outcome(p, &refused, OUTCOME_REFUSED, NO_NODE, 0);
        return;
    }
    struct nodeset set = a->set;
    *a = (struct ask){.tag = r->tag,
                      .deadline = units_after(units_after(p->now, r->timeout_ns),
                                              RESEND_PERIODS * p->config.period_ns),
                      .timeout_ns = r->timeout_ns,
                      .local_event = r->local_event,
                      .buffer = r->buffer,
                      .operation = o,
                      .set = set,
                      .body = a->body};
    nodeset_copy(&a->set, r->set);
    if (o.body.len > 0)
        memcpy(a->body, o.body.at, o.body.len);
    number_ask(p, a);
    if (o.kind == OPERATION_ANNOUNCE && !announce(p, a)) {
        complete(p, a, OUTCOME_REFUSED, NO_NODE, 0);
        return;
    }
    ask_root(p, a);
}

/* A transfer that cannot be completed; the others forget theirs when its time is over. */
static void give_up(struct prim *p, struct ask *a, uint32_t culprit) {
    slot_discard(p, a->transfer);
    complete(p, a, OUTCOME_FAILED, culprit, 0);
}

static void publish(struct prim *p, struct ask *a) {
    a->operation.kind = OPERATION_PUBLISH;
    a->operation.body.len = 0;
    number_ask(p, a);
    ask_root(p, a);
}

/* Everyone has made room; some may have everything already. */
static void stream(struct prim *p, struct ask *a) {
    a->state = ASK_STREAMING;
    arm_timer(p);
    nodeset_copy(&p->part, &a->set);
    nodeset_subtract(&p->part, &p->member.members);
    if (!nodeset_empty(&p->part))
        give_up(p, a, nodeset_first(&p->part));
    else if (slot_streamed(p, a->transfer))
        publish(p, a);
}

/* The next step of a bulk transfer after one of its operations is over. */
static void bulk_result(struct prim *p, struct ask *a, const struct message_result *m) {
    enum outcome outcome = (enum outcome)m->outcome;
    if (outcome == OUTCOME_DONE && a->operation.kind == OPERATION_ANNOUNCE) {
        stream(p, a);
        return;
    }
    slot_discard(p, a->transfer);
    bool done = outcome == OUTCOME_DONE;
    complete(p, a, outcome == OUTCOME_FALSE ? OUTCOME_FAILED : outcome, m->culprit,
             done ? m->order : 0);
}

void request_result(struct prim *p, const struct message_result *m) {
    if (m->id.incarnation != p->incarnation && !planted(PLANTED_OLD_INCARNATION)) {
        p->refused[REFUSAL_LIFE]++;
        return;
    }
    struct ask *a = find(p, m->id.number);
    if (a != NULL) {
        a->unknown_told = false;
        if (a->operation.kind >= OPERATION_ANNOUNCE)
            bulk_result(p, a, m);
        else
            complete(p, a, (enum outcome)m->outcome, m->culprit, m->order);
    }
    union message answer = {.received = {.id = m->id}};
    uplink_send(p, MESSAGE_RECEIVED, &answer);
}

/* Every node of the set has all of it. */
void request_streamed(struct prim *p, struct op_id id) {
    for (uint32_t i = 0; i < p->requests.end; i++) {
        struct ask *a = &p->requests.asks[i];
        if (a->state != ASK_STREAMING || a->transfer.number != id.number)
            continue;
        publish(p, a);
        return;
    }
}

/* A node of the set is gone: all or nothing means nothing. */
void request_broken(struct prim *p, struct op_id id, uint32_t culprit) {
    for (uint32_t i = 0; i < p->requests.end; i++) {
        struct ask *a = &p->requests.asks[i];
        if (a->state == ASK_STREAMING && a->transfer.number == id.number)
            give_up(p, a, culprit);
    }
}

/* The oldest unanswered request after a generation. */
static struct ask *next_waiting(struct prim *p, uint64_t after) {
    struct ask *next = NULL;
    for (uint32_t i = 0; i < p->requests.end; i++) {
        struct ask *a = &p->requests.asks[i];
        if (a->state == ASK_WAITING && generation(p, a->number) > after &&
            (next == NULL || a->number < next->number))
            next = a;
    }
    return next;
}

void request_resend(struct prim *p) {
    p->requests.resend_at = p->now + RESEND_PERIODS * p->config.period_ns;
    uint64_t sent = 0;
    for (struct ask *a = next_waiting(p, sent); a != NULL; a = next_waiting(p, sent)) {
        sent = generation(p, a->number);
        submit(p, a);
    }
    arm_timer(p);
}

void request_timer(struct prim *p) {
    for (uint32_t i = 0; i < p->requests.end; i++) {
        struct ask *a = &p->requests.asks[i];
        if (a->state == ASK_FREE || a->deadline > p->now)
            continue;
        if (a->state == ASK_STREAMING) {
            give_up(p, a, NO_NODE);
        } else if (!a->unknown_told) {
            a->unknown_told = true;
            raise_outcome(p, a, OUTCOME_UNKNOWN, NO_NODE, 0);
        }
    }
    if (p->requests.resend_at <= p->now)
        request_resend(p);
    else
        arm_timer(p);
}

/* Fenced: what became of them is not for this incarnation to know. */
void request_reset(struct prim *p) {
    for (uint32_t i = 0; i < p->requests.end; i++) {
        struct ask *a = &p->requests.asks[i];
        if (a->state == ASK_FREE)
            continue;
        a->state = ASK_FREE;
        raise_outcome(p, a, OUTCOME_LOST, NO_NODE, 0);
    }
    p->requests.end = 0;
}
