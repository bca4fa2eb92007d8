/* SPDX-License-Identifier: MIT */
/* The reader of the kill test: polls every node's memory all the while and judges what it sees.
 *
 * It reads the answers first, then the memories, then makes sure that the membership of the node
 * that it looked at has not ended meanwhile. Rules while the cluster runs:
 *
 *  written   what is in a place was asked for, for that place, whole, and for a set with that node
 *  ghost     data of an operation that is known to have failed is on no survivor
 *  done      when an operation is known to be done, every survivor of its set that joined before
 *            its place in the order has its data, or those of an operation with a later place
 *  order     on one node a place changes only to data of operations with later places
 *
 * And in the end, from what the nodes have written down of each operation that they applied:
 *
 *  signals   each membership applies in ascending order, only what comes after its beginning, once
 *  all       done: applied in every membership of the set that began before its place in the order
 *            and had not ended when the answer came
 *  none      failed: applied in no membership that lasts
 *  half      asked for by somebody who did not live to hear: all or nothing, among those who last
 *  answer    one final answer for each request, LOST only if fenced, none only if killed
 *  silence   a caller hears something when its deadline is over (if nodes are only killed)
 *  claim     no two operations have the same place in the order
 *  program   what one node asks for after an answer comes later in the order
 *
 * A survivor is a membership that lasts. One that the others have given up may not know it yet: its
 * links are gone, and it still shows what it has. So whoever breaks a rule of the first kind is
 * charged, and has PATIENCE periods to hear that it is fenced; then the charge stands. A kill by
 * the test within that time settles nothing and drops the charge. */
#pragma once

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "deeds.h"
#include "tap.h"

enum { PATIENCE = 40, LATE = 10, SILENCE = 7 }; /* periods */
enum { LIVES_MAX = 512, CHARGES_MAX = 256, DOUBTS_MAX = 4096, COMPLAINTS_MAX = 20 };
enum { NO_STAY = UINT32_MAX };

struct charge {
    uint64_t since;
    uint32_t node, stay;
    char text[200];
};

enum doubt_kind {
    DOUBT_ORDER, /* a place has changed from `first` to `second` */
    DOUBT_DONE,  /* `first` is done, but its place shows `second` */
    DOUBT_LATE,  /* `first` is done, its word may not have been copied yet */
};

struct doubt {
    enum doubt_kind kind;
    uint32_t node, stay;
    uint64_t first, second;
    uint64_t since;
};

struct torn {
    uint64_t digest; /* of what was seen, 0: nothing */
    uint64_t turns;  /* of the node after that */
};

struct witness {
    struct deeds *d;
    bool stops; /* the test stops nodes as well */
    uint64_t killed_ns[NODES_MAX][LIVES_MAX];
    uint32_t answers_seen[ACTORS_MAX];
    struct {
        uint32_t stay;
        uint64_t tag[PLACES];
        struct torn torn[PLACES];
    } view[NODES_MAX];
    struct charge charges[CHARGES_MAX];
    uint32_t charge_count;
    struct doubt doubts[DOUBTS_MAX];
    uint32_t doubt_count;
    uint64_t newest; /* the operation that was seen applied last */
    uint8_t scratch[LARGE_BYTES];
    /* figures */
    uint32_t complaints;
    uint64_t polls, sightings, done_checks, dismissed, doubts_dropped;
};

static inline void complain_v(struct witness *w, const char *format, va_list args) {
    if (w->complaints++ < COMPLAINTS_MAX) {
        printf("# ");
        vprintf(format, args);
        printf("\n");
        fflush(stdout);
    }
}

__attribute__((format(printf, 2, 3))) static inline void complain(struct witness *w,
                                                                  const char *format, ...) {
    va_list args;
    va_start(args, format);
    complain_v(w, format, args);
    va_end(args);
}

/* ---- memberships ---- */

/* When it ended, UINT64_MAX if it has not. */
static inline uint64_t stay_end(const struct witness *w, uint32_t node, uint32_t stay) {
    const struct stay *s = &w->d->node[node].stay[stay];
    uint64_t fenced = __atomic_load_n(&s->fenced_ns, __ATOMIC_ACQUIRE);
    uint64_t killed = w->killed_ns[node][s->life];
    uint64_t end = fenced != 0 ? fenced : UINT64_MAX;
    return killed != 0 && killed < end ? killed : end;
}

