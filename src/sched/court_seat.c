/* SPDX-License-Identifier: MIT */
/* The nodes of jobs that run: sets of them, and what they hold in the matrix.
 *
 * A job has a set. One with sections has a set for each of these as well, from a pool of their own: the others are parts
 * of the first. What is held, moved and given back goes by parts: on nodes of one part it is the same number of PEs. */
#include <errno.h>

#include "base/assert.h"
#include "sched/court_inside.h"

void court_seats_init(struct court *c, uint64_t *storage) {
    size_t words = nodeset_bytes(c->config.universe) / 8;
    for (uint32_t i = 0; i < c->config.running; i++, storage += words) {
        nodeset_init(&c->sets[i], c->config.universe, storage);
        c->set_free[i] = c->config.running - 1 - i;
    }
    c->set_free_count = c->config.running;
    for (uint32_t i = 0; i < c->config.sections; i++, storage += words) {
        nodeset_init(&c->parts[i], c->config.universe, storage);
        c->part_next[i] = i + 1;
    }
    c->part_free = 0;
    c->part_free_count = c->config.sections;
}

bool court_has_sets(const struct court *c, const struct court_job *j) {
    return c->set_free_count > 0 && c->part_free_count >= j->section_count;
}

struct nodeset *court_next_set(struct court *c) {
    return &c->sets[c->set_free[c->set_free_count - 1]];
}

bool court_part(const struct court *c, const struct court_job *j, uint32_t k,
                struct court_part *ret) {
    struct want w = court_want(j);
    if (k >= (j->section_count > 0 ? j->section_count : 1))
        return false;
    uint32_t part = j->parts;
    for (uint32_t i = 0; i < k; i++)
        part = c->part_next[part];
    *ret = (struct court_part){j->section_count > 0 ? &c->parts[part] : &c->sets[j->set],
                               want_each_of(&w, k), want_memory_of(&w, k)};
    return true;
}

/* ---- parts ---- */

/* As many as it has sections, in a chain; their sets. */
static void take_parts(struct court *c, struct court_job *j, struct nodeset **ret) {
    ASSERT(c->part_free_count >= j->section_count);
    j->parts = c->part_free;
    for (uint32_t k = 0; k < j->section_count; k++) {
        ret[k] = &c->parts[c->part_free];
        c->part_free = c->part_next[c->part_free];
    }
    c->part_free_count -= j->section_count;
}

static void free_parts(struct court *c, const struct court_job *j) {
    if (j->section_count == 0)
        return;
    uint32_t last = j->parts;
    for (uint32_t k = 1; k < j->section_count; k++)
        last = c->part_next[last];
    c->part_next[last] = c->part_free;
    c->part_free = j->parts;
    c->part_free_count += j->section_count;
}

/* ---- holding ---- */

static void give(struct court *c, const struct court_job *j, uint32_t row, uint32_t parts) {
    struct court_part p;
    for (uint32_t k = 0; k < parts && court_part(c, j, k, &p); k++)
        matrix_give(&c->matrix, row, p.set, p.each);
}

static int hold(struct court *c, const struct court_job *j, uint32_t row, bool any_state,
                uint32_t *ret_node) {
    struct court_part p;
    for (uint32_t k = 0; court_part(c, j, k, &p); k++) {
        int r = matrix_hold(&c->matrix, row, p.set, p.each, any_state, ret_node);
        if (r < 0) {
            give(c, j, row, k);
            return r;
        }
    }
    return 0;
}

bool court_idle(const struct court *c, const struct court_job *j, uint32_t row) {
    struct court_part p;
    for (uint32_t k = 0; court_part(c, j, k, &p); k++)
        if (!matrix_idle(&c->matrix, row, p.set, p.each))
            return false;
    return true;
}

void court_occupy(struct court *c, const struct court_job *j, uint32_t row) {
    uint32_t node;
    int r = hold(c, j, row, true, &node);
    ASSERT(r == 0);
}

void court_vacate(struct court *c, const struct court_job *j, uint32_t row) {
    give(c, j, row, COURT_SECTIONS_MAX);
}

/* ---- sitting down ---- */

