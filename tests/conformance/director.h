/* SPDX-License-Identifier: MIT */
/* The director: plays a script in a theatre.
 *
 * Everything it knows of the nodes it reads from their parts of the stage, and it goes on to the
 * next statement only when this one has come about; a wait that takes too long fails the script at
 * its line. Requests of a block are handed over together, so that they truly are under way at once.
 *
 * For the history it notes which entries of a log lie inside a block, and what `record` has seen. */
#pragma once

#include "conformance/theatre.h"

/* Periods that a statement may take: far more than anything should. */
enum { DIRECTOR_PATIENCE = 200, DIRECTOR_BLOCKS = 32, DIRECTOR_NOTES = 128, NOTE_TEXT = 512 };

/* A part of a script whose requests are under way at once; per node the entries it has brought. */
struct block {
    bool pipeline; /* of one node, so that the order is determined */
    uint32_t first[SCRIPT_NODES_MAX + 1];
    uint32_t end[SCRIPT_NODES_MAX + 1];
};

/* What `record` has seen on a node, before entry `at` of its log. */
struct note {
    uint32_t node, at;
    char text[NOTE_TEXT];
};

struct director {
    const struct script *script;
    const struct theatre *theatre;
    void *t;
    struct stage *stage;
    const struct step *step; /* the one being played */
    uint64_t on, stopped;    /* nodes */
    uint64_t posted;         /* nodes with commands they have not been poked for */
    uint64_t in_block;       /* labels asked in the open block */
    bool open_block;
    struct block blocks[DIRECTOR_BLOCKS];
    uint32_t block_count;
    struct note notes[DIRECTOR_NOTES];
    uint32_t note_count;
    uint32_t
        since[SCRIPT_NODES_MAX + 1]; /* of the root's log: what was before is of a former life */
    bool failed;
};

/* The lowest node of a mask from `n` on; 64 if there is none. */
static inline uint32_t mask_next(uint64_t mask, uint32_t n) {
    while (n < 64 && (mask >> n & 1) == 0)
        n++;
    return n;
}

#define MASK_EACH(n, mask) \
    for (uint32_t n = mask_next((mask), 0); n < 64; n = mask_next((mask), n + 1))

static inline bool director_fail(struct director *d, const char *what) {
    printf("# %s:%u: %s (%s)\n", d->script->path, d->step->line, what, d->theatre->name);
    d->failed = true;
    return false;
}

static inline struct part *part_of(const struct director *d, uint32_t node) {
    return &d->stage->parts[node];
}

static inline uint64_t periods(const struct director *d, uint64_t count) {
    return count * d->stage->prim.period_ns;
}

static inline bool director_wait(struct director *d, bool (*condition)(void *context),
                                 void *context, const char *what) {
    uint64_t ns = periods(d, DIRECTOR_PATIENCE);
    return d->theatre->wait(d->t, condition, context, ns) || director_fail(d, what);
}

/* ---- handing over commands ---- */

static inline bool all_taken(void *context) {
    struct director *d = context;
    MASK_EACH(n, d->posted & d->on & ~d->stopped)
    if (stage_get(&part_of(d, n)->taken) != part_of(d, n)->posted)
        return false;
    return true;
}

/* A node that stands still takes them when it goes on. */
static inline void flush(struct director *d) {
    MASK_EACH(n, d->posted & d->on)
    d->theatre->poke(d->t, n);
    director_wait(d, all_taken, d, "a node does not take its commands");
    d->posted = 0;
}

static inline void post(struct director *d, uint32_t node) {
    const struct asked *a = &d->step->asked;
    struct command *c = stage_post(d->stage, node);
    c->label = d->step->label;
    c->set = a->set;
    c->request = a->request;
    c->request.tag = d->step->label;
    c->request.timeout_ns = periods(d, a->periods);
    if (a->request.kind == PRIMITIVE_BULK) {
        c->request.buffer = d->step->label + 1;
    } else if (a->bytes > 0) {
        struct bytes body = stage_body(d->stage, a->bytes);
        for (uint32_t i = 0; i < a->bytes; i++) /* a text belongs to its step, not to a label */
            ((uint8_t *)body.at)[i] =
                a->text ? (uint8_t)a->text[i] : script_byte(d->script, c->label, i);
        c->request.body = body;
    }
    stage_posted(d->stage, node);
    d->posted |= node_bit(node);
}

static inline void play_request(struct director *d) {
    MASK_EACH(n, d->step->who) {
        if ((d->on & node_bit(n)) == 0)
            director_fail(d, "this node is off");
        else
            post(d, n);
    }
    if (!d->open_block)
        flush(d);
    else if (d->step->verb == VERB_ASK)
        d->in_block |= node_bit(d->step->label);
}

