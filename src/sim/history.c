/* SPDX-License-Identifier: MIT */
/* The history of a run: see history.h.
 *
 * Tags are the operation's index above a mark that no counter reaches, so a value found in memory
 * leads to its operation without a search. When a life ended may become known late (a new root says
 * who survived), so ends are written into the lives, not into the list of events. */
#include "sim/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define TAG_MARK    ((uint64_t)0x57A6 << 48)
#define RECORD_MARK ((uint64_t)0x5EC0 << 48) /* stamps of records: the event's index above it */
#define TORN        UINT64_MAX               /* what was seen of a cell whose words differ */

static void *grow(void *array, uint32_t count, uint32_t *cap, size_t size) {
    if (count < *cap)
        return array;
    *cap = *cap ? *cap * 2 : 256;
    array = realloc(array, *cap * size);
    ASSERT(array);
    return array;
}

struct history *history_new(const struct layout *layout) {
    struct history *h = calloc(1, sizeof *h);
    ASSERT(h);
    h->layout = *layout;
    h->root_life = NO_LIFE;
    h->nodes = calloc(layout->universe, sizeof *h->nodes);
    ASSERT(h->nodes);
    for (uint32_t n = 0; n < layout->universe; n++) {
        h->nodes[n].life = NO_LIFE;
        h->nodes[n].seen = calloc(layout_places(layout), sizeof(uint64_t));
        ASSERT(h->nodes[n].seen);
    }
    return h;
}

void history_free(struct history *h) {
    if (!h)
        return;
    for (uint32_t n = 0; n < h->layout.universe; n++)
        free(h->nodes[n].seen);
    for (uint32_t i = 0; i < h->op_count; i++)
        free(h->ops[i].set.storage);
    for (uint32_t i = 0; i < h->life_count; i++)
        free(h->lives[i].variables);
    free(h->nodes);
    free(h->ops);
    free(h->lives);
    free(h->events);
    free(h);
}

static struct history_event *add(struct history *h, enum history_kind kind, uint32_t node,
                                 uint64_t now) {
    h->events = grow(h->events, h->event_count, &h->event_cap, sizeof *h->events);
    struct history_event *e = &h->events[h->event_count++];
    *e = (struct history_event){.kind = kind,
                                .node = node,
                                .time = now,
                                .step = h->step,
                                .life = h->nodes[node].life,
                                .op = NO_OP};
    return e;
}

uint64_t history_next_tag(const struct history *h) {
    return TAG_MARK + h->op_count;
}

uint32_t history_op_of(const struct history *h, uint64_t value) {
    uint64_t index = value - TAG_MARK;
    return value >= TAG_MARK && index < h->op_count ? (uint32_t)index : NO_OP;
}

bool history_ordered(const struct history_op *op) {
    return op->request.kind != PRIMITIVE_STROBE && op->request.kind != PRIMITIVE_GATHER;
}

bool history_visible(const struct history_op *op) {
    if (op->places > 0)
        return true;
    enum primitive_kind kind = op->request.kind;
    return (kind == PRIMITIVE_XFER || kind == PRIMITIVE_BULK) &&
           op->request.remote_event != NO_EVENT;
}

uint32_t history_open_life(const struct history *h, uint32_t node) {
    uint32_t life = h->nodes[node].life;
    return life != NO_LIFE && h->lives[life].end_step == STEP_NEVER ? life : NO_LIFE;
}

/* ---- Requests ------------------------------------------------------------------------------- */

/* Which places of memory the operation writes. */
static void find_places(const struct layout *l, struct history_op *op) {
    const struct primitive *r = &op->request;
    if (r->kind == PRIMITIVE_XFER && r->body.len > 0) {
        op->first_place = layout_cell_place(l, r->heap_offset / l->cell_bytes);
        op->places = (uint32_t)(r->body.len / l->cell_bytes);
    } else if (r->kind == PRIMITIVE_BULK) {
        for (uint32_t i = 0; i < l->bulks; i++)
            if (l->bulk_offset[i] == r->heap_offset)
                op->first_place = layout_cell_place(l, l->cells + i);
        op->places = 1;
    } else if ((r->kind == PRIMITIVE_COMPARE || r->kind == PRIMITIVE_STANDING) &&
               r->write_variable != NO_VARIABLE) {
        op->first_place = r->write_variable;
        op->places = 1;
    }
}

