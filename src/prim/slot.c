/* SPDX-License-Identifier: MIT */
/* Bulk transfers: chunks through credited slots, published by one ordered operation.
 *
 * Every node of the set works out the same tree, rooted at the source, from the announcement, and
 * opens a link to its parent there. A node asks (WANT) for chunks from the first it lacks on and
 * grants a few slots ahead; chunks come in order and go on to its own sinks at once, so all levels
 * work at the same time. A broken link is opened again and the asking goes on where it was. When a
 * node and all its sinks have everything it tells its parent; when the source knows it of all, it
 * asks the root to publish. Until then the bytes wait in a buffer that nobody can see. A transfer
 * that is not published in time is forgotten by each node on its own: without all votes it can
 * never be published. */
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "prim/internal.h"

/* Buffers of our own making; a daemon numbers its own below. */
#define OWN_BUFFERS 0x80000000U

void slot_init(struct prim *p, struct arena *a) {
    uint32_t n = p->config.limits.transfers;
    p->transfers = ARENA_TAKE(a, struct transfer, n);
    uint64_t *sets = ARENA_TAKE(a, uint64_t, n * nodeset_bytes(p->universe) / 8);
    if (arena_measuring(a))
        return;
    for (uint32_t i = 0; i < n; i++)
        nodeset_init(&p->transfers[i].set, p->universe,
                     sets + i * (nodeset_bytes(p->universe) / 8));
}

static bool same_id(const struct op_id *a, const struct op_id *b) {
    return a->node == b->node && a->number == b->number && a->incarnation == b->incarnation;
}

static struct transfer *find(const struct prim *p, struct op_id id) {
    for (uint32_t i = 0; i < p->config.limits.transfers; i++)
        if (p->transfers[i].used && same_id(&p->transfers[i].id, &id))
            return &p->transfers[i];
    return NULL;
}

bool slot_active(const struct prim *p) {
    for (uint32_t i = 0; i < p->config.limits.transfers; i++)
        if (p->transfers[i].used)
            return true;
    return false;
}

/* ---- the tree of one transfer: the source, then the other nodes of the set in ascending order
 * ---- */

static struct tree plan(const struct prim *p, const struct transfer *t) {
    struct tree tree = {.shape = p->config.tree.shape, .arity = p->config.tree.arity};
    if (tree.shape == SHAPE_BINOMIAL || tree.shape == SHAPE_FLAT || tree.arity > SINKS_MAX) {
        tree.shape = SHAPE_KARY;
        tree.arity = 2;
    }
    tree.nodes = nodeset_count(&t->set) - nodeset_has(&t->set, t->id.node);
    return tree;
}

static uint32_t rank_of(const struct transfer *t, uint32_t node) {
    uint32_t rank = 0;
    struct noderange r;
    for (uint32_t at = 0; nodeset_next_range(&t->set, at, &r) && r.first < node; at = r.last + 1)
        rank += (r.last < node ? r.last + 1 : node) - r.first;
    return rank - (nodeset_has(&t->set, t->id.node) && t->id.node < node);
}

static uint32_t node_of(const struct transfer *t, uint32_t rank) {
    struct noderange r;
    if (nodeset_has(&t->set, t->id.node) && rank >= rank_of(t, t->id.node))
        rank++; /* the source is in the set but not among the ranks */
    for (uint32_t at = 0; nodeset_next_range(&t->set, at, &r); at = r.last + 1) {
        if (rank <= r.last - r.first)
            return r.first + rank;
        rank -= r.last - r.first + 1;
    }
    return NO_NODE;
}

static uint32_t parent_of(const struct prim *p, const struct transfer *t, uint32_t node) {
    struct tree tree = plan(p, t);
    uint32_t up;
    if (tree_ancestors(&tree, rank_of(t, node), &up, 1) == 0)
        return t->id.node;
    return node_of(t, up);
}

/* How many hang below this node: the plan has no function for that, and none is needed often. */
static uint32_t count_sinks(const struct prim *p, const struct transfer *t) {
    struct tree tree = plan(p, t);
    uint32_t count = 0;
    uint32_t mine = t->source ? NO_NODE : rank_of(t, p->self);
    for (uint32_t rank = t->source ? 0 : mine + 1; rank < tree.nodes; rank++) {
        uint32_t up;
        bool first_level = tree_ancestors(&tree, rank, &up, 1) == 0;
        count += t->source ? first_level : !first_level && up == mine;
        if (!t->source && !tree_above(&tree, mine, rank))
            break; /* preorder: our subtree is over */
    }
    return count;
}

