/* SPDX-License-Identifier: MIT */
/* A node as a member: its log of ordered operations, its variables and events.
 *
 * Operations arrive in the root's order. Each is held until the root has decided, and takes effect
 * only when every earlier one here has: that is the total order. A transfer can be voted for at
 * once, a compare only in its turn, since its answer depends on what came before. Finished entries
 * stay in the log, for repeated questions and for the root of a next epoch, until the root says
 * that nobody will ask any more (`stable`). */
#include <string.h>

#include "base/assert.h"
#include "prim/internal.h"

void member_init(struct prim *p, struct arena *a) {
    const struct limits *l = &p->config.limits;
    struct member *m = &p->member;
    prim_set_init(p, &m->members, a);
    m->variables = ARENA_TAKE(a, uint64_t, l->variables);
    m->events = ARENA_TAKE(a, uint64_t, l->events);
    m->strobes = ARENA_TAKE(a, uint64_t, l->events);
    m->armed = ARENA_TAKE(a, struct armed, l->standing);
    m->log = ARENA_TAKE(a, struct entry, l->window);
    m->bodies = ARENA_TAKE(a, uint8_t, (size_t)l->window * l->body_bytes);
}

void member_reset(struct prim *p) {
    const struct limits *l = &p->config.limits;
    struct member *m = &p->member;
    m->joined = false;
    m->epoch = 0;
    m->view = 0;
    m->top = 0;
    m->stable = 0;
    m->count = 0;
    m->bodies_used = 0;
    nodeset_clear(&m->members);
    memset(m->variables, 0, l->variables * sizeof *m->variables);
    memset(m->events, 0, l->events * sizeof *m->events);
    memset(m->strobes, 0, l->events * sizeof *m->strobes);
    memset(m->armed, 0, l->standing * sizeof *m->armed);
}

/* ---- variables and events ---- */

/* Told once, then forgotten: if it does not hold any more in its turn, the root arms it anew. */
static void tell_armed(struct prim *p, struct armed *a) {
    uint64_t value = p->member.variables[a->variable];
    if (!relation_holds((enum relation)a->relation, value, a->value))
        return;
    a->used = false;
    ack_self(p, ACK_ARM, a->number, false);
}

static void tell_all_armed(struct prim *p) {
    for (uint32_t i = 0; i < p->config.limits.standing; i++)
        if (p->member.armed[i].used)
            tell_armed(p, &p->member.armed[i]);
}

void member_set(struct prim *p, uint32_t variable, uint64_t value) {
    if (variable >= p->config.limits.variables)
        return;
    p->member.variables[variable] = value;
    tell_all_armed(p);
}

void member_signal(struct prim *p, uint32_t event, uint64_t order, uint32_t offset, uint64_t len,
                   struct bytes body) {
    if (event >= p->config.limits.events)
        return;
    p->member.events[event]++;
    struct input *up = effects_raise(p->out, INPUT_SIGNAL, p->now);
    up->signal = (struct input_signal){
        .event = event, .order = order, .heap_offset = offset, .len = len, .body = body};
}

uint8_t *member_store_variables(struct prim *p) {
    uint32_t n = p->config.limits.variables;
    uint8_t *room = effects_room(p->out, 8 * (size_t)n);
    for (uint32_t i = 0; i < n; i++)
        store_le64(room + 8 * (size_t)i, p->member.variables[i]);
    return room;
}

static bool is_active(struct bytes active, uint64_t number) {
    for (size_t at = 0; at < active.len; at += 8)
        if (load_le64(active.at + at) == number)
            return true;
    return false;
}

/* A standing compare: remember it until it holds here. Entries whose end we have missed make room.
 */
void member_arm(struct prim *p, const struct message_arm *m) {
    struct armed *room = NULL;
    for (uint32_t i = 0; i < p->config.limits.standing; i++) {
        struct armed *a = &p->member.armed[i];
        if (a->used && (a->number == m->number || !is_active(m->active, a->number)))
            a->used = false;
        if (!a->used)
            room = a;
    }
    if (m->disarm || room == NULL || m->variable >= p->config.limits.variables)
        return;
    *room = (struct armed){.used = true,
                           .number = m->number,
                           .variable = m->variable,
                           .relation = m->relation,
                           .value = m->value};
    tell_armed(p, room);
}

