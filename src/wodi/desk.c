/* SPDX-License-Identifier: MIT */
/* The desk: memory, inputs, and what follows from them. */
#include "wodi/desk.h"

#include <errno.h>

#include "base/arena.h"
#include "wodi/desk_inside.h"
#include "wodi/order.h"

enum { LOOK_NS = 20000000 }; /* how often it is looked for who is late */

void desk_usual(struct desk_limits *l) {
    *l = (struct desk_limits){.links = 1100,
                              .masters = 8,
                              .workers = 1024,
                              .steps = 65536,
                              .history = 65536,
                              .bytes = 256 << 20,
                              .results_ahead = 1024,
                              .steps_ahead = 64,
                              .ahead_ns = 2000000,
                              .worker_unsent = 4 << 20,
                              .ping_ns = 5000000000,
                              .silent_ns = 30000000000};
}

static uint32_t power_above(uint32_t n) {
    uint32_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static uint64_t blocks_in_all(const struct desk_limits *l) {
    uint64_t each = l->bytes / BLOCK_DATA + 2 + 4 * blocks_for(WORD_BODY_MAX);
    return each * l->masters;
}

bool desk_fits(const struct desk_limits *l) {
    return blocks_in_all(l) < UINT32_MAX;
}

static void carve_masters(struct desk *d, const struct desk_limits *l, struct arena *a) {
    struct session *all = ARENA_TAKE(a, struct session, l->masters);
    for (uint32_t i = 0; i < l->masters; i++) {
        struct range *ranges = ARENA_TAKE(a, struct range, 2 * l->steps + 2);
        struct heap_item **items = ARENA_TAKE(a, struct heap_item *, l->steps);
        uint64_t *ns = ARENA_TAKE(a, uint64_t, l->history);
        if (!d)
            continue;
        all[i].done = (struct ranges){.at = ranges, .cap = 2 * l->steps + 2};
        heap_init(&all[i].waiting, items, l->steps);
        all[i].history = (struct history){.ns = ns, .cap = l->history};
        list_init(&all[i].results);
    }
    if (d)
        d->sessions = all;
}

static void carve_workers(struct desk *d, const struct desk_limits *l, struct arena *a) {
    struct worker *all = ARENA_TAKE(a, struct worker, l->workers);
    struct told *told = ARENA_TAKE(a, struct told, (size_t)l->workers * l->masters);
    struct errand_at *steps = ARENA_TAKE(a, struct errand_at, (size_t)l->workers * l->steps_ahead);
    if (!d)
        return;
    d->workers = all;
    for (uint32_t i = 0; i < l->workers; i++) {
        all[i].told = told + (size_t)i * l->masters;
        all[i].steps = steps + (size_t)i * l->steps_ahead;
    }
}

/* Measures if the arena does. */
static struct desk *carve(struct arena *a, const struct desk_limits *l) {
    uint32_t steps = l->masters * l->steps, table = power_above(2 * steps);
    struct desk *d = ARENA_TAKE(a, struct desk, 1);
    struct step *step_at = ARENA_TAKE(a, struct step, steps);
    uint32_t *ids = arena_take(a, idtable_bytes(steps), alignof(uint32_t));
    uint32_t *index = ARENA_TAKE(a, uint32_t, table);
    struct peer_link *links = ARENA_TAKE(a, struct peer_link, l->links);
    uint8_t *scratch = ARENA_TAKE(a, uint8_t, WORD_BODY_MAX);
    struct blocks pool;
    blocks_init(&pool, (uint32_t)blocks_in_all(l), a);
    if (d) {
        d->limits = *l;
        d->steps = step_at;
        d->index = index;
        d->index_mask = table - 1;
        d->links = links;
        d->scratch = scratch;
        d->pool = pool;
        d->quota = (uint32_t)(l->bytes / 2 / BLOCK_DATA);
        d->version = 1;
        idtable_init(&d->ids, steps, ids);
    }
    carve_masters(d, l, a);
    carve_workers(d, l, a);
    return d;
}

size_t desk_bytes(const struct desk_limits *l) {
    struct arena a;
    arena_init(&a, NULL, 0);
    carve(&a, l);
    return arena_used(&a);
}

struct desk *desk_init(void *mem, const struct desk_limits *l) {
    struct arena a;
    ASSERT(l->masters > 0 && l->masters <= DESK_MASTERS_MAX &&
           l->bytes >= 4 * (uint64_t)WORD_BODY_MAX);
    ASSERT(l->masters * l->steps <= IDTABLE_CAP_MAX);
    arena_init(&a, mem, desk_bytes(l));
    return carve(&a, l);
}

/* ---- helpers of its files ---- */

uint32_t desk_slot_of(const struct desk *d, const struct session *s) {
    return (uint32_t)(s - d->sessions);
}

void desk_log(struct desk *d, const struct word *w, struct deeds *out) {
    deeds_log(out, w);
    d->records++;
}

static void let_go(struct desk *d, uint32_t link) {
    struct peer_link *l = &d->links[link];
    enum peer peer = (enum peer)l->peer;
    l->peer = PEER_NONE;
    l->answering = false;
    if (peer == PEER_MASTER)
        desk_master_gone(d, &d->sessions[l->index]);
    else if (peer == PEER_WORKER)
        desk_worker_gone(d, &d->workers[l->index]);
}

void desk_refuse(struct desk *d, uint32_t link, uint32_t status, struct deeds *out) {
    struct word w = {.kind = (uint8_t)WORD_REFUSED, .status = status};
    deeds_send(out, link, &w);
    deeds_close(out, link);
    let_go(d, link);
}

/* ---- inputs ---- */

void desk_up(struct desk *d, uint32_t link, bool local, uint64_t now) {
    (void)now;
    ASSERT(link < d->limits.links);
    d->links[link] = (struct peer_link){.peer = (uint8_t)PEER_STRANGER, .local = local};
}

static void stranger_heard(struct desk *d, uint32_t link, const struct word *w, uint64_t now,
                           struct deeds *out) {
    bool hello = w->kind == WORD_MASTER || w->kind == WORD_WORKER;
    if (!hello || ((w->token[0] ^ d->limits.token[0]) | (w->token[1] ^ d->limits.token[1])) != 0)
        desk_refuse(d, link, hello ? EACCES : EPROTO, out);
    else if (w->kind == WORD_MASTER)
        desk_master_hello(d, link, w, out);
    else
        desk_worker_hello(d, link, w, now, out);
}

void desk_heard(struct desk *d, uint32_t link, const struct word *w, uint64_t now,
                struct deeds *out) {
    ASSERT(deeds_room(out) >= DESK_ROOM);
    switch ((enum peer)d->links[link].peer) {
    case PEER_STRANGER:
        stranger_heard(d, link, w, now, out);
        break;
    case PEER_MASTER:
        desk_master_heard(d, link, w, now, out);
        break;
    case PEER_WORKER:
        desk_worker_heard(d, link, w, now, out);
        break;
    case PEER_NONE:
        break;
    }
}

void desk_down(struct desk *d, uint32_t link, uint64_t now) {
    (void)now;
    let_go(d, link);
}

void desk_drained(struct desk *d, uint32_t link) {
    if (d->links[link].peer == PEER_WORKER)
        d->workers[d->links[link].index].unsent = 0;
}

void desk_durable(struct desk *d, uint64_t records) {
    ASSERT(records <= d->records);
    d->durable = records;
}

static void look_after(struct desk *d, struct worker *k, uint64_t now, struct deeds *out) {
    uint64_t silent = now > k->heard ? now - k->heard : 0;
    if (k->count > 0 || k->rests || silent < d->limits.ping_ns || !room_for_one(out))
        return; /* who executes a step, or stands still, may be silent */
    if (!k->pinged) {
        struct word w = {.kind = (uint8_t)WORD_PING};
        deeds_send(out, k->link, &w);
        k->pinged = true;
        k->heard = now - d->limits.ping_ns; /* it has the whole time to answer */
    } else if (silent >= d->limits.ping_ns + d->limits.silent_ns) {
        desk_refuse(d, k->link, ETIMEDOUT, out);
    }
}

void desk_time(struct desk *d, uint64_t now, struct deeds *out) {
    for (uint32_t i = 0; i < d->workers_end; i++)
        if (d->workers[i].used)
            look_after(d, &d->workers[i], now, out);
    if (d->waiting == 0 && d->running > 0)
        desk_deal_copies(d, now, out);
}

uint64_t desk_deadline(const struct desk *d, uint64_t now) {
    uint64_t held = 0;
    for (uint32_t i = 0; i < d->limits.masters && d->waiting > 0; i++) {
        const struct session *s = &d->sessions[i];
        if (s->used && s->hold_until > now && (held == 0 || s->hold_until < held))
            held = s->hold_until;
    }
    if (held)
        return held;
    if (d->waiting == 0 && d->running > 0 && d->worker_count > 1)
        return now + LOOK_NS;
    return d->worker_count > 0 ? now + d->limits.ping_ns / 2 : 0;
}

static bool pump_answers(struct desk *d, struct deeds *out) {
    for (uint32_t i = 0; i < d->limits.links; i++) {
        struct peer_link *l = &d->links[i];
        if (!l->answering || l->peer == PEER_NONE || l->answer_ticket > d->durable)
            continue;
        if (!room_for_one(out))
            return true;
        struct word w = {.kind = (uint8_t)WORD_ANSWER, .status = l->answer};
        deeds_send(out, i, &w);
        l->answering = false;
    }
    return false;
}

bool desk_pump(struct desk *d, uint64_t now, struct deeds *out) {
    bool more = pump_answers(d, out);
    for (uint32_t i = 0; i < d->workers_end; i++)
        more = desk_worker_catch_up(d, &d->workers[i], now, out) || more;
    more = desk_deal(d, now, out) || more;
    for (uint32_t i = 0; i < d->limits.masters; i++)
        more = desk_master_pump(d, &d->sessions[i], out) || more;
    return more;
}

/* ---- for the world ---- */

/* In a cycle that is told again from the journal what arrived before may be forgotten. */
static uint64_t steps_of_cycle(const struct session *s) {
    uint64_t steps = s->cycle == 0 || s->arrived < s->steps ? s->steps : s->arrived;
    return s->cycle > 0 && s->cycle_steps > steps ? s->cycle_steps : steps;
}

bool desk_master(const struct desk *d, uint32_t slot, struct desk_master *ret) {
    const struct session *s = &d->sessions[slot];
    *ret = (struct desk_master){.name = bytes_of(s->name, s->name_len),
                                .cookie = s->cookie,
                                .cycle = s->cycle,
                                .acked = s->acked,
                                .steps = s->steps,
                                .running = s->running,
                                .here = s->link != 0,
                                .cycle_steps = steps_of_cycle(s)};
    return s->used;
}

void desk_master_acked(struct desk *d, uint32_t slot, uint64_t seq, struct deeds *out) {
    struct session *s = &d->sessions[slot];
    if (seq > s->seq)
        seq = s->seq;
    if (!s->used || seq <= s->acked)
        return;
    desk_session_ack(d, s, seq);
    struct word log = {.kind = (uint8_t)WORD_LOG_ACK, .session = s->number, .seq = seq};
    desk_log(d, &log, out);
}

struct history *desk_history(struct desk *d, uint32_t slot) {
    return &d->sessions[slot].history;
}

uint64_t desk_changes(const struct desk *d) {
    return d->changes;
}

/* Falling; insertion would be quadratic. */
static void sort_falling(uint64_t *at, uint32_t count) {
    for (uint32_t gap = count / 2; gap > 0; gap /= 2)
        for (uint32_t i = gap; i < count; i++) {
            uint64_t v = at[i];
            uint32_t j = i;
            for (; j >= gap && at[j - gap] < v; j -= gap)
                at[j] = at[j - gap];
            at[j] = v;
        }
}

static uint32_t at_most(uint32_t n, uint64_t most) {
    return n < most ? n : (uint32_t)most;
}

uint32_t desk_wanted(const struct desk *d, uint32_t slot, uint32_t class, uint64_t *scratch) {
    const struct session *s = &d->sessions[slot];
    if (!s->used || class >= s->classes)
        return 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < s->history.end; i++)
        if (s->history.ns[i] > 0)
            scratch[known++] = s->history.ns[i];
    if (!s->fewest || class > 0 || known == 0)
        return at_most(s->needs[class], steps_of_cycle(s));
    sort_falling(scratch, known);
    return at_most(order_fewest(scratch, known, scratch + d->limits.history), steps_of_cycle(s));
}

void desk_host_rests(struct desk *d, uint64_t host, bool rests) {
    for (uint32_t i = 0; i < d->workers_end; i++)
        if (d->workers[i].used && d->workers[i].host == host)
            d->workers[i].rests = rests;
}

void desk_host_gone(struct desk *d, uint64_t host, struct deeds *out) {
    for (uint32_t i = 0; i < d->workers_end; i++)
        if (d->workers[i].used && d->workers[i].host == host && room_for_one(out))
            desk_refuse(d, d->workers[i].link, ECONNRESET, out);
}

bool desk_host_busy(const struct desk *d, uint64_t host) {
    for (uint32_t i = 0; i < d->workers_end; i++)
        if (d->workers[i].used && d->workers[i].host == host && d->workers[i].count > 0)
            return true;
    return false;
}

uint64_t desk_results(const struct desk *d, uint32_t class) {
    return d->results[class];
}

uint32_t desk_workers(const struct desk *d) {
    return d->worker_count;
}

uint64_t desk_kept_bytes(const struct desk *d) {
    return (uint64_t)d->pool.used * BLOCK_BYTES;
}
