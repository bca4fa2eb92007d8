/* SPDX-License-Identifier: MIT */
/* Fuzzes the decoder of classes of hosts: what decodes encodes to the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wire/classes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct host_class h;
    uint8_t *again = malloc(size + 1);
    ASSERT(again != NULL);
    for (size_t at = 0, before = 0; class_next(bytes_of(data, size), &at, &h) == 1; before = at) {
        ASSERT(h.least <= h.most && h.ppn > 0 && h.name.len > 0 && h.name.len <= CLASS_NAME_MAX);
        ASSERT(class_store(&h, room_of(again, size)) == (long)(at - before));
        ASSERT(memcmp(again, data + before, at - before) == 0);
    }
    free(again);
    return 0;
}
