/* SPDX-License-Identifier: MIT */
/* Where a piece may be found, by its digest: a table of fixed size that may forget, and may be wrong.
 *
 * Whoever follows a hint must look whether the piece is there. So nothing has to be taken out when a source goes
 * away, and when there is no room the new takes the place of some other. */
#pragma once

#include <stdint.h>

struct hint {
    uint32_t tag;
    uint32_t source; /* not 0 */
    uint32_t row;
};

enum { HINTS_WAYS = 8 };

struct hints {
    struct hint *at;
    uint32_t sets; /* of HINTS_WAYS each; a power of two */
    uint32_t turn;
};

/* For about `count` pieces. -ENOMEM. */
int hints_init(struct hints *h, uint32_t count);
void hints_fini(struct hints *h);

/* Digests of at least 16 bytes. */
void hints_add(struct hints *h, const uint8_t *digest, uint32_t source, uint32_t row);
/* How many were found. */
uint32_t hints_find(const struct hints *h, const uint8_t *digest, struct hint out[HINTS_WAYS]);