void member_strobe(struct prim *p, const struct message_strobe *m) {
    if (!p->member.joined || m->channel >= p->config.limits.events ||
        m->number <= p->member.strobes[m->channel])
        return;
    p->member.strobes[m->channel] = m->number;
    struct input *up = effects_raise(p->out, INPUT_STROBE, p->now);
    up->strobe = (struct input_strobe){
        .channel = m->channel, .number = m->number, .body = effects_copy(p->out, m->body)};
}

/* ---- the log ---- */

static struct bytes entry_body(const struct prim *p, const struct entry *e) {
    size_t slot = p->config.limits.body_bytes;
    return bytes_of(p->member.bodies + e->body_slot * slot, e->operation.body.len);
}

static void free_body(struct prim *p, struct entry *e) {
    if (e->operation.body.len > 0)
        p->member.bodies_used &= ~((uint64_t)1 << e->body_slot);
    e->operation.body.len = 0;
}

static void hold_body(struct prim *p, struct entry *e, struct bytes body) {
    e->operation.body = (struct bytes){.len = body.len};
    if (body.len == 0)
        return;
    e->body_slot = (uint32_t)__builtin_ctzll(~p->member.bodies_used);
    ASSERT(e->body_slot < p->config.limits.window);
    p->member.bodies_used |= (uint64_t)1 << e->body_slot;
    memcpy(p->member.bodies + (size_t)e->body_slot * p->config.limits.body_bytes, body.at,
           body.len);
}

static struct entry *find(struct prim *p, uint64_t order) {
    for (uint32_t i = 0; i < p->member.count; i++)
        if (p->member.log[i].order == order)
            return &p->member.log[i];
    return NULL;
}

static bool pure_compare(const struct operation *o) {
    return o->kind == OPERATION_COMPARE && o->write_variable == NO_VARIABLE;
}

static void apply_xfer(struct prim *p, const struct entry *e) {
    const struct operation *o = &e->operation;
    struct bytes body = effects_copy(p->out, entry_body(p, e));
    if (body.len > 0) {
        struct effect *w = effects_add(p->out, EFFECT_HEAP_WRITE);
        w->heap.offset = o->heap_offset;
        w->heap.bytes = body;
    }
    member_signal(p, o->event, e->order, o->heap_offset, body.len, body);
}

static void apply(struct prim *p, struct entry *e) {
    const struct operation *o = &e->operation;
    switch ((enum operation_kind)o->kind) {
    case OPERATION_XFER:
        apply_xfer(p, e);
        break;
    case OPERATION_COMPARE:
        member_set(p, o->write_variable, o->write_value);
        break;
    case OPERATION_ANNOUNCE:
        slot_begin(p, e, entry_body(p, e));
        break;
    case OPERATION_PUBLISH:
        slot_publish(p, e);
        break;
    default:
        break;
    }
}

static bool in_heap(const struct limits *l, uint64_t offset, uint64_t len) {
    return len <= l->heap_bytes && offset <= l->heap_bytes - len;
}

bool member_fits(const struct prim *p, const struct operation *o) {
    const struct limits *l = &p->config.limits;
    if (o->body.len > l->body_bytes || (o->event != NO_EVENT && o->event >= l->events))
        return false;
    switch ((enum operation_kind)o->kind) {
    case OPERATION_XFER:
        return in_heap(l, o->heap_offset, o->body.len);
    case OPERATION_COMPARE:
    case OPERATION_STANDING:
        return o->body.len == 0 && o->variable < l->variables &&
               (o->write_variable == NO_VARIABLE || o->write_variable < l->variables);
    case OPERATION_ANNOUNCE:
        return in_heap(l, o->heap_offset, o->len);
    case OPERATION_PUBLISH:
        return o->body.len == 0 && in_heap(l, o->heap_offset, o->len);
    case OPERATION_STROBE:
        return true;
    case OPERATION_KINDS:
        break;
    }
    return false;
}

