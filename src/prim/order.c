/* SPDX-License-Identifier: MIT */
/* The total order of operations, kept by the acting root.
 *
 * An admitted operation waits in the queue for its number, is then cast to its set to be prepared,
 * and is decided when all have voted, or when one has voted no, is lost, or the deadline is over.
 * What is to be done is sent again, also to nodes that come back, until every member of the set has
 * done it; the caller hears "done" only then. What is to be dropped is over at once: nobody waits for
 * a node that stands still to hear it, since a member may take an undecided operation that all others
 * have forgotten (`stable`) for dropped. An operation leaves the table when its initiator has the
 * result; until then every member remembers what became of it, so that a new root can tell.
 *
 *   queued -> preparing -> decided -> done -> free
 *   armed  -> queued ...   (standing compare; armed again when the ordered compare finds it false)
 */
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "prim/internal.h"

#define OP(at_) CONTAINER_OF(at_, struct op, at)

void order_init(struct prim *p, struct arena *a) {
    const struct limits *l = &p->config.limits;
    struct order *o = ARENA_TAKE(a, struct order, 1);
    uint32_t n = l->window + l->queue + l->standing;
    struct op *ops = ARENA_TAKE(a, struct op, n);
    uint8_t *bodies = ARENA_TAKE(a, uint8_t, (size_t)n * l->body_bytes);
    size_t words = nodeset_bytes(p->universe) / 8;
    uint64_t *sets = ARENA_TAKE(a, uint64_t, 2 * words * n);
    if (arena_measuring(a))
        return;
    p->order = o;
    o->ops = ops;
    o->op_count = n;
    list_init(&o->free);
    list_init(&o->queue);
    list_init(&o->flight);
    list_init(&o->standing);
    list_init(&o->closed);
    o->next = 1;
    o->next_arm = 1;
    for (uint32_t i = 0; i < n; i++) {
        ops[i].body = bodies + (size_t)i * l->body_bytes;
        nodeset_init(&ops[i].set, p->universe, sets + 2 * i * words);
        nodeset_init(&ops[i].pending, p->universe, sets + (2 * i + 1) * words);
        list_push_back(&o->free, &ops[i].at);
    }
}

/* Orders of an epoch are above those of all earlier ones, also when nobody is left to tell theirs.
 */
uint64_t order_first(const struct prim *p) {
    return ((uint64_t)p->epoch << STROBE_EPOCH_SHIFT) + 1;
}

bool order_undecided(const struct prim *p) {
    LIST_EACH (at, &p->order->flight)
        if (OP(at)->state == OP_PREPARING)
            return true;
    return false;
}

uint32_t order_in_flight(const struct prim *p) {
    uint32_t count = 0;
    LIST_EACH (at, &p->order->flight)
        count += OP(at)->state != OP_DONE;
    return count;
}

/* Everything before this number is finished, known to its initiator, and may be forgotten. */
uint64_t order_stable(const struct prim *p) {
    if (p->view->stage < STAGE_DONATING)
        return 0; /* members of the former epoch have not all heard what became of its operations */
    struct list *first = list_first(&p->order->flight);
    return first == NULL ? p->order->next : OP(first)->order;
}

static bool writes(const struct operation *o) {
    bool compares = o->kind == OPERATION_COMPARE || o->kind == OPERATION_STANDING;
    return !compares || o->write_variable != NO_VARIABLE;
}

static bool pure_compare(const struct op *op) {
    return !writes(&op->operation);
}

/* ---- casts ---- */

static void cast_prepare(struct prim *p, struct op *op, struct nodeset *set) {
    union message m = {.prepare = {.order = op->order,
                                   .stable = order_stable(p),
                                   .id = op->id,
                                   .set = set,
                                   .operation = op->operation}};
    m.prepare.operation.body = bytes_of(op->body, op->operation.body.len);
    route_cast(p, MESSAGE_PREPARE, set, prim_encode(p, MESSAGE_PREPARE, &m));
    if (nodeset_has(set, p->self))
        member_prepare(p, &m.prepare);
}

static void cast_decide(struct prim *p, struct op *op, struct nodeset *set) {
    union message m = {
        .decide = {
            .order = op->order, .stable = order_stable(p), .commit = op->commit, .set = set}};
    route_cast(p, MESSAGE_DECIDE, set, prim_encode(p, MESSAGE_DECIDE, &m));
    if (nodeset_has(set, p->self))
        member_decide(p, op->order, m.decide.stable, op->commit);
}

