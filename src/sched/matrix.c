/* SPDX-License-Identifier: MIT */
/* The Ousterhout matrix; see matrix.h. What is derived from `used` and `usable` changes in enter() only, or
 * in whole runs where nodes have one PE. */
#include "sched/matrix.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/sort.h"

enum { BLOCK = 16 }; /* words that are sifted at once */

/* The largest power of two that is not above it; it is at least 1. */
static uint32_t level_of(uint32_t pes) {
    return 31 - (uint32_t)__builtin_clz(pes);
}

/* Bitmap of usable nodes with at least 2^level PEs free. */
static uint64_t *rich(const struct matrix *m, const struct matrix_row *r, uint32_t level) {
    return level == 0 ? r->some : r->rich + (size_t)m->words * (level - 1);
}

static void carve_row(struct matrix *m, struct matrix_row *r, struct arena *a) {
    *r = (struct matrix_row){.some = ARENA_TAKE(a, uint64_t, m->words)};
    if (matrix_flat(m)) {
        r->whole = r->some;
        r->taken = ARENA_TAKE(a, uint64_t, m->words);
    } else {
        r->whole = ARENA_TAKE(a, uint64_t, m->words);
        r->rich = ARENA_TAKE(a, uint64_t, (size_t)m->words * m->levels);
        r->used = ARENA_TAKE(a, uint16_t, m->config.nodes);
    }
}

static void carve(struct matrix *m, const struct matrix_config *c, struct arena *a) {
    ASSERT(c->nodes >= 1 && c->nodes <= c->universe && c->rows >= 1);
    ASSERT(c->pes_max >= 1 && c->pes <= c->pes_max && c->pes_max <= MATRIX_PES_MAX);
    *m = (struct matrix){
        .config = *c, .words = bits_words(c->nodes), .levels = level_of(c->pes_max)};
    m->usable = ARENA_TAKE(a, uint64_t, m->words);
    m->marked = ARENA_TAKE(a, uint64_t, m->words);
    if (!matrix_flat(m))
        m->pes = ARENA_TAKE(a, uint16_t, c->nodes);
    m->ranks = ARENA_TAKE(a, uint8_t, c->nodes);
    m->order = ARENA_TAKE(a, uint64_t, c->nodes);
    m->rows = ARENA_TAKE(a, struct matrix_row, c->rows);
    struct matrix_row scratch;
    for (uint32_t i = 0; i < c->rows; i++)
        carve_row(m, arena_measuring(a) ? &scratch : &m->rows[i], a);
}

size_t matrix_bytes(const struct matrix_config *c) {
    struct arena a;
    struct matrix scratch;
    arena_init(&a, NULL, 0);
    carve(&scratch, c, &a);
    return arena_used(&a);
}

void matrix_init(struct matrix *m, const struct matrix_config *c, struct arena *a) {
    carve(m, c, a);
    memset(m->usable, 0, sizeof m->usable[0] * m->words);
    memset(m->ranks, 0, c->nodes);
    for (uint32_t i = 0; i < c->rows; i++) {
        struct matrix_row *r = &m->rows[i];
        memset(r->some, 0, sizeof r->some[0] * m->words);
        memset(r->whole, 0, sizeof r->whole[0] * m->words);
        if (r->taken)
            memset(r->taken, 0, sizeof r->taken[0] * m->words);
        else
            memset(r->used, 0, sizeof r->used[0] * c->nodes);
        if (r->rich)
            memset(r->rich, 0, sizeof r->rich[0] * m->words * m->levels);
    }
    for (uint32_t n = 0; m->pes && n < c->nodes; n++)
        m->pes[n] = (uint16_t)c->pes;
}

/* ---- one node ---- */

/* Sets a bit to what it should be; the change in the number of bits set. */
static uint32_t mark(uint64_t *bits, uint32_t n, bool set) {
    return set ? bits_set_run(bits, n, n) : -bits_clear_run(bits, n, n);
}

