/* SPDX-License-Identifier: MIT */
/* A master-workers program in virtual time: see fieldwork.h. */
#include "sim/fieldwork.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/random.h"
#include "base/units.h"
#include "wodi/desk.h"
#include "wodi/order.h"

/* Links: the master, then workers. */
enum {
    MASTER,
    FIRST,
    LINKS = FIRST + FIELDWORK_WORKERS_MAX,
    DEEDS_BYTES = 6 * DEED_MAX,
    AHEAD = 64
};
#define NEVER UINT64_MAX

struct hand {
    bool here, busy;
    uint32_t ids[AHEAD]; /* of steps that it was given, the first is at work */
    uint64_t numbers[AHEAD];
    uint32_t count;
    uint64_t came_ns, began_ns, until_ns;
};

struct field {
    const struct fieldwork_plan *plan;
    fieldwork_seen *seen;
    void *context;
    struct desk_limits limits;
    struct desk *desk;
    struct deeds deeds;
    struct random lengths, fate; /* apart, so that the same steps meet other fates */
    uint64_t now, records, acked;
    uint64_t next_add, next_loss;
    bool done[FIELDWORK_STEPS_MAX + 1];
    struct hand hands[LINKS];
    struct fieldwork_outcome outcome;
};

static void tell(struct field *f, enum fieldwork_event event, uint32_t link) {
    const struct hand *h = &f->hands[link];
    if (f->seen != NULL)
        f->seen(f->context, event, link - FIRST, h->busy ? h->numbers[0] : 0,
                h->busy ? h->began_ns : f->now, f->now);
}

/* ---- the desk ---- */

static void hear(struct field *f, uint32_t link, const struct word *w) {
    struct hand *h = &f->hands[link];
    if (w->kind == WORD_DELIVER) {
        f->acked = w->seq;
        f->done[w->step] = true;
        f->outcome.delivered++;
        f->outcome.cpu_ns +=
            w->ns; /* of a step that was late and had a copy only the first counts */
    } else if (w->kind == WORD_STEP) {
        ASSERT(h->count < AHEAD);
        h->ids[h->count] = w->id;
        h->numbers[h->count++] = w->step;
    }
}

static void settle(struct field *f) {
    for (bool more = true; more;) {
        struct deed deed;
        struct word w;
        more = desk_pump(f->desk, f->now, &f->deeds);
        for (size_t at = 0; deeds_next(&f->deeds, &at, &deed);) {
            if (deed.kind == DEED_LOG) {
                f->records++;
                more = true;
            } else if (deed.kind == DEED_SEND && word_next(deed.bytes, &w) > 0) {
                hear(f, deed.link, &w);
            }
        }
        f->deeds.len = 0;
        desk_durable(f->desk, f->records);
    }
    for (uint32_t link = 0; link < LINKS; link++)
        if (link == MASTER || f->hands[link].here)
            desk_drained(f->desk, link);
}

static void say(struct field *f, uint32_t link, struct word w) {
    desk_heard(f->desk, link, &w, f->now, &f->deeds);
    settle(f);
}

/* ---- workers ---- */

/* The first of its steps is at work. */
static void take_up(struct field *f, struct hand *h) {
    if (h->busy || h->count == 0)
        return;
    const struct fieldwork_plan *p = f->plan;
    uint64_t ns = p->ns[h->numbers[0] - 1];
    uint64_t part = random_between(&f->lengths, 10000 - p->vary, 10000 + p->vary);
    h->busy = true;
    h->began_ns = f->now;
    h->until_ns = f->now + ns * part / 10000;
}

static void come(struct field *f, uint32_t link) {
    f->hands[link] = (struct hand){.here = true, .came_ns = f->now};
    desk_up(f->desk, link, true, f->now);
    say(f, link, (struct word){.kind = (uint8_t)WORD_WORKER});
    tell(f, FIELDWORK_COMES, link);
}

static void leave(struct field *f, uint32_t link) {
    struct hand *h = &f->hands[link];
    f->outcome.occupancy_ns += f->now - h->came_ns;
    h->here = h->busy = false;
    h->count = 0;
}

static void lose(struct field *f, uint32_t link) {
    tell(f, FIELDWORK_LOST, link);
    leave(f, link);
    f->outcome.losses++;
    desk_down(f->desk, link, f->now);
    settle(f);
}

