/* SPDX-License-Identifier: MIT */
/* How long a transfer takes in a shape, and which is the fastest: see spread.h.
 *
 * A node passes a piece on when it has all of it. The first piece comes to the last node through every level:
 * a message's latency, the work of receiving it, and its turn among those that its parent sends. The
 * others follow as fast as the busiest node sends each of them to all its children: that many times through its
 * link, or the work of that many messages and of one that it receives, whichever is longer. In a pair a node
 * sends half of the pieces twice: as much as in a chain.
 *
 * Where all nodes share a host nothing goes faster because others send too: the time is that of all copies.
 * Who has many children sends alone while processors wait. 12 MB to 64 nodes on two processors: chain 240 ms,
 * binomial 245, flat 333; two fifths of a copy for each child of the busiest node fit that (241, 250, 335). */
#include "rm/spread.h"

#include "base/assert.h"
#include "base/units.h"

enum { CHOICE_ARITY_MIN = 2, CHOICE_ARITY_MAX = 8 };

/* Longer pieces than these cost no fewer messages worth mentioning, but memory at every node. */
enum { PIECE_BYTES_MIN = 4 << 10, PIECE_BYTES_MAX = 128 << 10 };

/* Slots: simulated (docs/transfers-simulated.md). */
enum { SLOTS_BYTES = 672 << 10, SLOTS_LEAST = 12, SLOTS_MOST = 64 };

/* On one host, measured. Processors are shared, and the disk lets one write and stops the next: who falls behind must be served
 * from files, and never catches up. Memory for more costs time at first, so only a small part of the whole may lie in slots. */
enum { SHARED_LEAST = 6, SHARED_MOST = 16, SHARED_PART = 16 };

/* A transfer's pieces: their count, and times that do not depend on the shape. */
struct pace {
    uint64_t more_pieces; /* after the first */
    uint64_t more_ns;     /* of their bytes, once through a link */
    uint64_t slot_ns;     /* sending the first piece once */
    uint64_t hop_ns;      /* from its last byte sent to its being there */
};

/* A shape's counts. */
struct frame {
    uint64_t hops;  /* on the way to the last node */
    uint64_t slots; /* on that way: turns of other children are waited for */
    uint64_t width; /* how often the busiest node sends a piece */
};

static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Seconds, then three times three digits of the rest: the product of bytes and NS_PER_S would not fit. */
static uint64_t link_ns(uint64_t bytes, uint64_t per_s) {
    if (per_s == 0)
        return 0;
    if (per_s > UINT64_MAX / 1000)
        per_s = UINT64_MAX / 1000;
    uint64_t ns = bytes / per_s, rest = bytes % per_s;
    for (int i = 0; i < 3; i++) {
        rest *= 1000;
        ns = units_after(times(ns, 1000), rest / per_s);
        rest %= per_s;
    }
    return ns;
}

static struct pace pace_of(const struct spread_terms *t) {
    bool one = t->piece_bytes == 0 || t->bytes <= t->piece_bytes;
    uint64_t first = one ? t->bytes : t->piece_bytes;
    return (struct pace){
        .more_pieces = one ? 0 : (t->bytes - 1) / t->piece_bytes,
        .more_ns = link_ns(t->bytes - first, t->bytes_per_s),
        .slot_ns = larger(link_ns(first, t->bytes_per_s), t->message_ns),
        .hop_ns = units_after(t->latency_ns, t->message_ns),
    };
}

/* Of a tree whose nodes have up to `arity` children: down the largest, as if it were served last. */
static struct frame kary_frame(uint32_t arity, uint32_t receivers) {
    struct frame f = {.width = arity < receivers ? arity : receivers};
    for (uint32_t below = receivers; below > 0; below = (below - 1) / arity) {
        f.slots += arity < below ? arity : below;
        f.hops++;
    }
    return f;
}

/* In a binomial tree every node is reached in its own turn, whichever way leads to it. */
static struct frame binomial_frame(const struct spread *s) {
    uint32_t children = spread_child_count(s, 0, 0);
    return (struct frame){.hops = spread_depth(s), .slots = children, .width = children};
}

/* The source sends once, all others twice, but only every other piece. */
static struct frame pair_frame(const struct spread *s) {
    uint64_t depth = spread_depth(s);
    return (struct frame){.hops = depth, .slots = 2 * depth - 1, .width = 1};
}

static struct frame frame_of(const struct spread *s) {
    uint32_t n = s->receivers;
    switch (s->shape) {
    case SPREAD_CHAIN:
        return (struct frame){.hops = n, .slots = n, .width = 1};
    case SPREAD_KARY:
        return s->arity == 1 ? (struct frame){.hops = n, .slots = n, .width = 1}
                             : kary_frame(s->arity, n);
    case SPREAD_BINOMIAL:
        return binomial_frame(s);
    case SPREAD_FLAT:
        return (struct frame){.hops = 1, .slots = n, .width = n};
    case SPREAD_PAIR:
        return pair_frame(s);
    default:
        assert_failed("a shape", __FILE__, __LINE__);
    }
}

