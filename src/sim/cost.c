/* SPDX-License-Identifier: MIT */
/* Predicted times of operations: see cost.h.
 *
 * A subtree is a number of positions; every shape cuts what is below its top into the sizes of the
 * children's subtrees (as prim/tree.c does). The time from a message's arrival at the top of a
 * subtree until its combined answer has left depends on that size alone, so each size is worked out
 * once. A tree of a hundred thousand nodes has a few dozen sizes. */
#include "sim/cost.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/units.h"
#include "wire/header.h"
#include "wire/message.h"

void cost_init(struct cost *c, const struct tree *tree, const struct link_model *link) {
    *c = (struct cost){.tree = *tree, .link = *link, .chunk_bytes = 64 * KIB, .slots = 4};
}

/* ---- sizes of frames ---- */

static uint64_t wire_ns(const struct cost *c, uint64_t bytes) {
    uint64_t rate = c->link.bytes_per_s;
    return rate ? (bytes * NS_PER_S + rate - 1) / rate : 0;
}

/* How long the network interface takes for one message of a type, to a set that is one range. */
static uint64_t message_ns(const struct cost *c, enum message_type type, uint64_t body) {
    uint64_t storage[8];
    struct nodeset set;
    nodeset_init(&set, 2, storage);
    if (type != MESSAGE_TICK)
        nodeset_add(&set, 0);
    union message m = {0};
    switch (type) {
    case MESSAGE_PREPARE:
        m.prepare.set = &set;
        break;
    case MESSAGE_DECIDE:
        m.decide.set = &set;
        break;
    case MESSAGE_ACK:
        m.ack.set = &set;
        break;
    case MESSAGE_TICK:
        m.tick.limbo = &set;
        break;
    default:
        break;
    }
    uint8_t scratch[512];
    long len = message_encode((uint16_t)type, &m, room_of(scratch, sizeof scratch));
    ASSERT(len >= 0);
    return wire_ns(c, HEADER_BYTES + (uint64_t)len + body);
}

/* ---- one round ---- */

/* Sizes that have been worked out, and what a message down and an answer up take on the wire. */
struct round {
    const struct cost *c;
    struct tree tree;
    uint64_t down_ns;
    uint64_t up_ns;
    struct {
        uint32_t size;
        uint64_t ns;
    } known[256];
    uint32_t known_count;
};

/* Goes through the sizes of the children's subtrees: the next one, 0 after the last. */
struct cut {
    const struct tree *tree;
    uint32_t rest;  /* positions not yet given to a child */
    uint32_t small; /* k-ary: the size of the smaller parts ... */
    uint32_t large; /* ... and how many parts are larger by one */
};

static struct cut cut_init(const struct tree *t, uint32_t size) {
    uint32_t arity = t->arity < 1 ? 1 : t->arity;
    return (struct cut){
        .tree = t, .rest = size - 1, .small = (size - 1) / arity, .large = (size - 1) % arity};
}

