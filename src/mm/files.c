/* SPDX-License-Identifier: MIT */
/* Files to nodes: for a client that copies, and for a run whose program is not on its nodes.
 *
 *   waiting:  for nodes that are away and may be back at once, as all are when the manager's life begins
 *   ordering: TRANSFER by XFER-AND-SIGNAL, to all nodes or to none
 *   moving:   a standing compare: has everybody come to an end, whichever?
 *   judging:  a compare: has it arrived everywhere?
 *   asking:   not everywhere; those where it has not say so and why, until they have been heard
 *   leaving:  given up; the answer to what was asked of the primitives is waited for
 * A node that is lost or fails is left out, and the rest goes on; for a run that is the end of it. */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/units.h"
#include "mm/inside.h"
#include "rm/say.h"
#include "rm/spread.h"
#include "rm/switches.h"
#include "rm/transfer.h"
#include "wire/bundle.h"
#include "wire/folder.h"

/* For a transfer as a whole: nodes find out on their own when nothing comes. */
#define MOVE_NS (24 * 3600 * NS_PER_S)

static uint64_t tag_of(const struct copying *c) {
    return FILES_TAG | (c->transfer & (FILES_TAG - 1));
}

static struct copying *find(struct mm *m, uint64_t transfer) {
    for (struct copying *c = m->copies; c < m->copies + TRANSFER_PLACES; c++)
        if (c->transfer == transfer && transfer != 0)
            return c;
    return NULL;
}

/* ---- switches ---- */

/* 0: not known. */
static uint32_t source_switch(const struct mm *m, const struct copying *c) {
    return c->source < m->config.limits.nodes ? m->switches[c->source] : 0;
}

void files_switches(struct mm *m, struct bytes switches) {
    m->switched = false;
    for (uint32_t i = 0; i < m->config.limits.nodes; i++) {
        size_t at = (size_t)i * 4;
        m->switches[i] = at < switches.len ? load_le32(switches.at + at) : 0;
        m->switched = m->switched || m->switches[i] != 0;
    }
}

/* Of those who receive now. Empty if they are not known, or are in such disorder that it would be too long: then the plan
 * has none. */
static struct bytes switches_of(struct mm *m, const struct copying *c) {
    struct room room = room_of(m->plan_runs, m->config.limits.body_bytes / 4);
    size_t len =
        !m->switched ? 0 : switches_encode(&c->set, m->switches, m->config.limits.nodes, room);
    return bytes_of(m->plan_runs, len);
}

/* What becomes of the plan, for people. */
static void count_switches(struct mm *m, struct copying *c) {
    struct bytes runs = switches_of(m, c);
    struct spread s = c->spread;
    s.receivers = nodeset_count(&c->set);
    if (runs.len == 0 || !switches_decode(runs, m->plan_switches, s.receivers))
        return;
    s.groups =
        spread_arrange(&s, m->plan_switches, source_switch(m, c), m->plan_order, m->plan_ends);
    s.ends = m->plan_ends;
    c->switches = s.groups - (s.ends[0] == 0); /* without that of a source that is elsewhere */
    c->crossed = switches_crossed(&s, m->plan_switches, source_switch(m, c), m->plan_order);
}

/* ---- what is asked of the primitives ---- */

static void order(struct mm *m, struct copying *c) {
    union message t = {.transfer = {.transfer = c->transfer,
                                    .offer = c->offer,
                                    .source = c->source,
                                    .shape = c->spread.shape,
                                    .arity = c->spread.arity,
                                    .slots = c->slots,
                                    .set = &c->set,
                                    .address = bytes_of(c->body, c->address_len),
                                    .run = c->inputs ? c->run : 0,
                                    .fabric = bytes_of(c->fabric, c->fabric_len),
                                    .source_switch = source_switch(m, c),
                                    .switches = switches_of(m, c)}};
    struct say_all how = {
        .set = &c->set, .tag = tag_of(c), .timeout_ns = m->config.launch_ns, .event = EVENT_FILES};
    bool said = say_all(m->out, &how, m->config.limits.body_bytes, MESSAGE_TRANSFER, &t,
                        bytes_of(c->body + c->address_len, c->descriptor_len));
    ASSERT(said); /* it was judged when it came */
    c->phase = COPY_ORDERING;
}

