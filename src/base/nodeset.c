/* SPDX-License-Identifier: MIT */
/*
 * Node sets: runs while they are few, else a bitmap; see nodeset.h.
 *
 * Operations on runs build their result in a small scratch on the stack and copy it back, so
 * operands may alias; when the result has more runs than allowed they start again on bits.
 * Invariants: `count` is exact in both modes; runs are canonical, so equal run sets are equal
 * words; a bitmap has more than max / 2 members and at least max / 2 gaps (`settle`), max being
 * runs_max() below.
 */
#include "base/nodeset.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"

/* A result under construction: ascending runs. */
struct runs {
    uint32_t n, max, count;
    uint64_t at[NODESET_RUNS_MAX];
};

static uint64_t pack(uint32_t first, uint32_t last) {
    return (uint64_t)first << 32 | last;
}

static uint32_t first_of(uint64_t run) {
    return (uint32_t)(run >> 32);
}

static uint32_t last_of(uint64_t run) {
    return (uint32_t)run;
}

static uint32_t len_of(uint64_t run) {
    return last_of(run) - first_of(run) + 1;
}

static uint64_t *words(const struct nodeset *s) {
    return s->storage;
}

static uint32_t storage_words(uint32_t universe) {
    uint32_t n = bits_words(universe);
    return n < 8 ? 8 : n;
}

static uint32_t runs_max(const struct nodeset *s) {
    uint32_t n = storage_words(s->universe);
    return n < NODESET_RUNS_MAX ? n : NODESET_RUNS_MAX;
}

static void check_pair(const struct nodeset *a, const struct nodeset *b) {
    ASSERT(a->universe == b->universe);
}

/* ---- changing mode ---- */

static void store_runs(struct nodeset *s, const struct runs *r) {
    if (r->n > 0)
        memcpy(s->storage, r->at, r->n * sizeof r->at[0]);
    s->ranges = r->n;
    s->count = r->count;
    s->bitmap = false;
}

static void to_bitmap(struct nodeset *s) {
    if (s->bitmap)
        return;
    uint64_t runs[NODESET_RUNS_MAX];
    uint32_t n = s->ranges;
    ASSERT(n <= NODESET_RUNS_MAX);
    memcpy(runs, s->storage, n * sizeof runs[0]);
    memset(s->storage, 0, bits_words(s->universe) * sizeof(uint64_t));
    for (uint32_t i = 0; i < n; i++)
        bits_set_run(words(s), first_of(runs[i]), last_of(runs[i]));
    s->ranges = 0;
    s->bitmap = true;
}

/* Appends a run that does not begin before the last one; false if there is no room. */
static bool emit(struct runs *r, uint32_t first, uint32_t last) {
    if (r->n > 0 && first <= last_of(r->at[r->n - 1]) + 1) {
        uint64_t *prev = &r->at[r->n - 1];
        if (last > last_of(*prev)) {
            r->count += last - last_of(*prev);
            *prev = pack(first_of(*prev), last);
        }
        return true;
    }
    if (r->n == r->max)
        return false;
    r->at[r->n++] = pack(first, last);
    r->count += last - first + 1;
    return true;
}

static void runs_init(struct runs *r, const struct nodeset *s) {
    r->n = 0;
    r->count = 0;
    r->max = runs_max(s);
}

/* Emits what the run and the bitmap have in common. */
static bool emit_set_bits(struct runs *out, uint64_t run, const uint64_t *w) {
    uint32_t end = last_of(run) + 1;
    uint32_t from = bits_next_set(w, first_of(run), end);
    while (from != BITS_NONE) {
        uint32_t gap = bits_next_clear(w, from, end);
        if (!emit(out, from, gap - 1))
            return false;
        from = bits_next_set(w, gap, end);
    }
    return true;
}

