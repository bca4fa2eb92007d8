/* SPDX-License-Identifier: MIT */
/* Things that are alike, together: see fold.h. */
#include "cli/fold.h"

#include <errno.h>
#include <stdlib.h>

/* Groups by the hash of what they have in common: one more than the number of a group, 0: free. More than half are. */
struct finder {
    uint32_t *slots;
    uint32_t mask;
};

static uint32_t slots_for(uint32_t things) {
    uint32_t n = 4;
    while (n / 2 < things)
        n *= 2;
    return n;
}

/* Where its group is, or may be. */
static uint32_t *slot_of(const struct fold *f, const struct finder *by,
                         const struct fold_rule *rule, uint32_t thing, uint64_t hash) {
    for (uint32_t at = (uint32_t)hash & by->mask;; at = (at + 1) & by->mask) {
        uint32_t *slot = &by->slots[at];
        if (*slot == 0)
            return slot;
        const struct fold_group *g = &f->groups[*slot - 1];
        if (g->hash == hash && rule->alike(rule->context, g->first, thing))
            return slot;
    }
}

static void add(struct fold *f, uint32_t *slot, uint32_t thing, uint64_t hash) {
    f->next[thing] = FOLD_NONE;
    if (*slot == 0) {
        f->groups[f->count] =
            (struct fold_group){.hash = hash, .first = thing, .last = thing, .count = 1};
        *slot = ++f->count;
        return;
    }
    struct fold_group *g = &f->groups[*slot - 1];
    f->next[g->last] = thing;
    g->last = thing;
    g->count++;
}

int fold_make(struct fold *ret, uint32_t things, const struct fold_rule *rule) {
    uint32_t slots = slots_for(things);
    struct finder by = {.slots = calloc(slots, sizeof *by.slots), .mask = slots - 1};
    *ret = (struct fold){.groups = calloc((size_t)things + 1, sizeof *ret->groups),
                         .next = calloc((size_t)things + 1, sizeof *ret->next)};
    bool good = by.slots != NULL && ret->groups != NULL && ret->next != NULL;
    for (uint32_t i = 0; good && i < things; i++) {
        uint64_t hash = rule->hash(rule->context, i);
        add(ret, slot_of(ret, &by, rule, i, hash), i, hash);
    }
    free(by.slots);
    if (!good)
        fold_fini(ret);
    return good ? 0 : -ENOMEM;
}

void fold_fini(struct fold *f) {
    free(f->groups);
    free(f->next);
    *f = (struct fold){0};
}
