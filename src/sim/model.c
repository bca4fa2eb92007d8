/* SPDX-License-Identifier: MIT */
/* The model's time, nodes and daemons: see model.h. */
#include "sim/model_inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "sim/idle.h"

/* Room for the effects of one step of a daemon. Untouched pages cost nothing. */
enum { EFFECTS_MAX = 16384 };
#define EFFECT_BYTES_MAX (64 * MIB)

enum { AGENDA_FIRST = 1024 };

/* ---- construction ---- */

static struct nodeset *set_at(struct model *m, uint32_t index) {
    struct nodeset *sets[] = {&m->members,   &m->dead,    &m->joiners, &m->joined,
                              &m->listeners, &m->scratch, &m->scratch2};
    return index < sizeof sets / sizeof *sets ? sets[index] : NULL;
}

static bool make_sets(struct model *m) {
    uint32_t count = 0;
    while (set_at(m, count) != NULL)
        count++;
    size_t words = nodeset_bytes(m->node_count) / 8;
    m->set_storage = calloc(count * words, 8);
    for (uint32_t i = 0; m->set_storage != NULL && i < count; i++)
        nodeset_init(set_at(m, i), m->node_count, m->set_storage + i * words);
    return m->set_storage != NULL;
}

static bool reserve(struct model *m) {
    m->nodes = calloc(m->node_count, sizeof *m->nodes);
    m->memory = memory_new(&m->config.prim.limits);
    m->effect_list = malloc(EFFECTS_MAX * sizeof(struct effect));
    m->effect_bytes = malloc(EFFECT_BYTES_MAX);
    m->agenda_array = malloc(AGENDA_FIRST * sizeof(struct heap_item *));
    if (m->nodes == NULL || m->memory == NULL || m->effect_list == NULL ||
        m->effect_bytes == NULL || m->agenda_array == NULL)
        return false;
    heap_init(&m->agenda, m->agenda_array, AGENDA_FIRST);
    effects_init(&m->effects, m->effect_list, EFFECTS_MAX, m->effect_bytes, EFFECT_BYTES_MAX);
    return make_sets(m) && ledger_init(m) == 0;
}

struct model *model_new(const struct model_config *config) {
    ASSERT(config->cost.tree.nodes == config->prim.limits.nodes);
    struct model *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->config = *config;
    m->node_count = limits_universe(&config->prim.limits);
    m->root = NO_NODE;
    random_init(&m->lives, config->seed);
    survey_init(m);
    if (!reserve(m)) {
        model_free(m);
        return NULL;
    }
    return m;
}

static void free_node(struct model *m, struct model_node *n) {
    while (n->timers != NULL) {
        struct model_timer *t = n->timers;
        n->timers = t->next;
        model_cancel(m, &t->due);
        free(t);
    }
    while (n->buffers != NULL) {
        struct model_buffer *b = n->buffers;
        n->buffers = b->next;
        free(b->at);
        free(b);
    }
    free(n->records);
    n->records = NULL;
}

void model_free(struct model *m) {
    if (m == NULL)
        return;
    for (uint32_t i = 0; m->nodes != NULL && i < m->node_count; i++)
        free_node(m, &m->nodes[i]);
    ledger_fini(m);
    survey_fini(m);
    struct heap_item *item;
    while (m->agenda_array != NULL && (item = heap_pop(&m->agenda)) != NULL)
        free(CONTAINER_OF(item, struct due, item));
    free(m->agenda_array);
    free(m->effect_list);
    free(m->effect_bytes);
    free(m->set_storage);
    memory_free(m->memory);
    free(m->nodes);
    free(m);
}

/* ---- the agenda ---- */

void model_schedule(struct model *m, struct due *d, uint64_t at) {
    if (at < m->now)
        at = m->now;
    if (heap_item_queued(&d->item)) {
        heap_move(&m->agenda, &d->item, at, m->sequence++);
        return;
    }
    d->item.key = at;
    d->item.tie = m->sequence++;
    if (heap_push(&m->agenda, &d->item) == 0)
        return;
    uint32_t cap = m->agenda.cap * 2;
    m->agenda_array = realloc(m->agenda_array, cap * sizeof(struct heap_item *));
    ASSERT(m->agenda_array != NULL);
    m->agenda.at = m->agenda_array;
    m->agenda.cap = cap;
    int r = heap_push(&m->agenda, &d->item);
    ASSERT(r == 0);
}