static bool condition(struct prim *p, const struct entry *e) {
    const struct operation *o = &e->operation;
    if (!member_fits(p, o) || e->refused)
        return false;
    if (o->kind == OPERATION_PUBLISH)
        return slot_vote(p, e);
    if (o->kind != OPERATION_COMPARE)
        return true;
    return relation_holds((enum relation)o->relation, p->member.variables[o->variable], o->value);
}

static void vote(struct prim *p, struct entry *e) {
    e->voted = true;
    e->no = !condition(p, e);
    if (pure_compare(&e->operation)) {
        free_body(p, e);
        e->finished = true;
    }
    if (planted(PLANTED_EARLY_APPLY) && !e->no && !e->finished)
        apply(p, e);
    ack_self(p, ACK_PREPARE, e->order, e->no);
}

static void finish(struct prim *p, struct entry *e) {
    if (e->commit && !planted(PLANTED_EARLY_APPLY))
        apply(p, e);
    if (e->operation.kind == OPERATION_PUBLISH)
        slot_discard(p, (struct op_id){e->id.node, e->operation.transfer, e->id.incarnation});
    free_body(p, e);
    e->finished = true;
    ack_self(p, ACK_DECIDE, e->order, false);
}

/* Does whatever has become possible, in order. Acknowledging may, at the root, decide at once and
 * come back here; so start over after every change instead of trusting positions. */
static void advance(struct prim *p) {
    bool again = true;
    while (again) {
        again = false;
        bool turn = true; /* everything before this entry is finished */
        for (uint32_t i = 0; i < p->member.count && !again; i++) {
            struct entry *e = &p->member.log[i];
            bool in_turn = turn || planted(PLANTED_NO_ORDER);
            turn = turn && e->finished;
            if (e->finished)
                continue;
            bool votes_in_turn = e->operation.kind == OPERATION_COMPARE;
            again = true;
            if (!e->voted && !e->decided && !e->asked && (in_turn || !votes_in_turn))
                vote(p, e);
            else if (e->decided && in_turn)
                finish(p, e);
            else
                again = false;
        }
    }
}

/* An operation is forgotten elsewhere only when it was dropped, or when every member has done it. So
 * one that we hold undecided was dropped: we have missed the word. */
static void drop_forgotten(struct prim *p, uint64_t stable) {
    bool any = false;
    for (uint32_t i = 0; i < p->member.count; i++) {
        struct entry *e = &p->member.log[i];
        if (e->order >= stable || e->finished || e->decided)
            continue;
        e->decided = true;
        any = true;
    }
    if (any)
        advance(p);
}

void member_trim(struct prim *p, uint64_t stable) {
    struct member *m = &p->member;
    if (stable <= m->stable)
        return;
    m->stable = stable;
    if (m->epoch == p->epoch)
        drop_forgotten(p, stable);
    uint32_t keep = 0;
    while (keep < m->count && m->log[keep].order < stable && m->log[keep].finished)
        keep++;
    if (keep > 0)
        memmove(m->log, m->log + keep, (m->count - keep) * sizeof *m->log);
    m->count -= keep;
    ack_trim(p, stable);
}

void member_prepare(struct prim *p, const struct message_prepare *m) {
    struct member *me = &p->member;
    if (!me->joined)
        return;
    member_trim(p, m->stable);
    struct entry *e = find(p, m->order);
    if (e != NULL && e->voted)
        ack_self(p, ACK_PREPARE, e->order, e->no);
    if (m->order <= me->top || me->count == p->config.limits.window ||
        m->operation.body.len > p->config.limits.body_bytes)
        return;
    me->top = m->order;
    e = &me->log[me->count++];
    *e = (struct entry){.order = m->order,
                        .id = m->id,
                        .operation = m->operation,
                        .asked = m->operation.hint && m->operation.ask};
    hold_body(p, e, m->operation.body);
    if (m->operation.hint) {
        struct input *up = effects_raise(p->out, INPUT_PREPARED, p->now);
        up->prepared = (struct input_prepared){.order = m->order,
                                               .heap_offset = m->operation.heap_offset,
                                               .body = effects_copy(p->out, m->operation.body),
                                               .ask = m->operation.ask};
    }
    advance(p);
}

