/* SPDX-License-Identifier: MIT */
/* The stage: what a script and the nodes of its cluster share, and the daemon of every node.
 *
 * The nodes may be processes of their own, so all of it lies in one mapping made before the first
 * of them is forked. Each part has one writer: the director posts commands, the node takes them
 * and writes what it hears into its log. A counter that goes up with release says that what lies
 * below it is complete; whoever has read it with acquire may look. A node that dies in the middle
 * of an entry has not counted it, so it was never there.
 *
 * A daemon takes commands when its alarm rings. In the simulator it sets its own alarm again and
 * again, all nodes at the same moments; a real node is poked from outside. A look at variables
 * and events is a command too, since they are the node's own; and because it is carried out in a
 * later step than whatever came before, all effects of that are in the heap by then. */
#pragma once

#include <stdatomic.h>
#include <sys/mman.h>

#include "base/units.h"
#include "conformance/script.h"
#include "prim/prim.h"

enum {
    STAGE_COMMANDS = 256,
    STAGE_HEARD = 512,
    STAGE_VARIABLES = 8,
    STAGE_EVENTS = 8,
    STAGE_HEAP = 65536,
    STAGE_BODY = 4096,
    STAGE_BODIES = 1 << 20,
    STAGE_TEXT = 64, /* bytes kept of a strobe's or hint's body */
};

struct command {
    bool report; /* instead of a request: copy variables and events */
    uint32_t label;
    struct primitive request; /* its body points into the stage */
    uint64_t set;
};

struct heard {
    struct input in; /* what it points to is gone */
    uint64_t nodes;  /* of INPUT_NODES */
    uint32_t len;    /* of STROBE and PREPARED */
    uint8_t body[STAGE_TEXT];
};

struct part {
    struct stage *stage;
    uint32_t node;
    struct globals globals; /* valid in the node only */

    _Atomic uint32_t posted; /* by the director */
    struct command commands[STAGE_COMMANDS];

    _Atomic uint32_t taken; /* by the node */
    _Atomic uint32_t heard;
    struct heard log[STAGE_HEARD];
    _Atomic uint32_t reports;
    uint64_t variables[STAGE_VARIABLES];
    uint64_t events[STAGE_EVENTS];
};

struct stage {
    const struct script *script;
    struct prim_config prim;
    uint64_t poll_ns; /* how often nodes look for commands by themselves; 0: they are poked */
    /* Makes a buffer of the node for a bulk transfer, from within the node. */
    uint8_t *(*source)(void *context, uint32_t node, uint32_t buffer, uint64_t bytes);
    void *context;
    void (*ring)(struct stage *s); /* wakes the director, if it is another process */
    _Atomic uint32_t bell;         /* goes up when there is something to see */
    uint32_t bodies_used;
    uint8_t bodies[STAGE_BODIES];
    struct part parts[SCRIPT_NODES_MAX + 1];
};

static inline struct stage *stage_new(const struct script *script, uint64_t period_ns) {
    struct stage *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT(s != MAP_FAILED);
    s->script = script;
    s->prim.limits = (struct limits){.nodes = script->tree.nodes,
                                     .roots = 1,
                                     .variables = STAGE_VARIABLES,
                                     .events = STAGE_EVENTS,
                                     .heap_bytes = STAGE_HEAP,
                                     .children = SCRIPT_NODES_MAX,
                                     .window = 8,
                                     .queue = 16,
                                     .outstanding = 8,
                                     .body_bytes = STAGE_BODY,
                                     .standing = 4,
                                     .transfers = 2,
                                     .chunk_bytes = 1024,
                                     .slots = 4};
    s->prim.tree = script->tree;
    prim_config_times(&s->prim, period_ns);
    for (uint32_t n = 0; n < script->universe; n++) {
        s->parts[n].stage = s;
        s->parts[n].node = n;
    }
    return s;
}

static inline void stage_free(struct stage *s) {
    munmap(s, sizeof *s);
}

static inline uint32_t stage_get(const _Atomic uint32_t *counter) {
    return atomic_load_explicit(counter, memory_order_acquire);
}

static inline void stage_put(_Atomic uint32_t *counter, uint32_t value) {
    atomic_store_explicit(counter, value, memory_order_release);
}

/* ---- the node's side ---- */

