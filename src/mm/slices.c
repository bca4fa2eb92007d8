/* SPDX-License-Identifier: MIT */
/* Slots take turns: what the court says of them, on its way to the nodes (docs/decisions/0030-gang-switch.md).
 *
 * Runs are told their slots with their launch and when these change; strobes say whose turn it is, as long as jobs are in two
 * slots. When only one is left, everybody runs, and there are no strobes. Either may be lost, so both are
 * repeated for a while; the launchers hold to one rule whatever they know.
 *
 * Slots that take turns one after the other need no strobe for each: it says the cycle, nodes keep the time by their own clocks, and
 * now and then it is said again. So we are not woken for a turn, but know by the same arithmetic whose it is.
 *
 * Clusters that have never shared time say nothing of slots, but for a manager that has come anew and finds jobs: he cannot know
 * what was said last. */
#include "base/units.h"
#include "mm/inside.h"

/* What may be lost is said again so often, and once the turns are over so many times more. */
#define REPEAT_NS NS_PER_S
#define SYNC_NS   (200 * NS_PER_MS) /* what clocks drift apart until then is nothing to a turn */
enum { REPEATS = 3, ROWS_AT_ONCE = 512 };

static bool coordinated(const struct mm *m) {
    return (court_policy(m->court)->flags & STORM_UNCOORDINATED) == 0;
}

/* A step has the slots of its allocation. */
static const struct job *holder_of(const struct mm *m, const struct job *j) {
    return j->kind == JOB_STEP ? job_find(m, j->inside) : j;
}

static uint64_t slots_of(const struct mm *m, const struct job *j) {
    const struct job *holder = holder_of(m, j);
    if (!m->turns.used || holder == NULL || holder->seat == COURT_NONE)
        return 0;
    return court_job(m->court, holder->seat)->slots;
}

/* ---- time ---- */

static void reckon_until(struct turns *t, uint64_t at) {
    uint64_t *of = t->slot == GANG_ALL ? &t->all_ns : &t->slot_ns[t->slot];
    if (at > t->since)
        *of += at - t->since;
    t->since = at;
}

/* The turns of a cycle that are over since. */
static void reckon_cycle(struct turns *t, uint64_t now) {
    uint64_t round = t->quantum * (uint64_t)__builtin_popcountll(t->cycle);
    uint64_t rounds = (now - t->ends) / round;
    for (uint32_t s = 0; s < GANG_SLOTS_MAX && rounds > 0; s++)
        if (t->cycle >> s & 1)
            t->slot_ns[s] += rounds * t->quantum;
    t->since += rounds * round;
    t->ends += rounds * round;
    while (t->ends <= now) {
        reckon_until(t, t->ends);
        do
            t->slot = (uint8_t)((t->slot + 1) % GANG_SLOTS_MAX);
        while ((t->cycle >> t->slot & 1) == 0);
        t->ends += t->quantum;
    }
}

static void reckon(struct mm *m) {
    struct turns *t = &m->turns;
    if (t->cycle != 0 && t->ends <= m->now)
        reckon_cycle(t, m->now);
    reckon_until(t, m->now);
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

static void move(struct mm *m, struct running *r, uint64_t slots) {
    r->ran_ns = slices_ran(m, r);
    r->slots = slots;
    r->ran_base = had(&m->turns, slots);
    r->moved = true;
    m->turns.moved = true;
}

/* Its slots may have changed while it was on its way: what was said of that may have come before it. */
void slices_began(struct mm *m, struct running *r) {
    const struct job *j = job_find(m, r->job);
    reckon(m);
    r->ran_ns = 0;
    r->ran_base = had(&m->turns, r->slots);
    if (m->turns.sharing && j->kind != JOB_ALLOC && slots_of(m, j) != r->launched)
        move(m, r, slots_of(m, j));
}

uint32_t slices_share(const struct mm *m) {
    return court_policy(m->court)->flags & STORM_SLICED ? court_limits(m->court)->slots : 1;
}

/* ---- slots ---- */

/* Its own slot at first: others that it may run in as well can be given to somebody while it is on its way. */
void slices_launch(struct mm *m, const struct job *j, struct running *r,
                   struct message_launch *ret) {
    uint64_t slots = m->turns.sharing ? slots_of(m, j) : 0;
    r->slots = r->launched =
        slots == 0 ? 0 : (uint64_t)1 << court_job(m->court, holder_of(m, j)->seat)->slot;
    r->moved = false;
    ret->slots = r->slots;
    ret->version = m->turns.version;
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
    if (m->running_count == 0 || m->fresh)
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

static void say_turn(struct mm *m, uint8_t slot, uint64_t cycle, bool tell) {
    struct turns *t = &m->turns;
    uint64_t us = court_limits(m->court)->quantum / NS_PER_US, spent = 0;
    us = slot == GANG_ALL ? 0 : us > UINT32_MAX ? UINT32_MAX : us;
    t->slot = slot;
    t->cycle = cycle;
    t->again = false;
    t->sync_at = cycle == 0 ? 0 : m->now + SYNC_NS;
    if (cycle != 0) {
        t->quantum = us * NS_PER_US;
        t->ends = court_turn_ends(m->court);
        uint64_t left = t->ends > m->now ? t->ends - m->now : 0;
        spent = left < t->quantum ? t->quantum - left : 0;
    }
    strobe_turn(m, &m->members, slot, (uint32_t)us, cycle, spent, tell);
}

/* Turns that are too long to be said in microseconds are not many; and nodes do not keep very short ones. */
static uint64_t cycle_of(const struct mm *m) {
    uint64_t quantum = court_limits(m->court)->quantum;
    bool fits = quantum % NS_PER_US == 0 && quantum / NS_PER_US >= GANG_QUANTUM_LEAST_US &&
                quantum / NS_PER_US <= UINT32_MAX;
    return fits ? court_cycle(m->court) : 0;
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
    if ((shared || sliced) && !t->sharing) {
        t->used = true;
        slices_all_moved(m);
    }
    t->sharing = shared || sliced;
    if (!t->used)
        return;
    bool tell = repeat(m);
    if (t->moved)
        say_moved(m);
    reckon(m);
    uint8_t slot = shared ? (uint8_t)court_slot(m->court) : GANG_ALL;
    uint64_t cycle = shared ? cycle_of(m) : 0;
    bool other = slot != t->slot || cycle != t->cycle ||
                 (cycle != 0 && t->ends != court_turn_ends(m->court));
    if (other || t->again || tell || (t->sync_at != 0 && t->sync_at <= m->now)) {
        set_repeat(m, shared || t->again || slot != t->slot);
        say_turn(m, slot, cycle, tell);
    }
}

uint64_t slices_due(const struct mm *m) {
    const struct turns *t = &m->turns;
    if (t->moved)
        return m->now;
    uint64_t at = t->repeat_at == 0 ? STORM_NEVER : t->repeat_at;
    return t->sync_at != 0 && t->sync_at < at ? t->sync_at : at;
}
