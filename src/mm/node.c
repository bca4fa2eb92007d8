/* SPDX-License-Identifier: MIT */
/* The nodes: who is a member, who may be given to jobs.
 *
 * A node may be used when it is a member and has told which runs it has, so that nothing is given to one
 * whose launcher is not there. One that goes is missed for a while, as its manager may be started
 * again and find its processes running; then its jobs are lost.
 *
 * A number that is vacant is nobody's: nothing is said of it, nothing put there, whatever daemon may still answer
 * from it. What ran there is lost at once. */
#include <string.h>

#include "base/units.h"
#include "mm/inside.h"
#include "rm/say.h"

#define ASK_NS NS_PER_S

enum { NOTE_MAX = 1024 };

bool node_serves(const struct mm *m, uint32_t node) {
    const struct node *n = &m->nodes[node];
    return n->member && n->announced && !n->drained && roster_taken(&m->roster, node);
}

/* One that is to have another number of processors gets nothing until it has. */
bool node_usable(const struct mm *m, uint32_t node) {
    return node_serves(m, node) && court_node_pes_of(m->court, node) == m->nodes[node].pes;
}

bool node_all_usable(const struct mm *m, const struct nodeset *set) {
    NODESET_EACH (n, set)
        if (!node_usable(m, n))
            return false;
    return true;
}

static void set_usable(struct mm *m, uint32_t node) {
    const struct node *n = &m->nodes[node];
    nodeset_clear(&m->work);
    nodeset_add(&m->work, node);
    if (n->member)
        nodeset_add(&m->members, node);
    else
        nodeset_remove(&m->members, node);
    court_set_usable(m->court, m->now, &m->work, node_usable(m, node));
    m->dirty = true;
}

/* ---- how many processors ---- */

static bool is_idle(const struct mm *m, uint32_t node) {
    for (uint32_t s = 0; s < STORM_SLOTS_MAX; s++)
        if (court_node_used(m->court, s, node) > 0)
            return false;
    return true;
}

/* While something is held there nothing new is put there: then it will be idle. */
static void settle_width(struct mm *m, uint32_t node) {
    const struct node *n = &m->nodes[node];
    if (court_node_pes_of(m->court, node) == n->pes)
        return;
    if (is_idle(m, node))
        court_node_pes(m->court, node, n->pes);
    else
        m->unsettled = true;
    set_usable(m, node);
}

void node_width(struct mm *m, uint32_t node, uint32_t said) {
    uint32_t most = court_limits(m->court)->pes_max;
    uint32_t pes = said == 0 ? m->config.pes : said < most ? said : most;
    bool same = m->nodes[node].pes == pes;
    m->nodes[node].said = said != 0;
    m->nodes[node].pes = pes;
    needs_width(m, node);
    if (same)
        return;
    set_usable(m, node); /* it is not, until the court knows */
    settle_width(m, node);
}

void node_widen(struct mm *m, uint32_t node, uint32_t pes) {
    if (pes > court_limits(m->court)->pes_max || pes <= court_node_pes_of(m->court, node))
        return;
    court_node_pes(m->court, node, pes);
    m->unsettled = true;
}

void node_settle(struct mm *m) {
    m->unsettled = false;
    for (uint32_t i = 0; i < m->config.limits.nodes; i++)
        settle_width(m, i);
    queue_resume(m); /* there may be room for those that nothing was enough for */
}

/* ---- who is away ---- */

/* All nodes are looked at when the timer is due, and only then: it may be too early by then, never too
 * late. */
static void watch_from(struct mm *m, uint64_t at) {
    if (m->nodes_at != 0 && m->nodes_at <= at)
        return;
    m->nodes_at = at;
    effects_timer(m->out, TIMER_NODES, at);
}

/* It should have told what it has, and has not. */
static bool awaited(const struct mm *m, uint32_t node) {
    const struct node *n = &m->nodes[node];
    return n->member && !n->announced && roster_taken(&m->roster, node);
}

