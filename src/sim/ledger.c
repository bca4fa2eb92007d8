/* SPDX-License-Identifier: MIT */
/* The operations of the model, in their total order: see model.h.
 *
 * A request travels to the root, gets its place in the order and is decided, applied and done at
 * times planned from its cost; its answer travels back. One operation by itself takes what the cost
 * model says. Of several at once each starts a gap after the one before, at most a window of them
 * is under way, a compare is judged only when what was ordered before it is everywhere, and effects
 * keep the order. An operation that names a node which crashes before the decision fails when the
 * node is given up, and holds those behind it until then. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/model_inside.h"

/* What happens to an operation next. */
enum op_step {
    STEP_ARRIVE, /* the request is at the root */
    STEP_HINT,   /* the nodes have it */
    STEP_DECIDE, /* the votes are in */
    STEP_APPLY,  /* it takes effect */
    STEP_DONE,   /* the root knows that it has */
    STEP_ANSWER, /* the caller knows */
    STEP_EXPIRE, /* a standing compare's time is over */
    STEP_TELL,   /* a standing compare holds everywhere, as far as one hears */
    STEP_UNKNOWN /* there has been no root for too long */
};

struct op {
    struct due due; /* node and life are the caller's */
    struct list at;
    enum op_step step;
    enum cost_kind cost;
    struct primitive request; /* body and set are copies */
    struct nodeset set;
    uint64_t order;
    uint64_t deadline;   /* at the root */
    uint64_t unknown_at; /* for the caller */
    uint64_t decide_at, apply_at, done_at;
    uint32_t unmet; /* standing: nodes where the condition does not hold */
    bool armed;     /* counts among the standing ones */
    bool failed;    /* before it could be decided */
    bool ended;     /* the outcome is final */
    enum outcome outcome;
    uint32_t culprit;
};

static struct op *op_of(struct due *d) {
    return CONTAINER_OF(d, struct op, due);
}

static struct op *op_at(struct list *at) {
    return CONTAINER_OF(at, struct op, at);
}

int ledger_init(struct model *m) {
    struct ledger *l = &m->ledger;
    list_init(&l->flight);
    list_init(&l->armed);
    list_init(&l->waiting);
    list_init(&l->away);
    l->strobe_seen = calloc(m->config.prim.limits.events + 1, sizeof *l->strobe_seen);
    return l->strobe_seen != NULL ? 0 : -ENOMEM;
}

static void free_op(struct model *m, struct op *op) {
    model_cancel(m, &op->due);
    list_remove(&op->at);
    free(op);
}

void ledger_fini(struct model *m) {
    struct ledger *l = &m->ledger;
    struct list *lists[] = {&l->flight, &l->armed, &l->waiting, &l->away};
    for (size_t i = 0; l->strobe_seen != NULL && i < sizeof lists / sizeof *lists; i++)
        while (!list_empty(lists[i]))
            free_op(m, op_at(list_first(lists[i])));
    free(l->strobe_seen);
    l->strobe_seen = NULL;
}

static void plan(struct model *m, struct op *op, enum op_step step, uint64_t at) {
    op->step = step;
    model_schedule(m, &op->due, at);
}

static void move(struct op *op, struct list *to) {
    list_remove(&op->at);
    list_push_back(to, &op->at);
}

static uint64_t way_ns(const struct model *m, uint32_t node) {
    return cost_path_ns(&m->config.cost, cost_level(&m->config.cost, node));
}

/* ---- the end of an operation ---- */

static void answer(struct model *m, struct op *op, enum outcome outcome, uint32_t culprit) {
    op->outcome = outcome;
    op->culprit = culprit;
    op->ended = true;
    if (!m->open) {
        move(op, &m->ledger.waiting);
        plan(m, op, STEP_UNKNOWN, op->unknown_at);
        return;
    }
    move(op, &m->ledger.away);
    plan(m, op, STEP_ANSWER, m->now + way_ns(m, op->due.node));
}

