/* SPDX-License-Identifier: MIT */
/* When a job will fit, and what is held for it until then.
 *
 * Where one PE is as good as another (nodes of one PE, jobs that do not choose) it is enough to count: the head
 * fits at `at`, and `extra` PEs are left beside it then. Else the room is reckoned by node: what is free at
 * `at` without the nodes held for the head; who outlasts `at` must fit into it, too. If the head takes memory that
 * holds for memory in all slots, as these share it. */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/units.h"
#include "sched/court_inside.h"

/* A drained node keeps its jobs, but does not come back with their end. */
static bool all_come_back(const struct court *c, uint32_t slot) {
    const struct matrix *m = &c->matrix;
    if (m->pes_usable == c->config.limits.nodes)
        return true;
    uint64_t lost = 0;
    for (uint32_t i = 0; i < m->words; i++)
        lost |= m->rows[slot].taken[i] & ~m->usable[i];
    return lost == 0;
}

static bool counts(const struct court *c, const struct court_job *j, uint32_t slot) {
    return matrix_flat(&c->matrix) && !j->pub.chooses && c->windows.count == 0 &&
           all_come_back(c, slot);
}

/* ---- by counting ---- */

static uint64_t count_earliest(const struct court *c, const struct court_job *j, uint32_t slot,
                               uint64_t *ret_extra) {
    uint64_t have = c->matrix.rows[slot].free, need = j->pub.pes, at = c->now;
    uint32_t i = 0;
    for (; i < c->running && have < need; i++) {
        const struct court_job *r = &c->jobs[c->ends[i].job];
        if (r->pub.slot != slot)
            continue;
        at = court_end_at(c, c->ends[i].ends);
        have += r->pub.pes;
    }
    if (have < need || at == STORM_NEVER)
        return STORM_NEVER;
    for (; i < c->running && court_end_at(c, c->ends[i].ends) <= at; i++)
        if (c->jobs[c->ends[i].job].pub.slot == slot)
            have += c->jobs[c->ends[i].job].pub.pes;
    *ret_extra = have - need;
    return at;
}

/* ---- by node ---- */

static bool is_up(const struct court *c, uint32_t n) {
    return c->windows.open == 0 ? bits_test(c->matrix.usable, n) : nodeset_has(&c->windows.up, n);
}

static uint64_t up_word(const struct court *c, uint32_t i) {
    return c->windows.open == 0 ? c->matrix.usable[i] : nodeset_word(&c->windows.up, i);
}

static int64_t room_memory(const struct court *c, uint32_t n) {
    return c->room.remembers ? c->room.memory[n] : FIT_MEMORY_ANY;
}

/* Sections of it that the node will do for, as far as the room goes; those of the bar do for none. */
static uint32_t room_mask(const struct court *c, const struct want *w, const struct nodeset *barred,
                          uint32_t n) {
    uint32_t pes = matrix_node_pes(&c->matrix, n), left = c->room.free[n];
    if (left < w->ppn || pes == 0 || !is_up(c, n) || (barred != NULL && nodeset_has(barred, n)))
        return 0;
    return fit_mask(w, n, &(struct fit_node){pes, left, room_memory(c, n)});
}

/* The same for a job without sections that may have the node. */
static bool room_does(const struct court *c, const struct want *w, uint32_t n) {
    uint32_t left = c->room.free[n];
    return left >= w->ppn && (!w->exclusive || left == matrix_node_pes(&c->matrix, n)) &&
           want_has_memory(w->memory, room_memory(c, n));
}

/* Nodes of a word that it may have, whatever is free there. */
static uint64_t may_word(const struct court *c, const struct want *w, const struct nodeset *barred,
                         uint32_t i) {
    uint64_t word = up_word(c, i);
    if (w->only != NULL)
        word &= nodeset_word(w->only, i);
    if (w->meets != NULL)
        word &= nodeset_word(w->meets, i);
    if (w->exclude != NULL)
        word &= ~nodeset_word(w->exclude, i);
    if (w->avoid != NULL)
        word &= ~nodeset_word(w->avoid, i);
    return barred != NULL ? word & ~nodeset_word(barred, i) : word;
}