void model_cancel(struct model *m, struct due *d) {
    if (heap_item_queued(&d->item))
        heap_remove(&m->agenda, &d->item);
}

void model_note(struct model *m, enum due_kind kind, uint32_t node, uint64_t number, uint64_t at) {
    struct due *d = calloc(1, sizeof *d);
    ASSERT(d != NULL);
    d->kind = (uint8_t)kind;
    d->node = node;
    d->life = m->nodes[node].boots;
    d->number = number;
    model_schedule(m, d, at);
}

static bool alive(const struct model *m, const struct due *d) {
    return m->nodes[d->node].up && m->nodes[d->node].boots == d->life;
}

static void happen(struct model *m, struct due *d) {
    struct input in = {.now = m->now};
    switch ((enum due_kind)d->kind) {
    case DUE_OP:
        ledger_due(m, d);
        return;
    case DUE_SURVEY:
        survey_due(m, d);
        return;
    case DUE_TIMER:
        in.kind = INPUT_TIMER;
        in.timer.id = CONTAINER_OF(d, struct model_timer, due)->id;
        model_feed(m, d->node, &in);
        return;
    case DUE_DURABLE:
        in.kind = INPUT_DURABLE;
        in.durable.ticket = d->number;
        if (alive(m, d))
            model_feed(m, d->node, &in);
        break;
    case DUE_MAIL:
        post_due(m, d);
        break;
    case DUE_DOWN: /* of a node that is not alive */
        census_due(m, d);
        break;
    case DUE_SETTLE:
    case DUE_JOIN:
    case DUE_OPEN:
    case DUE_TICK:
    case DUE_WAVE:
        if (alive(m, d))
            census_due(m, d);
        break;
    }
    free(d);
}

bool model_step(struct model *m) {
    struct heap_item *item = heap_pop(&m->agenda);
    if (item == NULL)
        return false;
    ASSERT(item->key >= m->now);
    m->now = item->key;
    m->counts.events++;
    happen(m, CONTAINER_OF(item, struct due, item));
    return true;
}

void model_run_until(struct model *m, uint64_t time) {
    const struct heap_item *item;
    while ((item = heap_peek(&m->agenda)) != NULL && item->key <= time)
        model_step(m);
    if (m->now < time)
        m->now = time;
}

/* ---- lives ---- */

void model_boot(struct model *m, uint32_t node, bool root) {
    ASSERT(node < m->node_count);
    struct model_node *n = &m->nodes[node];
    ASSERT(!n->up && (!root || node >= m->config.prim.limits.nodes));
    n->up = true;
    n->boots++;
    n->asks = 0;
    memory_clear(m->memory, node);
    n->daemon = idle_machine();
    if (m->config.daemon != NULL)
        n->daemon = m->config.daemon(m->config.context, node, memory_globals(m->memory, node));
    n->idle = idle_is(&n->daemon);
    if (!n->idle)
        nodeset_add(&m->listeners, node);
    uint32_t epoch = root ? ++m->epoch : m->epoch;
    struct input in = {.kind = INPUT_BOOT, .now = m->now};
    in.boot = (struct input_boot){.node = node,
                                  .boots = n->boots,
                                  .epoch = epoch,
                                  .root = root,
                                  .random_seed = random_u64(&m->lives)};
    model_feed(m, node, &in);
    census_booted(m, node, root);
}

void model_crash(struct model *m, uint32_t node) {
    ASSERT(node < m->node_count);
    struct model_node *n = &m->nodes[node];
    if (!n->up)
        return;
    n->up = false;
    free_node(m, n);
    nodeset_remove(&m->listeners, node);
    census_crashed(m, node);
}

/* ---- daemons ---- */

