/* SPDX-License-Identifier: MIT */
/* What a job wants of nodes: the same number of processors (PEs) on each, or on those of each of its sections; and so
 * much memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"

#define WANT_WHOLE 0 /* instead of a number of PEs: all of the node */

enum { COURT_SECTIONS_MAX = 8 };

/* A part of a job with a size of its own. Its parts run together, on different nodes. */
struct court_section {
    uint32_t nodes, ppn;         /* at least 1 */
    const struct nodeset *meets; /* have what this part needs; NULL: all do */
    const struct nodeset *only;  /* this part is on these; NULL: on any */
    uint32_t memory;             /* that it takes on each, in MiB */
};

struct want {
    uint32_t nodes;                /* at least 1; of all sections together */
    uint32_t ppn;                  /* PEs on each, at least 1; of sections the smallest */
    bool exclusive;                /* shares no node: takes all PEs of it */
    const struct nodeset *only;    /* NULL: any */
    const struct nodeset *meets;   /* have what it needs; NULL: all do */
    const struct nodeset *exclude; /* NULL: none */
    const struct nodeset *avoid;   /* not these now; NULL: none */
    const struct court_section *sections;
    uint32_t section_count; /* 0: it has none */
    uint32_t memory;        /* on each; of sections none, each has its own */
};

/* Will it have this node, as far as that is its own choice, and no section's? */
static inline bool want_chooses(const struct want *w, uint32_t node) {
    return (w->only == NULL || nodeset_has(w->only, node)) &&
           (w->meets == NULL || nodeset_has(w->meets, node)) &&
           (w->exclude == NULL || !nodeset_has(w->exclude, node)) &&
           (w->avoid == NULL || !nodeset_has(w->avoid, node));
}

/* What it takes of each, and gives back; of nodes of a section. */
static inline uint32_t want_each(const struct want *w) {
    return w->exclusive ? WANT_WHOLE : w->ppn;
}

static inline uint32_t want_each_of(const struct want *w, uint32_t section) {
    return w->exclusive ? WANT_WHOLE : w->section_count == 0 ? w->ppn : w->sections[section].ppn;
}

static inline uint32_t want_memory_of(const struct want *w, uint32_t section) {
    return w->section_count == 0 ? w->memory : w->sections[section].memory;
}

/* Who takes none of it may be anywhere, however little is left there. */
static inline bool want_has_memory(uint32_t memory, int64_t left) {
    return memory == 0 || (int64_t)memory <= left;
}