static void finish(struct field *f, uint32_t link) {
    struct hand *h = &f->hands[link];
    struct word w = {.kind = (uint8_t)WORD_RESULT, .id = h->ids[0], .ns = f->now - h->began_ns};
    tell(f, FIELDWORK_DONE, link);
    h->busy = false;
    h->count--;
    memmove(h->ids, h->ids + 1, h->count * sizeof *h->ids);
    memmove(h->numbers, h->numbers + 1, h->count * sizeof *h->numbers);
    say(f, link, w);
}

/* ---- fate ---- */

static uint64_t draw(struct field *f, uint64_t mean_ns) {
    return mean_ns > 0 ? f->now + random_below(&f->fate, 2 * mean_ns) + 1 : NEVER;
}

/* The so-manieth worker that is here, or place that is free; LINKS: there is none. */
static uint32_t nth(const struct field *f, bool here, uint32_t n) {
    uint32_t end = FIRST + f->plan->workers_max;
    for (uint32_t link = FIRST; link < end; link++)
        if (f->hands[link].here == here && n-- == 0)
            return link;
    return LINKS;
}

static uint32_t count_here(const struct field *f) {
    uint32_t count = 0;
    for (uint32_t link = FIRST; link < LINKS; link++)
        count += f->hands[link].here;
    return count;
}

static void fate(struct field *f) {
    uint32_t link;
    if (f->now >= f->next_add) {
        link = nth(f, false, 0);
        f->next_add = draw(f, f->plan->add_ns);
        if (link < LINKS) {
            f->outcome.adds++;
            come(f, link);
        }
    }
    if (f->now >= f->next_loss) {
        uint32_t here = count_here(f);
        f->next_loss = draw(f, f->plan->lose_ns);
        if (here > 1) /* it would wait for ever, or for the next */
            lose(f, nth(f, true, (uint32_t)random_below(&f->fate, here)));
    }
}

/* ---- cycles ---- */

static bool all_done(const struct field *f) {
    for (uint32_t i = 1; i <= f->plan->steps; i++)
        if (!f->done[i])
            return false;
    return true;
}

/* The worker that ends its step next, if that comes before all else; the clock moves on. */
static uint32_t advance(struct field *f) {
    uint32_t next = LINKS;
    uint64_t at = f->next_add < f->next_loss ? f->next_add : f->next_loss;
    uint64_t due = desk_deadline(f->desk, f->now);
    if (due != 0 && due < at)
        at = due > f->now ? due : f->now + 1;
    for (uint32_t link = FIRST; link < LINKS; link++) {
        take_up(f, &f->hands[link]);
        if (f->hands[link].busy && f->hands[link].until_ns <= at) {
            next = link;
            at = f->hands[link].until_ns;
        }
    }
    ASSERT(at != NEVER);
    f->now = at;
    return next;
}

static void run_cycle(struct field *f, uint64_t cycle) {
    memset(f->done, 0, sizeof f->done);
    say(f, MASTER,
        (struct word){.kind = (uint8_t)WORD_BEGIN, .cycle = cycle, .count = f->plan->steps});
    for (uint64_t step = 1; step <= f->plan->steps; step++)
        say(f, MASTER, (struct word){.kind = (uint8_t)WORD_WORK, .cycle = cycle, .step = step});
    while (!all_done(f)) {
        uint32_t link = advance(f);
        if (link < LINKS)
            finish(f, link);
        fate(f);
        desk_time(f->desk, f->now, &f->deeds);
        settle(f);
    }
    say(f, MASTER, (struct word){.kind = (uint8_t)WORD_END, .cycle = cycle, .seq = f->acked});
}

static bool make(struct field *f) {
    desk_usual(&f->limits);
    f->limits.links = LINKS;
    f->limits.masters = 1;
    f->limits.workers = FIELDWORK_WORKERS_MAX;
    f->limits.steps = f->limits.history = FIELDWORK_STEPS_MAX + 1;
    f->limits.bytes = 4 * WORD_BODY_MAX;
    f->limits.steps_ahead = AHEAD;
    f->limits.in_order = f->plan->in_order;
    f->limits.no_copies = f->plan->no_copies;
    f->limits.silent_ns = NEVER / 4; /* nobody here is silent */
    f->limits.ping_ns = NEVER / 4;
    void *memory = calloc(1, desk_bytes(&f->limits));
    f->deeds = (struct deeds){.at = malloc(DEEDS_BYTES), .cap = DEEDS_BYTES};
    f->desk = memory != NULL ? desk_init(memory, &f->limits) : NULL;
    return f->desk != NULL && f->deeds.at != NULL;
}

