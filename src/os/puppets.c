/* SPDX-License-Identifier: MIT */
/* Daemons that do as they are told: see puppets.h. */
#include "os/puppets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/units.h"

/* The daemon's timer that stands for a poke. */
enum { TIMER_TOLD = 1 };

struct puppet_self {
    struct puppets *all;
    uint32_t node;
    uint32_t looked; /* requests before this one are not for us, or done with */
    bool answered;   /* something, in this turn */
};

struct shared {
    _Atomic uint32_t op_count;
    _Atomic uint32_t up_count;
    /* The parent waits for more than answers. Waking it for every turn of every node would take
     * processors from those whose time is taken. */
    _Atomic bool watching;
    struct puppet_op ops[PUPPET_OPS_MAX];
};

struct puppets {
    struct crew *crew;
    struct limits limits;
    uint32_t count; /* nodes and the root */
    struct puppet_self *selves;
    struct nodeset all;
    uint64_t *all_storage;
    /* shared with the processes */
    struct shared *shared;
    struct puppet *puppets;
    _Atomic bool *up;
    uint64_t *sets; /* of the requests */
    size_t set_words;
    size_t shared_bytes;
};

/* ---- in the node's process ---- */

/* A set is kept as plain bits: its own form holds pointers. */
static void ask(struct puppet_self *self, uint32_t number, uint64_t now, struct effects *out) {
    struct puppets *p = self->all;
    struct puppet_op *op = &p->shared->ops[number];
    uint32_t universe = limits_universe(&p->limits);
    struct nodeset set;
    nodeset_init(&set, universe, effects_room(out, nodeset_bytes(universe)));
    const uint64_t *bits = p->sets + number * p->set_words;
    for (uint32_t n = 0; n < universe; n++)
        if (bits[n / 64] >> n % 64 & 1)
            nodeset_add(&set, n);
    op->asked_ns = now;
    atomic_store_explicit(&op->stage, PUPPET_ASKED, memory_order_release);
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = op->request;
    e->request.tag = number;
    e->request.body = bytes_of(op->body, op->request.body.len);
    e->request.set = effects_copy_set(out, &set);
}

static void ask_all(struct puppet_self *self, uint64_t now, struct effects *out) {
    struct shared *s = self->all->shared;
    uint32_t count = atomic_load_explicit(&s->op_count, memory_order_acquire);
    for (; self->looked < count; self->looked++) {
        struct puppet_op *op = &s->ops[self->looked];
        if (op->node == self->node &&
            atomic_load_explicit(&op->stage, memory_order_acquire) == PUPPET_TOLD)
            ask(self, self->looked, now, out);
    }
}

static void on_completion(struct puppet_self *self, const struct input *in) {
    struct puppet_op *op = &self->all->shared->ops[in->completion.tag];
    if (in->completion.outcome == OUTCOME_UNKNOWN) {
        atomic_fetch_add(&op->unknowns, 1);
        return;
    }
    op->completion = in->completion;
    op->answered_ns = in->now;
    atomic_fetch_add(&op->answers, 1);
    atomic_store_explicit(&op->stage, PUPPET_ANSWERED, memory_order_release);
    self->answered = true;
}

static void on_nodes(struct puppet_self *self, const struct input_nodes *in) {
    struct puppets *p = self->all;
    uint32_t count = 0;
    NODESET_EACH (n, in->nodes)
        atomic_store(&p->up[n], in->up);
    for (uint32_t n = 0; n < p->count; n++)
        count += atomic_load(&p->up[n]);
    atomic_store(&p->shared->up_count, count);
}

/* A new root reports everyone anew; a new life has nothing to do with what its former was told. */
static void on_boot(struct puppet_self *self, const struct input_boot *boot) {
    struct puppets *p = self->all;
    self->looked = atomic_load(&p->shared->op_count);
    for (uint32_t n = 0; boot->root && n < p->count; n++)
        atomic_store(&p->up[n], false);
    if (boot->root)
        atomic_store(&p->shared->up_count, 0);
}

static void step(void *context, const struct input *in, struct effects *out) {
    struct puppet_self *self = context;
    atomic_fetch_add(&self->all->puppets[self->node].heard[in->kind], 1);
    switch (in->kind) {
    case INPUT_BOOT:
        on_boot(self, &in->boot);
        break;
    case INPUT_TIMER:
        ask_all(self, in->now, out);
        break;
    case INPUT_COMPLETION:
        on_completion(self, in);
        break;
    case INPUT_NODES:
        on_nodes(self, &in->nodes);
        break;
    default:
        break;
    }
}

static struct machine make_daemon(void *context, uint32_t node, struct globals globals) {
    struct puppets *p = context;
    (void)globals;
    return (struct machine){.self = &p->selves[node], .step = step};
}

static void poked(void *context, struct life *l) {
    (void)context;
    struct input in = {.kind = INPUT_TIMER, .now = life_now(l)};
    in.timer.id = TIMER_TOLD;
    life_feed(l, LAYER_DAEMON, &in);
}

