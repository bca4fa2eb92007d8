/* SPDX-License-Identifier: MIT */
/* Gathers in the model, and the records they bring: see model_inside.h.
 *
 * As in the protocol: only the acting root may gather, and only so many times at once; a gather is
 * outside the order, costs a round and its bytes, waits for nodes that have crashed until they are
 * given up or its time is over, and brings what the others have stored by then. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "prim/prim.h"
#include "sim/model_inside.h"

enum { LENGTH_BYTES = 2 };

struct survey {
    struct due due; /* node and life are the caller's */
    struct list at;
    uint64_t tag;
    uint32_t channel;
    bool refused;
    bool round_over; /* all who could answer have */
    uint64_t deadline;
    struct nodeset set;
    struct nodeset lost; /* of these, who is no member or was given up */
};

static struct survey *survey_at(struct list *at) {
    return CONTAINER_OF(at, struct survey, at);
}

void survey_init(struct model *m) {
    list_init(&m->surveys);
}

static void free_survey(struct model *m, struct survey *s) {
    model_cancel(m, &s->due);
    list_remove(&s->at);
    m->survey_count--;
    free(s);
}

void survey_fini(struct model *m) {
    while (!list_empty(&m->surveys))
        free_survey(m, survey_at(list_first(&m->surveys)));
}

/* ---- records ---- */

static uint8_t *record_at(const struct model *m, uint32_t node, uint32_t channel) {
    const struct limits *l = &m->config.prim.limits;
    if (m->nodes[node].records == NULL || channel >= l->record_channels)
        return NULL;
    return m->nodes[node].records + (size_t)channel * (LENGTH_BYTES + l->record_bytes);
}

static struct bytes record_of(const struct model *m, uint32_t node, uint32_t channel) {
    const uint8_t *at = record_at(m, node, channel);
    return at == NULL ? (struct bytes){0} : bytes_of(at + LENGTH_BYTES, load_le16(at));
}

static void store(struct model *m, uint32_t node, uint32_t channel, struct bytes record) {
    const struct limits *l = &m->config.prim.limits;
    if (channel >= l->record_channels || record.len > l->record_bytes)
        return;
    if (m->nodes[node].records == NULL)
        m->nodes[node].records = calloc(l->record_channels, LENGTH_BYTES + l->record_bytes);
    uint8_t *at = record_at(m, node, channel);
    ASSERT(at != NULL);
    store_le16(at, (uint16_t)record.len);
    if (record.len > 0)
        memcpy(at + LENGTH_BYTES, record.at, record.len);
}

/* ---- gathers ---- */

static size_t bytes_of_all(const struct model *m, const struct survey *s) {
    size_t bytes = 0;
    NODESET_EACH (node, &s->set) {
        size_t len = record_of(m, node, s->channel).len;
        bytes += len > 0 ? REPLY_HEAD_BYTES + len : 0;
    }
    return bytes;
}

static uint64_t round_ns(const struct model *m, const struct survey *s) {
    uint32_t nodes = m->config.prim.limits.nodes;
    uint32_t count = nodeset_count(&s->set) < nodes ? nodeset_count(&s->set) : nodes;
    return cost_gather_ns(&m->config.cost, bytes_of_all(m, s) / count, count);
}

static bool valid(const struct model *m, uint32_t node, const struct primitive *r) {
    uint32_t channels = m->config.prim.limits.record_channels;
    return node == m->root && m->open && m->survey_count < PRIM_GATHERS_MAX && channels > 0 &&
           (r->channel < channels || r->channel == NO_CHANNEL) && r->set != NULL &&
           r->set->universe == m->node_count && !nodeset_empty(r->set);
}