/* What follows from the state of this node, which had so much free in the row. */
static void enter(struct matrix *m, uint32_t row, uint32_t n, uint32_t had) {
    struct matrix_row *r = &m->rows[row];
    uint32_t left = matrix_node_free(m, row, n), used = matrix_node_used(m, row, n);
    r->free += left;
    r->free -= had;
    r->gives += left > had;
    for (uint32_t level = 1; level <= m->levels; level++)
        if ((left >> level > 0) != (had >> level > 0))
            mark(rich(m, r, level), n, left >> level > 0);
    r->some_count += mark(r->some, n, left > 0);
    if (r->whole != r->some)
        r->whole_count += mark(r->whole, n, left > 0 && used == 0);
    else
        r->whole_count = r->some_count;
}

void matrix_set_pes(struct matrix *m, uint32_t node, uint32_t pes) {
    ASSERT(node < m->config.nodes && pes <= m->config.pes_max && !bits_test(m->usable, node));
    if (matrix_flat(m))
        return;
    for (uint32_t r = 0; r < m->config.rows; r++)
        ASSERT(m->rows[r].used[node] <= pes);
    m->stale = m->stale || m->pes[node] != pes;
    m->pes[node] = (uint16_t)pes;
}

void matrix_set_rank(struct matrix *m, uint32_t node, uint8_t rank) {
    ASSERT(node < m->config.nodes);
    m->stale = m->stale || m->ranks[node] != rank;
    m->ranks[node] = rank;
}

bool matrix_uneven(struct matrix *m) {
    if (!m->stale)
        return m->uneven;
    m->stale = m->uneven = false;
    for (uint32_t n = 0; n < m->config.nodes; n++) {
        uint64_t pes = matrix_node_pes(m, n);
        m->order[n] = (uint64_t)m->ranks[n] << 48 | pes << 32 | n;
        m->uneven = m->uneven || m->order[n] >> 32 != m->order[0] >> 32;
    }
    if (m->uneven)
        sort_u64(m->order, m->config.nodes);
    return m->uneven;
}

void matrix_set_usable(struct matrix *m, const struct nodeset *set, bool usable) {
    NODESET_EACH (n, set) {
        if (n >= m->config.nodes)
            break;
        if (bits_test(m->usable, n) == usable)
            continue;
        uint32_t pes = matrix_node_pes(m, n);
        if (usable)
            bits_set_run(m->usable, n, n);
        else
            bits_clear_run(m->usable, n, n);
        m->pes_usable = usable ? m->pes_usable + pes : m->pes_usable - pes;
        for (uint32_t r = 0; r < m->config.rows; r++)
            enter(m, r, n, usable ? 0 : pes - matrix_node_used(m, r, n));
    }
}

/* ---- fitting ---- */

static const uint64_t *bits_for(const struct matrix_row *r, const struct want *w) {
    return w->exclusive ? r->whole : r->some;
}

static uint32_t end_of(const struct matrix *m, const struct matrix_where *at) {
    return at->last < m->config.nodes ? at->last + 1 : m->config.nodes;
}

/* Is memory a matter for it? */
static bool counts_memory(const struct matrix_where *at, const struct want *w) {
    return w->memory > 0 && (at->memory != NULL || at->memory_room != NULL);
}

/* Memory of the node that it may have. */
static int64_t memory_left(const struct matrix_where *at, uint32_t n) {
    int64_t left = at->memory != NULL ? at->memory[n] : FIT_MEMORY_ANY;
    return at->memory_room != NULL && at->memory_room[n] < left ? at->memory_room[n] : left;
}

/* Will every node with its bit set do? */
static bool plain(const struct matrix *m, const struct matrix_where *at, const struct want *w) {
    return w->only == NULL && w->meets == NULL &&
           (w->exclude == NULL || nodeset_empty(w->exclude)) &&
           (w->avoid == NULL || nodeset_empty(w->avoid)) && at->room == NULL &&
           at->barred == NULL && (w->ppn == 1 || matrix_flat(m)) && !counts_memory(at, w);
}

