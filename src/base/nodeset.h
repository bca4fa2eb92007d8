/* SPDX-License-Identifier: MIT */
/*
 * Set of node numbers 0 .. universe - 1, the destination of every primitive.
 *
 * A hybrid in the caller's storage, which is always an array of 64-bit words: while there are few
 * runs, each word is one run (first above last) and the runs are sorted, disjoint and not adjacent;
 * with more runs than NODESET_RUNS_MAX (or than fit) the words are a bitmap whose bits beyond the
 * universe are zero. A bitmap whose members or gaps have become few goes back to runs, with enough
 * distance between both thresholds that no sequence of operations pays for conversions each time.
 * What a set contains never depends on its mode. Both operands of an operation have one universe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NODESET_NONE         UINT32_MAX
#define NODESET_UNIVERSE_MAX ((uint32_t)1 << 30)
#define NODESET_RUNS_MAX     64

struct noderange {
    uint32_t first, last; /* inclusive */
};

struct nodeset {
    void *storage;
    uint32_t universe;
    uint32_t ranges; /* in range mode */
    uint32_t count;  /* members, in either mode */
    bool bitmap;
};

/* Storage for a set over this universe: a multiple of 8, at least 64. */
size_t nodeset_bytes(uint32_t universe);

/* Makes the empty set; the storage (aligned to 8) is not touched until something is added. */
void nodeset_init(struct nodeset *s, uint32_t universe, void *storage);

void nodeset_clear(struct nodeset *s);
void nodeset_copy(struct nodeset *dst, const struct nodeset *src);
void nodeset_add(struct nodeset *s, uint32_t n);
void nodeset_add_range(struct nodeset *s, uint32_t first, uint32_t last);
void nodeset_remove(struct nodeset *s, uint32_t n);
void nodeset_remove_range(struct nodeset *s, uint32_t first, uint32_t last);

/* In place; dst and src may be the same set. */
void nodeset_unite(struct nodeset *dst, const struct nodeset *src);
void nodeset_intersect(struct nodeset *dst, const struct nodeset *src);
void nodeset_subtract(struct nodeset *dst, const struct nodeset *src);

/* dst = a & b; dst is neither of them. */
void nodeset_and(struct nodeset *dst, const struct nodeset *a, const struct nodeset *b);

/* The same for sets that are runs. */
bool nodeset_runs_have(const struct nodeset *s, uint32_t n);
uint64_t nodeset_runs_word(const struct nodeset *s, uint32_t i);

/* False beyond the universe. In place: schedulers ask it for every node of a cluster. */
static inline bool nodeset_has(const struct nodeset *s, uint32_t n) {
    if (s->bitmap && n < s->universe)
        return (((const uint64_t *)s->storage)[n / 64] >> (n % 64)) & 1;
    return !s->bitmap && nodeset_runs_have(s, n);
}

/* All its words, a bit for each member; NULL: it is runs. Valid until it changes. */
static inline const uint64_t *nodeset_bits(const struct nodeset *s) {
    return s->bitmap ? s->storage : NULL;
}

/* Members 64 * i .. 64 * i + 63, a bit each. */
static inline uint64_t nodeset_word(const struct nodeset *s, uint32_t i) {
    if (s->bitmap)
        return (uint64_t)i * 64 < s->universe ? ((const uint64_t *)s->storage)[i] : 0;
    return nodeset_runs_word(s, i);
}
bool nodeset_equal(const struct nodeset *a, const struct nodeset *b);
bool nodeset_intersects(const struct nodeset *a, const struct nodeset *b);
bool nodeset_covers(const struct nodeset *a, const struct nodeset *b); /* b is a subset of a */

/* NODESET_NONE if there is no such member. */
uint32_t nodeset_first(const struct nodeset *s);
uint32_t nodeset_next(const struct nodeset *s, uint32_t after); /* the next above `after` */
uint32_t nodeset_last(const struct nodeset *s);

/* The first maximal run at or above `from`; of a run that contains `from`, the part from there. */
bool nodeset_next_range(const struct nodeset *s, uint32_t from, struct noderange *ret);
/* How many members are below this one; the member that so many are below, NODESET_NONE if there are not. */
uint32_t nodeset_rank(const struct nodeset *s, uint32_t n);
uint32_t nodeset_at(const struct nodeset *s, uint32_t rank);

/* Maximal runs, in either mode. */
uint32_t nodeset_range_count(const struct nodeset *s);

static inline bool nodeset_empty(const struct nodeset *s) {
    return s->count == 0;
}

static inline uint32_t nodeset_count(const struct nodeset *s) {
    return s->count;
}

/* Members in ascending order. The set must not change inside the loop. */
#define NODESET_EACH(n, s) \
    for (uint32_t n = nodeset_first(s); n != NODESET_NONE; n = nodeset_next((s), n))

/*
 * Reads "n[0-3,7]", "n5", "n[0-3],n7" (prefix "n"; zero padding allowed; "" is the empty set) and
 * makes `s` that set. -EINVAL: not such a text; -ERANGE: a number beyond the universe; then `s` is
 * unchanged and *ret_where (if not NULL) is the offset of the offending character.
 */
int nodeset_parse(struct nodeset *s, const char *text, const char *prefix, size_t *ret_where);

/*
 * Writes the folded text ("n[0-3,7]", "n5", "") with a NUL, cut to `cap`. Returns the length the
 * whole text has: it was cut if that is not below `cap`.
 */
size_t nodeset_format(const struct nodeset *s, const char *prefix, char *buf, size_t cap);