static void watch_all(struct mm *m) {
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < m->config.limits.nodes; i++) {
        const struct node *n = &m->nodes[i];
        if (n->absent_at != 0 && n->absent_at + m->config.absent_ns < next)
            next = n->absent_at + m->config.absent_ns;
        if (awaited(m, i) && m->now + ASK_NS < next)
            next = m->now + ASK_NS;
    }
    m->nodes_at = 0;
    if (next != UINT64_MAX)
        watch_from(m, next);
}

/* Those who should have told what they have and have not: the message may be lost. */
static void ask(struct mm *m) {
    nodeset_clear(&m->work);
    for (uint32_t i = 0; i < m->config.limits.nodes; i++)
        if (awaited(m, i))
            nodeset_add(&m->work, i);
    union message c = {.command = {.verb = VERB_CHECK}};
    if (!nodeset_empty(&m->work))
        say_down(m->out, &m->work, MESSAGE_COMMAND, &c, (struct bytes){0});
}

/* For the log, and for the hook: "node n[3,5] down". `m->work` is the set. */
static void note(struct mm *m, const char *state) {
    char words[NOTE_MAX];
    struct text t;
    size_t len = roster_format(&m->roster, &m->work, words, sizeof words);
    struct room room = effects_tail(m->out);
    text_init(&t, (char *)room.at, room.len);
    text_str(&t, "node ");
    text_strn(&t, words, len < sizeof words ? len : sizeof words - 1);
    text_char(&t, ' ');
    text_str(&t, state);
    effects_add(m->out, EFFECT_NOTE)->note = effects_take(m->out, t.len);
}

/* So long that nobody waits any more. */
static uint64_t long_absent(const struct mm *m) {
    return m->now > m->config.absent_ns ? m->now - m->config.absent_ns : 1;
}

void node_changed(struct mm *m, const struct input_nodes *in) {
    NODESET_EACH (i, in->nodes) {
        if (i >= m->config.limits.nodes)
            continue;
        struct node *n = &m->nodes[i];
        n->member = in->up;
        n->since = wall(m);
        if (!in->up) {
            n->announced = false;
            n->absent_at = roster_taken(&m->roster, i) ? m->now : long_absent(m);
        } else if (n->announced && roster_taken(&m->roster, i)) {
            n->absent_at = 0;
        }
        set_usable(m, i);
        if (in->up)
            slices_node(m, i);
    }
    watch_from(m, m->now + (in->up ? ASK_NS : m->config.absent_ns));
}

void node_announced(struct mm *m, uint32_t node) {
    struct node *n = &m->nodes[node];
    n->announced = true;
    if (n->member && roster_taken(&m->roster, node))
        n->absent_at = 0; /* it may tell before it has joined: until then it is away */
    slices_node(m, node);
    n->since = wall(m);
    set_usable(m, node);
    if (m->unranked)
        watch_from(m, m->now + ASK_NS);
    if (n->down)
        note(m, "up"); /* the set is that of set_usable */
    n->down = false;
}

void node_suspect(struct mm *m, uint32_t node) {
    m->nodes[node].announced = false;
    set_usable(m, node);
    watch_from(m, m->now + ASK_NS);
}

void node_tick(struct mm *m) {
    nodeset_clear(&m->scratch[0]);
    for (uint32_t i = 0; i < m->config.limits.nodes; i++) {
        struct node *n = &m->nodes[i];
        if (n->absent_at == 0 || n->absent_at + m->config.absent_ns > m->now)
            continue;
        n->absent_at = 0;
        n->announced = false;
        end_node_lost(m, i);
        n->down = roster_taken(&m->roster, i);
        if (n->down)
            nodeset_add(&m->scratch[0], i);
    }
    nodeset_copy(&m->work, &m->scratch[0]);
    if (!nodeset_empty(&m->work))
        note(m, "down");
    files_nodes_changed(m);
    if (m->unranked)
        needs_rank(m);
    ask(m);
    watch_all(m);
}