/* Nodes that will do for it. Without sections these are bits, which follow what is changed. */
static void room_count(struct court *c, const struct want *w, const struct nodeset *barred,
                       struct fit *f) {
    fit_init(f, w);
    if (w->section_count > 0) {
        for (uint32_t n = 0; n < c->config.limits.nodes; n++)
            fit_tell(f, room_mask(c, w, barred, n));
        return;
    }
    for (uint32_t i = 0; i < c->matrix.words; i++) {
        c->room.may[i] = may_word(c, w, barred, i);
        c->room.will[i] = 0;
        for (uint64_t word = c->room.may[i]; word != 0; word &= word - 1)
            if (room_does(c, w, i * 64 + (uint32_t)__builtin_ctzll(word)))
                c->room.will[i] |= word & -word;
        f->count += bits_popcount(c->room.will[i]);
    }
}

static void room_change(struct court *c, uint32_t n, uint32_t each, bool more) {
    uint32_t pes = each == WANT_WHOLE ? matrix_node_pes(&c->matrix, n) : each;
    c->room.free[n] = (uint16_t)(more ? c->room.free[n] + pes : c->room.free[n] - pes);
}

static void room_remember(struct court *c, uint32_t n, uint32_t memory, bool more) {
    if (c->room.remembers)
        c->room.memory[n] += more ? (int64_t)memory : -(int64_t)memory;
}

/* More is free there: will it do now? */
static void room_look(struct court *c, const struct want *w, uint32_t n, struct fit *f) {
    uint64_t bit = (uint64_t)1 << (n % 64), *will = &c->room.will[n / 64];
    if ((*will & bit) != 0 || (c->room.may[n / 64] & bit) == 0 || !room_does(c, w, n))
        return;
    *will |= bit;
    f->count++;
}

/* When this one has ended more will do: of another slot for its memory. */
static void room_give(struct court *c, const struct court_job *r, uint32_t slot,
                      const struct want *w, const struct nodeset *barred, struct fit *f) {
    struct court_part p;
    bool same = r->pub.slot == slot;
    if (!same && !(r->takes_memory && c->room.remembers))
        return;
    for (uint32_t k = 0; court_part(c, r, k, &p); k++)
        NODESET_EACH (n, p.set) {
            if (!is_up(c, n))
                continue;
            bool sections = w->section_count > 0;
            if (sections)
                fit_untell(f, room_mask(c, w, barred, n));
            if (same)
                room_change(c, n, p.each, true);
            room_remember(c, n, p.memory, true);
            if (sections)
                fit_tell(f, room_mask(c, w, barred, n));
            else
                room_look(c, w, n, f);
        }
}

static void room_begin(struct court *c, const struct court_job *j, uint32_t slot) {
    c->room.remembers = court_memory_for(c, j) != NULL;
    if (c->room.remembers)
        memcpy(c->room.memory, c->memory.left, sizeof c->memory.left[0] * c->config.limits.nodes);
    for (uint32_t i = 0; i < c->matrix.words; i++) {
        uint64_t up = up_word(c, i);
        uint32_t end = i * 64 + 64 < c->config.limits.nodes ? i * 64 + 64 : c->config.limits.nodes;
        for (uint32_t n = i * 64; n < end; n++, up >>= 1)
            c->room.free[n] = (uint16_t)(up & 1 ? matrix_node_pes(&c->matrix, n) -
                                                      matrix_node_used(&c->matrix, slot, n)
                                                : 0);
    }
}

/* The next time at which something changes: somebody ends, or a window begins or does. */
static uint64_t next_time(const struct court *c, uint32_t i, uint64_t at) {
    uint64_t next = i < c->running && c->ends[i].ends != STORM_NEVER
                        ? court_end_at(c, c->ends[i].ends)
                        : STORM_NEVER;
    for (uint32_t k = 0; k < c->windows.count; k++) {
        const struct court_window *w = &c->windows.at[k];
        uint64_t edge = w->from > at ? w->from : w->to;
        if (edge > at && edge < next)
            next = edge;
    }
    return next;
}

/* Leaves the room as it will be then. What is counted follows from who ends, and is counted anew where the bar is
 * another. */