/* Nodes that it chooses and may have, as far as that is a matter of bits: a word at a time. */
struct sieve {
    const uint64_t *bits, *rich; /* rich: NULL if all have one PE */
    const struct nodeset *only, *meets, *exclude, *avoid, *barred;
    uint32_t first, end;
    bool cut; /* not all nodes are meant */
};

static struct sieve sieve_for(const struct matrix *m, const struct matrix_where *at,
                              const struct want *w) {
    const struct matrix_row *r = &m->rows[at->row];
    uint32_t end = end_of(m, at);
    return (struct sieve){.bits = bits_for(r, w),
                          .rich = r->taken ? NULL : rich(m, r, level_of(w->ppn)),
                          .only = w->only,
                          .meets = w->meets,
                          .exclude = w->exclude,
                          .avoid = w->avoid,
                          .barred = at->barred,
                          .first = at->first,
                          .end = end,
                          .cut = at->first > 0 || end < m->config.nodes};
}

/* Those of the word that are in the range. */
static uint64_t sieve_cut(const struct sieve *s, uint32_t i) {
    uint32_t from = i * 64;
    uint64_t word = UINT64_MAX;
    if (s->first >= from + 64 || s->end <= from)
        return 0;
    if (s->first > from)
        word &= UINT64_MAX << (s->first - from);
    if (s->end < from + 64)
        word &= UINT64_MAX >> (from + 64 - s->end);
    return word;
}

static void and_set(uint64_t *out, const struct nodeset *set, uint32_t from, uint32_t words) {
    const uint64_t *bits = nodeset_bits(set);
    for (uint32_t i = 0; i < words; i++)
        out[i] &= bits != NULL ? bits[from + i] : nodeset_word(set, from + i);
}

static void and_not_set(uint64_t *out, const struct nodeset *set, uint32_t from, uint32_t words) {
    for (uint32_t i = 0; i < words; i++)
        out[i] &= ~nodeset_word(set, from + i);
}

/* Words from this one on, one kind of sieve after another: short loops over words that lie side by side. */
static void sift(const struct sieve *s, uint32_t from, uint32_t words, uint64_t *out) {
    for (uint32_t i = 0; i < words; i++)
        out[i] = s->bits[from + i];
    for (uint32_t i = 0; i < words && s->rich != NULL; i++)
        out[i] &= s->rich[from + i];
    if (s->meets != NULL)
        and_set(out, s->meets, from, words);
    if (s->only != NULL)
        and_set(out, s->only, from, words);
    if (s->exclude != NULL)
        and_not_set(out, s->exclude, from, words);
    if (s->avoid != NULL)
        and_not_set(out, s->avoid, from, words);
    if (s->barred != NULL)
        and_not_set(out, s->barred, from, words);
    for (uint32_t i = 0; i < words && s->cut; i++)
        out[i] &= sieve_cut(s, from + i);
}

static uint64_t sieve_word(const struct sieve *s, uint32_t i) {
    uint64_t word = 0;
    if (s->bits[i] != 0)
        sift(s, i, 1, &word);
    return word;
}

/* Has the node enough, now and in the room? */
static bool is_enough(const struct matrix *m, const struct matrix_where *at, const struct want *w,
                      uint32_t n) {
    const struct matrix_row *r = &m->rows[at->row];
    return (!r->used || (uint32_t)(m->pes[n] - r->used[n]) >= w->ppn) &&
           (!at->room ||
            at->room[n] >= (w->exclusive && matrix_node_pes(m, n) > w->ppn ? matrix_node_pes(m, n)
                                                                           : w->ppn)) &&
           want_has_memory(w->memory, memory_left(at, n));
}

static bool suits(const struct matrix *m, const struct matrix_where *at, const struct want *w,
                  uint32_t n) {
    return is_enough(m, at, w, n) && want_chooses(w, n) &&
           (at->barred == NULL || !nodeset_has(at->barred, n));
}

bool matrix_suits(const struct matrix *m, const struct matrix_where *at, const struct want *w,
                  uint32_t node) {
    const struct matrix_row *r = &m->rows[at->row];
    return bits_test(bits_for(r, w), node) &&
           (r->taken || bits_test(rich(m, r, level_of(w->ppn)), node)) && suits(m, at, w, node);
}