static void cast_arm(struct prim *p, struct op *op, struct nodeset *set, bool disarm) {
    struct order *o = p->order;
    uint8_t *active = effects_room(p->out, 8 * (size_t)o->armed_count + 8);
    size_t len = 0;
    LIST_EACH (at, &o->standing) {
        store_le64(active + len, OP(at)->arm_number);
        len += 8;
    }
    union message m = {.arm = {.number = op->arm_number,
                               .set = set,
                               .disarm = disarm,
                               .relation = op->operation.relation,
                               .variable = op->operation.variable,
                               .value = op->operation.value,
                               .active = bytes_of(active, len)}};
    route_cast(p, MESSAGE_ARM, set, prim_encode(p, MESSAGE_ARM, &m));
    if (nodeset_has(set, p->self))
        member_arm(p, &m.arm);
}

/* ---- the end of an operation ---- */

static bool initiator_waits(const struct prim *p, const struct op *op) {
    return op->id.node != p->self && nodeset_has(&p->member.members, op->id.node) &&
           p->view->peers[op->id.node].incarnation == op->id.incarnation;
}

static void send_result(struct prim *p, const struct op_id *id, enum outcome outcome,
                        uint32_t culprit, uint64_t order) {
    union message m = {.result = {
                           .id = *id,
                           .outcome = (uint8_t)outcome,
                           .culprit = culprit,
                           .order = order,
                       }};
    if (id->node == p->self)
        request_result(p, &m.result);
    else
        route_unicast(p, id->node, MESSAGE_RESULT, prim_encode(p, MESSAGE_RESULT, &m));
}

static void release(struct prim *p, struct op *op) {
    if (op->standing)
        p->order->armed_count--;
    list_remove(&op->at);
    op->state = OP_FREE;
    list_push_front(&p->order->free, &op->at); /* its memory is at hand */
}

static void answer(struct prim *p, struct op *op, enum outcome outcome, uint32_t culprit) {
    op->outcome = (uint8_t)outcome;
    op->culprit = culprit;
    op->answered = true;
    op->since = p->now;
    op->nudged = false;
    if (!initiator_waits(p, op))
        op->received = true; /* it is here, or gone */
    if (op->id.node != p->self || op->id.incarnation == p->incarnation)
        send_result(p, &op->id, outcome, culprit, op->order);
}

/* Over: stays only until the initiator has the result. */
static void retire(struct prim *p, struct op *op) {
    op->state = OP_DONE;
    if (op->order == 0) { /* it never had a place in the order: nobody else remembers it */
        list_remove(&op->at);
        list_push_back(&p->order->closed, &op->at);
    }
    if (!initiator_waits(p, op))
        op->received = true;
    if (op->received)
        release(p, op);
}

static void arm_timer(struct prim *p, uint64_t deadline) {
    struct order *o = p->order;
    if (o->timer_at != 0 && o->timer_at <= deadline)
        return;
    o->timer_at = deadline;
    effects_timer(p->out, TIMER_ORDER, deadline);
}

/* When half of its time is over an operation is cast again to whoever has not answered: it may have
 * been lost, and repeated casts are not combined, so the rest of the time tells who it is. */
static uint64_t half_time(const struct op *op) {
    return op->admitted + (op->deadline - op->admitted) / 2;
}

static void arm(struct prim *p, struct op *op) {
    if (op->id.node != p->self && !initiator_waits(p, op)) {
        retire(p, op);
        return;
    }
    uint32_t unfit = view_unfit(p, &op->set);
    if (unfit != NO_NODE) {
        op->order = 0;
        answer(p, op, OUTCOME_FAILED, unfit);
        retire(p, op);
        return;
    }
    list_remove(&op->at);
    list_push_back(&p->order->standing, &op->at);
    op->state = OP_ARMED;
    op->order = 0;
    op->arm_number = ((uint64_t)p->epoch << STROBE_EPOCH_SHIFT) + p->order->next_arm++;
    nodeset_copy(&op->pending, &op->set);
    arm_timer(p, op->hurried ? op->deadline : half_time(op));
    cast_arm(p, op, &op->set, false);
}