static void compare(struct mm *m, struct copying *c, enum primitive_kind kind,
                    enum relation relation, uint64_t timeout_ns) {
    struct effect *e = effects_add(m->out, EFFECT_REQUEST);
    e->request = (struct primitive){.kind = kind,
                                    .tag = tag_of(c),
                                    .set = effects_copy_set(m->out, &c->set),
                                    .timeout_ns = timeout_ns,
                                    .variable = TRANSFER_VARIABLE + transfer_place(c->transfer),
                                    .relation = relation,
                                    .value = transfer_value(c->transfer, false),
                                    .write_variable = NO_VARIABLE};
}

static void move(struct mm *m, struct copying *c) {
    c->phase = COPY_MOVING;
    compare(m, c, PRIMITIVE_STANDING, RELATION_GE, MOVE_NS);
}

static void judge(struct mm *m, struct copying *c) {
    c->phase = COPY_JUDGING;
    compare(m, c, PRIMITIVE_COMPARE, RELATION_EQ, m->config.launch_ns);
}

/* ---- its end ---- */

/* Runs may wait for a place. */
static void leave_place(struct mm *m, struct copying *c) {
    c->transfer = 0;
    m->copy_left = true;
}

static void tell_client(struct mm *m, const struct copying *c, bool over) {
    union message a = {.copied = {.request = {c->request[0], c->request[1]},
                                  .shape = c->spread.shape,
                                  .arity = c->spread.arity,
                                  .over = over,
                                  .set = over ? (struct nodeset *)&c->set : &m->empty,
                                  .without = (struct nodeset *)&c->without,
                                  .node = c->node,
                                  .error = c->error,
                                  .switches = c->switches,
                                  .crossed = c->crossed,
                                  .text = bytes_of(c->text, c->text_len)}};
    say_link(m->out, c->link, MESSAGE_COPIED, &a, (struct bytes){0});
}

static void dismiss(struct mm *m, const struct copying *c, bool keep) {
    uint8_t number[8];
    store_le64(number, c->transfer);
    nodeset_copy(&m->work, &c->set);
    nodeset_unite(&m->work, &c->without);
    union message e = {.enough = {.keep = keep, .transfers = bytes_of(number, sizeof number)}};
    say_down(m->out, &m->work, MESSAGE_ENOUGH, &e, (struct bytes){0});
}

static struct holders *holders_of(struct mm *m, uint64_t key) {
    for (struct holders *h = m->holders; h < m->holders + HOLDERS_MAX; h++)
        if (h->key == key) {
            h->used = ++m->holders_used;
            return h;
        }
    return NULL;
}

/* These have it now. The place of whatever was not asked for for the longest time is taken. */
static void note_holders(struct mm *m, uint64_t key, const struct nodeset *set) {
    struct holders *h = holders_of(m, key), *oldest = m->holders;
    if (h == NULL) {
        for (struct holders *o = m->holders; o < m->holders + HOLDERS_MAX; o++)
            if (o->used < oldest->used)
                oldest = o;
        h = oldest;
        h->key = key;
        h->used = ++m->holders_used;
        nodeset_clear(&h->set);
    }
    nodeset_unite(&h->set, set);
}

static void finish(struct mm *m, struct copying *c) {
    struct copying over = *c;
    leave_place(m, c);
    dismiss(m, &over, false);
    if (over.key != 0)
        note_holders(m, over.key, &over.set);
    if (over.link != 0)
        tell_client(m, &over, true);
    if (over.run != 0)
        start_copied(m, over.run, &over);
}

/* Nobody wants it any more. What the primitives were asked will be answered: nodes that are told
 * to stop say that they have ended. */
static void abandon(struct mm *m, struct copying *c) {
    if (c->phase == COPY_LEAVING)
        return;
    bool asked = c->phase != COPY_ASKING && c->phase != COPY_WAITING;
    dismiss(m, c, true);
    c->phase = COPY_LEAVING;
    if (!asked)
        leave_place(m, c);
}

static void leave_out(struct copying *c, uint32_t node, int32_t error, struct bytes text) {
    if (!nodeset_has(&c->set, node))
        return;
    nodeset_remove(&c->set, node);
    nodeset_add(&c->without, node);
    if (c->error != 0)
        return;
    c->node = node;
    c->error = error;
    c->text_len = (uint32_t)(text.len < sizeof c->text ? text.len : sizeof c->text);
    if (c->text_len > 0)
        memcpy(c->text, text.at, c->text_len);
}