static inline uint32_t current_stay(const struct witness *w, uint32_t node) {
    const struct node_log *log = &w->d->node[node];
    uint32_t count = look_u32(&log->stays);
    if (count == 0 || log->stay[count - 1].life != crew_lives(w->d->crew, node) ||
        stay_end(w, node, count - 1) != UINT64_MAX)
        return NO_STAY;
    return count - 1;
}

/* Is it, after what was just read, still the same? */
static inline bool still_there(const struct witness *w, uint32_t node, uint32_t stay) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return current_stay(w, node) == stay;
}

/* ---- charges ---- */

__attribute__((format(printf, 4, 5))) static inline void charge(struct witness *w, uint32_t node,
                                                                uint32_t stay, const char *format,
                                                                ...) {
    if (w->charge_count == CHARGES_MAX) {
        complain(w, "too many charges");
        return;
    }
    struct charge *c = &w->charges[w->charge_count++];
    *c = (struct charge){.since = clock_ns(), .node = node, .stay = stay};
    va_list args;
    va_start(args, format);
    vsnprintf(c->text, sizeof c->text, format, args);
    va_end(args);
}

static inline void dismiss(struct witness *w, const struct charge *c) {
    const struct stay *s = &w->d->node[c->node].stay[c->stay];
    uint64_t end = stay_end(w, c->node, c->stay);
    w->dismissed++;
    printf("# dismissed: %s; %s %.1f periods later\n", c->text,
           end == s->fenced_ns ? "fenced" : "killed",
           (double)(int64_t)(end - c->since) / (double)w->d->prim.period_ns);
}

static inline void judge_charges(struct witness *w, bool last) {
    uint64_t patience = PATIENCE * w->d->prim.period_ns;
    for (uint32_t i = w->charge_count; i-- > 0;) {
        struct charge *c = &w->charges[i];
        bool ended = stay_end(w, c->node, c->stay) != UINT64_MAX;
        if (!ended && !last && clock_ns() - c->since < patience)
            continue;
        if (ended)
            dismiss(w, c);
        else
            complain(w, "%s", c->text);
        *c = w->charges[--w->charge_count];
    }
}

/* ---- deeds ---- */

static inline bool deed_final(const struct deed *d) {
    return look_u32(&d->finals) > 0;
}

/* Nobody will ever hear how it ended. */
static inline bool deed_lost(const struct witness *w, const struct deed *d) {
    if (deed_final(d))
        return d->result.outcome == OUTCOME_LOST;
    return w->killed_ns[d->node][d->life] != 0;
}

static inline bool deed_done(const struct deed *d) {
    return deed_final(d) && d->result.outcome == OUTCOME_DONE;
}

static inline bool deed_undone(const struct deed *d) {
    return deed_final(d) &&
           (d->result.outcome == OUTCOME_FAILED || d->result.outcome == OUTCOME_REFUSED ||
            d->result.outcome == OUTCOME_FALSE);
}

/* ---- reading ---- */

enum reading { READ_EMPTY, READ_WHOLE, READ_TORN };

static inline uint64_t glance(const struct witness *w, uint32_t node, uint32_t place) {
    if (place >= WORD_0)
        return __atomic_load_n(&w->d->node[node].words[place - WORD_0], __ATOMIC_ACQUIRE);
    const uint8_t *at = crew_heap(w->d->crew, node) + place_offset(place);
    return __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_ACQUIRE);
}

/* Copies the place and looks whether the copy is whole. */
static inline enum reading read_place(struct witness *w, uint32_t node, uint32_t place,
                                      uint64_t *ret_tag, uint32_t *ret_len) {
    if (place >= WORD_0) {
        *ret_tag = glance(w, node, place);
        return *ret_tag == 0 ? READ_EMPTY : READ_WHOLE;
    }
    const uint8_t *at = crew_heap(w->d->crew, node) + place_offset(place);
    memcpy(w->scratch, at, STAMP_BYTES);
    uint64_t len = load_le64(w->scratch + 8);
    *ret_tag = load_le64(w->scratch);
    *ret_len = (uint32_t)len;
    if (*ret_tag == 0)
        return READ_EMPTY;
    if (len > place_room(place))
        return READ_TORN;
    memcpy(w->scratch + STAMP_BYTES, at + STAMP_BYTES, len);
    uint64_t digest = hash_once(w->scratch + STAMP_BYTES, len) ^ *ret_tag;
    return digest == load_le64(w->scratch + 16) ? READ_WHOLE : READ_TORN;
}