uint32_t history_request(struct history *h, uint32_t node, uint64_t now,
                         const struct primitive *request) {
    ASSERT(request->tag == history_next_tag(h));
    h->ops = grow(h->ops, h->op_count, &h->op_cap, sizeof *h->ops);
    uint32_t index = h->op_count++;
    struct history_op *op = &h->ops[index];
    *op = (struct history_op){.tag = request->tag,
                              .node = node,
                              .life = h->nodes[node].life,
                              .request = *request,
                              .body_len = (uint32_t)request->body.len,
                              .request_time = now,
                              .request_step = h->step,
                              .culprit = NO_NODE,
                              .end_step = STEP_NEVER};
    void *storage = malloc(nodeset_bytes(h->layout.universe));
    ASSERT(storage);
    nodeset_init(&op->set, h->layout.universe, storage);
    nodeset_copy(&op->set, request->set);
    find_places(&h->layout, op);
    op->request.set = NULL;
    op->request.body = (struct bytes){0};
    add(h, HISTORY_REQUEST, node, now)->op = index;
    return index;
}

void history_set(struct history *h, uint32_t node, uint64_t now, uint32_t variable,
                 uint64_t value) {
    struct history_event *e = add(h, HISTORY_SET, node, now);
    e->place = variable;
    e->value = value;
}

uint64_t history_record(struct history *h, uint32_t node, uint64_t now, uint32_t channel) {
    struct history_event *e = add(h, HISTORY_RECORD, node, now);
    e->place = channel;
    e->value = RECORD_MARK + (h->event_count - 1);
    return e->value;
}

uint32_t history_record_of(const struct history *h, uint64_t stamp) {
    uint64_t index = stamp - RECORD_MARK;
    bool known =
        stamp >= RECORD_MARK && index < h->event_count && h->events[index].kind == HISTORY_RECORD;
    return known ? (uint32_t)index : NO_EVENT_AT;
}

static void complete(struct history *h, uint32_t node, const struct input *in) {
    const struct completion *c = &in->completion;
    struct history_event *e = add(h, HISTORY_COMPLETION, node, in->now);
    e->op = history_op_of(h, c->tag);
    e->outcome = c->outcome;
    e->order = c->order;
    e->place = c->culprit;
    if (e->op == NO_OP)
        return;
    struct history_op *op = &h->ops[e->op];
    if (c->order != 0)
        op->order = c->order;
    if (c->outcome == OUTCOME_UNKNOWN) {
        op->unknown = true;
        return;
    }
    if (op->finals++ > 0)
        return;
    op->outcome = c->outcome;
    op->culprit = c->culprit;
    op->end_time = in->now;
    op->end_step = h->step;
}

/* ---- Lives ---------------------------------------------------------------------------------- */

static void end_life(struct history *h, uint32_t life, uint64_t now, uint64_t step,
                     enum life_end why) {
    struct life *l = &h->lives[life];
    if (l->end_step != STEP_NEVER)
        return;
    l->end_time = now;
    l->end_step = step;
    l->why = why;
}

static void join(struct history *h, uint32_t node, const struct input *in, struct globals globals) {
    struct history_node *n = &h->nodes[node];
    uint64_t since = n->boot_step;
    if (n->life != NO_LIFE) {
        end_life(h, n->life, in->now, h->step, LIFE_REJOINED);
        if (h->lives[n->life].end_step > since)
            since = h->lives[n->life].end_step;
    }
    h->lives = grow(h->lives, h->life_count, &h->life_cap, sizeof *h->lives);
    n->life = h->life_count++;
    struct life *l = &h->lives[n->life];
    *l = (struct life){.node = node,
                       .epoch = in->joined.epoch,
                       .incarnation = in->joined.incarnation,
                       .order = in->joined.order,
                       .begin_time = in->now,
                       .begin_step = h->step,
                       .since_step = since,
                       .end_step = STEP_NEVER};
    size_t bytes = h->layout.variables * sizeof(uint64_t);
    l->variables = malloc(bytes);
    ASSERT(l->variables);
    memcpy(l->variables, globals.variables, bytes);
    memset(n->seen, 0, layout_places(&h->layout) * sizeof(uint64_t));
    memcpy(n->seen, globals.variables, bytes);
    if (node == h->layout.root) {
        h->root_life = n->life;
        h->collected = false;
    } else if (l->epoch < h->collected_epoch || l->order < n->down_order) {
        end_life(h, n->life, in->now, h->step, LIFE_STILLBORN);
    }
    add(h, HISTORY_JOINED, node, in->now)->order = in->joined.order;
}