uint32_t matrix_nth_suiting(const struct matrix *m, const struct matrix_where *at,
                            const struct want *w, uint32_t i, uint32_t end) {
    const struct matrix_row *r = &m->rows[at->row];
    const uint64_t *bits = bits_for(r, w), *rest = r->taken ? bits : rich(m, r, level_of(w->ppn));
    for (; i < end; i++) {
        uint32_t n = matrix_nth(m, i);
        if (bits_test(bits, n) && bits_test(rest, n) && suits(m, at, w, n))
            break;
    }
    return i;
}

uint32_t matrix_suiting(const struct matrix *m, const struct matrix_where *at, const struct want *w,
                        uint32_t from) {
    struct sieve s = sieve_for(m, at, w);
    uint64_t mask = UINT64_MAX << (from % 64);
    for (uint32_t i = from / 64; i < m->words; i++, mask = UINT64_MAX)
        for (uint64_t word = sieve_word(&s, i) & mask; word != 0; word &= word - 1) {
            uint32_t n = i * 64 + (uint32_t)__builtin_ctzll(word);
            if (is_enough(m, at, w, n))
                return n;
        }
    return UINT32_MAX;
}

uint32_t matrix_mask(const struct matrix *m, const struct matrix_where *at, const struct want *w,
                     uint32_t n) {
    uint32_t pes = matrix_node_pes(m, n), left = pes - matrix_node_used(m, at->row, n);
    if (pes == 0 || n < at->first || n > at->last ||
        (at->up != NULL ? !nodeset_has(at->up, n) : !bits_test(m->usable, n)) ||
        (at->barred != NULL && nodeset_has(at->barred, n)))
        return 0;
    if (at->room != NULL && at->room[n] < left)
        left = at->room[n];
    return fit_mask(w, n, &(struct fit_node){pes, left, memory_left(at, n)});
}

/* Counted by mask: for sections, and where others can be used than the matrix has. */
static bool masks_fit(const struct matrix *m, const struct matrix_where *at, const struct want *w) {
    struct sieve s = sieve_for(m, at, w);
    struct fit f;
    fit_init(&f, w);
    for (uint32_t i = 0; i < m->words; i++) {
        uint64_t word = at->up != NULL ? nodeset_word(at->up, i) : sieve_word(&s, i);
        for (; word != 0; word &= word - 1) {
            uint32_t n = i * 64 + (uint32_t)__builtin_ctzll(word);
            if (n < m->config.nodes)
                fit_tell(&f, matrix_mask(m, at, w, n));
        }
        bool look =
            i % 16 == 15 || i + 1 == m->words; /* most jobs have enough long before the end */
        if (look && f.count >= w->nodes && fit_missing(&f) == 0)
            return true;
    }
    return false;
}

/* Are there enough? Words first: that is a step for 64 nodes, and tells most who do not fit. */
static bool count_fits(const struct matrix *m, const struct matrix_where *at, const struct want *w,
                       uint32_t *ret_lacks) {
    struct sieve s = sieve_for(m, at, w);
    uint32_t most = 0, count = 0;
    bool by_node = at->room != NULL || (m->pes != NULL && (w->ppn & (w->ppn - 1)) != 0) ||
                   counts_memory(at, w);
    for (uint32_t i = 0; i < m->words && (by_node || most < w->nodes); i += BLOCK) {
        uint32_t words = m->words - i < BLOCK ? m->words - i : BLOCK;
        sift(&s, i, words, m->marked + i);
        most += bits_count_block(m->marked + i, words);
    }
    if (most < w->nodes || !by_node) {
        *ret_lacks = most < w->nodes ? w->nodes - most : 0;
        return most >= w->nodes;
    }
    for (uint32_t i = 0; i < m->words; i++)
        for (uint64_t word = m->marked[i]; word != 0; word &= word - 1) {
            if (!is_enough(m, at, w, i * 64 + (uint32_t)__builtin_ctzll(word)))
                most--;
            else
                count++;
            if (count == w->nodes || most < w->nodes)
                return count == w->nodes;
        }
    return false;
}