static inline uint64_t turns_of(const struct witness *w, uint32_t node) {
    return __atomic_load_n(&crew_counts(w->d->crew, node)->turns, __ATOMIC_ACQUIRE);
}

/* A node writes a place within one turn: if it shows the same torn bytes after more turns, they will
 * stay so. `turns` were over before the bytes were read. */
static inline void saw_torn(struct witness *w, uint32_t node, uint32_t stay, uint32_t place,
                            uint64_t turns) {
    struct torn *t = &w->view[node].torn[place];
    uint64_t len = load_le64(w->scratch + 8);
    uint64_t bytes = len <= place_room(place) ? STAMP_BYTES + len : STAMP_BYTES;
    uint64_t digest = hash_once(w->scratch, bytes) | 1;
    if (t->digest == digest && turns > t->turns + 1)
        charge(w, node, stay, "written: node %u, place %u is torn", node, place);
    if (t->digest != digest)
        *t = (struct torn){.digest = digest, .turns = turns_of(w, node)};
}

static inline void doubt(struct witness *w, struct doubt d) {
    if (w->doubt_count == DOUBTS_MAX) {
        w->doubts_dropped++;
        return;
    }
    d.since = clock_ns();
    w->doubts[w->doubt_count++] = d;
}

static inline void saw(struct witness *w, uint32_t node, uint32_t stay, uint32_t place,
                       uint64_t tag, uint32_t len) {
    struct deed *d = deed_of(w->d, tag);
    uint64_t before = w->view[node].tag[place];
    bool heap = place < WORD_0;
    w->view[node].tag[place] = tag;
    w->newest = heap ? tag : w->newest;
    w->sightings++;
    if (d == NULL || look_u32(&d->state) != DEED_ASKED)
        complain(w, "written: node %u, place %u: nobody asked for %" PRIu64, node, place, tag);
    else if (d->place != place || (heap && d->len != len))
        complain(w, "written: node %u, place %u: %" PRIu64 " does not write this", node, place,
                 tag);
    else if (heap && !bits_test(d->set, node))
        complain(w, "written: node %u is not in the set of %" PRIu64, node, tag);
    else if (deed_undone(d))
        charge(w, node, stay,
               "ghost: node %u, place %u shows %" PRIu64 " (order %" PRIu64 "), which has %s", node,
               place, tag, d->result.order, outcome_name(d->result.outcome));
    else if (before != 0)
        doubt(w, (struct doubt){DOUBT_ORDER, node, stay, before, tag, 0});
}

static inline void look_at_node(struct witness *w, uint32_t node) {
    uint32_t stay = current_stay(w, node);
    if (w->view[node].stay != stay) {
        memset(&w->view[node], 0, sizeof w->view[node]);
        w->view[node].stay = stay;
    }
    for (uint32_t place = 0; stay != NO_STAY && place < PLACES; place++) {
        uint64_t tag, known = w->view[node].tag[place];
        uint32_t len = 0;
        if (glance(w, node, place) == known)
            continue;
        uint64_t turns = turns_of(w, node);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        enum reading r = read_place(w, node, place, &tag, &len);
        if (!still_there(w, node, stay))
            return;
        if (r == READ_TORN)
            saw_torn(w, node, stay, place, turns);
        else if (r == READ_WHOLE && tag != known)
            saw(w, node, stay, place, tag, len);
        else if (r == READ_EMPTY && place < WORD_0)
            charge(w, node, stay, "written: node %u, place %u is empty again", node, place);
    }
}

/* ---- when an operation is done ---- */

enum verdict_now { NOW_FINE, NOW_OPEN, NOW_WRONG };

/* What a place shows for an operation that is done: it, a later one, or is it wrong? */
static inline enum verdict_now compare_shown(struct witness *w, const struct deed *d, uint64_t tag,
                                             uint64_t shown) {
    struct deed *other = deed_of(w->d, shown);
    if (shown == tag)
        return NOW_FINE;
    if (other == NULL)
        return NOW_WRONG;
    if (deed_lost(w, other) || deed_undone(other)) /* its order is not known; or a ghost */
        return NOW_FINE;
    if (!deed_final(other))
        return NOW_OPEN;
    return other->result.order > d->result.order ? NOW_FINE : NOW_WRONG;
}

