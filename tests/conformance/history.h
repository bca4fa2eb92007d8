/* SPDX-License-Identifier: MIT */
/* The observable history of a play, as text that is the same in every world.
 *
 * It says, node by node and in the order in which it happened there, what the daemon has heard.
 * Numbers that depend on the run are replaced: orders by their place among all that anyone has
 * seen, incarnations and epochs by their rank, tags by the script's labels. A signal is told by
 * the label of the request whose completion has the same order.
 *
 * Left out is what may differ: places inside a `concurrent` block, whose lines are sorted; the
 * outcome of a request for which the script allows several, with its signals; how the root batches
 * its news of nodes; all but the newest strobe of a block. */
#pragma once

#include "conformance/director.h"

enum { HISTORY_LINES = STAGE_HEARD, HISTORY_LINE = 640, HISTORY_ORDERS = 4096 };

struct history_line {
    char text[HISTORY_LINE];
    uint32_t block;  /* 0: none, else one above its index */
    uint32_t strobe; /* of a strobe: one above its channel */
    uint64_t nodes;  /* of news about nodes: whom */
    bool up;
};

struct history {
    const struct director *d;
    uint64_t orders[HISTORY_ORDERS]; /* that were seen, sorted */
    uint32_t order_count;
    uint64_t order_of[SCRIPT_LABELS_MAX]; /* 0 if none */
    uint64_t epochs[16];
    uint32_t epoch_count;
    struct history_line lines[HISTORY_LINES];
    uint32_t count;
};

/* ---- numbers ---- */

/* The number's rank from 1 on; it is put into its place if it is new. */
static inline uint32_t rank_in(uint64_t *list, uint32_t *count, uint32_t cap, uint64_t v) {
    uint32_t at = 0;
    while (at < *count && list[at] < v)
        at++;
    if (at == *count || list[at] != v) {
        ASSERT(*count < cap);
        memmove(list + at + 1, list + at, (*count - at) * sizeof *list);
        list[at] = v;
        ++*count;
    }
    return at + 1;
}

static inline uint32_t label_of(const struct history *h, uint64_t order) {
    for (uint32_t i = 0; i < h->d->script->label_count && order != 0; i++)
        if (h->order_of[i] == order)
            return i;
    return NO_LABEL;
}

/* Does it belong to a request that may end in several ways? */
static inline bool is_open(const struct history *h, uint64_t order) {
    uint32_t label = label_of(h, order);
    return label != NO_LABEL && script_is_open(h->d->script, label);
}

static inline bool has_place(const struct completion *c) {
    return (c->outcome == OUTCOME_DONE || c->outcome == OUTCOME_FALSE) && c->order != 0;
}

static inline void note_order(struct history *h, uint64_t order) {
    if (!is_open(h, order))
        rank_in(h->orders, &h->order_count, HISTORY_ORDERS, order);
}

/* First the labels' orders, then all that are told: completions of open requests are not. */
static inline void collect_orders(struct history *h) {
    const struct director *d = h->d;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t n = 0; n < d->script->universe; n++) {
            for (uint32_t i = 0; i < part_of(d, n)->heard; i++) {
                const struct input *in = &part_of(d, n)->log[i].in;
                bool placed = in->kind == INPUT_COMPLETION && has_place(&in->completion);
                if (pass == 0 && in->kind == INPUT_COMPLETION && in->completion.order != 0)
                    h->order_of[in->completion.tag] = in->completion.order;
                else if (pass == 1 && placed)
                    note_order(h, in->completion.order);
                else if (pass == 1 && in->kind == INPUT_SIGNAL)
                    note_order(h, in->signal.order);
                else if (pass == 1 && in->kind == INPUT_JOINED)
                    rank_in(h->epochs, &h->epoch_count, 16, in->joined.epoch);
            }
        }
    }
}

/* ---- lines ---- */

static inline void text_label(struct text *t, const struct history *h, uint32_t label) {
    text_str(t, label == NO_LABEL ? "?" : h->d->script->labels[label]);
}

static inline void text_number(struct text *t, const char *name, uint64_t v) {
    text_str(t, name);
    text_u64(t, v);
}

static inline void text_node(struct text *t, const struct script *s, uint32_t node) {
    if (node == script_root(s))
        text_str(t, "root");
    else
        text_number(t, "n", node);
}

static inline void text_mask(struct text *t, const struct script *s, uint64_t mask) {
    MASK_EACH(n, mask) {
        text_char(t, ' ');
        text_node(t, s, n);
    }
}

/* Inside a concurrent block a place is a matter of chance. */
static inline void text_place(struct text *t, const struct history *h, uint32_t block,
                              uint64_t order) {
    if (block != 0 && !h->d->blocks[block - 1].pipeline)
        return;
    uint32_t at = 0;
    while (at < h->order_count && h->orders[at] < order)
        at++;
    text_number(t, " place ", at + 1);
}

