/* SPDX-License-Identifier: MIT */
/* Fuzzes the decoder of crates: what decodes encodes to the same bytes, and each is found by its number. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wire/crates.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_ranges(const struct crate *c) {
    struct rank_range r;
    uint8_t again[CRATE_RANGE_BYTES];
    uint32_t count = 0;
    for (; crate_range_load(c, count, &r); count++) {
        crate_range_store(again, r);
        ASSERT(memcmp(again, c->ranges.at + (size_t)count * sizeof again, sizeof again) == 0);
    }
    ASSERT(count > 0 && (size_t)count * CRATE_RANGE_BYTES == c->ranges.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes all = bytes_of(data, size);
    struct crate c, found;
    size_t at = 0, before = 0;
    uint8_t *again = malloc(size + 1);
    ASSERT(again != NULL);
    for (uint32_t number = 0; crate_next(all, &at, &c) == 1; number++, before = at) {
        check_ranges(&c);
        ASSERT(number > 8 || (crate_at(all, number, &found) == 1 && found.copy.at == c.copy.at));
        ASSERT(crate_store(&c, room_of(again, size)) == (long)(at - before));
        ASSERT(memcmp(again, data + before, at - before) == 0);
    }
    free(again);
    return 0;
}