/* Afterwards the director can see the node's variables, events and heap as they are. */
static inline bool reported(void *context) {
    struct part *p = context;
    return stage_get(&p->taken) == p->posted;
}

static inline bool look(struct director *d, uint32_t node) {
    if ((d->on & ~d->stopped & node_bit(node)) == 0)
        return director_fail(d, "this node is off or stands still");
    stage_post(d->stage, node)->report = true;
    stage_posted(d->stage, node);
    d->theatre->poke(d->t, node);
    return director_wait(d, reported, part_of(d, node), "a node does not report");
}

/* ---- answers ---- */

/* The final completion of a request, or NULL. */
static inline const struct completion *answer_of(const struct director *d, uint32_t label,
                                                 bool unknown) {
    const struct part *p = part_of(d, (uint32_t)__builtin_ctzll(d->script->asks[label]->who));
    uint32_t count = stage_get(&p->heard);
    for (uint32_t i = 0; i < count; i++) {
        const struct input *in = &p->log[i].in;
        if (in->kind == INPUT_COMPLETION && in->completion.tag == label &&
            (in->completion.outcome == OUTCOME_UNKNOWN) == unknown)
            return &in->completion;
    }
    return NULL;
}

static inline bool is_answered(void *context) {
    const struct director *d = context;
    bool unknown = d->step->outcomes == 1u << OUTCOME_UNKNOWN;
    return answer_of(d, d->step->label, unknown) != NULL;
}

static inline void play_expect(struct director *d) {
    const struct step *s = d->step;
    if (!director_wait(d, is_answered, d, "no answer"))
        return;
    const struct completion *c = answer_of(d, s->label, s->outcomes == 1u << OUTCOME_UNKNOWN);
    char what[128];
    if ((s->outcomes >> c->outcome & 1) == 0) {
        snprintf(what, sizeof what, "%s is %s, culprit %d", d->script->labels[s->label],
                 outcome_name(c->outcome), (int)c->culprit);
        director_fail(d, what);
        return;
    }
    bool blames = c->outcome != OUTCOME_DONE && c->outcome != OUTCOME_FALSE;
    if (c->culprit != (blames ? s->culprit : NO_NODE) && !s->any_culprit) {
        snprintf(what, sizeof what, "the culprit is %d", (int)c->culprit);
        director_fail(d, what);
    }
}

static inline void play_pending(struct director *d) {
    if (answer_of(d, d->step->label, false) != NULL)
        director_fail(d, "it is answered already");
}

/* ---- waiting for what the nodes hear ---- */

/* How the root, in its present life, has last spoken of the node. */
static inline bool is_up(const struct director *d, uint32_t node) {
    const struct part *root = part_of(d, script_root(d->script));
    uint32_t count = stage_get(&root->heard);
    bool up = false;
    for (uint32_t i = d->since[node]; i < count; i++)
        if (root->log[i].in.kind == INPUT_NODES && root->log[i].nodes & node_bit(node))
            up = root->log[i].in.nodes.up;
    return up;
}

/* So often the node has heard this; signals of an event count from its last beginning on. */
static inline uint64_t times(const struct part *p, enum input_kind kind, uint64_t event) {
    uint32_t count = stage_get(&p->heard);
    uint64_t times = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct input *in = &p->log[i].in;
        if (kind == INPUT_SIGNAL && in->kind == INPUT_JOINED)
            times = 0;
        times += in->kind == kind && (kind != INPUT_SIGNAL || in->signal.event == event);
    }
    return times;
}

/* Is this the text of the last strobe of a channel, or of the last hint? */
static inline bool last_text(const struct part *p, enum input_kind kind, uint64_t channel,
                             const char *text) {
    uint32_t count = stage_get(&p->heard);
    const struct heard *last = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (p->log[i].in.kind == kind &&
            (kind != INPUT_STROBE || p->log[i].in.strobe.channel == channel))
            last = &p->log[i];
    return last != NULL && last->len == strlen(text) && memcmp(last->body, text, last->len) == 0;
}

static inline bool holds_at(const struct director *d, uint32_t node) {
    const struct step *s = d->step;
    const struct part *p = part_of(d, node);
    switch (s->until) {
    case UNTIL_UP:
        return is_up(d, node);
    case UNTIL_DOWN:
        return !is_up(d, node);
    case UNTIL_JOINED:
        return times(p, INPUT_JOINED, 0) >= s->value;
    case UNTIL_FENCED:
        return times(p, INPUT_FENCED, 0) >= s->value;
    case UNTIL_EVENT:
        return times(p, INPUT_SIGNAL, s->index) >= s->value;
    case UNTIL_STROBE:
        return last_text(p, INPUT_STROBE, s->index, s->text);
    case UNTIL_PREPARED:
        return last_text(p, INPUT_PREPARED, 0, s->text);
    case UNTILS:
        break;
    }
    return false;
}