/* ---- beginning and end ---- */

static void open_link(struct prim *p, struct transfer *t) {
    t->cookie = ++p->cookie;
    t->link = 0;
    struct effect *e = effects_add(p->out, EFFECT_OPEN);
    e->open = (struct effect_open){.node = t->parent, .purpose = PURPOSE_SLOT, .cookie = t->cookie};
}

static uint64_t retry_ns(const struct prim *p) {
    return p->config.attach_ns / 8 + 1;
}

static void release(struct prim *p, struct transfer *t) {
    if (t->link != 0)
        prim_close(p, t->link, REFUSAL_NONE);
    for (uint32_t i = 0; i < t->sinks_here; i++)
        prim_close(p, t->sinks[i].link, REFUSAL_NONE);
    if (!t->source) {
        struct effect *e = effects_add(p->out, EFFECT_BUFFER_CLOSE);
        e->buffer.buffer = t->buffer;
    }
    t->used = false;
}

static struct transfer *create(struct prim *p, struct op_id id, uint64_t len,
                               const struct nodeset *set) {
    for (uint32_t i = 0; i < p->config.limits.transfers; i++) {
        struct transfer *t = &p->transfers[i];
        if (t->used)
            continue;
        struct nodeset own = t->set;
        *t = (struct transfer){.used = true, .id = id, .len = len, .set = own};
        t->chunks =
            (uint32_t)((len + p->config.limits.chunk_bytes - 1) / p->config.limits.chunk_bytes);
        nodeset_copy(&t->set, set);
        effects_timer(p->out, TIMER_SLOT, p->now + retry_ns(p));
        return t;
    }
    return NULL;
}

/* Sinks that were faster than the announcement. */
static void serve_parked(struct prim *p, const struct transfer *t) {
    for (uint32_t i = 0; i < PARKED_MAX; i++) {
        struct parked *k = &p->parked[i];
        if (k->link == 0 || !same_id(&k->want.transfer, &t->id))
            continue;
        uint32_t link = k->link;
        k->link = 0;
        slot_want(p, link, &k->want);
    }
}

static void park(struct prim *p, uint32_t link, const struct message_want *m) {
    struct parked *k = &p->parked[p->next_parked++ % PARKED_MAX];
    if (k->link != 0)
        prim_close(p, k->link, REFUSAL_NONE); /* it will try again */
    *k = (struct parked){.link = link, .want = *m};
}

void slot_begin(struct prim *p, const struct entry *e, struct bytes body) {
    struct op_id id = {e->id.node, e->operation.transfer, e->id.incarnation};
    struct codec c = {.in = body.at, .len = body.len};
    codec_set(&c, &p->part);
    if (c.failed || !nodeset_has(&p->part, p->self) || id.node == p->self || find(p, id) != NULL)
        return; /* the source begins when everyone has made room */
    struct transfer *t = create(p, id, e->operation.len, &p->part);
    if (t == NULL)
        return; /* no slot: we shall vote against publishing */
    t->deadline = units_after(p->now, e->operation.value);
    t->deadline = units_after(t->deadline, STALLED_PERIODS * p->config.period_ns);
    t->buffer = OWN_BUFFERS | p->next_buffer++;
    t->parent = parent_of(p, t, p->self);
    t->sink_count = count_sinks(p, t);
    struct effect *open = effects_add(p->out, EFFECT_BUFFER_OPEN);
    open->buffer = (struct effect_buffer){.buffer = t->buffer, .bytes = t->len};
    open_link(p, t);
    serve_parked(p, t);
}

/* The source is ready before anyone else hears of the transfer. */
bool slot_source(struct prim *p, const struct ask *a) {
    struct transfer *t = create(p, a->transfer, a->operation.len, &a->set);
    if (t == NULL)
        return false;
    t->source = true;
    t->buffer = a->buffer;
    t->have = t->chunks;
    t->deadline = UINT64_MAX;
    t->sink_count = count_sinks(p, t);
    t->told = t->sink_count == 0;
    return true;
}

