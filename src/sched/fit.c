/* SPDX-License-Identifier: MIT */
/* Which nodes for which sections: see fit.h. */
#include "sched/fit.h"

#include <string.h>

#include "base/assert.h"

void fit_init(struct fit *f, const struct want *w) {
    f->sections = w->section_count > 0 ? w->section_count : 1;
    ASSERT(f->sections <= COURT_SECTIONS_MAX);
    f->masks = (uint32_t)1 << f->sections;
    f->nodes = w->nodes;
    f->count = 0;
    memset(f->have, 0, sizeof f->have[0] * f->masks);
    for (uint32_t set = 0; set < f->masks; set++) {
        f->cap[set] = 0;
        for (uint32_t k = 0; k < f->sections; k++)
            if (set >> k & 1)
                f->cap[set] += w->section_count > 0 ? w->sections[k].nodes : w->nodes;
    }
}

static bool is_large(const struct want *w, uint32_t k, const struct fit_node *is) {
    uint32_t ppn = w->section_count == 0 ? w->ppn : w->sections[k].ppn;
    return is->pes >= ppn && is->left >= (w->exclusive ? is->pes : ppn) &&
           want_has_memory(want_memory_of(w, k), is->memory);
}

uint32_t fit_mask_by_size(const struct want *w, const struct fit_node *is) {
    uint32_t mask = 0;
    if (w->section_count == 0)
        return is_large(w, 0, is);
    for (uint32_t k = 0; k < w->section_count; k++)
        mask |= (uint32_t)is_large(w, k, is) << k;
    return mask;
}

uint32_t fit_mask_by_name(const struct want *w, uint32_t node) {
    uint32_t mask = UINT32_MAX;
    for (uint32_t k = 0; k < w->section_count; k++)
        if (w->sections[k].only != NULL && !nodeset_has(w->sections[k].only, node))
            mask &= ~((uint32_t)1 << k);
    return mask;
}

uint32_t fit_mask(const struct want *w, uint32_t node, const struct fit_node *is) {
    uint32_t mask = fit_mask_by_size(w, is);
    if (mask == 0 || !want_chooses(w, node))
        return 0;
    for (uint32_t k = 0; k < w->section_count; k++)
        if (w->sections[k].meets != NULL && !nodeset_has(w->sections[k].meets, node))
            mask &= ~((uint32_t)1 << k);
    return mask & fit_mask_by_name(w, node);
}

uint32_t fit_missing(const struct fit *f) {
    uint32_t within[FIT_MASKS], most = 0;
    if (f->sections == 1)
        return f->count < f->nodes ? f->nodes - f->count : 0;
    memcpy(within, f->have, sizeof within[0] * f->masks);
    within[0] = 0;
    for (uint32_t k = 0; k < f->sections; k++)
        for (uint32_t set = 0; set < f->masks; set++)
            if (set >> k & 1)
                within[set] += within[set ^ (uint32_t)1 << k];
    for (uint32_t set = 1; set < f->masks; set++) {
        uint32_t there = f->count - within[f->masks - 1 - set];
        if (there < f->cap[set] && f->cap[set] - there > most)
            most = f->cap[set] - there;
    }
    return most;
}

bool fit_pick(struct fit *f, uint32_t mask) {
    if (mask == 0)
        return false;
    for (uint32_t set = mask; set < f->masks; set++)
        if ((set & mask) == mask && f->have[set] == f->cap[set])
            return false;
    for (uint32_t set = mask; set < f->masks; set++)
        f->have[set] += (set & mask) == mask;
    f->count++;
    return true;
}

/* Can it go to the section, and the others still find theirs? */
static bool may_go(const struct fit *f, uint32_t mask, uint32_t bit) {
    for (uint32_t set = bit; set < f->masks; set++)
        if ((set & bit) != 0 && (set & mask) != mask && f->have[set] == f->cap[set])
            return false;
    return f->cap[bit] > 0;
}

uint32_t fit_assign(struct fit *f, uint32_t mask) {
    uint32_t k = 0;
    while (!(mask >> k & 1) || !may_go(f, mask, (uint32_t)1 << k)) {
        k++;
        ASSERT(k < f->sections);
    }
    for (uint32_t set = 1; set < f->masks; set++) {
        f->have[set] -= (set & mask) == mask;
        f->cap[set] -= set >> k & 1;
    }
    return k;
}
