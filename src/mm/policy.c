/* SPDX-License-Identifier: MIT */
/* Which scheduling policy: the one the cluster was brought up with, or has been told since, or first come, first served if
 * that was wrong. It is in the log, so that a new life goes on with it; a cluster that is brought up
 * anew has the one that it is brought up with. */
#include <string.h>

#include "base/units.h"
#include "mm/inside.h"
#include "sched/policies.h"

static const struct storm_policy *at(const struct mm *m, uint32_t index) {
    const struct storm_policy *p = policies_at(index);
    if (p != NULL || index == 0 || policies_at(index - 1) == NULL)
        return p;
    return m->config.guest; /* the last */
}

static const struct storm_policy *find(const struct mm *m, struct bytes name) {
    const struct storm_policy *p;
    for (uint32_t i = 0; (p = at(m, i)) != NULL; i++)
        if (strlen(p->name) == name.len && memcmp(p->name, name.at, name.len) == 0)
            return p;
    return NULL;
}

static void choose(struct mm *m, const struct storm_policy *p, uint32_t slots,
                   uint64_t quantum_ns) {
    court_change(m->court, m->now, p, slots, quantum_ns);
    slices_all_moved(m);
    m->dirty = true;
}

struct after *policy_keep(struct mm *m) {
    const struct storm_limits *l = court_limits(m->court);
    m->kept.unkept = false;
    return after_add(m, record_policy(m, court_policy(m->court)->name, l->slots, l->quantum),
                     AFTER_POLICY);
}

/* For who asks, and for the log of the daemons. */
static void say_fault(struct mm *m, const char *words) {
    struct text t;
    struct room room = effects_tail(m->out);
    text_init(&t, m->fault, sizeof m->fault);
    text_str(&t, words);
    text_init(&t, (char *)room.at, room.len);
    text_str(&t, words);
    effects_add(m->out, EFFECT_NOTE)->note = effects_take(m->out, t.len);
}

void policy_replay(struct mm *m, struct bytes name, uint32_t slots, uint64_t quantum_ns) {
    const struct storm_policy *p = find(m, name);
    if (slots < 1 || slots > STORM_SLOTS_MAX || quantum_ns == 0)
        return;
    m->kept = (struct policy_kept){.any = true, .policy = p, .slots = slots, .quantum = quantum_ns};
}

/* One that is not there any more was loaded from a file that was not named again. */
void policy_begin(struct mm *m) {
    const struct policy_kept *k = &m->kept;
    if (m->config.trouble != NULL)
        say_fault(m, m->config.trouble);
    if (k->any && !m->fresh && k->policy != NULL) {
        choose(m, k->policy, k->slots, k->quantum);
        return;
    }
    choose(m, m->config.policy, m->config.slots, m->config.quantum_ns);
    if (k->any)
        policy_keep(m);
}

void policy_fault(struct mm *m, const char *words) {
    say_fault(m, words);
    slices_all_moved(m);
    policy_keep(m);
}

void policy_heard(struct mm *m, uint32_t link, const struct message_act *a) {
    const struct storm_limits *l = court_limits(m->court);
    const struct storm_policy *p = a->text.len == 0 ? court_policy(m->court) : find(m, a->text);
    uint32_t slots = a->value == 0 ? l->slots : a->value;
    uint64_t quantum = a->more == 0 ? l->quantum : a->more * NS_PER_US;
    if (p == NULL) {
        client_answer(m, link, a->request, ANSWER_UNKNOWN, 0, 0,
                      "there is no such policy; storm policy tells which there are");
        return;
    }
    if (slots > STORM_SLOTS_MAX) {
        client_answer(m, link, a->request, ANSWER_REFUSED, 0, 0,
                      "at most 64 can share a processor");
        return;
    }
    if (quantum < GANG_QUANTUM_LEAST_US * NS_PER_US) {
        client_answer(m, link, a->request, ANSWER_REFUSED, 0, 0,
                      "such short turns are nothing but switches");
        return;
    }
    if (after_full(m, 0)) {
        client_answer(m, link, a->request, ANSWER_FULL, 0, 0, "try again in a moment");
        return;
    }
    m->fault[0] = '\0';
    choose(m, p, slots, quantum);
    struct after *w = policy_keep(m);
    w->link = link;
    w->request[0] = a->request[0];
    w->request[1] = a->request[1];
}

/* ---- for who asks ---- */

static void add_skew(const struct mm *m, struct policy_row *ret) {
    struct skew_sum half, most;
    skew_percentile(&m->skew, 50, &half);
    skew_percentile(&m->skew, 99, &most);
    ret->samples = half.samples;
    ret->skew_ns = half.skew_ns;
    ret->skew99_ns = most.skew_ns;
    ret->reach_ns = half.reach_ns;
    ret->reach99_ns = most.reach_ns;
    ret->missed = m->skew.missed;
    ret->unprompt = m->skew.unprompt;
    ret->unwhole = m->skew.unwhole;
}

bool policy_row_at(struct mm *m, uint32_t index, struct policy_row *ret) {
    const struct storm_policy *p = at(m, index);
    if (p == NULL)
        return false;
    *ret = (struct policy_row){.chosen = p == court_policy(m->court),
                               .sliced = (p->flags & STORM_SLICED) != 0,
                               .unprompt = NO_NODE,
                               .unwhole = NO_NODE,
                               .name = bytes_from_str(p->name),
                               .words = bytes_from_str(p->words)};
    if (!ret->chosen)
        return true;
    ret->slots = court_limits(m->court)->slots;
    ret->quantum_ns = court_limits(m->court)->quantum;
    ret->rows = court_rows(m->court);
    ret->fault = bytes_from_str(m->fault);
    add_skew(m, ret);
    return true;
}
