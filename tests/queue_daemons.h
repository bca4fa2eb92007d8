/* SPDX-License-Identifier: MIT */
/* Daemons that fill and empty remote queues, and check what arrives: for any world.
 *
 * A master pushes numbered messages of recognisable contents and varying length, zero included; a
 * consumer takes them at its own pace and verifies number, order and contents. Both are pure
 * machines; what they find out is in plain structs, which may lie in shared memory. A daemon is made
 * of any number of masters and consumers:
 *
 *     queue_master_init(&m, &config, &result, &arena);
 *     queue_consumer_init(&k, &config, &result);
 *     d = (struct queue_daemon){.masters = {&m}, .master_count = 1};
 *     machine = (struct machine){.self = &d, .step = queue_daemon_step};
 *
 * A consumer needs the address of its node's heap; a daemon is made anew for each life of a node. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "rm/queue.h"

enum { QUEUE_DAEMON_PARTS = 4, QUEUE_DAEMON_MESSAGE_MAX = 1024 };

/* Tags and timers of the masters and consumers of one daemon, by their number in it. */
static inline uint64_t queue_daemon_tag(uint32_t index) {
    return 1000 + (uint64_t)index * QUEUE_TAGS;
}

enum queue_daemon_timer {
    QUEUE_TIMER_MASTER,
    QUEUE_TIMER_PUSH,
    QUEUE_TIMER_READER,
    QUEUE_TIMER_PACE
};

static inline uint32_t queue_daemon_timer(uint32_t index, enum queue_daemon_timer use) {
    return 100 + 4 * index + (uint32_t)use;
}

/* ---- contents ---- */

static inline uint32_t queue_text_len(uint64_t number, uint32_t max) {
    return (uint32_t)(number * 37 % ((uint64_t)max + 1));
}

/* The first byte says whose it is, the others depend on number and place. */
static inline uint8_t queue_text_byte(uint64_t number, uint8_t life, uint32_t i) {
    return i == 0 ? life : (uint8_t)(number * 31 + i * 7u + life * 13u + (number >> 8));
}

/* ---- the master ---- */

struct queue_master_config {
    struct queue_config queue;
    const struct nodeset *nodes;
    uint64_t messages;
    uint8_t life;       /* not 0 */
    bool at_root;       /* begins when all nodes are up; else when it has joined, after the delay */
    uint64_t delay_ns;  /* */
    uint64_t push_ns;   /* between two messages; 0: as fast as the backlog takes them */
    bool wait_consumed; /* finished when everything is consumed, not only delivered */
    uint32_t push_limit; /* messages accepted in one step; 0: any number */
};

struct queue_master_result {
    uint64_t pushed;
    uint64_t delivered;
    uint64_t consumed;
    uint64_t refused; /* pushes, for want of room */
    uint64_t room;    /* news of it */
    uint64_t entered; /* nodes, each time */
    uint64_t lost;
    uint32_t lost_node;
    uint32_t started;
    uint32_t failed;
    uint32_t finished;
    uint64_t started_ns;
    uint64_t finished_ns;
    uint64_t transfers;
    uint64_t compares;
    uint64_t standing;
    uint64_t repeated;
};

struct queue_master {
    struct queue_master_config config;
    struct queue_master_result *result;
    struct queue *queue;
    struct nodeset up;
    struct nodeset some; /* scratch */
    uint32_t push_timer;
    uint64_t push_at;
};

static inline struct nodeset queue_master_set(uint32_t universe, struct arena *a) {
    struct nodeset s;
    nodeset_init(&s, universe, ARENA_TAKE(a, uint64_t, nodeset_bytes(universe) / 8));
    return s;
}

static inline size_t queue_master_bytes(const struct queue_master_config *c) {
    return queue_bytes(&c->queue) + 2 * nodeset_bytes(c->queue.universe) + 64;
}

static inline void queue_master_init(struct queue_master *m, const struct queue_master_config *c,
                                     struct queue_master_result *result, struct arena *a) {
    ASSERT(queue_message_max(&c->queue.shape) <= QUEUE_DAEMON_MESSAGE_MAX);
    *m = (struct queue_master){.config = *c, .result = result};
    m->queue = queue_new(&c->queue, a);
    m->up = queue_master_set(c->queue.universe, a);
    m->some = queue_master_set(c->queue.universe, a);
    m->push_timer = c->queue.timer + QUEUE_TIMER_PUSH - QUEUE_TIMER_MASTER;
}