bool matrix_fits_or(const struct matrix *m, const struct matrix_where *at, const struct want *w,
                    uint32_t *ret_lacks) {
    const struct matrix_row *r = &m->rows[at->row];
    uint32_t end = end_of(m, at), most = w->exclusive ? r->whole_count : r->some_count;
    *ret_lacks = 0;
    if (at->up != NULL)
        return masks_fit(m, at, w);
    if (w->ppn > m->config.pes_max || at->first >= end)
        return false;
    if (most < w->nodes) {
        *ret_lacks = w->nodes - most;
        return false;
    }
    if (w->section_count > 0)
        return masks_fit(m, at, w);
    if (plain(m, at, w))
        return (at->first == 0 && end == m->config.nodes) ||
               bits_count_run(bits_for(r, w), at->first, end - 1) >= w->nodes;
    return count_fits(m, at, w, ret_lacks);
}

bool matrix_fits(const struct matrix *m, const struct matrix_where *at, const struct want *w) {
    uint32_t lacks;
    return matrix_fits_or(m, at, w, &lacks);
}

/* ---- taking and giving ---- */

/* A run of nodes that have one PE each changes hands. */
static void flip_run(struct matrix *m, struct matrix_row *r, uint32_t first, uint32_t last,
                     bool take) {
    if (take) {
        uint32_t changed = bits_set_run(r->taken, first, last);
        ASSERT(changed == last - first + 1);
        r->some_count -= bits_clear_run(r->some, first, last);
    } else {
        uint32_t changed = bits_clear_run(r->taken, first, last);
        ASSERT(changed == last - first + 1);
        r->gives += changed;
        if (bits_all_in_run(m->usable, first, last))
            r->some_count += bits_set_run(r->some, first, last);
        else
            for (uint32_t n = first; n <= last; n++)
                if (bits_test(m->usable, n))
                    r->some_count += bits_set_run(r->some, n, n);
    }
    r->whole_count = r->some_count;
    r->free = r->some_count;
}

static void change_run(struct matrix *m, uint32_t row, struct noderange run, uint32_t each,
                       bool take) {
    struct matrix_row *r = &m->rows[row];
    if (r->taken) {
        flip_run(m, r, run.first, run.last, take);
        return;
    }
    for (uint32_t n = run.first; n <= run.last; n++) {
        uint32_t had = matrix_node_free(m, row, n), pes = each == WANT_WHOLE ? m->pes[n] : each;
        ASSERT(take ? r->used[n] + pes <= m->pes[n] : r->used[n] >= pes);
        r->used[n] = (uint16_t)(take ? r->used[n] + pes : r->used[n] - pes);
        enter(m, row, n, had);
    }
}

static void change(struct matrix *m, uint32_t row, const struct nodeset *set, uint32_t each,
                   bool take) {
    struct noderange run;
    for (uint32_t from = 0; nodeset_next_range(set, from, &run); from = run.last + 1)
        change_run(m, row, run, each, take);
}

static void pick_runs(const uint64_t *bits, uint32_t first, uint32_t end, uint32_t nodes,
                      struct nodeset *ret) {
    for (uint32_t n = first; nodes > 0;) {
        n = bits_next_set(bits, n, end);
        ASSERT(n != BITS_NONE);
        uint32_t behind = bits_next_clear(bits, n, end);
        if (behind - n > nodes)
            behind = n + nodes;
        nodeset_add_range(ret, n, behind - 1);
        nodes -= behind - n;
        n = behind;
    }
}

/* Where all are alike: the lowest. */
static void pick_lowest(const struct matrix *m, const struct matrix_where *at, const struct want *w,
                        struct nodeset *ret) {
    const uint64_t *bits = bits_for(&m->rows[at->row], w);
    uint32_t end = end_of(m, at);
    if (plain(m, at, w)) {
        pick_runs(bits, at->first, end, w->nodes, ret);
        return;
    }
    for (uint32_t n = at->first; nodeset_count(ret) < w->nodes; n++) {
        n = bits_next_set(bits, n, end);
        ASSERT(n != BITS_NONE);
        if (suits(m, at, w, n))
            nodeset_add(ret, n);
    }
}

