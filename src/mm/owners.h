/* SPDX-License-Identifier: MIT */
/* Owners: people who work at machines that are nodes. */
#pragma once

#include "base/arena.h"
#include "base/nodeset.h"
#include "mm/mm.h"
#include "wire/owner.h"
#include "wire/row.h"

enum { OWNERS_MAX = 256 };

/* What tells of the owner of some nodes. */
struct owner_kept {
    uint32_t len, mark;
    char text[OWNER_TEXT_MAX];
};

struct owners {
    struct nodeset reclaimed; /* nodes whose owner is there */
    struct nodeset barred; /* and those where that is not known: nothing that is lent comes there */
    uint16_t *of; /* of nodes: one more than the place of what tells of an owner, 0: nobody is */
    struct owner_kept *kept;
    uint32_t count;
    bool untold; /* nodes may look for an owner that they do not have any more */
};

size_t owners_bytes(const struct mm_config *c);
void owners_init(struct mm *m, struct arena *a);
/* By the administrator. */
void owners_said(struct mm *m, const struct input_traits *in);
/* Nodes have told how they are. */
void owners_gathered(struct mm *m);
enum node_owner owners_of(const struct mm *m, uint32_t node);