static uint64_t node_earliest(struct court *c, const struct court_job *j, uint32_t slot) {
    struct want w = court_want(j);
    struct court_bar bar = court_bar_at(c, j, c->now);
    const struct nodeset *barred = court_bar_set(c, j, bar);
    uint64_t at = c->now;
    struct fit f;
    room_begin(c, j, slot);
    room_count(c, &w, barred, &f);
    for (uint32_t i = 0; bar.shut || fit_missing(&f) > 0;) {
        at = next_time(c, i, at);
        if (at == STORM_NEVER)
            return STORM_NEVER;
        for (; i < c->running && court_end_at(c, c->ends[i].ends) <= at; i++)
            room_give(c, &c->jobs[c->ends[i].job], slot, &w, barred, &f);
        struct court_bar now = court_bar_at(c, j, at);
        if (now.mask == bar.mask && now.shut == bar.shut)
            continue;
        bar = now;
        barred = court_bar_set(c, j, bar);
        room_count(c, &w, barred, &f);
    }
    c->room.bar = bar;
    return at;
}

uint32_t court_room_now(struct court *c, const struct court_job *j, uint32_t slot, bool barred,
                        bool memory) {
    struct want w = court_want(j);
    const struct nodeset *out = barred ? court_bar_set(c, j, court_bar_at(c, j, c->now)) : NULL;
    struct fit f;
    room_begin(c, j, slot);
    c->room.remembers = c->room.remembers && memory;
    room_count(c, &w, out, &f);
    return w.nodes - fit_missing(&f);
}

/* Could it have the node now, as far as its size goes? */
static bool now_does(const struct court *c, const struct want *w, uint32_t slot, uint32_t n) {
    struct fit_node is = {matrix_node_pes(&c->matrix, n), matrix_node_free(&c->matrix, slot, n),
                          c->room.remembers ? c->memory.left[n] : FIT_MEMORY_ANY};
    return fit_mask_by_size(w, &is) != 0;
}

static void room_hold_sections(struct court *c, const struct want *w, uint32_t slot,
                               const struct nodeset *barred) {
    struct nodeset *held = &c->scratch;
    struct fit f;
    fit_init(&f, w);
    nodeset_clear(held);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t n = c->config.limits.nodes; n-- > 0 && !fit_picked(&f);)
            if (now_does(c, w, slot, n) == (pass == 1) && fit_pick(&f, room_mask(c, w, barred, n)))
                nodeset_add(held, n);
    ASSERT(fit_picked(&f));
    NODESET_EACH (n, held) {
        uint32_t section = fit_assign(&f, room_mask(c, w, barred, n));
        room_change(c, n, want_each_of(w, section), false);
        room_remember(c, n, want_memory_of(w, section), false);
    }
}

/* Holds nodes for the head: first those that others cannot have now anyway, then the highest, as what starts
 * takes the lowest. */
static void room_hold(struct court *c, const struct court_job *j, uint32_t slot) {
    struct want w = court_want(j);
    uint32_t missing = w.nodes;
    if (w.section_count > 0) {
        room_hold_sections(c, &w, slot, court_bar_set(c, j, c->room.bar));
        return;
    }
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = c->matrix.words; i-- > 0 && missing > 0;)
            for (uint64_t word = c->room.will[i]; word != 0 && missing > 0;) {
                uint32_t bit = 63 - (uint32_t)__builtin_clzll(word), n = i * 64 + bit;
                word ^= (uint64_t)1 << bit;
                if (now_does(c, &w, slot, n) != (pass == 1))
                    continue;
                room_change(c, n, want_each(&w), false);
                room_remember(c, n, w.memory, false);
                missing--;
            }
    ASSERT(missing == 0);
}

/* ---- both ---- */

uint64_t court_earliest(struct court *c, const struct court_job *j, uint32_t slot) {
    uint64_t extra;
    c->room.held = c->room.held && !c->room.exact; /* the room by node is overwritten */
    return counts(c, j, slot) ? count_earliest(c, j, slot, &extra) : node_earliest(c, j, slot);
}

uint64_t court_reserve(struct court *c, const struct court_job *j, uint32_t slot) {
    struct court_room *r = &c->room;
    r->exact = !counts(c, j, slot);
    r->at = r->exact ? node_earliest(c, j, slot) : count_earliest(c, j, slot, &r->extra);
    r->held = r->at != STORM_NEVER;
    r->slot = slot;
    r->job = (uint32_t)(j - c->jobs);
    if (r->held && r->exact)
        room_hold(c, j, slot);
    return r->at;
}

