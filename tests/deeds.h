/* SPDX-License-Identifier: MIT */
/* The daemon of the kill test and its log: a stream of operations, and what became of them.
 *
 * Every node has an actor. A few of them, the root among these, keep a stream of requests under way,
 * each with a number of its own (its tag) that every word it writes leads back to. Requests,
 * answers, signals and memberships are written to memory that is shared with the test and outlives
 * the process: one writer for each table, counters published with release.
 *
 * When something is published matters more than what. A request is, before anything of it can have
 * left the process. A signal is, before the acknowledgement can have left. An answer is, only after
 * the effects of its step were carried out (in `observe`): so whoever reads an answer and then a
 * heap finds there what the answer promises. The end of a membership is, before the heap is
 * cleared.
 *
 * Places that operations write to: slots of the heap (XFER), larger slots (BULK), and variables
 * (COMPARE), of which each node shows a copy after every turn. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/units.h"
#include "os/crew.h"

enum { NODES_MAX = 65, SET_WORDS = (NODES_MAX + 63) / 64 };
enum { ACTORS_MAX = 8, DEEDS_MAX = 16384, STAYS_MAX = 512, SIGNALS_MAX = 65536 };
enum { OPEN_MAX = 6 }; /* requests of one actor at once */

/* Places. */
enum { SMALL_SLOTS = 24, LARGE_SLOTS = 3, WORDS = 4 };
enum { LARGE_0 = SMALL_SLOTS, WORD_0 = LARGE_0 + LARGE_SLOTS, PLACES = WORD_0 + WORDS };
enum { STAMP_BYTES = 24, SMALL_BYTES = STAMP_BYTES + 256, LARGE_BYTES = 24 * 1024 };
enum { LARGE_AT = SMALL_SLOTS * SMALL_BYTES, HEAP_BYTES = LARGE_AT + LARGE_SLOTS * LARGE_BYTES };

enum deed_state { DEED_NONE, DEED_RESERVED, DEED_ASKED };

/* One request. */
struct deed {
    uint32_t state; /* enum deed_state, published */
    uint32_t finals;
    uint32_t unknowns;
    uint8_t kind; /* enum primitive_kind */
    bool closing;
    uint32_t node, life, stay;
    uint32_t place; /* PLACES if it writes none */
    uint32_t len;
    uint64_t set[SET_WORDS];
    uint64_t timeout_ns;
    uint64_t asked_ns;
    uint64_t unknown_ns; /* when it first became so */
    uint64_t ended_ns;
    struct completion result;
};

/* A membership: from JOINED to FENCED, or to the end of the process, of which the test knows. */
struct stay {
    uint32_t life;
    uint64_t order; /* operations after this one count */
    uint64_t joined_ns;
    uint64_t fenced_ns; /* 0: not */
};

/* An operation that was applied here. */
struct signal_heard {
    uint32_t stay;
    uint32_t place;
    uint64_t order;
    uint64_t tag; /* found in the heap after the turn; 0 if another has overwritten it */
};

/* What a node shows. */
struct node_log {
    struct actor *actor; /* in the node's own process */
    uint32_t stays;      /* published */
    uint32_t signals;
    uint32_t tags_known; /* of the signals */
    uint64_t words[WORDS];
    struct prim_status status;
    struct stay stay[STAYS_MAX];
    struct signal_heard signal[SIGNALS_MAX];
};

/* What an actor with requests shows. */
struct actor_log {
    uint32_t deeds;               /* published; all lives of its node */
    uint32_t answers;             /* published */
    uint32_t answered[DEEDS_MAX]; /* deeds, in the order of their final answers */
    struct deed deed[DEEDS_MAX];
};

enum stage { STAGE_QUIET, STAGE_STREAM, STAGE_CLOSE };