static void enter(struct field *f) {
    uint8_t room[64];
    struct profile p = {.classes = 1, .needs = {f->plan->workers}, .fewest = true};
    size_t len = profile_write(&p, room_of(room, sizeof room));
    desk_up(f->desk, MASTER, true, f->now);
    say(f, MASTER,
        (struct word){.kind = (uint8_t)WORD_MASTER,
                      .flag = (uint8_t)SPEED_BY_CLASS,
                      .name = bytes_from_str("field"),
                      .body = bytes_of(room, len)});
}

static void run(struct field *f) {
    static uint64_t scratch[2 * (FIELDWORK_STEPS_MAX + 1)];
    f->now = 1;
    random_init(&f->lengths, f->plan->seed);
    f->fate = random_fork(&f->lengths, 1);
    enter(f);
    for (uint32_t i = 0; i < f->plan->workers; i++)
        come(f, FIRST + i);
    f->next_add = draw(f, f->plan->add_ns);
    f->next_loss = draw(f, f->plan->lose_ns);
    for (uint64_t cycle = 1; cycle <= f->plan->cycles; cycle++)
        run_cycle(f, cycle);
    for (uint32_t link = FIRST; link < LINKS; link++)
        if (f->hands[link].here)
            leave(f, link);
    f->outcome.ns = f->now - 1;
    f->outcome.wanted = desk_wanted(f->desk, 0, 0, scratch);
}

bool fieldwork_run(const struct fieldwork_plan *p, fieldwork_seen *seen, void *context,
                   struct fieldwork_outcome *ret) {
    struct field *f = calloc(1, sizeof *f);
    if (f == NULL)
        return false;
    ASSERT(p->workers > 0 && p->workers <= p->workers_max &&
           p->workers_max <= FIELDWORK_WORKERS_MAX && p->steps <= FIELDWORK_STEPS_MAX);
    f->plan = p;
    f->seen = seen;
    f->context = context;
    bool good = make(f);
    if (good)
        run(f);
    *ret = f->outcome;
    free(f->desk);
    free(f->deeds.at);
    free(f);
    return good;
}

/* ---- the paper's workload ---- */

enum { PAPER_STEPS = 31, PAPER_CYCLES = 35, PAPER_LONGEST = 27, SHARES = 155 };
#define PAPER_CYCLE_NS (91 * 60 * NS_PER_S)

/* As scattered as in figure 6; the longest comes late in the master's own order. */
void fieldwork_paper(struct fieldwork_plan *p, uint32_t workers) {
    struct random random;
    uint64_t shares[PAPER_STEPS], sum = 0;
    uint64_t longest = PAPER_CYCLE_NS * 10 / SHARES;
    *p = (struct fieldwork_plan){.steps = PAPER_STEPS,
                                 .cycles = PAPER_CYCLES,
                                 .vary = 200,
                                 .workers = workers,
                                 .workers_max = workers,
                                 .seed = 1};
    random_init(&random, PAPER_STEPS);
    for (int i = 0; i < PAPER_STEPS; i++) {
        shares[i] = random_between(&random, 60, 900);
        sum += i != PAPER_LONGEST ? shares[i] : 0;
    }
    for (int i = 0; i < PAPER_STEPS; i++)
        p->ns[i] = i != PAPER_LONGEST ? (PAPER_CYCLE_NS - longest) / sum * shares[i] : longest;
}

static void sort_falling(uint64_t *ns, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        uint64_t v = ns[i];
        uint32_t at = i;
        for (; at > 0 && ns[at - 1] < v; at--)
            ns[at] = ns[at - 1];
        ns[at] = v;
    }
}

uint64_t fieldwork_bound(const struct fieldwork_plan *p, uint64_t workers_x1000) {
    uint64_t ns[FIELDWORK_STEPS_MAX], scratch[FIELDWORK_WORKERS_MAX + 1];
    uint32_t whole = (uint32_t)(workers_x1000 / 1000), part = (uint32_t)(workers_x1000 % 1000);
    ASSERT(whole > 0 && whole <= FIELDWORK_WORKERS_MAX);
    memcpy(ns, p->ns, p->steps * sizeof *ns);
    sort_falling(ns, p->steps);
    uint64_t low = order_makespan(ns, p->steps, whole, scratch);
    uint64_t high = part > 0 ? order_makespan(ns, p->steps, whole + 1, scratch) : low;
    return (low - (low - high) / 1000 * part) * p->cycles;
}
