/* SPDX-License-Identifier: MIT */
/* Places in buffers whose bytes lie in files: see loans.h. There are as many as slots to be sent from: a few. */
#include "os/loans.h"

#include <stdlib.h>

#include "base/assert.h"

static void drop_at(struct loans *l, uint32_t i) {
    original_drop(l->list[i].loan.file);
    l->list[i] = l->list[--l->count];
}

void loans_fini(struct loans *l) {
    while (l->count > 0)
        drop_at(l, 0);
    free(l->list);
    *l = (struct loans){0};
}

void loans_add(struct loans *l, const struct place_loan *p) {
    if (l->count == l->cap) {
        uint32_t cap = l->cap ? 2 * l->cap : 16;
        struct place_loan *list = realloc(l->list, cap * sizeof *list);
        ASSERT(list != NULL);
        l->list = list;
        l->cap = cap;
    }
    l->list[l->count++] = *p;
}

const struct place_loan *loans_find(const struct loans *l, uint32_t buffer, uint64_t offset) {
    for (uint32_t i = 0; i < l->count; i++)
        if (l->list[i].buffer == buffer && l->list[i].offset == offset)
            return &l->list[i];
    return NULL;
}

void loans_drop(struct loans *l, uint32_t buffer, uint64_t offset) {
    const struct place_loan *p = loans_find(l, buffer, offset);
    if (p != NULL)
        drop_at(l, (uint32_t)(p - l->list));
}

void loans_drop_bundle(struct loans *l, uint32_t bundle) {
    for (uint32_t i = l->count; i > 0; i--)
        if (l->list[i - 1].bundle == bundle)
            drop_at(l, i - 1);
}
