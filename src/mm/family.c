/* SPDX-License-Identifier: MIT */
/* Programs that grow: hosts that belong to a job (decision 50).
 *
 * A host is an allocation of one node that has a parent. Hosts that are to start together, and a job that has hosts of
 * some classes from the beginning, are one order at the court; when it is started its place in the court's books
 * becomes one for each, in the same step. A job that has hosts is over when these are. */
#include "mm/inside.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"

/* ---- storage ---- */

size_t family_bytes(const struct mm_config *c) {
    struct arena a;
    arena_init(&a, NULL, 0);
    (void)ARENA_TAKE(&a, struct classed, c->jobs_max);
    (void)ARENA_TAKE(&a, uint16_t, c->limits.nodes);
    (void)ARENA_TAKE(&a, uint16_t, c->limits.nodes);
    return arena_used(&a);
}

void family_init(struct mm *m, struct arena *a) {
    m->classed = ARENA_TAKE(a, struct classed, m->config.jobs_max);
    m->lent_by_node = ARENA_TAKE(a, uint16_t, m->config.limits.nodes);
    m->missing_by_node = ARENA_TAKE(a, uint16_t, m->config.limits.nodes);
}

/* ---- who belongs to whom ---- */

static struct job *parent_of(const struct mm *m, const struct job *j) {
    return j->parent == 0 ? NULL : job_find(m, j->parent);
}

/* What is inside a host belongs to that host's job. */
uint32_t family_head(const struct mm *m, uint32_t job) {
    const struct job *j = job_find(m, job);
    const struct job *around = j != NULL && j->kind == JOB_STEP ? job_find(m, j->inside) : j;
    return around == NULL || around->parent == 0 ? job : around->parent;
}

void family_joined(struct mm *m, const struct job *j) {
    struct job *parent = parent_of(m, j);
    m->hosts += j->parent != 0;
    if (parent != NULL)
        parent->children++;
}

void family_left(struct mm *m, const struct job *j) {
    struct job *parent = parent_of(m, j);
    classes_drop(m, j->id);
    m->hosts -= j->parent != 0;
    if (parent == NULL || parent->children == 0 || --parent->children > 0)
        return;
    struct running *r = job_running(m, parent);
    if (r != NULL && r->parting)
        end_check(m, r);
}

/* Jobs that were ever given out have places before this. */
static uint32_t places(const struct mm *m) {
    return m->next_id < m->config.jobs_max ? m->next_id : m->config.jobs_max;
}

/* A host whose job has gone, is going, or waits to be started anew. */
static bool is_orphan(const struct mm *m, const struct job *j) {
    const struct job *parent = parent_of(m, j);
    if (j->parent == 0 || j->reason != REASON_NONE || state_over((enum job_state)j->state))
        return false;
    if (parent == NULL || parent->slot == NO_SLOT || state_over((enum job_state)parent->state))
        return true;
    const struct running *r = job_running(m, parent);
    return r != NULL && r->parting;
}

/* Each is written down: thousands of hosts end little by little. */
void family_end_orphans(struct mm *m) {
    uint32_t ended = 0;
    for (uint32_t i = 0; m->orphans && i < places(m); i++) {
        struct job *j = &m->jobs[i];
        if (j->id == 0 || !is_orphan(m, j))
            continue;
        if (!after_may_end(m, &ended))
            return;
        end_job(m, j, REASON_PARENT, 0, true);
    }
    m->orphans = false;
}

bool family_has(const struct mm *m, uint32_t head, struct bytes name) {
    for (uint32_t i = 0; i < places(m); i++) {
        const struct job *j = &m->jobs[i];
        if (j->id != 0 && j->parent == head && !state_over((enum job_state)j->state) &&
            bytes_equal(bytes_of(j->name, j->name_len), name))
            return true;
    }
    return false;
}

bool family_parts(struct mm *m, const struct job *j, struct running *r) {
    if (j->children == 0)
        return false;
    if (!r->parting) {
        r->parting = true;
        family_look(m);
    }
    return true;
}

void family_look(struct mm *m) {
    m->orphans = true;
    m->dirty = true;
}

/* ---- those that start together ---- */

/* The first of those that it starts together with, and how many these are. */
static struct job *leader_of(const struct mm *m, const struct job *j, uint32_t *ret_count) {
    const struct job *first = job_find(m, (uint32_t)j->key);
    uint32_t place = j->id - (uint32_t)j->key;
    uint32_t from = place - place % j->together;
    uint32_t left = first == NULL ? 1 : first->count - from;
    *ret_count = left < j->together ? left : j->together;
    return job_find(m, (uint32_t)j->key + from);
}