/* Emits what of the run is not in the bitmap. */
static bool emit_clear_bits(struct runs *out, uint64_t run, const uint64_t *w) {
    uint32_t end = last_of(run) + 1;
    uint32_t from = bits_next_clear(w, first_of(run), end);
    while (from < end) {
        uint32_t member = bits_next_set(w, from, end);
        uint32_t stop = member == BITS_NONE ? end : member;
        if (!emit(out, from, stop - 1))
            return false;
        from = bits_next_clear(w, stop, end);
    }
    return true;
}

/* Back to runs when they are sure to be few: a set has no more runs than members, or gaps + 1. */
static void settle(struct nodeset *s) {
    uint32_t half = runs_max(s) / 2;
    if (!s->bitmap || (s->count > half && s->universe - s->count >= half))
        return;
    struct runs r;
    runs_init(&r, s);
    if (s->count > 0) {
        bool fits = emit_set_bits(&r, pack(0, s->universe - 1), words(s));
        ASSERT(fits && r.count == s->count);
    }
    store_runs(s, &r);
}

/* ---- making and changing sets ---- */

size_t nodeset_bytes(uint32_t universe) {
    return storage_words(universe) * sizeof(uint64_t);
}

void nodeset_init(struct nodeset *s, uint32_t universe, void *storage) {
    ASSERT(universe <= NODESET_UNIVERSE_MAX);
    ASSERT(((uintptr_t)storage & 7) == 0);
    *s = (struct nodeset){.storage = storage, .universe = universe};
}

void nodeset_clear(struct nodeset *s) {
    s->ranges = 0;
    s->count = 0;
    s->bitmap = false;
}

void nodeset_copy(struct nodeset *dst, const struct nodeset *src) {
    check_pair(dst, src);
    uint32_t n = src->bitmap ? bits_words(src->universe) : src->ranges;
    if (n > 0 && dst != src)
        memcpy(dst->storage, src->storage, n * sizeof(uint64_t));
    dst->ranges = src->ranges;
    dst->count = src->count;
    dst->bitmap = src->bitmap;
}

/* The first run that does not end before node n. */
static uint32_t find(const struct nodeset *s, uint32_t n) {
    const uint64_t *at = words(s);
    uint32_t low = 0, left = s->ranges;
    while (left > 0) {
        uint32_t half = left / 2;
        if (last_of(at[low + half]) < n) {
            low += half + 1;
            left -= half + 1;
        } else {
            left = half;
        }
    }
    return low;
}

/* Puts n runs in the place of runs [from, to); there must be room. */
static void splice(struct nodeset *s, uint32_t from, uint32_t to, const uint64_t *runs,
                   uint32_t n) {
    uint64_t *at = words(s);
    uint32_t count = s->count;
    for (uint32_t i = from; i < to; i++)
        count -= len_of(at[i]);
    if (n != to - from && to < s->ranges)
        memmove(at + from + n, at + to, (s->ranges - to) * sizeof at[0]);
    for (uint32_t i = 0; i < n; i++) {
        at[from + i] = runs[i];
        count += len_of(runs[i]);
    }
    s->ranges = s->ranges - (to - from) + n;
    s->count = count;
}

static bool has_room(const struct nodeset *s, uint32_t less, uint32_t more) {
    return s->ranges - less + more <= runs_max(s);
}

static bool add_to_runs(struct nodeset *s, uint32_t first, uint32_t last) {
    const uint64_t *at = words(s);
    uint32_t from = first > 0 ? find(s, first - 1) : 0;
    uint32_t to = from;
    while (to < s->ranges && first_of(at[to]) <= last + 1)
        to++;
    if (!has_room(s, to - from, 1))
        return false;
    uint64_t run = pack(first, last);
    if (to > from) {
        uint32_t low = first_of(at[from]), high = last_of(at[to - 1]);
        run = pack(low < first ? low : first, high > last ? high : last);
    }
    splice(s, from, to, &run, 1);
    return true;
}