/* Whatever has ended a manager has disturbed its nodes, too: they get more time to come back. */
void node_resume(struct mm *m) {
    enum { LONGER = 3 };
    for (uint32_t i = 0; i < m->config.limits.nodes; i++)
        m->nodes[i].absent_at =
            roster_taken(&m->roster, i) ? m->now + LONGER * m->config.absent_ns : long_absent(m);
    watch_all(m);
}

void node_drain(struct mm *m, const struct nodeset *set, bool drained, struct bytes reason,
                uint64_t at) {
    NODESET_EACH (i, set) {
        if (i >= m->config.limits.nodes)
            continue;
        struct node *n = &m->nodes[i];
        n->was_drained = n->drained;
        n->was_reason_len = n->reason_len;
        n->drained = drained;
        n->since = at;
        n->reason_len = 0;
        if (drained && reason.len > 0) {
            n->reason_len =
                (uint32_t)(reason.len < sizeof n->reason ? reason.len : sizeof n->reason);
            memcpy(n->reason, reason.at, n->reason_len);
        }
        set_usable(m, i);
    }
}

/* ---- who is there ---- */

/* Whoever has the number next is not drained because of who had it before. */
static void undrain(struct mm *m, const struct nodeset *set) {
    if (nodeset_empty(set) || m->after_count >= m->after_cap / 2)
        return;
    node_drain(m, set, false, (struct bytes){0}, wall(m));
    uint64_t ticket = record_drain(m, set, false, (struct bytes){0});
    node_drain_wait(m, set, ticket);
    after_add(m, ticket, AFTER_NODE);
}

/* What is there has nothing to do with what was: as one that has just come, or is gone. */
static void change_hands(struct mm *m, uint32_t node, bool was) {
    struct node *n = &m->nodes[node];
    n->since = wall(m);
    n->announced = false;
    n->down = false;
    n->absent_at = was ? long_absent(m) : 0; /* then its jobs are lost */
    needs_forget(m, node);
    set_usable(m, node);
}

/* Numbers that are not any more whose they were. */
static void judge_hands(struct mm *m, const struct roster *before) {
    struct nodeset *drained = &m->scratch[0];
    nodeset_clear(drained);
    for (uint32_t i = 0; i < m->config.limits.nodes; i++) {
        bool was = roster_taken(before, i), same = roster_same(before, &m->roster, i);
        if (same || (!was && !roster_taken(&m->roster, i)))
            continue;
        change_hands(m, i, was);
        if (m->nodes[i].drained && m->nodes[i].drain_ticket == 0)
            nodeset_add(drained, i);
    }
    undrain(m, drained);
    files_nodes_changed(m);
    watch_from(m, m->now);
}

void node_roster(struct mm *m, const struct input_roster *in) {
    struct roster before = m->roster;
    if (in->taken == NULL || roster_fill(&m->roster_next, in->taken, in->names, NULL) < 0)
        return; /* nobody would mean that */
    m->roster = m->roster_next;
    m->roster_next = before;
    roster_all(&m->roster, &m->taken);
    m->dirty = true;
    if (!m->replaying) /* else whoever is gone is missed when all of the log is read */
        judge_hands(m, &before);
}

/* ---- a change that is not durable yet ---- */

bool node_draining(const struct mm *m, const struct nodeset *set) {
    NODESET_EACH (i, set)
        if (i < m->config.limits.nodes && m->nodes[i].drain_ticket != 0)
            return true;
    return false;
}

void node_drain_wait(struct mm *m, const struct nodeset *set, uint64_t ticket) {
    NODESET_EACH (i, set)
        if (i < m->config.limits.nodes)
            m->nodes[i].drain_ticket = ticket;
}

void node_drain_kept(struct mm *m, uint64_t ticket, bool kept) {
    for (uint32_t i = 0; i < m->config.limits.nodes; i++) {
        struct node *n = &m->nodes[i];
        if (n->drain_ticket != ticket)
            continue;
        n->drain_ticket = 0;
        if (kept)
            continue;
        n->drained = n->was_drained;
        n->reason_len = n->was_reason_len;
        set_usable(m, i);
    }
}