static void set_timer(struct model *m, uint32_t node, uint32_t id, uint64_t at) {
    struct model_node *n = &m->nodes[node];
    struct model_timer *t = n->timers;
    while (t != NULL && t->id != id)
        t = t->next;
    if (at == 0) {
        if (t != NULL)
            model_cancel(m, &t->due);
        return;
    }
    if (t == NULL) {
        t = calloc(1, sizeof *t);
        ASSERT(t != NULL);
        t->due.kind = DUE_TIMER;
        t->due.node = node;
        t->id = id;
        t->next = n->timers;
        n->timers = t;
    }
    model_schedule(m, &t->due, at);
}

struct model_buffer *model_find_buffer(const struct model *m, uint32_t node, uint32_t number) {
    struct model_buffer *b = m->nodes[node].buffers;
    while (b != NULL && b->number != number)
        b = b->next;
    return b;
}

uint8_t *model_buffer(struct model *m, uint32_t node, uint32_t buffer, uint64_t bytes) {
    ASSERT(node < m->node_count && m->nodes[node].up);
    struct model_buffer *b = model_find_buffer(m, node, buffer);
    if (b == NULL) {
        b = calloc(1, sizeof *b);
        ASSERT(b != NULL);
        b->number = buffer;
        b->bytes = bytes;
        b->at = calloc(1, bytes ? bytes : 1);
        ASSERT(b->at != NULL);
        b->next = m->nodes[node].buffers;
        m->nodes[node].buffers = b;
    }
    ASSERT(b->bytes >= bytes);
    return b->at;
}

static void close_buffer(struct model *m, uint32_t node, uint32_t number) {
    struct model_buffer **at = &m->nodes[node].buffers;
    while (*at != NULL && (*at)->number != number)
        at = &(*at)->next;
    ASSERT(*at != NULL);
    struct model_buffer *b = *at;
    *at = b->next;
    free(b->at);
    free(b);
}

static void carry_out(struct model *m, uint32_t node, const struct effect *e) {
    switch (e->kind) {
    case EFFECT_TIMER:
        set_timer(m, node, e->timer.id, e->timer.at);
        break;
    case EFFECT_PERSIST:
        model_note(m, DUE_DURABLE, node, e->persist.ticket,
                   m->now + m->config.cost.link.durable_ns);
        break;
    case EFFECT_BUFFER_OPEN:
        model_buffer(m, node, e->buffer.buffer, e->buffer.bytes);
        break;
    case EFFECT_BUFFER_GRANT:
        break; /* there are no links here */
    case EFFECT_BUFFER_CLOSE:
        close_buffer(m, node, e->buffer.buffer);
        break;
    case EFFECT_REQUEST:
        if (e->request.kind == PRIMITIVE_RECORD || e->request.kind == PRIMITIVE_GATHER)
            survey_request(m, node, &e->request);
        else if (e->request.kind == PRIMITIVE_MAIL)
            post_request(m, node, &e->request);
        else
            ledger_request(m, node, &e->request);
        break;
    case EFFECT_NONE:
        break;
    default:
        assert_failed("an effect of a daemon that has no links", __FILE__, __LINE__);
    }
}

void model_feed(struct model *m, uint32_t node, const struct input *in) {
    struct model_node *n = &m->nodes[node];
    if (!n->up || n->idle)
        return;
    effects_clear(&m->effects);
    n->daemon.step(n->daemon.self, in, &m->effects);
    m->counts.steps++;
    for (uint32_t i = 0; i < m->effects.count; i++)
        carry_out(m, node, &m->effects.list[i]);
}

/* ---- what can be seen ---- */

uint64_t model_now(const struct model *m) {
    return m->now;
}

const struct model_counts *model_counts(const struct model *m) {
    return &m->counts;
}

bool model_up(const struct model *m, uint32_t node) {
    ASSERT(node < m->node_count);
    return m->nodes[node].up;
}

bool model_member(const struct model *m, uint32_t node) {
    return model_up(m, node) && nodeset_has(&m->members, node) && !nodeset_has(&m->dead, node);
}

struct globals model_globals(const struct model *m, uint32_t node) {
    if (!model_up(m, node))
        return (struct globals){0};
    return memory_globals(m->memory, node);
}

void model_heap(const struct model *m, uint32_t node, uint32_t offset, struct room to) {
    memory_read(m->memory, node, offset, to);
}
