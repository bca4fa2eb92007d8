/* SPDX-License-Identifier: MIT */
/* The driver: see driver.h.
 *
 * A wave is timed from the tick, which the primitives tell. */
#include "sim/driver.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/units.h"
#include "sim/idle.h"

enum { TIMER_BEGIN = 1 };

/* The first wait before beginning; each further one is twice as long, up to a period. */
#define WAIT_NS NS_PER_MS

/* The buffer that bulk transfers are made from. */
enum { BUFFER = 1 };

struct driver {
    struct driver_config config;
    struct nodeset up;
    struct nodeset all;
    uint64_t *storage; /* of both sets */
    uint64_t up_ns;
    bool free; /* to begin */
    uint64_t wait_ns;
    uint32_t task;
    uint32_t asked;      /* operations of this task */
    uint64_t *asked_ns;  /* when, by number of the run */
    uint64_t buffer_len; /* of the largest bulk transfer */
    struct driver_result *results;
};

static void free_results(struct driver *d) {
    for (uint32_t i = 0; d->results != NULL && i < d->config.task_count; i++)
        free(d->results[i].latency_ns);
    free(d->results);
}

static bool reserve(struct driver *d) {
    const struct driver_config *c = &d->config;
    uint32_t universe = limits_universe(&c->limits);
    uint32_t most = 1;
    bool ok = true;
    d->storage = calloc(2, nodeset_bytes(universe));
    d->results = calloc(c->task_count ? c->task_count : 1, sizeof *d->results);
    for (uint32_t i = 0; d->results != NULL && i < c->task_count; i++) {
        const struct driver_task *t = &c->tasks[i];
        ASSERT(t->runs > 0);
        d->results[i].latency_ns = calloc(t->runs, sizeof(uint64_t));
        ok = ok && d->results[i].latency_ns != NULL;
        most = t->runs > most ? t->runs : most;
        if (t->request.kind == PRIMITIVE_BULK && t->request.buffer_bytes > d->buffer_len)
            d->buffer_len = t->request.buffer_bytes;
    }
    d->asked_ns = calloc(most, sizeof *d->asked_ns);
    return ok && d->storage != NULL && d->results != NULL && d->asked_ns != NULL;
}

struct driver *driver_new(const struct driver_config *config) {
    struct driver *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    d->config = *config;
    d->task = NO_TASK;
    if (!reserve(d)) {
        driver_free(d);
        return NULL;
    }
    uint32_t universe = limits_universe(&config->limits);
    nodeset_init(&d->up, universe, d->storage);
    nodeset_init(&d->all, universe, d->storage + nodeset_bytes(universe) / 8);
    nodeset_add_range(&d->all, 0, config->limits.nodes - 1);
    return d;
}

void driver_free(struct driver *d) {
    if (d == NULL)
        return;
    free_results(d);
    free(d->asked_ns);
    free(d->storage);
    free(d);
}

/* ---- tasks ---- */

static const struct driver_task *current(const struct driver *d) {
    return d->task < d->config.task_count ? &d->config.tasks[d->task] : NULL;
}

static void ask(struct driver *d, uint64_t now, struct effects *out) {
    const struct driver_task *t = current(d);
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = t->request;
    e->request.tag = (uint64_t)d->task << 32 | d->asked;
    e->request.set = t->request.set != NULL ? t->request.set : effects_copy_set(out, &d->all);
    e->request.buffer = BUFFER;
    d->asked_ns[d->asked++] = now;
}

/* As many as may be under way at once. */
static void ask_on(struct driver *d, uint64_t now, struct effects *out) {
    const struct driver_task *t = current(d);
    uint32_t most = t->in_flight > 1 ? t->in_flight : 1;
    while (d->asked < t->runs && d->asked - d->results[d->task].finished < most)
        ask(d, now, out);
}

static void begin(struct driver *d, uint32_t task, uint64_t now, struct effects *out) {
    d->task = task;
    d->asked = 0;
    const struct driver_task *t = current(d);
    if (t == NULL)
        return;
    d->results[task].begin_ns = now;
    if (!t->wave)
        ask_on(d, now, out);
}