static uint64_t pipeline_ns(const struct frame *f, const struct pace *p, uint64_t message_ns) {
    uint64_t first = units_after(times(f->hops, p->hop_ns), times(f->slots, p->slot_ns));
    uint64_t work = times(times(f->width + 1, message_ns), p->more_pieces);
    return units_after(first, larger(times(f->width, p->more_ns), work));
}

/* All copies one after the other; the work of both ends of a message is shared by two processors. */
static uint64_t copies_ns(const struct frame *f, const struct pace *p,
                          const struct spread_terms *t) {
    uint64_t copy = link_ns(t->bytes, t->bytes_per_s);
    uint64_t copies = times(copy, 5 * (uint64_t)t->receivers + 2 * f->width) / 5;
    uint64_t messages = times(p->more_pieces + 1, t->receivers);
    return units_after(copies, times(messages, t->message_ns));
}

uint64_t spread_cost_ns(const struct spread *s, const struct spread_terms *t) {
    ASSERT(s->receivers == t->receivers);
    if (t->receivers == 0)
        return 0;
    struct pace p = pace_of(t);
    struct frame f = frame_of(s);
    uint64_t ns = pipeline_ns(&f, &p, t->message_ns);
    return t->shared ? larger(ns, copies_ns(&f, &p, t)) : ns;
}

struct choice {
    struct spread best;
    uint64_t ns;
};

static void consider(struct choice *c, const struct spread_terms *t, uint8_t shape,
                     uint32_t arity) {
    struct spread s = {.shape = shape, .arity = arity, .receivers = t->receivers};
    uint64_t ns = spread_cost_ns(&s, t);
    if (c->best.shape == SPREAD_AUTO || ns < c->ns)
        *c = (struct choice){.best = s, .ns = ns};
}

/* On one host: what all copies together come to. */
#define HOST_BYTES_PER_S ((uint64_t)3200 * 1000 * 1000)
#define USUAL_LATENCY_NS (20 * NS_PER_US)
#define USUAL_MESSAGE_NS (5 * NS_PER_US)

struct spread_terms spread_usual(uint64_t bytes_per_s) {
    return (struct spread_terms){.bytes_per_s = bytes_per_s == 0 ? HOST_BYTES_PER_S : bytes_per_s,
                                 .latency_ns = USUAL_LATENCY_NS,
                                 .message_ns = USUAL_MESSAGE_NS,
                                 .shared = bytes_per_s == 0};
}

struct spread spread_choose(const struct spread_terms *t) {
    struct choice c = {.best = {.shape = SPREAD_AUTO}};
    consider(&c, t, SPREAD_CHAIN, 0);
    consider(&c, t, SPREAD_PAIR, 0);
    for (uint32_t arity = CHOICE_ARITY_MIN; arity <= CHOICE_ARITY_MAX; arity++)
        consider(&c, t, SPREAD_KARY, arity);
    consider(&c, t, SPREAD_BINOMIAL, 0);
    consider(&c, t, SPREAD_FLAT, 0);
    return c.best;
}

static uint64_t cost_of_pieces(const struct spread *s, struct spread_terms t, uint32_t bytes) {
    t.piece_bytes = bytes;
    struct spread shape = s->shape == SPREAD_AUTO ? spread_choose(&t) : *s;
    shape.receivers = t.receivers;
    return spread_cost_ns(&shape, &t);
}

uint32_t spread_piece_bytes(const struct spread *s, const struct spread_terms *t) {
    uint64_t least = UINT64_MAX;
    for (uint32_t bytes = PIECE_BYTES_MIN; bytes <= PIECE_BYTES_MAX; bytes *= 2) {
        uint64_t ns = cost_of_pieces(s, *t, bytes);
        least = ns < least ? ns : least;
    }
    uint32_t best = PIECE_BYTES_MAX;
    while (best > PIECE_BYTES_MIN && cost_of_pieces(s, *t, best) > units_after(least, least / 100))
        best /= 2;
    return best;
}

static uint32_t within(uint64_t count, uint32_t least, uint32_t most) {
    return count < least ? least : count < most ? (uint32_t)count : most;
}

uint32_t spread_slots(const struct spread_terms *t) {
    uint64_t piece = t->piece_bytes == 0 ? UINT64_MAX : t->piece_bytes;
    return t->shared ? within(t->bytes / SHARED_PART / piece, SHARED_LEAST, SHARED_MOST)
                     : within(SLOTS_BYTES / piece, SLOTS_LEAST, SLOTS_MOST);
}