/* One block: the gather and its sets. */
static struct survey *make(struct model *m, uint32_t node, const struct primitive *r) {
    size_t head = align_up(sizeof(struct survey), 8);
    size_t set = nodeset_bytes(m->node_count);
    struct survey *s = calloc(1, head + 2 * set);
    ASSERT(s != NULL);
    s->due.kind = DUE_SURVEY;
    s->due.node = node;
    s->due.life = m->nodes[node].boots;
    s->tag = r->tag;
    s->channel = r->channel;
    nodeset_init(&s->set, m->node_count, (uint8_t *)s + head);
    nodeset_init(&s->lost, m->node_count, (uint8_t *)s + head + set);
    list_push_back(&m->surveys, &s->at);
    m->survey_count++;
    return s;
}

void survey_request(struct model *m, uint32_t node, const struct primitive *r) {
    if (r->kind == PRIMITIVE_RECORD) {
        store(m, node, r->channel, r->body);
        return;
    }
    bool ok = valid(m, node, r);
    struct survey *s = make(m, node, r);
    s->refused = !ok;
    if (!ok) { /* nobody is asked: it comes back at once */
        model_schedule(m, &s->due, m->now);
        return;
    }
    nodeset_copy(&s->set, r->set);
    nodeset_copy(&s->lost, r->set);
    nodeset_subtract(&s->lost, &m->members);
    s->deadline = units_after(m->now, r->timeout_ns);
    uint64_t over = m->now + round_ns(m, s);
    m->counts.messages += 2 * (uint64_t)nodeset_count(&s->set);
    model_schedule(m, &s->due, over < s->deadline ? over : s->deadline);
}

static void finish(struct model *m, struct survey *s) {
    struct input in = {.kind = INPUT_GATHERED, .now = m->now};
    size_t room = bytes_of_all(m, s), used = 0;
    uint8_t *records = malloc(room + 1);
    ASSERT(records != NULL);
    if (!s->round_over)
        nodeset_copy(&s->lost, &s->set); /* nobody's answer was in time */
    nodeset_subtract(&s->set, &s->lost);
    NODESET_EACH (node, &s->set) {
        struct reply r = {node, record_of(m, node, s->channel)};
        if (r.record.len > 0)
            used += reply_store(room_of(records + used, room - used), &r);
    }
    in.gathered = (struct input_gathered){.tag = s->tag,
                                          .channel = s->channel,
                                          .records = bytes_of(records, used),
                                          .missing = &s->lost};
    list_remove(&s->at); /* the daemon may gather again at once */
    m->survey_count--;
    model_feed(m, s->due.node, &in);
    free(records);
    free(s);
}

static void refuse(struct model *m, struct survey *s) {
    struct input in = {.kind = INPUT_COMPLETION, .now = m->now};
    in.completion =
        (struct completion){.tag = s->tag, .outcome = OUTCOME_REFUSED, .culprit = NO_NODE};
    struct due due = s->due;
    free_survey(m, s);
    if (m->nodes[due.node].boots == due.life)
        model_feed(m, due.node, &in);
}

void survey_due(struct model *m, struct due *d) {
    struct survey *s = CONTAINER_OF(d, struct survey, due);
    if (s->refused) {
        refuse(m, s);
        return;
    }
    bool late = m->now >= s->deadline;
    nodeset_and(&m->scratch2, &s->set, &m->dead);
    nodeset_subtract(&m->scratch2, &s->lost);
    s->round_over = s->round_over || !late;
    if (!late && !nodeset_empty(&m->scratch2)) {
        model_schedule(m, d, s->deadline);
        return;
    }
    nodeset_unite(&s->lost, &m->scratch2);
    finish(m, s);
}

void survey_closed(struct model *m) {
    LIST_EACH_SAFE (at, &m->surveys)
        if (!survey_at(at)->refused)
            free_survey(m, survey_at(at));
}

void survey_given_up(struct model *m, const struct nodeset *gone) {
    LIST_EACH (at, &m->surveys) {
        struct survey *s = survey_at(at);
        if (s->refused || !nodeset_intersects(&s->set, gone))
            continue;
        nodeset_and(&m->scratch2, &s->set, gone);
        nodeset_unite(&s->lost, &m->scratch2);
        if (s->round_over)
            model_schedule(m, &s->due, m->now);
    }
}