static void try_finish(struct prim *p, struct op *op) {
    if (op->state != OP_DECIDED || !nodeset_empty(&op->pending) || p->view->acked < op->view_needed)
        return;
    answer(p, op, OUTCOME_DONE, NO_NODE);
    retire(p, op);
}

/* A compare without a write has no second round: nothing is to be applied or dropped. */
static void decide_pure(struct prim *p, struct op *op, enum outcome outcome, uint32_t culprit) {
    if (op->standing && outcome == OUTCOME_FALSE) {
        arm(p, op);
        return;
    }
    answer(p, op, outcome, culprit);
    retire(p, op);
}

/* All who may hold it are told, once: who misses that will find out. */
static void drop(struct prim *p, struct op *op, enum outcome outcome, uint32_t culprit) {
    bool again = op->standing && outcome == OUTCOME_FALSE;
    op->state = OP_DONE;
    nodeset_clear(&op->pending);
    if (!again)
        answer(p, op, outcome, culprit);
    nodeset_and(&p->part2, &op->set, &p->member.members);
    cast_decide(p, op, &p->part2);
    if (again)
        arm(p, op);
    else
        retire(p, op);
}

static void decide(struct prim *p, struct op *op, enum outcome outcome, uint32_t culprit) {
    if (pure_compare(op)) {
        decide_pure(p, op, outcome, culprit);
        return;
    }
    op->commit = outcome == OUTCOME_DONE;
    if (!op->commit) {
        drop(p, op, outcome, culprit);
        return;
    }
    op->state = OP_DECIDED;
    op->since = p->now;
    op->nudged = false;
    nodeset_copy(&op->pending, &op->set);
    nodeset_intersect(&op->pending, &p->member.members);
    if (nodeset_count(&op->pending) < nodeset_count(&op->set))
        op->view_needed = p->member.view;
    nodeset_copy(&p->part2, &op->pending);
    cast_decide(p, op, &p->part2);
    try_finish(p, op);
}

static enum outcome no_outcome(const struct op *op) {
    return op->operation.kind == OPERATION_COMPARE ? OUTCOME_FALSE : OUTCOME_FAILED;
}

/* Ends an operation that cannot go on, in whatever state it is. */
static void abandon(struct prim *p, struct op *op, enum outcome outcome, uint32_t culprit) {
    switch (op->state) {
    case OP_ARMED:
        cast_arm(p, op, &op->set, true);
        answer(p, op, outcome, culprit);
        retire(p, op);
        break;
    case OP_QUEUED:
        answer(p, op, outcome, culprit);
        retire(p, op);
        break;
    case OP_PREPARING:
        decide(p, op, outcome, culprit);
        break;
    default:
        break;
    }
}

/* ---- acknowledgements ---- */

static struct op *find_order(struct prim *p, uint64_t order, enum op_state state) {
    LIST_EACH (at, &p->order->flight)
        if (OP(at)->order == order)
            return OP(at)->state == state ? OP(at) : NULL;
    return NULL;
}

static void voted(struct prim *p, uint64_t order, bool no, const struct nodeset *set) {
    struct op *op = find_order(p, order, OP_PREPARING);
    if (op == NULL)
        return;
    if (no) {
        if (nodeset_intersects(&op->pending, set))
            decide(p, op, no_outcome(op), NO_NODE);
        return;
    }
    nodeset_subtract(&op->pending, set);
    if (nodeset_empty(&op->pending))
        decide(p, op, OUTCOME_DONE, NO_NODE);
}

static void told(struct prim *p, uint64_t number, const struct nodeset *set) {
    LIST_EACH (at, &p->order->standing) {
        struct op *op = OP(at);
        if (op->arm_number != number || op->state != OP_ARMED)
            continue;
        nodeset_subtract(&op->pending, set);
        if (!nodeset_empty(&op->pending))
            return;
        op->state = OP_QUEUED;
        list_remove(&op->at);
        list_push_back(&p->order->queue, &op->at);
        return;
    }
}

void order_acked(struct prim *p, enum ack_what what, uint64_t number, bool no,
                 const struct nodeset *set) {
    switch (what) {
    case ACK_PREPARE:
        voted(p, number, no, set);
        break;
    case ACK_DECIDE: {
        struct op *op = find_order(p, number, OP_DECIDED);
        if (op != NULL) {
            nodeset_subtract(&op->pending, set);
            try_finish(p, op);
        }
        break;
    }
    case ACK_ARM:
        told(p, number, set);
        break;
    default:
        break;
    }
}

