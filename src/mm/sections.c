/* SPDX-License-Identifier: MIT */
/* Jobs whose nodes are not all alike: sections, each with a size and a need of its own.
 *
 * What a submission says of them is kept beside the table of jobs. Which node of a run belongs to which section is decided
 * by the court, and written down with its start. */
#include "mm/inside.h"

#include <errno.h>

#include "base/assert.h"
#include "sched/map.h"
#include "sched/size.h"
#include "wire/sections.h"

_Static_assert((int)COURT_SECTIONS_MAX <= (int)MAP_SECTIONS_MAX, "all can be told of");

enum { SECTIONED = 1U << 29 }; /* a flag of ours beside those of clients */

const struct sectioned *sections_of(const struct mm *m, const struct job *j) {
    return j->flags & SECTIONED ? &m->sectioned[job_place(m, j)] : NULL;
}

/* ---- what a submission says ---- */

static bool is_whole(const struct section *s) {
    struct size size = {.nodes = s->nodes, .ppn = s->ppn, .procs = s->procs};
    return s->nodes > 0 && s->ppn > 0 && size_is_whole(&size);
}

/* Sums are what they should be, and each is a size. */
static bool adds_up(const struct message_submit *s) {
    struct section one;
    size_t at = 0;
    uint64_t nodes = 0, procs = 0;
    uint32_t ppn = 0, count = 0;
    int r;
    while ((r = section_next(s->sections, &at, &one)) == 1) {
        if (!is_whole(&one) || ++count > COURT_SECTIONS_MAX)
            return false;
        nodes += one.nodes;
        procs += one.procs;
        ppn = one.ppn > ppn ? one.ppn : ppn;
    }
    return r == 0 && count > 0 && nodes == s->nodes && procs == s->procs && ppn == s->ppn;
}

int sections_judge(struct mm *m, const struct message_submit *s, struct text *why) {
    struct section one;
    size_t at = 0;
    int r = 0;
    bool fits = s->kind == JOB_RUN || s->kind == JOB_BATCH;
    if (!fits || (s->flags & (JOB_LISTED | JOB_SCRIPT | JOB_NEEDS)) != 0 || !adds_up(s)) {
        text_str(why, "its parts contradict each other");
        return -EINVAL;
    }
    while (r == 0 && section_next(s->sections, &at, &one) == 1) {
        struct message_submit alone = *s;
        alone.nodes = one.nodes;
        alone.ppn = one.ppn;
        alone.need = one.need;
        r = needs_judge(m, &alone, why);
    }
    return r;
}

/* As the court knows them, into `ret`. */
static void tell_court(struct mm *m, const struct sectioned *s, uint32_t memory,
                       struct court_section *ret) {
    for (uint32_t i = 0; i < s->count; i++)
        ret[i] =
            (struct court_section){.nodes = s->nodes[i],
                                   .ppn = s->ppn[i],
                                   .memory = job_memory_of(memory, s->ppn[i]),
                                   .meets = s->need[i] == 0 ? NULL : &m->needs[s->need[i] - 1].set};
}

bool sections_take(struct mm *m, struct job *j, const struct message_submit *s) {
    struct sectioned *kept = &m->sectioned[job_place(m, j)];
    struct section one;
    size_t at = 0;
    if ((s->flags & JOB_SECTIONS) == 0)
        return true;
    kept->count = 0;
    j->flags |= SECTIONED;
    while (kept->count < COURT_SECTIONS_MAX && section_next(s->sections, &at, &one) == 1) {
        uint32_t i = kept->count;
        kept->nodes[i] = one.nodes;
        kept->ppn[i] = one.ppn;
        kept->procs[i] = one.procs;
        if (!needs_keep(m, one.need, &kept->need[i]))
            return false;
        kept->count++; /* from now on its need is in use */
    }
    tell_court(m, kept, j->memory, kept->court);
    return true;
}

uint32_t sections_order(const struct message_submit *s,
                        struct court_section ret[COURT_SECTIONS_MAX]) {
    struct section one;
    size_t at = 0;
    uint32_t count = 0, memory = job_memory(s);
    while (count < COURT_SECTIONS_MAX && section_next(s->sections, &at, &one) == 1)
        ret[count++] = (struct court_section){
            .nodes = one.nodes, .ppn = one.ppn, .memory = job_memory_of(memory, one.ppn)};
    return count;
}

/* ---- which node belongs to which ---- */

void sections_assign(struct mm *m, const struct job *j, struct running *r) {
    const struct sectioned *s = sections_of(m, j);
    m->section_sets_run = 0;
    for (uint32_t k = 0; s != NULL && k < s->count; k++)
        NODESET_EACH (n, court_section_nodes(m->court, j->seat, k))
            r->by_node[n] = (uint16_t)k;
}

struct bytes sections_map(struct mm *m, const struct job *j, const struct running *r) {
    const struct sectioned *s = sections_of(m, j);
    struct room room = effects_tail(m->out);
    if (s == NULL)
        return (struct bytes){0};
    long len = map_sections_store(s->procs, s->count, &r->set, r->by_node, room);
    return len < 0 ? (struct bytes){0} : effects_take(m->out, (size_t)len);
}

bool sections_load(struct mm *m, const struct job *j, struct running *r, struct bytes told) {
    const struct sectioned *s = sections_of(m, j);
    struct map map = {.nodes = nodeset_count(&r->set), .procs = j->procs, .sections = told};
    uint32_t place = 0;
    m->section_sets_run = 0;
    if (s == NULL)
        return true;
    if (told.len == 0 || !map_good(&map))
        return false;
    NODESET_EACH (n, &r->set) {
        r->by_node[n] = (uint16_t)map_section(&map, place++);
        if (r->by_node[n] >= s->count)
            return false;
    }
    return true;
}

uint32_t sections_ppn(const struct mm *m, const struct job *j, uint32_t node) {
    const struct sectioned *s = sections_of(m, j);
    const struct running *r = job_running(m, j);
    if (r != NULL)
        return s->ppn[r->by_node[node]];
    for (uint32_t k = 0; k < s->count; k++)
        if (nodeset_has(court_section_nodes(m->court, j->seat, k), node))
            return s->ppn[k];
    return 0;
}

/* Whoever asks often asks of the same run: its sets stay until another's are wanted. */
const struct nodeset *sections_sets(struct mm *m, const struct job *j, const struct running *r) {
    const struct sectioned *s = sections_of(m, j);
    if (s == NULL)
        return &r->set;
    if (m->section_sets_run == r->run)
        return m->section_sets;
    m->section_sets_run = r->run;
    for (uint32_t k = 0; k < s->count; k++)
        nodeset_clear(&m->section_sets[k]);
    NODESET_EACH (n, &r->set)
        nodeset_add(&m->section_sets[r->by_node[n]], n);
    return m->section_sets;
}

uint32_t sections_node(struct mm *m, const struct job *j, const struct running *r, uint32_t rank) {
    const struct sectioned *s = sections_of(m, j);
    const struct nodeset *sets = sections_sets(m, j, r);
    uint32_t k = 0;
    for (; k < s->count && rank >= s->procs[k]; k++)
        rank -= s->procs[k];
    if (k == s->count || nodeset_empty(&sets[k]))
        return NO_NODE;
    struct map map = {
        .kind = job_map(j->flags), .nodes = nodeset_count(&sets[k]), .procs = s->procs[k]};
    return nodeset_at(&sets[k], map_place(&map, rank));
}
