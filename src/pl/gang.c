/* SPDX-License-Identifier: MIT */
/* Gangs: whose turn it is on this node (docs/decisions/0030-gang-switch.md).
 *
 * A run belongs to some slots; the newest strobe says which slot runs. Whatever is known, late or lost, one rule
 * holds: all that runs here belongs to one slot. So two gangs never run at once: who
 * leaves is held before who comes is let go. The other way round measured the same.
 *
 * A manager that has come anew gives slots anew. What one life has said of slots cannot be compared with what another has:
 * as soon as we know the new slots of anybody, those who have only old ones wait until they are told. */
#include "base/assert.h"
#include "base/units.h"
#include "pl/inside.h"

#define ALL_SLOTS UINT64_MAX

static uint64_t life_of(const struct run *r) {
    return r->version >> 32;
}

static uint64_t newest_life(const struct pl *p) {
    uint64_t newest = 0;
    RUNS_EACH (r, p)
        if (r->state != RUN_ENDED && life_of(r) > newest)
            newest = life_of(r);
    return newest;
}

static uint64_t slots_of(const struct pl *p, const struct run *r) {
    if (r->slots == 0)
        return ALL_SLOTS;
    return life_of(r) < p->gang.life ? 0 : r->slots;
}

/* Has it anything to do if it may? Not what has ended but for its offspring, nor what its user holds. */
static bool wants(const struct run *r) {
    bool lives = (r->state == RUN_STARTED && r->left > 0) || (r->state == RUN_READY && r->due);
    return lives && !r->suspended && !r->killing;
}

static uint64_t wanted(const struct pl *p) {
    uint64_t any = 0;
    RUNS_EACH (r, p)
        if (wants(r))
            any |= slots_of(p, r);
    return any;
}

/* Slots in which all could run together. */
static uint64_t common(const struct pl *p) {
    uint64_t all = ALL_SLOTS;
    RUNS_EACH (r, p)
        if (wants(r))
            all &= slots_of(p, r);
    return all;
}

/* The next slot from `slot` on, round and round, that is among these. */
static uint8_t next_of(uint64_t slots, uint8_t slot) {
    uint32_t from = slot % GANG_SLOTS_MAX;
    uint64_t turned = from == 0 ? slots : slots >> from | slots << (GANG_SLOTS_MAX - from);
    return (uint8_t)((from + (uint32_t)__builtin_ctzll(turned)) % GANG_SLOTS_MAX);
}

/* What runs here. That a gang has a turn and nothing to do on this node does not mean that others may run:
 * their other parts do not. But if it has just ended here, they need not wait for the manager to notice. */
static uint8_t choose(const struct pl *p) {
    const struct gang *g = &p->gang;
    uint64_t any = wanted(p), all = common(p);
    if (!g->heard || g->slot == GANG_ALL)
        return any == 0 ? g->now : next_of(all != 0 ? all : any, g->now);
    if (g->over && any != 0 && !(any >> g->slot & 1))
        return next_of(any, g->slot);
    return g->slot;
}

static bool may_run(const struct pl *p, const struct run *r) {
    return slots_of(p, r) >> p->gang.now & 1;
}

/* What is being ended is not held any more: that would only put off its end. */
static void hold(struct pl *p, struct run *r, bool still, struct effects *out) {
    if (r->state != RUN_STARTED || r->empty || r->still == still ||
        (still && (r->killing || r->left == 0)))
        return;
    r->still = still;
    struct effect *e = effects_add(out, EFFECT_GROUP_FREEZE);
    e->group.group = run_group(p, r);
    e->group.value = still;
}

static void start(struct pl *p, struct run *r, struct effects *out) {
    r->due = false;
    r->state = RUN_STARTED;
    struct effect *e = effects_add(out, EFFECT_GROUP_START);
    e->group.group = run_group(p, r);
    e->group.value = r->slots != 0;
    hold(p, r, r->suspended, out);
}

void gang_settle(struct pl *p, struct effects *out) {
    p->gang.life = newest_life(p);
    p->gang.now = choose(p);
    RUNS_EACH (r, p)
        if (!may_run(p, r) || r->suspended)
            hold(p, r, true, out);
    RUNS_EACH (r, p)
        if (may_run(p, r) && !r->suspended)
            hold(p, r, false, out);
    RUNS_EACH (r, p)
        if (r->state == RUN_READY && r->due && may_run(p, r))
            start(p, r, out);
}

void gang_left(struct pl *p, const struct run *r, struct effects *out) {
    struct gang *g = &p->gang;
    if (g->heard && g->slot != GANG_ALL && (slots_of(p, r) >> g->slot & 1))
        g->over = true;
    gang_settle(p, out);
}