static void observe(void *context, struct life *l) {
    struct puppets *p = context;
    struct puppet *self = &p->puppets[life_node(l)];
    struct globals globals = life_globals(l);
    struct prim_status s;
    prim_status(life_prim(l), &s);
    self->attached = s.attached;
    self->member = s.member;
    self->parent = s.parent;
    self->epoch = s.epoch;
    self->incarnation = s.incarnation;
    memcpy(self->variables, globals.variables, p->limits.variables * sizeof(uint64_t));
    memcpy(self->events, globals.events, p->limits.events * sizeof(uint64_t));
    atomic_fetch_add(&self->turns, 1);
    bool *answered = &p->selves[life_node(l)].answered;
    if (*answered || atomic_load(&p->shared->watching))
        crew_ring(p->crew);
    *answered = false;
}

/* ---- in the parent ---- */

static int share(struct puppets *p) {
    uint32_t universe = limits_universe(&p->limits);
    p->set_words = (universe + 63) / 64;
    size_t puppets = p->count * sizeof *p->puppets;
    size_t sets = PUPPET_OPS_MAX * p->set_words * sizeof *p->sets;
    p->shared_bytes = align_up(sizeof *p->shared, 64) + align_up(puppets, 64) + sets + p->count;
    uint8_t *at = mmap(NULL, p->shared_bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return -errno;
    p->shared = (struct shared *)(void *)at;
    at += align_up(sizeof *p->shared, 64);
    p->puppets = (struct puppet *)(void *)at;
    at += align_up(puppets, 64);
    p->sets = (uint64_t *)(void *)at;
    p->up = (_Atomic bool *)(void *)(at + sets);
    return 0;
}

struct puppets *puppets_new(const struct crew_config *config, int *ret_error) {
    struct puppets *p = calloc(1, sizeof *p);
    *ret_error = -ENOMEM;
    if (p == NULL)
        return NULL;
    p->limits = config->prim.limits;
    ASSERT(p->limits.variables <= PUPPET_WORDS && p->limits.events <= PUPPET_WORDS);
    p->count = limits_universe(&p->limits);
    p->selves = calloc(p->count, sizeof *p->selves);
    p->all_storage = malloc(nodeset_bytes(p->count));
    if (p->selves == NULL || p->all_storage == NULL || share(p) < 0) {
        puppets_free(p);
        return NULL;
    }
    nodeset_init(&p->all, p->count, p->all_storage);
    nodeset_add_range(&p->all, 0, p->count - 1);
    for (uint32_t n = 0; n < p->count; n++)
        p->selves[n] = (struct puppet_self){.all = p, .node = n};
    struct crew_config c = *config;
    c.daemon = make_daemon;
    c.observe = observe;
    c.poked = poked;
    c.context = p;
    p->crew = crew_new(&c, ret_error);
    if (p->crew == NULL) {
        puppets_free(p);
        return NULL;
    }
    return p;
}

void puppets_free(struct puppets *p) {
    if (p == NULL)
        return;
    crew_free(p->crew);
    if (p->shared != NULL)
        munmap(p->shared, p->shared_bytes);
    free(p->selves);
    free(p->all_storage);
    free(p);
}

struct crew *puppets_crew(const struct puppets *p) {
    return p->crew;
}

uint32_t puppets_tell(struct puppets *p, uint32_t node, const struct primitive *request) {
    struct shared *s = p->shared;
    uint32_t number = atomic_load(&s->op_count);
    ASSERT(number < PUPPET_OPS_MAX && request->body.len <= PUPPET_BODY_MAX);
    struct puppet_op *op = &s->ops[number];
    op->node = node;
    op->request = *request;
    if (request->body.len > 0)
        memcpy(op->body, request->body.at, request->body.len);
    uint64_t *bits = p->sets + number * p->set_words;
    NODESET_EACH (n, request->set != NULL ? request->set : &p->all)
        bits[n / 64] |= (uint64_t)1 << n % 64;
    atomic_store_explicit(&op->stage, PUPPET_TOLD, memory_order_release);
    atomic_store_explicit(&s->op_count, number + 1, memory_order_release);
    crew_poke(p->crew, node);
    return number;
}

const struct puppet_op *puppets_op(const struct puppets *p, uint32_t number) {
    return &p->shared->ops[number];
}

const struct puppet *puppets_node(const struct puppets *p, uint32_t node) {
    return &p->puppets[node];
}

uint32_t puppets_up_count(const struct puppets *p) {
    return atomic_load(&p->shared->up_count);
}

bool puppets_up(const struct puppets *p, uint32_t node) {
    return atomic_load(&p->up[node]);
}

static bool wait_until(struct puppets *p, uint64_t limit_ns,
                       bool (*holds)(const struct puppets *p, void *what), void *what) {
    uint64_t end = clock_ns() + limit_ns;
    while (!holds(p, what)) {
        uint64_t now = clock_ns();
        if (now >= end)
            return false;
        crew_wait(p->crew, (int)((end - now) / NS_PER_MS) + 1);
    }
    return true;
}

bool puppets_until(struct puppets *p, uint64_t limit_ns,
                   bool (*holds)(const struct puppets *p, void *what), void *what) {
    atomic_store(&p->shared->watching, true);
    bool held = wait_until(p, limit_ns, holds, what);
    atomic_store(&p->shared->watching, false);
    return held;
}

static bool is_answered(const struct puppets *p, void *what) {
    const struct puppet_op *op = puppets_op(p, *(const uint32_t *)what);
    return atomic_load_explicit(&op->stage, memory_order_acquire) == PUPPET_ANSWERED;
}

bool puppets_await(struct puppets *p, uint32_t number, uint64_t limit_ns) {
    return wait_until(p, limit_ns, is_answered, &number);
}