void member_vote(struct prim *p, uint64_t order, bool no) {
    struct entry *e = find(p, order);
    if (e == NULL || !e->asked)
        return;
    e->asked = false;
    e->refused = no;
    advance(p);
}

void member_decide(struct prim *p, uint64_t order, uint64_t stable, bool commit) {
    struct member *me = &p->member;
    if (!me->joined)
        return;
    member_trim(p, stable);
    struct entry *e = find(p, order);
    if (e != NULL && !e->finished) {
        e->decided = true;
        e->commit = commit;
        advance(p);
        return;
    }
    if (e == NULL && order > me->top) {
        if (commit)
            return;      /* it cannot be: whoever is in the set has voted */
        me->top = order; /* dropped before it ever came here */
    }
    ack_self(p, ACK_DECIDE, order, false);
}

/* ---- views ---- */

struct bytes member_records(struct prim *p) {
    struct member *m = &p->member;
    uint8_t *room = effects_room(p->out, m->count * (size_t)RECORD_BYTES);
    size_t len = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        const struct entry *e = &m->log[i];
        if (pure_compare(&e->operation))
            continue;
        struct record r = {.order = e->order, .id = e->id, .state = RECORD_PREPARED};
        if (e->decided)
            r.state = e->commit ? RECORD_COMMITTED : RECORD_ABORTED;
        record_store(room + len, &r);
        len += RECORD_BYTES;
    }
    return bytes_of(room, len);
}

/* What the new root has found out about operations that were under way when the old one went. */
static void resolve(struct prim *p, struct bytes resolutions) {
    struct member *m = &p->member;
    for (uint32_t i = 0; i < m->count; i++) {
        struct entry *e = &m->log[i];
        if (e->finished || e->decided)
            continue;
        e->decided = true;
        e->commit = false;
        struct resolution r;
        for (uint32_t k = 0; resolution_load(&r, resolutions, k); k++)
            if (r.order == e->order && r.commit && !planted(PLANTED_LOSE_PREPARED))
                e->commit = true;
    }
    advance(p);
    memset(m->armed, 0, p->config.limits.standing * sizeof *m->armed);
}

static bool join(struct prim *p, const struct message_view *v) {
    struct member *m = &p->member;
    if (!nodeset_has(v->joined, p->self) ||
        v->variables.len != 8 * (size_t)p->config.limits.variables)
        return false;
    for (uint32_t i = 0; i < p->config.limits.variables && !planted(PLANTED_NO_SNAPSHOT); i++)
        m->variables[i] = load_le64(v->variables.at + 8 * (size_t)i);
    m->joined = true;
    m->top = v->order;
    struct input *up = effects_raise(p->out, INPUT_JOINED, p->now);
    up->joined =
        (struct input_joined){.epoch = p->epoch, .incarnation = p->incarnation, .order = v->order};
    return true;
}

void member_view(struct prim *p, const struct message_view *v) {
    struct member *m = &p->member;
    if (!nodeset_has(v->members, p->self))
        return;
    bool news = v->view > m->view || m->epoch < p->epoch;
    if (!m->joined && !join(p, v))
        return;
    if (news) {
        bool new_epoch = m->epoch < p->epoch;
        m->epoch = p->epoch;
        m->view = v->view;
        if (new_epoch)
            resolve(p, v->resolutions);
        member_trim(p, v->stable);
        route_drop_children(p, v->members);
        slot_without(p, v->members);
        nodeset_copy(&m->members, v->members);
        uplink_consider_move(p, nodeset_has(v->joined, p->self) ? v->members : v->joined);
    }
    ack_self(p, ACK_VIEW, v->view, false);
}