/* All that is shared. */
struct deeds {
    struct crew *crew;
    struct prim_config prim;
    uint32_t root;
    uint32_t universe;
    uint64_t seed;
    uint64_t gap_ns; /* mean time between two requests of an actor */
    uint32_t actor_count;
    uint32_t actor_node[ACTORS_MAX];
    uint32_t stage;   /* atomic, the test's */
    uint32_t closing; /* how often the closing requests were to be made, the test's */
    bool aiming;      /* the test waits for a moment: ring */
    struct node_log node[NODES_MAX];
    struct actor_log actor[ACTORS_MAX];
};

/* ---- tags and bodies ---- */

static inline uint64_t deed_tag(uint32_t actor, uint32_t index) {
    return (uint64_t)actor * DEEDS_MAX + index + 1;
}

static inline struct deed *deed_of(struct deeds *d, uint64_t tag) {
    if (tag == 0 || tag > (uint64_t)d->actor_count * DEEDS_MAX)
        return NULL;
    return &d->actor[(tag - 1) / DEEDS_MAX].deed[(tag - 1) % DEEDS_MAX];
}

static inline uint32_t place_offset(uint32_t place) {
    return place < LARGE_0 ? place * SMALL_BYTES : LARGE_AT + (place - LARGE_0) * LARGE_BYTES;
}

static inline uint32_t place_room(uint32_t place) {
    return (place < LARGE_0 ? SMALL_BYTES : LARGE_BYTES) - STAMP_BYTES;
}

static inline uint32_t place_at(uint32_t offset) {
    return offset < LARGE_AT ? offset / SMALL_BYTES : LARGE_0 + (offset - LARGE_AT) / LARGE_BYTES;
}

/* A stamp (tag, length, digest of the body), then the body. */
static inline void stamp(uint8_t *to, uint64_t tag, uint32_t len) {
    struct random r;
    random_init(&r, tag);
    random_bytes(&r, to + STAMP_BYTES, len);
    store_le64(to, tag);
    store_le64(to + 8, len);
    store_le64(to + 16, hash_once(to + STAMP_BYTES, len) ^ tag);
}

/* ---- the actor, in its node's process ---- */

enum { TIMER_ACT };
enum { BULK_BUFFER = 1 };

struct open_deed {
    uint64_t tag; /* 0: free */
};

struct actor {
    struct deeds *all;
    struct node_log *log;
    struct actor_log *deeds; /* NULL: it makes no requests */
    uint32_t number;         /* among the actors */
    uint32_t node, life;
    struct globals globals;
    struct random random;
    bool member;
    uint32_t closed; /* closing requests made */
    struct open_deed open[OPEN_MAX];
    uint64_t bulk_tag;  /* the buffer holds the block of this request; 0: none */
    uint64_t bulk_open; /* under way */
    struct completion heard[OPEN_MAX + 2];
    uint64_t heard_ns[OPEN_MAX + 2];
    uint32_t heard_count;
    struct nodeset set;
    uint64_t set_words[NODES_MAX + 8];
};

static inline void publish_u32(uint32_t *at, uint32_t value) {
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
    /* What the process does next must not be seen before this, not even a plain store. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline uint32_t look_u32(const uint32_t *at) {
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static inline void draw_set(struct actor *a) {
    struct random *r = &a->random;
    uint32_t universe = a->all->universe;
    nodeset_clear(&a->set);
    switch (random_below(r, 4)) {
    case 0: /* all */
        nodeset_add_range(&a->set, 0, universe - 1);
        break;
    case 1: /* one */
        nodeset_add(&a->set, (uint32_t)random_below(r, universe));
        break;
    case 2: { /* neighbours */
        uint32_t first = (uint32_t)random_below(r, universe);
        nodeset_add_range(&a->set, first, (uint32_t)random_between(r, first, universe - 1));
        break;
    }
    default: { /* one in so many */
        uint64_t one_in = random_between(r, 2, 8);
        for (uint32_t n = 0; n < universe; n++)
            if (random_chance(r, 1, one_in))
                nodeset_add(&a->set, n);
        break;
    }
    }
    if (nodeset_empty(&a->set))
        nodeset_add(&a->set, a->node);
}