static bool is_waiting(const struct job *j) {
    return j->state == STATE_QUEUED && j->slot == NO_SLOT;
}

/* The first of them counts those that wait with it: some may have started before, and others are still to be made by the submission that they
 * come with. Whoever is not the first is alone. */
static uint32_t group_size(const struct mm *m, const struct job *j) {
    uint32_t count, size = 0;
    if (j->together < 2 || leader_of(m, j, &count) != j)
        return 1;
    for (uint32_t id = j->id; id < j->id + count; id++) {
        const struct job *other = job_find(m, id);
        size += other == NULL ? id >= m->next_id
                              : other == j || (is_waiting(other) && other->seat == COURT_NONE);
    }
    return size;
}

bool family_follows(const struct mm *m, const struct job *j) {
    uint32_t count;
    if (j->together < 2)
        return false;
    const struct job *leader = leader_of(m, j, &count);
    return leader != NULL && leader != j && is_waiting(leader);
}

void family_disband(struct mm *m, const struct job *j, enum reason reason) {
    uint32_t count;
    if (j->together < 2)
        return;
    const struct job *leader = leader_of(m, j, &count);
    for (uint32_t i = 0; leader != NULL && i < count; i++) {
        struct job *other = job_find(m, leader->id + i);
        if (other != NULL && other != j && is_waiting(other))
            end_job(m, other, reason, 0, true);
    }
}

/* ---- classes ---- */

static const struct classed *classes_of(const struct mm *m, const struct job *j) {
    return j->flags & JOB_CLASSES ? &m->classed[job_place(m, j)] : NULL;
}

bool family_class(const struct mm *m, const struct job *j, uint32_t index, struct host_class *ret) {
    const struct classed *c = classes_of(m, j);
    if (c == NULL || index >= c->count)
        return false;
    const struct class_kept *k = &c->at[index];
    *ret = (struct host_class){.least = k->least,
                               .most = k->most,
                               .ppn = k->ppn,
                               .name = bytes_of(k->name, k->name_len),
                               .need = k->need == 0 ? (struct bytes){0}
                                                    : bytes_from_str(m->needs[k->need - 1].text)};
    return true;
}

void family_mark_needs(struct mm *m, const struct job *j) {
    const struct classed *c = classes_of(m, j);
    for (uint32_t i = 0; c != NULL && i < c->count; i++)
        if (c->at[i].need != 0)
            m->needs[c->at[i].need - 1].used = true;
}

static struct court_section section_of(const struct mm *m, const struct class_kept *k) {
    return (struct court_section){.nodes = k->least,
                                  .ppn = k->ppn,
                                  .meets = k->need == 0 ? NULL : &m->needs[k->need - 1].set};
}

/* Its own are to be these; what is said of its hosts is in their classes. */
static bool names_nodes(const struct message_submit *s) {
    return s->on != NULL && !nodeset_empty(s->on);
}

/* Its own nodes, then the fewest of each class. */
static void add_sections(const struct mm *m, const struct job *j, bool named, struct classed *c) {
    const struct need_kept *need = needs_of(m, j);
    c->sections[0] = (struct court_section){.nodes = j->nodes,
                                            .ppn = j->ppn,
                                            .memory = job_memory_of(j->memory, j->ppn),
                                            .meets = need == NULL ? NULL : &need->set,
                                            .only = named ? &m->wishes[job_place(m, j)].on : NULL};
    c->section_count = 1;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->at[i].least > 0)
            c->sections[c->section_count++] = section_of(m, &c->at[i]);
}

bool family_take(struct mm *m, struct job *j, const struct message_submit *s) {
    struct classed *c = &m->classed[job_place(m, j)];
    struct host_class one;
    size_t at = 0;
    if ((s->flags & JOB_CLASSES) == 0)
        return true;
    c->count = 0;
    while (c->count < CLASSES_MAX && class_next(s->classes, &at, &one) == 1) {
        struct class_kept *k = &c->at[c->count];
        *k = (struct class_kept){.least = one.least,
                                 .most = one.most,
                                 .ppn = one.ppn,
                                 .name_len = (uint32_t)one.name.len};
        memcpy(k->name, one.name.at, one.name.len);
        if (!needs_keep(m, one.need, &k->need))
            return false;
        c->count++; /* from now on its need is in use */
    }
    add_sections(m, j, names_nodes(s), c);
    return true;
}

