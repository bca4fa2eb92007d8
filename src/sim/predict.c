/* SPDX-License-Identifier: MIT */
/* Predictions for processes of this machine: see predict.h. */
#include "sim/predict.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/units.h"
#include "sim/measure.h"
#include "wire/message.h"

/* The first runs differ from those that follow closely on others. */
enum { RUNS = 15 };

int predict_latency(const struct link_model *model, const struct tree *tree,
                    const struct driver_task *task, uint64_t *ret_ns) {
    struct driver_task t = *task;
    t.runs = RUNS;
    struct measure_config config = {.depth = DEPTH_LINKS,
                                    .tree = *tree,
                                    .link = *model,
                                    .seed = 1,
                                    .tasks = &t,
                                    .task_count = 1};
    struct measure m;
    int r = measure_run(&config, &m);
    if (r < 0)
        return r;
    *ret_ns = measure_median(&m.tasks[0]);
    measure_fini(&m);
    return 0;
}

/* ---- the bare fan-out ---- */

/* As the program that measures it: 64 bytes there, 8 back. Here a header comes on top of that, and
 * the longer message has the shorter body. */
enum { ASK = MESSAGE_TICK, ANSWER = MESSAGE_ACK, TIMER_BEGIN = 1 };

/* Links take a while to come up. */
#define BEGIN_NS NS_PER_S

struct fan {
    uint32_t nodes;
    uint32_t *links; /* of the root, to everybody */
    uint32_t link_count;
    uint32_t answers; /* in this round */
    uint32_t round;
    uint64_t began_ns;
    uint64_t took_ns[RUNS];
};

struct fan_node {
    struct fan *fan;
    uint32_t number;
};

static void fan_ask(struct fan *f, uint64_t now, struct effects *out) {
    f->began_ns = now;
    f->answers = 0;
    effects_send(out, 0, 1, ASK, (struct bytes){0}, (struct bytes){0});
    struct effect *e = &out->list[out->count - 1];
    e->send.links = f->links;
    e->send.link_count = f->link_count;
}

static void fan_answer(struct fan *f, uint64_t now, struct effects *out) {
    if (f->round == RUNS || ++f->answers < f->nodes)
        return;
    f->took_ns[f->round++] = now - f->began_ns;
    if (f->round < RUNS)
        fan_ask(f, now, out);
}

static void fan_step(void *self, const struct input *in, struct effects *out) {
    const struct fan_node *n = self;
    struct fan *f = n->fan;
    bool root = n->number == f->nodes;
    if (in->kind == INPUT_BOOT && root) {
        effects_timer(out, TIMER_BEGIN, in->now + BEGIN_NS);
    } else if (in->kind == INPUT_BOOT) {
        struct effect *e = effects_add(out, EFFECT_OPEN);
        e->open = (struct effect_open){f->nodes, PURPOSE_TREE, 1};
    } else if (in->kind == INPUT_LINK_UP && root) {
        f->links[f->link_count++] = in->link.link;
    } else if (in->kind == INPUT_TIMER && f->link_count == f->nodes) {
        fan_ask(f, in->now, out);
    } else if (in->kind == INPUT_MESSAGE && root) {
        fan_answer(f, in->now, out);
    } else if (in->kind == INPUT_MESSAGE) {
        effects_send(out, in->message.link, 1, ANSWER, (struct bytes){0}, (struct bytes){0});
    }
}

static struct machine fan_machine(void *context, uint32_t node, struct arena *a) {
    struct fan_node *n = ARENA_TAKE(a, struct fan_node, 1);
    *n = (struct fan_node){.fan = context, .number = node};
    return (struct machine){.self = n, .step = fan_step};
}

static int fan_run(const struct link_model *model, struct fan *f) {
    struct world_config c = {.link = *model,
                             .seed = 1,
                             .context = f,
                             .lower = fan_machine,
                             .lower_bytes = sizeof(struct fan_node)};
    c.prim.limits.nodes = f->nodes;
    c.prim.limits.roots = 1;
    struct world *w = world_new(&c);
    if (w == NULL)
        return -ENOMEM;
    for (uint32_t n = 0; n <= f->nodes; n++)
        world_boot(w, f->nodes - n, n == 0);
    while (f->round < RUNS && world_step(w))
        continue;
    world_free(w);
    return f->round < RUNS ? -ETIME : 0;
}

static uint64_t median(uint64_t *at, uint32_t count) {
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t j = i; j > 0 && at[j] < at[j - 1]; j--) {
            uint64_t swap = at[j];
            at[j] = at[j - 1];
            at[j - 1] = swap;
        }
    return at[count / 2];
}

int predict_fanout(const struct link_model *model, uint32_t nodes, uint64_t *ret_ns) {
    struct fan f = {.nodes = nodes, .links = calloc(nodes, sizeof *f.links)};
    if (f.links == NULL)
        return -ENOMEM;
    struct link_model bare = *model;
    bare.cpu_step_ns = 0;
    int r = fan_run(&bare, &f);
    if (r == 0)
        *ret_ns = median(f.took_ns, RUNS);
    free(f.links);
    return r;
}

/* ---- fitting ---- */

static int sum_predicted(const struct link_model *model, const struct tree *tree,
                         const struct predict_point *points, uint32_t count, uint64_t *ret) {
    *ret = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t ns;
        int r = predict_latency(model, tree, &points[i].task, &ns);
        if (r < 0)
            return r;
        *ret += ns;
    }
    return 0;
}

static uint64_t per_mille(uint64_t ns, uint64_t scale) {
    return ns * scale / 1000;
}

static struct link_model scaled(const struct link_model *model, uint64_t scale) {
    struct link_model m = *model;
    m.core_idle_ns = per_mille(m.core_idle_ns, scale);
    m.cpu_wake_ns = per_mille(m.cpu_wake_ns, scale);
    m.cpu_poll_ns = per_mille(m.cpu_poll_ns, scale);
    m.cpu_sleep_ns = per_mille(m.cpu_sleep_ns, scale);
    m.cpu_receive_ns = per_mille(m.cpu_receive_ns, scale);
    m.cpu_send_ns = per_mille(m.cpu_send_ns, scale);
    return m;
}

/* The model with a step of so many nanoseconds, or, below zero, scaled down by so many in 1,000. */
static struct link_model turned(const struct link_model *model, int64_t knob) {
    struct link_model m = knob < 0 ? scaled(model, (uint64_t)(1000 + knob)) : *model;
    m.cpu_step_ns = knob < 0 ? 0 : (uint64_t)knob;
    return m;
}

/* No step of ours takes longer, nor is a gauge so far off. */
enum { KNOB_MIN = -900, KNOB_MAX = 100000 };

int predict_fit(struct link_model *model, const struct tree *tree,
                const struct predict_point *points, uint32_t count) {
    uint64_t measured = 0;
    int64_t low = KNOB_MIN, high = KNOB_MAX;
    for (uint32_t i = 0; i < count; i++)
        measured += points[i].measured_ns;
    if (measured == 0)
        return -EINVAL;
    while (low < high) { /* what is predicted grows with the knob */
        int64_t middle = low + (high - low) / 2;
        struct link_model m = turned(model, middle);
        uint64_t predicted;
        int r = sum_predicted(&m, tree, points, count, &predicted);
        if (r < 0)
            return r;
        if (predicted < measured)
            low = middle + 1;
        else
            high = middle;
    }
    *model = turned(model, low);
    return 0;
}