static inline struct open_deed *free_open(struct actor *a) {
    for (uint32_t i = 0; i < OPEN_MAX; i++)
        if (a->open[i].tag == 0)
            return &a->open[i];
    return NULL;
}

static inline uint64_t new_deed(struct actor *a) {
    uint32_t index = a->deeds->deeds;
    if (index == DEEDS_MAX)
        return 0;
    a->deeds->deed[index] = (struct deed){.state = DEED_RESERVED, .node = a->node, .life = a->life};
    publish_u32(&a->deeds->deeds, index + 1);
    return deed_tag(a->number, index);
}

/* Writes the request down, then makes it. */
static inline void ask(struct actor *a, const struct primitive *r, uint32_t place, uint32_t len,
                       struct effects *out) {
    struct deed *d = deed_of(a->all, r->tag);
    d->kind = (uint8_t)r->kind;
    d->closing = a->all->stage == STAGE_CLOSE;
    d->stay = a->log->stays - 1;
    d->place = place;
    d->len = len;
    d->timeout_ns = r->timeout_ns;
    NODESET_EACH (n, &a->set)
        bits_set_run(d->set, n, n);
    d->asked_ns = clock_ns();
    publish_u32(&d->state, DEED_ASKED);
    free_open(a)->tag = r->tag;
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = *r;
    e->request.set = effects_copy_set(out, &a->set);
    if (__atomic_load_n(&a->all->aiming, __ATOMIC_RELAXED))
        crew_ring(a->all->crew);
}

static inline struct primitive begin(struct actor *a, enum primitive_kind kind, uint64_t tag) {
    uint64_t period = a->all->prim.period_ns;
    return (struct primitive){.kind = kind,
                              .tag = tag,
                              .timeout_ns = random_between(&a->random, 2 * period, 20 * period),
                              .remote_event = NO_EVENT,
                              .local_event = NO_EVENT,
                              .write_variable = NO_VARIABLE};
}

static inline void ask_xfer(struct actor *a, uint64_t tag, uint32_t place, struct effects *out) {
    uint8_t body[SMALL_BYTES];
    struct primitive r = begin(a, PRIMITIVE_XFER, tag);
    uint32_t len = (uint32_t)random_between(&a->random, 8, place_room(place));
    stamp(body, tag, len);
    r.heap_offset = place_offset(place);
    r.body = effects_copy(out, bytes_of(body, STAMP_BYTES + len));
    r.remote_event = 0;
    r.hint = random_chance(&a->random, 1, 4);
    ask(a, &r, place, len, out);
}

/* Mostly of a condition that holds; a value is written only by compares. */
static inline void ask_compare(struct actor *a, uint64_t tag, bool always, struct effects *out) {
    struct primitive r = begin(a, PRIMITIVE_COMPARE, tag);
    uint32_t word = (uint32_t)random_below(&a->random, WORDS);
    bool writes = always || random_chance(&a->random, 3, 4);
    r.variable = word;
    r.relation = RELATION_NE;
    r.value = UINT64_MAX;
    if (!always && random_chance(&a->random, 1, 4)) {
        r.relation = RELATION_EQ;
        r.value = a->globals.variables[word];
    }
    if (writes) {
        r.write_variable = word;
        r.write_value = tag;
    }
    ask(a, &r, writes ? WORD_0 + word : (uint32_t)PLACES, 0, out);
}

static inline void ask_bulk(struct actor *a, struct effects *out) {
    struct deed *d = deed_of(a->all, a->bulk_tag);
    struct primitive r = begin(a, PRIMITIVE_BULK, a->bulk_tag);
    r.timeout_ns += 6 * a->all->prim.period_ns;
    r.heap_offset = place_offset(d->place);
    r.buffer = BULK_BUFFER;
    r.buffer_bytes = STAMP_BYTES + d->len;
    r.remote_event = 0;
    a->bulk_open = a->bulk_tag;
    ask(a, &r, d->place, d->len, out);
}

