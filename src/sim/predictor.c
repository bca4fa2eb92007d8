/* SPDX-License-Identifier: MIT */
/* Predictions for processes of this machine: see predictor.h. */
#include "sim/predictor.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/units.h"
#include "sim/measure.h"
#include "wire/message.h"

/* A disk that syncs: no operation that is predicted waits for it. */
#define DURABLE_NS (50 * NS_PER_US)

/* The first runs differ from those that follow closely on others. */
enum { RUNS = 15 };

/* ---- operations ---- */

/* Logarithm to the base of two, times 256: exact for powers of two, straight in between. */
static uint64_t log2_256(uint64_t n) {
    uint64_t whole = 0;
    while (n >> (whole + 1) > 0)
        whole++;
    return whole * 256 + ((n << 8) >> whole) - 256;
}

struct link_model predictor_model(const struct predictor *p, uint32_t nodes) {
    struct link_model m = p->model;
    uint64_t few = log2_256(GAUGE_FEW), many = log2_256(GAUGE_MANY), n = log2_256(nodes);
    n = n < few ? few : n > many ? many : n;
    m.cpu_wake_ns = (p->wake_few_ns * (many - n) + p->wake_many_ns * (n - few)) / (many - few);
    return m;
}

int predictor_latency(const struct predictor *p, const struct tree *tree,
                      const struct driver_task *task, uint64_t *ret_ns) {
    struct driver_task t = *task;
    t.runs = RUNS;
    struct measure_config config = {.depth = DEPTH_LINKS,
                                    .tree = *tree,
                                    .link = predictor_model(p, tree->nodes),
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
        e->open = (struct effect_open){.node = f->nodes, .purpose = PURPOSE_TREE, .cookie = 1};
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

static int fan_ns(const struct link_model *model, uint32_t nodes, uint64_t *ret_ns) {
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

int predictor_fanout(const struct predictor *p, uint32_t nodes, uint64_t *ret_ns) {
    struct link_model m = predictor_model(p, nodes);
    return fan_ns(&m, nodes, ret_ns);
}

/* ---- from a gauge ---- */

/* As things are when the same two processes do nothing else; waking is left out. */
static struct link_model hot_model(const struct gauge *g) {
    return (struct link_model){.connect_ns = 2 * g->hop_ns,
                               .durable_ns = DURABLE_NS,
                               .cores = g->cpus,
                               .core_idle_ns =
                                   g->cross_ns > g->hop_ns ? g->cross_ns - g->hop_ns : 0,
                               .cpu_poll_ns = g->poll_ns,
                               .cpu_sleep_ns = g->empty_ns,
                               .cpu_receive_ns = g->receive_ns,
                               .cpu_send_ns = g->send_ns};
}

/* Each byte is copied out of a process and into another. */
static uint64_t copy_kib_ns(const struct gauge *g) {
    if (g->fan_one_4k_ns <= g->fan_one_ns)
        return 0;
    return (g->fan_one_4k_ns - g->fan_one_ns) * KIB / (2 * GAUGE_FAN_ONE * (4096 - 64));
}

/* The cost of waking with which a fan-out takes as long as was measured. */
static int find_wake(struct link_model m, uint64_t cores, uint32_t nodes, uint64_t measured,
                     uint64_t *ret_ns) {
    uint64_t low = 0, high = NS_PER_MS;
    m.cores = cores;
    while (low < high) {
        uint64_t ns;
        m.cpu_wake_ns = low + (high - low) / 2;
        int r = fan_ns(&m, nodes, &ns);
        if (r < 0)
            return r;
        if (ns < measured)
            low = m.cpu_wake_ns + 1;
        else
            high = m.cpu_wake_ns;
    }
    *ret_ns = low;
    return 0;
}

/* Waking somebody on another processor costs more than on one's own, by a quarter where this was
 * tried. What seems to cost a lot more tells that others keep some of the processors busy. */
static bool plausible(uint64_t wake, uint64_t alone) {
    return wake * 10 <= alone * 17;
}

/* How many processors there are for us. */
static int find_cores(const struct link_model *m, const struct gauge *g, uint64_t *ret) {
    uint64_t alone, wake;
    int r = find_wake(*m, 1, GAUGE_FAN_ONE, g->fan_one_ns, &alone);
    /* with more than one for each process the result is the same */
    uint64_t most = g->cpus <= GAUGE_MANY ? g->cpus : GAUGE_MANY + 1;
    for (uint64_t cores = most; cores > 1 && r == 0; cores--) {
        r = find_wake(*m, cores, GAUGE_MANY, g->fan_many_ns, &wake);
        if (r == 0 && plausible(wake, alone)) {
            *ret = cores == most ? g->cpus : cores;
            return 0;
        }
    }
    *ret = 1;
    return r;
}

int predictor_init(struct predictor *p, const struct gauge *g) {
    if (g->cpus == 0 || g->hop_ns == 0 || g->fan_one_ns == 0 || g->fan_few_ns == 0 ||
        g->fan_many_ns == 0)
        return -EINVAL;
    struct link_model m = hot_model(g);
    m.cpu_kib_ns = copy_kib_ns(g);
    int r = find_cores(&m, g, &m.cores);
    if (r == 0)
        r = find_wake(m, m.cores, GAUGE_FEW, g->fan_few_ns, &p->wake_few_ns);
    if (r == 0)
        r = find_wake(m, m.cores, GAUGE_MANY, g->fan_many_ns, &p->wake_many_ns);
    p->model = m;
    return r;
}

/* ---- fitting ---- */

static int sum_predicted(const struct predictor *p, const struct tree *tree,
                         const struct predictor_point *points, uint32_t count, uint64_t *ret) {
    *ret = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t ns;
        int r = predictor_latency(p, tree, &points[i].task, &ns);
        if (r < 0)
            return r;
        *ret += ns;
    }
    return 0;
}

static void scale(uint64_t *ns, uint64_t per_mille) {
    *ns = *ns * per_mille / 1000;
}

static struct predictor scaled(const struct predictor *from, uint64_t per_mille) {
    struct predictor p = *from;
    scale(&p.wake_few_ns, per_mille);
    scale(&p.wake_many_ns, per_mille);
    scale(&p.model.core_idle_ns, per_mille);
    scale(&p.model.cpu_poll_ns, per_mille);
    scale(&p.model.cpu_sleep_ns, per_mille);
    scale(&p.model.cpu_receive_ns, per_mille);
    scale(&p.model.cpu_send_ns, per_mille);
    return p;
}

/* Ways to turn a predictor's knob: with every higher value what it predicts takes longer. */
typedef struct predictor turn_fn(const struct predictor *from, int64_t knob);

/* A step of so many nanoseconds, or, below zero, all scaled down by so many in 1,000. */
static struct predictor turn_step(const struct predictor *from, int64_t knob) {
    struct predictor p = knob < 0 ? scaled(from, (uint64_t)(1000 + knob)) : *from;
    p.model.cpu_step_ns = knob < 0 ? 0 : (uint64_t)knob;
    return p;
}

/* Waking among many processes takes so many nanoseconds. */
static struct predictor turn_growth(const struct predictor *from, int64_t knob) {
    struct predictor p = *from;
    p.wake_many_ns = (uint64_t)knob;
    return p;
}

/* Finds where, between the two values, what is predicted is what was measured. */
static int fit(struct predictor *p, turn_fn *turn, int64_t low, int64_t high,
               const struct tree *tree, const struct predictor_point *points, uint32_t count) {
    uint64_t measured = 0;
    for (uint32_t i = 0; i < count; i++)
        measured += points[i].measured_ns;
    if (measured == 0)
        return -EINVAL;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        struct predictor attempt = turn(p, middle);
        uint64_t predicted;
        int r = sum_predicted(&attempt, tree, points, count, &predicted);
        if (r < 0)
            return r;
        if (predicted < measured)
            low = middle + 1;
        else
            high = middle;
    }
    *p = turn(p, low);
    return 0;
}

/* No step of ours takes longer, nor is a gauge so far off. */
enum { STEP_MIN = -900, STEP_MAX = 100000, GROWTH_MAX = 4 };

int predictor_fit(struct predictor *p, const struct tree *tree,
                  const struct predictor_point *points, uint32_t count) {
    return fit(p, turn_step, STEP_MIN, STEP_MAX, tree, points, count);
}

int predictor_fit_growth(struct predictor *p, const struct tree *tree,
                         const struct predictor_point *points, uint32_t count) {
    int64_t few = (int64_t)p->wake_few_ns;
    return fit(p, turn_growth, few / GROWTH_MAX, few * GROWTH_MAX, tree, points, count);
}