bool slot_streamed(const struct prim *p, struct op_id id) {
    const struct transfer *t = find(p, id);
    return t != NULL && t->told;
}

/* May it be published, as far as we know? If so it must stay until that is decided. */
bool slot_vote(struct prim *p, const struct entry *e) {
    struct op_id id = {e->id.node, e->operation.transfer, e->id.incarnation};
    struct transfer *t = find(p, id);
    if (t == NULL || t->have < t->chunks || t->len != e->operation.len)
        return false;
    t->pinned = true;
    return true;
}

void slot_publish(struct prim *p, const struct entry *e) {
    const struct operation *o = &e->operation;
    const struct transfer *t = find(p, (struct op_id){e->id.node, o->transfer, e->id.incarnation});
    if (t == NULL)
        return;
    struct effect *w = effects_add(p->out, EFFECT_HEAP_PUBLISH);
    w->heap = (struct effect_heap){.offset = o->heap_offset, .buffer = t->buffer, .len = t->len};
    member_signal(p, o->event, e->order, o->heap_offset, t->len, (struct bytes){0});
}

void slot_discard(struct prim *p, struct op_id id) {
    struct transfer *t = find(p, id);
    if (t != NULL)
        release(p, t);
}

void slot_reset(struct prim *p) {
    for (uint32_t i = 0; i < p->config.limits.transfers; i++)
        if (p->transfers[i].used)
            release(p, &p->transfers[i]);
    for (uint32_t i = 0; i < PARKED_MAX; i++) {
        if (p->parked[i].link != 0)
            prim_close(p, p->parked[i].link, REFUSAL_NONE);
        p->parked[i].link = 0;
    }
}

/* A new view: nobody publishes for a source that is gone, or to a set that is not whole. */
void slot_without(struct prim *p, const struct nodeset *members) {
    for (uint32_t i = 0; i < p->config.limits.transfers; i++) {
        struct transfer *t = &p->transfers[i];
        if (!t->used)
            continue;
        nodeset_copy(&p->part, &t->set);
        nodeset_subtract(&p->part, members);
        if (t->source && !nodeset_empty(&p->part))
            request_broken(p, t->id, nodeset_first(&p->part));
        else if (!t->source && !t->pinned &&
                 (!nodeset_empty(&p->part) || !nodeset_has(members, t->id.node)))
            release(p, t);
    }
}

/* ---- the flow ---- */

static void want(struct prim *p, struct transfer *t, bool done) {
    union message m = {.want = {.transfer = t->id,
                                .node = p->self,
                                .next = t->have,
                                .credit = p->config.limits.slots,
                                .buffer = t->buffer,
                                .done = done}};
    prim_send(p, t->link, MESSAGE_WANT, &m);
}

static bool push_one(struct prim *p, struct transfer *t, struct sink *s) {
    uint32_t chunk = p->config.limits.chunk_bytes;
    if (s->next >= t->have || s->next >= s->limit)
        return false;
    uint64_t offset = (uint64_t)s->next * chunk;
    uint64_t left = t->len - offset;
    struct effect *e = effects_add(p->out, EFFECT_PUT);
    e->put = (struct effect_put){.link = s->link,
                                 .buffer = t->buffer,
                                 .offset = offset,
                                 .len = left < chunk ? (uint32_t)left : chunk,
                                 .peer_buffer = s->buffer,
                                 .peer_offset = offset,
                                 .note = s->next};
    s->next++;
    return true;
}

/* One chunk for each sink in turn, so that none waits for another's whole credit. */
static void push(struct prim *p, struct transfer *t) {
    for (bool any = true; any;) {
        any = false;
        for (uint32_t i = 0; i < t->sinks_here; i++)
            any = push_one(p, t, &t->sinks[i]) || any;
    }
}

/* Tells the parent, or at the source the requests, when everyone from here down has everything. */
static void check_done(struct prim *p, struct transfer *t) {
    uint32_t done = 0;
    for (uint32_t i = 0; i < t->sinks_here; i++)
        done += t->sinks[i].done;
    if (t->told || t->have < t->chunks || done < t->sink_count)
        return;
    t->told = true;
    if (t->source)
        request_streamed(p, t->id);
    else if (t->link != 0)
        want(p, t, true);
}