static inline bool until_holds(void *context) {
    const struct director *d = context;
    MASK_EACH(n, d->step->who)
    if (!holds_at(d, n))
        return false;
    return true;
}

static inline bool never(void *context) {
    (void)context;
    return false;
}

/* ---- lives ---- */

/* The root tells everyone anew; of others, what it said before is about their former life. */
static inline void forget(struct director *d, uint32_t node) {
    uint32_t now = stage_get(&part_of(d, script_root(d->script))->heard);
    for (uint32_t n = 0; n < d->script->universe; n++)
        if (n == node || node == script_root(d->script))
            d->since[n] = now;
}

static inline void play_life(struct director *d, uint32_t node) {
    uint64_t bit = node_bit(node);
    bool on = (d->on & bit) != 0, still = (d->stopped & bit) != 0;
    switch (d->step->verb) {
    case VERB_START:
    case VERB_RESTART:
        if (on) {
            director_fail(d, "this node is on already");
            return;
        }
        part_of(d, node)->taken = part_of(d, node)->posted; /* its former life's are void */
        d->on |= bit;
        d->theatre->boot(d->t, node);
        break;
    case VERB_KILL:
        if (on)
            d->theatre->kill(d->t, node);
        d->on &= ~bit;
        d->stopped &= ~bit;
        if (node == script_root(d->script))
            forget(d, node);
        break;
    case VERB_STOP:
        if (on && !still)
            d->theatre->stop(d->t, node);
        d->stopped |= bit;
        break;
    default:
        if (still)
            d->theatre->resume(d->t, node);
        d->stopped &= ~bit;
    }
}

/* The root goes first: nobody can join without it. */
static inline void play_lives(struct director *d) {
    uint64_t root = d->step->who & node_bit(script_root(d->script));
    MASK_EACH(r, root)
    play_life(d, r);
    MASK_EACH(n, d->step->who & ~root)
    play_life(d, n);
    if (d->step->verb == VERB_RESTART)
        MASK_EACH(n, d->step->who & ~root)
    forget(d, n);
}

/* ---- checks ---- */

static inline bool heap_has(const struct director *d, const uint8_t *heap) {
    const struct step *s = d->step;
    uint64_t len = s->text != NULL ? strlen(s->text) : 0;
    if (s->label != NO_LABEL)
        len = d->script->asks[s->label]->asked.bytes;
    if (s->empty)
        len = s->everywhere ? STAGE_HEAP : STAGE_TEXT;
    for (uint64_t i = 0; i < len; i++) {
        uint8_t wanted = 0;
        if (s->label != NO_LABEL)
            wanted = script_byte(d->script, s->label, i);
        else if (!s->empty)
            wanted = (uint8_t)s->text[i];
        if (s->index + i >= STAGE_HEAP || heap[s->index + i] != wanted)
            return false;
    }
    return true;
}

static inline void play_check(struct director *d) {
    const struct step *s = d->step;
    MASK_EACH(n, s->who) {
        if (!look(d, n))
            return;
        const struct part *p = part_of(d, n);
        uint64_t is = s->verb == VERB_EVENT ? p->events[s->index % STAGE_EVENTS]
                                            : p->variables[s->index % STAGE_VARIABLES];
        char what[128];
        if (s->verb == VERB_HEAP) {
            snprintf(what, sizeof what, "the heap of node %u is not so", n);
            if (!heap_has(d, d->theatre->heap(d->t, n)))
                director_fail(d, what);
        } else if (is != s->value) {
            snprintf(what, sizeof what, "on node %u it is %" PRIu64, n, is);
            director_fail(d, what);
        }
    }
}

/* All nodes of the set have the same, whatever it is. */
static inline void play_consistent(struct director *d) {
    const struct step *s = d->step;
    uint32_t first = (uint32_t)__builtin_ctzll(s->who);
    MASK_EACH(n, s->who) {
        if (!look(d, n))
            return;
        bool same = s->memory ? s->index + s->value <= STAGE_HEAP &&
                                    memcmp(d->theatre->heap(d->t, n) + s->index,
                                           d->theatre->heap(d->t, first) + s->index, s->value) == 0
                              : part_of(d, n)->variables[s->index % STAGE_VARIABLES] ==
                                    part_of(d, first)->variables[s->index % STAGE_VARIABLES];
        char what[64];
        snprintf(what, sizeof what, "nodes %u and %u differ", first, n);
        if (!same)
            director_fail(d, what);
    }
}