static uint32_t cut_next(struct cut *cut) {
    uint32_t size = cut->rest;
    switch (cut->tree->shape) {
    case SHAPE_KARY:
        size = cut->large > 0 ? cut->small + 1 : cut->small;
        cut->large -= cut->large > 0;
        break;
    case SHAPE_BINOMIAL:
        size = (cut->rest + 1) / 2;
        break;
    case SHAPE_CHAIN:
        break;
    case SHAPE_FLAT:
        size = 1;
        break;
    case SHAPES:
        assert_failed("a shape", __FILE__, __LINE__);
    }
    if (size > cut->rest)
        size = cut->rest;
    cut->rest -= size;
    return size;
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Puts a time into its place in an ascending list. */
static void insert(uint64_t *list, uint32_t count, uint64_t at) {
    while (count > 0 && list[count - 1] > at) {
        list[count] = list[count - 1];
        count--;
    }
    list[count] = at;
}

static uint64_t answered(struct round *r, uint32_t size);

/* When each child's answer comes, ascending, if the message came at 0. Returns how many; *ret_busy
 * is when the last message to a child has left the processor. */
static uint32_t answers(struct round *r, uint32_t size, uint64_t *list, uint64_t *ret_busy) {
    const struct link_model *l = &r->c->link;
    uint64_t when = l->cpu_receive_ns;
    uint64_t wire = 0;
    uint32_t count = 0;
    uint32_t child;
    struct cut cut = cut_init(&r->tree, size);
    while ((child = cut_next(&cut)) > 0) {
        when += l->cpu_send_ns;
        wire = later(when, wire) + r->down_ns;
        insert(list, count++, wire + 2 * l->latency_ns + answered(r, child));
    }
    *ret_busy = when;
    return count;
}

/* When the node begins to look at the last answer, if the message came at 0. */
static uint64_t gathered(struct round *r, uint32_t size) {
    uint32_t children = 0;
    for (struct cut cut = cut_init(&r->tree, size); cut_next(&cut) > 0;)
        children++;
    uint64_t *list = malloc((children + 1) * sizeof *list);
    ASSERT(list != NULL);
    uint64_t busy;
    uint32_t count = answers(r, size, list, &busy);
    uint64_t wire = 0;
    uint64_t seen = busy;
    for (uint32_t i = 0; i < count; i++) {
        wire = later(list[i], wire + r->up_ns);
        seen = later(wire, busy);
        busy = seen + r->c->link.cpu_receive_ns;
    }
    free(list);
    return seen;
}

static uint64_t work_out(struct round *r, uint32_t size) {
    const struct link_model *l = &r->c->link;
    uint64_t out = l->cpu_receive_ns + l->cpu_send_ns + r->up_ns;
    return size == 1 ? out : gathered(r, size) + out;
}

/* From the arrival of the message at a subtree until its answer is on the wire. */
static uint64_t answered(struct round *r, uint32_t size) {
    for (uint32_t i = 0; i < r->known_count; i++)
        if (r->known[i].size == size)
            return r->known[i].ns;
    uint64_t ns = work_out(r, size);
    ASSERT(r->known_count < sizeof r->known / sizeof *r->known);
    r->known[r->known_count].size = size;
    r->known[r->known_count++].ns = ns;
    return ns;
}

/* A chain has as many sizes as nodes: from the end upwards instead. */
static uint64_t chain_gathered(const struct round *r, uint32_t size) {
    const struct link_model *l = &r->c->link;
    uint64_t there = l->cpu_receive_ns + l->cpu_send_ns + r->down_ns + l->latency_ns;
    uint64_t back = l->cpu_receive_ns + l->cpu_send_ns + r->up_ns + l->latency_ns;
    return (size - 1) * (there + back);
}

/* A round to `count` of the tree's nodes, seen from the root, in its own time: until it looks at
 * the last answer. The nodes are neighbours, so they hang together below one path from the root. */
static uint64_t round_ns(const struct cost *c, uint32_t count, uint64_t down_ns, uint64_t up_ns) {
    struct round r = {.c = c, .tree = c->tree, .down_ns = down_ns, .up_ns = up_ns};
    struct tree part = c->tree;
    part.nodes = count;
    uint32_t above = tree_depth(&c->tree) - tree_depth(&part);
    uint64_t ns = part.shape == SHAPE_CHAIN || (part.shape == SHAPE_KARY && part.arity <= 1)
                      ? chain_gathered(&r, count + 1)
                      : gathered(&r, count + 1);
    return ns + chain_gathered(&r, above + 1);
}

/* ---- operations ---- */

static uint64_t prepare_ns(const struct cost *c, uint64_t bytes, uint32_t count) {
    return round_ns(c, count, message_ns(c, MESSAGE_PREPARE, bytes), message_ns(c, MESSAGE_ACK, 0));
}

static uint64_t decide_ns(const struct cost *c, uint32_t count) {
    return round_ns(c, count, message_ns(c, MESSAGE_DECIDE, 0), message_ns(c, MESSAGE_ACK, 0));
}

/* The tree of a bulk transfer: see prim/slot.c. */
static struct tree bulk_tree(const struct cost *c, uint32_t count) {
    struct tree t = c->tree;
    if (t.shape == SHAPE_BINOMIAL || t.shape == SHAPE_FLAT || t.arity > 8) {
        t.shape = SHAPE_KARY;
        t.arity = 2;
    }
    t.nodes = count;
    return t;
}

/* How many sinks the top of a subtree has; *size becomes the size of the largest of theirs. */
static uint64_t count_sinks(const struct tree *t, uint32_t *size) {
    struct cut cut = cut_init(t, *size);
    uint64_t sinks = 0;
    *size = 0;
    for (uint32_t child; (child = cut_next(&cut)) > 0; sinks++)
        *size = child > *size ? child : *size;
    return sinks;
}

/* A sink has granted a few chunks ahead, and a node that has them all serves one sink after the
 * other; so the last sink waits until the others have as much. Beyond that chunks follow each other
 * as fast as the busiest node passes them on. Word that all is there comes back up. */
static uint64_t stream_ns(const struct cost *c, uint64_t bytes, uint32_t count) {
    const struct link_model *l = &c->link;
    struct tree t = bulk_tree(c, count);
    uint64_t chunk = bytes < c->chunk_bytes ? bytes : c->chunk_bytes;
    uint64_t chunks = chunk ? (bytes + chunk - 1) / chunk : 0;
    uint64_t burst = chunks < c->slots ? chunks : c->slots;
    uint64_t one = later(wire_ns(c, chunk), l->cpu_send_ns);
    uint64_t hop = l->latency_ns + l->cpu_receive_ns;
    uint64_t slowest = 0;
    uint64_t way = 0;
    if (chunks == 0)
        return 0;
    for (uint32_t size = count + 1; size > 1;) {
        uint64_t sinks = count_sinks(&t, &size);
        slowest = later(slowest, later(sinks * one, l->cpu_receive_ns + sinks * l->cpu_send_ns));
        way += ((sinks - 1) * burst + 1) * one + hop + hop + l->cpu_send_ns;
    }
    return way + (burst - 1) * one + (chunks - burst) * slowest;
}

static uint64_t bulk_ns(const struct cost *c, uint64_t bytes, uint32_t count) {
    return prepare_ns(c, 0, count) + decide_ns(c, count) + stream_ns(c, bytes, count) +
           prepare_ns(c, 0, count) + decide_ns(c, count);
}

static uint64_t computed_ns(const struct cost *c, enum cost_kind kind, uint64_t bytes,
                            uint32_t count) {
    switch (kind) {
    case COST_COMPARE:
        return prepare_ns(c, 0, count);
    case COST_XFER:
    case COST_WRITE:
        return prepare_ns(c, bytes, count) + decide_ns(c, count);
    case COST_WAVE: /* a timer starts it, not a message */
        return round_ns(c, c->tree.nodes, message_ns(c, MESSAGE_TICK, 0),
                        message_ns(c, MESSAGE_TOCK, 0)) -
               c->link.cpu_receive_ns;
    case COST_BULK:
        return bulk_ns(c, bytes, count);
    case COST_KINDS:
        break;
    }
    assert_failed("a kind of cost", __FILE__, __LINE__);
}

uint32_t cost_levels(const struct cost *c, enum cost_kind kind) {
    struct tree t = kind == COST_BULK ? bulk_tree(c, c->tree.nodes) : c->tree;
    return tree_depth(&t);
}

uint64_t cost_ns(const struct cost *c, enum cost_kind kind, uint64_t bytes, uint32_t count) {
    ASSERT(count > 0 && count <= c->tree.nodes);
    const struct cost_fit *f = &c->fit[kind];
    int64_t ns = (int64_t)computed_ns(c, kind, bytes, count) + f->constant_ns +
                 f->level_ns * (int64_t)cost_levels(c, kind);
    return ns > 0 ? (uint64_t)ns : 0;
}

/* The bytes of all below a node come in one after the other, on every level of the deepest branch. */
uint64_t cost_gather_ns(const struct cost *c, uint64_t bytes, uint32_t count) {
    uint64_t ns = cost_ns(c, COST_COMPARE, 0, count);
    for (uint32_t size = count + 1; size > 1; count_sinks(&c->tree, &size))
        ns += wire_ns(c, (size - 1) * bytes);
    return ns;
}

uint64_t cost_apply_ns(const struct cost *c, enum cost_kind kind, uint32_t count) {
    return kind == COST_COMPARE || kind == COST_WAVE ? 0 : decide_ns(c, count);
}

/* The busiest node is the root, or one like it further down: it sends to all its children and hears
 * from all of them, in every round. */
uint64_t cost_gap_ns(const struct cost *c, enum cost_kind kind, uint64_t bytes, uint32_t count) {
    const struct link_model *l = &c->link;
    struct tree part = c->tree;
    part.nodes = count;
    struct cut cut = cut_init(&part, count + 1);
    uint64_t children = 0;
    while (cut_next(&cut) > 0)
        children++;
    uint64_t rounds = cost_rounds(kind);
    uint64_t cpu = rounds * children * (l->cpu_send_ns + l->cpu_receive_ns);
    uint64_t wire = children * (message_ns(c, MESSAGE_PREPARE, bytes) +
                                (rounds - 1) * message_ns(c, MESSAGE_DECIDE, 0));
    return kind == COST_BULK ? cost_ns(c, kind, bytes, count) : later(cpu, wire);
}

uint64_t cost_path_ns(const struct cost *c, uint32_t levels) {
    const struct link_model *l = &c->link;
    uint64_t hop =
        l->cpu_receive_ns + l->cpu_send_ns + l->latency_ns + message_ns(c, MESSAGE_RESULT, 0);
    return levels * hop;
}

uint32_t cost_level(const struct cost *c, uint32_t node) {
    if (node >= c->tree.nodes)
        return 0;
    if (c->tree.shape == SHAPE_CHAIN)
        return node + 1;
    uint32_t above[TREE_DEPTH_MAX];
    return tree_ancestors(&c->tree, node, above, TREE_DEPTH_MAX) + 1;
}

uint32_t cost_rounds(enum cost_kind kind) {
    static const uint32_t rounds[COST_KINDS] = {
        [COST_XFER] = 2, [COST_COMPARE] = 1, [COST_WRITE] = 2, [COST_WAVE] = 1, [COST_BULK] = 5};
    ASSERT(kind < COST_KINDS);
    return rounds[kind];
}

uint64_t cost_floor_ns(const struct cost *c, enum cost_kind kind) {
    return (uint64_t)cost_rounds(kind) * 2 * tree_depth(&c->tree) * c->link.latency_ns;
}

const char *cost_name(enum cost_kind kind) {
    static const char *const names[COST_KINDS] = {"xfer", "compare", "compare-write", "wave",
                                                  "bulk"};
    return kind < COST_KINDS ? names[kind] : "?";
}