static inline enum verdict_now check_done_at(struct witness *w, uint64_t tag, uint32_t node,
                                             uint32_t *ret_stay, uint64_t *ret_shown) {
    const struct deed *d = deed_of(w->d, tag);
    uint32_t len, stay = *ret_stay = current_stay(w, node);
    if (stay == NO_STAY || w->d->node[node].stay[stay].order >= d->result.order)
        return NOW_FINE;
    enum reading r = READ_TORN;
    for (int i = 0; i < 1000 && r == READ_TORN; i++)
        r = read_place(w, node, d->place, ret_shown, &len);
    if (r == READ_TORN || !still_there(w, node, stay))
        return NOW_FINE; /* whether it stays torn the next looks will tell */
    w->done_checks++;
    return compare_shown(w, d, tag, *ret_shown);
}

static inline void charge_undone(struct witness *w, const struct doubt *q) {
    const struct deed *d = deed_of(w->d, q->first);
    charge(w, q->node, q->stay,
           "done: node %u (joined at %" PRIu64 "), place %u shows %" PRIu64 " although %" PRIu64
           " (order %" PRIu64 ") is done",
           q->node, w->d->node[q->node].stay[q->stay].order, d->place, q->second, q->first,
           d->result.order);
}

static inline void check_done(struct witness *w, uint64_t tag) {
    const struct deed *d = deed_of(w->d, tag);
    for (uint32_t n = 0; n < w->d->universe; n++) {
        if (!bits_test(d->set, n))
            continue;
        struct doubt q = {.kind = DOUBT_DONE, .node = n, .first = tag};
        enum verdict_now v = check_done_at(w, tag, n, &q.stay, &q.second);
        if (v == NOW_WRONG && d->place >= WORD_0)
            q.kind = DOUBT_LATE;
        else if (v == NOW_WRONG)
            charge_undone(w, &q);
        if (v == NOW_OPEN || q.kind == DOUBT_LATE)
            doubt(w, q);
    }
}

static inline void look_at_answers(struct witness *w) {
    for (uint32_t i = 0; i < w->d->actor_count; i++) {
        struct actor_log *log = &w->d->actor[i];
        uint32_t count = look_u32(&log->answers);
        while (w->answers_seen[i] < count) {
            uint32_t index = log->answered[w->answers_seen[i]++];
            if (deed_done(&log->deed[index]) && log->deed[index].place < PLACES)
                check_done(w, deed_tag(i, index));
        }
    }
}

/* ---- doubts ---- */

/* A word that was not copied yet when its operation was done. */
static inline bool settle_late(struct witness *w, struct doubt *q) {
    uint32_t stay;
    enum verdict_now v = check_done_at(w, q->first, q->node, &stay, &q->second);
    if (stay != q->stay || v == NOW_FINE)
        return true;
    if (clock_ns() - q->since < LATE * w->d->prim.period_ns)
        return false;
    charge_undone(w, q);
    return true;
}

/* Whether what is in doubt has become certain. */
static inline bool settle_doubt(struct witness *w, struct doubt *q) {
    if (q->kind == DOUBT_LATE)
        return settle_late(w, q);
    const struct deed *a = deed_of(w->d, q->first), *b = deed_of(w->d, q->second);
    if (deed_lost(w, a) || deed_lost(w, b))
        return true;
    if (!deed_final(a) || !deed_final(b))
        return false;
    if (!deed_done(a) || !deed_done(b) || a->result.order < b->result.order)
        return true;
    if (q->kind == DOUBT_DONE)
        charge_undone(w, q);
    else
        complain(w,
                 "order: node %u: %" PRIu64 " (order %" PRIu64 ") came after %" PRIu64
                 " (order %" PRIu64 ")",
                 q->node, q->second, b->result.order, q->first, a->result.order);
    return true;
}

static inline void settle_doubts(struct witness *w) {
    for (uint32_t i = w->doubt_count; i-- > 0;)
        if (settle_doubt(w, &w->doubts[i]))
            w->doubts[i] = w->doubts[--w->doubt_count];
}

static inline void witness_poll(struct witness *w) {
    w->polls++;
    look_at_answers(w);
    for (uint32_t n = 0; n < w->d->universe; n++)
        look_at_node(w, n);
    settle_doubts(w);
    judge_charges(w, false);
}