static bool remove_from_runs(struct nodeset *s, uint32_t first, uint32_t last) {
    const uint64_t *at = words(s);
    uint32_t from = find(s, first);
    uint32_t to = from;
    while (to < s->ranges && first_of(at[to]) <= last)
        to++;
    uint64_t keep[2];
    uint32_t n = 0;
    if (to > from && first_of(at[from]) < first)
        keep[n++] = pack(first_of(at[from]), first - 1);
    if (to > from && last_of(at[to - 1]) > last)
        keep[n++] = pack(last + 1, last_of(at[to - 1]));
    if (!has_room(s, to - from, n))
        return false;
    splice(s, from, to, keep, n);
    return true;
}

void nodeset_add_range(struct nodeset *s, uint32_t first, uint32_t last) {
    ASSERT(first <= last && last < s->universe);
    if (!s->bitmap && add_to_runs(s, first, last))
        return;
    to_bitmap(s);
    s->count += bits_set_run(words(s), first, last);
    settle(s);
}

void nodeset_remove_range(struct nodeset *s, uint32_t first, uint32_t last) {
    ASSERT(first <= last && last < s->universe);
    if (!s->bitmap && remove_from_runs(s, first, last))
        return;
    to_bitmap(s);
    s->count -= bits_clear_run(words(s), first, last);
    settle(s);
}

void nodeset_add(struct nodeset *s, uint32_t n) {
    nodeset_add_range(s, n, n);
}

void nodeset_remove(struct nodeset *s, uint32_t n) {
    nodeset_remove_range(s, n, n);
}

/* ---- union ---- */

static bool join_runs(const struct nodeset *a, const struct nodeset *b, struct runs *out) {
    const uint64_t *p = words(a), *q = words(b);
    uint32_t i = 0, j = 0;
    while (i < a->ranges || j < b->ranges) {
        bool take_a = j == b->ranges || (i < a->ranges && p[i] <= q[j]);
        uint64_t run = take_a ? p[i++] : q[j++];
        if (!emit(out, first_of(run), last_of(run)))
            return false;
    }
    return true;
}

static void or_words(struct nodeset *dst, const struct nodeset *src) {
    uint64_t *p = words(dst);
    const uint64_t *q = words(src);
    uint32_t count = 0;
    for (uint32_t i = 0, n = bits_words(dst->universe); i < n; i++) {
        p[i] |= q[i];
        count += bits_popcount(p[i]);
    }
    dst->count = count;
}

static void set_runs(struct nodeset *s, const uint64_t *runs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        s->count += bits_set_run(words(s), first_of(runs[i]), last_of(runs[i]));
}

void nodeset_unite(struct nodeset *dst, const struct nodeset *src) {
    check_pair(dst, src);
    struct runs r;
    if (dst->bitmap && src->bitmap) {
        or_words(dst, src);
    } else if (src->bitmap) {
        r.n = dst->ranges;
        memcpy(r.at, dst->storage, r.n * sizeof r.at[0]);
        nodeset_copy(dst, src);
        set_runs(dst, r.at, r.n);
    } else {
        runs_init(&r, dst);
        if (!dst->bitmap && join_runs(dst, src, &r)) {
            store_runs(dst, &r);
            return;
        }
        to_bitmap(dst);
        set_runs(dst, words(src), src->ranges);
    }
    settle(dst);
}

/* ---- intersection ---- */

static bool meet_runs(const struct nodeset *a, const struct nodeset *b, struct runs *out) {
    const uint64_t *p = words(a), *q = words(b);
    uint32_t i = 0, j = 0;
    while (i < a->ranges && j < b->ranges) {
        uint32_t first = first_of(p[i]) > first_of(q[j]) ? first_of(p[i]) : first_of(q[j]);
        uint32_t last = last_of(p[i]) < last_of(q[j]) ? last_of(p[i]) : last_of(q[j]);
        if (first <= last && !emit(out, first, last))
            return false;
        if (last_of(p[i]) < last_of(q[j]))
            i++;
        else
            j++;
    }
    return true;
}