uint32_t family_sections(const struct message_submit *s,
                         struct court_section ret[COURT_SECTIONS_MAX]) {
    struct host_class one;
    size_t at = 0;
    uint32_t count = 1;
    ret[0] = (struct court_section){.nodes = s->nodes,
                                    .ppn = s->ppn,
                                    .only = names_nodes(s) ? s->on : NULL,
                                    .memory = job_memory_of(job_memory(s), s->ppn)};
    while (count < COURT_SECTIONS_MAX && class_next(s->classes, &at, &one) == 1)
        if (one.least > 0)
            ret[count++] = (struct court_section){.nodes = one.least, .ppn = one.ppn};
    return count;
}

/* ---- judging ---- */

static int contradiction(struct text *why) {
    text_str(why, "what is said of its hosts contradicts itself");
    return -EINVAL;
}

static int too_many(struct text *why, const char *what, uint32_t most) {
    text_str(why, what);
    text_str(why, ": there may be ");
    text_u64(why, most);
    return -EINVAL;
}

/* All of them run as soon as they start. */
static uint32_t together_max(const struct mm *m) {
    uint32_t most = m->running_cap / 2;
    return most < TOGETHER_MAX ? most : TOGETHER_MAX;
}

static bool named_before(const struct message_submit *s, size_t end, struct bytes name) {
    struct host_class one;
    for (size_t at = 0; at < end && class_next(s->classes, &at, &one) == 1 && at < end;)
        if (bytes_equal(one.name, name))
            return true;
    return false;
}

static int judge_classes(struct mm *m, const struct message_submit *s, struct text *why) {
    struct host_class one;
    size_t at = 0;
    uint32_t count = 0;
    uint64_t least = 0;
    int r;
    bool fits = s->kind == JOB_RUN || s->kind == JOB_BATCH;
    if (!fits || (s->flags & (JOB_SECTIONS | JOB_FAMILY)) != 0 || s->array_last > s->array_first)
        return contradiction(why);
    while ((r = class_next(s->classes, &at, &one)) == 1) {
        struct message_submit alone = *s;
        alone.nodes = one.least > 0 ? one.least : 1;
        alone.ppn = one.ppn;
        alone.need = one.need;
        alone.on = &m->empty;
        least += one.least;
        if (++count > CLASSES_MAX)
            return too_many(why, "too many classes of hosts", CLASSES_MAX);
        if (least > together_max(m))
            return too_many(why, "too many hosts that it does not start without", together_max(m));
        if (one.most > HOSTS_MAX)
            return too_many(why, "too many hosts of a class", HOSTS_MAX);
        if (named_before(s, at, one.name))
            return contradiction(why);
        int wrong = needs_judge(m, &alone, why);
        if (wrong < 0)
            return wrong;
    }
    return r < 0 || count == 0 ? contradiction(why) : 0;
}

/* Whoever asks for more waits in vain, so it is told at once. */
static int judge_limits(struct mm *m, const struct job *parent, uint32_t count, struct text *why) {
    uint32_t each = m->config.hosts_each, all = m->config.hosts_all;
    if (each != 0 && (uint64_t)parent->children + count > each) {
        text_str(why, "job ");
        text_u64(why, parent->id);
        text_str(why, " has or waits for ");
        why_count(why, parent->children, " host");
        text_str(why, "; a job may have ");
        text_u64(why, each);
        return -EDQUOT;
    }
    if (all != 0 && (uint64_t)m->hosts + count > all) {
        text_str(why, "jobs have or wait for ");
        why_count(why, m->hosts, " host");
        text_str(why, "; all together may have ");
        text_u64(why, all);
        return -EDQUOT;
    }
    return 0;
}

static int judge_parent(struct mm *m, const struct message_submit *s, struct text *why) {
    const struct job *parent = job_find(m, s->parent);
    uint32_t count = s->array_last > s->array_first ? s->array_last - s->array_first + 1 : 1;
    if (s->together > together_max(m))
        return too_many(why, "too many hosts that are to come together", together_max(m));
    if (s->kind != JOB_ALLOC || s->nodes != 1 || (s->flags & JOB_LENT) == 0 ||
        (s->flags & (JOB_CLASSES | JOB_SECTIONS)) != 0)
        return contradiction(why);
    const struct running *r = parent == NULL ? NULL : job_running(m, parent);
    bool runs = r != NULL && !r->parting && parent->state != STATE_ENDING &&
                !state_over((enum job_state)parent->state);
    if (!runs || parent->kind == JOB_STEP || parent->kind == JOB_ALLOC) {
        text_str(why, "job ");
        text_u64(why, s->parent);
        text_str(why, runs ? " is an allocation, or inside one: hosts come to a job of its own"
                           : " does not run: hosts come to a job that does");
        return -ESRCH;
    }
    return judge_limits(m, parent, count, why);
}