/* ---- admission ---- */

static uint64_t *last_number(struct prim *p, const struct op_id *id) {
    uint64_t slots = p->config.limits.outstanding;
    return &p->view->last[id->node * slots + id->number % slots];
}

/* Whom the last refusal in this slot named. */
static uint32_t *blame(struct prim *p, const struct op_id *id) {
    uint64_t slots = p->config.limits.outstanding;
    return &p->view->blame[id->node * slots + id->number % slots];
}

/* All that are not free are in one of these. The table itself is large. */
enum { LISTS = 4 };
static void lists_of(struct order *o, struct list *ret[LISTS]) {
    ret[0] = &o->flight;
    ret[1] = &o->queue;
    ret[2] = &o->standing;
    ret[3] = &o->closed;
}

static struct op *find_id(struct prim *p, const struct op_id *id) {
    struct list *lists[LISTS];
    lists_of(p->order, lists);
    for (int i = 0; i < LISTS; i++) {
        LIST_EACH (at, lists[i]) {
            struct op *op = OP(at);
            if (op->id.node == id->node && op->id.number == id->number &&
                op->id.incarnation == id->incarnation)
                return op;
        }
    }
    return NULL;
}

/* A number that came before: say again how it ended, if it has. */
static void repeat(struct prim *p, const struct op_id *id) {
    struct op *op = find_id(p, id);
    if (op == NULL)
        send_result(p, id, OUTCOME_REFUSED, *blame(p, id), 0);
    else if (op->answered)
        send_result(p, id, (enum outcome)op->outcome, op->culprit, op->order);
}

/* The initiator uses a slot of its table anew: so it has the result of what was there before. */
static bool free_slot(struct prim *p, const struct op_id *id) {
    uint64_t slots = p->config.limits.outstanding;
    struct list *lists[LISTS];
    lists_of(p->order, lists);
    for (int i = 0; i < LISTS; i++) {
        LIST_EACH_SAFE (at, lists[i]) {
            struct op *op = OP(at);
            if (op->id.node != id->node || op->id.incarnation != id->incarnation ||
                op->id.number % slots != id->number % slots)
                continue;
            if (!op->answered)
                return false;
            op->received = true;
            if (op->state == OP_DONE)
                release(p, op); /* else it goes when it has been dropped everywhere */
        }
    }
    return true;
}

/* A request overtaken on a broken path must not overtake in the order. */
static bool in_program_order(struct prim *p, const struct message_request *m) {
    struct op_id before = m->id;
    before.number = m->after;
    return m->after == 0 || *last_number(p, &before) >= m->after;
}

static void refuse(struct prim *p, const struct op_id *id, uint32_t culprit) {
    *blame(p, id) = culprit;
    send_result(p, id, OUTCOME_REFUSED, culprit, 0);
}

static void enter(struct prim *p, struct op *op, const struct message_request *m) {
    struct op fresh = {.id = m->id,
                       .operation = m->operation,
                       .body = op->body,
                       .set = op->set,
                       .pending = op->pending,
                       .at = op->at,
                       .culprit = NO_NODE,
                       .standing = m->operation.kind == OPERATION_STANDING,
                       .admitted = p->now,
                       .deadline = units_after(p->now, m->timeout_ns)};
    if (fresh.standing)
        fresh.operation.kind = OPERATION_COMPARE;
    *op = fresh;
    list_init(&op->at);
    nodeset_copy(&op->set, m->set);
    nodeset_clear(&op->pending);
    op->operation.body = (struct bytes){.len = m->operation.body.len};
    if (m->operation.body.len > 0)
        memcpy(op->body, m->operation.body.at, m->operation.body.len);
    arm_timer(p, half_time(op));
    if (op->standing) {
        p->order->armed_count++;
        arm(p, op);
    } else {
        op->state = OP_QUEUED;
        list_push_back(&p->order->queue, &op->at);
    }
}