static void give_up(struct mm *m, struct copying *c, int32_t error, const char *text) {
    uint32_t first = nodeset_first(&c->set);
    leave_out(c, first, error, bytes_from_str(text));
    nodeset_unite(&c->without, &c->set);
    nodeset_clear(&c->set);
    finish(m, c);
}

/* Something was left out: a run needs all of them. */
static bool goes_on(struct mm *m, struct copying *c) {
    if (c->run == 0 && !nodeset_empty(&c->set))
        return true;
    finish(m, c);
    return false;
}

void files_completed(struct mm *m, const struct completion *done) {
    struct copying *c = NULL;
    for (uint32_t i = 0; i < TRANSFER_PLACES; i++)
        if (m->copies[i].transfer != 0 && tag_of(&m->copies[i]) == done->tag)
            c = &m->copies[i];
    if (c == NULL || done->outcome == OUTCOME_UNKNOWN)
        return;
    if (c->phase == COPY_LEAVING) {
        leave_place(m, c);
        return;
    }
    bool good = done->outcome == OUTCOME_DONE;
    if (!good && done->outcome != OUTCOME_FALSE && done->culprit >= m->config.limits.nodes) {
        give_up(m, c, -EAGAIN, "the nodes could not be reached");
        return;
    }
    if (!good && done->outcome != OUTCOME_FALSE) {
        leave_out(c, done->culprit, -EHOSTDOWN, bytes_from_str("the node is gone"));
        if (!goes_on(m, c))
            return;
    }
    if (c->phase == COPY_ORDERING)
        good ? move(m, c) : order(m, c);
    else if (c->phase == COPY_MOVING)
        good ? judge(m, c) : move(m, c);
    else if (c->phase == COPY_JUDGING && good)
        finish(m, c);
    else if (c->phase == COPY_JUDGING && done->outcome == OUTCOME_FALSE)
        c->phase = COPY_ASKING;
    else if (c->phase == COPY_JUDGING)
        judge(m, c);
    if (c->phase == COPY_ASKING && c->heard)
        judge(m, c);
    c->heard = false;
}

void files_arrived(struct mm *m, uint32_t node, const struct message_arrived *a) {
    struct copying *c = find(m, a->transfer);
    if (c == NULL || c->phase == COPY_LEAVING || a->error == 0 || !nodeset_has(&c->set, node))
        return;
    leave_out(c, node, a->error, a->text);
    if (c->run != 0) { /* nothing can come of it */
        uint64_t run = c->run;
        struct copying told = *c;
        c->run = 0;
        abandon(m, c);
        start_copied(m, run, &told);
        return;
    }
    if (nodeset_empty(&c->set)) {
        if (c->phase == COPY_ASKING)
            finish(m, c);
        else {
            tell_client(m, c, true);
            c->link = 0;
            abandon(m, c);
        }
        return;
    }
    c->heard = true;
    if (c->phase == COPY_ASKING) {
        c->heard = false;
        judge(m, c);
    }
}

/* ---- its beginning ---- */

static struct copying *free_place(struct mm *m) {
    for (struct copying *c = m->copies; c < m->copies + TRANSFER_PLACES; c++)
        if (c->transfer == 0)
            return c;
    return NULL;
}

static void choose(const struct mm *m, struct copying *c, const struct message_copy *t,
                   const struct bundle *b) {
    struct spread_terms terms = spread_usual(m->config.bytes_per_s);
    terms.bytes = b->bytes;
    terms.receivers = nodeset_count(&c->set);
    terms.piece_bytes = b->piece_bytes;
    c->spread = t->shape == SPREAD_AUTO ? spread_choose(&terms)
                                        : (struct spread){.shape = t->shape, .arity = t->arity};
    c->slots = t->slots > 1 ? t->slots : spread_slots(&terms);
}

/* Is one of them away for a moment, as far as we know? */
static bool awaits(const struct mm *m, const struct nodeset *set) {
    if (m->replaying)
        return true;
    NODESET_EACH (n, set)
        if (n < m->config.limits.nodes && !m->nodes[n].member && m->nodes[n].absent_at != 0)
            return true;
    return false;
}

