/* SPDX-License-Identifier: MIT */
/* What nodes are like, and what jobs need of them.
 *
 * The administrator says what he knows of nodes (INPUT_TRAITS), each node reports the rest when it tells what it has. A
 * need is compiled once, however many jobs have it, and its nodes are a set that is kept up to date: the court looks at it
 * whenever it looks for nodes. A need that cannot be read any more, because the administrator has taken an attribute
 * away, is met by no node until it can. */
#include "mm/inside.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "sched/special.h"

/* ---- storage ---- */

struct room_for {
    void *traits;
    uint8_t *special;
    uint64_t *scratch;
    struct need_kept *needs;
    uint64_t *sets;
};

static size_t set_words(const struct mm_config *c) {
    return nodeset_bytes(limits_universe(&c->limits)) / 8;
}

static struct room_for take_room(const struct mm_config *c, struct arena *a) {
    uint32_t nodes = c->limits.nodes;
    struct room_for r;
    r.traits = arena_take(a, traits_bytes(nodes, MM_ATTRIBUTES), 8);
    r.special = ARENA_TAKE(a, uint8_t, nodes);
    r.scratch = ARENA_TAKE(a, uint64_t, nodes);
    r.needs = ARENA_TAKE(a, struct need_kept, NEEDS_MAX);
    r.sets = ARENA_TAKE(a, uint64_t, NEEDS_MAX * set_words(c));
    return r;
}

size_t needs_bytes(const struct mm_config *c) {
    struct arena a;
    arena_init(&a, NULL, 0);
    take_room(c, &a);
    return arena_used(&a);
}

void needs_init(struct mm *m, struct arena *a) {
    struct room_for r = take_room(&m->config, a);
    traits_init(&m->traits, m->config.limits.nodes, MM_ATTRIBUTES, r.traits);
    m->special = r.special;
    m->special_scratch = r.scratch;
    m->needs = r.needs;
    for (uint32_t i = 0; i < NEEDS_MAX; i++)
        nodeset_init(&m->needs[i].set, limits_universe(&m->config.limits),
                     r.sets + i * set_words(&m->config));
}

/* ---- those that jobs have ---- */

static void select_nodes(struct mm *m, struct need_kept *k) {
    struct mistake wrong;
    k->broken = need_compile(&k->need, &m->traits, k->text, &wrong) < 0;
    if (k->broken)
        nodeset_clear(&k->set);
    else
        need_select(&k->need, &m->traits, &k->set);
}

static struct need_kept *find(struct mm *m, const char *text) {
    for (struct need_kept *k = m->needs; k < m->needs + NEEDS_MAX; k++)
        if (k->used && strcmp(k->text, text) == 0)
            return k;
    return NULL;
}

static void mark_used(struct mm *m, const struct job *j) {
    const struct sectioned *s = sections_of(m, j);
    if (j->need != 0)
        m->needs[j->need - 1].used = true;
    for (uint32_t i = 0; s != NULL && i < s->count; i++)
        if (s->need[i] != 0)
            m->needs[s->need[i] - 1].used = true;
    family_mark_needs(m, j);
}

/* Those that no job has any more make room. */
static void sweep(struct mm *m) {
    uint32_t given = m->next_id < m->config.jobs_max ? m->next_id : m->config.jobs_max;
    for (uint32_t i = 0; i < NEEDS_MAX; i++)
        m->needs[i].used = false;
    for (uint32_t i = 0; i < given; i++) {
        const struct job *j = &m->jobs[i];
        if (j->id != 0 && !state_over((enum job_state)j->state))
            mark_used(m, j);
    }
}

static struct need_kept *place(struct mm *m) {
    for (int again = 0; again < 2; again++) {
        for (struct need_kept *k = m->needs; k < m->needs + NEEDS_MAX; k++)
            if (!k->used)
                return k;
        sweep(m);
    }
    return NULL;
}