/* Whom to look at: those that somebody covets, or the others. */
static void mark_pass(struct matrix *m, const struct matrix_where *at, const struct want *w,
                      bool coveted) {
    struct sieve s = sieve_for(m, at, w);
    sift(&s, 0, m->words, m->marked);
    for (uint32_t i = 0; i < m->words; i++) {
        uint64_t word = at->up != NULL ? nodeset_word(at->up, i) : m->marked[i];
        uint64_t theirs = at->coveted != NULL && word != 0 ? nodeset_word(at->coveted, i) : 0;
        m->marked[i] = coveted ? word & theirs : word & ~theirs;
    }
}

/* Those that nobody covets, in their order, then the others. */
static void pick_least(struct matrix *m, const struct matrix_where *at, const struct want *w,
                       struct nodeset *ret) {
    struct fit f;
    fit_init(&f, w);
    for (int pass = 0; pass < 2 && !fit_picked(&f); pass++) {
        mark_pass(m, at, w, pass == 1);
        for (uint32_t i = 0; i < m->config.nodes && !fit_picked(&f); i++) {
            uint32_t n = matrix_nth(m, i);
            if (bits_test(m->marked, n) && fit_pick(&f, matrix_mask(m, at, w, n)))
                nodeset_add(ret, n);
        }
    }
    ASSERT(fit_picked(&f));
}

int matrix_pick(struct matrix *m, const struct matrix_where *at, const struct want *w,
                struct nodeset *ret) {
    nodeset_clear(ret);
    if (!matrix_fits(m, at, w))
        return -EAGAIN;
    if (matrix_uneven(m) || at->coveted != NULL || at->up != NULL || w->section_count > 0)
        pick_least(m, at, w, ret);
    else
        pick_lowest(m, at, w, ret);
    return 0;
}

int matrix_split(const struct matrix *m, const struct matrix_where *at, const struct want *w,
                 const struct nodeset *set, struct nodeset *const *parts) {
    struct fit f;
    fit_init(&f, w);
    NODESET_EACH (n, set)
        if (!fit_pick(&f, matrix_mask(m, at, w, n)))
            return -EINVAL;
    if (!fit_picked(&f))
        return -EINVAL;
    for (uint32_t k = 0; k < f.sections; k++)
        nodeset_clear(parts[k]);
    NODESET_EACH (n, set)
        nodeset_add(parts[fit_assign(&f, matrix_mask(m, at, w, n))], n);
    return 0;
}

int matrix_take(struct matrix *m, const struct matrix_where *at, const struct want *w,
                struct nodeset *ret) {
    int r = matrix_pick(m, at, w, ret);
    if (r == 0)
        change(m, at->row, ret, want_each(w), true);
    return r;
}

void matrix_shift(struct matrix *m, uint32_t row, uint32_t node, uint32_t each, bool take) {
    change_run(m, row, (struct noderange){node, node}, each, take);
}

bool matrix_idle(const struct matrix *m, uint32_t row, const struct nodeset *set, uint32_t each) {
    struct noderange run;
    for (uint32_t from = 0; nodeset_next_range(set, from, &run); from = run.last + 1) {
        if (matrix_flat(m)) {
            if (bits_any_in_run(m->rows[row].taken, run.first, run.last))
                return false;
            continue;
        }
        for (uint32_t n = run.first; n <= run.last; n++) {
            uint32_t pes = each == WANT_WHOLE ? m->pes[n] : each;
            if (m->rows[row].used[n] + pes > m->pes[n])
                return false;
        }
    }
    return true;
}

static bool all_usable(const struct matrix *m, const struct nodeset *set) {
    struct noderange run;
    for (uint32_t from = 0; nodeset_next_range(set, from, &run); from = run.last + 1)
        if (!bits_all_in_run(m->usable, run.first, run.last))
            return false;
    return true;
}

