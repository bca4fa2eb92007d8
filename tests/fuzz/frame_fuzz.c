/* SPDX-License-Identifier: MIT */
/* A stream of raw bytes at a link's gate: headers are judged, bodies skipped, as both worlds do. */
#include <string.h>

#include "base/assert.h"
#include "wire/gate.h"
#include "wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gate gate;
    gate_init(&gate, 1, 1, size > 0 ? (enum role)(data[0] % ROLES) : ROLE_PARENT);
    for (size_t at = size > 0; size - at >= HEADER_BYTES;) {
        struct header h, back;
        uint8_t bytes[HEADER_BYTES];
        header_decode(&h, data + at);
        header_encode(&h, bytes);
        ASSERT(memcmp(bytes, data + at, HEADER_BYTES) == 0);
        header_decode(&back, bytes);
        enum refusal r = gate_check(&gate, &h, 1 << 20);
        if (r == REFUSAL_DUPLICATE) {
            at += HEADER_BYTES;
            continue;
        }
        if (r != REFUSAL_NONE)
            return 0;
        ASSERT(message_rule(h.type) != NULL && h.length <= message_rule(h.type)->max_bytes);
        at += HEADER_BYTES;
        if (h.length > size - at)
            return 0;
        at += h.length;
    }
    return 0;
}