/* The first word of a new root: whoever it does not name ended with the root before. */
static void collect(struct history *h, const struct nodeset *survivors) {
    h->collected = true;
    h->collected_epoch = h->lives[h->root_life].epoch;
    for (uint32_t n = 0; n < h->layout.universe; n++) {
        uint32_t life = h->nodes[n].life;
        if (life == NO_LIFE || n == h->layout.root || nodeset_has(survivors, n))
            continue;
        if (h->lives[life].epoch == h->collected_epoch)
            continue; /* has joined the new epoch already */
        end_life(h, life, h->root_crash_time, h->root_crash_step, LIFE_NOT_COLLECTED);
    }
}

/* That a node is down may be said of its life before, when the next one has begun already: then the
 * word that it is up, with the order of its join, follows in the same step. */
static void revive(struct history *h, uint32_t node, uint64_t order) {
    uint32_t life = h->nodes[node].life;
    if (life == NO_LIFE)
        return;
    struct life *l = &h->lives[life];
    if (l->why == LIFE_GIVEN_UP && l->end_step == h->step && l->order == order) {
        l->why = LIFE_OPEN;
        l->end_step = STEP_NEVER;
    }
}

static void hear_nodes(struct history *h, uint32_t node, const struct input *in) {
    if (node != h->layout.root || h->root_life == NO_LIFE)
        return;
    const struct input_nodes *nodes = &in->nodes;
    NODESET_EACH (n, nodes->nodes) {
        struct history_event *e = add(h, nodes->up ? HISTORY_UP : HISTORY_DOWN, node, in->now);
        e->place = n;
        e->order = nodes->order;
        if (nodes->up) {
            revive(h, n, nodes->order);
            continue;
        }
        h->nodes[n].down_order = nodes->order;
        uint32_t life = h->nodes[n].life;
        if (life != NO_LIFE && h->lives[life].order <= nodes->order)
            end_life(h, life, in->now, h->step, LIFE_GIVEN_UP);
    }
    if (nodes->up && !h->collected)
        collect(h, nodes->nodes);
}

static void fence(struct history *h, uint32_t node, uint64_t now) {
    add(h, HISTORY_FENCED, node, now);
    struct history_node *n = &h->nodes[node];
    if (n->life == NO_LIFE)
        return;
    end_life(h, n->life, now, h->step, LIFE_FENCED);
    n->life = NO_LIFE;
    n->boot_step = h->step;
}

void history_crash(struct history *h, uint32_t node, uint64_t now) {
    add(h, HISTORY_CRASH, node, now);
    struct history_node *n = &h->nodes[node];
    if (n->life == NO_LIFE)
        return;
    end_life(h, n->life, now, h->step, LIFE_CRASHED);
    n->life = NO_LIFE;
    if (node != h->layout.root)
        return;
    if (h->collected) {
        h->root_crash_step = h->step;
        h->root_crash_time = now;
    }
    h->root_life = NO_LIFE;
}

void history_fault(struct history *h, uint32_t node, uint64_t now, const char *words) {
    add(h, HISTORY_FAULT, node, now)->words = words;
}

/* ---- What is heard and seen ----------------------------------------------------------------- */

static void hear_signal(struct history *h, uint32_t node, const struct input *in) {
    struct history_event *e = add(h, HISTORY_SIGNAL, node, in->now);
    e->place = in->signal.event;
    e->order = in->signal.order;
    e->offset = in->signal.heap_offset;
    e->len = in->signal.len;
}

static void hear_strobe(struct history *h, uint32_t node, const struct input *in) {
    struct history_event *e = add(h, HISTORY_STROBE, node, in->now);
    e->place = in->strobe.channel;
    e->order = in->strobe.number;
    e->value = in->strobe.body.len >= 8 ? load_le64(in->strobe.body.at) : 0;
}