static inline void act(struct actor *a, struct effects *out) {
    uint32_t stage = look_u32(&a->all->stage);
    if (free_open(a) == NULL || stage == STAGE_QUIET)
        return;
    if (stage == STAGE_CLOSE) {
        if (a->node != a->all->root || a->closed >= 2 * look_u32(&a->all->closing))
            return;
        uint64_t tag = new_deed(a);
        nodeset_add_range(&a->set, 0, a->all->universe - 1);
        if (a->closed++ % 2 == 0)
            ask_compare(a, tag, true, out);
        else
            ask_xfer(a, tag, 0, out);
        return;
    }
    uint64_t kind = random_below(&a->random, 100);
    draw_set(a);
    if (kind < 8 && a->bulk_tag != 0 && a->bulk_open == 0) {
        ask_bulk(a, out);
        return;
    }
    uint64_t tag = new_deed(a);
    if (tag == 0)
        return;
    if (kind < 70)
        ask_xfer(a, tag, (uint32_t)random_below(&a->random, SMALL_SLOTS), out);
    else
        ask_compare(a, tag, false, out);
}

static inline void arm(struct actor *a, uint64_t now, struct effects *out) {
    effects_timer(out, TIMER_ACT, now + 1 + random_below(&a->random, 2 * a->all->gap_ns));
}

static inline void close_open(struct actor *a, uint64_t tag, struct effects *out) {
    for (uint32_t i = 0; i < OPEN_MAX; i++)
        if (a->open[i].tag == tag)
            a->open[i].tag = 0;
    if (a->bulk_open == tag) {
        effects_add(out, EFFECT_BUFFER_CLOSE)->buffer.buffer = BULK_BUFFER;
        a->bulk_open = a->bulk_tag = 0;
    }
}

static inline void on_completion(struct actor *a, const struct completion *c, struct effects *out) {
    if (c->outcome == OUTCOME_UNKNOWN) {
        struct deed *d = deed_of(a->all, c->tag);
        if (d->unknowns++ == 0)
            d->unknown_ns = clock_ns();
        return;
    }
    ASSERT(a->heard_count < sizeof a->heard / sizeof *a->heard);
    a->heard_ns[a->heard_count] = clock_ns();
    a->heard[a->heard_count++] = *c;
    close_open(a, c->tag, out);
}

static inline void on_joined(struct actor *a, const struct input_joined *j, uint64_t now,
                             struct effects *out) {
    uint32_t index = a->log->stays;
    ASSERT(index < STAYS_MAX);
    a->log->stay[index] =
        (struct stay){.life = a->life, .order = j->order, .joined_ns = clock_ns()};
    publish_u32(&a->log->stays, index + 1);
    a->member = true;
    if (a->deeds != NULL)
        arm(a, now, out);
}

static inline void on_fenced(struct actor *a, struct effects *out) {
    if (a->member)
        a->log->stay[a->log->stays - 1].fenced_ns = clock_ns();
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    a->member = false;
    effects_timer(out, TIMER_ACT, 0);
}

static inline void on_signal(struct actor *a, const struct input_signal *s) {
    uint32_t index = a->log->signals;
    ASSERT(index < SIGNALS_MAX);
    a->log->signal[index] = (struct signal_heard){
        .stay = a->log->stays - 1, .place = place_at(s->heap_offset), .order = s->order};
    publish_u32(&a->log->signals, index + 1);
    if (__atomic_load_n(&a->all->aiming, __ATOMIC_RELAXED))
        crew_ring(a->all->crew);
}

static inline void actor_step(void *self, const struct input *in, struct effects *out) {
    struct actor *a = self;
    switch (in->kind) {
    case INPUT_JOINED:
        on_joined(a, &in->joined, in->now, out);
        break;
    case INPUT_FENCED:
        on_fenced(a, out);
        break;
    case INPUT_COMPLETION:
        on_completion(a, &in->completion, out);
        break;
    case INPUT_SIGNAL:
        on_signal(a, &in->signal);
        break;
    case INPUT_TIMER:
        if (!a->member)
            break;
        act(a, out);
        arm(a, in->now, out);
        break;
    default:
        break;
    }
}

