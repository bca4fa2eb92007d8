/* SPDX-License-Identifier: MIT */
/* Fuzzes the parser of key files: what is a key is written as it was read. The same for identities, which
 * strangers send. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "wire/keyfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct keyfile f;
    struct identity id;
    if (keyfile_parse(bytes_of(data, size), &f) == 0) {
        char again[KEYFILE_TEXT_MAX];
        ASSERT(keyfile_write(&f, again) == size);
        ASSERT(memcmp(again, data, size) == 0);
    }
    if (identity_decode(bytes_of(data, size), &id) == 0) {
        uint8_t again[IDENTITY_BYTES];
        char text[IDENTITY_TEXT_MAX];
        identity_encode(&id, again);
        ASSERT(memcmp(again, data, size) == 0);
        identity_format(&id, text);
    }
    return 0;
}