/* As it is written anew if it can be read: so needs that differ in blanks only are one. */
static void write_text(struct mm *m, struct bytes need, char out[NEED_KEPT_MAX]) {
    struct mistake wrong;
    struct need compiled;
    memcpy(out, need.at, need.len);
    out[need.len] = '\0';
    if (need_compile(&compiled, &m->traits, out, &wrong) < 0)
        return;
    char anew[NEED_KEPT_MAX];
    if (need_format(&compiled, &m->traits, anew, sizeof anew) < sizeof anew)
        memcpy(out, anew, sizeof anew);
}

bool needs_keep(struct mm *m, struct bytes need, uint16_t *ret) {
    char text[NEED_KEPT_MAX];
    *ret = 0;
    if (need.len == 0)
        return true;
    write_text(m, need, text);
    struct need_kept *k = find(m, text);
    if (k == NULL) {
        k = place(m);
        if (k == NULL)
            return false;
        k->used = true;
        memcpy(k->text, text, sizeof text);
        select_nodes(m, k);
    }
    *ret = (uint16_t)(k - m->needs + 1);
    return true;
}

bool needs_take(struct mm *m, struct job *j, const struct message_submit *s) {
    return needs_keep(m, s->need, &j->need) && sections_take(m, j, s);
}

const struct need_kept *needs_of(const struct mm *m, const struct job *j) {
    return j->need == 0 ? NULL : &m->needs[j->need - 1];
}

/* ---- what nodes are like ---- */

void needs_rank(struct mm *m) {
    m->unranked = false;
    special_reckon(&m->traits, &m->taken, m->special_scratch, m->special);
    NODESET_EACH (n, &m->taken)
        court_node_rank(m->court, n, m->special[n]);
}

static void take_widths(struct mm *m, struct bytes widths) {
    for (uint32_t i = 0; i < m->config.limits.nodes; i++) {
        uint32_t said = (size_t)i * 4 < widths.len ? load_le32(widths.at + (size_t)i * 4) : 0;
        node_width(m, i, said);
    }
}

void needs_said(struct mm *m, const struct input_traits *in) {
    if (in->traits.len == 0 || traits_take(&m->traits, in->traits) < 0)
        traits_clear(&m->traits);
    for (struct need_kept *k = m->needs; k < m->needs + NEEDS_MAX; k++)
        if (k->used)
            select_nodes(m, k);
    take_widths(m, in->widths);
    files_switches(m, in->switches);
    owners_said(m, in);
    m->said = said_hash(in);
    court_met(m->court, m->now);
    m->dirty = true;
    needs_rank(m);
    if (!m->replaying)
        queue_resume(m);
}

/* A node is not any more what it was. */
static void judge_node(struct mm *m, uint32_t node) {
    bool changed = false;
    for (struct need_kept *k = m->needs; k < m->needs + NEEDS_MAX; k++) {
        if (!k->used || k->broken)
            continue;
        bool meets = need_match(&k->need, &m->traits, node);
        changed = changed || meets != nodeset_has(&k->set, node);
        if (meets)
            nodeset_add(&k->set, node);
        else
            nodeset_remove(&k->set, node);
    }
    if (!changed)
        return;
    court_met(m->court, m->now);
    m->dirty = true;
}

/* What was said of its processors counts, not what the machine has. */
void needs_width(struct mm *m, uint32_t node) {
    const struct node *n = &m->nodes[node];
    if (!n->said || !n->reported)
        return;
    traits_know(&m->traits, node, TRAITS_PROCESSORS, n->pes);
    judge_node(m, node);
}

void needs_reported(struct mm *m, uint32_t node, struct bytes report) {
    struct traits_report r;
    if (report.len == 0 || traits_report_decode(report, &r) < 0)
        return;
    m->nodes[node].reported = true;
    if (m->nodes[node].said)
        r.values[TRAITS_PROCESSORS] = m->nodes[node].pes;
    traits_hear(&m->traits, node, &r);
    uint64_t memory = r.values[TRAITS_MEMORY];
    court_node_memory(m->court, node,
                      memory == TRAITS_UNKNOWN || memory / MIB >= COURT_MEMORY_ANY
                          ? COURT_MEMORY_ANY
                          : (uint32_t)(memory / MIB));
    judge_node(m, node);
    m->unranked = true; /* many come at once: when they have, see node_tick */
}