/* What is wrong with the first node that cannot be held. */
static int find_culprit(const struct matrix *m, uint32_t row, const struct nodeset *set,
                        uint32_t each, bool any_state, uint32_t *ret_node) {
    NODESET_EACH (n, set) {
        *ret_node = n;
        if (n >= m->config.nodes || (each != WANT_WHOLE && each > matrix_node_pes(m, n)))
            return -EINVAL;
        if (!any_state && !bits_test(m->usable, n))
            return -EHOSTDOWN;
        uint32_t pes = each == WANT_WHOLE ? matrix_node_pes(m, n) : each;
        if (matrix_node_used(m, row, n) + pes > matrix_node_pes(m, n))
            return -EBUSY;
    }
    return 0;
}

int matrix_hold(struct matrix *m, uint32_t row, const struct nodeset *set, uint32_t each,
                bool any_state, uint32_t *ret_node) {
    bool known = nodeset_empty(set) || nodeset_last(set) < m->config.nodes;
    bool fine = known && !(matrix_flat(m) && each > 1) && (any_state || all_usable(m, set)) &&
                matrix_idle(m, row, set, each);
    int r = fine ? 0 : find_culprit(m, row, set, each, any_state, ret_node);
    if (r == 0)
        change(m, row, set, each, true);
    return r;
}

void matrix_give(struct matrix *m, uint32_t row, const struct nodeset *set, uint32_t each) {
    change(m, row, set, each, false);
}

/* ---- rows ---- */

bool matrix_disjoint(const struct matrix *m, uint32_t a, uint32_t b) {
    const struct matrix_row *x = &m->rows[a], *y = &m->rows[b];
    if (matrix_flat(m)) {
        for (uint32_t i = 0; i < m->words; i++)
            if (x->taken[i] & y->taken[i])
                return false;
        return true;
    }
    for (uint32_t n = 0; n < m->config.nodes; n++)
        if (x->used[n] + y->used[n] > m->pes[n])
            return false;
    return true;
}

void matrix_copy_row(struct matrix *m, uint32_t to, uint32_t from) {
    struct matrix_row *t = &m->rows[to];
    const struct matrix_row *f = &m->rows[from];
    memcpy(t->some, f->some, sizeof t->some[0] * m->words);
    if (t->whole != t->some)
        memcpy(t->whole, f->whole, sizeof t->whole[0] * m->words);
    if (t->taken)
        memcpy(t->taken, f->taken, sizeof t->taken[0] * m->words);
    else
        memcpy(t->used, f->used, sizeof t->used[0] * m->config.nodes);
    if (t->rich)
        memcpy(t->rich, f->rich, sizeof t->rich[0] * m->words * m->levels);
    t->some_count = f->some_count;
    t->whole_count = f->whole_count;
    t->free = f->free;
    t->jobs = f->jobs;
}

static bool row_conserved(const struct matrix *m, uint32_t row) {
    const struct matrix_row *r = &m->rows[row];
    uint64_t left = 0, some = 0, whole = 0;
    for (uint32_t n = 0; n < m->config.nodes; n++) {
        uint32_t f = matrix_node_free(m, row, n), used = matrix_node_used(m, row, n);
        left += f;
        some += f > 0;
        whole += f > 0 && used == 0;
        if (used > matrix_node_pes(m, n) || bits_test(r->some, n) != (f > 0) ||
            bits_test(r->whole, n) != (f > 0 && used == 0))
            return false;
        for (uint32_t level = 1; level <= m->levels; level++)
            if (bits_test(rich(m, r, level), n) != (f >> level > 0))
                return false;
    }
    return left == r->free && some == r->some_count && whole == r->whole_count;
}

bool matrix_conserved(const struct matrix *m) {
    uint64_t pes = 0;
    for (uint32_t n = 0; n < m->config.nodes; n++)
        pes += bits_test(m->usable, n) ? matrix_node_pes(m, n) : 0;
    for (uint32_t r = 0; r < m->config.rows; r++)
        if (!row_conserved(m, r))
            return false;
    return pes == m->pes_usable;
}