static struct sink *find_sink(struct transfer *t, uint32_t node) {
    for (uint32_t i = 0; i < t->sinks_here; i++)
        if (t->sinks[i].node == node)
            return &t->sinks[i];
    if (t->sinks_here == SINKS_MAX)
        return NULL;
    t->sinks[t->sinks_here] = (struct sink){.node = node};
    return &t->sinks[t->sinks_here++];
}

static bool is_sink(const struct prim *p, const struct transfer *t, uint32_t node) {
    return node != t->id.node && nodeset_has(&t->set, node) && parent_of(p, t, node) == p->self;
}

void slot_want(struct prim *p, uint32_t link, const struct message_want *m) {
    struct transfer *t = find(p, m->transfer);
    if (t == NULL) {
        park(p, link, m);
        return;
    }
    struct sink *s = is_sink(p, t, m->node) ? find_sink(t, m->node) : NULL;
    if (s == NULL || m->next > t->chunks) {
        prim_close(p, link, REFUSAL_NONE);
        return;
    }
    if (s->link != link) {
        if (s->link != 0)
            prim_close(p, s->link, REFUSAL_NONE);
        s->link = link;
        s->next = m->next;
    }
    uint32_t credit = m->credit < p->config.limits.slots ? m->credit : p->config.limits.slots;
    s->buffer = m->buffer;
    s->limit = m->next + credit;
    s->done = m->done;
    push(p, t);
    check_done(p, t);
}

static struct transfer *of_buffer(struct prim *p, uint32_t buffer) {
    for (uint32_t i = 0; i < p->config.limits.transfers; i++)
        if (p->transfers[i].used && !p->transfers[i].source && p->transfers[i].buffer == buffer)
            return &p->transfers[i];
    return NULL;
}

void slot_put(struct prim *p, const struct input_put *put) {
    struct transfer *t = of_buffer(p, put->buffer);
    if (t == NULL || t->link != put->link || put->note != t->have || t->have >= t->chunks)
        return;
    t->have++;
    push(p, t);
    if (t->have < t->chunks && t->have % ((p->config.limits.slots + 1) / 2) == 0)
        want(p, t, false);
    check_done(p, t);
}

/* ---- links and time ---- */

bool slot_link_up(struct prim *p, const struct input_link *l) {
    if (l->role == ROLE_SINK)
        return true; /* what it wants it will say */
    for (uint32_t i = 0; i < p->config.limits.transfers; i++) {
        struct transfer *t = &p->transfers[i];
        if (!t->used || t->source || t->cookie != l->cookie)
            continue;
        t->link = l->link;
        struct effect *e = effects_add(p->out, EFFECT_BUFFER_GRANT);
        e->buffer = (struct effect_buffer){.buffer = t->buffer, .link = l->link};
        want(p, t, t->told);
        return true;
    }
    return false;
}

static bool sink_down(struct transfer *t, uint32_t link) {
    for (uint32_t i = 0; i < t->sinks_here; i++) {
        if (t->sinks[i].link != link)
            continue;
        t->sinks[i] = t->sinks[--t->sinks_here];
        return true;
    }
    return false;
}

bool slot_link_down(struct prim *p, const struct input_link *l) {
    for (uint32_t i = 0; i < PARKED_MAX; i++) {
        if (l->link == 0 || p->parked[i].link != l->link)
            continue;
        p->parked[i].link = 0;
        return true;
    }
    for (uint32_t i = 0; i < p->config.limits.transfers; i++) {
        struct transfer *t = &p->transfers[i];
        if (!t->used)
            continue;
        if (l->link != 0 && sink_down(t, l->link))
            return true;
        if (t->source || (l->link == 0 ? t->cookie != l->cookie : t->link != l->link))
            continue;
        t->link = 0;
        t->cookie = 0; /* the timer opens it again */
        effects_timer(p->out, TIMER_SLOT, p->now + retry_ns(p));
        return true;
    }
    return false;
}

void slot_timer(struct prim *p) {
    bool any = false;
    for (uint32_t i = 0; i < p->config.limits.transfers; i++) {
        struct transfer *t = &p->transfers[i];
        if (t->used && t->deadline <= p->now && !t->pinned)
            release(p, t);
        if (!t->used)
            continue;
        any = true;
        if (!t->source && t->link == 0 && t->cookie == 0)
            open_link(p, t);
    }
    if (any)
        effects_timer(p->out, TIMER_SLOT, p->now + p->config.attach_ns);
}
