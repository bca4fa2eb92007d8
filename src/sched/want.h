/* SPDX-License-Identifier: MIT */
/* What a job wants of nodes: the same number of processors (PEs) on each. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"

#define WANT_WHOLE 0 /* instead of a number of PEs: all of the node */

struct want {
    uint32_t nodes;                /* at least 1 */
    uint32_t ppn;                  /* PEs on each, at least 1 */
    bool exclusive;                /* shares no node: takes all PEs of it */
    const struct nodeset *only;    /* NULL: any */
    const struct nodeset *meets;   /* have what it needs; NULL: all do */
    const struct nodeset *exclude; /* NULL: none */
};

/* Will it have this node, as far as that is its own choice? */
static inline bool want_chooses(const struct want *w, uint32_t node) {
    return (w->only == NULL || nodeset_has(w->only, node)) &&
           (w->meets == NULL || nodeset_has(w->meets, node)) &&
           (w->exclude == NULL || !nodeset_has(w->exclude, node));
}

/* What it takes of each, and gives back. */
static inline uint32_t want_each(const struct want *w) {
    return w->exclusive ? WANT_WHOLE : w->ppn;
}
