/* SPDX-License-Identifier: MIT */
/* Where a job sits in the matrix; see seats.h. */
#include "sched/seats.h"

size_t seats_bytes(const struct storm_limits *l) {
    return sizeof(struct seats) + sizeof(uint64_t) * buddy_words(l->nodes);
}

void seats_init(void *self, struct storm_host *h) {
    struct seats *s = self;
    buddy_init(&s->buddy, storm_limits(h)->nodes, s->words);
}

/* Tells the tree of all nodes of a job; false if it has none. */
static bool load(struct seats *s, struct storm_host *h, const struct storm_job *j,
                 void (*tell)(struct buddy *, uint32_t, uint32_t, uint64_t)) {
    uint32_t last = 0, each = j->pes / j->nodes;
    bool some = false;
    for (uint32_t first = 0; (first = storm_span(h, j, first, &last)) != UINT32_MAX;
         first = last + 1) {
        tell(&s->buddy, first, last, each);
        some = true;
    }
    return some;
}

void seats_resumed(void *self, struct storm_host *h, const struct storm_job *j) {
    struct seats *s = self;
    (void)h;
    (void)j;
    s->exact = false;
}

/* One whose nodes are not known any more may have been in the tree. */
void seats_ended(void *self, struct storm_host *h, const struct storm_job *j) {
    struct seats *s = self;
    s->left = true;
    s->exact = s->exact && load(s, h, j, buddy_remove);
}

bool seats_wanted(struct storm_host *h) {
    for (uint32_t s = 0; s < storm_limits(h)->slots; s++)
        if (storm_candidate(h, NULL, s) != NULL)
            return true;
    return false;
}

void seats_look(struct seats *s, struct storm_host *h) {
    if (s->exact)
        return;
    s->exact = true;
    buddy_clear(&s->buddy);
    for (const struct storm_job *j = NULL; (j = storm_running(h, j)) != NULL;)
        load(s, h, j, buddy_note);
    buddy_reckon(&s->buddy);
}

/* Slots in which it may start somewhere, a bit each. */
static uint64_t slots_for(struct storm_host *h, const struct storm_job *j) {
    uint64_t slots = 0;
    for (uint32_t s = 0; s < storm_limits(h)->slots; s++)
        if (storm_may(h, j, s))
            slots |= (uint64_t)1 << s;
    return slots;
}

/* The lowest of them in which it fits on these nodes; false: none. */
static bool slot_in(struct storm_host *h, const struct storm_job *j, uint64_t slots,
                    struct seat *seat) {
    for (; slots != 0; slots &= slots - 1) {
        seat->slot = (uint32_t)__builtin_ctzll(slots);
        if (storm_fits_in(h, j, seat->slot, seat->first, seat->last))
            return true;
    }
    return false;
}

/* With so much to do a block has no room for the job, in no slot. */
static uint64_t too_much(struct storm_host *h, const struct storm_job *j, uint32_t level) {
    const struct storm_limits *l = storm_limits(h);
    uint64_t all = ((uint64_t)l->slots * l->pes_max) << level;
    return all < j->pes ? 0 : all - j->pes + 1;
}

bool seats_find(const struct seats *s, struct storm_host *h, const struct storm_job *j,
                struct seat *ret) {
    const struct buddy *b = &s->buddy;
    uint64_t slots = slots_for(h, j);
    if (slots == 0)
        return false;
    uint32_t level = buddy_level(b, j->nodes);
    uint64_t least = too_much(h, j, level);
    *ret = (struct seat){.slot = (uint32_t)__builtin_ctzll(slots), .last = UINT32_MAX};
    for (uint32_t i = 0; (i = buddy_below(b, level, i, least)) != BUDDY_NONE; i++) {
        struct seat seat = {.first = buddy_first(level, i), .last = buddy_last(b, level, i)};
        if (!slot_in(h, j, slots, &seat))
            continue;
        least = buddy_load(b, level, i);
        *ret = seat;
    }
    return true;
}

bool seats_start(struct seats *s, struct storm_host *h, const struct storm_job *j,
                 const struct seat *seat) {
    if (storm_start_in(h, j, seat->slot, seat->first, seat->last) < 0)
        return false;
    load(s, h, j, buddy_add);
    return true;
}

void seats_fill(struct seats *s, struct storm_host *h) {
    struct seat seat;
    for (const struct storm_job *j = NULL; (j = storm_queued(h, j)) != NULL;)
        if (seats_find(s, h, j, &seat) && !seats_start(s, h, j, &seat))
            return;
}

void seats_unify(struct seats *s, struct storm_host *h) {
    uint32_t slots = s->left ? storm_limits(h)->slots : 0;
    s->left = false;
    for (uint32_t a = 0; a < slots; a++)
        for (uint32_t b = a + 1; b < slots; b++)
            storm_merge(h, a, b);
}