int family_judge(struct mm *m, const struct message_submit *s, struct text *why) {
    if ((s->flags & JOB_FAMILY) != 0) {
        int r = judge_parent(m, s, why);
        return r < 0 ? r : needs_judge(m, s, why);
    }
    return judge_classes(m, s, why);
}

/* ---- the court ---- */

uint64_t family_estimate(const struct mm *m, const struct job *j) {
    const struct job *parent = parent_of(m, j);
    uint64_t from = j->slot == NO_SLOT ? wall(m) : j->started_ns;
    if (parent == NULL || parent->limit_ns == 0)
        return j->limit_ns > 0 ? j->limit_ns : STORM_NEVER;
    uint64_t end = (parent->slot == NO_SLOT ? wall(m) : parent->started_ns) + parent->limit_ns;
    return end > from ? end - from : 1;
}

void family_order(const struct mm *m, const struct job *j, struct court_order *o) {
    const struct classed *c = classes_of(m, j);
    uint32_t size = group_size(m, j);
    if (c != NULL && c->section_count > 1) {
        o->sections = c->sections;
        o->section_count = c->section_count;
        o->meets = o->only = NULL; /* that is for its own nodes */
    }
    if (size > 1)
        o->nodes = size;
    if ((j->flags & JOB_LENT) != 0)
        o->priority = INT32_MIN;
}

uint32_t family_size(const struct mm *m, const struct job *j) {
    const struct classed *c = classes_of(m, j);
    uint32_t count = 1;
    if (j->together > 1)
        count = nodeset_count(court_nodes(m->court, j->seat));
    for (uint32_t i = 0; c != NULL && i < c->count; i++)
        count += c->at[i].least;
    return count;
}

/* It starts there, with a place in court of its own. One that does not get any waits, as it is. */
static void start_on(struct mm *m, struct job *j, const struct nodeset *nodes, uint32_t slot) {
    if (queue_seat(m, j, nodes, slot)) {
        queue_off(m, j);
        start_job(m, j, nodes);
    }
}

/* These, one node each. */
static void start_hosts(struct mm *m, uint32_t first, uint32_t count, const struct nodeset *nodes,
                        uint32_t slot) {
    uint32_t node = nodeset_first(nodes);
    for (uint32_t i = 0; i < count && node != NODESET_NONE; i++) {
        struct job *j = job_find(m, first + i);
        if (j == NULL || !is_waiting(j) || j->seat != COURT_NONE)
            continue;
        nodeset_clear(&m->work);
        nodeset_add(&m->work, node);
        node = nodeset_next(nodes, node);
        start_on(m, j, &m->work, slot);
    }
}

/* Asks for hosts of a class on behalf of a job; the number of the first, 0: there is no room. */
static uint32_t ask_hosts(struct mm *m, const struct job *parent, const struct class_kept *k,
                          uint32_t count, uint32_t flags) {
    const char *need = k->need == 0 ? "" : m->needs[k->need - 1].text;
    const struct reservation *window = reserve_of(m, parent->window);
    struct wish *wish = job_wish(m, parent);
    struct message_submit s = {.kind = JOB_ALLOC,
                               .flags = JOB_FAMILY | JOB_DETACHED | flags |
                                        (parent->flags & JOB_EXCLUSIVE),
                               .nodes = 1,
                               .ppn = k->ppn,
                               .procs = k->ppn,
                               .array_first = count > 1 ? 1 : 0,
                               .array_last = count > 1 ? count : 0,
                               .priority = parent->priority,
                               .on = &m->empty,
                               .exclude = wish == NULL ? &m->empty : &wish->exclude,
                               .name = bytes_of(k->name, k->name_len),
                               .need = bytes_from_str(need),
                               .parent = parent->id};
    if (k->need != 0)
        s.flags |= JOB_NEEDS;
    if (window != NULL)
        s.reservation = bytes_of(window->name, window->name_len);
    return submit_own(m, &s, count);
}