static void tell(struct model *m, const struct op *op, enum outcome outcome) {
    struct input in = {.kind = INPUT_COMPLETION, .now = m->now};
    in.completion =
        (struct completion){.tag = op->request.tag, .outcome = outcome, .culprit = NO_NODE};
    if (outcome == op->outcome && op->ended) {
        in.completion.culprit = op->culprit;
        in.completion.order = op->order;
    }
    model_feed(m, op->due.node, &in);
}

static bool caller_lives(const struct model *m, const struct op *op) {
    const struct model_node *n = &m->nodes[op->due.node];
    return n->up && n->boots == op->due.life;
}

static void on_answer(struct model *m, struct op *op) {
    if (caller_lives(m, op)) {
        uint32_t event = op->request.local_event;
        if (op->outcome == OUTCOME_DONE && event < m->config.prim.limits.events)
            memory_events(m->memory, op->due.node)[event]++;
        if (m->nodes[op->due.node].asks > 0)
            m->nodes[op->due.node].asks--;
        list_remove(&op->at); /* the daemon may make requests now */
        list_init(&op->at);
        tell(m, op, op->outcome);
    }
    free_op(m, op);
}

/* ---- standing compares ---- */

static bool holds(const struct model *m, const struct op *op, uint32_t node) {
    const struct primitive *r = &op->request;
    return relation_holds(r->relation, memory_variables(m->memory, node)[r->variable], r->value);
}

static uint32_t count_unmet(const struct model *m, const struct op *op) {
    uint32_t unmet = 0;
    NODESET_EACH (node, &op->set)
        unmet += !holds(m, op, node);
    return unmet;
}

/* The nodes tell the root, from all levels; until then the compare stays armed. */
static void consider(struct model *m, struct op *op) {
    uint64_t up_ns = cost_path_ns(&m->config.cost, cost_levels(&m->config.cost, COST_COMPARE));
    if (op->unmet == 0 && m->now + up_ns < op->deadline)
        plan(m, op, STEP_TELL, m->now + up_ns);
    else
        plan(m, op, STEP_EXPIRE, op->deadline);
}

static void arm(struct model *m, struct op *op) {
    m->ledger.armed_count += !op->armed;
    op->armed = true;
    move(op, &m->ledger.armed);
    op->order = 0;
    op->unmet = count_unmet(m, op);
    consider(m, op);
}

/* Over: it makes room for another. */
static void disarm(struct model *m, struct op *op) {
    m->ledger.armed_count -= op->armed;
    op->armed = false;
}

/* A node's variable has changed. */
static void recheck(struct model *m, uint32_t node, uint32_t variable, uint64_t old) {
    LIST_EACH (at, &m->ledger.armed) {
        struct op *op = op_at(at);
        const struct primitive *r = &op->request;
        if (r->variable != variable || !nodeset_has(&op->set, node))
            continue;
        bool did = relation_holds(r->relation, old, r->value);
        bool does = holds(m, op, node);
        if (did == does)
            continue;
        op->unmet += did ? 1 : (uint32_t)-1;
        if (op->unmet == 0 && op->step == STEP_EXPIRE)
            consider(m, op);
    }
}

/* A variable has been written on many nodes. */
static void recount(struct model *m, uint32_t variable) {
    LIST_EACH (at, &m->ledger.armed) {
        struct op *op = op_at(at);
        if (op->request.variable != variable)
            continue;
        op->unmet = count_unmet(m, op);
        if (op->unmet == 0 && op->step == STEP_EXPIRE)
            consider(m, op);
    }
}

/* ---- ordering ---- */

