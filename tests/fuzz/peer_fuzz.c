/* SPDX-License-Identifier: MIT */
/* Fuzzes what processes of one program say to each other: a stream of frames. What is read can be written again, and no frame is
 * longer than it may be. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "wire/peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_hello(struct bytes body) {
    uint8_t again[PEER_HELLO_BYTES];
    struct peer_hello hello;
    if (!peer_hello_read(&hello, body))
        return;
    peer_hello_write(&hello, again);
    ASSERT(body.len == sizeof again && memcmp(again, body.at, sizeof again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct peer_head head;
    uint8_t again[PEER_HEAD_BYTES];
    while (size >= PEER_HEAD_BYTES && peer_head_read(&head, data)) {
        ASSERT(head.len <= PEER_DATA_MAX);
        peer_head_write(&head, again);
        ASSERT(memcmp(again, data, sizeof again) == 0);
        data += PEER_HEAD_BYTES;
        size -= PEER_HEAD_BYTES;
        if (head.len > size)
            break;
        if (head.kind == PEER_HELLO)
            same_hello(bytes_of(data, head.len));
        data += head.len;
        size -= head.len;
    }
    return 0;
}
