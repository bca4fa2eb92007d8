/* SPDX-License-Identifier: MIT */
/* How this node is: looked at from time to time, and kept ready for the root to ask for (wire/vitals.h).
 *
 * Nothing is sent but to the launcher, who is asked what its runs have used only if there are any. Nodes begin at
 * different times, as many of them may be on one machine. */
#include "nm/inside.h"
#include "rm/gather.h"
#include "wire/vitals.h"

enum { PARTS = 64 };

static bool wanted(const struct nm *n) {
    return n->config.limits.record_channels > CHANNEL_VITALS;
}

void health_boot(struct nm *n) {
    uint64_t first = VITALS_PERIOD_NS / PARTS * (1 + n->config.self % PARTS);
    if (wanted(n))
        effects_timer(n->out, TIMER_HEALTH, n->now + first);
}

void health_timer(struct nm *n) {
    bool any = false;
    RUNS_EACH (r, n)
        any = any || (r->handed && r->decided && !r->over);
    owner_look(n);
    if (any)
        keeper_command(n, 0, VERB_MEASURE, 0, 0);
    effects_timer(n->out, TIMER_HEALTH, n->now + VITALS_PERIOD_NS);
}

/* Runs for which there is no room are left out. */
void health_publish(struct nm *n) {
    if (!n->gauged || !n->joined)
        return;
    uint32_t cap = n->config.limits.record_bytes;
    uint8_t *room = effects_room(n->out, cap);
    struct vitals own = {.gauge = n->gauge};
    if (n->owner.judged) {
        own.watch = owner_mark(bytes_of(n->owner.text, n->owner.len));
        own.active = n->owner.active;
    }
    long len = vitals_begin(&own, room_of(room, cap));
    size_t at = len < 0 ? 0 : (size_t)len;
    RUNS_EACH (r, n) {
        if (len < 0 || !r->measured || r->over)
            continue;
        struct vitals_run v = {.run = r->run, .usage = r->usage};
        long more = vitals_add(&v, room_of(room + at, cap - at));
        at += more < 0 ? 0 : (size_t)more;
    }
    gather_publish(CHANNEL_VITALS, bytes_of(room, at), n->out);
}

void health_gauged(struct nm *n, const struct input_gauged *in) {
    n->gauged = true;
    n->gauge = *in;
    owner_gauged(n, in);
    health_publish(n);
}

void health_measured(struct nm *n, const struct message_measured *m) {
    struct run *r = run_find(n, m->run);
    if (r == NULL || r->over)
        return;
    owner_measured(n, r, &m->usage);
    r->measured = true;
    r->usage = m->usage;
    health_publish(n);
}