static bool meet_bits(const struct nodeset *runs, const struct nodeset *bits, struct runs *out) {
    for (uint32_t i = 0; i < runs->ranges; i++)
        if (!emit_set_bits(out, words(runs)[i], words(bits)))
            return false;
    return true;
}

/* False if the common part does not fit (or is not tried, between two bitmaps). */
static bool meet(const struct nodeset *a, const struct nodeset *b, struct runs *out) {
    if (a->bitmap && b->bitmap)
        return false;
    if (a->bitmap)
        return meet_bits(b, a, out);
    return b->bitmap ? meet_bits(a, b, out) : meet_runs(a, b, out);
}

static void and_words(struct nodeset *dst, const struct nodeset *a, const struct nodeset *b) {
    uint64_t *d = words(dst);
    const uint64_t *p = words(a), *q = words(b);
    uint32_t count = 0;
    for (uint32_t i = 0, n = bits_words(dst->universe); i < n; i++) {
        uint64_t w = p[i] & q[i];
        d[i] = w;
        count += bits_popcount(w);
    }
    dst->ranges = 0;
    dst->count = count;
    dst->bitmap = true;
}

/* Clears in the bitmap of `dst` everything outside the runs of `src`. */
static void clear_outside(struct nodeset *dst, const struct nodeset *src) {
    const uint64_t *runs = words(src);
    uint32_t from = 0;
    for (uint32_t i = 0; i < src->ranges; i++) {
        if (from < first_of(runs[i]))
            dst->count -= bits_clear_run(words(dst), from, first_of(runs[i]) - 1);
        from = last_of(runs[i]) + 1;
    }
    if (from < dst->universe)
        dst->count -= bits_clear_run(words(dst), from, dst->universe - 1);
}

/* Where the common part has too many runs. */
static void intersect_bits(struct nodeset *dst, const struct nodeset *src) {
    to_bitmap(dst);
    if (src->bitmap)
        and_words(dst, dst, src);
    else
        clear_outside(dst, src);
    settle(dst);
}

void nodeset_intersect(struct nodeset *dst, const struct nodeset *src) {
    check_pair(dst, src);
    struct runs r;
    runs_init(&r, dst);
    if (meet(dst, src, &r))
        store_runs(dst, &r);
    else
        intersect_bits(dst, src);
}

void nodeset_and(struct nodeset *dst, const struct nodeset *a, const struct nodeset *b) {
    ASSERT(dst != a && dst != b);
    check_pair(a, b);
    check_pair(dst, a);
    struct runs r;
    runs_init(&r, dst);
    if (meet(a, b, &r)) {
        store_runs(dst, &r);
    } else if (a->bitmap && b->bitmap) {
        and_words(dst, a, b);
        settle(dst);
    } else {
        nodeset_copy(dst, a->bitmap ? a : b);
        intersect_bits(dst, a->bitmap ? b : a);
    }
}

/* ---- difference ---- */

static bool cut_runs(const struct nodeset *a, const struct nodeset *b, struct runs *out) {
    const uint64_t *p = words(a), *q = words(b);
    uint32_t j = 0;
    for (uint32_t i = 0; i < a->ranges; i++) {
        uint32_t from = first_of(p[i]), end = last_of(p[i]) + 1;
        while (j < b->ranges && last_of(q[j]) < from)
            j++;
        /* a run of b that reaches beyond this run of a is needed for the next one too */
        for (uint32_t k = j; k < b->ranges && first_of(q[k]) < end; k++) {
            if (from < first_of(q[k]) && !emit(out, from, first_of(q[k]) - 1))
                return false;
            from = last_of(q[k]) + 1;
            j = k;
        }
        if (from < end && !emit(out, from, end - 1))
            return false;
    }
    return true;
}

static bool cut_bits(const struct nodeset *a, const struct nodeset *b, struct runs *out) {
    for (uint32_t i = 0; i < a->ranges; i++)
        if (!emit_clear_bits(out, words(a)[i], words(b)))
            return false;
    return true;
}

