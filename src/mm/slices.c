/* SPDX-License-Identifier: MIT */
/* Slots take turns: what the court says of them, on its way to the nodes (docs/decisions/0030-gang-switch.md).
 *
 * Runs are told their slots with their launch and when these change; strobes say whose turn it is, as long as jobs are in two
 * slots. When only one is left, everybody runs, and there are no strobes. Either may be lost, so both are
 * repeated for a while; the launchers hold to one rule whatever they know.
 *
 * Clusters that have never shared time say nothing of slots, but for a manager that has come anew and finds jobs: he cannot know
 * what was said last. */
#include "base/units.h"
#include "mm/inside.h"

/* What may be lost is said again so often, and once the turns are over so many times more. */
#define REPEAT_NS NS_PER_S
enum { REPEATS = 3, ROWS_AT_ONCE = 512 };

static bool coordinated(const struct mm *m) {
    return (court_policy(m->court)->flags & STORM_UNCOORDINATED) == 0;
}

/* A step has the slots of its allocation. */
static uint64_t slots_of(const struct mm *m, const struct job *j) {
    const struct job *holder = j->kind == JOB_STEP ? job_find(m, j->inside) : j;
    if (!m->turns.used || holder == NULL || holder->seat == COURT_NONE)
        return 0;
    return court_job(m->court, holder->seat)->slots;
}

/* ---- time ---- */

static void reckon(struct mm *m) {
    struct turns *t = &m->turns;
    uint64_t *of = t->slot == GANG_ALL ? &t->all_ns : &t->slot_ns[t->slot];
    if (m->now > t->since)
        *of += m->now - t->since;
    t->since = m->now;
}

/* What these slots have had, those times included in which everybody ran. */
static uint64_t had(const struct turns *t, uint64_t slots) {
    uint64_t sum = t->all_ns;
    for (uint32_t s = 0; s < GANG_SLOTS_MAX; s++)
        if (slots == 0 || slots >> s & 1)
            sum += t->slot_ns[s];
    return sum;
}

uint64_t slices_ran(struct mm *m, const struct running *r) {
    reckon(m);
    return r->ran_ns + had(&m->turns, r->slots) - r->ran_base;
}

void slices_began(struct mm *m, struct running *r) {
    reckon(m);
    r->ran_base = had(&m->turns, r->slots);
}

uint32_t slices_share(const struct mm *m) {
    return court_policy(m->court)->flags & STORM_SLICED ? court_limits(m->court)->slots : 1;
}

/* ---- slots ---- */

void slices_launch(struct mm *m, const struct job *j, struct running *r,
                   struct message_launch *ret) {
    r->slots = slots_of(m, j);
    r->moved = false;
    ret->slots = r->slots;
    ret->version = m->turns.version;
}

static void move(struct mm *m, struct running *r, uint64_t slots) {
    r->ran_ns = slices_ran(m, r);
    r->slots = slots;
    r->ran_base = had(&m->turns, slots);
    r->moved = true;
    m->turns.moved = true;
}

/* Has it been told? If not, its launch will tell. */
static bool was_told(const struct running *r) {
    return r->job != 0 && (r->phase == PHASE_LAUNCHING || r->phase == PHASE_GOING);
}

void slices_all_moved(struct mm *m) {
    for (uint32_t i = 0; m->turns.used && i < m->running_peak; i++) {
        struct running *r = &m->runnings[i];
        const struct job *j = was_told(r) ? job_find(m, r->job) : NULL;
        if (j != NULL && j->kind != JOB_ALLOC)
            move(m, r, slots_of(m, j));
    }
}

void slices_resume(struct mm *m) {
    struct turns *t = &m->turns;
    if (m->running_count == 0)
        return;
    t->used = t->again = true;
    slices_all_moved(m);
}

void slices_moved(struct mm *m, const struct job *j) {
    struct running *r = job_running(m, j);
    if (!m->turns.used || r == NULL)
        return;
    if (j->kind == JOB_ALLOC)
        slices_all_moved(m); /* its steps are among them */
    else if (was_told(r))
        move(m, r, slots_of(m, j));
}

void slices_node(struct mm *m, uint32_t node) {
    if (!m->turns.used)
        return;
    m->turns.again = true;
    m->ticked = true;
    for (uint32_t i = 0; i < m->running_peak; i++)
        if (was_told(&m->runnings[i]) && nodeset_has(&m->runnings[i].set, node))
            m->runnings[i].moved = m->turns.moved = true;
}

/* What a step may say is bounded: the rest comes with the next. */
static void say_moved(struct mm *m) {
    uint8_t *rows = effects_room(m->out, (size_t)ROWS_AT_ONCE * SLOTS_ROW_BYTES);
    uint32_t count = 0;
    m->turns.version++;
    m->turns.moved = false;
    nodeset_clear(&m->work);
    for (struct running *r = m->runnings; r < m->runnings + m->running_peak; r++) {
        if (!was_told(r) || !r->moved)
            continue;
        if (count == ROWS_AT_ONCE) {
            m->turns.moved = true;
            break;
        }
        r->moved = false;
        store_le64(rows + (size_t)count * SLOTS_ROW_BYTES, r->run);
        store_le64(rows + (size_t)count * SLOTS_ROW_BYTES + 8, r->slots);
        nodeset_unite(&m->work, &r->waiting);
        count++;
    }
    if (count > 0)
        strobe_slots(m, &m->work, m->turns.version,
                     bytes_of(rows, (size_t)count * SLOTS_ROW_BYTES));
}

/* ---- turns ---- */

static void say_turn(struct mm *m, uint8_t slot, bool tell) {
    struct turns *t = &m->turns;
    uint64_t us = court_limits(m->court)->quantum / NS_PER_US;
    reckon(m);
    t->slot = slot;
    t->again = false;
    strobe_turn(m, &m->members, slot,
                slot == GANG_ALL  ? 0
                : us > UINT32_MAX ? UINT32_MAX
                                  : (uint32_t)us,
                tell);
}

static void set_repeat(struct mm *m, bool shared) {
    struct turns *t = &m->turns;
    if (shared)
        t->repeats = REPEATS;
    if (t->repeat_at == 0 && t->repeats > 0)
        t->repeat_at = m->now + REPEAT_NS;
}

static bool repeat(struct mm *m) {
    struct turns *t = &m->turns;
    if (t->repeat_at == 0 || t->repeat_at > m->now)
        return false;
    t->repeat_at = 0;
    t->repeats--;
    for (uint32_t i = 0; i < m->running_peak; i++)
        if (was_told(&m->runnings[i]))
            m->runnings[i].moved = t->moved = true;
    return true;
}

void slices_settle(struct mm *m) {
    struct turns *t = &m->turns;
    bool shared = court_rows(m->court) > 1 && coordinated(m);
    bool sliced = (court_policy(m->court)->flags & STORM_SLICED) != 0 && coordinated(m);
    if (!t->used && (shared || sliced)) {
        t->used = true;
        slices_all_moved(m);
    }
    if (!t->used)
        return;
    bool tell = repeat(m);
    if (t->moved)
        say_moved(m);
    uint8_t slot = shared ? (uint8_t)court_slot(m->court) : GANG_ALL;
    if (slot != t->slot || t->again || tell) {
        set_repeat(m, shared || t->again || slot != t->slot);
        say_turn(m, slot, tell);
    }
}

uint64_t slices_due(const struct mm *m) {
    const struct turns *t = &m->turns;
    if (t->moved)
        return m->now;
    return t->repeat_at == 0 ? STORM_NEVER : t->repeat_at;
}