static inline void line_completion(struct text *t, const struct history *h, uint32_t block,
                                   const struct completion *c) {
    const struct script *s = h->d->script;
    uint32_t label = (uint32_t)c->tag;
    text_label(t, h, label);
    if (script_is_open(s, label)) {
        const char *between = " ";
        for (uint32_t i = 0; i < OUTCOMES; i++) {
            if ((s->allowed[label] >> i & 1) == 0)
                continue;
            text_str(t, between);
            text_str(t, outcome_name((enum outcome)i));
            between = " or ";
        }
        return;
    }
    text_char(t, ' ');
    text_str(t, outcome_name(c->outcome));
    bool any = false;
    for (uint32_t i = 0; i < s->step_count; i++)
        any = any || (s->steps[i].verb == VERB_EXPECT && s->steps[i].label == label &&
                      s->steps[i].any_culprit);
    if (c->culprit != NO_NODE && !any) {
        text_str(t, " culprit ");
        text_node(t, s, c->culprit);
    }
    if (has_place(c))
        text_place(t, h, block, c->order);
}

static inline void line_signal(struct text *t, const struct history *h, uint32_t block,
                               const struct input_signal *in) {
    text_str(t, "signal of ");
    text_label(t, h, label_of(h, in->order));
    text_number(t, " event ", in->event);
    text_number(t, " at ", in->heap_offset);
    text_number(t, " bytes ", in->len);
    text_place(t, h, block, in->order);
}

/* Sorting a block must not hide it: signals come in the one order of all operations. */
static inline bool is_late(const struct part *p, uint32_t at) {
    bool late = false;
    for (uint32_t i = 0; i < at; i++) {
        const struct input *in = &p->log[i].in;
        if (in->kind == INPUT_JOINED)
            late = false;
        late = late || (in->kind == INPUT_SIGNAL && in->signal.order >= p->log[at].in.signal.order);
    }
    return late;
}

/* Nor this: what is done has been signalled to the caller, if it is one of the set. */
static inline bool is_early(const struct history *h, const struct part *p, uint32_t at) {
    const struct completion *c = &p->log[at].in.completion;
    const struct asked *a = &h->d->script->asks[c->tag]->asked;
    if (c->outcome != OUTCOME_DONE || a->request.remote_event == NO_EVENT ||
        (a->set & node_bit(p->node)) == 0)
        return false;
    for (uint32_t i = 0; i < at; i++)
        if (p->log[i].in.kind == INPUT_SIGNAL && p->log[i].in.signal.order == c->order)
            return false;
    return true;
}

/* How many operations that anyone has seen lie before it. */
static inline uint32_t seen_until(const struct history *h, uint64_t order) {
    uint32_t before = 0;
    while (before < h->order_count && h->orders[before] <= order)
        before++;
    return before;
}

static inline void line_joined(struct text *t, struct history *h, uint32_t block,
                               const struct part *p, uint32_t at) {
    const struct input_joined *in = &p->log[at].in.joined;
    uint32_t life = 1;
    for (uint32_t i = 0; i < at; i++)
        life +=
            p->log[i].in.kind == INPUT_JOINED && p->log[i].in.joined.incarnation != in->incarnation;
    text_number(t, "joined life ", life);
    text_number(t, " epoch ", rank_in(h->epochs, &h->epoch_count, 16, in->epoch));
    if (block == 0)
        text_number(t, " after ", seen_until(h, in->order));
}

static inline void line_body(struct text *t, const struct heard *heard) {
    text_str(t, " \"");
    text_strn(t, (const char *)heard->body, heard->len);
    text_char(t, '"');
}

/* False if this entry is not told. */
static inline bool tell(struct history *h, struct history_line *l, const struct part *p,
                        uint32_t at) {
    const struct heard *heard = &p->log[at];
    const struct input *in = &heard->in;
    struct text t;
    text_init(&t, l->text, sizeof l->text);
    switch (in->kind) {
    case INPUT_COMPLETION:
        if (script_is_open(h->d->script, (uint32_t)in->completion.tag) &&
            in->completion.outcome == OUTCOME_UNKNOWN)
            return false;
        line_completion(&t, h, l->block, &in->completion);
        if (is_early(h, p, at))
            text_str(&t, " BEFORE ITS SIGNAL");
        return true;
    case INPUT_SIGNAL:
        line_signal(&t, h, l->block, &in->signal);
        if (is_late(p, at))
            text_str(&t, " OUT OF ORDER");
        return !is_open(h, in->signal.order);
    case INPUT_PREPARED:
        text_str(&t, "prepared ");
        text_label(&t, h, label_of(h, in->prepared.order));
        line_body(&t, heard);
        return !is_open(h, in->prepared.order);
    case INPUT_STROBE:
        text_number(&t, "strobe ", in->strobe.channel);
        line_body(&t, heard);
        l->strobe = in->strobe.channel + 1;
        return true;
    case INPUT_JOINED:
        line_joined(&t, h, l->block, p, at);
        return true;
    case INPUT_NODES:
        l->nodes = heard->nodes;
        l->up = in->nodes.up;
        return true;
    default:
        text_str(&t, input_name(in->kind));
        return true;
    }
}