static void andnot_words(struct nodeset *dst, const struct nodeset *src) {
    uint64_t *p = words(dst);
    const uint64_t *q = words(src);
    uint32_t count = 0;
    for (uint32_t i = 0, n = bits_words(dst->universe); i < n; i++) {
        p[i] &= ~q[i];
        count += bits_popcount(p[i]);
    }
    dst->count = count;
}

void nodeset_subtract(struct nodeset *dst, const struct nodeset *src) {
    check_pair(dst, src);
    if (!dst->bitmap) {
        struct runs r;
        runs_init(&r, dst);
        if (src->bitmap ? cut_bits(dst, src, &r) : cut_runs(dst, src, &r)) {
            store_runs(dst, &r);
            return;
        }
        to_bitmap(dst);
    }
    if (src->bitmap) {
        andnot_words(dst, src);
    } else {
        for (uint32_t i = 0; i < src->ranges; i++) {
            uint64_t run = words(src)[i];
            dst->count -= bits_clear_run(words(dst), first_of(run), last_of(run));
        }
    }
    settle(dst);
}

/* ---- questions ---- */

bool nodeset_runs_have(const struct nodeset *s, uint32_t n) {
    if (n >= s->universe)
        return false;
    uint32_t i = find(s, n);
    return i < s->ranges && first_of(words(s)[i]) <= n;
}

uint64_t nodeset_runs_word(const struct nodeset *s, uint32_t i) {
    uint32_t from = i * 64;
    uint64_t word = 0;
    if (from >= s->universe)
        return 0;
    for (uint32_t k = find(s, from); k < s->ranges && first_of(words(s)[k]) < from + 64; k++) {
        uint32_t first = first_of(words(s)[k]), last = last_of(words(s)[k]);
        uint32_t low = first > from ? first - from : 0;
        uint32_t high = last < from + 63 ? last - from : 63;
        word |= UINT64_MAX >> (63 - high + low) << low;
    }
    return word;
}

/* Are all runs of `runs` full in `bits`? */
static bool bits_cover_runs(const struct nodeset *bits, const struct nodeset *runs) {
    for (uint32_t i = 0; i < runs->ranges; i++) {
        uint64_t run = words(runs)[i];
        if (!bits_all_in_run(words(bits), first_of(run), last_of(run)))
            return false;
    }
    return true;
}

bool nodeset_equal(const struct nodeset *a, const struct nodeset *b) {
    check_pair(a, b);
    if (a->count != b->count)
        return false;
    if (a->count == 0)
        return true;
    if (a->bitmap != b->bitmap)
        return a->bitmap ? bits_cover_runs(a, b) : bits_cover_runs(b, a);
    if (a->ranges != b->ranges)
        return false;
    uint32_t n = a->bitmap ? bits_words(a->universe) : a->ranges;
    return memcmp(a->storage, b->storage, n * sizeof(uint64_t)) == 0;
}

static bool runs_touch_bits(const struct nodeset *runs, const struct nodeset *bits) {
    for (uint32_t i = 0; i < runs->ranges; i++) {
        uint64_t run = words(runs)[i];
        if (bits_any_in_run(words(bits), first_of(run), last_of(run)))
            return true;
    }
    return false;
}

static bool runs_touch_runs(const struct nodeset *a, const struct nodeset *b) {
    const uint64_t *p = words(a), *q = words(b);
    uint32_t i = 0, j = 0;
    while (i < a->ranges && j < b->ranges) {
        if (last_of(p[i]) < first_of(q[j]))
            i++;
        else if (last_of(q[j]) < first_of(p[i]))
            j++;
        else
            return true;
    }
    return false;
}

bool nodeset_intersects(const struct nodeset *a, const struct nodeset *b) {
    check_pair(a, b);
    if (!a->bitmap)
        return b->bitmap ? runs_touch_bits(a, b) : runs_touch_runs(a, b);
    if (!b->bitmap)
        return runs_touch_bits(b, a);
    for (uint32_t i = 0, n = bits_words(a->universe); i < n; i++)
        if (words(a)[i] & words(b)[i])
            return true;
    return false;
}