/* As many of these as it may have. */
static uint32_t hosts_allowed(const struct mm *m, const struct job *j, uint32_t count) {
    uint32_t each = m->config.hosts_each, all = m->config.hosts_all;
    uint32_t left = each == 0 ? UINT32_MAX : each > j->children ? each - j->children : 0;
    uint32_t rest = all == 0 ? UINT32_MAX : all > m->hosts ? all - m->hosts : 0;
    left = left < rest ? left : rest;
    return count < left ? count : left;
}

/* The fewest of each class; numbers of the first ones are noted. */
static void start_fewest(struct mm *m, struct job *j, uint32_t slot, uint32_t first[CLASSES_MAX]) {
    const struct classed *c = classes_of(m, j);
    uint32_t section = 1;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct class_kept *k = &c->at[i];
        first[i] = k->least == 0 ? 0 : ask_hosts(m, j, k, k->least, 0);
        if (first[i] != 0)
            start_hosts(m, first[i], k->least, &m->section_sets[section], slot);
        section += k->least > 0;
    }
}

/* Who has not got a place waits for one; and the rest comes when it comes. */
static void ask_rest(struct mm *m, struct job *j, const uint32_t first[CLASSES_MAX]) {
    const struct classed *c = classes_of(m, j);
    for (uint32_t i = 0; i < c->count; i++) {
        const struct class_kept *k = &c->at[i];
        for (uint32_t n = 0; first[i] != 0 && n < k->least; n++)
            queue_arrive(m, job_find(m, first[i] + n));
        uint32_t more = hosts_allowed(m, j, k->most - k->least);
        if (more > 0)
            ask_hosts(m, j, k, more, JOB_LENT);
    }
}

/* We have asked for it, nobody else. */
static bool is_own(const struct mm *m, const struct job *j) {
    const struct job *first = job_find(m, (uint32_t)j->key);
    return first != NULL && first->request[0] == 0 && first->request[1] == 0;
}

void family_replace(struct mm *m, const struct job *j) {
    const struct job *parent = parent_of(m, j);
    const struct running *r = parent == NULL ? NULL : job_running(m, parent);
    const struct classed *c = parent == NULL ? NULL : classes_of(m, parent);
    bool taken = j->reason == REASON_LOST || j->reason == REASON_CLAIMED ||
                 j->reason == REASON_OWNER || j->reason == REASON_DRAINED;
    if (!taken || r == NULL || c == NULL || r->parting || m->stopped || !is_own(m, j) ||
        parent->state == STATE_ENDING || state_over((enum job_state)parent->state))
        return;
    for (uint32_t i = 0; i < c->count; i++)
        if (bytes_equal(bytes_of(c->at[i].name, c->at[i].name_len), bytes_of(j->name, j->name_len)))
            ask_hosts(m, parent, &c->at[i], 1, JOB_LENT);
}

static void start_group(struct mm *m, const struct job *j, uint32_t slot) {
    uint32_t count;
    leader_of(m, j, &count);
    start_hosts(m, j->id, count, &m->section_sets[0], slot);
}

void family_started(struct mm *m, const struct job *j) {
    uint32_t count;
    if (j->together < 2 || leader_of(m, j, &count) != j)
        return;
    for (uint32_t i = 0; i < count; i++)
        if (job_find(m, j->id + i) != NULL)
            queue_arrive(m, job_find(m, j->id + i));
}

/* Which nodes its place in court has. */
static void copy_sections(struct mm *m, const struct job *j) {
    const struct classed *c = classes_of(m, j);
    m->section_sets_run = 0;
    if (c == NULL || c->section_count < 2)
        nodeset_copy(&m->section_sets[0], court_nodes(m->court, j->seat));
    else
        for (uint32_t k = 0; k < c->section_count; k++)
            nodeset_copy(&m->section_sets[k], court_section_nodes(m->court, j->seat, k));
}

void family_start(struct mm *m, struct job *j) {
    bool classes = classes_of(m, j) != NULL;
    uint32_t whole = j->seat, slot = court_job(m->court, whole)->slot;
    uint32_t first[CLASSES_MAX] = {0};
    copy_sections(m, j);
    court_hand_over(m->court, m->now, whole);
    j->seat = COURT_NONE;
    m->splitting = true;
    if (classes) {
        start_on(m, j, &m->section_sets[0], slot);
        ASSERT(job_running(m, j) != NULL); /* it takes the place that it had */
        start_fewest(m, j, slot, first);
    } else {
        start_group(m, j, slot);
    }
    m->splitting = false;
    court_end(m->court, m->now, whole);
    m->dirty = true;
    if (classes)
        ask_rest(m, j, first);
    else
        family_started(m, j);
}
