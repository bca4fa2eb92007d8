/* SPDX-License-Identifier: MIT */
/* How far apart nodes switch: see skew.h. */
#include "rm/skew.h"

#include "base/sort.h"

void skew_init(struct skew *s) {
    *s = (struct skew){.unprompt = NO_NODE, .unwhole = NO_NODE};
}

static void keep(struct skew *s) {
    if (s->now.nodes > 0)
        s->kept[s->count++ % SKEW_KEPT] = s->now;
}

void skew_heard(struct skew *s, uint32_t node, const struct message_turned *m) {
    uint64_t after = m->at_ns > m->sent_ns ? m->at_ns - m->sent_ns : 0;
    s->missed += m->missed;
    if (!m->prompt)
        s->unprompt = node;
    if (m->means != GANG_BY_CGROUP)
        s->unwhole = node;
    if (m->number < s->now.number)
        return;
    if (m->number > s->now.number) {
        keep(s);
        s->now = (struct skew_sample){.number = m->number, .first_ns = after, .slowest = node};
    }
    s->now.nodes++;
    if (after < s->now.first_ns)
        s->now.first_ns = after;
    if (after > s->now.last_ns) {
        s->now.last_ns = after;
        s->now.slowest = node;
    }
    if (m->took_ns > s->now.took_ns)
        s->now.took_ns = m->took_ns;
}

void skew_percentile(const struct skew *s, uint32_t percent, struct skew_sum *ret) {
    uint64_t skews[SKEW_KEPT], reaches[SKEW_KEPT];
    uint32_t count = s->count < SKEW_KEPT ? (uint32_t)s->count : SKEW_KEPT;
    *ret = (struct skew_sum){.samples = count};
    for (uint32_t i = 0; i < count; i++) {
        skews[i] = s->kept[i].last_ns - s->kept[i].first_ns;
        reaches[i] = s->kept[i].last_ns;
    }
    if (count == 0)
        return;
    sort_u64(skews, count);
    sort_u64(reaches, count);
    ret->skew_ns = skews[(uint64_t)(count - 1) * percent / 100];
    ret->reach_ns = reaches[(uint64_t)(count - 1) * percent / 100];
}