static bool runs_cover_runs(const struct nodeset *a, const struct nodeset *b) {
    const uint64_t *p = words(a), *q = words(b);
    uint32_t i = 0;
    for (uint32_t j = 0; j < b->ranges; j++) {
        while (i < a->ranges && last_of(p[i]) < last_of(q[j]))
            i++;
        if (i == a->ranges || first_of(p[i]) > first_of(q[j]))
            return false;
    }
    return true;
}

static bool runs_cover_bits(const struct nodeset *runs, const struct nodeset *bits) {
    uint32_t inside = 0;
    for (uint32_t i = 0; i < runs->ranges; i++) {
        uint64_t run = words(runs)[i];
        inside += bits_count_run(words(bits), first_of(run), last_of(run));
    }
    return inside == bits->count;
}

bool nodeset_covers(const struct nodeset *a, const struct nodeset *b) {
    check_pair(a, b);
    if (a->count < b->count)
        return false;
    if (!a->bitmap)
        return b->bitmap ? runs_cover_bits(a, b) : runs_cover_runs(a, b);
    if (!b->bitmap)
        return bits_cover_runs(a, b);
    for (uint32_t i = 0, n = bits_words(a->universe); i < n; i++)
        if (words(b)[i] & ~words(a)[i])
            return false;
    return true;
}

/* ---- walking ---- */

/* The lowest member at or above `from`. */
static uint32_t member_from(const struct nodeset *s, uint32_t from) {
    if (s->bitmap)
        return bits_next_set(words(s), from, s->universe);
    uint32_t i = find(s, from);
    if (i == s->ranges)
        return NODESET_NONE;
    uint32_t first = first_of(words(s)[i]);
    return first > from ? first : from;
}

uint32_t nodeset_first(const struct nodeset *s) {
    return member_from(s, 0);
}

uint32_t nodeset_next(const struct nodeset *s, uint32_t after) {
    return after >= s->universe ? NODESET_NONE : member_from(s, after + 1);
}

uint32_t nodeset_last(const struct nodeset *s) {
    if (s->count == 0)
        return NODESET_NONE;
    if (!s->bitmap)
        return last_of(words(s)[s->ranges - 1]);
    uint32_t i = bits_words(s->universe) - 1;
    while (words(s)[i] == 0)
        i--;
    return i * 64 + 63 - (uint32_t)__builtin_clzll(words(s)[i]);
}

bool nodeset_next_range(const struct nodeset *s, uint32_t from, struct noderange *ret) {
    uint32_t first, last;
    if (s->bitmap) {
        first = bits_next_set(words(s), from, s->universe);
        if (first == BITS_NONE)
            return false;
        last = bits_next_clear(words(s), first, s->universe) - 1;
    } else {
        uint32_t i = find(s, from);
        if (i == s->ranges)
            return false;
        first = first_of(words(s)[i]) > from ? first_of(words(s)[i]) : from;
        last = last_of(words(s)[i]);
    }
    *ret = (struct noderange){.first = first, .last = last};
    return true;
}

uint32_t nodeset_range_count(const struct nodeset *s) {
    return s->bitmap ? bits_count_runs(words(s), bits_words(s->universe)) : s->ranges;
}

uint32_t nodeset_rank(const struct nodeset *s, uint32_t n) {
    uint32_t rank = 0;
    struct noderange r;
    for (uint32_t from = 0; nodeset_next_range(s, from, &r) && r.first < n; from = r.last + 1)
        rank += (n <= r.last ? n : r.last + 1) - r.first;
    return rank;
}

uint32_t nodeset_at(const struct nodeset *s, uint32_t rank) {
    struct noderange r;
    for (uint32_t from = 0; nodeset_next_range(s, from, &r); from = r.last + 1) {
        if (rank <= r.last - r.first)
            return r.first + rank;
        rank -= r.last - r.first + 1;
    }
    return NODESET_NONE;
}
