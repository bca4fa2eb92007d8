/* SPDX-License-Identifier: MIT */
/* Fuzzes the decoder of setups: what decodes has ranks of its run and encodes to the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wire/setup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct setup s;
    if (setup_decode(bytes_of(data, size), &s) < 0)
        return 0;
    ASSERT(s.count > 0 && (uint64_t)s.first + s.count <= s.size);
    uint8_t *again = malloc(size);
    ASSERT(again != NULL);
    ASSERT(setup_encode(&s, room_of(again, size)) == (long)size);
    ASSERT(memcmp(again, data, size) == 0);
    free(again);
    return 0;
}