static inline bool queue_master_push(struct queue_master *m, uint64_t now, struct effects *out) {
    uint64_t number = m->result->pushed + 1;
    uint8_t text[QUEUE_DAEMON_MESSAGE_MAX];
    uint32_t len = queue_text_len(number, queue_message_max(&m->config.queue.shape));
    for (uint32_t i = 0; i < len; i++)
        text[i] = queue_text_byte(number, m->config.life, i);
    uint64_t given;
    if (queue_push(m->queue, bytes_of(text, len), now, out, &given) < 0) {
        m->result->refused++;
        return false;
    }
    ASSERT(given == number);
    m->result->pushed++;
    return true;
}

static inline void queue_master_fill(struct queue_master *m, uint64_t now, struct effects *out) {
    const struct queue_master_config *c = &m->config;
    uint32_t limit = c->push_limit;
    while (m->result->started && m->result->pushed < c->messages && m->push_at <= now) {
        if (!queue_master_push(m, now, out))
            return; /* there will be news of room */
        if (c->push_ns > 0 || (c->push_limit > 0 && --limit == 0)) {
            m->push_at = now + (c->push_ns > 0 ? c->push_ns : 1);
            effects_timer(out, m->push_timer, m->push_at);
        }
        if (m->result->pushed == c->messages && c->wait_consumed)
            queue_drain(m->queue, now, out);
    }
}

static inline void queue_master_start(struct queue_master *m, uint64_t now, struct effects *out) {
    if (!m->result->started) {
        m->result->started = 1;
        m->result->started_ns = now;
    }
    queue_add(m->queue, m->config.at_root ? &m->up : m->config.nodes, now, out);
}

static inline void queue_master_nodes(struct queue_master *m, const struct input *in,
                                      struct effects *out) {
    nodeset_and(&m->some, in->nodes.nodes, m->config.nodes);
    if (in->nodes.up)
        nodeset_unite(&m->up, &m->some);
    else
        nodeset_subtract(&m->up, &m->some);
    bool all = nodeset_count(&m->up) == nodeset_count(m->config.nodes);
    if (in->nodes.up && (m->result->started || all))
        queue_master_start(m, in->now, out);
}

static inline void queue_master_report(struct queue_master *m, const struct queue_news *news,
                                       uint64_t now) {
    struct queue_master_result *r = m->result;
    struct queue_status s;
    queue_status(m->queue, &s);
    r->delivered = s.delivered;
    r->consumed = s.consumed;
    r->room += news->room;
    r->entered += news->entered;
    r->lost += news->lost;
    if (news->lost > 0)
        r->lost_node = news->lost_node;
    r->failed = s.failed;
    r->transfers = s.transfers;
    r->compares = s.compares;
    r->standing = s.standing;
    r->repeated = s.repeated;
    uint64_t end = m->config.wait_consumed ? s.consumed : s.delivered;
    if (!r->finished && r->started && end == m->config.messages) {
        r->finished = 1;
        r->finished_ns = now;
    }
}

static inline void queue_master_step(struct queue_master *m, const struct input *in,
                                     struct effects *out) {
    struct queue_news news;
    bool mine = queue_step(m->queue, in, out, &news);
    if (in->kind == INPUT_NODES && m->config.at_root)
        queue_master_nodes(m, in, out);
    if (in->kind == INPUT_JOINED && !m->config.at_root && !m->result->started)
        effects_timer(out, m->push_timer, in->now + m->config.delay_ns + 1);
    bool push = in->kind == INPUT_TIMER && in->timer.id == m->push_timer;
    if (push && !m->config.at_root && !m->result->started)
        queue_master_start(m, in->now, out);
    if (mine || push)
        queue_master_fill(m, in->now, out);
    if (mine)
        queue_master_report(m, &news, in->now);
}

/* ---- a consumer ---- */