static inline uint32_t block_of(const struct history *h, uint32_t node, uint32_t at) {
    for (uint32_t i = 0; i < h->d->block_count; i++)
        if (at >= h->d->blocks[i].first[node] && at < h->d->blocks[i].end[node])
            return i + 1;
    return 0;
}

/* News that follow each other are one; of the strobes of a block only the newest is sure. */
static inline bool absorb(struct history *h, const struct history_line *l) {
    for (uint32_t i = h->count; i > 0; i--) {
        struct history_line *before = &h->lines[i - 1];
        if (before->block != l->block)
            break;
        if (l->nodes != 0 && before->nodes != 0 && before->up == l->up) {
            before->nodes |= l->nodes;
            return true;
        }
        if (l->block != 0 && l->strobe != 0 && before->strobe == l->strobe) {
            *before = *l;
            return true;
        }
        if (l->block == 0)
            break; /* only the line just before */
    }
    return false;
}

static inline void add_note(struct history *h, const struct note *note) {
    ASSERT(h->count < HISTORY_LINES);
    struct history_line *l = &h->lines[h->count++];
    *l = (struct history_line){0};
    snprintf(l->text, sizeof l->text, "%s", note->text);
}

static inline void add_notes(struct history *h, uint32_t node, uint32_t at) {
    for (uint32_t i = 0; i < h->d->note_count; i++)
        if (h->d->notes[i].node == node && h->d->notes[i].at == at)
            add_note(h, &h->d->notes[i]);
}

static inline int compare_lines(const void *a, const void *b) {
    const struct history_line *left = a, *right = b;
    return strcmp(left->text, right->text);
}

/* A block's lines stand in the order of their texts. */
static inline void sort_blocks(struct history *h) {
    for (uint32_t i = 0, end; i < h->count; i = end) {
        for (end = i + 1; end < h->count && h->lines[end].block == h->lines[i].block;)
            end++;
        if (h->lines[i].block != 0)
            qsort(h->lines + i, end - i, sizeof *h->lines, compare_lines);
    }
}

static inline void tell_node(struct history *h, uint32_t node, FILE *out) {
    const struct script *s = h->d->script;
    const struct part *p = part_of(h->d, node);
    h->count = 0;
    for (uint32_t i = 0; i < p->heard; i++) {
        add_notes(h, node, i);
        struct history_line l = {.block = block_of(h, node, i)};
        if (!tell(h, &l, p, i) || absorb(h, &l))
            continue;
        ASSERT(h->count < HISTORY_LINES);
        h->lines[h->count++] = l;
    }
    add_notes(h, node, p->heard);
    for (uint32_t i = 0; i < h->count; i++) {
        struct history_line *l = &h->lines[i];
        if (l->nodes == 0)
            continue;
        struct text t;
        text_init(&t, l->text, sizeof l->text);
        text_str(&t, l->up ? "up" : "down");
        text_mask(&t, s, l->nodes);
    }
    sort_blocks(h);
    char name[16];
    struct text t;
    text_init(&t, name, sizeof name);
    text_node(&t, s, node);
    fprintf(out, "%s\n", name);
    for (uint32_t i = 0; i < h->count; i++)
        fprintf(out, "  %s\n", h->lines[i].text);
}

/* The caller frees it. */
static inline char *history_of(const struct director *d) {
    struct history *h = calloc(1, sizeof *h);
    ASSERT(h != NULL);
    h->d = d;
    collect_orders(h);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    ASSERT(out != NULL);
    for (uint32_t n = 0; n < d->script->universe; n++)
        tell_node(h, n, out);
    fclose(out);
    free(h);
    return text;
}

/* For whoever looks into a failure: all that was heard, when, as comments of a TAP report. Clocks of
 * processes on one machine are one clock. */
static inline void timeline_of(const struct director *d) {
    uint32_t at[SCRIPT_NODES_MAX + 1] = {0};
    uint64_t begin = 0;
    for (;;) {
        const struct heard *next = NULL;
        uint32_t node = 0;
        for (uint32_t n = 0; n < d->script->universe; n++) {
            const struct heard *h = &part_of(d, n)->log[at[n]];
            if (at[n] < part_of(d, n)->heard && (next == NULL || h->in.now < next->in.now)) {
                next = h;
                node = n;
            }
        }
        if (next == NULL)
            return;
        at[node]++;
        begin = begin == 0 ? next->in.now : begin;
        printf("#   %8.3f P node %u %s", (double)(next->in.now - begin) / (double)periods(d, 1),
               node, input_name(next->in.kind));
        if (next->in.kind == INPUT_NODES)
            printf(" %s %" PRIx64, next->in.nodes.up ? "up" : "down", next->nodes);
        else if (next->in.kind == INPUT_COMPLETION)
            printf(" %s %s", d->script->labels[next->in.completion.tag],
                   outcome_name(next->in.completion.outcome));
        printf("\n");
    }
}