/* One run of the current task is over. */
static void finish(struct driver *d, uint32_t run, uint64_t took, uint64_t now,
                   struct effects *out) {
    struct driver_result *r = &d->results[d->task];
    r->latency_ns[run] = took;
    r->finished++;
    r->end_ns = now;
    if (r->finished == current(d)->runs)
        begin(d, d->task + 1, now, out);
    else if (!current(d)->wave)
        ask_on(d, now, out);
}

/* ---- inputs ---- */

static void on_boot(struct driver *d, struct effects *out) {
    if (d->buffer_len == 0)
        return;
    struct effect *e = effects_add(out, EFFECT_BUFFER_OPEN);
    e->buffer = (struct effect_buffer){.buffer = BUFFER, .bytes = d->buffer_len};
}

static void on_begin(struct driver *d, uint64_t now, struct effects *out) {
    if (d->free) {
        begin(d, 0, now, out);
        return;
    }
    effects_timer(out, TIMER_BEGIN, now + d->wait_ns);
    if (2 * d->wait_ns <= d->config.period_ns)
        d->wait_ns *= 2;
}

static void on_nodes(struct driver *d, const struct input *in, struct effects *out) {
    if (in->nodes.up)
        nodeset_unite(&d->up, in->nodes.nodes);
    else
        nodeset_subtract(&d->up, in->nodes.nodes);
    if (d->up_ns != 0 || !nodeset_covers(&d->up, &d->all))
        return;
    d->up_ns = in->now;
    d->wait_ns = WAIT_NS;
    on_begin(d, in->now, out);
}

static void on_completion(struct driver *d, const struct input *in, struct effects *out) {
    const struct completion *c = &in->completion;
    if (c->outcome == OUTCOME_UNKNOWN || current(d) == NULL || c->tag >> 32 != d->task)
        return;
    uint32_t run = (uint32_t)c->tag;
    d->results[d->task].outcomes[c->outcome]++;
    finish(d, run, in->now - d->asked_ns[run], in->now, out);
}

static void on_wave(struct driver *d, const struct input *in, struct effects *out) {
    const struct driver_task *t = current(d);
    if (t == NULL || !t->wave || !in->wave.complete || in->wave.nodes <= d->config.limits.nodes)
        return;
    struct driver_result *r = &d->results[d->task];
    if (in->wave.started_ns < r->begin_ns)
        return; /* of before our time: operations may have been in its way */
    r->outcomes[OUTCOME_DONE]++;
    finish(d, r->finished, in->now - in->wave.started_ns, in->now, out);
}

static void step(void *self, const struct input *in, struct effects *out) {
    struct driver *d = self;
    switch (in->kind) {
    case INPUT_BOOT:
        on_boot(d, out);
        break;
    case INPUT_TIMER:
        on_begin(d, in->now, out);
        break;
    case INPUT_NODES:
        on_nodes(d, in, out);
        break;
    case INPUT_COMPLETION:
        on_completion(d, in, out);
        break;
    case INPUT_WAVE:
        on_wave(d, in, out);
        break;
    default:
        break;
    }
}

struct machine driver_daemon(void *context, uint32_t node, struct globals globals) {
    struct driver *d = context;
    (void)globals;
    if (node != d->config.root)
        return idle_machine();
    return (struct machine){.self = d, .step = step};
}

/* ---- results ---- */

uint32_t driver_task(const struct driver *d) {
    return d->task;
}

bool driver_finished(const struct driver *d) {
    return d->task == d->config.task_count;
}

const struct driver_result *driver_result(const struct driver *d, uint32_t task) {
    ASSERT(task < d->config.task_count);
    return &d->results[task];
}

uint64_t driver_up_ns(const struct driver *d) {
    return d->up_ns;
}

void driver_let_go(struct driver *d) {
    d->free = true;
}