struct queue_consumer_config {
    struct queue_reader_config reader;
    uint64_t pace_ns; /* time that it takes to consume a batch; 0: none, all at once */
    uint32_t batch;   /* messages; 0: all that are there */
};

struct queue_consumer_result {
    uint64_t consumed;   /* in all */
    uint64_t last;       /* number */
    uint64_t first;      /* number it has begun with, the last time */
    uint64_t begun;      /* how often */
    uint64_t wrong;      /* contents or lengths */
    uint64_t misplaced;  /* not the one after the last */
    uint64_t empty;      /* of no length */
    uint64_t sets;       /* how often it has told what it has consumed */
    uint64_t repeated;   /* sent once more by the master, passed over */
    uint32_t fault;      /* enum queue_fault */
    uint8_t life;        /* whose the messages are */
    uint64_t lives[256]; /* messages by life of the master; empty ones count for the last seen */
};

struct queue_consumer {
    struct queue_consumer_config config;
    struct queue_consumer_result *result;
    struct queue_reader reader;
    bool busy;
};

static inline void queue_consumer_init(struct queue_consumer *k,
                                       const struct queue_consumer_config *c,
                                       struct queue_consumer_result *result) {
    *k = (struct queue_consumer){.config = *c, .result = result};
    queue_reader_init(&k->reader, &c->reader);
}

static inline void queue_consumer_verify(struct queue_consumer *k, const struct queue_message *m) {
    struct queue_consumer_result *r = k->result;
    uint32_t max = queue_message_max(&k->config.reader.shape);
    if (m->first) {
        r->begun++;
        r->first = m->number;
        r->life = 0;
    } else {
        r->misplaced += m->number != r->last + 1;
    }
    if (m->bytes.len > 0 && r->life == 0)
        r->life = m->bytes.at[0];
    bool right = m->bytes.len == queue_text_len(m->number, max);
    for (uint32_t i = 0; right && i < m->bytes.len; i++)
        right = m->bytes.at[i] == queue_text_byte(m->number, r->life, i);
    r->wrong += !right;
    r->empty += m->bytes.len == 0;
    r->consumed++;
    r->lives[r->life]++;
    r->last = m->number;
}

static inline void queue_consume(struct queue_consumer *k, struct effects *out) {
    struct queue_message m;
    uint32_t count = 0;
    uint32_t most = k->config.pace_ns == 0 || k->config.batch == 0 ? UINT32_MAX : k->config.batch;
    while (count < most && queue_pop(&k->reader, &m)) {
        queue_consumer_verify(k, &m);
        count++;
    }
    if (count > 0) {
        queue_done(&k->reader, k->result->last, out);
        k->result->sets++;
    }
}

static inline void queue_consumer_step(struct queue_consumer *k, const struct input *in,
                                       struct effects *out) {
    uint32_t pace = k->config.reader.timer + QUEUE_TIMER_PACE - QUEUE_TIMER_READER;
    bool news = queue_reader_step(&k->reader, in, out);
    bool due = in->kind == INPUT_TIMER && in->timer.id == pace;
    if (due) {
        k->busy = false;
        queue_consume(k, out);
        news = true;
    }
    if (news && k->config.pace_ns == 0) {
        queue_consume(k, out);
    } else if (news && !k->busy && queue_ready(&k->reader)) {
        k->busy = true;
        effects_timer(out, pace, in->now + k->config.pace_ns);
    }
    k->result->fault = (uint32_t)k->reader.fault;
    k->result->repeated = k->reader.repeated;
}

/* ---- a daemon of both ---- */

struct queue_daemon {
    struct queue_master *masters[QUEUE_DAEMON_PARTS];
    struct queue_consumer *consumers[QUEUE_DAEMON_PARTS];
    uint32_t master_count;
    uint32_t consumer_count;
};

static inline void queue_daemon_step(void *self, const struct input *in, struct effects *out) {
    struct queue_daemon *d = self;
    for (uint32_t i = 0; i < d->consumer_count; i++)
        queue_consumer_step(d->consumers[i], in, out);
    for (uint32_t i = 0; i < d->master_count; i++)
        queue_master_step(d->masters[i], in, out);
}