void needs_forget(struct mm *m, uint32_t node) {
    if (!m->nodes[node].reported)
        return;
    m->nodes[node].reported = false;
    traits_forget(&m->traits, node);
    court_node_memory(m->court, node, COURT_MEMORY_ANY);
    judge_node(m, node);
}

/* ---- judging, in words ---- */

int needs_select(struct mm *m, struct bytes need, struct nodeset *ret, struct text *why) {
    char text[NEED_KEPT_MAX], words[NEEDS_WHY_MAX];
    struct mistake wrong;
    struct need compiled;
    if (need.len >= sizeof text || memchr(need.at, 0, need.len) != NULL) {
        text_str(why, "that is too long for a need, or is no text");
        return -EINVAL;
    }
    memcpy(text, need.at, need.len);
    text[need.len] = '\0';
    if (need_compile(&compiled, &m->traits, text, &wrong) < 0) {
        mistake_show(&wrong, "--need", text, words, sizeof words);
        text_str(why, words);
        return -EINVAL;
    }
    need_select(&compiled, &m->traits, ret);
    return 0;
}

/* Who is there and has never told what it is like may be anything. */
static uint32_t count_strangers(const struct mm *m) {
    uint32_t count = 0;
    NODESET_EACH (n, &m->taken)
        count += !m->nodes[n].reported;
    return count;
}

/* "needs 4 nodes with MEM>=2GB; 2 have it". Of several conditions also how many meet each by itself. */
static void say_miss(struct mm *m, const struct message_submit *s, struct text *why) {
    char text[NEED_KEPT_MAX];
    struct mistake wrong;
    struct need compiled;
    uint32_t have = nodeset_count(&m->work);
    write_text(m, s->need, text);
    text_str(why, "needs ");
    why_count(why, s->nodes, " node");
    text_str(why, " with ");
    text_str(why, text);
    text_str(why, "; ");
    if (have == 0)
        text_str(why, "none has it");
    else
        text_u64(why, have);
    text_str(why, have == 0 ? "" : have == 1 ? " has it" : " have it");
    if (need_compile(&compiled, &m->traits, text, &wrong) < 0 || compiled.term_count < 2)
        return;
    for (uint32_t i = 0; i < compiled.term_count && i < NEEDS_TERMS_TOLD; i++) {
        struct need term = compiled;
        term.steps[0] = (uint8_t)i;
        term.step_count = 1;
        need_select(&term, &m->traits, &m->work);
        nodeset_intersect(&m->work, &m->taken);
        need_format(&term, &m->traits, text, sizeof text);
        text_str(why, i == 0 ? " (" : ", ");
        text_str(why, text);
        text_str(why, ": ");
        text_u64(why, nodeset_count(&m->work));
    }
    text_char(why, ')');
}

int needs_judge(struct mm *m, const struct message_submit *s, struct text *why) {
    if (s->need.len == 0)
        return 0;
    int r = needs_select(m, s->need, &m->work, why);
    if (r < 0)
        return r;
    nodeset_intersect(&m->work, &m->taken);
    if (s->on != NULL && !nodeset_empty(s->on))
        nodeset_intersect(&m->work, s->on);
    if (s->exclude != NULL)
        nodeset_subtract(&m->work, s->exclude);
    uint32_t wide = 0;
    NODESET_EACH (n, &m->work)
        wide += m->nodes[n].pes >= s->ppn;
    if (nodeset_count(&m->work) + count_strangers(m) < s->nodes) {
        say_miss(m, s, why);
        return -ENOSPC;
    }
    if (wide + count_strangers(m) >= s->nodes)
        return 0;
    text_str(why, "needs ");
    why_count(why, s->nodes, " node");
    text_str(why, " with ");
    text_u64(why, s->ppn);
    text_str(why, s->ppn == 1 ? " processor" : " processors");
    text_str(why, " each; of those that have what it needs, ");
    text_u64(why, wide);
    text_str(why, wide == 1 ? " has so many" : " have so many");
    return -ENOSPC;
}

void needs_why(const struct need_kept *k, struct text *why) {
    text_str(why, k->broken ? " (nobody knows any more what it needs: " : " with ");
    text_str(why, k->text);
    text_str(why, k->broken ? ")" : "");
}