/* Is it there still when the head is to start? */
static bool outlasts(const struct court *c, const struct court_job *j) {
    return c->room.held && &c->jobs[c->room.job] != j &&
           units_after(c->now, court_span_of(c, j)) > c->room.at;
}

bool court_outlasts(const struct court *c, const struct court_job *j, uint32_t slot) {
    return c->room.slot == slot && outlasts(c, j);
}

struct matrix_where court_where(const struct court *c, const struct court_job *j, uint32_t slot) {
    return (struct matrix_where){.row = slot,
                                 .last = UINT32_MAX,
                                 .barred = court_barred(c, j),
                                 .memory = court_memory_for(c, j)};
}

struct matrix_where court_where_within(const struct court *c, const struct court_job *j,
                                       uint32_t slot) {
    const struct court_room *r = &c->room;
    struct matrix_where at = court_where(c, j, slot);
    if (!r->exact || !outlasts(c, j))
        return at;
    at.room = r->slot == slot ? r->free : NULL;
    at.memory_room = r->remembers && j->takes_memory ? r->memory : NULL;
    return at;
}

/* Most who wait did not fit when they were last looked at, and cannot fit yet. */
bool court_fits(struct court *c, const struct court_job *j, const struct matrix_where *at) {
    struct court_lack *l = &c->jobs[j - c->jobs].lack;
    uint64_t gives = c->matrix.rows[at->row].gives;
    uint32_t lacks;
    if (l->era == c->era && l->slot == at->row && gives < l->until)
        return false;
    struct want w = court_want(j);
    if (matrix_fits_or(&c->matrix, at, &w, &lacks))
        return true;
    if (lacks > 0)
        *l = (struct court_lack){.era = c->era, .until = gives + lacks, .slot = at->row};
    return false;
}

bool court_may(const struct court *given, const struct court_job *j, uint32_t slot) {
    struct court *c = court_of(&given->host); /* others may be moved, which nobody sees */
    const struct matrix_row *row = &c->matrix.rows[slot];
    if (!court_has_sets(c, j) || (j->pub.nodes > row->some_count && !court_swaps_open(c)))
        return false;
    bool past = court_outlasts(c, j, slot);
    if (past && !c->room.exact && j->pub.pes > c->room.extra)
        return false;
    struct matrix_where at = court_where_within(c, j, slot);
    return court_fits(c, j, &at) || court_swap(c, j, &at);
}

/* Nodes for it, others moved if need be and it may have any. */
static int seat(struct court *c, struct court_job *j, const struct matrix_where *at) {
    int r = court_seat(c, j, at);
    if (r < 0 && at->first == 0 && at->last >= c->config.limits.nodes - 1 && court_swap(c, j, at))
        r = court_seat(c, j, at);
    return r;
}

/* What is held for another is less by what this one has. */
static void room_pass(struct court *c, const struct court_job *j, const struct matrix_where *at) {
    struct court_part p;
    if (!c->room.exact) {
        c->room.extra -= j->pub.pes < c->room.extra ? j->pub.pes : c->room.extra;
        return;
    }
    for (uint32_t k = 0; court_part(c, j, k, &p); k++)
        NODESET_EACH (n, p.set) {
            if (at->room != NULL)
                room_change(c, n, p.each, false);
            if (at->memory_room != NULL)
                room_remember(c, n, p.memory, false);
        }
}

int court_take(struct court *c, struct court_job *j, uint32_t slot, uint32_t first, uint32_t last) {
    bool past = court_outlasts(c, j, slot), against = false;
    struct matrix_where at = court_where_within(c, j, slot);
    bool within = at.room != NULL || at.memory_room != NULL;
    at.first = first;
    at.last = last;
    at.coveted = court_coveted(c, j);
    int r = seat(c, j, &at);
    if (r < 0 && within) { /* against the reservation: the policy knows what it does */
        at.room = NULL;
        at.memory_room = NULL;
        past = false;
        against = true;
        r = seat(c, j, &at);
    }
    if (r < 0)
        return r;
    if (past || at.memory_room != NULL)
        room_pass(c, j, &at);
    if (c->room.held && &c->jobs[c->room.job] == j)
        c->room.held = false;
    if (!against && j->section_count == 0 && first == 0 && last >= c->config.limits.nodes - 1)
        court_swaps_note(c, j);
    return 0;
}