/* Those that cannot be reached are without it from the start. */
static void sort_out(struct mm *m, struct copying *c) {
    nodeset_copy(&m->work, &c->set);
    NODESET_EACH (n, &m->work)
        if (n >= m->config.limits.nodes || !m->nodes[n].member)
            leave_out(c, n, -EHOSTDOWN, bytes_from_str("the node is down"));
}

struct copying *files_begin(struct mm *m, const struct message_copy *t, const char **ret_why) {
    struct bundle b;
    struct copying *c = free_place(m);
    *ret_why = "too many copies are under way; try again when one is over";
    if (c == NULL)
        return NULL;
    size_t room = m->config.limits.body_bytes / 2;
    *ret_why = "the request makes no sense";
    if (bundle_decode(t->descriptor, &b) < 0 || t->shape >= SPREAD_SHAPES ||
        t->address.len + t->descriptor.len > room || nodeset_empty(t->set) ||
        (t->source != NO_NODE && t->source >= m->config.limits.nodes) ||
        (t->shape == SPREAD_KARY && t->arity == 0))
        return NULL;
    struct copying fresh = {.set = c->set, .without = c->without, .body = c->body};
    *c = fresh;
    nodeset_clear(&c->without);
    c->node = NO_NODE;
    c->source = t->source;
    c->offer = t->offer;
    memcpy(c->request, t->request, sizeof c->request);
    c->address_len = (uint32_t)t->address.len;
    c->descriptor_len = (uint32_t)t->descriptor.len;
    memcpy(c->body, t->address.at, t->address.len);
    memcpy(c->body + t->address.len, t->descriptor.at, t->descriptor.len);
    c->fabric_len = (uint32_t)t->fabric.len;
    memcpy(c->fabric, t->fabric.at, t->fabric.len);
    nodeset_copy(&c->set, t->set);
    choose(m, c, t, &b);
    count_switches(m, c);
    c->transfer = transfer_number(m->epoch, ++m->copy_count, (uint32_t)(c - m->copies));
    return c;
}

void files_go(struct mm *m, struct copying *c) {
    c->phase = COPY_WAITING;
    if (awaits(m, &c->set))
        return;
    sort_out(m, c);
    if (nodeset_empty(&c->set) || (c->run != 0 && !nodeset_empty(&c->without)))
        finish(m, c);
    else
        order(m, c);
}

void files_nodes_changed(struct mm *m) {
    for (struct copying *c = m->copies; c < m->copies + TRANSFER_PLACES; c++)
        if (c->transfer != 0 && c->phase == COPY_WAITING)
            files_go(m, c);
}

void files_copy(struct mm *m, uint32_t link, const struct message_copy *t) {
    const char *why;
    struct copying *c = files_begin(m, t, &why);
    if (c == NULL) {
        client_answer(m, link, t->request, ANSWER_REFUSED, 0, 0, why);
        return;
    }
    c->link = link;
    tell_client(m, c, false);
    files_go(m, c);
}

void files_client_down(struct mm *m, uint32_t link) {
    for (struct copying *c = m->copies; c < m->copies + TRANSFER_PLACES; c++)
        if (c->transfer != 0 && c->link == link) {
            c->link = 0;
            abandon(m, c);
        }
    for (struct asker *a = m->askers; a < m->askers + ASKERS_MAX; a++)
        if (a->link == link)
            a->link = 0;
}

void files_run_over(struct mm *m, uint64_t run) {
    for (struct copying *c = m->copies; c < m->copies + TRANSFER_PLACES; c++)
        if (c->transfer != 0 && c->run == run) {
            c->run = 0;
            abandon(m, c);
        }
}

/* ---- files of runs ---- */

/* What a descriptor says is said by its bytes: it holds the digests of everything, unless it is open, which that of a run must not be. */
static uint64_t key_of(struct bytes descriptor) {
    uint64_t key = hash_once(descriptor.at, descriptor.len);
    return key == 0 ? 1 : key;
}