static inline void part_ring(struct part *p) {
    atomic_fetch_add_explicit(&p->stage->bell, 1, memory_order_release);
    if (p->stage->ring != NULL)
        p->stage->ring(p->stage);
}

static inline void part_report(struct part *p) {
    memcpy(p->variables, p->globals.variables, sizeof p->variables);
    memcpy(p->events, p->globals.events, sizeof p->events);
    stage_put(&p->reports, p->reports + 1);
}

static inline void part_ask(struct part *p, const struct command *c, struct effects *out) {
    uint64_t storage[16];
    struct nodeset set;
    uint32_t universe = p->stage->script->universe;
    ASSERT(nodeset_bytes(universe) <= sizeof storage);
    nodeset_init(&set, universe, storage);
    for (uint32_t n = 0; n < universe; n++)
        if (c->set & node_bit(n))
            nodeset_add(&set, n);
    if (c->request.kind == PRIMITIVE_BULK && c->request.buffer_bytes > 0) {
        struct stage *s = p->stage;
        uint64_t bytes = c->request.buffer_bytes;
        uint8_t *at = s->source(s->context, p->node, c->request.buffer, bytes);
        for (uint64_t i = 0; i < bytes; i++)
            at[i] = script_byte(s->script, c->label, i);
    }
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = c->request;
    e->request.set = effects_copy_set(out, &set);
}

static inline void part_poll(struct part *p, uint64_t now, struct effects *out) {
    uint32_t posted = stage_get(&p->posted);
    for (uint32_t i = p->taken; i < posted; i++) {
        const struct command *c = &p->commands[i];
        if (c->report)
            part_report(p);
        else
            part_ask(p, c, out);
    }
    if (posted > p->taken) {
        stage_put(&p->taken, posted);
        part_ring(p);
    }
    uint64_t poll = p->stage->poll_ns;
    if (poll > 0)
        effects_timer(out, 0, (now / poll + 1) * poll);
}

static inline void part_keep(struct part *p, const struct input *in) {
    uint32_t at = p->heard;
    ASSERT(at < STAGE_HEARD);
    struct heard *h = &p->log[at];
    *h = (struct heard){.in = *in};
    struct bytes body = {0};
    if (in->kind == INPUT_PREPARED)
        body = in->prepared.body;
    else if (in->kind == INPUT_STROBE)
        body = in->strobe.body;
    h->len = (uint32_t)(body.len < STAGE_TEXT ? body.len : STAGE_TEXT);
    if (h->len > 0)
        memcpy(h->body, body.at, h->len);
    if (in->kind == INPUT_NODES)
        NODESET_EACH (n, in->nodes.nodes)
            h->nodes |= node_bit(n);
    stage_put(&p->heard, at + 1);
    part_ring(p);
}

static inline void part_step(void *self, const struct input *in, struct effects *out) {
    struct part *p = self;
    bool polls = in->kind == INPUT_BOOT && p->stage->poll_ns > 0;
    bool by_itself = in->kind == INPUT_WAVE || in->kind == INPUT_TREE;
    if (polls || in->kind == INPUT_TIMER)
        part_poll(p, in->now, out);
    else if (in->kind == INPUT_BOOT)
        return;          /* somebody will poke it */
    else if (!by_itself) /* those come with time, not with what the script does */
        part_keep(p, in);
}

/* The daemon of a node: what both worlds are told to run. */
static inline struct machine part_machine(void *stage, uint32_t node, struct globals globals) {
    struct part *p = &((struct stage *)stage)->parts[node];
    p->globals = globals;
    return (struct machine){.self = p, .step = part_step};
}

/* ---- the director's side ---- */

/* The command itself becomes visible when `posted` has gone up: see stage_posted(). */
static inline struct command *stage_post(struct stage *s, uint32_t node) {
    struct part *p = &s->parts[node];
    ASSERT(p->posted < STAGE_COMMANDS);
    struct command *c = &p->commands[p->posted];
    *c = (struct command){0};
    return c;
}

static inline void stage_posted(struct stage *s, uint32_t node) {
    stage_put(&s->parts[node].posted, s->parts[node].posted + 1);
}

static inline struct bytes stage_body(struct stage *s, uint32_t bytes) {
    ASSERT(s->bodies_used + bytes <= STAGE_BODIES);
    s->bodies_used += bytes;
    return bytes_of(s->bodies + s->bodies_used - bytes, bytes);
}
