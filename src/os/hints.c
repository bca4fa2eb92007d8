/* SPDX-License-Identifier: MIT */
/* Where a piece may be found: see hints.h. */
#include "os/hints.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"

int hints_init(struct hints *h, uint32_t count) {
    *h = (struct hints){.sets = 1};
    while (h->sets < count / HINTS_WAYS && h->sets < 1U << 28)
        h->sets *= 2;
    h->at = calloc((size_t)h->sets * HINTS_WAYS, sizeof *h->at);
    return h->at == NULL ? -ENOMEM : 0;
}

void hints_fini(struct hints *h) {
    free(h->at);
    *h = (struct hints){0};
}

/* A digest is as good as a hash. */
static struct hint *set_of(const struct hints *h, const uint8_t *digest) {
    return h->at + (size_t)(load_le32(digest) & (h->sets - 1)) * HINTS_WAYS;
}

static uint32_t tag_of(const uint8_t *digest) {
    return load_le32(digest + 4);
}

void hints_add(struct hints *h, const uint8_t *digest, uint32_t source, uint32_t row) {
    struct hint fresh = {.tag = tag_of(digest), .source = source, .row = row};
    struct hint *set = set_of(h, digest), *to = NULL;
    ASSERT(source != 0);
    for (uint32_t i = 0; i < HINTS_WAYS; i++) {
        bool same = set[i].tag == fresh.tag && set[i].source == source && set[i].row == row;
        if (same)
            return;
        if (to == NULL && set[i].source == 0)
            to = set + i;
    }
    *(to != NULL ? to : set + h->turn++ % HINTS_WAYS) = fresh;
}

uint32_t hints_find(const struct hints *h, const uint8_t *digest, struct hint out[HINTS_WAYS]) {
    const struct hint *set = set_of(h, digest);
    uint32_t found = 0;
    for (uint32_t i = 0; i < HINTS_WAYS; i++)
        if (set[i].source != 0 && set[i].tag == tag_of(digest))
            out[found++] = set[i];
    return found;
}