/* The descriptor again, with the run's own folder as where it goes: who made it did not know that. */
static bool aim(struct mm *m, struct copying *c, struct bytes descriptor, uint64_t run) {
    char to[RUN_FOLDER_MAX];
    struct bundle b;
    if (bundle_decode(descriptor, &b) < 0 || b.goal != GOAL_PATH)
        return false;
    run_folder_path(run, to);
    b.to = bytes_from_str(to);
    size_t room = m->config.limits.body_bytes / 2 - c->address_len;
    long len = bundle_encode(&b, room_of(c->body + c->address_len, room));
    if (len < 0)
        return false;
    c->descriptor_len = (uint32_t)len;
    return true;
}

uint32_t files_free(const struct mm *m) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < TRANSFER_PLACES; i++)
        count += m->copies[i].transfer == 0;
    return count;
}

enum files_sent files_send(struct mm *m, const struct running *r, const struct shipment *s,
                           const char **why) {
    union message t;
    struct bundle b;
    bool inputs = s->inputs;
    *why = "what is said of its files makes no sense";
    if (message_decode(MESSAGE_COPY, s->copy, m->scratch, &t) < 0)
        return FILES_WRONG;
    if (bundle_decode(t.copy.descriptor, &b) < 0 || bundle_is_open(&b))
        return FILES_WRONG;
    uint64_t key = inputs ? 0 : key_of(t.copy.descriptor);
    struct holders *h = inputs ? NULL : holders_of(m, key);
    nodeset_copy(&m->scratch[0], s->to);
    if (h != NULL)
        nodeset_subtract(&m->scratch[0], &h->set);
    if (nodeset_empty(&m->scratch[0]))
        return FILES_THERE;
    if (files_free(m) == 0)
        return FILES_LATER;
    t.copy.set = &m->scratch[0];
    struct copying *c = files_begin(m, &t.copy, why);
    if (c == NULL)
        return FILES_WRONG;
    c->run = r->run;
    c->key = key;
    c->inputs = inputs;
    if (inputs && !aim(m, c, t.copy.descriptor, r->run)) {
        *why = "what is said of its input files makes no sense";
        leave_place(m, c);
        return FILES_WRONG;
    }
    files_go(m, c);
    return FILES_SENT;
}

void files_missing(struct mm *m, uint32_t node) {
    for (struct holders *h = m->holders; h < m->holders + HOLDERS_MAX; h++)
        if (h->key != 0)
            nodeset_remove(&h->set, node);
}

void files_node_down(struct mm *m, const struct nodeset *nodes) {
    for (struct holders *h = m->holders; h < m->holders + HOLDERS_MAX; h++)
        if (h->key != 0)
            nodeset_subtract(&h->set, nodes);
}

struct bytes files_words(const struct mm *m, uint32_t job) {
    for (const struct copy_words *w = m->copy_words; w < m->copy_words + COPY_WORDS_MAX; w++)
        if (w->job == job && job != 0)
            return bytes_of(w->text, w->len);
    return (struct bytes){0};
}

/* ---- files of nodes ---- */

static void answer_offer(struct mm *m, uint32_t link, const uint64_t request[2], uint32_t node,
                         int32_t error, const char *text) {
    union message o = {.offered = {.request = {request[0], request[1]},
                                   .node = node,
                                   .error = error,
                                   .text = bytes_from_str(text)}};
    client_say(m, link, MESSAGE_OFFERED, &o);
}

void files_offer(struct mm *m, uint32_t link, const struct message_offer *o) {
    struct asker *a = &m->askers[m->asker_next++ % ASKERS_MAX]; /* the oldest has had its answers */
    *a = (struct asker){.link = link, .request = {o->request[0], o->request[1]}};
    NODESET_EACH (n, o->set)
        if (n >= m->config.limits.nodes || !m->nodes[n].member)
            answer_offer(m, link, o->request, n, -EHOSTDOWN, "the node is down");
    say_down(m->out, o->set, MESSAGE_OFFER, &(union message){.offer = *o}, (struct bytes){0});
}

void files_offered(struct mm *m, uint32_t node, const struct message_offered *o) {
    for (const struct asker *a = m->askers; a < m->askers + ASKERS_MAX; a++) {
        if (a->link == 0 || a->request[0] != o->request[0] || a->request[1] != o->request[1])
            continue;
        union message told = {.offered = *o};
        told.offered.node = node;
        client_say(m, a->link, MESSAGE_OFFERED, &told);
        return;
    }
}