void order_admit(struct prim *p, const struct message_request *m) {
    if (m->id.node >= p->universe || p->view->stage != STAGE_OPEN)
        return; /* it will be sent again */
    struct peer *peer = &p->view->peers[m->id.node];
    bool known = m->id.incarnation == peer->incarnation || planted(PLANTED_OLD_INCARNATION);
    if (!known || !nodeset_has(&p->member.members, m->id.node)) {
        p->refused[REFUSAL_LIFE]++;
        return;
    }
    if (m->operation.kind == OPERATION_STROBE) {
        strobe_make(p, m);
        return;
    }
    uint64_t *last = last_number(p, &m->id);
    if (m->id.number == *last)
        repeat(p, &m->id);
    if (m->id.number <= *last || !free_slot(p, &m->id) || !in_program_order(p, m))
        return; /* if it is not a repetition it will be sent again */
    *last = m->id.number;
    if (m->epoch != p->epoch && writes(&m->operation)) {
        send_result(p, &m->id, OUTCOME_FAILED, p->root_node, 0);
        return; /* the former root may have done it where nobody survived: never do it twice */
    }
    uint32_t unfit = view_unfit(p, m->set);
    bool too_many = m->operation.kind == OPERATION_STANDING &&
                    p->order->armed_count >= p->config.limits.standing;
    if (unfit != NO_NODE || too_many || list_empty(&p->order->free) ||
        !member_fits(p, &m->operation)) {
        refuse(p, &m->id, unfit);
        return;
    }
    enter(p, OP(list_pop_front(&p->order->free)), m);
}

void order_received(struct prim *p, const struct op_id *id) {
    struct op *op = find_id(p, id);
    if (op == NULL || !op->answered)
        return;
    op->received = true;
    if (op->state == OP_DONE)
        release(p, op);
}

/* Gives numbers to what waits, as far as the window and a pending change of view allow. */
void order_pump(struct prim *p) {
    struct order *o = p->order;
    while (p->view->stage == STAGE_OPEN && !view_holds_order(p) && !list_empty(&o->queue) &&
           o->next - order_stable(p) < p->config.limits.window) {
        struct op *op = OP(list_first(&o->queue));
        uint32_t unfit = view_unfit(p, &op->set);
        if (unfit != NO_NODE) {
            abandon(p, op, OUTCOME_FAILED, unfit);
            continue;
        }
        list_remove(&op->at);
        list_push_back(&o->flight, &op->at);
        op->order = o->next++;
        op->state = OP_PREPARING;
        op->since = p->now;
        op->nudged = false;
        nodeset_copy(&op->pending, &op->set);
        nodeset_copy(&p->part2, &op->set);
        cast_prepare(p, op, &p->part2);
    }
}

static void cast_again(struct prim *p, struct op *op, struct nodeset *part) {
    if (nodeset_empty(part))
        return;
    if (op->state == OP_PREPARING)
        cast_prepare(p, op, part);
    else if (op->state == OP_DECIDED || (op->state == OP_DONE && op->order != 0 && !op->commit))
        cast_decide(p, op, part);
    else if (op->state == OP_ARMED)
        cast_arm(p, op, part, false);
}

/* Who is to blame for a deadline: a node we know to be out of reach, or the only one that has not
 * answered. Inner nodes combine answers, so among several we cannot tell. */
static uint32_t absentee(struct prim *p, const struct op *op) {
    nodeset_and(&p->part, &op->pending, &p->view->limbo);
    if (!nodeset_empty(&p->part))
        return nodeset_first(&p->part);
    return nodeset_count(&op->pending) == 1 ? nodeset_first(&op->pending) : NO_NODE;
}

static void hurry(struct prim *p, struct op *op) {
    op->hurried = true;
    nodeset_copy(&p->part2, &op->pending);
    nodeset_remove(&p->part2, p->self);
    cast_again(p, op, &p->part2);
}

void order_timer(struct prim *p) {
    struct order *o = p->order;
    o->timer_at = 0;
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < o->op_count; i++) {
        struct op *op = &o->ops[i];
        if (op->state == OP_FREE || op->state == OP_DECIDED || op->state == OP_DONE)
            continue;
        if (op->deadline <= p->now) {
            abandon(p, op, OUTCOME_FAILED, absentee(p, op));
            continue;
        }
        if (!op->hurried && half_time(op) <= p->now)
            hurry(p, op);
        uint64_t due = op->hurried ? op->deadline : half_time(op);
        next = due < next ? due : next;
    }
    if (next != UINT64_MAX)
        arm_timer(p, next);
}

/* ---- changes of membership ---- */

static void answer_again(struct prim *p, const struct op *op) {
    send_result(p, &op->id, (enum outcome)op->outcome, op->culprit, op->order);
}