/* Real-time priority is for those who need it: between turns that are not followed by others none is. */
static void hurry(struct pl *p, bool prompt, struct effects *out) {
    if (p->gang.prompt == prompt)
        return;
    p->gang.prompt = prompt;
    effects_add(out, EFFECT_PROMPT)->prompt = prompt;
}

/* Numbers ascend by one in an epoch, whose number is above them. */
static uint32_t gap(uint64_t before, uint64_t number) {
    bool follows = before != 0 && before >> STROBE_EPOCH_SHIFT == number >> STROBE_EPOCH_SHIFT;
    uint64_t missed = follows ? number - before - 1 : 0;
    return missed > UINT32_MAX ? UINT32_MAX : (uint32_t)missed;
}

/* ---- turns that need no strobe ---- */

/* Whoever is in the cycle has its turn a quantum after the one before, by our own clock: between strobes nobody need be woken
 * but us. The grid is the strobe's, so nodes agree; who is late takes the turn that is on by now. */
static void advance(struct gang *g, uint64_t now) {
    if (g->cycle == 0 || now < g->next_at)
        return;
    uint64_t turns = (now - g->next_at) / g->quantum + 1;
    g->next_at += turns * g->quantum;
    for (turns %= (uint64_t)__builtin_popcountll(g->cycle); turns > 0; turns--)
        g->slot = next_of(g->cycle, (uint8_t)((g->slot + 1) % GANG_SLOTS_MAX));
    g->over = false;
}

static void begin_cycle(struct gang *g, const struct message_turn *m, uint64_t from) {
    bool turns = m->slot != GANG_ALL && m->quantum_us >= GANG_QUANTUM_LEAST_US &&
                 (m->cycle & (m->cycle - 1)) != 0;
    g->cycle = turns ? m->cycle : 0;
    g->quantum = m->quantum_us * NS_PER_US;
    g->next_at = turns ? from - (m->spent_ns < from ? m->spent_ns : 0) + g->quantum : 0;
}

void gang_slice(struct pl *p, uint64_t now, struct effects *out) {
    struct gang *g = &p->gang;
    bool due = g->cycle != 0 && now >= g->next_at;
    advance(g, now);
    if (due)
        gang_settle(p, out);
    effects_timer(out, TIMER_SLICE, g->next_at);
}

/* ---- strobes ---- */

void gang_turn(struct pl *p, const struct message_turn *m, uint64_t from, uint64_t now,
               struct effects *out) {
    struct gang *g = &p->gang;
    if (g->heard && m->number <= g->number)
        return;
    g->missed += gap(g->number, m->number);
    g->number = m->number;
    g->slot = m->slot;
    g->heard = true;
    g->over = false;
    begin_cycle(g, m, from);
    advance(g, now);
    gang_settle(p, out);
    effects_timer(out, TIMER_SLICE, g->next_at);
    hurry(p, m->slot != GANG_ALL && m->quantum_us > 0, out);
    if (!m->tell)
        return;
    g->tell = *m;
    g->heard_at = now;
    effects_timer(out, TIMER_TURNED,
                  now + 1); /* when all this is done, and the clock is read again */
}

/* By a way of its own, past the manager; the world has seen that it is the root's. Its body is as say_all's. Within one
 * machine there is one clock: the turn began when it was sent. From another: now. */
void gang_strobe(struct pl *p, const struct input_strobe *in, uint64_t now, struct effects *out) {
    union message m;
    if (in->channel != CHANNEL_TURN || in->body.len < 2 || load_le16(in->body.at) != MESSAGE_TURN ||
        message_decode(MESSAGE_TURN, bytes_of(in->body.at + 2, in->body.len - 2), NULL, &m) < 0)
        return;
    m.turn.number = in->number;
    uint64_t from = in->far || m.turn.sent_ns > now ? now : m.turn.sent_ns;
    gang_turn(p, &m.turn, from, now, out);
}

void gang_slots(struct pl *p, const struct message_slots *m, struct effects *out) {
    for (size_t at = 0; at < m->rows.len; at += SLOTS_ROW_BYTES) {
        struct run *r = runs_find(p, load_le64(m->rows.at + at));
        if (r == NULL || m->version < r->version)
            continue;
        r->slots = load_le64(m->rows.at + at + 8);
        r->version = m->version;
    }
    gang_settle(p, out);
}

void gang_told(struct pl *p, uint64_t now, struct effects *out) {
    struct gang *g = &p->gang;
    uint64_t took = now - g->heard_at;
    union message m = {.turned = {.number = g->tell.number,
                                  .slot = g->tell.slot,
                                  .means = (uint8_t)p->config.means,
                                  .prompt = p->config.prompt,
                                  .sent_ns = g->tell.sent_ns,
                                  .at_ns = now,
                                  .took_ns = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took,
                                  .missed = g->missed}};
    g->missed = 0;
    pl_send(p, MESSAGE_TURNED, &m, (struct bytes){0}, out);
}