static void hear_reply(struct history *h, uint32_t node, uint64_t now, uint32_t op,
                       const struct reply *r) {
    struct history_event *e = add(h, HISTORY_REPLY, node, now);
    e->op = op;
    e->place = r->node;
    e->torn = r->record.len < 8 || r->record.len % 8 != 0;
    e->value = e->torn ? 0 : load_le64(r->record.at);
    for (size_t i = 8; i < r->record.len && !e->torn; i += 8)
        e->torn = load_le64(r->record.at + i) != e->value;
}

/* A gather counts as done when nobody is missing. */
static void hear_gathered(struct history *h, uint32_t node, const struct input *in) {
    const struct input_gathered *g = &in->gathered;
    uint32_t op = history_op_of(h, g->tag);
    NODESET_EACH (n, g->missing) {
        struct history_event *e = add(h, HISTORY_MISSING, node, in->now);
        e->op = op;
        e->place = n;
    }
    struct reply r;
    for (size_t at = 0; reply_next(g->records, &at, &r);)
        hear_reply(h, node, in->now, op, &r);
    struct input end = {.kind = INPUT_COMPLETION, .now = in->now};
    end.completion =
        (struct completion){.tag = g->tag,
                            .outcome = nodeset_empty(g->missing) ? OUTCOME_DONE : OUTCOME_FAILED,
                            .culprit = nodeset_first(g->missing)};
    complete(h, node, &end);
}

void history_input(struct history *h, uint32_t node, const struct input *in,
                   struct globals globals) {
    switch (in->kind) {
    case INPUT_BOOT:
        h->nodes[node].boot_step = h->step;
        add(h, HISTORY_BOOT, node, in->now);
        break;
    case INPUT_JOINED:
        join(h, node, in, globals);
        break;
    case INPUT_FENCED:
        fence(h, node, in->now);
        break;
    case INPUT_NODES:
        hear_nodes(h, node, in);
        break;
    case INPUT_COMPLETION:
        complete(h, node, in);
        break;
    case INPUT_SIGNAL:
        hear_signal(h, node, in);
        break;
    case INPUT_STROBE:
        hear_strobe(h, node, in);
        break;
    case INPUT_GATHERED:
        hear_gathered(h, node, in);
        break;
    default:
        break;
    }
}

static void see(struct history *h, uint32_t node, uint64_t now, uint32_t place, uint64_t value,
                bool torn) {
    uint64_t *seen = &h->nodes[node].seen[place];
    if (*seen == (torn ? TORN : value))
        return;
    struct history_event *e = add(h, HISTORY_CHANGE, node, now);
    e->place = place;
    e->old = *seen;
    e->value = value;
    e->torn = torn;
    *seen = torn ? TORN : value;
}

/* Looks at both ends of every cell, and at all words of a cell whose first word is new. */
static void see_heap(struct history *h, uint32_t node, uint64_t now, const uint8_t *heap) {
    const struct layout *l = &h->layout;
    for (uint32_t c = 0; c < l->cells + l->bulks; c++) {
        const uint8_t *cell = heap + layout_cell_offset(l, c);
        uint32_t len = layout_cell_len(l, c);
        uint32_t place = layout_cell_place(l, c);
        uint64_t value = load_le64(cell);
        bool torn = load_le64(cell + len - 8) != value;
        if (value == h->nodes[node].seen[place] && !torn)
            continue;
        for (uint32_t i = 8; i < len && !torn; i += 8)
            torn = load_le64(cell + i) != value;
        see(h, node, now, place, value, torn);
    }
}

void history_observe(struct history *h, uint32_t node, uint64_t now, struct globals globals,
                     const uint8_t *heap, uint64_t epoch) {
    struct history_node *n = &h->nodes[node];
    if (epoch != n->epoch) {
        struct history_event *e = add(h, HISTORY_EPOCH, node, now);
        e->old = n->epoch;
        e->value = epoch;
        n->epoch = epoch;
    }
    if (n->life != NO_LIFE) {
        for (uint32_t v = 0; v < h->layout.variables; v++)
            see(h, node, now, v, globals.variables[v], false);
        for (uint32_t v = 0; v < h->layout.events; v++)
            see(h, node, now, layout_event_place(&h->layout, v), globals.events[v], false);
        see_heap(h, node, now, heap);
    }
    h->step++;
}