static inline struct machine actor_new(void *context, uint32_t node, struct globals globals) {
    struct deeds *all = context;
    struct actor *a = calloc(1, sizeof *a);
    ASSERT(a != NULL);
    *a = (struct actor){.all = all, .log = &all->node[node], .node = node, .globals = globals};
    a->life = crew_lives(all->crew, node) + 1; /* the parent counts it when it has forked */
    for (uint32_t i = 0; i < all->actor_count; i++)
        if (all->actor_node[i] == node) {
            a->number = i;
            a->deeds = &all->actor[i];
        }
    nodeset_init(&a->set, all->universe, a->set_words);
    struct random seed;
    random_init(&seed, all->seed);
    a->random = random_fork(&seed, ((uint64_t)node << 32) + a->life);
    a->log->actor = a;
    a->log->tags_known = a->log->signals; /* a former life may have left some open */
    return (struct machine){.self = a, .step = actor_step};
}

/* ---- after every turn ---- */

/* What the last life of this node has not published is not published by this one. */
static inline void show_answers(struct actor *a) {
    for (uint32_t i = 0; i < a->heard_count; i++) {
        struct deed *d = deed_of(a->all, a->heard[i].tag);
        d->result = a->heard[i];
        d->ended_ns = a->heard_ns[i];
        publish_u32(&d->finals, d->finals + 1);
        if (d->finals == 1) {
            a->deeds->answered[a->deeds->answers] = (uint32_t)(d - a->deeds->deed);
            publish_u32(&a->deeds->answers, a->deeds->answers + 1);
        }
    }
    a->heard_count = 0;
}

/* Which operation a signal was for: what lies there now, unless a later one has overwritten it. */
static inline void show_tags(struct actor *a, const uint8_t *heap) {
    struct node_log *log = a->log;
    if (log->tags_known == log->signals)
        return;
    uint32_t taken = 0;
    for (uint32_t i = log->signals; i-- > log->tags_known;) {
        struct signal_heard *s = &log->signal[i];
        if (s->stay == log->stays - 1 && a->member && !(taken >> s->place & 1))
            s->tag = load_le64(heap + place_offset(s->place));
        taken |= 1U << s->place;
    }
    publish_u32(&log->tags_known, log->signals);
}

/* The block of the next bulk request. */
static inline void prepare_bulk(struct actor *a, struct life *l) {
    uint64_t tag = new_deed(a);
    if (tag == 0)
        return;
    struct deed *d = deed_of(a->all, tag);
    d->place = LARGE_0 + (uint32_t)random_below(&a->random, LARGE_SLOTS);
    d->len = (uint32_t)random_between(&a->random, 1024, place_room(d->place));
    uint8_t *buffer = life_buffer(l, BULK_BUFFER, STAMP_BYTES + d->len);
    ASSERT(buffer != NULL);
    stamp(buffer, tag, d->len);
    a->bulk_tag = tag;
}

static inline void actor_observe(void *context, struct life *l) {
    struct deeds *all = context;
    struct actor *a = all->node[life_node(l)].actor;
    const uint64_t *variables = life_globals(l).variables;
    for (uint32_t i = 0; i < WORDS; i++)
        __atomic_store_n(&a->log->words[i], a->member ? variables[i] : 0, __ATOMIC_RELEASE);
    prim_status(life_prim(l), &a->log->status);
    show_tags(a, life_heap(l));
    show_answers(a);
    if (a->deeds != NULL && a->bulk_tag == 0)
        prepare_bulk(a, l);
    if (__atomic_load_n(&all->aiming, __ATOMIC_RELAXED) && a->node == all->root)
        crew_ring(all->crew);
}