/* The next set is its own, if it can hold what it is to have. */
static int settle(struct court *c, struct court_job *j, uint32_t row, bool any_state,
                  uint32_t *ret_node) {
    j->set = c->set_free[c->set_free_count - 1];
    int r = hold(c, j, row, any_state, ret_node);
    if (r < 0) {
        free_parts(c, j);
        j->set = COURT_NONE;
        return r;
    }
    c->set_free_count--;
    court_memory_change(c, j, true);
    return 0;
}

/* Have all nodes of the next set the memory? */
static int has_memory(struct court *c, const struct want *w, const struct matrix_where *at,
                      uint32_t *ret_node) {
    if (at->memory != NULL)
        NODESET_EACH (n, court_next_set(c))
            if (!want_has_memory(w->memory, at->memory[n])) {
                *ret_node = n;
                return -ENOMEM;
            }
    return 0;
}

int court_seat_on(struct court *c, struct court_job *j, const struct matrix_where *at,
                  uint32_t *ret_node) {
    struct nodeset *parts[COURT_SECTIONS_MAX];
    struct want w = court_want(j);
    *ret_node = COURT_NONE;
    int r = has_memory(c, &w, at, ret_node);
    if (r < 0)
        return r;
    if (j->section_count > 0) {
        take_parts(c, j, parts);
        r = matrix_split(&c->matrix, at, &w, court_next_set(c), parts);
        if (r < 0) {
            free_parts(c, j);
            return r;
        }
    }
    return settle(c, j, at->row, at->up != NULL, ret_node);
}

int court_seat(struct court *c, struct court_job *j, const struct matrix_where *at) {
    struct want w = court_want(j);
    struct nodeset *set = court_next_set(c);
    uint32_t node;
    bool simple = j->section_count == 0 && at->up == NULL;
    int r = simple ? matrix_take(&c->matrix, at, &w, set) : matrix_pick(&c->matrix, at, &w, set);
    if (r < 0)
        return r;
    if (simple) {
        j->set = c->set_free[--c->set_free_count];
        court_memory_change(c, j, true);
        return 0;
    }
    r = court_seat_on(c, j, at, &node);
    ASSERT(r == 0);
    return 0;
}

int court_seat_again(struct court *c, struct court_job *j, uint32_t row,
                     const struct nodeset *sets) {
    struct nodeset *parts[COURT_SECTIONS_MAX], *all = court_next_set(c);
    uint32_t node;
    nodeset_copy(all, &sets[0]);
    for (uint32_t k = 0; k < j->section_count; k++) {
        if (nodeset_count(&sets[k]) != j->sections[k].nodes ||
            (k > 0 && nodeset_intersects(all, &sets[k])))
            return -EINVAL;
        nodeset_unite(all, &sets[k]);
    }
    if (j->section_count > 0)
        take_parts(c, j, parts);
    for (uint32_t k = 0; k < j->section_count; k++)
        nodeset_copy(parts[k], &sets[k]);
    return settle(c, j, row, true, &node);
}

void court_unseat(struct court *c, struct court_job *j) {
    court_vacate(c, j, j->pub.slot);
    court_memory_change(c, j, false);
    free_parts(c, j);
    c->set_free[c->set_free_count++] = j->set;
}

/* ---- for who asks, and for tests ---- */

const struct nodeset *court_section_nodes(const struct court *c, uint32_t job, uint32_t section) {
    struct court_part p;
    ASSERT(job < c->jobs_used && c->jobs[job].where == WHERE_RUNS);
    bool has = court_part(c, &c->jobs[job], section, &p);
    ASSERT(has);
    return p.set;
}

static bool parts_conserved(const struct court *c, const struct court_job *j) {
    struct court_part p;
    uint32_t sum = 0;
    for (uint32_t k = 0; court_part(c, j, k, &p); k++) {
        uint32_t nodes = j->section_count > 0 ? j->sections[k].nodes : j->pub.nodes;
        sum += nodeset_count(p.set);
        if (nodeset_count(p.set) != nodes || !nodeset_covers(&c->sets[j->set], p.set))
            return false;
    }
    return sum == nodeset_count(&c->sets[j->set]); /* so no two have a node in common */
}

bool court_seats_conserved(const struct court *c) {
    uint32_t parts = c->part_free_count;
    for (uint32_t i = 0; i < c->running; i++) {
        parts += c->jobs[c->ends[i].job].section_count;
        if (!parts_conserved(c, &c->jobs[c->ends[i].job]))
            return false;
    }
    return c->running + c->set_free_count == c->config.running && parts == c->config.sections;
}