static const struct ledger_price *price(struct model *m, const struct op *op) {
    uint64_t bytes = op->cost == COST_BULK ? op->request.buffer_bytes : op->request.body.len;
    uint32_t nodes = m->config.prim.limits.nodes;
    uint32_t count = nodeset_count(&op->set) < nodes ? nodeset_count(&op->set) : nodes;
    struct ledger_price *p = &m->ledger.prices[op->cost];
    if (!p->known || p->bytes != bytes || p->count != count) {
        const struct cost *c = &m->config.cost;
        *p = (struct ledger_price){.known = true, .bytes = bytes, .count = count};
        p->whole_ns = cost_ns(c, op->cost, bytes, count);
        p->apply_ns = cost_apply_ns(c, op->cost, count);
        p->gap_ns = cost_gap_ns(c, op->cost, bytes, count);
        if (p->apply_ns > p->whole_ns)
            p->apply_ns = p->whole_ns;
    }
    return p;
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Gives the operation its place and works out when what will happen to it. */
static void enter(struct model *m, struct op *op) {
    struct ledger *l = &m->ledger;
    const struct ledger_price *p = price(m, op);
    bool compares = op->request.kind != PRIMITIVE_XFER && op->request.kind != PRIMITIVE_BULK;
    op->order = ++l->next;
    uint64_t *oldest = &l->window[op->order % m->config.prim.limits.window];
    uint64_t start = later(m->now, later(l->start_at, *oldest));
    l->start_at = start + p->gap_ns;
    op->decide_at = later(start + p->whole_ns - p->apply_ns, l->last_decide);
    if (compares)
        op->decide_at = later(op->decide_at, l->last_done);
    op->apply_at = later(op->decide_at + p->apply_ns / 2, l->last_apply);
    op->done_at = later(op->decide_at + p->apply_ns, op->apply_at);
    l->last_decide = op->decide_at;
    l->last_apply = op->apply_at;
    l->last_done = *oldest = op->done_at;
    move(op, &l->flight);
    l->flight_count++;
    m->counts.operations++;
    m->counts.messages += 2 * (uint64_t)cost_rounds(op->cost) * p->count;
    if (op->decide_at > op->deadline) {
        op->failed = true;
        op->culprit = nodeset_first(&op->set);
        plan(m, op, STEP_DECIDE, op->deadline);
    } else if (op->request.hint && op->request.kind == PRIMITIVE_XFER) {
        plan(m, op, STEP_HINT, start + (op->decide_at - start) / 2);
    } else {
        plan(m, op, STEP_DECIDE, op->decide_at);
    }
}

static void leave(struct model *m, struct op *op) {
    m->ledger.flight_count--;
    move(op, &m->ledger.away);
}

/* ---- what happens to an operation ---- */

/* Feeds the same input to every daemon of the set that wants to hear. The scratch is ours for as
 * long as requests only set out and nothing is ordered. */
static void feed_all(struct model *m, const struct nodeset *set, const struct input *in) {
    nodeset_and(&m->scratch2, set, &m->listeners);
    nodeset_intersect(&m->scratch2, &m->members);
    NODESET_EACH (node, &m->scratch2)
        model_feed(m, node, in);
}

static void on_strobe(struct model *m, struct op *op) {
    struct ledger *l = &m->ledger;
    struct input in = {.kind = INPUT_STROBE, .now = m->now};
    in.strobe = (struct input_strobe){
        .channel = op->request.channel, .number = op->order, .body = op->request.body};
    if (op->order > l->strobe_seen[in.strobe.channel]) {
        l->strobe_seen[in.strobe.channel] = op->order;
        feed_all(m, &op->set, &in);
    }
    free_op(m, op);
}

static void on_arrive(struct model *m, struct op *op) {
    const struct limits *limits = &m->config.prim.limits;
    struct ledger *l = &m->ledger;
    bool strobe = op->request.kind == PRIMITIVE_STROBE;
    bool standing = op->request.kind == PRIMITIVE_STANDING;
    if (!m->open && !strobe) {
        move(op, &l->waiting);
        plan(m, op, STEP_UNKNOWN, op->unknown_at);
        return;
    }
    if (!m->open || !caller_lives(m, op)) {
        free_op(m, op);
        return;
    }
    if (strobe) {
        uint64_t down_ns = cost_path_ns(&m->config.cost, cost_levels(&m->config.cost, COST_WAVE));
        op->order = (uint64_t)m->epoch << 32 | ++l->strobe;
        plan(m, op, STEP_APPLY, m->now + down_ns);
        return;
    }
    op->deadline = m->now + op->request.timeout_ns;
    if (op->deadline < m->now)
        op->deadline = UINT64_MAX;
    uint32_t unfit = census_unfit(m, &op->set);
    bool full =
        l->flight_count + l->armed_count >= limits->window + limits->queue + limits->standing;
    if (unfit != NO_NODE || full || (standing && l->armed_count >= limits->standing)) {
        answer(m, op, OUTCOME_REFUSED, unfit);
        return;
    }
    if (standing)
        arm(m, op);
    else
        enter(m, op);
}

static void on_hint(struct model *m, struct op *op) {
    struct input in = {.kind = INPUT_PREPARED, .now = m->now};
    in.prepared = (struct input_prepared){.order = op->order,
                                          .heap_offset = op->request.heap_offset,
                                          .body = op->request.body,
                                          .ask = op->request.ask};
    plan(m, op, STEP_DECIDE, op->decide_at);
    feed_all(m, &op->set, &in);
}

static void on_decide(struct model *m, struct op *op) {
    bool compares = op->request.kind == PRIMITIVE_COMPARE || op->request.kind == PRIMITIVE_STANDING;
    bool standing = op->request.kind == PRIMITIVE_STANDING;
    if (!op->failed && (!compares || count_unmet(m, op) == 0)) {
        plan(m, op, STEP_APPLY, op->apply_at);
        return;
    }
    leave(m, op);
    if (standing && !op->failed) {
        arm(m, op);
        return;
    }
    disarm(m, op);
    answer(m, op, op->failed ? OUTCOME_FAILED : OUTCOME_FALSE, op->failed ? op->culprit : NO_NODE);
}

static void write_variable(struct model *m, const struct op *op, const struct nodeset *set) {
    uint32_t variable = op->request.write_variable;
    if (variable == NO_VARIABLE)
        return;
    NODESET_EACH (node, set)
        memory_variables(m->memory, node)[variable] = op->request.write_value;
    recount(m, variable);
}

static void signal_event(struct model *m, const struct op *op, const struct nodeset *set,
                         uint64_t len) {
    uint32_t event = op->request.remote_event;
    if (event >= m->config.prim.limits.events)
        return;
    NODESET_EACH (node, set)
        memory_events(m->memory, node)[event]++;
    struct input in = {.kind = INPUT_SIGNAL, .now = m->now};
    in.signal = (struct input_signal){
        .event = event, .order = op->order, .heap_offset = op->request.heap_offset, .len = len};
    feed_all(m, set, &in);
}

static void on_apply(struct model *m, struct op *op) {
    if (op->request.kind == PRIMITIVE_STROBE) {
        on_strobe(m, op);
        return;
    }
    const struct primitive *r = &op->request;
    const struct model_buffer *b = NULL;
    struct bytes data = r->body;
    if (r->kind == PRIMITIVE_BULK && caller_lives(m, op))
        b = model_find_buffer(m, op->due.node, r->buffer);
    if (b != NULL)
        data = bytes_of(b->at, r->buffer_bytes);
    m->ledger.applied = op->order;
    plan(m, op, STEP_DONE, op->done_at);
    nodeset_copy(&m->scratch, &op->set);
    nodeset_subtract(&m->scratch, &m->dead);
    if (r->kind == PRIMITIVE_XFER || r->kind == PRIMITIVE_BULK) {
        memory_write(m->memory, &m->scratch, r->heap_offset, data);
        signal_event(m, op, &m->scratch, data.len);
    } else {
        write_variable(m, op, &m->scratch);
    }
}

static void on_done(struct model *m, struct op *op) {
    leave(m, op);
    disarm(m, op);
    answer(m, op, OUTCOME_DONE, NO_NODE);
}

static void on_tell(struct model *m, struct op *op) {
    if (op->unmet == 0)
        enter(m, op);
    else
        plan(m, op, STEP_EXPIRE, op->deadline);
}

static void on_expire(struct model *m, struct op *op) {
    disarm(m, op);
    answer(m, op, OUTCOME_FAILED, nodeset_first(&op->set));
}

void ledger_due(struct model *m, struct due *d) {
    struct op *op = op_of(d);
    switch (op->step) {
    case STEP_ARRIVE:
        on_arrive(m, op);
        break;
    case STEP_HINT:
        on_hint(m, op);
        break;
    case STEP_DECIDE:
        on_decide(m, op);
        break;
    case STEP_APPLY:
        on_apply(m, op);
        break;
    case STEP_DONE:
        on_done(m, op);
        break;
    case STEP_ANSWER:
        on_answer(m, op);
        break;
    case STEP_EXPIRE:
        on_expire(m, op);
        break;
    case STEP_TELL:
        on_tell(m, op);
        break;
    case STEP_UNKNOWN:
        if (caller_lives(m, op))
            tell(m, op, OUTCOME_UNKNOWN);
        break;
    }
}

/* ---- faults ---- */

/* The node is in nobody's way until it is given up; then what names it fails. */
void ledger_crashed(struct model *m, uint32_t node) {
    uint64_t fail_at = m->now + m->config.prim.grace_ns;
    uint64_t not_before = 0;
    struct ledger *l = &m->ledger;
    LIST_EACH (at, &l->flight) {
        struct op *op = op_at(at);
        if (op->step != STEP_HINT && op->step != STEP_DECIDE)
            continue;
        if (nodeset_has(&op->set, node) && !op->failed) {
            op->failed = true;
            op->culprit = node;
            not_before = fail_at;
        }
        if (not_before == 0)
            continue;
        uint64_t delay = not_before > op->decide_at ? not_before - op->decide_at : 0;
        op->decide_at += delay;
        op->apply_at += delay;
        op->done_at += delay;
        plan(m, op, STEP_DECIDE, op->decide_at);
        l->last_decide = later(l->last_decide, op->decide_at);
        l->last_apply = later(l->last_apply, op->apply_at);
        l->last_done = later(l->last_done, op->done_at);
    }
    LIST_EACH_SAFE (at, &l->armed) {
        struct op *op = op_at(at);
        if (!nodeset_has(&op->set, node))
            continue;
        disarm(m, op);
        answer(m, op, OUTCOME_FAILED, node);
    }
}

/* What is decided is on its way to the nodes and goes on; what is not will be found aborted. */
void ledger_closed(struct model *m) {
    struct ledger *l = &m->ledger;
    LIST_EACH_SAFE (at, &l->flight) {
        struct op *op = op_at(at);
        if (op->step != STEP_HINT && op->step != STEP_DECIDE)
            continue;
        leave(m, op);
        disarm(m, op);
        answer(m, op, OUTCOME_FAILED, m->config.prim.limits.nodes);
    }
    LIST_EACH_SAFE (at, &l->armed) {
        struct op *op = op_at(at);
        disarm(m, op);
        move(op, &l->waiting);
        plan(m, op, STEP_UNKNOWN, op->unknown_at);
    }
}

void ledger_opened(struct model *m) {
    struct ledger *l = &m->ledger;
    l->start_at = l->last_decide = l->last_apply = l->last_done = m->now;
    LIST_EACH_SAFE (at, &l->waiting) {
        struct op *op = op_at(at);
        move(op, &l->away);
        plan(m, op, op->ended ? STEP_ANSWER : STEP_ARRIVE, m->now + way_ns(m, op->due.node));
    }
}

/* ---- requests ---- */

static bool fits(const struct model *m, const struct primitive *r) {
    const struct limits *l = &m->config.prim.limits;
    if (r->set == NULL || r->set->universe != m->node_count || nodeset_empty(r->set) ||
        r->relation >= RELATIONS || (r->local_event != NO_EVENT && r->local_event >= l->events))
        return false;
    uint64_t len = r->kind == PRIMITIVE_BULK ? r->buffer_bytes : r->body.len;
    switch (r->kind) {
    case PRIMITIVE_XFER:
    case PRIMITIVE_BULK:
        return (r->kind == PRIMITIVE_BULK || len <= l->body_bytes) && len <= l->heap_bytes &&
               r->heap_offset <= l->heap_bytes - len &&
               (r->remote_event == NO_EVENT || r->remote_event < l->events);
    case PRIMITIVE_COMPARE:
    case PRIMITIVE_STANDING:
        return r->variable < l->variables &&
               (r->write_variable == NO_VARIABLE || r->write_variable < l->variables);
    case PRIMITIVE_STROBE:
        return r->channel < l->events && len <= l->body_bytes;
    case PRIMITIVE_SET:
    case PRIMITIVE_VOTE:
    case PRIMITIVE_RECORD:
    case PRIMITIVE_GATHER:
    case PRIMITIVE_MAIL:
    case PRIMITIVE_KINDS:
        break;
    }
    return false;
}

static enum cost_kind cost_of(const struct primitive *r) {
    if (r->kind == PRIMITIVE_BULK)
        return COST_BULK;
    if (r->kind == PRIMITIVE_XFER || r->kind == PRIMITIVE_STROBE)
        return COST_XFER;
    return r->write_variable == NO_VARIABLE ? COST_COMPARE : COST_WRITE;
}

/* One block: the operation, its set, its body. */
static struct op *make(struct model *m, uint32_t node, const struct primitive *r) {
    bool carries = r->kind == PRIMITIVE_XFER || r->kind == PRIMITIVE_STROBE;
    size_t body = carries ? r->body.len : 0;
    size_t head = align_up(sizeof(struct op), 8);
    size_t set = nodeset_bytes(m->node_count);
    struct op *op = malloc(head + set + body);
    ASSERT(op != NULL);
    memset(op, 0, sizeof *op);
    uint8_t *storage = (uint8_t *)op + head;
    op->due.kind = DUE_OP;
    op->due.node = node;
    op->due.life = m->nodes[node].boots;
    op->request = *r;
    op->request.set = &op->set;
    op->request.body = bytes_of(storage + set, body);
    if (body > 0)
        memcpy(storage + set, r->body.at, body);
    nodeset_init(&op->set, m->node_count, storage);
    op->cost = cost_of(r);
    op->culprit = NO_NODE;
    list_init(&op->at);
    list_push_back(&m->ledger.away, &op->at);
    return op;
}

/* Whoever is asked answers in the step in which it hears of it, before it is decided. */
static void vote(struct model *m, const struct primitive *r) {
    LIST_EACH (at, &m->ledger.flight) {
        struct op *op = CONTAINER_OF(at, struct op, at);
        if (op->order == r->order && r->value != 0)
            op->failed = true;
    }
}

void ledger_request(struct model *m, uint32_t node, const struct primitive *r) {
    const struct limits *limits = &m->config.prim.limits;
    if (r->kind == PRIMITIVE_SET) {
        if (r->variable >= limits->variables)
            return;
        uint64_t *variable = &memory_variables(m->memory, node)[r->variable];
        uint64_t old = *variable;
        *variable = r->value;
        recheck(m, node, r->variable, old);
        return;
    }
    if (r->kind == PRIMITIVE_VOTE) {
        vote(m, r);
        return;
    }
    bool strobe = r->kind == PRIMITIVE_STROBE;
    bool ok = fits(m, r) && (strobe || m->nodes[node].asks < limits->outstanding);
    if (strobe && !ok)
        return;
    struct op *op = make(m, node, r);
    if (!strobe)
        m->nodes[node].asks++;
    if (!ok) { /* nobody else is asked: it comes back at once */
        op->outcome = OUTCOME_REFUSED;
        op->ended = true;
        plan(m, op, STEP_ANSWER, m->now);
        return;
    }
    nodeset_copy(&op->set, r->set);
    op->unknown_at = m->now + r->timeout_ns + 2 * m->config.prim.period_ns;
    plan(m, op, STEP_ARRIVE, m->now + way_ns(m, node));
}
