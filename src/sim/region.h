/* SPDX-License-Identifier: MIT */
/* Address space for as many equal parts as there are nodes; pages that nobody touches cost nothing.
 *
 * Each part begins on a page, so it is aligned for anything and can be made fresh by itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct region {
    uint8_t *at;
    size_t stride;
    uint32_t count;
};

/* Parts of at least `bytes`, all zero. `dense`: nearly all of it will be touched. -ENOMEM. */
int region_init(struct region *r, uint32_t count, size_t bytes, bool dense);
void region_fini(struct region *r); /* a zeroed region is fine */

/* Makes a part zero again and gives its pages back. */
void region_renew(struct region *r, uint32_t part);

static inline uint8_t *region_at(const struct region *r, uint32_t part) {
    return r->at + r->stride * part;
}
