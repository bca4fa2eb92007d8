/* SPDX-License-Identifier: MIT */
/* Things that are alike, together: groups of them in the order of their first ones.
 *
 * Things are numbers from 0 on. Who folds them says which are alike and gives a hash that is the same for these: each is
 * looked up among the groups that there are, so ten thousand of them cost ten thousand hashes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FOLD_NONE UINT32_MAX

struct fold_rule {
    const void *context;
    uint64_t (*hash)(const void *context, uint32_t thing);
    bool (*alike)(const void *context, uint32_t a, uint32_t b);
};

struct fold_group {
    uint64_t hash;
    uint32_t first, last; /* as numbers of things; those between are behind fold.next */
    uint32_t count;
};

struct fold {
    struct fold_group *groups;
    uint32_t count;
    uint32_t *next; /* of each thing: the next of its group, ascending; FOLD_NONE behind the last */
};

/* -ENOMEM. */
int fold_make(struct fold *ret, uint32_t things, const struct fold_rule *rule);
void fold_fini(struct fold *f);

#define FOLD_EACH(thing, f, group) \
    for (uint32_t thing = (group)->first; thing != FOLD_NONE; thing = (f)->next[thing])