/* Nodes that have found a new way to us get what is in flight for them, in order. */
void order_resend(struct prim *p, const struct nodeset *set) {
    if (planted(PLANTED_NO_RESEND))
        return;
    struct list *lists[] = {&p->order->flight, &p->order->standing, &p->order->closed};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        LIST_EACH_SAFE (at, lists[i]) {
            struct op *op = OP(at);
            bool dropped = op->state == OP_DONE && op->order != 0 && !op->commit;
            nodeset_and(&p->part2, dropped ? &op->set : &op->pending, set);
            cast_again(p, op, &p->part2);
            if (op->answered && !op->received && nodeset_has(set, op->id.node))
                answer_again(p, op);
        }
    }
}

/* Somebody who is alive has not answered for long: ask again, then give up on whoever it is. The
 * first such operation only: others may merely wait for it. */
void order_watch(struct prim *p, struct nodeset *stalled) {
    uint64_t patience = STALLED_PERIODS * p->config.period_ns;
    struct list *lists[] = {&p->order->flight, &p->order->closed};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        LIST_EACH (at, lists[i]) {
            struct op *op = OP(at);
            if (p->now - op->since <= patience)
                continue;
            bool told = op->state == OP_DONE;
            if (op->nudged && told)
                nodeset_add(stalled, op->id.node);
            else if (op->nudged)
                nodeset_copy(stalled, &op->pending);
            op->nudged = true;
            op->since = p->now;
            if (told)
                answer_again(p, op);
            nodeset_copy(&p->part2, &op->pending);
            nodeset_remove(&p->part2, p->self);
            cast_again(p, op, &p->part2);
            return;
        }
    }
}

static void drop_from(struct prim *p, struct op *op, const struct nodeset *gone) {
    bool named = nodeset_intersects(&op->set, gone);
    nodeset_and(&p->part, &op->set, gone);
    uint32_t culprit = nodeset_first(&p->part);
    bool orphan = nodeset_has(gone, op->id.node);
    switch (op->state) {
    case OP_QUEUED:
    case OP_ARMED:
    case OP_PREPARING:
        if (named || (orphan && op->state != OP_PREPARING))
            abandon(p, op, OUTCOME_FAILED, culprit);
        break;
    case OP_DECIDED:
        if (nodeset_intersects(&op->pending, gone)) {
            nodeset_subtract(&op->pending, gone);
            op->view_needed = p->member.view;
        }
        try_finish(p, op);
        break;
    case OP_DONE:
        retire(p, op);
        break;
    case OP_FREE:
        break;
    }
}

/* These nodes are members no more; the view that says so has its number but is not yet cast. */
void order_drop(struct prim *p, const struct nodeset *gone) {
    for (uint32_t i = 0; i < p->order->op_count; i++)
        if (p->order->ops[i].state != OP_FREE)
            drop_from(p, &p->order->ops[i], gone);
}

void order_view_acked(struct prim *p) {
    LIST_EACH_SAFE (at, &p->order->flight)
        try_finish(p, OP(at));
}

/* An operation of the former epoch whose initiator may still wait: we know how it ended. */
void order_recover(struct prim *p, const struct record *r) {
    struct peer *peer = &p->view->peers[r->id.node];
    uint64_t *last = last_number(p, &r->id);
    if (peer->incarnation != r->id.incarnation || list_empty(&p->order->free))
        return;
    if (r->id.number > *last)
        *last = r->id.number;
    struct op *op = OP(list_pop_front(&p->order->free));
    bool done = r->state == RECORD_COMMITTED;
    op->id = r->id;
    op->order = r->order;
    op->state = OP_DONE;
    op->standing = false;
    op->commit = true; /* everyone knows what became of it */
    op->answered = true;
    op->received = false;
    op->since = p->now;
    op->nudged = false;
    nodeset_clear(&op->pending);
    op->outcome = (uint8_t)(done ? OUTCOME_DONE : OUTCOME_FAILED);
    op->culprit = done ? NO_NODE : p->root_node;
    list_push_back(&p->order->flight, &op->at);
}

/* The new epoch begins: tell those who still wait for results of the former one. */
void order_open(struct prim *p) {
    LIST_EACH_SAFE (at, &p->order->flight)
        answer_again(p, OP(at));
}