/* ---- blocks and notes ---- */

static inline void mark(const struct director *d, uint32_t *positions) {
    for (uint32_t n = 0; n < d->script->universe; n++)
        positions[n] = stage_get(&part_of(d, n)->heard);
}

static inline void play_begin(struct director *d) {
    if (d->open_block || d->block_count == DIRECTOR_BLOCKS) {
        director_fail(d, d->open_block ? "a block inside a block" : "too many blocks");
        return;
    }
    d->open_block = true;
    d->in_block = 0;
    d->blocks[d->block_count].pipeline = d->step->verb == VERB_PIPELINE;
    mark(d, d->blocks[d->block_count].first);
}

static inline bool all_answered(void *context) {
    const struct director *d = context;
    MASK_EACH(label, d->in_block)
    if (answer_of(d, label, false) == NULL)
        return false;
    return true;
}

static inline void play_end(struct director *d) {
    if (!d->open_block) {
        director_fail(d, "no block is open");
        return;
    }
    director_wait(d, all_answered, d, "a request of the block is not answered");
    mark(d, d->blocks[d->block_count++].end);
    d->open_block = false;
}

/* Runs of bytes that are not zero, by their place, length and sum. */
static inline void describe_heap(struct text *t, const uint8_t *heap) {
    for (uint32_t i = 0; i < STAGE_HEAP; i++) {
        uint32_t first = i;
        uint64_t sum = 0;
        for (; i < STAGE_HEAP && heap[i] != 0; i++)
            sum = sum * 31 + heap[i];
        if (i == first)
            continue;
        text_str(t, " heap ");
        text_u64(t, first);
        text_str(t, " bytes ");
        text_u64(t, i - first);
        text_str(t, " sum ");
        text_hex64(t, sum);
    }
}

static inline void describe_numbers(struct text *t, const char *name, const uint64_t *numbers,
                                    uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (numbers[i] == 0)
            continue;
        text_str(t, name);
        text_u64(t, i);
        text_str(t, " = ");
        text_u64(t, numbers[i]);
    }
}

static inline void play_record(struct director *d) {
    MASK_EACH(n, d->step->who) {
        if (!look(d, n))
            return;
        if (d->note_count == DIRECTOR_NOTES) {
            director_fail(d, "too many records");
            return;
        }
        struct note *note = &d->notes[d->note_count++];
        const struct part *p = part_of(d, n);
        *note = (struct note){.node = n, .at = stage_get(&p->heard)};
        struct text t;
        text_init(&t, note->text, sizeof note->text);
        text_str(&t, "memory");
        describe_numbers(&t, " v", p->variables, STAGE_VARIABLES);
        describe_numbers(&t, " event ", p->events, STAGE_EVENTS);
        describe_heap(&t, d->theatre->heap(d->t, n));
    }
}

/* ---- playing ---- */

static inline void play_step(struct director *d) {
    switch (d->step->verb) {
    case VERB_SET:
    case VERB_ASK:
    case VERB_STROBE:
        play_request(d);
        break;
    case VERB_EXPECT:
        play_expect(d);
        break;
    case VERB_PENDING:
        play_pending(d);
        break;
    case VERB_UNTIL:
        director_wait(d, until_holds, d, "it does not come about");
        break;
    case VERB_HEAP:
    case VERB_VARIABLE:
    case VERB_EVENT:
        play_check(d);
        break;
    case VERB_CONSISTENT:
        play_consistent(d);
        break;
    case VERB_PASS:
        d->theatre->wait(d->t, never, NULL, periods(d, d->step->value));
        break;
    case VERB_CONCURRENT:
    case VERB_PIPELINE:
        play_begin(d);
        break;
    case VERB_END:
        play_end(d);
        break;
    case VERB_RECORD:
        play_record(d);
        break;
    default:
        play_lives(d);
    }
}

/* True if everything came about as the script says. The history can be read until director_free().
 */
static inline bool director_play(struct director *d, const struct script *script,
                                 const struct theatre *theatre, uint64_t seed) {
    *d = (struct director){.script = script, .theatre = theatre};
    d->t = theatre->open(script, seed);
    d->stage = theatre->stage(d->t);
    for (uint32_t i = 0; i < script->step_count && !d->failed; i++) {
        d->step = &script->steps[i];
        bool request =
            d->step->verb == VERB_SET || d->step->verb == VERB_ASK || d->step->verb == VERB_STROBE;
        if (d->posted != 0 && !request)
            flush(d);
        play_step(d);
    }
    return !d->failed;
}

static inline void director_free(struct director *d) {
    d->theatre->close(d->t);
}
